"""
Pause batch exports for a fixed time every week, without a worker slot.

Use it for maintenance that somebody else does at a known time. A manual run can set another length. If an export cannot
be resumed, the run fails and names it.
"""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import Param, dag

from airflow_provider_workspace.task_groups import maintenance_window


@dag(
    schedule="0 2 * * SUN",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    tags=["workspace", "example"],
    doc_md=__doc__,
    render_template_as_native_obj=True,
    params={
        "batch_export_ids": Param(
            [
                "0190c0de-0000-4000-8000-0000000000e1",
                "0190c0de-0000-4000-8000-0000000000e2",
            ],
            type="array",
            items={"type": "string", "format": "uuid"},
            title="Batch exports",
            description="Ids of the exports that must not run during the window, one per line.",
        ),
        "minutes": Param(
            0.05,
            type="number",
            minimum=0.01,
            maximum=10_080,
            title="Minutes",
            description="How long the exports stay paused: 120 is two hours; 0.05 is three seconds, to try it.",
        ),
    },
)
def fixed_window() -> None:
    """Pause, hold, resume."""
    # [START howto_fixed_window]
    with maintenance_window(
        batch_export_ids="{{ params.batch_export_ids }}",
        hold="{{ params.minutes * 60 }}",
    ):
        pass  # you can add tasks here
    # [END howto_fixed_window]


fixed_window()
