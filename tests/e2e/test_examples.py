"""Every example on a whole Airflow: scheduler, triggerer and LocalExecutor."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.api.operations import CreateProject
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.client.sync import WorkspaceClient
from tests.dags.test_examples import ASKING, EFFECTS

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).resolve().parents[2] / "example_dags"


def test_a_new_project_starts_a_run_and_is_told_once(airflow: LiveAirflow, server: SandboxServer) -> None:
    """
    Also over a restart of the triggerer and all the rest.

    This comes first: the projects of the tests below have ids that are told then.
    """
    dag_id = "event_driven_onboarding"
    client = WorkspaceClient(Settings(base_url=server.url, api_key=server.seed.admin_key))

    def runs() -> list[str]:
        return [run["dag_run_id"] for run in airflow.call("GET", f"dags/{dag_id}/dagRuns")["dag_runs"]]

    airflow.wait_for(
        lambda: any("/projects/" in row["path"] for row in server.requests()[-40:]), 120, "the watcher to look"
    )
    client.send(CreateProject(organization_id=server.seed.organization_id, name="Arrived"))
    airflow.wait_for(lambda: len(runs()) == 1, 120, "the run of the new project")
    assert airflow.finish(dag_id, runs()[0]) == "success"

    airflow.stop()
    client.send(CreateProject(organization_id=server.seed.organization_id, name="Arrived while nobody watched"))
    airflow.start()
    airflow.wait_for(lambda: len(runs()) == 2, 180, "the run of the project that came meanwhile")
    assert [airflow.finish(dag_id, run_id) for run_id in runs()] == ["success", "success"]
    names = [effect["detail"]["name"] for effect in server.effects("create_dashboard")]
    assert names == ["Welcome to Arrived", "Welcome to Arrived while nobody watched"]


@pytest.mark.parametrize("dag_id", [dag_id for dag_id in EFFECTS if dag_id != "event_driven_onboarding"])
def test_an_example_does_what_it_says(airflow: LiveAirflow, server: SandboxServer, dag_id: str) -> None:
    server.reset()
    run_id = airflow.trigger(dag_id)
    if dag_id in ASKING:
        task = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/approve"
        airflow.wait_for(
            lambda: airflow.tasks(dag_id, run_id).get("approve") in ("deferred", "awaiting_input"), 120, "the question"
        )
        assert server.effects() == []
        airflow.call("PATCH", f"{task}/-1/hitlDetails", {"chosen_options": ["Approve"]})
    assert airflow.finish(dag_id, run_id) == "success"
    assert Counter(effect["operation"] for effect in server.effects()) == EFFECTS[dag_id]
    if dag_id == "onboard_organization":
        links = airflow.call("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/create_project/links")
        organization = f"{server.url}/api/organizations/{server.seed.organization_id}"
        assert links["extra_links"] == {"Workspace": f"{organization}/projects/3/"}
