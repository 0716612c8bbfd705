"""The steps of an access review, and what each writes into its folder: the population, the decisions, the tries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.reviews.answer import (
    ANOTHER_USER,
    FILE,
    FILE_DIGEST,
    form_of,
    read_answer,
    read_decisions_file,
    reason_of,
    refuse,
    refuse_silence,
    refuse_what_was_not_offered,
)
from airflow_provider_workspace.access.reviews.digests import ReviewDigests
from airflow_provider_workspace.access.reviews.earlier_reviews import EarlierReviews
from airflow_provider_workspace.access.reviews.folder import (
    DECISIONS,
    DECISIONS_FILE,
    INTENTS,
    LAST_LOOK,
    NOT_DECIDED,
    PAGE,
    POPULATION,
    REVIEW,
    TABLE,
    TRIES,
    ReviewFolder,
    changed,
    number_of,
)
from airflow_provider_workspace.access.reviews.outcome import PlannedReview, outcomes_of, people_changed
from airflow_provider_workspace.access.reviews.population import POPULATION_COLUMNS, csv_rows
from airflow_provider_workspace.access.rules.answers import Answerer, AnswerRules
from airflow_provider_workspace.access.rules.review_records import (
    INCOMPLETE,
    DecisionOutcome,
    Decisions,
    Intent,
    LastReview,
    NotDecided,
    Population,
    Reviewer,
    Rules,
    Try,
    left_of,
)
from airflow_provider_workspace.api.timestamps import to_second
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError
from airflow_provider_workspace.files.reports import csv_text
from airflow_provider_workspace.files.storage import file_below, folder_at

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.task_state import TaskState

# The only option of the question: the form says what is decided.
DONE_OPTION = "Done"
MAX_MISTAKES = 5
# How many of the decisions that are not done an error names.
MAX_OPEN = 20


@dataclass(frozen=True)
class Carried:
    """The digests of files that earlier tasks wrote, as Airflow kept them; empty if it did not."""

    population: str
    decisions: str


@dataclass(frozen=True)
class OpenReview:
    """
    What a task goes on with.

    :param population_sha256: digest of the population; empty if there is none
    :param decisions_sha256: the same of the decisions
    """

    population: Population | None
    decisions: Decisions | None
    population_sha256: str
    decisions_sha256: str


@dataclass(frozen=True)
class Answer:
    """
    The answer to a question, or the error if there is none.

    :param event: what Airflow says of it
    :param asked: digest of the population that was asked about
    :param asked_at: when
    :param due_at: until when it could be answered
    :param notified: the names of the notifiers that were called then
    """

    event: Mapping[str, Any]
    asked: str
    asked_at: str
    due_at: str
    notified: tuple[str, ...]

    @property
    def fields(self) -> dict[str, Any] | None:
        """What was filled in; ``None`` if that is no form."""
        filled = self.event.get("params_input")
        return dict(filled) if isinstance(filled, Mapping) else None


class Evidence:
    """
    The evidence of one review.

    :param parent: folder with the evidence of all reviews: a path on this machine or the URL of an object store
    :param run_id: Dag run of the review
    :param names: what else tells reviews of one run apart: Dag, map index, task group
    :param digests: the second place, which also has the digest of each ``review.json``; ``None`` for no such place
    :param state: what the task remembers
    :raises WorkspaceInputError: if a folder is neither, or the second place is below the first
    """

    def __init__(self, parent: Any, run_id: str, *names: str, digests: Any, state: TaskState) -> None:
        self._parent = folder_at(parent, "evidence")
        self._digests = None if digests is None else ReviewDigests(digests, self._parent)
        readable = re.sub(r"[^\w.-]+", "_", run_id, flags=re.ASCII)[:100]
        identity = json.dumps([run_id, *names])
        unique = sha256(identity.encode()).hexdigest()[:8]
        self.name = f"{readable}-{unique}"
        self.folder = ReviewFolder(self._parent.path / self.name, state)

    def open(self, organization_id: str, service: str, needed: int, carried: Carried) -> OpenReview:
        """
        Return what is there.

        :param needed: how many of population and decisions must be there, for a task that goes on with the review; it
            must still be open
        :param carried: what the files must be
        :raises WorkspaceInputError: if the review cannot go on
        """
        folder = self.folder
        population, population_sha256 = folder.read(POPULATION, Population, carried.population)
        decisions, decisions_sha256 = folder.read(DECISIONS, Decisions, carried.decisions)
        if population and (population.organization_id, population.service) != (organization_id, service):
            raise self._ended("is of another organization")
        if needed and folder.digest(REVIEW):
            raise self._ended("is closed")
        if needed and (folder.digest(LAST_LOOK) or folder.digest(PAGE)):
            raise self._ended("is being closed")
        if decisions and decisions.population_sha256 != population_sha256:
            raise self._ended("has another population now")
        if needed >= 1 and not population:
            raise self._ended(f"has no {POPULATION}, which an earlier task writes")
        if needed >= 2 and not decisions:
            raise self._ended(f"has no {DECISIONS}, which an earlier task writes")
        if population and decisions:
            mistakes = refuse_what_was_not_offered(population, decisions.decisions)
            if mistakes:
                named = "; ".join(mistakes[:MAX_MISTAKES])
                raise changed(folder.path / DECISIONS, f"has decisions that nobody could make ({named})")
        return OpenReview(population, decisions, population_sha256, decisions_sha256)

    def _ended(self, why: str) -> WorkspaceInputError:
        """Return the error for a review that cannot go on."""
        msg = f"This review {why}. Start a new run of the Dag. The folder of this review: {self.folder}"
        return WorkspaceInputError(msg, problem="review-ended")

    # The population

    def write_population(self, population: Population) -> None:
        """Write who has access, also as a table for people."""
        self.folder.write(POPULATION, population)
        rows = csv_rows(population)
        self.folder.write(TABLE, csv_text(POPULATION_COLUMNS, rows))

    def last_review(self, organization_id: str, service: str) -> LastReview | None:
        """Return what the latest complete review beside this one left; see :meth:`EarlierReviews.last`."""
        return EarlierReviews(self._parent, self._digests).last(organization_id, service)

    # The decision

    def decide(
        self,
        population: Population,
        answer: Answer,
        answer_rules: AnswerRules,
        rules: Rules,
    ) -> Decisions:
        """
        Write and return what an answer decides.

        :param answer_rules: who may answer
        :raises WorkspaceInputError: if it does not decide everybody, or is of somebody who may not answer; a file has
            the answer then, and why. If another answer was written before this one
        """
        answerer = Answerer.read(answer.event.get("responded_by_user"))
        responded_at = answer.event.get("responded_at")
        reviewer = None
        if answerer:
            reviewer = Reviewer(id=answerer.id, name=answerer.name, email=answerer.email)
        known: dict[str, Any] = {
            "decided_at": to_second(responded_at),
            "by": reviewer,
            "asked_at": answer.asked_at,
            "due_at": answer.due_at,
            "notified": answer.notified,
            "rules": rules,
            "answer": answer.fields,
        }
        fields = answer.fields or {}
        try:
            self._raise_if_no_answer(answer)
            answerer = answer_rules.judge(answer.event.get("responded_by_user"), cure=ANOTHER_USER)
            form = form_of(population, has_file=rules.decisions_folder is not None)
            file_rows, known["decisions_file"] = self._read_decisions_file(fields, rules)
            decided = read_answer(population, fields, form, file_rows)
        except WorkspaceInputError as error:
            refused = NotDecided(**known, why=reason_of(error))
            number = self.folder.next_number()
            self.folder.write(f"{NOT_DECIDED}{number}.json", refused)
            raise
        reviewer_is_reviewed = _is_reviewed(answerer, population)
        part_in_grants = _part_in_grants(answerer, population)
        decisions = Decisions(
            **known,
            decisions=decided.decisions,
            exceptions=decided.exceptions,
            by_default=len(decided.by_default),
            reviewer_is_reviewed=reviewer_is_reviewed,
            part_in_grants=part_in_grants,
            population_sha256=answer.asked,
        )
        self.folder.write(DECISIONS, decisions)
        return decisions

    def _raise_if_no_answer(self, answer: Answer) -> None:
        """Refuse an answer that nobody gave, or that is not about the population that was asked about."""
        event = answer.event
        is_timeout = event.get("error_type") == "timeout"
        if event.get("error") and not is_timeout:
            refuse(f"Airflow could not read the answer ({event['error']})")
        if is_timeout or not event.get("responded_by_user"):
            refuse_silence(answer.due_at)
        if event.get("chosen_options") != [DONE_OPTION]:
            refuse(f"The answer is not {DONE_OPTION!r}")
        if self.folder.digest(POPULATION) != answer.asked:
            refuse(f"{POPULATION} is not the one that was asked about")

    def _read_decisions_file(self, fields: Mapping[str, Any], rules: Rules) -> tuple[list[dict[str, str]] | None, str]:
        """Return the rows of the decisions file that an answer names, and which file it is; keep a copy."""
        name = str(fields.get(FILE) or "").strip()
        expected = str(fields.get(FILE_DIGEST) or "").strip()
        if not name and not expected:
            return None, "none"
        if rules.decisions_folder is None:
            refuse("The answer names a decisions file, and the author of the Dag sets no decisions_folder")
        file = file_below(rules.decisions_folder, name)
        text, content = file.read_all()
        # Whoever answers must know the file: the worker reads files that they may not read.
        digest = sha256(content).hexdigest()
        if digest != expected.lower():
            refuse(f"The SHA-256 of the decisions file {name!r} is not {expected!r}")
        rows = read_decisions_file(text)
        self.folder.copy(DECISIONS_FILE, content)
        return rows, f"{name} (sha256 {digest})"

    # What is sent

    def begin_try(self, number: int, planned: PlannedReview, rules: Rules, *, dry_run: bool) -> None:
        """
        Write whom a try is about to change, before it sends anything: a try that is killed leaves that.

        :raises WorkspaceInputError: if another worker has begun a try with this number
        """
        name = f"{INTENTS}{number}.json"
        members: list[str] = []
        if planned.plan.withdraws_invites:
            members = [identity[-1] for identity in planned.plan.access_list.shown]
        people = people_changed(planned)
        intent = Intent(at=now(), dry_run=dry_run, people=people, members=tuple(members), rules=rules)
        try:
            self.folder.create(name, intent)
        except FileExistsError:
            msg = (
                f"Another try wrote {name} first, and does what was decided. See the log of that try, and {self.folder}"
            )
            raise WorkspaceInputError(msg, problem="file-exists") from None

    def interrupted(self) -> dict[str, int]:
        """Return whom an earlier try was about to change when it ended, by the number of that try."""
        names = self.folder.names()
        people: dict[str, int] = {}
        for name in names:
            number = number_of(name)
            if not name.startswith(INTENTS) or f"{TRIES}{number}.json" in names:
                continue
            intent = self.folder.read_try(name, Intent)
            if intent and not intent.dry_run:
                people |= dict.fromkeys(intent.people, number)
        return people

    def end_try(
        self,
        number: int,
        planned: PlannedReview | None,
        error: WorkspaceError | None,
        rules: Rules,
        *,
        dry_run: bool,
    ) -> list[DecisionOutcome]:
        """
        Write and return what became of each decision in a try.

        :param planned: what was planned; ``None`` if it failed before
        :raises WorkspaceError: the error of this try, or if anything that was decided is not done
        """
        outcomes = outcomes_of(planned, self.interrupted()) if planned else []
        message = str(error) if error else None
        done = Try(at=now(), dry_run=dry_run, error=message, outcomes=tuple(outcomes), rules=rules)
        self.folder.write(f"{TRIES}{number}.json", done)
        if error:
            raise error
        self.raise_if_open(INCOMPLETE, left_of(outcomes))
        return outcomes

    def raise_if_open(self, state: str, missing: list[str]) -> None:
        """Refuse to end a task while something is left to do."""
        if not missing:
            return
        named = "; ".join(missing[:MAX_OPEN]).removesuffix(".")
        msg = f"Access was not reviewed: {named}. Start a new run of the Dag"
        if state == INCOMPLETE:
            msg = (
                f"This review is incomplete: {len(missing)} open. Do by hand what is left, or start a new run of the "
                f"Dag: {named}"
            )
        raise WorkspaceError(f"{msg}. The folder of this review: {self.folder}", problem="review-incomplete")

    # The end

    def keep_digest(self, digest: str) -> None:
        """Write the digest of ``review.json`` to the second place, or find it there, if there is such a place."""
        if self._digests:
            self._digests.keep(self.name, digest)


def members_seen(folder: ReviewFolder) -> dict[str, frozenset[str]]:
    """Return the users who were members when tries began, by whom each was about to change."""
    seen: dict[str, frozenset[str]] = {}
    for name in folder.names():
        intent = folder.read_try(name, Intent) if name.startswith(INTENTS) else None
        if intent:
            seen |= dict.fromkeys(intent.people, frozenset(intent.members))
    return seen


def _is_reviewed(answerer: Answerer, population: Population) -> bool | str:
    """Return whether whoever answered is one of the people reviewed, as far as their address tells."""
    if AnswerRules(about=population.emails).is_subject(answerer):
        return True
    if not answerer.email:
        return "cannot be told, because this Airflow user has no address"
    return False


def _part_in_grants(answerer: Answerer, population: Population) -> dict[str, str]:
    """Return what whoever answered did for the temporary access that they reviewed, by the names of its people."""
    parts: dict[str, str] = {}
    for person in population.people:
        if person.temporary is None:
            continue
        roles: list[str] = []
        if answerer.is_named_in(person.temporary.approved_by):
            roles.append("approved it")
        if answerer.is_named_in(person.temporary.requested_by):
            roles.append("asked for it, or gave it")
        if roles:
            parts[person.who] = ", ".join(roles)
    return parts


def now() -> str:
    """Return the time, as the files of a review have it."""
    return str(to_second(datetime.now(timezone.utc)))
