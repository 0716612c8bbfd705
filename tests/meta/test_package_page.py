"""The README on a package index: links and pictures, with and without the URL of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
REPOSITORY = "https://example.com/team/provider/"


@pytest.fixture(autouse=True)
def _dev(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "dev"))


def rendered(repository: str | None) -> str:
    """Render the page as the package index does."""
    pytest.importorskip("comrak", reason="the tools are not here")
    from package_page import page
    from readme_renderer import markdown

    html: str | None = markdown.render(page(README, repository, "0.1.0"), variant="GFM")
    assert html is not None
    return html


def addresses(html: str) -> list[str]:
    return re.findall(r'(?:href|src)="([^"]*)"', html)


def test_without_a_repository_url_there_are_no_broken_links() -> None:
    html = rendered(None)
    assert not [address for address in addresses(html) if not address.startswith(("http", "#"))]
    assert "<img" not in html
    assert "Quick start: run your first Dag" in html


def test_with_a_repository_url_links_lead_to_the_release() -> None:
    html = rendered(REPOSITORY)
    targets = [address for address in addresses(html) if address.startswith(REPOSITORY)]
    assert f"{REPOSITORY}raw/0.1.0/docs/images/graph.png" in targets
    assert f"{REPOSITORY}blob/0.1.0/docs/quickstart.md" in targets
    assert not [address for address in addresses(html) if not address.startswith(("http", "#"))]
    for target in targets:
        assert (ROOT / re.sub(f"^{REPOSITORY}(raw|blob)/0.1.0/", "", target).partition("#")[0]).exists(), target


def test_code_of_the_readme_is_unchanged() -> None:
    from package_page import page

    text = "[a](b.md)\n\n```py\nx = [a](b.md)\n```\n"
    assert page(text, None, "1") == "a\n\n```py\nx = [a](b.md)\n```\n"
