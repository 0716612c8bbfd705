"""
Keep the members in step with a roster: plan, let a human approve the plan, and carry out what was approved.

The plan is a table in the log and under **Required Actions**: who would be invited, get another level, or be removed.
Nothing is sent before somebody approves, and then nothing but what was in the table. **A second run changes nothing.**
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, dag, task

from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator

ROSTERS = Path(__file__).parent / "data"


@dag(
    schedule=None,
    max_active_runs=1,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    doc_md=__doc__,
    params={
        "roster": Param(
            "members.csv",
            type="string",
            pattern=r"^[\w-]+\.csv$",
            title="Roster",
            description="Who is to be a member: a CSV file in the folder data beside this Dag, "
            "with the columns email, level.",
        ),
    },
)
def sync_members() -> None:
    """Plan, ask, do."""
    # [START howto_plan_members]
    plan = WorkspaceSyncMembersOperator(
        task_id="plan",
        task_display_name="Plan the changes",
        doc_md="Reads members and invites, and compares them with the roster. Sends nothing.",
        path=f"{ROSTERS}/{{{{ params.roster }}}}",
        protected=["olive.owner@example.com"],  # whose API key the connection holds
        max_removals=5,
        dry_run=True,
    )
    # [END howto_plan_members]

    @task.short_circuit(
        task_display_name="Is there anything to do?", doc_md="Skips the rest where the plan has no changes."
    )
    def anything_to_do(planned: dict[str, int]) -> bool:
        """Ask nobody about nothing."""
        return planned["pending"] > 0

    # [START howto_approve_members]
    approve = ApprovalOperator(
        task_id="approve",
        task_display_name="Ask a human",
        doc_md="Shows the plan, and waits for **Approve** or **Reject**.",
        subject="Make these changes to the members?",
        body="```\n{{ ti.xcom_pull('plan')['table'] }}\n```",
        execution_timeout=timedelta(days=3),
    )
    # [END howto_approve_members]

    # [START howto_sync_members]
    apply = WorkspaceSyncMembersOperator(
        task_id="apply",
        task_display_name="Make the changes",
        doc_md="Plans again with the same code, and sends only what was approved.",
        path=f"{ROSTERS}/{{{{ params.roster }}}}",
        protected=["olive.owner@example.com"],
        max_removals=5,
        approved=plan.output,  # a change that is not in there stops the task before it sends anything
    )
    # [END howto_sync_members]
    anything_to_do(plan.output) >> approve >> apply


sync_members()
