"""The retry policy of the client, and the pauses of procedures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.errors import WorkspaceRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


# Maximum wait in seconds before the second attempt at a request; it doubles with each attempt.
FIRST_WAIT = 0.5
# Maximum seconds to wait for a limit of the service, whatever it asks for: it may mean a date, or never.
MAX_WAIT = 25 * 3600.0
# First pauses in seconds before a lost write is looked up; see look_up_pauses.
FIRST_LOOK_UPS = (0.5, 5.0)
# Maximum attempts at a write that is not repeatable, each after a look-up that did not find its effect.
MAX_SENDS = 5
# Maximum readings of a list that has fewer rows than it counts; fewer if a reading brings no new rows.
MAX_READINGS = 10


class RetryPolicy(NamedTuple):
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

    :param max_attempts: attempts, including the first
    :param max_wait: maximum wait between two attempts in seconds; if ``Retry-After`` is longer, the error is raised
        instead
    """

    max_attempts: int = 5
    max_wait: float = 60.0

    def permits(self, error: BaseException, *, repeatable: bool) -> bool:
        """Return whether the same request may be sent again after this error."""
        if not isinstance(error, WorkspaceRequestError) or not error.retryable:
            return False
        if error.retry_after is not None and error.retry_after > self.max_wait:
            return False
        return repeatable or error.outcome != Outcome.UNKNOWN.value

    def wait(self, attempt: int, retry_after: float | None, jitter: float) -> float:
        """
        Return the seconds to wait after an attempt.

        :param attempt: number of attempts so far, from 1
        :param retry_after: ``Retry-After`` in seconds, the minimum; ``None`` if there was none
        :param jitter: random number from 0 to 1
        """
        pause = backoff(FIRST_WAIT, attempt, self.max_wait)
        if retry_after is None:
            return pause * (0.5 + jitter / 2)
        return min(self.max_wait, retry_after + min(pause, 1.0) * jitter)


def backoff(first: float, failures: int, maximum: float) -> float:
    """
    Return the pause in seconds after consecutive failures; it doubles with each.

    :param first: pause after the first failure in seconds
    :param failures: number of failures, from 1
    :param maximum: maximum pause in seconds
    """
    return min(maximum, first * 2.0 ** min(failures - 1, 30))


def look_up_pauses(age: float, consistency_time: float) -> Iterator[float]:
    """
    Yield the pauses in seconds before look-ups of a lost write: at least one, until ``consistency_time`` is over.

    The first two are 0.5 s and 5 s, then each is as long as the time since the write. They depend on that time only, so
    an interrupted task goes on with the same ones.

    :param age: seconds since the write may have been sent
    :param consistency_time: seconds after which a write that is not found counts as not applied
    """
    while True:
        left = max(0.0, consistency_time - age)
        first, second = FIRST_LOOK_UPS
        pause = min(left, first if age < first else max(second, age))
        yield pause
        if pause == left:
            return
        age += pause


def parse_retry_after(value: str | None, now: datetime, date: str | None) -> float | None:
    """
    Parse a ``Retry-After`` header: seconds, or an HTTP date.

    :param value: the header; ``None`` if there is none
    :param now: current time with a time zone
    :param date: ``Date`` header of the response, which replaces ``now`` because the service's clock may differ
    :return: seconds from now, from 0 to :data:`MAX_WAIT`; ``None`` if the header is missing or invalid
    """
    if value is None:
        return None
    try:
        seconds = float(value.strip())
    except ValueError:
        when = http_date(value)
        if when is None:
            return None
        seconds = (when - (http_date(date) or now)).total_seconds()
    if not -1e12 < seconds < 1e12:  # also false for NaN
        return None
    return min(max(0.0, seconds), MAX_WAIT)


def http_date(text: str | None) -> datetime | None:
    """Parse an HTTP date; ``None`` if it is invalid."""
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime((text or "").strip())
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else None
