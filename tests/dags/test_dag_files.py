"""Dags that Airflow runs with ``airflow dags test``: mapped windows, and organizations described by XComs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.airflow_cli import AirflowCli

pytestmark = pytest.mark.per_airflow

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


@pytest.mark.parametrize(
    ("dag_id", "code", "effects"),
    [
        ("mapped_windows", MAPPED_WINDOWS, {"pause_batch_export": 2, "unpause_batch_export": 2}),
        ("text_is_data", TEXT_IS_DATA, {"create_project": 1}),
    ],
)
def test_a_dag_file_runs(
    airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path, dag_id: str, code: str, effects: dict[str, int]
) -> None:
    airflow_cli.migrated_home(tmp_path, migrated_database)
    airflow_cli.preload_dag_test()
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / f"{dag_id}.py").write_text(code)
    with SandboxServer(rate_limit=False) as server:
        done = airflow_cli.run(
            *("dags", "test", dag_id),
            home=tmp_path,
            timeout=300,
            AIRFLOW__CORE__DAGS_FOLDER=str(folder),
            AIRFLOW_CONN_WORKSPACE_DEFAULT=server.connection(),
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert {name: len(server.effects(name)) for name in effects} == effects
        assert not [row for row in server.batch_exports() if row["paused"]]
        if dag_id == "text_is_data":
            assert "{{ conn.workspace_default.password }}" in str(server.effects("create_project"))
            assert said.count("0 to create, 0 to change, 0 to remove") >= 4
