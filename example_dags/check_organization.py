"""
Detect drift every day: a run fails and logs the differences if an organization differs from its file.

It sends no writes. Add an `on_failure_callback` to notify somebody. To apply the file, run `onboard_organization`.
"""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_workspace.task_groups import workspace_organization


# [START howto_check_organization]
@dag(schedule="@daily", catchup=False, tags=["workspace", "example"], doc_md=__doc__)
def check_organization() -> None:
    """Plan, and fail if there are differences."""
    workspace_organization(file="data/northwind.yaml", dry_run=True)
    # [END howto_check_organization]


check_organization()
