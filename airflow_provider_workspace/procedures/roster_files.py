"""Rosters as people keep them: files of CSV, JSON or JSON lines, and what another task returned."""

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
from airflow_provider_workspace.errors import WorkspaceInputError

# Where cells go that have no column: no field of an invite, so that the row is refused under this name.
BEYOND = "cells beyond the last column"
# A row is a line, or what a comma ends. Nobody's is as long; so a file of one line does not fill the memory.
MAX_ROW_LENGTH = 1_000_000
# How many characters of a file are read at once.
CHUNK = 65_536
BLANKS = " \t\r\n"
ENDS = BLANKS + ",]"
COLUMNS = ("email", "target_email", *InviteSettings.model_fields)


def read_roster(
    invites: Any,
    path: str | RosterFile | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    argument: str = "invites",
) -> Iterable[Mapping[str, Any] | str]:
    """
    Return the rows of a roster; a file is read anew by each loop over them, and its rows are not kept.

    :param invites: a list of rows or addresses, or the same as JSON text; ``None`` if ``path`` is given
    :param path: file to read instead, ``.csv``, ``.json`` or ``.jsonl``, in UTF-8; a name is that of a file on this
        machine
    :param defaults: fields for the rows that lack them
    :param argument: what the author of the Dag calls ``invites``, for messages
    :raises WorkspaceInputError: if there is neither or both; while looping, if the file cannot be read
    """
    if (invites is None) == (path is None):
        msg = f"Give either {argument}=… or path=…"
        raise WorkspaceInputError(msg)
    return _Rows(_FileRows(path) if path is not None else rows_of_value(invites, argument), defaults or {})


class _Rows:
    """Rows with defaults for what they lack."""

    def __init__(self, rows: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        self.rows = rows
        self.defaults = defaults

    def __iter__(self) -> Iterator[Any]:
        """Yield each row."""
        for row in self.rows:
            fields = {"target_email": row} if isinstance(row, str) else row
            if self.defaults and isinstance(fields, Mapping):
                filled = {name: value for name, value in fields.items() if value not in (None, "")}
                yield {**self.defaults, **filled}
            else:
                yield row


class RosterFile:
    """
    A file on this machine; one that is elsewhere has a class of its own.

    :param path: name of the file
    :raises WorkspaceInputError: if it is no name
    """

    def __init__(self, path: Any) -> None:
        if not isinstance(path, str | PathLike):
            msg = f"path must be the name of a file, not something of type {type(path).__name__}"
            raise WorkspaceInputError(msg)
        self.path: Any = Path(path)
        self.suffix: str = self.path.suffix

    def __str__(self) -> str:
        """Return the name in quotes, as messages have it."""
        return _shown(self.path)

    def state(self) -> Any:
        """
        Return what changes when the file does.

        :raises WorkspaceInputError: if it is no file: reading a pipe or a device may never end
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            msg = f"There is no file {self} on this worker"
            raise WorkspaceInputError(msg) from None
        mode = found.st_mode
        if not stat.S_ISREG(mode):
            kind = (
                "a directory" if stat.S_ISDIR(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
            )
            msg = f"{self} is {kind}; expected a regular file"
            raise WorkspaceInputError(msg)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def open(self, newline: str | None = None) -> AbstractContextManager[TextIO]:
        """Open it as text."""
        return self.path.open(encoding="utf-8-sig", newline=newline)  # type: ignore[no-any-return]

    def changed(self) -> str:
        """Say that somebody writes it."""
        return f"Wait until {self} is complete: it changed while it was read"


class _FileRows:
    """The rows of a file, which must be the same each time they are read."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.known: Any = None

    def __iter__(self) -> Iterator[Any]:
        """
        Read the file row by row.

        :raises WorkspaceInputError: saying what is wrong with the file
        """
        readers = {".csv": _rows_of_csv, ".json": _rows_of_json, ".jsonl": _rows_of_lines}
        file = self.path if isinstance(self.path, RosterFile) else RosterFile(self.path)
        reader = readers.get(file.suffix.lower())
        if reader is None:
            msg = f"{file} is no roster: expected a name that ends in {', '.join(readers)}"
            raise WorkspaceInputError(msg)
        try:
            state = file.state()
            self.known = self.known or state
            yield from reader(file)
            if file.state() != self.known:
                raise WorkspaceInputError(file.changed())
        except UnicodeDecodeError as error:
            msg = f'{file} is not in UTF-8 (byte {error.start}): save it as "CSV UTF-8" or with the encoding UTF-8'
            raise WorkspaceInputError(msg) from None
        except (OSError, csv.Error, ValueError) as error:
            if isinstance(error, WorkspaceInputError):
                raise
            msg = f"{file} cannot be read: {error}"
            raise WorkspaceInputError(msg) from error


def rows_of_value(value: Any, argument: str = "invites") -> Sequence[Any]:
    """Read a list; a template that is not rendered natively delivers it as JSON text."""
    if isinstance(value, str):
        try:
            value = _read_json(value)
        except RepeatedKeyError as error:
            msg = f"{argument}: {error}"
            raise WorkspaceInputError(msg) from None
        except ValueError:
            msg = (
                f"{argument} is a text that is not a JSON list. Pass the other task's output itself (task.output), or "
                "set render_template_as_native_obj=True on the Dag"
            )
            raise WorkspaceInputError(msg) from None
    if isinstance(value, Mapping | str) or not isinstance(value, Sequence):
        try:
            value = [] if isinstance(value, Mapping | str) or value is None else list(value)
        except TypeError:
            value = []
        if not value:
            msg = f"{argument} must be a list of rows or addresses"
            raise WorkspaceInputError(msg)
    return value  # type: ignore[no-any-return]


def _shown(name: Any) -> str:
    """Write a name of a file or column so that a line of a log stays a line."""
    return f"'{name}'" if str(name).isprintable() else ascii(str(name))


def _lines_of(text: TextIO) -> Iterator[str]:
    """
    Yield the lines of a file, and never hold more than the longest that makes sense.

    :raises ValueError: if a line is longer
    """
    number = 0
    while True:
        number += 1
        line = text.readline(MAX_ROW_LENGTH)
        if len(line) == MAX_ROW_LENGTH:
            msg = f"line {number} is longer than {MAX_ROW_LENGTH:,} characters"
            raise ValueError(msg)
        if not line:
            return
        yield line


def _rows_of_csv(file: RosterFile) -> Iterator[dict[str, Any]]:
    """Read a CSV file with a header; commas, semicolons and tabs separate, as in the header."""
    with file.open(newline="") as text:
        header = next(_lines_of(text), "")
        delimiter = max(",;\t", key=header.count)
        text.seek(0)
        reader = csv.DictReader(_lines_of(text), delimiter=delimiter, strict=True, restkey=BEYOND, restval="")
        try:
            names = [name.strip() for name in reader.fieldnames or []]
            _check_columns(file, names)
            reader.fieldnames = names
            for number, row in enumerate(reader, start=1):
                if row.get("private_project_access"):
                    row["private_project_access"] = _json_cell(file, number, row["private_project_access"])
                yield row
        except csv.Error as error:
            msg = f"after line {reader.line_num}: {error}"
            raise ValueError(msg) from None


def _check_columns(file: RosterFile, names: Sequence[str]) -> None:
    """Refuse a header with a column that is no field of an invite, or that stands twice."""
    if not any(names):
        msg = f"{file} is empty: expected a header such as email,first_name,level"
        raise WorkspaceInputError(msg)
    for name in names:
        if name not in COLUMNS:
            from difflib import get_close_matches

            close = get_close_matches(name[:100], COLUMNS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known columns: {', '.join(COLUMNS)}"
            msg = f"{file} has a column {_shown(name[:100])} that no invite has ({hint})"
            raise WorkspaceInputError(msg)
        if names.count(name) > 1:
            msg = f"{file} has the column '{name}' more than once: which one counts?"
            raise WorkspaceInputError(msg)
    addresses = {"email", "target_email"} & set(names)
    if not addresses:
        msg = f"{file} has no column 'email'; its columns are {', '.join(names)}"
        raise WorkspaceInputError(msg)
    if len(addresses) > 1:
        msg = f"{file} has both columns 'email' and 'target_email': which one counts?"
        raise WorkspaceInputError(msg)


def _json_cell(file: RosterFile, number: int, text: str) -> Any:
    """Read a cell that holds JSON."""
    try:
        return _read_json(text)
    except ValueError:
        msg = f"{file}, row {number}: private_project_access must be a JSON list"
        raise WorkspaceInputError(msg) from None


def _rows_of_json(file: RosterFile) -> Iterator[Any]:
    """Read a JSON file that holds an array, one row at a time."""
    with file.open() as text:
        array = JsonText(text)
        if array.peek() != "[":
            array.value("the file")
            msg = f"{file} must hold a JSON array of rows"
            raise WorkspaceInputError(msg)
        array.drop()
        if array.peek() == "]":
            array.drop()
        else:
            number = 0
            while True:
                number += 1
                yield array.value(f"row {number}")
                mark = array.peek()
                array.drop()
                if mark == "]":
                    break
                if mark != ",":
                    msg = f"after row {number} a comma or the end of the array is expected"
                    raise ValueError(msg)
        if array.peek():
            msg = "something follows the array"
            raise ValueError(msg)


class JsonText:
    """JSON that is read piece by piece."""

    def __init__(self, text: TextIO) -> None:
        self.text = text
        self.held = ""
        self.at = 0
        self.over = False

    def more(self) -> bool:
        """Read on, and tell whether there was more; what lies behind is let go."""
        piece = self.text.read(CHUNK)
        self.held, self.at, self.over = self.held[self.at :] + piece, 0, not piece
        return not self.over

    def peek(self) -> str:
        """Return the next character that is not blank; nothing at the end."""
        while True:
            while self.at < len(self.held) and self.held[self.at] in BLANKS:
                self.at += 1
            if self.at < len(self.held):
                return self.held[self.at]
            if not self.more():
                return ""

    def drop(self) -> None:
        """Go on behind the character that was peeked at."""
        self.at += 1

    def value(self, name: str) -> Any:
        """
        Read one value.

        :param name: what it is, for messages
        :raises ValueError: if it is no JSON, or longer than a row can be
        """
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self.held, self.at)
            except RecursionError:  # noqa: PERF203 - a few rounds
                msg = f"{name} is nested too deeply"
                raise ValueError(msg) from None
            except RepeatedKeyError as error:
                msg = f"{name}: {error}"
                raise ValueError(msg) from None
            except ValueError:
                if len(self.held) - self.at > MAX_ROW_LENGTH or not self.more():
                    msg = f"{name} is not JSON, or longer than {MAX_ROW_LENGTH:,} characters"
                    raise ValueError(msg) from None
            else:
                # A number may go on in the next piece.
                ends = end < len(self.held) and self.held[end] in ENDS
                if ends or self.over or len(self.held) - self.at > MAX_ROW_LENGTH:
                    self.at = end
                    return value
                self.more()


def _rows_of_lines(file: RosterFile) -> Iterator[Any]:
    """Read a file with one JSON row per line."""
    with file.open() as text:
        for number, line in enumerate(_lines_of(text), start=1):
            if line.strip():
                try:
                    yield _read_json(line)
                except ValueError as error:
                    msg = f"line {number}: {error}"
                    raise ValueError(msg) from None


class RepeatedKeyError(ValueError):
    """An object has a key twice."""


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, and refuse a key that stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(name for name, _ in pairs if [key for key, _ in pairs].count(name) > 1)
        msg = f"the key {_shown(repeated[:100])} stands twice in one object"
        raise RepeatedKeyError(msg)
    return found


DECODER = json.JSONDecoder(object_pairs_hook=once_each)


def _read_json(text: str) -> Any:
    """
    Read JSON.

    :raises ValueError: if it is none, is nested too deeply or repeats a key
    """
    try:
        return DECODER.decode(text)
    except RecursionError:
        msg = "JSON that is nested too deeply"
        raise ValueError(msg) from None
