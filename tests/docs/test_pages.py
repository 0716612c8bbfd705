"""Code, commands and references of the documentation. ``make docs`` follows its links and includes."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, BaseSensorOperator

from airflow_provider_workspace import task_groups
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.send import WorkspaceSendOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceSensor
from tests.classes import TASKS, TRIGGERS
from tests.dag_bag import DagBag
from tests.raw_server import RawServer, answer
from tests.variables import install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "example_dags"
PAGES = {str(path.relative_to(DOCS)): path.read_text() for path in sorted(DOCS.rglob("*.md"))}
# Packages that the page on migrating replaces need not be installed.
NOT_THERE = re.compile("No module named 'airflow.providers.http'")


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


PYTHON = [(page, number, code) for page in PAGES for number, code in enumerate(blocks(page, "python"), start=1)]
# A block whose first line names a file is part of a project, which has its own test.
FILES = [piece for piece in PYTHON if re.match(r"# \S+\.py\n", piece[2])]
PYTHON = [piece for piece in PYTHON if piece not in FILES]
DAGS = [piece for piece in PYTHON if "@dag(" in piece[2]]
SNIPPETS = [piece for piece in PYTHON if piece not in DAGS]


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_use_one_name_per_language(page: str) -> None:
    assert set(blocks(page, r"(?:py|Python|python3|pycon|JSON|jsonc)")) == set()


@pytest.mark.parametrize(("page", "number", "code"), DAGS)
def test_a_documented_dag_loads(tmp_path: Path, page: str, number: int, code: str) -> None:
    (tmp_path / "shown.py").write_text(code)
    bag = DagBag(tmp_path)
    errors = [error for error in bag.import_errors.values() if not NOT_THERE.search(error)]
    assert not errors, f"{page}, block {number}"
    assert bag.import_errors or len(bag.dags) == 1, f"{page}, block {number}"


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize("page", sorted({page for page, _, _ in SNIPPETS}))
def test_snippets_run_with_the_documented_requests(
    connect: Callable[..., None], page: str, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snippets run in order in one namespace. Their tasks are executed; sensors poll once."""
    connect(key=SEED.session_key)
    install(monkeypatch)
    module = ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)  # pydantic looks for the module of a class
    for _, number, code in (snippet for snippet in SNIPPETS if snippet[0] == page):
        before = len(sandbox.requests())
        with DAG("shown", schedule=None) as dag:
            exec(compile(code, f"{page}, block {number}", "exec"), vars(module))  # noqa: S102 - that is what this is for
        for task in dag.tasks:
            if isinstance(task, BaseSensorOperator):
                assert task.poke({}) is not None
            else:
                task.execute({})
        said = re.match(r"[^#]*?^- \*\*Requests\*\*: (\d+)", PAGES[page].partition(code)[2], re.DOTALL | re.MULTILINE)
        if said:
            assert len(sandbox.requests()) - before == int(said[1]), f"{page}, block {number}"


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
        for number, code in enumerate(blocks("guides/endpoints.md", "python")):
            if "@dag(" in code:
                (tmp_path / "shown.py").write_text(code)
                (task,) = DagBag(tmp_path).dags["paused_exports"].tasks
                assert task.execute({}) == [{"id": "a", "name": "Nightly"}]
            else:
                exec(compile(code, f"block {number}", "exec"), vars(module))  # noqa: S102 - the documented code
        with WorkspaceHook() as hook:
            assert module.failed_runs(hook, 1, "a") == ["r", "s"]
        arguments = {"project_id": 1, "content": "Deployed"}
        task = WorkspaceSendOperator(task_id="annotate", operation=module.CreateAnnotation, arguments=arguments)
        assert task.execute({}) == record
    assert [request.method for request in server.requests] == ["GET"] * 5 + ["POST"]
    assert server.requests[4].target == "/api/projects/1/batch_exports/a/runs/?cursor=cD0y&page=2"


@pytest.mark.needs_airflow("3.2", "the module of exceptions that the page imports")
@pytest.mark.per_airflow
@pytest.mark.slow
def test_the_documented_project_passes(airflow_cli: AirflowCli, tmp_path: Path) -> None:
    """Without complete Dag runs, which tests/e2e/test_wheel.py has."""
    for _, _, code in FILES:
        file = tmp_path / code.partition("\n")[0].removeprefix("# ")
        file.parent.mkdir(exist_ok=True)
        file.write_text(code)
    assert len(DagBag(tmp_path / "dags").dags) == 1
    said = airflow_cli.run_tests(tmp_path, "-k", "not run")
    assert re.search(r"^5 passed, 3 deselected", said, re.MULTILINE), said


@pytest.mark.parametrize("page", PAGES)
def test_dags_read_only_xcoms_that_operators_push(page: str) -> None:
    """``output["name"]`` is the XCom ``name``, not a field of the result."""
    assert set(re.findall(r"\.output\[\"(\w+)\"\]", PAGES[page])) <= {"id", "created"}


# Commands and figures

README = (ROOT / "README.md").read_text()
# Commands in prose are in backticks.
MAKE = re.compile(r"(?:^|`|&& )make ([a-z][\w.-]*)", re.MULTILINE)
TARGETS = {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)}
NAMES = ("README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")
TEXTS = [ROOT / name for name in NAMES]


@pytest.mark.parametrize("file", [*TEXTS, *DOCS.rglob("*.md")], ids=lambda file: file.name)
def test_documented_make_targets_exist(file: Path) -> None:
    assert {*MAKE.findall(file.read_text())} - TARGETS == set()


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


@pytest.mark.parametrize("name", [f"{cls.__module__}.{cls.__name__}" for cls in (*TASKS, *TRIGGERS, WorkspaceSensor)])
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
