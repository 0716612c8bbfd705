"""A worker is suspended during its bulk invites, Airflow starts another try, and the worker wakes up."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.live_airflow import LiveAirflow

pytestmark = [pytest.mark.e2e, pytest.mark.needs_airflow("3.3", "the task state store")]

DAGS = Path(__file__).parent / "suspend_dags"
SETTINGS = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "10",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}
PEOPLE = 4000
# What may be under way: `max_concurrency` requests with `bulk_invite_limit` people each.
UNDER_WAY = 4 * 20


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("lenient", latency_ms=100) as running:
        yield running


@pytest.fixture(scope="module")
def airflow(server: SandboxServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    connection = server.connection(consistency_time=1)  # so that the second try begins soon
    settings = {**SETTINGS, "AIRFLOW_CONN_WORKSPACE_DEFAULT": connection}
    with LiveAirflow(tmp_path_factory.mktemp("airflow"), DAGS, server, **settings) as running:
        yield running


def worker_of(airflow: LiveAirflow, server: SandboxServer) -> psutil.Process:
    """Return the process that has connections to the service."""
    port = urlsplit(server.url).port
    for process in psutil.Process(airflow.processes["standalone"].pid).children(recursive=True):
        if any(connection.raddr and connection.raddr.port == port for connection in process.net_connections("tcp")):
            return process
    msg = "no process is connected to the service"
    raise AssertionError(msg)


def test_a_worker_that_wakes_sends_only_what_was_under_way(airflow: LiveAirflow, server: SandboxServer) -> None:
    def out() -> int:
        return len(server.effects("create_invite"))

    run = airflow.trigger("invite_people")
    airflow.wait_for(lambda: out() >= PEOPLE // 10, 180, "the first invites", every=0.02)
    task = worker_of(airflow, server)
    supervisor = task.parent()
    assert supervisor is not None
    for process in (supervisor, task):
        process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    time.sleep(3)
    at_stop = out()
    airflow.wait_for(lambda: out() >= at_stop + PEOPLE // 10, 300, "the invites of the second try", every=0.02)
    for process in (task, supervisor):
        process.send_signal(signal.SIGCONT)
    print(f"\nsuspended for {time.monotonic() - began:.0f} s at {at_stop} invites, woken at {out()}")
    assert airflow.finish("invite_people", run) == "success"
    airflow.wait_for(lambda: not task.is_running() or task.status() == psutil.STATUS_ZOMBIE, 60, "the first try")
    invited = Counter(effect["target"] for effect in server.effects("create_invite"))
    twice = [email for email, times in invited.items() if times > 1]
    folder = airflow.home / "logs" / "dag_id=invite_people" / f"run_id={run}" / "task_id=invites"
    log = [json.loads(line) for line in (folder / "attempt=1.log").read_text().splitlines()]
    errors = [error["exc_value"] for line in log for error in line.get("error_detail", ())]
    print(f"{len(twice)} of {len(invited)} people twice; the first try ends with: {errors}")
    assert len(invited) == PEOPLE
    assert len(twice) <= UNDER_WAY
