"""
Start onboarding when somebody creates a project, without a schedule and without a waiting worker.

1. A watcher in the triggerer polls the organization's projects every 30 seconds.
2. Each new one becomes an event of the asset `workspace_projects`, and each event starts a run.
3. The run gives the project its first dashboard.

The triggerer remembers which events it has sent, so a restart neither repeats nor misses a project. A manual run has
no event and does nothing.
"""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher, dag, task

from airflow_provider_workspace.operators.dashboards import WorkspaceCreateDashboardOperator
from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger

# [START howto_asset_watcher]
new_project = Asset(
    "workspace_projects",
    watchers=[
        AssetWatcher(
            name="new_project",
            trigger=WorkspaceArrivalTrigger(what="project", poll_interval=30),
        ),
    ],
)
# [END howto_asset_watcher]


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

    @task(task_display_name="Read the new projects")
    def read_event(triggering_asset_events: dict[Asset, list[object]]) -> list[dict[str, str]]:
        """Return the new projects: several since the last run, or none in a manual run."""
        events = triggering_asset_events[new_project]
        payloads = [event.extra["payload"] for event in events]  # type: ignore[attr-defined]
        return [
            {
                "project_id": payload["id"],
                "name": f"Welcome to {payload['name']}",
                "variable_key": f"workspace_welcome_{payload['id']}",
            }
            for payload in payloads
        ]

    WorkspaceCreateDashboardOperator.partial(
        task_id="welcome_dashboard",
        task_display_name="Create a first dashboard",
        doc_md="One for each new project, remembered in a Variable so that a retry creates no second one.",
    ).expand_kwargs(read_event())


event_driven_onboarding()
