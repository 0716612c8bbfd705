"""Base classes of the operators that get, list, create, change or delete one kind of record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_workspace.operators.arguments import FILTER, INTEGER, NAMES, SWITCH, Arg, arg, choice, fixed
from airflow_provider_workspace.operators.base import WorkspaceOperator, WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceGetOperator(WorkspaceOperator):
    """Base of the operators that retrieve a record."""

    operation: ClassVar[str]
    """Module and class of the operation."""

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Retrieve the record."""
        read = self.operation_from_arguments(hook, self.operation)
        return self.plain(hook.send(read))


class WorkspaceCreateOperator(WorkspaceWriteOperator):
    """
    Base of the operators that create a record unless it exists.

    :param if_exists: what to do if the record exists: ``return`` it, or ``fail``
    """

    if_exists: Literal["return", "fail"] = fixed(choice("return", "fail"), default="return")
    operation: ClassVar[str]
    """Module and class of the operation."""

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Create the record unless it exists, and return it."""
        return self.create(hook, self.operation_from_arguments(hook, self.operation))

    def create(self, hook: WorkspaceHook, operation: Operation[Any]) -> dict[str, Any]:
        """Create a record unless it exists, and return it."""
        from airflow_provider_workspace.procedures import ensure

        record, self.created = ensure.create(hook.client, operation, if_exists=self.if_exists, memory=self.task_state)
        return self.compared(operation, record)


class WorkspaceUpdateOperator(WorkspaceWriteOperator):
    """
    Base of the operators that change a record; what is not given stays as it is.

    :param set_null: names of fields to set to null
    """

    set_null: Arg[Sequence[str]] = arg(NAMES, default=())
    operation: ClassVar[str]
    """Module and class of the operation."""
    read_operation: ClassVar[str]
    """The operation that reads the record."""

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Change the record, and read it until it shows the change."""
        from airflow_provider_workspace.errors import WorkspaceInputError

        update = self.operation_from_arguments(hook, self.operation, "set_null")
        if not update.payload():
            raise WorkspaceInputError(
                "There is nothing to change: no field has a value. Pass one, or name fields in set_null"
            )
        read = self.operation_from_arguments(hook, self.read_operation)
        return self.changed(hook.client, update, lambda: hook.send(read))


class WorkspaceDeleteOperator(WorkspaceWriteOperator):
    """
    Base of the operators that delete what a list shows.

    :param if_missing: what to do if the record does not exist: ``ignore`` it, or ``fail``
    """

    if_missing: Literal["ignore", "fail"] = fixed(choice("ignore", "fail"), default="ignore")
    operation: ClassVar[str]
    """Module and class of the operation."""
    list_operation: ClassVar[str]
    """The operation that lists what is left."""

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Delete the record, and look whether it is gone."""
        from airflow_provider_workspace.api.endpoint import path_fields
        from airflow_provider_workspace.procedures.find import find_by_id

        delete = self.operation_from_arguments(hook, self.operation)
        listed = self.operation_from_arguments(hook, self.list_operation)
        id_field = path_fields(delete.endpoint.path)[-1]
        record_id = getattr(delete, id_field)
        kind = id_field.removesuffix("_id")
        what = f"{kind} {record_id}"
        deleted = self.remove(hook, what, delete, find=lambda: find_by_id(hook.client, listed, record_id))
        return {id_field: record_id, "deleted": deleted}

    def remove(self, hook: WorkspaceHook, what: str, operation: Operation[Any], **options: Any) -> bool:
        """Remove a record; the keyword arguments are those of ``ensure.remove``."""
        from airflow_provider_workspace.procedures import ensure

        return ensure.remove(hook.client, what, operation, if_missing=self.if_missing, **options)


class SelectsRows(WorkspaceOperator):
    """
    Base of the operators that read all pages of a list and return the selected rows.

    :param where: return the rows whose fields have these values, such as ``{"is_expired": True, "user.email":
        ["a@example.com", "b@example.com"]}``: a dot selects a nested field, a list holds alternatives. ``{"last_login":
        {"before": "90d"}}`` selects times more than 90 days ago, and rows without a time. Write ``extra.`` before a
        field that the API does not name
    :param fields: fields to return of each row, written as in ``where``; by default all
    :param count_only: return only the number of rows
    :param max_rows: the task fails if more rows remain, because XCom is not made for long lists
    """

    where: Arg[Mapping[str, Any] | None] = arg(FILTER, default=None)
    fields: Arg[Sequence[str] | None] = arg(NAMES, default=None)
    count_only: Arg[bool] = arg(SWITCH, default=False)
    max_rows: int = fixed(INTEGER, default=1000)

    def read_rows(self, hook: WorkspaceHook, listed: Operation[Any]) -> list[dict[str, Any]] | int:
        """Read a list, one page at a time."""
        from typing import get_args

        from airflow_provider_workspace.operators import row_filter

        (model,) = get_args(listed.endpoint.result.model_fields["results"].annotation)
        where = row_filter.check_where(self.where or {}, model, return_secrets=self.return_secrets)
        fields = row_filter.check_fields(self.fields or [], model, return_secrets=self.return_secrets)
        records = hook.client.rows(listed)
        if where or fields:
            records = row_filter.rows_with_fields(listed, records, where, fields)
        selected = row_filter.filter_rows(
            records,
            where=where,
            fields=fields,
            count_only=self.count_only,
            max_rows=self.max_rows,
            return_secrets=self.return_secrets,
        )
        count = selected if isinstance(selected, int) else len(selected)
        self.log.info("%d rows", count)
        return selected


class WorkspaceListOperator(SelectsRows):
    """Base of the operators that list."""

    operation: ClassVar[str]
    """Module and class of the operation."""

    def work(self, hook: WorkspaceHook) -> list[dict[str, Any]] | int:
        """Return the selected rows."""
        return self.read_rows(hook, self.operation_from_arguments(hook, self.operation))
