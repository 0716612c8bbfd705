"""
Leases: which maintenance window holds which batch export, since when, and until when at the latest.

Each lease is an Airflow Variable of its own, so that no two windows write the same one. Its key names window and
export; its value is plain JSON. Who may resume what follows from leases alone: see ``docs/adr/0014``.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from airflow_provider_workspace.errors import WorkspaceError, with_problem
from airflow_provider_workspace.notes.note import EndingNote, EndTime, Text, Time, digest
from airflow_provider_workspace.notes.registry import NoteRegistry
from airflow_provider_workspace.notes.store import NoteStore
from airflow_provider_workspace.version_compat import COMMAND

log = logging.getLogger(__name__)

# Airflow cuts no key, encodes none, and MySQL ignores the case: hence digests in place of run ids.
LEASE_PREFIX = "workspace_lease."
# The Variable with the time of the last sweep, and with what each window was then.
SWEEP = "workspace_window_sweep"
# States of a run that is not over.
ACTIVE_RUN_STATES = ["queued", "running"]
# How far ahead a request without an answer may take effect: the largest consistency_time, and an hour for the clocks.
MAX_LATE = 90_000.0
# How far apart the clocks of two workers may be, in seconds.
CLOCK_DIFFERENCE = 60.0


class WindowClosedError(WorkspaceError):
    """The window was closed meanwhile, such as by the guard or the sweep."""

    general_problem = "window-not-open"


@dataclass(frozen=True, slots=True)
class Window:
    """
    A maintenance window: a Dag run and the task in it that closes the window.

    :param map_index: index in a mapped task group; -1 outside of one
    """

    dag_id: str
    run_id: str
    close_task_id: str
    map_index: int = -1

    @property
    def id(self) -> str:
        """A short name, for keys."""
        return digest(self.dag_id, self.run_id, self.close_task_id, str(self.map_index))

    @property
    def key(self) -> str:
        """The prefix of the Variable keys of all leases of the window."""
        return f"{LEASE_PREFIX}{self.id}."

    def __str__(self) -> str:
        """Return its name for people."""
        name = f"{self.dag_id} / {self.run_id} / {self.close_task_id}"
        return f"{name} [{self.map_index}]" if self.map_index >= 0 else name


def _not_far_ahead(late_until: float) -> float:
    if late_until > time.time() + MAX_LATE:
        raise ValueError("it is more than a day ahead")
    return late_until


# What ``state_of`` shows of an export.
Seen = Literal["paused", "running", "unknown"]
Late = Annotated[Time, AfterValidator(_not_far_ahead)]


class Lease(EndingNote):
    """
    The hold of a window on an export. Times are seconds since 1970, and ISO 8601 in the Variable.

    Fields that a newer release of this package adds are ignored.

    :param service: base URL of the service
    :param owner: owner of the task that opened the window
    :param state: ``opening`` until the export is paused, ``closing`` as soon as a resume is about to be sent
    :param since: when the window was opened
    :param until: when the window is overdue
    :param leave_paused: whether the export stays paused when the window closes
    :param resume_fields: fields of the resume request besides those of the interface
    :param paused_at: when the service first confirmed the pause; ``None`` if it never did
    :param resumed_at: when the service confirmed the resume for this window
    :param late_pause_until: time until which a pause without an answer may take effect
    :param late_resume_until: time until which a resume without an answer may take effect
    :param resume_in_doubt: whether a request to resume had no answer, so that the service may have resumed without
        reading ``resume_fields`` of the next one
    :param state_of: name of what reads whether the export is paused; ``None`` if nothing does
    :param paused_before: whether the export was paused before the window, and stays so
    :param seen: what ``state_of`` showed last; ``None`` if nobody has read it
    :param seen_at: when that was
    :param refused: why the service refused to pause the export
    :param closer: the task and try that resumes it
    :param exports: number of exports of the window; 0 if it is not known
    :param work_task_ids: all tasks of the work, whose end is the end of the work
    """

    model_config = ConfigDict(frozen=True, strict=True)

    dag_id: Text
    run_id: Text
    close_task_id: Text
    map_index: int = -1
    group_id: str = ""
    owner: str = ""
    service: Text
    workspace_conn_id: Text
    organization_id: Text
    batch_export_id: Text
    state: Literal["opening", "paused", "closing"] = "opening"
    since: Time
    until: EndTime
    leave_paused: bool = False
    resume_fields: dict[str, Any] | None = None
    paused_at: Time | None = None
    resumed_at: Time | None = None
    late_pause_until: Late | None = None
    late_resume_until: Late | None = None
    resume_in_doubt: bool = False
    state_of: Text | None = None
    paused_before: bool = False
    seen: Seen | None = None
    seen_at: Time | None = None
    refused: str | None = None
    closer: str | None = None
    exports: int = 0
    work_task_ids: list[str] = Field(default_factory=list[str])

    @property
    def window(self) -> Window:
        """The window that holds it."""
        return Window(self.dag_id, self.run_id, self.close_task_id, self.map_index)

    @property
    def export_key(self) -> str:
        """The suffix of the Variable keys of all leases of the export."""
        return export_key(self.service, self.organization_id, self.batch_export_id)

    @property
    def key(self) -> str:
        """The key of its Variable."""
        return self.window.key + self.export_key

    @property
    def never_paused(self) -> bool:
        """Whether this window certainly did not pause the export."""
        if self.state != "opening":
            return False
        return self.paused_at is None and self.late_pause_until is None

    @property
    def stays_paused(self) -> bool:
        """Whether the export stays paused when the window closes."""
        return self.leave_paused or self.paused_before

    @property
    def late_until(self) -> float:
        """Time until which any request without an answer may take effect; 0 if there is none."""
        return max(self.late_pause_until or 0.0, self.late_resume_until or 0.0)

    def resuming(self, now: float) -> bool:
        """Return whether a request to resume may be under way."""
        return self.state == "closing" and (self.late_resume_until or 0.0) > now

    def opened_after(self, earlier: Lease) -> Lease:
        """Return the lease of a window that opens again, with what an earlier try may have left in progress."""
        kept: dict[str, object] = {
            "paused_at": earlier.paused_at,
            "paused_before": earlier.paused_before,
            "late_pause_until": earlier.late_pause_until,
            "late_resume_until": earlier.late_resume_until,
        }
        # Somebody may have cleared the task that opens the window alone, while the work runs.
        if earlier.state == "paused":
            kept["state"] = "paused"
        return self.model_copy(update=kept)

    def contradicts_resumed_at(self, now: float) -> bool:
        """Return whether it was not resumed then: nobody resumes it, it was paused later, or the time is to come."""
        if self.resumed_at is None:
            return False
        if self.state != "closing" or not self.closer:
            return True
        if self.paused_at is not None and self.resumed_at < self.paused_at:
            return True
        return self.resumed_at >= now + CLOCK_DIFFERENCE


class WindowRecord(BaseModel):
    """
    What a window was at a sweep.

    :param text: what the window is, for people
    :param since: when a sweep first saw the reason
    :param lease: the newest lease; ``None`` if it is not known
    """

    state: str
    why: str
    text: str = ""
    since: Time
    lease: Lease | None = None


class SweepRecord(BaseModel):
    """
    When the last sweep was, and what it saw.

    :param at: when it was; ``None`` if there was none
    :param windows: by :attr:`Window.id`
    :param unsaid: the windows that a sweep was about to close, and of which it has not told yet, for people
    """

    at: Time | None = None
    windows: dict[str, WindowRecord] = {}
    unsaid: list[str] = []


@dataclass(frozen=True)
class Run:
    """
    What Airflow knows about the run of a window.

    :param state: whether the run is active, over or gone
    :param tasks: states by task id; the ids of mapped tasks end with their index
    """

    state: Literal["active", "over", "gone"] = "active"
    tasks: Mapping[str, Any] | None = None

    def states(self, task_id: str, index: str) -> list[str | None]:
        """Return the states of a task; ``index`` is a pattern of the end of its id."""
        name = re.compile(re.escape(task_id) + index)
        tasks = self.tasks or {}
        states = [state for key, state in tasks.items() if name.fullmatch(key)]
        return [getattr(state, "value", state) for state in states]


class LeaseStore(NoteStore, Protocol):
    """Stores leases, and knows the runs that hold them."""

    def run(self, window: Window, task_ids: Iterable[str]) -> Run:
        """Return the run of a window, with the states of its closing task and of other tasks."""
        ...


class LeaseRegistry(NoteRegistry[Lease, LeaseStore]):
    """Reads and writes leases."""

    model = Lease

    @classmethod
    def load(cls, key: str, text: str) -> Lease:
        """
        Parse the value of a Variable, without a ``resumed_at`` that its other fields contradict.

        :raises ValueError: if it is not a lease, or that of another key, under which changes would be written
        """
        lease = super().load(key, text)
        if not lease.contradicts_resumed_at(time.time()):
            return lease
        log.warning("The Variable '%s' contradicts itself: its resumed_at is ignored, and the export resumed.", key)
        return lease.model_copy(update={"resumed_at": None})

    @staticmethod
    def describe_unreadable(key: str, why: str) -> str:
        export_id = _export_id_of(key)
        reason = why.rstrip(".")
        if export_id:
            lease = f"The lease of batch export {export_id}"
            first = f"run '{COMMAND} resume {export_id}'"
        else:
            lease = "A lease whose Variable names no export"
            first = "look in the workspace whether an export is paused"
        msg = (
            f"{lease} cannot be read: {reason}. If no closing task of its window is left to repair it, {first} first, "
            f"then delete the Variable '{key}'."
        )
        return with_problem(msg, "lease-unreadable")

    def all(self, *, window: Window | None = None, skip_failed: bool = False) -> list[Lease]:
        """
        Return the leases, the oldest first, without Variables that are not a lease; see :meth:`find`.

        :param window: return only the leases of this window
        """
        prefix = window.key if window else LEASE_PREFIX
        leases = self.find(prefix, skip_failed=skip_failed)
        return sorted(leases, key=lambda lease: (lease.since, lease.key))

    def keys_of(self, export_key: str) -> list[str]:
        """Return the keys of all leases of an export; see :func:`export_key`."""
        return self.keys(LEASE_PREFIX, export_key)

    def other_keys(self, lease: Lease) -> list[str]:
        """Return the keys of the leases of other windows on the same export."""
        own_prefix = lease.window.key
        return [key for key in self.keys_of(lease.export_key) if not key.startswith(own_prefix)]

    def pausing(self, lease: Lease) -> list[Lease]:
        """Return the leases of other windows that may have paused the export."""
        others = self.read_all(self.other_keys(lease))
        return [other for other in others if not other.never_paused]

    def windows_holding(self, export_key: str) -> list[str]:
        """Return the windows that have a lease on an export, or its key if unreadable; see :func:`export_key`."""
        holders = []
        for key in self.keys_of(export_key):
            lease = self.read(key)
            holders.append(str(lease.window) if lease else key)
        return holders

    def add(self, lease: Lease) -> None:
        """Write the lease of a window that opens; keep what an earlier try may have left in progress."""
        earlier = self.read(lease.key)
        if earlier is not None:
            lease = lease.opened_after(earlier)
        self.store.add(lease.key, dump(lease))

    def update(self, lease: Lease, **changes: Any) -> Lease:
        """
        Change a lease that nobody else closes.

        :raises WindowClosedError: if another task closes the window or has closed it
        """
        if not self._is_still_closed_by(lease):
            raise WindowClosedError(
                f"The window was closed meanwhile: batch export {lease.batch_export_id} is not held ({lease.window}).",
                problem="window-not-open",
            )
        return self.change(lease, **changes)

    def change(self, lease: Lease, /, **changes: Any) -> Lease:
        """Change a lease, whoever closes it, such as to become its closer."""
        changed = lease.model_copy(update=changes)
        self.store.write(lease.key, dump(changed))
        return changed

    def remove(self, lease: Lease) -> None:
        """Delete a lease unless another task closes it."""
        if self._is_still_closed_by(lease):
            self.store.delete(lease.key)

    def _is_still_closed_by(self, lease: Lease) -> bool:
        """Return whether a lease is there, and its closer is the one that was read."""
        current = self.read(lease.key)
        return current is not None and current.closer == lease.closer

    def record_sweep(self, record: SweepRecord) -> None:
        """Write what a sweep saw."""
        self.store.write(SWEEP, record.model_dump_json(exclude_none=True))

    def last_sweep(self) -> SweepRecord:
        """Return what the last sweep saw; an empty record if there was none, or if a person has edited it."""
        with suppress(ValueError):
            text = self.store.read(SWEEP) or "{}"
            return SweepRecord.model_validate_json(text)
        return SweepRecord()


def export_key(service: str, organization_id: str, batch_export_id: str) -> str:
    """Return the suffix of the Variable keys of all leases of an export."""
    organization = digest(service, organization_id)[:12]
    return f"{batch_export_id}.{organization}"


def dump(lease: Lease) -> str:
    """Return the value of a Variable."""
    return json.dumps(lease.to_dict())


def window_of(key: str) -> str:
    """Return the :attr:`Window.id` in the key of a lease."""
    window_id, _, _ = key.removeprefix(LEASE_PREFIX).partition(".")
    return window_id


def _export_id_of(key: str) -> str:
    """Return the export in the key of a lease; an empty string if it names none."""
    _, _, of_export = key.removeprefix(LEASE_PREFIX).partition(".")
    export_id, _, _ = of_export.rpartition(".")
    return export_id
