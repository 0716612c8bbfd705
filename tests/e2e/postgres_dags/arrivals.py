"""A Dag that runs when projects arrive."""

from __future__ import annotations

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger


@task
def told() -> None:
    """Receive an event."""


trigger = WorkspaceArrivalTrigger(what="project", workspace_conn_id="arrivals", poll_interval=2)
projects = Asset("projects", watchers=[AssetWatcher(name="new_projects", trigger=trigger)])
with DAG("arrivals", schedule=[projects], catchup=False, max_active_runs=1):
    told()
