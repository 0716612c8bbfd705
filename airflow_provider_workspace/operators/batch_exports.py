"""Operators for batch exports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.base import WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspacePauseBatchExportOperator(WorkspaceWriteOperator):
    """
    Pause a batch export; pausing a paused one changes nothing. Scope ``batch_export:write``.

    The interface has no way to read whether an export is paused.

    :param batch_export_id: batch export (UUID)
    :param organization_id: organization; by default that of the connection
    :param body: fields of section "Batch export" to send along; most services need none
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "batch_export_id", "body")

    def __init__(
        self,
        *,
        batch_export_id: str,
        organization_id: str | None = None,
        body: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.batch_export_id = batch_export_id
        self.organization_id = organization_id
        self.body = body

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Pause it."""
        self.show(hook, "batch_export", batch_export_id=self.batch_export_id, organization_id=self.organization_id)
        body = self.parse_fields("body", "batch_export_id", "organization_id")
        answer = hook.pause_batch_export(
            batch_export_id=self.batch_export_id, organization_id=self.organization_id, **body
        )
        return {**(self.plain(answer) if answer else {}), "batch_export_id": self.batch_export_id, "paused": True}


class WorkspaceUnpauseBatchExportOperator(WorkspaceWriteOperator):
    """
    Resume a batch export; resuming a running one changes nothing. Scope ``batch_export:write``.

    :param batch_export_id: batch export (UUID)
    :param organization_id: organization; by default that of the connection
    :param body: fields of section "Batch export" to send along; most services need none
    :param resume_fields: fields that the interface does not name, such as ``{"backfill": True}`` where the service
        then exports what was missed. They are sent as they are, and nothing checks them
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "organization_id",
        "batch_export_id",
        "body",
        "resume_fields",
    )

    def __init__(
        self,
        *,
        batch_export_id: str,
        organization_id: str | None = None,
        body: Mapping[str, Any] | None = None,
        resume_fields: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.batch_export_id = batch_export_id
        self.organization_id = organization_id
        self.body = body
        self.resume_fields = resume_fields

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Resume it."""
        self.show(hook, "batch_export", batch_export_id=self.batch_export_id, organization_id=self.organization_id)
        body = self.parse_fields("body", "batch_export_id", "organization_id", "resume_fields")
        answer = hook.unpause_batch_export(
            batch_export_id=self.batch_export_id,
            organization_id=self.organization_id,
            resume_fields=self.parse_fields("resume_fields") or None,
            **body,
        )
        return {**(self.plain(answer) if answer else {}), "batch_export_id": self.batch_export_id, "paused": False}
