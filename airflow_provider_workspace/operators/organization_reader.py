"""How an organization is read: from the service, and from what Airflow remembers of dashboards and windows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.organization import OrganizationReader
    from airflow_provider_workspace.procedures.organization_file import DashboardEntry
    from airflow_provider_workspace.state.dashboards import DashboardRegistry
    from airflow_provider_workspace.state.task_state import TaskState
    from airflow_provider_workspace.windows.leases import LeaseStore

log = logging.getLogger(__name__)


def organization_reader(
    client: WorkspaceClient,
    organization_id: str,
    store: Callable[[], LeaseStore] | None,
    owner: tuple[str, int] = ("", 1),
) -> OrganizationReader:
    """
    Return the reader of an organization.

    :param store: makes the store of Variables; ``None`` where none can be read
    :param owner: the task's try
    """
    from airflow_provider_workspace.hooks.files import file_at
    from airflow_provider_workspace.procedures.organization import OrganizationReader
    from airflow_provider_workspace.state import dashboards as remembered
    from airflow_provider_workspace.state.task_state import TaskState
    from airflow_provider_workspace.windows.leases import LeaseRegistry, export_keys

    settings, variables = client.settings, store and store()
    leases = LeaseRegistry(variables) if variables else None

    def dashboards(project: str, project_id: object, entry: DashboardEntry, *how: Any) -> DashboardRegistry:
        identity = remembered.DashboardIdentity(settings.base_url, str(project_id), organization_id, entry.name)
        found = [
            remembered.DashboardRegistry(key, identity, *how)
            for key in remembered.variable_keys(organization_id, project, entry)
        ]
        return next(filter(remembered.DashboardRegistry.is_used, found), found[0])

    def find_dashboard(project: str, project_id: str, entry: DashboardEntry) -> Dashboard | None:
        return dashboards(project, project_id, entry, TaskState({}, dry_run=True), owner, variables).find(client)

    def create_dashboard(project: str, create: CreateDashboard, entry: DashboardEntry, memory: TaskState) -> None:
        registry = dashboards(project, create.project_id, entry, memory, owner)
        dashboard, created = registry.get_or_create(client, create, "fail")
        log.info("%s dashboard %s, '%s'.", "Created" if created else "Found", dashboard.id, dashboard.name)

    def window_of(export_id: str) -> str:
        keys = export_keys(settings.base_url, organization_id, export_id)
        return ", ".join(leases.windows_holding(keys)) if leases else ""

    return OrganizationReader(
        client,
        organization_id,
        store and find_dashboard,
        create_dashboard,
        window_of=window_of,
        file_at=file_at,
    )
