"""Temporary access in a complete Airflow: grants that a Dag ends, whatever happened to the one that granted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.audit import effects
from tests.e2e.live_airflow import READING_SECONDS, LiveAirflow
from tests.e2e.processes import find_child, kill_tree
from tests.e2e.test_retries import kill_workers
from tests.grant_notes import PREFIX
from tests.leases import seconds_of

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).with_name("access_dags")
MINA, NEWCOMER = "mina.member@example.com", "new.comer@example.com"
RAISE_AND_END = ["update_member", "update_member"]
# A Dag whose file is deleted.
DELETED = f"""
from airflow.sdk import DAG
from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator

with DAG("grant_deleted", schedule=None):
    WorkspaceGrantAccessOperator(task_id="grant", user_email="{MINA}", level=8, length=40, reason="rollout", retries=0)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("live", rate_limit=False) as running:
        yield running


@pytest.fixture(scope="module")
def airflow(server: SandboxServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    dags = tmp_path_factory.mktemp("dags")
    shutil.copy(DAGS / "access.py", dags)
    (dags / "deleted.py").write_text(DELETED)
    settings = {
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": server.connection(read_timeout=5.0, max_attempts=3),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "2",
    }
    with LiveAirflow(
        tmp_path_factory.mktemp("airflow"), dags, server, users={"ruth": "admin", "max": "admin"}, **settings
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def begin_again(server: SandboxServer) -> None:
    server.reset()


def notes(airflow: LiveAirflow) -> list[dict[str, Any]]:
    """Return the notes of grants."""
    rows = airflow.call("GET", "variables?limit=100")["variables"]
    return [json.loads(row["value"]) for row in rows if row["key"].startswith(PREFIX)]


def level(api: httpx.Client, uuid: str = SEED.member_uuid) -> int:
    """Return the level of a member."""
    rows = api.get("members/", params={"limit": 200}).json()["results"]
    return next(int(row["level"]) for row in rows if row["user"]["uuid"] == uuid)


def wait_for_the_end(airflow: LiveAirflow, seconds: float = 120) -> None:
    """Wait until no note is left."""
    airflow.wait_for(lambda: not notes(airflow), seconds, "the end")


def wait_for_the_question(airflow: LiveAirflow, run_id: str) -> Any:
    """Return the question of the task when it waits for the answer."""
    task = f"dags/grant_approved/dagRuns/{run_id}/taskInstances/grant"
    airflow.wait_for(lambda: airflow.call("GET", task)["state"] in ("awaiting_input", "deferred"), 200, "the question")
    time.sleep(3 * READING_SECONDS)  # Airflow 3.3.2 counts a task as failed whose answer it meets early
    return airflow.call("GET", f"{task}/-1/hitlDetails")


def approve(airflow: LiveAirflow, run_id: str, user: str) -> None:
    """Choose the first option."""
    question = f"dags/grant_approved/dagRuns/{run_id}/taskInstances/grant/-1/hitlDetails"
    options = airflow.call("GET", question)["options"]
    airflow.user = user
    try:
        airflow.call("PATCH", question, {"chosen_options": options[:1], "params_input": {}})
    finally:
        airflow.user = "ruth"


def test_who_asked_cannot_approve_and_a_cleared_task_asks_again(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    run_id = airflow.trigger("grant_approved", seconds=25)
    wait_for_the_question(airflow, run_id)
    approve(airflow, run_id, "ruth")
    assert airflow.finish("grant_approved", run_id) == "failed"
    assert "[answerer-refused] WorkspaceInputError: ruth asked for this" in airflow.log(
        "grant_approved", run_id, "grant"
    )
    assert (level(api), effects(server), notes(airflow)) == (1, [], [])
    airflow.call(
        "POST",
        "dags/grant_approved/clearTaskInstances",
        {"dry_run": False, "dag_run_id": run_id, "task_ids": ["grant"], "only_failed": False},
    )
    wait_for_the_question(airflow, run_id)
    approve(airflow, run_id, "max")
    assert airflow.finish("grant_approved", run_id) == "success"
    assert level(api) == 8
    wait_for_the_end(airflow)


def test_a_grant_is_approved_and_ended_by_the_schedule(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    other = airflow.trigger("grant", who=NEWCOMER, seconds=25)
    run_id = airflow.trigger("grant_approved", seconds=25)
    question = wait_for_the_question(airflow, run_id)
    assert "**Asked by**: ruth\n" in question["body"]
    assert "**Why**: rollout\n" in question["body"]
    assert level(api) == 1
    approve(airflow, run_id, "max")
    assert [airflow.finish("grant_approved", run_id), airflow.finish("grant", other)] == ["success"] * 2
    assert level(api) == 8
    until = {note["user_email"]: seconds_of(note["until"]) for note in notes(airflow)}
    assert [note["approved_by"] for note in notes(airflow) if note["user_email"] == MINA] == ["max"]
    wait_for_the_end(airflow)
    assert sorted(effects(server)) == ["create_invite", "delete_invite", *RAISE_AND_END]
    ended = seconds_of(server.effects("update_member")[-1]["at"])
    print(f"\nthe grant ended {ended - until[MINA]:.0f} s after its end")
    assert ended >= until[MINA]
    assert level(api) == 1


def test_the_end_comes_after_the_granting_task_was_killed(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    server.inject("time_out_after", "update_member")
    run_id = airflow.trigger("grant", seconds=30)
    airflow.wait_for(lambda: effects(server) == ["update_member"], 120, "the change", every=0.1)
    assert kill_workers(server) == 1
    server.clear_faults()
    assert airflow.finish("grant", run_id) == "failed"
    assert (level(api), len(notes(airflow))) == (8, 1)
    wait_for_the_end(airflow)
    assert (effects(server), level(api)) == (RAISE_AND_END, 1)


def test_the_end_comes_after_the_granting_dag_was_deleted(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    run_id = airflow.trigger("grant_deleted", seconds=40)
    assert airflow.finish("grant_deleted", run_id) == "success"
    (Path(airflow.env["AIRFLOW__CORE__DAGS_FOLDER"]) / "deleted.py").unlink()
    with suppress(ValueError):  # the response is empty
        airflow.call("DELETE", "dags/grant_deleted")
    assert level(api) == 8
    wait_for_the_end(airflow)
    assert (effects(server), level(api)) == (RAISE_AND_END, 1)


def test_a_late_change_is_read_back(airflow: LiveAirflow, server: SandboxServer, api: httpx.Client) -> None:
    """Both changes take effect two seconds after their answer was lost."""
    server.inject("slow_effect", "update_member", seconds=2, answer="504")
    run_id = airflow.trigger("grant", seconds=20)
    assert airflow.finish("grant", run_id) == "success"
    assert level(api) == 8
    server.inject("slow_effect", "update_member", seconds=2, answer="time_out")
    wait_for_the_end(airflow)
    assert level(api) == 1


def test_a_level_that_somebody_changed_meanwhile_is_left(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    run_id = airflow.trigger("grant", seconds=25)
    assert airflow.finish("grant", run_id) == "success"
    api.patch(f"members/{SEED.member_uuid}/", json={"level": 15}).raise_for_status()
    (note,) = notes(airflow)

    def failed() -> list[str]:
        rows = airflow.call("GET", "dags/workspace_sweep/dagRuns?state=failed&order_by=-id")["dag_runs"]
        return [row["dag_run_id"] for row in rows if seconds_of(row["end_date"]) > seconds_of(note["until"])]

    airflow.wait_for(failed, 120, "a run that fails")
    said = airflow.log("workspace_sweep", failed()[0], "sweep")
    assert MINA in said
    assert "Set level 1 by hand, or delete the Variable" in said
    assert (level(api), len(notes(airflow)), len(server.effects())) == (15, 1, 2)
    api.patch(f"members/{SEED.member_uuid}/", json={"level": 1}).raise_for_status()
    wait_for_the_end(airflow)
    assert (level(api), len(server.effects())) == (1, 3), "nothing is sent"


def test_the_command_ends_a_grant_without_a_scheduler(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    run_id = airflow.trigger("grant", seconds=25)
    assert airflow.finish("grant", run_id) == "success"
    kill_tree(find_child(airflow.processes["standalone"].pid, "scheduler"))
    (note,) = notes(airflow)
    time.sleep(max(0, seconds_of(note["until"]) - time.time()) + 1)

    def workspace(name: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "airflow_provider_workspace", name]
        run = subprocess.run(command, env=airflow.env, capture_output=True, text=True, check=False)
        return run.returncode, run.stdout

    code, said = workspace("grants")
    assert (code, MINA in said, "rollout" in said, level(api)) == (2, True, True, 8)
    code, said = workspace("sweep")
    assert (code, level(api), notes(airflow), effects(server)) == (0, 1, [], RAISE_AND_END), said
