"""
End the grants whose time is over. Add this Dag once to each Airflow.

It lowers or removes the people of all grants that have ended, reads back what the service says, and touches nobody
else. A level that somebody changed meanwhile is left alone: then **the run fails and names the person**, so add your
notifier as its `on_failure_callback`.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from airflow_provider_workspace.operators.access import WorkspaceEndAccessOperator


@dag(
    schedule=timedelta(minutes=5),
    catchup=False,
    max_active_runs=1,
    tags=["workspace", "example"],
    doc_md=__doc__,
)
def end_access() -> None:
    """End what is over."""
    # [START howto_end_access]
    WorkspaceEndAccessOperator(
        task_id="end",
        task_display_name="End the grants that are over",
        doc_md="Lowers, removes or withdraws, and reads back. **Fails** if a grant could not be ended.",
        protected=["olive.owner@example.com"],  # whose API key the connection holds
        retries=2,
        retry_delay=timedelta(seconds=30),
    )
    # [END howto_end_access]


end_access()
