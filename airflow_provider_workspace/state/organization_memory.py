"""What Airflow knows about an organization that the service does not show: dashboards, and exports in a window."""

from __future__ import annotations

import json
import logging
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.hooks.files import file_at
from airflow_provider_workspace.procedures.find import project_key
from airflow_provider_workspace.procedures.organization import OrganizationReader
from airflow_provider_workspace.state.dashboard_registry import DashboardIdentity, DashboardRegistry
from airflow_provider_workspace.state.lease_store import VariableStore
from airflow_provider_workspace.state.leases import LeaseRegistry, digest, export_key
from airflow_provider_workspace.state.task_state import TaskState

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.organization_file import DashboardEntry
    from airflow_provider_workspace.state.leases import LeaseStore

log = logging.getLogger(__name__)

# Prefix of the Variables that remember the dashboards of organization files.
PREFIX = "workspace_dashboard_"


def variable_key(organization_id: str, project: str, entry: DashboardEntry) -> str:
    """Return the key of the Variable that remembers a dashboard of an organization file."""
    if entry.variable_key:
        return entry.variable_key
    names = [project_key(project), project_key(entry.name)]
    readable = "_".join(re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-") for name in names)
    return f"{PREFIX}{readable}_{digest(organization_id, *names)[:8]}"


def organization_reader(
    client: WorkspaceClient,
    organization_id: str,
    store: Callable[[], LeaseStore] = VariableStore,
    owner: tuple[str, int] = ("", 1),
) -> OrganizationReader:
    """Return the reader of an organization; ``store`` makes the store of Variables, ``owner`` is the task's try."""
    settings = client.settings

    def dashboards(
        project: str, project_id: object, entry: DashboardEntry, task: TaskState, **how: Any
    ) -> DashboardRegistry:
        key = variable_key(organization_id, project, entry)
        identity = DashboardIdentity(settings.base_url, str(project_id), organization_id, entry.name)
        return DashboardRegistry(key, identity, task, owner, **how)

    def find_dashboard(project: str, project_id: str, entry: DashboardEntry) -> Dashboard | None:
        nobody = TaskState({}, dry_run=True)
        return dashboards(project, project_id, entry, nobody, read_only=True, variables=store()).find(client)

    def create_dashboard(project: str, create: CreateDashboard, entry: DashboardEntry, memory: TaskState) -> None:
        registry = dashboards(project, create.project_id, entry, memory)
        dashboard, created = registry.get_or_create(client, create, "fail")
        log.info("%s dashboard %s, '%s'.", "Created" if created else "Found", dashboard.id, dashboard.name)

    @cache
    def registry() -> LeaseRegistry:
        return LeaseRegistry(store())

    def window_of(export_id: str) -> str:
        return ", ".join(registry().windows_holding(export_key(settings.base_url, organization_id, export_id)).values())

    return OrganizationReader(
        client,
        organization_id,
        find_dashboard,
        create_dashboard,
        window_of=window_of,
        file_at=file_at,
    )


def remembered_dashboards(organization_id: str, settings: Settings, store: LeaseStore) -> dict[str, dict[str, str]]:
    """Return the Variables that remember dashboards of organization files, by dashboard id, by project id."""
    found: dict[str, dict[str, str]] = {}
    for key in store.list_keys():
        try:
            value = json.loads(store.read(key) or "")
            if (value["service"], value["organization_id"]) == (settings.base_url, organization_id):
                found.setdefault(str(value["project_id"]), {})[str(int(value["dashboard_id"]))] = key
        except (ValueError, KeyError, TypeError):  # noqa: PERF203 - a few rounds
            continue  # not a Variable of this package
    return found
