"""Find records in lists: when two are the same, by what a create is recognized, and who a user is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from airflow_provider_workspace import errors
from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key, domain_key, email_key, normal_text
from airflow_provider_workspace.api.models import ProjectItem
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.request_errors import field_not_sent_error, incomplete_list_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from airflow_provider_workspace.api.models import (
        DashboardCollaborator,
        Domain,
        Invite,
        Member,
        Page,
        Project,
        Resource,
    )
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.operations.dashboards import AddDashboardCollaborator
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings

T = TypeVar("T")
R = TypeVar("R", bound="Resource")
P = TypeVar("P", "Member", "DashboardCollaborator")

log = logging.getLogger(__name__)

# A shorter name may well be the beginning of another one; from this length on, it is taken for a name that was cut.
MIN_CUT = 60
_label = attrgetter("label")


def checked_pages_of(
    client: WorkspaceClient,
    first: Operation[Page[R]],
    page: Page[R] | None = None,
    *,
    identity: Callable[[R], object] = _label,
) -> Iterator[list[R]]:
    """
    Yield the rows of each page of a list.

    :param page: the first page, if it was read already
    :param identity: returns what identifies a row, by default its label
    :raises WorkspaceIncompleteListError: if the list has fewer rows than it counts, if no row shows its identity, or
        if a page, unless an id is looked for, does not show what its rows count as
    """
    count = 0
    is_identified = False
    for rows in client.pages(first, page):
        if rows and identity is _label and not any(map(_is_decided, rows)):
            raise field_not_sent_error(first, f"gave {len(rows)} rows, none of which has {rows[0].decided_by}")
        count += len(rows)
        is_identified = is_identified or any(map(identity, rows))
        yield rows
    if count and not is_identified:
        cure = "Check that the owner of the API key may see names and addresses."
        what = f"gave {count} rows, none of which shows its name, address or id"
        raise incomplete_list_error(first, what, cure, retryable=False)


def _is_decided(row: Resource) -> bool:
    return row.decided_by is None or row.decided_by in row.model_fields_set


def read_rows(
    client: WorkspaceClient, first: Operation[Page[R]], *, identity: Callable[[R], object] = _label
) -> list[R]:
    """Return all rows of a list; see :func:`checked_pages_of`."""
    return [row for rows in checked_pages_of(client, first, identity=identity) for row in rows]


def read_counted(client: WorkspaceClient, first: Operation[Page[R]]) -> tuple[list[R], int | None]:
    """Return all rows of a list, and how many its first page counts; ``None`` if it does not say."""
    if getattr(first, "limit", 0) is None:
        first = first.model_copy(update={"limit": client.settings.page_size})
    page = client.send(first)
    rows = [row for rows in checked_pages_of(client, first, page) for row in rows]
    return rows, page.count


def find_row(
    client: WorkspaceClient,
    first: Operation[Page[R]],
    wanted: Callable[[R], bool],
    *,
    identity: Callable[[R], object] = _label,
) -> R | None:
    """
    Return the first row of a list that is wanted; ``None`` if the whole list has none.

    See :func:`checked_pages_of`.
    """
    for rows in checked_pages_of(client, first, identity=identity):
        for row in rows:
            if wanted(row):
                return row
    return None


def find_by_id(client: WorkspaceClient, first: Operation[Page[R]], wanted: object) -> R | None:
    """Return the row of a list with an id; ``None`` if there is none."""
    its_id = attrgetter("id")
    return find_row(client, first, lambda row: its_id(row) == wanted, identity=its_id)


# What a create makes


@dataclass(frozen=True, slots=True)
class Finder(Generic[T]):
    """
    How the record of a create is found.

    :param what: the record, for messages, such as ``project 'Sales'``
    :param find: looks it up; returns ``None`` if it does not exist
    :param matches: whether the record in a response is the one that was asked for
    :param check: called with a record that this task created
    """

    what: str
    find: Callable[[], T | None]
    matches: Callable[[Any], bool] = lambda _: True
    check: Callable[[T], object] = lambda _: None


def finder_of(client: WorkspaceClient, create: Operation[Any]) -> Finder[Any]:
    """Return how the record of a create is found."""
    if isinstance(create, ops.projects.CreateProject):
        return _project(client, create)
    if isinstance(create, ops.domains.CreateDomain):
        return _domain(client, create)
    if isinstance(create, ops.invites.CreateInvite):
        return _invite(client, create)
    return _collaborator(client, cast("AddDashboardCollaborator", create))


def _domain(client: WorkspaceClient, create: ops.domains.CreateDomain) -> Finder[Domain]:
    key = domain_key(create.domain or "")
    domains = ops.domains.ListDomains(organization_id=create.organization_id)

    def matches(row: Domain) -> bool:
        return domain_key(row.domain or "") == key

    return Finder(f"domain '{create.domain}'", lambda: find_row(client, domains, matches), matches)


def _invite(client: WorkspaceClient, create: ops.invites.CreateInvite) -> Finder[Invite]:
    key = address_key(create.target_email)
    invites = ops.invites.ListInvites(organization_id=create.organization_id)

    def matches(row: Invite) -> bool:
        return email_key(row) == key and not row.is_expired

    return Finder(f"invite of {create.target_email}", lambda: find_row(client, invites, matches), matches)


def _collaborator(client: WorkspaceClient, add: AddDashboardCollaborator) -> Finder[DashboardCollaborator]:
    what = f"collaborator {add.user_uuid} of dashboard {add.dashboard_id}"
    collaborators = ops.dashboards.ListDashboardCollaborators(project_id=add.project_id, dashboard_id=add.dashboard_id)

    def matches(row: DashboardCollaborator) -> bool:
        return add.user_uuid in (row.user_uuid, row.user and row.user.uuid)

    return Finder(what, lambda: find_row(client, collaborators, matches), matches)


def domain_name(domain: str | None) -> str:
    """Return a domain as it is sent: lower case, without a trailing dot."""
    return normal_text(domain or "").rstrip(".").lower()


def project_key(name: str | None) -> str:
    """Return the form in which names of projects and dashboards are compared."""
    return normal_text(name or "")


def _project(client: WorkspaceClient, create: ops.projects.CreateProject) -> Finder[Project]:
    organization_id = create.organization_id
    what = f"project '{create.name}'"
    projects = ops.projects.ListProjects(organization_id=organization_id)

    def find() -> Project | None:
        item = find_project(create.name, read_rows(client, projects))
        if item is None:
            return None
        if item.id is None:
            raise errors.WorkspaceResponseError(
                f"The list shows the {what} without a numeric id.", operation="ListProjects", retryable=False
            )
        return client.send(ops.projects.GetProject(organization_id=organization_id, project_id=item.id))

    def check(project: Project) -> None:
        """Read the list again: two concurrent tasks may both have found nothing and created a project."""
        try:
            rows = read_rows(client, projects)
        except errors.WorkspaceIncompleteListError as error:
            log.warning("A short list cannot show whether another task created the %s too: %s", what, error)
            return
        own = next((row for row in rows if row.id == project.id), None)
        if own is None:
            log.warning("The list does not show the %s yet: another task may have created one too.", what)
        elif project_key(own.name) != project_key(create.name):
            raise _renamed(
                f"The service stored {what} under another name: {own.name!r}. Set name to that: a look-up by the other "
                f"one does not find it, so each run would create another project. Its id: {project.id}."
            )
        find_project(create.name, [*rows, ProjectItem(id=project.id, name=create.name)])

    return Finder(what, find, check=check)


def find_project(name: str | None, rows: Collection[ProjectItem]) -> ProjectItem | None:
    """
    Return the project with a name; ``None`` if there is none.

    If the service cuts names, a look-up by the whole name finds nothing, so each run would create another project. The
    longest existing name is then the beginning of this one. It is not adopted, because it may be another project.

    :raises WorkspaceDuplicateError: if there are several: which one is meant is for people to say
    :raises WorkspaceNotAppliedError: if the service would cut the name
    """
    key = project_key(name)
    projects = {row.id: row for row in rows if row.name and project_key(row.name) == key}
    if len(projects) > 1:
        ids = ", ".join(map(str, projects))
        msg = (
            f"{len(projects)} projects are named '{name}'. Rename all but one of them. If tasks created them, set "
            "max_active_runs=1, or give them a pool with one slot, so that they do not run at the same time. "
            f"Ids: {ids}."
        )
        raise errors.WorkspaceDuplicateError(
            msg, operation="CreateProject", retryable=False, problem="duplicate-projects"
        )
    if projects:
        return next(iter(projects.values()))
    longest = max((project_key(row.name) for row in rows), key=len, default="")
    if MIN_CUT <= len(longest) < len(key) and key.startswith(longest):
        raise _renamed(
            f"The service seems to cut names: it has the first {len(longest)} of {len(key)} characters of this one. "
            f"Set name={longest!r} if the project with that name is the one that is meant, else another name."
        )
    return None


def _renamed(message: str) -> errors.WorkspaceNotAppliedError:
    return errors.WorkspaceNotAppliedError(
        message, operation="CreateProject", outcome=Outcome.APPLIED.value, retryable=False
    )


# Users


def members_of(client: WorkspaceClient, organization_id: str) -> list[Member]:
    """
    Read the members.

    :raises WorkspaceIncompleteListError: if the list is known to be short
    """
    members = read_rows(client, ops.members.ListMembers(organization_id=organization_id))
    check_all_shown(client, organization_id, len(members))
    return members


def describe_reading(settings: Settings) -> str:
    """Say which key read lists that may hide members from it; empty if they show as many as the organization has."""
    if settings.count_members:
        return ""
    return f"The lists were read with the key of {settings.source}, which may be shown only some of the members."


def check_all_shown(client: WorkspaceClient, organization_id: str, shown: int) -> None:
    """
    Refuse a list of members that is shorter than the organization states, if the connection asks for that.

    A service may show a key only some of the members, and count only these.

    :param shown: number of members in the list
    :raises WorkspaceIncompleteListError: if it hides some, or the organization does not state how many there are
    """
    if not client.settings.count_members:
        return
    from airflow_provider_workspace.api.organization_record import GetOrganization

    stated = client.send(GetOrganization(organization_id=organization_id)).member_count
    if stated is not None and stated <= shown:
        return
    what = f"shows {shown} of {stated} members of the organization, so it hides some from this key"
    cure = "Use the key of an administrator, or let the organization show its members to everybody."
    if stated is None:
        what = "cannot be compared, because the record of the organization has no member_count"
        cure = "Set count_members to false in the extra of the connection."
    first = ops.members.ListMembers(organization_id=organization_id)
    raise incomplete_list_error(first, what, cure, retryable=stated is not None)


def find_user(
    client: WorkspaceClient,
    user_uuid: str | None,
    email: str | None,
    organization: Callable[[], str],
    *,
    removed: Callable[[], bool] = lambda: False,
) -> str:
    """
    Return the UUID of a user, looked up among the members if only the address is given.

    :param removed: returns whether an earlier try of the task may have removed the member
    :return: the UUID; an empty string if no member has the address and an earlier try may have removed them
    :raises WorkspaceInputError: unless exactly one of both is given and exactly one member has the address
    :raises WorkspaceError: if the member may have been removed, or is one whose address is hidden
    """
    from airflow_provider_workspace.procedures.roster import check_address

    if (user_uuid is None) is (email is None):
        raise errors.WorkspaceInputError("Pass either user_uuid or user_email, and not both")
    if user_uuid is not None:
        return user_uuid
    address = check_address("user_email", email or "")
    organization_id = organization()
    key = address_key(address)
    members = members_of(client, organization_id)
    uuids = [member.user_uuid for member in members if member.user_uuid and email_key(member) == key]
    if len(uuids) == 1:
        return uuids[0]
    where = f"have the address {address} in organization {organization_id}"
    if uuids:
        ids = ", ".join(uuids)
        raise errors.WorkspaceInputError(f"{len(uuids)} members {where}. Pass user_uuid, one of {ids}")
    hidden = sum(1 for member in members if not member.email_address)
    if hidden and removed():
        raise errors.WorkspaceError(
            f"{address} may still have access: the list hides the address of {hidden} members, and one of them may be "
            "theirs. Look for them in the workspace",
            problem="people-hidden",
        )
    if removed():
        log.info("No member has the address %s: an earlier try of this task removed them.", address)
        return ""
    raise errors.WorkspaceInputError(
        f"No members {where}. Check user_email, or pass the user_uuid of somebody who has left"
    )


def find_by_uuid(client: WorkspaceClient, first: Operation[Page[P]], user_uuid: str) -> P | None:
    """Return the row of a user in a list of members or collaborators; ``None`` if there is none."""
    return find_row(client, first, lambda row: _uuid_of(row) == user_uuid, identity=_uuid_of)


def check_user_id(
    client: WorkspaceClient, error: errors.WorkspaceNotFoundError, user_uuid: str, first: Operation[Page[P]], kind: str
) -> None:
    """
    Check that the id for which the service returned 404 is not that of a row, such as of a membership.

    :raises WorkspaceNotFoundError: with the id to pass
    """
    for row in read_rows(client, first, identity=_uuid_of):
        uuid = _uuid_of(row)
        if row.id == user_uuid != uuid:
            error.args = (
                f"The id that was passed belongs to the {kind}, not to the user. Pass user_uuid='{uuid}'. {error}",
            )
            raise error


def check_collaborator_id(
    client: WorkspaceClient,
    error: errors.WorkspaceNotFoundError,
    user_uuid: str,
    collaborators: ops.dashboards.ListDashboardCollaborators,
    members: ops.members.ListMembers | None,
) -> None:
    """
    Check that the id for which the service returned 404 is not that of a collaborator's entry or a membership.

    :param members: lists the members; ``None`` if no organization is set
    :raises WorkspaceNotFoundError: with the id to pass
    """
    check_user_id(client, error, user_uuid, collaborators, "collaborator")
    unread: object = "no organization is set"
    try:
        if members is not None:
            check_user_id(client, error, user_uuid, members, "membership")
            return
    except errors.WorkspaceStatusError as refused:
        if refused is error:
            raise
        unread = refused
    log.warning("Cannot check that %s is the id of a user and not of a membership: %s", user_uuid, unread)


def _uuid_of(row: Member | DashboardCollaborator) -> str | None:
    """Return the user id of a row; a collaborator may have it in a field of its own."""
    return (row.user.uuid if row.user else None) or getattr(row, "user_uuid", None)
