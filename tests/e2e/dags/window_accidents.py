"""Maintenance windows for test_window_accidents.py, each with its own exports."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
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
# Number of an export -> its organization and its id.
EXPORTS: dict[str, list[str]] = json.loads(os.environ["ACCIDENT_EXPORTS"])
AT_ONCE: dict[str, Any] = {"retry_delay": timedelta(seconds=2), "retry_exponential_backoff": False}


def window(*numbers: int, **options: Any) -> Any:
    """Open a window for exports of one organization."""
    ids = [EXPORTS[str(number)][1] for number in numbers]
    return maintenance_window(
        batch_export_ids=ids, organization_id=EXPORTS[str(numbers[0])][0], **CONNECTION, **options
    )


def one(number: int) -> dict[str, Any]:
    """Return the arguments of an operator for one export."""
    organization_id, export_id = EXPORTS[str(number)]
    return {"batch_export_id": export_id, "organization_id": organization_id, **CONNECTION}


@task
def work(seconds: float, **context: Any) -> None:
    """Work that records its start and end."""
    mark = HOME / f"work_{context['dag_run'].dag_id}"
    mark.write_text(str(time.time()))
    time.sleep(seconds)
    mark.with_suffix(".end").write_text(str(time.time()))


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
    window(4, resume_args={"retries": 0}),
):
    work.override(trigger_rule="all_success", depends_on_past=False, wait_for_downstream=False)(2)

with (
    DAG("accident_paused", schedule=None),
    window(5, max_length=timedelta(seconds=25)),
):
    work(5)

with (
    DAG("accident_timeout", schedule=None, dagrun_timeout=timedelta(seconds=25)),
    window(6),
):
    work(90)

with DAG("accident_killed", schedule=None), window(7):
    work(2)

with DAG("accident_first", schedule=None), window(9):
    work(3)

with DAG("accident_second", schedule=None), window(9):
    work(10)


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
    window(14, drain=timedelta(seconds=60), max_length=timedelta(seconds=240)),
):
    after_the_work()

# The guard resumes the first export, and is refused on the second.
with (
    DAG("accident_guard", schedule=None),
    window(15, 16, max_length=timedelta(seconds=180)),
):
    work_until_told() >> after_the_work()

with DAG("accident_paused_work", schedule=None), window(18):
    work_until_told.override(task_id="work")()

with DAG("accident_400", schedule=None):
    (
        WorkspacePauseBatchExportOperator(task_id="pause", **one(12))
        >> WorkspaceUnpauseBatchExportOperator(
            task_id="unpause", retries=3, retry_delay=timedelta(seconds=2), **one(12)
        )
    )

with (
    DAG("accident_contradicting_response", schedule=None),
    window(13, resume_args=AT_ONCE),
):
    work(2)

with DAG("window_sweep", schedule=None):
    WorkspaceResumeAbandonedExportsOperator(task_id="sweep", retries=0)
