"""Until when somebody has access, and what they have then: decided here alone, for every kind of row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from airflow_provider_workspace.api.levels import if_given, parse_level
from airflow_provider_workspace.api.timestamps import iso, moment_of, parse_time
from airflow_provider_workspace.errors import shown

# The fields of an end in a row.
END_FIELDS = ("until", "then")
# The time of an end at midnight in UTC.
MIDNIGHT = "T00:00:00Z"
# The end of an access that does not end, as databases write it.
LAST_DAY = "9999-12-31"
# What people have after their end, if it is no level.
REMOVED = "removed"
_TIME = r"[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
_UNTIL = re.compile(rf"(\d{{4}}-\d{{2}}-\d{{2}})(?:({_TIME})(?: ?([Zz]|[+-]\d{{2}}(?::?\d{{2}})?))?)?", re.ASCII)
# The largest number that a message shows.
MAX_SHOWN_NUMBER = 10**15
EXPECTED = "expected a date such as 2026-12-31, or a time with its zone such as 2026-12-31T18:00:00Z"


def parse_until(value: object) -> str:
    """
    Parse an end; return a date as ``2026-12-31``, and a time in UTC as ``2026-12-31T18:00:00Z``.

    :param value: a text in ISO 8601, a ``date``, or a ``datetime`` with its time zone
    :raises ValueError: if it is anything else, such as a number, a day that does not exist, or a time without its zone
    """
    text = _text_of(value)
    found = _UNTIL.fullmatch(text)
    if found is None:
        raise ValueError(f"{EXPECTED}, not {_shown(value)}")
    day, clock, zone = found.groups()
    if day[:4] == LAST_DAY[:4]:  # in another zone, it may be beyond what a datetime holds
        return LAST_DAY
    if clock and not zone:
        raise ValueError(f"{EXPECTED}, not {text!r}; this time has no zone. If it is a day, pass a date")
    try:
        if not clock:
            return date.fromisoformat(day).isoformat()
        return iso(parse_time(f"{day}T{clock[1:]}{_with_minutes(zone)}"), "seconds")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{EXPECTED}, not {text!r}: {error}") from None


def _with_minutes(zone: str) -> str:
    """Return a zone as ISO 8601 has it beside a time with colons; PostgreSQL writes ``+00``."""
    sign = zone[0]
    digits = zone[1:].replace(":", "")
    if not digits.isdecimal():
        return zone
    hours = digits[:2]
    minutes = digits[2:] or "00"
    return f"{sign}{hours}:{minutes}"


def _shown(value: object) -> str:
    """Return an invalid value for people: a number, such as that of a day in a spreadsheet, or the start of a text."""
    if isinstance(value, float):
        return str(value)
    return str(value) if isinstance(value, int) and abs(value) < MAX_SHOWN_NUMBER else shown(value)


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, date):
        return value.isoformat()
    return ""


def _parse_then(value: object) -> int | str:
    if isinstance(value, str) and value.strip().lower() == REMOVED:
        return REMOVED
    try:
        return parse_level(value)
    except ValueError as error:
        raise ValueError(f"{error}, or '{REMOVED}'") from None


def remark_on_midnight(ends: Mapping[str, str | None]) -> str:
    """
    Ask about ends at midnight in UTC, which JSON makes of days: then access ends a day too early.

    :param ends: ends by where they stand, such as ``in row 3``; ``None`` for no end
    :return: the remark; empty if there is no such end
    """
    at_midnight = [(place, until) for place, until in ends.items() if until is not None and until.endswith(MIDNIGHT)]
    if not at_midnight:
        return ""
    place, until = at_midnight[0]
    return (
        f"Ends at midnight UTC: {len(at_midnight)}, the first {place} ({until}). A day? Write "
        f"{until.removesuffix(MIDNIGHT)}, which counts to its end."
    )


class End(BaseModel):
    """
    The end of a row.

    :param until: when access ends, see :func:`parse_until`: a date counts to its end in UTC; ``None`` for no end
    :param then: the access level after it, or ``removed``, which is the default
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    until: Annotated[str | None, if_given(parse_until)] = None
    then: Annotated[int | str | None, if_given(_parse_then)] = None

    def problem(self, level: int | None) -> str:
        """Return what is wrong with what comes after it, in a row with this level; an empty string if nothing is."""
        if self.then is not None and self.until is None:
            return "then: give until as well, or leave it out"
        if self.then_level is not None and (level is None or self.then_level > level):
            return f"then: {self.then_level} must not be above the level, which the row must name"
        return ""

    @property
    def fields(self) -> dict[str, Any]:
        """The end with its default, as plans and approvals have it; empty if there is none."""
        return {} if self.until is None else {"until": self.until, "then": self.then or REMOVED}

    @property
    def moment(self) -> datetime:
        """The last moment before the end, of years that do not come if there is none."""
        if self.until is None:
            return datetime.max.replace(tzinfo=timezone.utc)
        return moment_of(self.until)

    @property
    def over(self) -> str:
        """Say that it is over."""
        zone = "" if "T" in str(self.until) else " (UTC)"
        return f"access ended {self.until}{zone}"

    @property
    def then_level(self) -> int | None:
        """The level after the end; ``None`` if the person is removed."""
        return self.then if isinstance(self.then, int) else None

    def is_over(self, now: datetime) -> bool:
        """Return whether the end has passed."""
        return self.until is not None and now > self.moment

    def __str__(self) -> str:
        """Return the end for people; an empty string if there is none."""
        return f"until {self.until}, then {self.then or REMOVED}" if self.until else ""
