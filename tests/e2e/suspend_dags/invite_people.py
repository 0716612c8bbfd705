"""Invite four thousand people, with a retry."""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator

PEOPLE = [f"person-{number}@example.com" for number in range(4000)]


@dag(schedule=None, default_args={"retries": 1, "retry_delay": 1})
def invite_people() -> None:
    WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE)


invite_people()
