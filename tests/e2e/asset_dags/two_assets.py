"""Two assets with equal watchers, which share one trigger, and a Dag for each."""

from __future__ import annotations

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger


@task
def told() -> None:
    """Receive an event."""


for name in ("first_asset", "second_asset"):
    trigger = WorkspaceArrivalTrigger(what="project", poll_interval=2)
    asset = Asset(name, watchers=[AssetWatcher(name=f"new_{name}", trigger=trigger)])
    with DAG(name, schedule=[asset], catchup=False, max_active_runs=1):
        told()
