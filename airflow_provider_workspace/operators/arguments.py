"""Arguments that hold several values, as authors and templates deliver them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from airflow_provider_workspace.errors import WorkspaceInputError

# What a template leaves where there was no value.
NO_VALUES = ("", "None", "none", "null", "Undefined")
# Fields that hold a text; all others that are checked end in ``_id`` or ``uuid``.
TEXTS = ("domain", "name", "product", "target_email", "user_email", "variable_key", "workspace_conn_id")
# Far below Python's integer string limit; an id or a count has fewer digits.
MAX_NUMBER = 10**100
# What a switch may be rendered to.
SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
# Nothing that is waited for takes longer than a year.
MAX_SECONDS = 366 * 86_400.0
# Seconds since 1970 in the year 5138: what is later is no time, but milliseconds.
MAX_TIME = 1e11


def check_ids(task: Any, names: Iterable[str]) -> None:
    """
    Refuse an id, name, address or product whose template found nothing, and what can be none of these.

    :param names: the fields of the task that are templates
    :raises WorkspaceInputError: naming the field
    """
    for name in names:
        value = getattr(task, name)
        text = name in TEXTS
        if not (text or name.endswith(("_id", "uuid"))):
            continue
        if isinstance(value, str) and value.strip() in NO_VALUES:
            msg = f"Check the task that {name} comes from: its template found no value and was rendered to '{value}'"
            raise WorkspaceInputError(msg)
        # In a name the service decides what may stand: some turn a tab into a blank.
        if isinstance(value, str) and name != "name" and not value.strip().isprintable():
            msg = f"{name} holds characters that cannot be printed: {value[:40]!a}"
            raise WorkspaceInputError(msg)
        number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
        if not isinstance(value, str | None) and (text or not (number or isinstance(value, UUID))):
            expected = "a string" if text else "a string or a number"
            msg = f"{name} must be {expected}, not {type_name(value)}"
            raise WorkspaceInputError(msg)


def parse_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """
    Read an argument that is one of some words.

    :raises WorkspaceInputError: if it is none of them
    """
    if isinstance(value, str) and value in choices:
        return value
    shown = repr(value[:40]) if isinstance(value, str) else type_name(value)
    msg = f"{name} is {shown}; expected {' or '.join(map(repr, choices))}"
    raise WorkspaceInputError(msg)


def parse_switches(task: Any) -> None:
    """
    Read the switches of a task, which templates leave as text.

    :raises WorkspaceInputError: naming the one that is neither true nor false
    """
    for name in task.switches:
        value = getattr(task, name)
        word = str(value).strip().lower() if isinstance(value, bool | str) or value in (0, 1) else None
        if word not in SWITCHES:
            shown = repr(value[:40]) if isinstance(value, str) else type_name(value)
            msg = f"{name.removeprefix('is_')} must be true or false, not {shown}"
            raise WorkspaceInputError(msg)
        if value is not SWITCHES[word]:
            setattr(task, name, SWITCHES[word])


def type_name(value: Any) -> str:
    """Say what kind of value this is: its text may be endless, or a secret."""
    return f"something of type {type(value).__name__}"


def parse_fields(name: str, value: Any, taken: Collection[str] = ()) -> dict[str, Any]:
    """
    Read an argument that holds fields by name.

    :param name: the argument, for messages
    :param value: a mapping, or the same as JSON text; ``None`` for no fields
    :param taken: names that are arguments of their own
    :raises WorkspaceInputError: if it is no such mapping
    """
    fields = _read_text(value)
    if fields is None:
        return {}
    if not isinstance(fields, Mapping) or not all(isinstance(key, str) for key in fields):
        msg = (
            f"{name} must be a mapping of fields by name, not {type_name(value)}. If it comes from a template, set "
            "render_template_as_native_obj=True on the Dag"
        )
        raise WorkspaceInputError(msg)
    for key in fields:
        if key in taken:
            msg = f"{name} holds '{key}', which is an argument of its own: pass {key}=…"
            raise WorkspaceInputError(msg)
        if key == "self":  # the one name that Python itself would stumble over
            msg = f"{name} holds 'self', which no resource of the interface has"
            raise WorkspaceInputError(msg)
    return dict(fields)


def parse_names(name: str, value: Any) -> list[str]:
    """
    Read an argument that holds names or ids.

    :param name: the argument, for messages
    :param value: a list of texts, the same as JSON text, or a single text; ``None`` for none
    :raises WorkspaceInputError: if it is nothing of that kind
    """
    names = _read_text(value)
    if names is None:
        return []
    if isinstance(names, str):
        return [names]
    several = isinstance(names, Iterable) and not isinstance(names, Mapping | bytes)
    listed: list[Any] = [str(item) if isinstance(item, UUID) else item for item in names] if several else []
    if not several or not all(isinstance(item, str) for item in listed):
        msg = f"{name} must be a list of names, and is or holds something else"
        raise WorkspaceInputError(msg)
    return listed


def parse_uuids(name: str, value: Any, what: str) -> list[str]:
    """
    Read an argument that holds UUIDs, and return each once.

    :param what: what they are, for messages
    :raises WorkspaceInputError: if there is none, or one is no UUID
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
    Read an argument that holds a whole number.

    :raises WorkspaceInputError: if it is none
    """
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.isdecimal() and len(text) < 20:
        return int(text)
    if isinstance(text, int) and not isinstance(text, bool) and abs(text) < MAX_NUMBER:
        return text
    msg = f"{name} must be a whole number, not {type_name(value)}"
    raise WorkspaceInputError(msg)


def parse_maximum(name: str, value: Any) -> int | None:
    """
    Read an argument that limits a number of things; ``None`` is no limit, but the text ``None`` is an error.

    :raises WorkspaceInputError: if it is no whole number, or below zero
    """
    if value is None:
        return None
    most = parse_integer(name, value)
    if most < 0:
        msg = f"{name} must be at least 0, or None for any number"
        raise WorkspaceInputError(msg)
    return most


def parse_access_level(name: str, value: Any) -> int | None:
    """
    Read an argument that is an access level, as a number or by name; ``None`` if there is none.

    :raises WorkspaceInputError: if it is neither
    """
    from airflow_provider_workspace.api.levels import parse_level

    try:
        return None if value is None else parse_level(value)
    except ValueError as error:
        shown = repr(value[:40]) if isinstance(value, str) else type_name(value)
        msg = f"{name}: {error}; found {shown}"
        raise WorkspaceInputError(msg) from None


def parse_seconds(name: str, value: Any, *, least: float = 0.0) -> float:
    """
    Read an argument that holds a length of time.

    :param value: a timedelta, a number of seconds, or the text of one, as a template leaves it
    :param least: seconds that are too few if there are fewer
    :raises WorkspaceInputError: if it is none, or longer than a year
    """
    seconds = math.nan
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except (ValueError, OverflowError):
            seconds = math.nan
    if least <= seconds <= MAX_SECONDS:
        return seconds
    shown = repr(value[:40]) if isinstance(value, str) else str(value) if isinstance(value, float | timedelta) else ""
    msg = (
        f"{name} must be a timedelta or a number of seconds, from {least:g} s to a year, not "
        f"{shown or type_name(value)}"
    )
    raise WorkspaceInputError(msg)


def parse_time(name: str, value: Any) -> float:
    """
    Read an argument that is a moment.

    :param value: seconds since 1970, or the text of them, as a template leaves it
    :raises WorkspaceInputError: if it is none
    """
    seconds = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except (ValueError, OverflowError):
            seconds = math.nan
    if 0 <= seconds <= MAX_TIME:
        return seconds
    msg = f"{name} must be a number of seconds since 1970, not {type_name(value)}"
    raise WorkspaceInputError(msg)


def check_task_ids(task: Any, names: Iterable[str]) -> None:
    """
    Refuse what cannot be the id of a task or of a task group.

    :param names: the fields of the task that are ids; only ``close_task_id`` must be there
    :raises WorkspaceInputError: naming the field
    """
    for name in names:
        value = getattr(task, name, "")
        missing = value is None and name != "close_task_id"
        if not missing and not (isinstance(value, str) and value.isprintable()):
            msg = f"{name} must be the id of a task or a task group, not {type_name(value)}"
            raise WorkspaceInputError(msg)


def _read_text(value: Any) -> Any:
    """Read JSON text of a mapping or list, which a template that is not rendered natively leaves; else the value."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
