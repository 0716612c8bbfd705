"""Operators for the members of an organization."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import WorkspaceApprovalMixin, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg, choice, fixed
from airflow_provider_workspace.operators.base import (
    LimitsRemovals,
    OfOrganization,
    OfUser,
    ProtectsMembers,
    ReadsRows,
    WorkspaceWriteOperator,
)
from airflow_provider_workspace.operators.crud import WorkspaceDeleteOperator, WorkspaceListOperator

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_workspace.access.door import Door
    from airflow_provider_workspace.api.bodies import LevelName
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.invites_report import InvitesReport
    from airflow_provider_workspace.procedures.plan import Plan


class WorkspaceListMembersOperator(OfOrganization, WorkspaceListOperator):
    """List the members of an organization. Scope ``organization_member:read``."""

    operation = "members.ListMembers"
    resource_kind = "members"


class WorkspaceUpdateMemberOperator(OfUser, ProtectsMembers, WorkspaceWriteOperator):
    """
    Change the access level of a member. Scopes ``organization_member:write`` and ``organization_member:read``.

    Fails before anything is sent if a protected member, an owner or the last owner would be lowered, if the member has
    temporary access to a higher level, or if an access review decided that they get less.

    :param level: the new access level
    """

    resource_kind = "members"
    level: Arg[int | LevelName] = arg(kinds.FIELD)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.access.rules.guards import Guards
        from airflow_provider_workspace.errors import WorkspaceNotFoundError
        from airflow_provider_workspace.procedures.ensure import check_gone
        from airflow_provider_workspace.procedures.find import check_user_id, find_by_uuid

        members = self.operation_from_arguments(hook, "members.ListMembers")
        user_uuid = self.find_user(hook)
        update = self.operation_from_arguments(hook, "members.UpdateMember", user_uuid=user_uuid, level=self.level)
        notes = AccessNotes.of_tasks(hook.client.settings, update.organization_id)
        door = notes.door(hook.client, Guards.read(self.protected, self.owner_level))
        lowers = door.check_level(update)
        find = partial(find_by_uuid, hook.client, members, user_uuid)
        try:
            with notes.asked_again(door):
                record = self.changed(hook.client, update, find)
        except WorkspaceNotFoundError as error:
            check_user_id(hook.client, error, user_uuid, members, "membership")
            check_gone(error, find)
            raise
        if lowers:
            door.check_lowered(update)
        return record


class WorkspaceDeleteMemberOperator(OfUser, ProtectsMembers, WorkspaceApprovalMixin, WorkspaceDeleteOperator):
    """
    Remove a member from an organization. Scope ``organization_member:write``.

    Scope ``organization_member:read`` too, to check that the member is not protected, an owner or the last owner. An
    unknown ``user_email`` is an error, unless an earlier try of the task removed the member.

    :param allow_last_owner: whether the last member of the highest level may be removed
    """

    resource_kind = "members"
    allow_last_owner: Arg[bool] = arg(kinds.SWITCH, default=False)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.access.rules.guards import Guards
        from airflow_provider_workspace.procedures.find import check_user_id
        from airflow_provider_workspace.procedures.plan import ChangeResult

        members = self.operation_from_arguments(hook, "members.ListMembers")
        what = f"member {self.user_uuid or self.user_email}"
        notes = AccessNotes.of_tasks(hook.client.settings, members.organization_id)
        door = notes.door(hook.client, Guards.read(self.protected, self.owner_level))
        was_sent = self.task_state.has_begun(what)
        user_uuid = self.find_user(hook, removed=lambda: was_sent)
        if not user_uuid:  # nobody has the address any more, though the user may have another by now
            user_uuid = self.task_state.facts(what)["user_uuid"]
            if not _is_still_there(hook, door, user_uuid, what):
                notes.end(door.left_by(self.user_email or ""))
                self.push_approval()
                return {"user_uuid": user_uuid, "deleted": True}
        delete = self.operation_from_arguments(hook, "members.DeleteMember", user_uuid=user_uuid)
        begun = self.task_state.facts(what)
        plan = door.plan_removal(
            delete,
            allow_last_owner=self.allow_last_owner,
            was_sent=was_sent,
            name=begun.get("name", ""),  # an approval covers the plan of the earlier try
            level=begun.get("level"),
        )
        self.log.info("%s", plan.table())
        organization = describe_organization(hook.client.settings, members.organization_id)
        self.await_approval(f"Make these changes to the members of {organization}?", plan)
        (change,) = plan.changes
        name = change.name.removeprefix("member ")
        self.task_state.begin(what, user_uuid=user_uuid, name=name, level=change.before.get("level"))
        deleted = self.remove(
            hook,
            what,
            delete,
            find=partial(_is_still_there, hook, door, user_uuid, what),
            explain=lambda error: check_user_id(hook.client, error, user_uuid, members, "membership"),
        )
        plan.outcomes = dict.fromkeys(plan.changes, ChangeResult("done"))
        notes.settle(plan)
        return {"user_uuid": user_uuid, "deleted": deleted}


def _is_still_there(hook: WorkspaceHook, door: Door, user_uuid: str, what: str) -> bool:
    """
    Return whether a user who was removed is listed, or may be one whom the list hides by now.

    :raises WorkspaceError: if the API key may not read the list any more, because it was theirs
    """
    from airflow_provider_workspace.procedures.apply_plan import KEY_REFUSED, key_owner_removed
    from airflow_provider_workspace.procedures.find import members_of
    from airflow_provider_workspace.procedures.people import check_not_empty

    try:
        rows = members_of(hook.client, door.organization_id)
    except KEY_REFUSED as error:
        raise key_owner_removed(f"{what} was removed", error) from None
    check_not_empty(rows)
    users = [row.user_uuid for row in rows]
    users_before = [row.user_uuid for row in door.members]
    return user_uuid in users or users.count(None) > users_before.count(None)


class WorkspaceSyncMembersOperator(OfOrganization, ReadsRows, LimitsRemovals, WorkspaceApprovalMixin):
    """
    Make the members of an organization match a roster.

    Scopes ``organization_member:read`` and, to apply the plan, ``organization_member:write``.

    People on the roster who are neither members nor invited are invited. Levels that differ are changed; a row without
    a level matches any level. Members who are not on the roster are removed, and open invites withdrawn. Everything is
    planned before anything is sent, and the log shows the plan as a table. A second run changes nothing, and a retry
    continues where the earlier try ended.

    The task fails if somebody still has afterwards what was taken away. An invite may be accepted while it is
    withdrawn, so the task then reads the lists once more after ``consistency_time`` of the connection.

    The result is the plan, as for an organization file: ``pending`` (number of changes), ``differences``, ``counts``,
    ``changes`` (``action``, ``part``, ``name``, ``before``, ``after``, ``why``, ``status``, ``reason``, ``digest``,
    ``not_shown``), the ``table``, and ``planned_for``: service and organization. Of over 1,000 changes,
    those with which something is left to do come first, ``changes_not_shown`` is the number of the others, and
    ``digests`` has what an approval of these needs; the log has all.

    :param roster: the people: rows (mappings with ``email``, ``level`` and other fields of an invite) or addresses.
        After ``until`` of its row, a person is removed, or gets the level of ``then``
    :param leavers: instead of a roster, rows or addresses of the people to remove; their open invites are withdrawn,
        and nobody else is changed. With ``until``, somebody leaves after that
    :param leavers_path: file to read the leavers from, as ``path``
    :param max_removals: how many people one run may remove or move to a lower level: a number, a share of the members
        such as ``"50%"``, or both, such as ``"10 or 30%"``, of which the lower one counts. ``None`` allows any number.
        A run that would exceed it sends nothing; with ``"ask"``, which needs ``require_approval=True``, whoever
        approves the plan decides
    :param on_invalid: what to do if a row is invalid: ``fail`` before anything is sent, or ``skip`` it, do the others,
        and fail at the end. ``skip`` is only for ``leavers``
    :param renew_invites: whether an open invite is withdrawn and sent again if its row says another level, or asks for
        a mail that was not sent. By default it is *by hand*
    :param invite_again: how often somebody whose invite has expired, or who has left, is invited again. Then they are
        *by hand*. A Variable remembers it
    :param invite_again_after: how long after the last invite
    :param approved: an earlier plan, the result of a task with ``dry_run=True``. The task fails and sends nothing if
        this plan has a change that the earlier one does not have
    :param report_path: file for all changes with their ``status``, ``.csv`` or ``.json``; as ``path``, but not in a
        versioned Dag bundle. The result then has ``report_path`` and ``needs_attention`` instead of ``changes`` and
        ``table``, so leave it out of a dry run whose result is passed as ``approved``
    """

    resource_kind = "syncs"
    has_own_dry_run = True
    may_leave_out = True
    roster: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str] | None] = arg(kinds.ROWS, default=None)
    leavers: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str] | None] = arg(kinds.ROWS, default=None)
    leavers_path: Arg[ObjectStoragePath | None] = arg(kinds.PATH, default=None)
    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(kinds.PROTECTED_ROWS)
    max_removals: Arg[int | str | None] = arg(kinds.MAXIMUM_OR_ASK, default="10 or 30%")
    on_invalid: Literal["fail", "skip"] = fixed(choice("fail", "skip"), default="fail")
    renew_invites: Arg[bool] = arg(kinds.SWITCH, default=False)
    invite_again: Arg[int] = arg(kinds.INTEGER, default=2)
    invite_again_after: Arg[timedelta | float] = arg(kinds.SECONDS, default=7 * 86_400.0)
    approved: Arg[Mapping[str, Any] | None] = arg(kinds.NEEDED, default=None)
    report_path: Arg[ObjectStoragePath | None] = arg(kinds.PATH, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.procedures.apply_plan import apply, raise_if_access_is_left
        from airflow_provider_workspace.procedures.invites import WITHDRAWING, wait_for_consistency
        from airflow_provider_workspace.procedures.plan import NEEDS_ATTENTION, REPORT_FIELDS, ApprovedPlan

        organization_id = hook.organization_or_default(self.organization_id)
        approved = ApprovedPlan.read(self.approved, "the task with dry_run=True")
        sources = [self.path, self.leavers_path]
        file = self.open_report("changes", REPORT_FIELDS, NEEDS_ATTENTION, self.report_path, sources=sources)
        make_plan = self.planner(hook, organization_id)
        wait_for_consistency(hook.client, self.task_state, WITHDRAWING)
        plan = make_plan()
        self.log.info("%s", plan.table())
        plan.take_over(self.journal)
        if file:
            file.write(plan.to_dict())
        access = AccessNotes.of_tasks(hook.client.settings, organization_id)
        if not (self.is_dry_run or self.require_approval):
            access.note_leaves(plan)
        is_asked = self.require_approval or self.is_dry_run
        plan.check_losses(self.max_removals, is_asked=is_asked, is_approved=self.approved_by != "")
        plan.check_approved_plan(approved)
        organization = describe_organization(hook.client.settings, organization_id)
        self.await_approval(f"Make these changes to the members of {organization}?", plan, report=file)
        if self.is_dry_run:
            return self.reported(file, plan.to_dict())

        def invite(rows: list[dict[str, Any]]) -> InvitesReport:
            return self.invite_people(rows, hook, organization_id, withdrawn=plan.withdrawn)

        withdrawn = self.withdrawn_invites(hook.client, plan.planned_for)
        self.show_by_hand(plan, organization_id)
        try:
            if self.require_approval:  # what is not approved notes nothing
                access.note_leaves(plan)
            withdrawn.begin(plan)
            if plan.withdraws_invites:
                self.task_state.begin(WITHDRAWING)
            with access.watched(hook.client, plan):
                apply(hook.client, plan, invite, make_plan, journal=self.journal)
            plan.joined += withdrawn.joined(make_plan)
            access.settle(plan)
            raise_if_access_is_left(withdrawn.unproven(plan), plan.left_by_hand)
        except WorkspaceError:
            if file:
                self.push_report(file, plan.to_dict(applied=True))
            raise
        return self.reported(file, plan.to_dict(applied=True))

    def planner(self, hook: WorkspaceHook, organization_id: str) -> Callable[[], Plan]:
        """Read the roster; return what reads the notes and the lists, and plans."""
        from airflow_provider_workspace.access.members.plan import plan_members
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.access.rules.guards import Guards
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.files.storage import file_at
        from airflow_provider_workspace.notes.note import utc_now
        from airflow_provider_workspace.procedures.roster_files import read_roster

        leaving = self.leavers is not None or self.leavers_path is not None
        if leaving and (self.roster is not None or self.path is not None):
            raise WorkspaceInputError("leavers and a roster exclude each other. Give either leavers=… or a roster")
        if self.leavers is not None and self.leavers_path is not None:
            raise WorkspaceInputError("Give either leavers=… or leavers_path=…")
        if self.on_invalid == "skip" and not leaving:
            raise WorkspaceInputError(
                "on_invalid='skip' would remove the person of each row that a roster skips. Leave it out"
            )
        name = "leavers" if leaving else "roster"
        rows = self.leavers if leaving else self.roster
        now = utc_now()
        file = file_at(self.leavers_path if leaving else self.path)
        roster = read_roster(
            rows,
            file,
            self.defaults,
            argument=name,
            columns=self.columns,
            where=self.where,
            now=now,
            row_format=self.row_format,
            is_leaving=leaving,
        )
        guards = Guards.read(self.protected, self.owner_level, self.on_invalid)
        access = AccessNotes.of_tasks(hook.client.settings, organization_id)
        again = access.invite_again(self.invite_again, timedelta(seconds=self.invite_again_after))

        def make_plan() -> Plan:
            # The notes are read before the lists: who ends a grant changes the person first, and then the note.
            return plan_members(
                hook.client,
                organization_id,
                roster,
                guards,
                now=now,
                leaving=leaving,
                noted=access.read(),
                renew_invites=self.renew_invites,
                again=again,
            )

        return make_plan
