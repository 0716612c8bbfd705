"""Filtering the rows of a list: what ``where`` and ``fields`` name, checked, and the rows they keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from airflow_provider_workspace.api.levels import LEVELS
from airflow_provider_workspace.api.secrets import is_secret
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.operators.arguments import type_name
from airflow_provider_workspace.procedures.roster import address_key
from airflow_provider_workspace.version_compat import AirflowFailException

# Before a field that the interface does not name, and the service sends nevertheless.
EXTRA = "extra."
SCALARS = {str, int, float, bool, NoneType}


def check_where(where: Mapping[str, Any], model: type[BaseModel], *, return_secrets: bool) -> dict[str, Any]:
    """
    Check what ``where`` names and read its values: a template delivers text for numbers and truth values.

    :param model: the record that the list holds
    :param return_secrets: whether the rows have the fields that hold secrets
    :raises WorkspaceInputError: if there is no such field, or a value is none that it can have
    """
    read: dict[str, Any] = {}
    for path, wanted in where.items():
        annotation = _type_at("where", path, model, return_secrets=return_secrets)
        several = isinstance(wanted, list | tuple | set)
        values = [_read_value(path, value, annotation) for value in (wanted if several else [wanted])]
        read[path] = values if several else values[0]
    return read


def check_fields(fields: Sequence[str], model: type[BaseModel], *, return_secrets: bool) -> list[str]:
    """
    Check what ``fields`` names.

    :raises WorkspaceInputError: if there is no such field
    """
    for path in fields:
        _type_at("fields", path, model, return_secrets=return_secrets)
    return list(fields)


def _type_at(argument: str, path: str, model: type[BaseModel], *, return_secrets: bool) -> Any:
    """Return the type of the field that a path leads to; ``Any`` where the interface does not show it."""
    annotation: Any = model
    for part in [] if path.startswith(EXTRA) else path.split("."):
        record = _record_in(annotation)
        if record is None and not set(get_args(annotation) or (annotation,)) <= SCALARS:
            return Any  # below a field of free form
        if record is None or part not in record.model_fields:
            known = list(_paths(model))
            close = get_close_matches(path, known, n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            msg = (
                f"{argument} names {path[:80]!r}, which no row has: {hint}Known are "
                f"{', '.join(known)}. For a field that the interface does not name, write '{EXTRA}' before it"
            )
            raise WorkspaceInputError(msg)
        if is_secret(part) and not return_secrets:
            msg = f"{argument} names {path!r}, which is a secret: set return_secrets=True"
            raise WorkspaceInputError(msg)
        annotation = record.model_fields[part].annotation
    return Any if path.startswith(EXTRA) else annotation


def _record_in(annotation: Any) -> type[BaseModel] | None:
    """Return the record that a field holds; ``None`` if it holds something else."""
    classes = (item for item in (annotation, *get_args(annotation)) if isinstance(item, type))
    return next((item for item in classes if issubclass(item, BaseModel)), None)


def _paths(model: type[BaseModel]) -> Iterator[str]:
    """Yield the paths of a record's fields, those of the records in it included."""
    for name, field in model.model_fields.items():
        yield name
        below = _record_in(field.annotation)
        if below is not None:
            yield from (f"{name}.{path}" for path in _paths(below))


def _read_value(path: str, value: Any, annotation: Any) -> Any:
    """Read a wanted value as the field would hold it."""
    if annotation is Any or not set(get_args(annotation)) <= SCALARS:
        return value
    if path.endswith("level") and isinstance(value, str):
        value = LEVELS.get(value.strip().lower(), value)
    try:
        if isinstance(value, bool) and bool not in get_args(annotation):
            raise ValueError  # noqa: TRY301 - pydantic would read true as 1
        return TypeAdapter(annotation).validate_python(value)
    except ValueError:
        expected = " or ".join(item.__name__ for item in get_args(annotation) if item is not NoneType)
        shown = repr(value[:40]) if isinstance(value, str) else type_name(value)
        msg = f"where compares {path} with {shown}; expected {expected}"
        raise WorkspaceInputError(msg) from None


def filter_rows(
    rows: Iterable[dict[str, Any]],
    *,
    where: Mapping[str, Any],
    fields: Sequence[str],
    count_only: bool,
    max_rows: int,
) -> list[dict[str, Any]] | int:
    """
    Read rows to their end and keep what is asked for.

    :param where: path -> value, or values, of the rows to keep
    :param fields: paths to keep of each row; none for all
    :param count_only: return how many rows there are
    :param max_rows: most rows to keep
    :raises AirflowFailException: if there are more
    """
    kept: list[dict[str, Any]] = []
    count = 0
    for row in rows:
        if not all(_matches(path, _value_at(row, path), wanted) for path, wanted in where.items()):
            continue
        count += 1
        if count_only:
            continue
        if count > max_rows:
            msg = (
                "Narrow the list with where=…, set count_only=True, or raise max_rows: it has more than "
                f"max_rows={max_rows} rows."
            )
            raise AirflowFailException(msg)
        kept.append({path: _value_at(row, path) for path in fields} if fields else row)
    return count if count_only else kept


def _value_at(row: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path with dots; ``None`` where there is nothing."""
    value: Any = row
    for part in path.removeprefix(EXTRA).split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _matches(path: str, value: Any, wanted: Any) -> bool:
    """Tell whether a value is the wanted one, or one of those; letter case does not count in e-mail addresses."""
    if isinstance(wanted, list | tuple | set):
        return any(_matches(path, value, item) for item in wanted)
    if path.endswith("email") and isinstance(value, str) and isinstance(wanted, str):
        return address_key(value) == address_key(wanted)
    return bool(value == wanted)
