"""How many invites may go out within an hour and within a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from airflow_provider_workspace.errors import WorkspaceInputError

HOUR, DAY = 3600.0, 86_400.0
# How many invites must be free again before it is worth going on.
MIN_BATCH = 20


@dataclass(frozen=True, slots=True)
class Quota:
    """
    How many invites of an organization may go out, whoever sends them.

    :param now: the present in seconds since 1970
    :param per_hour: most within an hour; ``None`` for any number
    :param per_day: most within a day; ``None`` for any number
    :param sent_before: when earlier parts of the same task sent invites, in seconds since 1970, one time for each
    :raises WorkspaceInputError: if a limit is no whole number above zero
    """

    now: float
    per_hour: int | None = None
    per_day: int | None = None
    sent_before: Sequence[float] = ()

    def __post_init__(self) -> None:
        """Check the limits."""
        for name, most in (("max_per_hour", self.per_hour), ("max_per_day", self.per_day)):
            if most is not None and (type(most) is not int or most < 1):
                msg = f"{name} must be a whole number of at least 1, or None"
                raise WorkspaceInputError(msg)

    def grants(self, listed: Sequence[float], wanted: int) -> tuple[int, float | None]:
        """
        Tell how many may go out now, and when more may.

        The service lists who was invited and when, but no longer those who joined; what this task sent it knows itself.
        So the longer of the two counts.

        :param listed: when the invites that the service lists were made, in seconds since 1970
        :param wanted: how many are to go out
        :return: how many of them may, and when to come back for the others; ``None`` if there are none
        """
        limits = [
            (most, span, self.within(listed, span))
            for most, span in ((self.per_hour, HOUR), (self.per_day, DAY))
            if most is not None
        ]
        granted = min([wanted, *(max(0, most - len(sent)) for most, _, sent in limits)])
        if granted == wanted:
            return granted, None
        again = self.now
        for most, span, sent in limits:
            times = [*sent, *[self.now] * granted]
            batch = min(MIN_BATCH, wanted - granted, most)
            leave = len(times) + batch - most
            if leave > 0:
                again = max(again, times[leave - 1] + span)
        return granted, again + 1.0

    def within(self, listed: Sequence[float], span: float) -> list[float]:
        """Return when invites were sent within the last ``span`` seconds, oldest first."""
        return max(
            (sorted(time for time in times if time > self.now - span) for times in (listed, self.sent_before)), key=len
        )


class PreviousRuns:
    """
    What earlier parts of a task sent, between which it waited.

    :param parts: when each part ended, in seconds since 1970, and the rows it invited
    :param empty_rounds: how many of the latest parts invited nobody
    """

    def __init__(self, parts: Sequence[tuple[float, list[int]]] = (), empty_rounds: int = 0) -> None:
        self.parts = list(parts)
        self.empty_rounds = empty_rounds

    def rows(self) -> set[int]:
        """Return the rows that were invited."""
        return {row for _, rows in self.parts for row in rows}

    def times(self) -> list[float]:
        """Return when invites were sent, one time for each."""
        return [ended_at for ended_at, rows in self.parts for _ in rows]

    def with_part(self, ended_at: float, invited: list[int]) -> PreviousRuns:
        """Add a part, whose report has all rows that are invited so far."""
        known = self.rows()
        new = [row for row in invited if row not in known]
        return PreviousRuns([*self.parts, (ended_at, new)], 0 if new else self.empty_rounds + 1)


def seconds_of(timestamp: str | None) -> float | None:
    """Read a date-time of the interface; ``None`` if it is none."""
    if not timestamp:
        return None
    try:
        when = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
