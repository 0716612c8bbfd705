"""Windows in a pool of one slot that others crowd, two that overlap, one that is abandoned, and the sweep."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, task

from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.task_groups import maintenance_window

FIRST, SECOND, THIRD = (f"0190c0de-0000-4000-8000-0000000000e{number}" for number in (1, 2, 3))
HOME = Path(os.environ["AIRFLOW_HOME"])
OPENED = HOME / "opened"
IN_POOL = {"pool": "one_slot"}


@task
def begin() -> None:
    """Report that the window is open: its guard is due now."""
    OPENED.touch()


@task(priority_weight=5, **IN_POOL)
def work(number: int) -> None:
    """Work in the pool, which comes before the crowd."""


with (
    DAG("full_pool", schedule=None),
    maintenance_window(
        batch_export_ids=[SECOND], max_length=timedelta(minutes=10), guard_args=IN_POOL, resume_args=IN_POOL
    ),
):
    begin() >> work.expand(number=[1, 2])


@task(priority_weight=10, **IN_POOL)
def hold_the_slot() -> None:
    """Fill the pool until the window is open."""
    while not OPENED.exists():
        time.sleep(0.2)
    time.sleep(5)  # the scheduler finds the guard due, and the work


@task(**IN_POOL)
def wait_in_the_pool(number: int) -> None:
    """Take a slot of the pool."""


with DAG("crowd", schedule=None):
    hold_the_slot()
    wait_in_the_pool.expand(number=list(range(30)))


@task
def meet(own: str, other: str, seconds: int) -> None:
    """Work that begins when both windows are open."""
    (HOME / own).touch()
    while not (HOME / other).exists():
        time.sleep(0.2)
    time.sleep(seconds)


with DAG("overlapping", schedule=None):
    with maintenance_window("first", batch_export_ids=[FIRST]):
        meet.override(task_id="short")("short", "long", 0)
    with maintenance_window("last", batch_export_ids=[FIRST]):
        meet.override(task_id="long")("long", "short", 10)


@task
def endless() -> None:
    """Work that the end of the run kills."""
    while True:
        time.sleep(1)


with (
    DAG("abandoned", schedule=None, dagrun_timeout=timedelta(seconds=75)),
    maintenance_window(batch_export_ids=[THIRD]),
):
    endless()

with DAG("sweep", schedule=None):
    WorkspaceSweepOperator(task_id="sweep", retries=0)
