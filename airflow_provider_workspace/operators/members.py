"""Operators for the members of an organization."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import WorkspaceOrganizationListOperator, WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceListMembersOperator(WorkspaceOrganizationListOperator):
    """
    List the members of an organization. Scope ``organization_member:read``.

    :param organization_id: organization; by default that of the connection
    """

    def rows(self, hook: WorkspaceHook) -> Iterable[Member]:
        """Ask for the members."""
        self.show(hook, "members", organization_id=self.organization_id)
        return hook.list_members(organization_id=self.organization_id)


class WorkspaceUpdateMemberOperator(WorkspaceWriteOperator):
    """
    Change the access level of a member. Scope ``organization_member:write``.

    :param user_uuid: the member's user (UUID, ``user.uuid`` of the member)
    :param level: access level; the interface does not show which there are
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "user_uuid", "level")

    def __init__(self, *, user_uuid: str, level: int | str, organization_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.user_uuid = user_uuid
        self.level = level
        self.organization_id = organization_id

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Change it."""
        self.show(hook, "members", organization_id=self.organization_id)
        # A template delivers text; the operation refuses what is no whole number.
        level: Any = self.level
        return self.plain(
            hook.update_member(user_uuid=self.user_uuid, level=level, organization_id=self.organization_id)
        )


class WorkspaceDeleteMemberOperator(WorkspaceWriteOperator):
    """
    Remove a member from an organization. Scope ``organization_member:write``.

    :param user_uuid: the member's user (UUID, ``user.uuid`` of the member)
    :param organization_id: organization; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if there is no such member
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "user_uuid")

    def __init__(
        self,
        *,
        user_uuid: str,
        organization_id: str | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.user_uuid = user_uuid
        self.organization_id = organization_id
        self.if_missing = if_missing

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Remove them."""
        self.show(hook, "members", organization_id=self.organization_id)
        deleted = self.delete_once(
            f"member {self.user_uuid}",
            lambda: hook.delete_member(user_uuid=self.user_uuid, organization_id=self.organization_id),
            self.if_missing,
        )
        return {"user_uuid": self.user_uuid, "deleted": deleted}
