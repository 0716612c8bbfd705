"""
Onboard several organizations at once: the same steps for each, mapped over a list.

An API key belongs to one organization, so each has a connection of its own.
"""

from __future__ import annotations

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator


@dag(
    schedule=None,
    tags=["workspace", "example"],
    doc_md=__doc__,
    params={
        "organizations": Param(
            [
                {
                    "connection": "workspace_default",
                    "project": "Northwind",
                    "people": ["ada@example.com", "lin@example.com"],
                },
                {
                    "connection": "workspace_research",
                    "project": "Southwind",
                    "people": ["joe@example.com"],
                },
            ],
            type="array",
            title="Organizations",
            description="Each with its connection, the project and the people to invite.",
        )
    },
)
def onboard_organizations() -> None:
    """Map two operators over the list."""
    # [START howto_mapping]

    @task(task_display_name="Prepare the projects")
    def projects(params: dict[str, list[dict[str, str]]] | None = None) -> list[dict[str, str]]:
        """One mapping of arguments per organization."""
        rows = (params or {})["organizations"]
        return [{"workspace_conn_id": row["connection"], "name": row["project"]} for row in rows]

    @task(task_display_name="Prepare the invites")
    def invites(params: dict[str, list[dict[str, str]]] | None = None) -> list[dict[str, object]]:
        """One mapping of arguments per organization."""
        rows = (params or {})["organizations"]
        return [{"workspace_conn_id": row["connection"], "invites": row["people"]} for row in rows]

    created = WorkspaceCreateProjectOperator.partial(
        task_id="create_projects", task_display_name="Create the projects", map_index_template="{{ task.name }}"
    ).expand_kwargs(projects())
    invited = WorkspaceCreateInvitesOperator.partial(
        task_id="invite", task_display_name="Invite the people", map_index_template="{{ task.workspace_conn_id }}"
    ).expand_kwargs(invites())
    # [END howto_mapping]
    created >> invited


onboard_organizations()
