"""Who has access, for an access review: everybody, what is new since the last one, and whom to look at first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_provider_workspace.access.rules.entitlements import NO_CLAIMS, NOTHING_NOTED, Claims, NotedAccess
from airflow_provider_workspace.access.rules.review_records import (
    COLLABORATOR,
    INVITE,
    MEMBER,
    NEVER,
    NEW,
    RAISED,
    LastReview,
    PersonKind,
    Population,
    ReadList,
    ReviewedPerson,
    Temporary,
)
from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key, domain_key
from airflow_provider_workspace.api.levels import LEVELS, describe_level
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.api.timestamps import parse_timestamp, to_second
from airflow_provider_workspace.errors import WorkspaceError, visible
from airflow_provider_workspace.procedures.access_list import homes_of
from airflow_provider_workspace.procedures.find import describe_reading, read_counted, read_rows
from airflow_provider_workspace.procedures.people import read_people

if TYPE_CHECKING:
    from airflow_provider_workspace.access.rules.entitlements import NotedGrant
    from airflow_provider_workspace.access.rules.guards import Guards
    from airflow_provider_workspace.api.models import DashboardCollaborator, Invite, Page, Resource
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

R = TypeVar("R", bound="Resource")

# Columns for people, who fill in the last one.
POPULATION_COLUMNS = (
    *("who", "name", "kind", "level", "joined_at", "last_login", "is_2fa_enabled"),
    *("outside_verified_domains", "change", "look", "group", "decision"),
)
UNSEEN_DAYS = 90
# The level in each project by its name, of each user.
ProjectLevels = Mapping[str, Mapping[str, int | str]]
# The groups of people to look at first, the greatest risk first.
RAISED_LEVEL = "owners and administrators"
TEMPORARY = "temporary access"
GUESTS = "guests outside the verified domains"
NEVER_SEEN = "never logged in"
UNSEEN = f"not seen for {UNSEEN_DAYS} days"
NO_SECOND_FACTOR = "no second factor"
SINCE_LAST_REVIEW = "joined, raised or lifted since the last review"
NO_ROW = "no row on the roster"
RISK_GROUPS = (RAISED_LEVEL, TEMPORARY, GUESTS, NEVER_SEEN, UNSEEN, NO_SECOND_FACTOR, SINCE_LAST_REVIEW, NO_ROW)
# A fifth of many people are looked at first, as far as a question has room for a field for each.
FEW, FIRST_SHARE, MAX_FIRST = 5, 5, 100
# What is true of more than this share is said once.
NEARLY_EVERYBODY = 0.8


@dataclass(frozen=True)
class ReviewedDashboard:
    """A dashboard whose collaborators are reviewed."""

    project_id: str
    dashboard_id: str


def read_population(
    client: WorkspaceClient,
    organization_id: str,
    guards: Guards,
    *,
    now: datetime,
    boards: Iterable[ReviewedDashboard] = (),
    last: LastReview | None = None,
    noted: NotedAccess = NOTHING_NOTED,
    project_levels: ProjectLevels | None = None,
    roster: Collection[str] | None = None,
) -> Population:
    """
    Read everybody who has access: members, open invites, and the collaborators of some dashboards.

    :param guards: who can only be kept
    :param boards: the dashboards; one that is named twice is read once
    :param last: what the last review left; ``None`` if there was none
    :param noted: temporary access, which is told apart
    :param project_levels: the level in each project by its name, of each user; ``None`` if nobody has read them
    :param roster: keys of the addresses on the roster; ``None`` without a roster
    :raises WorkspaceIncompleteListError: if a list is known to be short
    :raises WorkspaceError: if the list of members is empty, which cannot be
    """
    listing = ops.domains.ListDomains(organization_id=organization_id)
    domains = read_rows(client, listing)
    verified_domains = [domain_key(domain.domain or "") for domain in domains if domain.is_verified]
    verified = sorted(set(verified_domains))
    lists = _Lists(client, organization_id)
    found = lists.read(dict.fromkeys(boards))
    members = [access.record for access in found if access.kind == MEMBER]
    logins = [member.last_login for member in members]
    reader = _Reader(
        roster=roster,
        guards=guards,
        shows_logins=any(logins),
        verified=verified,
        noted=noted,
        homes=homes_of(members),
        project_levels=project_levels,
    )
    lifted = [decision.lifting for decision in noted.decisions if decision.lifted]
    people = [reader.person(who, access) for who, access in _named(found).items()]
    population = Population(
        read_at=to_second(now),
        service=client.settings.base_url,
        organization_id=organization_id,
        verified_domains=tuple(verified),
        lists=tuple(lists.counts),
        lifted=tuple(lifted),
        read_with=describe_reading(client.settings),
        shows_projects=project_levels is not None,
        people=tuple(people),
    )
    if last is not None:
        population = _compared(population, last)
    return _in_groups(population, now)


@dataclass(frozen=True)
class _Access:
    """
    Access of somebody.

    :param user: who it is; of an invite its id and its address
    :param record: what the service shows of it
    :param board: the dashboard; ``None`` if it is access to the organization
    """

    kind: PersonKind
    user: User
    record: Any
    board: ReviewedDashboard | None = None

    def names(self) -> Iterable[str]:
        """Return what people may call it; each says more than the one before."""
        user = self.user
        identity = f"{self.kind} {user.uuid}"
        who = visible(address_key(user.email or "")) or identity
        if self.board is not None:
            who = f"{who} on dashboard {self.board.dashboard_id}"
        yield who
        if self.board is not None:
            who = f"{who} of project {self.board.project_id}"
            yield who
        yield f"{who} ({identity})"


def _named(found: Iterable[_Access]) -> dict[str, _Access]:
    """Return all access, each by a name that no other has."""
    named: dict[str, _Access] = {}
    for access in found:
        name = ""
        for name in access.names():
            if name not in named:
                break
        if name in named:
            name = f"{name} {len(named)}"
        named[name] = access
    return named


@dataclass(frozen=True)
class _Lists:
    """
    Reads the lists of a population.

    :param counts: what was read so far
    """

    client: WorkspaceClient
    organization_id: str
    counts: list[ReadList] = field(default_factory=list)

    def read(self, boards: Iterable[ReviewedDashboard]) -> list[_Access]:
        """Return all access: of members and open invites, and of the collaborators of some dashboards."""
        present = read_people(self.client, self.organization_id, self._members, self._invites)
        if not present.members:
            raise WorkspaceError(
                "The service lists no member, not even the owner of the API key, so its lists prove nothing. Clear the "
                f"task later. Organization: {self.organization_id}",
                problem="list-too-short",
            )
        found: list[_Access] = []
        for member in present.members:
            user = member.user or User()
            found.append(_Access(MEMBER, user, member))
        for invite in present.invites:
            invited = User(uuid=invite.id, email=invite.target_email, first_name=invite.first_name)
            found.append(_Access(INVITE, invited, invite))

        users = {member.user.uuid: member.user for member in present.members if member.user}
        for board in boards:
            for collaborator in self._collaborators(board):
                known = users.get(collaborator.user_uuid or collaborator.label)
                user = known or collaborator.user or User(uuid=collaborator.user_uuid)
                found.append(_Access(COLLABORATOR, user, collaborator, board))
        return found

    def _invites(self) -> list[Invite]:
        listing = ops.invites.ListInvites(organization_id=self.organization_id)
        return self._rows(listing, "invites")

    def _members(self) -> list[Member]:
        listing = ops.members.ListMembers(organization_id=self.organization_id)
        return self._rows(listing, "members")

    def _collaborators(self, board: ReviewedDashboard) -> list[DashboardCollaborator]:
        listing = ops.dashboards.ListDashboardCollaborators(
            project_id=board.project_id, dashboard_id=board.dashboard_id
        )
        return self._rows(listing, "collaborators", project_id=board.project_id, dashboard_id=board.dashboard_id)

    def _rows(
        self, listing: Operation[Page[R]], name: Literal["members", "invites", "collaborators"], **dashboard: str
    ) -> list[R]:
        """Return all rows of a list, and keep how many there are."""
        rows, counted = read_counted(self.client, listing)
        count = ReadList(name=name, rows=len(rows), counted=counted, **dashboard)
        self.counts.append(count)
        return rows


@dataclass(frozen=True)
class _Reader:
    """
    Makes the rows of a population.

    :param guards: who can only be kept
    :param shows_logins: whether the service shows when people logged in
    :param verified: the verified domains
    :param noted: temporary access
    :param homes: the key of the address of each user who is a member
    :param project_levels: the level in each project of each user; ``None`` if nobody has read them
    :param roster: keys of the addresses on the roster; ``None`` without a roster
    """

    guards: Guards
    shows_logins: bool
    verified: list[str]
    noted: NotedAccess
    homes: Mapping[str, str]
    project_levels: ProjectLevels | None
    roster: Collection[str] | None

    def person(self, who: str, access: _Access) -> ReviewedPerson:
        """Return the row of somebody."""
        user = access.user
        record = access.record
        board = access.board
        joined_at = getattr(record, "joined_at", None)
        claims = self._claims(access)
        temporary = _temporary(claims.grants, record.level)
        return ReviewedPerson(
            who=who,
            kind=access.kind,
            email=user.email,
            id=user.uuid,
            name=user.full_name,
            project_id=board.project_id if board else None,
            dashboard_id=board.dashboard_id if board else None,
            level=record.level,
            joined_at=to_second(joined_at),
            last_login=self._last_login(record),
            is_2fa_enabled=getattr(record, "is_2fa_enabled", None),
            projects=self._projects(access),
            is_on_roster=self._is_on_roster(access),
            temporary=temporary,
            lifted=claims.lifted,
            outside=self._is_outside(user.email),
            kept=self._why_kept(access, temporary),
        )

    def _projects(self, access: _Access) -> tuple[str, ...] | None:
        """Return the level of a member in each project, for people; ``None`` if nobody has read it of them."""
        levels = (self.project_levels or {}).get(access.user.uuid or "")
        if levels is None or access.kind != MEMBER:
            return None
        described: list[str] = []
        for project, level in sorted(levels.items()):
            level_name = describe_level(level) if isinstance(level, int) else level
            described.append(f"{project}: {level_name}")
        return tuple(described)

    def _is_on_roster(self, access: _Access) -> bool | None:
        key = address_key(access.user.email or "")
        if self.roster is None or not key or access.kind == COLLABORATOR:
            return None
        return key in self.roster

    def _last_login(self, record: Any) -> str | None:
        """Return when somebody logged in; never, if the service shows that, and not that it does not show it."""
        login = to_second(getattr(record, "last_login", None))
        shows_null = self.shows_logins and "last_login" in record.model_fields_set
        return login or (NEVER if shows_null else None)

    def _is_outside(self, email: str | None) -> bool | None:
        domain = domain_key((email or "").rpartition("@")[2])
        if not domain or not self.verified:
            return None
        return domain not in self.verified

    def _why_kept(self, access: _Access, temporary: Temporary | None) -> str:
        # The rule for members reads addresses and levels; of others only the address counts.
        level = access.record.level if access.kind == MEMBER else 0
        if temporary:
            level = temporary.then if access.kind == MEMBER else 0
            level = level or 0
        return self.guards.why_kept(Member(user=access.user, level=level))

    def _claims(self, access: _Access) -> Claims:
        """Return what is noted about somebody; nothing of a collaborator."""
        if access.kind == COLLABORATOR:
            return NO_CLAIMS
        user = access.user
        return claims_of(self.noted, access.kind, email=user.email, identity=user.uuid, homes=self.homes)


def _temporary(grants: Iterable[NotedGrant], level: int | None) -> Temporary | None:
    """Return what a reviewer must know of the grants that gave somebody their level; ``None`` if none did."""
    noted = sorted(grants, key=attrgetter("until"))
    giving = [grant for grant in noted if grant.level == level]
    if not giving:
        return None
    last = max(giving, key=attrgetter("until"))
    since = max(grant.since for grant in noted)
    requesters = [grant.requested_by for grant in noted]
    approvers = [grant.approved_by for grant in noted]
    return Temporary(
        says=str(last),
        then=last.then,
        since=since,
        grants=tuple(map(str, noted)),
        requested_by=", ".join(requesters),
        approved_by=", ".join(approvers),
        is_over=last.is_over,
    )


def claims_of(
    noted: NotedAccess, kind: PersonKind, *, email: str | None, identity: str | None, homes: Mapping[str, str]
) -> Claims:
    """
    Return what is noted about a member or an invite.

    :param identity: the user, or the id of the invite
    :param homes: the key of the address of each user who is a member
    """
    key = address_key(email or "")
    if kind == MEMBER:
        return noted.of_member(key, identity)
    return noted.of_invite(key, identity, homes)


def _compared(population: Population, last: LastReview) -> Population:
    """Return a population with what changed since the last review."""
    before = {}
    left = []
    for earlier, person in last.population.pairs_in(population):
        if person is None:
            left.append(earlier.who)
        else:
            before[person.who] = earlier
    people: list[ReviewedPerson] = []
    for person in population.people:
        lifted = "" if person.lifted in last.population.lifted else person.lifted
        change = _change(before, person)
        people.append(person.model_copy(update={"change": change, "lifted": lifted}))
    news = {"previous": last.review, "left": tuple(sorted(left)), "people": tuple(people)}
    return population.model_copy(update=news)


def _change(before: Mapping[str, ReviewedPerson], person: ReviewedPerson) -> str:
    earlier = before.get(person.who)
    if earlier is None:
        return NEW
    return RAISED if earlier.is_raised_in(person) else ""


@dataclass(frozen=True)
class _Reason:
    """
    Why a reviewer must look at somebody.

    :param group: the group of people to look at first to which it belongs; empty for none
    """

    text: str
    group: str = ""


def _in_groups(population: Population, now: datetime) -> Population:
    """Return a population that says why to look at people, and has the groups to look at first in front."""
    count = len(population.people)
    room = max(FEW, min(count // FIRST_SHARE, MAX_FIRST))
    reasons = {person.who: _reasons(person, now) for person in population.people}
    groups: dict[str, str] = {}
    too_many: list[str] = []
    said_once: set[str] = set()
    for group in RISK_GROUPS:
        whole: list[str] = []
        for who, listed in reasons.items():
            if any(reason.group == group for reason in listed):
                whole.append(who)
        people = [who for who in whole if who not in groups]
        # Each administrator is decided about, however many there are.
        room_left = room - len(groups)
        if group == RAISED_LEVEL or len(people) <= room_left:
            groups |= dict.fromkeys(people, group)
        else:
            too_many.append(f"{group}: {len(whole)} of {count}")
            if len(whole) > NEARLY_EVERYBODY * count:
                said_once.add(group)
    listed_people: list[ReviewedPerson] = []
    for person in population.people:
        look = [reason.text for reason in reasons[person.who] if reason.group not in said_once]
        group = groups.get(person.who, "")
        listed_people.append(person.model_copy(update={"look": tuple(look), "group": group}))
    listed_people.sort(key=_place_of)
    return population.model_copy(update={"too_many": tuple(too_many), "people": tuple(listed_people)})


def _place_of(person: ReviewedPerson) -> tuple[int, int, str]:
    """Return where somebody stands: those to look at first in front, with owners before administrators."""
    level = (person.level_under or 0) if person.group == RAISED_LEVEL else 0
    groups = (*RISK_GROUPS, "")
    return groups.index(person.group), -level, person.who


def _reasons(person: ReviewedPerson, now: datetime) -> list[_Reason]:
    """Return why a reviewer must look at somebody."""
    reasons: list[_Reason] = []
    if person.temporary:
        reasons.append(_Reason(person.temporary.says, TEMPORARY))
    level = 0 if person.kind == COLLABORATOR else person.level_under or 0
    if level >= LEVELS["owner"]:
        reasons.append(_Reason("owner", RAISED_LEVEL))
    elif level > LEVELS["member"]:
        level_name, _, _ = describe_level(level).partition(" (")
        reasons.append(_Reason(level_name, RAISED_LEVEL))
    if person.outside:
        reasons.append(_Reason("outside the verified domains", GUESTS))
    seen = parse_timestamp(person.last_login)
    if person.last_login == NEVER:
        reasons.append(_Reason(NEVER_SEEN, NEVER_SEEN))
    elif seen and now.timestamp() - seen > UNSEEN_DAYS * 86_400:
        reasons.append(_Reason(UNSEEN, UNSEEN))
    if person.is_2fa_enabled is False:
        reasons.append(_Reason(NO_SECOND_FACTOR, NO_SECOND_FACTOR))
    if person.change:
        reasons.append(_Reason(person.change, SINCE_LAST_REVIEW))
    if person.is_on_roster is False:
        reasons.append(_Reason(NO_ROW, NO_ROW))
    if person.lifted:
        reasons.append(_Reason("lifted after an earlier access review", SINCE_LAST_REVIEW))
    if person.kept:
        reasons.append(_Reason(f"stays: {person.kept}"))
    return reasons


def reviewed(population: Population, last_look: Population) -> Population:
    """Return the population of a review as it left it: without those who are gone, and with the levels decided on."""
    people: list[ReviewedPerson] = []
    for person, now in population.pairs_in(last_look):
        if now is None:
            continue
        # Whom somebody raised meanwhile, nobody reviewed at that level.
        people.append(person if person.is_raised_in(now) else now)
    return population.model_copy(update={"people": tuple(people)})


def csv_rows(population: Population) -> list[dict[str, Any]]:
    """Return the rows of the file that people fill in, with :data:`POPULATION_COLUMNS`."""
    rows: list[dict[str, Any]] = []
    for person in population.people:
        row = {
            "who": person.who,
            "name": visible(person.name),
            "kind": person.kind,
            "level": person.level_name,
            "joined_at": person.joined_at,
            "last_login": person.last_login,
            "is_2fa_enabled": person.is_2fa_enabled,
            "outside_verified_domains": person.outside,
            "change": person.change,
            "look": ", ".join(person.look),
            "group": person.group,
            "decision": "",
        }
        rows.append(row)
    return rows
