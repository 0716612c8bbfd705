"""What Airflow remembers of a task from try to try."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

KEY = "airflow_provider_workspace"
# When a retry began that finds nothing of the try before it.
RETRY_BEGAN = "retry_began"
# How often the try sent what it begins.
SENDS = "sends"


class TaskState:
    """
    A value that a retry of the task finds, also one after a killed worker.

    Airflow keeps it since 3.3. Before, a value lasts as long as the try, and a retry cannot know what was begun.

    :param context: context of the task
    :param carried: plain JSON that the operator takes along when it defers; it holds the value where Airflow keeps none
    :param dry_run: remember nothing, for nothing is done
    :param clock: returns the seconds since 1970
    :param key: name of the value
    """

    def __init__(
        self,
        context: Mapping[str, Any],
        carried: MutableMapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        clock: Callable[[], float] = time.time,
        key: str = KEY,
    ) -> None:
        self._key = key
        self._store = None if dry_run else context.get("task_state_store")
        self._carried = {} if carried is None or dry_run else carried
        self._clock = clock
        if self._store is None and not dry_run and getattr(context.get("ti"), "try_number", 1) > 1:
            self._carried.setdefault(RETRY_BEGAN, clock())

    def read(self) -> Any:
        """Return what an earlier try, or this one, remembered; ``None`` if nothing."""
        return self._carried.get(self._key) if self._store is None else self._store.get(self._key)

    def write(self, value: Any) -> None:
        """Remember plain JSON."""
        if self._store is None:
            self._carried[self._key] = value
        else:
            self._store.set(self._key, value)

    def forget(self) -> None:
        """Remember nothing."""
        if self._store is None:
            self._carried.pop(self._key, None)
        else:
            self._store.delete(self._key)

    def begin(self, what: str) -> None:
        """Note that this is sent now, before each time, or that it may be under way still."""
        self.write({"begun": what, "at": self._clock()})

    def count_send(self) -> int:
        """Count that it is sent, and return how often this try did so; a try that defers goes on counting."""
        self._carried[SENDS] = self._carried.get(SENDS, 0) + 1
        sends: int = self._carried[SENDS]
        return sends

    def has_begun(self, what: str) -> bool:
        """Tell whether an earlier try, or this one, noted that it begins this."""
        note = self.read()
        return isinstance(note, Mapping) and note.get("begun") == what

    def age(self, what: str) -> float | None:
        """
        Return how many seconds ago this was begun at the latest; ``None`` if certainly nobody did.

        A retry that can know nothing of the try before it counts from its own beginning.
        """
        at = self.read()["at"] if self.has_begun(what) else self._carried.get(RETRY_BEGAN)
        return None if at is None else max(0.0, self._clock() - at)
