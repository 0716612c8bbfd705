"""
The runs and backfills of batch exports, played by the clock of the sandbox: off until :meth:`Service.play_runs`.

What happens is a queue of events for each export, played up to the present before each request: a run is due at the end
of its interval, begins after the jitter, ends; a backfill begins, and has one run after the other.
"""

from __future__ import annotations

import heapq
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import count
from uuid import uuid4
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow_provider_workspace.sandbox.limits import DAY, HOUR
from airflow_provider_workspace.sandbox.responses import ApiError, JsonObject, invalid, not_found, too_many_requests
from airflow_provider_workspace.sandbox.state import State, format_time, parse_time

FAILURES_TO_PAUSE = 3
"""Failed runs in a row after which an export is paused."""
MAX_BACKFILLS = 100
"""Backfills of an organization at once."""
MINUTES = range(1, 60)
UNDER_WAY = ("Starting", "Running")
FAILED = ("Failed", "FailedRetryable", "FailedBilling", "TimedOut")
BAD_ENDS = (*FAILED, "Cancelled", "Terminated", "ContinuedAsNew", *UNDER_WAY)
"""How a run ends that does not complete; one that stays under way never ends."""

_EVERY = re.compile(r"every (\d{1,2}) minutes")


@dataclass(frozen=True)
class Pace:
    """How the runs of all exports are played."""

    jitter_seconds: float = 900
    run_seconds: float = 300
    backfill_seconds: float = 10
    """Seconds from a request for a backfill to its beginning."""
    page_size: int = 100

    def __post_init__(self) -> None:
        if min(self.jitter_seconds, self.run_seconds, self.backfill_seconds) < 0 or self.page_size < 1:
            raise invalid("Seconds are 0 or more, and a page has 1 row or more.")


@dataclass(frozen=True)
class Timing:
    """When the intervals of an export end."""

    interval: str
    """``hour``, ``day``, ``week`` or ``every N minutes``."""
    timezone: str = "UTC"
    offset_day: int = 0
    """The weekday on which a week begins; 0 is Sunday."""
    offset_hour: int = 0
    """The hour at which a day or week begins."""

    def __post_init__(self) -> None:
        every = _EVERY.fullmatch(self.interval)
        if self.interval not in ("hour", "day", "week") and (not every or int(every[1]) not in MINUTES):
            raise invalid(f"An interval is hour, day, week or every N minutes, not {self.interval!r}.", "interval")
        try:
            ZoneInfo(self.timezone)
        except (ValueError, OSError, ZoneInfoNotFoundError) as error:
            raise invalid(f"There is no time zone {self.timezone!r}.", "timezone") from error
        if self.offset_day not in range(7) or self.offset_hour not in range(24):
            raise invalid("offset_day is 0 to 6, and offset_hour 0 to 23.", "offset_day")

    @property
    def by_date(self) -> bool:
        """Whether its intervals are days or weeks of its time zone."""
        return self.interval in ("day", "week")

    def last(self, moment: datetime) -> datetime:
        """Return the last end of an interval until a moment."""
        if not self.by_date:
            every = _EVERY.fullmatch(self.interval)
            seconds = int(every[1]) * 60 if every else HOUR
            return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, timezone.utc)
        day = moment.astimezone(ZoneInfo(self.timezone)).date() + timedelta(days=1)
        while not self.begins(day.isoweekday()) or self.on(day.isoformat()) > moment:
            day -= timedelta(days=1)
        return self.on(day.isoformat())

    def next(self, moment: datetime) -> datetime:
        """Return the first end of an interval after a moment."""
        days = {"day": 1, "week": 7}.get(self.interval, 0)
        found = moment
        while found <= moment:  # days have 23 to 25 hours
            found = self.last(found + (timedelta(days=days, hours=1) if days else timedelta(hours=1)))
        while self.last(found - timedelta(seconds=1)) > moment:
            found = self.last(found - timedelta(seconds=1))
        return found

    def between(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Return the intervals that end after ``start`` and not after ``end``."""
        left, right = self.last(start), self.next(start)
        while right <= end:
            yield left, right
            left, right = right, self.next(right)

    def begins(self, isoweekday: int) -> bool:
        """Return whether an interval begins on a weekday."""
        return self.interval == "day" or isoweekday % 7 == self.offset_day

    def on(self, date: str) -> datetime:
        """Return when the interval of a date begins."""
        local = datetime.fromisoformat(date).replace(hour=self.offset_hour, tzinfo=ZoneInfo(self.timezone))
        return local.astimezone(timezone.utc)


@dataclass
class Run:
    """A run of an export."""

    export_id: str
    start: datetime
    end: datetime
    created_at: datetime
    backfill: Backfill | None = None
    status: str = "Running"
    finished_at: datetime | None = None
    id: str = field(default_factory=lambda: str(uuid4()))

    def record(self) -> JsonObject:
        done = self.status == "Completed"
        return {
            "id": self.id,
            "batch_export": self.export_id,
            "backfill": self.backfill.id if self.backfill else None,
            "status": self.status,
            "data_interval_start": format_time(self.start),
            "data_interval_end": format_time(self.end),
            "records_completed": 1000 if done else None,
            "latest_error": f"The run is {self.status}." if self.status in FAILED else None,
            "created_at": format_time(self.created_at),
            "finished_at": format_time(self.finished_at) if self.finished_at else None,
            "last_updated_at": format_time(self.finished_at or self.created_at),
        }


@dataclass
class Backfill:
    """The request to export the intervals of a range, one after the other."""

    export_id: str
    start_at: datetime
    end_at: datetime
    created_at: datetime
    intervals: list[tuple[datetime, datetime]]
    total: int
    status: str = "Starting"
    finished_at: datetime | None = None
    id: str = field(default_factory=lambda: str(uuid4()))

    def record(self, finished: int) -> JsonObject:
        share = finished / self.total if self.total else 1
        return {
            "id": self.id,
            "batch_export": self.export_id,
            "status": self.status,
            "start_at": format_time(self.start_at),
            "end_at": format_time(self.end_at),
            "progress": {"total_runs": self.total, "finished_runs": finished, "progress": share},
            "created_at": format_time(self.created_at),
            "finished_at": format_time(self.finished_at) if self.finished_at else None,
            "last_updated_at": format_time(self.finished_at or self.created_at),
        }


@dataclass
class Failure:
    """Which runs will fail."""

    times: int
    status: str
    start: datetime | None
    """The start of their interval; None: whichever end next."""


@dataclass
class Schedule:
    """One export, with what has happened and what will."""

    export_id: str
    state: State
    pace: Pace
    timing: Timing
    runs: list[Run] = field(default_factory=list)
    backfills: list[Backfill] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    _events: list[tuple[datetime, int, Callable[[datetime], None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def begin(self, timing: Timing, moment: datetime) -> None:
        """Follow a timing from a moment on, instead of the one before."""
        self.timing = timing
        self._at(timing.next(moment), lambda due: self._due(timing, due))

    def play(self, until: datetime) -> None:
        """Let happen what is due."""
        while self._events and self._events[0][0] <= until:
            moment, _, event = heapq.heappop(self._events)
            event(moment)

    def backfill(self, start_at: datetime, end_at: datetime, now: datetime) -> Backfill:
        """Ask for the intervals that end in a range."""
        for other in self.backfills:
            if other.status in UNDER_WAY and (other.start_at, other.end_at) == (start_at, end_at):
                raise ApiError(500, "server_error", "error", "A server error occurred.")
        intervals = [*self.timing.between(start_at, end_at)]
        asked = Backfill(self.export_id, start_at, end_at, now, intervals, len(intervals))
        self.backfills.append(asked)
        self._at(now + timedelta(seconds=self.pace.backfill_seconds), lambda moment: self._go_on(asked, moment))
        return asked

    def cancel(self, run: Run, now: datetime) -> None:
        """End a run without a result; its backfill goes on."""
        run.status, run.finished_at = "Cancelled", now
        if run.backfill is not None:
            self._go_on(run.backfill, now)

    def finished_runs(self, backfill: Backfill) -> int:
        return sum(run.backfill is backfill and run.status not in UNDER_WAY for run in self.runs)

    def _at(self, moment: datetime, event: Callable[[datetime], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), event))

    def _due(self, timing: Timing, due: datetime) -> None:
        if timing is not self.timing:
            return
        self._at(timing.next(due), lambda moment: self._due(timing, moment))
        if self._row()["paused"]:
            return
        start = timing.last(due - timedelta(seconds=1))
        jitter = random.Random(f"{self.export_id} {due}").uniform(0, self.pace.jitter_seconds)  # noqa: S311 -- no secret
        self._at(due + timedelta(seconds=jitter), lambda moment: self._start(start, due, moment))

    def _start(self, start: datetime, due: datetime, moment: datetime) -> None:
        row = self._row()
        if row["paused"] or (row["last_paused_at"] and parse_time(row["last_paused_at"]) >= due):
            return  # A pause that came before the run began has taken it away for good.
        self._run(Run(self.export_id, start, due, moment))

    def _run(self, run: Run) -> None:
        self.runs.append(run)
        ends = run.created_at + timedelta(seconds=self.pace.run_seconds)
        self._at(ends, lambda moment: self._finish(run, moment))

    def _finish(self, run: Run, moment: datetime) -> None:
        if run.status not in UNDER_WAY:
            return
        run.status = self._outcome(run)
        if run.status in UNDER_WAY:
            return
        run.finished_at = moment
        ended = [other for other in self.runs if other.status == "Completed" or other.status in FAILED]
        ended.sort(key=lambda other: other.finished_at or moment)
        latest = [other.status for other in ended[-FAILURES_TO_PAUSE:]]
        if run.status in FAILED and len(latest) == FAILURES_TO_PAUSE and "Completed" not in latest:
            self._pause(moment)
        if run.backfill is not None:
            self._go_on(run.backfill, moment)

    def _outcome(self, run: Run) -> str:
        for failure in self.failures:
            if failure.times > 0 and failure.start in (None, run.start):
                failure.times -= 1
                return failure.status
        return "Completed"

    def _go_on(self, backfill: Backfill, moment: datetime) -> None:
        if backfill.status not in UNDER_WAY:
            return
        backfill.status = "Running"
        if backfill.intervals:
            start, end = backfill.intervals.pop(0)
            self._run(Run(self.export_id, start, end, moment, backfill))
        else:  # whatever came of its runs
            backfill.status, backfill.finished_at = "Completed", moment

    def _pause(self, moment: datetime) -> None:
        if not self._row()["paused"]:
            pause(self.state, self.export_id, moment)
        for backfill in self.backfills:
            if backfill.status in UNDER_WAY:
                backfill.status, backfill.finished_at = "Cancelled", moment
        for run in self.runs:
            if run.backfill is not None and run.status in UNDER_WAY:
                run.status, run.finished_at = "Cancelled", moment

    def _row(self) -> sqlite3.Row:
        return self.state.find("batch_exports", id=self.export_id)


class Schedules:
    """The schedules of all exports; an export follows its own from when it is first asked for."""

    def __init__(self, state: State, pace: Pace, since: datetime) -> None:
        self.state = state
        self.pace = pace
        self.since = since
        self.broken_backfills = 0
        """How many of the next backfills do not start."""
        self._schedules: dict[str, Schedule] = {}

    def of(self, export_id: str) -> Schedule:
        if export_id not in self._schedules:
            row = self.state.find("batch_exports", id=export_id)
            timing = Timing("day" if row["interval_seconds"] == DAY else "hour")
            schedule = Schedule(export_id, self.state, self.pace, timing)
            schedule.begin(timing, self.since)
            self._schedules[export_id] = schedule
        return self._schedules[export_id]

    def play(self, until: datetime) -> None:
        """Let happen what is due in all exports."""
        for row in self.state.db.execute("SELECT id FROM batch_exports").fetchall():
            self.of(row["id"]).play(until)

    def backfill(self, export: sqlite3.Row, start_at: datetime, end_at: datetime) -> Backfill:
        """Ask for a backfill, or raise the error of the service."""
        sql = "SELECT id FROM batch_exports WHERE organization_id = ?"
        siblings = [self.of(row["id"]) for row in self.state.db.execute(sql, (export["organization_id"],)).fetchall()]
        if sum(one.status in UNDER_WAY for sibling in siblings for one in sibling.backfills) >= MAX_BACKFILLS:
            raise too_many_requests("60")
        if self.broken_backfills:
            self.broken_backfills -= 1
            raise ApiError(500, "server_error", "error", "A server error occurred.")
        return self.of(export["id"]).backfill(start_at, end_at, self.state.now())

    def find_run(self, export_id: str, run_id: str) -> Run:
        for run in self.of(export_id).runs:
            if run.id == run_id:
                return run
        raise not_found()

    def export_runs(self, export_id: str) -> JsonObject:
        """Return the intervals since the start that are exported, each time that they are, and those that are not."""
        schedule, now = self.of(export_id), self.state.now()
        exported: list[JsonObject] = []
        for run in sorted(schedule.runs, key=lambda run: (run.start, run.created_at)):
            if run.status == "Completed" or run.status in UNDER_WAY:
                times = {"interval_start": format_time(run.start), "interval_end": format_time(run.end)}
                started = format_time(run.created_at)
                exported.append({**times, "started_at": started, "status": run.status.lower()})
        there = {row["interval_start"] for row in exported}
        missing: list[JsonObject] = []
        for start, end in schedule.timing.between(self.since, now):
            if format_time(start) not in there:
                missing.append({"interval_start": format_time(start), "interval_end": format_time(end)})
        return {"batch_export_id": export_id, "exported": exported, "missing": missing}


def pause(state: State, export_id: str, moment: datetime) -> None:
    """Note that an export is paused."""
    sql = "UPDATE batch_exports SET paused = 1, last_paused_at = ? WHERE id = ?"
    state.db.execute(sql, (format_time(moment), export_id))
    state.insert("export_pauses", export_id=export_id, paused_at=moment.timestamp())
