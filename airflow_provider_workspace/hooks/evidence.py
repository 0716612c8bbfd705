"""The folder with the evidence of an access review, in which every file is written once."""

from __future__ import annotations

import json
import logging
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, shown
from airflow_provider_workspace.hooks.files import SHARED, StoredFile, is_stored
from airflow_provider_workspace.procedures.review import reviewed

log = logging.getLogger(__name__)

POPULATION, TABLE, DECISIONS, LAST_LOOK = "population.json", "population.csv", "decisions.json", "last_look.json"
PAGE, REVIEW = "review.md", "review.json"
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

    def previous(self, **where: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """
        Return what the latest complete review beside this one left, and where its evidence is.

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
            return None, None
        read_at, path, digests = max(found, key=lambda each: each[0])
        files = {name: _read(path / name) for name in (POPULATION, LAST_LOOK)}
        for name, (_, digest) in files.items():
            if digest != digests[name]:
                msg = f"Restore {path / name}, or move its folder elsewhere: it is not the file of that review"
                raise WorkspaceInputError(msg, problem="evidence-changed")
        left = reviewed(files[POPULATION][0], files[LAST_LOOK][0])
        return left, {"folder": path.name, "read_at": read_at, "sha256": digests[POPULATION]}


def _read(path: Any) -> tuple[Any, str]:
    """Return the content of a file, JSON or text, and its digest; nothing if it does not exist."""
    file = StoredFile(path)
    try:
        text, digest = file.read_with_digest()
        return json.loads(text) if file.suffix == ".json" else text, digest
    except WorkspaceInputError as error:
        if error.problem != "file-missing":
            raise
        return None, ""
    except ValueError:
        msg = f"Start a new run: {file} is no valid JSON, so it was changed or not written to its end"
        raise WorkspaceInputError(msg, problem="evidence-changed") from None
