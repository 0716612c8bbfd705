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

    If a request had no answer, the service may have resumed the export, and then it does not read the ``resume_fields``
    of the next one: the task warns, and the XCom ``resume_fields_in_doubt`` has the export.

    :param resume_fields: fields that the API does not name, such as ``{"backfill": True}`` if the service then exports
        the missed intervals
    """

    resume_fields: Arg[Mapping[str, Any] | None] = arg(FIELDS, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Resume it."""
        from airflow_provider_workspace.api.outcome import Outcome
        from airflow_provider_workspace.errors import WorkspaceRequestError

        resume = self.operation_from_arguments(hook, "batch_exports.UnpauseBatchExport", "body")
        what = f"resume batch export {self.batch_export_id}"
        doubts = [self.task_state.has_begun(what)]
        if self.resume_fields:
            self.task_state.begin(what)
        try:
            answer = hook.client.send(resume, note=doubts.append)
        except WorkspaceRequestError as error:
            if error.outcome != Outcome.UNKNOWN.value and not any(doubts):
                self.task_state.forget()
            raise
        self.task_state.forget()
        if self.resume_fields and any(doubts):
            from airflow_provider_workspace.windows.resuming import FIELDS_IN_DOUBT

            self.log.warning("Batch export %s: %s", self.batch_export_id, FIELDS_IN_DOUBT)
            if self.do_xcom_push:
                self.push_xcom("resume_fields_in_doubt", [self.batch_export_id])
        return {**(self.plain(answer) if answer else {}), "batch_export_id": self.batch_export_id, "paused": False}
