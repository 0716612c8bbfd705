"""
Give a person a higher access level for some hours. The run says who, which level, how long and why; a person approves.

The question is under **Required Actions**, and **nothing is sent before the answer**. The time starts with the
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
            description="E-mail address of the person. Somebody who is not a member is invited.",
        ),
        "level": Param(
            "admin",
            type="string",
            enum=["member", "admin", "owner"],
            title="Level",
            description="The temporary access level.",
        ),
        "hours": Param(
            4,
            type="number",
            minimum=0.25,
            maximum=720,
            title="Hours",
            description="How long the access lasts after the approval. 0.5 is half an hour.",
        ),
        "why": Param(
            "Rollout of the dashboards",
            type="string",
            minLength=5,
            title="Why",
            description="The reason. The person who approves reads it first.",
        ),
    },
)
def grant_access() -> None:
    """Ask, note the end, change the level."""
    WorkspaceGrantAccessOperator(
        task_id="grant",
        task_display_name="Grant the access",
        doc_md="Plans the grant, waits for its approval, notes its end, then changes the level or invites.",
        user_email="{{ params.who }}",
        level="{{ params.level }}",
        length="{{ params.hours * 3600 }}",  # seconds
        reason="{{ params.why }}",
        require_approval=True,
        allow_self_approval=True,  # to try it alone; remove it, so that somebody else must approve
        approval_timeout=timedelta(days=1),
    )


grant_access()
