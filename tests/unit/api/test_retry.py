"""When a request is retried, and after how many seconds."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace import errors
from airflow_provider_workspace.api.retry import RetryPolicy, parse_retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)
POLICY = RetryPolicy(max_attempts=5, max_wait=60.0)

ALWAYS, IF_REPEATABLE, NEVER = (True, True), (True, False), (False, False)


def rate_limit(retry_after: float | None) -> errors.WorkspaceRateLimitError:
    return errors.WorkspaceRateLimitError("429", outcome="rejected", retryable=True, retry_after=retry_after)


@pytest.mark.parametrize(
    ("error", "permitted"),
    [
        (errors.WorkspaceConnectionError("refused", outcome="not_sent"), ALWAYS),
        (errors.WorkspaceConnectionError("bad certificate", outcome="not_sent", retryable=False), NEVER),
        (rate_limit(None), ALWAYS),
        (rate_limit(0), ALWAYS),
        (rate_limit(60), ALWAYS),
        (rate_limit(60.1), NEVER),
        (errors.WorkspaceNotFoundError("404", outcome="rejected"), NEVER),
        (errors.WorkspaceTransportError("reset", outcome="unknown"), IF_REPEATABLE),
        (errors.WorkspaceTimeoutError("silence", outcome="unknown"), IF_REPEATABLE),
        (errors.WorkspaceResponseError("cut", outcome="unknown"), IF_REPEATABLE),
        (errors.WorkspaceServerError("503", outcome="unknown", retryable=True), IF_REPEATABLE),
        (errors.WorkspaceServerError("503", outcome="unknown", retryable=True, retry_after=61), NEVER),
        (errors.WorkspaceServerError("501", outcome="unknown", retryable=False), NEVER),
        (errors.WorkspacePaginationError("loop", retryable=False), NEVER),
        (errors.WorkspaceInputError("field"), NEVER),
        (errors.WorkspaceConfigError("host"), NEVER),
        (KeyboardInterrupt(), NEVER),
        (ValueError("a bug"), NEVER),
    ],
    ids=lambda value: f"{value!r:.60}" if isinstance(value, BaseException) else None,
)
def test_retry_decision_table(error: BaseException, permitted: tuple[bool, bool]) -> None:
    assert (POLICY.permits(error, repeatable=True), POLICY.permits(error, repeatable=False)) == permitted


@pytest.mark.parametrize(
    ("attempt", "least", "most"), [(1, 0.25, 0.5), (2, 0.5, 1), (3, 1, 2), (7, 16, 32), (8, 30, 60), (10_000, 30, 60)]
)
def test_backoff_doubles_up_to_the_maximum(attempt: int, least: float, most: float) -> None:
    assert POLICY.wait(attempt, None, 0.0) == least
    assert POLICY.wait(attempt, None, 1.0) == most


@given(st.integers(1, 20), st.floats(0, 60), st.floats(0, 1), st.floats(0, 60))
def test_retry_after_is_honoured_within_bounds(
    attempt: int, retry_after: float, jitter: float, max_wait: float
) -> None:
    policy = RetryPolicy(max_wait=max_wait)
    wait = policy.wait(attempt, retry_after, jitter)
    assert min(retry_after, max_wait) <= wait <= min(retry_after + 1, max_wait)
    assert 0 <= policy.wait(attempt, None, jitter) <= max_wait


@pytest.mark.parametrize(
    ("header", "date", "seconds"),
    [
        *((header, None, seconds) for header, seconds in ((" 30 ", 30.0), ("1.5", 1.5), ("-5", 0.0), ("86400", 86400))),
        # A date in the wrong form, and one that no database of Airflow can store with a delay.
        *((header, None, 90_000.0) for header in ("90001", "1795914300", "Fri, 31 Dec 9999 23:59:59 GMT")),
        ("Sun, 01 Mar 2026 12:00:30 GMT", None, 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", None, 30.0),
        ("Sunday, 01-Mar-26 12:00:30 GMT", None, 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", None, 0.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", None, None),
        ("Sun, 99999999999999999999 Mar 2026 12:00:30 GMT", None, None),
        ("Sun, 01 Mar 2026 12:00:30 +99999999999999", None, None),
        *((header, None, None) for header in (None, "", "1e13", "inf", "nan", "9" * 5000, "soon", "30 s")),
        # It counts from the date of the response.
        ("Sun, 01 Mar 2026 13:00:30 GMT", "Sun, 01 Mar 2026 13:00:00 GMT", 30.0),
        *(("Sun, 01 Mar 2026 13:00:30 GMT", date, 3630.0) for date in ("yesterday", "Sun, 01 Mar 2026 13:00:00 -0000")),
    ],
)
def test_retry_after_is_parsed(header: str | None, date: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW, date) == seconds
