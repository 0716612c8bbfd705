"""The shared state of a running sandbox."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter

from airflow_provider_workspace.sandbox.faults import Faults
from airflow_provider_workspace.sandbox.limits import Limits
from airflow_provider_workspace.sandbox.profiles import Profile
from airflow_provider_workspace.sandbox.responses import JsonObject
from airflow_provider_workspace.sandbox.seed import seed_state
from airflow_provider_workspace.sandbox.state import State

LOG_LENGTH = 10_000


@dataclass(frozen=True)
class SandboxSettings:
    """The settings that a control call can change."""

    profile: Profile
    latency_ms: float = 0
    """Delay of each API request in milliseconds."""
    rate_limit: bool = True
    """Whether the rate limits of the profile apply."""


class Service:
    """
    The state, settings, rate limits, faults and request log of a running sandbox.

    :param database: SQLite file, or ``:memory:``; a new one is seeded
    :param settings: settings, also after a reset
    """

    def __init__(self, database: str, settings: SandboxSettings, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.take_down: Callable[[float], None]
        """Takes the sandbox down for some seconds; set by the listener."""
        self.state = State(database)
        self.settings = self._initial_settings = settings
        self._forget()
        with self.state.transaction():
            if not self.state.number("SELECT count(*) FROM organizations"):
                seed_state(self.state)

    @property
    def active_limits(self) -> Limits | None:
        """The rate limits that apply now; None if there are none."""
        return self._limits if self.settings.rate_limit and self.settings.profile.live else None

    def log_request(self, entry: JsonObject) -> None:
        """Add an API request to the log; the entry must not contain a key."""
        self.log.append(entry)
        self.request_total += 1

    def apply_later(self, seconds: float, effect: Callable[[], object]) -> None:
        """Schedule a call after some seconds by the clock of the sandbox."""
        self._late.append((self.state.now() + timedelta(seconds=seconds), effect))
        self._late.sort(key=itemgetter(0))

    def apply_due(self) -> None:
        """Make the scheduled calls that are due; called before each request."""
        while self._late and self._late[0][0] <= self.state.now():
            moment, effect = self._late.pop(0)
            with self.state.as_of(moment):
                effect()

    def reset(self) -> None:
        """Restore the seed and the initial settings and faults."""
        self.faults.restart()
        self.settings = self._initial_settings
        self._forget()
        with self.state.transaction():
            self.state.clear()
            seed_state(self.state)

    def _forget(self) -> None:
        self._limits = Limits()
        self._late: list[tuple[datetime, Callable[[], object]]] = []
        self.log: deque[JsonObject] = deque(maxlen=LOG_LENGTH)
        self.request_total = 0
