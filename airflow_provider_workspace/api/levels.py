"""
Access levels; the interface types them as enumerated integers and does not show the values.

Those of members and invites are read by :func:`parse_level`, which knows their names; those of collaborators and
dashboards have none, and are read by :func:`parse_number`. The fields of records name the one that reads a value which
they are compared with.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator

# Levels of members and invites at known services. Other integers are sent unchanged.
LEVELS = {"member": 1, "admin": 8, "owner": 15}
# Far below Python's integer string limit.
MAX_LEVEL = 10**100


def parse_level(value: object) -> int:
    """
    Parse an access level of a member or invite: an integer, its text, or one of :data:`LEVELS`.

    :raises ValueError: if it is anything else, such as a boolean, a fraction or a number below 0
    """
    if isinstance(value, str) and value.strip().lower() in LEVELS:
        return LEVELS[value.strip().lower()]
    try:
        level = parse_number(value)
    except ValueError:
        level = -1
    if level < 0:
        names = [f"{name} ({number})" for name, number in LEVELS.items()]
        raise ValueError(f"expected a whole number from 0, or {' or '.join(names)}")
    return level


def describe_level(level: int) -> str:
    """Return a level for people: its name, if it has one, and its number."""
    for name, number in LEVELS.items():
        if number == level:
            return f"{name} ({level})"
    return f"level {level}"


def parse_number(value: object) -> int:
    """
    Parse an integer or its text, such as a level without names; databases return it as a decimal number.

    :raises ValueError: if it is anything else, such as a boolean or a fraction
    """
    if isinstance(value, Decimal):
        value = str(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,90}(\.0*)?\s*", value, re.ASCII):
        return int(value.partition(".")[0])
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_LEVEL:
        whole = int(value)
        if whole == value:
            return whole
    raise ValueError("expected a whole number")


def if_given(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Parse a value unless it is ``None``."""
    return BeforeValidator(lambda value: None if value is None else parse(value))


Level = Annotated[int | str, BeforeValidator(parse_level)]
"""Access level of a member."""
OptionalLevel = Annotated[int | str | None, if_given(parse_level)]
"""Access level of an invite."""
OptionalNumber = Annotated[int | None, if_given(parse_number)]
"""An integer without named values, such as the level of a dashboard or collaborator."""
ShownLevel = Annotated[int | None, parse_level]
"""Level of a member or invite in a record; the service shows numbers."""
ShownNumber = Annotated[int | None, parse_number]
"""Level of a dashboard or collaborator in a record."""
