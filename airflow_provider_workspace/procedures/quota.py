"""How many invites may go out within an hour and within a day: as configured, or learned from refusals."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from datetime import datetime, timezone
from itertools import zip_longest
from typing import Any

from airflow_provider_workspace.errors import WorkspaceInputError

HOUR, DAY = 3600.0, 86_400.0
LIMITS = {HOUR: "per_hour", DAY: "per_day"}
# How many invites must be free again before it is worth going on.
MIN_BATCH = 20
# A single refusal for so many seconds is taken for a limit of requests, which passes; a longer one for one of invites.
PASSING = 60.0
# How long to wait after a refusal that says nothing.
UNSAID = 5.0
# What clocks may differ by.
MARGIN = 2.0


class Quota:
    """
    How many invites of an organization may go out, whoever sends them.

    What is not configured is learned: once the service refuses, as many as it took within the last hour, or day, are
    its limit. A refused request may count as well, so there should be few: after one, what the list shows decides when
    to come back, for the ``Retry-After`` of some services is far too short.

    :param per_hour: most within an hour; ``None`` to learn it
    :param per_day: most within a day; ``None`` to learn it
    :param kept: plain JSON that is kept over the waits of a task: what it sent, what was refused, what was learned
    :raises WorkspaceInputError: if a limit is no whole number above zero
    """

    def __init__(
        self, per_hour: int | None = None, per_day: int | None = None, kept: MutableMapping[str, Any] | None = None
    ) -> None:
        self.configured = {"per_hour": per_hour, "per_day": per_day}
        for name, most in self.configured.items():
            if most is not None and (type(most) is not int or most < 1):
                msg = f"max_{name} must be a whole number of at least 1, or None"
                raise WorkspaceInputError(msg)
        self.kept = {} if kept is None else kept
        self.kept.setdefault("sent", [])  # [when, [addresses]]
        self.kept.setdefault("charged", [])  # [when, rows, whether the hour counts them]
        self.kept.setdefault("refusals", 0)  # in a row
        self.kept.setdefault("refused", {})  # addresses, and the words of the service
        self.kept.setdefault("parts", [])
        self.kept.setdefault("learned", {})  # by the names of the limits

    def most(self, span: float) -> int | None:
        """Return how many may go out within a span; ``None`` if that is not known."""
        name = LIMITS[span]
        known = [most for most in (self.configured[name], self.kept["learned"].get(name)) if most is not None]
        return min(known, default=None)

    def begin(self, now: float) -> None:
        """Note when the task began, unless it goes on after a wait."""
        self.kept.setdefault("progress_at", now)

    @property
    def progress_at(self) -> float:
        """When somebody was invited last, or the task began, in seconds since 1970."""
        when: float = self.kept["progress_at"]
        return when

    @property
    def refused(self) -> dict[str, str]:
        """The addresses that the service refused, with its words: they are not sent again."""
        words: dict[str, str] = self.kept["refused"]
        return words

    @property
    def parts(self) -> list[list[str]]:
        """The addresses of parts of refused requests, which hold a row to blame."""
        parts: list[list[str]] = self.kept["parts"]
        return parts

    @property
    def refusals(self) -> int:
        """How many requests in a row were refused for a limit."""
        count: int = self.kept["refusals"]
        return count

    def sent(self) -> set[str]:
        """Return the addresses that this task invited."""
        return {key for _, keys in self.kept["sent"] for key in keys}

    def note_sent(self, now: float, keys: Iterable[str]) -> None:
        """Note who was invited."""
        self.kept["sent"].append([now, list(keys)])
        self.kept["refusals"] = 0
        self.kept["progress_at"] = now

    def note_refused_rows(self, now: float, rows: int) -> None:
        """Note that rows were refused for what they hold; they may count as if they were invited."""
        self.kept["charged"].append([now, rows, True])

    def grants(self, listed: Sequence[float], wanted: int, now: float) -> tuple[int, float | None]:
        """
        Tell how many may go out now, and when more may.

        :param listed: when the invites that the service lists were made, in seconds since 1970
        :param wanted: how many are to go out
        :param now: the present in seconds since 1970
        :return: how many of them may, and when to come back for the others; ``None`` if there are none
        """
        limits = [
            (most, span, self._within(listed, span, now)) for span in LIMITS if (most := self.most(span)) is not None
        ]
        granted = min([wanted, *(max(0, most - len(sent)) for most, _, sent in limits)])
        if granted == wanted:
            return granted, None
        again = now
        for most, span, sent in limits:
            times = [*sent, *[now] * granted]
            batch = min(MIN_BATCH, wanted - granted, most)
            leave = len(times) + batch - most
            if leave > 0:
                again = max(again, times[leave - 1] + span)
        return granted, again + MARGIN

    def refuse(self, listed: Sequence[float], rows: int, retry_after: float | None, now: float) -> float:
        """
        Learn from requests that were refused for a limit, and tell when to come back.

        :param listed: when the invites that the service lists were made, in seconds since 1970
        :param rows: how many invites the requests held
        :param retry_after: seconds the service asked to wait, which is the least; ``None`` if it named none
        :param now: the present in seconds since 1970
        :return: when, in seconds since 1970
        """
        hour, day = self._within(listed, HOUR, now), self._within(listed, DAY, now)
        self.kept["charged"].append([now, rows, False])
        self.kept["refusals"] += 1
        asked = UNSAID if retry_after is None else retry_after
        if asked <= PASSING and self.refusals == 1:
            return now + asked + MARGIN
        most = self.most(HOUR)
        if self._invited(listed, DAY, now) and (asked > HOUR or (not hour and self.refusals > 1)):
            self.kept["learned"][LIMITS[DAY]] = len(day)
        elif hour and asked <= HOUR and (most is None or len(hour) + rows > most):
            self.kept["learned"][LIMITS[HOUR]] = len(hour)
        elif (
            self.configured["per_hour"] is not None and self.refusals == 1
        ):  # below what the author says: another limit
            return now + asked + MARGIN
        else:  # what is counted does not explain it: after an hour there is nothing left of it
            return max(now + asked, (hour or [now])[-1] + HOUR) + MARGIN
        again = self.grants(listed, MIN_BATCH, now)[1]
        return max(now + asked + MARGIN, again or now)

    def _within(self, listed: Sequence[float], span: float, now: float) -> list[float]:
        """Return when what counts was sent within the last ``span`` seconds, oldest first: invites and refused rows."""
        charged = [time for time, rows, by_hour in self.kept["charged"] if by_hour or span == DAY for _ in range(rows)]
        return sorted([*self._invited(listed, span, now), *(time for time in charged if time > now - span)])

    def _invited(self, listed: Sequence[float], span: float, now: float) -> list[float]:
        """
        Return when invites were made within the last ``span`` seconds.

        The service lists who was invited and when, but no longer those who joined; what this task sent it knows itself.
        Of each pair, and there are as many as in the longer of the two, the later time counts. What is listed with a
        time to come is that of a clock that is wrong, and says nothing.
        """
        sent = [time for time, keys in self.kept["sent"] for _ in keys]
        listed = [time for time in listed if time <= now + PASSING]
        pairs = zip_longest(sorted(listed, reverse=True), sorted(sent, reverse=True), fillvalue=0.0)
        return [time for time in map(max, pairs) if time > now - span]


def seconds_of(timestamp: str | None) -> float | None:
    """Read a date-time of the interface; ``None`` if it is none."""
    if not timestamp:
        return None
    try:
        when = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
