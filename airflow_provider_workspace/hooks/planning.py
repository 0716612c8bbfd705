"""The hook of a task that only plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow_provider_workspace.errors import WorkspaceWritePlannedError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")


class WorkspacePlanningHook(WorkspaceHook):
    """Reads as the hook does, and sends no write: whatever decides to write finds that out here."""

    plan_only: ClassVar[bool] = True

    def send(self, operation: Operation[T]) -> T:
        """
        Send an operation that reads.

        :raises WorkspaceWritePlannedError: for one that writes, instead of sending it
        """
        if operation.endpoint.method == "GET":
            return super().send(operation)
        request = operation.request()
        body: Any = None if request.body is None else operation.payload()
        raise WorkspaceWritePlannedError(type(operation).__name__, f"{request.method} {request.target}", body)
