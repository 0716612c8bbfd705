"""Generate the connection form and the table in docs/connection.md from the settings."""

from __future__ import annotations

import ast
import inspect
import json
import re
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from airflow_provider_workspace.client import settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120
TYPES = {float: "number", int: "integer", bool: "boolean"}


def descriptions() -> dict[str, str]:
    """Return the docstring of each setting."""
    tree: Any = ast.parse(inspect.getsource(settings.Settings))
    body = tree.body[0].body
    return {
        field.target.id: inspect.cleandoc(ast.literal_eval(text.value)).replace("\n", " ")
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr)
    }


def form_type(field: FieldInfo) -> str:
    """Return the type of a setting in the connection form."""
    types = set(get_args(field.annotation) or [field.annotation]) - {NoneType}
    return TYPES.get(types.pop(), "string") if len(types) == 1 else "string"


def choices(field: FieldInfo) -> list[str]:
    """Return the allowed values; empty if there is no enumeration."""
    return list(get_args(field.annotation)) if get_origin(field.annotation) is Literal else []


def default(field: FieldInfo) -> Any:
    """Return the default for people; ``None`` if there is none, or if it depends on another setting."""
    value = None if field.default_factory else field.default
    if isinstance(value, bool):
        return value if form_type(field) == "boolean" else str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def form() -> dict[str, dict[str, Any]]:
    """Return the fields of the connection form."""
    fields: dict[str, dict[str, Any]] = {}
    for key in settings.EXTRAS:
        field = settings.Settings.model_fields[key]
        extra = field.json_schema_extra or {}
        description = descriptions()[key]
        schema: dict[str, Any] = {"type": [form_type(field), "null"]}
        if default(field) is not None:
            schema["default"] = default(field)
        if "default_text" in extra:
            description += f" Default: {extra['default_text']}."
        if key in settings.BOUNDS:
            low, high = settings.BOUNDS[key]
            schema |= {"minimum": low, "maximum": high}
            description += f" From {low} to {high}."
        if choices(field):
            schema["enum"] = choices(field)
        if "values_display" in extra:
            schema["values_display"] = extra["values_display"]
        fields[key] = {"label": field.title, "description": description, "schema": schema}
    return fields


def table() -> str:
    """Return the table of the extra."""
    rows = ["| key | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    for key in settings.EXTRAS:
        field = settings.Settings.model_fields[key]
        extra = field.json_schema_extra or {}
        value = default(field)
        shown = f"`{value}`" if choices(field) else "none" if value is None else str(value).lower()
        allowed = ", ".join(f"`{choice}`" for choice in choices(field)) or "true, false"
        if key in settings.BOUNDS:
            low, high = settings.BOUNDS[key]
            allowed = f"{low} to {high}" + (", integer" if form_type(field) == "integer" else "")
        cells = (f"`{key}`", extra.get("default_text", shown), extra.get("allowed", allowed), descriptions()[key])
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def one_line(value: Any) -> str:
    """Format a value as Python on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{one_line(key)}: {one_line(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(one_line, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def literal(value: Any, margin: str = "", before: int = 0) -> str:
    """
    Format a value like ruff: on one line if it is short enough.

    :param margin: indentation of the line
    :param before: number of characters before the value on its line
    """
    line = one_line(value)
    if len(margin) + before + len(line) < WIDTH:
        return line
    inner = f"{margin}    "
    if isinstance(value, str):
        parts = re.findall(rf".{{1,{WIDTH - len(inner) - 3}}}(?: |$)", value)
        return "(\n" + "".join(f"{inner}{one_line(part)}\n" for part in parts) + f"{margin})"
    items = [(f"{one_line(key)}: ", item) for key, item in value.items()]
    return "{\n" + "".join(f"{inner}{key}{literal(item, inner, len(key))},\n" for key, item in items) + f"{margin}}}"


def replaced(path: Path, comment: str, text: str) -> str:
    """
    Return the content of a file with a new text between its marker comments.

    :param comment: format of a comment, such as ``# {}``
    """
    start, end = (comment.format(f"{word} of what dev/make_connection.py writes") for word in ("Start", "End"))
    head, _, rest = path.read_text(encoding="utf-8").partition(f"{start}\n")
    _, _, tail = rest.partition(f"{end}\n")
    return f"{head}{start}\n{text}{end}\n{tail}"


def files() -> dict[Path, str]:
    """Return the files with their current content."""
    code = f"CONNECTION_FIELDS: dict[str, dict[str, Any]] = {literal(form())}\n"
    return {CODE: replaced(CODE, "# {}", code), PAGE: replaced(PAGE, "<!-- {} -->", f"\n{table()}\n")}


CODE = ROOT / "airflow_provider_workspace" / "get_provider_info.py"
PAGE = ROOT / "docs" / "connection.md"

if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
