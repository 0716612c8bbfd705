"""Read timestamps, on each supported Python in the same way."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from pydantic import TypeAdapter, ValidationError

# Unlike datetime.fromisoformat of Python 3.10, pydantic reads a fraction of a second with any number of digits.
_TIMESTAMP = TypeAdapter(datetime)


def parse_timestamp(timestamp: str | None) -> float | None:
    """
    Parse a timestamp in ISO 8601 to seconds since 1970; ``None`` if it is missing or invalid.

    It is in UTC if it names no time zone.
    """
    try:
        when = _TIMESTAMP.validate_python(timestamp)
    except ValidationError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


def to_second(when: Any) -> Any:
    """Return a time in UTC, such as ``2026-12-31T18:00:00Z``; what is no time, such as a number, as it is."""
    seconds = None if isinstance(when, int) else parse_timestamp(when)
    if seconds is None:
        return when
    return datetime.fromtimestamp(int(seconds), timezone.utc).isoformat().replace("+00:00", "Z")


def iso(seconds: float) -> str:
    """Format a time as ISO 8601."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(value: object) -> float:
    """
    Parse a time in ISO 8601, in UTC if it names no time zone, such as one that a person has edited.

    :param value: the text, or seconds since 1970
    :raises ValueError: if it is invalid, or not within the years that :func:`iso` can write
    """
    # Nobody knows what a text without a hyphen counts, such as 20261123.
    seconds = value if isinstance(value, float | int) else parse_timestamp(str(value) if "-" in str(value) else None)
    with suppress(ValueError, OverflowError):
        if seconds is not None and iso(seconds):
            return seconds
    raise ValueError("it is not a time")
