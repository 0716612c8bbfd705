"""An organization with realistic invite rates, on a clock that the test advances."""

from __future__ import annotations

from collections import Counter, deque
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.models import Invite, Member, Page, User
from airflow_provider_workspace.api.operations import CreateInvites, ListInvites, ListMembers
from airflow_provider_workspace.errors import WorkspaceRateLimitError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

BEGAN = 1_800_000_000.0


class Rate:
    """
    A sliding-window rate limit with a ``Retry-After`` that is too short.

    :param most: invites per window
    :param span: length of the window in seconds
    """

    def __init__(self, most: int, span: float) -> None:
        self.most = most
        self.span = span
        self.counted: deque[float] = deque()

    def takes(self, rows: int, now: float) -> float | None:
        """Count rows if they fit and return None; otherwise return the seconds of ``Retry-After``."""
        while self.counted and self.counted[0] <= now - self.span:
            self.counted.popleft()
        if len(self.counted) + rows <= self.most:
            self.counted.extend([now] * rows)
            return None
        left = self.counted[0] + self.span - now if self.counted else self.span
        return left / (self.most - len(self.counted) + 1)


class RatedOrganization:
    """
    An organization with invite limits. Rows refused by the hourly limit count for the daily limit, too.

    :param per_hour: invites per hour
    :param per_day: invites per day
    :param requests: bulk requests per minute
    """

    def __init__(self, per_hour: int = 50, per_day: int = 200, requests: int | None = None) -> None:
        self.rates = [Rate(per_hour, 3600.0), Rate(per_day, 86_400.0)]
        self.requests = None if requests is None else Rate(requests, 60.0)
        self.now = BEGAN
        self.invites: list[Invite] = []
        self.mailed: Counter[str] = Counter()
        self.refused = 0
        self.sent: list[tuple[float, int]] = []
        self.readings = 0

    def answer(self, op: Operation[Any]) -> Any:
        """Return the result of an operation."""
        if isinstance(op, CreateInvites):
            return self.invite(op)
        assert isinstance(op, ListInvites | ListMembers)
        self.readings += isinstance(op, ListInvites) and not op.offset
        rows: list[Any] = (
            self.invites if isinstance(op, ListInvites) else [Member(id="m", user=User(email="owner@example.com"))]
        )
        start, limit = op.offset or 0, op.limit or 100
        following = "more" if start + limit < len(rows) else None
        return Page[Any](count=len(rows), next=following, results=rows[start : start + limit])

    def invite(self, op: CreateInvites) -> Any:
        """Invite, or refuse and count."""
        rows = len(op.invites)
        self.sent.append((self.now, rows))
        waits = [rate.takes(rows, self.now) for rate in self.rates]
        if self.requests is not None:
            waits.append(self.requests.takes(1, self.now))
        refusals = [wait for wait in waits if wait is not None]
        if refusals:
            self.refused += 1
            seconds = float(int(max(refusals)))
            return WorkspaceRateLimitError("429", status=429, retry_after=seconds, retryable=True, outcome="rejected")
        created_at = datetime.fromtimestamp(self.now, timezone.utc).isoformat()
        made = [
            Invite(id=f"id of {row.target_email}", target_email=row.target_email, created_at=created_at)
            for row in op.invites
        ]
        self.mailed.update(row.target_email for row in op.invites)
        self.invites += made
        return made

    def hours(self) -> float:
        """Return the hours since the start."""
        return (self.now - BEGAN) / 3600
