"""Sensors for members."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from airflow_provider_workspace.sensors.base import WorkspaceSensor


class WorkspaceMembersJoinedSensor(WorkspaceSensor):
    """
    Wait until people are members. Scope ``organization_member:read``.

    The result is ``{"joined": [addresses], "missing": {address: why}}``.

    :param emails: addresses of the people
    :param join: ``all`` of them, ``any`` one of them, or a share above 0 and up to 1
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "emails", "join")

    def __init__(
        self,
        *,
        emails: Sequence[str],
        join: Literal["all", "any"] | float = "all",
        organization_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.emails = emails
        self.join = join
        self.organization_id = organization_id

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        """Return the condition."""
        from airflow_provider_workspace.api.conditions import check_addresses, check_share

        return "members_joined", {"emails": check_addresses(self.emails), "share": check_share(self.join)}

    def shows(self) -> tuple[str, dict[str, Any]]:
        """Return the list of members."""
        return "members", {}
