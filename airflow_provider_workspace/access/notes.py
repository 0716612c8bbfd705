"""What notes say about the people of an organization: temporary access, and the decisions of reviews."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_workspace.access.door import Door
from airflow_provider_workspace.access.grants import notes as grants
from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry, noted_grant_of
from airflow_provider_workspace.access.members.earlier_invites import (
    INVITED_VARIABLES,
    InviteAgain,
    InvitedNote,
    InvitedRegistry,
)
from airflow_provider_workspace.access.members.lines import MemberChange
from airflow_provider_workspace.access.reviews import notes as decisions
from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
from airflow_provider_workspace.access.rules.entitlements import (
    Claims,
    NotedAccess,
    Saying,
    decision_against,
    entitlement_of,
)
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvite, CreateInvites
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, WorkspaceNotAppliedError, name_first
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.plan import FINISHED, counted
from airflow_provider_workspace.version_compat import COMMAND, lists_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from airflow_provider_workspace.access.grants.notes import Grant
    from airflow_provider_workspace.access.rules.entitlements import NotedGrant, ReviewDecision
    from airflow_provider_workspace.access.rules.guards import Guards
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.plan import Change, Plan

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AccessNotes:
    """
    The notes about the people of one organization.

    :param service: base URL of the service
    """

    service: str
    organization_id: str
    grants: GrantRegistry
    reviews: ReviewRegistry
    invited: InvitedRegistry

    @classmethod
    def of_tasks(cls, settings: Settings, organization_id: str) -> AccessNotes:
        """Return the notes as tasks reach them."""
        registry = GrantRegistry(grants.GRANT_VARIABLES)
        reviews = ReviewRegistry(decisions.REVIEW_VARIABLES)
        return cls(settings.base_url, organization_id, registry, reviews, InvitedRegistry(INVITED_VARIABLES))

    def read(self) -> NotedAccess:
        """
        Read the notes; temporary access that is over is marked, until the sweep ends it.

        :raises WorkspaceError: if one of them is unreadable: nobody can tell whom it is about
        """
        if not lists_variables():  # there are no such notes before Airflow 3.3, and the plan says so
            return NotedAccess(are_known=False)
        now = utc_now()
        noted = self.grants.find(GRANT_PREFIX)
        self.grants.raise_if_unreadable()
        here = [grant for grant in noted if self._is_here(grant)]
        return NotedAccess(
            grants=[noted_grant_of(grant, is_over=grant.is_over(now)) for grant in here],
            decisions=self.decisions(),
        )

    def decisions(self) -> list[ReviewDecision]:
        """Return what reviews decided about the people of the organization."""
        return self.reviews.decisions_of(self.service, self.organization_id)

    def invite_again(self, times: int, pause: timedelta) -> InviteAgain:
        """
        Read who was invited before, and has not joined since.

        :param times: how often they are invited again
        :param pause: how long after the last invite
        """
        note = self._invited_note()
        unreadable = [self.invited.describe_unreadable(key, why) for key, why in self.invited.unreadable.items()]
        return InviteAgain(times, pause, note.people, " ".join(unreadable))

    @contextmanager
    def watched(self, client: WorkspaceClient, plan: Plan) -> Iterator[None]:
        """
        Read the decisions again directly before each request with which a plan raises or invites somebody.

        Whom it invites is noted before that.

        :raises WorkspaceError: if Airflow does not keep the note
        """
        raised = [change.operation for change in plan.changes if change.raises]
        uncounted = [change for change in plan.changes if change.invites and change not in plan.outcomes]

        def check(operation: Operation[object]) -> None:
            invites = isinstance(operation, CreateInvite | CreateInvites)
            if invites or any(operation is one for one in raised):
                self._raise_if_decided(plan)
            if invites and uncounted:
                note = self._invited_note()
                self.invited.keep(note, note.with_invites(uncounted, utc_now()))
                uncounted.clear()

        try:
            with client.checked(check):
                yield
        except WorkspaceError as error:
            try:
                self._note_outcomes(plan)
            except WorkspaceError as second:
                log.error("%s", second)  # noqa: TRY400 - the first error is raised
            if isinstance(error, WorkspaceNotAppliedError):
                # What was given does not look like what the second plan wants.
                self._raise_if_decided(plan)
            raise
        self._note_outcomes(plan)

    def _invited_note(self) -> InvitedNote:
        """Return the note of earlier invites; an empty one if there is none, or it is unreadable."""
        empty = InvitedNote(service=self.service, organization_id=self.organization_id)
        return self.invited.read(empty.key) or empty

    def _note_outcomes(self, plan: Plan) -> None:
        """Note which invites were sent, and forget who has joined or was removed."""
        note = self._invited_note()
        self.invited.keep(note, note.after(plan))

    def door(self, client: WorkspaceClient, guards: Guards) -> Door:
        """Return what is asked before one person gets or loses access."""
        return Door(client, self.organization_id, guards, self.read(), utc_now())

    @contextmanager
    def asked_again(self, door: Door) -> Iterator[None]:
        """Read the notes that have a say again directly before each request that gives access, and ask the door."""

        def check(operation: Operation[object]) -> None:
            if not door.noted.are_known:
                return
            if isinstance(operation, UpdateMember):
                door.noted = self.read()
            elif isinstance(operation, CreateInvite | CreateInvites):  # no grant has a say
                door.noted = replace(door.noted, decisions=self.decisions())
            else:
                return
            door.now = utc_now()
            try:
                door.check_again(operation)
            except WorkspaceInputError as error:
                raise WorkspaceError(
                    f"An access review decided, or temporary access began, after this task looked, so nothing more was "
                    f"sent. Run this again: {error}",
                    permanent=False,
                    problem="decided-meanwhile",
                ) from None

        with door.client.checked(check):
            yield

    def note_leaves(self, plan: Plan) -> None:
        """Note what rows leave people after their grants, where a plan sends nothing for them: others may fail it."""
        for change in _member_changes(plan):
            if not (change.sends or change.left_out):
                self._leave(change)

    def settle(self, plan: Plan) -> None:
        """
        Delete the notes of grants that ended with the changes of a plan, or whose people an earlier one removed.

        The grants of others whom it changes note what their rows leave them afterwards.

        :raises WorkspaceError: if temporary access began while the plan took away what the person had before, or a
            review decided against what the plan gave
        """
        finished = [change for change in _member_changes(plan) if _is_finished(plan, change)]
        for change in _member_changes(plan):
            if change in finished or not (change.sends or change.left_out):
                self.end(change.ends)
            if change.sends and not change.left_out:
                self._leave(change)
        self._raise_if_decided(plan)
        self._raise_if_undone([change for change in finished if change.takes_from_person])

    def _leave(self, change: MemberChange) -> None:
        """
        Note what a person has after their grants, because a row says so: their end must not take more.

        :raises WorkspaceError: if a note was changed just now: the end may take too much
        """
        for key, level in change.leaves:
            grant = self.grants.read(key)
            if grant is not None and (grant.then is None or grant.then < level):
                self.grants.change(grant, then=level)

    def raise_if_ended(self, grant: Grant) -> None:
        """
        Refuse to give what a review ended after the grant was noted.

        :raises WorkspaceError: naming the decision
        """
        noted = NotedAccess(grants=[noted_grant_of(grant)], decisions=self.decisions())
        key = address_key(grant.user_email)
        claims = noted.of_address(key, {})
        if grant.user_uuid:
            claims = noted.of_member(key, grant.user_uuid)
        entitled = entitlement_of(Saying(has_access=False), claims, utc_now().timestamp())
        if entitled.ended:
            raise WorkspaceError(
                f"An access review decided about {grant.user_email} after this grant was noted: {claims.decision}. If "
                f"they have its level, end it: {COMMAND} grants --end {grant.user_email}",
                permanent=True,
                problem="decided-meanwhile",
            )

    def _raise_if_decided(self, plan: Plan) -> None:
        """Refuse to go on if a review allows less than a plan gives, which was made before it decided."""
        giving = [change for change in _member_changes(plan) if change.raises or change.invites]
        if not giving or not lists_variables():
            return
        noted = NotedAccess(decisions=self.decisions())
        now = utc_now().timestamp()
        undone: list[str] = []
        for change in giving:
            decision = noted.of_address(change.person, plan.access_list.homes).decision
            if change.raises:
                decision = noted.of_member(change.person, _user_of(change)).decision
            capping = decision_against(change.after.get("level"), Claims(decision=decision), now)
            if capping:
                undone.append(f"{change.name}: {capping}")
        if undone:
            named = name_first(undone, "the plan")
            raise WorkspaceError(
                f"An access review allows {counted(len(undone), 'person', 'people')} less than this task gives them, "
                f"and decided after its plan was made. Run this again, which plans again: {named}",
                permanent=False,
                problem="decided-meanwhile",
            )

    def end(self, grants_over: Iterable[NotedGrant]) -> None:
        """Delete the notes of grants whose people have lost their access."""
        for ended in grants_over:
            grant = self.grants.read(ended.key)
            if grant is not None and self.grants.end(grant):
                log.info("%s: the temporary access until %s is ended.", ended.person.email, ended.until)

    def _raise_if_undone(self, taken: Sequence[MemberChange]) -> None:
        """Refuse to end well after taking what a grant gave that was noted after the plan was made."""
        if not taken:
            return
        noted = self.read()
        undone: list[str] = []
        for change in taken:
            ended = {grant.key for grant in change.ends}
            left: int = change.after.get("level", -1)
            for grant in noted.of_member(change.person, _user_of(change)).grants:
                is_begun = grant.key not in ended and not grant.is_over
                if is_begun and grant.level > left:
                    undone.append(f"{change.name}: {grant}")
        if undone:
            raise WorkspaceError(
                f"This task took away what temporary access gave meanwhile ({len(undone)}). End that access, or start "
                f"a new run of the Dag that gives it: {'; '.join(undone)}",
                permanent=True,
                problem="granted-meanwhile",
            )

    def _is_here(self, grant: Grant) -> bool:
        return grant.service == self.service and grant.organization_id == self.organization_id


def _member_changes(plan: Plan) -> list[MemberChange]:
    return [change for change in plan.changes if isinstance(change, MemberChange)]


def _is_finished(plan: Plan, change: Change) -> bool:
    result = plan.outcomes.get(change)
    return result is not None and result.status in FINISHED


def _user_of(change: Change) -> str:
    """Return the user whom a change is about; empty of an invite."""
    operation = change.operation
    return str(operation.user_uuid) if isinstance(operation, DeleteMember | UpdateMember) else ""
