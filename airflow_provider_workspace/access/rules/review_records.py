"""The records of an access review: what its files hold. What is not one of them is refused when it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.procedures.access_list import AccessList, entry_of, member_identity

KEEP: Final = "keep"
REMOVE: Final = "remove"
MEMBER: Final = "member"
INVITE: Final = "invite"
COLLABORATOR: Final = "collaborator"
# The outcomes of a decision.
DONE, KEPT, GONE, CHANGED, REFUSED = "done", "kept", "gone", "changed", "refused"
# A decision that waits for the end of temporary access is noted, and done then.
LATER = "later"
# A decision that a person lifted after it was noted, or that a later review replaced.
OVERRULED = "overruled"
NOT_SENT, NOT_DONE = "not sent", "not done"
# It was sent, and nobody knows what became of it.
UNKNOWN = "unknown"
# With these outcomes, nothing is left to do.
FINE = (DONE, KEPT, GONE, LATER, OVERRULED)
COMPLETE: Final = "complete"
INCOMPLETE: Final = "incomplete"
NOT_REVIEWED: Final = "not reviewed"
# What changed of somebody since the last review.
NEW, RAISED = "new", "raised"
# When somebody logged in who never did.
NEVER = "never"

PersonKind = Literal["member", "invite", "collaborator"]
# What is decided about somebody; a number is a lower level.
Decision = Literal["keep", "remove"] | int
ReviewState = Literal["complete", "incomplete", "not reviewed"]
# What tells people and boards apart, whatever they are called.
ReviewIdentity = tuple[str, str, str | None, str | None]


class ReviewRecord(BaseModel):
    """Base of the records: each field as it was written, and no other."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Lift(ReviewRecord):
    """
    That a person lifted a decision of a review, which does not count any more; as its note has it.

    :param by: who did it
    :param reason: why
    :param at: when
    :param approved_by: who approved it; empty if nobody was asked
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    by: str = Field(min_length=1)
    reason: str = Field(min_length=1)
    at: str = Field(min_length=1)
    approved_by: str = ""

    def __str__(self) -> str:
        approval = f", approved by {self.approved_by}" if self.approved_by else ""
        return f"lifted by {self.by} at {self.at}{approval}: {self.reason}"


class Temporary(ReviewRecord):
    """
    Temporary access of somebody.

    :param says: the grant that ends last, for people
    :param grants: each grant that the person has, for people
    :param then: the level after its end; ``None`` for no access
    :param since: when the latest grant was given, in seconds since 1970
    :param requested_by: who asked for the grant, or started the run that gave it; empty if that is not known
    :param approved_by: who approved it; empty if nobody was asked
    :param is_over: whether each grant that gave the level is over, and waits for the sweep
    """

    says: str
    then: int | None
    since: float
    grants: tuple[str, ...] = ()
    requested_by: str = ""
    approved_by: str = ""
    is_over: bool = False


class ReviewedPerson(ReviewRecord):
    """
    Access of somebody; ``None`` is what the service does not show.

    :param who: what the review calls them, which no other row is called
    :param id: the user; of an invite its own id
    :param name: their name; empty if the service does not show it
    :param project_id: the project of a dashboard; ``None`` if it is access to the organization
    :param last_login: when they logged in, or :data:`NEVER`
    :param projects: their level in each project, for people; ``None`` if nobody read it
    :param is_on_roster: whether a row of the roster names their address; ``None`` without a roster, or an address
    :param temporary: the grant that gave this level
    :param outside: whether the address is outside of the verified domains
    :param change: ``new`` or ``raised`` since the last review, or empty; ``None`` if there was none
    :param lifted: the decision about them that a person lifted since the last review; empty if there is none
    :param kept: why they can only be kept; empty if they may go
    :param look: why a reviewer must look at them
    :param group: the group of people to look at first to which they belong; empty for all others
    """

    who: str
    kind: PersonKind
    email: str | None
    id: str | None
    name: str = ""
    project_id: str | None = None
    dashboard_id: str | None = None
    level: int | None
    joined_at: str | None = None
    last_login: str | None = None
    is_2fa_enabled: bool | None = None
    projects: tuple[str, ...] | None = None
    is_on_roster: bool | None = None
    temporary: Temporary | None = None
    outside: bool | None = None
    change: str | None = None
    lifted: str = ""
    kept: str = ""
    look: tuple[str, ...] = ()
    group: str = ""

    @property
    def called(self) -> str:
        """What the review calls them, with their name."""
        return f"{self.who} ({self.name})" if self.name else self.who

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
    :param lifted: the decisions that people lifted, and which are noted until their end; also about who is gone
    :param shows_projects: whether the levels in projects were read; else only levels of the organization are reviewed
    :param too_many: reasons that are true of too many people to look at these first, with the numbers
    :param people: first the groups of those whom a reviewer must look at, then all others by name
    """

    read_at: str
    service: str
    organization_id: str
    verified_domains: tuple[str, ...] = ()
    lists: tuple[ReadList, ...]
    read_with: str = ""
    previous: PreviousReview | None = None
    left: tuple[str, ...] | None = None
    lifted: tuple[str, ...] = ()
    shows_projects: bool = False
    too_many: tuple[str, ...] = ()
    people: tuple[ReviewedPerson, ...]

    @model_validator(mode="after")
    def _check_names(self) -> Population:
        names = {person.who for person in self.people}
        if len(names) < len(self.people):
            raise ValueError("two rows have the same name")
        return self

    @property
    def groups(self) -> dict[str, list[ReviewedPerson]]:
        """The people of each group: first those to look at first; the last one, with an empty name, has all others."""
        groups: dict[str, list[ReviewedPerson]] = {}
        for person in self.people:
            groups.setdefault(person.group, []).append(person)
        return groups

    @property
    def emails(self) -> tuple[str, ...]:
        """The addresses of the people, as far as the service shows them."""
        return tuple(person.email for person in self.people if person.email)

    @property
    def members(self) -> list[Member]:
        """The members, as far as a review knows them."""
        members = [person for person in self.people if person.kind == MEMBER]
        return [
            Member(user=User(uuid=one.id, email=one.email, first_name=one.name), level=one.level) for one in members
        ]

    @property
    def access_list(self) -> AccessList:
        """Who is a member, and who was invited."""
        invites = [person for person in self.people if person.kind == INVITE]
        access_list = AccessList(invited=frozenset(address_key(invite.email or "") for invite in invites))
        for member in self.members:
            access_list.add(member_identity(member), entry_of(member, is_judged=False))
        return access_list

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
    """
    The Airflow user who answered.

    :param email: their address, if their id or name has it; else empty
    """

    id: str
    name: str
    email: str = ""

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

    :param by_default: how many stay because everybody else does, and not because somebody decided each
    :param reviewer_is_reviewed: whether the reviewer is among the reviewed; a text if nobody can tell
    :param part_in_grants: what the reviewer did for the temporary access of people, by their names in the review
    """

    by: Reviewer
    decisions: dict[str, Decision]
    exceptions: dict[str, str]
    by_default: int = 0
    reviewer_is_reviewed: bool | str
    part_in_grants: dict[str, str] = Field(default_factory=dict)
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
    :param members: the users who were members then, while the invites that it withdraws were open; empty if it
        withdraws none
    """

    at: str
    dry_run: bool
    people: tuple[str, ...]
    members: tuple[str, ...] = ()
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
    :param are_noted: whether the decisions are noted, so that other features do not undo them
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
    are_noted: bool = True
    outcomes: tuple[DecisionOutcome, ...]


def describe_decision(decision: Decision) -> str:
    """Return a decision for people: a level by its name."""
    return f"lower to {describe_level(decision)}" if isinstance(decision, int) else decision


def left_of(outcomes: Iterable[DecisionOutcome]) -> list[str]:
    """Return what was decided and is not done, in words."""
    left = [outcome for outcome in outcomes if outcome.outcome not in FINE]
    return [f"{outcome.who} ({describe_decision(outcome.decision)}): {outcome}" for outcome in left]
