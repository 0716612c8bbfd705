"""Operators for the invites into an organization."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.arguments import fields_of
from airflow_provider_workspace.operators.base import (
    WorkspaceListOperator,
    WorkspaceWriteOperator,
    create_once,
    delete_once,
    given,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceListInvitesOperator(WorkspaceListOperator):
    """
    List the invites of an organization, expired ones included. Scope ``organization_member:read``.

    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("organization_id", *WorkspaceListOperator.template_fields)

    def __init__(self, *, organization_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.organization_id = organization_id

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
    ui_color = "#d6eaf8"

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

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Invite them unless they hold an invite that has not expired."""
        from airflow_provider_workspace.api.looks import find_row
        from airflow_provider_workspace.api.operations import CreateInvite, ListInvites
        from airflow_provider_workspace.api.roster import address_key, check_address

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

        invite, self.created = create_once(
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
        deleted = delete_once(
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

    With ``dry_run=True`` nobody is invited, and the report and its table in the log say who would be: ``planned``.

    The result is ``{"counts": {...}, "addresses": [...]}``: one entry per row with ``row`` (from 1), ``email``,
    ``status`` and ``reason``. If somebody could not be invited, the task fails, and the XCom ``report`` holds it.

    :param invites: rows (mappings with the fields of an invite, ``email`` is understood for ``target_email``) or just
        addresses: a list, or the XCom of another task
    :param path: file to read the rows from instead: ``.csv`` with a header, ``.json`` with an array, or ``.jsonl``
    :param organization_id: organization; by default that of the connection
    :param on_invalid: ``fail`` before anything is sent if a row is wrong, or ``skip`` such rows
    :param defaults: fields for all rows that do not have them, such as ``{"level": 1, "send_email": False}``
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "invites", "path", "defaults")
    ui_color = "#d6eaf8"
    plans_itself = True

    def __init__(
        self,
        *,
        invites: Sequence[Mapping[str, Any] | str] | str | None = None,
        path: str | None = None,
        organization_id: str | None = None,
        on_invalid: Literal["fail", "skip"] = "fail",
        defaults: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.invites = invites
        self.path = path
        self.organization_id = organization_id
        self.on_invalid: Literal["fail", "skip"] = on_invalid
        self.defaults = defaults

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Read the rows, invite who is missing, and report on each row."""
        from airflow_provider_workspace.api.inviting import WorkspaceInvitesIncompleteError
        from airflow_provider_workspace.rosters import read_roster

        self.show(hook, "invites", organization_id=self.organization_id)
        rows = read_roster(self.invites, self.path, fields_of("defaults", self.defaults))
        try:
            report = hook.create_invites(rows, organization_id=self.organization_id, on_invalid=self.on_invalid)
        except WorkspaceInvitesIncompleteError as error:
            self.log.error("%s", error.report.table())  # noqa: TRY400 - the error itself follows
            if "ti" in context:
                context["ti"].xcom_push(key="report", value=error.report.to_dict())
            raise
        self.log.info("%s", report.table())
        return report.to_dict()
