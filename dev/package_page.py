"""
The README as a package index shows it; hatchling asks for it when it builds.

An index shows the README alone: what it links to and its pictures lie in the repository. If `[project.urls]` in
`pyproject.toml` names a `Repository`, links lead there, to the files of this release; until then they become plain
text, and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# A picture or a link; what has an address of its own stays as it is.
RELATIVE = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


class PackagePage(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what `pyproject.toml` calls dynamic."""
        root = Path(self.root)
        found = VERSION.search((root / "airflow_provider_workspace" / "__init__.py").read_text(encoding="utf-8"))
        assert found is not None, "no version"  # noqa: S101 - hatchling itself reads it from there
        text = (root / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": page(text, repository, found[1])}


def page(readme: str, repository: str | None, version: str) -> str:
    """
    Return the README with links that work outside of the repository.

    :param repository: its address; ``None`` if there is none yet
    :param version: the tag of the release
    """

    def replace(link: re.Match[str]) -> str:
        if repository is None:
            return "" if link["picture"] else link["text"]
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['text']}]({repository.rstrip('/')}/{kind}/{version}/{link['path']})"

    pieces = FENCE.split(readme)
    # Every second piece is a block of code.
    return re.sub(
        r"\n{3,}",
        "\n\n",
        "".join(piece if number % 2 else RELATIVE.sub(replace, piece) for number, piece in enumerate(pieces)),
    )
