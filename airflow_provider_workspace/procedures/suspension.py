"""A clock that detects a suspended process, so that outdated lists are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

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

    def watch(self, step: Callable[..., T], *args: Any, pause: float | None = None, **options: Any) -> T:
        """Take a step, and notice when the process was suspended or the clock was set; ``pause`` are its seconds."""
        began = self.clock()
        try:
            return step(*args, **options)
        finally:
            took = self.clock() - began - (pause or 0.0)
            if took > FRESH_SECONDS:
                self.suspended = True
            if took > (FRESH_SECONDS if pause is None else CERTAIN_SECONDS):
                self.uncertain += took - CERTAIN_SECONDS
            if took < 0:
                self.skipped -= took

    def read(self, reading: Callable[[], T]) -> tuple[T, float]:
        """
        Read the lists, again if the process was suspended meanwhile.

        :return: what was read, and when the read began
        """
        reads = 0
        while True:
            reads += 1
            self.suspended = False
            began = self.now()
            seen = reading()
            if not self.suspended or reads == MAX_READINGS:
                break
        self.suspended = False
        self.fresh_until = self.now() + max(FRESH_SECONDS, 4 * (self.now() - began))
        return seen, began


class WatchedClient:
    """The part of a client that a campaign needs, with a clock that watches each step."""

    def __init__(self, client: WorkspaceClient, clock: SuspensionClock) -> None:
        self.settings = client.settings
        self._client = client
        self._watch = clock.watch

    def send(self, op: Operation[T]) -> T:
        return self._watch(lambda: self._client.send(op))

    def send_all(self, operations: Sequence[Operation[T]], **options: Any) -> list[Any]:
        return self._watch(self._client.send_all, operations, **options)

    def pages(self, op: Operation[Page[T]], page: Page[T] | None = None) -> Iterator[list[T]]:
        pages = self._client.pages(op, page)
        while (rows := self._watch(lambda: next(pages, None))) is not None:
            yield rows

    def pause(self, seconds: float) -> None:
        self._watch(self._client.pause, seconds, pause=seconds)
