"""
The canonical form of ids, decided here alone.

An id is made canonical where it enters: as an argument or setting, in a file, in a record. Then ``==`` compares it.
"""

from __future__ import annotations

import re
from uuid import UUID

from airflow_provider_workspace.api.templates import NO_VALUES
from airflow_provider_workspace.errors import WorkspaceInputError, shown

# Most ids of long lists have this form already.
CANONICAL_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ANY_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
# More than any id or count, and far below Python's integer string limit.
MAX_ID_NUMBER = 10**100


def canonical_text(text: str) -> str:
    """
    Return the canonical form of the text of an id, such as one in a record of the service; odd text stays as it is.

    It is without blanks around it; a UUID is in lower case with hyphens, and a whole number has no leading zeros.
    """
    if CANONICAL_UUID.fullmatch(text):
        return text
    text = text.strip()
    if ANY_UUID.fullmatch(text):
        return str(UUID(text))
    return text.lstrip("0") or "0" if text.isascii() and text.isdecimal() else text


def canonical_id(value: object) -> str:
    """
    Return the canonical form of an id that somebody passes.

    :raises ValueError: if no id is like that, saying what is expected
    """
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_ID_NUMBER
    is_text = isinstance(value, str | UUID)
    text = canonical_text(str(value)) if is_number or is_text else ""
    if text in NO_VALUES or not text.isprintable():
        raise ValueError(f"expected an id, a number or text that can be printed, not {shown(value)}")
    return text


def canonical_uuid(value: object) -> str:
    """
    Return the canonical form of an id that must be a UUID.

    :raises ValueError: if it is none
    """
    try:
        return str(UUID(canonical_id(value)))
    except ValueError:
        raise ValueError(f"expected a UUID, not {shown(value)}") from None


def check_id(name: str, value: object) -> str:
    """
    Return the canonical form of an argument.

    :raises WorkspaceInputError: naming the argument
    """
    try:
        return canonical_id(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}") from None
