"""What a maintenance window is: a table over its leases, the states of its tasks, and the clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Run, SweepRecord
from airflow_provider_workspace.windows.window_state import window_state

OPENED, UNTIL = 1_000.0, 4_600.0
BEGUN = "closing: its closing task has begun"
ENDED = "its work has ended and its closing task has not begun"
GOES_ON = "and its work goes on"
SHORT = "closing: not all of its exports are held any more, or a lease cannot be read"


def lease(number: int, **changes: Any) -> Lease:
    fields: dict[str, Any] = {
        "dag_id": "dag",
        "run_id": "run",
        "close_task_id": "close",
        "service": "https://workspace.example.com",
        "workspace_conn_id": "workspace_default",
        "organization_id": "organization",
        "batch_export_id": f"export {number}",
        "state": "paused",
        "since": OPENED,
        "until": UNTIL,
        "exports": 2,
        "work_task_ids": ["work"],
    }
    return Lease(**{**fields, **changes})


def registry(run: Run, *, waited: bool = False) -> LeaseRegistry:
    """Return leases in an Airflow whose last sweep saw 300 or 299 s ago that the work had ended."""
    noted = {"state": "closing", "why": ENDED, "since": 1700.0 if waited else 1701.0}
    ids = (lease(1).window.id, lease(1, map_index=1).window.id)
    record = SweepRecord.model_validate({"windows": dict.fromkeys(ids, noted)})
    store: Any = SimpleNamespace(run=lambda *_: run, read=lambda _: record.model_dump_json())
    return LeaseRegistry(store)


OPEN: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("first", "second", "tasks", "now", "waited", "is_"),
    [
        (OPEN, OPEN, {}, 2000, False, "open"),
        (None, None, {}, 2000, False, "closed: no export is held"),
        ({"state": "opening"}, OPEN, {}, 2000, False, "opening"),
        ({"state": "closing"}, OPEN, {}, 2000, False, "closing: not all of its exports are paused any more"),
        ({"state": "closing", "late_resume_until": 2001.0}, OPEN, {}, 2000, False,
         "closing: its exports are being resumed"),
        ({"state": "closing", "late_resume_until": 2001.0}, OPEN, {}, 5000, False,
         "overdue since 1970-01-01T01:16:40Z"),
        ({"until": 1500.0}, OPEN, {}, 1500, False, "overdue since 1970-01-01T00:25:00Z"),
        ({"until": 1500.0}, OPEN, {"close": "running"}, 1500, False, "overdue since 1970-01-01T00:25:00Z"),
        # A lease that is gone; or an earlier one that opening the window again has not replaced; or no number at all.
        (OPEN, None, {}, 2000, False, SHORT),
        ({"since": 900.0}, OPEN, {}, 2000, False, SHORT),
        ({"exports": 0}, None, {}, 2000, False, "open"),
        # The closing task.
        *((OPEN, OPEN, {"close": state}, 2000, False, "open") for state in ("scheduled", "queued")),
        *((OPEN, OPEN, {"close": state, "work": "success"}, 2000, False, BEGUN)
         for state in ("running", "up_for_retry", "deferred")),
        *((OPEN, OPEN, {"close": state, "work": "failed"}, 2000, False, f"abandoned: its closing task is {state}")
         for state in ("success", "failed", "skipped", "upstream_failed", "removed")),
        (OPEN, OPEN, {"close": SimpleNamespace(value="removed"), "work": "skipped"}, 2000, False,
         "abandoned: its closing task is removed"),
        (OPEN, OPEN, {"close": "no task", "work": "success"}, 2000, False, "abandoned: its closing task is gone"),
        # Work that may still run, whatever people set on the closing task or on the last task of the work.
        *((OPEN, OPEN, {"close": state, "work": work}, 2000, True, f"open: its closing task is {state}, {GOES_ON}")
         for state in ("success", "failed", "skipped", "removed", "upstream_failed")
         for work in (None, "running", "deferred", "up_for_retry", "queued", "restarting")),
        (OPEN, OPEN, {"close": "no task", "work": "running"}, 2000, True, f"open: its closing task is gone, {GOES_ON}"),
        ({"state": "opening"}, OPEN, {"close": "success"}, 2000, True,
         f"opening: its closing task is success, {GOES_ON}"),
        (OPEN, OPEN, {"close": "success", "work": "running"}, 4600, True, "overdue since 1970-01-01T01:16:40Z"),
        *((OPEN, OPEN, {"close": state, "work": "running"}, 2000, True, "open")
         for state in ("up_for_retry", "deferred", "queued")),
        (OPEN, OPEN, {"close": "running", "work": "running"}, 2000, True, BEGUN),
        *(({"work_task_ids": ["first", "work"]}, {"work_task_ids": ["first", "work"]},
           {"close": "success", "work": "success", "first": state}, 2000, True,
           f"open: its closing task is success, {GOES_ON}") for state in ("running", "deferred")),
        # Its work.
        (OPEN, OPEN, {"work": "running"}, 2000, True, "open"),
        (OPEN, OPEN, {"work": "success"}, 2000, False, f"closing: {ENDED}"),
        (OPEN, OPEN, {"work": "failed"}, 2000, True, f"abandoned: {ENDED}"),
        (OPEN, OPEN, {"work": "failed", "close": "queued"}, 2000, True, f"abandoned: {ENDED}"),
        (OPEN, OPEN, {"work": "failed", "close": "running"}, 2000, True, BEGUN),
        (OPEN, OPEN, {"work": "no task", "work_0": "success", "work_1": "running"}, 2000, True, "open"),
        (OPEN, OPEN, {"work": "no task", "work_0": "success", "work_1": "failed"}, 2000, True, f"abandoned: {ENDED}"),
        (OPEN, OPEN, {"work": "no task"}, 2000, True, "open"),
        # In a mapped task group, the tasks of the same index count.
        *(
            ({"map_index": 1}, {"map_index": 1}, {**gone, **states}, 2000, True, is_)
            for gone in [{"close": "no task", "work": "no task"}]
            for states, is_ in [
                ({"close_0": "success", "close_1": None, "work_1": None}, "open"),
                ({"close_0": None, "close_1": "success"}, "abandoned: its closing task is success"),
                ({"close_0": None, "close_11": None}, "abandoned: its closing task is gone"),
                ({"close_1": None, "work_0": "running", "work_1": "success"}, f"abandoned: {ENDED}"),
                ({"close_1": None, "work_0": "success", "work_1": "running"}, "open"),
            ]
        ),
    ],
)  # fmt: skip
def test_what_a_window_is(
    first: Any, second: Any, tasks: dict[str, Any], now: float, is_: str, *, waited: bool
) -> None:
    leases = [lease(number, **changes) for number, changes in enumerate((first, second)) if changes is not None]
    states = {name: state for name, state in {"close": None, "work": None, **tasks}.items() if state != "no task"}
    state = window_state(registry(Run(tasks=states), waited=waited), leases, now)
    assert str(state) == is_
    assert state.needs_sweep == is_.startswith(("overdue", "abandoned"))


@pytest.mark.parametrize("state", ["over", "gone"])
def test_a_window_is_abandoned_when_its_run_has_ended(state: Any) -> None:
    assert str(window_state(registry(Run(state)), [lease(1)], OPENED)) == f"abandoned: its run is {state}"
