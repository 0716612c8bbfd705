"""Adds the messages of the package to the search."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
    "Organization files": (r"^organization/|operators/organization|procedures/access", "guides/organization-file.md"),
    "Members": (r"access/members|access/rules/guards|operators/members", "guides/members.md"),
    "Approvals": (r"procedures/plan|access/(approvals|rules/answers)|operators/approval", "guides/approve.md"),
    "Rosters": (r"procedures/roster|files/(storage|reports)", "guides/rosters.md"),
    "Invites": (r"procedures/(inv|quota)|operators/inv", "guides/bulk-invites.md"),
    "Access reviews": (
        r"access/reviews/(?!notes)|access/rules/review|operators/access_review",
        "guides/access-review.md",
    ),
    "Temporary access": (r"access/grants|operators/access\b", "guides/temporary-access.md"),
    "Dashboards": (r"notes/dashboards|operators/dashboards", "operators/dashboards.md"),
    "Waiting": (r"sensors|triggers|procedures/(cond|snap|arriv)", "guides/waiting.md"),
    "Arguments of operators": (r"operators|api/templates", "operators/index.md"),
    "Commands": (r"cli", "cli.md"),
    "Requests": (r"", "faults.md"),
}  # fmt: skip
# What holds no messages: the sandbox, pages, labels, and calls and arguments that only describe.
OTHERS = re.compile(r"sandbox|ui/|reviews/page|get_provider_info|cli/definition|_(form|schema)")
# How many words of a message people type, at least.
FIRST_WORDS = 8
CODE = re.compile(r"[\\|@#]|tag:|:write, ")
QUIET = {"info", "debug", "compile", "search", "match", "fullmatch", "sub", "TypeVar", "getLogger", "import_module"}
LABELS = {"description", "doc_md", "tooltip", "title", "help", "prefix_group_id", "default_text", "group_display_name"}


def text_of(node: ast.AST) -> str:
    """Return a text of the code, with … for each value in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def literals(node: ast.AST, problems: Problems, problem: str = "") -> Iterator[tuple[str, str]]:
    """Return the texts below a node that may be messages, each with its problem; an empty one if it has none."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if text := text_of(node):
        yield re.sub(r"%[sr]|%\.?\d*[dfg]|\{\w+\}", "…", text), problems.by_text.get(id(node), problem)
        return
    if isinstance(node, ast.Call) and name_of(node.func) in QUIET:
        return
    if isinstance(node, ast.keyword) and node.arg in LABELS:
        return
    if isinstance(node, ast.Call):
        problem = problems.of_call(node) or problem
    for child in ast.iter_child_nodes(node):
        yield from literals(child, problems, problem)


def name_of(node: ast.AST) -> str:
    """Return the name of a function or class, without what stands before the last dot."""
    name: str = getattr(node, "attr", getattr(node, "id", ""))
    return name


class Problems:
    """
    The problems of the messages of a module.

    :ivar by_text: of texts that a variable holds before they are raised, by the ids of their nodes
    """

    def __init__(self, tree: ast.Module, classes: Mapping[str, str]) -> None:
        self.classes = {**classes, **problems_of_classes(tree)}
        self.by_text: dict[int, str] = {}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                self._read(function)

    def of_call(self, call: ast.Call) -> str:
        """Return the problem that a call names, or that of the class of the error; an empty text if there is none."""
        named = [keyword.value for keyword in call.keywords if keyword.arg in ("problem", "otherwise")]
        if name_of(call.func) == "with_problem":
            named += call.args[1:2]
        if named and isinstance(named[0], ast.Constant):
            return named[0].value if isinstance(named[0].value, str) else ""
        of_classes = [self.classes.get(name_of(node), "") for node in (call.func, *call.args[:1])]
        return next(filter(None, of_classes), "")

    def _read(self, function: ast.AST) -> None:
        """Note the texts of the variables that calls with a problem are given."""
        nodes = list(ast.walk(function))
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        for call in nodes:
            problem = self.of_call(call) if isinstance(call, ast.Call) else ""
            if not problem:
                continue
            for name in {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}:
                earlier = [node for node in assigned if name_of(node.targets[0]) == name and node.lineno < call.lineno]
                latest = max(earlier, key=lambda node: node.lineno, default=None)
                texts = ast.walk(latest.value) if latest else ()
                self.by_text.update({id(node): problem for node in texts if text_of(node)})


def problems_of_classes(tree: ast.Module) -> dict[str, str]:
    """Return the problem of each class of a module that has one, such as an error or why a request was not sent."""
    found: dict[str, str] = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for part in node.body:
            if isinstance(part, ast.Assign):
                name, value = name_of(part.targets[0]), part.value
            elif isinstance(part, ast.AnnAssign):
                name, value = name_of(part.target), part.value
            else:
                continue
            if name == "problem" and isinstance(value, ast.Constant) and value.value:
                found[node.name] = value.value
    return found


@dataclass(frozen=True, order=True)
class Message:
    """
    A message of the package.

    :param text: its beginning, with … for each value
    :param page: the page of its topic
    :param problem: the section of the page of errors that explains it; an empty text if there is none
    """

    text: str
    page: str
    problem: str

    @property
    def beginning(self) -> str:
        """What a person types of it, or a list of logs shows."""
        return " ".join(self.text.split()[:FIRST_WORDS])

    @property
    def is_end(self) -> bool:
        """Whether something else of the message always stands before it."""
        return self.text.startswith("…. ")

    @property
    def places(self) -> list[tuple[str, str | None]]:
        """The page, and the section of it, that the search must find for it."""
        return [("errors", self.problem)] if self.problem else [(self.page, None)]


def messages() -> list[Message]:
    """Return the messages of the package."""
    found: set[Message] = set()
    classes = problems_of_classes(ast.parse((PACKAGE / "errors.py").read_text(encoding="utf-8")))
    for file in sorted(PACKAGE.rglob("*.py")):
        module = file.relative_to(PACKAGE).as_posix()
        if OTHERS.search(module):
            continue
        page = next(page for pattern, page in TOPICS.values() if re.match(pattern, module)).removesuffix(".md")
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for text, problem in literals(tree, Problems(tree, classes)):
            words = re.findall(r"\b[A-Za-z']+(?=[ .,:;)]|$)", text)
            if len(words) >= (4 if text[0].isupper() or text[0] == "…" else 5) and not CODE.search(text):
                shortened = textwrap.shorten(text.strip(" :,;"), 110, placeholder=" …")
                found.add(Message(shortened, page, problem))
    return sorted(found, key=lambda message: (message.text.casefold(), message))


def index_messages(app: Sphinx) -> Iterable[tuple[str, dict[str, Any], str]]:
    """Let the search find each message of the package, and its beginning; no page lists them."""
    titles = cast("StandaloneHTMLBuilder", app.builder).indexer._all_titles  # noqa: SLF001 - Sphinx has no other way
    for message in messages():
        for page, section in message.places:
            texts = dict.fromkeys([message.text, message.beginning])
            titles[page] += [(text.replace("`", "'"), section) for text in texts]
    return ()


def setup(app: Sphinx) -> None:
    """Connect this to Sphinx."""
    app.connect("html-collect-pages", index_messages)
