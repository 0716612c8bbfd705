"""A Dag of somebody else, without this package, that is due every minute."""

from __future__ import annotations

from airflow.sdk import DAG, task


@task(priority_weight=7)
def extract() -> None:
    """Work of others."""


@task(priority_weight=3)
def load() -> None:
    """More work of others."""


with DAG("somebody_else", schedule="* * * * *", catchup=False, is_paused_upon_creation=True):
    extract() >> load()
