"""Parse and check arguments, which may be rendered templates."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from airflow_provider_workspace.api.operation import NO_VALUES, is_no_value, no_value_error
from airflow_provider_workspace.errors import WorkspaceInputError, shown, type_name

# More than any id or count, and far below Python's integer string limit.
MAX_NUMBER = 10**100
# What a switch may render to.
SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
# No wait may be longer than a year.
MAX_SECONDS = 366 * 86_400.0
# The year 5138 in seconds since 1970: a larger number is in milliseconds.
MAX_TIME = 1e11


@dataclass(frozen=True)
class Kind:
    """
    The kind of an argument: how its rendered value is read, and what follows if its template found no value.

    :param read: checks a value and returns it parsed; its first argument is the name, for messages
    :param needed: whether an argument that was given must have a value. Otherwise it is as if it was not given
    :param words: texts that are no value
    """

    read: Callable[[str, Any], Any] = lambda _, value: value
    needed: bool = True
    words: tuple[str, ...] = NO_VALUES


def read_arguments(task: Any, folder: str = "") -> None:
    """
    Read the templated arguments of an operator or sensor, before anything else does.

    :param task: arguments that are not in :data:`KINDS`, such as those of a subclass, are left as they are
    :param folder: the folder of the Dag file, for relative paths of files
    :raises WorkspaceInputError: naming the argument that is invalid, or has no value and needs one
    """
    left_out = []
    for name in task.template_fields:
        kind = SWITCH if name in task.switches else KINDS.get(name)
        value = getattr(task, name)
        not_given = value is None and kind is not SWITCH and name not in task.rendered_to_none
        if kind is None or not_given:
            continue
        if kind in (FILTER, CONTENT) and name in task.rendered_to_none:
            raise no_value_error(name)
        if not is_no_value(value, kind.words):
            try:
                read = kind.read(name, value)
                if name in PATHS:
                    read = _read_path(folder, read)
                if read is not value:
                    setattr(task, name, read)
            except RecursionError:
                raise WorkspaceInputError(f"{name} is nested too deeply") from None
        elif kind.needed:
            raise no_value_error(name.removeprefix("is_"), value)
        else:
            left_out.append(name)
            setattr(task, name, None)
    if left_out:
        task.log.info("As if not given, because there is no value: %s.", ", ".join(left_out))


def _read_text_of_one_line(name: str, value: Any, expected: str = "a string") -> str:
    if not isinstance(value, str):
        raise WorkspaceInputError(f"{name} must be {expected}, not {type_name(value)}")
    # Not in names, where the service decides: some replace a tab with a blank.
    if name != "name" and not value.strip().isprintable():
        raise WorkspaceInputError(f"{name} contains characters that cannot be printed: {value[:40]!a}")
    return value


def _read_id(name: str, value: Any) -> Any:
    number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
    return value if number or isinstance(value, UUID) else _read_text_of_one_line(name, value, "a string or a number")


def _read_switch(name: str, value: Any) -> bool:
    word = str(value).strip().lower() if isinstance(value, bool | str) or value in (0, 1) else None
    if word not in SWITCHES:
        raise WorkspaceInputError(f"{name.removeprefix('is_')} must be true or false, not {shown(value)}")
    return SWITCHES[word]


def _read_fields(name: str, value: Any) -> Any:
    """Leave out the fields that have no value, at any depth."""
    return _read_nested(name, _read_json(value), leave_out=True)


def _read_filter(name: str, value: Any) -> Any:
    """Refuse a filter that has no value, since it would select other rows; ``None`` is a value of a row."""
    return _read_nested(name, _read_json(value), leave_out=False)


def _read_rows(name: str, value: Any) -> Any:
    """Leave out the fields of rows that have no value; an address that has none is an invalid row."""
    from airflow_provider_workspace.procedures.roster_files import rows_of_value

    rows = rows_of_value(value, name)
    read = [_read_nested(name, row, leave_out=True) if isinstance(row, Mapping) else row for row in rows]
    return value if read == value else read  # Airflow looks into each row of an argument that is set


def _read_nested(name: str, value: Any, *, leave_out: bool, key: Any = None) -> Any:
    """
    Read the templates in mappings and lists.

    :param leave_out: whether an entry of a mapping that has no value is left out; otherwise the word "None" is refused.
        An item of a list is not left out
    :param key: the key of the innermost mapping that holds the value
    """
    if isinstance(value, Mapping):
        return {
            key: _read_nested(name, below, leave_out=leave_out, key=key)
            for key, below in value.items()
            if not (leave_out and is_no_value(below))
        }
    if isinstance(value, list | tuple | set):
        return [_read_nested(name, item, leave_out=leave_out, key=key) for item in value]
    if is_no_value(value) and (leave_out or value is not None):
        raise no_value_error(name if key is None else f"{name}[{shown(key)}]", value)
    return value


ID, NAME, SWITCH = Kind(_read_id), Kind(_read_text_of_one_line), Kind(_read_switch)
# An empty text is a value, such as that of a description.
TEXT = Kind(needed=False, words=("None",))
# Another field of a request, a file, or one of two arguments.
OPTIONAL = Kind(needed=False)
# Lists, mappings, and what they hold.
ITEMS = Kind(partial(_read_nested, leave_out=True), needed=False)
FIELDS = Kind(_read_fields, needed=False)
ROWS = Kind(_read_rows)
FILTER, CONTENT = Kind(_read_filter), Kind(partial(_read_nested, leave_out=False))
# A limit, a time, a choice or a list of names: its default would be another order.
NEEDED = Kind()
# The templated arguments of all operators and sensors, except for their switches.
KINDS = {
    **dict.fromkeys(("batch_export_id", "dashboard_id", "domain_id", "invite_id"), ID),
    **dict.fromkeys(("organization_id", "project_id"), ID),
    **dict.fromkeys(("domain", "name", "product", "target_email", "variable_key", "workspace_conn_id"), NAME),
    "user_uuid": replace(ID, needed=False),
    "user_email": replace(NAME, needed=False),
    **dict.fromkeys(("description", "first_name", "message", "product_description", "timezone"), TEXT),
    **dict.fromkeys(("saml_acs_url", "saml_entity_id", "saml_x509_cert", "sso_enforcement", "use_template"), TEXT),
    **dict.fromkeys(("access_control", "anonymize_ips", "combine_pending_invites", "delete_insights"), OPTIONAL),
    **dict.fromkeys(("deleted", "is_demo", "jit_provisioning_enabled", "pinned", "send_email"), OPTIONAL),
    **dict.fromkeys(("level", "restriction_level", "use_dashboard"), OPTIONAL),
    **dict.fromkeys(("organization", "path", "report_path"), OPTIONAL),
    **dict.fromkeys(("app_urls", "private_project_access", "tags"), ITEMS),
    **dict.fromkeys(("body", "defaults", "resume_fields", "settings"), FIELDS),
    **dict.fromkeys(("invites", "leavers", "protected", "roster"), ROWS),
    "where": FILTER,
    "file": CONTENT,
    **dict.fromkeys(("approved", "max_removals", "owner_level"), NEEDED),
    **dict.fromkeys(("approval_timeout", "drain", "hold", "length", "max_length", "opened_at"), NEEDED),
    **dict.fromkeys(("approvers", "batch_export_ids", "emails", "fields", "leave_paused", "set_null"), NEEDED),
    **dict.fromkeys(("join", "part"), NEEDED),
}
# The arguments that may be the path of a file.
PATHS = ("file", "path", "report_path")


def parse_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """
    Parse an argument with a fixed set of values.

    :raises WorkspaceInputError: if it has another value
    """
    if isinstance(value, str) and value in choices:
        return value
    raise WorkspaceInputError(f"{name} is {shown(value)}; expected {' or '.join(map(repr, choices))}")


def _read_path(folder: str, value: Any) -> Any:
    """Resolve a relative path; absolute ones, URLs and other values stay the same."""
    from airflow_provider_workspace.hooks.files import is_stored

    stays = not isinstance(value, str | os.PathLike) or is_stored(value)
    return value if stays else os.path.join(folder, value)  # noqa: PTH118 - keeps a trailing slash


def parse_fields(name: str, value: Any, taken: Collection[str] = ()) -> dict[str, Any]:
    """
    Parse an argument with fields by name.

    :param name: the argument, for messages
    :param value: a mapping, or the same as JSON text; ``None`` for no fields
    :param taken: names that are arguments of their own
    :raises WorkspaceInputError: if it is not a mapping, or names one of these
    """
    fields = _read_json(value)
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
    names = _read_json(value)
    if names is None:
        return []
    several = isinstance(names, Iterable) and not isinstance(names, Mapping | bytes)
    items = [names] if isinstance(names, str) else names if several else [None]
    listed: list[Any] = [str(item) if isinstance(item, UUID) else item for item in items]
    if not all(isinstance(item, str) for item in listed):
        raise WorkspaceInputError(f"{name} must be a list of texts")
    for item in listed:
        if is_no_value(item, NO_VALUES):
            raise no_value_error(name, item)
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
    Parse an argument with a maximum; ``None`` means no limit.

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


def _read_json(value: Any) -> Any:
    """Parse the JSON text of a mapping or list, to which a template may render; return any other value as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
