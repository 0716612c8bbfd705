"""Tasks for `test_retries.py`: one try of each gets a 429 or is killed."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_workspace.operators.dashboards import WorkspaceCreateDashboardOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator, WorkspaceGetProjectOperator

AGAIN = {"retries": 2, "retry_delay": timedelta(seconds=2)}

with DAG("told_to_come_back", schedule=None):
    WorkspaceGetProjectOperator(task_id="project", project_id=1, **AGAIN)

with DAG("killed_creates", schedule=None):
    WorkspaceCreateProjectOperator(task_id="project", name="Northwind", if_exists="fail", **AGAIN)
    WorkspaceCreateDashboardOperator(task_id="dashboard", name="Revenue", **AGAIN)
