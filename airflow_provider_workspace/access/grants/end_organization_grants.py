"""End the grants of one organization that are over: one reading of its lists for all people, and one to check."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.grants.evidence import EndProof
from airflow_provider_workspace.access.grants.notes import BY_END, noted_grant_of, person_of, rows_of
from airflow_provider_workspace.access.grants.plan import CLOCK_SLACK, Giver, Giving, OrganizationPeople, plan_end
from airflow_provider_workspace.access.rules.entitlements import Claims, NotedAccess, Saying, entitlement_of
from airflow_provider_workspace.access.rules.guards import raise_if_no_owner_left
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import DeleteInvite
from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.apply_plan import check_applied, send_changes
from airflow_provider_workspace.procedures.ensure import look_until
from airflow_provider_workspace.procedures.invites import invite_all
from airflow_provider_workspace.procedures.journal import Sending
from airflow_provider_workspace.procedures.plan import ChangeResult, Plan

if TYPE_CHECKING:
    from threading import Event

    from airflow_provider_workspace.access.grants.evidence import GrantEvidence
    from airflow_provider_workspace.access.grants.notes import Grant, GrantRegistry
    from airflow_provider_workspace.access.rules.entitlements import ReviewDecision
    from airflow_provider_workspace.access.rules.guards import Guards
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.invites_report import InvitesReport
    from airflow_provider_workspace.procedures.journal import Journal
    from airflow_provider_workspace.procedures.people import NotedPerson
    from airflow_provider_workspace.procedures.plan import Change

log = logging.getLogger(__name__)

# How many seconds old the lists may be from which an end was planned: levels may have been changed since.
MAX_LIST_AGE = 30.0
# How long to wait for another run that ends the same grants, in seconds.
OTHER_RUN_SECONDS = 30.0
# How often somebody is followed from an invite that was withdrawn to the member who accepted it.
MAX_FOLLOWED = 3


@dataclass(frozen=True)
class GrantEnd:
    """
    What became of a grant that is over.

    :param grant: the grant; ``None`` if its Variable is unreadable
    :param variable: the key of its Variable
    :param done: what was done; empty if it is left
    :param evidence: path of its file; empty if there is none
    :param why: why it is left, and what to do; empty if it is not
    """

    grant: Grant | None
    variable: str
    done: str = ""
    why: str = ""
    evidence: str = ""

    @property
    def user_email(self) -> str:
        """The address of the person."""
        return self.grant.user_email if self.grant else "unknown"

    @property
    def line(self) -> str:
        """What became of it and whom it served, for people."""
        request = f" ({self.grant.request})" if self.grant else ""
        result = self.done or self.why
        return f"{self.user_email}: {result}{request}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        fields = self.grant.to_dict() if self.grant else {"user_email": self.user_email}
        result = {"why": self.why} if self.why else {"done": self.done}
        if self.evidence:
            result["evidence"] = self.evidence
        return {**fields, "variable": self.variable, **result}


@dataclass(frozen=True, kw_only=True)
class SweepRun:
    """
    One run that ends grants.

    :param guards: whom it leaves alone
    :param now: decides which ends are over
    :param writer: what no other run is known by
    :param noted: all grants that it has found
    :param evidence: keeps a file for each grant that ended; ``None`` for none
    :param journal: what the tries of the task send; ``None`` outside of a task
    """

    registry: GrantRegistry
    guards: Guards
    now: datetime
    writer: str
    noted: list[Grant]
    evidence: GrantEvidence | None = None
    journal: Journal | None = None


@dataclass
class PersonEnd:
    """
    The end of the grants of one person.

    :param over: the grants that are over, the one that ended last last
    :param user_uuid: the user, from the notes or from the lists
    :param noted: all grants of the person, as they were when it was planned
    :param plan: what the end takes now
    :param began: since when a run ends its grants: an earlier one may have been killed; ``None`` if this is the first
    :param sent: what it took before, such as an invite that was accepted meanwhile
    :param earlier: what earlier tries of the task took, for people
    :param users_before: the members when it was planned
    :param is_absent: whether the lists that were read first showed neither a member nor an invite
    :param seen: what the lists showed that prove the end
    :param evidence: the path of the file of each grant that ended, by the key of its Variable
    :param done: what was done; empty before the notes are deleted
    :param error: why the grants are left
    """

    over: list[Grant] = field(default_factory=list["Grant"])
    user_uuid: str | None = None
    noted: list[Grant] = field(default_factory=list["Grant"])
    plan: Plan = field(default_factory=Plan)
    sent: list[Change] = field(default_factory=list["Change"])
    began: float | None = None
    earlier: tuple[str, ...] = ()
    users_before: frozenset[str] = frozenset()
    is_absent: bool = False
    seen: EndProof | None = None
    evidence: dict[str, str] = field(default_factory=dict[str, str])
    done: str = ""
    error: Exception | None = None

    @property
    def last(self) -> Grant:
        """The grant that ended last."""
        return self.over[-1]

    @property
    def addresses(self) -> set[str]:
        """The addresses in the notes, as the keys of their Variables have them."""
        return {grant.person for grant in [*self.over, *self.noted]}

    @property
    def person(self) -> NotedPerson:
        """Who it is, from all that the notes have learned."""
        return person_of([*self.over, *self.noted], self.user_uuid)

    @property
    def withdrawals(self) -> list[Change]:
        """What the end takes of invites, each of which may be accepted at the same time."""
        return [change for change in self.taken if isinstance(change.operation, DeleteInvite)]

    @property
    def may_appear(self) -> bool:
        """Whether the lists may lag behind somebody: who accepts an invite, or whom they did not show at first."""
        return bool(self.withdrawals) or (self.is_absent and not self.sent)

    @property
    def no_candidates(self) -> frozenset[str]:
        """The users who cannot have accepted the invite, since they were members when the service deleted it."""
        done = ChangeResult("done")
        is_deleted = any(self.plan.outcomes.get(change) == done for change in self.withdrawals)
        return self.users_before if is_deleted else frozenset()

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is done about the person in this run."""
        return bool(self.done) or self.error is not None

    @property
    def is_permanent(self) -> bool:
        """Whether a retry changes nothing."""
        return self.error is None or getattr(self.error, "permanent", False)

    @property
    def taken(self) -> list[Change]:
        """The changes that are sent."""
        return [change for change in self.plan.changes if change.sends]

    @property
    def made(self) -> list[Change]:
        """The changes that are sent, without those that the service refused."""
        return [change for change in self.taken if not change_was_refused(self.plan, change)]

    @property
    def description(self) -> str:
        """What is done, for people."""
        lines = [f"{change.name}: {change.notes}" for change in (*self.sent, *self.taken)]
        changes = [*self.earlier, *lines]
        return "; ".join(changes) if changes else "they did not have it any more"

    @property
    def proof(self) -> EndProof | None:
        """What was sent, and what the lists showed of it; ``None`` if they were not read."""
        if self.seen is None:
            return None
        lines: list[str] = []
        for change in (*self.sent, *self.taken):
            operation = type(change.operation).__name__
            lines.append(f"{operation}: {change.name}: {change.notes}")
        return self.seen.model_copy(update={"sent": (*self.earlier, *lines)})

    def ends(self, grant: Grant) -> bool:
        """Return whether a note says what it said when this began to end its grant."""
        own = [ending for ending in self.over if ending.key == grant.key]
        return any(ending.terms == grant.terms for ending in own)

    def may_have_hit(self, active: Grant) -> bool:
        """Return whether an earlier run, which was killed, may have taken what a grant gives that was noted then."""
        return self.began is not None and active.since >= self.began - CLOCK_SLACK

    def take_over(self, other: PersonEnd) -> None:
        """End the grants of another too, who is the same user."""
        over = [*self.over, *other.over]
        self.over = sorted(over, key=BY_END)
        other.over = []

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep an error, which stops no other person."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are ended
            self.error = error

    def raise_if_kept(self) -> None:
        """
        Say what is left to people.

        :raises WorkspaceError: if the person keeps something
        """
        kept = [change for change in self.plan.changes if _is_kept(change)]
        if not kept:
            return
        last = self.last
        lines = [f"{change.name}: {change.notes}" for change in kept]
        named = "; ".join(lines)
        cure = "Remove them" if last.then is None else f"Set level {last.then}"
        msg = f"{cure} by hand, or delete the Variable '{last.key}' if they may keep what they have"
        raise WorkspaceError(f"{named}. {msg}", problem="access-not-ended")


@dataclass
class OrganizationEnds:
    """
    The ends in one organization, over one connection.

    :param decided: what reviews decided about its people
    :param read_decided: reads that again
    :param people: the people whose grants are over
    :param unknown: the grants that are not over, and whose user is not known
    :param interruption: what stopped it, such as the end of its process; raised again by the caller
    :param people_now: the lists as they were read last
    :param read_at: when that began, in seconds since 1970
    :param check_notes: reads the notes again for which the next write is sent
    """

    run_of_sweep: SweepRun
    client: WorkspaceClient
    organization_id: str
    decided: NotedAccess
    read_decided: Callable[[], list[ReviewDecision]]
    people: list[PersonEnd] = field(default_factory=list[PersonEnd])
    unknown: list[Grant] = field(default_factory=list["Grant"])
    interruption: BaseException | None = None
    stopped: Event | None = None
    people_now: OrganizationPeople | None = None
    read_at: float = 0.0
    check_notes: Callable[[], None] = lambda: None

    @property
    def registry(self) -> GrantRegistry:
        """The notes."""
        return self.run_of_sweep.registry

    @property
    def place(self) -> str:
        """The service and the organization, whatever the connection."""
        return self.client.settings.organization_at_service(self.organization_id)

    def run(self, stopped: Event, dry_run: bool) -> None:  # noqa: FBT001 - the target of a thread
        """
        End the grants, and keep every error.

        :param stopped: set when nothing more may be sent or deleted
        """
        try:
            self._run(stopped, dry_run=dry_run)
        except Exception as error:  # noqa: BLE001 - of all people of the organization
            for person in self.unsettled():
                person.error = error
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            self.interruption = error

    def unsettled(self) -> list[PersonEnd]:
        """Return the people about whom something is left to do."""
        return [person for person in self.people if not person.is_settled]

    def raise_if_stopped(self) -> None:
        """Refuse to go on after the time for the organization."""
        if self.stopped is not None and self.stopped.is_set():
            msg = "The time for this organization is over. Nothing more was sent"
            raise WorkspaceError(msg, problem="access-not-ended", permanent=False)

    def before_write(self) -> None:
        """
        Check that what is about to be sent is still wanted.

        :raises WorkspaceError: which says what happened to a note
        """
        self.raise_if_stopped()
        self.check_notes()

    def _run(self, stopped: Event, *, dry_run: bool) -> None:
        self.stopped = stopped
        people = self._read()
        self._learn(people)
        self._identify(people)
        for person in self.people:
            with person.guarded():
                if self.lists_are_old:
                    people = self._read()
                self._plan(person, people, dry_run=dry_run)
                if not dry_run and not person.is_settled:
                    self._send(person)
        if not dry_run:
            self._follow_invites()
            self._check()
        for person in self.unsettled():
            with person.guarded():
                person.raise_if_kept()
        if not dry_run:
            self._give_back()
        for person in self.unsettled():
            with person.guarded():
                self.raise_if_stopped()
                if not dry_run:
                    self._keep_evidence(person)
                    self._delete_notes(person)
                person.done = person.description
        if not dry_run:
            for person in self.people:
                if person.error is not None:
                    self._settle(person)

    def _settle(self, person: PersonEnd) -> None:
        """Take back an error if another run has ended the grants; note that nothing was taken if that is so."""
        try:
            if self._is_ended_by_another(person):
                person.done, person.error = "another run has ended it meanwhile", None
            elif not (person.sent or person.made):
                for grant in person.over:
                    self.registry.change(grant, ending_since=None)
        except WorkspaceError as error:
            log.warning("%s: %s", person.last.user_email, error)

    def _is_ended_by_another(self, person: PersonEnd) -> bool:
        """Return whether the notes of a person are gone, perhaps in a moment, and nothing is left to take."""

        def are_gone() -> bool:
            return all(self.registry.read(grant.key) is None for grant in person.over)

        notes = [self.registry.read(grant.key) for grant in person.over]
        is_at_work = any(noted is not None and noted.writer != self.run_of_sweep.writer for noted in notes)
        if not are_gone() and not (is_at_work and look_until(self.client, are_gone, OTHER_RUN_SECONDS)):
            return False
        people = self._read()
        if not people.holds(person.person):
            known = self._known_users(people) | person.no_candidates
            people.raise_unless_gone(person.person, known)
        left = self._plan_end(person, people, person.over)
        return not any(change.sends or _is_kept(change) for change in left.changes)

    def _read(self) -> OrganizationPeople:
        people = OrganizationPeople.read(self.client, self.organization_id)
        self.read_at = time.time()
        self.people_now = people
        return people

    @property
    def lists_are_old(self) -> bool:
        """Whether the lists may show people as they were."""
        return abs(time.time() - self.read_at) > MAX_LIST_AGE

    def _learn(self, people: OrganizationPeople) -> None:
        """Note the users of grants that are not over; those who were invited may have joined."""
        for grant in self.unknown:
            user_uuid = people.user_uuid_at(grant.user_email)
            if user_uuid is None:
                continue
            try:
                self.registry.change(grant, user_uuid=user_uuid)
            except WorkspaceError as error:
                log.warning("%s: the user is noted by the next run: %s", grant.user_email, error)

    def _identify(self, people: OrganizationPeople) -> None:
        """Find the users of people whose notes do not know them; grants of one user end together."""
        by_user: dict[str, PersonEnd] = {}
        for person in self.people:
            with person.guarded():
                person.user_uuid = self._user_of(person, people)
            key = person.user_uuid or person.last.person
            first = by_user.setdefault(key, person)
            if first is not person:
                first.take_over(person)
        self.people = list(by_user.values())

    def _user_of(self, person: PersonEnd, people: OrganizationPeople) -> str | None:
        """Return the user of a person: from the notes, who has the address, or the user of their other notes."""
        noted = person.person
        user_uuid = noted.user_uuid or people.user_uuid_at(noted.email)
        if user_uuid is not None:
            return user_uuid
        others = self.registry.of_person(*person.over)
        if noted.invite_ids:  # another user may have had the address before
            others = [other for other in others if other.invite_id in noted.invite_ids]
        users = {other.user_uuid for other in others if other.user_uuid}
        return users.pop() if len(users) == 1 else None

    def _invite(self, rows: list[dict[str, Any]]) -> InvitesReport:
        clocks: dict[str, Any] = {"clock": time.time, "monotonic": time.monotonic}
        return invite_all(self.client, rows, organization_id=self.organization_id, **clocks)

    def _plan(self, person: PersonEnd, people: OrganizationPeople, *, dry_run: bool) -> None:
        """Plan the end of a person from the notes as they are now, and note that this run ends them."""
        over = self._still_over(person)
        if not over:
            person.done = "it was ended or changed meanwhile"
            return
        begins = [grant.ending_since for grant in over if grant.ending_since]
        person.began = min(begins, default=None)
        if not dry_run:
            over = [self._take(grant, person) for grant in over]
        person.over = over
        person.noted = self._notes_of(person, people)
        person.plan = self._plan_from(person, people)
        person.earlier = self._earlier_of(person)
        person.users_before = people.user_uuids
        person.seen = self._see(person, people)
        person.is_absent = not people.holds(person.person)
        if person.is_absent:
            people.raise_unless_gone(person.person, self._known_users(people))
            person.plan.changes += people.withdrawals_of(person.person, self.run_of_sweep.guards)

    def _earlier_of(self, person: PersonEnd) -> tuple[str, ...]:
        """Return what earlier tries of the task took from a person, and this one does not take again."""
        journal = self.run_of_sweep.journal
        if journal is None:
            return ()
        addresses = {address_key(email) for email in person.person.emails}
        again = {change.key for change in person.taken}
        lines: list[str] = []
        for sending in journal.earlier_at(self.place).values():
            is_of_person = sending.row.get("person") in addresses
            if is_of_person and sending.key not in again:
                name = sending.row["name"]
                lines.append(f"{name}: {sending.told}")
        return tuple(lines)

    def _still_over(self, person: PersonEnd) -> list[Grant]:
        """Return the grants of a person that are over, as their notes are now; what changed waits for the next run."""
        noted = self.registry.of_person(*person.over)
        return sorted(filter(person.ends, noted), key=BY_END)

    def _take(self, grant: Grant, person: PersonEnd) -> Grant:
        """Note that this run ends a grant, since when, and who its user is; then the other notes are read."""
        ending_since = grant.ending_since or time.time()
        changes = {"writer": self.run_of_sweep.writer, "user_uuid": person.user_uuid, "ending_since": ending_since}
        return self.registry.change(grant, **changes)

    def _notes_of(self, person: PersonEnd, people: OrganizationPeople) -> list[Grant]:
        """Return all grants of a person as they are now."""
        noted = self.registry.of_person(*person.over)
        return [grant for grant in noted if _is_of(grant, person.person, people)]

    def _active_of(self, person: PersonEnd, people: OrganizationPeople) -> list[Grant]:
        """Return the grants of a person that are not over now, without those that this run ends, whatever the clock."""
        now = utc_now()
        active: list[Grant] = []
        for grant in self._notes_of(person, people):
            is_ended = person.ends(grant) or grant.is_over(now) or self._is_ended_by_review(grant, person, people)
            if not is_ended:
                active.append(grant)
        return active

    def _plan_from(self, person: PersonEnd, people: OrganizationPeople) -> Plan:
        plan = self._plan_end(person, people, person.noted)
        # The lists still show the people before as they were.
        changes: list[Change] = []
        for other in self.people:
            changes += other.made
        changes += plan.changes
        raise_if_no_owner_left(people.members, changes)
        return plan

    def _plan_end(self, person: PersonEnd, people: OrganizationPeople, grants: list[Grant]) -> Plan:
        """Plan what the end of a person takes, from their grants and from what reviews decided."""
        run = self.run_of_sweep
        who = person.person
        active = [grant for grant in grants if not grant.is_over(run.now)]
        temporary = [replace(noted_grant_of(grant), person=who) for grant in active]
        decision = self._decision_about(who, people)
        decisions = [replace(decision, person=who)] if decision else []
        noted = NotedAccess(temporary, decisions)
        rows = rows_of(grants, who)
        return plan_end(people, who, rows, guards=run.guards, now=run.now, noted=noted)

    def _decision_about(self, who: NotedPerson, people: OrganizationPeople) -> ReviewDecision | None:
        """Return what a review decided about a person; ``None`` if nothing is noted."""
        invite_id = min(who.invite_ids, default=None)
        return people.decision_about(self.decided, email=who.email, user_uuid=who.user_uuid, invite_id=invite_id)

    def _is_ended_by_review(self, grant: Grant, person: PersonEnd, people: OrganizationPeople) -> bool:
        """Return whether a review removed a person after a grant was noted."""
        decision = self._decision_about(person.person, people)
        claims = Claims((noted_grant_of(grant),), decision)
        now = self.run_of_sweep.now.timestamp()
        entitled = entitlement_of(Saying(has_access=False), claims, now)
        return bool(entitled.ended)

    def _known_users(self, people: OrganizationPeople) -> set[str]:
        """Return the users who came by an invite of their own, here, and have the level that it gave."""
        levels = {member.user_uuid: member.level for member in people.members}
        known: set[str] = set()
        place = (self.client.settings.base_url, self.organization_id)
        for grant in self.run_of_sweep.noted:
            is_here = (grant.service, grant.organization_id) == place
            came_by_invite = grant.then is None
            if is_here and came_by_invite and grant.user_uuid and levels.get(grant.user_uuid) == grant.level:
                known.add(grant.user_uuid)
        return known

    def _send(self, person: PersonEnd) -> None:
        """Send what the end takes, while the notes say the same."""

        def check_notes() -> None:
            if self.lists_are_old:
                msg = f"The lists were read more than {MAX_LIST_AGE:g} s ago, so nothing more was sent. Run this again"
                raise WorkspaceError(msg, problem="access-not-ended", permanent=False)
            for grant in person.over:
                self.registry.check(grant, is_over=True)

        self.check_notes = check_notes
        send_changes(self.client, person.plan, self._invite, journal=self.run_of_sweep.journal)

    def _follow_invites(self) -> None:
        """Read the lists until nobody can have accepted an invite that is gone; who has is lowered or removed."""
        for _ in range(MAX_FOLLOWED):
            waiting = [person for person in self.unsettled() if person.may_appear]
            joined = self._wait_for(waiting)
            if not joined:
                return
            for person in joined:
                with person.guarded():
                    self._send(person)

    def _wait_for(self, waiting: list[PersonEnd]) -> list[PersonEnd]:
        """Return those of the people who appear in the lists before these must be true."""
        if not waiting:
            return []
        readings: list[OrganizationPeople] = []

        def look() -> bool:
            people = self._read()
            readings.append(people)
            return all(people.holds(person.person) for person in waiting)

        look_until(self.client, look, self.client.settings.consistency_time)
        people = readings[-1]
        joined: list[PersonEnd] = []
        for person in waiting:
            with person.guarded():
                if not people.holds(person.person):
                    known = self._known_users(people) | person.no_candidates
                    people.raise_unless_gone(person.person, known)
                    person.seen = self._see(person, people)
                    continue
                taken = person.taken
                person.plan = Plan()
                person.sent += taken
                person.plan = self._plan_from(person, people)
                joined.append(person)
        return joined

    def _check(self) -> None:
        """Read the lists until they show what was sent."""
        sent = [person for person in self.unsettled() if person.taken]
        together = Plan()
        for person in sent:
            together.changes += person.taken
            together.outcomes |= person.plan.outcomes

        def plan_again() -> Plan:
            people = self._read()
            again = Plan()
            for person in sent:
                person.seen = self._see(person, people)
                # A grant that began meanwhile may have raised them again.
                noted = [*person.over, *self._active_of(person, people)]
                again.changes += self._plan_end(person, people, noted).changes
            return again

        try:
            check_applied(self.client, together, plan_again)
        except WorkspaceError as error:
            for person in sent:
                person.error = _error_of(person, together, error)

    def _give_back(self) -> None:
        """Give again what was noted meanwhile, which may have been taken with the rest."""
        people = self.people_now
        if people is None:
            return
        self.decided = NotedAccess(decisions=self.read_decided())
        returning: list[PersonEnd] = []
        for person in self.unsettled():
            with person.guarded():
                active = self._active_of(person, people)
                is_new = any(grant not in person.noted or person.may_have_hit(grant) for grant in active)
                if active and (person.sent or person.taken or is_new):
                    returning.append(person)
        for batch in _batches(returning):
            self._give_back_to(batch, people)

    def _give_back_to(self, returning: list[PersonEnd], people: OrganizationPeople) -> None:
        """Give again what is noted of people who have different addresses in their notes."""
        giver = Giver(
            client=self.client,
            organization_id=self.organization_id,
            read_giving=lambda: self._giving_to(returning, people),
            clock=utc_now,
            invite=self._invite,
        )

        def check_notes() -> None:
            for grant in giver.giving.grants:
                self.registry.check(grant, is_over=False, is_own=False)
            self.decided = NotedAccess(decisions=self.read_decided())
            giving = self._giving_to(returning, people)
            if len(giving.grants) < len(giver.giving.grants):
                msg = "A grant ended before it was given again, so nothing more was sent. Run this again"
                raise WorkspaceError(msg, problem="grant-changed", permanent=False)

        self.check_notes = check_notes
        try:
            given = giver.give()
        except WorkspaceError as error:
            for person in returning:
                person.error = error
            return
        if given.people is None:
            msg = "What other grants give was not given again, or is not shown. Run this again"
            for person in returning:
                person.error = WorkspaceError(msg, problem="access-not-ended", permanent=False)

    def _giving_to(self, returning: list[PersonEnd], people: OrganizationPeople) -> Giving:
        """Read what the active grants of people give now."""
        rows: list[dict[str, Any]] = []
        noted: list[Grant] = []
        returning_now: list[NotedPerson] = []
        for person in returning:
            active = self._active_of(person, people)
            if not active:
                continue
            who = person_of(active, person.user_uuid)
            rows += rows_of(active, who)
            noted += active
            returning_now.append(who)
        return Giving(rows, returning_now, noted)

    def _see(self, person: PersonEnd, people: OrganizationPeople) -> EndProof:
        """Return what the lists that were read last show of a person."""
        who = person.person
        seen = people.as_noted([who])
        members = seen.having(who.email)
        level = members[0].level if members else None
        invite_id = seen.invite_id_at(who.email)
        return EndProof(
            lists_read_at=iso(self.read_at),
            members_read=len(people.members),
            level=level,
            has_invite=invite_id is not None,
        )

    def _keep_evidence(self, person: PersonEnd) -> None:
        """
        Keep the files about the grants of a person that ended; those of an earlier try stay.

        :raises WorkspaceError: if one cannot be written; the notes stay then
        """
        evidence = self.run_of_sweep.evidence
        proof = person.proof
        if evidence is None or proof is None:
            return
        try:
            for grant in person.over:
                person.evidence[grant.key] = evidence.keep(grant, proof)
        except WorkspaceError as error:
            msg = f"The access is ended, but its file is not there, so its note stays: {error}"
            raise WorkspaceError(msg, problem=error.problem, permanent=error.permanent) from None

    def _delete_notes(self, person: PersonEnd) -> None:
        """Delete the notes of a person, after a later try could tell that their access is ended."""
        journal = self.run_of_sweep.journal
        for grant in person.over:
            if journal is not None:
                evidence = person.evidence.get(grant.key, "")
                end = GrantEnd(grant, grant.key, person.description, evidence=evidence)
                sending = Sending(self.place, grant.key, end.to_dict(), status="done")
                journal.begin([sending])
            if not self.registry.end(grant):
                msg = f"The Variable '{grant.key}' was changed while its access was ended. The next run reads it again"
                raise WorkspaceError(msg, problem="grant-changed", permanent=False)


def _is_of(grant: Grant, person: NotedPerson, people: OrganizationPeople) -> bool:
    """Return whether a note at an address of a person is theirs, as far as notes and lists know."""
    if person.user_uuid is None or grant.user_uuid is not None:
        return grant.user_uuid == person.user_uuid
    was_invited = grant.invite_id is not None
    if not was_invited or grant.invite_id in person.invite_ids:
        return True
    # Somebody else was invited to an address that the user has left.
    return not people.has_left(person, grant.user_email)


def _batches(people: list[PersonEnd]) -> list[list[PersonEnd]]:
    """Return people in batches, in each of which all addresses are different: one may have had that of another."""
    batches: list[list[PersonEnd]] = []
    later = people
    while later:
        batch: list[PersonEnd] = []
        remaining: list[PersonEnd] = []
        addresses: set[str] = set()
        for person in later:
            if person.addresses & addresses:
                remaining.append(person)
                continue
            batch.append(person)
            addresses |= person.addresses
        batches.append(batch)
        later = remaining
    return batches


def _error_of(person: PersonEnd, together: Plan, error: WorkspaceError) -> Exception | None:
    """Return the error of a person after a check; ``None`` if the lists show what was sent for them."""
    is_told = any(change_was_refused(together, change) for change in together.changes)
    if not is_told:
        return error
    left = [change for change in person.taken if change_was_refused(together, change)]
    if not left:
        return None
    reasons = [f"{change.action} {change.name}: {together.outcomes[change][1]}" for change in left]
    msg = f"Not done: {'; '.join(reasons)}. Check it in the workspace"
    return WorkspaceError(msg, problem="access-not-ended", permanent=error.permanent)


def change_was_refused(plan: Plan, change: Change) -> bool:
    """Return whether the service refused a change of a plan."""
    status, _ = plan.outcomes.get(change, ("", ""))
    return status == "refused"


def _is_kept(change: Change) -> bool:
    return change.mark == "kept" or change.action in ("differs", "unknown")
