"""Rows that ``airflow workspace import`` merges or leaves out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from tests.variables import install

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.needs_airflow("3.2", "commands of providers"),
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
]
# Names that hold a secret, or none.
UNWRITABLE = ["https://ada:hunter2@example.com", "https://ada:hunter2@example.com/{{ x }}", ""]


def test_people_count_once_and_what_cannot_be_written_is_left_out(
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    variables = install(monkeypatch)
    connect()
    file: Any = {"projects": [{"name": "Default project", "dashboards": [{"name": "kept"}, {"name": "gone"}]}]}
    WorkspaceApplyOrganizationOperator(task_id="dashboards", part="dashboards", file=file).execute({})
    gone = sandbox.effects("create_dashboard")[-1]["target"]
    with WorkspaceHook() as hook:
        hook.delete_dashboard(dashboard_id=gone)
        hook.create_project(name="North")
        numbers = [hook.create_project(name=f"p{number}").id for number in range(len(UNWRITABLE))]
    for number, name in zip(numbers, UNWRITABLE, strict=True):
        sandbox.set_project(number or 0, name=name)
    ada: Any = {"id": "i", "target_email": "ADA@example.com", "level": 1}
    member: Any = {"id": "m", "user": {"email": "ada@example.com"}, "level": 8}
    for operation, row in (("list_invites", ada), ("list_members", member)):
        sandbox.inject("say", operation, body={"count": 1, "next": None, "results": [row]}, times=None)
    airflow_cli.migrated_home(tmp_path, migrated_database)
    (tmp_path / "variables.json").write_text(json.dumps(variables.values))
    assert airflow_cli.run("variables", "import", tmp_path / "variables.json", home=tmp_path).returncode == 0
    run = airflow_cli.run("workspace", "import", home=tmp_path)
    assert run.returncode == 0, run.stderr
    found = yaml.safe_load(run.stdout)
    assert found["members"]["people"] == [{"email": "ada@example.com", "level": "admin"}]
    assert [project["name"] for project in found["projects"]] == ["Default project", "North"]
    assert [dashboard["name"] for dashboard in found["projects"][0]["dashboards"]] == ["kept"]
    sandbox.inject("status_before", "retrieve_dashboard", status=404, body="html")
    run = airflow_cli.run("workspace", "import", home=tmp_path)
    assert run.returncode == 1
    assert "404" in run.stderr, "that of a proxy does not count as deleted"
