"""Sensors for projects."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.sensors.base import WorkspaceSensor

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceProjectReceivingEventsSensor(WorkspaceSensor):
    """
    Wait until a project has received its first event. Scope ``project:read``.

    The result is ``{"project_id": …, "name": …}``.

    :param project_id: project
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "project_id")

    def __init__(self, *, project_id: int | str, organization_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_id = project_id
        self.organization_id = organization_id

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        """Return the condition."""
        return "project_receiving_events", {"project_id": str(self.project_id).strip()}

    def shows(self) -> tuple[str, dict[str, Any]]:
        """Return the project."""
        return "project", {"project_id": self.project_id}

    def retrieve(self, hook: WorkspaceHook) -> None:
        """Ask for the project."""
        hook.get_project(project_id=self.project_id)


class WorkspaceProjectOnboardedSensor(WorkspaceSensor):
    """
    Wait until a project is onboarded. Scope ``project:read``.

    The result is ``{"project_id": …, "name": …, "completed": [products]}``.

    :param project_id: project
    :param product: product whose onboarding counts, a key of ``has_completed_onboarding_for``; by default any, or
        ``completed_snippet_onboarding``
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "project_id", "product")

    def __init__(
        self,
        *,
        project_id: int | str,
        product: str | None = None,
        organization_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.project_id = project_id
        self.product = product
        self.organization_id = organization_id

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        """Return the condition."""
        return "project_onboarded", {"project_id": str(self.project_id).strip(), "product": self.product}

    def shows(self) -> tuple[str, dict[str, Any]]:
        """Return the project."""
        return "project", {"project_id": self.project_id}

    def retrieve(self, hook: WorkspaceHook) -> None:
        """Ask for the project."""
        hook.get_project(project_id=self.project_id)
