"""Maintenance windows whose work succeeds, fails or takes long."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, BaseNotifier, Context, task, task_group

from airflow_provider_workspace.task_groups import maintenance_window

FIRST = "0190c0de-0000-4000-8000-0000000000e1"
SECOND = "0190c0de-0000-4000-8000-0000000000e2"
# File for the process id of a task that the test kills.
PIDS = Path(os.environ["AIRFLOW_HOME"])


@task
def well() -> None:
    """Work that succeeds."""


@task
def exception() -> None:
    """Work that fails."""
    msg = "the maintenance went wrong"
    raise RuntimeError(msg)


@task
def long(seconds: float) -> None:
    """Work that takes long."""
    (PIDS / "long.pid").write_text(str(os.getpid()))
    time.sleep(seconds)


class Note(BaseNotifier):
    """A notifier that writes a file for the test."""

    def notify(self, context: Context) -> None:
        """Write the overdue window."""
        (PIDS / "overdue.txt").write_text(f"{context['dag_run'].dag_id}: {context.get('exception')}")


with DAG("window_success", schedule=None), maintenance_window(batch_export_ids=[FIRST, SECOND]):
    well()

with DAG("window_exception", schedule=None), maintenance_window(batch_export_ids=[FIRST, SECOND]):
    exception()


@task_group
def one_window(batch_export_ids: list[str]) -> None:
    """A window for one export."""
    with maintenance_window(batch_export_ids=batch_export_ids):
        well()


with DAG("window_mapped", schedule=None):
    one_window.expand(batch_export_ids=[[FIRST], [SECOND]])

with DAG("window_long", schedule=None), maintenance_window(batch_export_ids=[FIRST, SECOND]):
    long(120)

with DAG("window_timeout", schedule=None), maintenance_window(batch_export_ids=[FIRST, SECOND]):
    long.override(execution_timeout=timedelta(seconds=3))(120)

with (
    DAG("window_refused", schedule=None),
    maintenance_window(
        batch_export_ids=[FIRST, SECOND],
        resume_args={"retry_delay": timedelta(seconds=2), "retry_exponential_backoff": False},
    ),
):
    long(12)

with (
    DAG("window_overdue", schedule=None),
    maintenance_window(batch_export_ids=[FIRST, SECOND], max_length=timedelta(seconds=15), on_overdue=Note()),
):
    long(60)

with (
    DAG("window_hold", schedule=None),
    maintenance_window(batch_export_ids=[FIRST, SECOND], hold=timedelta(seconds=10)),
):
    pass
