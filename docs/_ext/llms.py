"""Writes ``llms.txt``, with ``assistants.md`` and a list of the pages, and the source of each page beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HEAD = """# {project}

> Apache Airflow provider for an analytics workspace: organizations, projects, dashboards, domains, invites, members and
> batch exports. `pip install airflow-provider-workspace`; imports begin with `airflow_provider_workspace`.

{assistants}

## Pages
"""
INCLUDE = re.compile(
    r"^```\{literalinclude\} (\S+)\n:language: (\w+)\n(?::start-after: \"(.*)\"\n:end-before: \"(.*)\"\n)?[^`]*```",
    re.MULTILINE,
)


def with_code(page: Path) -> str:
    """Return the source of a page, with the pieces of the examples that it shows."""

    def piece(found: re.Match[str]) -> str:
        path, language, start, end = found.groups()
        text = (page.parent / path).read_text(encoding="utf-8")
        shown = text.split(start)[1].split(end)[0].rpartition("\n")[0] if start else text
        return f"```{language}\n{shown.strip(chr(10))}\n```"

    text = INCLUDE.sub(piece, page.read_text(encoding="utf-8"))
    whole = re.fullmatch(r"```\{include\} (\S+)\n[^`]*```\n", text)
    return (page.parent / whole[1]).read_text(encoding="utf-8") if whole else text


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the list and the sources."""
    if error or app.builder.name != "html":
        return
    lines = []
    for page in sorted(app.env.found_docs - {"index"}):
        target = Path(app.outdir) / f"{page}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_code(Path(app.env.doc2path(page))), encoding="utf-8")
        paragraphs = app.env.get_doctree(page).findall(nodes.paragraph)
        first = next((one for one in paragraphs if isinstance(one.parent, nodes.section)), None)
        said = " ".join(first.astext().split()).partition(". ")[0].rstrip(".:") if first else ""
        lines.append(f"- [{app.env.titles[page].astext()}]({page}.md)" + (f": {said}" if said else ""))
    _, _, assistants = with_code(Path(app.srcdir) / "assistants.md").partition("\n\n")
    assistants = re.sub(r"^<!--.*-->\n\n", "", assistants, flags=re.MULTILINE).strip()
    text = HEAD.format(project=app.config.project, assistants=assistants) + "\n" + "\n".join(lines) + "\n"
    (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect this to Sphinx."""
    app.connect("build-finished", write)
