"""Dags for `test_access.py`: grants of some seconds, with and without an approval, and the one that ends them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator

GRANT: dict[str, Any] = {
    "task_id": "grant",
    "user_email": "{{ params.who }}",
    "level": "{{ params.level }}",
    "length": "{{ params.seconds }}",
    "reason": "rollout",
    "retries": 0,
}
PARAMS: Any = {"who": "mina.member@example.com", "level": Param("admin", type="string"), "seconds": 120}

with DAG("grant", schedule=None, params=PARAMS):
    WorkspaceGrantAccessOperator(**GRANT)

with DAG("grant_approved", schedule=None, params=PARAMS):
    WorkspaceGrantAccessOperator(**GRANT, require_approval=True)

with DAG("workspace_sweep", schedule=timedelta(seconds=10), catchup=False, max_active_runs=1):
    WorkspaceSweepOperator(task_id="sweep", protected=["olive.owner@example.com"], retries=0)
