"""Plan temporary access and its end, and give it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.grants.notes import UNKNOWN_HOLDERS
from airflow_provider_workspace.access.members.lines import level_fields, withdrawal
from airflow_provider_workspace.access.members.plan import plan_members
from airflow_provider_workspace.access.rules.entitlements import NOTHING_NOTED, Claims, NotedAccess, decision_against
from airflow_provider_workspace.access.rules.guards import NO_GUARDS, Guards
from airflow_provider_workspace.api.comparison import address_key, email_key
from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.api.operations.invites import DeleteInvite
from airflow_provider_workspace.api.operations.members import ListMembers, UpdateMember
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, name_first
from airflow_provider_workspace.procedures.access_list import homes_of
from airflow_provider_workspace.procedures.apply_plan import apply
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.procedures.people import NotedPerson, People, read_people
from airflow_provider_workspace.procedures.plan import Change, Plan, counted
from airflow_provider_workspace.procedures.until import REMOVED

if TYPE_CHECKING:
    from airflow_provider_workspace.access.grants.notes import Grant, HadLevel
    from airflow_provider_workspace.access.rules.entitlements import ReviewDecision
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.journal import Journal

Rows = Collection[Mapping[str, Any]]
# Outcomes of changes that were made.
MADE = ("done", "invited", "already_invited")
# How far the clocks of Airflow and of the service may be apart, in seconds: who joined so long before a grant was noted
# may have joined after it.
CLOCK_SLACK = 300.0
# How many users a note names that have a level; a Variable is no table of members.
MAX_HOLDERS = 100
# How often what is given is planned again, because other grants of the person begin or end meanwhile.
MAX_ROUNDS = 5


@dataclass(frozen=True)
class Giving:
    """
    What active grants give, as their notes are now.

    :param rows: the grants as rows
    :param people: their people
    :param grants: those whose notes are checked again before each write
    """

    rows: Rows = ()
    people: Sequence[NotedPerson] = ()
    grants: Sequence[Grant] = ()


@dataclass
class Given:
    """
    What was sent to give access.

    :param plan: the changes, with their outcomes
    :param people: the lists that showed that nothing is left to give; ``None`` if something is
    """

    plan: Plan = field(default_factory=Plan)
    people: OrganizationPeople | None = None

    @property
    def is_made(self) -> bool:
        """Whether each change was made."""
        for change in self.plan.changes:
            outcome = self.plan.outcomes.get(change)
            if outcome is None or outcome.status not in MADE:
                return False
        return True


@dataclass(frozen=True)
class GrantWish:
    """
    What a grant should give.

    :param terms: what an approval covers besides the levels: how long, and why
    :param given: levels that other grants gave the person, and what they have after those
    """

    email: str
    level: int
    terms: Mapping[str, str]
    given: Mapping[int | None, int | None]


@dataclass(frozen=True, kw_only=True)
class GrantPlan:
    """
    What a grant changes.

    :param plan: the plan; empty if the person has the level already without an end
    :param before: the level before; ``None`` if the person is no member
    :param then: the level after the end; ``None`` if the person is removed
    :param people: the lists it was planned from
    :param decision: that of a review, which allows less than this level; ``None`` if there is none
    """

    plan: Plan
    before: int | None
    then: int | None
    people: OrganizationPeople
    decision: ReviewDecision | None = None


@dataclass(frozen=True)
class OrganizationPeople:
    """The people of an organization, from one reading of its lists."""

    client: WorkspaceClient
    organization_id: str
    people: People

    @classmethod
    def read(cls, client: WorkspaceClient, organization_id: str) -> OrganizationPeople:
        """Read the lists."""
        return cls(client, organization_id, read_people(client, organization_id))

    @property
    def members(self) -> list[Member]:
        """The members."""
        return self.people.members

    @property
    def user_uuids(self) -> frozenset[str]:
        """The users of the members."""
        users = [member.user_uuid for member in self.members]
        return frozenset(user for user in users if user)

    def having(self, email: str) -> list[Member]:
        """Return the members who have an address."""
        key = address_key(email)
        return [member for member in self.members if email_key(member) == key]

    def user_of(self, person: NotedPerson) -> Member | None:
        """Return the member who is the user of a person; ``None`` if that user is no member, or not known."""
        if person.user_uuid is None:
            return None
        users = [member for member in self.members if member.user_uuid == person.user_uuid]
        return users[0] if users else None

    def user_uuid_at(self, email: str) -> str | None:
        """Return the user who has an address; ``None`` if it is none, more than one, or not shown."""
        members = self.having(email)
        return members[0].user_uuid if len(members) == 1 else None

    def invite_id_at(self, email: str) -> str | None:
        """Return the open invite of an address; ``None`` if there is none, or more than one."""
        key = address_key(email)
        invites = [invite for invite in self.people.invites if email_key(invite) == key]
        return invites[0].id if len(invites) == 1 else None

    def had_level(self, level: int) -> HadLevel | None:
        """Return who has a level or a higher one, as the note of an invite keeps it."""
        if all(member.level is not None and member.level >= level for member in self.members):
            return None
        holders = [member for member in self.members if member.level is None or member.level >= level]
        users = sorted(member.user_uuid for member in holders if member.user_uuid and member.level is not None)
        return tuple(users) if len(users) == len(holders) <= MAX_HOLDERS else UNKNOWN_HOLDERS

    def holds(self, person: NotedPerson) -> bool:
        """Return whether a person is a member, or has an open invite."""
        seen = self.as_noted([person])
        return bool(seen.having(person.email) or seen.invite_id_at(person.email))

    def has_left(self, person: NotedPerson, email: str) -> bool:
        """Return whether the user of a person is a member who has another address than this one."""
        user = self.user_of(person)
        return user is not None and email_key(user) != address_key(email)

    def as_noted(self, people: Iterable[NotedPerson]) -> OrganizationPeople:
        """Return the lists with the addresses of the notes: each person is their user or invite, and nobody else is."""
        members = self.people.members
        invites = self.people.invites
        for person in people:
            if self.has_left(person, person.email):
                invites = [invite for invite in invites if not _is_of_somebody_else(invite, person)]
            members = [_member_as_noted(member, person) for member in members]
            invites = [_invite_as_noted(invite, person) for invite in invites]
        return replace(self, people=replace(self.people, members=members, invites=invites))

    def raise_if_ambiguous(self, email: str) -> None:
        """
        Refuse an address that several accounts have: nobody can tell who is meant.

        :raises WorkspaceInputError: naming their users
        """
        members = self.having(email)
        if len(members) < 2:
            return
        users = [f"user {member.user_uuid}" for member in members]
        why = f"{len(members)} members have the address {email}, so nobody can tell who is meant"
        msg = f"{why}. Give each account its own address first: {', '.join(users)}"
        raise WorkspaceInputError(msg, problem="access-not-proven")

    def raise_unless_gone(self, person: NotedPerson, known: Collection[str]) -> None:
        """
        Require proof that somebody whom no list shows is no member.

        :param known: the users of other notes
        :raises WorkspaceError: if they may be one: a list hides who is in it, or somebody joined since
        """
        hidden = [member for member in self.members if not member.user_uuid]
        if person.user_uuid is None:
            hidden += [member for member in self.members if not member.email_address]
        doubt = f"{person.email} may still have access"
        cure = "Find out who they are now, and take the access away by hand"
        if not self.members:
            raise WorkspaceError(f"{doubt}: the list of members is empty. {cure}", problem="access-not-proven")
        if hidden:
            members = counted(len(hidden), "member", "members")
            why = f"the service does not show the address or user of {members}"
            raise WorkspaceError(f"{doubt}: {why}. {cure}", problem="access-not-proven")
        if person.user_uuid is not None:
            return
        others = [member for member in self.members if member.user_uuid not in known]
        candidates = [member for member in others if _may_be(member, person)]
        if not candidates:
            return
        members = counted(len(candidates), "member", "members")
        why = f"their invite is gone, and {members} may have accepted it"
        if person.level is not None:
            why = f"nobody has their address any more, and {members} may be them"
        users = [f"{member.email_address} (user {member.user_uuid})" for member in candidates]
        named = name_first(users, "the list of members", separator=", ")
        raise WorkspaceError(f"{doubt}: {why}. {cure}: {named}", problem="access-not-proven")

    def withdrawals_of(self, person: NotedPerson, guards: Guards) -> list[Change]:
        """
        Return the withdrawals of invites that no list shows, because one may hide them.

        :raises WorkspaceError: if the person is protected
        """
        if person.user_uuid is not None:
            return []
        if person.invite_ids and guards.protects_any(map(address_key, person.emails)):
            why = f"{person.email} is protected, and no list shows whether their invite is still open"
            raise WorkspaceError(f"{why}. Withdraw it by hand", problem="access-not-proven")
        changes: list[Change] = []
        for invite_id in sorted(person.invite_ids):
            delete = DeleteInvite(organization_id=self.organization_id, invite_id=invite_id)
            changes.append(withdrawal(delete, person.email, "no list shows it"))
        return changes

    @property
    def homes(self) -> dict[str, str]:
        """The key of the address of each user who is a member and shows it."""
        return homes_of(self.members)

    def decision_about(
        self, decided: NotedAccess, *, email: str, user_uuid: str | None, invite_id: str | None
    ) -> ReviewDecision | None:
        """Return the last decision about a user, or else about whoever has an invite or an address."""
        key = address_key(email)
        if user_uuid is not None:
            return decided.of_member(key, user_uuid).decision
        return decided.of_invite(key, invite_id, self.homes).decision

    def plan(self, rows: Rows, guards: Guards, now: datetime, noted: NotedAccess = NOTHING_NOTED) -> Plan:
        """Plan what rows say about their people, and about nobody else; notes have a say too."""
        plan = plan_members(
            self.client,
            self.organization_id,
            rows,
            guards,
            complete=False,
            now=now,
            people=self.people,
            noted=noted,
        )
        # There is no row to correct, and no argument to set.
        plan.changes = [replace(change, cure="") for change in plan.changes]
        return plan


def plan_grant(people: OrganizationPeople, wish: GrantWish, decided: NotedAccess, now: datetime) -> GrantPlan:
    """
    Plan temporary access.

    :param decided: what reviews decided
    :raises WorkspaceInputError: if their level cannot be known, several accounts have the address, or they hold an
        open invite with a lower level
    """
    people.raise_if_ambiguous(wish.email)
    # Who has a higher level is held like an owner.
    guards = Guards(frozenset(), wish.level)
    row = {"target_email": wish.email, "level": wish.level}
    plan = people.plan([row], guards, now)
    change = plan.changes[0] if plan.changes else None
    before: int | None = change.before.get("level") if change else wish.level
    has_level = before is not None and before >= wish.level
    if change and not change.sends and not has_level:
        why = f"{change.name} cannot get this level: {change.notes}"
        raise WorkspaceInputError(f"{why}. Correct that by hand first, such as the open invite")
    # What another grant gave ends as that grant says.
    left = wish.given.get(before, before)
    if left is not None and left >= wish.level:
        nothing = replace(plan, changes=[])
        return GrantPlan(plan=nothing, before=before, then=left, people=people)
    decision = _decision_below(wish, people, decided, now)
    then = _capped(left, decision) if decision else left
    giving = change
    if giving is None or not giving.sends:  # another grant gave it: it is noted, and nothing is sent
        read = ListMembers(organization_id=people.organization_id)
        giving = Change("change", "members", f"member {wish.email}", operation=read)
    despite = {"despite": str(decision)} if decision else {}
    after = {"level": wish.level, **wish.terms, **despite, "then": REMOVED if then is None else then}
    level_then = REMOVED if then is None else describe_level(then)
    reasons = [f"then {level_then}"]
    if "until" in wish.terms:
        reasons.insert(0, f"until {wish.terms['until']}")
    granting = replace(giving, before=level_fields(before), after=after, why=", ".join(reasons))
    granted = replace(plan, changes=[granting])
    return GrantPlan(plan=granted, before=before, then=then, people=people, decision=decision)


def _decision_below(
    wish: GrantWish, people: OrganizationPeople, decided: NotedAccess, now: datetime
) -> ReviewDecision | None:
    """Return the decision of a review that counts now and allows less than a grant gives; ``None`` if there is none."""
    email = wish.email
    user_uuid = people.user_uuid_at(email)
    invite_id = people.invite_id_at(email)
    decision = people.decision_about(decided, email=email, user_uuid=user_uuid, invite_id=invite_id)
    return decision_against(wish.level, Claims(decision=decision), now.timestamp())


def _capped(level: int | None, decision: ReviewDecision) -> int | None:
    """Return a level, at most what a review decided; ``None`` for no access."""
    if level is None or decision.level is None:
        return None
    return min(level, decision.level)


def plan_give(people: OrganizationPeople, giving: Giving, now: datetime) -> Plan:
    """Plan what active grants give: invites and higher levels; nothing is taken."""
    if not giving.rows:
        return Plan()
    seen = people.as_noted(giving.people)
    plan = seen.plan(giving.rows, NO_GUARDS, now)
    plan.changes = [change for change in plan.changes if _gives(change)]
    return plan


def plan_end(
    people: OrganizationPeople, person: NotedPerson, rows: Rows, *, guards: Guards, now: datetime, noted: NotedAccess
) -> Plan:
    """
    Plan what the end of grants of a person takes; nothing is given.

    :param guards: whom it leaves alone
    :param noted: what still counts: other grants of the person, and what reviews decided
    :raises WorkspaceError: if it is not known who the person is, or whether they are protected
    """
    user = people.user_of(person)
    if user and not user.email_address and guards.protected:
        why = f"The service hides the address of user {person.user_uuid}, who may be protected"
        raise WorkspaceError(f"{why}. Take the access away by hand", problem="access-not-proven")
    addresses = {address_key(email) for email in person.emails}
    if user:
        addresses.add(email_key(user))
    if guards.protects_any(addresses):
        protected = guards.protected | {address_key(person.email)}
        guards = replace(guards, protected=protected)
    seen = people.as_noted([person])
    seen.raise_if_ambiguous(person.email)
    plan = seen.plan(rows, guards, now, noted)
    plan.changes = [change for change in plan.changes if not _gives(change)]
    return plan


def _gives(change: Change) -> bool:
    """Return whether a change gives access, or would give it if it was sent."""
    if change.raises or change.action == "create":
        return True
    before: int | None = change.before.get("level")
    after: int | None = change.after.get("level")
    is_higher = after is not None and (before is None or before < after)
    return change.action == "differs" and is_higher


@dataclass
class Giver:
    """
    Gives what active grants say.

    :param read_giving: reads the notes, each time: other grants of the person may begin or end meanwhile
    :param invite: invites the people of these rows
    :param giving: what the notes said when they were read last
    :param journal: where what is given is noted before it is sent
    """

    client: WorkspaceClient
    organization_id: str
    read_giving: Callable[[], Giving]
    clock: Callable[[], datetime]
    invite: Callable[[list[dict[str, Any]]], InvitesReport]
    giving: Giving = field(default_factory=Giving)
    journal: Journal | None = None

    def give(self) -> Given:
        """Give it, until the lists show the highest of the levels; nothing is taken."""
        given = Given()
        for _ in range(MAX_ROUNDS):
            # The notes are read before the lists: who ends a grant changes the person first, and then the note.
            self.giving = self.read_giving()
            people = self._read()
            plan = plan_give(people, self.giving, self.clock())
            if given.plan.changes:  # who was invited may not be listed yet
                plan.changes = [change for change in plan.changes if not change.invites]
            if not plan.changes:
                given.people = people
                break
            apply(self.client, plan, self.invite, self._plan_again, journal=self.journal)
            given.plan.changes += plan.changes
            given.plan.outcomes |= plan.outcomes
            if not given.is_made:
                break
        return given

    def _read(self) -> OrganizationPeople:
        return OrganizationPeople.read(self.client, self.organization_id)

    def _plan_again(self) -> Plan:
        return plan_give(self._read(), self.giving, self.clock())


def user_of_change(plan: Plan) -> str | None:
    """Return the user whom a plan for one person changes; ``None`` if it invites, or changes nobody."""
    for change in plan.changes:
        if isinstance(change.operation, UpdateMember):
            return change.operation.user_uuid
    return None


def gave_nothing(error: WorkspaceError) -> bool:
    """Return whether an error of a :class:`Giver` says for certain that no access was given."""
    if isinstance(error, WorkspaceInvitesIncompleteError):
        return all(entry.status in ("failed", "not_sent") for entry in error.report.entries)
    for cause in getattr(error, "causes", [error]):
        operation = getattr(cause, "operation", "")
        outcome = getattr(cause, "outcome", "")
        if operation != "UpdateMember" or outcome not in ("rejected", "not_sent"):
            return False
    return True


def _may_be(member: Member, person: NotedPerson) -> bool:
    """Return whether a member may be a person of whom nothing but an old address is known."""
    had_level = person.level is not None and (member.level is None or member.level >= person.level)
    if had_level:  # they were a member when it was noted, and may have changed their address
        return True
    for level, holders in person.had_level:  # a member who accepts an invite is raised
        has_level = member.level is None or member.level >= level
        if has_level and (holders is None or member.user_uuid not in holders):
            return True
    joined_at = parse_timestamp(member.joined_at)
    return joined_at is None or joined_at >= person.since - CLOCK_SLACK


def _member_as_noted(member: Member, person: NotedPerson) -> Member:
    """Return a member with the address in the notes of a person; without it if somebody else has it now."""
    user_uuid = member.user_uuid
    if member.user is None or person.user_uuid is None or user_uuid is None:
        return member
    has_address = email_key(member) == address_key(person.email)
    is_person = user_uuid == person.user_uuid
    if is_person == has_address:
        return member
    email = person.email if is_person else None
    user = member.user.model_copy(update={"email": email})
    return member.model_copy(update={"user": user})


def _is_of_somebody_else(invite: Invite, person: NotedPerson) -> bool:
    """Return whether an invite to the address that a person had is not theirs."""
    has_address = email_key(invite) == address_key(person.email)
    return has_address and invite.id not in person.invite_ids


def _invite_as_noted(invite: Invite, person: NotedPerson) -> Invite:
    """Return an invite with the address in the notes of a person."""
    if invite.id not in person.invite_ids:
        return invite
    return invite.model_copy(update={"target_email": person.email})
