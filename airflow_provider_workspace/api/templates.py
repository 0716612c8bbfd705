"""What a Jinja template is, and what templates and XComs become that found no value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_workspace.errors import WorkspaceInputError

# The brace that starts a part of a template. Not compiled here: Dag files import this.
TEMPLATE = r"\{(?=[{%#])"
# What ids, names and other arguments that cannot be just any text render to if there is no value.
NO_VALUES = ("", "None", "none", "null", "Undefined")


def template_line(text: str) -> int | None:
    """Return the number of the first line that looks like a template; ``None`` if there is none."""
    found = re.search(TEMPLATE, text)
    return found and text.count("\n", 0, found.start()) + 1


def is_no_value(value: object, words: Collection[str] = ("None",)) -> bool:
    """
    Return whether a template found no value: native rendering makes it ``None``, other rendering the word "None".

    :param words: texts that are no value
    """
    return value is None or (isinstance(value, str) and value.strip() in words)


def is_empty(cell: object) -> bool:
    """Return whether a cell of a row has no value: nothing, only blanks of any kind, or NaT, a date unlike itself."""
    if isinstance(cell, str):
        if cell.isascii():  # as most cells, of which there may be millions
            return not cell.strip()
        return all(char.isspace() or unicodedata.category(char) == "Cf" for char in cell)
    if isinstance(cell, date):
        return cell != cell  # noqa: PLR0124
    return cell is None


def no_value_error(name: str, value: object = None) -> WorkspaceInputError:
    """
    Return the error for an argument that must have a value.

    :param name: the argument
    :param value: what it rendered to
    """
    from airflow_provider_workspace.errors import WorkspaceInputError

    found = "it returned no value" if value is None else f"its template found no value and rendered to '{value}'"
    return WorkspaceInputError(
        f"{name} has no value: {found}. Check the task that it comes from", problem="template-without-value"
    )
