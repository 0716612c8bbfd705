"""How many invites may go out now, and when the others may."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.quota import DAY, HOUR, MIN_BATCH, Quota, seconds_of

NOW = 1_800_000_000.0


def test_without_a_limit_everything_may_be_sent() -> None:
    assert Quota(NOW).grants([NOW - 1] * 1000, 500) == (500, None)


def test_remaining_quota_of_the_hour() -> None:
    sent = [NOW - 600.0] * 30 + [NOW - HOUR - 1] * 100
    assert Quota(NOW, per_hour=50).grants(sent, 20) == (20, None)
    granted, again = Quota(NOW, per_hour=50).grants(sent, 100)
    assert granted == 20
    assert again == NOW - 600 + HOUR + 1


def test_remaining_quota_of_the_day() -> None:
    sent = [NOW - 5 * HOUR] * 195
    assert Quota(NOW, per_hour=50, per_day=200).grants(sent, 100) == (5, NOW - 5 * HOUR + DAY + 1)


def test_resumes_when_a_minimum_batch_fits() -> None:
    """Not for each single invite that is a minute older than an hour."""
    sent = [NOW - 60.0 * minute for minute in range(50)]
    granted, again = Quota(NOW, per_hour=50).grants(sent, 100)
    assert granted == 0
    assert again == sorted(sent)[MIN_BATCH - 1] + HOUR + 1


def test_granted_quota_is_used_up() -> None:
    assert Quota(NOW, per_hour=50).grants([], 120) == (50, NOW + HOUR + 1)


def test_sent_invites_count_even_if_not_listed() -> None:
    assert Quota(NOW, per_hour=50, sent_before=[NOW - 10] * 50).grants([], 5)[0] == 0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "50", True, [-(10**4400)]])
def test_a_limit_must_be_an_integer(wrong: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="max_per_hour"):
        Quota(NOW, per_hour=wrong)
    with pytest.raises(WorkspaceInputError, match="max_per_day"):
        Quota(NOW, per_day=wrong)


@given(
    ages=st.lists(st.floats(0, 2 * DAY), max_size=300),
    wanted=st.integers(0, 400),
    per_hour=st.none() | st.integers(1, 100),
    per_day=st.none() | st.integers(1, 300),
)
def test_limits_hold_and_everything_is_sent_in_the_end(
    ages: list[float], wanted: int, per_hour: int | None, per_day: int | None
) -> None:
    """A clock that jumps to when it says to come back, until everybody is invited."""
    sent, now, left = sorted(NOW - age for age in ages), NOW, wanted
    for _ in range(2 * wanted + 2):
        granted, again = Quota(now, per_hour, per_day).grants(sent, left)
        for most, span in ((per_hour, HOUR), (per_day, DAY)):
            within = sum(time > now - span for time in sent)
            assert most is None or granted <= max(0, most - within)
        sent += [now] * granted
        left -= granted
        if again is None:
            break
        assert again > now
        now = again
    assert left == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T09:00:00+01:00", 1_800_000_000.0),
        ("2027-01-15T08:00:00", 1_800_000_000.0),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_reads_the_times_of_the_service(text: str | None, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
