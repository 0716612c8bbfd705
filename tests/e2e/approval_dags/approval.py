"""Removes leavers after an approval; approvers and timeout are parameters of the run."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator

with DAG(
    "approval",
    schedule=None,
    render_template_as_native_obj=True,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=1), "max_retry_delay": timedelta(seconds=2)},
    params={"leavers": Param([], type="array"), "approvers": Param(["ruth"], type="array"), "timeout": 3600},
):
    WorkspaceSyncMembersOperator(
        task_id="off_board",
        leavers="{{ params.leavers }}",
        protected=["olive.owner@example.com"],
        max_removals=3,
        require_approval=True,
        approvers="{{ params.approvers }}",
        approval_timeout="{{ params.timeout }}",
    )
