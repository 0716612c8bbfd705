"""Two assets with equal watchers, which share one trigger, and a Dag for each."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher, dag, task

from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger


def watched(name: str) -> Asset:
    trigger = WorkspaceArrivalTrigger(what="project", poll_interval=2)
    return Asset(name, watchers=[AssetWatcher(name=f"new_{name}", trigger=trigger)])


def told(asset: Asset) -> None:
    @dag(dag_id=asset.name, schedule=[asset], catchup=False)
    def on_arrival() -> None:
        @task
        def read_events(triggering_asset_events: dict[Asset, list[object]]) -> list[str]:
            return [event.extra["payload"]["name"] for event in triggering_asset_events[asset]]  # type: ignore[attr-defined]

        read_events()

    on_arrival()


told(watched("first_asset"))
told(watched("second_asset"))
