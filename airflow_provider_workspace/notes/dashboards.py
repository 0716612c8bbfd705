"""Dashboards, which the service cannot list: remembered in a Variable for all runs, or in the state of a task."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import normal_text
from airflow_provider_workspace.api.ids import canonical_text
from airflow_provider_workspace.api.operations.dashboards import GetDashboard
from airflow_provider_workspace.errors import (
    WorkspaceDuplicateError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.notes.note import digest
from airflow_provider_workspace.notes.store import VariableStore
from airflow_provider_workspace.procedures.ensure import read_dashboard

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.notes.store import NoteStore
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.procedures.organization_file import DashboardEntry

# The keys of Variables that Airflow stores as they are: it cuts others, or refuses them when the dashboard is there.
VALID_KEY = re.compile(r"[\w.:/ -]{1,250}", re.ASCII)
# Prefix of the Variables in which tasks note that they are about to create a dashboard.
CREATING = "workspace_creating."


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
            if was is not None and wanted is not None and _plain(name, str(was)) != _plain(name, wanted)
        ]

    def value(self, dashboard_id: object) -> dict[str, Any]:
        """Return the value to remember."""
        return {**asdict(self), "dashboard_id": dashboard_id}


def _plain(name: str, value: str) -> str:
    return canonical_text(value) if name.endswith("_id") else normal_text(value)


class DashboardRegistry:
    """
    Remembers a dashboard: service, organization, project and name, and its ``dashboard_id``.

    Before a try creates it, it notes that: in a Variable of its own, so that no two tasks write the same one, or,
    without a key, in the state of the task.

    :param key: the Variable that remembers it for all runs; ``None`` to remember it only across tries of the task
    :param owner: the task and the number of its try
    :param variables: the store of Variables; by default the one for tasks
    :raises WorkspaceInputError: if Airflow cannot store a Variable of this key
    """

    def __init__(
        self,
        key: str | None,
        identity: DashboardIdentity,
        task: TaskState,
        owner: tuple[str, int],
        variables: NoteStore | None = None,
    ) -> None:
        if key and not VALID_KEY.fullmatch(key):
            raise WorkspaceInputError(
                f"Choose another variable_key than {key[:40]!a}: expected up to 250 of A-Z, a-z, 0-9, blanks and _.:/-"
            )
        self.key = key or None
        self.identity = identity
        self.task = task
        self.owner = owner
        self.what = f"dashboard '{identity.name}' in project {identity.project_id}"
        self._variables = variables or VariableStore(
            CREATING, CREATING.rstrip("."), "A task is about to create a dashboard."
        )
        self._prefix = f"{CREATING}{digest(key or '')}."
        self._note = self._prefix + digest(*map(str, owner))

    def find(self, client: WorkspaceClient, if_unknown: str = "fail") -> Dashboard | None:
        """
        Return the remembered dashboard if it still exists.

        :param if_unknown: what to do if an earlier create was interrupted: ``fail``, or ``create`` another one
        :raises WorkspaceInputError: if the Variable is invalid or remembers another dashboard
        :raises WorkspaceOutcomeUnknownError: if a create was interrupted
        """
        return self._find(client, self._read(), if_unknown)

    def get_or_create(
        self, client: WorkspaceClient, create: CreateDashboard, if_unknown: str
    ) -> tuple[Dashboard, bool]:
        """
        Return the remembered dashboard if it still exists, else create it; ``if_unknown`` is that of :meth:`find`.

        :return: the dashboard, and whether this try created it
        :raises WorkspaceInputError: if the Variable is invalid or remembers another dashboard
        :raises WorkspaceOutcomeUnknownError: if an earlier create was interrupted, or the answer to this one was lost
        :raises WorkspaceDuplicateError: if another task has created it meanwhile
        """
        while True:
            remembered = self._read()
            dashboard = self._find(client, remembered, if_unknown)
            if dashboard is not None:
                for note in self._notes() if self.key is not None else ():
                    self._variables.delete(note)
                return dashboard, False
            self._begin(if_unknown)
            if self.key is None or self._read() == remembered:
                break
            self._variables.delete(self._note)  # another task has just created it
        dashboard = self._create(client, create)
        if self.key is not None and self._read() != remembered:
            msg = (
                f"Keep one of two dashboards: this task created {dashboard.id} in project {self.identity.project_id}, "
                f"but the Airflow Variable '{self.key}' has changed meanwhile to {json.dumps(self._read())}"
            )
            raise WorkspaceDuplicateError(
                msg, operation="CreateDashboard", outcome="applied", retryable=False, problem="two-dashboards"
            )
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
        known = remembered if isinstance(remembered, Mapping) else {}
        if not re.fullmatch(r"\s*\d+\s*|None", str(known.get("dashboard_id", ""))):
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
        read = GetDashboard(project_id=self.identity.project_id, dashboard_id=dashboard_id)
        dashboard = read_dashboard(client, read)
        if dashboard and "name" not in remembered:  # written by hand
            self._check(dashboard_id, {"name": dashboard.name})
        return dashboard

    def _check(self, dashboard_id: object, remembered: Mapping[str, Any]) -> None:
        """Raise the error with the cure if the remembered dashboard is another one."""
        differences = self.identity.differences(remembered)
        if differences and self.key is not None:
            raise WorkspaceInputError(
                f"Use another variable_key; or, if dashboard {dashboard_id} is the one that is meant, put "
                f"{self._json(dashboard_id)} into the Airflow Variable '{self.key}'. It remembers a dashboard "
                f"with {', '.join(differences)}",
                problem="another-dashboard",
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
        return WorkspaceOutcomeUnknownError(
            msg, operation="CreateDashboard", retryable=False, problem="dashboard-interrupted"
        )

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

    def _begin(self, if_unknown: str) -> None:
        """
        Note that this try begins.

        :raises WorkspaceOutcomeUnknownError: if another one has begun, or this one was interrupted before
        """
        if self.key is None:
            self.task.write(self.identity.value(None))
            return
        again = self._variables.read(self._note) is not None
        if not again:
            self._variables.add(self._note, json.dumps([*map(str, self.owner), self.key]))
        for name in self._notes():
            text = self._variables.read(name) if again or name != self._note else None
            if text is None:
                continue
            if if_unknown == "create":
                if name != self._note:
                    self._variables.delete(name)
                continue
            if not again:
                self._variables.delete(self._note)
            task, number = self._writer(text)
            if task == self.owner[0]:
                raise self._unknown(name, _interrupted(f"{task} try {number}"))
            error = self._unknown(name, f"{task} try {number} is creating it, or was interrupted.")
            error.caller_looks_up = True  # this task has sent nothing: its retry looks again
            raise error

    def _writer(self, text: str) -> tuple[str, str]:
        """Return the task and try that wrote a note; after an edit, a name that is no task."""
        try:
            task, number, _ = json.loads(text)
        except (ValueError, TypeError):
            return "A task whose note somebody has changed,", "1"
        return str(task), str(number)

    def _end(self, dashboard_id: int | None) -> None:
        """Remember the dashboard, or delete the note if there is none."""
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


# Organization files

# Prefix of the Variables that remember the dashboards of organization files.
DASHBOARD_PREFIX = "workspace_dashboard_"


def variable_key(organization_id: str, project: str, entry: DashboardEntry) -> str:
    """Return the key of the Variable that remembers a dashboard of an organization file."""
    from airflow_provider_workspace.procedures.find import project_key

    if entry.variable_key:
        return entry.variable_key
    names = [project_key(project), project_key(entry.name)]
    readable = "_".join(re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-") for name in names)
    return f"{DASHBOARD_PREFIX}{readable}_{digest(organization_id, *names)[:8]}"


def remembered_dashboards(organization_id: str, settings: Settings, store: NoteStore) -> dict[str, dict[str, str]]:
    """Return the Variables that remember dashboards of organization files, by dashboard id, by project id."""
    found: dict[str, dict[str, str]] = {}
    for key in store.list_keys():
        try:
            value = json.loads(store.read(key) or "")
            if (value["service"], canonical_text(value["organization_id"])) == (settings.base_url, organization_id):
                found.setdefault(str(value["project_id"]), {})[str(int(value["dashboard_id"]))] = key
        except (ValueError, KeyError, TypeError):  # noqa: PERF203 - a few rounds
            continue  # not a Variable of this package
    return found
