"""
Fill what a batch export has missed: ask for each missing interval, once, until runs prove that all were exported.

A run proves, a backfill that is completed does not. What was asked for is noted before it is sent, so that a lost
answer is looked up, and nothing is asked for again while it may still take effect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from airflow_provider_workspace.api.outcome import is_in_doubt
from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.errors import WorkspaceRateLimitError, WorkspaceRequestError
from airflow_provider_workspace.windows.intervals import START_DELAY, Coverage, Interval, coverage_of, joined

if TYPE_CHECKING:
    from airflow_provider_workspace.windows.export_runs import Backfill, Export

log = logging.getLogger(__name__)

# A backfill that the service has accepted is listed as soon as it has begun.
LISTED_AFTER = timedelta(minutes=15)
# One without an answer too, or it was not accepted.
LOST_AFTER = timedelta(minutes=2)
# How often an interval is asked for whose runs fail.
MAX_ASKS = 3


def coverage_between(export: Export, since: datetime, until: datetime) -> Coverage:
    """Return which intervals of an export between two moments are exported."""
    intervals = export.schedule.between(since, until)
    runs = export.runs(intervals[0].start) if intervals else []
    return coverage_of(intervals, runs)


def gaps(export: Export, since: datetime, until: datetime) -> list[Interval]:
    """Return the intervals of an export that no run has exported, nor may."""
    return list(coverage_between(export, since, until).missing)


def complete_until(export: Export, since: datetime, until: datetime) -> datetime | None:
    """Return up to when everything since a moment is exported; ``None`` if no interval has ended since."""
    return coverage_between(export, since, until).complete_until


class Ask(BaseModel):
    """
    A backfill that was asked for, as the task remembers it.

    :param at: when, in seconds since 1970
    :param earlier: ids of the backfills of the interval that were listed before
    :param backfill_id: its id; ``None`` if the answer was lost, or shows none
    :param is_answered: whether the service has accepted it
    """

    model_config = ConfigDict(frozen=True)

    interval: Interval
    at: float
    earlier: tuple[str | None, ...] = ()
    backfill_id: str | None = None
    is_answered: bool = False

    def took_effect(self, backfills: Sequence[Backfill]) -> bool:
        """Return whether the service has accepted it: it was answered, or is listed."""
        return self.is_answered or any(self._is(backfill) for backfill in backfills)

    def may_begin(self, consistency_time: float, backfills: Sequence[Backfill], now: float) -> bool:
        """Return whether it may be a backfill that is not listed yet."""
        if any(self._is(backfill) for backfill in backfills):
            return False
        lost_after = max(consistency_time, LOST_AFTER.total_seconds())
        seconds = LISTED_AFTER.total_seconds() if self.is_answered else lost_after
        return now < self.at + seconds

    def _is(self, backfill: Backfill) -> bool:
        """Return whether a backfill is the one that was asked for."""
        if self.backfill_id is not None:
            return backfill.id == self.backfill_id
        is_new = backfill.id not in self.earlier
        return is_new and _covers(backfill.interval, self.interval)


@dataclass(frozen=True, slots=True)
class Look:
    """
    What one look has shown of an export that catches up.

    :param filled: what was asked for and is exported now
    :param refusal: why the service refuses a backfill; ``None`` if it does not
    """

    export: Export
    coverage: Coverage
    filled: Sequence[Interval]
    refusal: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        intervals = self.coverage.intervals
        until = self.coverage.complete_until
        filled = [_plain(interval) for interval in self.filled]
        missing = [_plain(interval) for interval in joined(self._left)]
        return {
            "batch_export_id": self.export.batch_export_id,
            "from": _iso(intervals[0].start) if intervals else None,
            "complete_until": _iso(until) if until else None,
            "filled": filled,
            "missing": missing,
            "paused": self.export.paused,
        }

    @property
    def lines_left(self) -> list[str]:
        """A line for each interval without a completed run."""
        begun = set(self.coverage.under_way)
        name = self.export.batch_export_id
        lines: list[str] = []
        for interval in self._left:
            state = ", under way" if interval in begun else ""
            lines.append(f"{name}: {interval}{state}")
        return lines

    @property
    def _left(self) -> tuple[Interval, ...]:
        left = (*self.coverage.missing, *self.coverage.under_way)
        return tuple(sorted(left))


@dataclass
class CatchUp:
    """
    One export that catches up between two moments.

    :param began: since when asks count, in seconds since 1970: a person who clears a task begins anew
    :param remember: keeps what was asked for, before it is sent
    :ivar asked: what was asked for, by this try and earlier ones
    :ivar refusal: why the service has refused a backfill; nothing is asked for after that
    """

    export: Export
    since: datetime
    until: datetime
    began: float
    clock: Callable[[], float]
    remember: Callable[[list[Ask]], None]
    asked: list[Ask] = field(default_factory=list[Ask])
    refusal: str | None = None

    def look(self) -> Look:
        """Return what is exported, without asking for anything."""
        return self._look(coverage_between(self.export, self.since, self.until))

    def backfill(self) -> Look:
        """
        Ask for what is missing and not under way; return what is exported, as it was before.

        :raises WorkspaceRequestError: if the service fails for now
        """
        # First the backfills: what is completed in the list has its runs in the list that is read after it.
        backfills = self.export.backfills()
        coverage = coverage_between(self.export, self.since, self.until)
        if self.export.paused or self.refusal:
            return self._look(coverage)
        now = self.clock()
        consistency_time = self.export.client.settings.consistency_time
        coming = [backfill.interval for backfill in backfills if backfill.is_under_way]
        waiting = [ask for ask in self.asked if ask.may_begin(consistency_time, backfills, now)]
        coming += [ask.interval for ask in waiting]
        # What was killed before it was sent, or never answered, has exported nothing, and so does not count.
        self.asked = [ask for ask in self.asked if ask in waiting or ask.took_effect(backfills)]
        wanted = [interval for interval in coverage.missing if self._is_wanted(interval, coming, now)]
        for missing in joined(wanted):
            if not self._ask(missing, backfills):
                break
        return self._look(coverage)

    def _look(self, coverage: Coverage) -> Look:
        left = {*coverage.missing, *coverage.under_way}
        asked = [ask.interval for ask in self.asked]
        exported = [interval for interval in coverage.intervals if interval not in left]
        filled = [interval for interval in exported if any(_covers(one, interval) for one in asked)]
        return Look(self.export, coverage, joined(filled), self.refusal)

    def _is_wanted(self, interval: Interval, coming: Sequence[Interval], now: float) -> bool:
        """Return whether an interval is to be asked for: nothing that is under way will export it."""
        if now < (interval.end + START_DELAY).timestamp():
            return False
        if any(_covers(other, interval) for other in coming):
            return False
        asks_that_count = [ask for ask in self.asked if ask.at >= self.began]
        asks = [ask for ask in asks_that_count if _covers(ask.interval, interval)]
        return len(asks) < MAX_ASKS

    def _ask(self, missing: Interval, backfills: Sequence[Backfill]) -> bool:
        """Ask for a backfill; return whether more may be asked for now."""
        earlier = tuple(backfill.id for backfill in backfills if _covers(backfill.interval, missing))
        ask = Ask(interval=missing, at=self.clock(), earlier=earlier)
        self._note([*self.asked, ask])
        log.info("Batch export %s: asking for %s.", self.export.batch_export_id, missing)
        request = self.export.ask_for(missing)
        why = f"no run has exported {missing}"
        answer = self.export.client.attempt(request, why=why, caller_looks_up=True)
        if is_in_doubt(answer):
            log.warning("Nobody answered whether %s is exported again: looking for it before asking again.", missing)
            return False
        if isinstance(answer, WorkspaceRequestError):
            self._note(self.asked[:-1])
            if isinstance(answer, WorkspaceRateLimitError):
                log.warning("The service runs too many backfills: asking again later. %s", answer)
                return False
            if not answer.permanent:
                raise answer
            self.refusal = str(answer)
            return False
        backfill_id = answer.backfill_id or answer.id
        answered = {"at": self.clock(), "backfill_id": backfill_id, "is_answered": True}
        earlier_asks = self.asked[:-1]
        self._note([*earlier_asks, ask.model_copy(update=answered)])
        return True

    def _note(self, asked: list[Ask]) -> None:
        self.asked = asked
        self.remember(asked)


def report_of(looks: Sequence[Look]) -> dict[str, Any]:
    """Return plain JSON of exports, and up to when all of them are complete; ``None`` if nothing was to be exported."""
    untils = [look.coverage.complete_until for look in looks if look.coverage.complete_until]
    complete_until = _iso(min(untils)) if untils else None
    exports = [look.to_dict() for look in looks]
    return {"complete_until": complete_until, "exports": exports}


def extra_of(looks: Sequence[Look]) -> dict[str, Any]:
    """
    Return what the event of an asset says of complete exports; nothing if there was nothing to export.

    Of exports with different intervals it is what all have in common, which may be nothing: then it begins at its end.
    """
    intervals = [look.coverage.intervals for look in looks if look.coverage.intervals]
    if not intervals:
        return {}
    export_ids = [look.export.batch_export_id for look in looks]
    start = max(each[0].start for each in intervals)
    end = min(each[-1].end for each in intervals)
    whole = Interval(min(start, end), end)
    export = export_ids[0] if len(export_ids) == 1 else export_ids
    return {"export": export, **_plain(whole)}


def _plain(interval: Interval) -> dict[str, str]:
    return {"from": _iso(interval.start), "to": _iso(interval.end)}


def _iso(moment: datetime) -> str:
    return iso(moment.timestamp(), "seconds")


def _covers(other: Interval, interval: Interval) -> bool:
    return other.start <= interval.start and interval.end <= other.end
