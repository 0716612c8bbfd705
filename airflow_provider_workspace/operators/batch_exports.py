"""Operators for batch exports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.base import WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow.sdk import XComArg

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspacePauseBatchExportOperator(WorkspaceWriteOperator):
    """
    Pause a batch export; pausing a paused one changes nothing. Scope ``batch_export:write``.

    The interface has no way to read whether an export is paused.

    :param batch_export_id: batch export (UUID)
    :param organization_id: organization; by default that of the connection
    :param body: fields of section "Batch export" for the request body; most services need none
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "batch_export_id", "body")
    resource_kind = "batch_export"

    def __init__(
        self,
        *,
        batch_export_id: str | XComArg,
        organization_id: str | XComArg | None = None,
        body: Mapping[str, Any] | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.batch_export_id: Any = batch_export_id
        self.organization_id: Any = organization_id
        self.body: Any = body

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Pause it."""
        answer = hook.pause_batch_export(
            batch_export_id=self.batch_export_id,
            organization_id=self.organization_id,
            **self.parse_fields("body", "batch_export_id", "organization_id"),
        )
        return {**(self.plain(answer) if answer else {}), "batch_export_id": self.batch_export_id, "paused": True}


class WorkspaceUnpauseBatchExportOperator(WorkspaceWriteOperator):
    """
    Resume a batch export; resuming a running one changes nothing. Scope ``batch_export:write``.

    :param batch_export_id: batch export (UUID)
    :param organization_id: organization; by default that of the connection
    :param body: fields of section "Batch export" for the request body; most services need none
    :param resume_fields: fields that the interface does not name, such as ``{"backfill": True}`` if the service then
        exports the missed intervals. They are sent as they are, without a check
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "organization_id",
        "batch_export_id",
        "body",
        "resume_fields",
    )
    resource_kind = "batch_export"

    def __init__(
        self,
        *,
        batch_export_id: str | XComArg,
        organization_id: str | XComArg | None = None,
        body: Mapping[str, Any] | XComArg | None = None,
        resume_fields: Mapping[str, Any] | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.batch_export_id: Any = batch_export_id
        self.organization_id: Any = organization_id
        self.body: Any = body
        self.resume_fields: Any = resume_fields

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Resume it."""
        answer = hook.unpause_batch_export(
            batch_export_id=self.batch_export_id,
            organization_id=self.organization_id,
            resume_fields=self.parse_fields("resume_fields") or None,
            **self.parse_fields("body", "batch_export_id", "organization_id", "resume_fields"),
        )
        return {**(self.plain(answer) if answer else {}), "batch_export_id": self.batch_export_id, "paused": False}
