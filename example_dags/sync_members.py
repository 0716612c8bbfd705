"""
Keep members in sync with a roster: plan, let a person approve the plan, and apply it.

The log and **Required Actions** show the plan: who would be invited, get another level, or be removed. Only approved
changes are sent, and an empty plan needs no approval. **A second run changes nothing.**
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Param, dag

from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator


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
            description="A CSV file in the folder data beside this Dag, with the columns email and level.",
        ),
    },
)
def sync_members() -> None:
    """Plan, ask, apply."""
    WorkspaceSyncMembersOperator(
        task_id="sync_members",
        task_display_name="Sync the members",
        doc_md="Compares the members with the roster, waits for the approval, and applies the plan.",
        path="data/{{ params.roster }}",
        protected=["olive.owner@example.com"],  # owns the API key of the connection
        max_removals=5,
        require_approval=True,
        approval_timeout=timedelta(days=3),
    )


sync_members()
