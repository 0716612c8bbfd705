"""End the grants of one organization that are over: one reading of its lists for all people, and one to check."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.grants import rows_of
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.grants import OrganizationPeople, give, plan_end
from airflow_provider_workspace.procedures.invites import invite_all
from airflow_provider_workspace.procedures.members import check_owner_stays
from airflow_provider_workspace.procedures.plan import Plan, apply, check_applied

if TYPE_CHECKING:
    from threading import Event

    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.notes.grants import Grant, GrantRegistry
    from airflow_provider_workspace.procedures.invites_report import InvitesReport
    from airflow_provider_workspace.procedures.members import Guards
    from airflow_provider_workspace.procedures.plan import Change


@dataclass
class PersonEnd:
    """
    The end of the grants of one person.

    :param over: the grants that are over, the one that ended last last
    :param noted: all grants of the person, as they were when it was planned
    :param plan: what the end takes
    :param done: what was done; empty before the notes are deleted
    :param error: why the grants are left
    """

    over: list[Grant] = field(default_factory=list["Grant"])
    noted: list[Grant] = field(default_factory=list["Grant"])
    plan: Plan = field(default_factory=Plan)
    done: str = ""
    error: Exception | None = None

    @property
    def last(self) -> Grant:
        """The grant that ended last."""
        return self.over[-1]

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
        return "; ".join(f"{change.name}: {change.notes}" for change in self.taken) or "they did not have it any more"

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


@dataclass
class OrganizationEnds:
    """
    The ends in one organization, over one connection.

    :param now: decides which ends are over
    :param interruption: what stopped it, such as the end of its process; raised again by the caller
    """

    registry: GrantRegistry
    client: WorkspaceClient
    organization_id: str
    guards: Guards
    now: datetime
    people: list[PersonEnd] = field(default_factory=list[PersonEnd])
    interruption: BaseException | None = None

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

    def _run(self, stopped: Event, *, dry_run: bool) -> None:
        def raise_if_stopped(*_: object) -> None:
            if stopped.is_set():
                raise WorkspaceError("The time for this organization is over. Nothing more was sent", permanent=False)

        self.client.before_write = raise_if_stopped
        people = self._read()
        for person in self.people:
            with person.guarded():
                self._plan(person, people)
                if not dry_run and not person.is_settled:
                    apply(self.client, person.plan, self._invite, _checked_later)
        if not dry_run:
            self._check()
        for person in self.unsettled():
            with person.guarded():
                person.raise_if_kept()
        if not dry_run:
            self._give_back()
        for person in self.unsettled():
            with person.guarded():
                raise_if_stopped()
                if not dry_run:
                    self._delete_notes(person)
                person.done = person.description

    def _read(self) -> OrganizationPeople:
        return OrganizationPeople.read(self.client, self.organization_id)

    def _invite(self, rows: list[dict[str, Any]]) -> InvitesReport:
        clocks: dict[str, Any] = {"clock": time.time, "monotonic": time.monotonic}
        return invite_all(self.client, rows, organization_id=self.organization_id, **clocks)

    def _plan(self, person: PersonEnd, people: OrganizationPeople) -> None:
        """Plan the end of a person from the notes as they are now."""
        person.noted = self.registry.of_person(person.last)
        if person.last not in person.noted:
            person.done = "it was ended or changed meanwhile"
            return
        plan = plan_end(people, rows_of(person.noted), self.guards, self.now)
        # The lists still show the people before as they were.
        made = [change for other in self.people for change in other.taken if not _is_refused(other.plan, change)]
        check_owner_stays(people.members, [*made, *plan.changes])
        person.plan = plan

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
                again.changes += plan_end(people, rows_of(person.noted), self.guards, self.now).changes
            return again

        try:
            check_applied(self.client, together, plan_again)
        except WorkspaceError as error:
            for person in sent:
                person.error = _error_of(person, together, error)

    def _give_back(self) -> None:
        """Give again what was noted meanwhile, which may have been taken with the rest."""
        returning: list[PersonEnd] = []
        rows: list[dict[str, Any]] = []
        for person in self.unsettled():
            with person.guarded():
                active = self.registry.active(person.last)
                is_new = any(grant not in person.noted for grant in active)
                if active and (person.taken or is_new):
                    returning.append(person)
                    rows += rows_of(active)
        if not returning:
            return
        try:
            give(self.client, self.organization_id, rows, utc_now(), self._invite)
        except WorkspaceError as error:
            for person in returning:
                person.error = error

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
