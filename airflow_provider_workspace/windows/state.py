"""
What a maintenance window is, decided here alone: from its leases, the states of its run and tasks, and the clock.

The work runs only in a window that is open. The sweep closes windows that are overdue or abandoned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airflow_provider_workspace.api.timestamps import iso

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Run, Window

# States of a task that will not run again.
FINISHED_STATES = ("success", "failed", "skipped", "removed", "upstream_failed")
# States of the closing task until it begins.
OPEN_STATES = (None, "scheduled", "queued")
# Seconds until a window is abandoned whose work has ended and whose closing task has not begun.
ABANDONED_AFTER = 300.0
WORK_ENDED = "its work has ended and its closing task has not begun"


def closing_state(run: Run, window: Window) -> tuple[bool, str | None]:
    """Return whether a run has the closing task of a window, and its state."""
    states = run.states(window.close_task_id, "" if window.map_index < 0 else f"_{window.map_index}")
    return (True, states[0]) if states else (False, None)


def why_over(run: Run, window: Window) -> str:
    """Return why a window cannot close itself any more; an empty string if it can."""
    if run.state != "active":
        return f"its run is {run.state}"
    known, state = closing_state(run, window)
    if not known:
        return "its closing task is gone"
    return f"its closing task is {state}" if state in FINISHED_STATES else ""


def has_closed(run: Run, window: Window) -> bool:
    """Return whether the closing task of a window has begun, has ended or cannot begin."""
    return bool(why_over(run, window)) or closing_state(run, window)[1] not in OPEN_STATES


def work_has_ended(run: Run, lease: Lease) -> bool:
    """Return whether the last tasks of the work of a window have ended."""
    index = "(_[0-9]+)?" if lease.map_index < 0 else f"_{lease.map_index}"
    states = [run.states(task_id, index) for task_id in lease.work_task_ids]
    return bool(states) and all(each and all(state in FINISHED_STATES for state in each) for each in states)


@dataclass(frozen=True)
class WindowState:
    """
    What a window is.

    :param name: ``overdue`` and ``abandoned`` windows are for the sweep to close
    :param why: the reason, if it is neither opening nor open
    """

    name: Literal["opening", "open", "overdue", "closing", "closed", "abandoned"]
    why: str = ""

    def __str__(self) -> str:
        """Return it for people."""
        return self.why if self.name == "overdue" else f"{self.name}: {self.why}".removesuffix(": ")

    @property
    def left(self) -> bool:
        """Whether others than the window have to close it."""
        return self.name in ("overdue", "abandoned")


def window_state(registry: LeaseRegistry, leases: Sequence[Lease], now: float) -> WindowState:
    """
    Return what a window is; since when its work has ended, the last sweep has noted.

    :param leases: its leases, the oldest first
    """
    if not leases:
        return WindowState("closed", "no export is held")
    newest = leases[-1]
    window = newest.window
    run = registry.store.run(window, newest.work_task_ids)
    if why := why_over(run, window):
        return WindowState("abandoned", why)
    if any(lease.resuming(now) for lease in leases):
        return WindowState("closing", "its exports are being resumed")
    until = min(lease.until for lease in leases)
    if now >= until:
        return WindowState("overdue", f"overdue since {iso(until)}")
    if has_closed(run, window):
        return WindowState("closing", "its closing task has begun")
    if work_has_ended(run, newest):
        noted = registry.last_sweep().windows.get(window.id)
        waited = noted is not None and noted.why == WORK_ENDED and now - noted.since >= ABANDONED_AFTER
        return WindowState("abandoned" if waited else "closing", WORK_ENDED)
    if any(lease.state == "closing" for lease in leases):
        return WindowState("closing", "not all of its exports are paused any more")
    if any(lease.state == "opening" for lease in leases):
        return WindowState("opening")
    if sum(lease.since == newest.since for lease in leases) < newest.exports:
        return WindowState("closing", "not all of its exports are held any more, or a lease cannot be read")
    return WindowState("open")


def find_states(registry: LeaseRegistry, clock: Callable[[], float]) -> Iterator[tuple[WindowState, list[Lease]]]:
    """Return what each window is, and its leases; a lease that cannot be read stops nobody else's."""
    by_window: dict[Window, list[Lease]] = {}
    for lease in registry.all(skip_failed=True):
        by_window.setdefault(lease.window, []).append(lease)
    for leases in by_window.values():
        yield window_state(registry, leases, clock()), leases


def still_holding(registry: LeaseRegistry, others: Sequence[Lease], now: float) -> list[Lease]:
    """Return the leases that hold their export: its window paused it and will resume it."""
    return [other for other in others if other.state == "paused" and not window_state(registry, [other], now).left]
