"""A clock that detects a suspended process, so that outdated lists are read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow_provider_workspace.api.procedure import Pause, Procedure

T = TypeVar("T")

# How old the lists may be when a request is sent, and how long a step may take, in seconds. A process that was
# suspended for longer reads the lists again.
FRESH_SECONDS = 60.0
# How often lists are read in a row if the process is suspended while it reads them.
MAX_READINGS = 3
# Seconds that a step surely took which took longer than expected: the clock may have been set forward meanwhile.
CERTAIN_SECONDS = 5.0


class SuspensionClock:
    """
    The clock of a procedure, and the age of the lists that it read.

    :param clock: returns the seconds since 1970
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.suspended = False
        """Whether a step since the last read took so long that the process may have been suspended."""
        self.skipped = 0.0
        """Seconds that the clock missed: it ran behind a pause, or was set back."""
        self.uncertain = 0.0
        """Seconds of steps that took so long that the clock may have been set forward."""
        self.fresh_until = 0.0

    def now(self) -> float:
        """Return the seconds since 1970, those that the clock missed included."""
        return self.clock() + self.skipped

    def certain(self) -> float:
        """Return a time from which on at least as many seconds have passed as a later call adds."""
        return self.now() - self.uncertain

    def is_stale(self) -> bool:
        """Return whether the lists must be read again before a request is sent."""
        return self.suspended or self.now() > self.fresh_until

    def watch(self, procedure: Procedure[T]) -> Procedure[T]:
        """Run a procedure, and notice when the process was suspended or the clock was set."""
        step = next(procedure)
        while True:
            began = self.clock()
            results = yield step
            pause = step.seconds if isinstance(step, Pause) else None
            took = self.clock() - began - (pause or 0.0)
            if took > FRESH_SECONDS:
                self.suspended = True
            if took > (FRESH_SECONDS if pause is None else CERTAIN_SECONDS):
                self.uncertain += took - CERTAIN_SECONDS
            if took < 0 and pause is None:
                self.skipped -= took
            try:
                step = procedure.send(results)
            except StopIteration as stop:
                result: T = stop.value
                return result

    def read(self, reading: Callable[[], Procedure[T]]) -> Procedure[tuple[T, float]]:
        """
        Read the lists, again if the process was suspended meanwhile.

        :return: what was read, and when the read began
        """
        reads = 0
        while True:
            reads += 1
            self.suspended = False
            began = self.now()
            seen = yield from reading()
            if not self.suspended or reads == MAX_READINGS:
                break
        self.suspended = False
        self.fresh_until = self.now() + max(FRESH_SECONDS, 4 * (self.now() - began))
        return seen, began

    def pause(self, seconds: float) -> Procedure[None]:
        """Pause, and add what the clock missed of the pause."""
        began = self.clock()
        yield Pause(seconds)
        self.skipped += max(0.0, seconds - (self.clock() - began))
