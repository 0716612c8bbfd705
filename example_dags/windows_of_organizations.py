"""
Pause exports of two organizations during the same work: one window for each organization, one inside the other.

1. **Both windows open**, each with the connection that has the key of its organization.
2. **Maintain the warehouse** runs once all exports are paused.
3. **Both windows close**, also if the work fails. An organization whose exports cannot be resumed does not stop the
   other.
"""

from __future__ import annotations

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.task_groups import maintenance_window


def exports_param(title: str, export_id: str) -> Param:
    """Describe the exports of one organization."""
    return Param(
        [export_id],
        type="array",
        items={"type": "string", "format": "uuid"},
        title=title,
        description="Ids of the exports of this organization that pause during the work, one per line.",
    )


@dag(
    schedule=None,
    tags=["workspace", "example"],
    doc_md=__doc__,
    render_template_as_native_obj=True,
    params={
        "analytics": exports_param("Exports of Analytics", "0190c0de-0000-4000-8000-0000000000e1"),
        "research": exports_param("Exports of Research", "0190c0de-0000-4000-8000-0000000000f1"),
    },
)
def windows_of_organizations() -> None:
    """Put one window into the other."""
    # [START howto_windows_of_organizations]
    with (
        maintenance_window("analytics", batch_export_ids="{{ params.analytics }}"),
        maintenance_window(
            "research",
            batch_export_ids="{{ params.research }}",
            organization_id="0190c0de-0000-4000-8000-000000000002",
            workspace_conn_id="workspace_research",
        ),
    ):

        @task(task_display_name="Maintain the warehouse")
        def maintain_warehouse() -> None:
            """Put your own maintenance here."""

        maintain_warehouse()
    # [END howto_windows_of_organizations]


windows_of_organizations()
