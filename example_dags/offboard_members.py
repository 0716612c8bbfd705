"""
Remove people who left: find their membership and open invites, let a person approve, then remove and withdraw them.

The run waits up to three days for the answer, which is given under **Required Actions**. Until somebody approves,
**nothing is changed**.
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
            description="Addresses of the people who left, one per line.",
        )
    },
)
def offboard_members() -> None:
    """Look up, ask, remove."""
    WorkspaceSyncMembersOperator(
        task_id="offboard_members",
        task_display_name="Off-board the members",
        doc_md="Finds these people and their open invites, waits for **Approve**, removes them.",
        leavers="{{ params.emails }}",
        protected=["olive.owner@example.com"],  # whose API key the connection holds
        require_approval=True,
        approval_timeout=timedelta(days=3),
    )


offboard_members()
