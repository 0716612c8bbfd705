"""What loads Dags from files, from where the release keeps it."""

from __future__ import annotations

try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # before 3.2
    from airflow.models.dagbag import DagBag

__all__ = ["DagBag"]
