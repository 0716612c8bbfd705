"""Many waits in a complete Airflow: a thousand share one poll, and two kills of the triggerer lose no event."""

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
    "AIRFLOW__TRIGGERER__CAPACITY": "2000",
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
}
# As in dags/waits.py.
SECONDS, SMALL_DAGS, IN_EACH = 5, 40, 25
# Airflow sends the whole Dag with each trigger to start. If hundreds start while others are sent, Airflow's triggerer
# may stand still: the process that runs triggers writes a line for each to a log that nobody reads meanwhile.
DAGS_AT_ONCE = 5
WAITS = 200
PEOPLE = [f"person{number}@example.com" for number in range(WAITS)]


def polls(server: SandboxServer, seconds: float) -> int:
    """Return the number of requests during some seconds."""
    before = len(server.requests())
    time.sleep(seconds)
    return len(server.requests()) - before


def count(airflow: LiveAirflow, table: str) -> int:
    """Return the number of rows of a table."""
    ((number,),) = airflow.query(f"SELECT count(*) FROM {table}")  # noqa: S608 - names of this file
    return int(number)


@pytest.mark.needs_airflow("3.3", "shared trigger streams")
def test_a_thousand_waits_share_one_poll(airflow: LiveAirflow, server: SandboxServer, api: httpx.Client) -> None:
    def states() -> Counter[str]:
        return Counter(state for dag_id, run_id in runs.items() for state in airflow.tasks(dag_id, run_id).values())

    invite = api.post("invites/", json={"target_email": "late@example.com"}).json()
    runs: dict[str, str] = {}
    for number in range(SMALL_DAGS):
        runs[f"many_waits_{number}"] = airflow.trigger(f"many_waits_{number}")
        if number % DAGS_AT_ONCE == DAGS_AT_ONCE - 1:
            time.sleep(10)
    airflow.wait_for(lambda: states()["deferred"] == SMALL_DAGS * IN_EACH, 400, "all to be deferred")
    # Until the triggerer has started all of them.
    time.sleep(60)
    began = time.monotonic()
    polled = polls(server, 10 * SECONDS) / 2  # a poll reads the invites and the members
    due = (time.monotonic() - began) / SECONDS
    print(f"\n{SMALL_DAGS * IN_EACH} waits: {polled:g} polls where {due:.0f} are due")
    assert due - 2 <= polled <= due + 2

    server.accept_invite(invite["id"])
    airflow.wait_for(lambda: states()["deferred"] == 0, 120, "nobody to wait any more")
    assert set(states()) <= {"scheduled", "queued", "running", "success"}


def test_each_trigger_fires_once_when_the_triggerer_is_killed(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client
) -> None:
    def waits() -> Counter[str]:
        rows = airflow.query("SELECT state, count(*) FROM task_instance WHERE task_id = 'wait' GROUP BY state")
        return Counter(dict(rows))

    server.reset()
    assert api.post("invites/bulk/", json=[{"target_email": address} for address in PEOPLE]).status_code == 200
    run_id = airflow.trigger("marked_waits", people=PEOPLE)
    airflow.wait_for(lambda: waits() == {"deferred": WAITS}, 1200, "all to be deferred")
    airflow.wait_for(lambda: polls(server, SECONDS * 2) > 0, 60, "the triggerer to poll")

    killed = airflow.kill_triggerer()
    invites = [effect["detail"]["invite_id"] for effect in server.effects("create_invite")]
    assert len(invites) == WAITS
    for invite_id in invites:
        server.accept_invite(invite_id)
    assert polls(server, SECONDS * 3) == 0, "nobody may poll when the triggerer is dead"
    assert waits() == {"deferred": WAITS}
    print(f"\n{killed} processes of the triggerer killed while {WAITS} tasks wait; then all conditions come to hold")

    airflow.start_triggerer()
    airflow.wait_for(lambda: waits()["deferred"] <= WAITS - 10, 120, "the first to fire", every=0.01)
    killed = airflow.kill_triggerer()
    waiting = waits()["deferred"]
    print(f"{killed} processes of the next triggerer killed when {WAITS - waiting} have fired, {waiting} still wait")
    assert 0 < waiting < WAITS

    airflow.start_triggerer()
    assert airflow.finish("marked_waits", run_id, 1200) == "success"
    marks = Counter(effect["detail"]["name"] for effect in server.effects("create_project"))
    print(f"the service's audit: {marks.total()} marks of {len(marks)} waits")
    assert waits() == {"success": WAITS}
    assert count(airflow, "task_instance_history") == count(airflow, "trigger") == 0
    assert marks == dict.fromkeys(PEOPLE, 1)
    assert polls(server, SECONDS * 2) == 0, "nobody may poll when nobody waits"
