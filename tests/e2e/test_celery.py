"""
Two Celery workers onboard twenty organizations; one worker is killed during its bulk invites.

`make e2e-celery` runs this in an environment with Celery.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.celery_airflow import CeleryAirflow
from tests.e2e.services import redis

pytest.importorskip("celery", reason="`make e2e-celery` runs this, in an environment that has Celery")

pytestmark = pytest.mark.e2e

DAG = "onboard_organizations"
EXAMPLE = Path(__file__).resolve().parents[2] / "example_dags" / f"{DAG}.py"
ORGANIZATIONS = 20
PEOPLE = 200
# Seconds per request; bulk invites take ten times as long.
LATENCY_MS = 1000
# Minimum number of organizations whose invites are running when the worker is killed.
CUT = 3


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("strict") as running:
        running.change_settings(latency_ms=LATENCY_MS)
        yield running


@pytest.fixture(scope="module")
def organizations(server: SandboxServer) -> list[dict[str, Any]]:
    return [server.add_organization(f"Organization {number}") for number in range(ORGANIZATIONS)]


@pytest.fixture(scope="module")
def airflow(
    server: SandboxServer,
    organizations: list[dict[str, Any]],
    postgres: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[CeleryAirflow]:
    connections = {
        f"AIRFLOW_CONN_ORGANIZATION_{number}": json.dumps(
            {"conn_type": "workspace", "host": server.url, "password": organization["key"]}
        )
        for number, organization in enumerate(organizations)
    }
    home, dags = tmp_path_factory.mktemp("airflow"), tmp_path_factory.mktemp("dags")
    shutil.copy(EXAMPLE, dags)
    with (
        redis() as broker,
        CeleryAirflow(
            home, dags, server, redis=broker, postgres=postgres, workers=("first", "second"), **connections
        ) as running,
    ):
        yield running


def test_another_worker_takes_over_from_a_killed_one(
    airflow: CeleryAirflow, server: SandboxServer, organizations: list[dict[str, Any]]
) -> None:
    conf = [
        {
            "organization_id": organization["id"],
            "connection": f"organization_{number}",
            "project": f"Project {number}",
            "people": [f"person{person}@organization{number}.example.com" for person in range(PEOPLE)],
        }
        for number, organization in enumerate(organizations)
    ]
    run_id = airflow.trigger(DAG, organizations=conf)
    airflow.wait_for(lambda: len(in_the_middle(airflow, server, conf)) >= CUT, 400, "invites on their way")
    cut = in_the_middle(airflow, server, conf)
    killed = airflow.kill("first")
    began = time.monotonic()
    print(f"\n{killed} processes of the first worker killed; so many of {PEOPLE} invites were out: {cut}")

    assert airflow.finish(DAG, run_id, 1200) == "success"
    invites = Counter((effect["organization_id"], effect["target"]) for effect in server.effects("create_invite"))
    projects = Counter(
        (effect["organization_id"], effect["detail"]["name"]) for effect in server.effects("create_project")
    )
    states = dict(airflow.query("SELECT state, count(*) FROM task_instance GROUP BY state"))
    again = dict(airflow.query("SELECT task_id, count(*) FROM task_instance WHERE try_number > 1 GROUP BY task_id"))
    print(f"the run succeeded {time.monotonic() - began:.0f} s later")
    print(f"Airflow's database: {states}, tasks with a second try {again}")
    print(f"the service's audit: {invites.total()} invites of {len(invites)} addresses, {projects.total()} projects")
    assert states == {"success": 1 + 2 * ORGANIZATIONS}
    assert again["onboard.invite_people"] >= len(cut)
    assert projects == {(row["organization_id"], row["project"]): 1 for row in conf}
    assert invites == {(row["organization_id"], person): 1 for row in conf for person in row["people"]}


def in_the_middle(airflow: CeleryAirflow, server: SandboxServer, conf: list[dict[str, Any]]) -> dict[str, int]:
    """Return the sent invites of each organization whose invites the first worker has started and not finished."""
    mine = {process.pid for process in airflow.worker("first").children(recursive=True)}
    sql = "SELECT map_index, pid FROM task_instance WHERE task_id = 'onboard.invite_people' AND state = 'running'"
    running = {
        conf[index]["organization_id"]: conf[index]["project"] for index, pid in airflow.query(sql) if pid in mine
    }
    out = Counter(effect["organization_id"] for effect in server.effects("create_invite"))
    return {project: out[key] for key, project in running.items() if 0 < out[key] < PEOPLE}
