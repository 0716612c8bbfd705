"""
The folder of an access review, in which every file is written once.

What comes back out of it is input: it is judged when it is read, and names that are not ours are left alone.
"""

from __future__ import annotations

import json
import logging
import re
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.files.storage import MAX_MEGABYTES, UrlFile

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_workspace.notes.task_state import TaskState

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

Record = TypeVar("Record", bound=BaseModel)


class ReviewFolder:
    """
    The files of one review.

    :param path: the folder, as :class:`~airflow_provider_workspace.files.storage.UrlFile` has it
    :param state: what the task remembers: the digests of the files that it wrote, by name
    """

    def __init__(self, path: ObjectStoragePath, state: TaskState) -> None:
        self.path = path
        self._state = state
        self._written: dict[str, str] = dict(state.read() or {})

    def __str__(self) -> str:
        return str(self.path).removeprefix("file://")

    # Names

    def names(self) -> list[str]:
        """Return the names of our files, those with a higher number later."""
        return sorted(filter(_is_ours, self._entries()), key=_order)

    def other_names(self) -> list[str]:
        """Return the names of what others put into the folder, which is left alone."""
        return sorted(name for name in self._entries() if not _is_ours(name))

    def _entries(self) -> list[str]:
        return [path.name for path in UrlFile(self.path).entries()]

    def next_number(self) -> int:
        """Return a number that no file of an earlier try has."""
        numbers = [number_of(name) for name in self.names()]
        return max(numbers, default=0) + 1

    # Writing

    def write(self, name: str, content: str | BaseModel) -> None:
        """
        Write a text, or a record, once.

        :raises WorkspaceError: if the file exists with other content, or cannot be written
        """
        encoded = encode(content)
        size = len(encoded) / 1_000_000
        if size > MAX_MEGABYTES:
            raise WorkspaceInputError(
                f"{name} would have {size:.1f} MB, and no file of more than {MAX_MEGABYTES} MB can be read. Review "
                "fewer people at once"
            )
        self._keep_digest(name, encoded)
        UrlFile(self.path / name).write_once(encoded)

    def create(self, name: str, record: BaseModel) -> None:
        """
        Write a record that no other worker may have written, not even with the same content.

        :raises FileExistsError: if the file exists
        """
        encoded = encode(record)
        UrlFile(self.path / name).create(encoded)
        self._keep_digest(name, encoded)

    def copy(self, name: str, content: bytes) -> None:
        """Write the bytes of a file that somebody else wrote, once."""
        UrlFile(self.path / name).write_once(content)

    # What this task wrote

    def _keep_digest(self, name: str, content: bytes) -> None:
        self._written[name] = sha256(content).hexdigest()
        self._state.write(dict(self._written))

    def written_digest(self, name: str) -> str:
        """Return the digest of a file that this task wrote, perhaps in an earlier try; empty if it did not."""
        return self._written.get(name, "")

    def own_digest(self, name: str) -> str:
        """Return the same of a file that is still there; empty if it is not."""
        return self.written_digest(name) if self.digest(name) else ""

    def own_files(self) -> dict[str, str]:
        """Return the digests of the files that this task wrote and that are there, by name."""
        return {name: self._written[name] for name in self.names() if name in self._written}

    def raise_if_of_others(self, *names: str) -> None:
        """
        Refuse files that only this task writes, and did not.

        :raises WorkspaceInputError: if one is there; before Airflow 3.3 a task does not know what an earlier try wrote
        """
        for name in names:
            is_known = self.written_digest(name) or not self._state.survives_tries
            if not is_known and self.digest(name):
                raise changed(self.path / name, "was written by no task of this review")

    # Reading

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file; an empty text if it does not exist."""
        content = _content(self.path / name)
        return "" if content is None else sha256(content).hexdigest()

    def read(self, name: str, record_class: type[Record], expected: str = "") -> tuple[Record | None, str]:
        """Return a record and its digest; nothing if it does not exist; see :func:`read_record`."""
        return read_record(self.path / name, record_class, expected)

    def read_try(self, name: str, record_class: type[Record]) -> Record | None:
        """Return what a try wrote; ``None`` if it is no such record: nothing is decided by it."""
        try:
            record, _ = self.read(name, record_class)
        except WorkspaceInputError as error:
            log.warning("%s", error)
            return None
        return record


def encode(content: str | BaseModel) -> bytes:
    """Return the bytes of a file."""
    if isinstance(content, str):
        return content.encode(errors="backslashreplace")
    try:
        return content.model_dump_json(indent=1).encode() + b"\n"
    except PydanticSerializationError:  # lone surrogates, which no file can have
        text = json.dumps(content.model_dump(), indent=1, ensure_ascii=False)
        return text.encode(errors="replace") + b"\n"


def number_of(name: str) -> int:
    """Return the number in the name of a file; 0 if it has none."""
    found = NUMBERED.fullmatch(name)
    return int(found[1]) if found else 0


def _is_ours(name: str) -> bool:
    return name in FIXED_NAMES or NUMBERED.fullmatch(name) is not None


def _order(name: str) -> tuple[int, str]:
    return number_of(name), name


def changed(path: ObjectStoragePath, why: str) -> WorkspaceInputError:
    """
    Return the error for a file that is not as it was written.

    :param path: of the file
    :param why: what is wrong, as a clause whose subject is the file
    """
    full_path = str(path).removeprefix("file://")
    msg = f"{path.name} {why}. Restore it, or move its folder elsewhere: {full_path!r}"
    return WorkspaceInputError(msg, problem="evidence-changed")


def read_record(path: ObjectStoragePath, record_class: type[Record], expected: str) -> tuple[Record | None, str]:
    """
    Return a record and its digest; nothing if it does not exist.

    :param path: of the file
    :param expected: its digest; empty if nobody knows it
    :raises WorkspaceInputError: if it is another file, or no such record
    """
    content = _content(path)
    if content is None:
        if expected:
            raise changed(path, "is not there any more")
        return None, ""
    digest = sha256(content).hexdigest()
    if expected and digest != expected:
        raise changed(path, "is not the file that was written")
    try:
        return record_class.model_validate_json(content), digest
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise changed(path, f"was changed, or not written to its end ({place}: {first['msg']})") from None


def _content(path: ObjectStoragePath) -> bytes | None:
    """Return the content of a file; ``None`` if it does not exist."""
    try:
        return UrlFile(path).read_content()
    except WorkspaceInputError as error:
        if error.problem != "file-missing":
            raise
        return None
