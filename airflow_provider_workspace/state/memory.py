"""
What Airflow remembers for tasks: a note before an effect, dashboards that the service cannot list, and progress.

State of a task survives its tries; Variables survive its runs.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_workspace.api.comparison import normal_text
from airflow_provider_workspace.api.ids import canonical_text, spellings
from airflow_provider_workspace.api.operations.dashboards import GetDashboard
from airflow_provider_workspace.errors import (
    WorkspaceDuplicateError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.hooks.progress import ProgressLog
from airflow_provider_workspace.procedures.ensure import read_dashboard
from airflow_provider_workspace.procedures.invites_report import MAX_NAMED, NEEDS_ATTENTION, InvitesReport
from airflow_provider_workspace.state.lease_store import VariableStore
from airflow_provider_workspace.state.leases import LeaseRegistry, digest, export_keys, iso
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.api.models import Dashboard
    from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.organization import OrganizationReader
    from airflow_provider_workspace.procedures.organization_file import DashboardEntry
    from airflow_provider_workspace.state.leases import LeaseStore

log = logging.getLogger(__name__)

# The state of a task

KEY = "airflow_provider_workspace"
# Start of a retry that cannot read the state of the earlier try.
RETRY_BEGAN = "retry_began"
# Number of sends in this try.
SENDS = "sends"
# The try that sends, of those that were started.
LATEST_TRY = f"{KEY}.try"
# How long a try sends before it looks whether another one has begun, in seconds.
CHECK_SECONDS = 3.0


class TaskState:
    """
    What is remembered of a task: a value that survives its retries and killed workers.

    Airflow stores it since 3.3. Before, it lasts as long as the try, and a retry does not know what was begun.

    :param carried: plain JSON that the operator keeps across deferrals; holds the value before Airflow 3.3
    :param dry_run: whether to store nothing
    """

    def __init__(
        self,
        context: Mapping[str, Any],
        carried: MutableMapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        clock: Callable[[], float] = time.time,
        key: str = KEY,
    ) -> None:
        self._key = key
        self._store = None if dry_run else context.get("task_state_store")
        self._carried = {} if carried is None or dry_run else carried
        self._clock = clock
        try_number = int(getattr(context.get("ti"), "try_number", 1))  # int(), because tests pass mocks
        if self._store is None and not dry_run and try_number > 1:
            self._carried.setdefault(RETRY_BEGAN, clock())

    def read(self) -> Any:
        """Return the value of this try or an earlier one; ``None`` if there is none."""
        return self._carried.get(self._key) if self._store is None else self._store.get(self._key)

    def write(self, value: Any) -> None:
        """Store plain JSON."""
        if self._store is None:
            self._carried[self._key] = value
        else:
            self._store.set(self._key, value)

    def forget(self) -> None:
        """Delete the value."""
        if self._store is None:
            self._carried.pop(self._key, None)
        else:
            self._store.delete(self._key)

    def begin(self, what: str) -> None:
        """Note that a request is about to be sent, or may still be in progress."""
        self.write({"begun": what, "at": self._clock()})

    def take_over(self) -> Callable[..., None] | None:
        """
        Note that this try sends from now on; return the check that no other one has begun since, if there is one.

        A worker that was suspended may wake up when Airflow has started another try long ago. The check reads the note
        again if either clock says that the last look was some seconds ago, and raises ``AirflowFailException``.
        """
        store, token, lock, checked = self._store, uuid4().hex, threading.Lock(), _clocks()
        if store is None:
            return None
        store.set(LATEST_TRY, token)

        def check(*_: object) -> None:
            nonlocal checked
            with lock:  # of threads that wake up together, each must look
                clocks = _clocks()
                if all(abs(now - then) <= CHECK_SECONDS for now, then in zip(clocks, checked, strict=True)):
                    return
                # Airflow shows a try that was replaced nothing at all.
                if store.get(LATEST_TRY) != token:
                    raise AirflowFailException(
                        "See the log of the latest try: another try of this task has taken over. Nothing more was sent"
                    )
                checked = clocks

        return check

    def count_send(self) -> int:
        """Count one more send and return the number of sends in this try, deferrals included."""
        self._carried[SENDS] = self._carried.get(SENDS, 0) + 1
        sends: int = self._carried[SENDS]
        return sends

    def has_begun(self, what: str) -> bool:
        """Return whether this try or an earlier one noted that it sends this."""
        note = self.read()
        return isinstance(note, Mapping) and _words(note.get("begun")) == _words(what)

    def age(self, what: str) -> float | None:
        """
        Return how many seconds ago this may have been sent last; ``None`` if it certainly was not.

        A retry that cannot read the state of the earlier try counts from its own start. If the clock was set back since
        then, it counts from now, so that a wait ends.
        """
        begun, now = self.has_begun(what), self._clock()
        at: float | None = self.read()["at"] if begun else self._carried.get(RETRY_BEGAN)
        if at is None:
            return None
        if at > now and begun:
            self.begin(what)
        elif at > now:
            self._carried[RETRY_BEGAN] = now
        return max(0.0, now - at)


def _words(note: object) -> list[str]:
    """Return the words of a note for comparison; earlier releases noted ids as their authors wrote them."""
    return [canonical_text(word) for word in str(note).split()]


def _clocks() -> tuple[float, float]:
    """Return both clocks: one stands still while a machine is suspended, the other can be set back."""
    return time.monotonic(), time.time()


# The progress of a bulk invite, for the status page

# Key of its XCom.
PROGRESS = "progress"
# Minimum seconds between two writes.
SECONDS_BETWEEN_PROGRESS = 5.0


class CampaignNote:
    """
    A context manager that writes the progress of a bulk invite to an XCom every few seconds, and at the end.

    :param ti: the task instance; ``None`` outside of a task, where nothing is written
    :ivar report: the results so far
    """

    def __init__(self, ti: Any, organization_id: str) -> None:
        self.report = InvitesReport()
        self._ti = ti
        self._organization_id = organization_id
        self._log = ProgressLog("Invites")
        self._written = float("-inf")

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the final progress; a task that defers has written already."""
        if kind is None or issubclass(kind, WorkspaceError):
            self.write()

    def progress(self, done: int, total: int) -> None:
        """Log the progress, and write it unless that was done a few seconds ago."""
        self._log(done, total)
        if time.monotonic() - self._written >= SECONDS_BETWEEN_PROGRESS:
            self.write()

    def write(self, again_at: float | None = None) -> None:
        """Write the progress; ``again_at`` is the end of a wait in seconds since 1970."""
        self._written = time.monotonic()
        if self._ti is not None:
            self._ti.xcom_push(key=PROGRESS, value=self.value(time.time(), again_at))

    def value(self, now: float, again_at: float | None) -> dict[str, Any]:
        """Return plain JSON: ``counts``, rows that are ``left``, the wait, and rows that need a person."""
        counts = self.report.counts
        rows = counts.pop("rows")
        entries = self.report.entries
        named = [entry for entry in entries if entry.status in NEEDS_ATTENTION]
        return {
            "organization_id": self._organization_id,
            "rows": rows,
            "counts": {status: number for status, number in counts.items() if number},
            "left": rows - len(entries),
            "at": iso(now),
            "again_at": None if again_at is None else iso(again_at),
            "why": self.report.waits_for if again_at is not None else "",
            "needs_person": [entry.to_dict() for entry in named[:MAX_NAMED]],
        }


# Dashboards

# The keys that Airflow stores as they are: it cuts others, or refuses them when the dashboard is there.
KEYS = re.compile(r"[\w.:/ -]{1,250}", re.ASCII)
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
        variables: LeaseStore | None = None,
    ) -> None:
        if key and not KEYS.fullmatch(key):
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

    def is_used(self) -> bool:
        """Return whether anything is remembered, or a task is about to create the dashboard."""
        return self._read() is not None or bool(self._notes())

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
PREFIX = "workspace_dashboard_"


def variable_keys(organization_id: str, project: str, entry: DashboardEntry) -> list[str]:
    """Return the key of the Variable that remembers a dashboard of an organization file, then those of earlier ones."""
    from airflow_provider_workspace.procedures.find import project_key

    if entry.variable_key:
        return [entry.variable_key]
    names = [project_key(project), project_key(entry.name)]
    readable = "_".join(re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-") for name in names)
    return [f"{PREFIX}{readable}_{digest(each, *names)[:8]}" for each in spellings(organization_id)]


def organization_reader(
    client: WorkspaceClient,
    organization_id: str,
    store: Callable[[], LeaseStore] | None = VariableStore,
    owner: tuple[str, int] = ("", 1),
) -> OrganizationReader:
    """
    Return the reader of an organization.

    :param store: makes the store of Variables; ``None`` where none can be read
    :param owner: the task's try
    """
    from airflow_provider_workspace.hooks.files import file_at
    from airflow_provider_workspace.procedures.organization import OrganizationReader

    settings, variables = client.settings, store and store()
    leases = LeaseRegistry(variables) if variables else None

    def dashboards(project: str, project_id: object, entry: DashboardEntry, *how: Any) -> DashboardRegistry:
        identity = DashboardIdentity(settings.base_url, str(project_id), organization_id, entry.name)
        found = [DashboardRegistry(key, identity, *how) for key in variable_keys(organization_id, project, entry)]
        return next(filter(DashboardRegistry.is_used, found), found[0])

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


def remembered_dashboards(organization_id: str, settings: Settings, store: LeaseStore) -> dict[str, dict[str, str]]:
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
