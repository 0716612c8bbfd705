"""The hook for workers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.hooks.connection import WorkspaceConnectedHook
from airflow_provider_workspace.hooks.progress import ProgressLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
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
        LevelName,
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
    from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook
    from airflow_provider_workspace.procedures.invites_report import InvitesReport

__all__ = ["WorkspaceAsyncHook", "WorkspaceHook"]


def __getattr__(name: str) -> Any:
    """Import the asynchronous hook on first use, since workers do not need it."""
    if name == "WorkspaceAsyncHook":
        from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook

        return WorkspaceAsyncHook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class WorkspaceHook(WorkspaceConnectedHook):
    """
    Interact with the workspace administration service, for workers.

    There is a method per operation of the interface, with the same argument names. A field that is not set is not sent;
    ``None`` is sent as null. Methods that list are iterators that read page after page. Every method raises
    :class:`~airflow_provider_workspace.errors.WorkspaceInputError` before anything is sent if an argument is invalid,
    and :class:`~airflow_provider_workspace.errors.WorkspaceRequestError` if the request fails.

    :param workspace_conn_id: connection to the service
    :param organization_id: default organization of the methods; by default that of the connection
    :param project_id: default project of the methods; by default that of the connection
    """

    # Dashboards

    def create_dashboard(self, *, project_id: str | int | None = None, **fields: Unpack[DashboardBody]) -> Dashboard:
        """Create a dashboard in a project. Scope ``dashboard:write``."""
        return self.send(ops.dashboards.CreateDashboard(project_id=self.project_or_default(project_id), **fields))

    def get_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """Retrieve a dashboard. Scope ``dashboard:read``."""
        return self.send(
            ops.dashboards.GetDashboard(project_id=self.project_or_default(project_id), dashboard_id=dashboard_id)
        )

    def update_dashboard(
        self, *, dashboard_id: int | str, project_id: str | int | None = None, **fields: Unpack[DashboardBody]
    ) -> Dashboard:
        """Change a dashboard. Scope ``dashboard:write``."""
        return self.send(
            ops.dashboards.UpdateDashboard(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id, **fields
            )
        )

    def delete_dashboard(self, *, dashboard_id: int | str, project_id: str | int | None = None) -> Dashboard:
        """Delete a dashboard by setting ``deleted`` to true. Scope ``dashboard:write``."""
        return self.update_dashboard(dashboard_id=dashboard_id, project_id=project_id, deleted=True)

    def get_dashboard_access_controls(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> Dashboard:
        """Retrieve a dashboard with the access level of the API key's owner. The interface shows no scope."""
        return self.send(
            ops.dashboards.GetDashboardAccessControls(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id
            )
        )

    def list_dashboard_collaborators(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> Iterator[DashboardCollaborator]:
        """Yield the collaborators of a dashboard. Scope ``dashboard:read``."""
        return self._rows(
            ops.dashboards.ListDashboardCollaborators(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id
            )
        )

    def add_dashboard_collaborator(
        self,
        *,
        dashboard_id: int | str,
        user_uuid: str,
        project_id: str | int | None = None,
        **fields: Unpack[CollaboratorSettings],
    ) -> DashboardCollaborator:
        """Add a collaborator to a dashboard. Scope ``dashboard:write``."""
        return self.send(
            ops.dashboards.AddDashboardCollaborator(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id, user_uuid=user_uuid, **fields
            )
        )

    def remove_dashboard_collaborator(
        self, *, dashboard_id: int | str, user_uuid: str, project_id: str | int | None = None
    ) -> None:
        """Remove a collaborator from a dashboard. Scope ``dashboard:write``."""
        return self.send(
            ops.dashboards.RemoveDashboardCollaborator(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id, user_uuid=user_uuid
            )
        )

    def get_dashboard_sharing(
        self, *, dashboard_id: int | str, project_id: str | int | None = None
    ) -> DashboardSharing:
        """
        Retrieve the sharing configuration of a dashboard. Scope ``sharing_configuration:read``.

        ``access_token`` is a secret. If there are several configurations, the first enabled one is returned, else the
        first; if there are none, ``enabled`` is false.
        """
        return self.send(
            ops.dashboards.GetDashboardSharing(
                project_id=self.project_or_default(project_id), dashboard_id=dashboard_id
            )
        )

    # Batch exports

    def pause_batch_export(
        self, *, batch_export_id: UUID | str, organization_id: str | None = None, **fields: Unpack[BatchExportBody]
    ) -> BatchExport | None:
        """Pause a batch export. Returns ``None`` if the response has no body. Scope ``batch_export:write``."""
        return self.send(
            ops.batch_exports.PauseBatchExport(
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
        Resume a batch export. Returns ``None`` if the response has no body. Scope ``batch_export:write``.

        ``resume_fields`` are fields that the interface does not name, such as ``{"backfill": True}``; they are sent
        unchecked.
        """
        return self.send(
            ops.batch_exports.UnpauseBatchExport(
                organization_id=self.organization_or_default(organization_id), batch_export_id=batch_export_id, **fields
            )
        )

    # Domains

    def list_domains(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Domain]:
        """Yield the domains of an organization. Scope ``organization:read``."""
        return self._rows(
            ops.domains.ListDomains(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def create_domain(
        self, *, domain: str, organization_id: str | None = None, **fields: Unpack[DomainSettings]
    ) -> Domain:
        """Create a domain. Scope ``organization:write``."""
        return self.send(
            ops.domains.CreateDomain(
                organization_id=self.organization_or_default(organization_id), domain=domain, **fields
            )
        )

    def get_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> Domain:
        """Retrieve a domain. Scope ``organization:read``."""
        return self.send(
            ops.domains.GetDomain(organization_id=self.organization_or_default(organization_id), domain_id=domain_id)
        )

    def update_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain:
        """Change a domain. Scope ``organization:write``."""
        return self.send(
            ops.domains.UpdateDomain(
                organization_id=self.organization_or_default(organization_id), domain_id=domain_id, **fields
            )
        )

    def delete_domain(self, *, domain_id: UUID | str, organization_id: str | None = None) -> None:
        """Delete a domain. Scope ``organization:write``."""
        return self.send(
            ops.domains.DeleteDomain(organization_id=self.organization_or_default(organization_id), domain_id=domain_id)
        )

    def verify_domain(
        self, *, domain_id: UUID | str, organization_id: str | None = None, **fields: Unpack[DomainBody]
    ) -> Domain | None:
        """
        Ask the service to verify a domain now. The interface shows no scope.

        Returns ``None`` if the response has no body; then read the domain to see the result.
        """
        return self.send(
            ops.domains.VerifyDomain(
                organization_id=self.organization_or_default(organization_id), domain_id=domain_id, **fields
            )
        )

    # Invites

    def list_invites(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Invite]:
        """Yield the invites of an organization, including expired ones. Scope ``organization_member:read``."""
        return self._rows(
            ops.invites.ListInvites(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def create_invite(
        self, *, target_email: str, organization_id: str | None = None, **fields: Unpack[InviteSettings]
    ) -> Invite:
        """Create an invite. Scope ``organization_member:write``."""
        return self.send(
            ops.invites.CreateInvite(
                organization_id=self.organization_or_default(organization_id), target_email=target_email, **fields
            )
        )

    def delete_invite(self, *, invite_id: UUID | str, organization_id: str | None = None) -> None:
        """Delete an invite. Scope ``organization_member:write``."""
        return self.send(
            ops.invites.DeleteInvite(organization_id=self.organization_or_default(organization_id), invite_id=invite_id)
        )

    def create_invites(
        self,
        invites: Iterable[Mapping[str, Any] | str],
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

        :param invites: rows of invite fields (``email`` is an alias of ``target_email``), or addresses
        :param on_invalid: ``fail`` if a row is invalid, or ``skip`` the row
        :return: counts and the status of each row
        :raises WorkspaceInputError: if a row is invalid, before anything is sent
        :raises WorkspaceInvitesIncompleteError: if somebody could not be invited; it has the report
        """
        from airflow_provider_workspace.procedures.bulk_invites import invite_all

        return invite_all(
            self.client,
            invites,
            organization_id=self.organization_or_default(organization_id),
            on_invalid=on_invalid,
            clock=time.time,
            max_wait=self.client.settings.max_retry_wait,
            progress=ProgressLog("Invites"),
        )

    # Members

    def list_members(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[Member]:
        """Yield the members of an organization. Scope ``organization_member:read``."""
        return self._rows(
            ops.members.ListMembers(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def update_member(self, *, user_uuid: str, level: int | LevelName, organization_id: str | None = None) -> Member:
        """Change the access level of a member, a number or a name. Scope ``organization_member:write``."""
        return self.send(
            ops.members.UpdateMember(
                organization_id=self.organization_or_default(organization_id), user_uuid=user_uuid, level=level
            )
        )

    def delete_member(self, *, user_uuid: str, organization_id: str | None = None) -> None:
        """Remove a member from the organization. Scope ``organization_member:write``."""
        return self.send(
            ops.members.DeleteMember(organization_id=self.organization_or_default(organization_id), user_uuid=user_uuid)
        )

    # Projects

    def list_projects(
        self, *, limit: int | None = None, offset: int = 0, organization_id: str | None = None
    ) -> Iterator[ProjectItem]:
        """Yield the projects of an organization. Scope ``project:read``."""
        return self._rows(
            ops.projects.ListProjects(
                organization_id=self.organization_or_default(organization_id),
                limit=self.client.settings.page_size if limit is None else limit,
                offset=offset,
            )
        )

    def create_project(self, *, organization_id: str | None = None, **fields: Unpack[ProjectBody]) -> Project:
        """Create a project. Scope ``project:write``."""
        return self.send(
            ops.projects.CreateProject(organization_id=self.organization_or_default(organization_id), **fields)
        )

    def get_project(self, *, project_id: int | str, organization_id: str | None = None) -> Project:
        """Retrieve a project. Scope ``project:read``."""
        return self.send(
            ops.projects.GetProject(
                organization_id=self.organization_or_default(organization_id), project_id=project_id
            )
        )
