"""Two triggerers with `--queues`: waits run in the queue of their task, watchers in their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = [pytest.mark.e2e, pytest.mark.needs_airflow("3.3", "triggerer queues")]

DAGS = Path(__file__).parent / "queue_dags"
SETTINGS = {"AIRFLOW__TRIGGERER__QUEUES_ENABLED": "True"}
DAG = "waits_in_queues"


@pytest.fixture(scope="module", autouse=True)
def _no_triggerer_without_queues(airflow: LiveAirflow) -> None:
    airflow.kill_triggerer()
    airflow.begin("north", "triggerer", "--queues", "north")


def assigned(airflow: LiveAirflow) -> dict[str, bool]:
    """Return the queue of each trigger, and whether a triggerer runs it."""
    rows = airflow.query("SELECT queue, triggerer_id FROM trigger WHERE classpath LIKE '%Wait%'")
    return {queue: triggerer is not None for queue, triggerer in rows}


def test_a_wait_runs_in_the_triggerer_of_its_tasks_queue(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    rows = [{"target_email": f"{queue}@example.com"} for queue in ("north", "south")]
    assert api.post("invites/bulk/", json=rows).status_code == 200
    run_id = airflow.trigger(DAG)
    airflow.wait_for(
        lambda: assigned(airflow) == {"north": True, "south": False}, 180, "both to wait, and one to be polled for"
    )
    for effect in server.effects("create_invite"):
        server.accept_invite(effect["detail"]["invite_id"])
    airflow.wait_for(lambda: airflow.tasks(DAG, run_id)["north"] == "success", 120, "the wait in the north")
    assert airflow.tasks(DAG, run_id) == {"north": "success", "south": "deferred"}
    assert assigned(airflow) == {"south": False}
    airflow.begin("south", "triggerer", "--queues", "south")
    assert airflow.finish(DAG, run_id) == "success"


@pytest.mark.needs_airflow("3.4", "queues of watchers")
def test_a_watcher_runs_in_the_triggerer_of_its_queue(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    airflow.wait_for(lambda: len(polls(server)) >= 1, 180, "the watcher to see what is there")
    assert api.post("projects/", json={"name": "Northwind"}).status_code == 201
    airflow.wait_for(
        lambda: [run["state"] for run in airflow.call("GET", "dags/watch_in_queue/dagRuns")["dag_runs"]] == ["success"],
        180,
        "a run for the new project",
    )


def polls(server: SandboxServer) -> list[Any]:
    return [entry for entry in server.requests() if entry["operation"] == "list_projects"]
