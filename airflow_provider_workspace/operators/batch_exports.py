"""Operators for batch exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_workspace.operators.arguments import FIELDS, ID, Arg, arg
from airflow_provider_workspace.operators.base import OfOrganization, WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class OfBatchExport(OfOrganization):
    """
    What belongs to a batch export.

    :param batch_export_id: the batch export (UUID)
    :param body: :class:`fields <airflow_provider_workspace.api.bodies.BatchExportBody>` for the request body; known
        services need none
    """

    resource_kind: ClassVar[str] = "batch_export"
    batch_export_id: Arg[str] = arg(ID)
    body: Arg[Mapping[str, Any] | None] = arg(FIELDS, default=None)


class WorkspacePauseBatchExportOperator(OfBatchExport, WorkspaceWriteOperator):
    """Pause a batch export; a paused one stays paused. Scope ``batch_export:write``."""

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Pause it."""
        answer = hook.send(self.operation_from_arguments(hook, "batch_exports.PauseBatchExport", "body"))
        return {**(self.plain(answer) if answer else {}), "batch_export_id": self.batch_export_id, "paused": True}


class WorkspaceUnpauseBatchExportOperator(OfBatchExport, WorkspaceWriteOperator):
    """
    Resume a batch export; a running one keeps running. Scope ``batch_export:write``.

    :param resume_fields: fields that the API does not name, such as ``{"backfill": True}`` if the service then
        exports the missed intervals. They are sent as they are, without a check
    """

    resume_fields: Arg[Mapping[str, Any] | None] = arg(FIELDS, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Resume it."""
        answer = hook.send(self.operation_from_arguments(hook, "batch_exports.UnpauseBatchExport", "body"))
        return {**(self.plain(answer) if answer else {}), "batch_export_id": self.batch_export_id, "paused": False}
