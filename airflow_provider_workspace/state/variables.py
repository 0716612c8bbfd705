"""Notes in Airflow's Variables, as tasks and triggers reach them: each one a Variable of its own."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from hashlib import sha256
from typing import Annotated, Generic, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer, ValidationError

from airflow_provider_workspace.api.operation import explain
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.version_compat import lists_variables, variable_keys

log = logging.getLogger(__name__)

# How often a task checks that its entry stays in the index, and the seconds between two checks.
CHECKS_OF_ENTRY = 2
SECONDS_BETWEEN_CHECKS = 0.7
MAX_WRITES = 20
# A Variable that is listed but not found is read again: Airflow reports a transient error as "not found".
MAX_READS = 3


class NoteStore(Protocol):
    """Stores notes: in Variables, in Airflow's database for the command line, in memory for tests."""

    def list_keys(self) -> list[str]:
        """Return the keys of all notes."""
        ...

    def read(self, key: str) -> str | None:
        """Return a value; ``None`` only if there certainly is none."""

    def add(self, key: str, value: str) -> None:
        """Write a value whose key may be new."""

    def write(self, key: str, value: str) -> None:
        """Replace a value."""

    def delete(self, key: str) -> None:
        """Delete a value; one that is gone is no error."""


@dataclass(frozen=True)
class VariableStore:
    """
    Stores notes that must not overwrite each other as Variables, for tasks and triggers.

    :param prefix: prefix of the keys
    :param index: the Variable that lists the keys before Airflow 3.3
    :param description: description of each Variable in the Airflow UI
    """

    prefix: str
    index: str
    description: str

    def list_keys(self) -> list[str]:
        """Return the keys of all notes."""
        return variable_keys(self.prefix) if lists_variables() else self._index()

    def read(self, key: str) -> str | None:
        """
        Return a value; ``None`` only if there certainly is none.

        :raises WorkspaceError: if it cannot be read
        """
        from airflow.sdk import Variable

        for _ in range(MAX_READS):
            value: str | None = Variable.get(key, default=None)
            if value is not None:
                return value
            if lists_variables() and key not in variable_keys(key):
                return None
        if not lists_variables():
            return None
        msg = f"See the log of Airflow's API server: the Variable '{key}' cannot be read."
        raise WorkspaceError(msg, problem="variable-unreadable")

    def add(self, key: str, value: str) -> None:
        """Write a value whose key may be new."""
        self.write(key, value)
        if not lists_variables():
            self._add_to_index(key)

    def write(self, key: str, value: str) -> None:
        """Replace a value."""
        from airflow.sdk import Variable

        Variable.set(key, value, description=self.description)

    def delete(self, key: str) -> None:
        """Delete a value; one that is gone is no error."""
        from airflow.sdk import Variable

        Variable.delete(key)
        if not lists_variables():
            self._write_index([entry for entry in self._index() if entry != key])

    def _index(self) -> list[str]:
        try:
            keys = json.loads(self.read(self.index) or "[]")
        except (ValueError, ImportError):  # ImportError outside of a task, as in tests of Dags
            keys = None
        return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []

    def _write_index(self, keys: list[str]) -> None:
        from airflow.sdk import Variable

        Variable.set(self.index, json.dumps(keys), description=f"Keys of Variables that begin with {self.prefix}")

    def _add_to_index(self, key: str) -> None:
        """Add a key, check that it stays, and add it again if another task overwrites the index."""
        stayed = 0
        for _ in range(MAX_WRITES):
            keys = self._index()
            if key in keys:
                stayed += 1
                if stayed > CHECKS_OF_ENTRY:
                    return
            else:
                stayed = 0
                self._write_index([*keys, key])
            # Jitter, so that tasks that begin together do not retry together.
            waits.sleep(SECONDS_BETWEEN_CHECKS * (0.5 + random.random()))  # noqa: S311
        raise WorkspaceError(f"Try again: other tasks keep overwriting the Variable '{self.index}'. Nothing was sent.")


def utc_now() -> datetime:
    """Return the time that decides which ends are over."""
    return datetime.fromtimestamp(time.time(), timezone.utc)


def iso(seconds: float) -> str:
    """Format a time as ISO 8601."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(value: object) -> float:
    """
    Parse a time in ISO 8601, in UTC if it names no time zone, such as one that a person has edited.

    :param value: the text, or seconds since 1970
    :raises ValueError: if it is invalid, or not within the years that :func:`iso` can write
    """
    # Nobody knows what a text without a hyphen counts, such as 20261123.
    seconds = value if isinstance(value, float | int) else parse_timestamp(str(value) if "-" in str(value) else None)
    with suppress(ValueError, OverflowError):
        if seconds is not None and iso(seconds):
            return seconds
    raise ValueError("it is not a time")


Text = Annotated[str, Field(min_length=1)]
Time = Annotated[float, BeforeValidator(parse_time), PlainSerializer(iso)]


class Note(BaseModel):
    """A note, which knows the key of its Variable."""

    @property
    def key(self) -> str:
        """The key of its Variable."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON, without what is not set."""
        return self.model_dump(mode="json", exclude_none=True)


N = TypeVar("N", bound=Note)
S = TypeVar("S", bound=NoteStore)


class NoteRegistry(Generic[N, S]):
    """Reads notes of a model, and names the Variables that are none."""

    model: type[N]

    def __init__(self, store: S) -> None:
        self.store = store
        self.unreadable: dict[str, str] = {}
        """Keys of Variables that are no note or cannot be read, and why."""

    @classmethod
    def load(cls, key: str, text: str) -> N:
        """
        Parse the value of a Variable.

        :raises ValueError: if it is not a note, or that of another key, under which changes would be written
        """
        try:
            note = cls.model.model_validate_json(text)
        except ValidationError as error:
            raise ValueError(explain(cls.model, error)) from None
        if note.key != key:
            raise ValueError("its fields are those of another key")
        return note

    @staticmethod
    def describe_unreadable(key: str, why: str) -> str:
        """Return what to do about a Variable that is no note."""
        raise NotImplementedError

    def keys(self, prefix: str, end: str = "") -> list[str]:
        """Return the keys that begin and end in this way."""
        return [key for key in self.store.list_keys() if key.startswith(prefix) and key.endswith(end)]

    def find(self, prefix: str, *, skip_failed: bool = False) -> list[N]:
        """
        Return the notes whose keys begin with a prefix, without Variables that are none.

        :param skip_failed: whether to skip a Variable that Airflow cannot read, such as one whose Fernet key is gone
        :raises WorkspaceError: if Airflow cannot read a Variable that it lists
        """
        found: list[N | None] = []
        for key in self.keys(prefix):
            try:
                found.append(self.read(key))
            except WorkspaceError as error:  # noqa: PERF203 - a few rounds
                if not skip_failed:
                    raise
                self.unreadable[key] = str(error)
                log.warning("%s", error)
        return [note for note in found if note is not None]

    def read_all(self, keys: Iterable[str]) -> list[N]:
        """Return the notes of keys, without those that are gone and without Variables that are none."""
        return [note for note in map(self.read, keys) if note is not None]

    def read(self, key: str) -> N | None:
        """Return the note of a key; ``None`` if there is none."""
        text = self.store.read(key)
        if text is None:
            return None
        try:
            return self.load(key, text)
        except ValueError as error:
            self.unreadable[key] = str(error)
            log.warning("%s", self.describe_unreadable(key, str(error)))
            return None


@cache
def digest(*parts: str) -> str:
    """Return a digest of some texts for a key."""
    return sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:20]
