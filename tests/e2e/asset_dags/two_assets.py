"""Two assets with equal watchers, which share one trigger, and a Dag for each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset, AssetWatcher, Variable, dag, task

from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger

# How long a run takes that meets a project with "slow" in its name.
SLOW_SECONDS = 30


def watched(name: str) -> Asset:
    trigger = WorkspaceArrivalTrigger(what="project", poll_interval=2)
    return Asset(name, watchers=[AssetWatcher(name=f"new_{name}", trigger=trigger)])


def told(asset: Asset) -> None:
    @dag(dag_id=asset.name, schedule=[asset], catchup=False, max_active_runs=1)
    def on_arrival() -> None:
        @task(inlets=[asset])
        def read_events(
            *, inlet_events: Mapping[Asset, Any], triggering_asset_events: Mapping[Asset, Any]
        ) -> dict[str, list[list[str]]]:
            """Return the names in each event: those that Airflow hands over, and those after the last one."""

            def names(events: list[Any]) -> list[list[str]]:
                return [[row["name"] for row in event.extra["payload"]["rows"]] for event in events]

            last = int(Variable.get(f"{asset.name}_last_event", default="0"))
            new = [event for event in inlet_events[asset] if event.id > last]
            if new:
                Variable.set(f"{asset.name}_last_event", str(new[-1].id))
            if "slow" in str(names(new)):
                time.sleep(SLOW_SECONDS)
            return {"triggering": names(triggering_asset_events[asset]), "read": names(new)}

        read_events()

    on_arrival()


told(watched("first_asset"))
told(watched("second_asset"))
