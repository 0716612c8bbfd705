"""How an organization is read: from the service, and from what Airflow remembers of dashboards and windows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_workspace.access.members.earlier_invites import InviteAgain
    from airflow_provider_workspace.access.notes import AccessNotes
    from airflow_provider_workspace.access.rules.entitlements import NotedAccess
    from airflow_provider_workspace.api.models import Dashboard, Member, ProjectItem
    from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.notes.dashboards import DashboardRegistry
    from airflow_provider_workspace.notes.leases import LeaseStore
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.organization.file import DashboardEntry
    from airflow_provider_workspace.procedures.roster_tables import RosterFile

log = logging.getLogger(__name__)


class AirflowOrganizationReader:
    """
    Reads an organization, each list once, when it is needed first; and knows what Airflow remembers of it.

    :param store: the store of Variables; ``None`` where none can be read
    :param access: the notes about its people; ``None`` where none can be read
    :param owner: the task and the number of its try
    :ivar now: decides which ends of access are over; a command may set it
    :ivar knows_dashboards: whether what Airflow remembers of dashboards can be read
    """

    def __init__(
        self,
        client: WorkspaceClient,
        organization_id: str,
        *,
        store: LeaseStore | None,
        access: AccessNotes | None,
        owner: tuple[str, int] = ("", 1),
    ) -> None:
        from airflow_provider_workspace.notes.note import utc_now

        self.client = client
        self.now = utc_now()
        self.organization_id = organization_id
        self.knows_dashboards = store is not None
        self._store = store
        self._access = access
        self._owner = owner
        self._lists: dict[Any, Any] = {}

    @property
    def noted(self) -> NotedAccess:
        """What is noted about the people."""
        from airflow_provider_workspace.access.rules.entitlements import NotedAccess

        return self._access.read() if self._access else NotedAccess(are_known=False)

    def invite_again(self, times: int) -> InviteAgain | None:
        """Return who was invited before, and how often again; ``None`` if nobody knows."""
        from airflow_provider_workspace.access.members.earlier_invites import PAUSE_BEFORE_AGAIN

        return self._access.invite_again(times, PAUSE_BEFORE_AGAIN) if self._access else None

    @property
    def projects(self) -> list[ProjectItem]:
        from airflow_provider_workspace.api.operations.projects import ListProjects

        rows: list[ProjectItem] = self._rows(ListProjects)
        return rows

    @property
    def members(self) -> list[Member]:
        from airflow_provider_workspace.api.operations.members import ListMembers

        rows: list[Member] = self._rows(ListMembers)
        return rows

    def _rows(self, listed: Any) -> Any:
        """Return the rows of a list, which is read once."""
        from airflow_provider_workspace.procedures.find import read_rows

        if listed not in self._lists:
            self._lists[listed] = read_rows(self.client, listed(organization_id=self.organization_id))
        return self._lists[listed]

    def find_dashboard(self, project: str, project_id: str, entry: DashboardEntry) -> Dashboard | None:
        """Read a dashboard that Airflow remembers; ``None`` if it remembers none."""
        from airflow_provider_workspace.notes.task_state import TaskState

        no_memory = TaskState({}, dry_run=True)
        registry = self._registry(project, project_id, entry, no_memory, variables=self._store)
        return registry.find(self.client)

    def create_dashboard(
        self, project: str, create: CreateDashboard, entry: DashboardEntry, memory: TaskState
    ) -> Dashboard | None:
        """Create and remember a dashboard; ``memory`` is what the task remembers."""
        registry = self._registry(project, create.project_id, entry, memory)
        dashboard, created = registry.get_or_create(self.client, create, "fail")
        log.info("%s dashboard %s, '%s'.", "Created" if created else "Found", dashboard.id, dashboard.name)
        return dashboard if created else None

    def _registry(
        self,
        project: str,
        project_id: object,
        entry: DashboardEntry,
        memory: TaskState,
        *,
        variables: LeaseStore | None = None,
    ) -> DashboardRegistry:
        from airflow_provider_workspace.notes.dashboards import DashboardNote, DashboardRegistry, variable_key

        task, try_number = self._owner
        default_key = variable_key(self.organization_id, project, entry.name)
        wanted = DashboardNote(
            service=self.client.settings.base_url,
            project_id=str(project_id),
            organization_id=self.organization_id,
            name=entry.name,
            dashboard_id=None,
            variable_key=entry.variable_key or default_key,
            task=task,
            try_number=int(try_number),
        )
        return DashboardRegistry(wanted, memory, variables)

    def window_of(self, export_id: str) -> str:
        """Return the maintenance windows that hold a batch export; an empty string if none does."""
        from airflow_provider_workspace.notes.leases import LeaseRegistry, export_key

        if self._store is None:
            return ""
        key = export_key(self.client.settings.base_url, self.organization_id, export_id)
        windows = LeaseRegistry(self._store).windows_holding(key)
        return ", ".join(windows)

    def file_at(self, path: str | None) -> RosterFile | None:
        """Open a path; ``None`` for ``None``."""
        from airflow_provider_workspace.files.storage import file_at

        file: RosterFile | None = file_at(path)
        return file
