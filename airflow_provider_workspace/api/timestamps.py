"""Read timestamps, on each supported Python in the same way."""

from __future__ import annotations

from datetime import datetime, timezone

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
