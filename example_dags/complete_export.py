"""
Read a whole day of an hourly batch export, after a window that has paused it.

For services that show the runs of exports. The window fills what the pause has cost. Its event, and that of the task
that waits for the end of each day, start the Dag that reads; it reads only if the day is whole.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import Asset, Param, dag, task

from airflow_provider_workspace.sensors.workspace import WorkspaceBatchExportCompleteSensor
from airflow_provider_workspace.task_groups import maintenance_window

EXPORT = "0190c0de-0000-4000-8000-0000000000e1"
WHOLE = Asset("workspace_export_complete")
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dag(
    schedule="0 2 * * SUN",
    start_date=START,
    catchup=False,
    tags=["workspace", "example"],
    doc_md=__doc__,
    params={
        "minutes": Param(
            120,
            type="number",
            minimum=17,
            maximum=10_080,
            title="Minutes",
            description="How long to fill what the pause has cost, after the window is closed.",
        )
    },
)
def complete_export() -> None:
    """Pause the export, rebuild, resume it, and fill what it has missed."""
    # [START howto_complete_export]
    with maintenance_window(
        batch_export_ids=[EXPORT],
        drain=timedelta(minutes=30),
        catch_up="{{ params.minutes * 60 }}",
        outlets=[WHOLE],
    ):

        @task(task_display_name="Rebuild the tables", doc_md="Stands for work that needs the export to pause.")
        def rebuild_tables() -> None:
            print("Rebuild what the export writes to.")

        rebuild_tables()
    # [END howto_complete_export]


@dag(schedule="@daily", start_date=START, catchup=False, tags=["workspace", "example"])
def whole_days() -> None:
    """Wait until yesterday is exported."""
    WorkspaceBatchExportCompleteSensor(
        task_id="complete",
        batch_export_id=EXPORT,
        deferrable=True,
        timeout=6 * 3600,
        outlets=[WHOLE],
    )


@dag(schedule=[WHOLE], start_date=START, tags=["workspace", "example"])
def read_whole_day() -> None:
    """Read what is complete."""

    @task
    def read(triggering_asset_events: Any = None) -> None:
        for event in (triggering_asset_events or {}).get(WHOLE, ()):
            print(f"Complete from {event.extra['from']} to {event.extra['to']}.")

    read()


complete_export()
whole_days()
read_whole_day()
