"""
Pause batch exports, do maintenance, and resume the exports.

**The exports resume** even if the work fails, hangs, is killed or is marked as failed: after two hours at the latest.
If an export cannot be resumed, the run fails and names it.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.task_groups import maintenance_window as window


@dag(
    schedule=None,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    params={
        "batch_export_ids": Param(
            [
                "0190c0de-0000-4000-8000-0000000000e1",
                "0190c0de-0000-4000-8000-0000000000e2",
            ],
            type="array",
            items={"type": "string", "format": "uuid"},
            title="Batch exports",
            description="Ids of the exports that must not run during the maintenance, one per line.",
        )
    },
    render_template_as_native_obj=True,
    doc_md=__doc__,
)
def maintenance_window() -> None:
    """Wrap the maintenance in a window."""
    # [START howto_maintenance_window]
    with window(batch_export_ids="{{ params.batch_export_ids }}", max_length=timedelta(hours=2)):

        @task(task_display_name="Maintain the warehouse")
        def maintain() -> str:
            """Put your own maintenance here, in any number of tasks."""
            return "The tables are vacuumed."

        maintain()
    # [END howto_maintenance_window]


maintenance_window()
