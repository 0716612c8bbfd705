"""
Keep members in sync with a table in your warehouse, or in the database of an HR system.

A query selects who belongs to the organization, and at which level. The sync invites people who are missing, changes
levels, and removes people who are no longer in the table: at most five per run, and nobody if the result is empty.
**A second run changes nothing.**

It needs the connection `warehouse` to a database whose table `people` has the columns `email`, `level` and `left_on`.
"""

from __future__ import annotations

# [START howto_people_from_warehouse]
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import dag

from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator


@dag(
    schedule=None,
    max_active_runs=1,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    doc_md=__doc__,
)
def people_from_warehouse() -> None:
    """Query, sync."""
    people = SQLExecuteQueryOperator(
        task_id="people",
        task_display_name="Select the people",
        doc_md="Returns a row for each person who belongs to the organization.",
        conn_id="warehouse",
        sql="SELECT email, level FROM people WHERE left_on IS NULL",
    )
    WorkspaceSyncMembersOperator(
        task_id="sync_members",
        task_display_name="Sync the members",
        doc_md="Compares the members with the rows of the query, and applies the plan.",
        roster=people.output,
        columns=["email", "level"],
        protected=["olive.owner@example.com"],  # owns the API key of the connection
        max_removals=5,
    )


people_from_warehouse()
# [END howto_people_from_warehouse]
