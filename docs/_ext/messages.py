"""Adds the messages of the package to the search."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders.html import StandaloneHTMLBuilder

DOCS = Path(__file__).resolve().parents[1]
PACKAGE = DOCS.parent / "airflow_provider_workspace"
# Where messages come from, and the page that explains them.
TOPICS = {
    "The connection": (r"client/settings|client/exchange|client/wire|hooks/connection", "connection.md"),
    "Maintenance windows": (r"windows/|operators/w|triggers/d|task_groups", "guides/maintenance-windows.md"),
    "Organization files": (r"procedures/organization|operators/organization", "guides/organization-file.md"),
    "Members": (r"procedures/member|operators/members", "guides/members.md"),
    "Approvals": (r"procedures/(plan|answers)|operators/approval", "guides/approve.md"),
    "Invites and files": (r"procedures/(inv|quota|roster)|operators/inv|hooks/files", "guides/bulk-invites.md"),
    "Waiting": (r"sensors|triggers|procedures/(cond|snap|arriv)", "guides/waiting.md"),
    "Arguments of operators": (r"operators|api/templates", "operators/index.md"),
    "Commands": (r"cli", "cli.md"),
    "Requests": (r"", "faults.md"),
}  # fmt: skip
# What holds no messages: the sandbox, labels, and calls and arguments that only describe.
OTHERS = re.compile(r"sandbox|ui/|get_provider_info|cli/definition|_(form|schema)")
CODE = re.compile(r"[\\|@#]|tag:|:write, ")
QUIET = {"info", "debug", "compile", "search", "match", "fullmatch", "sub", "TypeVar", "getLogger", "import_module"}
LABELS = {"description", "doc_md", "tooltip", "title", "help", "prefix_group_id", "default_text", "group_display_name"}


def text_of(node: ast.AST) -> str:
    """Return a text of the code, with … for each value in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def literals(node: ast.AST) -> Iterator[str]:
    """Return the texts below a node that may be messages."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if text := text_of(node):
        yield re.sub(r"%[sr]|%\.?\d*[dfg]|\{\w+\}", "…", text)
        return
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in QUIET:
        return
    if isinstance(node, ast.keyword) and node.arg in LABELS:
        return
    for child in ast.iter_child_nodes(node):
        yield from literals(child)


def messages() -> dict[str, list[str]]:
    """Return the messages of the package by topic."""
    found: dict[str, set[str]] = {topic: set() for topic in TOPICS}
    for file in sorted(PACKAGE.rglob("*.py")):
        module = file.relative_to(PACKAGE).as_posix()
        if OTHERS.search(module):
            continue
        topic = next(topic for topic, (pattern, _) in TOPICS.items() if re.match(pattern, module))
        for text in literals(ast.parse(file.read_text(encoding="utf-8"))):
            words = re.findall(r"\b[A-Za-z']+(?=[ .,:;)]|$)", text)
            if len(words) >= (4 if text[0].isupper() or text[0] == "…" else 5) and not CODE.search(text):
                found[topic].add(textwrap.shorten(text.strip(" :,;"), 110, placeholder=" …"))
    return {topic: sorted(texts, key=str.casefold) for topic, texts in found.items()}


def index_messages(app: Sphinx) -> Iterable[tuple[str, dict[str, Any], str]]:
    """Let the search find each message of the package, at the page of its topic; no page lists them."""
    titles = cast("StandaloneHTMLBuilder", app.builder).indexer._all_titles  # noqa: SLF001 - Sphinx has no other way
    for topic, texts in messages().items():
        titles[TOPICS[topic][1].removesuffix(".md")] += [(text.replace("`", "'"), None) for text in texts]
    return ()


def setup(app: Sphinx) -> None:
    """Connect this to Sphinx."""
    app.connect("html-collect-pages", index_messages)
