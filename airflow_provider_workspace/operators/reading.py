"""How values of arguments are read; the kind of an argument names its function in :data:`READERS`."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from airflow_provider_workspace.api.ids import MAX_ID_NUMBER, canonical_uuid, check_id
from airflow_provider_workspace.api.templates import NO_VALUES, is_no_value, no_value_error
from airflow_provider_workspace.api.timestamps import parse_time
from airflow_provider_workspace.errors import WorkspaceInputError, shown, type_name

T = TypeVar("T")

# What a switch may render to.
SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
# Half of a character, which neither a request nor a Variable can hold.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# No wait may be longer than a year.
MAX_ARGUMENT_SECONDS = 366 * 86_400.0
# The year 5138 in seconds since 1970: a larger number is in milliseconds.
MAX_TIME = 1e11
# The smallest, of 2001: what is smaller is a day, such as 20261128.
MIN_TIME = 1e9


def read(reader: str, name: str, value: object, choices: tuple[str, ...] = ()) -> Any:
    """
    Check a value, and return it parsed.

    :param reader: key of :data:`READERS`, ``choice`` or ``choices``
    :param name: the argument, for messages
    :raises WorkspaceInputError: if the value is invalid
    """
    if reader == "choice":
        return read_choice(name, value, choices=choices)
    if reader == "choices":
        return read_choices(name, value, choices=choices)
    return READERS[reader](name, value)


def resolve_path(folder: str, value: object) -> object:
    """Resolve a relative path; absolute ones, URLs and other values stay the same."""
    from airflow_provider_workspace.files.storage import is_stored

    if not isinstance(value, str | os.PathLike) or is_stored(value):
        return value
    return os.path.join(folder, value)  # noqa: PTH118 - keeps a trailing slash


def read_unchecked(_name: str, value: T) -> T:
    """Return what something else reads."""
    return value


def read_line(name: str, value: object) -> str:
    """Read a text of one line."""
    text = read_text(name, value)
    # Not in names, where the service decides: some replace a tab with a blank.
    if name != "name" and not text.strip().isprintable():
        raise WorkspaceInputError(f"{name} contains characters that cannot be printed: {text[:40]!a}")
    return text


def read_text(name: str, value: object) -> str:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise WorkspaceInputError(f"{name} must be a string, not {type_name(value)}{_cure(name, value)}")
    return value


def _cure(name: str, value: object) -> str:
    """Return what to do about a text that native rendering has made a number or a boolean of; else nothing."""
    if not isinstance(value, int | float):
        return ""
    return (
        f". If it comes from a template, quote it twice, as in {name}=\"'{{{{ … }}}}'\", or leave out "
        "render_template_as_native_obj=True on the Dag"
    )


def read_switch(name: str, value: object) -> bool:
    """Read a switch as people write it."""
    if isinstance(value, bool | str) or value in (0, 1):
        word = str(value).strip().lower()
        if word in SWITCHES:
            return SWITCHES[word]
    raise WorkspaceInputError(f"{name} must be true or false, not {shown(value)}")


def read_flag(name: str, value: object) -> bool:
    """Refuse what is no boolean."""
    if not isinstance(value, bool):
        raise WorkspaceInputError(f"Set {name} to True or False in the Dag file: it is not templated")
    return value


def read_dry_run(value: object) -> bool:
    """Refuse a dry run that is no boolean, where it decides which tasks there are."""
    return read_flag("dry_run", value)


def read_published(task: object) -> Any:
    """Refuse what ``publish`` of a task group returned if it is no task: its work was done at the wrong time."""
    if hasattr(task, "set_downstream"):
        return task
    raise WorkspaceInputError(
        f"publish must create a task, not return {type_name(task)}: a plain function runs while the Dag file is "
        "parsed, so decorate it with @task"
    )


def read_task_id(name: str, value: object) -> str:
    """Refuse what is no id of a task."""
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise WorkspaceInputError(f"{name} must be the id of a task or a task group, not {shown(value)}")


def read_target(name: str, value: object) -> str:
    """Read a class or function, or its name, and return the name; it is imported when it is needed."""
    qualified_name = getattr(value, "__qualname__", None)
    text = value if qualified_name is None else f"{value.__module__}.{qualified_name}"
    if isinstance(text, str) and re.fullmatch(r"\w+(\.\w+)+", text):
        return text
    raise WorkspaceInputError(
        f"{name} must be a class or function of a module, or its name such as 'my_package.endpoints.ListBatchExports', "
        f"not {shown(text)}"
    )


def read_choice(name: str, value: object, *, choices: Collection[str]) -> str:
    """Refuse what is none of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    expected = " or ".join(map(repr, choices))
    raise WorkspaceInputError(f"{name} is {shown(value)}; expected {expected}{_cure(name, value)}")


def read_choices(name: str, value: object, *, choices: Collection[str]) -> list[str]:
    """Read a list of choices, and refuse an empty one."""
    names = read_names(name, value)
    if not names:
        raise WorkspaceInputError(f"{name} is empty; expected {' or '.join(map(repr, choices))}")
    return [read_choice(name, each, choices=choices) for each in names]


def read_fields(name: str, value: object, *, ids: Collection[str] = ()) -> dict[str, Any]:
    """Read a mapping of fields by name; leave out the fields that have no value, at any depth, except for ``ids``."""
    fields = _read_mapping(name, value, leave_out=True)
    given = _read_json(value)
    for field in ids:
        if field in given and field not in fields:
            raise no_value_error(f"{name}['{field}']", given[field])
    return fields


def read_filter(name: str, value: object) -> dict[str, Any]:
    """Refuse a filter that has no value, since it would select other rows; ``None`` is a value of a row."""
    return _read_mapping(name, value, leave_out=False)


def _read_mapping(name: str, value: object, *, leave_out: bool) -> dict[str, Any]:
    """Read a mapping of fields by name, or its JSON text; for ``leave_out`` see :func:`read_nested`."""
    fields = read_nested(name, _read_json(value), leave_out=leave_out)
    if isinstance(fields, Mapping):
        for key in fields:
            if not isinstance(key, str):
                raise WorkspaceInputError(f"{name}: put the key {key} in quotation marks, as in {{'{key}': …}}")
    else:
        raise WorkspaceInputError(
            f"{name} must be a mapping of fields by name, not {type_name(value)}. If it comes from a template, set "
            "render_template_as_native_obj=True on the Dag"
        )
    if "self" in fields:  # it would collide with the argument of a method
        raise WorkspaceInputError(f"{name} holds 'self', which is not a field of the interface")
    return dict(fields)


def read_rows_argument(name: str, value: object) -> Any:
    """Read the templates in the cells of rows; an address that has no value is an invalid row."""
    from airflow_provider_workspace.procedures.roster_files import rows_of_value

    parsed = _read_json(value)
    if isinstance(parsed, Mapping):  # of which rows=… may name the list
        return parsed
    rows = rows_of_value(value, name)
    read = [_read_row(name, row) for row in rows]
    is_unchanged = rows is value and read == value
    return value if is_unchanged else read  # Airflow looks into each row of an argument that is set


def _read_row(name: str, row: object) -> object:
    if isinstance(row, Mapping):
        empty_row = dict.fromkeys(row)
        return {**empty_row, **read_nested(name, row, leave_out=True)}
    if not isinstance(row, list | tuple):
        return row
    cells = [None if is_no_value(cell) else cell for cell in row]
    with_names = getattr(row, "_make", None)  # of a named tuple
    return cells if with_names is None else with_names(cells)


def read_nested(name: str, value: object, *, leave_out: bool, key: object = None) -> Any:
    """
    Read the templates in mappings and lists.

    :param leave_out: whether an entry of a mapping that has no value is left out; otherwise the word "None" is refused.
        An item of a list is not left out
    :param key: the key of the innermost mapping that holds the value
    """
    if isinstance(value, Mapping):
        entries: dict[Any, Any] = {}
        for entry_key, entry in value.items():
            if leave_out and is_no_value(entry):
                continue
            if isinstance(entry_key, str) and LONE_SURROGATE.search(entry_key):
                raise WorkspaceInputError(f"{name} must have names that can be printed, not {shown(entry_key)}")
            entries[entry_key] = read_nested(name, entry, leave_out=leave_out, key=entry_key)
        return entries
    if isinstance(value, list | tuple | set):
        return [read_nested(name, item, leave_out=leave_out, key=key) for item in value]
    if is_no_value(value) and (leave_out or value is not None):
        place = name if key is None else f"{name}[{shown(key)}]"
        raise no_value_error(place, value)
    return value


def read_names(name: str, value: object) -> list[str]:
    """Read a list of texts, the same as JSON text, or a single text."""
    parsed = _read_json(value)
    is_list = isinstance(parsed, Iterable) and not isinstance(parsed, Mapping | bytes | str)
    names: list[str] = []
    others: list[object] = []
    for item in parsed if is_list else [parsed]:
        if isinstance(item, str | UUID):
            names.append(str(item))
        else:
            others.append(item)
    if others:
        number = next((item for item in others if isinstance(item, int | float)), None)
        raise WorkspaceInputError(f"{name} must be a list of texts{_cure(name, number)}")
    for text in names:
        if is_no_value(text, NO_VALUES):
            raise no_value_error(name, text)
    return names


def read_users(name: str, value: object) -> list[str]:
    """Read the ids of Airflow users; an empty list would let everybody answer."""
    users = [user.strip() for user in read_names(name, value)]
    if users:
        return users
    raise WorkspaceInputError(
        f"{name} is empty: name at least one Airflow user by id. If a template should find them, correct what it reads"
    )


def read_protected(name: str, value: object) -> Any:
    """Read the rows of protected people; the Dag file may say that there are none, a template may not."""
    rows = read_rows_argument(name, value)
    if isinstance(value, str) and not rows:
        raise WorkspaceInputError(
            f"{name} is empty: its template found nobody, so nobody would be protected. Correct what it reads, or "
            f"write {name}=[] in the Dag file"
        )
    return rows


def read_columns(name: str, value: object) -> Any:
    """Read names of columns: a list, or a mapping; ``None`` leaves a column out."""
    columns = _read_json(value)
    if isinstance(columns, Mapping):
        return _read_mapping(name, columns, leave_out=False)
    if not isinstance(columns, list | tuple):
        return read_names(name, columns)
    return [None if column is None else read_names(name, [column])[0] for column in columns]


def read_exports(name: str, value: object, *, at_least: int) -> list[str]:
    """Read the ids of batch exports, and return each once."""
    names = read_names(name, value)
    try:
        ids = list(dict.fromkeys(map(canonical_uuid, names)))
    except ValueError:
        ids = []
    if ids or not (names or at_least):
        return ids
    msg = f"{name} must be a list of batch exports (UUID)"
    if any(text.strip()[:1] == "[" for text in names):
        msg += ". Pass task.output of the other task, or set render_template_as_native_obj=True on the Dag"
    raise WorkspaceInputError(msg)


def read_dashboards(name: str, value: object) -> list[dict[str, Any]]:
    """Read dashboards: ids, or mappings with ``dashboard_id`` and perhaps ``project_id``."""
    parsed = _read_json(value)
    dashboards: list[dict[str, Any]] = []
    for item in parsed if isinstance(parsed, list | tuple) else [parsed]:
        fields = item if isinstance(item, Mapping) else {"dashboard_id": item}
        if "dashboard_id" not in fields or not fields.keys() <= {"dashboard_id", "project_id"}:
            raise WorkspaceInputError(f"{name} must be ids, or mappings with dashboard_id and project_id")
        dashboards.append({field: check_id(f"{name}: {field}", id_) for field, id_ in fields.items()})
    return dashboards


def read_integer(name: str, value: object) -> int:
    """Read a whole number."""
    if isinstance(value, str):
        text = value.strip()
        if text.isdecimal() and len(text) < 20:
            return int(text)
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_ID_NUMBER:
        return value
    raise WorkspaceInputError(f"{name} must be a whole number, not {type_name(value)}")


def read_maximum(name: str, value: object) -> Any:
    """Refuse what is no limit of removals."""
    from airflow_provider_workspace.procedures.plan import checked_limit

    return _read_by(checked_limit, name, value)


def read_maximum_or_ask(name: str, value: object) -> Any:
    """Refuse what is no limit of removals, and does not say to ask."""
    from airflow_provider_workspace.procedures.plan import checked_limit_or_ask

    return _read_by(checked_limit_or_ask, name, value)


def read_level(name: str, value: object) -> int:
    """Read an access level, a number or a name."""
    from airflow_provider_workspace.api.levels import parse_level

    return _read_by(parse_level, name, value)


def read_until(name: str, value: object) -> str:
    """Read an end of access."""
    from airflow_provider_workspace.procedures.until import parse_until

    try:
        return parse_until(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}") from None


def _read_by(parse: Callable[[object], T], name: str, value: object) -> T:
    try:
        return parse(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}; found {shown(value)}") from None


def read_seconds(name: str, value: object, *, least: float = 0.0, years: int = 1) -> float:
    """
    Read a length of time.

    :param value: a timedelta, or a number of seconds, also as text
    :param least: minimum in seconds
    :param years: maximum in years
    :raises WorkspaceInputError: if it is neither, too short or too long
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else _read_number(value)
    if least <= seconds <= years * MAX_ARGUMENT_SECONDS:
        return seconds
    longest = "a year" if years == 1 else f"{years} years"
    found = str(value) if isinstance(value, float | timedelta) else shown(value)
    raise WorkspaceInputError(
        f"{name} must be a timedelta or a number of seconds, such as 14400 for 4 hours, from {least:g} s to {longest}, "
        f"not {found}"
    )


def read_time(name: str, value: object) -> float:
    """Read a time in seconds since 1970."""
    seconds = _read_number(value)
    if MIN_TIME <= seconds <= MAX_TIME:
        return seconds
    if 0 <= seconds < MIN_TIME:
        raise _day_error(name, "2026-11-28")
    raise WorkspaceInputError(f"{name} must be a number of seconds since 1970, not {type_name(value)}")


def read_moment(name: str, value: object) -> float:
    """Read a time with its zone, a datetime or text, or seconds since 1970; return the seconds."""
    from airflow_provider_workspace.procedures.until import parse_until

    if isinstance(value, int | float) or (isinstance(value, str) and value.replace(".", "", 1).isdecimal()):
        return read_time(name, value)
    try:
        text = parse_until(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}") from None
    if "T" not in text:
        raise _day_error(name, text)
    return parse_time(text)


def _day_error(name: str, day: str) -> WorkspaceInputError:
    return WorkspaceInputError(f"{name} must be a time with its zone, such as {day}T00:00:00Z, and not a day")


def _read_number(value: object) -> float:
    """Read a number or its text; NaN if it is neither."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _read_json(value: object) -> Any:
    """Parse the JSON text of a mapping or list, to which a template may render; return any other value as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


READERS: Mapping[str, Callable[[str, object], Any]] = {
    "unchecked": read_unchecked,
    "id": check_id,
    "line": read_line,
    "text": read_text,
    "switch": read_switch,
    "flag": read_flag,
    "integer": read_integer,
    "seconds": read_seconds,
    "seconds_from_one": partial(read_seconds, least=1.0),
    "years": partial(read_seconds, least=1.0, years=10),
    "time": read_time,
    "moment": read_moment,
    "until": read_until,
    "maximum": read_maximum,
    "maximum_or_ask": read_maximum_or_ask,
    "level": read_level,
    "names": read_names,
    "users": read_users,
    "exports": partial(read_exports, at_least=1),
    "exports_or_none": partial(read_exports, at_least=0),
    "dashboards": read_dashboards,
    "rows": read_rows_argument,
    "protected": read_protected,
    "columns": read_columns,
    "filter": read_filter,
    "items": partial(read_nested, leave_out=True),
    "fields": read_fields,
    "endpoint_fields": partial(read_fields, ids=("organization_id", "project_id")),
    "content": partial(read_nested, leave_out=False),
    "target": read_target,
    "task_id": read_task_id,
}
"""How the kinds of ``operators.arguments`` check a value and return it parsed: functions of its name and the value."""
