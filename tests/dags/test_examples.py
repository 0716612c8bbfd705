"""Every example runs by the command people use, and does what it says, no more."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.dags.human import approving

EXAMPLES = Path(__file__).resolve().parents[2] / "example_dags"
AIRFLOW = Path(sys.executable).with_name("airflow")
ONBOARDED = {
    "create_project": 1,
    "create_domain": 1,
    "verify_domain": 1,
    "create_invite": 228,
    "create_dashboard": 3,
    "add_dashboard_collaborator": 3,
}
EFFECTS: dict[str, dict[str, int]] = {
    "onboard_organization": ONBOARDED,
    "maintenance_window": {"pause_batch_export": 2, "unpause_batch_export": 2},
    "event_driven_onboarding": {},
    "access_audit": {},
    "onboard_organizations": {"create_project": 2, "create_invite": 3},
    "fixed_window": {"pause_batch_export": 2, "unpause_batch_export": 2},
    "overlapping_windows": {"pause_batch_export": 1, "unpause_batch_export": 1},
    "resume_abandoned_exports": {},
    "offboard_members": {"delete_member": 1},
    "sync_members": {"delete_member": 1, "update_member": 1, "create_invite": 1},
}
ASKING = ("offboard_members", "sync_members")
# The one that `make test-all` runs on every Python.
EVERYWHERE = "maintenance_window"
# What onboarding reports: how much it created, how much was there.
REPORT = {"project": (1, 0), "domain": (1, 0), "dashboards": (3, 0), "collaborators": (3, 0), "invites": (228, 1)}

RunDag = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("lenient") as running:
        yield running


@pytest.fixture(scope="module")
def run_dag(server: SandboxServer, tmp_path_factory: pytest.TempPathFactory) -> RunDag:
    """Run a Dag with an Airflow of its own."""
    connection = {
        "conn_type": "workspace",
        "host": server.url,
        "password": server.seed.admin_key,
        "extra": {"organization_id": server.seed.organization_id, "project_id": server.seed.project_id},
    }
    env = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": json.dumps(connection),
        "AIRFLOW_CONN_WORKSPACE_RESEARCH": json.dumps(
            {
                **connection,
                "password": server.seed.research_key,
                "extra": {"organization_id": server.seed.other_organization_id},
            }
        ),
    }

    def airflow(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([AIRFLOW, *arguments], env=env, capture_output=True, text=True, check=False, timeout=900)

    assert airflow("db", "migrate").returncode == 0

    def run(dag_id: str, **params: Any) -> subprocess.CompletedProcess[str]:
        with approving(AIRFLOW, env) if dag_id in ASKING else nullcontext():
            return airflow("dags", "test", dag_id, "--conf", json.dumps(params))

    return run


def marks(dag_id: str) -> Iterator[pytest.MarkDecorator]:
    """Where an example is run."""
    if dag_id != EVERYWHERE:
        yield pytest.mark.per_airflow
    if dag_id in ASKING:
        yield pytest.mark.needs_airflow("3.3", "a human's answer to `airflow dags test`")


def test_every_example_has_a_row() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(EFFECTS)


@pytest.mark.parametrize("dag_id", [pytest.param(dag_id, marks=[*marks(dag_id)]) for dag_id in EFFECTS])
def test_an_example_does_what_it_says(server: SandboxServer, run_dag: RunDag, dag_id: str) -> None:
    server.reset()
    run = run_dag(dag_id)
    log = run.stdout + run.stderr
    assert run.returncode == 0, log[-3000:]
    assert "DagRun failed" not in log, log[-3000:]
    assert Counter(effect["operation"] for effect in server.effects()) == EFFECTS[dag_id]
    assert server.seed.admin_key not in log


@pytest.mark.per_airflow
def test_onboarding_again_changes_nothing(server: SandboxServer, run_dag: RunDag) -> None:
    """And a name that looks like a number stays a name."""
    server.reset()
    first = run_dag("onboard_organization", project="2026")
    assert first.returncode == 0, first.stdout[-3000:]
    assert report_of(first) == REPORT
    before = server.effects()
    again = run_dag("onboard_organization", project="2026")
    assert again.returncode == 0, again.stdout[-3000:]
    assert "DagRun failed" not in again.stdout
    assert server.effects() == before
    assert report_of(again) == {what: (0, created + there) for what, (created, there) in REPORT.items()}


def report_of(run: subprocess.CompletedProcess[str]) -> dict[str, tuple[int, int]]:
    """What was created and what was there, as the Dag's report in the log says."""
    rows = re.findall(r"^(\w+) +(\d+) +(\d+)$", run.stdout, re.MULTILINE)
    return {what: (int(created), int(there)) for what, created, there in rows}
