"""Sensors for invites."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from airflow_provider_workspace.sensors.base import WorkspaceSensor


class WorkspaceInvitesSettledSensor(WorkspaceSensor):
    """
    Wait until nobody's invite is open: accepted, expired or gone. Scope ``organization_member:read``.

    The result is ``{"accepted": [addresses], "expired": […], "gone": […], "open": []}``.

    :param emails: addresses of the people
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "emails")

    def __init__(self, *, emails: Sequence[str], organization_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.emails = emails
        self.organization_id = organization_id

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        """Return the condition."""
        from airflow_provider_workspace.api.conditions import check_addresses

        return "invites_settled", {"emails": check_addresses(self.emails)}

    def shows(self) -> tuple[str, dict[str, Any]]:
        """Return the list of invites."""
        return "invites", {}
