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

    def wait(self, bucket: str, amount: int, now: float) -> int:
        """Return the whole seconds until ``amount`` more units fit, 0 when they fit now."""
        times = self._spent.setdefault(bucket, deque())
        while times and times[0] <= now - self.seconds:
            times.popleft()
        excess = len(times) + amount - self.limit
        if excess <= 0:
            return 0
        if excess > len(times):
            return self.seconds
        return max(1, math.ceil(times[excess - 1] + self.seconds - now))

    def spend(self, bucket: str, amount: int, now: float) -> None:
        """Count units that were granted."""
        self._spent.setdefault(bucket, deque()).extend([now] * amount)


class Limits:
    """The rates of the ``live`` profile. Refused requests do not count."""

    def __init__(self) -> None:
        self.requests = (Rate(480, MINUTE), Rate(4800, HOUR))
        self.invites = (Rate(50, HOUR), Rate(200, DAY))

    def take(self, rates: tuple[Rate, ...], bucket: str, amount: int, now: float) -> None:
        """
        Count units, or refuse them with the seconds to wait.

        :param rates: the rates that all must have room
        :param now: the clock of the sandbox, in seconds
        """
        wait = max(rate.wait(bucket, amount, now) for rate in rates)
        if wait:
            detail = f"Request was throttled. Expected available in {wait} seconds."
            raise ApiError(429, "throttled_error", "throttled", detail, headers={"Retry-After": str(wait)})
        for rate in rates:
            rate.spend(bucket, amount, now)
