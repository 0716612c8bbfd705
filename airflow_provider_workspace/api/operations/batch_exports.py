"""Batch exports of an organization. Section "Endpoints, Batch exports"."""

from typing import Any, Literal

from pydantic import JsonValue, field_validator

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import TextId, Uuid
from airflow_provider_workspace.api.models import BatchExport
from airflow_provider_workspace.api.operation import Operation, T

BATCH_EXPORT = "/organizations/{organization_id}/batch_exports/{batch_export_id}/"


class BatchExportOperation(Operation[T]):
    """An operation on a batch export; the interface does not show what its fields do."""

    organization_id: TextId
    batch_export_id: Uuid
    name: str | None = None
    model: Literal["events", "persons"] | None = None
    destination: JsonValue = None
    interval: JsonValue = None
    paused: bool | None = None
    last_paused_at: str | None = None
    start_at: str | None = None
    end_at: str | None = None
    hogql_query: str | None = None

    @field_validator("paused")
    @classmethod
    def _agrees(cls, value: bool | None) -> bool | None:  # noqa: FBT001
        """Refuse a field that contradicts the operation: nobody can tell which of both a service obeys."""
        paused = (cls.endpoint.shows or {}).get("paused")
        if value not in (None, paused):
            raise ValueError(f"{cls.__name__} makes it {str(paused).lower()}: leave it out")
        return value


@endpoint(
    "POST",
    BATCH_EXPORT + "pause/",
    scope="batch_export:write",
    repeatable=True,
    effect="change",
    passing_statuses=(400,),
    shows={"paused": True},
)
class PauseBatchExport(BatchExportOperation[BatchExport | None]):
    """Pause a batch export; a paused one stays paused."""


@endpoint(
    "POST",
    BATCH_EXPORT + "unpause/",
    scope="batch_export:write",
    repeatable=True,
    effect="change",
    passing_statuses=(400,),
    shows={"paused": False},
)
class UnpauseBatchExport(BatchExportOperation[BatchExport | None]):
    """
    Resume a batch export; a running one keeps running.

    :param resume_fields: fields that the interface does not name; they are sent unchecked
    """

    resume_fields: dict[str, JsonValue] | None = None

    @field_validator("resume_fields")
    @classmethod
    def _are_not_named(cls, value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        """Refuse fields that the interface names."""
        named = sorted(set(value or ()) & set(cls.model_fields))
        if named:
            raise ValueError(f"the interface names {', '.join(named)}: pass it by its name, so that it is checked")
        return value

    @classmethod
    def body_fields(cls) -> tuple[str, ...]:
        """Return the fields that the interface names."""
        return tuple(name for name in super().body_fields() if name != "resume_fields")

    def payload(self) -> Any:
        """Return the fields of the interface and the ``resume_fields``."""
        fields = super().payload()
        return {**(fields.pop("resume_fields", None) or {}), **fields}
