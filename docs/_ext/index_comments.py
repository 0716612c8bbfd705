"""Reads ``<!-- index: ! word, … -->`` in a page as an ``{index}``, which a repository view would show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def read(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Put the directive in place of each comment."""
    source[0] = re.sub(r"^<!-- index: (.+) -->$", r"```{index} \1\n```", source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Connect this to Sphinx."""
    app.connect("source-read", read)
