"""
Call an endpoint that the package does not have: list the batch exports, and let a window prove that they are paused.

The operation is declared in this file. Put yours into a module of its own, so that the sweep can import it too.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task

from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import Limit, Offset, Operation, endpoint
from airflow_provider_workspace.operators.send import WorkspaceSendOperator
from airflow_provider_workspace.task_groups import maintenance_window


class BatchExport(Resource):
    """A batch export."""

    id: str | None = None
    name: str | None = None
    paused: bool | None = None


@endpoint("GET", "/organizations/{organization_id}/batch_exports/", scope="batch_export:read", repeatable=True)
class ListBatchExports(Operation[Page[BatchExport]]):
    """List the batch exports of an organization."""

    organization_id: str
    limit: Limit = None
    offset: Offset = None


@dag(schedule=None, tags=["workspace", "example"], doc_md=__doc__)
def own_endpoint() -> None:
    """List, then work in a window over the first export."""
    exports = WorkspaceSendOperator(
        task_id="exports",
        task_display_name="List the running exports",
        doc_md="Sends the operation of this file.",
        operation=ListBatchExports,
        where={"paused": False},
        fields=["id", "name"],
    )
    # [START howto_state_of]
    with maintenance_window(
        batch_export_ids=exports.output.map(lambda row: row["id"]),
        state_of=ListBatchExports,
        max_length=timedelta(hours=2),
    ):

        @task(task_display_name="Maintain the warehouse", doc_md="Begins when the list shows all exports as paused.")
        def maintain() -> None:
            """Put your own maintenance here."""

        maintain()
    # [END howto_state_of]


own_endpoint()
