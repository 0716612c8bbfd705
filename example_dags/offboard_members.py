"""
Offboard people who left: find their memberships and open invites, let a person approve, then remove and withdraw them.

The run waits up to three days for the answer under **Required Actions**. **Nothing is changed** before the approval.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Param, dag

from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator


@dag(
    schedule=None,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    doc_md=__doc__,
    render_template_as_native_obj=True,
    params={
        "emails": Param(
            ["noah.newton@example.com"],
            type="array",
            items={"type": "string", "format": "email"},
            title="Addresses",
            description="E-mail addresses of the people who left, one per line.",
        )
    },
)
def offboard_members() -> None:
    """Look up, ask, remove."""
    WorkspaceSyncMembersOperator(
        task_id="offboard_members",
        task_display_name="Offboard the members",
        doc_md="Finds these people and their open invites, waits for the approval, then removes them.",
        leavers="{{ params.emails }}",
        protected=["olive.owner@example.com"],  # owns the API key of the connection
        require_approval=True,
        approval_timeout=timedelta(days=3),
    )


offboard_members()
