"""The commands ``airflow workspace …``, and the cost of their definitions for other commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from tests.audit import effects
from tests.leases import SWEEP, lease, swept, variable

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Connect

AIRFLOW = Path(sys.executable).with_name("airflow")
NO_WINDOW = "No maintenance window holds a batch export.\n"

pytestmark = pytest.mark.needs_airflow("3.2", "commands of providers")

Airflow = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def airflow(airflow_cli: AirflowCli, tmp_path: Path) -> Airflow:
    """Run a command with its own AIRFLOW_HOME."""
    return partial(airflow_cli.run, home=tmp_path)


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_ping_reports_success_or_the_reason(airflow: Airflow, sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    run = airflow("workspace", "ping")
    assert run.returncode == 0, run.stderr
    assert re.match(rf"The service at {sandbox.url} accepts the API key \(\d+ ms for a few reads\)\.", run.stdout)
    sandbox.revoke_key(sandbox.seed.admin_key)
    for options, reason in ((), "refuses the API key"), (("--conn-id", "elsewhere"), "`elsewhere` isn't defined"):
        run = airflow("workspace", "ping", *options)
        assert (run.returncode, reason in run.stderr, "Traceback" in run.stderr) == (1, True, False)


def test_plan_sends_only_reads(airflow: Airflow, sandbox: SandboxServer, connect: Connect, tmp_path: Path) -> None:
    connect()
    roster = tmp_path / "members.csv"
    roster.write_text("email,level\nada@example.com,8\ngrace.analyst@example.com,1\n")
    run = airflow(
        "workspace", "plan", roster, "--protected", "adam.admin@example.com", "--owner-level", "owner", "-o", "json"
    )
    assert run.returncode == 2, run.stderr
    (plan,) = json.loads(run.stdout).values()
    actions = {change["name"].partition("@")[0]: change["action"] for change in plan["changes"]}
    assert actions == {
        "invite liv.invited": "remove",
        "member mina.member": "remove",
        "member noah.newton": "remove",
        "invite ada": "create",
        "person olive.owner": "skip",
        "person adam.admin": "skip",
    }
    assert {entry["method"] for entry in sandbox.requests()} == {"GET"}
    roster.write_text("email,levle\n")
    run = airflow("workspace", "plan", roster)
    assert run.returncode == 1
    assert "did you mean 'level'?" in run.stderr


def test_a_closed_pipe_ends_the_command_quietly() -> None:
    code = (
        "from airflow_provider_workspace.cli import commands; "
        "commands.whoami = lambda args: (commands._print('a'), print('not reached')); commands.run('whoami', None)"
    )
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (run.returncode, run.stderr) == (1, "")


def test_the_sandbox_command_starts_and_stops(tmp_path: Path) -> None:
    """Runs the installed program ``airflow`` in a new process."""
    with subprocess.Popen(
        [AIRFLOW, "workspace", "sandbox", "--port", "0", "--profile", "strict"],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            # On Python 3.14 the output starts with Airflow's own deprecation warnings.
            url = next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.:]+", line)))
            with urlopen(f"{url}/_sandbox/workspace", timeout=10) as answer:  # noqa: S310 - loopback
                assert json.load(answer)["profile"] == "strict"
        finally:
            process.terminate()
        assert process.wait(30) == 0


def test_windows_lists_leases_and_resumes_abandoned_exports(
    airflow: Airflow,
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Two leases are unreadable, which hides no other."""
    export_id = sandbox.seed.batch_export_ids[0]
    connect()
    with closing(WorkspaceHook()) as hook:
        hook.pause_batch_export(batch_export_id=export_id)
    airflow_cli.migrated_home(tmp_path, migrated_database)
    assert airflow("workspace", "windows").stdout == f"{NO_WINDOW}Last sweep: never.\n"
    place = {"service": sandbox.url, "organization_id": sandbox.seed.organization_id, "batch_export_id": export_id}
    times = {"since": 1_790_000_000, "until": 4_000_000_000, "paused_at": 1_790_000_001}
    held = lease(run_id="gone", owner="data-team", seen="paused", **place, **times)
    key, value = variable(held)
    broken = {
        "workspace_lease.broken": "{",
        "workspace_lease.early": json.dumps(held | {"since": "0001-01-01T00:00:00+14:00"}),
    }
    values = {key: value, **broken, SWEEP: swept(held, "open", at=1_790_000_060)}
    airflow_cli.migrated_home(tmp_path, migrated_database, values)
    monkeypatch.delenv("AIRFLOW_CONN_WORKSPACE_DEFAULT")
    assert airflow("connections", "add", "workspace_default", "--conn-json", sandbox.connection()).returncode == 0

    run = airflow("workspace", "windows")
    assert "ABANDONED: its run is gone  seen paused  owner data-team" in run.stdout, run.stderr
    assert "Delete or correct the Variable 'workspace_lease.broken'" in run.stdout
    said = airflow("workspace", "windows", "--output", "json").stdout
    found = json.loads(said[said.index("{\n") :])  # Airflow 3.2 logs to standard output
    (listed,) = found["leases"]
    assert (listed["batch_export_id"], listed["state"], listed["abandoned"]) == (export_id, "paused", "its run is gone")
    assert list(found["unreadable"]) == list(broken)
    assert found["last_sweep"].startswith("2026-09-21T14:14:20")
    for name in broken:
        assert airflow("variables", "delete", name).returncode == 0

    window = "nightly / gone / window.close"
    run = airflow("workspace", "resume", export_id)
    assert run.returncode == 1
    assert "Run 'airflow workspace windows --resume', which" in run.stderr
    assert f"delete the Variable '{key}' first" in run.stderr
    assert f"The window {window} holds batch export {export_id}. Nothing was sent." in run.stderr
    run = airflow("workspace", "windows", "--resume")
    assert run.returncode == 0, run.stderr
    assert f"Abandoned window {window} (its run is gone): resumed {export_id}" in run.stdout
    assert effects(sandbox) == ["pause_batch_export", "unpause_batch_export"]
    assert airflow("workspace", "windows").stdout.startswith(NO_WINDOW)
    run = airflow("workspace", "resume", export_id)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith(f"Resumed batch export {export_id}.\n")
    assert sum(request["path"].endswith("/unpause/") for request in sandbox.requests()) == 2
    assert "EXPORT_ID must be" in airflow("workspace", "resume", "all").stderr


def test_the_plan_of_an_organization_file_has_its_changes_or_names_the_line(
    airflow: Airflow,
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    tmp_path: Path,
) -> None:
    connect()
    airflow_cli.migrated_home(tmp_path, migrated_database)
    file = tmp_path / "organization.yaml"
    file.write_text("projects: [{name: Northwind, timezone: UTC}]")
    run = airflow("workspace", "plan", file)
    assert run.returncode == 2, run.stdout + run.stderr
    assert re.search(r"^  \+ project Northwind +timezone: UTC$", run.stdout, re.MULTILINE)
    file.write_text("projects:\n  - nam: Northwind")
    run = airflow("workspace", "plan", file)
    assert run.returncode == 1
    assert "line 2: projects.0.nam: unknown field (did you mean 'name'?)" in run.stderr
    file.write_text("organizations:\n  north: {projects: []}\n  south: {projects: []}")
    run = airflow("workspace", "plan", file, "--organization-id", sandbox.seed.organization_id)
    assert run.returncode == 1
    assert f"Leave out --organization-id: {file} describes 2 organizations." in run.stderr
    assert {entry["method"] for entry in sandbox.requests()} == {"GET"}
