"""Texts of others in Markdown, for questions, comments and pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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


def table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table, whose cells may be texts of others; ``None.`` if it has no rows."""
    lines = [f"| {' | '.join(inert(str(cell)) for cell in row)} |" for row in rows]
    return [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns), *lines] if lines else ["None."]


def fit(lines: Sequence[str]) -> list[str]:
    """Return as many of the first lines as the body of a question has room for."""
    shown, size = 0, 0
    while shown < len(lines) and (size := size + len(lines[shown].encode()) + 1) <= MAX_BODY:
        shown += 1
    return list(lines[:shown])
