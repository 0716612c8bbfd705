"""A clock that notices when the process was suspended, so that what it read before is read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow_provider_workspace.api.procedure import Pause, Procedure

T = TypeVar("T")

# How old the lists may be when something is sent, and how long a step may take, in seconds: a process that slept reads
# them again.
FRESH_SECONDS = 60.0
# How often lists are read in a row because the process slept meanwhile.
MAX_READINGS = 3


class SuspensionClock:
    """
    The time of a procedure, and how fresh is what it has read.

    :param clock: returns the seconds since 1970
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.slept = False
        """Whether a step since the last reading took so long that the process may have slept."""
        self.skipped = 0.0
        """Seconds of pauses that the clock does not show."""
        self.fresh_until = 0.0

    def now(self) -> float:
        """Return the seconds since 1970; no pause is shorter than it says."""
        return self.clock() + self.skipped

    def is_stale(self) -> bool:
        """Tell whether what was read must be read again before anything is sent."""
        return self.slept or self.now() > self.fresh_until

    def watch(self, procedure: Procedure[T]) -> Procedure[T]:
        """Carry a procedure out, and notice when the process slept."""
        step = next(procedure)
        while True:
            began = self.clock()
            results = yield step
            if self.clock() - began > FRESH_SECONDS + (step.seconds if isinstance(step, Pause) else 0.0):
                self.slept = True
            try:
                step = procedure.send(results)
            except StopIteration as stop:
                result: T = stop.value
                return result

    def read(self, reading: Callable[[], Procedure[T]]) -> Procedure[tuple[T, float]]:
        """
        Read something, once more if the process slept meanwhile.

        :return: what was read, and when the reading began
        """
        reads = 0
        while True:
            reads += 1
            self.slept = False
            began = self.now()
            seen = yield from reading()
            if not self.slept or reads == MAX_READINGS:
                break
        self.slept = False
        self.fresh_until = self.now() + max(FRESH_SECONDS, 4 * (self.now() - began))
        return seen, began

    def pause(self, seconds: float) -> Procedure[None]:
        """Pause, and count what the clock does not show of it."""
        began = self.clock()
        yield Pause(seconds)
        self.skipped += max(0.0, seconds - (self.clock() - began))
