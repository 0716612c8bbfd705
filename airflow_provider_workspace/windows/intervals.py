"""
The intervals of a batch export: where they begin and end, which have a completed run, and what is missing.

Pure: neither the clock nor the service is asked. Only a run that is *Completed* proves that an interval was exported; a
backfill that says so does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from airflow_provider_workspace.errors import WorkspaceInputError, shown

COMPLETED = "Completed"
# A run of these may still complete.
UNDER_WAY = frozenset(("Starting", "Running", "ContinuedAsNew"))
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Units of "every 5 minutes", in seconds.
UNITS = {"second": 1, "minute": 60, "hour": 3600}
EVERY = re.compile(r"every\s+(\d{1,5})\s+(second|minute|hour)s?", re.IGNORECASE)
# More intervals than a person would look at, and than one task should hold: a year of every 5 minutes.
MAX_INTERVALS = 110_000
# A run begins up to a quarter of an hour after its interval has ended.
START_DELAY = timedelta(minutes=16)


@dataclass(frozen=True, order=True, slots=True)
class Interval:
    """What one run exports: from its start to its end, which is not part of it."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        """Return it for people, in UTC."""
        return f"{_utc(self.start)} to {_utc(self.end)}"


@dataclass(frozen=True, slots=True)
class ExportRun:
    """
    A run of a batch export.

    :param status: as the service shows it; an empty text if it shows none
    """

    interval: Interval
    status: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """
    When a batch export runs.

    :param every: seconds from one run to the next, in UTC; 0 for days and weeks
    :param days: days from one run to the next, by the clock of the time zone; 0 for shorter intervals
    :param zone: time zone of days and weeks
    :param offset_day: day on which weeks begin; 0 is Sunday
    :param offset_hour: hour at which days begin
    """

    every: int
    days: int
    zone: ZoneInfo
    offset_day: int = 0
    offset_hour: int = 0

    @classmethod
    def read(
        cls,
        interval: str | None,
        zone: str | None = None,
        offset_day: int | None = None,
        offset_hour: int | None = None,
    ) -> Schedule:
        """
        Read what the service shows of a batch export.

        :param interval: ``hour``, ``day``, ``week``, or such as ``every 5 minutes``
        :raises WorkspaceInputError: if an interval or a time zone is unknown, or an offset is out of range
        """
        text = (interval or "").strip().lower()
        every = EVERY.fullmatch(text)
        seconds = 3600 if text == "hour" else 0
        if every:
            seconds = int(every[1]) * UNITS[every[2].lower()]
        days = {"day": 1, "week": 7}.get(text, 0)
        if not (seconds or days):
            raise WorkspaceInputError(
                f"The interval of the batch export is {shown(interval)}; known are hour, day, week, and such as "
                "'every 5 minutes'. Its runs cannot be told apart, so look at them in the workspace"
            )
        try:
            zone_info = ZoneInfo(zone or "UTC")
        except (KeyError, ValueError, OSError):
            raise WorkspaceInputError(f"The time zone of the batch export is unknown here: {shown(zone)}") from None
        _check_offset("offset_day", offset_day, 6)
        _check_offset("offset_hour", offset_hour, 23)
        return cls(seconds, days, zone_info, offset_day or 0, offset_hour or 0)

    @property
    def takes_dates(self) -> bool:
        """Whether a backfill names days in place of times."""
        return bool(self.days)

    def latest_end(self, moment: datetime) -> datetime:
        """Return the last end of an interval that is not after a moment."""
        if self.every:
            passed = int((moment - EPOCH).total_seconds()) // self.every
            return EPOCH + timedelta(seconds=passed * self.every)
        day = moment.astimezone(self.zone).date() + timedelta(days=1)
        while not self._begins(day) or self.start_of(day) > moment:
            day -= timedelta(days=1)
        return self.start_of(day)

    def starting(self, first: datetime) -> Iterator[Interval]:
        """Yield the interval that begins at one of the ends, and those after it."""
        while True:
            following = self._moved(first, 1)
            yield Interval(first, following)
            first = following

    def before(self, end: datetime) -> Interval:
        """Return the interval that ends at one of the ends."""
        return Interval(self._moved(end, -1), end)

    def _moved(self, end: datetime, intervals: int) -> datetime:
        """Return the end that is some intervals later."""
        if self.every:
            return end + timedelta(seconds=intervals * self.every)
        days = timedelta(days=intervals * self.days)
        return self.start_of(self.day_of(end) + days)

    def between(self, since: datetime, until: datetime) -> list[Interval]:
        """
        Return the intervals that have ended by the second of two moments, and that a pause at the first may have cost.

        Between two runs that is also the interval before, and each other whose run may not have begun.

        :raises WorkspaceInputError: if they are too many, or the second moment is before the first
        """
        if until < since:
            raise WorkspaceInputError(f"since, {_utc(since)}, is after until, {_utc(until)}. Give an earlier since")
        intervals: list[Interval] = []
        for interval in self.starting(self._first_start(since)):
            if interval.end > until:
                return intervals
            intervals.append(interval)
            if len(intervals) > MAX_INTERVALS:
                break
        raise WorkspaceInputError(
            f"There are more than {MAX_INTERVALS} intervals since {_utc(since)}. Give a later since"
        )

    def _first_start(self, since: datetime) -> datetime:
        latest = self.latest_end(since)
        if latest == since:
            return latest
        return min(self.before(latest).start, self.latest_end(since - START_DELAY))

    def day_of(self, moment: datetime) -> date:
        """Return the day at which an interval begins or ends."""
        return moment.astimezone(self.zone).date()

    def start_of(self, day: date) -> datetime:
        """Return when the interval that begins on a day begins, in UTC; an hour that a clock skips is the one after."""
        local = datetime.combine(day, time(self.offset_hour), self.zone)
        return local.astimezone(timezone.utc)

    def _begins(self, day: date) -> bool:
        """Return whether an interval begins on a day."""
        return self.days == 1 or day.isoweekday() % 7 == self.offset_day


@dataclass(frozen=True, slots=True)
class Coverage:
    """
    Which intervals are exported.

    :param intervals: all of them, the earliest first
    :param under_way: intervals whose run may still complete
    :param missing: intervals without a run that has completed, or may
    """

    intervals: tuple[Interval, ...]
    under_way: tuple[Interval, ...]
    missing: tuple[Interval, ...]

    @property
    def is_complete(self) -> bool:
        """Whether each interval has a completed run."""
        return not (self.under_way or self.missing)

    @property
    def complete_until(self) -> datetime | None:
        """Up to when everything is exported, from the first interval on; ``None`` if there are no intervals."""
        if not self.intervals:
            return None
        starts = [interval.start for interval in (*self.under_way, *self.missing)]
        return min(starts, default=self.intervals[-1].end)


def joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals, the earliest first, with those joined that follow each other."""
    ranges: list[Interval] = []
    for interval in intervals:
        if ranges and ranges[-1].end == interval.start:
            ranges[-1] = Interval(ranges[-1].start, interval.end)
        else:
            ranges.append(interval)
    return ranges


def coverage_of(intervals: Sequence[Interval], runs: Iterable[ExportRun]) -> Coverage:
    """Return which of some intervals have a run that is completed, or may be; a run may cover several, or a part."""
    completed: list[Interval] = []
    begun: list[Interval] = []
    for run in runs:
        if run.status == COMPLETED:
            completed.append(run.interval)
        elif run.status in UNDER_WAY:
            begun.append(run.interval)
    left = _without(intervals, completed)
    missing = _without(left, begun)
    under_way = set(left) - set(missing)
    return Coverage(tuple(intervals), tuple(sorted(under_way)), tuple(missing))


def _without(intervals: Iterable[Interval], covered: Iterable[Interval]) -> list[Interval]:
    """Return the intervals that others do not cover; several that follow each other may cover one together."""
    left: list[Interval] = []
    coming = sorted(covered, reverse=True)
    reach = EPOCH
    for interval in intervals:
        while coming and coming[-1].start <= max(interval.start, reach):
            reach = max(reach, coming.pop().end)
        if interval.end > reach:
            left.append(interval)
    return left


def _check_offset(name: str, offset: int | None, most: int) -> None:
    if offset is not None and not 0 <= offset <= most:
        raise WorkspaceInputError(
            f"The {name} of the batch export is {offset}; known are 0 to {most}. Its runs cannot be told apart, so "
            "look at them in the workspace"
        )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
