"""
Leases: which maintenance window holds which batch export, since when, and until when at the latest.

Each lease is an Airflow Variable of its own, so that no two windows write the same one. Its key names window and
export; its value is plain JSON. Who may resume what follows from leases alone: see ``docs/adr/0014``.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from hashlib import sha256
from typing import Any, Literal, Protocol

from airflow_provider_workspace.errors import WorkspaceError

log = logging.getLogger(__name__)

# Airflow takes keys of up to 250 characters and encodes none: hence digests in place of run ids.
PREFIX = "workspace_lease."
# The Variable with the time of the last sweep.
SWEEP = "workspace_window_sweep"
STATES = ("opening", "paused", "closing")
TIMES = frozenset({"since", "until", "paused_at", "resumed_at", "late_pause_until", "late_resume_until"})


class WindowClosedError(WorkspaceError):
    """The window was closed meanwhile, such as by the guard or the sweep."""


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
    def key(self) -> str:
        """The prefix of the Variable keys of all leases of the window."""
        return f"{PREFIX}{digest(self.dag_id, self.run_id, self.close_task_id, str(self.map_index))}."

    def __str__(self) -> str:
        """Return its name for people."""
        index = f" [{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id} / {self.run_id} / {self.close_task_id}{index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """
    The hold of a window on an export. Times are seconds since 1970, and ISO 8601 in the Variable.

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
    :param refused: why the service refused to pause the export
    :param closer: the task and try that resumes it
    """

    dag_id: str
    run_id: str
    close_task_id: str
    map_index: int = -1
    group_id: str = ""
    owner: str = ""
    service: str
    workspace_conn_id: str
    organization_id: str
    batch_export_id: str
    state: Literal["opening", "paused", "closing"] = "opening"
    since: float
    until: float
    leave_paused: bool = False
    resume_fields: dict[str, Any] | None = None
    paused_at: float | None = None
    resumed_at: float | None = None
    late_pause_until: float | None = None
    late_resume_until: float | None = None
    refused: str | None = None
    closer: str | None = None

    @property
    def window(self) -> Window:
        """The window that holds it."""
        return Window(self.dag_id, self.run_id, self.close_task_id, self.map_index)

    @property
    def export_key(self) -> str:
        """The suffix of the Variable keys of all leases of the export."""
        return f"{self.batch_export_id}.{digest(self.service, self.organization_id.strip().lower())[:12]}"

    @property
    def key(self) -> str:
        """The key of its Variable."""
        return self.window.key + self.export_key

    @property
    def never_paused(self) -> bool:
        """Whether this window certainly did not pause the export."""
        return self.paused_at is None and self.late_pause_until is None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, without what is not set."""
        fields = {name: getattr(self, name) for name in FIELDS}
        return {name: iso(value) if name in TIMES else value for name, value in fields.items() if value is not None}

    @classmethod
    def from_dict(cls, value: object) -> Lease:
        """
        Parse what :meth:`to_dict` returned; fields that a newer release of this package adds are ignored.

        :raises ValueError: if it is not a lease
        """
        if not isinstance(value, Mapping):
            raise ValueError(f"it is {type(value).__name__}, not an object")  # noqa: TRY004 - one error type for invalid leases
        given = {name: value[name] for name in FIELDS if name in value}
        missing = [name for name in REQUIRED if not (isinstance(given.get(name), str) and given[name])]
        if missing or given.get("state") not in STATES:
            raise ValueError(f"it has no usable {', '.join(missing or ['state'])}")
        return cls(
            **{**given, **{name: parse_time(name, given[name]) for name in TIMES if given.get(name) is not None}}
        )


FIELDS = [field.name for field in dataclasses.fields(Lease)]
REQUIRED = [field.name for field in dataclasses.fields(Lease) if field.default is dataclasses.MISSING]


class LeaseStore(Protocol):
    """Stores leases: in Variables, in Airflow's database for the command line, in memory for tests."""

    def list_keys(self) -> list[str]:
        """Return the keys of all leases."""
        ...

    def read(self, key: str) -> str | None:
        """Return a value; ``None`` only if there certainly is none."""
        ...

    def add(self, key: str, value: str) -> None:
        """Write a value whose key may be new."""
        ...

    def write(self, key: str, value: str) -> None:
        """Replace a value."""
        ...

    def delete(self, key: str) -> None:
        """Delete a value; one that is gone is no error."""
        ...

    def why_over(self, window: Window) -> str | None:
        """Return why a window cannot close itself any more; ``None`` if it can."""
        ...


class LeaseRegistry:
    """Reads and writes leases."""

    def __init__(self, store: LeaseStore) -> None:
        self.store = store
        self.unreadable: dict[str, str] = {}
        """Keys of Variables that are not a lease or cannot be read, and why."""

    def all(self, *, window: Window | None = None, skip_failed: bool = False) -> list[Lease]:
        """
        Return the leases, the oldest first, without Variables that are not a lease.

        :param window: return only the leases of this window
        :param skip_failed: whether to skip a Variable that Airflow cannot read, such as one whose Fernet key is gone
        :raises WorkspaceError: if Airflow cannot read a Variable that it lists
        """
        found: list[Lease | None] = []
        for key in self.store.list_keys():
            if not key.startswith(window.key if window else PREFIX):
                continue
            try:
                found.append(self.read(key))
            except WorkspaceError as error:
                if not skip_failed:
                    raise
                self.unreadable[key] = str(error)
                log.warning("%s", error)
        return sorted(filter(None, found), key=lambda lease: (lease.since, lease.key))

    def other_keys(self, lease: Lease) -> list[str]:
        """Return the keys of the leases of other windows on the same export."""
        ours = lease.window.key
        return [
            key
            for key in self.store.list_keys()
            if key.startswith(PREFIX) and key.endswith(lease.export_key) and not key.startswith(ours)
        ]

    def read_all(self, keys: Iterable[str]) -> list[Lease]:
        """Return the leases of keys, without those that are gone and without Variables that are not a lease."""
        return [lease for lease in map(self.read, keys) if lease is not None]

    def read(self, key: str) -> Lease | None:
        """Return the lease of a key; ``None`` if there is none."""
        text = self.store.read(key)
        if text is None:
            return None
        try:
            return load(key, text)
        except (ValueError, TypeError, RecursionError) as error:
            self.unreadable[key] = str(error)
            log.warning("Skipping the Variable '%s', which is not a lease of a maintenance window: %s.", key, error)
            return None

    def add(self, lease: Lease) -> None:
        """Write the lease of a window that opens; keep what an earlier try may have left in progress."""
        earlier = self.read(lease.key)
        if earlier is not None:
            kept = {name: getattr(earlier, name) for name in ("paused_at", "late_pause_until", "late_resume_until")}
            lease = dataclasses.replace(lease, **kept)
        self.store.add(lease.key, dump(lease))

    def update(self, lease: Lease, **changes: Any) -> Lease:
        """
        Change a lease that nobody else closes.

        :raises WindowClosedError: if another task closes the window or has closed it
        """
        current = self.read(lease.key)
        if current is None or current.closer != lease.closer:
            raise WindowClosedError(
                f"The window {lease.window} was closed meanwhile: batch export {lease.batch_export_id} is not held."
            )
        changed = dataclasses.replace(lease, **changes)
        self.store.write(lease.key, dump(changed))
        return changed

    def claim(self, lease: Lease, closer: str, **changes: Any) -> Lease:
        """Change a lease, and become its closer."""
        changed = dataclasses.replace(lease, closer=closer, **changes)
        self.store.write(lease.key, dump(changed))
        return changed

    def remove(self, lease: Lease) -> None:
        """Delete a lease unless another task closes it."""
        current = self.read(lease.key)
        if current is not None and current.closer == lease.closer:
            self.store.delete(lease.key)

    def note_sweep(self, now: float) -> None:
        """Record the time of a sweep."""
        self.store.write(SWEEP, iso(now))

    def last_sweep(self) -> float | None:
        """Return the time of the last sweep; ``None`` if there was none."""
        text = self.store.read(SWEEP)
        try:
            return parse_time(SWEEP, text)
        except ValueError:
            return None


def why_abandoned(store: LeaseStore, lease: Lease, now: float) -> str | None:
    """Return why a window is abandoned; ``None`` if it is not."""
    if now >= lease.until:
        return f"overdue since {iso(lease.until)}"
    return store.why_over(lease.window)


def still_holding(store: LeaseStore, others: list[Lease], clock: Callable[[], float]) -> list[Lease]:
    """Return the leases that hold their export: its window paused it and will resume it."""
    return [other for other in others if other.state == "paused" and why_abandoned(store, other, clock()) is None]


def dump(lease: Lease) -> str:
    """Return the value of a Variable."""
    return json.dumps(lease.to_dict())


def load(key: str, text: str) -> Lease:
    """
    Parse the value of a Variable.

    :raises ValueError: if it is not a lease, or that of another key, under which changes would be written
    """
    lease = Lease.from_dict(json.loads(text))
    if lease.key != key:
        raise ValueError("its fields are those of another key")
    return lease


@cache
def digest(*parts: str) -> str:
    """Return a digest of some texts for a key."""
    return sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:20]


def iso(time: float) -> str:
    """Format a time as ISO 8601."""
    return datetime.fromtimestamp(time, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(name: str, text: object) -> float:
    """
    Parse a time in ISO 8601, in UTC if it names no time zone, such as one that a person has edited.

    :raises ValueError: if it is invalid, or not within the years that :func:`iso` can write
    """
    try:
        when = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
        time = (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
        iso(time)
    except (ValueError, OverflowError):
        raise ValueError(f"its {name} is not a time") from None
    return time
