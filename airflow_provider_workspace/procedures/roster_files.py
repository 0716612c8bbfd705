"""Read people: from CSV, JSON or JSON lines files, from the result of another task, from lists."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from airflow_provider_workspace.api.operations.invites import InviteDetails
from airflow_provider_workspace.api.templates import is_empty
from airflow_provider_workspace.errors import WorkspaceInputError, did_you_mean, shown
from airflow_provider_workspace.procedures.ends import END_FIELDS
from airflow_provider_workspace.procedures.invites_report import name_entries
from airflow_provider_workspace.procedures.roster import check_roster

# The name of cells without a column: not a field of an invite, so the row is refused with this name.
EXTRA_CELLS = "cells beyond the last column"
# Number of the first row of a CSV file after its header.
FIRST_ROW = 2
# Maximum number of mistakes in an error.
MAX_WRONG = 10
# Names of columns: fields by name, ``None`` to leave a column out; or a list of fields by position.
Columns = Sequence[str] | Mapping[str, str | None] | None
COLUMNS = ("email", "target_email", *InviteDetails.model_fields, *END_FIELDS)


class RosterFile(Protocol):
    """A file whose name, ``str()`` of it, ends with its ``suffix``; ``hooks.files.file_at`` opens one."""

    @property
    def suffix(self) -> str: ...

    def read(self) -> str:
        """
        Return all of its text.

        :raises WorkspaceInputError: if it cannot be read
        """
        ...


class RosterRows(list[dict[str, Any]]):
    """
    The rows of a roster, with the names of the interface; a blank row is an empty mapping.

    :ivar first_number: number of the first row, as a spreadsheet shows it: the header of a CSV file is row 1
    """

    first_number = 1


def read_roster(
    invites: Any,
    file: RosterFile | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    argument: str = "invites",
    columns: Columns = None,
) -> RosterRows:
    """
    Return the rows of a roster: their columns named as in the interface, cells without a value left out.

    :param invites: addresses, mappings, tuples or lists, or rows and the description of a cursor; also as JSON text.
        ``None`` if ``file`` is given
    :param file: file to read instead, ``.csv``, ``.json`` or ``.jsonl``
    :param defaults: fields for rows that do not have them
    :param argument: name of the operator's argument for ``invites``, for messages
    :param columns: fields by the names of columns, ``None`` to leave one out; or a list of fields by position
    :raises WorkspaceInputError: unless exactly one of both is given; if the file cannot be read, or columns are wrong
    """
    if (invites is None) == (file is None):
        raise WorkspaceInputError(f"Give either {argument}=… or path=…")
    where, found = argument, RosterRows()
    if file is None:
        rows, header = _split_description(rows_of_value(invites, argument))
    else:
        where, (rows, header) = str(file), read_file(file)
        found.first_number = 1 if header is None else FIRST_ROW
    names = _Columns(columns, header)
    common = _values((defaults or {}).items())
    for number, row in enumerate(rows, start=found.first_number):
        fields, cells = names.by_position, row
        if isinstance(row, Mapping):
            fields, cells = names.fields([*row], number), [*row.values()]
            if isinstance(columns, list | tuple):
                names.wrong.setdefault("a mapping names its columns itself: pass columns={…}, not a list", number)
        elif not _is_list(row) or (fields is None and len(row) == 1):
            fields, cells = ["target_email"], row if _is_list(row) else [row]
        if fields is None or (len(cells) != len(fields) and header is None):
            names.wrong.setdefault(f"{len(cells)} columns: pass columns=[…] with a name for each of them", number)
            continue
        values = _values(zip([*fields, *[EXTRA_CELLS] * len(cells)], cells, strict=False))
        if not values and not isinstance(row, Mapping | list | tuple):  # then it is not blank, but invalid
            values["target_email"] = None
        found.append({**common, **values} if values else {})
    if names.wrong:
        what = [f"row {number}: {why}" if number else why for why, number in names.wrong.items()]
        raise WorkspaceInputError(
            f"Correct the columns of {where}: {'; '.join(what[:MAX_WRONG])}{'; …' * (len(what) > MAX_WRONG)}. "
            f"Known columns: {', '.join(COLUMNS)}. With a roster, columns={{'Department': None}} leaves one out"
        )
    return found


def addresses_of(value: Any, argument: str, *, needed: bool = True) -> list[str]:
    """
    Return the addresses of rows, each once.

    :param value: rows, see :func:`read_roster`
    :param needed: whether there must be one; always if there are rows
    :raises WorkspaceInputError: naming the rows that have none, or an invalid one
    """
    roster = check_roster(read_roster(value, argument=argument), only_addresses=True)
    if roster.invalid or (not roster.rows and (needed or roster.blank)):
        why = name_entries(roster.invalid) if roster.invalid else "expected at least one address"
        raise WorkspaceInputError(f"Correct {argument}: {why}")
    return [row.invite.target_email for row in roster.rows]


def _key(name: Any) -> str:
    """Return the name of a column for comparison: case, blanks, hyphens and underscores do not count."""
    text = str(name).lower()
    return "".join(char for char in text if not (char.isspace() or unicodedata.category(char) in ("Cf", "Pc", "Pd")))


# The fields of an invite by the keys of their names.
FIELDS: dict[str, str | None] = {**{_key(name): name for name in COLUMNS}, "email": "target_email"}


class _Columns:
    """
    Finds the field of an invite that the name of a column means.

    :param columns: names as in :func:`read_roster`
    :param header: names by position, if the rows come with them
    :ivar by_position: the field of each column, ``None`` to leave it out; ``None`` if rows have no names by position
    :ivar wrong: mistakes, and the first row that has each of them, or 0
    """

    def __init__(self, columns: Columns, header: Sequence[str] | None) -> None:
        by_name = columns if isinstance(columns, Mapping) else {}
        fields = [field for field in by_name.values() if field is not None]
        self.wrong = {f"unknown field {shown(field)} in columns": 0 for field in fields if _key(field) not in FIELDS}
        self.meaning = {**FIELDS, **{_key(name): FIELDS.get(_key(field)) for name, field in by_name.items()}}
        names = header if isinstance(columns, Mapping | None) else columns
        self.by_position: list[str | None] | None = None
        if names is not None:
            found = self.by_position = self.fields(names, 0)
            missing = [field for field in ("email", *fields) if FIELDS.get(_key(field)) not in found]
            self.wrong |= {f"no column {shown(field)}": 0 for field in missing}
            if header is not None and len(header) != len(names):
                self.wrong[f"{len(header)} columns, and columns=[…] names {len(names)}"] = 0

    def fields(self, names: Sequence[Any], number: int) -> list[str | None]:
        """Return the field of each column; ``number`` is that of the row, or 0."""
        fields: list[str | None] = []
        for name in names:
            field = self.meaning.get(_key(name))
            if _key(name) not in self.meaning:
                hint = did_you_mean(str(name)[:40].lower(), COLUMNS, "")
                self.wrong.setdefault(f"unknown column {shown(name)}{f' ({hint})' * hint.endswith('?')}", number)
            elif field is not None and field in fields:
                self.wrong.setdefault(f"{shown(names[fields.index(field)])} and {shown(name)} mean the same", number)
            fields.append(field)
        return fields


def _values(cells: Iterable[tuple[str | None, Any]]) -> dict[str, Any]:
    """Return the cells that have a field and a value; texts are trimmed, and a list may be JSON text."""
    values: dict[str, Any] = {}
    for field, cell in cells:
        if field is not None and not is_empty(cell):
            values[field] = cell.strip() if isinstance(cell, str) else cell
            if field == "private_project_access" and isinstance(cell, str):
                with suppress(ValueError):  # then it is no list
                    values[field] = _read_json(cell)
    return values


def read_file(file: RosterFile) -> tuple[list[Any], list[str] | None]:
    """
    Return the rows of a file as they are, and the header of a CSV file.

    :raises WorkspaceInputError: if it cannot be read
    """
    readers = {".csv": _rows_of_csv, ".json": _rows_of_json, ".jsonl": _rows_of_lines}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise WorkspaceInputError(f"{file} is not a roster: expected a name that ends in {', '.join(readers)}")
    try:
        return reader(file, file.read())
    except (csv.Error, ValueError) as error:
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


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _split_description(rows: Sequence[Any]) -> tuple[Sequence[Any], list[str] | None]:
    """Return rows, and their columns if they come with the description of a cursor (PEP 249): names, types and more."""
    is_pair = len(rows) == 2 and all(_is_list(part) and all(map(_is_list, part)) for part in rows)
    if is_pair and rows[1] and all(len(column) > 1 for column in rows[1]):
        return rows[0], [str(column[0]) for column in rows[1]]
    return rows, None


def _rows_of_csv(file: RosterFile, text: str) -> tuple[list[Any], list[str]]:
    """Read a CSV file with a header, separated by commas, semicolons or tabs."""
    first = io.StringIO(text, newline="").readline()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    try:
        header, *rows = list(reader) or [[]]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None
    if all(map(is_empty, header)):
        raise WorkspaceInputError(f"{file} is empty: expected a header such as email,first_name,level")
    return rows, header


def _rows_of_json(file: RosterFile, text: str) -> tuple[list[Any], None]:
    """Read a JSON file that holds an array."""
    rows = _read_json(text)
    if not isinstance(rows, list):
        raise WorkspaceInputError(f"{file} must hold a JSON array of rows")
    return rows, None


def _rows_of_lines(_: RosterFile, text: str) -> tuple[list[Any], None]:
    """Read a file with one JSON row per line."""
    rows: list[Any] = []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        try:
            rows.append(_read_json(line) if line.strip() else {})
        except ValueError as error:  # noqa: PERF203 - it ends the loop
            raise ValueError(f"line {number}: {error}") from None
    return rows, None


class RepeatedKeyError(ValueError):
    """A JSON object repeats a key."""


def reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs, and refuse a repeated key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(name for name, _ in pairs if [key for key, _ in pairs].count(name) > 1)
        raise RepeatedKeyError(f"the key {repeated[:100]!r} is repeated in one object")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=reject_repeated_keys)


def _read_json(text: str) -> Any:
    """Parse JSON; if it is invalid, nested too deeply or repeats a key, raise a ``ValueError``."""
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
