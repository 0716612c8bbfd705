"""
Start onboarding when somebody creates a project, without a schedule and without a waiting worker.

1. A watcher in the triggerer polls the organization's projects every 30 seconds.
2. What is new becomes one event of the asset `workspace_projects`, which starts a run.
3. The run gives each new project its first dashboard.
4. At the end, a Variable remembers the last event, so that the next run begins after it.

The run reads the asset's events itself: an event that comes while a run is queued starts no run of its own and is not
among the triggering events. The triggerer remembers which events it has sent, so a restart neither repeats nor misses a
project. A manual run handles the events that no run has finished.
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
        """Return the projects of all events after the last one, also of those that started no run."""
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
        """Let the next run begin after this event; a failed run's events are read again."""
        Variable.set(LAST_EVENT, str(last_event))

    projects = read_events()
    welcome = WorkspaceCreateDashboardOperator.partial(
        task_id="welcome_dashboard",
        task_display_name="Create a first dashboard",
        doc_md="One for each new project, remembered in a Variable so that a retry creates no second one.",
    ).expand_kwargs(projects)
    welcome >> remember(projects["last_event"])


event_driven_onboarding()
