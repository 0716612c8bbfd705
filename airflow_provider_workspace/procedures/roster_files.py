"""Read rosters from CSV, JSON or JSON lines files, or from the result of another task."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

from airflow_provider_workspace.api.operations.invites import InviteSettings
from airflow_provider_workspace.errors import WorkspaceInputError, type_name

# The name of cells without a column: not a field of an invite, so the row is refused with this name.
EXTRA_CELLS = "cells beyond the last column"
# Maximum characters of a row, so that a file without line breaks does not fill the memory.
MAX_ROW_LENGTH = 1_000_000
# Characters that are read at once.
CHUNK = 65_536
BLANKS = " \t\r\n"
# Number of the first row of a CSV file after its header.
FIRST_ROW = 2
VALUE_ENDS = BLANKS + ",]"
COLUMNS = ("email", "target_email", *InviteSettings.model_fields)


def read_roster(
    invites: Any,
    path: str | RosterFile | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    argument: str = "invites",
) -> Iterable[Mapping[str, Any] | str]:
    """
    Return the rows of a roster. Each iteration reads a file again; its rows are not kept in memory.

    :param invites: a list of rows or addresses, or the same as JSON text; ``None`` if ``path`` is given
    :param path: file to read instead, ``.csv``, ``.json`` or ``.jsonl``, in UTF-8; a text is the path of a file on
        this machine
    :param defaults: fields for rows that do not have them
    :param argument: name of the operator's argument for ``invites``, for messages
    :raises WorkspaceInputError: unless exactly one of both is given; during iteration, if the file cannot be read
    """
    if (invites is None) == (path is None):
        raise WorkspaceInputError(f"Give either {argument}=… or path=…")
    return _Rows(_FileRows(path) if path is not None else rows_of_value(invites, argument), defaults or {})


class _Rows:
    """
    Rows, completed with defaults; a blank row of a file is an empty mapping.

    :ivar first_number: number of the first row, as a spreadsheet shows it: the header of a CSV file is row 1
    """

    def __init__(self, rows: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        self.rows = rows
        self.defaults = defaults
        self.first_number = FIRST_ROW if isinstance(rows, _FileRows) and rows.suffix == ".csv" else 1

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            fields = {"target_email": row} if isinstance(row, str) else row
            if self.defaults and fields and isinstance(fields, Mapping):
                filled = {name: value for name, value in fields.items() if value not in (None, "")}
                yield {**self.defaults, **filled}
            else:
                yield row


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

    def state(self) -> Any:
        """
        Return a value that changes when the file changes.

        :raises WorkspaceInputError: if it is not a regular file: reading a pipe or a device may never end
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise WorkspaceInputError(f"There is no file {self} on this worker") from None
        except ValueError as error:  # such as a null byte
            raise WorkspaceInputError(f"{self} is not a path: {error}") from None
        mode = found.st_mode
        if not stat.S_ISREG(mode):
            kind = (
                "a directory" if stat.S_ISDIR(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
            )
            raise WorkspaceInputError(f"{self} is {kind}; expected a regular file")
        return found.st_ino, found.st_size, found.st_mtime_ns

    def open(self, newline: str | None = None) -> AbstractContextManager[TextIO]:
        """Open it as text."""
        return self.path.open(encoding="utf-8-sig", newline=newline)  # type: ignore[no-any-return]

    def changed(self) -> str:
        """Return the message for a file that changes while it is read."""
        return f"Wait until {self} is complete: it changed while it was read"


class _FileRows:
    """The rows of a file, which must not change between two reads."""

    def __init__(self, path: Any) -> None:
        self.file = path if isinstance(path, RosterFile) else RosterFile(path)
        self.suffix = self.file.suffix.lower()
        self.known: Any = None

    def __iter__(self) -> Iterator[Any]:
        """
        Read the file row by row.

        :raises WorkspaceInputError: if the file cannot be read or is invalid
        """
        readers = {".csv": _rows_of_csv, ".json": _rows_of_json, ".jsonl": _rows_of_lines}
        file = self.file
        reader = readers.get(self.suffix)
        if reader is None:
            raise WorkspaceInputError(f"{file} is not a roster: expected a name that ends in {', '.join(readers)}")
        try:
            state = file.state()
            self.known = self.known or state
            yield from reader(file)
            if file.state() != self.known:
                raise WorkspaceInputError(file.changed())
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


def _quoted(name: Any) -> str:
    """Return the name of a file or column in quotes, without line breaks."""
    return f"'{name}'" if str(name).isprintable() else ascii(str(name))


def _lines_of(text: TextIO) -> Iterator[str]:
    """Yield the lines of a file; refuse one longer than :data:`MAX_ROW_LENGTH` with a ``ValueError``."""
    number = 0
    while True:
        number += 1
        line = text.readline(MAX_ROW_LENGTH)
        if len(line) == MAX_ROW_LENGTH:
            raise ValueError(f"line {number} is longer than {MAX_ROW_LENGTH:,} characters")
        if not line:
            return
        yield line


def _rows_of_csv(file: RosterFile) -> Iterator[dict[str, Any]]:
    """Read a CSV file with a header, separated by commas, semicolons or tabs."""
    with file.open(newline="") as text:
        header = next(_lines_of(text), "")
        delimiter = max(",;\t", key=header.count)
        text.seek(0)
        reader = csv.reader(_lines_of(text), delimiter=delimiter, strict=True)
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
                yield row
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: {error}") from None


def _check_columns(file: RosterFile, names: Sequence[str]) -> None:
    """Refuse a header with an unknown or repeated column."""
    if not any(names):
        raise WorkspaceInputError(f"{file} is empty: expected a header such as email,first_name,level")
    for name in names:
        if name not in COLUMNS:
            from difflib import get_close_matches

            close = get_close_matches(name[:100], COLUMNS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known columns: {', '.join(COLUMNS)}"
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


def _rows_of_json(file: RosterFile) -> Iterator[Any]:
    """Read a JSON file that holds an array, one row at a time."""
    with file.open() as text:
        array = JsonText(text)
        if array.peek() != "[":
            array.value("the file")
            raise WorkspaceInputError(f"{file} must hold a JSON array of rows")
        array.skip()
        if array.peek() == "]":
            array.skip()
        else:
            number = 0
            while True:
                number += 1
                yield array.value(f"row {number}")
                mark = array.peek()
                array.skip()
                if mark == "]":
                    break
                if mark != ",":
                    raise ValueError(f"expected a comma or the end of the array after row {number}")
        if array.peek():
            raise ValueError("unexpected text after the array")


class JsonText:
    """A parser for JSON that is read in chunks."""

    def __init__(self, text: TextIO) -> None:
        self.text = text
        self.buffer = ""
        self.position = 0
        self.at_end = False

    def read_more(self) -> bool:
        """Read the next chunk, drop what was parsed, and return whether there was more text."""
        piece = self.text.read(CHUNK)
        self.buffer, self.position, self.at_end = self.buffer[self.position :] + piece, 0, not piece
        return not self.at_end

    def peek(self) -> str:
        """Return the next character that is not blank; an empty string at the end."""
        while True:
            while self.position < len(self.buffer) and self.buffer[self.position] in BLANKS:
                self.position += 1
            if self.position < len(self.buffer):
                return self.buffer[self.position]
            if not self.read_more():
                return ""

    def skip(self) -> None:
        self.position += 1

    def value(self, name: str) -> Any:
        """
        Parse one value.

        :param name: name of the value, for messages
        :raises ValueError: if it is not JSON, or longer than :data:`MAX_ROW_LENGTH`
        """
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self.buffer, self.position)
            except RecursionError:  # noqa: PERF203 - a few rounds
                raise ValueError(f"{name} is nested too deeply") from None
            except RepeatedKeyError as error:
                raise ValueError(f"{name}: {error}") from None
            except ValueError:
                if len(self.buffer) - self.position > MAX_ROW_LENGTH or not self.read_more():
                    raise ValueError(f"{name} is not JSON, or longer than {MAX_ROW_LENGTH:,} characters") from None
            else:
                # A number may continue in the next chunk.
                ends = end < len(self.buffer) and self.buffer[end] in VALUE_ENDS
                if ends or self.at_end or len(self.buffer) - self.position > MAX_ROW_LENGTH:
                    self.position = end
                    return value
                self.read_more()


def _rows_of_lines(file: RosterFile) -> Iterator[Any]:
    """Read a file with one JSON row per line."""
    with file.open() as text:
        for number, line in enumerate(_lines_of(text), start=1):
            try:
                yield _read_json(line) if line.strip() else {}
            except ValueError as error:  # noqa: PERF203 - it ends the loop
                raise ValueError(f"line {number}: {error}") from None


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
