"""The people of an organization: its invites and its members, read in the order in which nobody is missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.procedures.find import check_all_shown, members_of, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient


@dataclass(frozen=True)
class NotedPerson:
    """
    A person as notes know them.

    :param email: the address in the newest note, which may be another one by now
    :param since: when the first of the notes was written, in seconds since 1970
    :param user_uuid: the user; ``None`` as long as no list has shown it
    :param invite_ids: the invites
    :param emails: all addresses in the notes
    :param level: the lowest level that notes without a user gave a member; ``None`` if there is none
    """

    email: str
    since: float
    user_uuid: str | None = None
    invite_ids: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    level: int | None = None


@dataclass(frozen=True, slots=True)
class People:
    """
    The people of an organization.

    :param invites: the open ones; an expired one gives no access any more, and blocks no new one
    """

    invites: list[Invite]
    members: list[Member]


def check_not_empty(members: Collection[object]) -> None:
    """
    Refuse a list of members without anybody, which proves nothing: the owner of the API key is a member.

    :raises WorkspaceError: if it is empty
    """
    if not members:
        raise WorkspaceError(
            "The service lists no member at all, though the owner of the API key is one. Run this again",
            permanent=False,
            problem="list-too-short",
        )


def read_people(
    client: WorkspaceClient,
    organization_id: str,
    read_members: Callable[[], list[Member]] | None = None,
    read_invites: Callable[[], list[Invite]] | None = None,
) -> People:
    """
    Read invites, then members: who joins in between is in both, and in neither if it were the other way round.

    :param read_members: returns the members, if somebody has a list of them
    :param read_invites: the same of all invites
    :raises WorkspaceIncompleteListError: if a list is known to be short
    """
    if read_invites is None:
        invites = read_rows(client, ListInvites(organization_id=organization_id))
    else:
        invites = read_invites()
    if read_members is None:
        members = members_of(client, organization_id)
    else:
        members = read_members()
        check_all_shown(client, organization_id, len(members))
    opened = [invite for invite in invites if not invite.is_expired]
    return People(opened, members)
