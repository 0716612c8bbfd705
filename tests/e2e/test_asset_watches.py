"""Two assets with equal watchers in a triggerer: both get every event and have separate state, in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.live_airflow import LiveAirflow

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

pytestmark = [pytest.mark.e2e, pytest.mark.needs_airflow("3.3", "the asset state store")]

DAGS = Path(__file__).parent / "asset_dags"
ASSETS = ("first_asset", "second_asset")


@pytest.fixture(scope="module")
def airflow(server: SandboxServer, postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    with LiveAirflow(tmp_path_factory.mktemp("airflow"), DAGS, server, postgres=postgres) as running:
        yield running


def create(api: httpx.Client, name: str) -> None:
    assert api.post("projects/", json={"name": name}).status_code == 201


def remembered(airflow: LiveAirflow) -> list[set[str]]:
    """Return the state of each asset."""
    return [set(json.loads(value)["ids"]) for (value,) in airflow.query("SELECT value FROM asset_state_store")]


def states(airflow: LiveAirflow) -> dict[str, list[str]]:
    """Return the states of the runs of each Dag."""
    return {name: [run["state"] for run in airflow.call("GET", f"dags/{name}/dagRuns")["dag_runs"]] for name in ASSETS}


def test_two_assets_with_equal_watchers_get_each_event(airflow: LiveAirflow, api: httpx.Client) -> None:
    airflow.wait_for(lambda: len(remembered(airflow)) == 2, 180, "both assets to remember what is there")
    ((triggers,),) = airflow.query("SELECT count(*) FROM trigger")
    print(f"\n{triggers} triggers for {len(ASSETS)} assets")
    assert states(airflow) == {name: [] for name in ASSETS}
    for number, name in enumerate(("Northwind", "Southwind"), 1):
        create(api, name)
        expected = {asset: ["success"] * number for asset in ASSETS}
        airflow.wait_for(lambda: states(airflow) == expected, 180, f"a run of each Dag: {states(airflow)}")  # noqa: B023
    airflow.kill_triggerer()
    create(api, "While nobody watched")
    airflow.start_triggerer()
    airflow.wait_for(lambda: states(airflow) == {asset: ["success"] * 3 for asset in ASSETS}, 300, "a third run")
    airflow.wait_for(lambda: all(len(ids) == 4 for ids in remembered(airflow)), 60, f"{remembered(airflow)}")
