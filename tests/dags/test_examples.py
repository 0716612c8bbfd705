"""Every example Dag, and Dags for what no example shows, run with ``airflow dags test`` and change what they should."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, Param

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from airflow_provider_workspace.version_compat import lists_variables
from tests.audit import effects
from tests.dag_bag import DagBag
from tests.dags.examples import EFFECTS, EXAMPLES, ONBOARDED, folder_of
from tests.dags.human import api_server, approving
from tests.windows import Airflow, Window

if TYPE_CHECKING:
    from tests.airflow_cli import AirflowCli

WITH_APPROVAL = ("offboard_members", "sync_members", "grant_access", "quarterly_access_review")
# The example that `make test-all` runs on every Python; the others, and the Dags below, on one of each Airflow.
EVERYWHERE = "maintenance_window"
# Examples with a test of their own, in which one follows the other.
TOGETHER = ("onboard_organization", "check_organization")
# Each window waits for its own drain and hold.
MAPPED_WINDOWS = """
from airflow.sdk import dag, task, task_group

from airflow_provider_workspace.task_groups import maintenance_window


@dag(schedule=None)
def mapped_windows():
    @task_group
    def around(exports):
        with maintenance_window(batch_export_ids=exports, drain=0.1, hold=0.1, max_length=600):

            @task
            def work(): ...

            work()

    around.expand(exports=[["0190c0de-0000-4000-8000-0000000000e1"], ["0190c0de-0000-4000-8000-0000000000e2"]])


mapped_windows()
"""
# Each drift check fails if a name was rendered: the workspace has a project of the name as it is.
TEXT_IS_DATA = """
from contextlib import closing

from airflow.sdk import dag, task

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.task_groups import workspace_organization

NAME = "{{ '{{' }} conn.workspace_default.password }}"


@dag(schedule=None, params={"zone": "UTC"})
def text_is_data():
    @task
    def described():
        with closing(WorkspaceHook()) as hook:
            return {"projects": [{"name": project.name} for project in hook.list_projects()]}

    @task
    def several(one):
        return [one]

    create = WorkspaceCreateProjectOperator(task_id="create", name=NAME)
    file = described()
    create >> file
    WorkspacePlanOrganizationOperator(task_id="of_an_xcom", file=file, fail_on_difference=True)
    WorkspacePlanOrganizationOperator.partial(task_id="mapped", fail_on_difference=True).expand(file=several(file))
    workspace_organization(file=several(file), dry_run=True)
    in_the_dag_file = {"projects": [{"name": "Default project", "timezone": "{{ params.zone }}"}]}
    file >> WorkspacePlanOrganizationOperator(task_id="of_the_dag", file=in_the_dag_file, fail_on_difference=True)


text_is_data()
"""
# Per Dag: its file, what it changes, and how often its log says that nothing differs.
OWN: dict[str, tuple[str, dict[str, int], int]] = {
    "mapped_windows": (MAPPED_WINDOWS, {"pause_batch_export": 2, "unpause_batch_export": 2}, 0),
    "text_is_data": (TEXT_IS_DATA, {"create_project": 1}, 4),
}

RunDag = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(rate_limit=False) as running:
        yield running


@pytest.fixture(scope="module")
def home(airflow_cli: AirflowCli, migrated_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """AIRFLOW_HOME for all examples."""
    folder = tmp_path_factory.mktemp("airflow")
    airflow_cli.migrated_home(folder, migrated_database)
    airflow_cli.preload_dag_test()
    return folder


@pytest.fixture(scope="module")
def api(airflow_cli: AirflowCli, home: Path) -> Iterator[str]:
    """The API for answering the questions of examples."""
    with api_server(airflow_cli, home) as url:
        yield url


@pytest.fixture(scope="module")
def run_dag(request: pytest.FixtureRequest, server: SandboxServer, airflow_cli: AirflowCli, home: Path) -> RunDag:
    """Run a Dag with ``airflow dags test``."""
    connection = json.loads(server.connection(consistency_time=2))
    research = {
        **connection,
        "password": server.seed.research_key,
        "extra": {"organization_id": server.seed.other_organization_id},
    }
    warehouse = home / "warehouse.db"
    with closing(sqlite3.connect(warehouse)) as database, database:
        database.executescript((EXAMPLES / "data" / "people.sql").read_text())
    connections = {
        "AIRFLOW_CONN_WAREHOUSE": json.dumps({"conn_type": "sqlite", "host": str(warehouse)}),
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": json.dumps(connection),
        "AIRFLOW_CONN_WORKSPACE_RESEARCH": json.dumps(research),
    }

    def run(dag_id: str, **params: Any) -> subprocess.CompletedProcess[str]:
        with approving(request.getfixturevalue("api")) if dag_id in WITH_APPROVAL else nullcontext():
            return airflow_cli.run(
                *("dags", "test", dag_id, "--conf", json.dumps(params)),
                home=home,
                timeout=300,
                AIRFLOW__CORE__DAGS_FOLDER=str(folder_of(home, dag_id)),
                **connections,
            )

    return run


def marks(dag_id: str) -> Iterator[pytest.MarkDecorator]:
    """Return the marks of an example."""
    yield pytest.mark.slow
    yield pytest.mark.per_python if dag_id == EVERYWHERE else pytest.mark.per_airflow
    if dag_id in WITH_APPROVAL:
        yield pytest.mark.needs_airflow("3.3", "a human's answer to `airflow dags test`")


def test_every_example_is_tested() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(EFFECTS)


@pytest.mark.parametrize(
    "dag_id", [pytest.param(dag_id, marks=[*marks(dag_id)]) for dag_id in EFFECTS if dag_id not in TOGETHER]
)
def test_example_makes_the_documented_changes_and_no_others(
    server: SandboxServer, run_dag: RunDag, tmp_path: Path, dag_id: str
) -> None:
    server.reset()
    if dag_id == "complete_export":
        server.play_runs(history_hours=48, jitter_seconds=0, run_seconds=0)
    files = {"access_audit": tmp_path / "findings.csv"}
    params = {
        "access_audit": {"file": str(tmp_path / "findings.csv")},
        "quarterly_access_review": {"evidence": str(tmp_path), "reviewers": ["Anonymous"]},
    }
    run = run_dag(dag_id, **params.get(dag_id, {}))
    log = run.stdout + run.stderr
    assert run.returncode == 0, log[-3000:]
    assert "DagRun failed" not in log, log[-3000:]
    assert Counter(effects(server)) == EFFECTS[dag_id]
    assert dag_id not in files or files[dag_id].read_text().startswith("email,finding,since\n")
    assert (
        dag_id != "quarterly_access_review" or '"state": "complete"' in next(tmp_path.glob("*/review.json")).read_text()
    )
    assert server.seed.admin_key not in log


@pytest.mark.per_airflow
@pytest.mark.slow
@pytest.mark.parametrize("dag_id", ["mapped_windows", "text_is_data"])
def test_a_dag_file_runs(server: SandboxServer, run_dag: RunDag, home: Path, dag_id: str) -> None:
    code, changes, equal = OWN[dag_id]
    (home / dag_id).mkdir()
    (home / dag_id / f"{dag_id}.py").write_text(code)
    server.reset()
    run = run_dag(dag_id)
    said = run.stdout + run.stderr
    assert run.returncode == 0, said
    assert Counter(effects(server)) == changes
    assert not [row for row in server.batch_exports() if row["paused"]]
    assert said.count("0 to create, 0 to change, 0 to remove") >= equal
    assert "text" not in dag_id or "{{ conn.workspace_default.password }}" in str(server.effects("create_project"))


@pytest.fixture(scope="module")
def examples() -> dict[str, DAG]:
    bag = DagBag(EXAMPLES)
    failed = {Path(file).stem for file in bag.import_errors}
    assert failed == (set() if lists_variables() else {"grant_access"})
    return dict(bag.dags)


def each_example() -> Iterator[Any]:
    for dag_id in EFFECTS:
        marks = [pytest.mark.needs_airflow("3.3", "temporary access")] if dag_id == "grant_access" else []
        yield pytest.param(dag_id, marks=marks)


@pytest.mark.parametrize("dag_id", list(each_example()))
def test_every_dag_param_and_task_of_the_examples_is_documented(examples: dict[str, DAG], dag_id: str) -> None:
    assert len(examples[dag_id].doc_md or "") > 150
    for name in examples[dag_id].params:
        param = examples[dag_id].params.get_param(name)
        assert isinstance(param, Param)
        assert param.schema.get("type"), f"{name} needs a type"
        assert param.schema.get("title"), f"{name} needs a title"
        assert str(param.description).endswith("."), f"{name} needs a description"
        assert param.resolve() == param.value, f"{name} needs a default that is allowed"
    for task in examples[dag_id].tasks:
        assert task.task_display_name != task.task_id, f"{task.task_id} needs a task_display_name"
        assert task.doc_md, f"{task.task_id} needs a doc_md"


@pytest.mark.slow
@pytest.mark.per_airflow
def test_onboarding_is_idempotent_and_drift_is_detected(server: SandboxServer, run_dag: RunDag) -> None:
    server.reset()
    drift = run_dag("check_organization")
    assert "The organization differs from its file: " in drift.stdout, drift.stdout[-3000:]
    assert drift.returncode != 0
    assert server.effects() == []
    for dag_id in (*TOGETHER, "onboard_organization"):
        run = run_dag(dag_id)
        assert run.returncode == 0, run.stdout[-3000:]
        assert server.seed.admin_key not in run.stdout + run.stderr
        assert Counter(effects(server)) == ONBOARDED


@pytest.mark.slow
@pytest.mark.per_airflow
def test_a_lease_of_a_run_that_is_over_is_abandoned_and_resumed(
    server: SandboxServer, run_dag: RunDag, airflow_cli: AirflowCli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command line, which reads Airflow's database. ``tests/unit/cli`` has the other commands."""

    def run(*arguments: str | Path) -> str:
        done = airflow_cli.run(*arguments, home=home, AIRFLOW_CONN_WORKSPACE_DEFAULT=server.connection())
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return str(done.stdout)

    server.reset()
    assert run_dag("maintenance_window").returncode == 0
    run_id = json.loads(run("dags", "list-runs", "maintenance_window", "-o", "json"))[0]["run_id"]
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", server.connection())
    airflow = Airflow(monkeypatch)
    Window(SEED.batch_export_ids[0], dag_id="maintenance_window", run_id=run_id).open()
    (key,) = airflow.lease_keys()
    airflow.edit(key, state="paused", paused_at=airflow.leases()[0]["since"])
    run("variables", "set", key, airflow.variables.values[key])
    assert "abandoned: its run is over" in run("workspace", "windows")
    assert "Window maintenance_window / " in run("workspace", "sweep")
