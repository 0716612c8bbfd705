"""Two assets with equal watchers in a triggerer: both get every event and have separate state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.api.operations import CreateProject
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.client.sync import WorkspaceClient

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = [pytest.mark.e2e, pytest.mark.needs_airflow("3.3", "the asset state store")]

DAGS = Path(__file__).parent / "asset_dags"
ASSETS = ("first_asset", "second_asset")


def remembered(airflow: LiveAirflow) -> list[set[str]]:
    """Return the state of each asset."""
    return [set(json.loads(value)["ids"]) for (value,) in airflow.query("SELECT value FROM asset_state_store")]


def runs(airflow: LiveAirflow) -> dict[str, list[str]]:
    """Return the states of the runs of each Dag."""
    return {
        name: [run["state"] for run in airflow.call("GET", f"dags/{name}/dagRuns?limit=100")["dag_runs"]]
        for name in ASSETS
    }


def test_two_assets_with_equal_watchers_get_each_event(airflow: LiveAirflow, server: SandboxServer) -> None:
    client = WorkspaceClient(Settings(base_url=server.url, api_key=server.seed.admin_key))

    def create(name: str) -> None:
        client.send(CreateProject(organization_id=server.seed.organization_id, name=name))

    airflow.wait_for(lambda: len(remembered(airflow)) == 2, 180, "both assets to remember what is there")
    ((triggers,),) = airflow.query("SELECT count(*) FROM trigger")
    print(f"\n{triggers} triggers for {len(ASSETS)} assets")
    assert runs(airflow) == {name: [] for name in ASSETS}
    for number, name in enumerate(("Northwind", "Southwind"), 1):
        create(name)
        expected = {asset: ["success"] * number for asset in ASSETS}
        airflow.wait_for(lambda: runs(airflow) == expected, 180, f"a run of each Dag: {runs(airflow)}")  # noqa: B023
    airflow.kill_triggerer()
    create("While nobody watched")
    airflow.start_triggerer()
    airflow.wait_for(lambda: runs(airflow) == {asset: ["success"] * 3 for asset in ASSETS}, 300, "a third run")
    airflow.wait_for(lambda: all(len(ids) == 4 for ids in remembered(airflow)), 60, f"{remembered(airflow)}")
