"""
Give a person a higher access level for some hours: say who, which level, how long and why; somebody else approves.

The question is under **Required Actions**, and **nothing is sent before the answer**. The time counts from the
approval. The Dag `workspace_sweep` ends the access: unpause it first.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Param, dag

from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator


@dag(
    schedule=None,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    doc_md=__doc__,
    params={
        "who": Param(
            "mina.member@example.com",
            type="string",
            format="email",
            title="Who",
            description="Address of the person. Somebody who is no member is invited.",
        ),
        "level": Param(
            "admin",
            type="string",
            enum=["member", "admin", "owner"],
            title="Level",
            description="The access level for this time.",
        ),
        "hours": Param(
            4,
            type="number",
            minimum=0.25,
            maximum=720,
            title="Hours",
            description="How long, from the approval on. 0.5 is half an hour.",
        ),
        "why": Param(
            "Rollout of the dashboards",
            type="string",
            minLength=5,
            title="Why",
            description="The reason, which whoever approves reads first.",
        ),
    },
)
def grant_access() -> None:
    """Ask, note the end, change the level."""
    # [START howto_grant_access]
    WorkspaceGrantAccessOperator(
        task_id="grant",
        task_display_name="Grant the access",
        doc_md="Plans the grant, waits for **Approve**, notes its end, then changes the level or invites.",
        user_email="{{ params.who }}",
        level="{{ params.level }}",
        length="{{ params.hours * 3600 }}",  # seconds
        reason="{{ params.why }}",
        require_approval=True,
        allow_self_approval=True,  # for a trial of one person: remove it, so that somebody else approves
        approval_timeout=timedelta(days=1),
    )
    # [END howto_grant_access]


grant_access()
