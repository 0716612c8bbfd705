"""Task retries in a complete Airflow: after Retry-After, and after a kill."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.leases import seconds_of

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

# More than `max_retry_wait`, which is a minute.
LATER = 70


@pytest.fixture(autouse=True)
def reset_sandbox(server: SandboxServer) -> None:
    server.reset()


def tries(airflow: LiveAirflow, dag_id: str, run_id: str, task_id: str) -> int:
    path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
    task: dict[str, Any] = airflow.call("GET", path)
    return int(task["try_number"])


@pytest.mark.needs_airflow("3.3", "retry policies")
def test_a_retry_waits_for_retry_after(airflow: LiveAirflow, server: SandboxServer) -> None:
    from airflow.sdk import RetryDecision

    server.inject("rate_limit", "retrieve_project", seconds=LATER)
    run_id = airflow.trigger("told_to_come_back")
    assert airflow.finish("told_to_come_back", run_id, 240) == "success"
    first, second = (entry for entry in server.requests() if entry["operation"] == "retrieve_project")
    waited = seconds_of(second["at"]) - seconds_of(first["at"])
    print(f"\nretry_delay 2 s, Retry-After {LATER} s: the next try came after {waited:.0f} s")
    assert waited >= LATER
    uses_up_a_retry = not hasattr(RetryDecision, "reschedule")
    assert tries(airflow, "told_to_come_back", run_id, "project") == (2 if uses_up_a_retry else 1)


@pytest.mark.needs_airflow("3.3", "the task state store")
def test_a_retry_finds_what_a_killed_try_created(airflow: LiveAirflow, server: SandboxServer) -> None:
    """Both creates take effect without a response; then the workers are killed."""
    for operation in ("create_project", "create_dashboard"):
        server.inject("time_out_after", operation)
    run_id = airflow.trigger("killed_creates")
    airflow.wait_for(lambda: len(server.effects()) == 2, 120, "both creates to take effect")
    time.sleep(1)
    killed = kill_workers(server)
    server.clear_faults()
    assert airflow.finish("killed_creates", run_id, 240) == "failed"
    states = airflow.tasks("killed_creates", run_id)
    print(f"\n{killed} worker processes killed: {states}, effects {[item['operation'] for item in server.effects()]}")
    assert killed == 2
    assert states == {"project": "success", "dashboard": "failed"}
    assert sorted(item["operation"] for item in server.effects()) == ["create_dashboard", "create_project"]
    assert "was interrupted." in airflow.log("killed_creates", run_id, "dashboard")


def kill_workers(server: SandboxServer) -> int:
    """Kill the processes that wait for a response of the service."""
    waiting = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.raddr and connection.raddr.port == server.port and connection.pid not in (None, os.getpid())
    }
    for pid in waiting:
        os.kill(pid, signal.SIGKILL)
    return len(waiting)
