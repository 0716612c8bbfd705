"""The notes of one kind: find, read, add, change and end them, and name the Variables that are none."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from airflow_provider_workspace.api.fields import explain
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.note import Note
from airflow_provider_workspace.notes.store import NoteStore

log = logging.getLogger(__name__)

N = TypeVar("N", bound=Note)
S = TypeVar("S", bound=NoteStore)


class NoteRegistry(Generic[N, S]):
    """
    Reads and writes the notes of a model, and names the Variables that are none.

    A note that others have changed or deleted since it was read is neither changed nor deleted. Variables have no
    compare-and-set: between the reading and the write is the gap of one request.
    """

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
        keys = [key for key in self.store.list_keys() if key.startswith(prefix)]
        return [key for key in keys if key.endswith(end)]

    def find(self, prefix: str, *, skip_failed: bool = False) -> list[N]:
        """
        Return the notes whose keys begin with a prefix, without Variables that are none.

        :param skip_failed: whether to skip a Variable that Airflow cannot read, such as one whose Fernet key is gone
        :raises WorkspaceError: if Airflow cannot read a Variable that it lists
        """
        notes: list[N] = []
        for key in self.keys(prefix):
            try:
                note = self.read(key)
            except WorkspaceError as error:
                if not skip_failed:
                    raise
                self.unreadable[key] = str(error)
                log.warning("%s", error)
                continue
            if note is not None:
                notes.append(note)
        return notes

    def raise_if_unreadable(self, prefix: str = "") -> None:
        """
        Refuse to go on without a note that was found, and cannot be read.

        :param prefix: that of the keys of the notes that are needed
        :raises WorkspaceError: with what to do about it
        """
        for key, why in self.unreadable.items():
            if key.startswith(prefix):
                raise WorkspaceError(self.describe_unreadable(key, why), problem="")  # the text has its own

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

    def add(self, note: N, /) -> None:
        """Write a note."""
        text = json.dumps(note.to_dict())
        self.store.add(note.key, text)

    def change(self, note: N, /, **changes: Any) -> N:
        """
        Change a note, and return it.

        :raises WorkspaceError: if it is not what was read any more
        """
        text = self.store.read(note.key)
        if text is None or not self._is_same(note, text):
            msg = f"The Variable '{note.key}' was changed or deleted meanwhile. Try again. Nothing was written."
            raise WorkspaceError(msg, problem="variable-changed")
        changed = note.model_copy(update=changes)
        self.store.write(note.key, json.dumps(changed.to_dict()))
        return changed

    def end(self, note: N, /) -> bool:
        """Delete a note if it is still what was read; return whether there is none any more."""
        text = self.store.read(note.key)
        if text is None:
            return True
        if not self._is_same(note, text):
            return False
        self.store.delete(note.key)
        return True

    def _is_same(self, note: N, text: str) -> bool:
        """Return whether the value of a Variable is a note, whose times it has in milliseconds."""
        try:
            return self.load(note.key, text).to_dict() == note.to_dict()
        except ValueError:
            return False
