"""How Sphinx builds the documentation; `make docs` calls it."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import is_dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]
# Importing Airflow writes its configuration somewhere.
os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "WARNING"
os.environ["AIRFLOW_HOME"] = str(ROOT / "build" / "airflow-of-docs")

from docutils import nodes  # noqa: E402 - after what Airflow reads when it is imported
from sphinx import addnodes  # noqa: E402
from typing_extensions import is_typeddict  # noqa: E402

import airflow_provider_workspace  # noqa: E402 - from the path above
from airflow_provider_workspace.api import bodies  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Workspace provider for Apache Airflow"
version = release = airflow_provider_workspace.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
extensions += ["arguments", "index_comments", "messages", "llms"]
# For those who read the code, in the repository.
exclude_patterns = ["faults-table.md", "adr", "architecture.md", "releasing.md"]
# Written into llms.txt.
exclude_patterns += ["assistants.md"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# References into the package itself must lead somewhere. Those to Airflow and others cannot, without a network.
nitpick_ignore_regex = [
    ("py:.*", r"(?!airflow_provider_workspace).*"),
    ("py:.*", r".*\.[CRT]"),
    ("py:.*", r".*\.canonical_text"),  # pydantic reads ids with it
]
add_module_names = False
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "declared"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"Workspace provider {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js", "contents.js"]
html_logo = html_favicon = "_static/logo.svg"
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


# Where the repository is, for "edit this page": the workflow sets it; without it there are no such links.
REPOSITORY = os.environ.get("WORKSPACE_DOCS_REPOSITORY", "")
html_theme_options = (
    {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"} if REPOSITORY else {}
)


def describe(app: Sphinx, page: str, _template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Describe each page to search engines by its first paragraph."""
    first = next((node.astext() for node in doctree.findall(nodes.paragraph)), "") if doctree else ""
    if first and page in app.env.found_docs:
        text = escape(" ".join(first.split())[:160], quote=True)
        context["metatags"] = f'<meta name="description" content="{text}">\n{context.get("metatags", "")}'


def link_pictures(_app: Sphinx, doctree: nodes.document) -> None:
    """Let pictures of the Airflow UI lead to themselves in full size, as Sphinx does for those that are scaled."""
    for image in doctree.findall(nodes.image):
        if image["uri"].endswith(".png"):
            image["width"] = "100%"


# What pydantic and the operations of this package need, and nobody calls.
INTERNAL = {"body_fields", "model_config", "model_post_init", "payload"}


def skip_internal(_app: Sphinx, _what: str, name: str, _obj: object, _skip: bool, _options: object) -> bool | None:  # noqa: FBT001
    """Leave out members that nobody calls."""
    return True if name in INTERNAL else None


# The reference in Python has one line for each class and method. Editors and ``help()`` show the rest.
IN_ONE_LINE = re.compile(
    r"airflow_provider_workspace\.(api|client|errors|hooks|procedures|retry_policies|sandbox)\b",
)


def keep_first_paragraph(_app: Sphinx, _what: str, name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Keep the first paragraph of a docstring, without the section of the interface that it follows."""
    if IN_ONE_LINE.match(name) and "" in lines:
        text = " ".join(lines[: lines.index("")])
        lines[:] = [re.sub(r' Section "[^"]+"\.', "", text), ""]


def list_fields(_app: Sphinx, what: str, _name: str, obj: Any, _options: object, lines: list[str]) -> None:
    """Name the fields of a record in one line, and where those are that a method takes as ``**fields``."""
    if what == "module":  # of the package's authors
        lines.clear()
    body = re.fullmatch(r"Unpack\[(?:\w+\.)*(\w+)\]", str(getattr(obj, "__annotations__", {}).get("fields")))
    fields = list(obj.__annotations__ if is_typeddict(obj) else getattr(obj, "model_fields", {}))
    if body:
        lines += ["", f"Fields: :class:`~{bodies.__name__}.{body[1]}`."]
    elif fields and not hasattr(obj, "endpoint"):
        lines += ["", f"Fields: {names_of(obj, fields)}."]


def names_of(obj: type, fields: list[str]) -> str:
    """Return the names of fields; those that another body has are named there."""
    others = {body: set(body.__annotations__) for body in vars(bodies).values() if is_typeddict(body)}
    parts = [body for body, names in others.items() if len(names) > 3 and names <= set(fields) and body is not obj]
    if not parts:
        return ", ".join(f"``{name}``" for name in fields)
    largest = max(parts, key=lambda body: len(others[body]))
    own = [f"``{name}``" for name in fields if name not in others[largest]]
    return f"those of :class:`~{bodies.__name__}.{largest.__name__}`, and {', '.join(own)}"


def shorten(
    _app: Sphinx, what: str, name: str, obj: Any, _options: object, text: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Leave the fields of records and errors, and default ids, out of a signature, and name the type of the result."""
    if isinstance(obj, type) and (hasattr(obj, "model_fields") or is_dataclass(obj) or issubclass(obj, Exception)):
        return "", returned
    if text and what == "method" and ".hooks." in name:
        # The page says that each method takes them.
        text = re.sub(r"(?<=, )(organization_id|project_id)=None, ", "", text)
        text = re.sub(r", (organization_id|project_id)=None\)", ")", text).replace("(*, **", "(**")
    result = getattr(obj, "__annotations__", {}).get("return")
    if text and isinstance(result, str) and result not in ("None", "Self"):
        returned = result.removeprefix("bodies.").removeprefix("models.")
    return re.sub(r"<function [^>]*<lambda>>", "…", text) if text else text, returned


def index_rows(app: Sphinx, doctree: nodes.document) -> None:
    """Let the names of settings lead to their rows in the table of the connection."""
    for row in doctree.findall(nodes.row) if app.env.docname == "connection" else ():
        name = row[0].astext()
        if re.fullmatch(r"[a-z]+_\w+", name):
            target = f"setting-{name}"
            row[0]["ids"].append(target)
            row[0].insert(0, addnodes.index(entries=[("single", name, target, "main", None)]))


def setup(app: Sphinx) -> None:
    """Extend Sphinx by the above."""
    app.connect("autodoc-process-docstring", keep_first_paragraph)
    app.connect("autodoc-process-docstring", list_fields)
    app.connect("autodoc-skip-member", skip_internal)
    app.connect("autodoc-process-signature", shorten)
    app.connect("doctree-read", index_rows)
    app.connect("doctree-read", link_pictures)
    app.connect("html-page-context", describe)
