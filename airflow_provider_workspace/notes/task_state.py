"""What is remembered of a task: a note before an effect, which survives its tries and killed workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any
from uuid import uuid4

from airflow_provider_workspace.errors import with_problem
from airflow_provider_workspace.version_compat import AirflowFailException

KEY = "airflow_provider_workspace"
# Start of a try that may follow another one.
TRY_BEGAN = "try_began"
# Number of sends in this try.
SENDS = "sends"
# The try that sends, of those that were started.
LATEST_TRY = f"{KEY}.try"
# How long a try sends before it checks whether another one has begun, in seconds.
TOKEN_PAUSE = 3.0


class TaskState:
    """
    What is remembered of a task: a value that survives its retries and killed workers.

    Airflow stores it since 3.3. Before, it lasts as long as the try, and a retry does not know what was begun.

    :param carried: plain JSON that the operator keeps across deferrals; holds the value before Airflow 3.3
    :param dry_run: whether to store nothing
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
        try_number = int(getattr(context.get("ti"), "try_number", 1))  # int(), because tests pass mocks
        if not dry_run and (self._store is not None or try_number > 1):
            self._carried.setdefault(TRY_BEGAN, clock())

    @property
    def survives_tries(self) -> bool:
        """Whether a retry reads what this try writes: since Airflow 3.3."""
        return self._store is not None

    def read(self) -> Any:
        """Return the value of this try or an earlier one; ``None`` if there is none."""
        if self._store is None:
            return self._carried.get(self._key)
        return self._store.get(self._key)

    def write(self, value: object) -> None:
        """Store plain JSON."""
        if self._store is None:
            self._carried[self._key] = value
        else:
            self._store.set(self._key, value)

    def forget(self) -> None:
        """Delete the value."""
        if self._store is None:
            self._carried.pop(self._key, None)
        else:
            self._store.delete(self._key)

    def begin(self, what: str, **facts: object) -> None:
        """
        Note that a request is about to be sent, or may still be in progress.

        :param facts: plain JSON that a retry needs, see :meth:`facts`
        """
        self.write({"begun": what, "at": self._clock(), **facts})

    def facts(self, what: str) -> Mapping[str, Any]:
        """Return what was noted with the beginning of this; nothing if it was not noted."""
        return self.read() if self.has_begun(what) else {}

    def take_over(self) -> Callable[..., None] | None:
        """
        Note that this try sends from now on; return the check that no other one has begun since, if there is one.

        A worker that was suspended may wake up when Airflow has started another try long ago. The check reads the note
        again if either clock says that the last check was some seconds ago, and raises ``AirflowFailException``.
        """
        store = self._store
        token = uuid4().hex
        lock = threading.Lock()
        checked = _clocks()
        if store is None:
            return None
        store.set(LATEST_TRY, token)

        def check(*_: object) -> None:
            nonlocal checked
            with lock:  # of threads that wake up together, each must check
                clocks = _clocks()
                if all(abs(now - then) <= TOKEN_PAUSE for now, then in zip(clocks, checked, strict=True)):
                    return
                # Airflow shows a try that was replaced nothing at all.
                if store.get(LATEST_TRY) != token:
                    msg = "Another try of this task has taken over, so nothing more was sent. See the log of that try"
                    raise AirflowFailException(with_problem(msg, "newer-try"))
                checked = clocks

        return check

    def count_send(self) -> int:
        """Count one more send and return the number of sends in this try, deferrals included."""
        self._carried[SENDS] = self._carried.get(SENDS, 0) + 1
        sends: int = self._carried[SENDS]
        return sends

    def has_begun(self, what: str) -> bool:
        """Return whether this try or an earlier one noted that it sends this."""
        note = self.read()
        return isinstance(note, Mapping) and note.get("begun") == what

    def age(self, what: str) -> float | None:
        """
        Return how many seconds ago this may have been sent last; ``None`` if it certainly was not.

        At most the seconds since this try began: the clock of this worker may be ahead of that of the earlier try, and
        a retry may not be able to read its state. If the clock was set back since then, it counts from now, so that a
        wait ends.
        """
        begun = self.has_begun(what)
        if self._store is not None and not begun:
            return None
        times: list[float] = [self.read()["at"]] if begun else []
        if TRY_BEGAN in self._carried:
            times.append(self._carried[TRY_BEGAN])
        if not times:
            return None
        now = self._clock()
        if max(times) <= now:
            return now - max(times)
        if begun:
            self.begin(what)
        if TRY_BEGAN in self._carried:
            self._carried[TRY_BEGAN] = now
        return 0.0


def _clocks() -> tuple[float, float]:
    """Return both clocks: one stands still while a machine is suspended, the other can be set back."""
    return time.monotonic(), time.time()
