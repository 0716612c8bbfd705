"""Many tasks that wait for one person, without a worker."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk import DAG, BaseOperator
from airflow.triggers.base import StartTriggerArgs

SECONDS = 5


class Wait(BaseOperator):
    """Begins in the triggerer, since a thousand workers would take too long."""

    start_from_trigger = True
    start_trigger_args = StartTriggerArgs(
        trigger_cls="airflow_provider_workspace.triggers.workspace.WorkspaceWaitTrigger",
        trigger_kwargs={
            "condition": "members_joined",
            "arguments": {"emails": ["late@example.com"], "share": 1.0},
            "organization_id": "0190c0de-0000-4000-8000-000000000001",
            "poll_interval": SECONDS,
            "end_at": time.time() + 86_400,
        },
        next_method="execute_complete",
    )

    def execute_complete(self, context: Any, event: dict[str, Any]) -> None:  # noqa: ARG002
        assert event["status"] == "done"


# Airflow loads the whole Dag to start a trigger, hence many small Dags.
for dag_number in range(40):
    with DAG(f"many_waits_{dag_number}", schedule=None):
        for number in range(25):
            Wait(task_id=f"wait_{number}")
