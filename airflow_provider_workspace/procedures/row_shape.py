"""Judge the shape of a row before anything reads its cells: where they slipped, ``where`` compares the wrong ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from airflow_provider_workspace.api.templates import is_empty
from airflow_provider_workspace.errors import shown
from airflow_provider_workspace.procedures.matching import without_invisible
from airflow_provider_workspace.procedures.roster_columns import (
    ADDRESS_FIELD,
    UNNAMED_CELLS,
    Layout,
    RowFilter,
    is_word_for_no_value,
)
from airflow_provider_workspace.procedures.roster_tables import LINE_BREAK, SWALLOWED_ROW, Table

# Fields whose texts may have several lines; so may columns that are left out.
FIELDS_OF_LINES = ("message", UNNAMED_CELLS, None)
# An address among others in a cell, whatever people write between them. It begins after what stands between: a search
# that may begin anywhere takes a minute for 60,000 letters.
_BETWEEN = r"\s@,;|/&:<>()\"\u3001\uff0c\uff1b\u060c\u00b7\u2022"
_ADDRESS = re.compile(rf"(?<![^{_BETWEEN}])[^{_BETWEEN}]+@[^{_BETWEEN}]+")
# Maximum number of characters of a cell that a reason shows.
MAX_FIRST_LINE = 40
QUOTE = "put quotation marks around a cell that holds the separator"


class RowShapes:
    """
    Finds rows of a table that do not have the shape of the others.

    :param table: its rows
    :param row_filter: which of them ``where`` selects
    """

    def __init__(self, table: Table, row_filter: RowFilter) -> None:
        self._is_csv = table.is_csv
        self._has_quotes = table.has_quotes
        self._filter = row_filter
        self._usual_width = _usual_width(table.rows) if table.is_csv and row_filter.columns else 0

    def problem(self, cells: Sequence[Any], layout: Layout) -> str:
        """Return what is wrong with the shape of a row that is not blank; empty if nothing is."""
        problem = ""
        if self._is_csv:
            if self._has_quotes:
                problem = _swallowed_rows(cells, layout)
            problem = problem or self._wrong_width(cells, layout)
        if problem or not self._filter.columns:
            return problem
        if self._is_csv:
            problem = _displaced_address(cells, layout)
        return problem or self._filter.missing_field(cells, layout)

    def _wrong_width(self, cells: Sequence[Any], layout: Layout) -> str:
        width = len(cells)
        columns = len(layout.fields)
        if width > columns and not all(map(is_empty, cells[columns:])):
            return f"cells beyond the last column: the row has {width}, and the header {columns}: {QUOTE}"
        if not self._filter.columns or layout.named_width <= width <= columns or width == self._usual_width:
            return ""
        fewer_or_more = "fewer" if width < columns else "more"
        return (
            f"{fewer_or_more} cells than columns, so where may compare the wrong one: the row has {width}, and the "
            f"header {columns}. Complete the row, or {QUOTE}"
        )


def _usual_width(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many cells most rows have; 0 if no number is that of more than half of them."""
    widths = Counter(map(len, rows))
    width, count = widths.most_common(1)[0] if widths else (0, 0)
    return width if count > 1 and count * 2 > len(rows) else 0


def _swallowed_rows(cells: Sequence[Any], layout: Layout) -> str:
    """Return which cell holds a line break where none belongs: stray quotation marks swallow the rows between."""
    for position, cell in enumerate(cells):
        if not LINE_BREAK.search(cell):
            continue
        is_known = position < len(layout.fields)
        may_have_lines = not is_known or layout.fields[position] in FIELDS_OF_LINES
        if may_have_lines and not SWALLOWED_ROW.search(cell):
            continue
        name = shown(layout.names[position]) if is_known else str(position + 1)
        first_line = LINE_BREAK.split(cell.strip())[0][:MAX_FIRST_LINE]
        return (
            f"a line break in column {name}, whose first line is {first_line!r}: delete the stray quotation mark "
            "there, or double it"
        )
    return ""


def _displaced_address(cells: Sequence[Any], layout: Layout) -> str:
    """Return in which other column the address stands, if something else is in its own."""
    if ADDRESS_FIELD not in layout.fields:
        return ""
    place = layout.fields.index(ADDRESS_FIELD)
    cell = cells[place] if place < len(cells) else ""
    if "@" in cell or is_empty(cell) or is_word_for_no_value(cell):
        return ""
    for name, other in zip(layout.names, cells, strict=False):
        if "@" in other:
            return f"column {shown(layout.names[place])} holds no address, and column {shown(name)} does: {QUOTE}"
    return ""


def addresses_in(cell: object) -> list[str]:
    """Return the addresses in a cell, whatever else it holds; none if it is no text."""
    if not isinstance(cell, str) or "@" not in cell:
        return []
    return _ADDRESS.findall(without_invisible(cell))


def address_in(cells: Sequence[Any]) -> str | None:
    """Return the first address in the cells of a row whose shape is wrong; ``None`` without one."""
    for cell in cells:
        addresses = addresses_in(cell)
        if addresses:
            return addresses[0]
    return None
