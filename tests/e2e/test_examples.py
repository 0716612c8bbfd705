"""Every example Dag with a complete Airflow."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.audit import effects
from tests.dags.test_examples import AFTER, EFFECTS, WITH_APPROVAL
from tests.e2e.live_airflow import OVER

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).resolve().parents[2] / "example_dags"
EVENTS = "event_driven_onboarding"
# Airflow starts this Dag by itself, and it writes.
SCHEDULED = "fixed_window"
# An answer within a second meets a scheduler that counts the waiting task as failed (Airflow 3.3.2).
READING_SECONDS = 5.0


def runs(airflow: LiveAirflow, dag_id: str) -> list[str]:
    return [run["dag_run_id"] for run in airflow.call("GET", f"dags/{dag_id}/dagRuns")["dag_runs"]]


def is_through(airflow: LiveAirflow, dag_id: str) -> bool:
    states = [run["state"] for run in airflow.call("GET", f"dags/{dag_id}/dagRuns")["dag_runs"]]
    return bool(states) and all(state in OVER for state in states)


def test_a_new_project_starts_a_run(airflow: LiveAirflow, server: SandboxServer, api: httpx.Client) -> None:
    """``test_asset_watches.py`` restarts the triggerer, too."""
    airflow.wait_for(
        lambda: any("/projects/" in row["path"] for row in server.requests()[-40:]), 120, "the watcher to look"
    )
    before = len(runs(airflow, EVENTS))
    name = f"Arrived {time.time()}"
    assert api.post("projects/", json={"name": name}).status_code == 201
    airflow.wait_for(lambda: len(runs(airflow, EVENTS)) > before, 120, "the run of the new project")
    assert airflow.finish(EVENTS, runs(airflow, EVENTS)[-1]) == "success"
    assert f"Welcome to {name}" in [effect["detail"]["name"] for effect in server.effects("create_dashboard")]


@pytest.mark.parametrize("dag_id", [dag_id for dag_id in EFFECTS if dag_id != EVENTS])
def test_example_makes_the_documented_changes(airflow: LiveAirflow, server: SandboxServer, dag_id: str) -> None:
    airflow.wait_for(lambda: is_through(airflow, SCHEDULED), 400, "the scheduled run")
    server.reset()
    if dag_id in AFTER:
        assert airflow.finish(AFTER[dag_id], airflow.trigger(AFTER[dag_id])) == "success"
    before = len(server.effects())
    run_id = airflow.trigger(dag_id)
    if dag_id in WITH_APPROVAL:
        airflow.wait_for(
            lambda: airflow.tasks(dag_id, run_id).get(dag_id) in ("deferred", "awaiting_input"), 120, "the question"
        )
        assert server.effects() == []
        time.sleep(READING_SECONDS)
        approve(airflow, dag_id, run_id)
    assert airflow.finish(dag_id, run_id) == "success"
    assert Counter(effects(server)[before:]) == EFFECTS[dag_id]
    if dag_id == "onboard_organization":
        links = airflow.call("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/organization.projects/links")
        assert links["extra_links"] == {"Workspace": None}  # the connection has no web_url


def approve(airflow: LiveAirflow, dag_id: str, run_id: str) -> None:
    """Approve as the Airflow UI does."""
    path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{dag_id}/-1/hitlDetails"
    option = airflow.call("GET", path)["options"][0]
    airflow.call("PATCH", path, {"chosen_options": [option], "params_input": {}})
