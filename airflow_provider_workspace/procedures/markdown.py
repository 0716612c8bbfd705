"""Texts of others in Markdown, for questions, comments and pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from airflow_provider_workspace.errors import printable

# Bytes of the body of a question: MySQL stores up to 65,535.
MAX_BODY = 60_000
MAX_CODE = 3_000

# What could be Markdown, HTML, a mention or a link: not the @ and the dots of an address, an underscore within a name,
# and the colons of a time and of a sentence.
ACTIVE = re.compile(r"[^\w .,;+%'=/()@:-]|(?<!\w)_+|_+(?!\w)|(?<!\w)@|(?<=www)\.|:(?!\d\d|\s|$)")


def code(text: str) -> str:
    """Return a text from a file or the workspace as code; see :func:`inert`."""
    return text and f"<code>{inert(text)}</code>"


def inert(text: str) -> str:
    """Return a text from a file or the workspace in which nothing is Markdown, HTML or a mention."""
    cut = text if len(text) <= MAX_CODE else f"{text[:MAX_CODE]}…"
    return ACTIVE.sub(lambda found: "".join(f"&#{ord(char)};" for char in found[0]), printable(cut))


def table(columns: Sequence[str], rows: Iterable[Iterable[object]], write: Callable[[str], str] = inert) -> list[str]:
    """
    Return the lines of a table; ``None.`` if it has no rows.

    :param write: makes a cell Markdown: by default a cell is a text of others; ``str`` if it is Markdown already
    """
    lines = [_line([write(str(cell)) for cell in row]) for row in rows]
    if not lines:
        return ["None."]
    return [_line(columns), _line(["---"] * len(columns)), *lines]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def fit(lines: Sequence[str]) -> list[str]:
    """Return as many of the first lines as the body of a question has room for."""
    fitting: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > MAX_BODY:
            break
        fitting.append(line)
    return fitting
