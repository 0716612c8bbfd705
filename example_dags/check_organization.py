"""
Notice when an organization is no longer as its file says: a run fails, and its log has the differences.

It sends nothing. Whoever shall know gets an `on_failure_callback`.
"""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_workspace.task_groups import workspace_organization


# [START howto_check_organization]
@dag(schedule="@daily", catchup=False, tags=["workspace", "example"], doc_md=__doc__)
def check_organization() -> None:
    """Plan, and fail if there is anything to do."""
    workspace_organization(file="data/example.yaml", dry_run=True)


check_organization()
# [END howto_check_organization]
