"""Operators for the invites into an organization."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import (
    WorkspaceOrganizationListOperator,
    WorkspaceWriteOperator,
    given,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.bulk_invites import InvitesReport
    from airflow_provider_workspace.procedures.quota import PreviousRuns

# How often a task waits and then can invite nobody, before it fails.
MAX_EMPTY_ROUNDS = 10
# The longest wait that is handed to the triggerer, in seconds.
MAX_WAIT = 25 * 3600.0


class WorkspaceListInvitesOperator(WorkspaceOrganizationListOperator):
    """
    List the invites of an organization, expired ones included. Scope ``organization_member:read``.

    :param organization_id: organization; by default that of the connection
    """

    def rows(self, hook: WorkspaceHook) -> Iterable[Invite]:
        """Ask for the invites."""
        self.show(hook, "invites", organization_id=self.organization_id)
        return hook.list_invites(organization_id=self.organization_id)


class WorkspaceCreateInviteOperator(WorkspaceWriteOperator):
    """
    Invite one person. Scopes ``organization_member:write`` and ``organization_member:read``.

    :param target_email: address of the person
    :param organization_id: organization; by default that of the connection
    :param if_exists: ``return`` an invite of the address that has not expired as it is, or ``fail``
    :param first_name: the person's first name
    :param level: access level; the interface does not show which there are
    :param message: message in the mail
    :param private_project_access: private projects and the access levels there
    :param send_email: whether a mail is sent; the interface does not show the default
    :param combine_pending_invites: whether pending invites of the address are combined
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "organization_id",
        "target_email",
        "first_name",
        "level",
        "message",
        "private_project_access",
        "send_email",
        "combine_pending_invites",
    )

    def __init__(
        self,
        *,
        target_email: str,
        organization_id: str | None = None,
        if_exists: Literal["return", "fail"] = "return",
        first_name: str | None = None,
        level: int | str | None = None,
        message: str | None = None,
        private_project_access: list[Any] | None = None,
        send_email: bool | None = None,
        combine_pending_invites: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.target_email = target_email
        self.organization_id = organization_id
        self.if_exists = if_exists
        self.first_name = first_name
        self.level = level
        self.message = message
        self.private_project_access = private_project_access
        self.send_email = send_email
        self.combine_pending_invites = combine_pending_invites

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Invite them unless they hold an invite that has not expired."""
        from airflow_provider_workspace.api.operations import CreateInvite, ListInvites
        from airflow_provider_workspace.procedures.roster import address_key, check_address
        from airflow_provider_workspace.procedures.snapshot import find_row

        self.show(hook, "invites", organization_id=self.organization_id)
        email = check_address(self.target_email)
        fields = given(
            first_name=self.first_name,
            level=self.level,
            message=self.message,
            private_project_access=self.private_project_access,
            send_email=self.send_email,
            combine_pending_invites=self.combine_pending_invites,
        )

        organization_id = hook.organization_or_default(self.organization_id)
        create = CreateInvite(organization_id=organization_id, target_email=email, **fields)
        invites = ListInvites(organization_id=organization_id, limit=hook.client.settings.page_size)

        def is_theirs(row: Invite) -> bool:
            return address_key(row.target_email or "") == address_key(email) and not row.is_expired

        def find() -> Invite | None:
            search = find_row(invites, is_theirs)
            return hook.take(search)

        invite = self.create_once(
            context,
            f"invite of {email}",
            find=find,
            create=lambda: hook.send(create),
            if_exists=self.if_exists,
        )
        return self.plain(invite)


class WorkspaceDeleteInviteOperator(WorkspaceWriteOperator):
    """
    Withdraw an invite. Scope ``organization_member:write``.

    :param invite_id: invite (UUID)
    :param organization_id: organization; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if there is no such invite
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "invite_id")

    def __init__(
        self,
        *,
        invite_id: str,
        organization_id: str | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.invite_id = invite_id
        self.organization_id = organization_id
        self.if_missing = if_missing

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Withdraw it."""
        self.show(hook, "invites", organization_id=self.organization_id)
        deleted = self.delete_once(
            f"invite {self.invite_id}",
            lambda: hook.delete_invite(invite_id=self.invite_id, organization_id=self.organization_id),
            self.if_missing,
        )
        return {"invite_id": self.invite_id, "deleted": deleted}


class WorkspaceCreateInvitesOperator(WorkspaceWriteOperator):
    """
    Invite many people, each once. Scopes ``organization_member:write`` and ``organization_member:read``.

    Every row is checked before anything is sent. Repeated addresses, members and people who hold an invite that has
    not expired are left out; the others are invited in chunks of the connection's ``bulk_invite_limit``. After a lost
    answer, a killed worker or a retry it is read back who was invited, and only the rest is sent.

    What has to wait longer than a worker is worth, because a limit is reached or the service asks to come back later
    (a ``Retry-After`` beyond the connection's ``max_retry_wait``), waits in the triggerer and then goes on.

    With ``dry_run=True`` nobody is invited, and the report and its table in the log say who would be: ``planned``.

    The result is ``{"counts": {...}, "addresses": [...]}``: one entry per row with ``row`` (from 1), ``email``,
    ``status`` and ``reason``. If somebody could not be invited, the task fails, and the XCom ``report`` holds it.

    :param invites: rows (mappings with the fields of an invite, ``email`` is understood for ``target_email``) or just
        addresses: a list, or the XCom of another task
    :param path: file to read the rows from instead: ``.csv`` with a header, ``.json`` with an array, or ``.jsonl``
    :param organization_id: organization; by default that of the connection
    :param on_invalid: ``fail`` before anything is sent if a row is wrong, or ``skip`` such rows
    :param defaults: fields for all rows that do not have them, such as ``{"level": 1, "send_email": False}``
    :param max_per_hour: most invites of the organization within an hour, whoever sends them; ``None`` for any number.
        Counted by the invites that the service lists, and by what this task sent
    :param max_per_day: likewise within a day
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "invites", "path", "defaults")
    plans_itself = True

    def __init__(
        self,
        *,
        invites: Sequence[Mapping[str, Any] | str] | str | None = None,
        path: str | None = None,
        organization_id: str | None = None,
        on_invalid: Literal["fail", "skip"] = "fail",
        defaults: Mapping[str, Any] | None = None,
        max_per_hour: int | None = None,
        max_per_day: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.invites = invites
        self.path = path
        self.organization_id = organization_id
        self.on_invalid: Literal["fail", "skip"] = on_invalid
        self.defaults = defaults
        self.max_per_hour = max_per_hour
        self.max_per_day = max_per_day
        # What a wait handed on: see api.quota.PreviousRuns.
        self._state: Mapping[str, Any] = {}

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Read the rows, invite who is missing, and report on each row."""
        from airflow_provider_workspace.procedures.bulk_invites import WorkspaceInvitesIncompleteError
        from airflow_provider_workspace.procedures.quota import PreviousRuns, Quota
        from airflow_provider_workspace.procedures.roster_files import read_roster

        self.show(hook, "invites", organization_id=self.organization_id)
        self.settle(hook, context)
        earlier = PreviousRuns(**self._state)
        quota = Quota(time.time(), self.max_per_hour, self.max_per_day, earlier.times())
        rows = read_roster(self.invites, self.path, self.parse_fields("defaults"))
        try:
            report = hook.create_invites(
                rows,
                organization_id=self.organization_id,
                on_invalid=self.on_invalid,
                quota=quota,
                earlier=earlier.rows(),
            )
        except WorkspaceInvitesIncompleteError as error:
            if error.retry_after is not None and not error.permanent:
                self.go_on_later(earlier, error.report, time.time() + error.retry_after + 1.0, str(error.cause))
            self.log.error("%s", error.report.table())  # noqa: TRY400 - the error itself follows
            if "ti" in context:
                context["ti"].xcom_push(key="report", value=error.report.to_dict())
            raise
        if report.again_at is not None:
            self.go_on_later(earlier, report, report.again_at, "The limit of max_per_hour or max_per_day is reached.")
            msg = f"The limit of invites was reached {MAX_EMPTY_ROUNDS} times with nobody invited: others use it up."
            raise WorkspaceInvitesIncompleteError(msg, report)
        self.log.info("%s", report.table())
        return report.to_dict()

    def go_on_later(self, earlier: PreviousRuns, report: InvitesReport, end_at: float, why: str) -> None:
        """Hand the wait to the triggerer, unless one wait after the other was in vain or it would take days."""
        now = time.time()
        rows = [item.row for item in report.entries if item.status == "invited"]
        parts = earlier.with_part(now, rows)
        if parts.empty_rounds >= MAX_EMPTY_ROUNDS or end_at - now > MAX_WAIT:
            return
        self.log.info("%s", report.summary())
        self.log.warning(
            "Going on at %s, without a worker until then. %s", datetime.fromtimestamp(end_at, timezone.utc), why
        )
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger

        trigger = WorkspaceDeadlineTrigger(
            end_at=end_at, state={"parts": parts.parts, "empty_rounds": parts.empty_rounds}
        )
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Go on after a wait: everything is read again, and only what is missing is sent."""
        self._state = (event or {}).get("state") or {}
        return self.execute(context)
