"""Maintenance windows for test_window_accidents.py, each with its own exports."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_workspace.operators.batch_exports import (
    WorkspacePauseBatchExportOperator,
    WorkspaceUnpauseBatchExportOperator,
)
from airflow_provider_workspace.operators.window_closing import WorkspaceResumeAbandonedExportsOperator
from airflow_provider_workspace.task_groups import maintenance_window

HOME = Path(os.environ["AIRFLOW_HOME"])
CONNECTION: dict[str, Any] = {"workspace_conn_id": "workspace_slow"}
AT_ONCE: dict[str, Any] = {"retry_delay": timedelta(seconds=2), "retry_exponential_backoff": False}


def export(number: int) -> str:
    """Return the id of an export."""
    return f"0190c0de-0000-4000-8000-0000000001{number:02d}"


@task
def work(seconds: float, **context: Any) -> None:
    """Work that records its start and end."""
    mark = HOME / f"work_{context['dag_run'].dag_id}"
    mark.write_text(str(time.time()))
    time.sleep(seconds)
    mark.with_suffix(".end").write_text(str(time.time()))


with (
    DAG("accident_edited", schedule=None),
    maintenance_window(batch_export_ids="{{ var.value.accident_exports }}", **CONNECTION),
):  # type: ignore[arg-type]
    work(10)

with DAG("accident_opening", schedule=None), maintenance_window(batch_export_ids=[export(3)], **CONNECTION):
    work(5)

with (
    DAG(
        "accident_depends",
        schedule=None,
        default_args={
            "depends_on_past": True,
            "wait_for_downstream": True,
            "trigger_rule": "one_success",
            "do_xcom_push": False,
        },
    ),
    maintenance_window(batch_export_ids=[export(4)], resume_args={"retries": 0}, **CONNECTION),
):
    work.override(trigger_rule="all_success", depends_on_past=False, wait_for_downstream=False)(2)

with (
    DAG("accident_paused", schedule=None),
    maintenance_window(batch_export_ids=[export(5)], max_length=timedelta(seconds=25), **CONNECTION),
):
    work(5)

with (
    DAG("accident_timeout", schedule=None, dagrun_timeout=timedelta(seconds=25)),
    maintenance_window(batch_export_ids=[export(6)], **CONNECTION),
):
    work(90)

with DAG("accident_killed", schedule=None), maintenance_window(batch_export_ids=[export(7)], **CONNECTION):
    work(2)

with DAG("accident_broken", schedule=None), maintenance_window(batch_export_ids=[export(8)], **CONNECTION):
    work(10)

with DAG("accident_first", schedule=None), maintenance_window(batch_export_ids=[export(9)], **CONNECTION):
    work(3)

with DAG("accident_second", schedule=None), maintenance_window(batch_export_ids=[export(9)], **CONNECTION):
    work(10)

with (
    DAG("accident_wrong_id", schedule=None),
    maintenance_window(batch_export_ids=[export(10), export(99), export(11)], **CONNECTION),
):
    work(2)


@task
def work_until_told(**context: Any) -> None:
    """Work until the test says so."""
    dag_id = context["dag_run"].dag_id
    (HOME / f"work_{dag_id}").write_text("")
    while not (HOME / f"end_{dag_id}").exists():
        time.sleep(0.2)


@task
def after_the_work(**context: Any) -> None:
    """Record that more of the work ran."""
    (HOME / f"more_{context['dag_run'].dag_id}").write_text("")


# The scheduler is killed during drain, until after max_length. The lengths allow for a busy machine.
with (
    DAG("accident_outage", schedule=None),
    maintenance_window(
        batch_export_ids=[export(14)], drain=timedelta(seconds=60), max_length=timedelta(seconds=240), **CONNECTION
    ),
):
    after_the_work()

# The guard resumes the first export, and is refused on the second.
with (
    DAG("accident_guard", schedule=None),
    maintenance_window(batch_export_ids=[export(15), export(16)], max_length=timedelta(seconds=180), **CONNECTION),
):
    work_until_told() >> after_the_work()

with DAG("accident_paused_work", schedule=None), maintenance_window(batch_export_ids=[export(18)], **CONNECTION):
    work_until_told.override(task_id="work")()

with DAG("accident_400", schedule=None):
    (
        WorkspacePauseBatchExportOperator(task_id="pause", batch_export_id=export(12), **CONNECTION)
        >> WorkspaceUnpauseBatchExportOperator(
            task_id="unpause", batch_export_id=export(12), retries=3, retry_delay=timedelta(seconds=2), **CONNECTION
        )
    )

with (
    DAG("accident_contradicting_response", schedule=None),
    maintenance_window(batch_export_ids=[export(13)], resume_args=AT_ONCE, **CONNECTION),
):
    work(2)

# Paused until the test that needs it.
with DAG(
    "scheduled_sweep",
    schedule=timedelta(seconds=20),
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
):
    WorkspaceResumeAbandonedExportsOperator(task_id="sweep", retries=0)

with DAG("window_sweep", schedule=None):
    WorkspaceResumeAbandonedExportsOperator(task_id="sweep", retries=0)
