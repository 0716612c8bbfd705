"""Who is meant: people by their e-mail address, and whether somebody whom the service does not know is gone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_workspace.api.operations.members import ListMembers
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceInputError, WorkspaceStatusError
from airflow_provider_workspace.procedures.changes import raise_listed
from airflow_provider_workspace.procedures.roster import address_key, check_address
from airflow_provider_workspace.procedures.snapshot import find_row, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_workspace.api.models import DashboardCollaborator, Member, Page
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.operations.dashboards import ListDashboardCollaborators
    from airflow_provider_workspace.api.procedure import Procedure
    from airflow_provider_workspace.errors import WorkspaceNotFoundError

P = TypeVar("P", "Member", "DashboardCollaborator")

log = logging.getLogger(__name__)


def find_user(
    user_uuid: str | None,
    email: str | None,
    organization: Callable[[], str],
    page_size: int,
    *,
    removed: Callable[[], bool] = lambda: False,
) -> Procedure[str]:
    """
    Return the user (UUID) of a person, looked up among the members where only the address is given.

    :param organization: returns the organization to look in
    :param removed: whether an earlier try of the task may have removed them
    :return: the user; nothing if no member has the address and an earlier try may have removed them
    :raises WorkspaceInputError: unless exactly one of both is given, or if not exactly one member has the address
    """
    if (user_uuid is None) is (email is None):
        msg = "Pass either user_uuid or user_email, and not both"
        raise WorkspaceInputError(msg)
    if user_uuid is not None:
        return user_uuid
    address = check_address(email)
    organization_id = organization()
    members = yield from read_rows(ListMembers(organization_id=organization_id, limit=page_size))
    found = [
        member.user.uuid
        for member in members
        if member.user and member.user.uuid and address_key(member.user.email or "") == address_key(address)
    ]
    if len(found) == 1:
        return found[0]
    if not found and removed():
        log.info("No member has the address %s any more: an earlier try of this task removed them.", address)
        return ""
    cure = f"Pass user_uuid, one of {', '.join(found)}: " if found else "Check user_email: "
    msg = f"{cure}{len(found) or 'no'} members have the address {address} in organization {organization_id}"
    raise WorkspaceInputError(msg)


def find_by_uuid(first: Operation[Page[P]], user_uuid: str) -> Procedure[P | None]:
    """
    Look for a user in a list of members or collaborators.

    :return: their row; ``None`` if there is none
    """
    return (yield from find_row(first, lambda row: _key(_uuid_of(row)) == _key(user_uuid), told_by=_uuid_of))


def check_no_member(
    error: WorkspaceNotFoundError, user_uuid: str, organization_id: str, page_size: int
) -> Procedure[None]:
    """
    Make sure that a user whom the service does not know is no member.

    :param error: the service's 404
    :raises WorkspaceNotFoundError: if a member has this user or membership id
    """
    members = yield from read_rows(ListMembers(organization_id=organization_id, limit=page_size), told_by=_uuid_of)
    _refuse_other_id(error, user_uuid, members, "membership")
    _refuse_listed(error, user_uuid, members, "member")


def members_of(organization: Callable[[], str], page_size: int) -> ListMembers | None:
    """
    Return the operation that lists the members, checked now; ``None`` if no organization is known.

    :param organization: returns the organization
    :raises WorkspaceInputError: if what is given is no organization
    """
    try:
        organization_id = organization()
    except WorkspaceConfigError:
        return None
    members = ListMembers(organization_id=organization_id, limit=page_size)
    members.request()
    return members


def check_no_collaborator(
    error: WorkspaceNotFoundError,
    user_uuid: str,
    collaborators: ListDashboardCollaborators,
    members: ListMembers | None,
) -> Procedure[None]:
    """
    Make sure that a user whom the service does not know is no collaborator of a dashboard.

    :param error: the service's 404
    :param members: asks for the members, among whom the id may be that of a membership; ``None`` if nobody can
    :raises WorkspaceNotFoundError: if a collaborator has this user id, or the id is one of another kind
    """
    rows = yield from read_rows(collaborators, told_by=_uuid_of)
    _refuse_other_id(error, user_uuid, rows, "collaborator")
    _refuse_listed(error, user_uuid, rows, "collaborator")
    cannot_tell = "Whether %s is the id of a user and not of a membership cannot be told: %s"
    if members is None:
        log.warning(cannot_tell, user_uuid, "no organization is set")
        return
    try:
        found = yield from read_rows(members, told_by=_uuid_of)
    except WorkspaceStatusError as unread:
        log.warning(cannot_tell, user_uuid, unread)
    else:
        _refuse_other_id(error, user_uuid, found, "membership")


def _refuse_listed(
    error: WorkspaceNotFoundError, user_uuid: str, rows: Iterable[Member | DashboardCollaborator], kind: str
) -> None:
    """Raise the error if one of the rows is the user's."""
    if any(_key(_uuid_of(row)) == _key(user_uuid) for row in rows):
        raise_listed(error, f"{kind}s")


def _refuse_other_id(
    error: WorkspaceNotFoundError, given: str, rows: Iterable[Member | DashboardCollaborator], kind: str
) -> None:
    """Raise the error if one of the rows has the id that was given as that of a user."""
    for row in rows:
        uuid = _uuid_of(row)
        if _key(row.id) == _key(given) != _key(uuid):
            error.args = (
                f"Pass user_uuid='{uuid}': what was passed is the id of the {kind}, not of the user. {error}",
            )
            raise error


def _uuid_of(row: Member | DashboardCollaborator) -> str | None:
    """Return the id of the user of a row; a collaborator may have it as a field of its own."""
    return (row.user.uuid if row.user else None) or getattr(row, "user_uuid", None)


def _key(uuid: str | None) -> str | None:
    """Return the form in which ids are compared; an id that is not there equals none."""
    return uuid.strip().lower() if uuid else None
