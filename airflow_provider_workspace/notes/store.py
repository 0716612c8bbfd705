"""Where notes are kept: Airflow's Variables, as tasks and triggers reach them, each note a Variable of its own."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from airflow_provider_workspace.api.database_limits import check_variable
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.version_compat import get_variable, lists_variables, variable_keys, why_not_found

# How often a task checks that its entry stays in the index, and the seconds between two checks.
CHECKS_OF_ENTRY = 2
LISTING_PAUSE = 0.7
MAX_WRITES = 20
# A Variable that is listed but not found is read again: Airflow reports a transient error as "not found".
MAX_READS = 3
# Why what was written cannot be read.
RETURNS_ANOTHER = (
    "Airflow returns another value of it, such as that of a secrets backend or of an environment variable AIRFLOW_VAR_…"
)


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
        for _ in range(MAX_READS):
            try:
                value = get_variable(key)
            except PermissionError as error:
                msg = f"Airflow cannot read the Variable '{key}' for this task: {error}"
                raise WorkspaceError(msg, problem="variable-unreadable") from error
            if value is not None:
                return value
            if lists_variables() and key not in variable_keys(key):
                return None
        why = "which exists"
        if not lists_variables():
            answer = why_not_found(key)
            if not answer:
                return None
            why = f"its API server answered {answer}"
        msg = f"Airflow cannot read the Variable '{key}', {why}. See the log of its API server."
        raise WorkspaceError(msg, problem="variable-unreadable")

    def add(self, key: str, value: str) -> None:
        """Write a value whose key may be new."""
        self.write(key, value)
        if not lists_variables():
            self._add_to_index(key)

    def write(self, key: str, value: str) -> None:
        """
        Replace a value, which can be read then.

        :raises WorkspaceError: if it cannot
        """
        keep_variable(key, value, self.description)

    def delete(self, key: str) -> None:
        """
        Delete a value; one that is gone is no error.

        :raises WorkspaceError: if Airflow does not delete it
        """
        from airflow.sdk import Variable

        try:
            Variable.delete(key)
        except Exception as error:
            raise not_kept(key, f"Airflow does not delete it ({error!r})") from error
        if not lists_variables():
            self._write_index([entry for entry in self._index() if entry != key])

    def _index(self) -> list[str]:
        text = self.read(self.index)
        try:
            keys = [] if text is None else json.loads(text)
        except ValueError:
            keys = None
        if not isinstance(keys, list):
            msg = (
                f"The Variable '{self.index}' holds no list of keys. Let it hold those that begin with '{self.prefix}'"
            )
            raise WorkspaceError(msg, problem="variable-unreadable")
        return [key for key in keys if isinstance(key, str)]

    def _write_index(self, keys: list[str]) -> None:
        write_variable(self.index, json.dumps(keys), f"Keys of Variables that begin with {self.prefix}")

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
            waits.sleep(LISTING_PAUSE * (0.5 + random.random()))  # noqa: S311
        msg = f"Other tasks keep overwriting the Variable '{self.index}'. Try again. Nothing was sent."
        raise WorkspaceError(msg, problem="variable-changed")


def keep_variable(key: str, value: str, description: str | None = None) -> None:
    """
    Write a Variable, and read it back: what cannot be read again must not be relied on.

    Another task may have changed or deleted it meanwhile: that is no error here.

    :raises WorkspaceInputError: if Airflow cannot store it
    :raises WorkspaceError: if Airflow does not write it, or returns something else
    """
    before = get_variable(key)
    try:
        write_variable(key, value, description)
    except WorkspaceError:
        raise
    except Exception as error:
        raise not_kept(key, f"Airflow does not write it ({error!r})") from error
    if before == value:
        return
    for _ in range(MAX_READS):
        if get_variable(key) != before:
            return
    raise not_kept(key, RETURNS_ANOTHER)


def not_kept(key: str, why: str) -> WorkspaceError:
    """Return the error of a note that cannot be relied on; a retry may succeed when Airflow does not answer now."""
    cure = "Let tasks write and read this Variable in Airflow's database, then try again"
    msg = f"The Variable '{key}' does not hold what was noted: {why}. {cure}"
    return WorkspaceError(msg, problem="note-not-kept", permanent=False)


def write_variable(key: str, value: str, description: str | None) -> None:
    """
    Write a Variable from a task or trigger.

    :raises WorkspaceInputError: if Airflow cannot store it
    """
    from airflow.sdk import Variable

    check_variable(key, value)
    Variable.set(key, value, description=description)


@dataclass(frozen=True)
class LockedStore:
    """
    Lets threads use a store one after the other.

    A task that runs within another process, as in ``dag.test``, must not read two Variables at once.
    """

    store: NoteStore
    _lock: Lock = field(default_factory=Lock)

    def list_keys(self) -> list[str]:
        with self._lock:
            return self.store.list_keys()

    def read(self, key: str) -> str | None:
        with self._lock:
            return self.store.read(key)

    def add(self, key: str, value: str) -> None:
        with self._lock:
            self.store.add(key, value)

    def write(self, key: str, value: str) -> None:
        with self._lock:
            self.store.write(key, value)

    def delete(self, key: str) -> None:
        with self._lock:
            self.store.delete(key)
