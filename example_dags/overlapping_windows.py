"""
Pause one export in two maintenance windows that overlap: the window that closes last resumes it.

1. **Maintain the warehouse** and **Maintain the network** each open a window.
2. When the warehouse's window closes, the export **stays paused**, because the network's window is still open.
3. When the network's window closes, the export resumes.

The windows may be in different Dags.
"""

from __future__ import annotations

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.task_groups import maintenance_window

EXPORT = "0190c0de-0000-4000-8000-0000000000e3"


@dag(
    schedule=None,
    tags=["workspace", "example"],
    doc_md=__doc__,
    render_template_as_native_obj=True,
    params={
        "batch_export_ids": Param(
            [EXPORT],
            type="array",
            items={"type": "string", "format": "uuid"},
            title="Batch exports",
            description="Ids of the exports that both windows pause, one per line.",
        )
    },
)
def overlapping_windows() -> None:
    """Open both windows at once; the second one closes after the first."""
    # [START howto_overlapping_windows]
    with maintenance_window("warehouse", batch_export_ids="{{ params.batch_export_ids }}"):

        @task(task_display_name="Maintain the warehouse")
        def maintain_warehouse() -> None:
            """Put your own maintenance here."""

        first = maintain_warehouse()

    with maintenance_window("network", batch_export_ids="{{ params.batch_export_ids }}"):

        @task(task_display_name="Maintain the network")
        def maintain_network() -> None:
            """Put your own maintenance here."""

        second = maintain_network()
    # [END howto_overlapping_windows]

    # Makes them overlap in this example: the work on the network starts when that on the warehouse is done.
    first >> second


overlapping_windows()
