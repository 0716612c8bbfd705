"""Parse and check arguments, which may be rendered templates."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from airflow_provider_workspace.errors import WorkspaceInputError, shown, type_name

# What a template renders to if there is no value.
NO_VALUES = ("", "None", "none", "null", "Undefined")
# Fields with a text. The other checked fields end with ``_id`` or ``uuid``.
TEXTS = ("domain", "name", "product", "target_email", "user_email", "variable_key", "workspace_conn_id")
# Fields whose None lifts a limit. Their templates, and those of the fields above, must not render to None.
LIMITS = ("approved", "approvers", "leave_paused", "max_removals", "owner_level", "where")
# One of these is given: the other may render to None.
ALTERNATIVES = ("user_uuid", "user_email")
# More than any id or count, and far below Python's integer string limit.
MAX_NUMBER = 10**100
# What a switch may render to.
SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
# No wait may be longer than a year.
MAX_SECONDS = 366 * 86_400.0
# The year 5138 in seconds since 1970: a larger number is in milliseconds.
MAX_TIME = 1e11


def check_ids(task: Any, names: Iterable[str]) -> None:
    """
    Refuse an id, name, address or product that is invalid, and one of these or a limit that rendered to nothing.

    Otherwise a task that returns nothing would lead to the default organization of the connection, or lift the limit.

    :param names: the templated fields of the task
    :raises WorkspaceInputError: naming the field
    """
    for name in names:
        value = getattr(task, name)
        text = name in TEXTS
        is_id = text or name.endswith(("_id", "uuid"))
        needed = (is_id and name not in ALTERNATIVES) or name in LIMITS
        if value is None and needed and name in task.rendered_to_none:
            raise WorkspaceInputError(f"Check the task that {name} comes from: it returned no value")
        if not is_id:
            continue
        if isinstance(value, str) and value.strip() in NO_VALUES:
            raise WorkspaceInputError(
                f"Check the task that {name} comes from: its template found no value and rendered to '{value}'"
            )
        # Not in names, where the service decides: some replace a tab with a blank.
        if isinstance(value, str) and name != "name" and not value.strip().isprintable():
            raise WorkspaceInputError(f"{name} contains characters that cannot be printed: {value[:40]!a}")
        number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
        if not isinstance(value, str | None) and (text or not (number or isinstance(value, UUID))):
            expected = "a string" if text else "a string or a number"
            raise WorkspaceInputError(f"{name} must be {expected}, not {type_name(value)}")


def parse_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """
    Parse an argument with a fixed set of values.

    :raises WorkspaceInputError: if it has another value
    """
    if isinstance(value, str) and value in choices:
        return value
    raise WorkspaceInputError(f"{name} is {shown(value)}; expected {' or '.join(map(repr, choices))}")


def parse_switches(task: Any) -> None:
    """
    Parse the switches of a task, which templates render to text.

    :raises WorkspaceInputError: if one is neither true nor false
    """
    for name in task.switches:
        value = getattr(task, name)
        word = str(value).strip().lower() if isinstance(value, bool | str) or value in (0, 1) else None
        if word not in SWITCHES:
            raise WorkspaceInputError(f"{name.removeprefix('is_')} must be true or false, not {shown(value)}")
        if value is not SWITCHES[word]:
            setattr(task, name, SWITCHES[word])


def parse_fields(name: str, value: Any, taken: Collection[str] = ()) -> dict[str, Any]:
    """
    Parse an argument with fields by name.

    :param name: the argument, for messages
    :param value: a mapping, or the same as JSON text; ``None`` for no fields
    :param taken: names that are arguments of their own
    :raises WorkspaceInputError: if it is not a mapping, or names one of these
    """
    fields = _read_text(value)
    if fields is None:
        return {}
    if not isinstance(fields, Mapping) or not all(isinstance(key, str) for key in fields):
        raise WorkspaceInputError(
            f"{name} must be a mapping of fields by name, not {type_name(value)}. If it comes from a template, set "
            "render_template_as_native_obj=True on the Dag"
        )
    for key in fields:
        if key in taken:
            raise WorkspaceInputError(f"Pass {key}=…: {name} holds '{key}', which is an argument of its own")
        if key == "self":  # it would collide with the argument of a method
            raise WorkspaceInputError(f"{name} holds 'self', which is not a field of the interface")
    return dict(fields)


def parse_names(name: str, value: Any) -> list[str]:
    """
    Parse an argument with names or ids.

    :param name: the argument, for messages
    :param value: a list of texts, the same as JSON text, or a single text; ``None`` for none
    :raises WorkspaceInputError: if it is none of these, or a template found no value
    """
    names = _read_text(value)
    if names is None:
        return []
    several = isinstance(names, Iterable) and not isinstance(names, Mapping | bytes)
    items = [names] if isinstance(names, str) else names if several else [None]
    listed: list[Any] = [str(item) if isinstance(item, UUID) else item for item in items]
    if not all(isinstance(item, str) for item in listed):
        raise WorkspaceInputError(f"{name} must be a list of texts")
    if any(item.strip() in NO_VALUES for item in listed):
        raise WorkspaceInputError(f"Check the task that {name} comes from: its template found no value")
    return listed


def parse_uuids(name: str, value: Any, what: str) -> list[str]:
    """
    Parse an argument with UUIDs, and return each once.

    :param what: the resources that they identify, for messages
    :raises WorkspaceInputError: if there is none, or one is not a UUID
    """
    given = parse_names(name, value)
    try:
        found = list(dict.fromkeys(str(UUID(text.strip())) for text in given))
    except ValueError:
        found = []
    if not found:
        msg = f"{name} must be a list of {what} (UUID)"
        if any(text.strip()[:1] == "[" for text in given):
            msg += ". Pass task.output of the other task, or set render_template_as_native_obj=True on the Dag"
        raise WorkspaceInputError(msg)
    return found


def parse_integer(name: str, value: Any) -> int:
    """
    Parse an argument with an integer.

    :raises WorkspaceInputError: if it is not an integer
    """
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.isdecimal() and len(text) < 20:
        return int(text)
    if isinstance(text, int) and not isinstance(text, bool) and abs(text) < MAX_NUMBER:
        return text
    raise WorkspaceInputError(f"{name} must be a whole number, not {type_name(value)}")


def parse_maximum(name: str, value: Any) -> int | None:
    """
    Parse an argument with a maximum; ``None`` means no limit, but the text ``None`` is an error.

    :raises WorkspaceInputError: if it is not an integer, or negative
    """
    if value is None:
        return None
    most = parse_integer(name, value)
    if most < 0:
        raise WorkspaceInputError(f"{name} must be at least 0, or None for any number")
    return most


def parse_access_level(name: str, value: Any) -> int | None:
    """
    Parse an argument with an access level, a number or a name; ``None`` if it is not set.

    :raises WorkspaceInputError: if it is neither
    """
    from airflow_provider_workspace.api.levels import parse_level

    try:
        return None if value is None else parse_level(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}; found {shown(value)}") from None


def parse_seconds(name: str, value: Any, *, least: float = 0.0) -> float:
    """
    Parse an argument with a length of time.

    :param value: a timedelta, or a number of seconds, also as text
    :param least: minimum in seconds
    :raises WorkspaceInputError: if it is neither, too short or longer than a year
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else _parse_number(value)
    if least <= seconds <= MAX_SECONDS:
        return seconds
    found = str(value) if isinstance(value, float | timedelta) else shown(value)
    raise WorkspaceInputError(
        f"{name} must be a timedelta or a number of seconds, from {least:g} s to a year, not {found}"
    )


def parse_time(name: str, value: Any) -> float:
    """
    Parse an argument with a time.

    :param value: seconds since 1970, also as text
    :raises WorkspaceInputError: if it is not a time
    """
    seconds = _parse_number(value)
    if 0 <= seconds <= MAX_TIME:
        return seconds
    raise WorkspaceInputError(f"{name} must be a number of seconds since 1970, not {type_name(value)}")


def _parse_number(value: Any) -> float:
    """Parse a number or its text; NaN if it is neither."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def check_task_ids(task: Any, names: Iterable[str]) -> None:
    """
    Refuse invalid ids of tasks and task groups.

    :param names: the fields of the task with such ids; only ``close_task_id`` is required
    :raises WorkspaceInputError: naming the field
    """
    for name in names:
        value = getattr(task, name, "")
        missing = value is None and name != "close_task_id"
        if not missing and not (isinstance(value, str) and value.isprintable()):
            raise WorkspaceInputError(f"{name} must be the id of a task or a task group, not {type_name(value)}")


def _read_text(value: Any) -> Any:
    """Parse the JSON text of a mapping or list, to which a template may render; return any other value as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
