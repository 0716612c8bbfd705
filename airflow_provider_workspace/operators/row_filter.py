"""Filter the rows of a list by ``where`` and ``fields``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, TypeAdapter

from airflow_provider_workspace.api.levels import parse_level, parse_number
from airflow_provider_workspace.api.models import Id, Resource
from airflow_provider_workspace.api.request_errors import field_not_sent_error
from airflow_provider_workspace.api.secrets import HARMLESS, is_secret, without_url_secrets
from airflow_provider_workspace.errors import WorkspaceInputError, resembling, shown, with_problem
from airflow_provider_workspace.procedures.matching import Before, matches, read_where
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

# Prefix of a field that the service sends although the interface does not name it.
EXTRA = "extra."
# Types of single values, and their names for people.
SCALARS = {str: "str", Id: "str", int: "int", float: "float", bool: "bool", NoneType: "null"}
# In place of a field that a record does not declare.
ABSENT = object()


def check_where(where: Mapping[str, Any], model: type[BaseModel], *, return_secrets: bool) -> dict[str, list[Any]]:
    """
    Check the fields of ``where`` and parse its values, which templates may render to text.

    :param model: class of the rows
    :param return_secrets: whether the rows include secret fields
    :raises WorkspaceInputError: if a field is unknown, or a value does not have its type
    """
    fields = {path: _field_at("where", path, model, return_secrets=return_secrets) for path in where}
    return read_where(where, time.time(), lambda path, value: _read_value(path, value, fields[path]))


def check_fields(fields: Sequence[str], model: type[BaseModel], *, return_secrets: bool) -> list[str]:
    """
    Check the fields of ``fields``.

    :raises WorkspaceInputError: if a field is unknown
    """
    for path in fields:
        _field_at("fields", path, model, return_secrets=return_secrets)
    return list(fields)


def _field_at(argument: str, path: str, model: type[BaseModel], *, return_secrets: bool) -> Any:
    """Return the ``FieldInfo`` of the field at a path; ``None`` if the interface does not show it."""
    annotation: Any = model
    field: Any = None
    for part in [] if path.startswith(EXTRA) else path.split("."):
        record = _record_in(annotation)
        if record is None and not set(get_args(annotation) or (annotation,)) <= SCALARS.keys():
            return None  # inside a free-form field
        if record is None or part not in record.model_fields:
            known = list(_paths(model))
            hint = resembling(path, known)
            raise WorkspaceInputError(
                f"{argument} names {path[:80]!r}, which is unknown: {hint}Known fields are "
                f"{', '.join(known)}. Prefix a field that the interface does not name with '{EXTRA}'"
            )
        if is_secret(part) and not return_secrets:
            raise WorkspaceInputError(f"Set return_secrets=True: {argument} names {path!r}, which is a secret")
        field = record.model_fields[part]
        annotation = field.annotation
    return field


def _record_in(annotation: object) -> type[BaseModel] | None:
    """Return the class of a nested record; ``None`` if the field is not a record."""
    classes = (item for item in (annotation, *get_args(annotation)) if isinstance(item, type))
    return next((item for item in classes if issubclass(item, BaseModel)), None)


def _paths(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        below = _record_in(field.annotation)
        if below is not None:
            yield from (f"{name}.{path}" for path in _paths(below))


def _read_value(path: str, value: Any, field: Any) -> Any:
    """Parse a wanted value to the type of its field."""
    if field is None or field.annotation is Any or not set(get_args(field.annotation)) <= SCALARS.keys():
        return value
    types, levels = get_args(field.annotation), [each for each in (parse_level, parse_number) if each in field.metadata]
    try:
        if levels and value is not None:
            return levels[0](value)
        if isinstance(value, bool) and bool not in types:
            raise ValueError  # noqa: TRY301 - pydantic would parse true as 1
        return TypeAdapter(field.annotation).validate_python(value)
    except ValueError as error:
        why = error if levels else "expected " + " or ".join(SCALARS[one] for one in types if one is not NoneType)
        raise WorkspaceInputError(f"where compares {path} with {shown(value)}; {why}") from None


def rows_with_fields(
    listed: Operation[Any], rows: Iterable[Resource], where: Mapping[str, list[Any]], fields: Sequence[str]
) -> Iterator[Resource]:
    """
    Yield the rows of a list, and refuse what was selected by a field that the service does not send: it is not null.

    Each row must have a field whose age is compared, because rows without a time are selected.

    :raises WorkspaceIncompleteListError: if a row lacks such a field, or if no row has another one
    """
    ages: list[str] = []
    for path, wanted in where.items():
        if any(isinstance(value, Before) for value in wanted):
            ages.append(path)
    missing = [path for path in (*where, *fields) if not path.startswith(EXTRA)]
    count = 0
    for row in rows:
        count += 1
        for path in ages:
            if not _has_field(row, path, needs_key=True):
                raise field_not_sent_error(listed, f"gave a row without {path}, whose age where compares")
        missing = [path for path in missing if not _has_field(row, path)]
        yield row
    if count and missing:
        raise field_not_sent_error(listed, f"gave {count} rows, none of which has {' or '.join(missing)}")


def _has_field(row: Resource, path: str, *, needs_key: bool = False) -> bool:
    """
    Return whether the service sent the field at a path, or null for it or what holds it.

    :param needs_key: whether it must be there inside a free-form field, too
    """
    value: Any = row
    for part in path.removeprefix(EXTRA).split("."):
        if isinstance(value, BaseModel):
            if part not in value.model_fields_set:
                return False
            value = getattr(value, part)
        elif isinstance(value, Mapping):
            if part not in value:
                return not needs_key
            value = value[part]
        else:
            return True
    return True


def filter_rows(
    records: Iterable[Resource],
    *,
    where: Mapping[str, Any],
    fields: Sequence[str],
    count_only: bool,
    max_rows: int,
    return_secrets: bool,
) -> list[dict[str, Any]] | int:
    """
    Return the selected rows, or their number.

    :param where: wanted value, or values, by path
    :param fields: paths to keep of each row; empty for all
    :param count_only: whether to return only the number of rows
    :param max_rows: maximum number of rows
    :param return_secrets: whether the rows include secret fields
    :raises AirflowFailException: if there are more
    """
    kept: list[dict[str, Any]] = []
    count = 0
    for record in records:
        shown_at = partial(_shown_at, record, return_secrets=return_secrets)
        if not all(matches(path, shown_at(path), wanted) for path, wanted in where.items()):
            continue
        count += 1
        if count_only:
            continue
        if count > max_rows:
            msg = (
                "Narrow the list with where=…, set count_only=True, or raise max_rows: it has more than "
                f"max_rows={max_rows} rows."
            )
            raise AirflowFailException(with_problem(msg, "too-many-rows"))
        row = record.to_dict(return_secrets=return_secrets)
        kept.append({path: _value_at(row, path) for path in fields} if fields else row)
    return count if count_only else kept


def _shown_at(record: Resource, path: str, *, return_secrets: bool) -> Any:
    """Return what the row of a record shows at a path."""
    value: Any = record
    for part in path.split("."):
        value = getattr(value, "__dict__", {}).get(part, ABSENT)
    if type(value) in HARMLESS:
        return value
    if type(value) is str:
        return value if return_secrets else without_url_secrets(value)
    # Writing a record out takes longer than reading it: only for what no declared field has.
    name = path.removeprefix(EXTRA).partition(".")[0]
    return _value_at(record.to_dict(return_secrets=return_secrets, names={name}), path)


def _value_at(row: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path; ``None`` if there is none."""
    value: Any = row
    for part in path.removeprefix(EXTRA).split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
