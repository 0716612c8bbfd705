"""
Give each new project its first dashboard, without a schedule and without a waiting worker.

1. A watcher in the triggerer polls the organization's projects every 30 seconds.
2. New projects become one event of the asset `workspace_projects`, which starts a run.
3. The run creates a dashboard in each new project.
4. A Variable remembers the last event, so that the next run starts after it.

The run reads the events of the asset itself: an event that comes while a run is queued starts no run of its own, and
is not among the triggering events. A manual run handles all events that no run has finished. On Airflow 3.3 the watcher
remembers the projects, so a restart of the triggerer misses none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset, AssetWatcher, Variable, dag, task

from airflow_provider_workspace.operators.dashboards import WorkspaceCreateDashboardOperator
from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger

new_project = Asset(
    "workspace_projects",
    watchers=[
        AssetWatcher(
            name="new_project",
            trigger=WorkspaceArrivalTrigger(what="project", poll_interval=30),
        ),
    ],
)
# The Variable with the id of the last event that a run has finished.
LAST_EVENT = "workspace_welcome_last_event"


@dag(
    schedule=[new_project],
    catchup=False,
    max_active_runs=1,  # so that no two runs create the same dashboard
    tags=["workspace", "example"],
    default_args={"retries": 2},
    render_template_as_native_obj=True,
    doc_md=__doc__,
)
def event_driven_onboarding() -> None:
    """Give each new project its first dashboard."""

    @task(task_display_name="Read the new projects", inlets=[new_project])
    def read_events(*, inlet_events: Mapping[Asset, Any], ti: Any) -> list[dict[str, str]]:
        """Return the projects of all events since the last one that a run finished."""
        last = int(Variable.get(LAST_EVENT, default="0"))
        events = [event for event in inlet_events[new_project] if event.id > last]
        ti.xcom_push(key="last_event", value=max([last, *(event.id for event in events)]))
        return [
            {
                "project_id": row["id"],
                "name": f"Welcome to {row['name']}",
                "variable_key": f"workspace_welcome_{row['id']}",
            }
            for event in events
            for row in event.extra["payload"]["rows"]
        ]

    @task(task_display_name="Remember the last event")
    def remember(last_event: int) -> None:
        """Let the next run start after this event. The events of a failed run are read again."""
        Variable.set(LAST_EVENT, str(last_event))

    projects = read_events()
    welcome = WorkspaceCreateDashboardOperator.partial(
        task_id="welcome_dashboard",
        task_display_name="Create a first dashboard",
        doc_md="Creates one for each new project. A Variable remembers it, so a retry creates no second one.",
    ).expand_kwargs(projects)
    welcome >> remember(projects["last_event"])


event_driven_onboarding()
