"""What Airflow remembers of dashboards, which the interface cannot list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceNotFoundError, WorkspaceOutcomeUnknownError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class DashboardMemory:
    """
    What Airflow remembers of a dashboard, in a Variable: ``{"project_id": …, "dashboard_id": …}``.

    While a create is under way ``dashboard_id`` is null.

    :param key: the Variable; ``None`` remembers nothing
    """

    def __init__(self, key: str | None, project_id: str) -> None:
        self.key = key
        self.project_id = project_id

    def confirmed(self, hook: WorkspaceHook, if_unknown: str) -> Dashboard | None:
        """
        Return the dashboard that is remembered and still there.

        :raises WorkspaceOutcomeUnknownError: if an earlier create was cut off
        """
        remembered = self.read()
        if not remembered or remembered.get("project_id") != self.project_id:
            return None
        dashboard_id = remembered.get("dashboard_id")
        if dashboard_id is None:
            if if_unknown == "create":
                return None
            msg = (
                f"An earlier try to create this dashboard in project {self.project_id} was cut off: there may be one. "
                f"Look in the workspace. If it is there, put its id into the Airflow Variable '{self.key}' as "
                f'{{"project_id": "{self.project_id}", "dashboard_id": 123}}; if not, delete that Variable, or set '
                "if_unknown='create'."
            )
            error = WorkspaceOutcomeUnknownError(msg, operation="CreateDashboard", retryable=False)
            error.readable = False
            raise error
        try:
            dashboard = hook.get_dashboard(dashboard_id=dashboard_id, project_id=self.project_id)
        except WorkspaceNotFoundError:
            return None
        return None if dashboard.deleted else dashboard

    def create(self, hook: WorkspaceHook, fields: Any) -> Dashboard:
        """Create a dashboard, and remember first that it is about to happen."""
        from airflow_provider_workspace.api.operations import CreateDashboard

        create = CreateDashboard(project_id=self.project_id, **fields)
        self.write(None)
        try:
            dashboard = hook.send(create)
        except WorkspaceOutcomeUnknownError:
            raise
        except WorkspaceError:
            # Refused or not sent. Whatever else ends the task here, a kill among them, leaves the outcome open.
            self.forget()
            raise
        self.write(dashboard.id)
        return dashboard

    def read(self) -> Any:
        """Return what is remembered; ``None`` if nothing is."""
        from airflow.sdk import Variable

        return Variable.get(self.key, default=None, deserialize_json=True) if self.key else None

    def write(self, dashboard_id: int | None) -> None:
        """Remember."""
        from airflow.sdk import Variable

        if self.key:
            value = {"project_id": self.project_id, "dashboard_id": dashboard_id}
            Variable.set(self.key, value, serialize_json=True)

    def forget(self) -> None:
        """Remember nothing: the service refused the create, so there is no dashboard."""
        from airflow.sdk import Variable

        if self.key:
            Variable.delete(self.key)
