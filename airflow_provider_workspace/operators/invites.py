"""Operators for the invites of an organization."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import WorkspaceOrganizationListOperator, WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath, XComArg

    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.invites_report import InvitesReport

# The writable fields of section "Invite", besides the address.
SETTINGS = ("first_name", "level", "message", "private_project_access", "send_email", "combine_pending_invites")


class WorkspaceListInvitesOperator(WorkspaceOrganizationListOperator):
    """
    List the invites of an organization, expired ones included. Scope ``organization_member:read``.

    :param organization_id: organization; by default that of the connection
    """

    resource_kind = "invites"
    row_model = "Invite"

    def rows(self, hook: WorkspaceHook) -> Iterable[Invite]:
        return hook.list_invites(organization_id=self.organization_id)


class WorkspaceCreateInviteOperator(WorkspaceWriteOperator):
    """
    Invite one person. Scopes ``organization_member:write`` and ``organization_member:read``.

    :param target_email: address of the person
    :param organization_id: organization; by default that of the connection
    :param if_exists: ``return`` an open invite of the address, or ``fail``
    :param first_name: the person's first name
    :param level: access level: a number, which the interface does not show, or ``member``, ``admin`` or ``owner``, for
        1, 8 and 15, which services of this kind use
    :param message: message in the mail
    :param private_project_access: private projects and the access levels there
    :param send_email: whether a mail is sent; the interface does not show the default
    :param combine_pending_invites: whether pending invites of the address are combined
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "target_email", *SETTINGS)
    resource_kind = "invites"

    def __init__(
        self,
        *,
        target_email: str | XComArg,
        organization_id: str | XComArg | None = None,
        if_exists: Literal["return", "fail"] = "return",
        first_name: str | XComArg | None = None,
        level: int | str | XComArg | None = None,
        message: str | XComArg | None = None,
        private_project_access: list[Any] | XComArg | None = None,
        send_email: bool | XComArg | None = None,
        combine_pending_invites: bool | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.target_email: Any = target_email
        self.organization_id: Any = organization_id
        self.if_exists = if_exists
        self.first_name: Any = first_name
        self.level: Any = level
        self.message: Any = message
        self.private_project_access: Any = private_project_access
        self.send_email: Any = send_email
        self.combine_pending_invites: Any = combine_pending_invites

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.invites import CreateInvite
        from airflow_provider_workspace.procedures.roster import check_address

        email = check_address("target_email", self.target_email)
        organization_id = hook.organization_or_default(self.organization_id)
        create = CreateInvite(organization_id=organization_id, target_email=email, **self.given(SETTINGS))
        return self.create(hook, create)


class WorkspaceDeleteInviteOperator(WorkspaceWriteOperator):
    """
    Withdraw an invite. Scopes ``organization_member:write`` and, for the check, ``organization_member:read``.

    :param invite_id: invite (UUID)
    :param organization_id: organization; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if the invite does not exist
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "invite_id")
    resource_kind = "invites"

    def __init__(
        self,
        *,
        invite_id: str | XComArg,
        organization_id: str | XComArg | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.invite_id: Any = invite_id
        self.organization_id: Any = organization_id
        self.if_missing = if_missing

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.invites import DeleteInvite, ListInvites
        from airflow_provider_workspace.procedures.find import find_by_id

        organization_id = hook.organization_or_default(self.organization_id)
        invites = ListInvites(organization_id=organization_id)
        deleted = self.remove(
            hook,
            f"invite {self.invite_id}",
            DeleteInvite(organization_id=organization_id, invite_id=self.invite_id),
            find=lambda: find_by_id(hook.client, invites, self.invite_id),
        )
        return {"invite_id": self.invite_id, "deleted": deleted}


class WorkspaceCreateInvitesOperator(WorkspaceWriteOperator):
    """
    Invite many people, each once. Scopes ``organization_member:write`` and ``organization_member:read``.

    Every row is checked before anything is sent. Repeated addresses, members and people with an open invite are left
    out; the others are invited in chunks of the connection's ``bulk_invite_limit``. After a lost answer, a killed
    worker or a retry, the task reads who was invited; once the connection's ``consistency_time`` is over, it sends only
    the missing invites.

    Limits of invites per hour and per day are those of the connection (``invites_per_hour``, ``invites_per_day``), or
    learned from the first refusal. When a limit is reached, the
    task defers until it may continue. It fails only if it could invite nobody for two days.

    With ``dry_run=True`` nobody is invited; people to invite have the status ``planned`` in the report.

    The result is ``{"counts": {...}, "addresses": [...]}``, with ``row``, ``email``, ``status`` and ``reason`` of each
    row. The header of a CSV file is row 1; blank rows are skipped and counted. If some people were not invited, the
    task fails and pushes this report as the XCom ``report``.

    :param invites: rows (mappings with the fields of an invite; ``email`` is accepted for ``target_email``) or
        addresses: a list, or the XCom of another task
    :param path: file to read the rows from instead: ``.csv`` with a header, ``.json`` with an array, or ``.jsonl``;
        relative to the Dag file, or a URL for ``airflow.sdk.ObjectStoragePath``, such as ``s3://conn_id@bucket/team.csv``
    :param organization_id: organization; by default that of the connection
    :param on_invalid: ``fail`` before anything is sent if a row is invalid, or ``skip`` such rows
    :param defaults: fields for all rows that do not have them, such as ``{"level": 1, "send_email": False}``
    :param report_path: file for the whole report, ``.csv`` or ``.json``; a path or URL as in ``path``. The
        result then has ``counts``, ``report_path``, and up to 1,000 rows in ``needs_attention``
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "organization_id",
        "invites",
        "path",
        "defaults",
        "report_path",
    )
    resource_kind = "invites"
    has_own_dry_run = True

    def __init__(
        self,
        *,
        invites: Sequence[Mapping[str, Any] | str] | str | XComArg | None = None,
        path: str | ObjectStoragePath | XComArg | None = None,
        organization_id: str | XComArg | None = None,
        on_invalid: Literal["fail", "skip"] = "fail",
        defaults: Mapping[str, Any] | XComArg | None = None,
        report_path: str | ObjectStoragePath | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.invites: Any = invites
        self.path: Any = path
        self.organization_id: Any = organization_id
        self.on_invalid: Literal["fail", "skip"] = on_invalid
        self.defaults: Any = defaults
        self.report_path: Any = report_path

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.hooks.files import open_report
        from airflow_provider_workspace.procedures.invites_report import (
            NEEDS_ATTENTION,
            WorkspaceInvitesIncompleteError,
        )
        from airflow_provider_workspace.procedures.roster import ENTRY_FIELDS

        file = open_report(self.report_path, "addresses", ENTRY_FIELDS, NEEDS_ATTENTION)
        try:
            report = super().work(hook)
        except WorkspaceInvitesIncompleteError as error:
            self.log.error("%s", error.report.table())  # noqa: TRY400 - the error itself follows
            self.push_report(file, error.report.to_dict())
            raise
        self.log.info("%s", report.table())
        return self.reported(file, report.to_dict())

    def write(self, hook: WorkspaceHook) -> InvitesReport:
        from airflow_provider_workspace.hooks.files import file_at
        from airflow_provider_workspace.procedures.roster_files import read_roster

        return self.invite_people(
            read_roster(self.invites, file_at(self.path), self.parse_fields("defaults")),
            hook,
            hook.organization_or_default(self.organization_id),
            on_invalid=self.on_invalid,
            dry_run=self.is_dry_run,
        )
