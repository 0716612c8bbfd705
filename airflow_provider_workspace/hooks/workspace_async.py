"""The hook for the event loop, method for method the twin of the one for workers; a test holds them equal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow.sdk import BaseHook

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.outcome import is_in_doubt, refuses_all
from airflow_provider_workspace.errors import WorkspaceRequestError
from airflow_provider_workspace.hooks.connection import pick, read_connection
from airflow_provider_workspace.hooks.progress import ProgressLog
from airflow_provider_workspace.version_compat import aget_connection, amask_secret

if TYPE_CHECKING:
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
        Project,
        ProjectItem,
    )
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.aio import WorkspaceAsyncClient
    from airflow_provider_workspace.procedures.bulk_invites import InvitesReport
    from airflow_provider_workspace.procedures.quota import Quota
    from airflow_provider_workspace.procedures.snapshot import Procedure, Snapshot

T = TypeVar("T")


class WorkspaceAsyncHook(BaseHook):
    """
    The workspace administration service, for the event loop.

    The methods are those of :class:`~airflow_provider_workspace.hooks.workspace.WorkspaceHook`, to be awaited; those
    that list are asynchronous generators. Close the hook, or use it in ``async with``.

    :param workspace_conn_id: connection to the service
    :param organization_id: organization for methods that are not given one; by default that of the connection
    :param project_id: project for methods that are not given one; by default that of the connection
    """

    def __init__(
        self,
        workspace_conn_id: str = "workspace_default",
        *,
        organization_id: str | None = None,
        project_id: str | int | None = None,
    ) -> None:
        super().__init__()
        self.workspace_conn_id = workspace_conn_id
        self.organization_id = organization_id
        self.project_id = project_id
        self._client: WorkspaceAsyncClient | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Use the hook in an ``async with`` statement."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections to the service."""
        await self.aclose()

    async def client(self) -> WorkspaceAsyncClient:
        """Return the client; the connection is looked up once."""
        if self._client is None:
            async with self._opening:
                if self._client is None:
                    self._client = await self._open()
        return self._client

    async def _open(self) -> WorkspaceAsyncClient:
        from airflow_provider_workspace.client.aio import WorkspaceAsyncClient

        settings = read_connection(await aget_connection(self.workspace_conn_id), self.workspace_conn_id)
        for secret in settings.secrets():
            await amask_secret(secret)
        return WorkspaceAsyncClient(settings, mask=amask_secret)

    async def aclose(self) -> None:
        """Close the connections to the service."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def send(self, operation: Operation[T]) -> T:
        """Send any operation of :mod:`airflow_provider_workspace.api.operations`."""
        return await (await self.client()).send(operation)

    async def organization_or_default(self, organization_id: str | None = None) -> str:
        """Return the organization that is meant: the given one, that of the hook, or that of the connection."""
        return pick("organization_id", organization_id, self.organization_id, (await self.client()).settings)

    async def project_or_default(self, project_id: str | int | None = None) -> str:
        """Return the project that is meant: the given one, that of the hook, or that of the connection."""
        return pick("project_id", project_id, self.project_id, (await self.client()).settings)

    # Dashboards

    async def create_dashboard(
        self, *, project_id: str | int | None = None, **fields: Unpack[DashboardBody]
    ) -> Dashboard:
        """Create a dashboard in a project. Scope ``dashboard:write``."""
        return await self.send(ops.CreateDashboard(project_id=await self.project_or_default(project_id), **fields))

    async def get_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """Retrieve a dashboard. Scope ``dashboard:read``."""
        return await self.send(
            ops.GetDashboard(project_id=await self.project_or_default(project_id), dashboard_id=dashboard_id)
        )

    async def update_dashboard(
        self, *, dashboard_id: int | str, project_id: str | int | None = None, **fields: Unpack[DashboardBody]
    ) -> Dashboard:
        """Change a dashboard. Scope ``dashboard:write``."""
        return await self.send(
            ops.UpdateDashboard(
                project_id=await self.project_or_default(project_id), dashboard_id=dashboard_id, **fields
            )
        )

    async def delete_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """Delete a dashboard the only way there is: set ``deleted`` to true. Scope ``dashboard:write``."""
        return await self.update_dashboard(dashboard_id=dashboard_id, project_id=project_id, deleted=True)

    async def get_dashboard_access_controls(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> Dashboard:
        """Retrieve a dashboard with the key owner's access level. The interface shows no scope."""
        return await self.send(
            ops.GetDashboardAccessControls(
                project_id=await self.project_or_default(project_id), dashboard_id=dashboard_id
            )
        )

    async def list_dashboard_collaborators(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> AsyncIterator[DashboardCollaborator]:
        """Yield the collaborators of a dashboard. Scope ``dashboard:read``."""
        operation = ops.ListDashboardCollaborators(
            project_id=await self.project_or_default(project_id), dashboard_id=dashboard_id
        )
        async for row in (await self.client()).rows(operation):
            yield row

    async def add_dashboard_collaborator(
        self,
        *,
        dashboard_id: int | str,
        user_uuid: str,
        project_id: str | int | None = None,
        **fields: Unpack[CollaboratorSettings],
    ) -> DashboardCollaborator:
        """Let a person work on a dashboard. Scope ``dashboard:write``."""
        return await self.send(
            ops.AddDashboardCollaborator(
                project_id=await self.project_or_default(project_id),
                dashboard_id=dashboard_id,
                user_uuid=user_uuid,
                **fields,
            )
        )

    async def remove_dashboard_collaborator(
        self, *, dashboard_id: int | str, user_uuid: str, project_id: str | int | None = None
    ) -> None:
        """Take a person off a dashboard. Scope ``dashboard:write``."""
        return await self.send(
            ops.RemoveDashboardCollaborator(
                project_id=await self.project_or_default(project_id), dashboard_id=dashboard_id, user_uuid=user_uuid
            )
        )

    async def get_dashboard_sharing(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> DashboardSharing:
        """Retrieve how a dashboard is shared; ``access_token`` is a secret. Scope ``sharing_configuration:read``."""
        return await self.send(
            ops.GetDashboardSharing(project_id=await self.project_or_default(project_id), dashboard_id=dashboard_id)
        )

    # Batch exports

    async def pause_batch_export(
        self,
        *,
        batch_export_id: UUID | str,
        organization_id: str | None = None,
        **fields: Unpack[BatchExportBody],
    ) -> BatchExport | None:
        """Pause a batch export; ``None`` if the answer says nothing. Scope ``batch_export:write``."""
        return await self.send(
            ops.PauseBatchExport(
                organization_id=await self.organization_or_default(organization_id),
                batch_export_id=batch_export_id,
                **fields,
            )
        )

    async def unpause_batch_export(
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
        return await self.send(
            ops.UnpauseBatchExport(
                organization_id=await self.organization_or_default(organization_id),
                batch_export_id=batch_export_id,
                **fields,
            )
        )

    # Domains

    async def list_domains(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> AsyncIterator[Domain]:
        """Yield the domains of an organization. Scope ``organization:read``."""
        operation = ops.ListDomains(
            organization_id=await self.organization_or_default(organization_id),
            limit=(await self.client()).settings.page_size if limit is None else limit,
            offset=offset,
        )
        async for row in (await self.client()).rows(operation):
            yield row

    async def create_domain(
        self, *, domain: str, organization_id: str | None = None, **fields: Unpack[DomainSettings]
    ) -> Domain:
        """Claim a domain. Scope ``organization:write``."""
        return await self.send(
            ops.CreateDomain(
                organization_id=await self.organization_or_default(organization_id), domain=domain, **fields
            )
        )

    async def get_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> Domain:
        """Retrieve a domain. Scope ``organization:read``."""
        return await self.send(
            ops.GetDomain(organization_id=await self.organization_or_default(organization_id), domain_id=domain_id)
        )

    async def update_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain:
        """Change a domain. Scope ``organization:write``."""
        return await self.send(
            ops.UpdateDomain(
                organization_id=await self.organization_or_default(organization_id), domain_id=domain_id, **fields
            )
        )

    async def delete_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> None:
        """Delete a domain. Scope ``organization:write``."""
        return await self.send(
            ops.DeleteDomain(organization_id=await self.organization_or_default(organization_id), domain_id=domain_id)
        )

    async def verify_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain | None:
        """Ask for verification now; ``None`` if the answer says nothing, so read the domain. No scope is shown."""
        return await self.send(
            ops.VerifyDomain(
                organization_id=await self.organization_or_default(organization_id), domain_id=domain_id, **fields
            )
        )

    # Invites

    async def list_invites(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> AsyncIterator[Invite]:
        """Yield the invites of an organization, expired ones included. Scope ``organization_member:read``."""
        operation = ops.ListInvites(
            organization_id=await self.organization_or_default(organization_id),
            limit=(await self.client()).settings.page_size if limit is None else limit,
            offset=offset,
        )
        async for row in (await self.client()).rows(operation):
            yield row

    async def create_invite(
        self, *, target_email: str, organization_id: str | None = None, **fields: Unpack[InviteSettings]
    ) -> Invite:
        """Invite one person. Scope ``organization_member:write``."""
        return await self.send(
            ops.CreateInvite(
                organization_id=await self.organization_or_default(organization_id), target_email=target_email, **fields
            )
        )

    async def delete_invite(self, *, invite_id: UUID | str, organization_id: str | None = None) -> None:
        """Withdraw an invite. Scope ``organization_member:write``."""
        return await self.send(
            ops.DeleteInvite(organization_id=await self.organization_or_default(organization_id), invite_id=invite_id)
        )

    async def create_invites(
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

        settings = (await self.client()).settings
        steps = invite_all(
            invites,
            organization_id=await self.organization_or_default(organization_id),
            on_invalid=on_invalid,
            limit=settings.bulk_invite_limit,
            body=settings.bulk_invite_body,
            page_size=settings.page_size,
            progress=ProgressLog("Invites"),
            quota=quota,
            earlier=earlier,
        )
        return await self.take(steps)

    async def look(
        self,
        subject: str,
        *,
        before: Snapshot | None = None,
        wanted: Collection[str] | None = None,
        organization_id: str | None = None,
    ) -> Snapshot:
        """Look once at what sensors wait for, see :func:`airflow_provider_workspace.procedures.snapshot.look`."""
        from airflow_provider_workspace.procedures.snapshot import look

        organization_id = await self.organization_or_default(organization_id)
        page_size = (await self.client()).settings.page_size
        return await self.take(look(subject, organization_id, page_size, before=before, wanted=wanted))

    async def take(self, steps: Procedure[T]) -> T:
        """Send what the steps ask for, until they have their result."""
        try:
            operations = next(steps)
            while True:
                results = await self._try_all(operations)
                if any(is_in_doubt(result) for result in results):
                    await (await self.client()).settle()
                operations = steps.send(results)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _try_all(self, operations: list[Operation[Any]]) -> list[Any]:
        """Send operations, several at once, until one is refused as the others would be; return results and errors."""
        slots = asyncio.Semaphore((await self.client()).settings.max_concurrency)
        refused: list[WorkspaceRequestError] = []

        async def one(operation: Operation[Any]) -> Any:
            async with slots:
                if refused:
                    return refused[0]
                try:
                    return await self.send(operation)
                except WorkspaceRequestError as error:
                    if refuses_all(error):
                        refused.append(error)
                    return error

        return await asyncio.gather(*(one(operation) for operation in operations))

    # Members

    async def list_members(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> AsyncIterator[Member]:
        """Yield the members of an organization. Scope ``organization_member:read``."""
        operation = ops.ListMembers(
            organization_id=await self.organization_or_default(organization_id),
            limit=(await self.client()).settings.page_size if limit is None else limit,
            offset=offset,
        )
        async for row in (await self.client()).rows(operation):
            yield row

    async def update_member(self, *, user_uuid: str, level: int, organization_id: str | None = None) -> Member:
        """Change the access level of a member. Scope ``organization_member:write``."""
        return await self.send(
            ops.UpdateMember(
                organization_id=await self.organization_or_default(organization_id), user_uuid=user_uuid, level=level
            )
        )

    async def delete_member(self, *, user_uuid: str, organization_id: str | None = None) -> None:
        """Remove a member from the organization. Scope ``organization_member:write``."""
        return await self.send(
            ops.DeleteMember(organization_id=await self.organization_or_default(organization_id), user_uuid=user_uuid)
        )

    # Projects

    async def list_projects(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> AsyncIterator[ProjectItem]:
        """Yield the projects of an organization. Scope ``project:read``."""
        operation = ops.ListProjects(
            organization_id=await self.organization_or_default(organization_id),
            limit=(await self.client()).settings.page_size if limit is None else limit,
            offset=offset,
        )
        async for row in (await self.client()).rows(operation):
            yield row

    async def create_project(self, *, organization_id: str | None = None, **fields: Unpack[ProjectBody]) -> Project:
        """Create a project. Scope ``project:write``."""
        return await self.send(
            ops.CreateProject(organization_id=await self.organization_or_default(organization_id), **fields)
        )

    async def get_project(self, *, project_id: int | str, organization_id: str | None = None) -> Project:
        """Retrieve a project. Scope ``project:read``."""
        return await self.send(
            ops.GetProject(organization_id=await self.organization_or_default(organization_id), project_id=project_id)
        )
