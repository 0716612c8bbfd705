"""What the parts of a running sandbox share: the state, the settings, the rates and the log of requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.sandbox.faults import Faults
from airflow_provider_workspace.sandbox.limits import Limits
from airflow_provider_workspace.sandbox.seed import plant
from airflow_provider_workspace.sandbox.state import State

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.answers import JsonObject
    from airflow_provider_workspace.sandbox.profiles import Profile

LOG_LENGTH = 10_000


@dataclass(frozen=True)
class Settings:
    """How the sandbox behaves; replaced as a whole when a control call changes it."""

    profile: Profile
    latency_ms: float = 0
    """How long each request of the interface waits before it is read."""
    rate_limit: bool = True
    """Whether a profile with rates keeps them."""


class Service:
    """
    A running sandbox.

    :param database: A file, or ``:memory:``. A new one is seeded.
    :param settings: How to behave, also after a reset.
    :param faults: The faults from the start, also after a reset.
    """

    def __init__(self, database: str, settings: Settings, faults: Iterable[Mapping[str, Any]] = ()) -> None:
        self.faults = Faults(faults)
        self.take_down: Callable[[float], None] = _nobody_listens
        """Takes the sandbox down for some seconds; set by what listens on its behalf."""
        self.state = State(database)
        self.settings = self._first_settings = settings
        self._forget()
        with self.state.transaction():
            if not self.state.number("SELECT count(*) FROM organizations"):
                plant(self.state)

    @property
    def active_limits(self) -> Limits | None:
        """The rates to keep now, if any."""
        return self._limits if self.settings.rate_limit and self.settings.profile.rates_limited else None

    def log_request(self, entry: JsonObject) -> None:
        """
        Remember a request of the interface.

        :param entry: What was asked, and the status answered; never a key.
        """
        self.log.append(entry)
        self.request_total += 1

    def reset(self) -> None:
        """Go back to the seed and to the first settings and faults."""
        self.faults.restart()
        self.settings = self._first_settings
        self._forget()
        with self.state.transaction():
            self.state.clear()
            plant(self.state)

    def _forget(self) -> None:
        self._limits = Limits()
        self.log: deque[JsonObject] = deque(maxlen=LOG_LENGTH)
        self.request_total = 0


def _nobody_listens(_seconds: float) -> None:
    raise RuntimeError("Only a sandbox that was started with SandboxServer can be taken down.")
