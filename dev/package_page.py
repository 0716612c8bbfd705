"""
A hatchling plugin that prepares the README for a package index.

Links and pictures of the README refer to files of the repository. If `[project.urls]` in `pyproject.toml` has a
`Repository`, they become links to the files of this release there; otherwise links become plain text and pictures are
removed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# A picture or link with a relative path.
RELATIVE = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


class PackagePage(MetadataHookInterface):
    """Sets the metadata field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dynamic metadata of `pyproject.toml`."""
        root = Path(self.root)
        found = VERSION.search((root / "airflow_provider_workspace" / "__init__.py").read_text(encoding="utf-8"))
        assert found is not None, "no version"  # noqa: S101 - hatchling itself reads it from there
        text = (root / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": page(text, repository, found[1])}


def page(readme: str, repository: str | None, version: str) -> str:
    """
    Return the README with links that work outside of the repository.

    :param repository: URL of the repository; ``None`` if there is none
    :param version: tag of the release
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
