"""The operator that gives access for a while."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import WorkspaceApprovalMixin, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg
from airflow_provider_workspace.operators.base import OfOrganization

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.grants import Grant

# Key in the task state: the grant was noted, and a retry after its end gives nothing again.
NOTED = "airflow_provider_workspace_granted"


class WorkspaceGrantAccessOperator(OfOrganization, WorkspaceApprovalMixin):
    """
    Give a person an access level for a while. Scopes ``organization_member:write`` and ``organization_member:read``.

    The grant is noted in a Variable of its own before anything is sent; the sweep
    (:class:`~airflow_provider_workspace.operators.sweep.WorkspaceSweepOperator`) or ``airflow workspace sweep`` ends
    it. Then the person gets the level that they had before, or is removed if they were no member. Who is no member is
    invited.

    An approval covers the level, how long, what comes then, and the reason. A retry continues its grant, whose end
    stays; one that begins after the end gives nothing again (Airflow 3.3). If the service certainly refused, nothing
    stays noted. People are known by their address.

    The result is the grant: ``user_email``, ``level``, ``then`` (the level after it; without it the person is removed),
    ``since``, ``until``, ``reason``, ``requested_by``, ``approved_by``, where it is, and ``before``, the level before.
    ``granted`` is false if the person has the level already, or a higher one, and by no grant: then nothing is sent.

    :param user_email: address of the person
    :param level: access level: a number, which the interface does not show, or ``member``, ``admin`` or ``owner``, for
        1, 8 and 15, which known services use
    :param length: how long, a timedelta or seconds, from when the grant is noted, which is after an approval
    :param until: the end instead: a date, which counts to its end in UTC, or a time with its zone, such as
        ``2026-12-31T18:00:00Z``
    :param reason: why, for those who approve it and read the list of grants
    """

    resource_kind = "members"
    has_own_dry_run = True
    user_email: Arg[str] = arg(kinds.NAME)
    level: Arg[int] = arg(kinds.SOME_LEVEL)
    length: Arg[timedelta | float | None] = arg(kinds.SECONDS_FROM_ONE, default=None)
    until: Arg[datetime | str | None] = arg(kinds.UNTIL, default=None)
    reason: Arg[str] = arg(kinds.NAME)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, WorkspaceRequestError
        from airflow_provider_workspace.notes.ending import give, is_refused
        from airflow_provider_workspace.notes.grants import VARIABLES, GrantRegistry
        from airflow_provider_workspace.notes.note import utc_now
        from airflow_provider_workspace.notes.task_state import TaskState
        from airflow_provider_workspace.procedures.grants import plan_grant

        now, grant, registry = utc_now(), self.draft(hook), GrantRegistry(VARIABLES)
        noted = registry.of_person(grant)
        own = next((other for other in noted if other.key == grant.key), None)
        state = TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=NOTED, clock=time.time)
        ended = own.is_over(now) if own else state.has_begun(NOTED)
        if ended or (own and own.level != grant.level):
            why = "is over" if ended or own is None else f"has level {own.level}"
            raise WorkspaceInputError(f"Start a new run to give access again: the grant that this run noted {why}")
        terms = {"until": self.until} if self.until else {"length": str(timedelta(seconds=self.length))}
        row = {"target_email": grant.user_email, "level": grant.level}
        terms["reason"] = grant.reason

        def given() -> dict[int | None, int | None]:
            others = [*noted, *registry.of_person(grant)]  # one may end, or begin, while the members are read
            return {other.level: other.then for other in others if other.key != grant.key}

        plan, before, then = plan_grant(hook.client, grant.organization_id, row, now, given, terms)
        if not plan.changes:
            self.log.info("Nothing is to be given: %s has level %s.", grant.user_email, before)
            return {**(own or grant).to_dict(), "granted": own is not None, "before": before}
        self.log.info("%s", plan.table())
        where = describe_organization(hook.client.settings, grant.organization_id)
        self.await_approval(f"Give {grant.user_email} access for a while to {where}?", plan)
        if self.is_dry_run:
            return plan.to_dict()
        if own is None:
            approval = self._approval()
            approved_by = approval.by if approval else ""
            grant = self.draft(hook).model_copy(update={"then": then, "approved_by": approved_by})
            registry.store.add(grant.key, grant.model_dump_json(exclude_none=True))
            state.begin(NOTED)
        invite = partial(self.invite_people, hook=hook, organization_id=grant.organization_id)
        try:
            # Read after the note: another grant may have ended meanwhile, and who ends one reads the notes afterwards.
            sent = give(hook.client, grant.organization_id, registry.active(grant), invite)
        except WorkspaceError as error:
            if own is None and is_refused(error):
                registry.store.delete(grant.key)
                state.forget()
            raise
        if {sent.outcomes.get(one, ("",))[0] for one in sent.changes} - {"done", "invited", "already_invited"}:
            msg = f"Try again: {grant.user_email} has joined or left meanwhile"
            raise WorkspaceRequestError(msg, operation="UpdateMember")
        return {**(own or grant).to_dict(), "granted": True, "before": before}

    def draft(self, hook: WorkspaceHook) -> Grant:
        """Return the grant as it would be noted now."""
        from airflow_provider_workspace.api.timestamps import moment_of
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.notes.grants import Grant
        from airflow_provider_workspace.procedures.roster import check_address

        if (self.length is None) is (self.until is None):
            raise WorkspaceInputError("Give either length=… or until=…")
        now, ti = time.time(), self._context.get("ti")
        until = now + self.length if self.until is None else moment_of(self.until).replace(microsecond=0).timestamp()
        if until <= now:
            raise WorkspaceInputError(f"Give a later until: {self.until} is over")
        return Grant(
            dag_id=str(getattr(ti, "dag_id", "-")),
            run_id=str(getattr(ti, "run_id", "-")),
            task_id=self.task_id,
            map_index=getattr(ti, "map_index", -1),
            service=hook.client.settings.base_url,
            workspace_conn_id=self.workspace_conn_id,
            organization_id=hook.organization_or_default(self.organization_id),
            user_email=check_address("user_email", self.user_email),
            level=self.level,
            since=now,
            until=float(int(until)),
            reason=self.reason,
            requested_by=str(getattr(self._context.get("dag_run"), "triggering_user_name", None) or ""),
        )
