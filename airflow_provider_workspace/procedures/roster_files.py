"""Read rosters from CSV, JSON or JSON lines files, or from the result of another task."""

from __future__ import annotations

import csv
import io
import json
import stat
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from airflow_provider_workspace.api.operations.invites import InviteSettings
from airflow_provider_workspace.errors import WorkspaceInputError, did_you_mean, type_name

# The name of cells without a column: not a field of an invite, so the row is refused with this name.
EXTRA_CELLS = "cells beyond the last column"
# Maximum size of a file: it is read at once.
MAX_MEGABYTES = 20
# Number of the first row of a CSV file after its header.
FIRST_ROW = 2
COLUMNS = ("email", "target_email", *InviteSettings.model_fields)


class RosterRows(list[Any]):
    """
    The rows of a roster; a blank row of a file is an empty mapping.

    :ivar first_number: number of the first row, as a spreadsheet shows it: the header of a CSV file is row 1
    """

    first_number = 1


def read_roster(
    invites: Any,
    path: str | RosterFile | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    argument: str = "invites",
    columns: Sequence[str] | None = None,
) -> RosterRows:
    """
    Return the rows of a roster.

    :param invites: a list of rows or addresses, or the same as JSON text; ``None`` if ``path`` is given
    :param path: file to read instead, ``.csv``, ``.json`` or ``.jsonl``, in UTF-8, up to 20 MB; a text is the path of a
        file on this machine
    :param defaults: fields for rows that do not have them
    :param argument: name of the operator's argument for ``invites``, for messages
    :param columns: names of the columns, where rows are tuples or lists
    :raises WorkspaceInputError: unless exactly one of both is given; if the file cannot be read
    """
    if (invites is None) == (path is None):
        raise WorkspaceInputError(f"Give either {argument}=… or path=…")
    if path is None:
        return RosterRows(_filled(row, defaults) for row in rows_of_query(invites, argument, columns))
    if columns is not None:
        raise WorkspaceInputError("columns is for rows of a query: a file has a header")
    file = path if isinstance(path, RosterFile) else RosterFile(path)
    rows = RosterRows(_filled(row, defaults) for row in _read_file(file))
    if file.suffix.lower() == ".csv":
        rows.first_number = FIRST_ROW
    return rows


def _filled(row: Any, defaults: Mapping[str, Any] | None) -> Any:
    """Return a row, completed with defaults unless it is blank."""
    fields = {"target_email": row} if isinstance(row, str) else row
    if not (defaults and fields and isinstance(fields, Mapping)):
        return row
    return {**defaults, **{name: value for name, value in fields.items() if value not in (None, "")}}


class RosterFile:
    """
    A file on this machine; ``hooks.files`` has a subclass for object stores.

    :raises WorkspaceInputError: if it is not a path
    """

    def __init__(self, path: Any) -> None:
        if not isinstance(path, str | PathLike):
            raise WorkspaceInputError(f"path must be the name of a file, not {type_name(path)}")
        self.path: Any = Path(path).absolute()  # errors show all of it
        self.suffix: str = self.path.suffix

    def __str__(self) -> str:
        """Return the path in quotes, for messages."""
        return _quoted(self.path)

    def read(self) -> str:
        """
        Return all of its text.

        :raises WorkspaceInputError: if it is larger than :data:`MAX_MEGABYTES`, or not a regular file
        :raises UnicodeDecodeError: if it is not in UTF-8
        """
        most = MAX_MEGABYTES * 1_000_000
        content = self.read_bytes(most + 1)
        if len(content) > most:
            raise WorkspaceInputError(f"Split {self}: it is larger than {MAX_MEGABYTES} MB")
        return content.decode("utf-8-sig")

    def read_bytes(self, size: int) -> bytes:
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            raise WorkspaceInputError(f"There is no file {self} on this worker") from None
        except ValueError as error:  # such as a null byte
            raise WorkspaceInputError(f"{self} is not a path: {error}") from None
        if not stat.S_ISREG(mode):  # reading a pipe or a device may never end
            kind = (
                "a directory" if stat.S_ISDIR(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
            )
            raise WorkspaceInputError(f"{self} is {kind}; expected a regular file")
        with self.path.open("rb") as file:
            content: bytes = file.read(size)
        return content


def _read_file(file: RosterFile) -> list[Any]:
    readers = {".csv": _rows_of_csv, ".json": _rows_of_json, ".jsonl": _rows_of_lines}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise WorkspaceInputError(f"{file} is not a roster: expected a name that ends in {', '.join(readers)}")
    try:
        return reader(file, file.read())
    except UnicodeDecodeError as error:
        raise WorkspaceInputError(
            f'{file} is not in UTF-8 (byte {error.start}): save it as "CSV UTF-8" or with the encoding UTF-8'
        ) from None
    except (OSError, csv.Error, ValueError) as error:
        if isinstance(error, WorkspaceInputError):
            raise
        raise WorkspaceInputError(f"{file} cannot be read: {error}") from error


def rows_of_value(value: Any, argument: str = "invites") -> Sequence[Any]:
    """Read a list, also from the JSON text to which a template renders it."""
    if isinstance(value, str):
        try:
            value = _read_json(value)
        except RepeatedKeyError as error:
            raise WorkspaceInputError(f"{argument}: {error}") from None
        except ValueError:
            raise WorkspaceInputError(
                f"{argument} is a text that is not a JSON list. Pass the output of the other task (task.output), or "
                "set render_template_as_native_obj=True on the Dag"
            ) from None
    if isinstance(value, Mapping | str | bytes) or not isinstance(value, Iterable):
        raise WorkspaceInputError(f"{argument} must be a list of rows or addresses")
    return value if isinstance(value, Sequence) else list(value)


def rows_of_query(value: Any, argument: str, columns: Sequence[str] | None = None) -> list[Any]:
    """
    Read rows as operators for SQL return them: mappings, tuples or lists, or the rows and the cursor's description.

    A cell that is ``None`` or blank has no value; a row without values is blank. A column may be named in capitals.

    :param argument: name of the operator's argument, for messages
    :param columns: names of the columns, where rows are tuples or lists; rows of one column need none
    :raises WorkspaceInputError: naming the row or column, if the columns are not known
    """
    rows = rows_of_value(value, argument)
    if len(rows) == 2 and _is_description(rows[1]) and _is_list(rows[0]) and all(map(_is_list, rows[0])):
        rows, columns = rows[0], columns or [str(column[0]) for column in rows[1]]
    if columns is not None:
        columns = [_column(name) for name in columns]
        _check_columns("columns", columns)
    return [_row_of_query(row, f"{argument}, row {number}", columns) for number, row in enumerate(rows, start=1)]


def _row_of_query(row: Any, where: str, columns: Sequence[str] | None) -> Any:
    if isinstance(row, Mapping):
        cells = {_column(name): cell for name, cell in row.items()}
    elif _is_list(row):
        if columns is None and len(row) == 1:
            return {} if _is_blank(row[0]) else row[0]
        if columns is None or len(row) != len(columns):
            named = "" if columns is None else f", and columns names {len(columns)}"
            raise WorkspaceInputError(f"Pass columns=[…] with a name for each column: {where} has {len(row)}{named}")
        cells = dict(zip(columns, row, strict=True))
    else:
        return row
    return {name: cell for name, cell in cells.items() if not _is_blank(cell)}


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_description(value: Any) -> bool:
    """Return whether it is the description of a cursor (PEP 249): for each column its name, its type and more."""
    return bool(value) and _is_list(value) and all(_is_list(column) and len(column) > 1 for column in value)


def _column(name: Any) -> Any:
    """Return the name of a column as the interface writes it: some databases write all names in capitals."""
    return name.lower() if isinstance(name, str) and name.lower() in COLUMNS else name


def _quoted(name: Any) -> str:
    """Return the name of a file or column in quotes, without line breaks."""
    return f"'{name}'" if str(name).isprintable() else ascii(str(name))


def _rows_of_csv(file: RosterFile, text: str) -> list[dict[str, Any]]:
    """Read a CSV file with a header, separated by commas, semicolons or tabs."""
    header = io.StringIO(text, newline="").readline()
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[dict[str, Any]] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_columns(file, names)
        for number, cells in enumerate(reader, start=FIRST_ROW):
            blank = not any(cell.strip() for cell in cells)
            row: dict[str, Any] = {} if blank else dict(zip(names, cells, strict=False))
            if row and len(cells) > len(names):
                row[EXTRA_CELLS] = cells[len(names) :]
            if row.get("private_project_access"):
                row["private_project_access"] = _json_cell(file, number, row["private_project_access"])
            rows.append(row)
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None
    return rows


def _check_columns(file: RosterFile | str, names: Sequence[str]) -> None:
    """Refuse a header with an unknown or repeated column."""
    if not any(names):
        raise WorkspaceInputError(f"{file} is empty: expected a header such as email,first_name,level")
    for name in names:
        if name not in COLUMNS:
            hint = did_you_mean(name[:100], COLUMNS, "known columns: ")
            raise WorkspaceInputError(f"{file} has the unknown column {_quoted(name[:100])} ({hint})")
        if names.count(name) > 1:
            raise WorkspaceInputError(f"{file} has the column '{name}' more than once: remove one")
    addresses = {"email", "target_email"} & set(names)
    if not addresses:
        raise WorkspaceInputError(f"{file} has no column 'email'; its columns are {', '.join(names)}")
    if len(addresses) > 1:
        raise WorkspaceInputError(f"{file} has both columns 'email' and 'target_email': remove one")


def _json_cell(file: RosterFile, number: int, text: str) -> Any:
    try:
        return _read_json(text)
    except ValueError:
        raise WorkspaceInputError(f"{file}, row {number}: private_project_access must be a JSON list") from None


def _rows_of_json(file: RosterFile, text: str) -> list[Any]:
    """Read a JSON file that holds an array."""
    rows = _read_json(text)
    if not isinstance(rows, list):
        raise WorkspaceInputError(f"{file} must hold a JSON array of rows")
    return rows


def _rows_of_lines(_: RosterFile, text: str) -> list[Any]:
    """Read a file with one JSON row per line."""
    rows: list[Any] = []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        try:
            rows.append(_read_json(line) if line.strip() else {})
        except ValueError as error:  # noqa: PERF203 - it ends the loop
            raise ValueError(f"line {number}: {error}") from None
    return rows


class RepeatedKeyError(ValueError):
    """A JSON object repeats a key."""


def reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs, and refuse a repeated key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(name for name, _ in pairs if [key for key, _ in pairs].count(name) > 1)
        raise RepeatedKeyError(f"the key {_quoted(repeated[:100])} is repeated in one object")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=reject_repeated_keys)


def _read_json(text: str) -> Any:
    """Parse JSON; if it is invalid, nested too deeply or repeats a key, raise a ``ValueError``."""
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
