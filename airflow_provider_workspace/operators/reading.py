"""How rendered values of arguments are read; the kind of each names one of these functions."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from airflow_provider_workspace.api.ids import MAX_NUMBER, canonical_uuid, check_id
from airflow_provider_workspace.api.templates import NO_VALUES, is_no_value, no_value_error
from airflow_provider_workspace.errors import WorkspaceInputError, shown, type_name

# What a switch may render to.
SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
# No wait may be longer than a year.
MAX_SECONDS = 366 * 86_400.0
# The year 5138 in seconds since 1970: a larger number is in milliseconds.
MAX_TIME = 1e11


def read_arguments(task: Any, folder: str = "") -> None:
    """
    Read the templated arguments of an operator or sensor, before anything else does.

    :param task: template fields that are not declared, such as those of a subclass, are left as they are
    :param folder: the folder of the Dag file, for relative paths of files
    :raises WorkspaceInputError: naming the argument that is invalid, or has no value and needs one
    """
    left_out, mapped = [], _mapped_to_none(task)
    for name, each in task.declared.items():
        if not each.templated:
            continue
        attribute, kind = each.attribute, each.kind
        value = getattr(task, attribute)
        # Then None is what the Dag file says.
        if value is None and attribute not in task.rendered_to_none and name not in mapped:
            if kind.none or each.default is None:
                continue
            if each.default == ():
                value = []
                setattr(task, attribute, value)
        if kind.whole and attribute in task.rendered_to_none:
            raise no_value_error(name)
        if not is_no_value(value, kind.words or NO_VALUES):
            try:
                parsed = read(kind, name, value)
            except RecursionError:
                raise WorkspaceInputError(f"{name} is nested too deeply") from None
            if kind.is_path:
                parsed = _read_path(folder, parsed)
            if parsed is not value:
                setattr(task, attribute, parsed)
        elif kind.needed:
            raise no_value_error(name, value)
        else:
            left_out.append(name)
            setattr(task, attribute, None)
    if left_out:
        task.log.info("As if not given, because there is no value: %s.", ", ".join(left_out))


def read(kind: Any, name: str, value: Any) -> Any:
    """Read a value; see :meth:`Kind.read`."""
    return globals()[f"read_{kind.reader}"](name, value, **kind.options) if kind.reader else value


def _mapped_to_none(task: Any) -> list[str]:
    """Return the arguments for which the XCom over which a task is mapped has no value."""
    origin = task.dag.get_task(task.task_id) if task.has_dag() else task
    if not hasattr(origin, "partial_kwargs") or not any(origin.iter_mapped_dependencies()):
        return []
    return [name for name in task.given_as_none if name not in {**task.dag.default_args, **origin.partial_kwargs}]


def _read_path(folder: str, value: Any) -> Any:
    """Resolve a relative path; absolute ones, URLs and other values stay the same."""
    from airflow_provider_workspace.files.storage import is_stored

    stays = not isinstance(value, str | os.PathLike) or is_stored(value)
    return value if stays else os.path.join(folder, value)  # noqa: PTH118 - keeps a trailing slash


def read_text(name: str, value: Any) -> str:
    """Read a text of one line."""
    text = read_string(name, value)
    # Not in names, where the service decides: some replace a tab with a blank.
    if name != "name" and not text.strip().isprintable():
        raise WorkspaceInputError(f"{name} contains characters that cannot be printed: {text[:40]!a}")
    return text


def read_string(name: str, value: Any) -> str:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise WorkspaceInputError(f"{name} must be a string, not {type_name(value)}{_cure(name, value)}")
    return value


def _cure(name: str, value: Any) -> str:
    """Return what to do about a text that native rendering has made a number or a boolean of; else nothing."""
    if not isinstance(value, int | float):
        return ""
    return (
        f". If it comes from a template, quote it twice, as in {name}=\"'{{{{ … }}}}'\", or leave out "
        "render_template_as_native_obj=True on the Dag"
    )


read_id = check_id


def read_switch(name: str, value: Any) -> bool:
    """Read a switch as people write it."""
    word = str(value).strip().lower() if isinstance(value, bool | str) or value in (0, 1) else None
    if word not in SWITCHES:
        raise WorkspaceInputError(f"{name} must be true or false, not {shown(value)}")
    return SWITCHES[word]


def read_flag(name: str, value: Any) -> bool:
    """Refuse what is no boolean."""
    if not isinstance(value, bool):
        raise WorkspaceInputError(f"Set {name} to True or False in the Dag file: it is not templated")
    return value


def read_task_id(name: str, value: Any) -> str:
    """Refuse what is no id of a task."""
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise WorkspaceInputError(f"{name} must be the id of a task or a task group, not {shown(value)}")


def read_target(name: str, value: Any) -> str:
    """Read a class or function, or its name, and return the name; it is imported when it is needed."""
    text = f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else value
    if isinstance(text, str) and re.fullmatch(r"\w+(\.\w+)+", text):
        return text
    raise WorkspaceInputError(
        f"{name} must be a class or function of a module, or its name such as 'my_package.endpoints.ListBatchExports', "
        f"not {shown(text)}"
    )


def read_choice(name: str, value: Any, *, choices: Collection[str]) -> str:
    """Refuse what is none of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    expected = " or ".join(map(repr, choices))
    raise WorkspaceInputError(f"{name} is {shown(value)}; expected {expected}{_cure(name, value)}")


def read_choices(name: str, value: Any, *, choices: Collection[str]) -> list[str]:
    """Read a list of choices, and refuse an empty one."""
    names = read_names(name, value)
    if not names:
        raise WorkspaceInputError(f"{name} is empty; expected {' or '.join(map(repr, choices))}")
    return [read_choice(name, each, choices=choices) for each in names]


def read_fields(name: str, value: Any, *, ids: Collection[str] = ()) -> dict[str, Any]:
    """Read a mapping of fields by name; leave out the fields that have no value, at any depth, except for ``ids``."""
    fields = _read_mapping(name, value, leave_out=True)
    given = _read_json(value)
    for each in [each for each in ids if each in given and each not in fields]:
        raise no_value_error(f"{name}['{each}']", given[each])
    return fields


def read_filter(name: str, value: Any) -> dict[str, Any]:
    """Refuse a filter that has no value, since it would select other rows; ``None`` is a value of a row."""
    return _read_mapping(name, value, leave_out=False)


def _read_mapping(name: str, value: Any, *, leave_out: bool) -> dict[str, Any]:
    fields = read_nested(name, _read_json(value), leave_out=leave_out)
    if not isinstance(fields, Mapping) or not all(isinstance(key, str) for key in fields):
        raise WorkspaceInputError(
            f"{name} must be a mapping of fields by name, not {type_name(value)}. If it comes from a template, set "
            "render_template_as_native_obj=True on the Dag"
        )
    if "self" in fields:  # it would collide with the argument of a method
        raise WorkspaceInputError(f"{name} holds 'self', which is not a field of the interface")
    return dict(fields)


def read_rows(name: str, value: Any) -> Any:
    """Read the templates in the cells of rows; an address that has no value is an invalid row."""
    from airflow_provider_workspace.procedures.roster_files import rows_of_value

    rows = rows_of_value(value, name)
    read = [_read_row(name, row) for row in rows]
    return value if rows is value and read == value else read  # Airflow looks into each row of an argument that is set


def _read_row(name: str, row: Any) -> Any:
    if isinstance(row, Mapping):
        return {**dict.fromkeys(row), **read_nested(name, row, leave_out=True)}
    if not isinstance(row, list | tuple):
        return row
    cells = [None if is_no_value(cell) else cell for cell in row]
    with_names = getattr(row, "_make", None)  # of a named tuple
    return cells if with_names is None else with_names(cells)


def read_nested(name: str, value: Any, *, leave_out: bool, key: Any = None) -> Any:
    """
    Read the templates in mappings and lists.

    :param leave_out: whether an entry of a mapping that has no value is left out; otherwise the word "None" is refused.
        An item of a list is not left out
    :param key: the key of the innermost mapping that holds the value
    """
    if isinstance(value, Mapping):
        return {
            key: read_nested(name, below, leave_out=leave_out, key=key)
            for key, below in value.items()
            if not (leave_out and is_no_value(below))
        }
    if isinstance(value, list | tuple | set):
        return [read_nested(name, item, leave_out=leave_out, key=key) for item in value]
    if is_no_value(value) and (leave_out or value is not None):
        raise no_value_error(name if key is None else f"{name}[{shown(key)}]", value)
    return value


def read_names(name: str, value: Any) -> list[str]:
    """Read a list of texts, the same as JSON text, or a single text."""
    names = _read_json(value)
    several = isinstance(names, Iterable) and not isinstance(names, Mapping | bytes)
    items = names if several and not isinstance(names, str) else [names]
    listed: list[Any] = [str(item) if isinstance(item, UUID) else item for item in items]
    number = next((item for item in listed if isinstance(item, int | float)), None)
    if not all(isinstance(item, str) for item in listed):
        raise WorkspaceInputError(f"{name} must be a list of texts{_cure(name, number)}")
    for item in listed:
        if is_no_value(item, NO_VALUES):
            raise no_value_error(name, item)
    return listed


def read_columns(name: str, value: Any) -> Any:
    """Read names of columns: a list, or a mapping; ``None`` leaves a column out."""
    columns = _read_json(value)
    if isinstance(columns, Mapping):
        return _read_mapping(name, columns, leave_out=False)
    if not isinstance(columns, list | tuple):
        return read_names(name, columns)
    return [None if column is None else read_names(name, [column])[0] for column in columns]


def read_exports(name: str, value: Any, *, at_least: int) -> list[str]:
    """Read the ids of batch exports, and return each once."""
    given = read_names(name, value)
    try:
        found = list(dict.fromkeys(map(canonical_uuid, given)))
    except ValueError:
        found = []
    if not found and (at_least or given):
        msg = f"{name} must be a list of batch exports (UUID)"
        if any(text.strip()[:1] == "[" for text in given):
            msg += ". Pass task.output of the other task, or set render_template_as_native_obj=True on the Dag"
        raise WorkspaceInputError(msg)
    return found


def read_dashboards(name: str, value: Any) -> list[dict[str, Any]]:
    """Read dashboards: ids, or mappings with ``dashboard_id`` and perhaps ``project_id``."""
    given = _read_json(value)
    several = given if isinstance(given, list | tuple) else [given]
    rows = [dict(one) if isinstance(one, Mapping) else {"dashboard_id": one} for one in several]
    for row in rows:
        if "dashboard_id" not in row or not row.keys() <= {"dashboard_id", "project_id"}:
            raise WorkspaceInputError(f"{name} must be ids, or mappings with dashboard_id and project_id")
    return [{key: check_id(f"{name}: {key}", one) for key, one in row.items()} for row in rows]


def read_integer(name: str, value: Any) -> int:
    """Read a whole number."""
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.isdecimal() and len(text) < 20:
        return int(text)
    if isinstance(text, int) and not isinstance(text, bool) and abs(text) < MAX_NUMBER:
        return text
    raise WorkspaceInputError(f"{name} must be a whole number, not {type_name(value)}")


def read_maximum(name: str, value: Any) -> Any:
    """Refuse what is no limit of removals."""
    from airflow_provider_workspace.procedures.plan import checked_limit

    return _read_by(checked_limit, name, value)


def read_level(name: str, value: Any) -> Any:
    """Read an access level, a number or a name."""
    from airflow_provider_workspace.api.levels import parse_level

    return _read_by(parse_level, name, value)


def read_until(name: str, value: Any) -> Any:
    """Read an end of access."""
    from airflow_provider_workspace.procedures.ends import parse_until

    try:
        return parse_until(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}") from None


def _read_by(parse: Callable[[Any], Any], name: str, value: Any) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}; found {shown(value)}") from None


def read_seconds(name: str, value: Any, *, least: float = 0.0, years: int = 1) -> float:
    """
    Read a length of time.

    :param value: a timedelta, or a number of seconds, also as text
    :param least: minimum in seconds
    :param years: maximum in years
    :raises WorkspaceInputError: if it is neither, too short or too long
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else _read_number(value)
    if least <= seconds <= years * MAX_SECONDS:
        return seconds
    longest = "a year" if years == 1 else f"{years} years"
    found = str(value) if isinstance(value, float | timedelta) else shown(value)
    raise WorkspaceInputError(
        f"{name} must be a timedelta or a number of seconds, from {least:g} s to {longest}, not {found}"
    )


def read_time(name: str, value: Any) -> float:
    """Read a time in seconds since 1970."""
    seconds = _read_number(value)
    if 0 <= seconds <= MAX_TIME:
        return seconds
    raise WorkspaceInputError(f"{name} must be a number of seconds since 1970, not {type_name(value)}")


def _read_number(value: Any) -> float:
    """Read a number or its text; NaN if it is neither."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _read_json(value: Any) -> Any:
    """Parse the JSON text of a mapping or list, to which a template may render; return any other value as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
