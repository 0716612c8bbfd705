"""Operators for the invites of an organization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.arguments import Arg, arg, choice, fixed
from airflow_provider_workspace.operators.base import OfOrganization, ReadsRows, WorkspaceWriteOperator
from airflow_provider_workspace.operators.crud import (
    WorkspaceCreateOperator,
    WorkspaceDeleteOperator,
    WorkspaceListOperator,
)

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_workspace.api.bodies import LevelName
    from airflow_provider_workspace.errors import WorkspaceNotFoundError
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.invites_report import InvitesReport


class WorkspaceListInvitesOperator(OfOrganization, WorkspaceListOperator):
    """List the invites of an organization, expired ones included. Scope ``organization_member:read``."""

    operation = "invites.ListInvites"
    resource_kind = "invites"


class WorkspaceCreateInviteOperator(OfOrganization, WorkspaceCreateOperator):
    """
    Invite one person. Scopes ``organization_member:write`` and ``organization_member:read``.

    Fails before anything is sent if an access review decided that the person gets less.

    :param target_email: address of the person
    :param first_name: first name of the person
    :param level: access level
    :param message: message in the mail
    :param private_project_access: private projects, with the access level in each
    :param send_email: whether a mail is sent; the API does not show the default
    :param combine_pending_invites: whether pending invites of the address are combined
    """

    operation = "invites.CreateInvite"
    resource_kind = "invites"
    target_email: Arg[str] = arg(kinds.NAME)
    first_name: Arg[str | None] = arg(kinds.TEXT, default=None)
    level: Arg[int | LevelName | None] = arg(kinds.FIELD, default=None)
    message: Arg[str | None] = arg(kinds.TEXT, default=None)
    private_project_access: Arg[list[Any] | None] = arg(kinds.ITEMS, default=None)
    send_email: Arg[bool | None] = arg(kinds.FIELD, default=None)
    combine_pending_invites: Arg[bool | None] = arg(kinds.FIELD, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.access.rules.guards import NO_GUARDS
        from airflow_provider_workspace.procedures.roster import check_address

        email = check_address("target_email", self.target_email)
        create = self.operation_from_arguments(hook, self.operation, target_email=email)
        notes = AccessNotes.of_tasks(hook.client.settings, create.organization_id)
        door = notes.door(hook.client, NO_GUARDS)
        door.check_invite(email, create.level)
        with notes.asked_again(door):
            return self.create(hook, create)


class WorkspaceDeleteInviteOperator(OfOrganization, WorkspaceDeleteOperator):
    """
    Withdraw an invite. Scopes ``organization_member:write`` and, for the check, ``organization_member:read``.

    An invite that was gone before may have been accepted; the log says so, and the member is not removed. The task
    fails if somebody joins while it withdraws an open invite, whose person they may be. The temporary access of the
    person ends with the invite.

    :param invite_id: the invite (UUID)
    :param protected: rows or addresses of people whose invites are never withdrawn
    """

    operation, list_operation = "invites.DeleteInvite", "invites.ListInvites"
    resource_kind = "invites"
    invite_id: Arg[str] = arg(kinds.ID)
    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(kinds.PROTECTED_ROWS, default=())

    def remove(self, hook: WorkspaceHook, what: str, operation: Any, **options: Any) -> bool:
        """Withdraw the invite; say what else it may mean that there is none."""
        from airflow_provider_workspace.access.door import KnownPeople, raise_if_joined
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.access.rules.guards import Guards
        from airflow_provider_workspace.procedures.plan import ChangeResult

        def explain(_: WorkspaceNotFoundError) -> None:
            self.log.warning("There is no %s: it may have been accepted. Look whether its person is a member.", what)

        notes = AccessNotes.of_tasks(hook.client.settings, operation.organization_id)
        door = notes.door(hook.client, Guards.read(self.protected, None))
        plan = door.plan_withdrawal(operation, was_sent=self.task_state.has_begun(what))
        facts = self.task_state.facts(what)
        # Who clears the task has looked at whom its error named.
        noted = KnownPeople.read(facts) if facts.get("max_tries") == self._max_tries else None
        known = noted or door.known_before(operation)
        self.task_state.begin(what, max_tries=self._max_tries, **(known.facts if known else {}))
        deleted = super().remove(hook, what, operation, explain=explain, **options)
        before = known or self.unknown_people
        if before:
            joined = door.joined_since(before)
            raise_if_joined(operation.invite_id, joined)
        plan.outcomes = dict.fromkeys(plan.changes, ChangeResult("done"))
        notes.settle(plan)
        return deleted


class WorkspaceCreateInvitesOperator(OfOrganization, ReadsRows, WorkspaceWriteOperator):
    """
    Invite many people, each once. Scopes ``organization_member:write`` and ``organization_member:read``.

    Every row is checked before anything is sent. Repeated addresses, members and people with an open invite are left
    out; the others are invited in chunks of the connection's ``bulk_invite_limit``. After a lost response, a killed
    worker or a retry, the task reads who was invited, and sends the missing invites when the connection's
    ``consistency_time`` is over.

    The limits of invites per hour and per day are those of the connection (``invites_per_hour``, ``invites_per_day``),
    or learned from the first refusal. When a limit is reached, the task defers until it may continue; it fails only if
    it could invite nobody for two days. With ``dry_run=True``, people who would be invited have the status ``planned``
    in the report.

    The result is ``{"counts": {...}, "addresses": [...]}``, with ``row``, ``email``, ``status`` and ``reason`` of each
    row, at most 1,000 (``addresses_not_shown`` is the number of the others), and ``remarks`` if there is something to
    know about how the rows were read. The header of a CSV file is row 1; blank rows are skipped and counted. If some
    people were not invited, the task fails and pushes this report as the XCom ``report``.

    :param invites: the people: rows (mappings with the fields of an invite; ``email`` is accepted for ``target_email``)
        or addresses. A row whose ``until`` is over is invalid
    :param on_invalid: what to do if a row is invalid: ``fail`` before anything is sent, or ``skip`` it
    :param report_path: file for the whole report, ``.csv`` or ``.json``; as ``path``, but not in a versioned Dag
        bundle. The result then has ``counts``, ``report_path``, and up to 1,000 rows in ``needs_attention``
    """

    resource_kind = "invites"
    has_own_dry_run = True
    invites: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str] | None] = arg(kinds.ROWS, default=None)
    on_invalid: Literal["fail", "skip"] = fixed(choice("fail", "skip"), default="fail")
    report_path: Arg[ObjectStoragePath | None] = arg(kinds.PATH, default=None)

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.procedures.invites_report import (
            INVITES_THAT_NEED_ATTENTION,
            WorkspaceInvitesIncompleteError,
        )
        from airflow_provider_workspace.procedures.roster import ENTRY_FIELDS

        file = self.open_report(
            "addresses", ENTRY_FIELDS, INVITES_THAT_NEED_ATTENTION, self.report_path, sources=[self.path]
        )
        try:
            report = super().work(hook)
        except WorkspaceInvitesIncompleteError as error:
            self.log.error("%s", error.report.table())  # noqa: TRY400 - the error itself follows
            self.push_report(file, error.report.to_dict())
            raise
        self.log.info("%s", report.table())
        return self.reported(file, report.to_dict())

    def write(self, hook: WorkspaceHook) -> InvitesReport:
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.access.rules.guards import NO_GUARDS
        from airflow_provider_workspace.files.storage import file_at
        from airflow_provider_workspace.notes.note import utc_now
        from airflow_provider_workspace.procedures.roster_files import read_roster

        organization_id = hook.organization_or_default(self.organization_id)
        notes = AccessNotes.of_tasks(hook.client.settings, organization_id)
        door = notes.door(hook.client, NO_GUARDS)
        rows = read_roster(
            self.invites,
            file_at(self.path),
            self.defaults,
            columns=self.columns,
            where=self.where,
            row_format=self.row_format,
            now=utc_now(),
        )
        with notes.asked_again(door):
            return self.invite_people(
                rows,
                hook,
                organization_id,
                on_invalid=self.on_invalid,
                why_not=door.why_not_invited,
                dry_run=self.is_dry_run,
            )
