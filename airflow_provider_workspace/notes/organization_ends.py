"""End the grants of one organization that are over: one reading of its lists for all people, and one to check."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.operations.invites import DeleteInvite
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.grants import person_of, rows_of
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.ensure import MAX_CHECK_SECONDS, look_until
from airflow_provider_workspace.procedures.grants import Giving, OrganizationPeople, give, plan_end
from airflow_provider_workspace.procedures.invites import invite_all
from airflow_provider_workspace.procedures.members import check_owner_stays
from airflow_provider_workspace.procedures.plan import Plan, apply, check_applied

if TYPE_CHECKING:
    from threading import Event

    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.notes.grants import Grant, GrantRegistry
    from airflow_provider_workspace.procedures.invites_report import InvitesReport
    from airflow_provider_workspace.procedures.members import Guards
    from airflow_provider_workspace.procedures.people import Person
    from airflow_provider_workspace.procedures.plan import Change

log = logging.getLogger(__name__)

# How often somebody is followed from an invite that was withdrawn to the member who accepted it.
MAX_ROUNDS = 3


@dataclass
class PersonEnd:
    """
    The end of the grants of one person.

    :param over: the grants that are over, the one that ended last last
    :param noted: all grants of the person, as they were when it was planned
    :param plan: what the end takes now
    :param sent: what it took before, such as an invite that was accepted meanwhile
    :param is_absent: whether the lists that were read first showed neither a member nor an invite
    :param done: what was done; empty before the notes are deleted
    :param error: why the grants are left
    """

    over: list[Grant] = field(default_factory=list["Grant"])
    noted: list[Grant] = field(default_factory=list["Grant"])
    plan: Plan = field(default_factory=Plan)
    sent: list[Change] = field(default_factory=list["Change"])
    is_absent: bool = False
    done: str = ""
    error: Exception | None = None

    @property
    def last(self) -> Grant:
        """The grant that ended last."""
        return self.over[-1]

    @property
    def person(self) -> Person:
        """Who it is, from all that the notes have learned."""
        return person_of([*self.over, *self.noted])

    @property
    def withdraws_invite(self) -> bool:
        """Whether the end takes an invite, which may be accepted at the same time."""
        return any(isinstance(change.operation, DeleteInvite) for change in self.taken)

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
    def description(self) -> str:
        """What is done, for people."""
        changes = [*self.sent, *self.taken]
        return "; ".join(f"{change.name}: {change.notes}" for change in changes) or "they did not have it any more"

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
        changes = self.plan.changes
        kept = [change for change in changes if change.action in ("differs", "unknown") or change.mark == "kept"]
        if not kept:
            return
        named = "; ".join(f"{change.name}: {change.notes}" for change in kept)
        cure = "Remove them" if self.last.then is None else f"Set level {self.last.then}"
        msg = f"{cure} by hand, or delete the Variable '{self.last.key}' if they may keep what they have"
        raise WorkspaceError(f"{msg}: {named}")


@dataclass(frozen=True)
class SweepRun:
    """
    One run that ends grants.

    :param guards: whom it leaves alone
    :param now: decides which ends are over
    :param writer: what no other run is known by
    :param noted: all grants that it has found
    """

    registry: GrantRegistry
    guards: Guards
    now: datetime
    writer: str
    noted: list[Grant]


@dataclass
class OrganizationEnds:
    """
    The ends in one organization, over one connection.

    :param people: the people whose grants are over
    :param unknown: the grants that are not over, and whose user is not known
    :param interruption: what stopped it, such as the end of its process; raised again by the caller
    :param check_notes: reads the notes again for which the next write is sent
    """

    run_of_sweep: SweepRun
    client: WorkspaceClient
    organization_id: str
    people: list[PersonEnd] = field(default_factory=list[PersonEnd])
    unknown: list[Grant] = field(default_factory=list["Grant"])
    interruption: BaseException | None = None
    stopped: Event | None = None
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
            raise WorkspaceError("The time for this organization is over. Nothing more was sent", permanent=False)

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
        for person in self.people:
            with person.guarded():
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
                    self._delete_notes(person)
                person.done = person.description

    def _read(self) -> OrganizationPeople:
        return OrganizationPeople.read(self.client, self.organization_id)

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

    def _invite(self, rows: list[dict[str, Any]]) -> InvitesReport:
        clocks: dict[str, Any] = {"clock": time.time, "monotonic": time.monotonic}
        return invite_all(self.client, rows, organization_id=self.organization_id, **clocks)

    def _plan(self, person: PersonEnd, people: OrganizationPeople, *, dry_run: bool) -> None:
        """Plan the end of a person from the notes as they are now, and note that this run ends them."""
        run = self.run_of_sweep
        noted = {grant.key: grant for grant in self.registry.of_person(person.last)}
        read_before = {grant.key: grant.terms for grant in person.over}
        over = [grant for key, grant in noted.items() if read_before.get(key) == grant.terms]
        if person.last.key not in [grant.key for grant in over]:
            person.done = "it was ended or changed meanwhile"
            return
        if not dry_run:
            for grant in over:
                noted[grant.key] = self.registry.take(grant, run.writer)
        person.over = [noted[grant.key] for grant in person.over if grant.key in noted]
        user_uuid = person_of(person.over).user_uuid
        person.noted = [grant for grant in noted.values() if user_uuid in (None, grant.user_uuid or user_uuid)]
        person.plan = self._plan_from(person, people)
        person.is_absent = not people.holds(person.person)
        if person.is_absent:
            people.raise_unless_gone(person.person, self._known_users())

    def _plan_from(self, person: PersonEnd, people: OrganizationPeople) -> Plan:
        run = self.run_of_sweep
        plan = plan_end(people, person.person, rows_of(person.noted), run.guards, run.now)
        # The lists still show the people before as they were.
        made = [change for other in self.people for change in other.taken if not _is_refused(other.plan, change)]
        check_owner_stays(people.members, [*made, *plan.changes])
        return plan

    def _known_users(self) -> set[str]:
        """Return the users of all notes."""
        return {grant.user_uuid for grant in self.run_of_sweep.noted if grant.user_uuid}

    def _send(self, person: PersonEnd) -> None:
        """Send what the end takes, while the notes say the same."""

        def check_notes() -> None:
            for grant in person.over:
                self.registry.check(grant, is_over=True)

        self.check_notes = check_notes
        apply(self.client, person.plan, self._invite, _checked_later)

    def _follow_invites(self) -> None:
        """Read the lists until nobody can have accepted an invite that is gone; who has is lowered or removed."""
        for _ in range(MAX_ROUNDS):
            waiting = [person for person in self.unsettled() if person.withdraws_invite or self._may_appear(person)]
            joined = self._wait_for(waiting)
            if not joined:
                return
            for person in joined:
                with person.guarded():
                    self._send(person)

    def _may_appear(self, person: PersonEnd) -> bool:
        """Return whether lists may lag behind somebody whom they do not show."""
        ended = self.run_of_sweep.now.timestamp() - person.last.until
        return person.is_absent and not person.sent and ended < self.client.settings.consistency_time

    def _wait_for(self, waiting: list[PersonEnd]) -> list[PersonEnd]:
        """Return those of the people who appear in the lists before these must be true."""
        if not waiting:
            return []
        readings: list[OrganizationPeople] = []

        def look() -> bool:
            people = self._read()
            readings.append(people)
            return all(people.holds(person.person) for person in waiting)

        look_until(self.client, look, min(self.client.settings.consistency_time, MAX_CHECK_SECONDS))
        people = readings[-1]
        joined: list[PersonEnd] = []
        for person in waiting:
            with person.guarded():
                if not people.holds(person.person):
                    people.raise_unless_gone(person.person, self._known_users())
                    continue
                taken = person.taken
                person.plan = Plan()
                person.sent += taken
                person.plan = self._plan_from(person, people)
                joined.append(person)
        return joined

    def _check(self) -> None:
        """Read the lists until they show what was sent."""
        run = self.run_of_sweep
        sent = [person for person in self.unsettled() if person.taken]
        together = Plan()
        for person in sent:
            together.changes += person.taken
            together.outcomes |= person.plan.outcomes

        def plan_again() -> Plan:
            people = self._read()
            again = Plan()
            for person in sent:
                # A grant that began meanwhile may have raised them again.
                rows = rows_of([*person.over, *self.registry.active(person.last)])
                again.changes += plan_end(people, person.person, rows, run.guards, run.now).changes
            return again

        try:
            check_applied(self.client, together, plan_again)
        except WorkspaceError as error:
            for person in sent:
                person.error = _error_of(person, together, error)

    def _give_back(self) -> None:
        """Give again what was noted meanwhile, which may have been taken with the rest."""
        returning: list[PersonEnd] = []
        for person in self.unsettled():
            with person.guarded():
                active = self.registry.active(person.last)
                is_new = any(grant not in person.noted for grant in active)
                if active and (person.sent or person.taken or is_new):
                    returning.append(person)
        if not returning:
            return
        noted: list[Grant] = []

        def read_giving() -> Giving:
            nonlocal noted
            active = [self.registry.active(person.last) for person in returning]
            noted = [grant for grants in active for grant in grants]
            rows = [row for grants in active for row in rows_of(grants)]
            return Giving(rows, [person_of(grants) for grants in active if grants])

        def check_notes() -> None:
            for grant in noted:
                self.registry.check(grant, is_over=False, is_own=False)

        self.check_notes = check_notes
        try:
            given = give(self.client, self.organization_id, read_giving, utc_now, self._invite)
        except WorkspaceError as error:
            for person in returning:
                person.error = error
            return
        if given.people is None:
            msg = "Run this again: what other grants give was not given again, or not shown"
            for person in returning:
                person.error = WorkspaceError(msg, permanent=False)

    def _delete_notes(self, person: PersonEnd) -> None:
        for grant in person.over:
            if not self.registry.end(grant):
                msg = f"The Variable '{grant.key}' was changed while its access was ended. The next run reads it again"
                raise WorkspaceError(msg, permanent=False)


def _checked_later() -> Plan:
    """Return an empty plan: the lists are read once for all people, after the last request."""
    return Plan()


def _is_refused(plan: Plan, change: Change) -> bool:
    status, _ = plan.outcomes.get(change, ("", ""))
    return status == "refused"


def _error_of(person: PersonEnd, together: Plan, error: WorkspaceError) -> Exception | None:
    """Return the error of a person after a check; ``None`` if the lists show what was sent for them."""
    is_told = any(_is_refused(together, change) for change in together.changes)
    if not is_told:
        return error
    left = [change for change in person.taken if _is_refused(together, change)]
    if not left:
        return None
    reasons = [f"{change.action} {change.name}: {together.outcomes[change][1]}" for change in left]
    return WorkspaceError(f"Not done: {'; '.join(reasons)}. Check it in the workspace", permanent=error.permanent)
