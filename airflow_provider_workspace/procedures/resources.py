"""Create a project, domain or collaborator unless it exists, and decide when two of them are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_workspace.api.comparison import domain_key, normal_text
from airflow_provider_workspace.api.operations.dashboards import AddDashboardCollaborator, ListDashboardCollaborators
from airflow_provider_workspace.api.operations.domains import CreateDomain, ListDomains
from airflow_provider_workspace.api.operations.projects import CreateProject, GetProject, ListProjects
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.errors import WorkspaceNotAppliedError, WorkspaceResponseError
from airflow_provider_workspace.procedures.create_or_get import check_created, create_or_get
from airflow_provider_workspace.procedures.snapshot import find_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_workspace.api.models import DashboardCollaborator, Domain, Project, ProjectItem
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.create_or_get import Memory

# A shorter name may well be the beginning of another one; from this length on, it is taken for a name that was cut.
MIN_CUT = 60


def project_key(name: str | None) -> str:
    """Return the form in which names of projects and dashboards are compared."""
    return normal_text(name or "")


def check_not_cut(name: str, names: Iterable[str | None]) -> None:
    """
    Refuse a name that the service cuts: the longest name of the existing projects is its beginning.

    A look-up by the whole name finds nothing, so each run would create another project. It is not adopted either,
    because it may be another one.

    :raises WorkspaceNotAppliedError: if it is cut
    """
    key, longest = project_key(name), max(map(project_key, names), key=len, default="")
    if MIN_CUT <= len(longest) < len(key) and key.startswith(longest):
        raise WorkspaceNotAppliedError(
            f"Set name={longest!r} if the project with that name is the one that is meant, else another name. The "
            f"service seems to cut names: it has the first {len(longest)} characters of this one ({len(key)}).",
            operation="CreateProject",
            outcome=Outcome.APPLIED.value,
            retryable=False,
        )


def domain_name(domain: str | None) -> str:
    """Return a domain as it is sent: lower case, without a trailing dot."""
    return normal_text(domain or "").rstrip(".").lower()


def create_project(
    client: WorkspaceClient, create: CreateProject, *, if_exists: str, memory: Memory
) -> tuple[Project, bool]:
    """
    Create a project unless one with its name exists.

    :param if_exists: ``return`` an existing project, or ``fail``
    :param memory: what the task remembers across its tries
    :return: the project, and whether this task created it
    """
    organization_id = create.organization_id
    projects = ListProjects(organization_id=organization_id, limit=client.settings.page_size)
    what = f"project '{create.name}'"

    def matches(item: ProjectItem) -> bool:
        return item.name is not None and project_key(item.name) == project_key(create.name)

    names: set[str | None] = set()

    def note_and_match(item: ProjectItem) -> bool:
        names.add(item.name)
        return matches(item)

    def find() -> Project | None:
        item = find_row(client, projects, note_and_match)
        if item is None:
            check_not_cut(create.name or "", names)
            return None
        if item.id is None:
            raise WorkspaceResponseError(
                f"The list shows the {what} without a numeric id.", operation="ListProjects", retryable=False
            )
        return client.send(GetProject(organization_id=organization_id, project_id=item.id))

    project: Project
    project, created = create_or_get(client, what, create, find=find, if_exists=if_exists, memory=memory)
    if created:
        check_created(client, what, project.id, projects, matches)
    return project, created


def create_domain(
    client: WorkspaceClient, create: CreateDomain, *, if_exists: str, memory: Memory
) -> tuple[Domain, bool]:
    """Claim a domain unless the organization has it; return it, and whether this task claimed it."""
    domains = ListDomains(organization_id=create.organization_id, limit=client.settings.page_size)

    def matches(row: Domain) -> bool:
        return domain_key(row.domain or "") == domain_key(create.domain)

    return create_or_get(
        client,
        f"domain '{create.domain}'",
        create,
        find=lambda: find_row(client, domains, matches),
        if_exists=if_exists,
        memory=memory,
        matches=matches,
    )


def add_collaborator(
    client: WorkspaceClient, create: AddDashboardCollaborator, *, if_exists: str, memory: Memory
) -> tuple[DashboardCollaborator, bool]:
    """Add a collaborator unless the person is one; return the entry, and whether this task added it."""
    listed = ListDashboardCollaborators(project_id=create.project_id, dashboard_id=create.dashboard_id)
    wanted = create.user_uuid.strip().lower()

    def matches(row: DashboardCollaborator) -> bool:
        return wanted in ((row.user_uuid or "").lower(), ((row.user and row.user.uuid) or "").lower())

    return create_or_get(
        client,
        f"collaborator {create.user_uuid} of dashboard {create.dashboard_id}",
        create,
        find=lambda: find_row(client, listed, matches),
        if_exists=if_exists,
        memory=memory,
        matches=matches,
    )
