"""Rosters as people keep them: files of CSV, JSON or JSON lines, and what another task returned."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from airflow_provider_workspace.api.operations.invites import InviteFields
from airflow_provider_workspace.errors import WorkspaceInputError

# Where cells go that have no column: no field of an invite, so that the row is refused under this name.
BEYOND = "cells beyond the last column"
COLUMNS = ("email", *InviteFields.model_fields)


def read_roster(
    invites: Any, path: str | None = None, defaults: Mapping[str, Any] | None = None, *, argument: str = "invites"
) -> Iterator[Mapping[str, Any] | str]:
    """
    Yield the rows of a roster.

    :param invites: a list of rows or addresses, or the same as JSON text; ``None`` if ``path`` is given
    :param path: file to read instead, ``.csv``, ``.json`` or ``.jsonl``, in UTF-8
    :param defaults: fields for the rows that lack them
    :param argument: what the author of the Dag calls ``invites``, for messages
    :raises WorkspaceInputError: if there is neither or both, or the file cannot be read
    """
    if (invites is None) == (path is None):
        msg = f"Give either {argument}=… or path=…. Nothing was sent."
        raise WorkspaceInputError(msg)
    rows = rows_of_file(path) if path is not None else rows_of_value(invites, argument)
    for row in rows:
        fields = {"target_email": row} if isinstance(row, str) else row
        if defaults and isinstance(fields, Mapping):
            filled = {name: value for name, value in fields.items() if value not in (None, "")}
            yield {**defaults, **filled}
        else:
            yield row


def rows_of_value(value: Any, argument: str = "invites") -> Sequence[Any]:
    """Read a list; a template that is not rendered natively delivers it as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            msg = (
                f"{argument} is a text that is not a JSON list. Pass the other task's output itself (task.output), or "
                "set render_template_as_native_obj=True on the Dag. Nothing was sent."
            )
            raise WorkspaceInputError(msg) from None
    if isinstance(value, Mapping) or not isinstance(value, Sequence):
        try:
            value = [] if isinstance(value, Mapping | str) or value is None else list(value)
        except TypeError:
            value = []
        if not value:
            msg = f"{argument} must be a list of rows or addresses. Nothing was sent."
            raise WorkspaceInputError(msg)
    return value  # type: ignore[no-any-return]


def rows_of_file(path: str) -> Iterator[Any]:
    """
    Read a file row by row.

    :raises WorkspaceInputError: saying what is wrong with the file
    """
    readers = {".csv": rows_of_csv, ".json": rows_of_json, ".jsonl": rows_of_lines}
    file = Path(path)
    reader = readers.get(file.suffix.lower())
    if reader is None:
        msg = f"'{path}' is no roster: expected a name that ends in {', '.join(readers)}. Nothing was sent."
        raise WorkspaceInputError(msg)
    try:
        yield from reader(file)
    except FileNotFoundError:
        msg = f"There is no file '{path}' on this worker. Nothing was sent."
        raise WorkspaceInputError(msg) from None
    except UnicodeDecodeError as error:
        msg = (
            f"'{path}' is not in UTF-8 (byte {error.start}): save it as \"CSV UTF-8\" or with the encoding UTF-8. "
            "Nothing was sent."
        )
        raise WorkspaceInputError(msg) from None
    except (OSError, csv.Error, ValueError) as error:
        if isinstance(error, WorkspaceInputError):
            raise
        msg = f"'{path}' cannot be read: {error}. Nothing was sent."
        raise WorkspaceInputError(msg) from error


def rows_of_csv(file: Path) -> Iterator[dict[str, Any]]:
    """Read a CSV file with a header; commas, semicolons and tabs separate, as in the header."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        header = lines.readline()
        delimiter = max(",;\t", key=header.count)
        lines.seek(0)
        reader = csv.DictReader(lines, delimiter=delimiter, strict=True, restkey=BEYOND, restval="")
        check_columns(file, [name.strip() for name in reader.fieldnames or []])
        reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
        for number, row in enumerate(reader, start=1):
            if row.get("private_project_access"):
                row["private_project_access"] = json_cell(file, number, row["private_project_access"])
            yield row


def check_columns(file: Path, names: Sequence[str]) -> None:
    """Refuse a header with a column that is no field of an invite."""
    if not any(names):
        msg = f"'{file}' is empty: expected a header such as email,first_name,level. Nothing was sent."
        raise WorkspaceInputError(msg)
    for name in names:
        if name not in COLUMNS:
            close = get_close_matches(name, COLUMNS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known columns: {', '.join(COLUMNS)}"
            msg = f"'{file}' has a column '{name}' that no invite has ({hint}). Nothing was sent."
            raise WorkspaceInputError(msg)
    if not {"email", "target_email"} & set(names):
        msg = f"'{file}' has no column 'email'; its columns are {', '.join(names)}. Nothing was sent."
        raise WorkspaceInputError(msg)


def json_cell(file: Path, number: int, text: str) -> Any:
    """Read a cell that holds JSON."""
    try:
        return json.loads(text)
    except ValueError:
        msg = f"'{file}', row {number}: private_project_access must be a JSON list. Nothing was sent."
        raise WorkspaceInputError(msg) from None


def rows_of_json(file: Path) -> Sequence[Any]:
    """Read a JSON file that holds an array."""
    value = json.loads(file.read_text(encoding="utf-8-sig"))
    if not isinstance(value, list):
        msg = f"'{file}' must hold a JSON array of rows. Nothing was sent."
        raise WorkspaceInputError(msg)
    return value


def rows_of_lines(file: Path) -> Iterator[Any]:
    """Read a file with one JSON row per line."""
    with file.open(encoding="utf-8-sig") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
