"""The README on a package index: links and pictures, with and without the URL of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture(autouse=True)
def _dev(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "dev"))


@pytest.mark.parametrize("repository", [None, "https://example.com/team/provider/"])
def test_links_of_the_page_lead_to_the_release_or_nowhere(repository: str | None) -> None:
    """Rendered as the package index does, with and without the URL of the repository."""
    pytest.importorskip("comrak", reason="the tools are not here")
    from package_page import page
    from readme_renderer import markdown

    html = str(markdown.render(page(README, repository, "0.1.0"), variant="GFM"))
    links = [link for link in re.findall(r'(?:href|src)="([^"]*)"', html) if not link.startswith("#")]
    assert not [link for link in links if not link.startswith("http")]
    assert ("<img" in html) is (repository is not None)
    assert repository or "Quick start: run your first Dag" in html
    targets = {link.partition("#")[0] for link in links if repository and link.startswith(repository)}
    for target in targets:
        assert (ROOT / re.sub(f"^{repository}(raw|blob)/0.1.0/", "", target)).exists(), target
    shown = {f"{repository}raw/0.1.0/docs/images/graph.png", f"{repository}blob/0.1.0/docs/quickstart.md"}
    assert shown <= targets or repository is None


def test_code_of_the_readme_is_unchanged() -> None:
    from package_page import page

    text = "[a](b.md)\n\n```py\nx = [a](b.md)\n```\n"
    assert page(text, None, "1") == "a\n\n```py\nx = [a](b.md)\n```\n"
