"""Operators for access that ends by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import WorkspaceApprovalMixin, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg
from airflow_provider_workspace.operators.base import OfOrganization, WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.state.grants import Grant, GrantRegistry


class WorkspaceGrantAccessOperator(OfOrganization, WorkspaceApprovalMixin):
    """
    Give a person an access level for a while. Scopes ``organization_member:write`` and ``organization_member:read``.

    The grant is noted in a Variable of its own before anything is sent; a task of
    :class:`WorkspaceEndAccessOperator`, or ``airflow workspace grants --end``, ends it. Then the person gets the level
    that they had before, or is removed if they were no member. Who is no member is invited.

    An approval covers the level, how long, what comes then, and the reason. A retry continues its grant, whose end
    stays. If the service certainly refused, nothing stays noted.

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
    length: Arg[timedelta | float | None] = arg(kinds.LENGTH, default=None)
    until: Arg[datetime | str | None] = arg(kinds.UNTIL, default=None)
    reason: Arg[str] = arg(kinds.NAME)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.procedures.grants import plan_grant
        from airflow_provider_workspace.state.grants import GrantRegistry, grant_variables

        grant, registry = self.draft(hook), GrantRegistry(grant_variables())
        others = registry.of_person(grant)
        own = next((other for other in others if other.key == grant.key), None)
        if own is not None:
            self.check_own(own)
            others.remove(own)
        terms = {"until": self.until} if self.until else {"length": str(timedelta(seconds=self.length))}
        plan, before, then = plan_grant(
            hook.client,
            grant.organization_id,
            grant.user_email,
            grant.level,
            {other.level: other.then for other in others},
            {**terms, "reason": grant.reason},
            is_noted=own is not None,
        )
        if not plan.changes:
            self.log.info("%s has level %s already: nothing was sent.", grant.user_email, before)
            return {**(own or grant).to_dict(), "granted": own is not None, "before": before}
        self.log.info("%s", plan.table())
        where = describe_organization(hook.client.settings, grant.organization_id)
        self.await_approval(f"Give {grant.user_email} access for a while to {where}?", plan)
        if self.is_dry_run:
            return plan.to_dict()
        if own is None:
            granted = self._granted()
            approved_by = str(granted["by"]) if granted and self.require_approval else ""
            grant = self.draft(hook).model_copy(update={"then": then, "approved_by": approved_by})
            registry.store.add(grant.key, grant.model_dump_json(exclude_none=True))
        try:
            self.give(hook, own or grant, registry)
        except WorkspaceError as error:
            if own is None and _is_refused(error):
                registry.store.delete(grant.key)
            raise
        return {**(own or grant).to_dict(), "granted": True, "before": before}

    def draft(self, hook: WorkspaceHook) -> Grant:
        """Return the grant as it would be noted now."""
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.procedures.ends import moment_of
        from airflow_provider_workspace.procedures.roster import check_address
        from airflow_provider_workspace.state.grants import Grant

        if (self.length is None) is (self.until is None):
            raise WorkspaceInputError("Give either length=… or until=…")
        now = time.time()
        ti = self._context.get("ti")
        grant = Grant(
            **{name: str(getattr(ti, name, "-")) for name in ("dag_id", "run_id", "task_id")},
            map_index=getattr(ti, "map_index", -1),
            service=hook.client.settings.base_url,
            workspace_conn_id=self.workspace_conn_id,
            organization_id=hook.organization_or_default(self.organization_id),
            user_email=check_address("user_email", self.user_email),
            level=self.level,
            since=now,
            until=float(int(now + self.length if self.until is None else moment_of(self.until).timestamp())),
            reason=self.reason,
            requested_by=str(getattr(self._context.get("dag_run"), "triggering_user_name", None) or ""),
        )
        if grant.until <= now:
            raise WorkspaceInputError(f"Give a later until: {self.until} is over")
        return grant

    def check_own(self, own: Grant) -> None:
        """Refuse to continue a grant that is over, or gave another level."""
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.state.ending import utc_now

        why = "is over" if own.is_over(utc_now()) else f"gave level {own.level}" if own.level != self.level else ""
        if why:
            raise WorkspaceInputError(f"Start a new run to give access again: the grant that this run noted {why}")

    def give(self, hook: WorkspaceHook, grant: Grant, registry: GrantRegistry) -> None:
        """Send the highest level of the active grants of the person, or an invite; see that it is there."""
        from airflow_provider_workspace.api.operations.members import ListMembers, UpdateMember
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.procedures.ensure import change
        from airflow_provider_workspace.procedures.find import find_by_uuid
        from airflow_provider_workspace.procedures.grants import find_member
        from airflow_provider_workspace.state.ending import utc_now

        # After the note: what was read before may have ended since. Whoever ends it reads the notes afterwards.
        now, organization_id, email = utc_now(), grant.organization_id, grant.user_email
        highest = max([grant.level, *(one.level for one in registry.of_person(grant) if not one.is_over(now))])
        member = find_member(hook.client, organization_id, email)
        if member is None:
            row = {"target_email": email, "level": grant.level}
            status = self.invite_people([row], hook, organization_id).entries[0].status
            if status not in ("invited", "already_invited"):
                raise WorkspaceError(f"Try again: {email} became a member meanwhile")
        elif (member.level or 0) <= highest:
            user_uuid = (member.user and member.user.uuid) or ""
            update = UpdateMember(organization_id=organization_id, user_uuid=user_uuid, level=highest)
            members = ListMembers(organization_id=organization_id)
            change(hook.client, update, partial(find_by_uuid, hook.client, members, user_uuid))


def _is_refused(error: Exception) -> bool:
    """Return whether an error says for certain that no access was given."""
    from airflow_provider_workspace.api.outcome import Outcome
    from airflow_provider_workspace.procedures.invites_report import WorkspaceInvitesIncompleteError

    if isinstance(error, WorkspaceInvitesIncompleteError):
        return all(entry.status in ("failed", "not_sent") for entry in error.report.entries)
    refused = getattr(error, "outcome", "") in (Outcome.REJECTED.value, Outcome.NOT_SENT.value)
    return refused and getattr(error, "operation", "") == "UpdateMember"


class WorkspaceEndAccessOperator(WorkspaceWriteOperator):
    """
    End the grants that are over. Scopes ``organization_member:write`` and ``organization_member:read``.

    One Dag with this task, scheduled every few minutes, serves all grants of an Airflow, each with the connection that
    gave it. Levels go back to what they were before, who was no member is removed, and open invites are withdrawn; then
    the lists are read again. A level that somebody changed meanwhile is left. What goes wrong with one person stops no
    other, and fails the task at its end.

    The result is ``{"ended": [...], "left": [...], "active": number}``: grants with what was ``done``, or ``why`` they
    are left. A task that fails pushes it as the XCom ``report``.

    :param protected: rows or addresses of members who are never lowered or removed, such as the owner of the
        connection's API key; if the access of one of them is over, the task fails and says so
    """

    resource_kind = "member"
    has_own_dry_run = True
    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(kinds.ROWS, default=())

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:  # noqa: ARG002 - each grant names its connection
        from airflow_provider_workspace.state.ending import end_grants
        from airflow_provider_workspace.state.grants import GrantRegistry, grant_variables

        done = end_grants(GrantRegistry(grant_variables()), self.protected, dry_run=self.is_dry_run)
        if done.left and not self.is_dry_run:
            self.push_report(None, done.to_dict())
            done.raise_left()
        return done.to_dict() | ({"dry_run": True} if self.is_dry_run else {})
