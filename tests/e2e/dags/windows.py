"""Maintenance windows whose work succeeds, fails or takes long, and the sweep."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import DAG, BaseNotifier, BaseOperator, Context, task, task_group

from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.task_groups import maintenance_window

FIRST = "0190c0de-0000-4000-8000-0000000000e1"
SECOND = "0190c0de-0000-4000-8000-0000000000e2"
HOME = Path(os.environ["AIRFLOW_HOME"])


@task
def well() -> None:
    """Work that succeeds."""


@task
def exception() -> None:
    """Work that fails."""
    msg = "the maintenance went wrong"
    raise RuntimeError(msg)


@task
def long() -> None:
    """Work until the test says so."""
    (HOME / "long.pid").write_text(str(os.getpid()))
    while not (HOME / "end").exists():
        time.sleep(0.2)


class Note(BaseNotifier):
    """A notifier that writes a file for the test."""

    def notify(self, context: Context) -> None:
        """Write the overdue window."""
        (HOME / "overdue.txt").write_text(f"{context['dag_run'].dag_id}: {context.get('exception')}")


with DAG("window_success", schedule=None), maintenance_window(batch_export_ids=[FIRST, SECOND]):
    well()

with DAG("window_exception", schedule=None), maintenance_window(batch_export_ids=[FIRST, SECOND]):
    well() >> exception()


@task_group
def one_window(batch_export_ids: list[str]) -> None:
    """A window for one export."""
    with maintenance_window(batch_export_ids=batch_export_ids):
        well()


with DAG("window_mapped", schedule=None):
    one_window.expand(batch_export_ids=[[FIRST], [SECOND]])

with DAG("window_long", schedule=None), maintenance_window(batch_export_ids=[FIRST, SECOND]):
    long()

with (
    DAG("window_refused", schedule=None),
    maintenance_window(
        batch_export_ids=[FIRST, SECOND],
        resume_args={"retry_delay": timedelta(seconds=2), "retry_exponential_backoff": False},
    ),
):
    long()

with (
    DAG("window_overdue", schedule=None),
    maintenance_window(batch_export_ids=[FIRST, SECOND], max_length=timedelta(seconds=15), on_overdue=Note()),
):
    long()

with (
    DAG("window_run_timeout", schedule=None, dagrun_timeout=timedelta(seconds=25)),
    maintenance_window(batch_export_ids=[FIRST]),
):
    long()

with DAG("window_dag_paused", schedule=None), maintenance_window(batch_export_ids=[FIRST]):
    long()


@task.branch
def choose() -> str:
    """Decide what follows the window."""
    return "after"


with DAG("window_branch", schedule=None):
    after, other = EmptyOperator(task_id="after"), EmptyOperator(task_id="other")
    with maintenance_window(batch_export_ids=[FIRST, SECOND]) as branching:
        choose()
    branching >> [after, other]

# The pool has one slot, which the work holds; the callback of the author hears of the guard.
with (
    DAG("window_pool", schedule=None, default_args={"pool": "one_slot", "on_failure_callback": Note()}),
    maintenance_window(batch_export_ids=[FIRST, SECOND], max_length=timedelta(seconds=15)),
):
    long()

with (
    DAG("window_marked", schedule=None),
    maintenance_window(batch_export_ids=[FIRST, SECOND], max_length=timedelta(seconds=40)),
):
    long()


class Later(BaseOperator):
    """Work that is deferred for longer than its window is open."""

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """Defer."""
        self.defer(trigger=TimeDeltaTrigger(timedelta(seconds=30)), method_name="resume")

    def resume(self, context: Context, event: object = None) -> None:  # noqa: ARG002
        """End."""
        (HOME / "later.txt").write_text("done")


with (
    DAG("window_deferred", schedule=None),
    maintenance_window(batch_export_ids=[FIRST, SECOND], max_length=timedelta(seconds=15)),
):
    Later(task_id="later")

# Its connection has the paths to which the service has moved pause and unpause.
with (
    DAG("window_moved", schedule=None),
    maintenance_window(batch_export_ids=[FIRST, SECOND], workspace_conn_id="workspace_moved"),
):
    long()

with DAG("window_sweep", schedule=None):
    WorkspaceSweepOperator(task_id="sweep", retries=0)
