"""
Two assets with equal watchers in a triggerer: both get every event and have separate state, and nobody waits.

`make e2e` runs this with SQLite, `make e2e-celery` with PostgreSQL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.live_airflow import OVER, LiveAirflow
from tests.e2e.services import postgres

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

pytestmark = [pytest.mark.e2e, pytest.mark.needs_airflow("3.3", "the asset state store")]

DAGS = Path(__file__).parent / "asset_dags"
ASSETS = ("first_asset", "second_asset")


@pytest.fixture(scope="module")
def airflow(server: SandboxServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    with ExitStack() as stack:
        settings = {}
        if find_spec("psycopg2"):
            address = stack.enter_context(postgres())
            settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"postgresql+psycopg2://airflow@{address}"
        yield stack.enter_context(LiveAirflow(tmp_path_factory.mktemp("airflow"), DAGS, server, **settings))


def create(api: httpx.Client, *names: str) -> None:
    for name in names:
        assert api.post("projects/", json={"name": name}).status_code == 201


def remembered(airflow: LiveAirflow) -> list[set[str]]:
    """Return the state of each asset."""
    return [set(json.loads(value)["ids"]) for (value,) in airflow.query("SELECT value FROM asset_state_store")]


def runs(airflow: LiveAirflow, name: str) -> list[dict[str, Any]]:
    """Return the runs of a Dag, oldest first."""
    found: list[dict[str, Any]] = airflow.call("GET", f"dags/{name}/dagRuns?limit=100&order_by=id")["dag_runs"]
    return found


def states(airflow: LiveAirflow) -> dict[str, list[str]]:
    """Return the states of the runs of each Dag."""
    return {name: [run["state"] for run in runs(airflow, name)] for name in ASSETS}


def results(airflow: LiveAirflow, name: str, since: int) -> list[Any]:
    """Return what the runs of a Dag read, but for the first ones."""
    path = "taskInstances/read_events/xcomEntries/return_value"
    ids = [run["dag_run_id"] for run in runs(airflow, name)[since:]]
    return [airflow.call("GET", f"dags/{name}/dagRuns/{run}/{path}")["value"] for run in ids]


def wait_for_idle(airflow: LiveAirflow) -> dict[str, int]:
    """Wait until nothing runs and return the number of runs of each Dag."""
    airflow.wait_for(lambda: all(state in OVER for name in ASSETS for state in states(airflow)[name]), 180, "idle")
    return {name: len(found) for name, found in states(airflow).items()}


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


def test_nobody_waits_for_the_next_arrival(airflow: LiveAirflow, api: httpx.Client) -> None:
    """Airflow hands a run the events up to the first one that queued it; the run reads the others itself."""
    before = wait_for_idle(airflow)
    asset = ASSETS[0]

    def handed_over() -> int:
        ((events,),) = airflow.query("SELECT count(*) FROM asset_event")
        return int(events)

    events = handed_over()
    create(api, "A slow one")
    airflow.wait_for(lambda: states(airflow)[asset][before[asset] :] == ["running"], 60, "a run")
    for number, name in enumerate(("Second", "Third"), 2):
        create(api, name)
        airflow.wait_for(lambda: handed_over() >= events + number * len(ASSETS), 60, f"the event of {name}")  # noqa: B023
    assert states(airflow)[asset][before[asset] :] == ["running"], "the run ended too soon"
    airflow.wait_for(lambda: len(states(airflow)[asset]) == before[asset] + 2, 120, "a second run")
    time.sleep(20)  # a third run would have begun
    wait_for_idle(airflow)
    first, *others = results(airflow, asset, before[asset])
    print(f"\nhanded over: {[first['triggering'], *(run['triggering'] for run in others)]}; read: {others}")
    assert first["read"] == [["A slow one"]]
    assert [name for run in others for names in run["read"] for name in names] == ["Second", "Third"]
