"""Rate limits for the requests of a key and the invites of an organization."""

from __future__ import annotations

import math
from collections import deque

from airflow_provider_workspace.sandbox.responses import too_many_requests

MINUTE = 60
HOUR = 3600
DAY = 86400


class Rate:
    """
    A limit per sliding window, separate for each bucket.

    :param limit: maximum units in a window
    :param seconds: length of the window in seconds
    """

    def __init__(self, limit: int, seconds: int) -> None:
        self.limit = limit
        self.seconds = seconds
        self._spent: dict[str, deque[float]] = {}

    def spend(self, bucket: str, amount: int, now: float) -> int:
        """
        Count units and return 0 if they fit; else return the seconds for ``Retry-After``.

        Like the real service it returns too few: the time until the oldest unit expires, divided by the units that
        still fit plus one.
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
    """The rate limits of ``live``. A request that one rate refuses counts towards the others."""

    def __init__(self) -> None:
        self.requests = (Rate(480, MINUTE), Rate(4800, HOUR))
        self.invites = (Rate(50, HOUR), Rate(200, DAY))

    def take(self, rates: tuple[Rate, ...], bucket: str, amount: int, now: float) -> None:
        """
        Count units, or raise a 429 with ``Retry-After``; requests that fail later count as well.

        :param rates: rates to check
        :param now: time of the sandbox in seconds
        """
        wait = max([rate.spend(bucket, amount, now) for rate in rates])
        if wait:
            raise too_many_requests(str(wait))
