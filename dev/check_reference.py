"""Check the index and the tables of arguments of the built documentation; part of ``make docs``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "build" / "docs"
# A link of the index.
ENTRY = re.compile(r'<a href="([^"#:]*)#([^"]+)">(.*?)</a>', re.DOTALL)
# The heading of an operator or sensor.
CLASS = re.compile(r'<dt class="sig sig-object py" id="[\w.]+\.(Workspace\w+(?:Operator|Sensor))">')
ROW = re.compile(r'<td id="([\w-]+)">')
LINK = re.compile(r'<a class="reference internal" href="([^"#]*)#([\w-]+)">')


def main() -> int:
    """Print what leads nowhere, or says nothing."""
    wrong = [*wrong_entries(), *wrong_tables()]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


@cache
def ids_of(page: str) -> frozenset[str]:
    """Return the ids on a page."""
    return frozenset(re.findall(r' id="([^"]+)"', (DOCS / page).read_text()))


def wrong_entries() -> Iterator[str]:
    """Yield entries of the index without text, or without an element that they lead to."""
    index = (DOCS / "genindex.html").read_text()
    for page, target, text in ENTRY.findall(index.partition("genindex-jumpbox")[2]):
        name = re.sub(r"<[^>]+>", "", text).strip()
        if re.fullmatch(r"(\[\d+\])?", name):
            yield f"The index has an entry without text, for {page}#{target}."
        if page and target not in ids_of(page):
            yield f"The index leads from '{name}' to {page}#{target}, which is not there."


def wrong_tables() -> Iterator[str]:
    """Yield operators and sensors with a signature, or with links to arguments that have no row."""
    for page in (*DOCS.glob("operators/*.html"), DOCS / "sensors.html"):
        _, *parts = CLASS.split(page.read_text())
        for name, section in zip(parts[::2], parts[1::2], strict=True):
            if "sig-paren" in section.partition("</dt>")[0]:
                yield f"{name} has a signature: its arguments belong into the table."
            rows = ROW.findall(section)
            common = section.partition("<p>Common arguments: ")[2].partition("</p>")[0]
            links = LINK.findall(common)
            if not rows and not links and "Window" not in name:
                yield f"{name} shows no arguments."
            for other, target in links:
                place = (page.parent / other).resolve().relative_to(DOCS.resolve()) if other else page.relative_to(DOCS)
                if target not in ids_of(str(place)):
                    yield f"{name} links to {place}#{target}, which is not there."


if __name__ == "__main__":
    sys.exit(main())
