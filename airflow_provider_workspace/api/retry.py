"""When a request is sent again, and after how long: the retry policy of both clients, and the pauses of procedures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.errors import WorkspaceRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


# The first pauses before looking for the effect of a write whose answer was lost, in seconds; see look_up_pauses.
FIRST_LOOK_UPS = (0.5, 5.0)
# How often a write that is not repeatable is sent at most, if its answers are lost and its effect cannot be found.
MAX_SENDS = 5
# How often a list is read at most that comes with fewer rows than it counts. It ends earlier if nothing new comes.
MAX_READS = 10


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    When to send a request again, and after how long.

    =============  =============================  =====================
    outcome        repeatable operation           any other operation
    =============  =============================  =====================
    not sent       again                          again
    rejected, 429  again, after ``Retry-After``   again, likewise
    rejected       never                          never
    unknown        again                          never
    =============  =============================  =====================

    :param max_attempts: attempts in all, the first included
    :param max_wait: maximum wait between two attempts in seconds; when the service asks for more, the error is raised
        at once and carries ``retry_after``
    :param first_wait: bound of the wait before the second attempt in seconds; it doubles with each attempt
    """

    max_attempts: int = 5
    max_wait: float = 60.0
    first_wait: float = 0.5

    def permits(self, error: BaseException, *, repeatable: bool) -> bool:
        """Tell whether the same request may be sent again after this error."""
        if not isinstance(error, WorkspaceRequestError) or not error.retryable:
            return False
        if error.retry_after is not None and error.retry_after > self.max_wait:
            return False
        return repeatable or error.outcome != Outcome.UNKNOWN.value

    def wait(self, attempt: int, retry_after: float | None, jitter: float) -> float:
        """
        Seconds to wait after an attempt.

        :param attempt: how many attempts were made, from 1
        :param retry_after: seconds the service asked for; never undercut
        :param jitter: a random number from 0 to 1, so that many tasks do not come back together
        """
        pause = backoff(self.first_wait, attempt, self.max_wait)
        if retry_after is None:
            return pause * (0.5 + jitter / 2)
        return min(self.max_wait, retry_after + min(pause, 1.0) * jitter)


def backoff(first: float, failures: int, maximum: float) -> float:
    """
    Return the pause after a number of failures in a row: it doubles with each.

    :param first: seconds after the first failure
    :param failures: how many there were, from 1
    :param maximum: most seconds
    """
    return min(maximum, first * 2.0 ** min(failures - 1, 30))


def look_up_pauses(age: float, consistency_time: float) -> Iterator[float]:
    """
    Yield the pauses before look-ups of what may have been sent: at least one, and together the rest of the time.

    They grow with the time since then, half a second, 5 s, and then so long again. So they are the same where a task
    was interrupted in between.

    :param age: seconds since it may have been sent
    :param consistency_time: seconds after which it counts as not done
    """
    while True:
        left = max(0.0, consistency_time - age)
        first, second = FIRST_LOOK_UPS
        pause = min(left, first if age < first else max(second, age))
        yield pause
        if pause == left:
            return
        age += pause


def parse_retry_after(value: str | None, now: datetime, date: str | None = None) -> float | None:
    """
    Read a ``Retry-After`` header: seconds, or an HTTP date.

    :param value: the header; ``None`` if there was none
    :param now: the present, with a time zone, to which a date is compared
    :param date: the ``Date`` header of the same answer, which counts instead: the service's clock may be another
    :return: seconds from now, never negative; ``None`` if the header is missing or invalid
    """
    if value is None:
        return None
    try:
        seconds = float(value.strip())
    except ValueError:
        when = _http_date(value)
        if when is None:
            return None
        seconds = (when - (_http_date(date) or now)).total_seconds()
    if not -1e12 < seconds < 1e12:  # also false for NaN
        return None
    return max(0.0, seconds)


def _http_date(text: str | None) -> datetime | None:
    """Read a date of HTTP; ``None`` if it is none."""
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime((text or "").strip())
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else None
