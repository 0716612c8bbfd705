"""The base class of the hook: from an Airflow connection to a client."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID

from airflow.sdk import BaseHook

from airflow_provider_workspace.api.no_value import is_no_value, no_value_error
from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.version_compat import (
    AirflowFailException,
    allow_in_xcom,
    get_connection,
    mask_secret,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import Connection
    from typing_extensions import Self

    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings

T = TypeVar("T")

# A task that uses the hook may return a record or report; whoever reads it from XCom has this module as well.
RECORDS = (
    *("User", "Dashboard", "DashboardCollaborator", "DashboardSharing", "BatchExport"),
    *("Domain", "Invite", "Member", "ProjectItem", "Project"),
)
REPORT = "airflow_provider_workspace.procedures.invites_report.InvitesReport"
allow_in_xcom([*(f"airflow_provider_workspace.api.models.{name}" for name in RECORDS), REPORT])


class WorkspaceDoNotRetryError(WorkspaceOutcomeUnknownError, AirflowFailException):
    """
    A write with an unknown outcome that nobody looks up before a retry.

    Airflow fails the task without retries, because a retry could apply the write twice.
    """

    @classmethod
    def of(cls, error: WorkspaceOutcomeUnknownError) -> WorkspaceDoNotRetryError:
        """Return a copy of an error that Airflow does not retry."""
        failure = cls(str(error))
        failure.__dict__.update(error.__dict__)
        return failure


class WorkspaceConnectedHook(BaseHook):
    """
    Base of the hook for workers.

    :param workspace_conn_id: connection to the service
    :param organization_id: default organization of the methods; by default that of the connection
    :param project_id: default project of the methods; by default that of the connection
    """

    conn_name_attr = "workspace_conn_id"
    default_conn_name = "workspace_default"
    conn_type = "workspace"
    hook_name = "Workspace"

    def __init__(
        self,
        workspace_conn_id: str = default_conn_name,
        *,
        organization_id: str | None = None,
        project_id: str | int | None = None,
    ) -> None:
        super().__init__()
        self.workspace_conn_id = workspace_conn_id
        self.organization_id = organization_id
        self.project_id = project_id
        self._client: WorkspaceClient | None = None
        self._process = 0

    @classmethod
    def of(cls, client: WorkspaceClient, workspace_conn_id: str, **defaults: Any) -> Self:
        """Return a hook with a client that was opened before."""
        hook = cls(workspace_conn_id, **defaults)
        hook._client, hook._process = client, os.getpid()
        return hook

    def __enter__(self) -> Self:
        """Use the hook as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections to the service."""
        self.close()

    @classmethod
    def get_connection(cls, conn_id: str) -> Connection:
        """Look up a connection."""
        return get_connection(conn_id)

    @property
    def client(self) -> WorkspaceClient:
        """The client; the connection is read once in each process, because a fork must not share open connections."""
        if self._client is None or self._process != os.getpid():
            self._process = os.getpid()
            self._client = self._open()
        return self._client

    def _open(self) -> WorkspaceClient:
        from airflow_provider_workspace.client.client import WorkspaceClient
        from airflow_provider_workspace.client.settings import read_connection

        try:
            settings = read_connection(self.get_connection(self.workspace_conn_id), self.workspace_conn_id)
            client = WorkspaceClient(settings, mask=mask_secret)
        except WorkspaceConfigError as error:
            raise error.with_traceback(None) from None  # the frames below contain the password
        for secret in settings.secrets():
            mask_secret(secret)
        return client

    def get_conn(self) -> WorkspaceClient:
        """Return the client."""
        return self.client

    def close(self) -> None:
        """Close the connections to the service."""
        if self._client is not None and self._process == os.getpid():
            self._client.close()
        self._client = None

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection with reads; Airflow calls this for the "Test" button."""
        from airflow_provider_workspace.hooks.connection_test import check_connection

        try:
            works, lines = check_connection(self.send, self.client.settings)
        except WorkspaceError as error:
            return False, str(error)
        finally:
            self.close()
        return works, " ".join(lines)

    def send(self, operation: Operation[T]) -> T:
        """
        Send an operation of :mod:`airflow_provider_workspace.api.operations`.

        :raises WorkspaceDoNotRetryError: if the response to a write that is not repeatable was lost
        """
        try:
            return self.client.send(operation)
        except WorkspaceOutcomeUnknownError as error:
            raise WorkspaceDoNotRetryError.of(error) from error.__cause__

    def organization_or_default(self, organization_id: str | None = None) -> str:
        """Return the given organization, else that of the hook, else that of the connection."""
        return _resolve_id("organization_id", organization_id, self.organization_id, self.client.settings)

    def project_or_default(self, project_id: str | int | None = None) -> str:
        """Return the given project, else that of the hook, else that of the connection."""
        return _resolve_id("project_id", project_id, self.project_id, self.client.settings)

    def _rows(self, operation: Operation[Page[T]]) -> Iterator[T]:
        return self.client.rows(operation)


def _resolve_id(
    name: Literal["organization_id", "project_id"], given: Any, default: str | int | None, settings: Settings
) -> str:
    """
    Return the id of the call, else that of the hook, else that of the connection.

    :raises WorkspaceInputError: if an id has the wrong type, or its template found no value
    :raises WorkspaceConfigError: if there is none
    """
    for value in (given, default, getattr(settings, name)):
        if isinstance(value, bool) or not isinstance(value, str | int | UUID | None):
            raise WorkspaceInputError(f"{name} must be an id, not something of type {type(value).__name__}")
        if value is not None:
            if is_no_value(value):
                raise no_value_error(name, value)
            try:
                return str(value)
            except ValueError:
                raise WorkspaceInputError(f"{name} exceeds Python's integer string limit, so it is not an id") from None
    raise WorkspaceConfigError(f"No {name}: pass {name}=…, or set it in the extra of {settings.source}.")
