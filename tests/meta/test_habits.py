"""Commit hooks, issue forms and make targets of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def test_commit_hooks_run_the_checks_of_make_lint() -> None:
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    assert {hook["language"] for hook in local["hooks"]} == {"system"}
    entries = " ".join(hook["entry"] for hook in local["hooks"])
    (linters,) = re.findall(r"^LINTERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for linter in re.findall(r'"([\w-]+(?: \w+)?)[^"]*"|(\w+)', linters):
        assert f".venv/bin/{''.join(linter)}" in entries, f"a hook for {linter} is missing"
    assert "lint-addresses" in entries


def test_issue_forms_exist() -> None:
    assert [form.stem for form in FORMS] == ["bug", "feature"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_an_issue_form_is_valid(form: Path) -> None:
    content = read(form)
    assert content["name"]
    assert content["description"]
    ids = [field["id"] for field in content["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    for field in content["body"]:
        assert field["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
        assert field["attributes"]["value" if field["type"] == "markdown" else "label"]


@pytest.mark.parametrize("page", ["docs/releasing.md", ".github/PULL_REQUEST_TEMPLATE.md", "CONTRIBUTING.md"])
def test_targets_of_a_page_exist(page: str) -> None:
    targets = {
        target for words in re.findall(r"`make ([a-z0-9 ]+)", (ROOT / page).read_text()) for target in words.split()
    }
    assert targets
    assert targets <= set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
