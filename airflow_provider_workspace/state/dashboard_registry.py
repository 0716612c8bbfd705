"""Remember dashboards in Airflow, because the interface cannot list them."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import normal_text
from airflow_provider_workspace.api.operations.dashboards import GetDashboard
from airflow_provider_workspace.errors import (
    WorkspaceDuplicateError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.state.lease_store import VariableStore
from airflow_provider_workspace.state.leases import digest

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.state.leases import LeaseStore
    from airflow_provider_workspace.state.task_state import TaskState

log = logging.getLogger(__name__)

# Prefix of the Variables in which tasks note that they are about to create a dashboard.
PREFIX = "workspace_creating."
INDEX = "workspace_creating"
# How often a task checks whether another task has created the same dashboard, and the seconds between two checks.
MAX_CHECKS = 12
SECONDS_BETWEEN_CHECKS = 5.0


@dataclass(frozen=True, slots=True)
class DashboardIdentity:
    """The identity of a dashboard; ``service`` is a base URL, and ``None`` means unknown."""

    service: str
    project_id: str
    organization_id: str | None = None
    name: str | None = None

    def differences(self, remembered: Mapping[str, Any]) -> list[str]:
        """Return the differences from a remembered dashboard, for people."""
        pairs = [(name, remembered.get(name), value) for name, value in asdict(self).items()]
        return [
            f"{name} {was!r} and not {wanted!r}"
            for name, was, wanted in pairs
            if was is not None and wanted is not None and normal_text(str(was)) != normal_text(wanted)
        ]

    def value(self, dashboard_id: object) -> dict[str, Any]:
        """Return the value to remember."""
        return {**asdict(self), "dashboard_id": dashboard_id}


class DashboardRegistry:
    """
    Remembers a dashboard: service, organization, project and name, and its ``dashboard_id``.

    Before a try creates it, it notes that: in a Variable of its own, so that no two tasks write the same one, or,
    without a key, in the state of the task.

    :param key: the Variable that remembers it for all runs; ``None`` to remember it only across tries of the task
    :param owner: the task and the number of its try
    :param variables: the store of Variables; by default the one for tasks
    """

    def __init__(
        self,
        key: str | None,
        identity: DashboardIdentity,
        task: TaskState,
        owner: tuple[str, int],
        *,
        read_only: bool = False,
        variables: LeaseStore | None = None,
    ) -> None:
        self.key = key or None
        self.identity = identity
        self.task = task
        self.owner = owner
        self.read_only = read_only
        self.what = f"dashboard '{identity.name}' in project {identity.project_id}"
        self._variables = variables or VariableStore(PREFIX, INDEX, "A task is about to create a dashboard.")
        self._prefix = f"{PREFIX}{digest(key or '')}."
        self._note = self._prefix + digest(*map(str, owner))

    def find(self, client: WorkspaceClient) -> Dashboard | None:
        """
        Return the remembered dashboard if it still exists.

        :raises WorkspaceInputError: if the Variable is invalid or remembers another dashboard
        :raises WorkspaceOutcomeUnknownError: if a create was interrupted
        """
        return self._find(client, self._read(), "fail")

    def get_or_create(
        self, client: WorkspaceClient, create: CreateDashboard, if_unknown: str
    ) -> tuple[Dashboard, bool]:
        """
        Return the remembered dashboard if it still exists, else create it.

        :param if_unknown: what to do if an earlier create was interrupted: ``fail``, or ``create`` another one
        :return: the dashboard, and whether this try created it
        :raises WorkspaceInputError: if the Variable is invalid or remembers another dashboard
        :raises WorkspaceOutcomeUnknownError: if an earlier create was interrupted, or the answer to this one was lost
        :raises WorkspaceDuplicateError: if another task has created it meanwhile
        """
        checks = 0
        while True:
            remembered = self._read()
            dashboard = self._find(client, remembered, if_unknown)
            if dashboard is not None:
                for note in self._notes() if self.key is not None and not self.read_only else ():
                    self._variables.delete(note)
                return dashboard, False
            if self.read_only:
                break
            other, owner = self._begin()
            if other is None and (self.key is None or self._read() == remembered):
                break
            if other != self._note:
                self._variables.delete(self._note)
            checks += 1
            if other is not None:
                log.info("Waiting: %s is creating the %s, or was interrupted.", " try ".join(owner), self.what)
                if owner[0] == self.owner[0] or checks > MAX_CHECKS:  # an earlier try of this task, or waited too long
                    if if_unknown != "create":
                        raise self._unknown(other, _interrupted(" try ".join(owner)))
                    self._variables.delete(other)
            # Jitter, so that tasks that began together do not retry together; not cryptography.
            client.pause(SECONDS_BETWEEN_CHECKS * (0.5 + random.random()))  # noqa: S311
        dashboard = self._create(client, create)
        if self.key is not None and self._read() != remembered:
            msg = (
                f"Keep one of two dashboards: this task created {dashboard.id} in project {self.identity.project_id}, "
                f"but the Airflow Variable '{self.key}' has changed meanwhile to {json.dumps(self._read())}"
            )
            raise WorkspaceDuplicateError(msg, operation="CreateDashboard", outcome="applied", retryable=False)
        self._end(dashboard.id)
        return dashboard, True

    def _create(self, client: WorkspaceClient, create: CreateDashboard) -> Dashboard:
        """Create the dashboard; the note stays if the outcome is unknown."""
        try:
            dashboard = client.send(create)
        except WorkspaceOutcomeUnknownError as error:
            raise self._unknown(self._note, str(error.__cause__ or error)) from error
        except WorkspaceError:
            # Refused or not sent. After any other end, such as a kill, the outcome is unknown.
            self._end(None)
            raise
        if dashboard.id is None:
            raise self._unknown(self._note, "The response to CreateDashboard has no id.")
        return dashboard

    def _find(self, client: WorkspaceClient, remembered: Any, if_unknown: str) -> Dashboard | None:
        """Return the remembered dashboard if it is the right one and still exists."""
        if remembered is None:
            return None
        if not isinstance(remembered, Mapping) or "dashboard_id" not in remembered:
            raise WorkspaceInputError(
                f"Put {self._json(123)} with the id of the dashboard into the Airflow Variable '{self.key}', "
                "or delete it: its value is not a dashboard"
            )
        dashboard_id = remembered["dashboard_id"]
        self._check(dashboard_id, remembered)
        if dashboard_id is None:
            if if_unknown == "create":
                return None
            raise self._unknown(self.key, _interrupted("An earlier try"))
        try:
            dashboard = client.send(GetDashboard(project_id=self.identity.project_id, dashboard_id=dashboard_id))
        except WorkspaceNotFoundError as error:
            if error.from_service:
                return None
            error.args = (f"Check the host of the connection: this 404 may be that of a proxy. {error}",)
            raise
        if dashboard.deleted:
            return None
        if "name" not in remembered:  # written by hand
            self._check(dashboard_id, {"name": dashboard.name})
        return dashboard

    def _check(self, dashboard_id: object, remembered: Mapping[str, Any]) -> None:
        """Raise the error with the cure if the remembered dashboard is another one."""
        differences = self.identity.differences(remembered)
        if differences and self.key is not None:
            raise WorkspaceInputError(
                f"Use another variable_key; or, if dashboard {dashboard_id} is the one that is meant, put "
                f"{self._json(dashboard_id)} into the Airflow Variable '{self.key}'. It remembers a dashboard "
                f"with {', '.join(differences)}"
            )
        if differences:
            raise WorkspaceInputError(
                "Set the connection and the arguments back to what they were, or start a new run: an earlier try of "
                f"this task was about a dashboard with {', '.join(differences)}"
            )

    def _json(self, dashboard_id: object) -> str:
        """Return the value of the Variable as JSON."""
        return json.dumps(self.identity.value(dashboard_id), ensure_ascii=False)

    def _unknown(self, variable: str | None, why: str) -> WorkspaceOutcomeUnknownError:
        """Return the error for a create whose outcome is unknown, with the cure."""
        if self.key is not None:
            cure = (
                f"If it exists, put its id into the Airflow Variable '{self.key}' as {self._json(123)}; if not, "
                f"delete the Variable '{variable}'."
            )
        else:
            cure = (
                f"If it exists, set variable_key, and put its id into that Airflow Variable as {self._json(123)}; "
                "if not, set if_unknown='create'."
            )
        msg = f"Look for {self.what}. {cure} Then clear this task. {why}"
        return WorkspaceOutcomeUnknownError(msg, operation="CreateDashboard", retryable=False)

    def _read(self) -> Any:
        """Return the remembered value; ``None`` if there is none."""
        if self.key is not None:
            text = self._variables.read(self.key)
            try:
                return None if text is None else json.loads(text)
            except ValueError:
                return text
        remembered = self.task.read()
        if remembered is None and self.task.age(self.what) is not None:
            return {"dashboard_id": None}  # the earlier try may have created it
        return remembered

    def _begin(self) -> tuple[str | None, tuple[str, str]]:
        """Note that this try begins; return the note of another one with its task and number, if there is one."""
        if self.key is None:
            self.task.write(self.identity.value(None))
            return None, ("", "")
        owner = str(self.owner[0]), str(self.owner[1])
        if self._variables.read(self._note) is not None:
            return self._note, owner  # this try was interrupted before
        self._variables.add(self._note, json.dumps([*owner, self.key]))
        for name in self._notes():
            text = self._variables.read(name) if name != self._note else None
            if text is not None:
                task, number, _ = json.loads(text)
                return name, (task, number)
        return None, ("", "")

    def _end(self, dashboard_id: int | None) -> None:
        """Remember the dashboard, or delete the note if there is none."""
        if self.read_only:
            return
        if self.key is None:
            self.task.forget() if dashboard_id is None else self.task.write(self.identity.value(dashboard_id))
            return
        if dashboard_id is not None:
            from airflow.sdk import Variable

            Variable.set(self.key, self._json(dashboard_id))
        self._variables.delete(self._note)

    def _notes(self) -> list[str]:
        """Return the notes of tries that are about to create it."""
        return [name for name in self._variables.list_keys() if name.startswith(self._prefix)]


def _interrupted(who: str) -> str:
    return f"{who} was interrupted: the dashboard may exist."
