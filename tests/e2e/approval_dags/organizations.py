"""Three organizations from three files, one of them invalid."""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_workspace.task_groups import workspace_organization


@dag(schedule=None)
def onboard_three() -> None:
    """Plan each organization and ask for approval."""
    workspace_organization(
        file=[
            "north.yaml",
            {"file": "all.yaml", "organization": "south", "workspace_conn_id": "workspace_research"},
            "mistake.yaml",
        ],
        require_approval=True,
        render_file=True,
        retries=0,
    )


onboard_three()
