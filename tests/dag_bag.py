"""``DagBag``, imported from where each Airflow release has it."""

from __future__ import annotations

try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # before 3.2
    from airflow.models.dagbag import DagBag

__all__ = ["DagBag"]
