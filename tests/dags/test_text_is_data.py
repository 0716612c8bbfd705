"""Organizations described by XComs: Airflow does not render text that came from the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.airflow_cli import AirflowCli

# Each drift check fails if a name was rendered: the workspace has a project of the name as it is.
DAG = """
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


@pytest.mark.per_airflow
def test_text_from_the_workspace_is_not_rendered(
    airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path
) -> None:
    airflow_cli.migrated_home(tmp_path, migrated_database)
    airflow_cli.preload_dag_test()
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "text_is_data.py").write_text(DAG)
    with SandboxServer("lenient") as server:
        done = airflow_cli.run(
            *("dags", "test", "text_is_data"),
            home=tmp_path,
            timeout=300,
            AIRFLOW__CORE__DAGS_FOLDER=str(folder),
            AIRFLOW_CONN_WORKSPACE_DEFAULT=server.connection(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (created,) = server.effects("create_project")
        assert "{{ conn.workspace_default.password }}" in str(created)
        said = done.stdout + done.stderr
        assert said.count("0 to create, 0 to change, 0 to remove") >= 4
