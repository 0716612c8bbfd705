"""The README on a package index: links and pictures, with and without the URL of the repository."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hatch_fancy_pypi_readme.hooks import FancyReadmeMetadataHook

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PYPROJECT = (ROOT / "pyproject.toml").read_text()
REPOSITORY = "https://REPOSITORY/"


def page(pyproject: str) -> str:
    """Return the README as hatchling puts it into a release."""
    hooks = tomllib.loads(pyproject)["tool"]["hatch"]["metadata"]["hooks"]
    metadata: dict[str, Any] = {"version": "0.1.0"}
    FancyReadmeMetadataHook(str(ROOT), hooks["fancy-pypi-readme"]).update(metadata)
    return str(metadata["readme"]["text"])


@pytest.fixture(params=["no repository", "repository"])
def pyproject(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The settings as they are, and as they will be once the repository has an address."""
    monkeypatch.chdir(ROOT)
    if request.param == "no repository":
        return PYPROJECT
    known, replaced = re.subn(r"^replacement = .*\n# (?=replacement)", "", PYPROJECT, flags=re.MULTILINE)
    assert replaced == 2
    return known


def test_links_of_the_page_lead_to_the_release_or_nowhere(pyproject: str) -> None:
    """Rendered as the package index does."""
    pytest.importorskip("comrak", reason="the tools are not here")
    from readme_renderer import markdown

    html = str(markdown.render(page(pyproject), variant="GFM"))
    assert html.count("<h2") == len(re.findall("^## ", README, re.MULTILINE))
    links = set(re.findall(r'(?:href|src)="([^"#]+)', html))
    assert all(link.startswith("http") for link in links)
    assert "Quick start: run your first Dag" in re.sub(r"</?a\b[^>]*>", "", html)
    targets = {link for link in links if link.startswith(REPOSITORY)}
    for target in targets:
        assert (ROOT / re.sub(f"^{REPOSITORY}(raw|blob)/0.1.0/", "", target)).exists(), target
    shown = {f"{REPOSITORY}raw/0.1.0/docs/images/graph.png", f"{REPOSITORY}blob/0.1.0/docs/quickstart.md"}
    assert targets >= shown if pyproject != PYPROJECT else not targets
    assert ("<img" in html) is (pyproject != PYPROJECT)


def test_code_of_the_readme_is_unchanged(pyproject: str) -> None:
    code = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
    assert code.findall(README)
    assert code.findall(page(pyproject)) == code.findall(README)
