"""Whom no plan of members touches: protected people, owners, and the last of the highest level."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import address_key, domain_key, email_key
from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.errors import WorkspaceInputError, name_first, shown
from airflow_provider_workspace.procedures.roster_files import addresses_of, rows_of_value

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.procedures.plan import Change

# Why a member or an invite is kept.
_PROTECTED = "protected"
# What protects everybody of a domain.
ALL_OF = "*@"
_LABEL = r"[^\s@*?.,;:|/<>()\"]+"
_ALL_OF_DOMAIN = re.compile(rf"\*@(?:{_LABEL}\.)+{_LABEL}")
HIDDEN, ADDRESS = "the service does not show ", "their address"


@dataclass(frozen=True, slots=True)
class Guards:
    """
    Whom a plan neither removes nor changes, and what an invalid row means.

    :param protected: their addresses, as :func:`protected_key` returns them
    :param owner_level: members of this level and above, too; ``None`` to treat them like others
    :param on_invalid: ``fail`` if a row is invalid, or ``skip`` such rows; only where their people are not removed
    """

    protected: frozenset[str]
    owner_level: int | None
    on_invalid: str = "fail"

    @classmethod
    def read(cls, protected: Any, owner_level: int | None, on_invalid: str = "fail") -> Guards:
        """
        Read the arguments of an operator.

        :param protected: rows, see :func:`~airflow_provider_workspace.procedures.roster_files.read_roster`
        :raises WorkspaceInputError: if a row has no valid address
        """
        rows = rows_of_value(protected, "protected")
        patterns = [row for row in rows if is_pattern(row)]
        problems = list(filter(None, map(pattern_problem, patterns)))
        if problems:
            raise WorkspaceInputError(f"protected: {'; '.join(problems)}")
        others = [row for row in rows if not is_pattern(row)]
        for row in others:
            if isinstance(row, Mapping) and is_pattern(row.get("email")):
                raise WorkspaceInputError(f"protected: write {shown(row['email'])} as a text, not as a cell of a row")
        addresses = addresses_of(others, "protected", needed=False)
        return cls(frozenset(map(protected_key, [*patterns, *addresses])), owner_level, on_invalid)

    def protects(self, key: str) -> bool:
        """Return whether somebody is protected, or everybody of their domain; ``key`` is that of their address."""
        if key in self.protected:
            return True
        domain = key.rpartition("@")[2]
        return ALL_OF + domain in self.protected

    def protects_any(self, keys: Iterable[str]) -> bool:
        """Return whether one of the addresses of somebody is protected, by their keys."""
        return any(map(self.protects, keys))

    def why_kept(self, member: Member) -> str:
        """Return why a member is neither removed nor changed; an empty string if they may be."""
        if self.protects(email_key(member)):
            return _PROTECTED
        if self.protected and not member.email_address:
            return HIDDEN + ADDRESS
        if self.owner_level is not None and member.level is None:
            return HIDDEN + "their level"
        if self.owner_level is not None and (member.level or 0) >= self.owner_level:
            return f"an owner (owner_level={self.owner_level})"
        return ""

    @property
    def keeps_anybody(self) -> bool:
        """Whether there may be somebody whom nobody may touch."""
        return bool(self.protected) or self.owner_level is not None

    def why_invite_kept(self, invite: Invite) -> str:
        """Return why an open invite is not withdrawn; an empty string if it may be."""
        if self.protects(email_key(invite)):
            return _PROTECTED
        if not (invite.target_email and invite.id):
            return HIDDEN + "its address or id"
        return ""

    def raise_if_invite_kept(self, invite: Invite) -> None:
        """
        Refuse to withdraw an invite whose person is protected, or may be.

        :raises WorkspaceInputError: with the argument that permits it
        """
        if not self.protected:
            return
        why = self.why_invite_kept(invite)
        if why:
            raise WorkspaceInputError(
                f"The invite {invite.id} of {invite.target_email or '-'} is kept: {why}. To withdraw it anyway, take "
                "the address out of protected"
            )

    def raise_if_kept(self, member: Member, who: str, verb: str = "remove") -> None:
        """
        Refuse to remove or lower a member who is protected, an owner, or perhaps one of these.

        :param who: their address, or else their user
        :param verb: what is refused
        :raises WorkspaceInputError: with the argument that permits it
        """
        why_kept = self.why_kept(member)
        if not why_kept:
            return
        cure = "set owner_level=None"
        if why_kept == _PROTECTED:
            why = f"{who} is protected"
            cure = "take the address out of protected"
        elif why_kept == HIDDEN + ADDRESS:
            why = f"The service does not show the address of {who}, who may be protected"
            cure = "leave out protected"
        elif member.level is None:
            why = f"The service does not show the level of {who}, who may be an owner"
        else:
            why = f"{who} is an owner (level {member.level}; owner_level={self.owner_level}), and owners are kept"
        raise WorkspaceInputError(f"{why}. To {verb} {who} anyway, {cure}. An API key stops working without its owner")


def is_pattern(value: object) -> bool:
    """Return whether a text is meant to protect several people: no address of a person has these characters."""
    return isinstance(value, str) and ("*" in value or "?" in value)


def pattern_problem(pattern: str) -> str:
    """Return what is wrong with what should protect everybody of a domain; empty if nothing is."""
    if _ALL_OF_DOMAIN.fullmatch(pattern.strip()):
        return ""
    return f"{shown(pattern)} is no pattern: write one address, or '*@' and one whole domain, as in '*@partner.example'"


def protected_key(text: str) -> str:
    """Return the form in which protected people are compared: an address, or ``*@`` and a domain."""
    if not is_pattern(text):
        return address_key(text)
    return ALL_OF + domain_key(text.strip().removeprefix(ALL_OF))


def describe_protected(pattern: str, names: Collection[str], people: int) -> str:
    """
    Return whom a pattern protects, for people.

    :param names: the addresses that it matches
    :param people: how many members and invites there are
    """
    if not names:
        return "protected, but matches neither a member nor an invite: check the domain"
    named = name_first(sorted(names), "the list of members", ", ")
    if len(names) == people:
        return f"{pattern} protects everybody, so nobody can lose access: {named}"
    return f"protected: {len(names)} of {people} members and invites: {named}"


NO_GUARDS = Guards(frozenset(), None)


def raise_if_no_owner_left(members: Iterable[Member], changes: Iterable[Change], cure: str = "") -> None:
    """
    Refuse changes that leave an organization without a member of its highest level.

    :param cure: what permits it, for the message
    :raises WorkspaceInputError: naming the last ones
    """
    before: dict[str, int] = {}
    for member in members:
        if member.user_uuid:
            before[member.user_uuid] = member.level or 0
    highest = max(before.values(), default=-1)
    after = dict(before)
    last: list[str] = []
    for change in changes:
        if not isinstance(change.operation, DeleteMember | UpdateMember):
            continue
        user_uuid = change.operation.user_uuid
        after[user_uuid] = change.after.get("level", -1)
        if before.get(user_uuid) == highest and change.name not in last:
            last.append(change.name)
    if max(after.values(), default=-1) >= highest:
        return
    raise WorkspaceInputError(
        f"Nobody would have the highest level of the organization any more, {describe_level(highest)}. Make somebody "
        f"else an owner first{cure}: this takes it from {', '.join(last)}",
        problem="no-owner-left",
    )
