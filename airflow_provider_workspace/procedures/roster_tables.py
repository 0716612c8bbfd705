"""The rows of roster files as they are: CSV, JSON and JSON lines, as directories and spreadsheets write them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Protocol

from airflow_provider_workspace.api.levels import LEVELS
from airflow_provider_workspace.api.templates import is_empty
from airflow_provider_workspace.errors import WorkspaceInputError, shown

DELIMITERS = ",;\t|"
# What to do first with a file of another kind, by the end of its name.
FIRST_STEPS = {
    ".gz": "unpack it, as with gunzip",
    ".zip": "unpack it",
    ".xlsx": "save it as CSV UTF-8",
    ".xls": "save it as CSV UTF-8",
    ".ods": "save it as CSV UTF-8",
    ".txt": "rename it to .csv if its first line names the columns",
    ".ldif": "export the directory as CSV, as csvde does, or read it in a task and pass its rows",
    ".xml": "read it in a task and pass its rows",
    ".parquet": "read it in a task and pass its rows",
    ".tfvars": "write the list as JSON, as 'terraform output -json' does, and name it with rows=…",
    ".yaml": "it is for an organization file",
    ".yml": "it is for an organization file",
}
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
# How a web page begins.
_HTML = ("<!doctype", "<html")
# The first line of a CSV file that names its delimiter, as Excel writes and hides it.
_SEPARATOR = re.compile(r'([\s,;]*)"?sep=([,;\t|])"?[,;\t|]*\r?\n?', re.IGNORECASE)
# The first line of the templates for bulk operations of Entra ID.
_VERSION = re.compile(r"version:\s*v[\d.]+", re.IGNORECASE)
# A cell that holds an address, whatever else it holds.
_ADDRESS = re.compile(r"\S@\S")
# A line of a text, with what ends it.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")
# In a cell, what ends a line.
LINE_BREAK = re.compile(r"\r\n|[\r\n]")
# In a cell with several lines, one that holds an address in a cell of its own: a row of somebody else.
SWALLOWED_ROW = re.compile(
    r'(?:\A|[\r\n])(?:[^\r\n]*[,;\t|])?[ "]*[^\s@,;|"]+@[^\s@,;|"]+[ "]*[,;\t|]'
    r'|(?:\A|[\r\n])[^\r\n]*[,;\t|][ "]*[^\s@,;|"]+@[^\s@,;|"]+[ "]*(?=[\r\n]|\Z)'
)
# In the answer of an API, the names, by their letters alone, of what leads to its next page or says that there is one.
_NEXT_PAGE = re.compile(r"(?:odata)?next(?:page|link|token|cursor|marker|records|url|uri)*|has(?:next|nextpage|more)")
# The names of how many rows there are on all pages.
_TOTALS = ("total", "count", "odatacount", "totalcount", "totalresults", "totalrecords", "totalitems", "totalsize")
# The names of what says more about the page, in a mapping of its own.
_ABOUT_PAGE = re.compile(r"pag(?:e|in)|meta|link")
# A cell that is no name of a column.
_NUMBER = re.compile(r"(?=\D*\d)[\s\d.,:/+-]+")


class RosterFile(Protocol):
    """A file whose name, ``str()`` of it, ends with its ``suffix``; ``files.storage.file_at`` opens one."""

    @property
    def suffix(self) -> str: ...

    def read(self) -> str:
        """
        Return all of its text.

        :raises WorkspaceInputError: if it cannot be read
        """
        ...


@dataclass(frozen=True)
class Table:
    """
    Rows as they are.

    :param rows: the rows; blank ones included
    :param header: names of columns by position; ``None`` if rows have none
    :param first_number: number of the first row, as a spreadsheet shows it
    :param is_csv: whether it comes from a CSV file, in which a short row lacks its last cells
    :param has_quotes: whether quotation marks are in that file
    :param remarks: what people must know about how it was read
    :param skipped: the rows that somebody asked to skip
    :param title: what to do if the header is the title of an export; empty if it cannot be one
    """

    rows: Sequence[Any]
    header: list[str] | None = None
    first_number: int = 1
    is_csv: bool = False
    has_quotes: bool = False
    remarks: list[str] = field(default_factory=list[str])
    skipped: Sequence[Any] = ()
    title: str = ""


def read_file(file: RosterFile, *, named: int = 0, rows: str | None = None, skip_rows: int = 0) -> Table:
    """
    Return the rows of a file, and the header of a CSV file.

    :param named: how many columns somebody else names by position. A header is then left out, and said
    :param rows: where the list of rows is in JSON; ``None`` if it is all
    :param skip_rows: how many lines of a CSV file, or rows of another, to skip first
    :raises WorkspaceInputError: if it cannot be read, or has no such rows
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        step = FIRST_STEPS.get(suffix, "export it in one of these forms, or read it in a task and pass its rows")
        raise WorkspaceInputError(
            f"{file} is not a roster: expected a name that ends in {', '.join(SUFFIXES)}. First, {step}"
        )
    try:
        text = file.read()
        if text.lstrip()[:9].lower().startswith(_HTML):
            raise WorkspaceInputError(
                f"The file is an HTML page, such as a form to sign in: download the export again. File: {file}"
            )
        if suffix in (".csv", ".tsv"):
            if rows is not None:
                raise WorkspaceInputError(
                    f"rows={rows!r} names a list in JSON, and a {suffix} file has none: leave it out. File: {file}"
                )
            return _table_of_csv(file, text, named, skip_rows, "\t" if suffix == ".tsv" else "")
        content = _read_json_or_lines(text) if suffix == ".json" else _rows_of_lines(text)
        found = rows_at(content, rows, "The file must hold a JSON array of rows", str(file))
        return without_first_rows(Table(found), skip_rows, str(file))
    except (csv.Error, ValueError) as error:
        if isinstance(error, WorkspaceInputError):
            raise
        raise WorkspaceInputError(f"The file cannot be read: {error}. File: {file}") from error


def without_first_rows(table: Table, skip_rows: int, place: str) -> Table:
    """
    Return a table without its first rows.

    :param place: where it comes from, for messages
    :raises WorkspaceInputError: if none of its rows is left
    """
    if not skip_rows:
        return table
    _raise_if_all_skipped(len(table.rows), skip_rows, place)
    return replace(
        table,
        rows=table.rows[skip_rows:],
        first_number=table.first_number + skip_rows,
        skipped=table.rows[:skip_rows],
    )


def _raise_if_all_skipped(count: int, skip_rows: int, place: str) -> None:
    if 0 < count <= skip_rows:
        raise WorkspaceInputError(
            f"skip_rows={skip_rows} skips every row ({count} in all). Lower it, or leave it out. In: {place}"
        )


def rows_at(value: Any, path: str | None, expected: str, place: str) -> list[Any]:
    """
    Return the list of rows in JSON, such as the answer of an API.

    :param path: the names on the way to it, with dots between them; ``None`` if there is none
    :param expected: what to say if there is no path
    :param place: where it comes from, for messages
    :raises WorkspaceInputError: if there is no list, naming those that there are; if it is one page of several
    """
    found = value_at(value, path) if path else value
    if isinstance(found, list):
        if path:
            _raise_if_page(value, path, len(found), place)
        return found
    lists: list[str] = []
    if isinstance(value, Mapping):
        below_keys = [(key, below) for key, below in value.items() if isinstance(below, list)]
        lists = [f"rows={key!r} ({len(below)} rows)" for key, below in below_keys]
    missing = f"There is no list at rows={path!r}" if path else expected
    cure = "If a list is nested in it, name it, as in rows='data.users'"
    if lists:
        cure = f"Name the list that holds them: {', '.join(lists)}"
    elif isinstance(found, Mapping) and found and all(isinstance(below, Mapping) for below in found.values()):
        cure = "If each key holds a person, pass list(value.values()) from a task"
    raise WorkspaceInputError(f"{missing}. {cure}. In: {place}")


def _raise_if_page(value: object, path: str, count: int, place: str) -> None:
    """Refuse the list at a path if something on the way to it says that there are more rows on other pages."""
    parts = path.split(".")
    heads = [".".join(parts[:end]) for end in range(1, len(parts))]
    for answer in (value, *(value_at(value, head) for head in heads)):
        sign = _sign_of_pages(answer, count)
        if sign:
            raise WorkspaceInputError(
                f"rows={path!r} is one page of several: it has {counted_rows(count)}, and {sign}. Read all pages in a "
                f"task, and pass the list of their rows. In: {place}"
            )


def _sign_of_pages(answer: object, count: int) -> str:
    """Return what in a part of an answer says that there are more rows on other pages; empty if nothing does."""
    if not isinstance(answer, Mapping):
        return ""
    for key, content in answer.items():
        name = "".join(filter(str.isalpha, str(key).lower()))
        if _NEXT_PAGE.fullmatch(name) and content:
            return f"{shown(key)} leads to another one"
        if name in _TOTALS and isinstance(content, int) and content > count:
            return f"{shown(key)} is {content}"
        sign = _sign_of_pages(content, count) if _ABOUT_PAGE.search(name) else ""
        if sign:
            return sign
    return ""


def counted_rows(count: int) -> str:
    """Return how many rows there are, for people."""
    return f"{count} row" if count == 1 else f"{count} rows"


def value_at(value: Any, path: str, missing: Any = None) -> Any:
    """Return a nested value by the names, or positions in lists, on the way to it; ``missing`` if there is none."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None if value is None else missing
    return value


def read_csv(text: str, delimiter: str = "") -> tuple[list[str], list[list[str]], int]:
    """
    Return the first row of a CSV text that is not blank, the rows after it, and its number.

    Cells are separated by commas, semicolons, tabs or ``|``, or by what a line ``sep=;`` names. That line, which
    spreadsheets hide if it is the first one, and blank rows and a line ``version:v1.0`` before the first row are left
    out; without any row, it is empty.

    :param delimiter: what separates cells, if it is known
    :raises ValueError: naming the line that cannot be read
    """
    separator = _SEPARATOR.match(text)
    hidden_lines = 0
    if separator is None:
        delimiter = delimiter or _delimiter_of(text)
    else:
        delimiter = separator[2]
        above = separator[1]
        # Below a blank row, spreadsheets do not hide it, and count it.
        text = (f"{above}\n" if above else "") + text[separator.end() :]
        hidden_lines = 0 if above else 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num + hidden_lines}: {error}") from None
    number = 0
    for number, row in enumerate(rows, start=1):
        cells = [cell for cell in row if not is_empty(cell)]
        is_version = len(cells) == 1 and _VERSION.fullmatch(cells[0].strip())
        if cells and not is_version:
            return row, rows[number:], number
    return [], [], number


def records_of_csv(text: str) -> list[dict[str, str]]:
    """
    Return the rows of a CSV text that are not blank, for files that are no rosters: cells by column, in lower case.

    :raises ValueError: if it cannot be read, or two columns have the same name: which of them counts, nobody knows
    """
    header, rows, _ = read_csv(text)
    names = [name.strip().lower() for name in header]
    counts = Counter(name for name in names if name)
    repeated = [shown(name) for name, count in counts.items() if count > 1]
    if repeated:
        listed = ", ".join(repeated)
        raise ValueError(f"the column {listed} is repeated: delete all but one")
    records: list[dict[str, str]] = []
    for row in rows:
        if not all(map(is_empty, row)):
            pairs = zip_longest(names, row[: len(names)], fillvalue="")
            records.append(dict(pairs))
    return records


def _delimiter_of(text: str) -> str:
    """Return the delimiter that the first row uses most; blank rows and a version before it say nothing."""
    for line in io.StringIO(text, newline=None):
        if line.strip(DELIMITERS + ' \r\n"') and not _VERSION.match(line):
            return max(DELIMITERS, key=line.count)
    return DELIMITERS[0]


def _is_value(cell: str) -> bool:
    """
    Return whether a cell of the first row is a value, and no name of a column: then the row is a person's.

    A person who is taken for a header would be removed; a header that is taken for a person is an invalid row.
    """
    text = cell.strip()
    if not text or is_empty(text) or text.lower() in LEVELS:
        return True
    return "@" in text or "." in text or _NUMBER.fullmatch(text) is not None


def _table_of_csv(file: RosterFile, text: str, named: int, skip_rows: int, delimiter: str) -> Table:
    skipped: list[list[str]] = []
    if skip_rows:
        lines = _LINE.findall(text)
        _raise_if_all_skipped(len(lines), skip_rows, str(file))
        text = "".join(lines[skip_rows:])
        separator = delimiter or _delimiter_of(text)
        skipped = [next(csv.reader([line], delimiter=separator)) for line in lines[:skip_rows]]
    first, rows, number = read_csv(text, delimiter)
    number += skip_rows
    if not first:
        raise WorkspaceInputError(f"The file is empty: expected a header such as email,first_name,level. File: {file}")
    has_quotes = '"' in text
    for name in first:
        if LINE_BREAK.search(name) and SWALLOWED_ROW.search(name):
            line = shown(LINE_BREAK.split(name)[0])
            raise WorkspaceInputError(
                f"A line break in the header below {line} swallows a row: delete the stray quotation mark there. "
                f"File: {file}"
            )
    has_address = any(_ADDRESS.search(cell) for cell in first)
    if any(map(_is_value, first[:named])):
        return Table([first, *rows], None, number, is_csv=True, has_quotes=has_quotes, skipped=skipped)
    if has_address and not named:
        raise WorkspaceInputError(
            f"No header: row {number} holds an address. Name the {len(first)} columns with columns=[…], such as "
            f"['email', None, 'level']; None leaves one out. If it is a title, set skip_rows={number}. File: {file}"
        )
    header = [name.strip() for name in first]
    names = [shown(name) for name in header if name]
    remarks: list[str] = []
    if named:
        remarks.append(f"Row {number} was taken for the header, and left out: {', '.join(names)}.")
    title = ""
    if len(names) == 1 and _is_header_below(rows):
        title = (
            f"Row {number} ({names[0]}) may be a title: delete the lines above the header, or set skip_rows={number}"
        )
    return Table(
        rows,
        header,
        number + 1,
        is_csv=True,
        has_quotes=has_quotes,
        remarks=remarks,
        skipped=skipped,
        title=title,
    )


def _is_header_below(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row that is not blank may be a header: it holds no address."""
    for row in rows:
        text = "".join(row).strip()
        if text:
            return "@" not in text
    return False


def _read_json_or_lines(text: str) -> Any:
    """Return the JSON of a file, or the rows of one that has an object per line, as many exports do."""
    try:
        return read_json(text)
    except RepeatedKeyError:
        raise
    except ValueError:
        lines = [line.strip() for line in LINE_BREAK.split(text.strip())]
        are_objects = all(line.startswith("{") and line.endswith("}") for line in lines)
        if not (lines and are_objects):
            raise
    return _rows_of_lines(text)


def _rows_of_lines(text: str) -> list[Any]:
    """Read a file with one JSON row per line."""
    rows: list[Any] = []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        try:
            rows.append(read_json(line) if line.strip() else {})
        except ValueError as error:  # noqa: PERF203 - it ends the loop
            raise ValueError(f"line {number}: {error}") from None
    return rows


class RepeatedKeyError(ValueError):
    """A JSON object repeats a key."""


def reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs, and refuse a repeated key."""
    built = dict(pairs)
    if len(built) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise RepeatedKeyError(f"the key {repeated[:100]!r} is repeated in one object")
    return built


DECODER = json.JSONDecoder(object_pairs_hook=reject_repeated_keys)


def read_json(text: str) -> Any:
    """Parse JSON; if it is invalid, nested too deeply or repeats a key, raise a ``ValueError``."""
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
