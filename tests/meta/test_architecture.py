"""docs/architecture.md names every module, the layers, functions that exist, and the calls of its tour in order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pytest

import airflow_provider_workspace
from airflow_provider_workspace.operators.batch_exports import WorkspacePauseBatchExportOperator
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from types import FrameType

    from tests.conftest import Connect

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(airflow_provider_workspace.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROOMS = PAGE.partition("\n## The rooms\n")[2].partition("\n## ")[0]
MODULES = {
    str(file.relative_to(PACKAGE).with_suffix(""))
    for file in PACKAGE.rglob("*.py")
    if file.name != "__init__.py" and "example_dags" not in file.parts
}
ROOTS = "|".join(sorted({module.split("/")[0] for module in MODULES}))


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
    named = set(re.findall(rf"`((?:{ROOTS})/[\w/]+)`", PAGE)) - {"ui/static"}
    gone = sorted({*listed, *named} - MODULES)
    assert not gone, f"docs/architecture.md names modules that do not exist: {', '.join(gone)}"
    assert len(listed) == len(set(listed)), "docs/architecture.md, 'The rooms', names a module twice"
    for room, module in rows:
        where = module.partition("/")[0] if "/" in module else "The root"
        assert where == room, f"docs/architecture.md: {module} stands in the room {room}"


def test_the_page_shows_the_layers_of_the_import_contract() -> None:
    (contract,) = re.findall(r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(__main__\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert shown.splitlines() == re.findall(r'"([^"]+)"', contract), "docs/architecture.md, 'Which room imports which'"


@pytest.mark.needs_airflow("3.3", "retry policies")
def test_what_the_page_names_with_dots_exists() -> None:
    try:
        for name in re.findall(rf"`((?:{ROOTS})\.[\w.]+)(?<!\.js)`", PAGE):
            resolve_name(f"airflow_provider_workspace.{name}")
    except (ImportError, AttributeError) as error:
        pytest.fail(f"docs/architecture.md: correct `{name}`: {error}")


def test_every_room_has_a_question_and_a_function_that_answers_it() -> None:
    rooms = ROOMS.split("\n### ")[1:]
    silent = [text.split("\n")[0] for text in rooms if not re.search(r"^\*.+\?\* `\w+\.", text, re.MULTILINE)]
    assert not silent, f"docs/architecture.md, 'The rooms': *a question?* and `module.function` for {', '.join(silent)}"


def test_the_tour_tells_the_calls_of_a_pause_in_their_order(connect: Connect) -> None:
    """By the function that a step of "One call" begins with."""
    connect()
    steps = PAGE.partition("\n### One call")[2].partition("\nWith `dry_run")[0]
    told = re.findall(r"^\d+\. (?:from )?`([\w.]+)`", steps, re.MULTILINE)
    functions = {name: resolve_name(f"airflow_provider_workspace.{name}") for name in told}
    names = {getattr(each, "fget", each).__code__: name for name, each in functions.items()}
    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in names:
            called.setdefault(names[frame.f_code])

    task = WorkspacePauseBatchExportOperator(task_id="pause", batch_export_id=SEED.batch_export_ids[0])
    sys.setprofile(note)
    try:
        task.execute({})
    finally:
        sys.setprofile(None)
    assert list(called) == told, "docs/architecture.md, 'One call'"
