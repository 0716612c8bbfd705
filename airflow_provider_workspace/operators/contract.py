"""The operator that compares the operations of this package with the OpenAPI document of a service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.arguments import NAMES, REQUIRED_PATH, Arg, arg
from airflow_provider_workspace.operators.base import WorkspaceOperator
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.api.contract import Report
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceCheckContractOperator(WorkspaceOperator):
    """
    Compare the operations of this package with the OpenAPI document of the service, and fail if one will break.

    It needs no scope, and sends no request unless the document is at a URL.

    The result is ``{"breaks": false, "operations": [{"operation", "state", "request", "until", "successor",
    "unknown_fields", "note"}]}``, also of a task that fails.

    :param schema: the document (OpenAPI 3, JSON or YAML): a path relative to the Dag file, or the URL of an object
        store or a web server, to which the API key is sent only if it has the origin of the connection
    :param operations: operations of your own to compare too, by name, such as ``my_package.endpoints.ListBatchExports``
    :raises WorkspaceInputError: if the document cannot be read, is not OpenAPI 3 or is of another service
    """

    schema: Arg[str] = arg(REQUIRED_PATH)
    operations: Arg[Sequence[str]] = arg(NAMES, default=())

    def link_to(self, hook: WorkspaceHook, result: object = None) -> None:
        """Set no link: the workspace has no page about it."""

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Compare, and log a line for each operation."""
        from airflow_provider_workspace.errors import with_problem

        report = check_contract(hook, self.schema, self.operations)
        result = report.to_dict()
        if not report.breaks:
            self.log.info("%s", report.summary())
            return result
        self.push_xcom("return_value", result)
        lines = [finding.line() for finding in report.findings if finding.state != "there"]
        raise AirflowFailException(with_problem("\n".join([report.summary(), *lines]), "contract-broken"))


def check_contract(
    hook: WorkspaceHook, schema: Any, operations: Iterable[str], *, argument: str = "operations"
) -> Report:
    """
    Compare the operations of this package, and those of an author, with an OpenAPI document.

    :param schema: path or URL of the document
    :param operations: names of the author's operations
    :param argument: the argument that holds them, for messages
    :raises WorkspaceError: if the document cannot be read, or an operation cannot be imported
    """
    from airflow_provider_workspace.api.contract import Contract
    from airflow_provider_workspace.api.loading import load_operation
    from airflow_provider_workspace.api.operations import OPERATIONS
    from airflow_provider_workspace.client.read_document import read_document
    from airflow_provider_workspace.files.storage import file_at

    compared = {cls.__name__: cls for cls in OPERATIONS}
    for name in operations:
        compared[name] = load_operation(argument, name)
    settings = hook.client.settings
    is_web = isinstance(schema, str) and schema.lower().startswith(("http://", "https://"))
    text = read_document(schema, settings) if is_web else file_at(schema).read()
    return Contract(text).compare(compared, settings.paths or {})
