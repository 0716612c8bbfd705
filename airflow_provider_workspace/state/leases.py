"""
Leases: which maintenance window holds which batch export, since when, and until when at the latest.

Each lease is an Airflow Variable of its own, so that no two windows write the same one. Its key names window and
export; its value is plain JSON. Who may resume what follows from leases alone: see ``docs/adr/0014``.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
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
# Says when the sweep ran last.
SWEEP = "workspace_window_sweep"
STATES = ("opening", "paused", "closing")
TIMES = frozenset({"since", "until", "paused_at", "resumed_at", "late_pause_until", "late_resume_until"})


class WindowClosedError(WorkspaceError):
    """Somebody else, such as the guard or the sweep, has closed the window meanwhile."""


@dataclass(frozen=True, slots=True)
class Window:
    """
    A window: a run of a Dag, and the task that closes it there.

    :param map_index: which one it is in a mapped task group; -1 outside of one
    """

    dag_id: str
    run_id: str
    close_task_id: str
    map_index: int = -1

    @property
    def key(self) -> str:
        """The part of a Variable's key that is the same for all leases of the window."""
        return f"{PREFIX}{digest(self.dag_id, self.run_id, self.close_task_id, str(self.map_index))}."

    def __str__(self) -> str:
        """Return what people call it."""
        index = f" [{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id} / {self.run_id} / {self.close_task_id}{index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """
    What a window holds of an export. Times are seconds since 1970, and ISO 8601 in the Variable.

    :param service: base URL of the service
    :param owner: whom to ask: the owner of the task that opened the window
    :param state: ``opening`` until the export is paused, ``closing`` as soon as somebody resumes it
    :param until: when the window is over at the latest, whatever its tasks do
    :param resume_fields: what the request that resumes carries besides the fields of the interface
    :param paused_at: when the service first said that it paused the export; ``None`` if it never did
    :param resumed_at: when the service said that it resumed the export for this window
    :param late_pause_until: until then a pause whose answer is missing may take effect
    :param late_resume_until: the same of a resume
    :param refused: why the service refused to pause the export
    :param closer: which try of which task resumes it
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
        """The end of a Variable's key that is the same for all leases of the export."""
        return f"{self.batch_export_id}.{digest(self.service, self.organization_id.strip().lower())[:12]}"

    @property
    def key(self) -> str:
        """The key of its Variable."""
        return self.window.key + self.export_key

    @property
    def never_paused(self) -> bool:
        """Whether this window cannot have paused the export."""
        return self.paused_at is None and self.late_pause_until is None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, without what is not set."""
        fields = {name: getattr(self, name) for name in FIELDS}
        return {name: iso(value) if name in TIMES else value for name, value in fields.items() if value is not None}

    @classmethod
    def from_dict(cls, value: object) -> Lease:
        """
        Read what :meth:`to_dict` returned; fields that a newer release of this package adds are left out.

        :raises ValueError: saying what is wrong with it
        """
        if not isinstance(value, Mapping):
            msg = f"it is {type(value).__name__}, not an object"
            raise ValueError(msg)  # noqa: TRY004 - one error for all that is wrong with a record
        given = {name: value[name] for name in FIELDS if name in value}
        missing = [name for name in REQUIRED if not (isinstance(given.get(name), str) and given[name])]
        if missing or given.get("state") not in STATES:
            msg = f"it has no usable {', '.join(missing or ['state'])}"
            raise ValueError(msg)
        return cls(**{**given, **{name: seconds(name, given[name]) for name in TIMES if given.get(name) is not None}})


FIELDS = [field.name for field in dataclasses.fields(Lease)]
REQUIRED = [field.name for field in dataclasses.fields(Lease) if field.default is dataclasses.MISSING]


class LeaseStore(Protocol):
    """What leases need of Airflow; tests have one in memory, and the command line reads the database."""

    def list_keys(self) -> list[str]:
        """Return the keys of all leases."""
        ...

    def read(self, key: str) -> str | None:
        """Return a value; ``None`` only if it is certain that there is none."""
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
        """Say why a window cannot close itself any more; ``None`` if it can."""
        ...


class LeaseRegistry:
    """
    Reads and writes leases.

    :param store: where they are
    """

    def __init__(self, store: LeaseStore) -> None:
        self.store = store
        self.unreadable: dict[str, str] = {}
        """Keys of Variables that hold no lease, and what is wrong with each."""

    def all(self, *, window: Window | None = None, skip_failed: bool = False) -> list[Lease]:
        """
        Return the leases, the oldest first; a Variable of another shape is named and skipped.

        :param window: only those of this window
        :param skip_failed: whether to name and skip a Variable that Airflow cannot read, such as an encrypted one whose
            Fernet key is gone
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
        """Return the keys of the leases that other windows have of the same export."""
        ours = lease.window.key
        return [
            key
            for key in self.store.list_keys()
            if key.startswith(PREFIX) and key.endswith(lease.export_key) and not key.startswith(ours)
        ]

    def read_all(self, keys: Iterable[str]) -> list[Lease]:
        """Return the leases of keys; without those that are gone by now, and without what is no lease."""
        return [lease for lease in map(self.read, keys) if lease is not None]

    def read(self, key: str) -> Lease | None:
        """Return the lease of a key; ``None`` if there is none."""
        text = self.store.read(key)
        if text is None:
            return None
        try:
            return load(text)
        except (ValueError, TypeError, RecursionError) as error:
            self.unreadable[key] = str(error)
            log.warning("The Variable '%s' is no lease of a maintenance window and is skipped: %s.", key, error)
            return None

    def add(self, lease: Lease) -> None:
        """Write the lease of a window that opens; what an earlier try of the run has left to come is kept."""
        earlier = self.read(lease.key)
        if earlier is not None:
            kept = {name: getattr(earlier, name) for name in ("paused_at", "late_pause_until", "late_resume_until")}
            lease = dataclasses.replace(lease, **kept)
        self.store.add(lease.key, dump(lease))

    def update(self, lease: Lease, **changes: Any) -> Lease:
        """
        Change a lease, unless somebody else has closed the window, or closes it.

        :raises WindowClosedError: if so
        """
        current = self.read(lease.key)
        if current is None or current.closer != lease.closer:
            msg = f"The window {lease.window} was closed meanwhile: batch export {lease.batch_export_id} is not held."
            raise WindowClosedError(msg)
        changed = dataclasses.replace(lease, **changes)
        self.store.write(lease.key, dump(changed))
        return changed

    def claim(self, lease: Lease, closer: str, **changes: Any) -> Lease:
        """Change a lease as the one who closes it from now on."""
        changed = dataclasses.replace(lease, closer=closer, **changes)
        self.store.write(lease.key, dump(changed))
        return changed

    def remove(self, lease: Lease) -> None:
        """Give a lease up; whether somebody else has, does not matter."""
        current = self.read(lease.key)
        if current is not None and current.closer == lease.closer:
            self.store.delete(lease.key)

    def note_sweep(self, now: float) -> None:
        """Write down that the sweep has run."""
        self.store.write(SWEEP, iso(now))

    def last_sweep(self) -> float | None:
        """Return when the sweep ran last; ``None`` if it never did."""
        text = self.store.read(SWEEP)
        try:
            return seconds(SWEEP, text)
        except ValueError:
            return None


def why_abandoned(store: LeaseStore, lease: Lease, now: float) -> str | None:
    """Say why a window will not close itself any more, or not in time; ``None`` if it is at work."""
    if now >= lease.until:
        return f"overdue since {iso(lease.until)}"
    return store.why_over(lease.window)


def still_holding(store: LeaseStore, others: list[Lease], clock: Callable[[], float]) -> list[Lease]:
    """Return the leases of those windows that hold their export: they have paused it and will resume it."""
    return [other for other in others if other.state == "paused" and why_abandoned(store, other, clock()) is None]


def dump(lease: Lease) -> str:
    """Return the value of a Variable."""
    return json.dumps(lease.to_dict())


def load(text: str) -> Lease:
    """
    Read the value of a Variable.

    :raises ValueError: saying what is wrong with it
    """
    return Lease.from_dict(json.loads(text))


@cache
def digest(*parts: str) -> str:
    """Return what stands for some texts in a key."""
    return sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:20]


def iso(time: float) -> str:
    """Write a time as people read it."""
    return datetime.fromtimestamp(time, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(name: str, text: object) -> float:
    """
    Read a time.

    :raises ValueError: if it is none
    """
    try:
        time = datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        time = math.nan
    if not math.isfinite(time):
        msg = f"its {name} is no time"
        raise ValueError(msg)
    return time
