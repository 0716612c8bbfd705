"""
Resume the exports of abandoned maintenance windows, and end temporary access. Add this Dag once to each Airflow.

A window closes itself, even after failed work, as long as Airflow runs its tasks. Airflow does not run them if the Dag
was paused, edited or deleted meanwhile, or if its `dagrun_timeout` is over. This Dag finds such windows and resumes
their exports. It also lowers or removes people whose grants have ended, reads back the result, and keeps a file about
each of these grants in the folder `evidence`.

**A run fails** and names the cause if it finds an abandoned window, or cannot end something: add your notifier as its
`on_failure_callback`.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Param, dag

from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator


@dag(
    schedule=timedelta(minutes=5),
    catchup=False,
    max_active_runs=1,
    tags=["workspace", "example"],
    doc_md=__doc__,
    params={
        "evidence": Param(
            "/var/lib/airflow/temporary-access",
            type="string",
            title="Evidence",
            description="Folder of the files about ended grants: on a disk that all workers share, or a URL.",
        ),
    },
)
def workspace_sweep() -> None:
    """Sweep over all windows and grants."""
    # [START howto_workspace_sweep]
    WorkspaceSweepOperator(
        task_id="sweep",
        task_display_name="End what is due",
        doc_md="Closes abandoned windows and ends access. **Fails** if a window was abandoned or anything is left.",
        protected=["olive.owner@example.com"],  # owns the API key of the connection
        evidence="{{ params.evidence }}",  # for auditors: Airflow forgets who had which access
        retries=2,
        retry_delay=timedelta(seconds=30),
    )
    # [END howto_workspace_sweep]


workspace_sweep()
