"""The folder with the evidence of an access review, in which every file is written once."""

from __future__ import annotations

import csv
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.timestamps import to_second
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, shown
from airflow_provider_workspace.files.storage import SHARED, StoredFile, csv_text, file_at, is_stored
from airflow_provider_workspace.procedures import review as procedures

log = logging.getLogger(__name__)

Json = Mapping[str, Any]

POPULATION, TABLE, DECISIONS, LAST_LOOK = "population.json", "population.csv", "decisions.json", "last_look.json"
PAGE, REVIEW, FILE = "review.md", "review.json", "decisions-file.csv"
# How the names of files begin of which each try writes one.
NOT_DECIDED, TRIES = "not-decided-", "done-"
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
        safe = re.sub(r"[^\w.-]+", "_", run_id, flags=re.ASCII)[:100]
        self.path = self.parent.path / f"{safe}-{sha256(json.dumps([run_id, *names]).encode()).hexdigest()[:8]}"

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
        text = content if isinstance(content, str) else json.dumps(content, indent=1, sort_keys=True) + "\n"
        StoredFile(self.path / name).write_once(text.encode(errors="backslashreplace"))

    def names(self, start: str = "") -> list[str]:
        """Return the names of the files, those with a higher number later."""
        found = (path.name for path in StoredFile(self.path).entries() if path.name.startswith(start))
        return sorted(found, key=lambda name: (len(name), name))

    def open(self, where: Json, needed: int) -> tuple[Any, Any]:
        """
        Return the population and the decisions, each ``None`` if it is not there.

        :param where: service and organization
        :param needed: how many of both must be there, for a task that goes on with the review; it must still be open
        :raises WorkspaceInputError: if the review cannot go on
        """
        found = {name: self.read(name) for name in (POPULATION, DECISIONS)}
        population, decided = found.values()
        problems = {
            "is of another organization": population and not population.items() >= where.items(),
            "is closed": needed and self.read(REVIEW),
            "has another population now": decided and decided["population_sha256"] != self.digest(POPULATION),
            **{f"has no {name}, which an earlier task writes": not found[name] for name in [*found][:needed]},
        }
        _refuse(problems, f"Start a new run: the review in {self} ", "review-ended")
        return population, decided

    def write_population(self, population: Json) -> None:
        """Write who has access, also as a table for people."""
        self.write(POPULATION, population)
        self.write(TABLE, csv_text(procedures.COLUMNS, procedures.csv_rows(population)))

    def decide(self, population: Any, event: Json, asked: str, number: int, **facts: Any) -> dict[str, Any]:
        """
        Write and return what an answer decides.

        :param event: the answer, or the error if there is none
        :param asked: digest of the population that was asked about
        :param number: number of the try
        :raises WorkspaceInputError: if it does not decide everybody; a file has the answer then, and why
        """
        user, answer = event.get("responded_by_user"), event.get("params_input") or {}
        decided = {"decided_at": to_second(event.get("responded_at")), "by": user, **facts}
        decided["answer"] = event.get("params_input")
        problems = {
            (event.get("error") or "nobody answered in time"): "error" in event,
            "nobody answered": not user,
            "it is another answer": event.get("chosen_options") != [DONE],
            f"{POPULATION} is another one now": self.digest(POPULATION) != asked,
        }
        try:
            _refuse(problems, procedures.AGAIN, "answer-refused")
            rows, decided["decisions_file"] = self._read_file(answer)
            decided["decisions"] = procedures.read_answer(population, answer, rows)
        except WorkspaceInputError as error:
            self.write(f"{NOT_DECIDED}{number}.json", {**decided, "why": error.why.replace(procedures.AGAIN, "", 1)})
            raise
        names = {address_key(str((user or {}).get(name) or "")) for name in ("id", "name")}
        found = any(address_key(row["email"] or "-") in names for row in population["people"])
        decided["reviewer_is_reviewed"] = found if "@" in str(names) else "unknown: this Airflow user has no address"
        decided |= {"population_sha256": asked, "exceptions": procedures.read_exceptions(answer)}
        self.write(DECISIONS, decided)
        return decided

    def _read_file(self, answer: Json) -> tuple[list[dict[str, Any]] | None, str]:
        """Return the rows of the decisions file that an answer names, and which file it is; keep a copy."""
        path, expected = (str(answer.get(name) or "").strip() for name in ("decisions_file", "decisions_sha256"))
        if not path and not expected:
            return None, "none"
        text, content = file_at(path).read_all()
        digest = sha256(content).hexdigest()
        problems = {f"the SHA-256 of {path!r} is {digest}, not {expected!r}": digest != expected.lower()}
        _refuse(problems, procedures.AGAIN, "answer-refused")
        StoredFile(self.path / FILE).write_once(content)
        return list(csv.DictReader(text.split("\n"))), f"{path} (sha256 {digest})"

    def end_try(self, number: int, outcomes: list[dict[str, Any]], error: WorkspaceError | None, **facts: Any) -> None:
        """
        Write what became of each decision in a try.

        :raises WorkspaceError: the error of this try, or if anything that was decided is not done
        """
        done = {"at": to_second(datetime.now(timezone.utc)), "error": error and str(error), "outcomes": outcomes}
        self.write(f"{TRIES}{number}.json", {**done, **facts})
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
        if review := self.read(REVIEW):
            return review, self.digest(REVIEW)
        last_look = decided and (self.read(LAST_LOOK) or look())
        if decided:
            self.write(LAST_LOOK, last_look)
        outcomes = procedures.judge(population, decided["decisions"], last_look, "not done", "gone") if decided else []
        left, tries = procedures.left_of(outcomes), [self.read(name) for name in self.names(TRIES)]
        said = [*(one["error"] for one in tries), *(self.read(name)["why"] for name in self.names(NOT_DECIDED))]
        review = {
            **facts,
            "state": "not reviewed" if not decided else "incomplete" if left else COMPLETE,
            "read_at": population and population["read_at"],
            "closed_at": to_second(datetime.now(timezone.utc)),
            "missing": [*left, *filter(None, said[-1:])] or ["nobody decided"] * (not decided),
            "files": {name: self.digest(name) for name in self.names() if name != PAGE},
            "outcomes": outcomes,
        }
        if not self.digest(PAGE):  # a try may end between both
            sent = [row for one in tries for row in one["outcomes"]]
            self.write(PAGE, procedures.page_of(review, population or {}, decided or {}, sent, last_look or {}))
        review["files"][PAGE] = self.digest(PAGE)
        self.write(REVIEW, review)
        return review, self.digest(REVIEW)

    def previous(self, **where: str) -> dict[str, Any] | None:
        """
        Return what the latest complete review beside this one left, with the name of its folder and its digest.

        :param where: service and organization
        :raises WorkspaceInputError: if it is not what that review says it is
        """
        found: list[tuple[str, Any, Any]] = []
        for path in self.parent.entries():
            try:
                review = _read(path / REVIEW)[0] or {}
            except WorkspaceError as error:
                log.warning("Not compared with the review in %s: %s", path, error)
                continue
            if review.items() >= {"state": COMPLETE, **where}.items():
                found.append((review["read_at"], path, review["files"]))
        if not found:
            return None
        _, path, digests = max(found, key=lambda each: each[0])
        files = {name: _read(path / name) for name in (POPULATION, LAST_LOOK)}
        for name, (_, digest) in files.items():
            if digest != digests[name]:
                msg = f"Restore {path / name}, or move its folder elsewhere: it is not the file of that review"
                raise WorkspaceInputError(msg, problem="evidence-changed")
        left = procedures.reviewed(*(content for content, _ in files.values()))
        return {**left, "folder": path.name, "sha256": digests[POPULATION]}


def _refuse(problems: Json, start: str, problem: str) -> None:
    """Raise the first of some problems that applies."""
    for what, applies in problems.items():
        if applies:
            raise WorkspaceInputError(f"{start}{what}", problem=problem)


def _read(path: Any) -> tuple[Any, str]:
    """Return the content of a file, JSON or text, and its digest; nothing if it does not exist."""
    file = StoredFile(path)
    try:
        text, content = file.read_all()
        return json.loads(text) if file.suffix == ".json" else text, sha256(content).hexdigest()
    except WorkspaceInputError as error:
        if error.problem != "file-missing":
            raise
        return None, ""
    except ValueError:
        msg = f"Start a new run: {file} is no valid JSON, so it was changed or not written to its end"
        raise WorkspaceInputError(msg, problem="evidence-changed") from None
