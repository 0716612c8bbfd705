"""End grants, when they are over or before, for operators and the command line: organizations side by side."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_workspace.access.grants.end_organization_grants import (
    GrantEnd,
    OrganizationEnds,
    PersonEnd,
    SweepRun,
)
from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry
from airflow_provider_workspace.access.rules.entitlements import NotedAccess
from airflow_provider_workspace.access.rules.guards import Guards
from airflow_provider_workspace.api.comparison import address_key, email_key
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, name_first
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.notes.note_hooks import NoteHooks
from airflow_provider_workspace.notes.store import LockedStore
from airflow_provider_workspace.procedures.people import read_people
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from airflow_provider_workspace.access.grants.evidence import GrantEvidence
    from airflow_provider_workspace.access.grants.notes import Grant
    from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.notes.store import NoteStore
    from airflow_provider_workspace.procedures.journal import Journal

log = logging.getLogger(__name__)

# How long the ends of one organization may take in seconds, without the consistency time of its connections.
MAX_SECONDS = 300.0
NOBODY = "no temporary access is noted for"


@dataclass(frozen=True)
class GrantsEnded:
    """
    What became of the grants that are over.

    :param left: those that could not be ended, and Variables that are no grant
    :param active: number of grants that are not over
    :param error: the error for what is left; ``None`` if nothing is
    :param earlier: those that an earlier try of the task ended, as plain JSON
    """

    ended: tuple[GrantEnd, ...]
    left: tuple[GrantEnd, ...]
    active: int
    error: WorkspaceError | None
    earlier: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        ended = [end.to_dict() for end in self.ended]
        left = [end.to_dict() for end in self.left]
        return {"ended": [*self.earlier, *ended], "left": left, "active": self.active}


@dataclass(frozen=True)
class EarlyEnd:
    """
    The wish to end the temporary access of a person.

    :param user_email: an address of the person in the notes
    :param ended_by: who wants it
    :param organization_id: the organization; ``None`` if the person has temporary access in one only
    :param service: base URL of the service; ``None`` for any
    """

    user_email: str
    ended_by: str
    organization_id: str | None = None
    service: str | None = None

    def is_at(self, grant: Grant) -> bool:
        """Return whether a grant is in the place of this."""
        is_service = self.service in (None, grant.service)
        return is_service and self.organization_id in (None, grant.organization_id)

    def names(self, grant: Grant) -> bool:
        """Return whether a grant has the address of this."""
        return address_key(grant.user_email) == address_key(self.user_email)

    def grants_of(self, registry: GrantRegistry) -> list[Grant]:
        """
        Return the grants of the person, also those under another address of the same user.

        :raises WorkspaceInputError: if nobody can tell whose access is to end
        """
        here = [grant for grant in registry.all() if self.is_at(grant)]
        named = [grant for grant in here if self.names(grant)]
        places = {(grant.service, grant.organization_id) for grant in named}
        if len(places) > 1:
            organizations = ", ".join(sorted(grant.organization_id for grant in named))
            msg = f"{self.user_email} has temporary access in {len(places)} organizations. Name one: {organizations}"
            raise WorkspaceInputError(msg)
        users = {grant.user_uuid for grant in named if grant.user_uuid}
        if len(users) > 1:
            variables = [f"'{grant.key}' (user {grant.user_uuid})" for grant in named]
            why = f"{len(users)} users had the address {self.user_email}, so nobody can tell whose access is to end"
            cure = "Set until of the right Variables to a time that is over"
            raise WorkspaceInputError(f"{why}. {cure}: {', '.join(variables)}")
        return [grant for grant in here if self.names(grant) or grant.user_uuid in users]


def raise_if_access_stayed(
    client: WorkspaceClient, wish: EarlyEnd, organization_id: str, users: Sequence[str], levels: Sequence[int]
) -> None:
    """
    Refuse to end well if a person has what grants gave that an earlier try began to end, and nothing notes any more.

    :param users: whom those grants named
    :param levels: see :func:`levels_to_end`
    :raises WorkspaceError: naming the level
    """
    people = read_people(client, organization_id)
    key = address_key(wish.user_email)
    held = [member.level for member in people.members if member.user_uuid in users or email_key(member) == key]
    held += [invite.level for invite in people.invites if email_key(invite) == key]
    for level in held:
        if level in levels:
            raise WorkspaceError(
                f"{wish.user_email} still has level {level}, as their temporary access gave it, which is not noted any "
                f"more: somebody deleted its Variable, or gave the level again. If they may not keep it, take it away "
                f"by hand",
                permanent=True,
                problem="access-not-ended",
            )


def levels_to_end(grants: Sequence[Grant]) -> list[int]:
    """Return the levels that a person certainly does not have after the end of some grants."""
    left = {grant.then for grant in grants}
    return sorted({grant.level for grant in grants} - left)


@dataclass(frozen=True)
class TrialStore:
    """
    Shows notes as they would be after some writes, and writes nothing.

    :param values: what would be written, ``None`` for what would be deleted
    """

    store: NoteStore
    values: dict[str, str | None] = field(default_factory=dict[str, "str | None"])

    def list_keys(self) -> list[str]:
        return self.store.list_keys()

    def read(self, key: str) -> str | None:
        if key in self.values:
            return self.values[key]
        return self.store.read(key)

    def add(self, key: str, value: str) -> None:
        self.values[key] = value

    def write(self, key: str, value: str) -> None:
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values[key] = None


def end_grants(
    registry: GrantRegistry,
    reviews: ReviewRegistry,
    protected: Collection[Any],
    *,
    dry_run: bool,
    writer: str = "",
    only: frozenset[str] | None = None,
    evidence: GrantEvidence | None,
    journal: Journal | None,
) -> GrantsEnded:
    """
    End the grants that are over; what goes wrong with one person or organization stops no other.

    :param reviews: what reviews decided: nobody keeps more than that after the end
    :param protected: rows or addresses of people who are never removed or lowered
    :param dry_run: whether to send nothing, and say what would be done
    :param writer: what no other run is known by; by default a new one
    :param only: the keys of the grants to end; ``None`` for all that are over
    :param evidence: keeps a file for each grant that ended; ``None`` for none
    :param journal: what the tries of the task send; ``None`` outside of a task
    """
    now = utc_now()
    registry = GrantRegistry(LockedStore(registry.store))
    grants = registry.all()
    active = [grant for grant in grants if not grant.is_over(now)]
    over = [grant for grant in grants if grant.is_over(now)]
    if only is not None:
        over = [grant for grant in over if grant.key in only]
    people = _people_of(over)
    run = SweepRun(
        registry=registry,
        guards=Guards.read(protected, None),
        now=now,
        writer=writer or uuid4().hex,
        noted=grants,
        evidence=evidence,
        journal=journal,
    )
    with NoteHooks() as hooks:
        organizations: dict[tuple[str, str, str], OrganizationEnds] = {}

        def organization_of(grant: Grant) -> OrganizationEnds:
            otherwise = f"or take the access away by hand and delete the Variable '{grant.key}'"
            client = hooks.hook_of(grant, otherwise).client
            place = (grant.service, grant.workspace_conn_id, grant.organization_id)
            if place not in organizations:
                read_decided = partial(reviews.decisions_of, grant.service, grant.organization_id)
                organizations[place] = OrganizationEnds(
                    run_of_sweep=run,
                    client=client,
                    organization_id=grant.organization_id,
                    decided=NotedAccess(decisions=read_decided()),
                    read_decided=read_decided,
                )
            return organizations[place]

        for person in people:
            with person.guarded():
                organization_of(person.last).people.append(person)
        for grant in active:
            if dry_run or grant.user_uuid or only is not None:
                continue
            try:
                organization_of(grant).unknown.append(grant)
            except Exception as error:  # noqa: BLE001 - if it stays, the end of this grant fails
                log.warning("%s: the user is not looked up: %s", grant.user_email, error)
        _check_before_writes(list(organizations.values()))
        _run_side_by_side(list(organizations.values()), dry_run=dry_run)
    unreadable = registry.unreadable if only is None else {}
    result = _result_of(people, unreadable, active=len(active))
    if journal is None:
        return result
    return replace(result, earlier=ends_of_earlier_tries(journal, grants))


def ends_of_earlier_tries(journal: Journal, noted: Collection[Grant] = ()) -> list[Mapping[str, Any]]:
    """
    Return the grants that earlier tries of a task have ended, as plain JSON.

    :param noted: those that are noted now, and were not ended
    """
    left = {grant.key for grant in noted}
    rows = [sending.row for sending in journal.earlier if sending.key.startswith(GRANT_PREFIX)]
    return [row for row in rows if row["variable"] not in left]


def end_early(
    registry: GrantRegistry,
    reviews: ReviewRegistry,
    wish: EarlyEnd,
    protected: Collection[Any] = (),
    *,
    dry_run: bool = False,
    evidence: GrantEvidence | None = None,
    journal: Journal | None = None,
) -> GrantsEnded:
    """
    End the grants of a person now, with the proof that the sweep asks for.

    What cannot be ended stays noted with its new end, and the next sweep ends it.

    :param protected: rows or addresses of people who are never removed or lowered
    :param dry_run: whether to send and write nothing, and say what would be done
    :param evidence: keeps a file for each grant that ended; ``None`` for none
    :param journal: what the tries of the task send; ``None`` outside of a task
    :raises WorkspaceInputError: if the person has none, or nobody can tell whose access is to end
    """
    if dry_run:
        registry = GrantRegistry(TrialStore(registry.store))
    grants = wish.grants_of(registry)
    if not grants:
        more = f", and {len(registry.unreadable)} Variables are unreadable" if registry.unreadable else ""
        why = f"{NOBODY} {wish.user_email}{more}"
        raise WorkspaceInputError(f"{why}. Look at '{COMMAND} grants', and give an address that it shows")
    now = utc_now()
    keys: set[str] = set()
    for grant in grants:
        keys.add(grant.key)
        if not grant.is_over(now):
            _cut(registry, grant, now.timestamp(), wish.ended_by)
    return end_grants(
        registry,
        reviews,
        protected,
        dry_run=dry_run,
        only=frozenset(keys),
        evidence=evidence,
        journal=journal,
    )


def _cut(registry: GrantRegistry, grant: Grant, now: float, ended_by: str) -> None:
    """Note that a grant is over, and who ended it."""
    log.info("%s: %s ends the temporary access until %s now.", grant.user_email, ended_by, grant.row["until"])
    agreed_until = grant.agreed_until or grant.until
    until = float(int(now) - 1)
    registry.change(grant, until=until, ended_by=ended_by, agreed_until=agreed_until)


def _result_of(people: list[PersonEnd], unreadable: dict[str, str], *, active: int) -> GrantsEnded:
    """Return what became of people, and log it."""
    ended: list[GrantEnd] = []
    left: list[GrantEnd] = []
    for person in people:
        if not person.over:  # it turned out to be another of them
            continue
        email = person.last.user_email
        if person.error is None:
            log.info("%s: %s", email, person.done)
            for grant in person.over:
                evidence = person.evidence.get(grant.key, "")
                ended.append(GrantEnd(grant, grant.key, done=person.done, evidence=evidence))
        else:
            log.error("%s: %s", email, person.error)
            for grant in person.over:
                end = GrantEnd(grant, grant.key, why=str(person.error))
                left.append(end)
    for key, why in unreadable.items():
        description = GrantRegistry.describe_unreadable(key, why)
        left.append(GrantEnd(None, key, why=description))
    error: WorkspaceError | None = None
    if left:
        is_permanent = all(person.is_permanent for person in people)
        error = _error_of(left, permanent=is_permanent)
    return GrantsEnded(tuple(ended), tuple(left), active, error)


def _people_of(grants: list[Grant]) -> list[PersonEnd]:
    """Return the people of grants that are over, as far as their notes know them."""
    people: dict[tuple[str, str, str], PersonEnd] = {}
    for grant in grants:
        person = people.setdefault(grant.identity, PersonEnd())
        person.over.append(grant)
    return list(people.values())


def _check_before_writes(organizations: list[OrganizationEnds]) -> None:
    """Let each organization check its notes before each of its writes; several may share a client."""

    def before_write_of(client: WorkspaceClient) -> None:
        checks = {one.organization_id: one.before_write for one in organizations if one.client is client}

        def before_write(operation: Operation[Any], _why: str) -> None:
            checks[getattr(operation, "organization_id")]()  # noqa: B009 - all that is sent here has one

        client.before_write = before_write

    for organization in organizations:
        before_write_of(organization.client)


def _run_side_by_side(organizations: list[OrganizationEnds], *, dry_run: bool) -> None:
    """
    Run each organization in a thread, and wait until all are done, or their time is over.

    It is :data:`MAX_SECONDS`, and what the lists may lag behind.
    The connections of one organization take turns: each reads what the one before has left, such as the last owner.
    A thread that hangs is not waited for: it ends with its request, and changes nothing after that.
    """
    stopped = Event()
    turns: dict[str, list[OrganizationEnds]] = {}
    for organization in organizations:
        turns.setdefault(organization.place, []).append(organization)
    lags = [sum(one.client.settings.consistency_time for one in turn) for turn in turns.values()]
    seconds = MAX_SECONDS + max(lags, default=0.0)
    until = time.monotonic() + seconds
    threads: list[Thread] = []
    try:
        for turn in turns.values():
            thread = Thread(target=copy_context().run, args=(_run_in_turn, turn, stopped, dry_run), daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
    finally:
        stopped.set()
    for organization in organizations:
        if organization.interruption:
            raise organization.interruption
        for person in organization.unsettled():
            person.error = WorkspaceError(
                f"The time of {seconds:g} s for one organization is over. Check that the service of connection "
                f"'{person.last.workspace_conn_id}' responds, then run this again: it continues",
                problem="access-not-ended",
                permanent=False,
            )


def _run_in_turn(connections: list[OrganizationEnds], stopped: Event, dry_run: bool) -> None:  # noqa: FBT001 - of a thread
    """Run the connections of one organization one after the other, until one is interrupted or the time is over."""
    for connection in connections:
        connection.run(stopped, dry_run)
        if connection.interruption or stopped.is_set():
            return


def _error_of(left: list[GrantEnd], *, permanent: bool) -> WorkspaceError:
    grants = "1 grant" if len(left) == 1 else f"{len(left)} grants"
    first = left[0]
    why = first.why.rstrip(".")
    msg = f"{grants} could not be ended. {first.user_email}: {why}. Then clear this task or run '{COMMAND} sweep'."
    if len(left) > 1:
        others = [f"{end.user_email}: {end.why}" for end in left[1:]]
        others_named = name_first(others, "the log")
        msg += f" The others: {others_named}"
    return WorkspaceError(msg, permanent=permanent, problem="access-not-ended")
