"""Dashboards, which the service cannot list: remembered in a Variable for all runs, or in the state of a task."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ValidationError

from airflow_provider_workspace.api.comparison import normal_text
from airflow_provider_workspace.api.database_limits import MAX_ID
from airflow_provider_workspace.api.fields import IntegerId
from airflow_provider_workspace.api.ids import canonical_text
from airflow_provider_workspace.api.levels import if_given
from airflow_provider_workspace.api.operations.dashboards import GetDashboard
from airflow_provider_workspace.errors import (
    WorkspaceDuplicateError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.notes.note import Note, digest
from airflow_provider_workspace.notes.store import VariableStore, keep_variable
from airflow_provider_workspace.procedures.ensure import read_dashboard

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.notes.store import NoteStore
    from airflow_provider_workspace.notes.task_state import TaskState

    IfUnknown = Literal["fail", "create"]

log = logging.getLogger(__name__)

# The keys of Variables that Airflow stores as they are: it cuts others, or refuses them when the dashboard is there.
VALID_KEY = re.compile(rf"[\w.:/ -]{{1,{MAX_ID}}}", re.ASCII)
# Prefix of the Variables in which tasks note that they are about to create a dashboard.
CREATING = "workspace_creating."
# What the Variable of an author shows: people read and edit it.
IDENTITY = ("service", "project_id", "organization_id", "name")
SHOWN_FIELDS = (*IDENTITY, "dashboard_id")
CHANGED_WRITER = ("A task whose note somebody has changed,", "1")


def _parse_id(value: object) -> str:
    return canonical_text(str(value))


# What people write.
NotedText = Annotated[str | None, if_given(str)]
NotedId = Annotated[str | None, if_given(_parse_id)]
NotedDashboard = IntegerId | None


class DashboardNote(Note):
    """
    A dashboard that is remembered, or whose create is under way. People may have written it by hand.

    :param service: base URL of the service; ``None`` means unknown, as in the fields that follow
    :param dashboard_id: the dashboard; ``None`` while its create is under way
    :param variable_key: the Variable of the author; empty to remember it only across tries of the task
    :param task: the task that creates it; empty if it is created
    """

    service: NotedText = None
    project_id: NotedId = None
    organization_id: NotedId = None
    name: NotedText = None
    dashboard_id: NotedDashboard
    variable_key: str = ""
    task: str = ""
    try_number: int = 1

    @property
    def key(self) -> str:
        """The key of its Variable; of a create under way that of a Variable of the try."""
        if not self.task:
            return self.variable_key
        return self.creating + digest(self.task, str(self.try_number))

    @property
    def creating(self) -> str:
        """The prefix of the keys of all tries that are about to create it."""
        return f"{CREATING}{digest(self.variable_key)}."

    def created(self, dashboard_id: NotedDashboard) -> DashboardNote:
        """Return the note of the dashboard that was created."""
        return self.model_copy(update={"dashboard_id": dashboard_id})

    def shown(self) -> dict[str, object]:
        """Return plain JSON as people see it, without who created it."""
        values = self.model_dump()
        return {name: values[name] for name in SHOWN_FIELDS}

    def shown_text(self) -> str:
        """Return :meth:`shown` as the value of a Variable."""
        return json.dumps(self.shown(), ensure_ascii=False)

    def differences(self, remembered: DashboardNote) -> list[str]:
        """Return the differences from a remembered dashboard, for people."""
        differences: list[str] = []
        for field in IDENTITY:
            was = getattr(remembered, field)
            wanted = getattr(self, field)
            if was is None or wanted is None:
                continue
            if normal_text(was) != normal_text(wanted):
                differences.append(f"{field} {was!r} and not {wanted!r}")
        return differences


class DashboardRegistry:
    """
    Remembers a dashboard: service, organization, project and name, and its ``dashboard_id``.

    Before a try creates it, it notes that: in a Variable of its own, so that no two tasks write the same one, or,
    without the key of a Variable, in the state of the task.

    :param wanted: the dashboard, with the task and the number of its try
    :param variables: the store of Variables; by default the one for tasks
    :raises WorkspaceInputError: if Airflow cannot store a Variable of this key
    """

    def __init__(self, wanted: DashboardNote, task: TaskState, variables: NoteStore | None = None) -> None:
        key = wanted.variable_key
        if key and not VALID_KEY.fullmatch(key):
            raise WorkspaceInputError(
                f"variable_key is {key[:40]!a}; expected up to {MAX_ID} of A-Z, a-z, 0-9, blanks and _.:/-"
            )
        self.wanted = wanted
        if key:
            store = variables or VariableStore(CREATING, CREATING.rstrip("."), "A task is about to create a dashboard.")
            self._memory: _VariableMemory | _TaskMemory = _VariableMemory(wanted, store)
        else:
            self._memory = _TaskMemory(wanted, task)

    def find(self, client: WorkspaceClient, if_unknown: IfUnknown = "fail") -> Dashboard | None:
        """
        Return the remembered dashboard if it still exists.

        :param if_unknown: what to do if an earlier create was interrupted: ``fail``, or ``create`` another one
        :raises WorkspaceInputError: if the Variable is invalid or remembers another dashboard
        :raises WorkspaceOutcomeUnknownError: if a create was interrupted
        """
        return self._find(client, self._memory.read(), if_unknown)

    def get_or_create(
        self, client: WorkspaceClient, create: CreateDashboard, if_unknown: IfUnknown
    ) -> tuple[Dashboard, bool]:
        """
        Return the remembered dashboard if it still exists, else create it; ``if_unknown`` is that of :meth:`find`.

        :return: the dashboard, and whether this try created it
        :raises WorkspaceInputError: if the Variable is invalid or remembers another dashboard
        :raises WorkspaceOutcomeUnknownError: if an earlier create was interrupted, or the answer to this one was lost
        :raises WorkspaceDuplicateError: if another task has created it meanwhile
        """
        while True:
            remembered = self._memory.read()
            dashboard = self._find(client, remembered, if_unknown)
            if dashboard is not None:
                self._memory.forget_creates()
                return dashboard, False
            self._memory.begin(if_unknown)
            if not self._memory.has_changed(remembered):
                break
            self._memory.give_up()  # another task has just created it
        dashboard = self._create(client, create)
        if self._memory.has_changed(remembered):
            raise self._two_dashboards(dashboard)
        self._memory.remember(dashboard)
        return dashboard, True

    def _create(self, client: WorkspaceClient, create: CreateDashboard) -> Dashboard:
        """Create the dashboard; the note stays if the outcome is unknown."""
        try:
            dashboard = client.send(create)
        except WorkspaceOutcomeUnknownError as error:
            raise self._memory.unknown(str(error.__cause__ or error)) from error
        except WorkspaceError:
            # Refused or not sent. After any other end, such as a kill, the outcome is unknown.
            self._memory.give_up()
            raise
        if dashboard.id is None:
            raise self._memory.unknown("The response to CreateDashboard has no id.")
        return dashboard

    def _find(self, client: WorkspaceClient, value: object, if_unknown: IfUnknown) -> Dashboard | None:
        """Return the remembered dashboard if it is the right one and still exists."""
        if value is None:
            return None
        try:
            remembered = DashboardNote.model_validate(value)
        except ValidationError:
            example = self.wanted.created(123).shown_text()
            raise WorkspaceInputError(
                f"The value of the Airflow Variable '{self.wanted.variable_key}' is not a dashboard. Put {example} "
                "with the id of the dashboard there, or delete it"
            ) from None
        self._check(remembered)
        if remembered.dashboard_id is None:
            if if_unknown == "create":
                return None
            raise self._memory.interrupted()
        read = GetDashboard(project_id=str(self.wanted.project_id), dashboard_id=remembered.dashboard_id)
        dashboard = read_dashboard(client, read, seconds=client.settings.consistency_time)
        if dashboard is None:
            log.warning(
                "Dashboard %s, which is remembered as the %s, is deleted, or the service has not found it for %g s.",
                remembered.dashboard_id,
                _describe(self.wanted),
                client.settings.consistency_time,
            )
        is_written_by_hand = "name" not in remembered.model_fields_set
        if dashboard is not None and is_written_by_hand:
            self._check(DashboardNote(dashboard_id=remembered.dashboard_id, name=dashboard.name))
        return dashboard

    def _check(self, remembered: DashboardNote) -> None:
        """Raise the error with the cure if the remembered dashboard is another one."""
        differences = self.wanted.differences(remembered)
        if differences:
            raise self._memory.another(remembered, ", ".join(differences))

    def _two_dashboards(self, dashboard: Dashboard) -> WorkspaceDuplicateError:
        """Return the error for a Variable that has changed during the create."""
        remembered = json.dumps(self._memory.read())
        msg = (
            f"There are two dashboards now: this task created {dashboard.id} in project {self.wanted.project_id}, and "
            "another one has created one too. Keep one, put its id into the Airflow Variable "
            f"'{self.wanted.variable_key}', and delete the other. The Variable says {remembered}"
        )
        return WorkspaceDuplicateError(
            msg, operation="CreateDashboard", outcome="applied", retryable=False, problem="two-dashboards"
        )


class _VariableMemory:
    """The Variable of the author, and a Variable of each try that is about to create the dashboard."""

    def __init__(self, wanted: DashboardNote, store: NoteStore) -> None:
        self._wanted = wanted
        self._key = wanted.variable_key
        self._store = store

    def read(self) -> object:
        """Return the remembered value, JSON or a text that is none; ``None`` if there is none."""
        text = self._store.read(self._key)
        if text is None:
            return None
        try:
            value: object = json.loads(text)
        except ValueError:
            return text
        return value

    def has_changed(self, remembered: object) -> bool:
        return self.read() != remembered

    def begin(self, if_unknown: IfUnknown) -> None:
        """
        Note that this try begins.

        :raises WorkspaceOutcomeUnknownError: if another one has begun, or this one was interrupted before
        """
        own = self._wanted.key
        was_interrupted = self._store.read(own) is not None
        if not was_interrupted:
            self._store.add(own, self._wanted.model_dump_json())
        others = [key for key in self._creates() if key != own]
        if if_unknown == "create":
            for key in others:
                self._store.delete(key)
            return
        earlier = [own, *others] if was_interrupted else others
        for key in earlier:
            text = self._store.read(key)
            if text is None:
                continue
            if not was_interrupted:
                self._store.delete(own)
            raise self._begun_by(key, text)

    def _creates(self) -> list[str]:
        """Return the keys of tries that are about to create it."""
        return [key for key in self._store.list_keys() if key.startswith(self._wanted.creating)]

    def _begun_by(self, key: str, text: str) -> WorkspaceOutcomeUnknownError:
        """Return the error for a create that was begun before."""
        task, number = _writer(text)
        if task == self._wanted.task:
            return self.unknown(_interrupted(f"{task} try {number}"), key)
        error = self.unknown(f"{task} try {number} is creating it, or was interrupted.", key)
        error.caller_looks_up = True  # this task has sent nothing: its retry looks again
        return error

    def remember(self, dashboard: Dashboard) -> None:
        text = self._wanted.created(dashboard.id).shown_text()
        try:
            keep_variable(self._key, text)
        except WorkspaceError as error:
            msg = f"Dashboard {dashboard.id} was created, and is not remembered. It has to be {text}. {error}"
            raise WorkspaceError(msg, problem="note-not-kept") from None
        self._store.delete(self._wanted.key)

    def give_up(self) -> None:
        """Delete the note of this try, which has created nothing."""
        self._store.delete(self._wanted.key)

    def forget_creates(self) -> None:
        for key in self._creates():
            self._store.delete(key)

    def interrupted(self) -> WorkspaceOutcomeUnknownError:
        """Return the error for a Variable without the id of its dashboard."""
        return self.unknown(_interrupted("An earlier try"), self._key)

    def unknown(self, why: str, key: str = "") -> WorkspaceOutcomeUnknownError:
        """
        Return the error for a create whose outcome is unknown, with the cure.

        :param key: the Variable that notes the create; by default that of this try
        """
        example = self._wanted.created(123).shown_text()
        key = key or self._wanted.key
        cure = (
            f"If it exists, put its id into the Airflow Variable '{self._key}' as {example}; if not, delete the "
            f"Variable '{key}'."
        )
        return _unknown(self._wanted, cure, why)

    def another(self, remembered: DashboardNote, differences: str) -> WorkspaceInputError:
        value = self._wanted.created(remembered.dashboard_id).shown_text()
        msg = (
            f"The Airflow Variable '{self._key}' remembers another dashboard, with {differences}. Use another "
            f"variable_key; or, if dashboard {remembered.dashboard_id} is the one that is meant, put {value} there"
        )
        return WorkspaceInputError(msg, problem="another-dashboard")


class _TaskMemory:
    """The state of the task: no other task knows the dashboard."""

    def __init__(self, wanted: DashboardNote, task: TaskState) -> None:
        self._wanted = wanted
        self._task = task

    def read(self) -> object:
        """Return the remembered value; ``None`` if there is none."""
        remembered: object = self._task.read()
        if remembered is None and self._task.age(_describe(self._wanted)) is not None:
            return {"dashboard_id": None}  # the earlier try may have created it
        return remembered

    def has_changed(self, _: object) -> bool:
        """Return ``False``: only this task writes it."""
        return False

    def begin(self, _: IfUnknown) -> None:
        self._task.write(self._wanted.shown())

    def remember(self, dashboard: Dashboard) -> None:
        self._task.write(self._wanted.created(dashboard.id).shown())

    def give_up(self) -> None:
        self._task.forget()

    def forget_creates(self) -> None:
        """Do nothing: there are no notes of others."""

    def interrupted(self) -> WorkspaceOutcomeUnknownError:
        return self.unknown(_interrupted("An earlier try"))

    def unknown(self, why: str) -> WorkspaceOutcomeUnknownError:
        """Return the error for a create whose outcome is unknown, with the cure."""
        cure = (
            "If it exists, set variable_key, and put its id into that Airflow Variable as "
            f"{self._wanted.created(123).shown_text()}; if not, set if_unknown='create'."
        )
        return _unknown(self._wanted, cure, why)

    def another(self, _: DashboardNote, differences: str) -> WorkspaceInputError:
        return WorkspaceInputError(
            f"An earlier try of this task was about a dashboard with {differences}. Set the connection and the "
            "arguments back to what they were, or start a new run"
        )


def _describe(wanted: DashboardNote) -> str:
    return f"dashboard '{wanted.name}' in project {wanted.project_id}"


def _interrupted(task: str) -> str:
    return f"{task} was interrupted."


def _unknown(wanted: DashboardNote, cure: str, why: str) -> WorkspaceOutcomeUnknownError:
    msg = f"The {_describe(wanted)} may or may not exist. Look for it. {cure} Then clear this task. {why}"
    return WorkspaceOutcomeUnknownError(
        msg, operation="CreateDashboard", retryable=False, problem="dashboard-interrupted"
    )


def _writer(text: str) -> tuple[str, str]:
    """Return the task and try that noted a create; after an edit, a name that is no task."""
    try:
        note = DashboardNote.model_validate_json(text)
    except ValidationError:
        return CHANGED_WRITER
    return (note.task, str(note.try_number)) if note.task else CHANGED_WRITER


# Organization files

# Prefix of the Variables that remember the dashboards of organization files.
DASHBOARD_PREFIX = "workspace_dashboard_"


def variable_key(organization_id: str, project: str, dashboard: str) -> str:
    """
    Return the key of the Variable that remembers a dashboard of an organization file, if the file names none.

    :param project: name of the project
    :param dashboard: name of the dashboard
    """
    from airflow_provider_workspace.procedures.find import project_key

    names = [project_key(project), project_key(dashboard)]
    readable = "_".join(re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-") for name in names)
    unique = digest(organization_id, *names)[:8]
    return f"{DASHBOARD_PREFIX}{readable}_{unique}"


def remembered_dashboards(organization_id: str, settings: Settings, store: NoteStore) -> dict[str, dict[str, str]]:
    """Return the Variables that remember dashboards of organization files, by dashboard id, by project id."""
    found: dict[str, dict[str, str]] = {}
    for key in store.list_keys():
        try:
            note = DashboardNote.model_validate_json(store.read(key) or "")
        except ValidationError:
            continue  # not a Variable of this package
        is_of_organization = note.service == settings.base_url and note.organization_id == organization_id
        if is_of_organization and note.project_id and note.dashboard_id is not None:
            found.setdefault(note.project_id, {})[str(note.dashboard_id)] = key
    return found
