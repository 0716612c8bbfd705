"""A Dag whose connection is in Airflow's database runs with ``airflow dags test``."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

if TYPE_CHECKING:
    from tests.airflow_cli import AirflowCli

pytestmark = [pytest.mark.slow, pytest.mark.per_airflow, pytest.mark.needs_airflow("3.2", "tasks that are coroutines")]

DAG = """
from airflow.sdk import dag, task

from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook
from airflow_provider_workspace.sensors.workspace import WorkspaceMembersJoinedSensor


@dag(schedule=None)
def stored_connection():
    @task
    async def projects(workspace_conn_id):
        async with WorkspaceAsyncHook(workspace_conn_id) as hook:
            print("Projects:", [project.name async for project in hook.list_projects()])

    projects.override(task_id="defined")("stored")
    projects.override(task_id="undefined")("forgotten")
    WorkspaceMembersJoinedSensor(
        task_id="wait",
        workspace_conn_id="stored",
        emails=["liv.invited@example.com"],
        deferrable=True,
        poke_interval=5,
        timeout=8,
    )


stored_connection()
"""


@pytest.fixture
def home(airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path) -> Path:
    """AIRFLOW_HOME with the Dag."""
    folder = tmp_path / "airflow"
    airflow_cli.migrated_home(folder, migrated_database)
    airflow_cli.preload_dag_test()
    (folder / "dags").mkdir()
    (folder / "dags" / "stored_connection.py").write_text(DAG)
    return folder


def test_a_coroutine_and_a_trigger_find_a_connection_of_the_database(airflow_cli: AirflowCli, home: Path) -> None:
    def airflow(*arguments: str) -> subprocess.CompletedProcess[str]:
        return airflow_cli.run(*arguments, home=home, AIRFLOW__CORE__DAGS_FOLDER=str(home / "dags"))

    with SandboxServer() as server:
        added = airflow("connections", "add", "stored", "--conn-json", server.connection())
        assert added.returncode == 0, added.stderr
        run = airflow("dags", "test", "stored_connection")
    log = run.stdout + run.stderr
    assert "Projects: ['Default project'" in log, log[-3000:]
    assert "The conn_id `forgotten` isn't defined" in log
    assert "Timed out after 8 s: 0 of 1 joined" in log
    assert "The conn_id `stored` isn't defined" not in log
    assert "cannot find connection" not in log
