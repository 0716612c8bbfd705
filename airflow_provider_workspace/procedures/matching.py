"""Whether a value is wanted: the rule of ``where``, for records of lists and for rows of rosters alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from airflow_provider_workspace.api.comparison import address_key, normal_text
from airflow_provider_workspace.api.templates import is_empty
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.errors import WorkspaceInputError, type_name

# The types of several wanted values. A tuple: to join the types with | takes as long as the question.
SEVERAL = (list, tuple, set)
# The types of cells that can be compared, and of what is wanted of them.
COMPARABLE = (str, bool, int, float, Decimal, date)
# The text of a number as databases and pandas write it. With a zero before it, it is a code, such as 0815.
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?", re.ASCII)
# The text of a day or time: nothing else that can be read as one, such as a number, is one.
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[Tt ].+)?", re.ASCII)
# A zone without minutes, which PostgreSQL writes.
_SHORT_ZONE = re.compile(r":\d{2}(?:\.\d+)?[+-]\d{2}\Z", re.ASCII)
# Of most columns, many cells have the same text.
_normal_text = lru_cache(maxsize=4096)(normal_text)
_TRUTHS = {"true": True, "false": False}
# Categories of characters that nobody sees.
_INVISIBLE = ("Cc", "Cf")


class Before(float):
    """Seconds since 1970 until which a time is wanted."""


def read_where(where: Mapping[str, Any], now: float, read: Callable[[str, Any], Any]) -> dict[str, list[Any]]:
    """
    Return the wanted values by what is compared; one of them is enough.

    :param where: a wanted value, age or values by what is compared
    :param now: the time from which ages count, in seconds since 1970
    :param read: reads a value that is no age
    :raises WorkspaceInputError: if an age cannot be read
    """
    wanted: dict[str, list[Any]] = {}
    for path, given in where.items():
        wanted[path] = []
        for value in given if isinstance(given, SEVERAL) else [given]:
            age = _read_age(path, value, now)
            wanted[path].append(read(path, value) if age is None else age)
    return wanted


def _read_age(path: str, value: Any, now: float) -> Before | None:
    """Read an age such as ``{"before": "90d"}``; ``None`` if the wanted value is none."""
    if not isinstance(value, Mapping) or "before" not in value:
        return None
    days = re.fullmatch(r"(\d{1,5})d", str(value["before"]), re.ASCII)
    if days is None or len(value) > 1:
        raise WorkspaceInputError(f"where compares {path} with a wrong age; expected days: {{'before': '90d'}}")
    return Before(now - int(days[1]) * 86_400)


def matches(path: str, value: Any, wanted: Any) -> bool:
    """
    Return whether a value is wanted: case of e-mail addresses does not count, and no time is before any other.

    Nor do blanks around a text, and its Unicode form.

    :param path: what is compared; addresses are at one that ends with ``email``
    :param wanted: a value, an age, or a list of which one is enough
    :raises WorkspaceInputError: if an age is wanted of what is no time
    """
    if isinstance(wanted, SEVERAL):
        return any(matches(path, value, item) for item in wanted)
    if isinstance(wanted, Before):
        when = _moment_of(value)
        if when is None and value is not None:
            raise WorkspaceInputError(f"Compare only times with 'before': {path} is none in a row of the list")
        return when is None or when < wanted
    if isinstance(value, str) and isinstance(wanted, str):
        key = address_key if path.endswith("email") else _normal_text
        return key(value) == key(wanted)
    return bool(value == wanted)


def plain_scalar(cell: Any) -> Any:
    """Return the number, text or time of a scalar of NumPy, as pandas has it; any other cell as it is."""
    if type(cell).__module__ != "numpy" or not hasattr(cell, "item"):
        return cell
    if type(cell).__name__ == "datetime64":  # of nanoseconds, item() is a number
        return cell.astype("datetime64[us]").item()
    return cell.item()


def comparable(cell: Any) -> Any:
    """Return a cell of a row for :func:`is_equal`: a text in NFC, a number, a boolean, a time; ``None`` if empty."""
    if isinstance(cell, str):
        return None if is_empty(cell) else _normal_text(cell)
    value = plain_scalar(cell)
    if isinstance(value, UUID):
        return str(value)
    if is_empty(value) or (isinstance(value, float) and value != value):  # noqa: PLR0124 - pandas' NaN is a missing cell
        return None
    return value


def text_of(cell: object) -> str:
    """Return the text of a cell, or the type of what cannot be written out: long numbers, and what is nested deeply."""
    try:
        return str(cell).strip()
    except (ValueError, RecursionError):
        return type_name(cell)


def without_invisible(text: str) -> str:
    """Return a text without characters that nobody sees."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if unicodedata.category(char) not in _INVISIBLE)


@lru_cache(maxsize=4096)
def skeleton(text: str) -> str:
    """Return a text as people see it: letter case, invisible characters, widths and kinds of hyphens do not count."""
    seen = without_invisible(unicodedata.normalize("NFKC", normal_text(text)))
    letters = ["-" if unicodedata.category(char) == "Pd" else char for char in seen]
    return normal_text("".join(letters)).casefold()


def is_equal(cell: Any, wanted: Any) -> bool:
    """
    Return whether a cell is plainly a wanted value, both as :func:`comparable` returns them.

    Files have texts only, and databases have types of their own: ``true`` is 1 and its text, a number is its text, and
    a day is its midnight. Two texts are equal if they are the same, apart from the letter case of ``true``.
    """
    if cell is None or wanted is None:
        return cell is wanted
    if isinstance(cell, str) and isinstance(wanted, str):
        has_same_truth = truth_of(cell) is not None and cell.lower() == wanted.lower()
        return has_same_truth or cell == wanted
    if _is_boolean(cell) or _is_boolean(wanted):
        truth = truth_of(cell)
        return truth is not None and truth == truth_of(wanted)
    if isinstance(cell, date) or isinstance(wanted, date):
        if not is_time(cell) or not is_time(wanted):
            return False
        return _moment_of(cell) == _moment_of(wanted)
    number = _number_of(cell)
    return number is not None and number == _number_of(wanted)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value.lower() in _TRUTHS)


def truth_of(value: Any) -> bool | None:
    """Return the boolean that a value is: ``true``, its text, or 1; ``None`` if it is none."""
    if isinstance(value, str):
        value = _TRUTHS.get(value.lower(), _number_of(value))
    if not isinstance(value, bool | int | float | Decimal):
        return None
    return bool(value) if value in (0, 1) else None


def is_time(value: Any) -> bool:
    """Return whether a value is a day or a time, or its text."""
    if isinstance(value, date):
        return True
    return isinstance(value, str) and _TIME.fullmatch(value) is not None and _moment_of(value) is not None


def _moment_of(value: Any) -> float | None:
    """Return a time in seconds since 1970, also as PostgreSQL writes it; ``None`` if it is none."""
    if isinstance(value, str) and _SHORT_ZONE.search(value):
        value = f"{value}:00"
    return parse_timestamp(value)


def _number_of(value: Any) -> Any:
    """Return a number, also of its text; ``None`` if it is none."""
    if isinstance(value, float):  # 0.1 as people write it
        return Decimal(str(value))
    if not isinstance(value, str):
        return value
    return Decimal(value) if _NUMBER.fullmatch(value) else None
