"""The time of a bulk invite: two clocks that a pause moves on for certain, and the age of the lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient

# How old the lists may be when a request is sent, and how long reading them may take, in seconds: longer ones are read
# again, because the process may have been suspended.
FRESH_SECONDS = 60.0
# How many readings of a task are repeated because they took so long.
MAX_SLOW_READINGS = 2


@dataclass(frozen=True, slots=True)
class Moment:
    """
    A time by both clocks.

    :param wall: seconds since 1970
    :param monotonic: seconds of the clock that nobody can set
    """

    wall: float
    monotonic: float


class Clock:
    """Both clocks of a process; a pause has surely taken its seconds, whatever they say."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._wall_lag = 0.0
        self._monotonic_lag = 0.0

    def now(self) -> Moment:
        return Moment(self._wall() + self._wall_lag, self._monotonic() + self._monotonic_lag)

    def seconds_since(self, then: Moment) -> float:
        """Return the seconds that have passed by the clock that says more; a clock that was set back counts, too."""
        now = self.now()
        return max(abs(now.wall - then.wall), abs(now.monotonic - then.monotonic))

    def pause(self, client: WorkspaceClient, seconds: float) -> None:
        """Pause, and note by how much the clocks say less."""
        before = self.now()
        client.pause(seconds)
        after = self.now()
        self._wall_lag += max(0.0, before.wall + seconds - after.wall)
        self._monotonic_lag += max(0.0, before.monotonic + seconds - after.monotonic)


class Reading:
    """
    When the lists were read, and how long that counts as fresh.

    :ivar at: when the last reading began
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fresh_for = FRESH_SECONDS
        self._slow_readings = 0
        self.at = clock.now()

    def begin(self) -> None:
        self.at = self._clock.now()

    def was_fast(self) -> bool:
        """Return whether the lists were read fast enough to be used; only so many slow readings are repeated."""
        seconds = self._clock.seconds_since(self.at)
        self._fresh_for = max(FRESH_SECONDS, 5 * seconds)
        if seconds <= FRESH_SECONDS or self._slow_readings == MAX_SLOW_READINGS:
            return True
        self._slow_readings += 1
        return False

    def is_stale(self) -> bool:
        """Return whether the lists are too old to send more: the process may have been suspended."""
        return self._clock.seconds_since(self.at) > self._fresh_for
