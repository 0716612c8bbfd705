"""Which field of an invite each column of a roster is, and which rows ``where`` selects."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from airflow_provider_workspace.api.operations.invites import InviteDetails
from airflow_provider_workspace.errors import WorkspaceInputError, most_similar, shown, type_name
from airflow_provider_workspace.procedures.matching import (
    COMPARABLE,
    Before,
    comparable,
    is_equal,
    is_time,
    matches,
    read_where,
    skeleton,
    text_of,
    truth_of,
)
from airflow_provider_workspace.procedures.roster_tables import counted_rows, value_at
from airflow_provider_workspace.procedures.until import END_FIELDS

# Names of columns: fields by name, or a list of fields by position; ``None`` leaves a column out.
Columns = Sequence[str | None] | Mapping[str, str | None] | None


@dataclass(frozen=True)
class RowFormat:
    """
    How the rows of a source are written, where they are not as the interface has them.

    :param rows: where the list of rows is in JSON, such as ``Resources``; ``None`` if it is all
    :param skip_rows: how many lines of a CSV file, or rows, to skip first
    :param levels: levels by their texts in the source, ``None`` for no value; ``*`` stands for all others
    :param no_value: texts that are no value
    """

    rows: str | None = None
    skip_rows: int = 0
    levels: Mapping[str, int | str | None] | None = None
    no_value: Collection[str] = ()

    def __post_init__(self) -> None:
        """Refuse a negative number, which would count from the end."""
        if self.skip_rows < 0:
            raise WorkspaceInputError(f"skip_rows must be 0 or more, not {self.skip_rows}")


# What a row of JSON does not have.
MISSING = object()
# The name in ``columns`` of all columns that it does not name.
OTHER_COLUMNS = "*"
# The name in ``columns`` of columns without a name.
NO_NAME = ""
ADDRESS_FIELD = "target_email"
# The user of a row, whatever their address is by now.
USER_FIELD = "user_uuid"
ROSTER_COLUMNS = ("email", ADDRESS_FIELD, *InviteDetails.model_fields, *END_FIELDS, USER_FIELD)
# The name of cells in a column without a name: not a field of an invite, so the row is refused with this name.
UNNAMED_CELLS = "cells in a column without a name"
# Fields for people to read, in which these words are no value: what formulas and programs write for a missing one.
TEXT_FIELDS = ("first_name", "message")
# Not "Null", "Nan" and "NA", which are names of people.
WORDS_OF_PROGRAMS = (
    "None",
    "none",
    "NONE",
    "null",
    "NULL",
    "nan",
    "NaN",
    "NaT",
    "<NA>",
    "<null>",
    "<NULL>",
    "undefined",
)
WORDS_OF_EXPORTS = ("N/A", "n/a", "(null)", "(NULL)", "(none)", "(None)", "(blank)", "\\N")
ERRORS_OF_FORMULAS = (
    "#N/A",
    "#REF!",
    "#VALUE!",
    "#NAME?",
    "#DIV/0!",
    "#NULL!",
    "#NUM!",
    "#SPILL!",
    "#CALC!",
    "#ERROR!",
)
WORDS_FOR_NO_VALUE = frozenset((*WORDS_OF_PROGRAMS, *WORDS_OF_EXPORTS, *ERRORS_OF_FORMULAS))
# Invisible characters, underscores and hyphens, which do not count in the name of a column.
IGNORED_CATEGORIES = ("Cf", "Pc", "Pd")
# Maximum number of mistakes in an error, of columns in one of them, and length of a column that people copy.
MAX_WRONG = 10
MAX_NAMES = 60
MAX_COLUMN_SHOWN = 200
# Maximum number of values of a column that an error shows.
MAX_VALUES = 10


@lru_cache(maxsize=4096)
def column_key(name: object) -> str:
    """Return the name of a column for comparison: case, blanks, hyphens, underscores and Unicode form do not count."""
    key = ""
    for char in unicodedata.normalize("NFC", str(name).lower()):
        if not char.isspace() and unicodedata.category(char) not in IGNORED_CATEGORIES:
            key += char
    return key


# The fields of an invite by the keys of their names.
ROSTER_FIELDS = {**{column_key(name): name for name in ROSTER_COLUMNS}, "email": ADDRESS_FIELD}


def is_word_for_no_value(cell: Any) -> bool:
    """Return whether a cell of :data:`TEXT_FIELDS` holds what formulas and programs write if there is no value."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return isinstance(cell, str) and cell.strip() in WORDS_FOR_NO_VALUE


@dataclass(frozen=True)
class Layout:
    """
    The columns of a row.

    :param names: their names, as the rows have them
    :param fields: the field of each; ``None`` if it is left out
    :param positions: where the columns of ``where`` are, by their names in it
    :param named_width: how many columns there are without those at the end that have no name
    """

    names: tuple[str, ...]
    fields: tuple[str | None, ...]
    positions: Mapping[str, int]
    named_width: int


class RosterColumns:
    """
    Finds the field of each column, and collects what is wrong with the columns.

    :param columns: names, see :data:`Columns`
    :param header: names by position, if the rows come with them
    :param filtered: the columns that ``where`` names
    :ivar paths: the columns with a dot, which may be nested in rows of JSON
    :ivar by_position: the columns of rows without names; ``None`` if nobody names them
    :ivar spellings: the name of the column of each field, as the rows have it
    """

    def __init__(self, columns: Columns, header: Sequence[str] | None, filtered: Iterable[str]) -> None:
        self.spellings: dict[str, str] = {}
        self._wrong: dict[str, int] = {}
        self._unknown: dict[str, int] = {}
        self._keys: set[str] = set()
        self._layouts: dict[tuple[Any, ...], Layout] = {}
        self._filtered = {column_key(name): name for name in filtered}
        self._named: Mapping[str, str | None] = {}
        listed: list[str] | None = None
        if isinstance(columns, Mapping):
            self._named = columns
        elif columns is not None:
            listed = [NO_NAME if name is None else name for name in columns]
            if None in columns:
                self._named = {NO_NAME: None}
        paths = [name for name in (*self._named, *self._filtered.values()) if "." in name]
        self.paths = dict.fromkeys(paths)
        self.is_list = listed is not None
        self._named_keys = frozenset(map(column_key, self._named))
        self._meaning = {**ROSTER_FIELDS, **self._read_named()}
        names = header if listed is None else listed
        self.by_position = None if names is None else self.layout(tuple(names), 0)
        if listed is not None and header is not None:
            self._check_list(header, listed)

    def _check_list(self, header: Sequence[str], listed: Sequence[str]) -> None:
        """
        Refuse a list that contradicts the header which it replaces.

        It names as many columns, but for those at the end without a name, and no column that is elsewhere.
        """
        width = _named_width(header)
        if not width <= len(listed) <= len(header):
            self.reject(f"{width} columns, and columns=[…] names {len(listed)}", 0)
            return
        keys = [column_key(name) for name in header]
        for place, name in enumerate(listed):
            key = column_key(name)
            if key and key in keys and keys[place] != key:
                at = keys.index(key) + 1
                self.reject(f"{shown(name)} is column {at} of the header, and columns=[…] names it at {place + 1}", 0)

    def _read_named(self) -> dict[str, str | None]:
        """Return the field of each column that ``columns`` names, by its key."""
        fields: dict[str, str | None] = {}
        spellings: dict[str, str] = {}
        for name, given in self._named.items():
            key = column_key(name)
            field = ROSTER_FIELDS.get(column_key(given)) if isinstance(given, str) else None
            if given is not None and (field is None or name == OTHER_COLUMNS):
                self.reject(f"unknown field {shown(given)} in columns", 0)
            elif key in spellings:
                self.reject(f"columns names {shown(spellings[key])} and {shown(name)}, which are one column", 0)
            if key not in spellings:
                spellings[key] = name
                fields[key] = field
        return fields

    def with_nested(self, row: object) -> Any:
        """Return a row of JSON with its nested values that ``columns`` or ``where`` name, as ``profile.email``."""
        if not self.paths or not isinstance(row, Mapping):
            return row
        nested: dict[str, Any] = {}
        for path in self.paths:
            value = value_at(row, path, MISSING)
            if value is not MISSING:
                nested[path] = value
        heads = {path.partition(".")[0] for path in self.paths}
        return {name: value for name, value in row.items() if name not in heads} | nested

    def names(self, field: str) -> bool:
        """Return whether ``columns`` says which column a field is."""
        if self.is_list:
            return True
        spelling = self.spellings.get(field, "")
        return column_key(spelling) in self._named_keys

    def reject(self, mistake: str, number: int) -> None:
        """Note a mistake, and the first row that has it, or 0."""
        self._wrong.setdefault(mistake, number)

    def layout(self, names: tuple[Any, ...], number: int) -> Layout:
        """Return the columns of a row; ``number`` is that of the row, or 0."""
        known = self._layouts.get(names)
        if known is None:
            known = self._layouts[names] = self._new_layout(tuple(map(str, names)), number)
        return known

    def _new_layout(self, names: tuple[str, ...], number: int) -> Layout:
        fields: list[str | None] = []
        positions: dict[str, int] = {}
        for position, name in enumerate(names):
            key = column_key(name)
            self._keys.add(key)
            if key in self._filtered:
                filtered = self._filtered[key]
                if filtered in positions:
                    other = names[positions[filtered]]
                    self.reject(f"{shown(other)} and {shown(name)} are one column, which where compares", number)
                positions[filtered] = position
            field = self._field(name, number)
            if field is not None and field in fields and field != UNNAMED_CELLS:
                self.reject(f"{shown(names[fields.index(field)])} and {shown(name)} mean the same", number)
            elif field is not None:
                self.spellings.setdefault(field, name)
            fields.append(field)
        return Layout(names, tuple(fields), positions, _named_width(names))

    def _field(self, name: str, number: int) -> str | None:
        """Return the field of a column; ``None`` if it is left out."""
        key = column_key(name)
        is_named = key in self._named_keys
        if OTHER_COLUMNS in self._named and not is_named:
            return None
        if not key and not is_named:
            return UNNAMED_CELLS
        if key in self._meaning:
            return self._meaning[key]
        if key not in self._filtered:
            self._unknown.setdefault(name, number)
        return None

    def check(self, place: str, *, has_rows: bool, title: str = "") -> None:
        """
        Refuse columns that are missing, unknown or conflict with each other.

        :param place: where the rows come from, for the message
        :param has_rows: whether there was any row that could have the columns
        :param title: what to do if the header is the title of an export; empty if it cannot be one
        :raises WorkspaceInputError: naming all of them, the missing ones first
        """
        missing = self._missing() if has_rows or self.by_position is not None else []
        if not (missing or self._unknown or self._wrong):
            return
        mistakes = [f"no column {shown(name, MAX_COLUMN_SHOWN)}" for name in missing]
        mistakes += _describe_unknown(self._unknown, is_list=self.is_list)
        mistakes += [f"{_in_row(number)}{mistake}" for mistake, number in self._wrong.items()]
        listed = "; ".join(mistakes[:MAX_WRONG])
        if len(mistakes) > MAX_WRONG:
            listed += "; …"
        known = ", ".join(ROSTER_COLUMNS)
        cure = title or self._cure()
        raise WorkspaceInputError(f"Wrong columns: {listed}. Known columns: {known}. {cure.rstrip('.')}. In: {place}")

    def _cure(self) -> str:
        """Return how to leave out columns, for the form in which ``columns`` is given."""
        if self.is_list:
            return (
                "In columns=[…], name the columns of where too; None leaves out the column at its place, as in "
                "['email', None, 'level']"
            )
        if OTHER_COLUMNS in self._named:
            return "With {'*': None}, name each column that counts, as in {'Email': 'email', '*': None}"
        return "columns={'Department': None} leaves one out, and {'*': None} all that columns does not name"

    def _missing(self) -> list[str]:
        """Return the columns that somebody names and no row has."""
        wanted = [name for name, field in self._named.items() if field is not None and name != OTHER_COLUMNS]
        wanted += self._filtered.values()
        missing = [name for name in dict.fromkeys(wanted) if column_key(name) not in self._keys]
        if not self._layouts or ADDRESS_FIELD in self.spellings:
            return missing
        meanings = [self._meaning.get(column_key(name)) for name in missing]
        return missing if ADDRESS_FIELD in meanings else ["email", *missing]


def _named_width(names: Sequence[str]) -> int:
    """Return how many columns there are without those at the end that have no name."""
    width = 0
    for number, name in enumerate(names, start=1):
        if column_key(name):
            width = number
    return width


def _in_row(number: int) -> str:
    """Return the beginning of a mistake that a row has first; nothing for 0, which is the header."""
    return f"row {number}: " if number else ""


def _describe_unknown(unknown: Mapping[str, int], *, is_list: bool) -> list[str]:
    """Return the columns that nobody knows by the first row that has them, each with the one that it resembles."""
    by_row: dict[int, list[str]] = {}
    for name, number in islice(unknown.items(), MAX_NAMES):
        text = shown(name, MAX_COLUMN_SHOWN)
        similar = most_similar(name[:MAX_COLUMN_SHOWN].lower(), ROSTER_COLUMNS)
        if similar and is_list:
            text += f" (did you mean {shown(similar)}?)"
        elif similar:
            text += f" (did you mean columns={{{text}: {shown(similar)}}}?)"
        by_row.setdefault(number, []).append(text)
    mistakes: list[str] = []
    for number, names in by_row.items():
        word = "unknown column" if len(names) == 1 else "unknown columns"
        listed = ", ".join(names)
        mistakes.append(f"{_in_row(number)}{word} {listed}")
    more = len(unknown) - MAX_NAMES
    if more > 0:
        mistakes.append(f"and {more} more unknown columns")
    return mistakes


class RowFilter:
    """
    Selects the rows of a roster, by the rule of :func:`~airflow_provider_workspace.procedures.matching.is_equal`.

    :param where: wanted value, age or values by the name of a column
    :param now: the time from which ages count
    :param defaults: fields for rows that do not have them
    :param is_leaving: whether the people of its rows are removed
    :ivar blank: how many rows have no value in a column that wants one, by its name
    :raises WorkspaceInputError: if a value cannot be compared, or an age removes who joined today
    """

    def __init__(
        self,
        where: Mapping[str, Any] | None,
        now: datetime,
        defaults: Mapping[str, Any] | None,
        *,
        is_leaving: bool,
    ) -> None:
        self._wanted = read_where(where, now.timestamp(), _read_wanted) if where else {}
        self._ages: list[str] = []
        if is_leaving:
            for name, wanted in self._wanted.items():
                if any(isinstance(one, Before) for one in wanted):
                    self._ages.append(name)
            _refuse_single_age(self._ages)
        keys = {column_key(name): name for name in self._wanted}
        self._defaults: dict[str, Any] = {}
        for name, value in (defaults or {}).items():
            if column_key(name) in keys:
                self._defaults[keys[column_key(name)]] = comparable(value)
        self._values: dict[str, Counter[Any]] = {name: Counter() for name in self._wanted}
        self.blank: Counter[str] = Counter()
        self._doubts: dict[str, str] = {}
        self._undated: list[int] = []
        self._selects_any = False

    @property
    def columns(self) -> list[str]:
        """The columns that it compares."""
        return [*self._wanted]

    def missing_field(self, cells: Sequence[Any], layout: Layout) -> str:
        """Return which column a row does not have, of which nobody says what its absence means; empty for none."""
        for name, wanted in self._wanted.items():
            is_there = layout.positions.get(name, len(cells)) < len(cells)
            if is_there or name in self._defaults:
                continue
            if None not in wanted:
                why = f"no {shown(name, MAX_COLUMN_SHOWN)}, which where compares"
                cure = "add None to the values of where; if not, add it to the row, or to defaults"
                return f"{why}. If a missing one counts, {cure}"
        return ""

    def selects(self, cells: Sequence[Any], layout: Layout, number: int) -> bool:
        """
        Return whether a row is selected; what cannot be told is collected for :meth:`raise_doubts`.

        :param layout: its columns
        :raises WorkspaceInputError: if a cell cannot be compared
        """
        is_selected = True
        is_dated = not self._ages
        for name, wanted in self._wanted.items():
            position = layout.positions.get(name, len(cells))
            cell = cells[position] if position < len(cells) else None
            value = comparable(cell)
            if value is None:
                value = self._defaults.get(name)
            if value is not None and not isinstance(value, COMPARABLE):
                raise WorkspaceInputError(
                    f"where compares {name}, and row {number} has {type_name(cell)} there: expected a text, number, "
                    "boolean or time"
                )
            self._values[name][value] += 1
            is_dated = is_dated or (name in self._ages and value is not None)
            is_address = position < len(cells) and layout.fields[position] == ADDRESS_FIELD
            if _is_wanted(value, wanted, path="email" if is_address else ""):
                continue
            is_selected = False
            if value is None:
                self.blank[name] += 1
            doubt = _doubt(value, wanted)
            if doubt:
                self._doubts.setdefault(name, f"{doubt}, and row {number} has {_shown(value)}")
        self._selects_any = self._selects_any or is_selected
        if is_selected and not is_dated:
            self._undated.append(number)
        return is_selected

    def raise_doubts(self) -> None:
        """
        Refuse columns with texts that nobody can tell from what is wanted, and show which values occur.

        :raises WorkspaceInputError: naming the columns, their values and how often each occurs; or leavers without any
            time, or by an age that no row has
        """
        doubts: list[str] = []
        for name, doubt in self._doubts.items():
            values = self._values[name].most_common()
            held = [f"{_shown(value)} ({counted_rows(count)})" for value, count in values[:MAX_VALUES]]
            if len(values) > MAX_VALUES:
                held.append("…")
            named = ", ".join(held)
            doubts.append(f"where compares {name} with {doubt}. Values of {name}: {named}")
        if doubts:
            raise WorkspaceInputError(
                f"{'. '.join(doubts)}. List in where, as they are written, those that count, or correct the rows",
                problem="where-unclear",
            )

        if self._undated:
            ages = " and ".join(map(shown, self._ages))
            raise WorkspaceInputError(
                f"{counted_rows(len(self._undated))} without a time in {ages} would be removed, the first is row "
                f"{self._undated[0]}. Complete them, or leave them out with another column of where",
                problem="joined-unknown",
            )
        for name in self._ages:
            if self._selects_any and self._values[name].keys() == {None} and None not in self._wanted[name]:
                raise WorkspaceInputError(
                    f"No row has a time in {shown(name)}: check that its source still sends it. If a missing one "
                    f"counts, add None to the values of where: where={{{shown(name)}: [{{'before': '90d'}}, None]}}",
                    problem="joined-unknown",
                )


def _refuse_single_age(ages: Sequence[str]) -> None:
    """Refuse to remove people by one age alone: whoever joined today has no time there, which is before any other."""
    if len(ages) == 1:
        age = {"before": "90d"}
        raise WorkspaceInputError(
            f"where={{{shown(ages[0])}: {age}}} alone also removes who has no time there, such as people who joined "
            "today. Compare when they joined, too, as in "
            f"where={{'last_login': {age}, 'joined_at': {age}}}. For a last day, use columns={{'Last day': 'until'}}",
            problem="joined-unknown",
        )


def _is_wanted(value: Any, wanted: Sequence[Any], *, path: str) -> bool:
    """Return whether a cell is one of the wanted values; ``path`` ends with ``email`` for an address."""
    for one in wanted:
        if isinstance(one, Before) and value is not None and not is_time(value):
            continue
        if matches(path, value, one) or is_equal(value, one):
            return True
    return False


def _doubt(value: Any, wanted: Sequence[Any]) -> str:
    """Return what is wanted of a value if nobody can tell whether it is that: looks like it, no boolean, no time."""
    if value is None or not wanted:
        return ""
    if any(isinstance(one, Before) for one in wanted) and not is_time(value):
        return "'before'"
    if not isinstance(value, str):
        return ""
    wants_booleans = all(isinstance(one, bool) for one in wanted)
    wants_times = all(isinstance(one, date) for one in wanted)
    if (wants_booleans and truth_of(value) is None) or (wants_times and not is_time(value)):
        return str(wanted[0])
    for spelling in wanted:
        if spelling is not None and skeleton(text_of(spelling)) == skeleton(value):
            return _shown(spelling)
    return ""


def _shown(value: Any) -> str:
    if value is None:
        return "no value"
    return shown(value) if isinstance(value, str) else text_of(value)


def _read_wanted(name: str, value: Any) -> Any:
    """Return a wanted value as cells are compared with it."""
    wanted = comparable(value)
    if wanted is not None and not isinstance(wanted, COMPARABLE):
        raise WorkspaceInputError(
            f"where compares {name} with {type_name(value)}; expected a text, number, boolean or time"
        )
    return wanted
