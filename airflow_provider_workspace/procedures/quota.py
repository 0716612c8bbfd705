"""Limits of invites per hour and per day, configured or learned from refusals."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from itertools import zip_longest
from typing import Any

HOUR, DAY = 3600.0, 86_400.0
LIMITS = {HOUR: "per_hour", DAY: "per_day"}
REFUSED = "the service refused the last request (429)"
# How many invites must be possible again before sending continues.
MIN_BATCH = 20
# A single 429 with a Retry-After up to this many seconds is a limit of requests; a longer one is a limit of invites.
PASSING = 60.0
# Seconds to wait after a 429 without a Retry-After.
DEFAULT_PAUSE = 5.0
# Seconds by which the clocks may differ.
CLOCK_MARGIN = 2.0


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
        known = [most for most in (self.configured[name], self._learned.get(name)) if most is not None]
        return min(known, default=None)

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
        limits = [
            (most, span, self._within(listed, span, now)) for span in LIMITS if (most := self.most(span)) is not None
        ]
        granted = min([wanted, *(max(0, most - len(sent)) for most, _, sent in limits)])
        if granted == wanted:
            return granted, None
        resume_at = now
        for most, span, sent in limits:
            times = [*sent, *[now] * granted]
            batch = min(MIN_BATCH, wanted - granted, most)
            leave = len(times) + batch - most
            if leave > 0 and times[leave - 1] + span > resume_at:
                resume_at = times[leave - 1] + span
                name = LIMITS[span]
                source = "learned from a refusal" if most != self.configured[name] else "as configured"
                self.reason = (
                    f"the limit of {most} invites {name.replace('_', ' ')} ({source}) is reached, and leaves room for "
                    f"{batch} more then"
                )
        return granted, resume_at + CLOCK_MARGIN

    def refuse(self, listed: Sequence[float], rows: int, retry_after: float | None, now: float) -> float:
        """
        Learn from requests that were refused for a limit, and return when to continue.

        :param listed: creation times of the invites that the service lists, in seconds since 1970
        :param rows: number of invites in the requests
        :param retry_after: minimum wait in seconds; ``None`` if the service named none
        :param now: current time in seconds since 1970
        :return: when to continue, in seconds since 1970
        """
        hour, day = self._within(listed, HOUR, now), self._within(listed, DAY, now)
        self._charged.append([now, rows, False])
        self.kept["refusals"] += 1
        asked = DEFAULT_PAUSE if retry_after is None else retry_after
        self.reason = f"{REFUSED} {'without a time' if retry_after is None else f'and asked for {asked:g} s'}"
        if asked <= PASSING and self.refusals == 1:
            return now + asked + CLOCK_MARGIN
        most = self.most(HOUR)
        if self._invited(listed, DAY, now) and (asked > HOUR or (not hour and self.refusals > 1)):
            self._learned[LIMITS[DAY]] = len(day)
        elif hour and asked <= HOUR and (most is None or len(hour) + rows > most):
            self._learned[LIMITS[HOUR]] = len(hour)
        elif self.configured["per_hour"] is not None and self.refusals == 1:  # below the configured limit: another one
            return now + asked + CLOCK_MARGIN
        else:  # the counted invites do not explain it: wait until the last of them is an hour old
            self.reason = f"{REFUSED}, which no known limit explains; then the invites that count are an hour old"
            return max(now + asked, (hour or [now])[-1] + HOUR) + CLOCK_MARGIN
        resume_at = self.grants(listed, MIN_BATCH, now)[1]
        return max(now + asked + CLOCK_MARGIN, resume_at or now)

    def _within(self, listed: Sequence[float], span: float, now: float) -> list[float]:
        """Return the times of invites and refused rows within the last ``span`` seconds, oldest first."""
        charged = [time for time, rows, by_hour in self._charged if by_hour or span == DAY for _ in range(rows)]
        return sorted([*self._invited(listed, span, now), *(time for time in charged if time > now - span)])

    def _invited(self, listed: Sequence[float], span: float, now: float) -> list[float]:
        """
        Return the times of invites within the last ``span`` seconds.

        The service lists invites with their times, but not those that were accepted; the task knows its own. Both lists
        are paired from the newest on, and the later time of each pair counts. Times in the future come from a wrong
        clock and are ignored.
        """
        sent = [time for time, keys in self._sent for _ in keys]
        listed = [time for time in listed if time <= now + PASSING]
        pairs = zip_longest(sorted(listed, reverse=True), sorted(sent, reverse=True), fillvalue=0.0)
        return [time for time in map(max, pairs) if time > now - span]
