"""Shows the arguments of operators, sensors, triggers and task groups in tables: ``.. arguments:: name of a class``."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from airflow_provider_workspace import task_groups
from airflow_provider_workspace.get_provider_info import get_provider_info
from airflow_provider_workspace.operators.access_review import WorkspaceDecideAccessOperator
from airflow_provider_workspace.operators.arguments import Arg, DeclaredArguments
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator

if TYPE_CHECKING:
    from docutils.nodes import Element, Node
    from sphinx.application import Sphinx
    from sphinx.domains.std import StandardDomain

# Classes whose arguments several operators or sensors have, and the class or task group whose table shows them. All
# others link to its rows.
COMMON = {
    "DashboardArguments": "WorkspaceCreateDashboardOperator",
    "DomainArguments": "WorkspaceCreateDomainOperator",
    "LimitsRemovals": "WorkspaceSyncMembersOperator",
    "OfBatchExport": "WorkspacePauseBatchExportOperator",
    "OfDashboard": "WorkspaceGetDashboardOperator",
    "OfDomain": "WorkspaceGetDomainOperator",
    "OfOrganization": "OfOrganization",
    "OfProject": "OfProject",
    "OfUser": "OfUser",
    "ProtectsMembers": "WorkspaceSyncMembersOperator",
    "ReadsRows": "WorkspaceSyncMembersOperator",
    "SelectsRows": "SelectsRows",
    "WorkspaceAccessReviewOperator": "access_review",
    "WorkspaceApprovalMixin": "WorkspaceApprovalMixin",
    "WorkspaceCreateOperator": "WorkspaceCreateOperator",
    "WorkspaceDecideAccessOperator": "access_review",
    "WorkspaceDeleteOperator": "WorkspaceDeleteOperator",
    "WorkspaceOperator": "WorkspaceOperator",
    "WorkspaceOrganizationOperator": "workspace_organization",
    "WorkspaceSensor": "WorkspaceSensor",
    "WorkspaceTaskMixin": "WorkspaceTaskMixin",
    "WorkspaceUpdateOperator": "WorkspaceUpdateOperator",
    "WorkspaceWriteOperator": "WorkspaceWriteOperator",
}
# The operators whose arguments a task group hands on.
OPERATORS: dict[str, type[Any]] = {
    "access_review": WorkspaceDecideAccessOperator,
    "workspace_organization": WorkspacePlanOrganizationOperator,
}
# Where a field of a docstring begins.
FIELDS = re.compile(r"\n(?=:(?:param|type|raises|return)\b)")
# Modules whose arguments are shown in tables.
REFERENCE = re.compile(r"airflow_provider_workspace\.(operators|sensors|task_groups|triggers)\b")
LEVELS = '``"member"`` (1), ``"admin"`` (8), ``"owner"`` (15)'
LEVEL_NAMES = {1: "member", 8: "admin", 15: "owner"}
# Instead of a type: further arguments of a task group.
KEYWORDS = "keywords"
# Types whose parts say less than what they are for.
TYPES = {
    "Sequence[Mapping[str, Any] | Sequence[Any] | str]": ["list of rows or addresses"],
    "Sequence[str | None] | Mapping[str, str | None]": ["``list`` or ``dict`` of names"],
    "ObjectStoragePath | str": ["path or URL"],
    "ObjectStoragePath | Mapping[str, Any]": ["path, URL or ``dict``"],
    "ObjectStoragePath": ["path or URL"],
    "timedelta | float": ["``timedelta`` or seconds"],
    "datetime | str": ["``datetime`` or ``str``"],
    "int | LevelName": [LEVELS, ":doc:`another number </glossary>`"],
    "Any": ["any"],
}


@dataclass(frozen=True)
class Row:
    """
    An argument.

    :param owner: the class or function in whose table it is
    :param kind: its type, as reStructuredText
    :param default: ``Parameter.empty`` if it is required
    :param meaning: as reStructuredText
    """

    owner: str
    name: str
    kind: str
    default: Any
    templated: bool
    meaning: str

    @property
    def label(self) -> str:
        """The name of its row for references."""
        return f"{self.owner}.{self.name}"

    @property
    def anchor(self) -> str:
        """The id of its row."""
        return nodes.make_id(self.label)

    def cells(self) -> tuple[str, str, str, str]:
        """Return what its row shows."""
        mark = ", templated" if self.templated else ""
        if self.kind == KEYWORDS:
            return f"``**{self.name}``", "", "", self.meaning
        return f"``{self.name}``", self.kind + mark, self.shown_default(), self.meaning

    def shown_default(self) -> str:
        """Return the default as code."""
        if self.default is inspect.Parameter.empty:
            return "required"
        if isinstance(self.default, timedelta) or ("seconds" in self.kind and isinstance(self.default, float)):
            return duration(self.default)
        if LEVELS in self.kind and self.default in LEVEL_NAMES:
            return f'``"{LEVEL_NAMES[self.default]}"``'
        value = list(self.default) if isinstance(self.default, tuple) else self.default
        return "``" + repr(value).replace("'", '"') + "``"


def duration(length: timedelta | float) -> str:
    """Return a length of time in words."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= unit and seconds % unit == 0:
            count = int(seconds // unit)
            return f"{count} {name}" + ("" if count == 1 else "s")
    return f"``{length}``"


def parts_of(annotation: str) -> list[str]:
    """Return the types of a union."""
    tree = ast.parse(annotation, mode="eval").body
    parts: list[str] = []
    while isinstance(tree, ast.BinOp):
        parts.insert(0, ast.unparse(tree.right))
        tree = tree.left
    return [ast.unparse(tree), *parts]


def type_in_words(annotation: str, default: object) -> tuple[str, bool]:
    """
    Return an annotation as people read it, and whether it takes templates.

    ``None`` is named only where the default is another value.
    """
    parts = parts_of(annotation)
    templated = "XComArg" in parts or {"timedelta", "str"} <= {*parts}
    dropped = {"XComArg", "None"}
    if templated and len({*parts} - dropped) > 1:
        dropped.add("str")
    kept = [part for part in parts if part not in dropped]
    union = " | ".join(kept)
    words = TYPES[union] if union in TYPES else [word for part in kept for word in words_of(part)]
    if "None" in parts and default is not None:
        words = [*words, "``None``"]
    *first, last = words
    return (f"{', '.join(first)} or {last}" if first else last), templated


def words_of(part: str) -> list[str]:
    """Return a type that is no union in words; each literal is one."""
    if part in TYPES:
        return TYPES[part]
    head, _, inside = part.partition("[")
    inside = inside.removesuffix("]")
    if head == "Literal":
        return [f'``"{literal}"``' for literal in ast.literal_eval(f"[{inside}]")]
    if head == "Callable":
        return ["callable"]
    if head == "BaseNotifier":
        return ["notifier"]
    if head in ("Sequence", "list") and inside.startswith("Callable"):
        return ["``list`` of callables"]
    if head in ("Sequence", "list") and inside == "BaseNotifier":
        return ["``list`` of notifiers"]
    if head in ("Sequence", "list"):
        return ["``list``" if inside == "Any" else f"``list[{inside}]``"]
    return ["``dict``" if head in ("Mapping", "dict") else f"``{part}``"]


def described(obj: Any) -> dict[str, str]:
    """Return what a docstring says of each argument, and of its type as ``type name``."""
    found: dict[str, str] = {}
    for text in FIELDS.split(inspect.cleandoc(obj.__doc__ or "")):
        head = re.match(r":(param|type) (\w+):\s*", text)
        if head:
            name = head[2] if head[1] == "param" else f"type {head[2]}"
            found[name] = " ".join(text[head.end() :].split())
    return found


def origin_of(cls: type, name: str) -> type:
    """Return the nearest class that describes an argument."""
    return next((base for base in cls.__mro__ if name in described(base)), cls)


def row_of_class(cls: type[Any], name: str, owner: str, default: Any) -> Row:
    """Return the row of a declared argument."""
    argument = cls.declared[name]
    texts = described(origin_of(cls, name))
    words, _ = type_in_words(argument.parameter.annotation, default)
    kind = texts.get(f"type {name}", words)
    return Row(owner, name, kind, default, argument.templated, texts[name])


def rows_of(obj: Any) -> tuple[list[Row], list[Row]]:
    """Return the rows of a class or function, and those that the tables of others show."""
    own: list[Row] = []
    elsewhere: list[Row] = []
    for row in all_rows(obj):
        (own if row.owner == obj.__name__ else elsewhere).append(row)
    own.sort(key=lambda row: row.default is not inspect.Parameter.empty)
    return own, elsewhere


def all_rows(obj: Any) -> Iterator[Row]:
    """Yield each argument of a class or function, with the owner of its row."""
    if hasattr(obj, "declared"):
        for name, argument in obj.declared.items():
            yield row_of_class(obj, name, owner_of(obj, name, obj.__name__), argument.default)
        return
    texts = described(obj)
    operator = OPERATORS.get(obj.__name__)
    for parameter in inspect.signature(obj).parameters.values():
        name = parameter.name
        if parameter.kind is parameter.VAR_KEYWORD:
            if name in texts:
                yield Row(obj.__name__, name, KEYWORDS, None, templated=False, meaning=texts[name])
        elif name in texts:
            words, templated = type_in_words(str(parameter.annotation), parameter.default)
            kind = texts.get(f"type {name}", words)
            yield Row(obj.__name__, name, kind, parameter.default, templated, texts[name])
        elif operator:
            yield row_of_class(operator, name, owner_of(operator, name, obj.__name__), parameter.default)


def owner_of(cls: type[Any], name: str, owner: str) -> str:
    """Return whose table shows an argument: that of ``owner``, unless it is one that others share."""
    origin = origin_of(cls, name).__name__
    if origin not in COMMON:
        return owner
    home = COMMON[origin]
    operator = OPERATORS.get(home)
    # What a task group does not take is in the table of its operators' base.
    if operator and name not in inspect.signature(getattr(task_groups, home)).parameters:
        return origin
    return home


def links_to(rows: list[Row]) -> str:
    """Return a line with links to rows of other tables, and with defaults that are not those of these tables."""
    links = []
    for row in rows:
        home = defaults_of(named(row.owner))
        default = f"default {row.shown_default()}"
        if row.default is inspect.Parameter.empty:
            default = "required"
        elif home[row.name] is inspect.Parameter.empty:
            default = "optional"
        elif home[row.name] == row.default:
            default = ""
        links.append(f":ref:`{row.name} <{row.label}>`" + (f" ({default})" if default else ""))
    return ", ".join(links)


@cache
def named(name: str) -> Any:
    """Return a task group, or a class that declares arguments, by its name."""
    info = get_provider_info()
    for entry in (*info["operators"], *info["sensors"]):
        for module in entry["python-modules"]:
            import_module(module)
    classes = [DeclaredArguments]
    for cls in classes:
        classes += cls.__subclasses__()
    found = {cls.__name__: cls for cls in classes}
    return found[name] if name in found else getattr(task_groups, name)


def defaults_of(obj: Any) -> dict[str, Any]:
    """Return the defaults of the arguments."""
    if hasattr(obj, "declared"):
        return {name: argument.default for name, argument in obj.declared.items()}
    return {name: parameter.default for name, parameter in inspect.signature(obj).parameters.items()}


class ArgumentsDirective(SphinxDirective):
    """The table of the arguments of one class or function, or of several classes in one."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"only-own": directives.flag}

    def run(self) -> list[Node]:
        """Build the table, and under it the links to arguments that are described elsewhere."""
        objects = [resolve_name(name) for name in self.arguments[0].split()]
        rows: list[Row] = []
        elsewhere: list[Row] = []
        for obj in objects:
            own, others = rows_of(obj)
            rows += own
            elsewhere += others
        found: list[Node] = []
        if rows:
            found += self.table(rows)
        if elsewhere and "only-own" not in self.options:
            found += self.parse_text_to_nodes(f"Common arguments: {links_to(elsewhere)}.")
        return found

    def table(self, rows: list[Row]) -> list[Node]:
        """Return the table, whose rows the index and references lead to."""
        lines = [".. list-table::", "   :header-rows: 1", "   :class: arguments", "   :widths: auto", ""]
        for cells in (("argument", "type", "default", "meaning"), *(row.cells() for row in rows)):
            first, *others = cells
            lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
        found = self.parse_text_to_nodes("\n".join(lines))
        table = next(node for node in found if isinstance(node, nodes.table))
        _, *bodies = table.findall(nodes.row)
        standard = cast("StandardDomain", self.env.get_domain("std"))
        for row, body in zip(rows, bodies, strict=True):
            cell = cast("Element", body[0])
            cell["ids"].append(row.anchor)
            standard.note_hyperlink_target(row.label.lower(), self.env.docname, row.anchor)
            if "_" in row.name:  # what nobody mistakes for a word leads here from the search
                cell.insert(0, addnodes.index(entries=[("single", row.name, row.anchor, "main", None)]))
        return found


def list_arguments(_app: Sphinx, what: str, name: str, obj: Any, _options: object, lines: list[str]) -> None:
    """Put the table of the arguments in place of their fields in a docstring."""
    if what not in ("class", "function") or not REFERENCE.match(name):
        return
    text, *fields = FIELDS.split("\n".join(lines))
    # The page of an operator says what it returns and raises, and its guide how it works.
    kept_starts = ("Scope", "=") if ".operators." in name else ("Scope", "The result ")
    in_table = (":param", ":type", ":raises")
    first, *more = re.split(r"\n\n+", text)
    kept = [first, *(paragraph for paragraph in more if paragraph.startswith(kept_starts))]
    prose = "\n\n".join(kept).split("\n")
    others = [field for field in fields if not field.startswith(in_table)]
    lines[:] = [*prose, "", f".. arguments:: {obj.__module__}:{obj.__qualname__}", "", *"\n".join(others).split("\n")]


def shorten(
    _app: Sphinx, what: str, name: str, _obj: Any, _options: object, _text: str | None, _returned: str | None
) -> tuple[str, str] | None:
    """Leave out a signature whose arguments are in a table."""
    if what in ("class", "function") and REFERENCE.match(name):
        return "", ""
    return None


def name_links(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Name the places of an entry of the index that has several, which Sphinx only numbers."""
    if page != "genindex":
        return
    objects = [each[0].rpartition(".")[2] for each in app.env.domains.python_domain.get_objects()]
    owners = {nodes.make_id(name): name for name in objects}
    for _, entries in context["genindexentries"]:
        # Modules have no text of their own.
        entries[:] = [entry for entry in entries if [name for name, _ in entry[1][1]] != ["module"]]
        for _, (links, below, _) in entries:
            if len(links) < 2:
                continue
            for main, uri in links:
                document, _, anchor = uri.partition("#")
                docname = document.removesuffix(".html")
                title = app.env.titles[docname].astext()
                below.append((owners.get(anchor.partition("-")[0], title), [(main, uri)]))
            links.clear()


def setup(app: Sphinx) -> None:
    """Connect this to Sphinx."""
    Arg.__class_getitem__ = classmethod(lambda _cls, kind: kind)  # type: ignore[assignment]  # its type is the argument's
    app.add_directive("arguments", ArgumentsDirective)
    app.connect("autodoc-process-docstring", list_arguments)
    app.connect("autodoc-process-signature", shorten)
    app.connect("html-page-context", name_links)
