"""The fenced blocks of the README and the documentation: what readers copy."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# For those who change the package.
NOT_FOR_USERS = ("adr/", "architecture.md", "releasing.md")

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
# A block is a file if its first line is a comment with the name of the file, or the sentence above it begins or ends
# with the name: "`data/members.csv`, beside the Dag:"
FILE = r"(\w[\w./-]*\.(?:csv|json|py|yaml))"
NAMED_BY = (re.compile(rf"\A# {FILE}\n"), re.compile(rf"\A`{FILE}`.*:\Z", re.DOTALL), re.compile(rf"`{FILE}`:\Z"))


@dataclass(frozen=True)
class Block:
    """
    A fenced block.

    :ivar page: path below ``docs``, or ``README.md``
    :ivar line: line of its fence in the page
    :ivar above: the paragraph right above it
    """

    page: str
    line: int
    language: str
    text: str
    above: str

    @property
    def file(self) -> str | None:
        """The name of the file that it is, if the page names one."""
        by_comment, by_beginning, by_end = NAMED_BY
        named = by_comment.match(self.text) or by_beginning.match(self.above) or by_end.search(self.above)
        return named[1] if named else None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    blocks = []
    for fence in FENCE.finditer(text):
        before = text[: fence.start()]
        blocks.append(
            Block(
                page,
                line=before.count("\n") + 1,
                language=fence["language"],
                text=textwrap.dedent(fence["text"]),
                above=before.rstrip().rpartition("\n\n")[2],
            )
        )
    return blocks


def read_pages() -> dict[str, str]:
    """Return the text of each page for users."""
    files = {str(file.relative_to(DOCS)): file for file in sorted(DOCS.rglob("*.md"))}
    pages = {"README.md": (ROOT / "README.md").read_text()}
    for name, file in files.items():
        if not name.startswith(NOT_FOR_USERS):
            pages[name] = file.read_text()
    return pages


PAGES = read_pages()
BLOCKS = [block for page, text in PAGES.items() for block in blocks_of(page, text)]


def the(page: str, start: str) -> Block:
    """Return the only block of a page that begins with a text."""
    found = [block for block in BLOCKS if block.page == page and block.text.startswith(start)]
    assert len(found) == 1, f"{len(found)} blocks of {page} begin with {start!r}"
    return found[0]


def in_language(language: str, page: str | None = None) -> list[Block]:
    """Return the blocks in a language, of one page or of all."""
    return [block for block in BLOCKS if block.language == language and page in (None, block.page)]


def before(block: Block) -> Block:
    """Return the block before this one on its page."""
    return [other for other in BLOCKS if other.page == block.page and other.line < block.line][-1]


def write_files(page: str, folder: Path) -> None:
    """Write the files that a page gives: its own, and those of the examples if it shows one of them."""
    if "example_dags/data/" in PAGES[page]:
        examples = ROOT / "example_dags" / "data"
        (folder / "data").mkdir(exist_ok=True)
        for file in examples.iterdir():
            (folder / "data" / file.name).write_text(file.read_text())
    for block in BLOCKS:
        if block.page == page and block.file:
            file = folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
