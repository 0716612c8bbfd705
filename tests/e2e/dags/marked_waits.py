"""Many mapped waits, each for one person. Each creates a project when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from airflow.sdk import DAG, Context, task

from airflow_provider_workspace.sensors.workspace import WorkspaceMembersJoinedSensor

SECONDS = 5


class MarkedWait(WorkspaceMembersJoinedSensor):
    """Creates a project when its wait ends, without look-up: if it ended twice, there would be two."""

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        found = super().execute_complete(context, event)
        with closing(WorkspaceHook(self.workspace_conn_id)) as hook:
            hook.create_project(name=found["joined"][0])
        return found


with DAG("marked_waits", schedule=None, max_active_tasks=32, params={"people": []}):

    @task
    def people(params: dict[str, list[str]]) -> list[list[str]]:
        return [[address] for address in params["people"]]

    MarkedWait.partial(task_id="wait", deferrable=True, poke_interval=SECONDS, timeout=3600).expand(emails=people())
