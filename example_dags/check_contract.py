"""
Watch the contract: a run fails and lists what will break, before the service breaks it.

Every week the operations of this package are compared with the OpenAPI document of the service: what is **gone**,
**moved** or **deprecated**, and fields that the service does not know any more. Nothing is sent to change anything. Add
an `on_failure_callback` to notify somebody.

The task runs on a worker, which may not reach Airflow's database, so it is an operator and not a shell command. The
command for people is `airflow workspace ping --schema`.
"""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import Param, dag

from airflow_provider_workspace.operators.contract import WorkspaceCheckContractOperator


@dag(
    schedule="@weekly",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    tags=["workspace", "example"],
    doc_md=__doc__,
    params={
        "schema": Param(
            "data/openapi.yaml",
            type="string",
            title="Document",
            description="Path or URL of the OpenAPI document of the service, in JSON or YAML.",
        ),
    },
)
def check_contract() -> None:
    """Compare, and fail if something will break."""
    # [START howto_check_contract]
    WorkspaceCheckContractOperator(
        task_id="check",
        task_display_name="Check the contract",
        doc_md="**Fails** if an operation is gone, moved or deprecated, or a body does not know a field.",
        schema="{{ params.schema }}",
        operations=["airflow_provider_workspace.api.operations.ListInvites"],  # those of your own
        retries=2,
    )
    # [END howto_check_contract]


check_contract()
