"""
Plan the changes that make the members of an organization match a roster, or that remove leavers.

Everybody on the roster must be a member with its level, or have an open invite; nobody else may be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.members.case import (
    Case,
    is_withdrawn,
    saying_of,
)
from airflow_provider_workspace.access.members.earlier_invites import InviteAgain
from airflow_provider_workspace.access.members.lines import (
    MemberChange,
    compared_with_invites,
    gone,
    held_by_grants,
    highest_of,
    invitation,
    kept,
    later_end,
    level_change,
    levels_left,
    order_of,
    refused_by_review,
    remark_on,
    removal,
    renewal,
    rows_left_out,
    unchanged,
    withdrawal,
)
from airflow_provider_workspace.access.members.same_person import find_people_by_user, with_same_people
from airflow_provider_workspace.access.rules.entitlements import (
    NOTHING_NOTED,
    Claims,
    Entitlement,
    NotedAccess,
    Saying,
    entitlement_of,
)
from airflow_provider_workspace.access.rules.guards import (
    HIDDEN,
    Guards,
    describe_protected,
    is_pattern,
    raise_if_no_owner_left,
)
from airflow_provider_workspace.api.comparison import address_key, email_key
from airflow_provider_workspace.api.operations.invites import DeleteInvite
from airflow_provider_workspace.api.operations.members import DeleteMember
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.access_list import (
    AccessList,
    entry_of,
    homes_of,
    member_identity,
    users_by_address,
)
from airflow_provider_workspace.procedures.find import describe_reading
from airflow_provider_workspace.procedures.invites_report import name_entries
from airflow_provider_workspace.procedures.people import People, check_not_empty, read_people
from airflow_provider_workspace.procedures.plan import Change, ChangeResult, Plan, counted
from airflow_provider_workspace.procedures.quota import Quota
from airflow_provider_workspace.procedures.roster import Roster, Row, check_roster

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings

# How many invites a run renews if the connection names no limit of invites.
MAX_RENEWALS = 50
LEAVING, NOT_ON_ROSTER = "is leaving", "not on the roster"
# What begins a plan that could not read notes.
NOT_KNOWN = "Temporary access and decisions of reviews are not known here."


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
    noted: NotedAccess = NOTHING_NOTED,
    renew_invites: bool = False,
    again: InviteAgain | None = None,
) -> Plan:
    """
    Compare a roster with an organization, or plan the removal of its people and of their open invites.

    :param rows: rows of the roster, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param now: decides which ends are over: those people are removed, or get their level of then
    :param leaving: whether the people of the roster are removed, and nobody else is changed; with an end, after it
    :param complete: whether people who are not on the roster are removed
    :param read_members: returns the members
    :param people: who is there, if somebody has read it
    :param noted: temporary access and decisions of reviews, which have a say too
    :param renew_invites: whether an open invite that is not as its row says is withdrawn and sent again
    :param again: how often people who do not join are invited again; ``None`` as often as their invites expire
    :raises WorkspaceInputError: if a row is invalid, the roster is empty, or no owner would be left
    :raises WorkspaceError: if the list of members is empty
    """
    roster = check_roster(rows, now, only_addresses=leaving)
    _raise_if_not_usable(roster, guards.on_invalid, is_leaving=leaving)
    if people is None:
        people = read_people(client, organization_id, read_members)
        check_not_empty(people.members)
    _leave_out_doubtful(roster, people.members, is_leaving=leaving)
    renamed = find_people_by_user(roster, people.members, is_leaving=leaving)
    still_protected = {key for key, given in renamed.items() if guards.protects(given)}
    guards = replace(guards, protected=guards.protected | still_protected)
    planner = _Planner(
        organization_id=organization_id,
        guards=guards,
        roster=roster,
        people=people,
        noted=noted,
        now=now,
        is_leaving=leaving,
        is_complete=complete,
        renews=renew_invites,
        again=again or InviteAgain(),
    )
    changes = with_same_people(planner.changes(), people.members)
    changes.sort(key=order_of)
    raise_if_no_owner_left(people.members, changes)
    reading = describe_reading(client.settings) if complete else ""
    remarks = _remarks(roster, noted, reading, planner.again)
    plan = Plan(
        client.settings.organization_at_service(organization_id),
        changes,
        members=len(people.members),
        remark="\n".join(remarks),
        access_list=planner.access_list,
        check_rest=partial(raise_if_no_owner_left, people.members),
    )
    _put_off_renewals(plan, client.settings, people, now)
    return plan


def _put_off_renewals(plan: Plan, settings: Settings, people: People, now: datetime) -> None:
    """Leave to later runs the renewals whose new invites would wait for a limit, with the old ones withdrawn."""
    invites = [change for change in plan.changes if change.invites]
    renewals = [change for change in plan.changes if change.is_renewal]
    if not renewals:
        return
    most = MAX_RENEWALS
    quota = Quota(settings.invites_per_hour, settings.invites_per_day)
    if any(quota.configured.values()):
        times = [parse_timestamp(invite.created_at) or 0.0 for invite in people.invites]
        times += people.expired.values()
        granted, _ = quota.grants(times, len(invites), now.timestamp())
        most = max(0, granted + len(renewals) - len(invites))
    later = {change.person for change in renewals[most:]}
    for change in [*renewals, *invites]:
        if change.person in later:
            plan.outcomes[change] = ChangeResult("not_sent", "a later run renews it")
    if later:
        numbers = f"{len(renewals) - len(later)} of {counted(len(renewals), 'invite', 'invites')}"
        why = "so that no old one is withdrawn long before the limits let the new one go"
        plan.remark = f"{plan.remark}\nThis run renews {numbers}, {why}. Later runs renew the others.".strip()


def _remarks(roster: Roster, noted: NotedAccess, reading: str, again: InviteAgain) -> list[str]:
    """
    Return what people must know before they read the plan.

    :param reading: with which key the lists were read that decide by absence
    """
    remarks = [*roster.remarks, *filter(None, [reading, again.remark])]
    if not noted.are_known:
        remarks.insert(0, NOT_KNOWN)
    if roster.blank:
        remarks.append(f"Blank rows, which were skipped: {roster.blank}.")
    return remarks


@dataclass(frozen=True)
class _Planner:
    """
    Compares the rows of a roster with the people of an organization; see :func:`plan_members`.

    :param is_leaving: whether the people of the rows are removed, and nobody else is changed
    :param is_complete: whether people whom no row names are removed
    :param renews: whether open invites that are not as their rows say are withdrawn and sent again
    :param again: how often people who do not join are invited again
    """

    organization_id: str
    guards: Guards
    roster: Roster
    people: People
    noted: NotedAccess
    now: datetime
    is_leaving: bool
    is_complete: bool
    renews: bool
    again: InviteAgain
    access_list: AccessList = field(default_factory=AccessList)

    @cached_property
    def _rows(self) -> dict[str, Row]:
        """The row of each person that counts, by the key of their address."""
        return {row.key: row for row in (*self.roster.rows, *self.roster.ended)}

    @cached_property
    def _invites(self) -> dict[str, list[Invite]]:
        """The open invites, by the key of their address."""
        invites: dict[str, list[Invite]] = {}
        for invite in self.people.invites:
            invites.setdefault(email_key(invite), []).append(invite)
        return invites

    @cached_property
    def _joined(self) -> set[str]:
        """The keys of the addresses of members."""
        return {email_key(member) for member in self.people.members}

    @cached_property
    def _users(self) -> dict[str, list[str]]:
        """The users of each address."""
        return users_by_address(self.people.members)

    @cached_property
    def _hidden(self) -> int:
        """How many members and open invites do not show their address."""
        members = [member for member in self.people.members if not member.email_address]
        invites = [invite for invite in self.people.invites if not invite.target_email]
        return len(members) + len(invites)

    @cached_property
    def _homes(self) -> dict[str, str]:
        """The key of the address of each user who is a member and shows it."""
        return homes_of(self.people.members)

    def _has_access(self, key: str) -> bool:
        """Return whether somebody is a member or invited."""
        return key in self._joined or key in self._invites

    def changes(self) -> list[Change]:
        """Return the changes, and what is not sent."""
        self.access_list.invited = frozenset(self._invites)
        changes: list[Change | None] = []
        staying: dict[str, list[Invite]] = {}
        for key, invites in self._invites.items():
            for invite in invites:
                change = self._of_invite(key, invite)
                changes.append(change)
                if change is None or change.action == "wait":
                    staying.setdefault(key, []).append(invite)
        changes += [self._of_member(member) for member in self.people.members]
        changes += self._of_leavers() if self.is_leaving else self._of_newcomers(staying)
        changes += self._of_protected()
        changes += rows_left_out(self.roster, is_leaving=self.is_leaving)
        return [change for change in changes if change is not None]

    def _saying(self, key: str, held: int | None) -> Saying | None:
        """
        Return what the rows say about somebody who has access; ``None`` if they say nothing.

        :param held: their level; ``None`` if it is not shown
        """
        row = self._rows.get(key)
        if self.is_leaving:
            return Saying(has_access=False, why=LEAVING, leaves=True) if row and row.leaves_now else None
        if row and row.is_over and row.row_left_out:
            return None
        if row:
            return saying_of(row, held)
        if self.is_complete:
            return Saying(has_access=False, why=NOT_ON_ROSTER, is_named=False)
        return None

    def _entitlement(self, saying: Saying, claims: Claims) -> Entitlement:
        """Return what somebody should have."""
        return entitlement_of(saying, claims, self.now.timestamp())

    # Open invites

    def _of_invite(self, key: str, invite: Invite) -> Change | None:
        """Withdraw an open invite; ``None`` if it stays."""
        saying = self._saying(key, invite.level)
        if saying is None:
            return None
        claims = self.noted.of_invite(key, invite.id, self._homes)
        entitled = self._entitlement(saying, claims)
        email = invite.target_email or ""
        if not is_withdrawn(saying, entitled, invite.level):
            # What else is to be done, the row of the person says.
            is_held = entitled.temporary is not None and not saying.has_access
            return remark_on("wait", email, entitled.why, before=invite.level) if is_held else None
        why = f"invited and {entitled.why}"
        why_kept = self.guards.why_invite_kept(invite)
        if why_kept:
            return kept(email, why, why_kept=why_kept, before=invite.level, after=None, entitled=entitled)
        delete = DeleteInvite(organization_id=self.organization_id, invite_id=str(invite.id))
        return withdrawal(delete, email, why, level=invite.level, ends=entitled.ended)

    # Members

    def _of_member(self, member: Member) -> MemberChange | None:
        """Plan the change to a member; ``None`` if there is none."""
        key = email_key(member)
        saying = self._saying(key, member.level)
        entry = entry_of(member, is_judged=saying is not None)
        self.access_list.add(member_identity(member), entry)
        if saying is None:
            return None
        claims = self.noted.of_member(key, member.user_uuid)
        entitled = self._entitlement(saying, claims)
        case = Case(
            member=member,
            key=key,
            row=self._rows.get(key),
            saying=saying,
            entitled=entitled,
        )
        change = self._change_of(case)
        if change is None or not entitled.grants:
            return change
        return replace(change, leaves=levels_left(case.row, entitled))

    def _change_of(self, case: Case) -> MemberChange | None:
        """Return the change to a member, or what there is to say about them; ``None`` if there is nothing."""
        if not case.differs:
            return unchanged(case)
        who = case.email
        users = self._users.get(case.key, ())
        if len(users) > 1:
            who = f"{case.email} (user {case.user_uuid})"
        why_kept = self._why_kept(case)
        if why_kept:
            return kept(who, case.why, why_kept=why_kept, before=case.held, after=case.wanted, entitled=case.entitled)
        if case.wanted is not None:
            return level_change(self.organization_id, case, who, case.wanted)
        delete = DeleteMember(organization_id=self.organization_id, user_uuid=str(case.user_uuid))
        return removal(delete, who, case.why, level=case.held, ends=case.entitled.ended)

    def _why_kept(self, case: Case) -> str:
        """Return why a member is left as they are; an empty string if they may be changed."""
        why_kept = self.guards.why_kept(case.member)
        if why_kept:
            return why_kept
        if not (case.email and case.user_uuid):
            return HIDDEN + "their address or user"
        row = case.row
        if row is None or case.saying.leaves:
            return ""
        if case.held is None and not (row.is_over and row.level is None):
            return HIDDEN + "their level"
        given = [grant.level for grant in (*case.entitled.ended, *case.entitled.grants)]
        is_given = row.level is None or row.had(case.held) or case.held in given
        if row.is_over and not is_given:
            return f"it was changed since: it was {row.level}"
        if case.is_left_open:
            return "another row keeps them, and names no level"
        users = self._users.get(row.key, [])
        if len(users) > 1 and case.entitled.gives(case.held):
            named = ", ".join(uuid or "-" for uuid in users)
            return f"{len(users)} users have this address ({named})"
        return ""

    # People without access

    def _of_leavers(self) -> list[Change | None]:
        """Say who leaves later, whom another row keeps, and who has no access any more."""
        changes: list[Change | None] = []
        for row in self._rows.values():
            email = row.invite.target_email
            if row.row_left_out:
                changes.append(_left_to_people(row, "is leaving", "remove them by hand if they are not back"))
            elif row.leaves_now:
                if not self._has_access(row.key):
                    changes.append(self._of_absent(row, LEAVING))
            elif row.end.until:
                changes.append(later_end(row, "leaves later: "))
            else:
                changes.append(remark_on("skip", email, f"row {row.number} has no end, and keeps them", mark="kept"))
        return changes

    def _of_absent(self, row: Row, why: str) -> Change | None:
        """
        Say that somebody who should go is in no list, which proves nothing while a list hides addresses.

        :param why: why they should go; of somebody who is gone, only leavers have a line
        """
        email = row.invite.target_email
        self.access_list.absent.add(row.key)
        for user_uuid in self.noted.users_of_former(row.key, self._homes):
            home = self._homes[user_uuid]
            if self._saying(home, None) is None:
                reason = f"{why}, but has another address now, {home} (user {user_uuid}): remove them by hand"
                return replace(remark_on("differs", email, reason), should_lose=True)
        if self._hidden:
            reason = f"{why}, but {HIDDEN}the address of {self._hidden} members or invites"
            return replace(remark_on("unknown", email, reason), should_lose=True)
        ended_at = row.end.moment.timestamp()
        saying = Saying(has_access=False, why=why, leaves=self.is_leaving, ended_at=ended_at)
        entitled = self._entitlement(saying, self.noted.of_address(row.key, self._homes, row.user_uuid))
        if entitled.ended:
            return gone(email, entitled.ended, are_users_shown=all(member.user_uuid for member in self.people.members))
        if self.is_leaving:
            return remark_on("skip", email, "is neither a member nor invited")
        return None

    def _of_newcomers(self, staying: Mapping[str, list[Invite]]) -> list[Change | None]:
        """
        Invite the people of rows who are no members.

        :param staying: the invites that are not withdrawn, by the key of their address
        """
        changes: list[Change | None] = []
        for row in self.roster.ended:
            if not self._has_access(row.key):
                changes.append(self._of_absent(row, row.end.over))
            elif row.row_left_out:
                cure = "end their access by hand if that row does not keep them"
                changes.append(_left_to_people(row, "has ended", cure))
        for row in self.roster.rows:
            user_uuid = self.people.disputed.get(row.key)
            if user_uuid:
                why = f"the service shows several addresses of user {user_uuid}, and this is one of them"
                changes.append(remark_on("unknown", row.invite.target_email, why, after=row.level))
            elif row.key not in self._joined:
                invites = staying.get(row.key, [])
                changes += self._of_newcomer(row, invites)
        return changes

    def _of_newcomer(self, row: Row, invites: list[Invite]) -> list[Change | None]:
        """Invite somebody who is no member; nothing is sent if their open invites have the same level."""
        saying = saying_of(row, None)
        if invites:
            claims = self.noted.of_invite(row.key, invites[0].id, self._homes, row.user_uuid)
        else:
            claims = self.noted.of_address(row.key, self._homes, row.user_uuid)
        entitled = self._entitlement(saying, claims)
        changes = self._invited_as_entitled(row, invites, entitled, claims)
        leaves = levels_left(row, entitled) if entitled.grants else ()
        if not leaves:
            return [*changes]
        highest = highest_of(invite.level for invite in invites)
        change = changes[0] or held_by_grants(row, entitled, row.invite.target_email, highest)
        return [replace(change, leaves=leaves)]

    def _invited_as_entitled(
        self, row: Row, invites: list[Invite], entitled: Entitlement, claims: Claims
    ) -> Sequence[MemberChange | None]:
        """Invite somebody, or renew their invite, or say why not; nothing if their open invites have the same level."""
        email = row.invite.target_email
        levels = {invite.level for invite in invites}
        highest = highest_of(levels)
        gets_more = highest is None or row.level is None or highest < row.level
        if entitled.decision and gets_more:
            return [refused_by_review(row, entitled.decision, email, highest)]
        if not invites:
            not_now = self.again.why_not_now(row, self.now, self.people.expired)
            if not_now:
                return [not_now]
            return [invitation(self.organization_id, row, entitled)]
        are_shown = None not in levels
        by_grant = [grant for grant in entitled.grants if grant.level == highest]
        if by_grant and are_shown:
            return [held_by_grants(row, entitled, email, highest)]
        why_not_renewed = self._why_not_renewed(row, invites, claims)
        change = compared_with_invites(row, invites, why_not_renewed)
        if self.renews and not why_not_renewed and change and change.action == "differs":
            return renewal(self.organization_id, row, entitled, invites[0])
        return [change]

    def _why_not_renewed(self, row: Row, invites: list[Invite], claims: Claims) -> str:
        """Return why open invites are not withdrawn and sent again, and what to do; empty if a run may."""
        if len(invites) > 1:
            return f", one of {len(invites)}: withdraw all but one by hand"
        (invite,) = invites
        cure = "withdraw it by hand and run this again"
        why_kept = self.guards.why_invite_kept(invite)
        if why_kept:
            return f", but {why_kept}: {cure}"
        owner_level = self.guards.owner_level
        if owner_level is not None and (row.level or 0) < owner_level <= (invite.level or 0):
            return f" as an owner (owner_level={owner_level}), whom a sync never changes: {cure}"
        if claims.grants:
            return f", and has temporary access ({claims.grants[0]}): end that first, or wait for its end"
        return self.again.why_not_renewed(row)

    def _of_protected(self) -> list[Change]:
        """Say which protected people there are none of: a misspelt address protects nobody."""
        changes: list[Change] = []
        keys = [*map(email_key, self.people.members), *map(email_key, self.people.invites)]
        for key in sorted(self.guards.protected):
            if is_pattern(key):
                pattern = replace(self.guards, protected=frozenset([key]))
                matched = [other for other in keys if pattern.protects(other)]
                changes.append(remark_on("skip", key, describe_protected(key, matched, len(keys)), mark="kept"))
            elif not self._has_access(key) and key not in self._rows:
                why = "protected, but neither a member nor invited: check the address"
                changes.append(remark_on("skip", key, why))
        return changes


def _left_to_people(row: Row, state: str, cure: str) -> Change:
    """Say that ``where`` leaves out another row about somebody who is leaving or whose row has ended."""
    why = f"row {row.number} {state}, but where leaves out row {row.row_left_out} about the same person: {cure}"
    return remark_on("differs", row.invite.target_email, why)


def _raise_if_not_usable(roster: Roster, on_invalid: str, *, is_leaving: bool) -> None:
    """Refuse an empty list, and an invalid row unless it may be skipped: its person would be removed."""
    if roster.invalid and on_invalid == "fail":
        rows = counted(len(roster.invalid), "row", "rows")
        name = "leavers" if is_leaving else "the roster"
        msg = f"Cannot use {rows} of {name}. Correct the invalid rows: {name_entries(roster.invalid)}"
        raise WorkspaceInputError(msg, problem="rows-invalid")
    if roster.rows or roster.ended or roster.invalid:
        return
    left_out = f" (where leaves out {counted(roster.left_out, 'row', 'rows')})" if roster.left_out else ""
    if is_leaving:
        raise WorkspaceInputError(f"leavers is empty{left_out}", problem="roster-empty")
    raise WorkspaceInputError(f"The roster is empty{left_out}: this would remove everybody", problem="roster-empty")


def _leave_out_doubtful(roster: Roster, members: Sequence[Member], *, is_leaving: bool) -> None:
    """Let nothing be taken because of a row whose person has an invalid one, too: that may be what keeps them."""
    addresses = {member.user_uuid: email_key(member) for member in members}

    def names_of(key: str, user_uuid: str) -> set[str]:
        """Return by what people are known whom a row names: its address, its user and the address of that now."""
        return {key, user_uuid, addresses.get(user_uuid, "")} - {""}

    invalid = {entry.row: names_of(address_key(entry.email), entry.user_uuid) for entry in roster.invalid}
    broken = {name for names in invalid.values() for name in names}
    for row in (*roster.rows, *roster.ended):
        names = names_of(row.key, row.user_uuid)
        if names & broken:
            broken |= names

    def is_doubtful(row: Row) -> bool:
        return row.key in broken or row.user_uuid in broken

    doubtful = {name for row in roster.ended if is_doubtful(row) for name in names_of(row.key, row.user_uuid)}
    roster.doubtful = {number for number, names in invalid.items() if names & doubtful}
    roster.ended = [row for row in roster.ended if not is_doubtful(row)]
    if is_leaving:
        roster.rows = [row for row in roster.rows if not is_doubtful(row)]
