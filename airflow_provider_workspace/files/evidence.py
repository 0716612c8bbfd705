"""The folder with the evidence of an access review, in which every file is written once."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from airflow_provider_workspace.api.timestamps import to_second
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, shown
from airflow_provider_workspace.files.reports import csv_text
from airflow_provider_workspace.files.storage import SHARED, StoredFile, file_at, is_stored
from airflow_provider_workspace.procedures import review as procedures
from airflow_provider_workspace.procedures.answers import Answerer, AnswerRules, emails_of
from airflow_provider_workspace.procedures.roster_tables import records_of_csv

log = logging.getLogger(__name__)

Json = Mapping[str, Any]

POPULATION = "population.json"
TABLE = "population.csv"
DECISIONS = "decisions.json"
FILE = "decisions-file.csv"
LAST_LOOK = "last_look.json"
PAGE = "review.md"
REVIEW = "review.json"
# How the names of files begin of which each try writes one.
NOT_DECIDED = "not-decided-"
TRIES = "done-"
# The only option of the question: the form says what is decided.
DONE = "Done"
# The state of a review of which everything that was decided is done.
COMPLETE = "complete"


class Evidence:
    """
    The evidence of one review.

    :param parent: folder with the evidence of all reviews: a path on this machine or the URL of an object store
    :param run_id: Dag run of the review
    :param names: what else tells reviews of one run apart: Dag, map index, task group
    """

    def __init__(self, parent: Any, run_id: str, *names: str) -> None:
        on_disk = isinstance(parent, str | os.PathLike) and Path(parent).is_absolute()
        if not on_disk and not is_stored(parent):
            raise WorkspaceInputError(f"evidence must be {SHARED}, not {shown(parent)}")
        self.parent = StoredFile(f"file://{parent}" if on_disk else parent)
        readable = re.sub(r"[^\w.-]+", "_", run_id, flags=re.ASCII)[:100]
        unique = sha256(json.dumps([run_id, *names]).encode()).hexdigest()[:8]
        self.path = self.parent.path / f"{readable}-{unique}"

    def __str__(self) -> str:
        return str(self.path).removeprefix("file://")

    def read(self, name: str) -> Any:
        """Return the content of a file, JSON or text; ``None`` if it does not exist."""
        return _read(self.path / name)[0]

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file; an empty text if it does not exist."""
        return _read(self.path / name)[1]

    def write(self, name: str, content: Any) -> None:
        """
        Write a text, or JSON, once.

        :raises WorkspaceError: if the file exists with other content, or cannot be written
        """
        text = content
        if not isinstance(content, str):
            text = json.dumps(content, indent=1, sort_keys=True) + "\n"
        StoredFile(self.path / name).write_once(text.encode(errors="backslashreplace"))

    def names(self, start: str = "") -> list[str]:
        """Return the names of the files, those with a higher number later."""
        names = [path.name for path in StoredFile(self.path).entries() if path.name.startswith(start)]
        return sorted(names, key=lambda name: (len(name), name))

    def open(self, where: Json, needed: int) -> tuple[Any, Any]:
        """
        Return the population and the decisions, each ``None`` if it is not there.

        :param where: service and organization
        :param needed: how many of both must be there, for a task that goes on with the review; it must still be open
        :raises WorkspaceInputError: if the review cannot go on
        """
        population = self.read(POPULATION)
        decisions = self.read(DECISIONS)
        if population and not population.items() >= where.items():
            raise self._ended("is of another organization")
        if needed and self.read(REVIEW):
            raise self._ended("is closed")
        if decisions and decisions["population_sha256"] != self.digest(POPULATION):
            raise self._ended("has another population now")
        if needed >= 1 and not population:
            raise self._ended(f"has no {POPULATION}, which an earlier task writes")
        if needed >= 2 and not decisions:
            raise self._ended(f"has no {DECISIONS}, which an earlier task writes")
        return population, decisions

    def _ended(self, why: str) -> WorkspaceInputError:
        """Return the error for a review that cannot go on."""
        return WorkspaceInputError(f"Start a new run: the review in {self} {why}", problem="review-ended")

    def write_population(self, population: Json) -> None:
        """Write who has access, also as a table for people."""
        self.write(POPULATION, population)
        self.write(TABLE, csv_text(procedures.COLUMNS, procedures.csv_rows(population)))

    def decide(
        self, population: Any, event: Json, asked: str, number: int, answer_rules: AnswerRules, **facts: Any
    ) -> dict[str, Any]:
        """
        Write and return what an answer decides.

        :param event: the answer, or the error if there is none
        :param asked: digest of the population that was asked about
        :param number: number of the try
        :param answer_rules: who may answer
        :raises WorkspaceInputError: if it does not decide everybody, or is of somebody who may not answer; a file has
            the answer then, and why
        """
        user = event.get("responded_by_user")
        answer = event.get("params_input")
        decided = {"decided_at": to_second(event.get("responded_at")), "by": user, **facts, "answer": answer}
        answer = answer or {}
        try:
            self._check_answer(event, asked)
            answer_rules.judge(user, cure="Start a new run to decide again, and let another user answer")
            rows, decided["decisions_file"] = self._read_file(answer)
            decided["decisions"] = procedures.read_answer(population, answer, rows)
        except WorkspaceInputError as error:
            why = error.why.replace(procedures.AGAIN, "", 1)
            self.write(f"{NOT_DECIDED}{number}.json", {**decided, "why": why})
            raise
        decided["reviewer_is_reviewed"] = _is_reviewed(user, population)
        decided["population_sha256"] = asked
        decided["exceptions"] = procedures.read_exceptions(answer)
        self.write(DECISIONS, decided)
        return decided

    def _check_answer(self, event: Json, asked: str) -> None:
        """Refuse an answer that nobody gave, or that is not about the population that was asked about."""
        if "error" in event:
            raise _refusal(event.get("error") or "nobody answered in time")
        if not event.get("responded_by_user"):
            raise _refusal("nobody answered")
        if event.get("chosen_options") != [DONE]:
            raise _refusal("it is another answer")
        if self.digest(POPULATION) != asked:
            raise _refusal(f"{POPULATION} is another one now")

    def _read_file(self, answer: Json) -> tuple[list[dict[str, str]] | None, str]:
        """Return the rows of the decisions file that an answer names, and which file it is; keep a copy."""
        path = str(answer.get("decisions_file") or "").strip()
        expected = str(answer.get("decisions_sha256") or "").strip()
        if not path and not expected:
            return None, "none"
        text, content = file_at(path).read_all()
        digest = sha256(content).hexdigest()
        if digest != expected.lower():
            raise _refusal(f"the SHA-256 of {path!r} is {digest}, not {expected!r}")
        StoredFile(self.path / FILE).write_once(content)
        try:
            rows = records_of_csv(text)
        except ValueError as error:
            raise _refusal(f"{path!r} cannot be read: {error}") from None
        return rows, f"{path} (sha256 {digest})"

    def end_try(self, number: int, outcomes: list[dict[str, Any]], error: WorkspaceError | None, **facts: Any) -> None:
        """
        Write what became of each decision in a try.

        :raises WorkspaceError: the error of this try, or if anything that was decided is not done
        """
        done = {
            "at": to_second(datetime.now(timezone.utc)),
            "error": str(error) if error else None,
            "outcomes": outcomes,
            **facts,
        }
        self.write(f"{TRIES}{number}.json", done)
        if error:
            raise error
        self.check("incomplete", procedures.left_of(outcomes))

    def check(self, state: str, missing: list[str]) -> None:
        """Refuse to end a task while something is left to do."""
        if missing:
            msg = f"Start a new run, or do by hand what is left: the review in {self} is {state}: "
            raise WorkspaceError(msg + "; ".join(missing[:20]), problem="review-incomplete")

    def close(self, population: Any, decided: Any, look: Callable[[], Any], facts: Json) -> tuple[Any, str]:
        """
        Write the last look, the page and, last, what the review is; go on with what an earlier try wrote.

        :param look: reads who has access
        :return: what the review is, and the digest of that file
        """
        review = self.read(REVIEW)
        if review:
            return review, self.digest(REVIEW)
        last_look: Any = {}
        outcomes: list[dict[str, Any]] = []
        if decided:
            last_look = self._look_last(look)
            decisions = decided["decisions"]
            at = decided["decided_at"]
            outcomes = procedures.judge(population, decisions, last_look, "not done", "gone", decided_at=at)
        left = procedures.left_of(outcomes)
        tries = [self.read(name) for name in self.names(TRIES)]
        digests = {name: self.digest(name) for name in self.names() if name != PAGE}
        review = {
            **facts,
            "state": _state(decided, left),
            "read_at": population["read_at"] if population else None,
            "closed_at": to_second(datetime.now(timezone.utc)),
            "missing": self._missing(decided, left, tries),
            "files": digests,
            "outcomes": outcomes,
        }
        if not self.digest(PAGE):  # a try may end between both
            sent = [row for each in tries for row in each["outcomes"]]
            page = procedures.page_of(review, population or {}, decided or {}, sent, last_look)
            self.write(PAGE, page)
        review["files"][PAGE] = self.digest(PAGE)
        self.write(REVIEW, review)
        return review, self.digest(REVIEW)

    def _look_last(self, look: Callable[[], Any]) -> Any:
        """Return the last look of an earlier try, or look now."""
        last_look = self.read(LAST_LOOK) or look()
        self.write(LAST_LOOK, last_look)
        return last_look

    def _missing(self, decided: Any, left: list[str], tries: list[Any]) -> list[str]:
        """Return what was not done, and the latest error."""
        errors = [each["error"] for each in tries]
        errors += [self.read(name)["why"] for name in self.names(NOT_DECIDED)]
        missing = list(left)
        if errors and errors[-1]:
            missing.append(errors[-1])
        if not missing and not decided:
            missing.append("nobody decided")
        return missing

    def previous(self, **where: str) -> dict[str, Any] | None:
        """
        Return what the latest complete review beside this one left, with the name of its folder and its digest.

        :param where: service and organization
        :raises WorkspaceInputError: if it is not what that review says it is
        """
        latest: tuple[Any, Json] | None = None
        for path in self.parent.entries():
            review = _read_review(path)
            if not review.items() >= {"state": COMPLETE, **where}.items():
                continue
            if latest is None or review["read_at"] > latest[1]["read_at"]:
                latest = path, review
        if latest is None:
            return None
        path, review = latest
        population = _read_unchanged(path / POPULATION, review["files"][POPULATION])
        last_look = _read_unchanged(path / LAST_LOOK, review["files"][LAST_LOOK])
        left = procedures.reviewed(population, last_look)
        return {**left, "folder": path.name, "sha256": review["files"][POPULATION]}


def _refusal(why: str) -> WorkspaceInputError:
    """Return the error for an answer that does not count."""
    return WorkspaceInputError(f"{procedures.AGAIN}{why}", problem="answer-refused")


def _is_reviewed(user: Json | None, population: Json) -> bool | str:
    """Return whether whoever answered is one of the people reviewed, as far as their address tells."""
    answerer = Answerer.read(user)
    if answerer and AnswerRules(about=emails_of(population["people"])).is_subject(answerer):
        return True
    if answerer is None or "@" not in f"{answerer.id}{answerer.name}":
        return "unknown: this Airflow user has no address"
    return False


def _state(decided: Any, left: list[str]) -> str:
    if not decided:
        return "not reviewed"
    return "incomplete" if left else COMPLETE


def _read_review(path: Any) -> Json:
    """Return what the review in a folder is; nothing if the folder has none, or it cannot be read."""
    try:
        review: Json = _read(path / REVIEW)[0] or {}
    except WorkspaceError as error:
        log.warning("Not compared with the review in %s: %s", path, error)
        return {}
    return review


def _read_unchanged(path: Any, expected: str) -> Any:
    """Return the content of a file with this digest."""
    content, digest = _read(path)
    if digest != expected:
        msg = f"Restore {path}, or move its folder elsewhere: it is not the file of that review"
        raise WorkspaceInputError(msg, problem="evidence-changed")
    return content


def _read(path: Any) -> tuple[Any, str]:
    """Return the content of a file, JSON or text, and its digest; nothing if it does not exist."""
    file = StoredFile(path)
    try:
        text, content = file.read_all()
    except WorkspaceInputError as error:
        if error.problem != "file-missing":
            raise
        return None, ""
    digest = sha256(content).hexdigest()
    if file.suffix != ".json":
        return text, digest
    try:
        return json.loads(text), digest
    except ValueError:
        msg = f"Start a new run: {file} is no valid JSON, so it was changed or not written to its end"
        raise WorkspaceInputError(msg, problem="evidence-changed") from None
