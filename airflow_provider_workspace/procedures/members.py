"""
Plan the changes that make the members of an organization match a roster, or that remove leavers.

Everybody on the roster must be a member with its level, or have an open invite; nobody else may be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.invites_report import name_entries
from airflow_provider_workspace.procedures.people import People, read_people
from airflow_provider_workspace.procedures.plan import Action, Change, Mark, Plan
from airflow_provider_workspace.procedures.roster import Roster, Row, check_roster
from airflow_provider_workspace.procedures.roster_files import addresses_of

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient

# In the order in which they are applied: removals first, because a plan may limit the number of members.
ORDER = ("remove", "change", "create")
# Why a member or an invite is kept.
PROTECTED = "protected"
HIDDEN, ADDRESS = "the service does not show ", "their address"
LEAVING, NOT_ON_ROSTER = "is leaving", "not on the roster"


@dataclass(frozen=True, slots=True)
class Guards:
    """
    Whom a plan neither removes nor changes, and what an invalid row means.

    :param protected: their addresses, as :func:`address_key` returns them
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
        addresses = addresses_of(protected, "protected", needed=False)
        return cls(frozenset(map(address_key, addresses)), owner_level, on_invalid)

    def why_kept(self, member: Member) -> str:
        """Return why a member is neither removed nor changed; an empty string if they may be."""
        email = (member.user and member.user.email) or ""
        if address_key(email) in self.protected:
            return PROTECTED
        if self.protected and not email:
            return HIDDEN + ADDRESS
        if self.owner_level is not None and member.level is None:
            return HIDDEN + "their level"
        if self.owner_level is not None and (member.level or 0) >= self.owner_level:
            return f"an owner (owner_level={self.owner_level})"
        return ""


def plan_members(
    client: WorkspaceClient,
    organization_id: str,
    rows: Iterable[Mapping[str, Any]],
    guards: Guards,
    *,
    now: datetime,
    leaving: bool = False,
    complete: bool = True,
    read_members: Callable[[], list[Member]] | None = None,
    people: People | None = None,
) -> Plan:
    """
    Compare a roster with an organization, or plan the removal of its people and of their open invites.

    :param rows: rows of the roster, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param now: decides which ends are over: those people are removed, or get their level of then
    :param leaving: whether the people of the roster are removed, and nobody else is changed; with an end, after it
    :param complete: whether people who are not on the roster are removed
    :param read_members: returns the members
    :param people: who is there, if somebody has read it
    :raises WorkspaceInputError: if a row is invalid, the roster is empty, or no owner would be left
    """
    roster = _check_rows(rows, guards.on_invalid, "leavers" if leaving else "the roster", now)
    named = {row.key: row for row in (*roster.rows, *roster.ended)}
    wanted = {} if leaving else named
    later = {row.key: row for row in roster.rows if leaving and row.end.until}
    if people is None:
        people = read_people(client, organization_id, read_members)
    why = LEAVING if leaving else NOT_ON_ROSTER

    def goes(key: str, invite: Invite | None = None) -> bool:
        if leaving:
            return key in named and key not in later
        row = named.get(key)
        return complete if row is None else row.is_over or (invite is not None and row.had(invite.level))

    invited: dict[str, list[Invite]] = {}
    for invite in people.invites:
        invited.setdefault(address_key(invite.target_email or ""), []).append(invite)
    accounts = _accounts(people.members)
    changes: list[Change | None] = [
        _plan_invite(organization_id, invite, guards, wanted.get(key), why)
        for key, of_person in invited.items()
        for invite in of_person
        if goes(key, invite)
    ]
    joined: set[str] = set()
    for member in people.members:
        key = address_key((member.user and member.user.email) or "")
        joined.add(key)
        row = wanted.get(key)
        if row or goes(key):
            changes.append(_plan_member(organization_id, member, row, guards, why, accounts.get(key, [])))
    new = [row for row in roster.rows if row.key not in joined and row.key not in later]
    ended = [row for row in roster.ended if row.key not in joined]
    hidden = _count_hidden(people)
    changes += [_later(row, "leaves later: ") for row in later.values()]
    if leaving:
        changes += [_absent(row, LEAVING, hidden) for row in [*new, *ended] if row.key not in invited]
    else:
        if hidden:
            changes += [_absent(row, row.ended[-1].end.over, hidden) for row in ended if row.key not in invited]
        for row in new:
            staying = [invite for invite in invited.get(row.key, []) if not goes(row.key, invite)]
            changes.append(_plan_row(organization_id, row, staying, guards.owner_level))
    changes += [
        _person("skip", one.email, f"row {one.row}: {one.reason}", mark="duplicate") for one in roster.duplicates
    ]
    for one in roster.invalid:
        name = f"row {one.row} {one.email}".rstrip()
        changes.append(Change("differs", "members", name, why=f"left out: {one.reason}"))
    planned = [change for change in changes if change is not None]
    planned.sort(key=lambda change: ORDER.index(change.action) if change.sends else len(ORDER))
    check_owner_stays(people.members, planned)
    return Plan(client.settings.organization_at_service(organization_id), planned, members=len(people.members))


def _check_rows(rows: Iterable[Mapping[str, Any]], on_invalid: str, name: str, now: datetime) -> Roster:
    """Check the roster; an invalid row stops everything unless it may be skipped: its person would be removed."""
    roster = check_roster(rows, now, only_addresses=name == "leavers")
    if roster.invalid and on_invalid == "fail":
        raise WorkspaceInputError(
            f"Correct the invalid rows of {name} ({len(roster.invalid)}): {name_entries(roster.invalid)}",
            problem="rows-invalid",
        )
    if not (roster.rows or roster.ended or roster.invalid):
        raise WorkspaceInputError(
            "leavers is empty" if name == "leavers" else "The roster is empty: this would remove everybody"
        )
    # An invalid row may be the one that keeps somebody.
    broken = {address_key(one.email) for one in roster.invalid}
    roster.ended = [row for row in roster.ended if row.key not in broken]
    return roster


def _level(level: int | None) -> dict[str, Any]:
    return {} if level is None else {"level": level}


def _person(
    action: Action, email: str, why: str, before: int | None = None, after: int | None = None, mark: Mark = ""
) -> Change:
    """Return what is not sent, about a person."""
    name = f"person {email or '-'}"
    person = address_key(email.partition(" ")[0])
    return Change(action, "members", name, _level(after), _level(before), why, mark=mark, person=person)


def _hold(email: str, why: str, hold: str, before: int | None, after: int | None) -> Change:
    """Leave a person alone, because of ``hold``; another level, and an owner who should go, are left to people."""
    action: Action = "unknown" if hold.startswith(HIDDEN) else "skip" if hold == PROTECTED else "differs"
    if None not in (before, after) and before != after:
        action = "differs"
    return _person(action, email, f"{why}, but {hold}", before, after, "kept" if action == "skip" else "")


def _count_hidden(people: People) -> int:
    """Return how many members and open invites do not show their address."""
    members = sum(not (member.user and member.user.email) for member in people.members)
    return members + sum(not invite.target_email for invite in people.invites)


def _absent(row: Row, why: str, hidden: int) -> Change:
    """Say that somebody who should go is in no list, which proves nothing while a list hides addresses."""
    email = row.invite.target_email
    if hidden:
        return _person("unknown", email, f"{why}, but {HIDDEN}the address of {hidden} members or invites")
    return _person("skip", email, "is neither a member nor invited")


def _accounts(members: Iterable[Member]) -> dict[str, list[str]]:
    """Return the users that have the same address, by its key; without addresses that only one user has."""
    users: dict[str, list[str]] = {}
    for member in members:
        if member.user and member.user.email:
            users.setdefault(address_key(member.user.email), []).append(member.user.uuid or "-")
    return {key: uuids for key, uuids in users.items() if len(uuids) > 1}


def _later(row: Row, what: str = "") -> Change | None:
    """Say when access ends; ``None`` if it does not, or has."""
    ends = row.end.until and not row.is_over
    return _person("wait", row.invite.target_email, f"{what}{row.end}") if ends else None


def _plan_invite(organization_id: str, invite: Invite, guards: Guards, row: Row | None, why: str) -> Change | None:
    """Withdraw an open invite; ``None`` if it has the level of a row after its end."""
    email = invite.target_email or ""
    if row and invite.level is not None and invite.level == row.end.then_level:
        return None
    why = f"invited and {row.ended[-1].end.over if row else why}"
    hold = "" if email and invite.id else HIDDEN + "its address or id"
    hold = PROTECTED if address_key(email) in guards.protected else hold
    if hold:
        return _hold(email, why, hold, invite.level, None)
    delete = DeleteInvite(organization_id=organization_id, invite_id=str(invite.id))
    person = address_key(email)
    return Change("remove", "members", f"invite {email}", {}, _level(invite.level), why, delete, person=person)


def _plan_row(organization_id: str, row: Row, invites: list[Invite], owner_level: int | None) -> Change | None:
    """Invite somebody who is not a member; nothing is sent if their open invites have the same level."""
    email, level = row.invite.target_email, row.level
    if not invites:
        create = CreateInvite(organization_id=organization_id, **row.invite.model_dump(exclude_unset=True))
        fields = row.invite.model_dump(mode="json", exclude_unset=True, exclude={"target_email"}) | row.end.fields
        name = f"invite {email}"
        return Change("create", "members", name, fields, why=str(row.end), operation=create, person=row.key)
    others = {invite.level for invite in invites} - {level}
    if not others or (level is None and len(others) == 1):
        return _later(row)
    why, highest = "holds an open invite", max(filter(None, others), default=0)
    if None in others:
        return _person("unknown", email, f"{why}, but {HIDDEN}its level", after=level)
    if len(invites) > 1:
        why = f"holds {len(invites)} open invites: withdraw all but one by hand"
    elif owner_level is not None and (level or 0) < owner_level <= highest:
        why += f" as an owner (owner_level={owner_level}), whom a sync never changes: withdraw it by hand"
    return _person("differs", email, why, highest, level)


def _plan_member(
    organization_id: str, member: Member, row: Row | None, guards: Guards, why: str, accounts: list[str]
) -> Change | None:
    """
    Plan the change to a member; ``None`` if there is none.

    :param why: the reason to remove one without a row
    :param accounts: all users with the address, if there are several
    """
    email, user_uuid = (member.user.email or "", member.user.uuid) if member.user else ("", None)
    old, level = member.level, row.level if row else None
    # The end of the period that gave them what they have.
    end = row.ended[-1].end if row and (row.is_over or row.had(old)) else None
    if row and end:
        level = end.then_level if row.is_over or level is None else level
        why = end.over if level is None else f"{end.over}, back to {level}"
    elif row:
        why = "another level on the roster"
    if row and (level in (None, old) if end is None else level is not None and level == old):
        return _later(row)
    hold = guards.why_kept(member)
    if not hold and (not email or not user_uuid):
        hold = HIDDEN + "their address or user"
    elif not hold and row and old is None and not (row.is_over and row.level is None):
        hold = HIDDEN + "their level"
    elif not hold and row and row.is_over and row.level is not None and not row.had(old):
        hold = f"it was changed since: it was {row.level}"
    elif not hold and row and not row.is_over and level is None:
        hold = "another row keeps them, and names no level"
    elif not hold and accounts and old is not None and level is not None and level > old:
        hold = f"{len(accounts)} users have this address ({', '.join(accounts)}): raise the right one by hand"
    who = f"{email} (user {user_uuid})" if accounts else email
    if hold:
        return _hold(who, why, hold, old, level)
    where = dict[str, Any](organization_id=organization_id, user_uuid=user_uuid)
    if level is None:
        return _removal(DeleteMember(**where), who, old, why)
    update = UpdateMember(**where, level=level)
    fields, until = (row.end.fields, str(row.end)) if row and not row.is_over else ({}, "")
    notes = ", ".join(filter(None, [why if end else "", until]))
    after, person = _level(level) | fields, address_key(email)
    return Change("change", "members", f"member {who}", after, _level(old), notes, update, person=person)


def _removal(delete: DeleteMember, who: str, level: int | None, why: str) -> Change:
    person = address_key(who.partition(" ")[0])
    return Change("remove", "members", f"member {who}", {}, _level(level), why, delete, person=person)


def plan_removal(
    client: WorkspaceClient, delete: DeleteMember, members: list[Member], guards: Guards, *, allow_last_owner: bool
) -> Plan:
    """
    Plan the removal of one member, whom :func:`plan_members` would remove too.

    :param delete: the removal, also of somebody whom the list does not show
    :param allow_last_owner: whether nobody of the highest level need be left
    :raises WorkspaceInputError: if they are kept, with the argument that permits it
    """
    change = _removal(delete, delete.user_uuid, None, LEAVING)
    for member in members:
        if member.user and member.user.uuid == delete.user_uuid:
            change = _removal(delete, member.user.email or delete.user_uuid, member.level, LEAVING)
            hold = guards.why_kept(member)
            if hold:
                cures = {PROTECTED: "Take them out of protected", HIDDEN + ADDRESS: "Leave out protected"}
                cure = cures.get(hold, "Set owner_level=None")
                raise WorkspaceInputError(
                    f"{cure} if {change.name} is to be removed: {LEAVING}, but {hold}. A key stops working without its "
                    "owner"
                )
    if not allow_last_owner:
        check_owner_stays(members, [change], ", or set allow_last_owner=True")
    return Plan(client.settings.organization_at_service(delete.organization_id), [change], members=len(members))


def check_owner_stays(members: Iterable[Member], changes: Iterable[Change], cure: str = "") -> None:
    """
    Refuse changes that leave an organization without a member of its highest level.

    :param cure: what permits it, for the message
    :raises WorkspaceInputError: naming the last ones
    """
    before = {member.user.uuid: member.level or 0 for member in members if member.user and member.user.uuid}
    after, names = dict(before), dict[str, str]()
    for change in changes:
        if isinstance(change.operation, DeleteMember | UpdateMember):
            uuid = change.operation.user_uuid
            after[uuid] = change.after.get("level", -1)
            names[uuid] = change.name
    highest = max(before.values(), default=-1)
    if max(after.values(), default=-1) < highest:
        last = ", ".join(name for uuid, name in names.items() if before.get(uuid) == highest)
        raise WorkspaceInputError(
            f"Make somebody else an owner first{cure}: without {last}, nobody has the highest level of the "
            f"organization, {highest}",
            problem="no-owner-left",
        )
