"""Maintenance windows in a complete Airflow: exports are resumed, or the run fails and names those still paused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

if TYPE_CHECKING:
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

FIRST = "0190c0de-0000-4000-8000-0000000000e1"
SECOND = "0190c0de-0000-4000-8000-0000000000e2"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("live", rate_limit=False) as running:
        yield running


@pytest.fixture(autouse=True)
def reset_sandbox(server: SandboxServer) -> None:
    server.reset()


def paused(server: SandboxServer) -> set[str]:
    return {row["id"] for row in server.batch_exports() if row["paused"]} & {FIRST, SECOND}


def history(server: SandboxServer, export: str) -> list[str]:
    return [effect["operation"].split("_")[0] for effect in server.effects() if effect["target"] == export]


def begin_long_work(airflow: LiveAirflow, dag_id: str) -> tuple[str, int]:
    """Start a run; return its id and the process of its work after it has started."""
    pid_file = airflow.home / "long.pid"
    pid_file.unlink(missing_ok=True)
    run_id = airflow.trigger(dag_id)
    airflow.wait_for(pid_file.exists, 120, "the work to begin")
    time.sleep(0.5)
    return run_id, int(pid_file.read_text())


@pytest.mark.parametrize(
    ("dag_id", "state"),
    [
        ("window_success", "success"),
        ("window_exception", "failed"),
        ("window_timeout", "failed"),
        ("window_hold", "success"),
    ],
)
def test_a_window_closes_after_the_work(airflow: LiveAirflow, server: SandboxServer, dag_id: str, state: str) -> None:
    run_id = airflow.trigger(dag_id)
    assert airflow.finish(dag_id, run_id) == state
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_a_window_closes_after_the_work_was_killed(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, pid = begin_long_work(airflow, "window_long")
    assert paused(server) == {FIRST, SECOND}
    os.kill(pid, signal.SIGKILL)
    assert airflow.finish("window_long", run_id) == "failed"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_a_window_closes_after_the_work_was_marked_as_failed(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, _ = begin_long_work(airflow, "window_long")
    airflow.call("PATCH", f"dags/window_long/dagRuns/{run_id}/taskInstances/long", {"new_state": "failed"})
    assert airflow.finish("window_long", run_id) == "failed"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_a_window_closes_after_the_run_was_marked_as_failed(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, _ = begin_long_work(airflow, "window_long")
    airflow.call("PATCH", f"dags/window_long/dagRuns/{run_id}", {"state": "failed"})
    airflow.wait_for(lambda: not paused(server), 120, "the exports to be resumed")
    assert airflow.finish("window_long", run_id) == "failed"


def test_close_is_retried_until_the_service_accepts(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, _ = begin_long_work(airflow, "window_refused")
    server.revoke_key(server.seed.admin_key)
    airflow.wait_for(
        lambda: airflow.log("window_refused", run_id, "maintenance_window.close").count("STILL PAUSED") >= 3,
        180,
        "three refusals",
    )
    assert paused(server) == {FIRST, SECOND}
    server.add_key(server.seed.admin_key, "admin", ["*"], organization_id=server.seed.organization_id)
    assert airflow.finish("window_refused", run_id) == "success"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_a_window_closes_at_its_maximum_length(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, pid = begin_long_work(airflow, "window_overdue")
    airflow.wait_for(lambda: not paused(server), 60, "the exports to be resumed")
    os.kill(pid, 0)  # the work continues
    assert airflow.tasks("window_overdue", run_id)["long"] == "running"
    assert airflow.finish("window_overdue", run_id) == "failed"
    log = airflow.log("window_overdue", run_id, "maintenance_window.guard")
    assert "The window is overdue" in log
    assert "window_overdue: The window is overdue" in (airflow.home / "overdue.txt").read_text()
    assert not paused(server)


def test_a_window_whose_work_is_cleared_is_guarded_again(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, pid = begin_long_work(airflow, "window_overdue")
    os.kill(pid, signal.SIGKILL)
    assert airflow.finish("window_overdue", run_id) == "failed"
    (airflow.home / "long.pid").unlink()
    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["long"], "only_failed": False}
    airflow.call("POST", "dags/window_overdue/clearTaskInstances", body)
    airflow.wait_for((airflow.home / "long.pid").exists, 120, "the work")
    assert paused(server) == {FIRST, SECOND}
    airflow.wait_for(lambda: not paused(server), 60, "the exports to be resumed")
    assert airflow.tasks("window_overdue", run_id)["long"] == "running"
    assert airflow.finish("window_overdue", run_id) == "failed"


def test_clearing_only_the_failed_tasks_does_not_run_the_work(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id = airflow.trigger("window_exception")
    assert airflow.finish("window_exception", run_id) == "failed"
    body = {"dry_run": False, "dag_run_id": run_id, "only_failed": True}
    airflow.call("POST", "dags/window_exception/clearTaskInstances", body)
    assert airflow.finish("window_exception", run_id) == "failed"
    assert history(server, FIRST) == ["pause", "unpause"]
    log = airflow.log("window_exception", run_id, "exception")
    assert log.count("the maintenance went wrong") > 0
    assert "Clear 'maintenance_window.open' with all that follows" in log


# In 3.1 the API server fails for cleared tasks of a mapped group: apache/airflow#58499.
@pytest.mark.needs_airflow("3.2", "cleared tasks of a mapped group start")
def test_clearing_the_work_of_one_mapped_window_pauses_no_other(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id = airflow.trigger("window_mapped")
    assert airflow.finish("window_mapped", run_id) == "success"
    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": [["well", 1]], "only_failed": False}
    # With what follows, Airflow clears the teardown of this window alone, but the setups of both.
    airflow.call("POST", "dags/window_mapped/clearTaskInstances", {**body, "include_downstream": True})
    assert airflow.finish("window_mapped", run_id) == "success"
    assert history(server, FIRST) == ["pause", "unpause"]
    assert history(server, SECOND) == ["pause", "unpause", "pause", "unpause"]
