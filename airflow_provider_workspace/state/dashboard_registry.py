"""What Airflow remembers of dashboards, which the interface cannot list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.operations.dashboards import CreateDashboard, GetDashboard
from airflow_provider_workspace.api.procedure import send_one
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.api.procedure import Procedure
    from airflow_provider_workspace.state.task_state import TaskState


class DashboardRegistry:
    """
    What Airflow remembers of a dashboard: ``{"project_id": …, "dashboard_id": …}``.

    While a create is under way ``dashboard_id`` is null.

    :param key: the Variable that remembers it for all runs; ``None`` to remember it from try to try of the task
    :param task: what remembers it from try to try
    :param read_only: remember nothing anew
    """

    def __init__(self, key: str | None, project_id: str, task: TaskState, *, read_only: bool = False) -> None:
        self.key = key
        self.project_id = project_id
        self.task = task
        self.read_only = read_only

    def find(self, if_unknown: str) -> Procedure[Dashboard | None]:
        """
        Return the dashboard that is remembered and still exists.

        :param if_unknown: what to do if an earlier create was cut off: ``fail``, or ``create`` another one
        :raises WorkspaceInputError: if the Variable holds something else
        :raises WorkspaceOutcomeUnknownError: if an earlier create was cut off
        """
        remembered = self._read()
        if remembered is None:
            return None
        if not isinstance(remembered, Mapping):
            msg = (
                f"The Airflow Variable '{self.key}' is expected to hold something like "
                f'{{"project_id": "{self.project_id}", "dashboard_id": 123}}, or not to exist'
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
                    "variable_key=… a task can be given one that exists."
                )
            raise WorkspaceOutcomeUnknownError(msg, operation="CreateDashboard", retryable=False)
        try:
            dashboard = yield from send_one(GetDashboard(project_id=self.project_id, dashboard_id=dashboard_id))
        except WorkspaceNotFoundError:
            return None
        return None if dashboard.deleted else dashboard

    def create(self, fields: Any) -> Procedure[Dashboard]:
        """Create a dashboard, and remember first that it is about to happen."""
        create = CreateDashboard(project_id=self.project_id, **fields)
        self._write(None)
        try:
            dashboard = yield from send_one(create)
        except WorkspaceOutcomeUnknownError:
            raise
        except WorkspaceError:
            # Refused or not sent. Whatever else ends the task here, a kill among them, leaves the outcome open.
            self._forget()
            raise
        self._write(dashboard.id)
        return dashboard

    def _read(self) -> Any:
        """Return what is remembered; ``None`` if nothing is."""
        from airflow.sdk import Variable

        return Variable.get(self.key, default=None, deserialize_json=True) if self.key else self.task.read()

    def _write(self, dashboard_id: int | None) -> None:
        """Remember."""
        if self.read_only:
            return
        from airflow.sdk import Variable

        value = {"project_id": self.project_id, "dashboard_id": dashboard_id}
        if self.key:
            Variable.set(self.key, value, serialize_json=True)
        else:
            self.task.write(value)

    def _forget(self) -> None:
        """Remember nothing: the service refused the create, so there is no dashboard."""
        if self.read_only:
            return
        from airflow.sdk import Variable

        if self.key:
            Variable.delete(self.key)
        else:
            self.task.forget()
