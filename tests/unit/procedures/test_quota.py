"""``Quota``: how many invites may be sent now, and when the next ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.quota import CLOCK_MARGIN, DAY, HOUR, MIN_BATCH, Quota, parse_timestamp

NOW = 1_800_000_000.0


def test_without_a_limit_everything_may_be_sent() -> None:
    assert Quota().grants([NOW - 1] * 1000, 500, NOW) == (500, None)


def test_remaining_quota_of_the_hour() -> None:
    sent = [NOW - 600.0] * 30 + [NOW - HOUR - 1] * 100
    assert Quota(per_hour=50).grants(sent, 20, NOW) == (20, None)
    assert Quota(per_hour=50).grants(sent, 100, NOW) == (20, NOW - 600 + HOUR + CLOCK_MARGIN)


def test_remaining_quota_of_the_day() -> None:
    sent = [NOW - 5 * HOUR] * 195
    assert Quota(per_hour=50, per_day=200).grants(sent, 100, NOW) == (5, NOW - 5 * HOUR + DAY + CLOCK_MARGIN)


def test_sending_resumes_when_a_minimum_batch_fits() -> None:
    """Not as soon as a single invite fits."""
    sent = [NOW - 60.0 * minute for minute in range(50)]
    granted, again = Quota(per_hour=50).grants(sent, 100, NOW)
    assert granted == 0
    assert again == sorted(sent)[MIN_BATCH - 1] + HOUR + CLOCK_MARGIN


def test_granted_quota_is_used_up() -> None:
    assert Quota(per_hour=50).grants([], 120, NOW) == (50, NOW + HOUR + CLOCK_MARGIN)


@pytest.mark.parametrize("ahead", [HOUR, 2 * DAY])
def test_the_clock_of_the_service_may_be_ahead(ahead: float) -> None:
    quota = Quota()
    quota.note_sent(NOW, [str(number) for number in range(40)])
    assert quota.refuse([NOW + ahead] * 40, 20, 327.0, NOW) == NOW + HOUR + CLOCK_MARGIN
    assert quota.refuse([NOW + 30] * 60, 20, 327.0, NOW) == NOW + 30 + HOUR + CLOCK_MARGIN


def test_sent_invites_count_even_if_not_listed() -> None:
    quota = Quota(per_hour=50)
    quota.note_sent(NOW - 10, [str(number) for number in range(50)])
    assert quota.grants([], 5, NOW)[0] == 0
    assert quota.grants([NOW - 5] * 40, 5, NOW)[0] == 0


def test_refused_rows_count() -> None:
    quota = Quota(per_hour=50)
    quota.note_refused_rows(NOW, 20)
    assert quota.grants([], 100, NOW) == (30, NOW + HOUR + CLOCK_MARGIN)


# Learned from refusals


def test_the_hourly_limit_is_learned_and_refused_rows_count_for_the_day() -> None:
    quota = Quota()
    assert quota.refuse([NOW - 60.0] * 40, 20, 327.0, NOW) == NOW - 60 + HOUR + CLOCK_MARGIN
    assert quota.most(HOUR) == 40
    assert quota.most(DAY) is None
    assert quota.grants([NOW - 60.0] * 40, 100, NOW + HOUR) == (40, NOW + 2 * HOUR + CLOCK_MARGIN)


def test_a_retry_after_of_more_than_an_hour_is_a_daily_limit() -> None:
    quota = Quota(per_hour=50)
    listed = [NOW - 5 * HOUR] * 180
    assert quota.refuse(listed, 20, 2 * HOUR, NOW) == NOW - 5 * HOUR + DAY + CLOCK_MARGIN
    assert quota.most(DAY) == 180
    assert quota.most(HOUR) == 50


def test_a_second_refusal_in_an_hour_without_invites_is_a_daily_limit() -> None:
    quota = Quota()
    listed = [NOW - 2 * HOUR] * 30
    assert quota.refuse(listed, 20, 600.0, NOW) == NOW + HOUR + CLOCK_MARGIN
    quota.refuse(listed, 20, 600.0, NOW + HOUR)
    assert quota.most(DAY) == 30 + 20


def test_a_refusal_below_the_configured_limit_waits_for_retry_after_then_an_hour() -> None:
    quota = Quota(per_hour=50)
    assert quota.refuse([NOW - 60.0] * 10, 20, 600.0, NOW) == NOW + 600 + CLOCK_MARGIN
    assert quota.refuse([NOW - 60.0] * 10, 20, 600.0, NOW) == NOW - 60 + HOUR + CLOCK_MARGIN
    assert quota.most(HOUR) == 50


@pytest.mark.parametrize(("retry_after", "seconds"), [(30.0, 30.0), (None, 5.0)])
def test_one_short_refusal_sets_no_limit(retry_after: float | None, seconds: float) -> None:
    quota = Quota()
    assert quota.refuse([NOW - 60.0] * 40, 20, retry_after, NOW) == NOW + seconds + CLOCK_MARGIN
    assert quota.most(HOUR) is None
    quota.refuse([NOW - 60.0] * 40, 20, retry_after, NOW)
    assert quota.most(HOUR) == 40


def test_a_success_resets_the_refusals() -> None:
    quota = Quota()
    quota.refuse([], 20, 1.0, NOW)
    quota.note_sent(NOW, ["a"])
    assert quota.refusals == 0
    assert quota.progress_at == NOW


def test_the_state_of_a_quota_is_plain_json() -> None:
    quota = Quota()
    quota.begin(NOW)
    quota.note_sent(NOW, ["a"])
    quota.note_refused_rows(NOW, 1)
    quota.refused["b"] = "no"
    quota.refuse([NOW], 20, 600.0, NOW)
    again = Quota(kept=json.loads(json.dumps(quota.kept)))
    assert again.sent() == {"a"}
    assert again.refused == {"b": "no"}
    assert again.most(HOUR) == quota.most(HOUR) == 2
    again.begin(NOW + 1)
    assert again.progress_at == NOW


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "50", True, [-(10**4400)]])
def test_a_limit_must_be_an_integer(wrong: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="max_per_hour"):
        Quota(per_hour=wrong)
    with pytest.raises(WorkspaceInputError, match="max_per_day"):
        Quota(per_day=wrong)


@given(
    ages=st.lists(st.floats(0, 2 * DAY), max_size=300),
    wanted=st.integers(0, 400),
    per_hour=st.none() | st.integers(1, 100),
    per_day=st.none() | st.integers(1, 300),
)
def test_limits_hold_and_everything_is_sent(
    ages: list[float], wanted: int, per_hour: int | None, per_day: int | None
) -> None:
    """The clock jumps to each returned time until everybody is invited."""
    sent, now, left = sorted(NOW - age for age in ages), NOW, wanted
    for _ in range(2 * wanted + 2):
        granted, again = Quota(per_hour, per_day).grants(sent, left, now)
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
        ("2027-01-15T08:00:00.5Z", 1_800_000_000.5),
        ("2027-01-15T08:00:00.500000000Z", 1_800_000_000.5),
        ("2027-01-15 08:00:00+0000", 1_800_000_000.0),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_times_of_the_service_are_parsed(text: str | None, seconds: float | None) -> None:
    assert parse_timestamp(text) == seconds
