"""Find users by their e-mail address, and check that an unknown user is really gone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.members import ListMembers
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceInputError, WorkspaceStatusError
from airflow_provider_workspace.procedures.changes import raise_listed
from airflow_provider_workspace.procedures.roster import check_address
from airflow_provider_workspace.procedures.snapshot import find_row, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_workspace.api.models import DashboardCollaborator, Member, Page
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.operations.dashboards import ListDashboardCollaborators
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.errors import WorkspaceNotFoundError

P = TypeVar("P", "Member", "DashboardCollaborator")

log = logging.getLogger(__name__)


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
    """
    if (user_uuid is None) is (email is None):
        raise WorkspaceInputError("Pass either user_uuid or user_email, and not both")
    if user_uuid is not None:
        return user_uuid
    address = check_address("user_email", email)
    organization_id = organization()
    members = read_rows(client, ListMembers(organization_id=organization_id, limit=client.settings.page_size))
    found = [
        member.user.uuid
        for member in members
        if member.user and member.user.uuid and address_key(member.user.email or "") == address_key(address)
    ]
    if len(found) == 1:
        return found[0]
    if not found and removed():
        log.info("No member has the address %s: an earlier try of this task removed them.", address)
        return ""
    cure = f"Pass user_uuid, one of {', '.join(found)}: " if found else "Check user_email: "
    raise WorkspaceInputError(
        f"{cure}{len(found) or 'no'} members have the address {address} in organization {organization_id}"
    )


def find_by_uuid(client: WorkspaceClient, first: Operation[Page[P]], user_uuid: str) -> P | None:
    """Return the row of a user in a list of members or collaborators; ``None`` if there is none."""
    return find_row(client, first, lambda row: _key(_uuid_of(row)) == _key(user_uuid), identity=_uuid_of)


def check_no_member(
    client: WorkspaceClient, error: WorkspaceNotFoundError, user_uuid: str, organization_id: str
) -> None:
    """
    Check that a user for whom the service returned 404 is not a member.

    :raises WorkspaceNotFoundError: if a member has this user or membership id
    """
    listed = ListMembers(organization_id=organization_id, limit=client.settings.page_size)
    members = read_rows(client, listed, identity=_uuid_of)
    _refuse_other_id(error, user_uuid, members, "membership")
    _refuse_listed(error, user_uuid, members, "member")


def members_of(organization: Callable[[], str], page_size: int) -> ListMembers | None:
    """
    Return the operation that lists the members; ``None`` if no organization is set.

    :raises WorkspaceInputError: if the id is invalid
    """
    try:
        organization_id = organization()
    except WorkspaceConfigError:
        return None
    members = ListMembers(organization_id=organization_id, limit=page_size)
    members.request()
    return members


def check_no_collaborator(
    client: WorkspaceClient,
    error: WorkspaceNotFoundError,
    user_uuid: str,
    collaborators: ListDashboardCollaborators,
    members: ListMembers | None,
) -> None:
    """
    Check that a user for whom the service returned 404 is not a collaborator of a dashboard.

    :param members: lists the members, to detect the id of a membership; ``None`` if no organization is set
    :raises WorkspaceNotFoundError: if a collaborator has this user id, or it is an id of another kind
    """
    rows = read_rows(client, collaborators, identity=_uuid_of)
    _refuse_other_id(error, user_uuid, rows, "collaborator")
    _refuse_listed(error, user_uuid, rows, "collaborator")
    cannot_tell = "Cannot check that %s is the id of a user and not of a membership: %s"
    if members is None:
        log.warning(cannot_tell, user_uuid, "no organization is set")
        return
    try:
        found = read_rows(client, members, identity=_uuid_of)
    except WorkspaceStatusError as unread:
        log.warning(cannot_tell, user_uuid, unread)
    else:
        _refuse_other_id(error, user_uuid, found, "membership")


def _refuse_listed(
    error: WorkspaceNotFoundError, user_uuid: str, rows: Iterable[Member | DashboardCollaborator], kind: str
) -> None:
    """Raise the error if one of the rows belongs to the user."""
    if any(_key(_uuid_of(row)) == _key(user_uuid) for row in rows):
        raise_listed(error, f"{kind}s")


def _refuse_other_id(
    error: WorkspaceNotFoundError, given: str, rows: Iterable[Member | DashboardCollaborator], kind: str
) -> None:
    """Raise the error if the id that was passed for a user is the id of a row."""
    for row in rows:
        uuid = _uuid_of(row)
        if _key(row.id) == _key(given) != _key(uuid):
            error.args = (
                f"Pass user_uuid='{uuid}': the id that was passed belongs to the {kind}, not to the user. {error}",
            )
            raise error


def _uuid_of(row: Member | DashboardCollaborator) -> str | None:
    """Return the user id of a row; a collaborator may have it in a field of its own."""
    return (row.user.uuid if row.user else None) or getattr(row, "user_uuid", None)


def _key(uuid: str | None) -> str | None:
    """Return the form in which ids are compared; ``None`` for a missing id."""
    return uuid.strip().lower() if uuid else None
