"""
Get an alert before the API of the service changes: a run fails and lists what will break.

Every week it compares the operations of this package with the OpenAPI document of the service: what is **gone**,
**moved** or **deprecated**, and which fields the service no longer knows. It changes nothing. Add an
`on_failure_callback` to notify somebody.

To check by hand, run `airflow workspace ping --schema`. That command needs Airflow's database, which a worker may not
reach; this operator does not.
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
        doc_md="**Fails** if an operation is gone, moved or deprecated, or if a body does not know a field.",
        schema="{{ params.schema }}",
        operations=["airflow_provider_workspace.api.operations.ListInvites"],  # those of your own
        retries=2,
    )
    # [END howto_check_contract]


check_contract()
