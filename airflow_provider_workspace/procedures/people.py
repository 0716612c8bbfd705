"""The people of an organization: its invites and its members, read in the order in which nobody is missed."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.comparison import email_key
from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.procedures.find import check_all_shown, members_of, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient

log = logging.getLogger(__name__)


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
    :param had_level: levels that invites gave, and the users who had each of them before; ``None`` if that is not known
    """

    email: str
    since: float
    user_uuid: str | None = None
    invite_ids: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    level: int | None = None
    had_level: tuple[tuple[int, frozenset[str] | None], ...] = ()


@dataclass(frozen=True, slots=True)
class People:
    """
    The people of an organization.

    :param invites: the open ones; an expired one gives no access any more, and blocks no new one
    :param members: each user once, see :func:`one_row_each`
    :param disputed: the users of addresses, by their keys, beside which other rows of these users show another one
    :param expired: when the newest expired invite of an address was sent, by its key; infinite if that is not shown
    """

    invites: list[Invite]
    members: list[Member]
    disputed: Mapping[str, str] = field(default_factory=dict[str, str])
    expired: Mapping[str, float] = field(default_factory=dict[str, float])


def one_row_each(members: Iterable[Member]) -> list[Member]:
    """Return each user once: an address or a level that differs between their rows counts as not shown."""
    rows: dict[object, Member] = {}
    for number, member in enumerate(members):
        key = member.user_uuid or number  # whose user is not shown may be anybody
        first = rows.setdefault(key, member)
        if first is not member:
            rows[key] = _agreed(first, member)
    return list(rows.values())


def _agreed(first: Member, other: Member) -> Member:
    """Return what two rows of a user agree on."""
    if first.level != other.level or email_key(first) != email_key(other):
        log.warning("Two rows of the list of members contradict each other about user %s.", first.user_uuid)
    if first.user and email_key(first) != email_key(other):
        first = first.model_copy(update={"user": first.user.model_copy(update={"email": None})})
    if first.level != other.level:
        first = first.model_copy(update={"level": None})
    return first


def _disputed(members: Iterable[Member]) -> dict[str, str]:
    """Return the users of addresses whose rows show several, by the keys of these."""
    addresses: dict[str, set[str]] = {}
    for member in members:
        if member.user_uuid and member.email_address:
            addresses.setdefault(member.user_uuid, set()).add(email_key(member))
    return {key: user for user, keys in addresses.items() if len(keys) > 1 for key in keys}


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
    expired: dict[str, float] = {}
    for invite in invites:
        if invite.is_expired:
            key = email_key(invite)
            sent_at = parse_timestamp(invite.created_at)
            expired[key] = max(expired.get(key, 0.0), math.inf if sent_at is None else sent_at)
    return People(opened, one_row_each(members), _disputed(members), expired)
