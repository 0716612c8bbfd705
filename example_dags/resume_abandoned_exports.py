"""
Resume the batch exports of abandoned maintenance windows. Add this Dag once to each Airflow.

A window closes itself, also after failed work, as long as Airflow runs its tasks. Airflow does not run them if the Dag
was paused, edited or deleted meanwhile, or if its `dagrun_timeout` is over. This Dag finds such windows and resumes
their exports.

If it finds one, **its run fails and names the window**: add your notifier as its `on_failure_callback`.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from airflow_provider_workspace.operators.window_closing import WorkspaceResumeAbandonedExportsOperator


@dag(
    schedule=timedelta(minutes=5),
    catchup=False,
    max_active_runs=1,
    tags=["workspace", "example"],
    doc_md=__doc__,
)
def resume_abandoned_exports() -> None:
    """Sweep over all windows."""
    # [START howto_window_sweep]
    WorkspaceResumeAbandonedExportsOperator(
        task_id="sweep",
        task_display_name="Resume the exports of abandoned windows",
        doc_md="Closes abandoned windows. **Fails** if there was one.",
        retries=2,
        retry_delay=timedelta(seconds=30),
    )
    # [END howto_window_sweep]


resume_abandoned_exports()
