"""
Onboard several organizations at once with a mapped task group.

Each organization has its own connection and key. One that fails does not stop the others. **A second run changes
nothing.**
"""

from __future__ import annotations

# [START howto_mapping]
from airflow.sdk import Param, dag, task, task_group

from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator

ORGANIZATIONS = [
    {
        "organization_id": "0190c0de-0000-4000-8000-000000000001",
        "connection": "workspace_default",
        "project": "Northwind",
        "people": ["ada@example.com", "lin@example.com"],
    },
    {
        "organization_id": "0190c0de-0000-4000-8000-000000000002",
        "connection": "workspace_research",
        "project": "Southwind",
        "people": ["joe@example.com"],
    },
]


@dag(
    schedule=None,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    max_active_runs=1,  # two runs at once could each create the same project
    doc_md=__doc__,
    params={
        "organizations": Param(
            ORGANIZATIONS,
            type="array",
            items={"type": "object", "required": ["organization_id", "connection", "project", "people"]},
            title="Organizations",
            description="A JSON list. Each organization has an organization_id, a connection with its key, the name of "
            "its project, and the addresses of the people to invite.",
        )
    },
)
def onboard_organizations() -> None:
    """Map a task group over the list."""

    @task(task_display_name="Read the organizations")
    def organizations(params: dict[str, list[dict[str, object]]]) -> list[dict[str, object]]:
        """Read them from your own source: a file, a Variable, a table."""
        return params["organizations"]

    @task_group(group_id="onboard")
    def onboard(organization_id: str, connection: str, project: str, people: list[str]) -> None:
        """One organization."""
        created = WorkspaceCreateProjectOperator(
            task_id="create_project",
            task_display_name="Create the project",
            doc_md="If a project with this name exists, it is reused.",
            map_index_template="{{ task.name[:250] }}",
            organization_id=organization_id,
            workspace_conn_id=connection,
            name=project,
            if_exists="return",
        )
        invited = WorkspaceCreateInvitesOperator(
            task_id="invite_people",
            task_display_name="Invite the people",
            doc_md="Skips members and people with an open invite.",
            map_index_template="{{ task.organization_id }}",
            organization_id=organization_id,
            workspace_conn_id=connection,
            invites=people,
        )
        created >> invited

    onboard.expand_kwargs(organizations())


onboard_organizations()
# [END howto_mapping]
