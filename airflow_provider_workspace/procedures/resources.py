"""Create a project, domain or collaborator unless it exists, and decide when two of them are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_workspace.api.comparison import domain_key, normal_text
from airflow_provider_workspace.api.operations.dashboards import AddDashboardCollaborator, ListDashboardCollaborators
from airflow_provider_workspace.api.operations.domains import CreateDomain, ListDomains
from airflow_provider_workspace.api.operations.projects import CreateProject, GetProject, ListProjects
from airflow_provider_workspace.api.procedure import send_one
from airflow_provider_workspace.errors import WorkspaceResponseError
from airflow_provider_workspace.procedures.create_or_get import check_created, create_or_get
from airflow_provider_workspace.procedures.snapshot import find_row

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import DashboardCollaborator, Domain, Project, ProjectItem
    from airflow_provider_workspace.api.procedure import Procedure
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.create_or_get import Memory


def project_key(name: str | None) -> str:
    """Return the form in which names of projects and dashboards are compared."""
    return normal_text(name or "")


def domain_name(domain: str | None) -> str:
    """Return a domain as it is sent: lower case, without a trailing dot."""
    return normal_text(domain or "").rstrip(".").lower()


def create_project(
    create: CreateProject, settings: Settings, *, if_exists: str, memory: Memory
) -> Procedure[tuple[Project, bool]]:
    """
    Create a project unless one with its name exists.

    :param if_exists: ``return`` an existing project, or ``fail``
    :param memory: what the task remembers across its tries
    :return: the project, and whether this task created it
    """
    organization_id = create.organization_id
    projects = ListProjects(organization_id=organization_id, limit=settings.page_size)
    what = f"project '{create.name}'"

    def matches(item: ProjectItem) -> bool:
        return item.name is not None and project_key(item.name) == project_key(create.name)

    def find() -> Procedure[Project | None]:
        item = yield from find_row(projects, matches)
        if item is None:
            return None
        if item.id is None:
            raise WorkspaceResponseError(
                f"The list shows the {what} without a numeric id.", operation="ListProjects", retryable=False
            )
        return (yield from send_one(GetProject(organization_id=organization_id, project_id=item.id)))

    project: Project
    project, created = yield from create_or_get(
        what, create, find=find, if_exists=if_exists, memory=memory, consistency_time=settings.consistency_time
    )
    if created:
        yield from check_created(what, project.id, projects, matches)
    return project, created


def create_domain(
    create: CreateDomain, settings: Settings, *, if_exists: str, memory: Memory
) -> Procedure[tuple[Domain, bool]]:
    """Claim a domain unless the organization has it; return it, and whether this task claimed it."""
    domains = ListDomains(organization_id=create.organization_id, limit=settings.page_size)

    def matches(row: Domain) -> bool:
        return domain_key(row.domain or "") == domain_key(create.domain)

    return (
        yield from create_or_get(
            f"domain '{create.domain}'",
            create,
            find=lambda: find_row(domains, matches),
            if_exists=if_exists,
            memory=memory,
            consistency_time=settings.consistency_time,
            matches=matches,
        )
    )


def add_collaborator(
    create: AddDashboardCollaborator, settings: Settings, *, if_exists: str, memory: Memory
) -> Procedure[tuple[DashboardCollaborator, bool]]:
    """Add a collaborator unless the person is one; return the entry, and whether this task added it."""
    listed = ListDashboardCollaborators(project_id=create.project_id, dashboard_id=create.dashboard_id)
    wanted = create.user_uuid.strip().lower()

    def matches(row: DashboardCollaborator) -> bool:
        return wanted in ((row.user_uuid or "").lower(), ((row.user and row.user.uuid) or "").lower())

    return (
        yield from create_or_get(
            f"collaborator {create.user_uuid} of dashboard {create.dashboard_id}",
            create,
            find=lambda: find_row(listed, matches),
            if_exists=if_exists,
            memory=memory,
            consistency_time=settings.consistency_time,
            matches=matches,
        )
    )
