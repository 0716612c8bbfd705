"""The operators that give temporary access, and end it early."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import WorkspaceApprovalMixin, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg, fixed
from airflow_provider_workspace.operators.base import OfOrganization, WorkspaceWriteOperator
from airflow_provider_workspace.version_compat import lists_variables

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_workspace.access.grants.evidence import GrantEvidence
    from airflow_provider_workspace.access.grants.notes import Grant, GrantRegistry
    from airflow_provider_workspace.access.grants.plan import Giving, GrantPlan, OrganizationPeople
    from airflow_provider_workspace.api.bodies import LevelName
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.task_state import TaskState

# Key in the task state: the grant was noted, and a retry after its end gives nothing again.
NOTED_GRANT = "airflow_provider_workspace_granted"
# Key in the task state: access was ended early, and a retry may find none.
ENDED = "airflow_provider_workspace_ended"
# How long an approval may wait until access is given, in seconds.
MAX_APPROVAL_AGE = 7 * 86_400.0
# Maximum number of characters of a reason: it is in the note, in questions, lists and results.
MAX_REASON = 4000


class WorkspaceGrantAccessOperator(OfOrganization, WorkspaceApprovalMixin):
    """
    Give a person temporary access. Scopes ``organization_member:write`` and ``organization_member:read``.

    The grant is noted in a Variable before anything is sent; if the service certainly refused, no note stays. At its
    end, the sweep (:class:`~airflow_provider_workspace.operators.sweep.WorkspaceSweepOperator`) or ``airflow workspace
    sweep`` gives the person back the level that they had before, or removes a person who was not a member.
    Needs Airflow 3.3.

    A retry continues its grant, whose end stays; a retry that begins after the end, or finds the access taken back,
    gives nothing and fails.

    The result is the grant: ``user_email``, ``level``, ``then`` (the level after it; without it the person is removed),
    ``since``, ``until``, ``reason``, ``requested_by``, ``approved_by``, the service and
    organization, and ``before``, the level before.
    ``granted`` is false if the person has the level already, or a higher one, and by no grant: then nothing is sent.

    :param user_email: address of the person; a person who is not a member is invited
    :param level: access level to give
    :param length: how long, counted from the approval, or without one from when the grant is noted
    :param until: the end, instead of ``length``: a date, which counts to its end in UTC, or a time with its zone, such
        as ``2026-12-31T18:00:00Z``
    :param reason: why, for the people who approve it or read the list of grants; at most 4,000 characters
    """

    resource_kind = "grants"
    has_own_dry_run = True
    user_email: Arg[str] = arg(kinds.NAME)
    level: Arg[int | LevelName] = arg(kinds.REQUIRED_LEVEL)
    length: Arg[timedelta | float | None] = arg(kinds.SECONDS_FROM_ONE, default=None)
    until: Arg[datetime | str | None] = arg(kinds.UNTIL, default=None)
    reason: Arg[str] = arg(kinds.NAME)
    allow_self_approval: bool = fixed(kinds.FLAG, default=False)

    def __post_init__(self) -> None:
        """Refuse the Dag file before Airflow 3.3, where nothing would end a grant."""
        if not lists_variables():
            from airflow import __version__

            from airflow_provider_workspace.access.grants.notes import NEEDS_AIRFLOW_3_3
            from airflow_provider_workspace.errors import WorkspaceInputError

            raise WorkspaceInputError(f"{NEEDS_AIRFLOW_3_3}. Upgrade Airflow, which is {__version__} here")

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.grants.notes import GRANT_VARIABLES, GrantRegistry, person_of
        from airflow_provider_workspace.access.grants.plan import GrantWish, OrganizationPeople, plan_grant
        from airflow_provider_workspace.access.reviews import notes as decisions
        from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
        from airflow_provider_workspace.access.rules.entitlements import NotedAccess
        from airflow_provider_workspace.api.levels import describe_level
        from airflow_provider_workspace.notes.note import utc_now

        now = utc_now()
        draft = self.draft(hook)
        registry = GrantRegistry(GRANT_VARIABLES)
        noted = registry.of_organization(draft)
        own = next((grant for grant in noted if grant.key == draft.key), None)
        self._raise_if_over(draft, own, now)
        if own and not self.is_dry_run:
            own = registry.change(own, writer=str(draft.writer))  # no other try sends anything for it

        reviews = ReviewRegistry(decisions.REVIEW_VARIABLES)
        decided = NotedAccess(decisions=reviews.decisions_of(draft.service, draft.organization_id))
        people = OrganizationPeople.read(hook.client, draft.organization_id)
        person = person_of([own or draft])
        if people.user_of(person):
            people = people.as_noted([person])
        # Other grants that gave the level; one may end, or begin, while the members are read.
        asked = draft.model_copy(update={"user_uuid": people.user_uuid_at(draft.user_email)})
        others = [grant for grant in noted if grant.may_be_for_person_of(asked)]
        others += registry.of_person(asked)
        given: dict[int | None, int | None] = {}
        for grant in others:
            if grant.key != draft.key:
                given[grant.level] = grant.then
        terms = self._terms()
        wish = GrantWish(email=draft.user_email, level=draft.level, terms=terms, given=given)
        planned = plan_grant(people, wish, decided, now)
        if not planned.plan.changes:
            self.log.info("Nothing is to be given: %s has level %s.", draft.user_email, planned.before)
            if own and not self.is_dry_run:
                own = self._confirm(registry, own, planned.people)
            self.push_approval()
            before = self._level_before(hook, planned)
            return {**(own or draft).to_dict(), "granted": own is not None, "before": before}
        self._raise_if_taken_back(own, planned)
        self._raise_if_decided(planned)
        own = self._unless_asked_again(registry, own)
        self.log.info("%s", planned.plan.table())
        place = describe_organization(hook.client.settings, draft.organization_id)
        level = describe_level(self.level)
        subject = f"Give {draft.user_email} temporary access as {level} to {place}?"
        facts = self._facts(draft, planned)
        self.await_approval(subject, planned.plan, facts=facts, about=[draft.user_email])
        if self.is_dry_run:
            return planned.plan.to_dict()
        grant = self._note(hook, registry, planned, own)
        grant = self._give(hook, registry, grant, is_new=own is None)
        return {**grant.to_dict(), "granted": True, "before": self._level_before(hook, planned)}

    def _level_before(self, hook: WorkspaceHook, planned: GrantPlan) -> int | None:
        """Return the level before the first try that gave one; ``None`` for no access."""
        place = hook.client.settings.organization_at_service(planned.people.organization_id)
        earlier = self.journal.earlier_at(place).values()
        levels = [sending.row["before"].get("level") for sending in earlier]
        return levels[0] if levels else planned.before

    @property
    def _noted(self) -> TaskState:
        """The task state that says that the grant was noted."""
        from airflow_provider_workspace.notes.task_state import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=NOTED_GRANT, clock=time.time)

    def _raise_if_over(self, draft: Grant, own: Grant | None, now: datetime) -> None:
        """Refuse to continue a grant of this run that is over, or that gave another level."""
        from airflow_provider_workspace.api.levels import describe_level
        from airflow_provider_workspace.errors import WorkspaceInputError

        is_over = own.is_over(now) if own else self._noted.has_begun(NOTED_GRANT)
        cure = "Start a new run to give access again"
        if is_over:
            raise WorkspaceInputError(f"The grant that this run noted is over. {cure}")
        if own and own.level != draft.level:
            why = f"The grant that this run noted has another level, {describe_level(own.level)}"
            raise WorkspaceInputError(f"{why}. {cure}")

    def _terms(self) -> dict[str, str]:
        """Return what an approval covers besides the levels."""
        if self.until is None:
            return {"length": str(timedelta(seconds=self.length)), "reason": self.reason}
        return {"until": self.until, "reason": self.reason}

    def _facts(self, draft: Grant, planned: GrantPlan) -> dict[str, str]:
        """Return what the question says about the grant."""
        from airflow_provider_workspace.api.levels import describe_level
        from airflow_provider_workspace.api.timestamps import for_people

        before = "no access" if planned.before is None else describe_level(planned.before)
        then = "removed" if planned.then is None else describe_level(planned.then)
        until = f"{timedelta(seconds=self.length or 0)} after the approval"
        if self.until is not None:
            until = for_people(draft.until)
        level = describe_level(draft.level)
        return {
            "For": draft.user_email,
            "Level": f"{level} instead of {before}",
            "Until": until,
            "Then": then,
            "Why": draft.reason,
        }

    def _raise_if_taken_back(self, own: Grant | None, planned: GrantPlan) -> None:
        """Refuse to give again what somebody took back after it was given."""
        from airflow_provider_workspace.api.levels import describe_level
        from airflow_provider_workspace.errors import WorkspaceInputError

        if own is None:
            return
        level = planned.before
        has_left = own.user_uuid is not None and level is None
        if own.given_at is None and not has_left:
            return
        if level is not None and level >= own.level:
            return
        now = "is no member" if level is None else f"is {describe_level(level)}"
        why = f"{own.user_email} was a member when this run noted the grant, and {now} now"
        if own.given_at is not None:
            given = describe_level(own.level)
            why = f"Somebody took back what this grant gave: {own.user_email} became {given}, and {now} now"
        raise WorkspaceInputError(f"{why}. Start a new run to give access again")

    def _unless_asked_again(self, registry: GrantRegistry, own: Grant | None) -> Grant | None:
        """Return the grant to continue; one that was not given ends before a person is asked again."""
        asks = self.require_approval and not self.is_dry_run and self._approval() is None
        if own is None or own.given_at is not None or not asks:
            return own
        self._noted.forget()
        registry.end(own)
        return None

    def _raise_if_decided(self, planned: GrantPlan) -> None:
        """Refuse to give more than a review decided, unless a person approves it."""
        from airflow_provider_workspace.errors import WorkspaceInputError

        if planned.decision is None or self.require_approval:
            return
        why = f"An access review allows {self.user_email} less than this grant gives: {planned.decision}"
        msg = f"{why}. Set require_approval=True, so that a person decides again"
        raise WorkspaceInputError(msg, problem="decided-by-review")

    def _note(self, hook: WorkspaceHook, registry: GrantRegistry, planned: GrantPlan, own: Grant | None) -> Grant:
        """Note the grant, and the user whom it is for, before anything is sent."""
        from airflow_provider_workspace.access.grants.plan import user_of_change
        from airflow_provider_workspace.api.timestamps import parse_timestamp

        user_uuid = user_of_change(planned.plan) or planned.people.user_uuid_at(self.user_email)
        if own:
            return own if own.user_uuid == user_uuid else registry.change(own, user_uuid=user_uuid)
        approval = self._approval()
        approved_by = approval.approver if approval else ""
        approved_at = parse_timestamp(approval.at) if approval else None
        had_level = planned.people.had_level(self.level) if user_uuid is None else None
        grant = self.draft(hook)
        changes = {
            "then": planned.then,
            "approved_by": approved_by,
            "approved_at": approved_at,
            "user_uuid": user_uuid,
            "until": self._end_after(approved_at, grant),
            "had_level": had_level,
        }
        grant = grant.model_copy(update=changes)
        registry.add(grant)
        self._noted.begin(NOTED_GRANT)
        return grant

    def _end_after(self, approved_at: float | None, draft: Grant) -> float:
        """
        Return when a grant ends: its length counts from the approval.

        :raises WorkspaceInputError: if the approval is too old, or its time is over
        """
        from airflow_provider_workspace.api.timestamps import for_people
        from airflow_provider_workspace.errors import WorkspaceInputError

        if approved_at is None:
            return draft.until
        approved_at = min(approved_at, draft.since)  # the clock of Airflow's API server may be ahead
        until = draft.until
        if self.length is not None:
            until = float(int(approved_at + self.length))
        latest_start = min(until, approved_at + MAX_APPROVAL_AGE)
        if draft.since < latest_start:
            return until
        approved = for_people(approved_at)
        why = f"The access that was approved at {approved} was not given in time"
        raise WorkspaceInputError(f"{why}. Start a new run to ask again", problem="approval-expired")

    def _give(self, hook: WorkspaceHook, registry: GrantRegistry, grant: Grant, *, is_new: bool) -> Grant:
        """Give what is noted now; after a certain refusal, a new note is taken back."""
        from airflow_provider_workspace.access.grants.plan import Giver, gave_nothing
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError
        from airflow_provider_workspace.notes.note import utc_now

        known = {other.key: other.given_at for other in registry.active(grant)}
        organization_id = grant.organization_id
        giver = Giver(
            client=hook.client,
            organization_id=organization_id,
            read_giving=partial(self._giving_of, registry, grant, known),
            clock=utc_now,
            invite=partial(self.invite_people, hook=hook, organization_id=organization_id),
            journal=self.journal,
        )
        access = AccessNotes.of_tasks(hook.client.settings, organization_id)

        def check(_: Operation[object]) -> None:
            registry.check(grant, is_over=False)
            access.raise_if_ended(grant)
            for other in giver.giving.grants:
                registry.check(other, is_over=False, is_own=False)

        try:
            with hook.client.checked(check):
                given = giver.give()
        except WorkspaceError as error:
            if is_new and gave_nothing(error):
                registry.end(grant)
                self._noted.forget()
            raise
        if not given.is_made or given.people is None:
            msg = f"{grant.user_email} joined or left while access was given. Try again"
            raise WorkspaceRequestError(msg, operation="UpdateMember", problem="joined-meanwhile")
        try:
            confirmed = self._confirm(registry, grant, given.people)
        except WorkspaceError:
            self._note_again_if_over(registry, grant)
            raise
        access.raise_if_ended(confirmed)
        return confirmed

    @staticmethod
    def _giving_of(registry: GrantRegistry, grant: Grant, known: Mapping[str, float | None]) -> Giving:
        """
        Read what to give, and to whom: this grant, and what others began to give meanwhile, which it may have lowered.

        What others gave before is held by the lists, or was taken back: it is not given again.

        :param known: when the other grants of the person were given, as this one was noted
        """
        from airflow_provider_workspace.access.grants.notes import person_of, rows_of
        from airflow_provider_workspace.access.grants.plan import Giving

        active = registry.active(grant)
        if grant.user_uuid is None:  # who had the address before is somebody else
            active = [other for other in active if other.user_uuid is None]
        person = person_of([grant, *active])
        own = [noted for noted in active if noted.key == grant.key]
        others = [noted for noted in active if noted.key != grant.key]
        begun: list[Grant] = []
        for other in others:
            is_known = other.key in known and known[other.key] == other.given_at
            if not is_known:
                begun.append(other)
        rows = rows_of([*own, *begun], person)
        return Giving(rows, [person], begun)

    def _note_again_if_over(self, registry: GrantRegistry, grant: Grant) -> None:
        """Note a grant again that a sweep ended while its last request was under way: the next sweep takes it."""
        from airflow_provider_workspace.notes.note import utc_now

        if grant.is_over(utc_now()) and registry.read(grant.key) is None:
            registry.add(grant)

    def _confirm(self, registry: GrantRegistry, grant: Grant, people: OrganizationPeople) -> Grant:
        """
        Note that the service shows what was given, and whom it shows.

        :raises WorkspaceError: if the note was ended or taken over while the last request was under way
        """
        noted = registry.check(grant, is_over=False)
        email = noted.user_email
        user_uuid = noted.user_uuid or people.user_uuid_at(email)
        invite_id = noted.invite_id
        if invite_id is None and user_uuid not in people.user_uuids:
            invite_id = people.invite_id_at(email)
        given_at = noted.given_at or time.time()
        return registry.change(noted, user_uuid=user_uuid, invite_id=invite_id, given_at=given_at)

    def draft(self, hook: WorkspaceHook) -> Grant:
        """Return the grant as it would be noted now."""
        from airflow_provider_workspace.access.grants.notes import Grant
        from airflow_provider_workspace.access.rules.answers import AnswerRules
        from airflow_provider_workspace.api.timestamps import moment_of
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.procedures.roster import check_address

        if (self.length is None) is (self.until is None):
            raise WorkspaceInputError("Give either length=… or until=…")
        if len(self.reason) > MAX_REASON:
            length = len(self.reason)
            msg = f"reason has {length} characters, and at most {MAX_REASON} are noted. Shorten it"
            raise WorkspaceInputError(msg)
        now = time.time()
        until = now + (self.length or 0)
        if self.until is not None:
            end = moment_of(self.until).replace(microsecond=0)
            until = end.timestamp()
        if until <= now:
            raise WorkspaceInputError(f"until is over: {self.until}. Give a later one")
        ti = self._context.get("ti")
        asked = AnswerRules(started_by=self.started_by, requested_by=self.requested_by or "")
        # Airflow gives each try its own id.
        writer = getattr(ti, "id", None) or uuid4()
        dag_id = getattr(ti, "dag_id", "-")
        run_id = getattr(ti, "run_id", "-")
        map_index = getattr(ti, "map_index", -1)
        organization_id = hook.organization_or_default(self.organization_id)
        user_email = check_address("user_email", self.user_email)
        return Grant(
            dag_id=str(dag_id),
            run_id=str(run_id),
            task_id=self.task_id,
            map_index=map_index,
            service=hook.client.settings.base_url,
            workspace_conn_id=self.workspace_conn_id,
            organization_id=organization_id,
            user_email=user_email,
            level=self.level,
            since=now,
            until=float(int(until)),
            reason=self.reason,
            requested_by=asked.requester,
            writer=str(writer),
        )


class WorkspaceEndAccessOperator(OfOrganization, WorkspaceWriteOperator):
    """
    End the temporary access of a person before its end.

    Scopes ``organization_member:write`` and ``organization_member:read``. All grants of the person in the organization
    end now, over the connections that gave them. A grant that cannot be ended fails the task and stays noted for the
    next sweep. Needs Airflow 3.3.

    A task that finds no grant of the person fails, unless an earlier try has ended it, because the address may be
    misspelt.

    The result has the grants: ``{"ended": [{"user_email", "level", "done", "ended_by", "requested_by", "approved_by",
    "reason", ...}], "left": [], "active": number}``.

    :param user_email: address of the person, as ``airflow workspace grants`` shows it
    :param protected: rows or addresses of members who are never lowered or removed, such as the owner of the
        connection's API key
    :param evidence: folder for a file about each grant that ended; see
        :class:`~airflow_provider_workspace.operators.sweep.WorkspaceSweepOperator`
    """

    resource_kind = "grants"
    has_own_dry_run = True
    user_email: Arg[str] = arg(kinds.NAME)
    evidence: Arg[ObjectStoragePath | str | None] = arg(kinds.NEEDED, default=None)
    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(kinds.PROTECTED_ROWS, default=())

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.grants import notes as grants
        from airflow_provider_workspace.access.grants.end_grants import (
            EarlyEnd,
            end_early,
            ends_of_earlier_tries,
            levels_to_end,
            raise_if_access_stayed,
        )
        from airflow_provider_workspace.access.grants.notes import GrantRegistry, raise_if_unsupported
        from airflow_provider_workspace.access.reviews import notes as decisions
        from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
        from airflow_provider_workspace.notes.task_state import TaskState
        from airflow_provider_workspace.procedures.roster import check_address

        raise_if_unsupported()
        email = check_address("user_email", self.user_email)
        organization_id = hook.organization_or_default(self.organization_id)
        wish = EarlyEnd(
            user_email=email,
            ended_by=self.initiator,
            organization_id=organization_id,
            service=hook.client.settings.base_url,
        )
        registry = GrantRegistry(grants.GRANT_VARIABLES)
        reviews = ReviewRegistry(decisions.REVIEW_VARIABLES)
        state = TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=ENDED, clock=time.time)
        found = wish.grants_of(registry)
        if found:
            users = [grant.user_uuid for grant in found if grant.user_uuid]
            state.begin(ENDED, users=users, levels=levels_to_end(found))
        elif state.has_begun(ENDED):
            begun = state.facts(ENDED)
            users = begun.get("users", [])
            raise_if_access_stayed(hook.client, wish, organization_id, users, begun.get("levels", []))
            self.log.info("An earlier try has ended the temporary access of %s.", email)
            return {"ended": ends_of_earlier_tries(self.journal), "left": [], "active": 0}
        evidence = self._evidence()
        ended = end_early(
            registry,
            reviews,
            wish,
            self.protected,
            dry_run=self.is_dry_run,
            evidence=evidence,
            journal=self.journal,
        )
        for end in ended.ended:
            self.log.info("%s", end.line)
        if ended.error and not self.is_dry_run:
            raise ended.error
        return ended.to_dict()

    def _evidence(self) -> GrantEvidence | None:
        """Return the folder of the files about grants that ended; ``None`` if there is none."""
        from airflow_provider_workspace.access.grants.evidence import GrantEvidence

        if self.evidence is None:
            return None
        ended_by, _ = self.try_identity()
        return GrantEvidence(self.evidence, ended_by)
