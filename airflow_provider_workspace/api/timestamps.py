"""Times are read and written here alone, on each supported Python in the same way."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

Precision = Literal["seconds", "milliseconds"]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# Unlike datetime.fromisoformat of Python 3.10, pydantic reads a fraction of a second with any number of digits.
_TIMESTAMP = TypeAdapter(datetime)


def iso(seconds: float, precision: Precision = "milliseconds") -> str:
    """
    Write a time in UTC as ISO 8601, such as ``2026-12-31T18:00:00.000Z``.

    :param seconds: since 1970
    :param precision: ``milliseconds`` for what is read again, ``seconds`` for people; what is finer is cut
    :raises ValueError: if it is not within the years 1 to 9999, or ``OverflowError``
    """
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def parse_timestamp(timestamp: str | datetime | None) -> float | None:
    """
    Parse a timestamp in ISO 8601 to seconds since 1970; ``None`` if it is missing or invalid.

    It is in UTC if it names no time zone.
    """
    try:
        moment = _TIMESTAMP.validate_python(timestamp)
    except ValidationError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()


def parse_time(value: object) -> float:
    """
    Parse a time in ISO 8601, in UTC if it names no time zone, such as one that a person has edited.

    :param value: the text, or seconds since 1970
    :raises ValueError: if it is invalid, or not within the years that :func:`iso` can write
    """
    if isinstance(value, float | int):
        seconds: float | None = value
    else:
        text = str(value)
        # Nobody knows what a text without a hyphen counts, such as 20261123.
        seconds = parse_timestamp(text) if "-" in text else None
    if seconds is None or not _can_be_written(seconds):
        raise ValueError("it is not a time")
    return seconds


def parse_end(value: object) -> float:
    """
    Parse the end of something as :func:`parse_time` does; a day counts to its end in UTC.

    :raises ValueError: if it is no time
    """
    if isinstance(value, str) and _DAY.fullmatch(value.strip()):
        return moment_of(value.strip()).timestamp()
    return parse_time(value)


def _can_be_written(seconds: float) -> bool:
    try:
        iso(seconds)
    except (ValueError, OverflowError):
        return False
    return True


def to_second(value: Any) -> Any:
    """Return a time as :func:`iso` writes it, in seconds; what is no time as it is."""
    seconds = parse_timestamp(value)
    return value if seconds is None else iso(seconds, "seconds")


def for_people(seconds: float) -> str:
    """
    Return a time as people read it, such as ``2026-12-31 18:00 UTC``.

    :param seconds: since 1970
    """
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M} UTC"


def moment_of(text: str) -> datetime:
    """
    Return the last moment of a time or of a day in UTC.

    :param text: such as ``2026-12-31``, or ``2026-12-31T18:00:00Z``
    """
    if "T" not in text:
        return datetime.combine(date.fromisoformat(text), datetime.max.time(), timezone.utc)
    return datetime.fromtimestamp(parse_time(text), timezone.utc)
