"""The operator for endpoints that the interface does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.arguments import ENDPOINT_FIELDS, NAMES, NEEDED, Arg, arg, fixed
from airflow_provider_workspace.operators.base import WorkspaceWriteOperator
from airflow_provider_workspace.operators.crud import SelectsRows

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceSendOperator(SelectsRows, WorkspaceWriteOperator):
    """
    Send an operation of your own, for an endpoint that this package does not have. It needs the scope of its endpoint.

    The result is the record; the selected rows of all pages if the operation returns a ``Page``; whether it was
    ``deleted`` by one that removes; ``None`` if the response has no content.

    :param operation: the operation; one that is given by its name, such as ``my_package.endpoints.ListBatchExports``,
        is imported when the task runs
    :type operation: class or its name
    :param arguments: fields of the operation by name; the organization and project of its path are by default those of
        the connection. A field whose template has no value is left out
    :type arguments: ``dict``
    :param set_null: names of fields to set to null
    :raises WorkspaceInputError: if ``operation`` is not decorated with ``@endpoint``, or a field is invalid
    """

    operation: Any = fixed(NEEDED)
    arguments: Arg[Any] = arg(ENDPOINT_FIELDS, default=None)
    set_null: Arg[Sequence[str]] = arg(NAMES, default=())

    def link_to(self, hook: WorkspaceHook, result: object = None) -> None:
        """Set no link: the pages of other resources are not known."""

    def own_operation(self, hook: WorkspaceHook) -> Operation[Any]:
        """Return the operation with its arguments, and the defaults of the connection."""
        from airflow_provider_workspace.api.loading import load_operation
        from airflow_provider_workspace.hooks.workspace import with_default_ids

        cls: type[Operation[Any]] = load_operation("operation", self.operation)
        nulls = dict.fromkeys(self.set_null)
        arguments = {**(self.arguments or {}), **nulls}
        return cls(**with_default_ids(hook, cls, arguments))

    def work(self, hook: WorkspaceHook) -> Any:
        """Write, list or read."""
        from airflow_provider_workspace.api.endpoint import is_page
        from airflow_provider_workspace.errors import WorkspaceInputError

        operation = self.own_operation(hook)
        if operation.endpoint.is_write:
            return super().work(hook)
        if is_page(operation.endpoint.result):
            return self.read_rows(hook, operation)
        if self.where or self.fields or self.count_only:
            name = type(operation).__name__
            raise WorkspaceInputError(f"Leave out where, fields and count_only: {name} returns no Page")
        return self.to_json(hook.client.send(operation))

    def write(self, hook: WorkspaceHook) -> Any:
        """Send the write, once if it is not repeatable."""
        from airflow_provider_workspace.api.models import Resource
        from airflow_provider_workspace.errors import WorkspaceError, WorkspaceOutcomeUnknownError
        from airflow_provider_workspace.procedures import ensure

        operation, state = self.own_operation(hook), self.task_state
        endpoint, name = operation.endpoint, type(operation).__name__
        # Airflow keeps the state of a cleared task, whose max_tries is higher: a person has looked.
        max_tries = getattr(self._context.get("ti"), "max_tries", None)
        what = f"{name} {max_tries}"
        if not endpoint.repeatable and state.age(what) is not None:
            raise WorkspaceOutcomeUnknownError(
                f"{name} may or may not have been applied: an earlier try of this task was interrupted. "
                f"{endpoint.look_for} To send it again, clear this task; before Airflow 3.3, start a new run. It was "
                "not sent again, because that could apply it twice.",
                operation=name,
                retryable=False,
            )
        state.begin(what)
        try:
            if endpoint.effect == "remove":
                return {"deleted": ensure.remove(hook.client, name, operation)}
            answer = hook.client.send(operation)
        except WorkspaceError as error:
            if not isinstance(error, WorkspaceOutcomeUnknownError):
                state.forget()  # refused or not sent
            raise
        self.created = endpoint.effect == "create" or None
        return self.compared(operation, answer) if isinstance(answer, Resource) else self.to_json(answer)

    def to_json(self, answer: Any) -> Any:
        """Return a result as plain JSON."""
        if isinstance(answer, list):
            return [self.plain(each) for each in answer]
        return None if answer is None else self.plain(answer)
