"""Code, commands and references of the documentation. ``make docs`` follows its links and includes."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from airflow_provider_workspace import task_groups
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.send import WorkspaceSendOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceSensor
from tests.classes import TASKS, TRIGGERS
from tests.dag_bag import DagBag
from tests.docs.blocks import in_language
from tests.raw_server import RawServer, answer

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "example_dags"
PAGES = {str(path.relative_to(DOCS)): path.read_text() for path in sorted(DOCS.rglob("*.md"))}


@pytest.mark.parametrize("record", [{"id": 7}, {"id": 7, "content": "Deployed"}])
def test_the_samples_of_own_endpoints_run_against_a_service(
    connect: Callable[..., None], tmp_path: Path, record: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("my_package.endpoints")
    monkeypatch.setitem(sys.modules, "my_package", ModuleType("my_package"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exports = answer(200, {"count": 1, "results": [{"id": "a", "name": "Nightly", "paused": True}]})
    runs = [
        answer(200, {"next": "?cursor=cD0y&page=2", "results": [{"id": "r", "status": "Failed"}]}),
        answer(200, {"next": None, "results": [{"id": "s", "status": "Failed"}, {"id": "t", "status": "Completed"}]}),
    ]
    with RawServer(exports, exports, exports, *runs, answer(201, record)) as server:
        connect(host=server.url)
        for block in in_language("python", "guides/endpoints.md"):
            if "@dag(" in block.text:
                (tmp_path / "shown.py").write_text(block.text)
                (task,) = DagBag(tmp_path).dags["paused_exports"].tasks
                assert task.execute({}) == [{"id": "a", "name": "Nightly"}]
            else:
                exec(compile(block.text, str(block), "exec"), vars(module))  # noqa: S102 - the documented code
        with WorkspaceHook() as hook:
            assert module.failed_runs(hook, 1, "a") == ["r", "s"]
        arguments = {"project_id": 1, "content": "Deployed"}
        task = WorkspaceSendOperator(task_id="annotate", operation=module.CreateAnnotation, arguments=arguments)
        assert task.execute({}) == record
    assert [request.method for request in server.requests] == ["GET"] * 5 + ["POST"]
    assert server.requests[4].target == "/api/projects/1/batch_exports/a/runs/?cursor=cD0y&page=2"


def test_dags_read_only_xcoms_that_operators_push() -> None:
    """``output["name"]`` is the XCom ``name``, not a field of the result."""
    for page, text in PAGES.items():
        assert set(re.findall(r"\.output\[\"(\w+)\"\]", text)) <= {"id", "created"}, page


# Commands and figures

README = (ROOT / "README.md").read_text()
# Commands in prose are in backticks.
MAKE = re.compile(r"(?:^|`|&& )make ([a-z][\w.-]*)", re.MULTILINE)
TARGETS = {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)}
NAMES = ("README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")
TEXTS = [ROOT / name for name in NAMES]


def test_documented_make_targets_exist() -> None:
    for file in (*TEXTS, *DOCS.rglob("*.md")):
        assert {*MAKE.findall(file.read_text())} - TARGETS == set(), file


@pytest.mark.parametrize("page", ["AGENTS.md", "CONTRIBUTING.md"])
def test_files_and_folders_that_contributors_are_sent_to_exist(page: str) -> None:
    named = re.findall(r"`(?!build/)([\w.]+/[\w./]*)`", (ROOT / page).read_text())
    places = (ROOT, ROOT / "airflow_provider_workspace")
    gone = [
        name
        for name in named
        if not any((place / name).exists() or (place / f"{name}.py").exists() for place in places)
    ]
    assert named
    assert not gone, f"{page}: correct {', '.join(gone)}"


def test_documented_sandbox_options_exist() -> None:
    sandbox = [sys.executable, "-m", "airflow_provider_workspace.sandbox", "--help"]
    said = subprocess.run(sandbox, capture_output=True, text=True, check=True).stdout
    shown = re.findall(r"python -m airflow_provider_workspace\.sandbox[^`\n]*", "\n".join((README, *PAGES.values())))
    options = {option for line in shown for option in re.findall(r"--[\w-]+", line)}
    assert {"--profile"} <= options <= set(re.findall(r"--[\w-]+", said))


# Examples

INCLUDE = re.compile(
    r"^```\{literalinclude\} (\S+)\n:language: python\n"
    r':start-after: "(\[START \w+\])"\n:end-before: "(\[END \w+\])"\n',
    re.MULTILINE,
)
INCLUDES = [(page, *found) for page, text in PAGES.items() for found in INCLUDE.findall(text)]


def test_every_marker_is_used() -> None:
    used = {marker for _, _, *markers in INCLUDES for marker in markers}
    there = {marker for file in EXAMPLES.glob("*.py") for marker in re.findall(r"# (\[\w+ \w+\])", file.read_text())}
    assert not there - used, "show these pieces of the examples on a page in docs/"


# The reference


def documented() -> list[str]:
    """Return the full names of the documented classes."""
    return [name for text in PAGES.values() for name in re.findall(r"^\.\. autoclass:: (\S+)", text, re.MULTILINE)]


# Operators that the task groups build, and triggers that tasks defer to: nobody writes them in a Dag.
NOT_FOR_DAGS = re.compile(r"Workspace((Open|Hold|Guard|Close)Maintenance|Pause)?Window|Workspace(Wait|Deadline)Trigger")
OF_REVIEWS = re.compile(r"Workspace(ReadPopulation|DecideAccess|ApplyDecisions|CloseReview)Operator")
DOCUMENTED = [
    f"{cls.__module__}.{cls.__name__}"
    for cls in (*TASKS, *TRIGGERS, WorkspaceSensor)
    if not NOT_FOR_DAGS.match(cls.__name__) and not OF_REVIEWS.match(cls.__name__)
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_class_has_a_section(name: str) -> None:
    there = documented().count(name)
    assert there, f"write a section with an example and '.. autoclass:: {name}' in docs/"
    assert there == 1, f"{name} has {there} sections in docs/"


# Operators that the task groups build; the pages of these groups have them.
OF_GROUPS = re.compile(r"operators\.(access_review|windows|window_closing)$")


def test_the_first_table_names_every_operator_sensor_and_task_group() -> None:
    table = PAGES["operators/index.md"].partition("## Which operator do I need")[2].partition("\n## ")[0]
    groups = [name for name, value in inspect.getmembers(task_groups, inspect.isfunction) if name[0] != "_"]
    own = [name for name in groups if getattr(task_groups, name).__module__ == task_groups.__name__]
    tasks = [cls.__name__ for cls in TASKS if not OF_GROUPS.search(cls.__module__)]
    missing = [name for name in (*own, *tasks, "WorkspaceArrivalTrigger") if not re.search(rf"`{name}[`(]", table)]
    assert not missing, f"docs/operators/index.md, the first table: add {', '.join(missing)}"


SECTIONS = [
    (page, section)
    for page, text in PAGES.items()
    if page.startswith("operators/") and page != "operators/index.md"
    for section in re.split(r"^(?=## )", text, flags=re.MULTILINE)
    if re.search(r"^\.\. autoclass:: .*Operator$", section, re.MULTILINE)
    and not re.match("## (Common|The tasks)", section)
]


@pytest.mark.parametrize(("page", "section"), SECTIONS, ids=[section.splitlines()[0] for _, section in SECTIONS])
def test_a_section_documents_result_requests_and_errors(page: str, section: str) -> None:
    assert re.findall(r"^- \*\*(\w+)\*\*: ", section, re.MULTILINE) == ["Returns", "Requests", "Errors"], page


def test_the_page_of_faults_lists_every_operation_that_is_not_repeatable() -> None:
    expected = sorted(str(operation.endpoint.look_for) for operation in OPERATIONS if not operation.endpoint.repeatable)
    documented = sorted(re.findall(r"^\| `[^|]*` \| (Look [^|]*) \|$", PAGES["faults.md"], re.MULTILINE))
    assert documented == expected, "docs/faults.md, section 'Hook calls in your own tasks'"
