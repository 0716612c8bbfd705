"""The hook for workers: a connection in, a named method per operation out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from airflow.sdk import BaseHook
from airflow.sdk.log import mask_secret

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.outcome import is_in_doubt, refuses_all
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError
from airflow_provider_workspace.hooks.connection import pick, read_connection
from airflow_provider_workspace.hooks.progress import ProgressLog
from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook

if TYPE_CHECKING:
    from uuid import UUID

    from typing_extensions import Unpack

    from airflow_provider_workspace.api.bodies import (
        BatchExportBody,
        BatchExportResumeBody,
        CollaboratorSettings,
        DashboardBody,
        DomainBody,
        DomainSettings,
        InviteSettings,
        ProjectBody,
    )
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
    from airflow_provider_workspace.client.sync import WorkspaceClient
    from airflow_provider_workspace.procedures.bulk_invites import InvitesReport
    from airflow_provider_workspace.procedures.quota import Quota
    from airflow_provider_workspace.procedures.snapshot import Procedure, Snapshot

__all__ = ["WorkspaceAsyncHook", "WorkspaceHook"]

T = TypeVar("T")


class WorkspaceHook(BaseHook):
    """
    The workspace administration service, for workers.

    Each method is one operation of the interface. Its arguments are named as there; a field that is not given is not
    sent, a field given as ``None`` is sent as null. Methods that list are generators that read page after page.
    Every method raises :class:`~airflow_provider_workspace.errors.WorkspaceInputError` before anything is sent if an
    argument is wrong, and a :class:`~airflow_provider_workspace.errors.WorkspaceRequestError` if the request fails.

    :param workspace_conn_id: connection to the service
    :param organization_id: organization for methods that are not given one; by default that of the connection
    :param project_id: project for methods that are not given one; by default that of the connection
    """

    conn_name_attr = "workspace_conn_id"
    default_conn_name = "workspace_default"
    conn_type = "workspace"
    hook_name = "Workspace"
    plan_only: ClassVar[bool] = False

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

    @cached_property
    def client(self) -> WorkspaceClient:
        """The client; the connection is looked up once."""
        from airflow_provider_workspace.client.sync import WorkspaceClient

        settings = read_connection(self.get_connection(self.workspace_conn_id), self.workspace_conn_id)
        for secret in settings.secrets():
            mask_secret(secret)
        return WorkspaceClient(settings, mask=mask_secret)

    def get_conn(self) -> WorkspaceClient:
        """Return the client."""
        return self.client

    def close(self) -> None:
        """Close the connections to the service."""
        if "client" in self.__dict__:
            self.client.close()
            del self.__dict__["client"]

    def test_connection(self) -> tuple[bool, str]:
        """Read a little, change nothing, and say what that confirmed: the "Test" button of the connection form."""
        from airflow_provider_workspace.hooks.connection_test import check_connection

        try:
            works, lines = check_connection(self.send, self.client.settings)
        except WorkspaceError as error:
            return False, str(error)
        finally:
            self.close()
        return works, " ".join(lines)

    def send(self, operation: Operation[T]) -> T:
        """Send any operation of :mod:`airflow_provider_workspace.api.operations`."""
        return self.client.send(operation)

    def organization_or_default(self, organization_id: str | None = None) -> str:
        """Return the organization that is meant: the given one, that of the hook, or that of the connection."""
        return pick("organization_id", organization_id, self.organization_id, self.client.settings)

    def project_or_default(self, project_id: str | int | None = None) -> str:
        """Return the project that is meant: the given one, that of the hook, or that of the connection."""
        return pick("project_id", project_id, self.project_id, self.client.settings)

    def _rows(self, operation: Operation[Page[T]]) -> Iterator[T]:
        return self.client.rows(operation)

    # Dashboards

    def create_dashboard(self, *, project_id: str | int | None = None, **fields: Unpack[DashboardBody]) -> Dashboard:
        """Create a dashboard in a project. Scope ``dashboard:write``."""
        return self.send(ops.CreateDashboard(project_id=self.project_or_default(project_id), **fields))

    def get_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """Retrieve a dashboard. Scope ``dashboard:read``."""
        return self.send(ops.GetDashboard(project_id=self.project_or_default(project_id), dashboard_id=dashboard_id))

    def update_dashboard(
        self, *, dashboard_id: int | str, project_id: str | int | None = None, **fields: Unpack[DashboardBody]
    ) -> Dashboard:
        """Change a dashboard. Scope ``dashboard:write``."""
        return self.send(
            ops.UpdateDashboard(project_id=self.project_or_default(project_id), dashboard_id=dashboard_id, **fields)
        )

    def delete_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """Delete a dashboard the only way there is: set ``deleted`` to true. Scope ``dashboard:write``."""
        return self.update_dashboard(dashboard_id=dashboard_id, project_id=project_id, deleted=True)

    def get_dashboard_access_controls(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> Dashboard:
        """Retrieve a dashboard with the key owner's access level. The interface shows no scope."""
        return self.send(
            ops.GetDashboardAccessControls(project_id=self.project_or_default(project_id), dashboard_id=dashboard_id)
        )

    def list_dashboard_collaborators(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> Iterator[DashboardCollaborator]:
        """Yield the collaborators of a dashboard. Scope ``dashboard:read``."""
        return self._rows(
            ops.ListDashboardCollaborators(project_id=self.project_or_default(project_id), dashboard_id=dashboard_id)
        )

    def add_dashboard_collaborator(
        self,
        *,
        dashboard_id: int | str,
        user_uuid: str,
        project_id: str | int | None = None,
        **fields: Unpack[CollaboratorSettings],
    ) -> DashboardCollaborator:
        """Let a person work on a dashboard. Scope ``dashboard:write``."""
        return self.send(
            ops.AddDashboardCollaborator(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id, user_uuid=user_uuid, **fields
            )
        )

    def remove_dashboard_collaborator(
        self, *, dashboard_id: int | str, user_uuid: str, project_id: str | int | None = None
    ) -> None:
        """Take a person off a dashboard. Scope ``dashboard:write``."""
        return self.send(
            ops.RemoveDashboardCollaborator(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id, user_uuid=user_uuid
            )
        )

    def get_dashboard_sharing(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> DashboardSharing:
        """Retrieve how a dashboard is shared; ``access_token`` is a secret. Scope ``sharing_configuration:read``."""
        return self.send(
            ops.GetDashboardSharing(project_id=self.project_or_default(project_id), dashboard_id=dashboard_id)
        )

    # Batch exports

    def pause_batch_export(
        self,
        *,
        batch_export_id: UUID | str,
        organization_id: str | None = None,
        **fields: Unpack[BatchExportBody],
    ) -> BatchExport | None:
        """Pause a batch export; ``None`` if the answer says nothing. Scope ``batch_export:write``."""
        return self.send(
            ops.PauseBatchExport(
                organization_id=self.organization_or_default(organization_id), batch_export_id=batch_export_id, **fields
            )
        )

    def unpause_batch_export(
        self,
        *,
        batch_export_id: UUID | str,
        organization_id: str | None = None,
        **fields: Unpack[BatchExportResumeBody],
    ) -> BatchExport | None:
        """
        Resume a batch export; ``None`` if the answer says nothing. Scope ``batch_export:write``.

        ``resume_fields`` holds fields that the interface does not name, such as ``{"backfill": True}``; they are sent
        as they are, and nothing checks them.
        """
        return self.send(
            ops.UnpauseBatchExport(
                organization_id=self.organization_or_default(organization_id), batch_export_id=batch_export_id, **fields
            )
        )

    # Domains

    def list_domains(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Domain]:
        """Yield the domains of an organization. Scope ``organization:read``."""
        return self._rows(
            ops.ListDomains(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def create_domain(
        self, *, domain: str, organization_id: str | None = None, **fields: Unpack[DomainSettings]
    ) -> Domain:
        """Claim a domain. Scope ``organization:write``."""
        return self.send(
            ops.CreateDomain(organization_id=self.organization_or_default(organization_id), domain=domain, **fields)
        )

    def get_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> Domain:
        """Retrieve a domain. Scope ``organization:read``."""
        return self.send(
            ops.GetDomain(organization_id=self.organization_or_default(organization_id), domain_id=domain_id)
        )

    def update_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain:
        """Change a domain. Scope ``organization:write``."""
        return self.send(
            ops.UpdateDomain(
                organization_id=self.organization_or_default(organization_id), domain_id=domain_id, **fields
            )
        )

    def delete_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> None:
        """Delete a domain. Scope ``organization:write``."""
        return self.send(
            ops.DeleteDomain(organization_id=self.organization_or_default(organization_id), domain_id=domain_id)
        )

    def verify_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain | None:
        """Ask for verification now; ``None`` if the answer says nothing, so read the domain. No scope is shown."""
        return self.send(
            ops.VerifyDomain(
                organization_id=self.organization_or_default(organization_id), domain_id=domain_id, **fields
            )
        )

    # Invites

    def list_invites(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Invite]:
        """Yield the invites of an organization, expired ones included. Scope ``organization_member:read``."""
        return self._rows(
            ops.ListInvites(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def create_invite(
        self, *, target_email: str, organization_id: str | None = None, **fields: Unpack[InviteSettings]
    ) -> Invite:
        """Invite one person. Scope ``organization_member:write``."""
        return self.send(
            ops.CreateInvite(
                organization_id=self.organization_or_default(organization_id), target_email=target_email, **fields
            )
        )

    def delete_invite(self, *, invite_id: UUID | str, organization_id: str | None = None) -> None:
        """Withdraw an invite. Scope ``organization_member:write``."""
        return self.send(
            ops.DeleteInvite(organization_id=self.organization_or_default(organization_id), invite_id=invite_id)
        )

    def create_invites(
        self,
        invites: Iterable[Mapping[str, Any] | str],
        *,
        organization_id: str | None = None,
        on_invalid: Literal["fail", "skip"] = "fail",
        quota: Quota | None = None,
        earlier: Collection[int] = (),
    ) -> InvitesReport:
        """
        Invite many people, each once. Scopes ``organization_member:write`` and ``organization_member:read``.

        Every row is checked before anything is sent. Members, people with a living invite and repeated addresses are
        left out. What is left goes out in chunks of the connection's ``bulk_invite_limit``; after a lost or bad answer
        it is looked up what arrived, and only the rest is sent.

        :param invites: rows of invite fields (``email`` is understood for ``target_email``), or just addresses
        :param on_invalid: refuse everything if a row is wrong, or leave such rows out
        :param quota: how many may go out now; the report's ``again_at`` says when the others may
        :param earlier: rows that an earlier part of the same task invited, and that count as invited
        :return: counts and what became of each row
        :raises WorkspaceInputError: for a wrong row, before anything is sent
        :raises WorkspaceInvitesIncompleteError: if somebody could not be invited; it carries the report
        """
        from airflow_provider_workspace.procedures.bulk_invites import invite_all

        settings = self.client.settings
        steps = invite_all(
            invites,
            organization_id=self.organization_or_default(organization_id),
            on_invalid=on_invalid,
            limit=settings.bulk_invite_limit,
            body=settings.bulk_invite_body,
            page_size=settings.page_size,
            progress=ProgressLog("Invites"),
            quota=quota,
            earlier=earlier,
            plan_only=self.plan_only,
        )
        return self.take(steps)

    def look(
        self,
        subject: str,
        *,
        before: Snapshot | None = None,
        wanted: Collection[str] | None = None,
        organization_id: str | None = None,
    ) -> Snapshot:
        """Look once at what sensors wait for, see :func:`airflow_provider_workspace.procedures.snapshot.look`."""
        from airflow_provider_workspace.procedures.snapshot import look

        organization_id = self.organization_or_default(organization_id)
        return self.take(look(subject, organization_id, self.client.settings.page_size, before=before, wanted=wanted))

    def take(self, steps: Procedure[T]) -> T:
        """Send what the steps ask for, until they have their result."""
        try:
            operations = next(steps)
            while True:
                results = self._try_all(operations)
                if any(is_in_doubt(result) for result in results):
                    self.client.settle()
                operations = steps.send(results)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _try_all(self, operations: list[Operation[Any]]) -> list[Any]:
        """Send operations, several at once, until one is refused as the others would be; return results and errors."""
        refused: list[WorkspaceRequestError] = []

        def one(operation: Operation[Any]) -> Any:
            if refused:
                return refused[0]
            try:
                return self.send(operation)
            except WorkspaceRequestError as error:
                if refuses_all(error):
                    refused.append(error)
                return error

        if len(operations) == 1:
            return [one(operations[0])]
        pool = ThreadPoolExecutor(self.client.settings.max_concurrency, thread_name_prefix="workspace")
        try:
            # Each thread traces and logs as this one does.
            return [task.result() for task in [pool.submit(copy_context().run, one, item) for item in operations]]
        finally:
            # A task that is stopped waits for what is under way, and sends no more.
            pool.shutdown(cancel_futures=True)

    # Members

    def list_members(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Member]:
        """Yield the members of an organization. Scope ``organization_member:read``."""
        return self._rows(
            ops.ListMembers(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def update_member(self, *, user_uuid: str, level: int, organization_id: str | None = None) -> Member:
        """Change the access level of a member. Scope ``organization_member:write``."""
        return self.send(
            ops.UpdateMember(
                organization_id=self.organization_or_default(organization_id), user_uuid=user_uuid, level=level
            )
        )

    def delete_member(self, *, user_uuid: str, organization_id: str | None = None) -> None:
        """Remove a member from the organization. Scope ``organization_member:write``."""
        return self.send(
            ops.DeleteMember(organization_id=self.organization_or_default(organization_id), user_uuid=user_uuid)
        )

    # Projects

    def list_projects(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[ProjectItem]:
        """Yield the projects of an organization. Scope ``project:read``."""
        return self._rows(
            ops.ListProjects(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def create_project(self, *, organization_id: str | None = None, **fields: Unpack[ProjectBody]) -> Project:
        """Create a project. Scope ``project:write``."""
        return self.send(ops.CreateProject(organization_id=self.organization_or_default(organization_id), **fields))

    def get_project(self, *, project_id: int | str, organization_id: str | None = None) -> Project:
        """Retrieve a project. Scope ``project:read``."""
        return self.send(
            ops.GetProject(organization_id=self.organization_or_default(organization_id), project_id=project_id)
        )
