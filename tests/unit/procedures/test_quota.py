"""``Quota``: how many invites may be sent now, and when the next ones."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.procedures.quota import CLOCK_MARGIN, DAY, HOUR, MIN_BATCH, Quota

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("quota", "sent", "wanted", "granted", "again"),
    [
        (Quota(), [NOW - 1] * 1000, 500, 500, None),
        (Quota(per_hour=50), [NOW - 600] * 30 + [NOW - HOUR - 1] * 100, 20, 20, None),
        (Quota(per_hour=50), [NOW - 600] * 30 + [NOW - HOUR - 1] * 100, 100, 20, NOW - 600 + HOUR),
        (Quota(per_hour=50, per_day=200), [NOW - 5 * HOUR] * 195, 100, 5, NOW - 5 * HOUR + DAY),
        (Quota(per_hour=50), [], 120, 50, NOW + HOUR),
        # As soon as a minimum batch fits, and not a single invite
        (Quota(per_hour=50), [NOW - 60.0 * age for age in range(50)], 100, 0, NOW - 60 * (50 - MIN_BATCH) + HOUR),
    ],
)
def test_what_may_be_sent_now_and_when_the_rest(
    quota: Quota, sent: list[float], wanted: int, granted: int, again: float | None
) -> None:
    assert quota.grants(sent, wanted, NOW) == (granted, None if again is None else again + CLOCK_MARGIN)


def test_sent_invites_and_refused_rows_count_even_if_not_listed() -> None:
    quota = Quota(per_hour=50)
    quota.note_sent(NOW - 10, [str(number) for number in range(50)])
    assert quota.grants([], 5, NOW)[0] == quota.grants([NOW - 5] * 40, 5, NOW)[0] == 0
    quota = Quota(per_hour=50)
    quota.note_refused_rows(NOW, 20)
    assert quota.grants([], 100, NOW) == (30, NOW + HOUR + CLOCK_MARGIN)


# Learned from refusals


@pytest.mark.parametrize(
    ("quota", "refusals", "per_hour", "per_day"),
    [
        # How long ago how many listed invites were sent, Retry-After, when the next may be sent; limits at the end
        (Quota(), [([(60, 40)], 327, HOUR - 60)], 40, None),
        (Quota(per_hour=50), [([(5 * HOUR, 180)], 2 * HOUR, DAY - 5 * HOUR)], 50, 180),
        (Quota(), [([(2 * HOUR, 30)], 600, HOUR), ([(2 * HOUR, 30)], 600, DAY - HOUR)], None, 50),
        (Quota(per_hour=50), [([(60, 10)], 600, 600), ([(60, 10)], 600, HOUR - 60)], 50, None),
        (Quota(), [([(60, 40)], 30, 30)], None, None),
        (Quota(), [([(60, 40)], None, 5)], None, None),
        (Quota(), [([(60, 40)], None, 5), ([(60, 40)], None, HOUR - 60)], 40, None),
    ],
)
def test_limits_are_learned_from_refusals(
    quota: Quota, refusals: list[Any], per_hour: int | None, per_day: int | None
) -> None:
    for number, (ages, retry_after, wait) in enumerate(refusals):
        now = NOW + (HOUR if per_day == 50 and number else 0)
        listed = [NOW - age for age, count in ages for _ in range(count)]
        assert quota.refuse(listed, 20, retry_after, now) == now + wait + CLOCK_MARGIN
    assert (quota.most(HOUR), quota.most(DAY)) == (per_hour, per_day)


@pytest.mark.parametrize("ahead", [HOUR, 2 * DAY])
def test_the_clock_of_the_service_may_be_ahead(ahead: float) -> None:
    quota = Quota()
    quota.note_sent(NOW, [str(number) for number in range(40)])
    assert quota.refuse([NOW + ahead] * 40, 20, 327.0, NOW) == NOW + HOUR + CLOCK_MARGIN
    assert quota.refuse([NOW + 30] * 60, 20, 327.0, NOW) == NOW + 30 + HOUR + CLOCK_MARGIN


@pytest.mark.parametrize(
    ("texts", "seconds"),
    [
        (("2027-01-15T08:00:00Z", "2027-01-15T09:00:00+01:00", "2027-01-15T08:00:00", "2027-01-15 08:00:00+0000"), NOW),
        (("2027-01-15T08:00:00.5Z", "2027-01-15T08:00:00.500000000Z"), NOW + 0.5),
        (("soon", "", None), None),
    ],
)
def test_times_of_the_service_are_parsed(texts: tuple[str | None, ...], seconds: float | None) -> None:
    assert {parse_timestamp(text) for text in texts} == {seconds}
