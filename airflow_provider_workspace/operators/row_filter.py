"""Filtering the rows of a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_workspace.version_compat import AirflowFailException


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
        if not all(_matches(_value_at(row, path), wanted) for path, wanted in where.items()):
            continue
        count += 1
        if count_only:
            continue
        if count > max_rows:
            msg = (
                f"The list has more than max_rows={max_rows} rows. Narrow it with where=…, take only what you "
                "need with fields=…, ask for count_only=True, or raise max_rows."
            )
            raise AirflowFailException(msg)
        kept.append({path: _value_at(row, path) for path in fields} if fields else row)
    return count if count_only else kept


def _value_at(row: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path with dots; ``None`` where there is nothing."""
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _matches(value: Any, wanted: Any) -> bool:
    """Tell whether a value is the wanted one, or one of those."""
    return any(value == item for item in wanted) if isinstance(wanted, list | tuple | set) else value == wanted
