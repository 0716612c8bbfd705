"""Texts of others in Markdown, for questions, comments and pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from airflow_provider_workspace.api.database_limits import MAX_TEXT_BYTES
from airflow_provider_workspace.errors import visible

# Bytes of the body of a question, with room for the lines that follow.
MAX_BODY = MAX_TEXT_BYTES - 5_535
MAX_CODE = 3_000

# What could be Markdown, HTML or a mention: not the @ and the dots of an address, and an underscore within a name.
ACTIVE = re.compile(r"[^\w .,;+%'=/()@:\u2192-]|(?<!\w)_+|_+(?!\w)|(?<!\w)@")
# What becomes a link by itself, also where its characters are escaped; it holds nothing that ends code or a cell.
LINK = re.compile(r"(?:[a-z][a-z0-9+.-]{0,30}://|www\.)[\w.~:/?#@!$&'()*+,;=%\[\]-]+", re.IGNORECASE)
# What ends a sentence, and no URL.
AFTER_LINK = ".,;:!?)'"
# Code, or where an address goes on after its @.
CODE_OR_AT = re.compile(r"`[^`]*`|(?<=\S@)(?=\S)")
# In an address, it keeps Airflow's Markdown from making it a link. It is not shown there.
NO_LINK = "<wbr>"


def code(text: str) -> str:
    """Return a text from a file or the workspace as code; see :func:`inert`."""
    return text and f"<code>{inert(text)}</code>"


def inert(text: str, limit: int | None = MAX_CODE) -> str:
    """
    Return a text from a file or the workspace in which nothing is Markdown, HTML, a mention or a link.

    A URL is code between backticks, which people can read also where Markdown is not rendered.

    :param limit: maximum number of characters; ``None`` for all of them
    """
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}…"
    readable = visible(text)
    if "://" not in readable and "www." not in readable.lower():
        return _escape(readable)
    parts: list[str] = []
    end = 0
    for link in LINK.finditer(readable):
        url = link[0].rstrip(AFTER_LINK)
        parts.append(_escape(readable[end : link.start()]))
        parts.append(f"`{url}`")
        end = link.start() + len(url)
    parts.append(_escape(readable[end:]))
    return "".join(parts)


def _escape(text: str) -> str:
    return ACTIVE.sub(lambda found: "".join(f"&#{ord(char)};" for char in found[0]), text)


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
    """
    Return as many of the first lines as the body of a question has room for.

    Addresses in them become no links.
    """
    fitting: list[str] = []
    size = 0
    for line in map(_without_mail_links, lines):
        size += len(line.encode()) + 1
        if size > MAX_BODY:
            break
        fitting.append(line)
    return fitting


def _without_mail_links(line: str) -> str:
    return CODE_OR_AT.sub(lambda found: found[0] or NO_LINK, line)
