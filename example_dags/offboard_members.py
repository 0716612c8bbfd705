"""
Remove people who left: look them up, let a human approve, then remove them and withdraw their open invites.

The run waits up to three days for the answer, which is given under **Required Actions**. Until somebody approves,
**nothing is changed**.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, dag, task

from airflow_provider_workspace.operators.invites import WorkspaceDeleteInviteOperator, WorkspaceListInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceDeleteMemberOperator, WorkspaceListMembersOperator


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
    members = WorkspaceListMembersOperator(
        task_id="find_members",
        task_display_name="Find the members",
        doc_md="Reads the list of members and keeps those with one of the addresses.",
        where={"user.email": "{{ params.emails }}"},
        fields=["user.uuid", "user.email", "level"],
    )
    invites = WorkspaceListInvitesOperator(
        task_id="find_invites",
        task_display_name="Find their invites",
        doc_md="They may hold an invite that they never accepted: it would let them in again.",
        where={"target_email": "{{ params.emails }}"},
        fields=["id", "target_email"],
    )
    # [START howto_approval]
    approve = ApprovalOperator(
        task_id="approve",
        task_display_name="Ask a human",
        doc_md="Shows the people and their open invites. Waits for **Approve** or **Reject**.",
        subject="Remove these people from the organization?",
        body="{{ ti.xcom_pull('find_members') }}\n\n{{ ti.xcom_pull('find_invites') }}",
        execution_timeout=timedelta(days=3),
    )
    # [END howto_approval]

    @task(task_display_name="Whom to remove")
    def uuids(found: list[dict[str, str]]) -> list[str]:
        """Take the ids of their users, by which the interface addresses members."""
        return [member["user.uuid"] for member in found]

    @task(task_display_name="What to withdraw")
    def ids(found: list[dict[str, str]]) -> list[str]:
        """Take the ids of the invites."""
        return [invite["id"] for invite in found]

    # [START howto_delete_member]
    removed = WorkspaceDeleteMemberOperator.partial(
        task_id="remove_members",
        task_display_name="Remove the members",
        doc_md="Idempotent: a member who is gone counts as removed.",
    ).expand(user_uuid=uuids(members.output))
    # [END howto_delete_member]
    withdrawn = WorkspaceDeleteInviteOperator.partial(
        task_id="withdraw_invites",
        task_display_name="Withdraw the invites",
        doc_md="Idempotent: an invite that is gone counts as withdrawn.",
    ).expand(invite_id=ids(invites.output))
    [members, invites] >> approve >> [removed, withdrawn]


offboard_members()
