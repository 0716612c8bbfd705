"""Limits of invites per hour and per day, configured or learned from refusals."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from airflow_provider_workspace.api.retry import MAX_WAIT

HOUR, DAY = 3600.0, 86_400.0
LIMITS = {HOUR: "per_hour", DAY: "per_day"}
REFUSED_REASON = "the service refused the last request (429)"
# How many invites must be possible again before sending continues.
MIN_BATCH = 20
# A single 429 with a Retry-After up to this many seconds is a limit of requests; a longer one is a limit of invites.
PASSING_SECONDS = 60.0
# Seconds to wait after a 429 without a Retry-After.
DEFAULT_PAUSE = 5.0
# Seconds by which the clocks may differ.
CLOCK_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class _Limit:
    """
    A limit that is known.

    :param most: how many invites it permits
    :param span: within how many seconds
    :param times: when what counts against it was sent, oldest first
    """

    most: int
    span: float
    times: list[float]

    @property
    def room(self) -> int:
        """How many invites may be sent now."""
        return max(0, self.most - len(self.times))

    def has_room_at(self, batch: int, times: list[float]) -> float:
        """Return when so many invites are possible after those of ``times``; 0 if they are now."""
        must_leave = len(times) + batch - self.most
        return times[must_leave - 1] + self.span if must_leave > 0 else 0.0


class Quota:
    """
    How many invites of an organization may be sent, by this task and others.

    A limit that is not configured is learned: when the service refuses, the number of invites that it accepted within
    the last hour or day is the limit. A refused request may count as well, so there should be few of them. After one,
    the list of invites decides when to continue, because the ``Retry-After`` of known services is far too short.

    :param per_hour: limit per hour; ``None`` to learn it
    :param per_day: limit per day; ``None`` to learn it
    :param kept: plain JSON that the task keeps across deferrals: what it sent, what was refused, what was learned
    """

    def __init__(
        self, per_hour: int | None = None, per_day: int | None = None, kept: MutableMapping[str, Any] | None = None
    ) -> None:
        self.configured = {"per_hour": per_hour, "per_day": per_day}
        self.kept = {} if kept is None else kept
        self._sent: list[list[Any]] = self.kept.setdefault("sent", [])
        """When invites were sent, and to which addresses."""
        self._charged: list[list[Any]] = self.kept.setdefault("charged", [])
        """When rows were refused, their number, and whether the hour counts them."""
        self._learned: dict[str, int] = self.kept.setdefault("learned", {})
        """Limits by their names."""
        self.refused: dict[str, str] = self.kept.setdefault("refused", {})
        """Reasons by refused address; these addresses are not sent again."""
        self.parts: list[list[str]] = self.kept.setdefault("parts", [])
        """The addresses of each part of a refused request that still has an invalid row."""
        self.kept.setdefault("refusals", 0)
        self.reason = ""
        """Why sending continues at the time that :meth:`grants` or :meth:`refuse` returned last, for people."""

    def most(self, span: float) -> int | None:
        """Return the limit within a span of seconds; ``None`` if it is not known."""
        name = LIMITS[span]
        configured = self.configured[name]
        learned = self._learned.get(name)
        if configured is None:
            return learned
        return configured if learned is None else min(configured, learned)

    @property
    def refusals(self) -> int:
        """Number of consecutive requests that were refused for a limit."""
        return int(self.kept["refusals"])

    def sent(self) -> set[str]:
        """Return the addresses that this task invited."""
        return {key for _, keys in self._sent for key in keys}

    def note_sent(self, now: float, keys: Iterable[str]) -> None:
        """Note the addresses that were invited."""
        self._sent.append([now, list(keys)])
        self.kept["refusals"] = 0
        self.kept["progress_at"] = now

    def note_refused_rows(self, now: float, rows: int) -> None:
        """Note rows that were refused as invalid; they may count against the limits."""
        self._charged.append([now, rows, True])

    def grants(self, listed: Sequence[float], wanted: int, now: float) -> tuple[int, float | None]:
        """
        Return how many invites may be sent now, and when more may.

        :param listed: creation times of the invites that the service lists, in seconds since 1970
        :param wanted: how many invites to send
        :param now: current time in seconds since 1970
        :return: how many may be sent, and when to continue with the others; ``None`` if there are no others
        """
        limits: list[_Limit] = []
        for span in LIMITS:
            most = self.most(span)
            if most is not None:
                limits.append(_Limit(most, span, self._within(listed, span, now)))
        granted = min([wanted, *[limit.room for limit in limits]])
        if granted == wanted:
            return granted, None
        resume_at = now
        for limit in limits:
            batch = min(MIN_BATCH, wanted - granted, limit.most)
            has_room_at = limit.has_room_at(batch, [*limit.times, *[now] * granted])
            if has_room_at > resume_at:
                resume_at = has_room_at
                self.reason = self._reached(limit, batch)
        return granted, resume_at + CLOCK_MARGIN

    def _reached(self, limit: _Limit, batch: int) -> str:
        """Return that a limit is reached, and for how many it leaves room later, for people."""
        name = LIMITS[limit.span]
        source = "as configured" if limit.most == self.configured[name] else "learned from a refusal"
        return (
            f"the limit of {limit.most} invites {name.replace('_', ' ')} ({source}) is reached, and leaves room for "
            f"{batch} more then"
        )

    def refuse(self, listed: Sequence[float], rows: int, retry_after: float | None, now: float) -> float:
        """
        Learn from requests that were refused for a limit, and return when to continue.

        :param listed: creation times of the invites that the service lists, in seconds since 1970
        :param rows: number of invites in the requests
        :param retry_after: minimum wait in seconds; ``None`` if the service named none
        :param now: current time in seconds since 1970
        :return: when to continue, in seconds since 1970
        """
        hour = self._within(listed, HOUR, now)
        day = self._within(listed, DAY, now)
        self._charged.append([now, rows, False])
        self.kept["refusals"] += 1
        is_first = self.refusals == 1
        asked = DEFAULT_PAUSE if retry_after is None else retry_after
        asked_until = now + asked
        if retry_after is None:
            self.reason = f"{REFUSED_REASON} without a time"
        else:
            self.reason = f"{REFUSED_REASON} and asked for {asked:g} s{' or more' if asked == MAX_WAIT else ''}"
        if asked <= PASSING_SECONDS and is_first:
            return asked_until + CLOCK_MARGIN
        hour_is_no_cause = asked > HOUR or (not hour and not is_first)
        per_hour = self.most(HOUR)
        hour_may_be_full = bool(hour) and (per_hour is None or len(hour) + rows > per_hour)
        if hour_is_no_cause and self._invited(listed, DAY, now):
            self._learned[LIMITS[DAY]] = len(day)
        elif hour_may_be_full and asked <= HOUR:
            self._learned[LIMITS[HOUR]] = len(hour)
        elif self.configured["per_hour"] is not None and is_first:  # below the configured limit: another one
            return asked_until + CLOCK_MARGIN
        else:  # the counted invites do not explain it: wait until the last of them is an hour old
            self.reason = (
                f"{REFUSED_REASON}, which no known limit explains; then the invites that count are an hour old"
            )
            last = hour[-1] if hour else now
            return max(asked_until, last + HOUR) + CLOCK_MARGIN
        _, resume_at = self.grants(listed, MIN_BATCH, now)
        return max(asked_until + CLOCK_MARGIN, resume_at or now)

    def _within(self, listed: Sequence[float], span: float, now: float) -> list[float]:
        """Return the times of invites and refused rows within the last ``span`` seconds, oldest first."""
        times = self._invited(listed, span, now)
        for time, rows, is_charged_by_hour in self._charged:
            if time > now - span and (is_charged_by_hour or span == DAY):
                times += [time] * rows
        return sorted(times)

    def _invited(self, listed: Sequence[float], span: float, now: float) -> list[float]:
        """
        Return the times of invites within the last ``span`` seconds.

        The service lists invites with their times, but not those that were accepted; the task knows its own. Both lists
        are paired from the newest on, and the later time of each pair counts. Times in the future come from a wrong
        clock and are ignored.
        """
        sent: list[float] = []
        for time, keys in self._sent:
            sent += [time] * len(keys)
        credible = [time for time in listed if time <= now + PASSING_SECONDS]
        pairs = zip_longest(sorted(credible, reverse=True), sorted(sent, reverse=True), fillvalue=0.0)
        later = [max(pair) for pair in pairs]
        return [time for time in later if time > now - span]
