"""
Plan the changes that make the members of an organization match a roster, or that remove leavers.

Everybody on the roster must be a member with its level, or have an open invite; nobody else may be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.holders import Holder, Holders, users_by_address
from airflow_provider_workspace.procedures.invites_report import name_entries
from airflow_provider_workspace.procedures.people import People, check_not_empty, read_people
from airflow_provider_workspace.procedures.plan import Action, Change, Mark, Plan
from airflow_provider_workspace.procedures.roster import Roster, Row, check_roster
from airflow_provider_workspace.procedures.roster_files import addresses_of

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.ends import End
    from airflow_provider_workspace.procedures.holders import Identity

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
    :raises WorkspaceError: if the list of members is empty
    """
    roster = _check_rows(rows, guards.on_invalid, "leavers" if leaving else "the roster", now)
    named = {row.key: row for row in (*roster.rows, *roster.ended)}
    wanted = {} if leaving else named
    later = {row.key: row for row in roster.rows if leaving and row.end.until}
    if people is None:
        people = read_people(client, organization_id, read_members)
        check_not_empty(people.members)
    why = LEAVING if leaving else NOT_ON_ROSTER

    def goes(key: str, invite: Invite | None = None) -> bool:
        if leaving:
            return key in named and key not in later
        row = named.get(key)
        return complete if row is None else row.is_over or (invite is not None and row.had(invite.level))

    invited: dict[str, list[Invite]] = {}
    for invite in people.invites:
        invited.setdefault(address_key(invite.target_email or ""), []).append(invite)
    users = users_by_address(people.members)
    holders = Holders(invited=frozenset(invited))
    changes: list[Change | None] = []
    for key, of_person in invited.items():
        going = [invite for invite in of_person if goes(key, invite)]
        changes += [_plan_invite(organization_id, invite, guards, wanted.get(key), why) for invite in going]
    joined: set[str] = set()
    for member in people.members:
        if _identity(member) in holders.shown:  # a list that changes may show a user twice
            continue
        key = _key(member)
        joined.add(key)
        row = wanted.get(key)
        is_judged = row is not None or goes(key)
        holders.add(_identity(member), _holder(member, is_judged=is_judged))
        if is_judged:
            changes.append(_plan_member(organization_id, member, row, guards, why, users.get(key, [])))
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
    changes += _left_out(roster)
    planned = [change for change in changes if change is not None]
    planned.sort(key=lambda change: ORDER.index(change.action) if change.sends else len(ORDER))
    check_owner_stays(people.members, planned)
    where = client.settings.organization_at_service(organization_id)
    return Plan(where, planned, members=len(people.members), holders=holders)


def _left_out(roster: Roster) -> list[Change]:
    """Return the rows that say what another one says, and the invalid ones."""
    changes = [
        _person("skip", entry.email, f"row {entry.row}: {entry.reason}", mark="duplicate")
        for entry in roster.duplicates
    ]
    for entry in roster.invalid:
        name = f"row {entry.row} {entry.email}".rstrip()
        changes.append(Change("differs", "members", name, why=f"left out: {entry.reason}"))
    return changes


def _key(member: Member) -> str:
    """Return the key of the address of a member; empty if it is not shown."""
    email = member.user.email if member.user else None
    return address_key(email or "")


def _identity(member: Member) -> Identity:
    user_uuid = member.user.uuid if member.user else None
    return (user_uuid or "",)


def _holder(member: Member, *, is_judged: bool) -> Holder:
    email = member.user.email if member.user else None
    (user_uuid,) = _identity(member)
    name = f"member {email or '-'} (user {user_uuid or '-'})"
    person = _key(member)
    return Holder(name, member.level, person, is_judged and bool(person))


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


def _hold(
    email: str, why: str, hold: str, before: int | None, after: int | None, *, should_lose: bool = False
) -> Change:
    """
    Leave a person alone, because of ``hold``; another level, and an owner who should go, are left to people.

    :param should_lose: whether they should lose a part of their level, though ``after`` is a level
    """
    action: Action = "differs"
    if hold.startswith(HIDDEN):
        action = "unknown"
    elif hold == PROTECTED:
        action = "skip"
    if None not in (before, after) and before != after:
        action = "differs"
    change = _person(action, email, f"{why}, but {hold}", before, after, "kept" if action == "skip" else "")
    return replace(change, should_lose=should_lose or after is None)


def _count_hidden(people: People) -> int:
    """Return how many members and open invites do not show their address."""
    members = sum(not (member.user and member.user.email) for member in people.members)
    return members + sum(not invite.target_email for invite in people.invites)


def _absent(row: Row, why: str, hidden: int) -> Change:
    """Say that somebody who should go is in no list, which proves nothing while a list hides addresses."""
    email = row.invite.target_email
    if hidden:
        change = _person("unknown", email, f"{why}, but {HIDDEN}the address of {hidden} members or invites")
        return replace(change, should_lose=True)
    return _person("skip", email, "is neither a member nor invited")


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
    organization_id: str, member: Member, row: Row | None, guards: Guards, why: str, users: list[str]
) -> Change | None:
    """
    Plan the change to a member; ``None`` if there is none.

    :param why: the reason to remove one without a row
    :param users: all users who have the address
    """
    email = (member.user.email or "") if member.user else ""
    user_uuid = member.user.uuid if member.user else None
    old = member.level
    level = row.level if row else None
    end = _end_of(row, old)
    if row and end:
        level = end.then_level if row.is_over or level is None else level
        why = end.over if level is None else f"{end.over}, back to {level}"
        is_reached = level is not None and level == old
    elif row:
        why = "another level on the roster"
        is_reached = level in (None, old)
    else:
        is_reached = False
    if row and is_reached:
        return _later(row)
    who = f"{email} (user {user_uuid})" if len(users) > 1 else email
    hold = guards.why_kept(member) or _why_held(member, row, level, users)
    if hold:
        return _hold(who, why, hold, old, level, should_lose=end is not None)
    where = dict[str, Any](organization_id=organization_id, user_uuid=user_uuid)
    if level is None:
        return _removal(DeleteMember(**where), who, old, why)
    update = UpdateMember(**where, level=level)
    notes = [why] if end else []
    after = _level(level)
    if row and not row.is_over:
        after |= row.end.fields
        notes.append(str(row.end))
    text = ", ".join(filter(None, notes))
    return Change("change", "members", f"member {who}", after, _level(old), text, update, person=address_key(email))


def _end_of(row: Row | None, level: int | None) -> End | None:
    """Return the end of the period that gave a person what they have; ``None`` if it is none that is over."""
    if row is None or not (row.is_over or row.had(level)):
        return None
    return row.ended[-1].end


def _why_held(member: Member, row: Row | None, level: int | None, users: list[str]) -> str:
    """Return why nothing is sent about a member who is not kept, though they should get another level or go."""
    old = member.level
    if not member.user or not member.user.email or not member.user.uuid:
        return HIDDEN + "their address or user"
    if row and old is None and not (row.is_over and row.level is None):
        return HIDDEN + "their level"
    if row and row.is_over and row.level is not None and not row.had(old):
        return f"it was changed since: it was {row.level}"
    if row and not row.is_over and level is None:
        return "another row keeps them, and names no level"
    is_raised = old is not None and level is not None and level > old
    if is_raised and len(users) > 1:
        named = ", ".join(user_uuid or "-" for user_uuid in users)
        return f"{len(users)} users have this address ({named}): raise the right one by hand"
    return ""


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
