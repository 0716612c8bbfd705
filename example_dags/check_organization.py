"""
Notice drift: a run fails, and its log has the differences, when an organization is no longer as its file says.

It sends nothing. Whoever shall know gets an `on_failure_callback`. The Dag `onboard_organization` makes it so again.
"""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_workspace.task_groups import workspace_organization


# [START howto_check_organization]
@dag(schedule="@daily", catchup=False, tags=["workspace", "example"], doc_md=__doc__)
def check_organization() -> None:
    """Plan, and fail if there is anything to do."""
    workspace_organization(file="data/northwind.yaml", dry_run=True)
    # [END howto_check_organization]


check_organization()
