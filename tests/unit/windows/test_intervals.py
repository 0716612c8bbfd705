"""The intervals of a batch export: a table, and properties that hold for all of them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.windows.intervals import ExportRun, Interval, Schedule, coverage_of, joined

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


HOURLY = Schedule.read("hour")


@pytest.mark.parametrize(
    ("schedule", "since", "until", "starts", "ends", "count"),
    [
        # The run before the pause may not have begun; the interval of the resume has not ended.
        (("hour",), "2026-11-28 10:20", "2026-11-28 13:10", "2026-11-28 09:00", "2026-11-28 13:00", 4),
        (("hour",), "2026-11-28 10:00", "2026-11-28 11:00", "2026-11-28 10:00", "2026-11-28 11:00", 1),
        (("every 5 minutes",), "2026-11-28 10:02", "2026-11-28 10:16", "2026-11-28 09:45", "2026-11-28 10:15", 6),
        (("Every 15 minutes",), "2026-11-28 10:02", "2026-11-28 10:16", "2026-11-28 09:45", "2026-11-28 10:15", 2),
        (("day",), "2026-11-28 10:00", "2026-11-30 10:00", "2026-11-27 00:00", "2026-11-30 00:00", 3),
        (("day", "Europe/Berlin", None, 2), "2026-11-28 10:00", "2026-11-29 10:00", "2026-11-27 01:00",
         "2026-11-29 01:00", 2),
        # Days of 23 and 25 hours.
        (("day", "Europe/Berlin"), "2026-03-28 12:00", "2026-03-30 12:00", "2026-03-26 23:00", "2026-03-29 22:00", 3),
        (("day", "Europe/Berlin"), "2026-10-25 12:00", "2026-10-26 12:00", "2026-10-23 22:00", "2026-10-25 23:00", 2),
        # Weeks begin on Sunday unless they have an offset.
        (("week",), "2026-11-25 10:00", "2026-12-01 10:00", "2026-11-15 00:00", "2026-11-29 00:00", 2),
        (("week", "UTC", 3, 6), "2026-11-25 10:00", "2026-12-03 10:00", "2026-11-18 06:00", "2026-12-02 06:00", 2),
    ],
)  # fmt: skip
def test_the_intervals_that_a_pause_may_have_cost(
    schedule: Any, since: str, until: str, starts: str, ends: str, count: int
) -> None:
    intervals = Schedule.read(*schedule).between(at(since), at(until))
    assert (intervals[0].start, intervals[-1].end, len(intervals)) == (at(starts), at(ends), count)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (("fortnight",), "The interval of the batch export is 'fortnight'; known are hour"),
        ((None,), "The interval of the batch export is something of type NoneType"),
        (("every 0 minutes",), "The interval of the batch export is"),
        (("day", "Mars/Olympus"), "The time zone of the batch export is unknown here"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(schedule: Any, message: str) -> None:
    with pytest.raises(WorkspaceInputError, match=message):
        Schedule.read(*schedule)


def test_too_many_intervals_are_refused() -> None:
    with pytest.raises(WorkspaceInputError, match="more than 110000 intervals since 2020-01-01 00:00 UTC"):
        Schedule.read("every 5 minutes").between(at("2020-01-01"), at("2026-01-01"))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=8),
    st.integers(1, 6),
)
def test_runs_that_follow_each_other_cover_an_interval_together(spans: list[tuple[int, int]], size: int) -> None:
    begin = at("2026-11-28 00:00")

    def between(first: int, last: int) -> Interval:
        return Interval(begin + timedelta(hours=first), begin + timedelta(hours=last))

    completed = [ExportRun(between(first, first + hours), "Completed") for first, hours in spans]
    exported = {hour for first, hours in spans for hour in range(first, first + hours)}
    starts = range(0, 24, size)
    missing = [between(start, start + size) for start in starts if not exported.issuperset(range(start, start + size))]
    intervals = [between(start, start + size) for start in starts]
    assert coverage_of(intervals, completed).missing == tuple(missing)


def runs(*states: str) -> list[ExportRun]:
    """Return runs of the hours from midnight."""
    hours = HOURLY.starting(at("2026-11-28"))
    return [ExportRun(interval, status) for interval, status in zip(hours, states, strict=False) if status]


@pytest.mark.parametrize(
    ("states", "asks", "until"),
    [
        (["Completed", "Completed", "Completed"], [], "03:00"),
        (["Completed", "Running", "Completed"], [], "01:00"),
        (["Completed", "Starting", "Failed"], ["02:00 UTC to 2026-11-28 03:00"], "01:00"),
        (["Failed", "FailedRetryable", "Completed"], ["00:00 UTC to 2026-11-28 02:00"], "00:00"),
        (["", "Completed", ""], ["00:00 UTC to 2026-11-28 01:00", "02:00 UTC to 2026-11-28 03:00"], "00:00"),
        (["Completed", "SomethingNew", "Completed"], ["01:00 UTC to 2026-11-28 02:00"], "01:00"),
        (["Completed", "Cancelled", "TimedOut"], ["01:00 UTC to 2026-11-28 03:00"], "01:00"),
    ],
)
def test_only_a_completed_run_proves_an_interval(states: list[str], asks: list[str], until: str) -> None:
    intervals = HOURLY.between(at("2026-11-28 00:00"), at("2026-11-28 03:00"))
    coverage = coverage_of(intervals, runs(*states))
    assert [str(interval)[11:].removesuffix(" UTC") for interval in joined(coverage.missing)] == asks
    assert coverage.complete_until == at(f"2026-11-28 {until}")
    assert coverage.is_complete is (until == "03:00")


def test_a_failed_run_that_was_repeated_and_a_run_over_several_intervals_count() -> None:
    intervals = HOURLY.between(at("2026-11-28 00:00"), at("2026-11-28 03:00"))
    whole = ExportRun(Interval(at("2026-11-28 00:00"), at("2026-11-28 02:00")), "Completed")
    coverage = coverage_of(intervals, [*runs("Failed", "Failed", "Failed"), *runs("", "", "Completed"), whole])
    assert coverage.is_complete
    assert coverage_of([], []).complete_until is None


schedules = st.one_of(
    st.sampled_from([1, 5, 15, 30, 60]).map(lambda minutes: Schedule.read(f"every {minutes} minutes")),
    st.builds(
        Schedule.read,
        st.sampled_from(["hour", "day", "week"]),
        st.sampled_from(ZONES),
        st.integers(0, 6),
        st.integers(0, 23),
    ),
)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(timezone.utc))  # noqa: DTZ001


@given(schedules, moments, st.timedeltas(timedelta(0), timedelta(days=9)), st.data())
def test_intervals_follow_each_other_and_what_is_asked_for_completes_them(
    schedule: Schedule, since: datetime, length: timedelta, data: st.DataObject
) -> None:
    until = since + length
    intervals = schedule.between(since, until)
    assert all(first.end == second.start for first, second in pairwise(intervals))
    assert all(interval.start < interval.end <= until for interval in intervals)
    # The one before the pause, and none that has ended is left out.
    assert not intervals or intervals[0].end <= since or intervals[0].start == since
    following = next(schedule.starting(intervals[-1].end if intervals else since))
    assert following.end > until
    chosen = data.draw(st.sets(st.sampled_from(intervals or [following]), max_size=20)) & {*intervals}
    coverage = coverage_of(intervals, [ExportRun(interval, "Completed") for interval in chosen])
    assert set(coverage.missing) == set(intervals) - chosen
    filled = [*chosen, *joined(coverage.missing)]
    assert coverage_of(intervals, [ExportRun(interval, "Completed") for interval in filled]).is_complete
