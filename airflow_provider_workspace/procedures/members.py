"""
Plan the changes that make the members of an organization match a roster, or that remove leavers.

Everybody on the roster must be a member with its level, or have an open invite; nobody else may be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.levels import LEVELS, describe_level
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.entitlements import (
    NOTHING_NOTED,
    Claims,
    Entitlement,
    NotedAccess,
    ReviewDecision,
    Saying,
    TemporaryAccess,
    entitlement_of,
)
from airflow_provider_workspace.procedures.holders import Holder, Holders, homes_of, users_by_address
from airflow_provider_workspace.procedures.invites_report import name_entries
from airflow_provider_workspace.procedures.people import People, check_not_empty, read_people
from airflow_provider_workspace.procedures.plan import OVERRULES, Action, Change, Mark, Plan, counted
from airflow_provider_workspace.procedures.roster import Roster, Row, check_roster
from airflow_provider_workspace.procedures.roster_files import addresses_of

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.holders import Identity

# In the order in which they are applied: removals first, because a plan may limit the number of members.
ORDER = ("remove", "change", "create")
# Why a member or an invite is kept.
PROTECTED = "protected"
HIDDEN, ADDRESS = "the service does not show ", "their address"
LEAVING, NOT_ON_ROSTER = "is leaving", "not on the roster"
OTHER_LEVEL = "another level on the roster"
# What begins a plan that could not read notes.
NOT_KNOWN = "Temporary access and decisions of reviews are not known here."


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
    noted: NotedAccess = NOTHING_NOTED,
    overrules: bool = False,
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
    :param overrules: whether somebody approves the plan, and may overrule the decisions of reviews
    :raises WorkspaceInputError: if a row is invalid, the roster is empty, or no owner would be left
    :raises WorkspaceError: if the list of members is empty
    """
    roster = check_roster(rows, now, only_addresses=leaving)
    _raise_if_not_usable(roster, guards.on_invalid, is_leaving=leaving)
    _leave_out_doubtful(roster, is_leaving=leaving)
    if people is None:
        people = read_people(client, organization_id, read_members)
        check_not_empty(people.members)
    planner = _Planner(
        organization_id=organization_id,
        guards=guards,
        roster=roster,
        people=people,
        noted=noted,
        now=now,
        is_leaving=leaving,
        is_complete=complete,
        overrules=overrules,
    )
    changes = planner.changes()
    changes.sort(key=_order)
    check_owner_stays(people.members, changes)
    return Plan(
        client.settings.organization_at_service(organization_id),
        changes,
        members=len(people.members),
        remark="\n".join(_remarks(roster, noted)),
        holders=planner.holders,
    )


def _remarks(roster: Roster, noted: NotedAccess) -> list[str]:
    """Return what people must know before they read the plan."""
    remarks = list(roster.remarks)
    if not noted.are_known:
        remarks.insert(0, NOT_KNOWN)
    if roster.blank:
        remarks.append(f"Blank rows, which were skipped: {roster.blank}.")
    return remarks


def _order(change: Change) -> tuple[int, int]:
    """
    Return where a change is sent: removals first, because a plan may limit the number of members.

    Administrators lose access after the other changes: one of them may own the API key, which then stops working.
    """
    if not change.sends:
        return len(ORDER), 0
    level: int = change.before.get("level") or 0
    is_member = isinstance(change.operation, DeleteMember | UpdateMember)
    if is_member and change.takes_from_person and level >= LEVELS["admin"]:
        return ORDER.index("change"), level
    return ORDER.index(change.action), 0


@dataclass(frozen=True, slots=True)
class _Case:
    """
    A member, and what is said about them.

    :param key: of their address
    :param row: their row; ``None`` if there is none
    :param overruled: the decision of a review that the plan overrules; ``None`` if there is none
    """

    member: Member
    key: str
    row: Row | None
    saying: Saying
    entitled: Entitlement
    overruled: ReviewDecision | None

    @property
    def email(self) -> str:
        """Their address; empty if it is not shown."""
        return _email_of(self.member)

    @property
    def user_uuid(self) -> str | None:
        """Their user; ``None`` if it is not shown."""
        return self.member.user.uuid if self.member.user else None

    @property
    def held(self) -> int | None:
        """Their level; ``None`` if it is not shown."""
        return self.member.level

    @property
    def differs(self) -> bool:
        """Whether they should have another level than they have, or none, or one that no row names."""
        if self.entitled.takes(self.held):
            return True
        if self.entitled.gives(self.held):
            return self.entitled.decision is None
        if self.held is None:
            return self.entitled.most is not None
        return self.is_left_open

    @property
    def is_left_open(self) -> bool:
        """Whether a row gave their level until its end, and the row that keeps them names no level."""
        says_any_level = self.saying.has_access and self.saying.level is None
        has_ended_row = bool(self.saying.why)
        return says_any_level and has_ended_row and self.entitled.temporary is None

    @property
    def wanted(self) -> int | None:
        """The level that they should have, if it differs; ``None`` for none, or if no row names one."""
        if self.entitled.gives(self.held):
            return self.entitled.level
        return self.entitled.most

    @property
    def why(self) -> str:
        """The reason of a change, for people."""
        reasons = [self.entitled.why]
        if self.entitled.gives(self.held):
            reasons = [self.saying.why]
        if self.row and not self.row.is_over and self.wanted is not None:
            reasons.append(str(self.row.end))
        if self.entitled.expired:
            reasons.append(self.entitled.expired.expiry)
        return ", ".join(filter(None, reasons))


@dataclass(frozen=True)
class _Planner:
    """
    Compares the rows of a roster with the people of an organization; see :func:`plan_members`.

    :param is_leaving: whether the people of the rows are removed, and nobody else is changed
    :param is_complete: whether people whom no row names are removed
    """

    organization_id: str
    guards: Guards
    roster: Roster
    people: People
    noted: NotedAccess
    now: datetime
    is_leaving: bool
    is_complete: bool
    overrules: bool
    holders: Holders = field(default_factory=Holders)

    @cached_property
    def _rows(self) -> dict[str, Row]:
        """The row of each person that counts, by the key of their address."""
        return {row.key: row for row in (*self.roster.rows, *self.roster.ended)}

    @cached_property
    def _invites(self) -> dict[str, list[Invite]]:
        """The open invites, by the key of their address."""
        invites: dict[str, list[Invite]] = {}
        for invite in self.people.invites:
            invites.setdefault(address_key(invite.target_email or ""), []).append(invite)
        return invites

    @cached_property
    def _joined(self) -> set[str]:
        """The keys of the addresses of members."""
        return {_key(member) for member in self.people.members}

    @cached_property
    def _users(self) -> dict[str, list[str]]:
        """The users of each address."""
        return users_by_address(self.people.members)

    @cached_property
    def _hidden(self) -> int:
        """How many members and open invites do not show their address."""
        members = [member for member in self.people.members if not _email_of(member)]
        invites = [invite for invite in self.people.invites if not invite.target_email]
        return len(members) + len(invites)

    @cached_property
    def _homes(self) -> dict[str, str]:
        """The key of the address of each user who is a member and shows it."""
        return homes_of(self._users)

    def _has_access(self, key: str) -> bool:
        """Return whether somebody is a member or invited."""
        return key in self._joined or key in self._invites

    def changes(self) -> list[Change]:
        """Return the changes, and what is not sent."""
        self.holders.invited = frozenset(self._invites)
        changes: list[Change | None] = []
        staying: dict[str, list[Invite]] = {}
        for key, invites in self._invites.items():
            for invite in invites:
                change = self._of_invite(key, invite)
                changes.append(change)
                if change is None or change.action == "wait":
                    staying.setdefault(key, []).append(invite)
        for member in self.people.members:
            if _identity(member) in self.holders.shown:  # a list that changes may show a user twice
                continue
            changes.append(self._of_member(member))
        changes += self._of_leavers() if self.is_leaving else self._of_newcomers(staying)
        changes += self._of_protected()
        changes += _left_out(self.roster, is_leaving=self.is_leaving)
        return [change for change in changes if change is not None]

    def _saying(self, key: str, held: int | None) -> Saying | None:
        """
        Return what the rows say about somebody who has access; ``None`` if they say nothing.

        :param held: their level; ``None`` if it is not shown
        """
        row = self._rows.get(key)
        if self.is_leaving:
            return Saying(has_access=False, why=LEAVING, leaves=True) if row and row.leaves_now else None
        if row:
            return _saying_of(row, held)
        if self.is_complete:
            return Saying(has_access=False, why=NOT_ON_ROSTER, is_named=False)
        return None

    def _entitlement(
        self, saying: Saying, claims: Claims, held: int | None, *, is_new: bool = False
    ) -> tuple[Entitlement, ReviewDecision | None]:
        """
        Return what somebody should have, and the decision of a review that it overrules.

        Only what the plan shows is approved: what somebody has in spite of a decision overrules nothing.

        :param held: the level that a change would raise; ``None`` if there is none
        :param is_new: whether they have no access, so that the plan shows what they get
        """
        now = self.now.timestamp()
        entitled = entitlement_of(saying, claims, now)
        decision = entitled.decision
        if decision is None:
            return entitled, None
        overruling = entitlement_of(saying, claims, now, overrules=True)
        is_shown = is_new or overruling.gives(held)
        if decision.is_overruled or (self.overrules and is_shown):
            return overruling, decision
        return entitled, None

    # Open invites

    def _of_invite(self, key: str, invite: Invite) -> Change | None:
        """Withdraw an open invite; ``None`` if it stays."""
        saying = self._saying(key, invite.level)
        if saying is None:
            return None
        claims = self.noted.of_invite(key, invite.id, self._homes)
        entitled, _ = self._entitlement(saying, claims, None)
        email = invite.target_email or ""
        if not _is_withdrawn(saying, entitled, invite.level):
            # What else is to be done, the row of the person says.
            is_held = entitled.temporary is not None and not saying.has_access
            return _person("wait", email, entitled.why, invite.level) if is_held else None
        why = f"invited and {entitled.why}"
        hold = ""
        if key in self.guards.protected:
            hold = PROTECTED
        elif not (email and invite.id):
            hold = HIDDEN + "its address or id"
        if hold:
            return _hold(email, why, hold, invite.level, None, entitled)
        return Change(
            "remove",
            "members",
            f"invite {email}",
            before=_level(invite.level),
            why=why,
            operation=DeleteInvite(organization_id=self.organization_id, invite_id=str(invite.id)),
            person=key,
            ends=entitled.ended,
        )

    # Members

    def _of_member(self, member: Member) -> Change | None:
        """Plan the change to a member; ``None`` if there is none."""
        key = _key(member)
        saying = self._saying(key, member.level)
        holder = _holder(member, is_judged=saying is not None)
        self.holders.add(_identity(member), holder)
        if saying is None:
            return None
        user_uuid = member.user.uuid if member.user else None
        claims = self.noted.of_member(key, user_uuid)
        entitled, overruled = self._entitlement(saying, claims, member.level)
        case = _Case(member, key, self._rows.get(key), saying, entitled, overruled)
        if not case.differs:
            return _unchanged(case)
        who = case.email
        users = self._users.get(key, ())
        if len(users) > 1:
            who = f"{case.email} (user {case.user_uuid})"
        hold = self._why_held(case)
        if hold:
            return _hold(who, case.why, hold, case.held, case.wanted, entitled)
        if case.wanted is not None:
            return self._level_change(case, who, case.wanted)
        delete = DeleteMember(organization_id=self.organization_id, user_uuid=str(case.user_uuid))
        return _removal(delete, who, case.held, case.why, ends=entitled.ended)

    def _level_change(self, case: _Case, who: str, level: int) -> Change:
        """Return the change of a member's level."""
        after = _level(level)
        if case.row and not case.row.is_over:
            after |= case.row.end.fields
        if case.overruled:
            after[OVERRULES] = str(case.overruled)
        update = UpdateMember(organization_id=self.organization_id, user_uuid=str(case.user_uuid), level=level)
        return Change(
            "change",
            "members",
            f"member {who}",
            after,
            _level(case.held),
            case.why,
            update,
            person=case.key,
            overrules=case.overruled,
            ends=case.entitled.ended,
        )

    def _why_held(self, case: _Case) -> str:
        """Return why a member is left as they are; an empty string if they may be changed."""
        hold = self.guards.why_kept(case.member)
        if hold:
            return hold
        if not (case.email and case.user_uuid):
            return HIDDEN + "their address or user"
        row = case.row
        if row is None or case.saying.leaves:
            return ""
        if case.held is None and not (row.is_over and row.level is None):
            return HIDDEN + "their level"
        given = [grant.level for grant in case.entitled.ended]
        is_given = row.level is None or row.had(case.held) or case.held in given
        if row.is_over and not is_given:
            return f"it was changed since: it was {row.level}"
        if case.is_left_open:
            return "another row keeps them, and names no level"
        users = self._users.get(row.key, [])
        if len(users) > 1 and case.entitled.gives(case.held):
            named = ", ".join(uuid or "-" for uuid in users)
            return f"{len(users)} users have this address ({named}): raise the right one by hand"
        return ""

    # People without access

    def _of_leavers(self) -> list[Change | None]:
        """Say who leaves later, whom another row keeps, and who has no access any more."""
        changes: list[Change | None] = []
        for row in self._rows.values():
            email = row.invite.target_email
            if row.leaves_now:
                if not self._has_access(row.key):
                    changes.append(self._of_absent(row, LEAVING))
            elif row.end.until:
                changes.append(_later(row, "leaves later: "))
            else:
                changes.append(_person("skip", email, f"row {row.number} has no end, and keeps them", mark="kept"))
        return changes

    def _of_absent(self, row: Row, why: str) -> Change | None:
        """
        Say that somebody who should go is in no list, which proves nothing while a list hides addresses.

        :param why: why they should go; of somebody who is gone, only leavers have a line
        """
        email = row.invite.target_email
        for user_uuid in self.noted.users_of_former(row.key, self._homes):
            home = self._homes[user_uuid]
            if self._saying(home, None) is None:
                reason = f"{why}, but has another address now, {home} (user {user_uuid}): remove them by hand"
                return replace(_person("differs", email, reason), should_lose=True)
        if self._hidden:
            reason = f"{why}, but {HIDDEN}the address of {self._hidden} members or invites"
            return replace(_person("unknown", email, reason), should_lose=True)
        ended_at = row.end.moment.timestamp()
        saying = Saying(has_access=False, why=why, leaves=self.is_leaving, ended_at=ended_at)
        claims = self.noted.of_address(row.key, self._homes)
        entitled, _ = self._entitlement(saying, claims, None)
        if entitled.ended:
            return _person("skip", email, f"is neither a member nor invited; the sweep ends {entitled.ended[0]}")
        if self.is_leaving:
            return _person("skip", email, "is neither a member nor invited")
        return None

    def _of_newcomers(self, staying: Mapping[str, list[Invite]]) -> list[Change | None]:
        """
        Invite the people of rows who are no members.

        :param staying: the invites that are not withdrawn, by the key of their address
        """
        changes: list[Change | None] = []
        unseen = [row for row in self.roster.ended if not self._has_access(row.key)]
        changes += [self._of_absent(row, row.end.over) for row in unseen]
        for row in self.roster.rows:
            if row.key not in self._joined:
                invites = staying.get(row.key, [])
                changes.append(self._of_newcomer(row, invites))
        return changes

    def _of_newcomer(self, row: Row, invites: list[Invite]) -> Change | None:
        """Invite somebody who is no member; nothing is sent if their open invites have the same level."""
        email = row.invite.target_email
        saying = _saying_of(row, None)
        if invites:
            claims = self.noted.of_invite(row.key, invites[0].id, self._homes)
        else:
            claims = self.noted.of_address(row.key, self._homes)
        entitled, overruled = self._entitlement(saying, claims, None, is_new=True)
        levels = {invite.level for invite in invites}
        highest = _highest(levels)
        gets_more = highest is None or saying.level is None or highest < saying.level
        if entitled.decision and gets_more:
            return _refused_by_review(row, entitled.decision, email, highest)
        if not invites:
            return _invitation(self.organization_id, row, entitled, overruled)
        are_shown = None not in levels
        if entitled.temporary and are_shown and highest == entitled.temporary.level:
            return _person("wait", email, entitled.why, highest)
        return _open_invites(row, invites, self.guards.owner_level)

    def _of_protected(self) -> list[Change]:
        """Say which protected people there are none of: a misspelt address protects nobody."""
        changes: list[Change] = []
        for key in sorted(self.guards.protected):
            if not self._has_access(key) and key not in self._rows:
                why = "protected, but neither a member nor invited: check the address"
                changes.append(_person("skip", key, why))
        return changes


def _saying_of(row: Row, held: int | None) -> Saying:
    """
    Return what a row of a roster says about its person.

    :param held: their level; ``None`` if it is not shown, or they are no member
    """
    if not row.is_over and not row.had(held):
        return Saying(has_access=True, level=row.level)
    end = row.ended[-1].end
    level = row.level
    if row.is_over or level is None:
        level = end.then_level
    why = end.over if level is None else f"{end.over}, back to {level}"
    if not row.is_over:
        return Saying(has_access=True, level=level, why=why)
    return Saying(has_access=level is not None, level=level, why=why, ended_at=end.moment.timestamp())


def _is_withdrawn(saying: Saying, entitled: Entitlement, held: int | None) -> bool:
    """
    Return whether an open invite is withdrawn: it cannot be changed.

    :param held: its level; ``None`` if it is not shown
    """
    if entitled.temporary:
        return not saying.has_access and entitled.takes(held)
    if not entitled.has_access:
        return True
    if entitled.decision:
        return entitled.takes(held)
    # A row gave it until its end.
    return bool(saying.why) and (held is None or held != entitled.level)


def _refused_by_review(row: Row, decision: ReviewDecision, who: str, held: int | None) -> Change:
    """Leave a row undone that gives more than a review decided."""
    why = f"{decision}, and row {row.number} gives more: correct the row, or have this plan approved"
    change = _person("differs", who, why, held, row.level)
    return replace(change, should_gain=True)


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
        raise WorkspaceInputError(f"leavers is empty{left_out}")
    raise WorkspaceInputError(f"The roster is empty{left_out}: this would remove everybody")


def _leave_out_doubtful(roster: Roster, *, is_leaving: bool) -> None:
    """Let nothing be taken because of a row whose person has an invalid one, too: that may be what keeps them."""
    broken = {address_key(entry.email) for entry in roster.invalid}
    doubtful = [row.key for row in roster.ended if row.key in broken]
    roster.doubtful = frozenset(doubtful)
    roster.ended = [row for row in roster.ended if row.key not in broken]
    if is_leaving:
        roster.rows = [row for row in roster.rows if row.key not in broken]


def _level(level: int | None) -> dict[str, Any]:
    return {} if level is None else {"level": level}


def _highest(levels: Iterable[int | None]) -> int | None:
    """Return the highest of the levels that are shown; ``None`` if there is none."""
    shown = [level for level in levels if level is not None]
    return max(shown, default=None)


def _person(
    action: Action, email: str, why: str, before: int | None = None, after: int | None = None, mark: Mark = ""
) -> Change:
    """Return what is not sent, about a person."""
    name = f"person {email or '-'}"
    address, _, _ = email.partition(" ")
    person = address_key(address)
    return Change(action, "members", name, _level(after), _level(before), why, mark=mark, person=person)


def _hold(email: str, why: str, hold: str, before: int | None, after: int | None, entitled: Entitlement) -> Change:
    """
    Leave a person alone, because of ``hold``; what a source says about them is left to people.

    :param after: the level that they should have; ``None`` if they should be removed
    """
    takes = after is None
    if before is not None and after is not None:
        takes = after < before
    may_take = takes or before is None
    may_be_over = may_take and entitled.is_over
    is_hidden = hold.startswith(HIDDEN)
    action: Action = "differs"
    if is_hidden:
        action = "unknown"
    elif takes and not entitled.is_named:
        action = "skip"
    reason = f"{why or OTHER_LEVEL}, but {hold}"
    mark: Mark = "kept" if action == "skip" else ""
    change = _person(action, email, reason, before, after, mark)
    return replace(change, should_lose=may_be_over or (takes and is_hidden))


def _unchanged(case: _Case) -> Change | None:
    """Say what else there is to say about somebody whose level stays; ``None`` if there is nothing."""
    row = case.row
    decision = case.entitled.decision
    gives = case.saying.level
    has_less = gives is not None and (case.held is None or case.held < gives)
    if row and decision and has_less:
        return _refused_by_review(row, decision, case.email, case.held)
    if case.entitled.temporary:
        return _person("wait", case.email, case.entitled.why, case.held)
    return _later(row) if row else None


def _later(row: Row, what: str = "") -> Change | None:
    """Say when access ends; ``None`` if it does not, or has."""
    if row.is_over or not row.end.until:
        return None
    return _person("wait", row.invite.target_email, f"{what}{row.end}")


def _invitation(organization_id: str, row: Row, entitled: Entitlement, overruled: ReviewDecision | None) -> Change:
    """Invite the person of a row."""
    email = row.invite.target_email
    fields = row.invite.model_dump(mode="json", exclude_unset=True, exclude={"target_email"}) | row.end.fields
    if overruled:
        fields[OVERRULES] = str(overruled)
    create = CreateInvite(organization_id=organization_id, **row.invite.model_dump(exclude_unset=True))
    reasons = [str(row.end)]
    if entitled.expired:
        reasons.append(entitled.expired.expiry)
    why = ", ".join(filter(None, reasons))
    name = f"invite {email}"
    return Change("create", "members", name, fields, why=why, operation=create, person=row.key, overrules=overruled)


def _open_invites(row: Row, invites: list[Invite], owner_level: int | None) -> Change | None:
    """Compare a row with the open invites of its person, which the interface cannot change."""
    email = row.invite.target_email
    level = row.level
    others = {invite.level for invite in invites} - {level}
    if not others or (level is None and len(others) == 1):
        return _later(row)
    why = "holds an open invite"
    highest = _highest(others) or 0
    if None in others:
        return _person("unknown", email, f"{why}, but {HIDDEN}its level", after=level)
    if len(invites) > 1:
        why = f"holds {len(invites)} open invites: withdraw all but one by hand"
    elif owner_level is not None and (level or 0) < owner_level <= highest:
        why += f" as an owner (owner_level={owner_level}), whom a sync never changes: withdraw it by hand"
    return _person("differs", email, why, highest, level)


def _removal(
    delete: DeleteMember, who: str, level: int | None, why: str, ends: tuple[TemporaryAccess, ...] = ()
) -> Change:
    email, _, _ = who.partition(" ")
    before = _level(level)
    return Change("remove", "members", f"member {who}", {}, before, why, delete, person=address_key(email), ends=ends)


def _email_of(member: Member) -> str:
    return (member.user.email or "") if member.user else ""


def _key(member: Member) -> str:
    """Return the key of the address of a member; empty if it is not shown."""
    return address_key(_email_of(member))


def _identity(member: Member) -> Identity:
    user_uuid = member.user.uuid if member.user else None
    return (user_uuid or "",)


def _holder(member: Member, *, is_judged: bool) -> Holder:
    (user_uuid,) = _identity(member)
    name = f"member {_email_of(member) or '-'} (user {user_uuid or '-'})"
    person = _key(member)
    return Holder(name, member.level, person, is_judged and bool(person))


def _left_out(roster: Roster, *, is_leaving: bool) -> list[Change]:
    """Return the rows that say what another one says, and the invalid ones, whose people should perhaps lose access."""
    changes: list[Change] = []
    for entry in roster.duplicates:
        why = f"row {entry.row}: {entry.reason}"
        changes.append(_person("skip", entry.email, why, mark="duplicate"))
    for entry in roster.invalid:
        name = f"row {entry.row} {entry.email}".rstrip()
        is_doubtful = entry.row in roster.with_end or address_key(entry.email) in roster.doubtful
        should_lose = is_leaving or is_doubtful
        why = f"left out: {entry.reason}"
        changes.append(Change("differs", "members", name, why=why, should_lose=should_lose))
    return changes


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
            who = member.user.email or delete.user_uuid
            _raise_if_kept(member, who, guards)
            change = _removal(delete, who, member.level, LEAVING)
    if not allow_last_owner:
        check_owner_stays(members, [change], ", or set allow_last_owner=True")
    return Plan(client.settings.organization_at_service(delete.organization_id), [change], members=len(members))


def _raise_if_kept(member: Member, who: str, guards: Guards) -> None:
    """
    Refuse to remove a member who is protected, an owner, or perhaps one of these.

    :param who: their address, or else their user
    :raises WorkspaceInputError: with the argument that permits it
    """
    hold = guards.why_kept(member)
    if not hold:
        return
    cure = "set owner_level=None"
    if hold == PROTECTED:
        why = f"{who} is protected"
        cure = "take the address out of protected"
    elif hold == HIDDEN + ADDRESS:
        why = f"The service does not show the address of {who}, who may be protected"
        cure = "leave out protected"
    elif member.level is None:
        why = f"The service does not show the level of {who}, who may be an owner"
    else:
        why = f"{who} is an owner (level {member.level}; owner_level={guards.owner_level}), and owners are kept"
    raise WorkspaceInputError(f"{why}. To remove {who} anyway, {cure}. An API key stops working without its owner")


def check_owner_stays(members: Iterable[Member], changes: Iterable[Change], cure: str = "") -> None:
    """
    Refuse changes that leave an organization without a member of its highest level.

    :param cure: what permits it, for the message
    :raises WorkspaceInputError: naming the last ones
    """
    before: dict[str, int] = {}
    for member in members:
        if member.user and member.user.uuid:
            before[member.user.uuid] = member.level or 0
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
