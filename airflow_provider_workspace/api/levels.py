"""Access levels, which the interface types as enumerated integers without showing their values."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

# Of members and invites, at services of this kind. Any other whole number is sent as it is.
LEVELS = {"member": 1, "admin": 8, "owner": 15}
# Far below Python's integer string limit.
MAX_LEVEL = 10**100


def parse_level(value: Any) -> int:
    """
    Read an access level of a member or an invite: a whole number, the text of one, or one of :data:`LEVELS`.

    :raises ValueError: if it is none; truth values and fractions are none
    """
    if isinstance(value, str) and value.strip().lower() in LEVELS:
        return LEVELS[value.strip().lower()]
    try:
        return _parse_number(value)
    except ValueError as error:
        msg = f"{error}, or {' or '.join(f'{name} ({number})' for name, number in LEVELS.items())}"
        raise ValueError(msg) from None


def _parse_number(value: Any) -> int:
    """
    Read a whole number, or the text of one.

    :raises ValueError: if it is none; truth values and fractions are none
    """
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,90}(\.0*)?\s*", value, re.ASCII):
        return int(value.partition(".")[0])
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < MAX_LEVEL
        and value == int(value)
    ):
        return int(value)
    raise ValueError("expected a whole number")


Level = Annotated[int | str, BeforeValidator(parse_level)]
"""Access level of a member."""
OptionalLevel = Annotated[
    int | str | None, BeforeValidator(lambda value: None if value is None else parse_level(value))
]
"""Access level of an invite."""
OptionalNumber = Annotated[int | None, BeforeValidator(lambda value: None if value is None else _parse_number(value))]
"""Any other whole number; such as the level of a dashboard and its collaborators, for which services have others."""
