"""What Airflow remembers of dashboards, which the interface cannot list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.state.task_state import TaskState


class DashboardRegistry:
    """
    What Airflow remembers of a dashboard: ``{"project_id": …, "dashboard_id": …}``.

    While a create is under way ``dashboard_id`` is null.

    :param key: the Variable that remembers it for all runs; ``None`` to remember it from try to try of the task
    :param task: what remembers it from try to try
    """

    def __init__(self, key: str | None, project_id: str, task: TaskState) -> None:
        self.key = key
        self.project_id = project_id
        self.task = task

    def confirmed(self, hook: WorkspaceHook, if_unknown: str) -> Dashboard | None:
        """
        Return the dashboard that is remembered and still there.

        :raises WorkspaceInputError: if the Variable holds something else
        :raises WorkspaceOutcomeUnknownError: if an earlier create was cut off
        """
        remembered = self.read()
        if remembered is None:
            return None
        if not isinstance(remembered, Mapping):
            msg = (
                f"The Airflow Variable '{self.key}' is expected to hold something like "
                f'{{"project_id": "{self.project_id}", "dashboard_id": 123}}, or not to be there. Nothing was sent.'
            )
            raise WorkspaceInputError(msg)
        # People write the number of a project without quotes.
        if str(remembered.get("project_id")) != self.project_id:
            return None
        dashboard_id = remembered.get("dashboard_id")
        if dashboard_id is None:
            if if_unknown == "create":
                return None
            msg = (
                f"An earlier try to create this dashboard in project {self.project_id} was cut off: there may be one. "
            )
            if self.key:
                msg += (
                    f"Look in the workspace. If it is there, put its id into the Airflow Variable '{self.key}' as "
                    f'{{"project_id": "{self.project_id}", "dashboard_id": 123}}; if not, delete that Variable, or set '
                    "if_unknown='create'."
                )
            else:
                msg += (
                    "Look in the workspace, and if there is none, run the task with if_unknown='create'. With "
                    "variable_key=… a task can be told of one that is there."
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

        return Variable.get(self.key, default=None, deserialize_json=True) if self.key else self.task.read()

    def write(self, dashboard_id: int | None) -> None:
        """Remember."""
        from airflow.sdk import Variable

        value = {"project_id": self.project_id, "dashboard_id": dashboard_id}
        if self.key:
            Variable.set(self.key, value, serialize_json=True)
        else:
            self.task.write(value)

    def forget(self) -> None:
        """Remember nothing: the service refused the create, so there is no dashboard."""
        from airflow.sdk import Variable

        if self.key:
            Variable.delete(self.key)
        else:
            self.task.forget()
