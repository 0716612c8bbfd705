"""Waits in two triggerer queues, and on Airflow 3.4 a watcher in one of them."""

from __future__ import annotations

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_workspace.sensors.workspace import WorkspaceMembersJoinedSensor
from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger
from airflow_provider_workspace.version_compat import watchers_have_queues

with DAG("waits_in_queues", schedule=None):
    for queue in ("north", "south"):
        WorkspaceMembersJoinedSensor(
            task_id=queue, emails=[f"{queue}@example.com"], queue=queue, deferrable=True, poke_interval=2
        )

if watchers_have_queues():
    trigger = WorkspaceArrivalTrigger(what="project", poll_interval=2, queue="north")
    asset = Asset("new_project", watchers=[AssetWatcher(name="new_project", trigger=trigger)])
    with DAG("watch_in_queue", schedule=[asset], catchup=False):

        @task
        def told() -> None:
            """Receive an event."""

        told()
