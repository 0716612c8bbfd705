"""Find, read and check the notes of one kind, and name the Variables that are none."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Generic, TypeVar

from pydantic import ValidationError

from airflow_provider_workspace.api.fields import explain
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.note import Note
from airflow_provider_workspace.notes.store import NoteStore

log = logging.getLogger(__name__)

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
