"""Find the windows that are overdue or abandoned, close them, and describe what was done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.errors import with_problem
from airflow_provider_workspace.notes.due_notes import Ended
from airflow_provider_workspace.notes.leases import LeaseRegistry, SweepRecord, WindowRecord, window_of
from airflow_provider_workspace.windows.requests import LeaseHooks
from airflow_provider_workspace.windows.resuming import Closed, Closer, still_paused_error
from airflow_provider_workspace.windows.window_state import WORK_ENDED, find_states, holders_of, state_as_far_as_known

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Lease, Window
    from airflow_provider_workspace.windows.window_state import WindowState

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SweptWindow:
    """
    A window that a sweep has closed, or would close.

    :param state: what it was before
    :param closed: the results for its exports
    :param would_resume: exports that a dry run would resume; ``None`` unless it is one
    """

    window: Window
    state: WindowState
    closed: Closed
    would_resume: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        found = {
            "window": str(self.window),
            **asdict(self.window),
            "state": self.state.name,
            "why": self.state.why,
            **self.closed.to_dict(),
        }
        if self.would_resume is not None:
            found["would_resume"] = list(self.would_resume)
        return found


@dataclass(frozen=True)
class Sweep:
    """
    The result of a sweep.

    :param windows: the windows that were closed, or would be
    :param records: what each window is, by :attr:`Window.id`, for the record of the sweep
    :param unreadable: Variables that are no leases, and why
    :param stuck: those of them that no closing task will repair, as far as is known
    :param unsaid: the windows that a sweep before this one was about to close when it was cut off, for people
    """

    windows: tuple[SweptWindow, ...]
    records: dict[str, WindowRecord]
    unreadable: dict[str, str]
    stuck: dict[str, str]
    unsaid: tuple[str, ...] = ()

    @property
    def failed(self) -> dict[str, Exception]:
        """The exports that could not be resumed, and why."""
        failed: dict[str, Exception] = {}
        for swept in self.windows:
            failed.update(swept.closed.failed)
        return failed

    @property
    def resumed(self) -> list[str]:
        """The exports that were resumed."""
        return [export_id for swept in self.windows for export_id in swept.closed.resumed]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        windows = [swept.to_dict() for swept in self.windows]
        return {"windows": windows, "unreadable": self.unreadable}

    def __str__(self) -> str:
        """Return it for people; an empty string if there is nothing to say."""
        cut_off = [f"An earlier sweep was about to close {window} when it was cut off." for window in self.unsaid]
        return "\n".join(filter(None, [*cut_off, describe_sweep(self.windows, self.unreadable)]))


def sweep_windows(closer: Closer, *, at_once: bool = False, dry_run: bool = False) -> Sweep:
    """
    Close the windows that are overdue or abandoned, never one that is open.

    :param at_once: whether to close also a window whose work has just ended, instead of waiting for its closing task
    :param dry_run: whether to write and send nothing, and return which windows would be closed
    """
    registry = closer.registry
    records = _Records(registry, closer.clock)
    abandoned = _abandoned_windows(registry, records, at_once=at_once)
    if dry_run:
        windows = _preview(registry, list(abandoned), closer.clock)
    else:
        windows = [_close(closer, records, state, leases) for state, leases in abandoned]
        closer.prove_resumed()
    records.add_unreadable()
    unsaid = tuple(records.last.unsaid)
    return Sweep(tuple(windows), records.found, dict(registry.unreadable), records.stuck(), unsaid)


@dataclass
class _Records:
    """
    What each window is, with since when a sweep sees the reason.

    :ivar last: what the last sweep saw
    :ivar found: what this one sees, by :attr:`Window.id`
    :ivar unsaid: the windows that this one closes, for people
    """

    registry: LeaseRegistry
    clock: Callable[[], float]
    last: SweepRecord = field(init=False)
    found: dict[str, WindowRecord] = field(default_factory=dict)
    unsaid: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.last = self.registry.last_sweep()

    def add(self, state: WindowState, lease: Lease) -> None:
        """Record a window; ``lease`` is its newest."""
        window_id = lease.window.id
        before = self.last.windows.get(window_id)
        since = before.since if before and before.why == state.why else self.clock()
        record = WindowRecord(state=state.name, why=state.why, text=str(state), since=since, lease=lease)
        self.found[window_id] = record

    def begin(self, window: str) -> None:
        """Note that a window is about to be closed: its lease is gone then, and who closes it may be killed."""
        self.unsaid.append(window)
        unsaid = list(dict.fromkeys([*self.last.unsaid, *self.unsaid]))
        record = self.last.model_copy(update={"unsaid": unsaid})
        try:
            self.registry.record_sweep(record)
        except Exception:  # a paused export is worse than a sweep that is not noted
            why = f"{window} is about to be closed. If this sweep dies now, no error names it"
            msg = f"The Variable of the sweep does not hold what was noted: {why}"
            log.exception("%s", with_problem(msg, "note-not-kept"))

    def add_unreadable(self) -> None:
        """Record the windows without a readable lease of which the last sweep knows more."""
        window_ids = {window_of(key) for key in self.registry.unreadable}
        for window_id in window_ids & self.last.windows.keys() - self.found.keys():
            lease = self.last.windows[window_id].lease
            if lease is not None:
                state = state_as_far_as_known(self.registry, [lease], self.clock())
                self.add(state, lease)

    def stuck(self) -> dict[str, str]:
        """Return the unreadable Variables that no closing task will repair, as far as is known, and why."""
        stuck: dict[str, str] = {}
        for key, why in self.registry.unreadable.items():
            record = self.found.get(window_of(key))
            if record is None or record.state in ("overdue", "abandoned"):
                stuck[key] = why
        return stuck


def _abandoned_windows(
    registry: LeaseRegistry, records: _Records, *, at_once: bool
) -> Iterator[tuple[WindowState, list[Lease]]]:
    """Record each window, and return those to close with their leases, one after the other."""
    for state, leases in find_states(registry, records.clock):
        records.add(state, leases[-1])
        has_just_ended = at_once and state.why == WORK_ENDED
        if not state.needs_sweep and not has_just_ended:
            continue
        # It may have closed itself after its leases were read, and its run may be over for that reason.
        remaining = registry.all(window=leases[0].window, skip_failed=True)
        if remaining:
            yield state, remaining


def _close(closer: Closer, records: _Records, state: WindowState, leases: list[Lease]) -> SweptWindow:
    window = leases[0].window
    log.warning("The window %s is %s.", window, state)
    records.begin(f"{window} ({state})")
    return SweptWindow(window, state, closer.resume_all(leases))


def _preview(
    registry: LeaseRegistry, abandoned: Sequence[tuple[WindowState, list[Lease]]], clock: Callable[[], float]
) -> list[SweptWindow]:
    """Return what closing these windows would do; it only reads."""
    to_close = {leases[0].window for _, leases in abandoned}
    windows = []
    for state, leases in abandoned:
        closed = Closed()
        would_resume = []
        for lease in leases:
            export_id = lease.batch_export_id
            if lease.never_paused:
                closed.never_paused[export_id] = lease.refused
                continue
            if lease.stays_paused:
                closed.left_paused.append(export_id)
                continue
            try:
                holders = holders_of(registry, lease, clock)
            except Exception as error:
                log.exception("Batch export %s: not known what would become of it", export_id)
                closed.failed[export_id] = error
                continue
            # A window that this sweep would close as well leaves the export to the last of them.
            held_by = [str(holder.window) for holder in holders if holder.window not in to_close]
            if held_by:
                closed.held[export_id] = held_by
            else:
                would_resume.append(export_id)
        windows.append(SweptWindow(leases[0].window, state, closed, tuple(would_resume)))
    return windows


def describe_sweep(windows: Iterable[SweptWindow], unreadable: Mapping[str, str]) -> str:
    """Return the result of a sweep for people."""
    lines = []
    for swept in windows:
        results = "; ".join(_results(swept)) or "nothing left to resume"
        lines.append(f"Window {swept.window} ({swept.state}): {results}.")
    for key, why in unreadable.items():
        lines.append(LeaseRegistry.describe_unreadable(key, why))
    return "\n".join(lines)


def _results(swept: SweptWindow) -> list[str]:
    """Return the results for the exports of a window, for people."""
    closed = swept.closed
    seen = [f"{state} {export_id}" for export_id, state in closed.seen.items()]
    still_paused = [export_id for export_id in closed.failed if export_id not in closed.resumed]
    unnoted = [export_id for export_id in closed.failed if export_id in closed.resumed]
    sections: list[tuple[str, Iterable[str]]] = [
        ("would resume", swept.would_resume or ()),
        ("resumed", closed.resumed),
        ("resume_fields without effect, or perhaps so: fill by hand what was missed by", closed.without_fields),
        ("STILL PAUSED", still_paused),
        ("still noted as paused", unnoted),
        ("held by others", closed.held),
        ("left paused, as asked or as before,", closed.left_paused),
        ("never paused", closed.never_paused),
        ("seen", seen),
    ]
    results: list[str] = []
    for result, exports in sections:
        if exports:
            export_ids = ", ".join(exports)
            results.append(f"{result} {export_ids}")
    if closed.wait_until is not None:
        results.append(f"to be resumed again after {iso(closed.wait_until, 'seconds')}")
    return results


@dataclass(frozen=True)
class AbandonedWindows:
    """
    The windows that Airflow cannot close, as what the sweep of every kind ends.

    :param by: who sweeps, as the leases note it
    :param at_once: whether to close also a window whose work has just ended
    """

    registry: LeaseRegistry
    by: str
    at_once: bool = False
    kind: str = "windows"

    def end_due(self, *, dry_run: bool) -> Ended:
        """Close them, which resumes their exports."""
        with LeaseHooks() as hooks:
            closer = Closer(self.registry, hooks, self.by)
            swept = sweep_windows(closer, at_once=self.at_once, dry_run=dry_run)
        message = str(swept)
        lines = message.splitlines()
        report = swept.to_dict()
        is_stuck = bool(swept.stuck)
        is_alarm = not dry_run and (bool(swept.resumed) or is_stuck or bool(swept.unsaid))
        if not dry_run:
            record = SweepRecord(at=closer.clock(), windows=swept.records)
            try:
                self.registry.record_sweep(record)
            except Exception:
                if not (swept.failed or is_alarm):
                    raise
                log.exception("The sweep is not recorded")
        if swept.failed:
            error = still_paused_error(swept.failed, swept.resumed, message)
            return Ended(self.kind, report, lines, error, is_left=True)
        alarm = message if is_alarm else ""
        return Ended(self.kind, report, lines, alarm=alarm, is_left=is_stuck)
