"""docs/architecture.md names every module, the layers and existing constants."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import airflow_provider_workspace

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(airflow_provider_workspace.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROOMS = PAGE.partition("\n## The rooms\n")[2].partition("\n## ")[0]
MODULES = {
    str(file.relative_to(PACKAGE).with_suffix(""))
    for file in PACKAGE.rglob("*.py")
    if file.name != "__init__.py" and "example_dags" not in file.parts
}


def sections() -> dict[str, list[tuple[str, str]]]:
    """Return the rows of each room: module and description."""
    found = {}
    for section in ROOMS.split("\n### ")[1:]:
        name, _, text = section.partition("\n")
        assert text.strip()[0] not in "|`", f"docs/architecture.md: the room {name} needs its one line"
        found[name] = re.findall(r"^\| `([\w/]+)` \| (.+) \|$", text, re.MULTILINE)
    return found


def test_every_module_has_a_line_in_its_room() -> None:
    rows = [(room, module) for room, lines in sections().items() for module, _ in lines]
    listed = [module for _, module in rows]
    missing = sorted(MODULES - set(listed))
    assert not missing, f"docs/architecture.md, 'The rooms', has no line for {', '.join(missing)}"
    gone = sorted(set(listed) - MODULES)
    assert not gone, f"docs/architecture.md, 'The rooms', names modules that do not exist: {', '.join(gone)}"
    assert len(listed) == len(set(listed)), "docs/architecture.md, 'The rooms', names a module twice"
    for room, module in rows:
        where = module.partition("/")[0] if "/" in module else "The root"
        assert where == room, f"docs/architecture.md: {module} stands in the room {room}"


def test_the_page_shows_the_layers_of_the_import_contract() -> None:
    (contract,) = re.findall(r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(__main__\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert shown.splitlines() == re.findall(r'"([^"]+)"', contract), "docs/architecture.md, 'Which room imports which'"


@pytest.mark.needs_airflow("3.3", "retry policies")
def test_constants_of_the_table_of_waits_exist() -> None:
    waits = PAGE.partition("\n## What waits or retries\n")[2]
    constants = re.findall(r"`((?:\w+\.)*\w+)\.([A-Z][A-Z_]+)`", waits)
    assert constants
    for module, name in constants:
        found = import_module(f"airflow_provider_workspace.{module}")
        assert hasattr(found, name), f"docs/architecture.md, 'What waits or retries': {module}.{name} does not exist"
