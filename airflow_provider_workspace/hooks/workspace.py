"""The hook for workers: from an Airflow connection to a client, and a method per operation."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow.sdk import BaseHook

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.ids import check_id
from airflow_provider_workspace.api.templates import is_no_value, no_value_error
from airflow_provider_workspace.client.progress import ProgressLog
from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceError,
    WorkspaceOutcomeUnknownError,
    with_problem,
)
from airflow_provider_workspace.procedures.invites_report import WorkspaceInvitesIncompleteError
from airflow_provider_workspace.version_compat import AirflowFailException, allow_in_xcom, get_connection, mask_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from typing_extensions import Self, Unpack

    from airflow_provider_workspace.api.bodies import (
        BatchExportBody,
        BatchExportResumeBody,
        CollaboratorSettings,
        DashboardBody,
        DomainBody,
        DomainSettings,
        InviteSettings,
        LevelName,
        ProjectBody,
    )
    from airflow_provider_workspace.api.deprecation import Deprecation
    from airflow_provider_workspace.api.models import (
        BatchExport,
        Dashboard,
        DashboardCollaborator,
        DashboardSharing,
        Domain,
        Invite,
        Member,
        Page,
        Project,
        ProjectItem,
    )
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook
    from airflow_provider_workspace.procedures.invites_report import InvitesReport

__all__ = ["WorkspaceAsyncHook", "WorkspaceDoNotRetryError", "WorkspaceHook", "WorkspaceInvitesUnknownError"]

T = TypeVar("T")

# A task that uses the hook may return a record or report; whoever reads it from XCom has this module as well.
RECORDS = (
    *("User", "Dashboard", "DashboardCollaborator", "DashboardSharing", "BatchExport"),
    *("Domain", "Invite", "Member", "ProjectItem", "Project"),
)
REPORT = "airflow_provider_workspace.procedures.invites_report.InvitesReport"
allow_in_xcom([*(f"airflow_provider_workspace.api.models.{name}" for name in RECORDS), REPORT])


def __getattr__(name: str) -> Any:
    """Import the asynchronous hook on first use, since workers do not need it."""
    if name == "WorkspaceAsyncHook":
        from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook

        return WorkspaceAsyncHook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def with_default_ids(hook: WorkspaceHook, cls: type[Operation[Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an operation, with the organization and project that its path needs."""
    from airflow_provider_workspace.api.endpoint import path_fields

    fields = dict(given)
    in_path = path_fields(cls.endpoint.path)
    if "organization_id" in in_path:
        fields["organization_id"] = hook.organization_or_default(given.get("organization_id"))
    if "project_id" in in_path:
        fields["project_id"] = hook.project_or_default(given.get("project_id"))
    return fields


class WorkspaceDoNotRetryError(WorkspaceOutcomeUnknownError, AirflowFailException):
    """
    A write with an unknown outcome that nobody looks up before a retry.

    Airflow fails the task without retries, because a retry could apply the write twice.
    """


class WorkspaceInvitesUnknownError(WorkspaceInvitesIncompleteError, AirflowFailException):
    """
    Some people may or may not have been invited, and a hook does not remember whom to look for.

    Airflow fails the task without retries, because a retry could invite them twice.
    """

    @property
    def permanent(self) -> bool:
        """Whether a retry could invite somebody twice."""
        return True


class WorkspaceConnectionHook(BaseHook):
    """Base of both hooks: the connection, and the default ids of the methods."""

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


class WorkspaceHook(WorkspaceConnectionHook):
    """
    Interact with the workspace administration service, for workers.

    There is a method per operation of the API, with the same argument names. A field that is not set is not sent;
    ``None`` is sent as null. Methods that list are iterators that read page after page. Every method raises
    :class:`~airflow_provider_workspace.errors.WorkspaceInputError` before anything is sent if an argument is invalid,
    and :class:`~airflow_provider_workspace.errors.WorkspaceRequestError` if the request fails.

    :param workspace_conn_id: connection to the service
    :param organization_id: default organization of the methods; by default that of the connection
    :param project_id: default project of the methods; by default that of the connection
    """

    _client: WorkspaceClient | None = None
    _process = 0

    def __enter__(self) -> Self:
        """Use the hook as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections to the service."""
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Let a used hook be copied and pickled: the copy opens connections of its own."""
        return {name: value for name, value in vars(self).items() if name not in ("_client", "_process")}

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
            settings = read_connection(get_connection(self.workspace_conn_id), self.workspace_conn_id)
            client = WorkspaceClient(settings, mask=mask_secret)
        except WorkspaceConfigError as error:
            raise error.with_traceback(None) from None  # the frames below contain the password
        for secret in settings.secrets:
            mask_secret(secret)
        self._prepare(client)
        return client

    def _prepare(self, client: WorkspaceClient) -> None:
        """
        Let Airflow retry no write that may be applied, whoever sends it.

        And let the ids of the hook fill placeholders of ``paths`` before those of the connection.
        """
        client.unknown_class = WorkspaceDoNotRetryError
        if not client.settings.paths:
            return
        for name in ("organization_id", "project_id"):
            if getattr(self, name) is not None:
                client.default_ids[name] = self._id_or_default(name, None)

    @property
    def deprecations(self) -> dict[str, Deprecation]:
        """What the service announced about the end of operations, by their names; nothing is sent for it."""
        return {} if self._client is None else self._client.deprecations

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
            works, lines = check_connection(self.send, self.client)
        except WorkspaceError as error:
            works, lines = False, [str(error)]
        finally:
            self.close()
        text = " ".join(lines)
        if not works:
            text = with_problem(text)
        # The button gives the connection an id for the test, which nobody knows.
        return works, text.replace(f"connection '{self.workspace_conn_id}'", "this connection")

    def send(self, operation: Operation[T]) -> T:
        """
        Send an operation of :mod:`airflow_provider_workspace.api.operations`.

        :raises WorkspaceDoNotRetryError: if the response to a write that is not repeatable was lost
        """
        return self.client.send(operation)

    def organization_or_default(self, organization_id: str | None = None) -> str:
        """Return the given organization, else that of the hook, else that of the connection."""
        return self._id_or_default("organization_id", organization_id)

    def project_or_default(self, project_id: str | int | None = None) -> str:
        """Return the given project, else that of the hook, else that of the connection."""
        return self._id_or_default("project_id", project_id)

    def _id_or_default(self, name: str, given: object) -> str:
        given = getattr(self, name) if given is None else given
        if given is not None:
            if is_no_value(given):
                raise no_value_error(name, given)
            return check_id(name, given)
        settings = self.client.settings
        default: str | None = getattr(settings, name)
        if default is None:
            msg = f"No {name}: pass {name}=…, or set it in the extra of {settings.source}."
            raise WorkspaceConfigError(msg, problem="no-default-id")
        return default

    def _in_organization(self, operation: Callable[..., Operation[T]], organization_id: str | None, **fields: Any) -> T:
        return self.send(operation(organization_id=self.organization_or_default(organization_id), **fields))

    def _in_project(self, operation: Callable[..., Operation[T]], project_id: str | int | None, **fields: Any) -> T:
        return self.send(operation(project_id=self.project_or_default(project_id), **fields))

    def _rows(self, operation: Operation[Page[T]]) -> Iterator[T]:
        return self.client.rows(operation)

    def _rows_of_organization(
        self, operation: Callable[..., Operation[Page[T]]], organization_id: str | None, limit: int | None, offset: int
    ) -> Iterator[T]:
        organization_id = self.organization_or_default(organization_id)
        return self._rows(operation(organization_id=organization_id, limit=limit, offset=offset))

    # Dashboards

    def create_dashboard(self, *, project_id: str | int | None = None, **fields: Unpack[DashboardBody]) -> Dashboard:
        """Create a dashboard in a project. Scope ``dashboard:write``."""
        return self._in_project(ops.dashboards.CreateDashboard, project_id, **fields)

    def get_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """Retrieve a dashboard. Scope ``dashboard:read``."""
        return self._in_project(ops.dashboards.GetDashboard, project_id, dashboard_id=dashboard_id)

    def update_dashboard(
        self, *, dashboard_id: int | str, project_id: str | int | None = None, **fields: Unpack[DashboardBody]
    ) -> Dashboard:
        """Change a dashboard. Scope ``dashboard:write``."""
        return self._in_project(ops.dashboards.UpdateDashboard, project_id, dashboard_id=dashboard_id, **fields)

    def delete_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """
        Delete a dashboard by setting ``deleted`` to true. Scope ``dashboard:write``.

        If the result does not show ``deleted``, read the dashboard to be sure.
        """
        return self.update_dashboard(dashboard_id=dashboard_id, project_id=project_id, deleted=True)

    def get_dashboard_access_controls(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> Dashboard:
        """Retrieve a dashboard with the access level of the API key's owner. The API shows no scope."""
        return self._in_project(ops.dashboards.GetDashboardAccessControls, project_id, dashboard_id=dashboard_id)

    def list_dashboard_collaborators(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> Iterator[DashboardCollaborator]:
        """Yield the collaborators of a dashboard. Scope ``dashboard:read``."""
        project_id = self.project_or_default(project_id)
        return self._rows(ops.dashboards.ListDashboardCollaborators(project_id=project_id, dashboard_id=dashboard_id))

    def add_dashboard_collaborator(
        self,
        *,
        dashboard_id: int | str,
        user_uuid: str,
        project_id: str | int | None = None,
        **fields: Unpack[CollaboratorSettings],
    ) -> DashboardCollaborator:
        """Add a collaborator to a dashboard. Scope ``dashboard:write``."""
        return self._in_project(
            ops.dashboards.AddDashboardCollaborator,
            project_id,
            dashboard_id=dashboard_id,
            user_uuid=user_uuid,
            **fields,
        )

    def remove_dashboard_collaborator(
        self, *, dashboard_id: int | str, user_uuid: str, project_id: str | int | None = None
    ) -> None:
        """Remove a collaborator from a dashboard. Scope ``dashboard:write``."""
        return self._in_project(
            ops.dashboards.RemoveDashboardCollaborator, project_id, dashboard_id=dashboard_id, user_uuid=user_uuid
        )

    def get_dashboard_sharing(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> DashboardSharing:
        """
        Retrieve the sharing configuration of a dashboard. Scope ``sharing_configuration:read``.

        ``access_token`` is a secret. If there are several configurations, the first enabled one is returned, else the
        first; if there are none, ``enabled`` is false.
        """
        return self._in_project(ops.dashboards.GetDashboardSharing, project_id, dashboard_id=dashboard_id)

    # Batch exports

    def pause_batch_export(
        self, *, batch_export_id: UUID | str, organization_id: str | None = None, **fields: Unpack[BatchExportBody]
    ) -> BatchExport | None:
        """Pause a batch export. Returns ``None`` if the response has no body. Scope ``batch_export:write``."""
        return self._in_organization(
            ops.batch_exports.PauseBatchExport, organization_id, batch_export_id=batch_export_id, **fields
        )

    def unpause_batch_export(
        self,
        *,
        batch_export_id: UUID | str,
        organization_id: str | None = None,
        **fields: Unpack[BatchExportResumeBody],
    ) -> BatchExport | None:
        """
        Resume a batch export. Returns ``None`` if the response has no body. Scope ``batch_export:write``.

        ``resume_fields`` are fields that the API does not name, such as ``{"backfill": True}``; they are sent
        unchecked.
        """
        return self._in_organization(
            ops.batch_exports.UnpauseBatchExport, organization_id, batch_export_id=batch_export_id, **fields
        )

    # Domains

    def list_domains(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Domain]:
        """Yield the domains of an organization. Scope ``organization:read``."""
        return self._rows_of_organization(ops.domains.ListDomains, organization_id, limit, offset)

    def create_domain(
        self, *, domain: str, organization_id: str | None = None, **fields: Unpack[DomainSettings]
    ) -> Domain:
        """Create a domain. Scope ``organization:write``."""
        return self._in_organization(ops.domains.CreateDomain, organization_id, domain=domain, **fields)

    def get_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> Domain:
        """Retrieve a domain. Scope ``organization:read``."""
        return self._in_organization(ops.domains.GetDomain, organization_id, domain_id=domain_id)

    def update_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain:
        """Change a domain. Scope ``organization:write``."""
        return self._in_organization(ops.domains.UpdateDomain, organization_id, domain_id=domain_id, **fields)

    def delete_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> None:
        """Delete a domain. Scope ``organization:write``."""
        return self._in_organization(ops.domains.DeleteDomain, organization_id, domain_id=domain_id)

    def verify_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain | None:
        """
        Ask the service to verify a domain now. The API shows no scope.

        Returns ``None`` if the response has no body; then read the domain to see the result.
        """
        return self._in_organization(ops.domains.VerifyDomain, organization_id, domain_id=domain_id, **fields)

    # Invites

    def list_invites(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Invite]:
        """Yield the invites of an organization, including expired ones. Scope ``organization_member:read``."""
        return self._rows_of_organization(ops.invites.ListInvites, organization_id, limit, offset)

    def create_invite(
        self, *, target_email: str, organization_id: str | None = None, **fields: Unpack[InviteSettings]
    ) -> Invite:
        """Create an invite. Scope ``organization_member:write``."""
        return self._in_organization(ops.invites.CreateInvite, organization_id, target_email=target_email, **fields)

    def delete_invite(self, *, invite_id: UUID | str, organization_id: str | None = None) -> None:
        """Delete an invite. Scope ``organization_member:write``."""
        return self._in_organization(ops.invites.DeleteInvite, organization_id, invite_id=invite_id)

    def create_invites(
        self,
        invites: Iterable[Mapping[str, Any] | Sequence[Any] | str],
        *,
        organization_id: str | None = None,
        on_invalid: Literal["fail", "skip"] = "fail",
    ) -> InvitesReport:
        """
        Invite many people, each once. Scopes ``organization_member:write`` and ``organization_member:read``.

        All rows are checked before anything is sent. Members, people with an open invite and duplicate addresses are
        skipped. The others are invited in chunks of the connection's ``bulk_invite_limit``. After a lost response the
        invites are looked up, and only the missing ones are sent again. If a rate limit of invites would need a wait
        longer than the connection's ``max_retry_wait``, an error with ``retry_after`` is raised.

        A hook remembers nothing: after an error with rows that are ``unknown``, or a killed task, call it again once
        the connection's ``consistency_time`` is over. ``WorkspaceCreateInvitesOperator`` does that by itself.

        :param invites: rows of invite fields (``email`` is an alias of ``target_email``), or addresses
        :param on_invalid: ``fail`` if a row is invalid, or ``skip`` the row
        :return: counts and the status of each row
        :raises WorkspaceInputError: if a row is invalid, before anything is sent
        :raises WorkspaceInvitesIncompleteError: if somebody could not be invited; it has the report
        :raises WorkspaceInvitesUnknownError: if somebody may or may not have been invited; it has the report
        """
        from airflow_provider_workspace.procedures.invites import RUN_AGAIN, invite_all
        from airflow_provider_workspace.procedures.roster_files import read_roster

        try:
            return invite_all(
                self.client,
                read_roster(invites),
                organization_id=self.organization_or_default(organization_id),
                on_invalid=on_invalid,
                clock=time.time,
                monotonic=time.monotonic,
                max_wait=self.client.settings.max_retry_wait,
                progress=ProgressLog(),
            )
        except WorkspaceInvitesIncompleteError as error:
            if not error.report.counts["unknown"]:
                raise
            cure = (
                f"The lists may show who was invited later. Wait for {self.client.settings.consistency_time:g} s, then "
                "clear the task or run this again: it sends only the missing invites."
            )
            msg = str(error.args[0]).replace(RUN_AGAIN, cure)
            raise WorkspaceInvitesUnknownError(msg, error.report, error.cause, error.retry_after) from error.__cause__

    # Members

    def list_members(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Member]:
        """Yield the members of an organization. Scope ``organization_member:read``."""
        return self._rows_of_organization(ops.members.ListMembers, organization_id, limit, offset)

    def update_member(self, *, user_uuid: str, level: int | LevelName, organization_id: str | None = None) -> Member:
        """Change the access level of a member, a number or a name. Scope ``organization_member:write``."""
        return self._in_organization(ops.members.UpdateMember, organization_id, user_uuid=user_uuid, level=level)

    def delete_member(self, *, user_uuid: str, organization_id: str | None = None) -> None:
        """Remove a member from the organization. Scope ``organization_member:write``."""
        return self._in_organization(ops.members.DeleteMember, organization_id, user_uuid=user_uuid)

    # Projects

    def list_projects(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[ProjectItem]:
        """Yield the projects of an organization. Scope ``project:read``."""
        return self._rows_of_organization(ops.projects.ListProjects, organization_id, limit, offset)

    def create_project(self, *, organization_id: str | None = None, **fields: Unpack[ProjectBody]) -> Project:
        """Create a project. Scope ``project:write``."""
        return self._in_organization(ops.projects.CreateProject, organization_id, **fields)

    def get_project(self, *, project_id: int | str, organization_id: str | None = None) -> Project:
        """Retrieve a project. Scope ``project:read``."""
        return self._in_organization(ops.projects.GetProject, organization_id, project_id=project_id)
