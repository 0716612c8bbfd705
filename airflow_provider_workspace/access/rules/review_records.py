"""The records of an access review: what its files hold. What is not one of them is refused when it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.api.timestamps import parse_timestamp

KEEP: Final = "keep"
REMOVE: Final = "remove"
MEMBER: Final = "member"
INVITE: Final = "invite"
COLLABORATOR: Final = "collaborator"
# The outcomes of a decision.
DONE, KEPT, GONE, CHANGED, REFUSED = "done", "kept", "gone", "changed", "refused"
# A decision that waits for the end of temporary access is noted, and done then.
LATER = "later"
NOT_SENT, NOT_DONE = "not sent", "not done"
# It was sent, and nobody knows what became of it.
UNKNOWN = "unknown"
# With these outcomes, nothing is left to do.
FINE = (DONE, KEPT, GONE, LATER)
COMPLETE: Final = "complete"
INCOMPLETE: Final = "incomplete"
NOT_REVIEWED: Final = "not reviewed"
# What changed of somebody since the last review.
NEW, RAISED = "new", "raised"

PersonKind = Literal["member", "invite", "collaborator"]
# What is decided about somebody; a number is a lower level.
Decision = Literal["keep", "remove"] | int
ReviewState = Literal["complete", "incomplete", "not reviewed"]
# What tells people and boards apart, whatever they are called.
ReviewIdentity = tuple[str, str, str | None, str | None]


class ReviewRecord(BaseModel):
    """Base of the records: each field as it was written, and no other."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Temporary(ReviewRecord):
    """
    Temporary access of somebody.

    :param says: the grant, for people
    :param then: the level after its end; ``None`` for no access
    :param since: when the latest grant was given, in seconds since 1970
    """

    says: str
    then: int | None
    since: float


class ReviewedPerson(ReviewRecord):
    """
    Access of somebody; ``None`` is what the service does not show.

    :param who: what the review calls them, which no other row is called
    :param id: the user; of an invite its own id
    :param project_id: the project of a dashboard; ``None`` if it is access to the organization
    :param temporary: the grant that gave this level
    :param outside: whether the address is outside of the verified domains
    :param change: ``new`` or ``raised`` since the last review, or empty; ``None`` if there was none
    :param kept: why they can only be kept; empty if they may go
    :param look: why a reviewer must look at them first
    """

    who: str
    kind: PersonKind
    email: str | None
    id: str | None
    project_id: str | None = None
    dashboard_id: str | None = None
    level: int | None
    joined_at: str | None = None
    last_login: str | None = None
    is_2fa_enabled: bool | None = None
    temporary: Temporary | None = None
    outside: bool | None = None
    change: str | None = None
    kept: str = ""
    look: tuple[str, ...] = ()

    @property
    def identity(self) -> ReviewIdentity:
        """What tells them apart, whatever they are called."""
        return self.kind, self.id or self.who, self.project_id, self.dashboard_id

    @property
    def level_under(self) -> int | None:
        """The level without temporary access, which a review judges; ``None`` without access."""
        return self.temporary.then if self.temporary else self.level

    @property
    def level_name(self) -> str | None:
        """The level for people; ``None`` if the service does not show it."""
        return None if self.level is None else self._name_of(self.level)

    @property
    def level_under_name(self) -> str | None:
        """The level without temporary access for people; ``None`` without access."""
        level = self.level_under
        return None if level is None else self._name_of(level)

    def _name_of(self, level: int) -> str:
        # The levels of dashboards are others, and have no names.
        return f"level {level}" if self.kind == COLLABORATOR else describe_level(level)

    def is_raised_in(self, later: ReviewedPerson) -> bool:
        """Return whether somebody has a higher level in a later row."""
        before = self.level_under
        after = later.level_under
        return before is not None and after is not None and after > before


class PreviousReview(ReviewRecord):
    """
    The review that a population is compared with.

    :param folder: name of its folder
    :param sha256: digest of its population
    :param people: how many it left with access
    """

    folder: str
    read_at: str
    sha256: str
    people: int


class ReadList(ReviewRecord):
    """
    A list that a population was read from.

    :param rows: how many rows were read
    :param counted: how many the service counts; ``None`` if its pages do not say
    :param project_id: the project of a dashboard; ``None`` for a list of the organization
    """

    name: Literal["members", "invites", "collaborators"]
    rows: int
    counted: int | None = None
    project_id: str | None = None
    dashboard_id: str | None = None


class Population(ReviewRecord):
    """
    Everybody who has access.

    :param lists: what was read, with the number of rows
    :param read_with: with which key the lists were read, if they may hide members from it
    :param previous: the last review; ``None`` if there was none
    :param left: who is gone since then; ``None`` if there was none
    :param people: first those whom a reviewer must look at
    """

    read_at: str
    service: str
    organization_id: str
    verified_domains: tuple[str, ...] = ()
    lists: tuple[ReadList, ...]
    read_with: str = ""
    previous: PreviousReview | None = None
    left: tuple[str, ...] | None = None
    people: tuple[ReviewedPerson, ...]

    @model_validator(mode="after")
    def _check_names(self) -> Population:
        names = {person.who for person in self.people}
        if len(names) < len(self.people):
            raise ValueError("two rows have the same name")
        return self

    @property
    def emails(self) -> tuple[str, ...]:
        """The addresses of the people, as far as the service shows them."""
        return tuple(person.email for person in self.people if person.email)

    @property
    def joined(self) -> tuple[str, ...]:
        """Who has access since the last review."""
        return tuple(person.who for person in self.people if person.change == NEW)

    def pairs_in(self, later: Population) -> list[tuple[ReviewedPerson, ReviewedPerson | None]]:
        """
        Return each row, and what it is in a later population; ``None`` if they are gone.

        Whoever has other ids there, such as an invite that was accepted, is found by name.
        """
        known = {person.identity for person in self.people}
        by_identity = {person.identity: person for person in later.people}
        by_name = {person.who: person for person in later.people if person.identity not in known}
        pairs: list[tuple[ReviewedPerson, ReviewedPerson | None]] = []
        for person in self.people:
            now = by_identity.get(person.identity) or by_name.get(person.who)
            pairs.append((person, now))
        return pairs


class LastReview(ReviewRecord):
    """
    What the last review left, see :func:`review_population.reviewed`.

    :param review: where it is
    :param population: everybody whom it left, at the level that was decided
    """

    review: PreviousReview
    population: Population


class Rules(ReviewRecord):
    """The arguments of a review that are its rules."""

    reviewers: tuple[str, ...]
    allow_self_approval: bool
    owner_level: int | None
    max_removals: int | str | None
    protected: tuple[str, ...]
    review_timeout: str
    decisions_count_for: str
    decisions_folder: str | None = None
    digests: str | None = None


class Reviewer(ReviewRecord):
    """The Airflow user who answered."""

    id: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} (Airflow user {self.id})"


class Answered(ReviewRecord):
    """
    What is known of an answer, whether it counts or not.

    :param decided_at: when it was given; ``None`` if there is none
    :param asked_at: when the question was asked
    :param due_at: until when it could be answered
    :param notified: the names of the ``notifiers`` that were called when it was asked
    :param answer: what was filled in
    :param decisions_file: the file that it names, and its digest
    """

    decided_at: str | None
    asked_at: str
    due_at: str
    notified: tuple[str, ...]
    rules: Rules
    answer: dict[str, Any] | None
    decisions_file: str | None = None


class NotDecided(Answered):
    """
    An answer that does not count.

    :param by: who answered; ``None`` if nobody did
    :param why: the reason
    """

    by: Reviewer | None
    why: str


class Decisions(Answered):
    """
    What was decided.

    :param by_default: how many stay because all others do, and not because somebody decided each
    :param reviewer_is_reviewed: whether the reviewer is among the reviewed; a text if nobody can tell
    """

    by: Reviewer
    decisions: dict[str, Decision]
    exceptions: dict[str, str]
    by_default: int = 0
    reviewer_is_reviewed: bool | str
    population_sha256: str

    def moment(self, population: Population) -> float:
        """Return when it was decided, in seconds since 1970: when the population was read if nothing says it."""
        return parse_timestamp(self.decided_at) or parse_timestamp(population.read_at) or 0.0


class DecisionOutcome(ReviewRecord):
    """What became of a decision about somebody."""

    who: str
    kind: PersonKind
    decision: Decision
    outcome: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}, {self.detail}" if self.detail else self.outcome


class Intent(ReviewRecord):
    """
    What a try is about to send.

    :param people: whose access it changes
    """

    at: str
    dry_run: bool
    people: tuple[str, ...]
    rules: Rules


class Try(ReviewRecord):
    """
    What became of each decision in a try.

    :param error: why it failed; ``None`` if it did not
    """

    at: str
    dry_run: bool
    error: str | None
    outcomes: tuple[DecisionOutcome, ...]
    rules: Rules


class EarlierReview(ReviewRecord):
    """
    What the next review needs of a closed one, which another release of this package may have written.

    :param files: the digest of each file
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    organization_id: str
    service: str
    state: ReviewState
    read_at: str | None
    files: dict[str, str]


class ClosedReview(ReviewRecord):
    """
    What a review is.

    :param airflow: the URL of this Airflow
    :param read_at: when the population was read; ``None`` if it was not
    :param missing: what was not done, and the latest error
    :param files: the digest of each file
    :param other_files: names of what else is in the folder, which nothing has read
    :param outcomes: the outcome of each decision as the last look shows it
    """

    dag_id: str
    run_id: str
    package: str
    airflow: str
    organization_id: str
    service: str
    rules: Rules
    state: ReviewState
    read_at: str | None
    closed_at: str
    missing: tuple[str, ...]
    files: dict[str, str]
    other_files: tuple[str, ...] = ()
    outcomes: tuple[DecisionOutcome, ...]


def describe_decision(decision: Decision) -> str:
    """Return a decision for people: a level by its name."""
    return f"lower to {describe_level(decision)}" if isinstance(decision, int) else decision


def left_of(outcomes: Iterable[DecisionOutcome]) -> list[str]:
    """Return what was decided and is not done, in words."""
    left = [outcome for outcome in outcomes if outcome.outcome not in FINE]
    return [f"{outcome.who} ({describe_decision(outcome.decision)}): {outcome}" for outcome in left]
