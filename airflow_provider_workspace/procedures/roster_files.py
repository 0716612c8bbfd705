"""Read people: from CSV, JSON or JSON lines files, from the result of another task, from lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from airflow_provider_workspace.api.comparison import normal_text
from airflow_provider_workspace.api.levels import parse_level, parse_number
from airflow_provider_workspace.api.secrets import without_secrets
from airflow_provider_workspace.api.templates import is_empty
from airflow_provider_workspace.errors import WorkspaceInputError, shown, type_name
from airflow_provider_workspace.procedures.invites_report import name_entries
from airflow_provider_workspace.procedures.matching import plain_scalar, skeleton, text_of
from airflow_provider_workspace.procedures.roster import GUEST, RosterRows, address_problem, check_roster
from airflow_provider_workspace.procedures.roster_columns import (
    ADDRESS_FIELD,
    OTHER_COLUMNS,
    ROSTER_FIELDS,
    TEXT_FIELDS,
    UNNAMED_CELLS,
    USER_FIELD,
    Columns,
    Layout,
    RosterColumns,
    RowFilter,
    RowFormat,
    column_key,
    is_word_for_no_value,
)
from airflow_provider_workspace.procedures.roster_tables import (
    RepeatedKeyError,
    RosterFile,
    Table,
    counted_rows,
    read_file,
    read_json,
    rows_at,
    without_first_rows,
)
from airflow_provider_workspace.procedures.row_shape import RowShapes, address_in
from airflow_provider_workspace.procedures.until import LAST_DAY

# For callers without ``where``.
NO_TIME = datetime.max.replace(tzinfo=timezone.utc)
# The format of rows as the interface has them.
AS_THEY_ARE = RowFormat()
# The columns of an address alone.
ADDRESS_ALONE = Layout(("email",), (ADDRESS_FIELD,), {}, 1)
# Maximum number of cells of a row without an address that an error shows, and of their characters.
MAX_CELLS = 4
MAX_CELL = 40
# Maximum number of levels that a remark shows.
MAX_LEVELS = 5
# What the first cell of a footer holds. The row of a person begins with a name or a number of an employee.
_FOOTER = re.compile(
    r":|©|\b(?:totals?|summe|gesamt|rows|records|entries|generated|exported|printed|confidential|end of)\b",
    re.IGNORECASE,
)
# A line of marks, as "-- end --".
_FOOTER_OF_MARKS = re.compile(r"[-=*#~_]{2}|\W*(?:end|eof)\W*\Z", re.IGNORECASE)
# With a number in the row. Without one, it may be a name.
_FOOTER_WITH_NUMBER = re.compile(
    r"\b(?:sum|count|row|record|users|members|results|report|page|created)\b", re.IGNORECASE
)
# Maximum number of cells of a footer.
MAX_FOOTER = 2
# What to do about a column without a name that is not empty, such as the index of pandas.
LEAVE_OUT_UNNAMED = "columns={'': None} leaves out columns without a name, and {'*': None} all that it does not name"


def read_roster(
    invites: Any,
    file: RosterFile | None = None,
    defaults: Mapping[str, Any] | None = None,
    *,
    argument: str = "invites",
    columns: Columns = None,
    where: Mapping[str, Any] | None = None,
    now: datetime = NO_TIME,
    row_format: RowFormat = AS_THEY_ARE,
    levels_are_named: bool = False,
    is_leaving: bool = False,
) -> RosterRows:
    """
    Return the rows of a roster: their columns named as in the interface, cells without a value left out.

    :param invites: addresses, mappings, tuples or lists, or rows and the description of a cursor; also as JSON text.
        ``None`` if ``file`` is given
    :param file: file to read instead, such as ``.csv`` or ``.json``
    :param defaults: fields for rows that do not have them, also of columns that ``where`` compares
    :param argument: name of the operator's argument for ``invites``, for messages
    :param columns: fields by the names of columns, ``None`` to leave one out, also all others as ``"*"``; or a list of
        fields by position
    :param where: wanted value, age or values by the name of a column; the rows of others are left out and counted
    :param now: the time from which the ages in ``where`` count
    :param row_format: how the rows are written
    :param levels_are_named: whether ``level`` is an access level for sure, as in the rows of an organization file
    :param is_leaving: whether the people of the rows are removed
    :raises WorkspaceInputError: unless exactly one of both is given; if the file cannot be read, or columns are wrong
    """
    if (invites is None) == (file is None):
        raise WorkspaceInputError(f"Give either {argument}=… or path=…")
    if file is None:
        place = argument
        rows = rows_of_value(invites, argument, row_format.rows)
        table = without_first_rows(_split_description(rows, columns), row_format.skip_rows, argument)
    else:
        place = str(file)
        named_by_position = 0 if columns is None or isinstance(columns, Mapping) else len(columns)
        table = read_file(file, named=named_by_position, rows=row_format.rows, skip_rows=row_format.skip_rows)
    row_filter = RowFilter(where, now, defaults, is_leaving=is_leaving)
    reader = _RowReader(
        table,
        RosterColumns(columns, table.header, row_filter.columns),
        row_filter,
        defaults,
        row_format,
        is_leaving=is_leaving,
    )
    roster = reader.read()
    reader.columns.check(place, has_rows=reader.has_rows, title=table.title)
    reader.raise_if_person_skipped()
    row_filter.raise_doubts()
    roster.remarks = [*table.remarks, *reader.remarks()]
    if not levels_are_named and row_format.levels is None:
        roster.origin_of_levels = reader.origin_of_levels()
    for field, name in reader.columns.spellings.items():
        if ROSTER_FIELDS.get(column_key(name)) != field:
            roster.columns[field] = name
    return roster


class _RowReader:
    """Reads the rows of a table, each by its columns."""

    def __init__(
        self,
        table: Table,
        columns: RosterColumns,
        row_filter: RowFilter,
        defaults: Mapping[str, Any] | None,
        row_format: RowFormat,
        *,
        is_leaving: bool,
    ) -> None:
        self.table, self.columns = table, columns
        self._is_leaving = is_leaving
        self._without_last_day = 0
        self._level_names = _read_levels(row_format.levels)
        self._no_value = frozenset(map(normal_text, row_format.no_value))
        self.has_rows = False
        self._filter = row_filter
        self._shapes = RowShapes(table, row_filter)
        filtered = {column_key(name) for name in row_filter.columns}
        of_where = filtered - ROSTER_FIELDS.keys()
        given = defaults or {}
        fields = {name: value for name, value in given.items() if column_key(name) not in of_where}
        self._defaults = _values([*fields], fields.values())
        self._roster = RosterRows(table.first_number)
        self._levels: set[str] = set()

    def read(self) -> RosterRows:
        roster = self._roster
        for number, row in enumerate(self.table.rows, start=self.table.first_number):
            roster.append(self._read_row(row, number))
        return roster

    def _read_row(self, row: Any, number: int) -> dict[str, Any]:
        """Return the fields of a row; nothing if it is blank or left out."""
        row = self.columns.with_nested(row)
        cells = self._cells(row)
        # Without a value, an address alone is an invalid row, and a list or a mapping is a blank one.
        may_be_blank = cells is not None
        layout: Layout | None = ADDRESS_ALONE
        if cells is None:
            cells = [row]
        elif cells:
            layout = self._layout(row, cells, number)
        else:
            return {}
        if layout is None:
            return {}
        values = _values(layout.fields, cells)
        if may_be_blank and not values and all(map(is_empty, cells)):
            return {}
        self.has_rows = True
        if layout is ADDRESS_ALONE:
            self.columns.spellings.setdefault(ADDRESS_FIELD, "email")
        problem = self._shapes.problem(cells, layout)
        if problem:
            return self._note_misshapen(number, problem, cells, values)
        if self._filter.columns and UNNAMED_CELLS not in values and not self._filter.selects(cells, layout, number):
            self._roster.left_out[number] = values.get(ADDRESS_FIELD), values.get(USER_FIELD)
            return {}
        address = values.setdefault(ADDRESS_FIELD, None)
        if UNNAMED_CELLS in values:
            self._roster.hints[number] = LEAVE_OUT_UNNAMED
        elif not _is_usual(address):
            self._roster.hints[number] = _hint(address, cells, layout, may_be_footer=self.table.is_csv)
        if "level" in values:
            problem = self._note_level(values)
            if problem:
                return self._note_misshapen(number, problem, cells, values)
        return self._with_defaults(row, layout, values)

    def _with_defaults(self, row: object, layout: Layout, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a row, also those that it does not have; note who leaves without a last day."""
        if self._is_leaving and "until" not in values and self._has_no_last_day(row, layout):
            values["until"] = LAST_DAY
        values = {**self._defaults, **values}
        self._without_last_day += "until" not in values
        return values

    def _has_no_last_day(self, row: object, layout: Layout) -> bool:
        """Return whether a leaver without a last day has a text for no value in its column, and so does not leave."""
        if "until" not in layout.fields:
            return False
        place = layout.fields.index("until")
        cells = _cells_of(row) or ()
        return place < len(cells) and self._is_no_value(cells[place])

    def _cells(self, row: Any) -> Sequence[Any] | None:
        """Return the cells of a row, see :func:`_cells_of`; those that the author calls no value are empty."""
        cells = _cells_of(row)
        if cells is None or not self._no_value:
            return cells
        return ["" if self._is_no_value(cell) else cell for cell in cells]

    def _is_no_value(self, cell: object) -> bool:
        return isinstance(cell, str) and normal_text(cell) in self._no_value

    def _note_level(self, values: dict[str, Any]) -> str:
        """
        Note the level of a row, and replace it by what its text stands for if the author says so.

        :returns: what is wrong with the level; empty if nothing is
        """
        text = text_of(values["level"])
        self._levels.add(text[:MAX_CELL])
        if not self._level_names:
            return ""
        key = _level_key(values["level"])
        if key not in self._level_names:
            if OTHER_COLUMNS not in self._level_names or skeleton(key) in map(skeleton, self._level_names):
                return f"level {shown(text)} is not in levels"
            key = OTHER_COLUMNS
        level = self._level_names[key]
        if level is None:
            del values["level"]
        else:
            values["level"] = level
        return ""

    def _note_misshapen(
        self, number: int, problem: str, cells: Sequence[Any], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a row whose cells may stand in wrong columns: nothing counts but its person, and that it may end."""
        self._roster.misshapen[number] = problem
        address = address_in([values.get(ADDRESS_FIELD), *cells])
        row: dict[str, Any] = {ADDRESS_FIELD: address, USER_FIELD: values.get(USER_FIELD)}
        if "until" in values or "until" in self.columns.spellings:
            row["until"] = values.get("until", "")
        return row

    def _layout(self, row: Any, cells: Sequence[Any], number: int) -> Layout | None:
        """Return the columns of a row; ``None`` if nobody names them, which is a mistake."""
        columns = self.columns
        if isinstance(row, Mapping):
            if columns.is_list:
                columns.reject("a mapping names its columns itself: pass columns={…}, not a list", number)
            return columns.layout(tuple(row), number)
        by_position = columns.by_position
        names = _names_of(row) if by_position is None else None
        if names is not None:
            return columns.layout(names, number)
        if by_position is None and len(cells) == 1:
            return ADDRESS_ALONE
        is_other_width = by_position is not None and len(cells) != len(by_position.fields)
        if by_position is None or (is_other_width and not self.table.is_csv):
            cure = "pass columns=[…] with a name for each of them, or None to leave it out"
            columns.reject(f"{len(cells)} columns: {cure}", number)
            return None
        return by_position

    def raise_if_person_skipped(self) -> None:
        """Refuse to skip a row that holds an address where the addresses are; the columns are known by then."""
        for number, skipped in enumerate(self.table.skipped, start=1):
            row = self.columns.with_nested(skipped)
            cells = _cells_of(row)
            layout = ADDRESS_ALONE if cells is None else self._layout(row, cells, number)
            fields = () if layout is None else layout.fields
            address = _values(fields, [row] if cells is None else cells).get(ADDRESS_FIELD)
            if isinstance(address, str) and address_problem(address) is None:
                raise WorkspaceInputError(
                    f"skip_rows skips row {number}, which holds {address}: lower it, or delete the row"
                )

    def remarks(self) -> list[str]:
        """Return what people must know about the rows: how many leave without a last day, or are left out."""
        remarks: list[str] = []
        if self.table.skipped:
            first = self.table.skipped[0]
            cells = _cells_of(first)
            text = ", ".join(map(text_of, [first] if cells is None else cells))
            remarks.append(f"Skipped by skip_rows: {shown(text)}.")
        if self._is_leaving and self._without_last_day and "until" in self.columns.spellings:
            remarks.append(f"Without a last day, so they leave now: {counted_rows(self._without_last_day)}.")
        left_out = len(self._roster.left_out)
        if not left_out:
            return remarks
        remark = f"Left out by where ({', '.join(self._filter.columns)}): {left_out} of {len(self._roster)}."
        for name, count in self._filter.blank.items():
            remark += f" {counted_rows(count)} without a value in {shown(name)}."
        return [*remarks, remark]

    def origin_of_levels(self) -> str:
        """Return where levels come from, if nobody said so and they may be other numbers; else nothing."""
        column = self.columns.spellings.get("level")
        if column is None or self.columns.names("level") or not self._levels:
            return ""
        try:
            numbers = sorted({parse_number(level) for level in self._levels})
        except ValueError:  # a name, which is no grade
            return ""
        levels = ", ".join(map(str, numbers[:MAX_LEVELS]))
        more = ", …" if len(numbers) > MAX_LEVELS else ""
        return (
            f"Levels come from column {shown(column)} ({levels}{more}), which columns=… does not name: check that "
            "these are access levels, not job grades."
        )


def addresses_of(value: Any, argument: str, *, needed: bool = True) -> list[str]:
    """
    Return the addresses of rows, each once.

    :param value: rows, see :func:`read_roster`
    :param needed: whether there must be one; always if there are rows
    :raises WorkspaceInputError: naming the rows that have none, or an invalid one
    """
    rows = read_roster(value, argument=argument)
    roster = check_roster(rows, only_addresses=True)
    if roster.invalid:
        raise WorkspaceInputError(f"Invalid addresses in {argument}: {name_entries(roster.invalid)}")
    if not roster.rows and (needed or roster.blank):
        raise WorkspaceInputError(f"{argument} is empty: expected at least one address")
    return [row.invite.target_email for row in roster.rows]


def _read_levels(levels: Mapping[str, int | str | None] | None) -> dict[str, int | None]:
    """
    Return the levels for which the texts of a source stand, by these texts for comparison.

    :raises WorkspaceInputError: if one is no level
    """
    named: dict[str, int | None] = {}
    for text, level in (levels or {}).items():
        key = _level_key(text)
        if key in named:
            raise WorkspaceInputError(f"levels names {shown(key)} twice")
        try:
            named[key] = None if level is None else parse_level(level)
        except ValueError as error:
            raise WorkspaceInputError(f"levels: {shown(text)} stands for no level: {error}") from None
    return named


def _level_key(level: object) -> str:
    """Return the form in which levels of a source are compared: letter case does not count, and 8.0 is 8."""
    try:
        return str(parse_number(level))
    except ValueError:
        return normal_text(text_of(level)).lower()


def rows_of_value(value: Any, argument: str = "invites", path: str | None = None) -> Sequence[Any]:
    """
    Read a list, also from the JSON text to which a template renders it.

    :param path: where the list is in it, see :class:`~airflow_provider_workspace.procedures.roster_columns.RowFormat`
    """
    if isinstance(value, str):
        try:
            value = read_json(value)
        except RepeatedKeyError as error:
            raise WorkspaceInputError(f"{argument}: {error}") from None
        except ValueError:
            raise WorkspaceInputError(
                f"{argument} is a text that is not a JSON list. Pass the output of the other task (task.output), or "
                "set render_template_as_native_obj=True on the Dag"
            ) from None
    if hasattr(value, "columns") and not isinstance(value, Sequence | Mapping):
        raise WorkspaceInputError(
            f"{argument} is {type_name(value)}: pass its rows, as df.to_dict('records') returns them"
        )
    if path is not None or isinstance(value, Mapping):
        return rows_at(value, path, f"{argument} must be a list of rows or addresses", argument)
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise WorkspaceInputError(f"{argument} must be a list of rows or addresses")
    return value if isinstance(value, Sequence) else list(value)


def _is_list(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return True
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)


def _cells_of(row: Any) -> Sequence[Any] | None:
    """Return the cells of a row; ``None`` of an address alone."""
    if isinstance(row, list | tuple):
        return row
    if isinstance(row, Mapping):
        return [*row.values()]
    if _is_list(row) or _names_of(row) is not None:
        return [*row]
    return None


def _names_of(row: Any) -> tuple[Any, ...] | None:
    """Return the names of the columns that a row of a driver has, such as a named tuple; ``None`` without names."""
    if isinstance(row, list | str) or type(row) is tuple:  # as most rows, of which there may be many
        return None
    fields = getattr(row, "_fields", None) or getattr(row, "__fields__", None)
    if fields is not None and hasattr(row, "__iter__"):
        return tuple(fields)
    description = getattr(row, "cursor_description", None)
    if description is not None:
        return tuple(column[0] for column in description)
    keys = getattr(row, "keys", None)
    return tuple(keys()) if keys is not None and hasattr(row, "__getitem__") else None


def _split_description(rows: Sequence[Any], columns: Columns) -> Table:
    """Return rows, and their columns if they come with the description of a cursor (PEP 249): names, types and more."""
    if len(rows) != 2 or not all(map(_is_list, rows)):
        return Table(rows)
    known = {*ROSTER_FIELDS, *map(column_key, columns if isinstance(columns, Mapping) else ())}
    best = Table(rows)
    most = -1
    for records, description in ((rows[0], rows[1]), (rows[1], rows[0])):
        names = _names_described(description)
        first = _cells_of_first(records)
        if names is None or first is None:
            continue
        if records and isinstance(records[0], Mapping):  # which names its columns itself
            return Table(records)
        # Either part may look like a description: that with the names of columns is one.
        found = sum(column_key(name) in known for name in names)
        may_describe = records is rows[0] or not records or len(first) == len(names)
        if found > most and may_describe:
            best, most = Table(records, names), found
    return best


def _cells_of_first(records: Sequence[Any]) -> Sequence[Any] | None:
    """Return the cells of the first row; none if there is no row, and ``None`` if it is an address alone or a cell."""
    return _cells_of(records[0]) if records else ()


def _names_described(description: Sequence[Any]) -> list[str] | None:
    """Return the names in the description of a cursor, or those in a list of names; ``None`` if it is neither."""
    names: list[str] = []
    for column in description:
        name = column[0] if _is_list(column) and len(column) > 1 else column
        if not isinstance(name, str) or "@" in name:
            return None
        names.append(name)
    return names or None


def _values(fields: Sequence[str | None], cells: Iterable[Any]) -> dict[str, Any]:
    """Return the cells that have a field and a value; texts are trimmed, and a list may be JSON text."""
    values: dict[str, Any] = {}
    for field, cell in zip(fields, cells, strict=False):
        if field is None or is_empty(cell) or (field in TEXT_FIELDS and is_word_for_no_value(cell)):
            continue
        if isinstance(cell, str):
            values[field] = cell.strip()
            if field == "private_project_access":
                with suppress(ValueError):  # then it is no list
                    values[field] = read_json(cell)
        else:
            values[field] = plain_scalar(cell)
    return values


def _is_usual(address: Any) -> bool:
    """Return whether a cell looks like one address, as those of most rows, of which there may be many."""
    return isinstance(address, str) and address.count("@") == 1 and "#" not in address


def _hint(address: Any, cells: Sequence[Any], layout: Layout, *, may_be_footer: bool) -> str:
    """Return what helps to find the person of a row without a usual address, or to correct it; perhaps nothing."""
    if isinstance(address, str) and GUEST in address.lower():
        for name, text in _about_person(cells, layout).items():
            if "@" in text and address_problem(text) is None:
                return f"column {shown(name)} holds one"
        return ""
    filled = [text_of(cell) for cell in cells if not is_empty(cell)]
    if may_be_footer and _may_be_footer(filled, has_address=address is not None):
        alone = ", ".join(map(shown, filled))
        return f"it has {alone} alone: delete it if it is the footer of an export"
    if address is not None:
        return ""
    texts = _about_person(cells, layout)
    named = [f"{name} {text[:MAX_CELL]!r}" for name, text in islice(texts.items(), MAX_CELLS)]
    return ", ".join(without_secrets(named))


def _about_person(cells: Sequence[Any], layout: Layout) -> dict[str, str]:
    """Return the texts of a row by which people find a person, by the name of the column, or its place."""
    texts: dict[str, str] = {}
    columns = zip(layout.names, layout.fields, cells, strict=False)
    for place, (name, field, cell) in enumerate(columns, start=1):
        if field is not None and field not in TEXT_FIELDS:
            continue
        if isinstance(cell, str | int | float) and not is_empty(cell):
            texts[name or f"column {place}"] = text_of(cell)
    return texts


def _may_be_footer(filled: Sequence[str], *, has_address: bool) -> bool:
    """Return whether the cells of a row are those of a footer, such as ``Total: 120``, and not of a person."""
    if len(filled) > MAX_FOOTER or any("@" in text for text in filled):
        return False
    first = filled[0]
    if _FOOTER.search(first) or _FOOTER_OF_MARKS.match(first):
        return True
    if not any(char.isdecimal() for char in "".join(filled)):
        return False
    if _FOOTER_WITH_NUMBER.search(first):
        return True
    # In the column of addresses, a number or a sentence with one.
    is_sentence = " " in first or first.isdecimal()
    return has_address and is_sentence and len(filled) == 1
