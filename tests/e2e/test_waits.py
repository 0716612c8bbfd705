"""A thousand waits for one organization share one poll in a triggerer."""

from __future__ import annotations

import time
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

SETTINGS = {"AIRFLOW__TRIGGERER__CAPACITY": "2000"}
# As in dags/waits.py.
SECONDS = 5
# Before Airflow 3.3 each wait polls for itself.
SHARED = Version(version("apache-airflow")) >= Version("3.3")
# Airflow sends the whole Dag with each trigger to start. If hundreds start while others are sent, Airflow's triggerer
# may stand still: the process that runs triggers writes a line for each to a log that nobody reads meanwhile.
DAGS_AT_ONCE = 5
WAITS = {
    "from the trigger": ({f"many_waits_{number}": 25 for number in range(40)}, 1000),
    "deferred by a worker": ({"deferred_waits": 12}, 12),
}


def states(airflow: LiveAirflow, runs: dict[str, str]) -> Counter[str]:
    """Return the number of tasks in each state of some runs."""
    return Counter(state for dag_id, run_id in runs.items() for state in airflow.tasks(dag_id, run_id).values())


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("from the trigger", marks=pytest.mark.needs_airflow("3.3", "templates in a trigger's arguments")),
        "deferred by a worker",
    ],
)
def test_waits_share_one_poll(airflow: LiveAirflow, server: SandboxServer, api: httpx.Client, how: str) -> None:
    dags, waits = WAITS[how]
    server.reset()
    domain = api.post("domains/", json={"domain": "waiting.example.com"}).json()
    runs: dict[str, str] = {}
    for number, dag_id in enumerate(dags, start=1):
        runs[dag_id] = airflow.trigger(dag_id, domain_id=domain["id"])
        if number % DAGS_AT_ONCE == 0:
            time.sleep(10)
    airflow.wait_for(lambda: states(airflow, runs)["deferred"] == waits, 400, "all to be deferred")
    # Until the triggerer has started all of them.
    time.sleep(60)
    polled, took = polls(server, 10 * SECONDS)
    print(f"\n{waits} waits {how}: {polled} requests in {took:.0f} s")
    streams = 1 if SHARED else waits
    assert (took / SECONDS - 2) * streams <= polled <= (took / SECONDS + 2) * streams

    server.publish_dns(f"_workspace-challenge.{domain['domain']}", domain["verification_challenge"])
    assert api.post(f"domains/{domain['id']}/verify/").status_code == 200
    holds = time.monotonic()
    airflow.wait_for(lambda: states(airflow, runs)["deferred"] == 0, 120, "nobody to wait any more")
    print(f"{waits} waits {how}: nobody waits {time.monotonic() - holds:.1f} s after the condition holds")
    for dag_id, run_id in runs.items():
        assert airflow.finish(dag_id, run_id, 300) == "success"
    assert states(airflow, runs) == {"success": waits}


def polls(server: SandboxServer, seconds: float) -> tuple[int, float]:
    """Return the number of requests during some seconds."""
    before, began = server.control("GET", "requests")["total"], time.monotonic()
    time.sleep(seconds)
    return server.control("GET", "requests")["total"] - before, time.monotonic() - began
