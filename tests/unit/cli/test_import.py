"""What ``airflow workspace import`` writes: the same characters, and nothing else on standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from airflow.sdk import DAG

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import say
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Connect

pytestmark = [pytest.mark.per_airflow, pytest.mark.needs_airflow("3.2", "commands of providers")]
AIRFLOW = Path(sys.executable).with_name("airflow")
SECRET = "{{ conn.workspace_default.password }}"
# Jinja, quotes, escapes, line ends, changes of direction, invisible characters, words of YAML.
HARD = [
    SECRET,
    "{% raw %}{{ var.value.x }}{% endraw %}",
    "{# a comment #}{{{ x }}}",
    "\\{{ x }}\\u007B{ y",
    "'single' \"double\" `back`",
    "a\rb\r\nc\nd\te\x85f\u2028g\u2029h",
    "\ufeffuser\u202egnp.exe\u2066x\u200d",
    "\x00\x1b[31mred\x7f",
    "🚀 Größe 日本語 \u0301",
    *("yes", "010", "1_5", "1:30", "~", "<<", "=", "-", "? x", "a: b", "# x", "!x", "&a", "*a", "2026-11-23", "|", ">"),
    "x" * 3000,
    " ",
]


def imported(airflow_cli: AirflowCli, migrated_database: Path, home: Path, variables: Variables) -> str:
    """Return the organization file that ``airflow workspace import`` writes."""
    # As a person may have edited them.
    values = {
        key: text.replace(SEED.organization_id, SEED.organization_id.upper()) for key, text in variables.values.items()
    }
    airflow_cli.migrated_home(home, migrated_database, {**values, "workspace_dashboard_of_somebody": "5"})
    run = airflow_cli.run("workspace", "import", home=home)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    return install(monkeypatch)


@pytest.mark.slow
def test_the_plan_of_an_imported_file_is_empty_for_hard_texts(
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    variables: Variables,
    tmp_path: Path,
) -> None:
    """Import and plan on the command line; then plan as a task, with and without ``render_file``."""
    connect(consistency_time=0)
    with WorkspaceHook() as hook:
        for name in HARD:
            hook.create_project(name=name, product_description=name, app_urls=[name], extra_settings={name: [name]})
    dashboards = [{"name": name, "description": name} for name in HARD[::4]]
    file: Any = {"projects": [{"name": "Default project", "dashboards": dashboards}]}
    made = WorkspaceApplyOrganizationOperator(task_id="dashboards", part="dashboards", file=file).execute({})
    assert made["pending"] == len(dashboards)
    written = imported(airflow_cli, migrated_database, tmp_path, variables)
    path = tmp_path / "organization.yaml"
    path.write_bytes(written.encode())
    read = yaml.safe_load(written)["projects"]
    # No database of Airflow stores U+0000, so it is replaced in responses.
    assert [project["name"] for project in read[1:]] == [name.replace("\0", "?") for name in HARD]
    before = len(sandbox.effects())
    run = airflow_cli.run("workspace", "plan", path, "-o", "json", home=tmp_path)
    (planned,) = json.loads(run.stdout).values()
    assert (run.returncode, planned["changes"]) == (0, []), run.stderr
    for render_file in (None, True):
        with DAG("drift", schedule=None):
            plan = WorkspacePlanOrganizationOperator(
                task_id="plan", file=str(path), render_file=render_file, fail_on_difference=True
            )
        assert plan.execute({})["changes"] == []
    assert len(sandbox.effects()) == before


@pytest.mark.slow
def test_only_data_goes_to_standard_output(
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Airflow warns of each short text in an extra, and logs to standard output.

    Runs the installed program in a new process: in the fork of ``airflow_cli`` the log goes to standard error anyway.
    """
    airflow_cli.migrated_home(tmp_path, migrated_database)
    connection = json.loads(sandbox.connection())
    connection["extra"]["project_id"] = str(sandbox.seed.project_id)
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path)}
    command = [AIRFLOW, "workspace", "import"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("# The organization as it was.")
    assert yaml.safe_load(run.stdout)["organization_id"] == sandbox.seed.organization_id
    assert "Skipping masking for a secret" in run.stderr


def test_plan_reads_a_template_as_data_and_says_so(
    airflow_cli: AirflowCli, migrated_database: Path, connect: Connect, tmp_path: Path
) -> None:
    connect()
    airflow_cli.migrated_home(tmp_path, migrated_database)
    (tmp_path / "northwind.yaml").write_text(f"projects:\n- name: '{SECRET}'\n")
    run = airflow_cli.run("workspace", "plan", "northwind.yaml", home=tmp_path, cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert f"+ project {SECRET}" in run.stdout
    assert "Line 2 looks like a Jinja template. It is taken as it is" in run.stderr


# Names that hold a secret, or none.
UNWRITABLE = ["https://ada:hunter2@example.com", "https://ada:hunter2@example.com/{{ x }}", ""]


def create_dashboards() -> None:
    """Create three dashboards, each of which is noted in a Variable."""
    dashboards = [{"name": name} for name in ("kept", "lost", "gone")]
    file: Any = {"projects": [{"name": "Default project", "dashboards": dashboards}]}
    WorkspaceApplyOrganizationOperator(task_id="dashboards", part="dashboards", file=file).execute({})


def create_projects(sandbox: SandboxServer) -> None:
    """Create a project that can be written, and those that cannot."""
    with WorkspaceHook() as hook:
        hook.create_project(name="North")
        for number, name in enumerate(UNWRITABLE):
            project = hook.create_project(name=f"p{number}")
            sandbox.set_project(project.id or 0, name=name)


def test_people_count_once_and_what_cannot_be_written_is_left_out(
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    variables: Variables,
    tmp_path: Path,
) -> None:
    connect()
    create_dashboards()
    lost, gone = [effect["target"] for effect in sandbox.effects("create_dashboard")[-2:]]
    for key, value in variables.values.items():
        variables.values[key] = value.replace(f'"dashboard_id": {lost}', '"dashboard_id": 999999')
    WorkspaceHook().delete_dashboard(dashboard_id=gone)
    create_projects(sandbox)
    say(sandbox, "list_invites", {"id": "i", "target_email": "ADA@example.com", "level": 1, "is_expired": False})
    member = {"id": "m", "user": {"email": "ada@example.com"}, "level": 8}
    say(sandbox, "list_members", member, {"id": "nobody"})
    found = yaml.safe_load(imported(airflow_cli, migrated_database, tmp_path, variables))
    assert found["members"]["people"] == [{"email": "ada@example.com", "level": "admin"}]
    assert [project["name"] for project in found["projects"]] == ["Default project", "North"]
    assert [dashboard["name"] for dashboard in found["projects"][0]["dashboards"]] == ["kept"]
    sandbox.inject("proxy_error", "retrieve_dashboard", status=404)
    run = airflow_cli.run("workspace", "import", home=tmp_path)
    assert run.returncode == 1
    assert "404" in run.stderr, "that of a proxy does not count as deleted"


def test_the_plan_accepts_a_file_of_an_organization_with_repeated_names(
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    variables: Variables,
    tmp_path: Path,
) -> None:
    """And one without domains, once somebody takes the advice at its top."""
    connect()
    create_dashboards()
    _, lost, gone = [effect["target"] for effect in sandbox.effects("create_dashboard")]
    with WorkspaceHook() as hook:
        hook.update_dashboard(dashboard_id=gone, name="lost")
        hook.delete_domain(domain_id=SEED.domain_id)
        twins = [hook.create_project(name="Twin").id for _ in range(2)]
    text = imported(airflow_cli, migrated_database, tmp_path, variables)
    dashboards = [f"dashboard {number} of project {SEED.project_id}" for number in (lost, gone)]
    labels = ", ".join([*dashboards, *(f"project {number}" for number in twins)])
    assert f"# Left out, because others have the same name: {labels}\n" in text
    assert "# complete: [members, collaborators]\n" in text
    (tmp_path / "northwind.yaml").write_text(text.replace("# complete", "complete"))
    run = airflow_cli.run("workspace", "plan", "northwind.yaml", home=tmp_path, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert [board["name"] for board in yaml.safe_load(text)["projects"][0]["dashboards"]] == ["kept"]


@pytest.fixture
def read_import(
    airflow_cli: AirflowCli, migrated_database: Path, connect: Connect, variables: Variables, tmp_path: Path
) -> Callable[[], Any]:
    """Return a function that imports an organization with three dashboards, and reads the file."""
    connect()
    create_dashboards()
    return lambda: yaml.safe_load(imported(airflow_cli, migrated_database, tmp_path, variables))


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_file_has_what_the_organization_has(sandbox: SandboxServer, read_import: Callable[[], Any]) -> None:
    user = {"uuid": "u-1", "email": "cora@example.com"}
    unseen = {"uuid": "u-2", "email": None}
    boards = [{"user": user, "level": 37}, {"user": user | {"email": "dan@example.com"}}, {"user": unseen, "level": 37}]
    sandbox.inject("say", "list_dashboard_collaborators", body=boards)
    sandbox.inject("say", "list_dashboard_collaborators", body=[], times=None)
    sandbox.inject("say", "retrieve_project", body={"id": SEED.project_id, "name": "North\u202ewind"})
    say(sandbox, "list_domains", {"id": SEED.domain_id, "domain": "new.example.com", "is_verified": False})
    say(
        sandbox,
        "list_invites",
        {"id": SEED.invite_id, "target_email": None},
        {"target_email": "eve@example.com", "is_expired": False},
    )
    say(sandbox, "list_members", {"user": user, "level": 8}, {"user": unseen, "level": 1}, {"user": None})
    file = read_import()
    assert file["domains"] == [{"domain": "new.example.com", "verified": False}]
    assert file["members"] == {"people": ["eve@example.com", {"email": "cora@example.com", "level": "admin"}]}
    assert file["projects"][0]["name"] == "North\u202ewind"
    shared, *others = file["projects"][0]["dashboards"]
    assert shared["collaborators"] == [{"email": "cora@example.com", "level": 37}, {"email": "dan@example.com"}]
    assert [dashboard["collaborators"] for dashboard in others] == [[], []]


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_file_leaves_out_what_is_empty_or_gone(sandbox: SandboxServer, read_import: Callable[[], Any]) -> None:
    sandbox.inject("status_before", "retrieve_dashboard", status=404, times=None)
    assert not any("dashboards" in project for project in read_import()["projects"])
    sandbox.inject("say", "retrieve_project", body={"id": SEED.project_id, "name": "https://ada:s3cret@example.com"})
    assert "projects" not in read_import(), "its name holds a secret"
    for operation in ("list_projects", "list_domains", "list_members", "list_invites"):
        say(sandbox, operation)
    assert read_import() == {"organization_id": SEED.organization_id}
