"""Generate the connection form and the table in docs/connection.md from the settings."""

from __future__ import annotations

import ast
import inspect
import json
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from airflow_provider_workspace.client import settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
FORM = ROOT / "airflow_provider_workspace" / "connection_form.json"
PAGE = ROOT / "docs" / "connection.md"
START, END = (f"<!-- {word} of what dev/make_connection.py writes -->" for word in ("Start", "End"))
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
            # Not in the schema: Airflow's form would change 0 to the minimum without a word.
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
    return "\n".join(["\n", *rows, "\n"])


def files() -> dict[Path, str]:
    """Return the files with their current content."""
    head, rest = PAGE.read_text(encoding="utf-8").split(START)
    tail = rest.partition(END)[2]
    return {
        FORM: json.dumps(form(), indent=2) + "\n",
        PAGE: f"{head}{START}{table()}{END}{tail}",
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
