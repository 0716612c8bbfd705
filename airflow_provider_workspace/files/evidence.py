"""
The folder with the evidence of an access review, in which every file is written once.

What comes back out of it is input: it is judged when it is read, and names that are not ours are left alone.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from airflow_provider_workspace.api.timestamps import to_second
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, name_first
from airflow_provider_workspace.files.reports import csv_text
from airflow_provider_workspace.files.review_digests import ReviewDigests
from airflow_provider_workspace.files.storage import MAX_MEGABYTES, StoredFile, file_below, folder_at
from airflow_provider_workspace.procedures.answers import Answerer, AnswerRules
from airflow_provider_workspace.procedures.review_answer import (
    AGAIN,
    ASK_AGAIN,
    FILE,
    FILE_DIGEST,
    form_of,
    read_answer,
    read_decisions_file,
    refuse,
    refuse_silence,
    refuse_what_was_not_offered,
)
from airflow_provider_workspace.procedures.review_outcome import (
    AFTER,
    PlannedReview,
    judge,
    outcomes_of,
    people_changed,
)
from airflow_provider_workspace.procedures.review_page import ReviewPage
from airflow_provider_workspace.procedures.review_population import COLUMNS, csv_rows, reviewed
from airflow_provider_workspace.procedures.review_records import (
    COMPLETE,
    INCOMPLETE,
    NOT_REVIEWED,
    ClosedReview,
    Decisions,
    EarlierReview,
    Intent,
    LastReview,
    NotDecided,
    Outcome,
    Population,
    PreviousReview,
    Reviewer,
    Rules,
    State,
    Try,
    left_of,
)

log = logging.getLogger(__name__)

POPULATION = "population.json"
TABLE = "population.csv"
DECISIONS = "decisions.json"
DECISIONS_FILE = "decisions-file.csv"
LAST_LOOK = "last_look.json"
PAGE = "review.md"
REVIEW = "review.json"
# How the names of files begin of which each try writes one.
NOT_DECIDED = "not-decided-"
INTENTS = "doing-"
TRIES = "done-"
FIXED_NAMES = frozenset([POPULATION, TABLE, DECISIONS, DECISIONS_FILE, LAST_LOOK, PAGE, REVIEW])
NUMBERED = re.compile(rf"(?:{NOT_DECIDED}|{INTENTS}|{TRIES})(\d{{1,9}})\.json", re.ASCII)
# The folder of a review.
FOLDER = re.compile(r".+-[0-9a-f]{8}")
# The only option of the question: the form says what is decided.
DONE = "Done"
DRY_RUN = "dry_run: nothing was sent"
NEVER_BEGUN = "nothing was done: apply_decisions did not begin"
MAX_MISTAKES = 5

Record = TypeVar("Record", bound=BaseModel)


@dataclass(frozen=True)
class Carried:
    """The digests of files that earlier tasks wrote, as Airflow kept them; empty if it did not."""

    population: str = ""
    decisions: str = ""


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
class ReviewBeside:
    """
    A closed review beside this one.

    :param path: its folder
    :param digest: that of its ``review.json`` in the second place; empty if that has none
    """

    path: Any
    review: EarlierReview
    digest: str

    def is_complete_of(self, organization_id: str, service: str) -> bool:
        """Return whether it is complete, and of an organization."""
        review = self.review
        is_ours = (review.organization_id, review.service) == (organization_id, service)
        return is_ours and review.state == COMPLETE


@dataclass(frozen=True)
class Answer:
    """
    The answer to a question, or the error if there is none.

    :param event: what Airflow says of it
    :param asked: digest of the population that was asked about
    :param asked_at: when; ``None`` if that is not known
    :param due_at: until when it could be answered
    :param notified: the names of the notifiers that were called then; ``None`` if that is not known
    """

    event: Mapping[str, Any]
    asked: str
    asked_at: str | None = None
    due_at: str | None = None
    notified: tuple[str, ...] | None = None

    @property
    def fields(self) -> dict[str, Any] | None:
        """What was filled in; ``None`` if that is no form."""
        filled = self.event.get("params_input")
        return dict(filled) if isinstance(filled, Mapping) else None


class Memory(Protocol):
    """What a task remembers; see :class:`~airflow_provider_workspace.notes.task_state.TaskState`."""

    @property
    def survives_tries(self) -> bool:
        """Whether a retry reads what this try writes."""
        ...

    def read(self) -> Any:
        """Return the value of this try or an earlier one; ``None`` if there is none."""
        ...

    def write(self, value: object) -> None:
        """Store plain JSON."""


class WrittenFiles:
    """
    The digests of the files that a task wrote, by name, as Airflow keeps them.

    :param state: what the task remembers; ``None`` for nothing
    """

    def __init__(self, state: Memory | None) -> None:
        self._state = state
        self.survives_tries = state is not None and state.survives_tries
        self._digests: dict[str, str] = {}
        kept = state.read() if state else None
        if isinstance(kept, Mapping):  # an earlier release kept one digest, without a name
            self._digests.update(kept)

    def digest(self, name: str) -> str:
        """Return the digest of a file; empty if the task did not write it."""
        return self._digests.get(name, "")

    def add(self, name: str, digest: str) -> None:
        """Keep the digest of a file that is about to be written."""
        self._digests[name] = digest
        if self._state is not None:
            self._state.write(self.all())

    def all(self) -> dict[str, str]:
        """Return all digests."""
        return dict(self._digests)


class Evidence:
    """
    The evidence of one review.

    :param parent: folder with the evidence of all reviews: a path on this machine or the URL of an object store
    :param run_id: Dag run of the review
    :param names: what else tells reviews of one run apart: Dag, map index, task group
    :param digests: the second place, which also has the digest of each ``review.json``; ``None`` for no such place
    :param state: what the task remembers; ``None`` for nothing
    :raises WorkspaceInputError: if a folder is neither, or the second place is below the first
    """

    def __init__(self, parent: Any, run_id: str, *names: str, digests: Any = None, state: Memory | None = None) -> None:
        self.written = WrittenFiles(state)
        self.parent = folder_at(parent, "evidence")
        self.digests = None if digests is None else ReviewDigests(digests, self.parent)
        readable = re.sub(r"[^\w.-]+", "_", run_id, flags=re.ASCII)[:100]
        identity = json.dumps([run_id, *names])
        unique = sha256(identity.encode()).hexdigest()[:8]
        self.path = self.parent.path / f"{readable}-{unique}"

    def __str__(self) -> str:
        return str(self.path).removeprefix("file://")

    # Files

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file; an empty text if it does not exist."""
        content = _content(self.path / name)
        return "" if content is None else sha256(content).hexdigest()

    def write(self, name: str, content: str | BaseModel) -> None:
        """
        Write a text, or a record, once.

        :raises WorkspaceError: if the file exists with other content, or cannot be written
        """
        encoded = encode(content)
        if len(encoded) > MAX_MEGABYTES * 1_000_000:
            msg = f"Review fewer people at once: {name} would be larger than {MAX_MEGABYTES} MB, which nothing reads"
            raise WorkspaceInputError(msg)
        self.written.add(name, sha256(encoded).hexdigest())
        StoredFile(self.path / name).write_once(encoded)

    def own_digest(self, name: str) -> str:
        """Return the digest of a file that this task wrote, perhaps in an earlier try; empty if it is not there."""
        return self.written.digest(name) if self.digest(name) else ""

    def own_files(self) -> dict[str, str]:
        """Return the digests of the files that this task wrote and that are there, by name."""
        digests = self.written.all()
        there = digests.keys() & set(self.names())
        return {name: digests[name] for name in there}

    def raise_if_of_others(self, *names: str) -> None:
        """
        Refuse files that only this task writes, and did not.

        :raises WorkspaceInputError: if one is there; before Airflow 3.3 a task does not know what an earlier try wrote
        """
        for name in names:
            is_known = self.written.digest(name) or not self.written.survives_tries
            if not is_known and self.digest(name):
                raise _changed(self.path / name, "no task of this review wrote it")

    def names(self) -> list[str]:
        """Return the names of our files, those with a higher number later."""
        return sorted(filter(_is_ours, self._entries()), key=_order)

    def other_names(self) -> list[str]:
        """Return the names of what others put into the folder, which is left alone."""
        return sorted(name for name in self._entries() if not _is_ours(name))

    def _entries(self) -> list[str]:
        return [path.name for path in StoredFile(self.path).entries()]

    def next_number(self) -> int:
        """Return a number that no file of an earlier try has."""
        numbers = [_number(name) for name in self.names()]
        return max(numbers, default=0) + 1

    # Reading

    def open(self, organization_id: str, service: str, needed: int, carried: Carried) -> OpenReview:
        """
        Return what is there.

        :param needed: how many of population and decisions must be there, for a task that goes on with the review; it
            must still be open
        :param carried: what the files must be
        :raises WorkspaceInputError: if the review cannot go on
        """
        population, population_sha256 = self._read(POPULATION, Population, carried.population)
        decisions, decisions_sha256 = self._read(DECISIONS, Decisions, carried.decisions)
        if population and (population.organization_id, population.service) != (organization_id, service):
            raise self._ended("is of another organization")
        if needed and self.digest(REVIEW):
            raise self._ended("is closed")
        if needed and (self.digest(LAST_LOOK) or self.digest(PAGE)):
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
                raise _changed(self.path / DECISIONS, "; ".join(mistakes[:MAX_MISTAKES]))
        return OpenReview(population, decisions, population_sha256, decisions_sha256)

    def _read(self, name: str, record_class: type[Record], expected: str = "") -> tuple[Record | None, str]:
        """Return a record and its digest; nothing if it does not exist."""
        return _read(self.path / name, record_class, expected)

    def _ended(self, why: str) -> WorkspaceInputError:
        """Return the error for a review that cannot go on."""
        return WorkspaceInputError(f"Start a new run: the review in {self} {why}", problem="review-ended")

    # The population

    def write_population(self, population: Population) -> None:
        """Write who has access, also as a table for people."""
        self.write(POPULATION, population)
        self.write(TABLE, csv_text(COLUMNS, csv_rows(population)))

    def last_review(self, organization_id: str, service: str) -> LastReview | None:
        """
        Return what the latest complete review beside this one left; ``None`` if there is none.

        :raises WorkspaceInputError: if a review beside this one cannot be read, or is not what it says it is, or not
            what the second place says
        """
        beside = list(self._reviews_beside())
        ours = [one for one in beside if one.is_complete_of(organization_id, service)]
        if not ours:
            return None
        latest = max(ours, key=lambda one: one.review.read_at or "")
        if self.digests and not latest.digest:
            self._check_unchecked(latest, beside)
        files = latest.review.files
        population = _read_listed(latest.path, POPULATION, latest.review)
        last_look = _read_listed(latest.path, LAST_LOOK, latest.review)
        place = PreviousReview(folder=latest.path.name, read_at=population.read_at, sha256=files[POPULATION])
        return LastReview(review=place, population=reviewed(population, last_look))

    def _reviews_beside(self) -> Iterator[ReviewBeside]:
        """Return the closed reviews beside this one."""
        missing = set(self.digests.reviews()) if self.digests else set()
        for path in self.parent.entries():
            if not FOLDER.fullmatch(path.name):
                continue
            missing.discard(path.name)
            digest = self.digests.find(path.name) if self.digests else ""
            review, _ = _read(path / REVIEW, EarlierReview, digest)
            if review is not None:
                yield ReviewBeside(path, review, digest)
        if missing:
            names = name_first(sorted(missing), "the second place", ", ")
            log.warning("%s has the SHA-256 of reviews that are not in %s: %s", self.digests, self.parent, names)

    def _check_unchecked(self, latest: ReviewBeside, beside: Iterable[ReviewBeside]) -> None:
        """
        Warn of a last review that was closed before there was a second place.

        :raises WorkspaceInputError: if there was one already
        """
        read_at = latest.review.read_at or ""
        checked = [one.review.read_at or "" for one in beside if one.digest]
        if checked and min(checked) < read_at:
            raise _changed(latest.path / REVIEW, f"{self.digests} has earlier reviews, and not this one")
        log.warning("The last review is not checked: %s has no SHA-256 of %s", self.digests, latest.path.name)

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
        known: dict[str, Any] = {
            "decided_at": to_second(answer.event.get("responded_at")),
            "by": Reviewer(id=answerer.id, name=answerer.name) if answerer else None,
            "asked_at": answer.asked_at,
            "due_at": answer.due_at,
            "notified": answer.notified,
            "rules": rules,
            "answer": answer.fields,
        }
        fields = answer.fields or {}
        try:
            self._check_answer(answer)
            answerer = answer_rules.judge(
                answer.event.get("responded_by_user"),
                cure="Start a new run to decide again, and let another user answer",
            )
            form = form_of(population, has_file=rules.decisions_folder is not None)
            file_rows, known["decisions_file"] = self._read_decisions_file(fields, rules)
            decided = read_answer(population, fields, form, file_rows)
        except WorkspaceInputError as error:
            why = error.why.replace(AGAIN, "", 1).removesuffix(f" {ASK_AGAIN}.")
            self.write(f"{NOT_DECIDED}{self.next_number()}.json", NotDecided(**known, why=why))
            raise
        decisions = Decisions(
            **known,
            decisions=decided.decisions,
            exceptions=decided.exceptions,
            by_default=len(decided.by_default),
            reviewer_is_reviewed=_is_reviewed(answerer, population),
            population_sha256=answer.asked,
        )
        self.write(DECISIONS, decisions)
        return decisions

    def _check_answer(self, answer: Answer) -> None:
        """Refuse an answer that nobody gave, or that is not about the population that was asked about."""
        event = answer.event
        is_timeout = event.get("error_type") == "timeout"
        if event.get("error") and not is_timeout:
            refuse(str(event["error"]))
        if is_timeout or not event.get("responded_by_user"):
            refuse_silence(answer.due_at)
        if event.get("chosen_options") != [DONE]:
            refuse("it is another answer")
        if self.digest(POPULATION) != answer.asked:
            refuse(f"{POPULATION} is another one now")

    def _read_decisions_file(self, fields: Mapping[str, Any], rules: Rules) -> tuple[list[dict[str, str]] | None, str]:
        """Return the rows of the decisions file that an answer names, and which file it is; keep a copy."""
        name = str(fields.get(FILE) or "").strip()
        expected = str(fields.get(FILE_DIGEST) or "").strip()
        if not name and not expected:
            return None, "none"
        if rules.decisions_folder is None:
            refuse("decisions in a file need decisions_folder=…, which the author of the Dag sets")
        file = file_below(rules.decisions_folder, name)
        text, content = file.read_all()
        # What it is, whoever asks must know: the worker reads files that they may not read.
        digest = sha256(content).hexdigest()
        if digest != expected.lower():
            refuse(f"the SHA-256 of {name!r} is not {expected!r}")
        rows = read_decisions_file(text)
        StoredFile(self.path / DECISIONS_FILE).write_once(content)
        return rows, f"{name} (sha256 {digest})"

    # What is sent

    def begin_try(self, number: int, planned: PlannedReview, rules: Rules, *, dry_run: bool) -> None:
        """
        Write whom a try is about to change, before it sends anything: a try that is killed leaves that.

        :raises WorkspaceInputError: if another worker has begun a try with this number
        """
        people = people_changed(planned)
        name = f"{INTENTS}{number}.json"
        content = encode(Intent(at=_now(), dry_run=dry_run, people=people, rules=rules))
        try:
            StoredFile(self.path / name).create(content)
        except FileExistsError:
            msg = f"See the log of the other try: it wrote {name} in {self}, and does what was decided"
            raise WorkspaceInputError(msg, problem="file-exists") from None
        self.written.add(name, sha256(content).hexdigest())

    def interrupted(self) -> dict[str, int]:
        """Return whom an earlier try was about to change when it ended, by the number of that try."""
        names = set(self.names())
        people: dict[str, int] = {}
        for name in self.names():
            number = _number(name)
            if name.startswith(INTENTS) and f"{TRIES}{number}.json" not in names:
                intent = self._read_try(name, Intent)
                for who in intent.people if intent and not intent.dry_run else ():
                    people[who] = number
        return people

    def end_try(
        self,
        number: int,
        planned: PlannedReview | None,
        error: WorkspaceError | None,
        rules: Rules,
        *,
        dry_run: bool = False,
    ) -> list[Outcome]:
        """
        Write and return what became of each decision in a try.

        :param planned: what was planned; ``None`` if it failed before
        :raises WorkspaceError: the error of this try, or if anything that was decided is not done
        """
        outcomes = outcomes_of(planned, self.interrupted()) if planned else []
        message = str(error) if error else None
        done = Try(at=_now(), dry_run=dry_run, error=message, outcomes=tuple(outcomes), rules=rules)
        self.write(f"{TRIES}{number}.json", done)
        if error:
            raise error
        self.check(INCOMPLETE, left_of(outcomes))
        return outcomes

    def check(self, state: str, missing: list[str]) -> None:
        """Refuse to end a task while something is left to do."""
        if missing:
            msg = f"Start a new run, or do by hand what is left: the review in {self} is {state}: "
            raise WorkspaceError(msg + "; ".join(missing[:20]), problem="review-incomplete")

    # The end

    def closed(self, expected: str) -> tuple[ClosedReview | None, str]:
        """
        Return what the review is, and the digest of that file; nothing if it is open.

        :param expected: the digest that an earlier try kept; empty if there is none
        """
        return self._read(REVIEW, ClosedReview, expected)

    def close(
        self, opened: OpenReview, look: Callable[[], Population], facts: Mapping[str, Any], carried: Mapping[str, str]
    ) -> tuple[ClosedReview, str]:
        """
        Write the last look, the page and, last, what the review is; go on with what an earlier try wrote.

        :param look: reads who has access
        :param facts: the fields of :class:`ClosedReview` that the task knows
        :param carried: the digests of other files that earlier tasks wrote, as Airflow kept them
        :return: what the review is, and the digest of that file
        """
        self.raise_if_of_others(LAST_LOOK, PAGE)
        population = opened.population
        decisions = opened.decisions
        last_look: Population | None = None
        outcomes: list[Outcome] = []
        if population and decisions:
            last_look = self._look_last(look)
            outcomes = judge(population, decisions, last_look, AFTER)
        missing = self._missing(decisions, outcomes) + self._edited(carried)
        state: State = NOT_REVIEWED
        if decisions:
            state = INCOMPLETE if missing else COMPLETE
        missing += [] if state == COMPLETE else self._last_error()
        if not missing and not decisions:
            missing = ["nobody decided"]
        review = ClosedReview(
            **facts,
            state=state,
            read_at=population.read_at if population else None,
            closed_at=_now(),
            missing=tuple(missing),
            files={name: self.digest(name) for name in self.names() if name != PAGE},
            other_files=tuple(self.other_names()),
            outcomes=tuple(outcomes),
        )
        page_sha256 = self.own_digest(PAGE)
        if page_sha256 and page_sha256 != self.digest(PAGE):
            raise _changed(self.path / PAGE, "it is not the file that was written")
        if not self.digest(PAGE):  # a try may end between both
            sent = tuple(self._sent())
            page = ReviewPage(review, population, decisions, sent, last_look, self._last_refused())
            self.write(PAGE, page.text())
        review = review.model_copy(update={"files": {**review.files, PAGE: self.digest(PAGE)}})
        self.write(REVIEW, review)
        return review, self.written.digest(REVIEW)

    def keep_digest(self, digest: str) -> None:
        """Write the digest of ``review.json`` to the second place, or find it there, if there is such a place."""
        if self.digests:
            self.digests.keep(self.path.name, digest)

    def _look_last(self, look: Callable[[], Population]) -> Population:
        """Return the last look of an earlier try, or look now."""
        last_look, _ = self._read(LAST_LOOK, Population, self.own_digest(LAST_LOOK))
        if last_look is None:
            last_look = look()
            self.write(LAST_LOOK, last_look)
        return last_look

    def _missing(self, decisions: Decisions | None, outcomes: list[Outcome]) -> list[str]:
        """Return what was decided and is not done, and what nobody can read any more."""
        if decisions is None:
            return []
        missing = left_of(outcomes)
        begun = [name for name in self.names() if name.startswith((INTENTS, TRIES))]
        tries: list[Intent | Try | None] = []
        for name in begun:
            if name.startswith(INTENTS):
                tries.append(self._read_try(name, Intent))
            else:
                tries.append(self._read_try(name, Try))
        if begun and all(one is not None and one.dry_run for one in tries):
            missing.append(DRY_RUN)
        if not begun:
            missing.append(NEVER_BEGUN)
        return missing

    def _edited(self, carried: Mapping[str, str]) -> list[str]:
        """Return which files are not as an earlier task wrote them."""
        return [f"{name} is not the file that was written" for name in carried if self.digest(name) != carried[name]]

    def _last_error(self) -> list[str]:
        """Return why the latest try failed; nothing if it did not."""
        errors: list[str] = []
        for name in self.names():
            if name.startswith(TRIES):
                done = self._read_try(name, Try)
                errors.append((done.error or "") if done else f"{name} cannot be read")
            elif name.startswith(NOT_DECIDED):
                refused = self._read_try(name, NotDecided)
                errors.append(refused.why if refused else f"{name} cannot be read")
        return errors[-1:] if errors and errors[-1] else []

    def _last_refused(self) -> NotDecided | None:
        """Return the latest answer that does not count; ``None`` if there is none."""
        names = [name for name in self.names() if name.startswith(NOT_DECIDED)]
        return self._read_try(names[-1], NotDecided) if names else None

    def _sent(self) -> list[Outcome]:
        """Return the outcomes of all tries, the earliest first."""
        sent: list[Outcome] = []
        for name in self.names():
            done = self._read_try(name, Try) if name.startswith(TRIES) else None
            sent += done.outcomes if done else ()
        return sent

    def _read_try(self, name: str, record_class: type[Record]) -> Record | None:
        """Return what a try wrote; ``None`` if it is no such record: nothing is decided by it."""
        try:
            return self._read(name, record_class)[0]
        except WorkspaceInputError as error:
            log.warning("%s", error)
            return None


def encode(content: str | BaseModel) -> bytes:
    """Return the bytes of a file."""
    if isinstance(content, str):
        return content.encode(errors="backslashreplace")
    try:
        return content.model_dump_json(indent=1).encode() + b"\n"
    except PydanticSerializationError:  # lone surrogates, which no file can have
        text = json.dumps(content.model_dump(), indent=1, ensure_ascii=False)
        return text.encode(errors="replace") + b"\n"


def _is_ours(name: str) -> bool:
    return name in FIXED_NAMES or NUMBERED.fullmatch(name) is not None


def _number(name: str) -> int:
    """Return the number in the name of a file; 0 if it has none."""
    found = NUMBERED.fullmatch(name)
    return int(found[1]) if found else 0


def _order(name: str) -> tuple[int, str]:
    return _number(name), name


def _is_reviewed(answerer: Answerer, population: Population) -> bool | str:
    """Return whether whoever answered is one of the people reviewed, as far as their address tells."""
    if AnswerRules(about=population.emails).is_subject(answerer):
        return True
    if "@" not in f"{answerer.id}{answerer.name}":
        return "unknown: this Airflow user has no address"
    return False


def _now() -> str:
    return str(to_second(datetime.now(timezone.utc)))


def _changed(path: object, why: str) -> WorkspaceInputError:
    """Return the error for a file that is not as it was written."""
    name = str(path).removeprefix("file://")
    msg = f"Restore {name!r}, or move its folder elsewhere: {why}"
    return WorkspaceInputError(msg, problem="evidence-changed")


def _read_listed(folder: Any, name: str, review: EarlierReview) -> Population:
    """Return a population that a closed review lists."""
    population, _ = _read(folder / name, Population, review.files.get(name, "nothing"))
    if population is None:
        raise _changed(folder / name, "it is not there, and its review.json lists it")
    return population


def _read(path: object, record_class: type[Record], expected: str = "") -> tuple[Record | None, str]:
    """
    Return a record and its digest; nothing if it does not exist.

    :param expected: its digest; empty if nobody knows it
    :raises WorkspaceInputError: if it is another file, or no such record
    """
    content = _content(path)
    if content is None:
        if expected:
            raise _changed(path, "it is not there any more")
        return None, ""
    digest = sha256(content).hexdigest()
    if expected and digest != expected:
        raise _changed(path, "it is not the file that was written")
    try:
        return record_class.model_validate_json(content), digest
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise _changed(path, f"it was changed, or not written to its end ({place}: {first['msg']})") from None


def _content(path: object) -> bytes | None:
    """Return the content of a file; ``None`` if it does not exist."""
    try:
        return StoredFile(path).read_content()
    except WorkspaceInputError as error:
        if error.problem != "file-missing":
            raise
        return None
