"""Batch exports of an organization. Section "Endpoints, Batch exports"."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, JsonValue

from airflow_provider_workspace.api.operation import Operation, Uuid, endpoint

BATCH_EXPORT = "/organizations/{organization_id}/batch_exports/{batch_export_id}/"


class BatchExportFields(BaseModel):
    """What the interface lets a pause or unpause carry. What these fields do there is not shown."""

    name: str | None = None
    model: Literal["events", "persons"] | None = None
    destination: JsonValue = None
    interval: JsonValue = None
    paused: bool | None = None
    last_paused_at: str | None = None
    start_at: str | None = None
    end_at: str | None = None
    hogql_query: str | None = None


@endpoint("POST", BATCH_EXPORT + "pause/", scope="batch_export:write", repeatable=True, effect="change")
class PauseBatchExport(BatchExportFields, Operation[None]):
    """Pause a batch export; pausing a paused one changes nothing."""

    organization_id: str
    batch_export_id: Uuid


@endpoint("POST", BATCH_EXPORT + "unpause/", scope="batch_export:write", repeatable=True, effect="change")
class UnpauseBatchExport(BatchExportFields, Operation[None]):
    """Resume a batch export; resuming a running one changes nothing."""

    organization_id: str
    batch_export_id: Uuid
