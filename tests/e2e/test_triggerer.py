"""Two hundred deferred tasks and two kills of the triggerer: no event is lost or sent twice."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

# Another triggerer takes over after ten seconds without a heartbeat.
SETTINGS = {
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
}
WAITS = 200
PEOPLE = [f"person{number}@example.com" for number in range(WAITS)]
# As in dags/marked_waits.py.
SECONDS = 5


def test_each_trigger_fires_once_when_the_triggerer_is_killed(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    assert api.post("invites/bulk/", json=[{"target_email": address} for address in PEOPLE]).status_code == 200
    run_id = airflow.trigger("marked_waits", people=PEOPLE)
    airflow.wait_for(lambda: waits(airflow) == {"deferred": WAITS}, 1200, "all to be deferred")
    airflow.wait_for(lambda: polls(server, SECONDS * 2) > 0, 60, "the triggerer to poll")

    killed = airflow.kill_triggerer()
    accept_all(server)
    assert polls(server, SECONDS * 3) == 0, "nobody may poll when the triggerer is dead"
    assert waits(airflow) == {"deferred": WAITS}
    print(f"\n{killed} processes of the triggerer killed while {WAITS} tasks wait; then all conditions come to hold")

    airflow.start_triggerer()
    airflow.wait_for(lambda: waits(airflow)["deferred"] <= WAITS - 10, 120, "the first to fire", every=0.01)
    killed = airflow.kill_triggerer()
    waiting = waits(airflow)["deferred"]
    print(f"{killed} processes of the next triggerer killed when {WAITS - waiting} have fired, {waiting} still wait")
    assert 0 < waiting < WAITS

    airflow.start_triggerer()
    assert airflow.finish("marked_waits", run_id, 1200) == "success"
    marks = Counter(effect["detail"]["name"] for effect in server.effects("create_project"))
    retried, triggers = count(airflow, "task_instance_history"), count(airflow, "trigger")
    print(f"Airflow's database: {dict(waits(airflow))}, {retried} retried, {triggers} triggers left over")
    print(f"the service's audit: {marks.total()} marks of {len(marks)} waits")
    assert waits(airflow) == {"success": WAITS}
    assert retried == triggers == 0
    assert marks == dict.fromkeys(PEOPLE, 1)
    assert polls(server, SECONDS * 2) == 0, "nobody may poll when nobody waits"


def accept_all(server: SandboxServer) -> None:
    """Accept all invites."""
    invites = [effect["detail"]["invite_id"] for effect in server.effects("create_invite")]
    assert len(invites) == WAITS
    for invite_id in invites:
        server.accept_invite(invite_id)


def waits(airflow: LiveAirflow) -> Counter[str]:
    """Return the number of waits in each state."""
    rows = airflow.query("SELECT state, count(*) FROM task_instance WHERE task_id = 'wait' GROUP BY state")
    return Counter(dict(rows))


def count(airflow: LiveAirflow, table: str) -> int:
    """Return the number of rows of a table."""
    ((number,),) = airflow.query(f"SELECT count(*) FROM {table}")  # noqa: S608 - names of this file
    return int(number)


def polls(server: SandboxServer, seconds: float) -> int:
    """Return the number of requests during some seconds."""
    before = server.control("GET", "requests")["total"]
    time.sleep(seconds)
    return int(server.control("GET", "requests")["total"] - before)
