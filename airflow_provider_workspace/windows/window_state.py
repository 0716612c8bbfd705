"""
What a maintenance window is, decided here alone: from its leases, the states of its run and tasks, and the clock.

The work runs only in a window that is open. The sweep closes windows that are overdue or abandoned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airflow_provider_workspace.api.timestamps import iso

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Run, Window

log = logging.getLogger(__name__)

# States of a task that will not run again.
FINISHED_STATES = ("success", "failed", "skipped", "removed", "upstream_failed")
# States of the closing task until it begins.
OPEN_STATES = (None, "scheduled", "queued")
# Seconds until a window is abandoned whose work has ended and whose closing task has not begun.
ABANDONED_AFTER = 300.0
CLOSE_BEGAN = "its closing task has begun"
STATES_UNKNOWN = "Airflow did not tell the states of its tasks"
WORK_ENDED = "its work has ended and its closing task has not begun"


def closing_state(run: Run, window: Window) -> tuple[bool, str | None]:
    """Return whether a run has the closing task of a window, and its state."""
    index = f"_{window.map_index}" if window.map_index >= 0 else ""
    states = run.states(window.close_task_id, index)
    if not states:
        return False, None
    return True, states[0]


def why_over(run: Run, window: Window) -> str:
    """Return why a window cannot close itself any more; an empty string if it can."""
    if run.state != "active":
        return f"its run is {run.state}"
    known, state = closing_state(run, window)
    if not known:
        return "its closing task is gone"
    return f"its closing task is {state}" if state in FINISHED_STATES else ""


def is_closing(run: Run, window: Window, *, at_work: bool = False) -> bool:
    """
    Return whether the closing task of a window has begun and not ended, or waits for its next try.

    Whether the window is closed, only its leases say: its closing task may be skipped, or marked by hand.

    :param at_work: whether its work may go on, for which a closing task waits that does not run at this moment
    """
    if why_over(run, window):
        return False
    _, state = closing_state(run, window)
    return state == "running" if at_work else state not in OPEN_STATES


def progress_of(registry: LeaseRegistry, window: Window) -> Literal["open", "closing", "closed"]:
    """Return how far a window is: it is closed if its closing task has begun or is over, and no lease is left."""
    run = registry.store.run(window, ())
    has_begun = is_closing(run, window)
    if not has_begun and not why_over(run, window):
        return "open"
    leases = registry.all(window=window)
    if not leases and not registry.unreadable:
        return "closed"
    return "closing" if has_begun else "open"


def work_has_ended(run: Run, lease: Lease) -> bool:
    """Return whether all tasks of the work of a window have ended."""
    by_task = _states_of_work(run, lease)
    return bool(by_task) and all(states and _have_ended(states) for states in by_task)


def is_at_work(run: Run, lease: Lease) -> bool:
    """
    Return whether a task of the work of a window may still run, whatever states people set on other tasks by hand.

    Nothing resumes its exports before its end then, but a person who says so.
    """
    if run.state != "active":
        return False
    return any(not _have_ended(states) for states in _states_of_work(run, lease))


def is_left_to_close(registry: LeaseRegistry, window: Window) -> bool:
    """Return whether the closing task of a window that is overdue has begun; not if Airflow does not tell."""
    try:
        return is_closing(registry.store.run(window, ()), window)
    except Exception:
        log.exception("%s (%s)", STATES_UNKNOWN, window)
        return False


def why_not_closed(registry: LeaseRegistry, window: Window) -> str:
    """Return why a window that is overdue has not closed itself, with what to do."""
    leases = registry.all(window=window)
    try:
        run = registry.store.run(window, leases[-1].work_task_ids if leases else ())
    except Exception:
        log.exception("%s (%s)", STATES_UNKNOWN, window)
        return f"{STATES_UNKNOWN}, so nobody knows why"
    why = why_over(run, window)
    if leases and is_at_work(run, leases[-1]):
        return "its work was not done within the maximum length. Check its tasks, which were not stopped"
    return f"{why or WORK_ENDED}, so nothing resumed its exports before"


def _states_of_work(run: Run, lease: Lease) -> list[list[str | None]]:
    """Return the states of each task of the work; empty of one that Airflow does not know."""
    index = "(_[0-9]+)?" if lease.map_index < 0 else f"_{lease.map_index}"
    return [run.states(task_id, index) for task_id in lease.work_task_ids]


def _have_ended(states: Sequence[str | None]) -> bool:
    return all(state in FINISHED_STATES for state in states)


@dataclass(frozen=True)
class WindowState:
    """
    What a window is.

    :param name: ``overdue`` and ``abandoned`` windows are for the sweep to close
    :param why: the reason; empty of one that is opening or open and will close itself
    """

    name: Literal["opening", "open", "overdue", "closing", "closed", "abandoned"]
    why: str = ""

    def __str__(self) -> str:
        """Return it for people."""
        if self.name == "overdue":
            return self.why
        return f"{self.name}: {self.why}" if self.why else self.name

    @property
    def needs_sweep(self) -> bool:
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
    why = why_over(run, window)
    at_work = is_at_work(run, newest)
    if why and not at_work:
        return WindowState("abandoned", why)
    by_leases = _state_by_leases(leases, now)
    if by_leases is not None:
        return by_leases
    if is_closing(run, window, at_work=at_work):
        return WindowState("closing", CLOSE_BEGAN)
    if work_has_ended(run, newest):
        has_waited = _has_waited(registry, window, now)
        return WindowState("abandoned" if has_waited else "closing", WORK_ENDED)
    if any(lease.state == "closing" for lease in leases):
        return WindowState("closing", "not all of its exports are paused any more")
    if any(lease.state == "opening" for lease in leases):
        return WindowState("opening", _with_work(why))
    held = [lease for lease in leases if lease.since == newest.since]
    if len(held) < newest.exports:
        return WindowState("closing", "not all of its exports are held any more, or a lease cannot be read")
    return WindowState("open", _with_work(why))


def _state_by_leases(leases: Sequence[Lease], now: float) -> WindowState | None:
    """Return what a window is whatever the states of its tasks; ``None`` if these say what it is."""
    if any(lease.resuming(now) for lease in leases):
        return WindowState("closing", "its exports are being resumed")
    until = min(lease.until for lease in leases)
    if now >= until:
        return WindowState("overdue", f"overdue since {iso(until, 'seconds')}")
    return None


def state_as_far_as_known(registry: LeaseRegistry, leases: Sequence[Lease], now: float) -> WindowState:
    """Return what a window is; until its end it counts as open if Airflow does not tell the states of its tasks."""
    try:
        return window_state(registry, leases, now)
    except Exception:
        log.exception("%s (%s)", STATES_UNKNOWN, leases[-1].window)
        return _state_by_leases(leases, now) or WindowState("open", STATES_UNKNOWN)


def _with_work(why: str) -> str:
    """Return why a window at work will not close itself; an empty string if it will."""
    return f"{why}, and its work goes on" if why else ""


def _has_waited(registry: LeaseRegistry, window: Window, now: float) -> bool:
    """Return whether sweeps have seen for long enough that the work of a window has ended."""
    record = registry.last_sweep().windows.get(window.id)
    if record is None or record.why != WORK_ENDED:
        return False
    return now - record.since >= ABANDONED_AFTER


def find_states(registry: LeaseRegistry, clock: Callable[[], float]) -> Iterator[tuple[WindowState, list[Lease]]]:
    """Return what each window is, and its leases; one that cannot be read stops nobody else's."""
    by_window: dict[Window, list[Lease]] = {}
    all_leases = registry.all(skip_failed=True)
    for lease in all_leases:
        by_window.setdefault(lease.window, []).append(lease)
    for leases in by_window.values():
        state = state_as_far_as_known(registry, leases, clock())
        yield state, leases


def holders_of(registry: LeaseRegistry, lease: Lease, clock: Callable[[], float]) -> list[Lease]:
    """Return the leases of other windows that hold the export of a lease: they paused it and will resume it."""
    others = registry.read_all(registry.other_keys(lease))
    now = clock()
    paused = [other for other in others if other.state == "paused"]
    return [other for other in paused if not state_as_far_as_known(registry, [other], now).needs_sweep]
