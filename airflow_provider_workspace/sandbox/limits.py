"""Rates: how many requests a key, and how many invites an organization, may send in a stretch of time."""

from __future__ import annotations

import math
from collections import deque

from airflow_provider_workspace.sandbox.responses import ApiError

MINUTE = 60
HOUR = 3600
DAY = 86400


class Rate:
    """
    A number of units per sliding window of time, for each bucket on its own.

    :param limit: the units that fit into the window
    :param seconds: the length of the window
    """

    def __init__(self, limit: int, seconds: int) -> None:
        self.limit = limit
        self.seconds = seconds
        self._spent: dict[str, deque[float]] = {}

    def spend(self, bucket: str, amount: int, now: float) -> int:
        """
        Count units if they fit, and return 0; else return the whole seconds to wait, as the service tells them.

        It tells too few: the time until the oldest unit is forgotten, divided by how many still fit and one.
        """
        times = self._spent.setdefault(bucket, deque())
        while times and times[0] <= now - self.seconds:
            times.popleft()
        if len(times) + amount <= self.limit:
            times.extend([now] * amount)
            return 0
        oldest = times[0] if times else now
        return max(1, math.ceil((oldest + self.seconds - now) / (self.limit - len(times) + 1)))


class Limits:
    """The rates of the ``live`` profile. A request that one rate refuses still counts for the other."""

    def __init__(self) -> None:
        self.requests = (Rate(480, MINUTE), Rate(4800, HOUR))
        self.invites = (Rate(50, HOUR), Rate(200, DAY))

    def take(self, rates: tuple[Rate, ...], bucket: str, amount: int, now: float) -> None:
        """
        Count units, also those that are refused later as not valid, or refuse them with the seconds to wait.

        :param rates: the rates that all must have room
        :param now: the clock of the sandbox, in seconds
        """
        wait = max([rate.spend(bucket, amount, now) for rate in rates])
        if wait:
            detail = f"Request was throttled. Expected available in {wait} seconds."
            raise ApiError(429, "throttled_error", "throttled", detail, headers={"Retry-After": str(wait)})
