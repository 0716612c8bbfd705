"""Tasks for `test_retries.py`: one try of each gets a 429, is refused or is killed."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_workspace.operators.dashboards import WorkspaceCreateDashboardOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator, WorkspaceGetProjectOperator

AGAIN = {"retries": 2, "retry_delay": timedelta(seconds=2)}

with DAG("told_to_come_back", schedule=None):
    WorkspaceGetProjectOperator(task_id="project", project_id=1, **AGAIN)

with DAG("too_many_invites", schedule=None):
    WorkspaceCreateInvitesOperator(
        task_id="invites",
        invites=[f"person-{number}@example.com" for number in range(60)],
        max_per_hour=1000,  # so that Retry-After does not come from the hourly limit of invites
        retries=0,
    )

with DAG("killed_creates", schedule=None):
    WorkspaceCreateProjectOperator(task_id="project", name="Northwind", if_exists="fail", **AGAIN)
    WorkspaceCreateDashboardOperator(task_id="dashboard", name="Revenue", **AGAIN)

with DAG("wrong_key", schedule=None):
    WorkspaceGetProjectOperator(task_id="project", project_id=999, **AGAIN)
