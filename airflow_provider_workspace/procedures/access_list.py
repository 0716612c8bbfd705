"""Who has access, by identity: a change is proven on the user whom it is about, whatever their address is by now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.comparison import email_key
from airflow_provider_workspace.api.operations.dashboards import RemoveDashboardCollaborator
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.api.timestamps import parse_timestamp

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member

# What somebody who has access is known by: the user, behind the dashboard if it is a collaborator.
Identity = tuple[str, ...]
# What those are known by whose user is not shown.
HIDDEN_USERS: Identity = ("",)


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """
    A member or a collaborator, as a list shows them.

    :param name: who it is, for people
    :param level: the level; ``None`` if it is not shown
    :param person: key of the address; empty if it is not shown
    :param is_judged: whether a plan decides what they may have
    :param full_name: first and last name; empty if they are not shown
    :param joined_at: when they joined, as the service shows it; ``None`` if it does not
    """

    name: str
    level: int | None
    person: str = ""
    is_judged: bool = True
    full_name: str = ""
    joined_at: str | None = None


@dataclass(slots=True)
class AccessList:
    """
    Who has access when a plan is made.

    :param shown: the entries by what their people are known by
    :param hidden: how many do not show their user
    :param invited: keys of the addresses with an open invite
    :param full_names: the names of members by the keys of their addresses, as far as both are shown
    :param unjudged: the entries of people of whom a plan does not decide what they may have, also of hidden ones
    :param absent: keys of the addresses of people who should have no access, and whom no list shows
    """

    shown: dict[Identity, AccessEntry] = field(default_factory=dict[Identity, AccessEntry])
    hidden: int = 0
    invited: frozenset[str] = frozenset()
    full_names: dict[str, str] = field(default_factory=dict[str, str])
    unjudged: list[AccessEntry] = field(default_factory=list[AccessEntry])
    absent: set[str] = field(default_factory=set[str])

    def add(self, identity: Identity, entry: AccessEntry) -> None:
        """Add an entry; the last part of the identity is the user, empty if it is not shown."""
        if identity[-1]:
            self.shown[identity] = entry
        else:
            self.hidden += 1
        if not entry.is_judged:
            self.unjudged.append(entry)
        if entry.person:
            self.full_names[entry.person] = entry.full_name

    def of(self, operation: object) -> AccessEntry | None:
        """Return the entry of whom an operation is about; ``None`` if there is none."""
        identity = identity_of(operation)
        return None if identity is None else self.shown.get(identity)

    @property
    def homes(self) -> dict[str, str]:
        """The key of the address of each member who shows it, by their user."""
        return {key[0]: entry.person for key, entry in self.shown.items() if len(key) == 1 and entry.person}

    @property
    def hides_people(self) -> bool:
        """Whether a member does not show their user or address."""
        return self.hidden > 0 or not all(entry.person for entry in self.shown.values())

    def levels_of(self, person: str) -> list[int | None]:
        """Return the levels of the members with an address; ``None`` for one that is not shown."""
        return [entry.level for entry in self.shown.values() if entry.person == person]

    def joined_since(self, before: AccessList) -> dict[Identity, str]:
        """
        Return who may have accepted an invite that is gone, for people: who joined without an invite of their own.

        Without those about whom a plan says what they may have.
        """
        joined: dict[Identity, str] = {}
        for identity, entry in self.shown.items():
            was_invited = bool(entry.person) and entry.person in before.invited
            is_explained = entry.is_judged or was_invited
            if identity not in before.shown and not is_explained:
                joined[identity] = entry.name
        if self.hidden > before.hidden:
            joined[HIDDEN_USERS] = f"{self.hidden - before.hidden} members whom the service does not show"
        return joined

    def joined_after(self, moment: float) -> list[str]:
        """
        Return who may have joined after a moment, for people, without those about whom a plan says what they may have.

        :param moment: in seconds since 1970
        """
        names: list[str] = []
        for entry in self.unjudged:
            joined_at = parse_timestamp(entry.joined_at)
            if joined_at is None or joined_at >= moment:
                names.append(entry.name)
        return names


def identity_of(operation: object) -> Identity | None:
    """Return what somebody is known by whom an operation is about; ``None`` if it is about none."""
    if isinstance(operation, DeleteMember | UpdateMember):
        return (str(operation.user_uuid),)
    if isinstance(operation, RemoveDashboardCollaborator):
        return collaborator_identity(operation.dashboard_id, operation.user_uuid)
    return None


def member_identity(member: Member) -> Identity:
    """Return what tells a member apart."""
    return (member.user_uuid or "",)


def entry_of(member: Member, *, is_judged: bool) -> AccessEntry:
    """
    Return a member as somebody who has access while a plan is made.

    :param is_judged: whether the plan says what they should have
    """
    name = f"member {member.email_address or '-'} (user {member.user_uuid or '-'})"
    person = email_key(member)
    full_name = member.user.full_name if member.user else ""
    return AccessEntry(name, member.level, person, is_judged and bool(person), full_name, member.joined_at)


def collaborator_identity(dashboard_id: object, user_uuid: object) -> Identity:
    """Return what a collaborator is known by."""
    return (str(dashboard_id), str(user_uuid or ""))


def homes_of(members: Iterable[Member]) -> dict[str, str]:
    """Return the key of the address of each user who shows it, where the list shows the user last."""
    return {member.user_uuid: email_key(member) for member in members if member.user_uuid and member.label}


def users_by_address(members: Iterable[Member]) -> dict[str, list[str]]:
    """
    Return the users of each address, by its key; several if accounts share it.

    :param members: each user once
    """
    users: dict[str, list[str]] = {}
    for member in members:
        if member.email_address:
            users.setdefault(email_key(member), []).append(member.user_uuid or "")
    return users
