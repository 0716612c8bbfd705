"""
Tasks of a maintenance window against the sandbox, with leases in memory. tests/e2e runs them in Airflow.

What a window is stands in tests/unit/windows/test_window.py; concurrent windows are simulated beside it.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotAppliedError,
    WorkspaceRequestError,
)
from airflow_provider_workspace.notes.lease_store import LeaseVariables
from airflow_provider_workspace.notes.leases import Window as NotedWindow
from airflow_provider_workspace.operators.batch_exports import WorkspaceUnpauseBatchExportOperator
from airflow_provider_workspace.operators.windows import lease_registry
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import COMMAND, AirflowFailException, AirflowSkipException, TaskDeferred
from airflow_provider_workspace.windows.requests import LeaseHooks
from airflow_provider_workspace.windows.resuming import Closer
from airflow_provider_workspace.windows.sweep import sweep_windows
from tests.interruptions import Interruptions
from tests.task_instance import TaskInstance, TaskStore
from tests.windows import CLOSE, GROUP, SWEEP, Airflow, Window, opened, sweep

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

FIRST, SECOND = SEED.batch_export_ids[:2]
ORGANIZATION = SEED.organization_id
NOBODY = "0190c0de-0000-4000-8000-0000000000ee"
MOVED = "/api/projects/{project_id}/batch_exports/{id}"
MOVED_PATHS = {
    "PauseBatchExport": "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause/",
    "UnpauseBatchExport": "/api/projects/{project_id}/batch_exports/{batch_export_id}/unpause/",
}
PAST = "2020-01-01T00:00:00.5Z"
HOUR = 3600
live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    return Airflow(monkeypatch)


@pytest.fixture(autouse=True)
def connected(connect: Connect, airflow: Airflow) -> None:
    assert airflow.lease_keys() == []
    connect(max_attempts=2, read_timeout=1)


def history(sandbox: SandboxServer, export: str) -> list[str]:
    return [effect["operation"].split("_")[0] for effect in sandbox.effects() if effect["target"] == export]


def asked(sandbox: SandboxServer, word: str) -> int:
    return sum(1 for entry in sandbox.requests() if entry["path"].endswith(f"/{word}/"))


def held(airflow: Airflow) -> list[str]:
    return [lease["batch_export_id"] for lease in airflow.leases()]


def closed(*resumed: str, **others: Any) -> dict[str, Any]:
    """Return the result of a closing task."""
    return {"resumed": list(resumed), "held": {}, "left_paused": [], "never_paused": {}, **others}


def still_paused(close: Callable[[], Any], said: str = "") -> None:
    with pytest.raises(WorkspaceRequestError, match=f"(?s)STILL PAUSED.*{said}"):
        close()


def deferral(task: Callable[[], Any]) -> Any:
    """Run a task until it defers, and return its trigger."""
    with pytest.raises(TaskDeferred) as deferred:
        task()
    return deferred.value.trigger


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("lossy", [False, True], ids=["", "every other read of a Variable fails"])
@pytest.mark.parametrize("release", ["3.2", "3.3"])
def test_a_window_pauses_and_resumes_each_export_once(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, release: str, *, lossy: bool
) -> None:
    """Airflow reports an error of its API server as a Variable that does not exist."""
    airflow, reads = Airflow(monkeypatch, release), 0
    read = airflow.variables.get

    def lose(key: str, default: Any = None) -> Any:
        nonlocal reads
        reads += 1
        return default if lossy and reads % 2 else read(key, default)

    monkeypatch.setattr(airflow.variables, "get", lose)
    window = Window(FIRST, SECOND)
    assert window.open()["batch_export_ids"] == [FIRST, SECOND]
    assert {lease["state"] for lease in airflow.leases()} == {"opening"}
    assert window.pause()["paused"] == [FIRST, SECOND]
    assert {lease["state"] for lease in airflow.leases()} == {"paused"}
    assert window.close() == closed(FIRST, SECOND)
    assert history(sandbox, FIRST) == history(sandbox, SECOND) == ["pause", "unpause"]
    assert (asked(sandbox, "pause"), asked(sandbox, "unpause")) == (2, 2)
    assert airflow.lease_keys() == []


def test_close_checks_later_whether_another_task_has_resumed(
    sandbox: SandboxServer, connect: Connect, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(consistency_time=0)
    window = opened(FIRST)
    write = airflow.variables.set

    def lose(key: str, value: str, description: str | None = None) -> None:
        """Let another task claim a lease at the same moment; that one is killed."""
        write(key, value, description)
        if '"closing"' in value:
            airflow.edit(key, closer="guard#1")

    with monkeypatch.context() as patch:
        patch.setattr(airflow.variables, "set", lose)
        trigger = deferral(window.close)
    assert history(sandbox, FIRST) == ["pause"]
    assert window.close({"status": "over", "state": trigger.state})["resumed"] == [FIRST]
    assert airflow.lease_keys() == []


def test_lease_keys_are_valid_variable_keys(airflow: Airflow) -> None:
    Window(FIRST, run_id="manual__2026-11-21T00:00:00+00:00/" + "x" * 300).open()
    (key,) = airflow.lease_keys()
    assert len(key) <= 250
    assert key.replace("_", "").replace(".", "").replace("-", "").isalnum()
    assert FIRST in key


def test_an_abandoned_window_takes_over_nothing(airflow: Airflow) -> None:
    window = opened(FIRST)
    opened(FIRST, run_id="gone")
    airflow.end("gone", "its run is over")
    assert window.close()["resumed"] == [FIRST]


@live
def test_close_retries_only_what_failed(sandbox: SandboxServer, airflow: Airflow) -> None:
    """Also with the fields that were refused by mistake."""
    window = opened(FIRST, SECOND, resume_fields={"backfill": True})
    sandbox.inject("status_before", operation="unpause_batch_export", status=403, times=1)
    still_paused(window.close, FIRST)
    assert [(lease["batch_export_id"], lease["resume_fields"]) for lease in airflow.leases()] == [
        (FIRST, {"backfill": True})
    ]
    window.close()
    assert asked(sandbox, "unpause") == 3
    assert airflow.lease_keys() == []


def test_an_export_that_could_not_be_paused_fails_close_without_retry(sandbox: SandboxServer, airflow: Airflow) -> None:
    window = Window(FIRST, NOBODY, SECOND)
    window.open()
    with pytest.raises(AirflowFailException, match="404"):
        window.pause()
    with pytest.raises(
        AirflowFailException,
        match=rf"NEVER PAUSED: 1 batch export, which .*Resumed: {FIRST}, {SECOND}\. Batch exports: {NOBODY}\.$",
    ):
        window.close()
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert asked(sandbox, "unpause") == 2
    assert airflow.lease_keys() == []


def test_a_cleared_window_forgets_earlier_pause_failures(sandbox: SandboxServer, airflow: Airflow) -> None:
    window = Window(FIRST)
    window.open()
    sandbox.inject("status_before", "pause_batch_export", status=403)
    with pytest.raises(AirflowFailException, match="403"):
        window.pause()
    with pytest.raises(AirflowFailException, match="NEVER PAUSED"):
        window.close()
    window.max_tries += 1
    window.open()
    window.pause()
    assert window.close() == closed(FIRST)
    assert airflow.lease_keys() == []


@pytest.mark.parametrize("task_state_store", [True, False], ids=["3.3", "before 3.3"])
def test_a_pause_with_unknown_outcome_is_resumed_twice(
    sandbox: SandboxServer,
    airflow: Airflow,
    connect: Connect,
    capsys: pytest.CaptureFixture[str],
    *,
    task_state_store: bool,
) -> None:
    connect(max_attempts=2, read_timeout=1, consistency_time=0.5)
    window = Window(FIRST, SECOND)
    if not task_state_store:
        window.state = None
    window.open()
    sandbox.inject("reset_after", operation="pause_batch_export", times=2)
    with pytest.raises(WorkspaceRequestError, match="no complete response"):
        window.pause()
    trigger = deferral(window.close)
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert 0 < trigger.end_at - time.time() <= 0.5
    time.sleep(max(0.0, trigger.end_at - time.time()))
    assert window.close({"status": "over", "state": trigger.state}) == closed(FIRST, never_paused={SECOND: None})
    assert f"Never paused by this window, and so not resumed: {SECOND}" in capsys.readouterr().out
    assert asked(sandbox, "unpause") == 2
    assert airflow.lease_keys() == []


def test_a_resume_that_needed_a_second_attempt_stays_noted(
    sandbox: SandboxServer, airflow: Airflow, connect: Connect
) -> None:
    """The first attempt may still take effect, and a window that opens meanwhile must know."""
    connect(max_attempts=2, consistency_time=30)
    window = opened(FIRST)
    sandbox.inject("reset_before", operation="unpause_batch_export")
    assert 20 < deferral(window.close).end_at - time.time() <= 30
    assert history(sandbox, FIRST)[-1] == "unpause"
    (lease,) = airflow.leases()
    assert lease["late_resume_until"]


def test_a_cleared_window_waits_for_its_own_resume(sandbox: SandboxServer, connect: Connect) -> None:
    """A resume without a response may take effect during the work of the window that is opened again."""
    connect(max_attempts=1, consistency_time=0.5)
    window = opened(FIRST)
    sandbox.inject("reset_before", operation="unpause_batch_export")
    still_paused(window.close)
    window.clear()
    began = time.monotonic()
    window.open()
    window.pause()
    assert time.monotonic() - began > 0.3
    assert history(sandbox, FIRST)[-1] == "pause"
    window.work()


def test_a_window_whose_closing_task_is_over_is_not_opened(sandbox: SandboxServer, airflow: Airflow) -> None:
    """Clearing the work of one mapped window clears the setups of all of them, and the teardown of that one."""
    airflow.end("run", "its closing task is success")
    with pytest.raises(
        AirflowSkipException, match=f"^'{CLOSE}' is success, so nothing would resume the exports.* Clear it too"
    ):
        Window(FIRST).open()
    assert airflow.lease_keys() == []
    assert sandbox.requests() == []


def test_a_lease_with_the_fields_of_another_is_not_resumed_for_ever(sandbox: SandboxServer, airflow: Airflow) -> None:
    """A person may edit the Variable or break it, and older releases had other keys."""
    window = opened(FIRST)
    (key,) = airflow.lease_keys()
    value = airflow.variables.values[key]
    for broken in (value.replace(FIRST, SECOND), '{"ends": "soon"}', "[" * 5000):
        airflow.variables.values[key] = broken
        assert window.close()["resumed"] == [FIRST]
        assert airflow.lease_keys() == []
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], [])

    renamed = key[:-1] + "_"
    airflow.variables.values[renamed] = value
    assert window.close()["resumed"] == [FIRST]
    with pytest.raises(
        AirflowFailException, match=f"run '.* resume {FIRST}' first, then delete the Variable '{renamed}'"
    ):
        sweep()
    assert asked(sandbox, "unpause") == 4


@pytest.mark.parametrize(
    ("states", "map_index", "marked"),
    [
        ({"outcome": "skipped", "rebuild": "failed"}, -1, True),
        ({"outcome": "skipped", "rebuild": "skipped"}, -1, False),
        ({"outcome": "skipped", "rebuild": "skipped", "open": "success", "pause": "skipped"}, -1, True),
        ({"outcome": "skipped", "rebuild": "skipped", "open": "success", "pause": "success"}, -1, False),
        ({"outcome": "upstream_failed", "rebuild": "failed"}, -1, False),
        ({"outcome_0": "skipped", "rebuild_0": "skipped", "pause_0": "skipped"}, 0, True),
        ({"outcome_0": "skipped", "rebuild_0": "failed", "outcome_1": "success", "rebuild_1": "success"}, 0, True),
        ({"outcome_0": "skipped", "rebuild_0": "skipped", "outcome_1": "skipped", "rebuild_1": "failed"}, 0, False),
        ({"outcome": "skipped", "first": "failed", "rebuild": "skipped"}, -1, True),
        ({"outcome": "skipped", "first": "failed", "rebuild": "upstream_failed"}, -1, True),
        ({"outcome": "skipped", "first": "failed", "rebuild": "success"}, -1, False),
    ],
)
def test_a_run_that_was_marked_as_failed_fails_close(
    airflow: Airflow, states: dict[str, str], map_index: int, *, marked: bool
) -> None:
    """In a mapped task group Airflow appends the index to the ids of its tasks."""
    index = "" if map_index < 0 else f"_{map_index}"
    airflow.runs.tasks["run"] = {f"{CLOSE}{index}": None}
    window = Window(FIRST)
    window.map_index = map_index
    group = ("outcome", "open", "pause")
    window.tasks = {f"maintenance_window.{name}" if name.startswith(group) else name: states[name] for name in states}
    window.open()
    window.pause()
    if marked:
        with pytest.raises(AirflowFailException, match=rf"The run was marked as failed.*resumed: {FIRST}\."):
            window.close()
    else:
        assert window.close()["resumed"] == [FIRST]


@pytest.mark.parametrize(
    ("fail_fast", "message"),
    [
        (False, r"^\[work-failed\] The run was marked"),
        (True, r"^\[work-failed\] A task failed, so this Dag, which has"),
    ],
)
def test_close_says_why_the_outcome_was_skipped(airflow: Airflow, *, fail_fast: bool, message: str) -> None:
    window = opened(FIRST)
    window.dag.fail_fast = fail_fast
    window.tasks = {f"{GROUP}.outcome": "skipped", "rebuild": "failed"}
    with pytest.raises(AirflowFailException, match=rf"{message}.*Failed: rebuild\.$"):
        window.close()
    assert airflow.lease_keys() == []


def test_the_guard_closes_an_overdue_window(
    sandbox: SandboxServer, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(FIRST, max_length=timedelta(hours=1))
    assert deferral(window.guard).end_at == pytest.approx(time.time() + HOUR, abs=5)
    (key,) = airflow.lease_keys()
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        airflow.edit(key, until="2026-03-29T02:30:00")  # a person's edit without a time zone is in UTC
        assert deferral(window.guard).end_at == 1_774_751_400
    time.tzset()
    deferral(lambda: window.guard("closed"))
    assert held(airflow) == [FIRST]
    with pytest.raises(AirflowFailException, match=f"overdue: .*Resumed: {FIRST}"):
        window.guard("over")
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert window.guard() is None
    assert window.close()["resumed"] == []


@pytest.mark.parametrize("state", ["running", "up_for_retry"])
def test_the_guard_leaves_a_window_to_its_closing_task(sandbox: SandboxServer, airflow: Airflow, state: str) -> None:
    window = opened(FIRST, max_length=HOUR)
    trigger = deferral(window.guard)
    trigger.trigger_id = 1
    trigger.end_at, overdue = 0.0, trigger.end_at
    assert asyncio.run(anext(trigger.run())).payload["status"] == "over"
    airflow.runs.tasks["run"] = {CLOSE: state}
    assert asyncio.run(trigger.progress()) == "closing"
    assert deferral(lambda: window.guard("over")).end_at == overdue
    assert history(sandbox, FIRST) == ["pause"]
    window.close()
    assert asyncio.run(anext(trigger.run())).payload["status"] == "closed"
    window.guard("closed")
    assert history(sandbox, FIRST) == ["pause", "unpause"]


@pytest.mark.parametrize("state", ["success", "skipped", "failed"])
def test_the_guard_does_not_believe_the_state_of_the_closing_task(
    sandbox: SandboxServer, airflow: Airflow, state: str
) -> None:
    """A person marked it, or a branch skipped it: the export is paused."""
    window = opened(FIRST, max_length=HOUR)
    trigger = deferral(window.guard)
    trigger.trigger_id = 1
    airflow.runs.tasks["run"] = {CLOSE: state}
    assert asyncio.run(trigger.progress()) == "open"
    assert deferral(lambda: window.guard("closed")).end_at == trigger.end_at
    trigger.end_at = 0.0
    assert asyncio.run(anext(trigger.run())).payload["status"] == "over"
    airflow.edit(airflow.lease_keys()[0], until=PAST)
    with pytest.raises(AirflowFailException, match=rf"^\[window-overdue\] .*Resumed: {FIRST}"):
        window.guard("over")
    assert history(sandbox, FIRST) == ["pause", "unpause"]


@pytest.mark.parametrize("resumed_by", ["close", "sweep"])
def test_a_close_that_begins_too_late_fails_after_it_has_resumed(
    sandbox: SandboxServer, airflow: Airflow, resumed_by: str
) -> None:
    window = opened(FIRST, max_length=HOUR)
    if resumed_by == "sweep":
        window.results[f"{GROUP}.open"]["until"] = 1e9
    airflow.edit(airflow.lease_keys()[0], until=PAST)
    if resumed_by == "sweep":
        sweep(fail_if_any=False)
    with pytest.raises(AirflowFailException, match=r"^\[window-overdue\] .*its closing task began at"):
        window.close()
    assert history(sandbox, FIRST) == ["pause", "unpause"]


# The sweep


@pytest.mark.parametrize("why", ["its run is over", "its run is gone", "its closing task is removed", None])
def test_the_sweep_closes_only_abandoned_windows(sandbox: SandboxServer, airflow: Airflow, why: str | None) -> None:
    opened(FIRST, run_id="abandoned")
    if why is None:
        airflow.edit(airflow.lease_keys()[0], until=PAST)
    else:
        airflow.end("abandoned", why)
    opened(SECOND, run_id="at work")
    with pytest.raises(
        AirflowFailException,
        match=rf"Window dag / abandoned / {CLOSE} \((abandoned: {why}|overdue since .*)\): resumed {FIRST}\.",
    ):
        sweep()
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], ["pause"])
    assert sweep() == {"windows": [], "unreadable": {}}


@pytest.mark.parametrize("rebuild", [None, "success"], ids=["", "the last task, too"])
@pytest.mark.parametrize("state", ["success", "failed", "skipped", "removed"])
def test_nothing_resumes_under_work_that_runs_though_its_closing_task_was_set_by_hand(
    sandbox: SandboxServer, airflow: Airflow, state: str, rebuild: str | None
) -> None:
    window = opened(FIRST)
    airflow.runs.tasks["run"] = {CLOSE: state, "first": "running", "rebuild": rebuild}
    assert sweep()["windows"] == []
    other = opened(FIRST, run_id="other")
    assert other.close()["held"] == {FIRST: [f"dag / run / {CLOSE}"]}
    window.work()
    assert history(sandbox, FIRST) == ["pause"]
    (seen,) = airflow.swept["windows"].values()
    assert seen["text"] == f"open: its closing task is {state}, and its work goes on"
    airflow.runs.tasks["run"] = {CLOSE: state, "first": "failed", "rebuild": "success"}
    with pytest.raises(AirflowFailException, match=rf"abandoned: its closing task is {state}\): resumed {FIRST}"):
        sweep()


def test_close_waits_for_work_that_runs_though_the_last_task_was_set_by_hand(
    sandbox: SandboxServer, airflow: Airflow
) -> None:
    window = opened(FIRST)
    airflow.runs.tasks["run"] = {CLOSE: "running", "first": "running", "rebuild": "success"}
    with pytest.raises(TaskDeferred):
        window.close()
    assert history(sandbox, FIRST) == ["pause"]
    airflow.runs.tasks["run"]["first"] = "success"
    assert window.close({"status": "over", "state": {}}) == closed(FIRST)
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_a_task_after_much_work_is_no_mapped_task_of_it(airflow: Airflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow names the states of mapped tasks as it names the states of others: load_1 may be either."""
    window = opened(FIRST)
    work = ["load", *(f"work_{number}" for number in range(120))]
    airflow.edit(airflow.lease_keys()[0], work_task_ids=work)
    states = {CLOSE: "running", "load_1": None, **dict.fromkeys(work, "success")}

    def named(*, run_ids: list[str], task_ids: list[str] | None, **_: Any) -> dict[str, Any]:
        return {run_ids[0]: {name: states[name] for name in states if task_ids is None or name in task_ids}}

    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", named)
    assert window.execute("close") == closed(FIRST)


def test_close_waits_for_work_that_runs_though_its_lease_was_overwritten_too(
    sandbox: SandboxServer, airflow: Airflow
) -> None:
    window = opened(FIRST)
    airflow.variables.values[airflow.lease_keys()[0]] = "{"
    airflow.runs.tasks["run"] = {CLOSE: "running", "first": "running", "rebuild": "success"}
    with pytest.raises(TaskDeferred):
        window.close()
    assert history(sandbox, FIRST) == ["pause"]
    airflow.runs.tasks["run"]["first"] = "success"
    assert window.close({"status": "over", "state": {}}) == closed(FIRST)


@pytest.mark.usefixtures("sandbox")
def test_work_begins_although_close_looks_at_this_moment_whether_it_runs(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(FIRST)
    airflow.runs.tasks["run"] = {CLOSE: "running", "first": "running", "rebuild": "running"}
    monkeypatch.setattr(waits, "sleep", lambda _: airflow.runs.tasks["run"].update({CLOSE: "deferred"}))
    window.work()


def test_the_guard_of_a_window_that_was_opened_again_waits_for_its_later_end(
    sandbox: SandboxServer, airflow: Airflow
) -> None:
    """Somebody cleared the task that opens it, and nothing else."""
    window = opened(FIRST, max_length=HOUR)
    airflow.runs.tasks["run"] = {CLOSE: None, "first": "running", "rebuild": None}
    earlier = deferral(window.guard).end_at
    window.open()
    assert deferral(lambda: window.guard("over")).end_at > earlier
    assert history(sandbox, FIRST) == ["pause"]


def test_a_lease_that_cannot_be_read_back_pauses_nothing(sandbox: SandboxServer, airflow: Airflow) -> None:
    """A secrets backend or the environment has an older lease under its key."""
    opened(FIRST).close()
    window = Window(FIRST)
    window.open()
    (key,) = airflow.lease_keys()
    airflow.variables.shadows[key] = airflow.variables.values[key].replace(FIRST, SECOND)
    before = history(sandbox, FIRST)
    with pytest.raises(WorkspaceError, match=rf"note-not-kept.*'{key}' does not hold what was noted"):
        window.open()
    assert history(sandbox, FIRST) == before


@pytest.mark.parametrize("resumes", ["close", "sweep"])
def test_a_lease_that_cannot_be_deleted_names_what_was_resumed(
    sandbox: SandboxServer, airflow: Airflow, resumes: str
) -> None:
    window = opened(FIRST)
    airflow.variables.is_read_only = "delete"
    if resumes == "sweep":
        airflow.end("run", "its run is over")
    said = rf"note-not-kept.*Resumed, but still noted as paused: 1 batch export, {FIRST}\. .*RuntimeError.'read-only'"
    with pytest.raises((AirflowFailException, WorkspaceError), match=said) as failed:
        window.close() if resumes == "close" else sweep()
    assert "STILL PAUSED" not in str(failed.value)
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_a_lease_that_cannot_be_written_is_still_paused(sandbox: SandboxServer, airflow: Airflow) -> None:
    window = opened(FIRST)
    airflow.variables.is_read_only = "set"
    with pytest.raises(WorkspaceError, match=r"STILL PAUSED: 1 batch export\. .*Airflow does not write it"):
        window.close()
    assert history(sandbox, FIRST) == ["pause"]


@pytest.mark.parametrize(
    ("states", "why"),
    [
        ({"first": "running"}, "its work was not done within the maximum length"),
        ({CLOSE: "success", "first": "success"}, "its closing task is success, so nothing resumed its exports before"),
        ({CLOSE: "queued", "first": "failed"}, "its work has ended and its closing task has not begun"),
    ],
)
def test_the_guard_names_why_the_window_is_overdue(airflow: Airflow, states: dict[str, str], why: str) -> None:
    window = opened(FIRST, max_length=60)
    airflow.edit(airflow.lease_keys()[0], until=PAST)
    airflow.runs.tasks["run"] = {CLOSE: None, "rebuild": "success", **states}
    with pytest.raises(AirflowFailException, match=rf"^\[window-overdue\] The window is overdue: {why}"):
        window.guard("over")


@pytest.mark.parametrize("name", ["close", "guard"])
def test_states_that_cannot_be_read_leave_nothing_paused_after_the_end(
    sandbox: SandboxServer, airflow: Airflow, name: str
) -> None:
    window = opened(FIRST, max_length=HOUR)
    airflow.runs.unread = {"run"}
    if name == "close":
        with pytest.raises(RuntimeError, match="414"):  # the work may still run
            window.close()
    else:
        deferral(lambda: window.guard("over"))
    assert history(sandbox, FIRST) == ["pause"]
    airflow.edit(airflow.lease_keys()[0], until=PAST)
    why = r"Airflow did not tell the states of its tasks, so nobody knows why" if name == "guard" else "it had to end"
    with pytest.raises(AirflowFailException, match=rf"^\[window-overdue\] The window is overdue: {why}"):
        window.close() if name == "close" else window.guard("over")
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_a_window_whose_states_cannot_be_read_does_not_stop_the_sweep(sandbox: SandboxServer, airflow: Airflow) -> None:
    opened(SECOND, run_id="unread")
    opened(FIRST, run_id="over")
    airflow.end("over", "its run is over")
    airflow.runs.unread = {"unread"}
    with pytest.raises(AirflowFailException, match=f"resumed {FIRST}"):
        sweep()
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert history(sandbox, SECOND) == ["pause"]
    (record,) = [each for each in airflow.swept["windows"].values() if each["state"] == "open"]
    assert record["why"] == "Airflow did not tell the states of its tasks"
    (key,) = airflow.lease_keys()
    airflow.edit(key, until=PAST)
    with pytest.raises(AirflowFailException, match=f"resumed {SECOND}"):
        sweep()
    assert history(sandbox, SECOND) == ["pause", "unpause"]


def test_another_window_whose_states_cannot_be_read_holds_an_export_until_its_end(
    sandbox: SandboxServer, airflow: Airflow
) -> None:
    opened(FIRST, run_id="unread")
    opened(FIRST, run_id="over")
    airflow.end("over", "its run is over")
    airflow.runs.unread = {"unread"}
    sweep()
    assert "unpause" not in history(sandbox, FIRST)
    (key,) = airflow.lease_keys()
    airflow.edit(key, until=PAST)
    with pytest.raises(AirflowFailException, match=f"resumed {FIRST}"):
        sweep()
    assert history(sandbox, FIRST)[-1] == "unpause"


@pytest.mark.parametrize("length", [5, 60, 250])
def test_many_tasks_with_long_ids_are_asked_for_in_short_requests(airflow: Airflow, length: int) -> None:
    task_ids = [f"{number}".rjust(length, "g") for number in range(300)]
    states = LeaseVariables().run(NotedWindow("dag", "run", CLOSE), task_ids)
    assert {CLOSE, *task_ids} == set(states.tasks or ())
    assert airflow.runs.longest < 4_300


@live
@pytest.mark.parametrize("fault", ["status_before", "status_after"])
def test_resume_fields_of_a_second_request_may_have_had_no_effect(
    sandbox: SandboxServer, connect: Connect, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    connect(max_attempts=3, consistency_time=0)
    window = opened(FIRST, SECOND, resume_fields={"backfill": True})
    sandbox.inject(fault, "unpause_batch_export", status=502)
    assert window.close() == closed(FIRST, SECOND)
    assert window.pushed == {"resume_fields_in_doubt": [FIRST]}
    assert f"{FIRST}: a request to resume had no answer" in caplog.text


@live
def test_resume_fields_of_a_later_try_may_have_had_no_effect(sandbox: SandboxServer, connect: Connect) -> None:
    connect(max_attempts=1, consistency_time=0.1)
    window = opened(FIRST, resume_fields={"backfill": True})
    sandbox.inject("reset_after", "unpause_batch_export")
    still_paused(window.close)
    time.sleep(0.2)
    assert window.close() == closed(FIRST)
    assert window.pushed == {"resume_fields_in_doubt": [FIRST]}


@live
@pytest.mark.parametrize(
    ("fault", "fields", "in_doubt"),
    [
        ("status_before", {"backfill": True}, [FIRST]),
        ("status_after", {"backfill": True}, [FIRST]),
        ("status_after", None, None),
        (None, {"backfill": True}, None),
    ],
)
@pytest.mark.parametrize("attempts", [3, 1], ids=["the same try", "the next try"])
def test_resume_fields_of_a_request_that_the_operator_repeats_may_have_had_no_effect(
    sandbox: SandboxServer, connect: Connect, fault: str | None, fields: Any, in_doubt: Any, attempts: int
) -> None:
    connect(max_attempts=attempts, consistency_time=0)
    if fault:
        sandbox.inject(fault, "unpause_batch_export", status=502)
    arguments = {"batch_export_id": FIRST, "resume_fields": fields}
    context: Any = {"ti": TaskInstance(), "task_state_store": TaskStore()}
    resume = WorkspaceUnpauseBatchExportOperator(task_id="task", **arguments)
    if fault and attempts == 1:
        with pytest.raises(WorkspaceError):
            resume.execute(context)
    resume.execute(context)
    assert context["ti"].xcoms.get("resume_fields_in_doubt") == in_doubt
    assert "begun" not in str(context["task_state_store"])


@live
@pytest.mark.parametrize("paths", [MOVED_PATHS, None], ids=["paths", "redirects"])
@pytest.mark.parametrize("end", ["close", "sweep"])
def test_a_window_over_moved_pause_and_resume(
    sandbox: SandboxServer, connect: Connect, airflow: Airflow, end: str, paths: dict[str, str] | None
) -> None:
    """With ``paths`` of the connection, or without where the service redirects: both exports by one client."""
    how = "gone" if paths else "redirect"
    sandbox.move("pause_batch_export", f"{MOVED}/pause/", how=how, status=307)
    sandbox.move("unpause_batch_export", f"{MOVED}/unpause/", how=how, status=308)
    connect(max_attempts=2, read_timeout=1, paths=paths)
    window = opened(FIRST, SECOND, resume_fields={"backfill": True})
    if end == "close":
        assert window.close() == closed(FIRST, SECOND)
    else:
        airflow.end("run", "its run is over")
        with pytest.raises(AirflowFailException, match=f"resumed {FIRST}, {SECOND}"):
            sweep()
    assert airflow.lease_keys() == []
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert history(sandbox, SECOND) == ["pause", "unpause"]
    writes = [entry for entry in sandbox.requests() if entry["method"] == "POST"]
    moved_to = f"/api/projects/{SEED.project_id}/"
    moved = [entry for entry in writes if entry["path"].startswith(moved_to)]
    assert len(moved) == 4
    resumes = [entry["body"] for entry in moved if "/unpause/" in entry["path"]]
    assert resumes == [{"backfill": True}] * 2
    redirected = {entry["status"] for entry in writes if entry not in moved}
    assert redirected == (set() if paths else {307, 308})


@pytest.mark.usefixtures("airflow")
def test_the_sweep_ignores_a_window_that_closes_meanwhile(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(FIRST)
    closing = iter([window.close])

    def closed_meanwhile(**_: Any) -> int:
        for close in closing:
            close()
        return 0

    monkeypatch.setattr(RuntimeTaskInstance, "get_dr_count", closed_meanwhile)
    assert sweep() == {"windows": [], "unreadable": {}}
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_a_dry_run_of_the_sweep_says_what_it_would_resume(sandbox: SandboxServer, airflow: Airflow) -> None:
    """Two windows that end hold one export, and a window at work another; nothing is written or sent."""
    opened(FIRST, SECOND, run_id="abandoned")
    opened(FIRST, run_id="abandoned too")
    opened(SECOND, run_id="at work")
    for run_id in ("abandoned", "abandoned too"):
        airflow.end(run_id, "its run is over")
    before = dict(airflow.variables.values), history(sandbox, FIRST), history(sandbox, SECOND)
    with LeaseHooks() as hooks:
        planned = sweep_windows(Closer(lease_registry(), hooks, "dry run"), dry_run=True)
    rows = [row["would_resume"] for row in planned.to_dict()["windows"]]
    assert (rows, planned.failed, planned.resumed) == ([[FIRST], [FIRST]], {}, [])
    assert f"would resume {FIRST}; held by others {SECOND}." in str(planned)
    assert (airflow.variables.values, history(sandbox, FIRST), history(sandbox, SECOND)) == before


def test_the_sweep_succeeds_with_fail_if_any_false(airflow: Airflow, capsys: pytest.CaptureFixture[str]) -> None:
    opened(FIRST)
    opened(SECOND, leave_paused=[SECOND.replace("-", "").upper()], run_id="left")
    for run_id in ("run", "left"):
        airflow.end(run_id, "its run is over")
    rows = sweep(fail_if_any=False)["windows"]
    assert [(row["resumed"], row["left_paused"]) for row in rows] == [([FIRST], []), ([], [SECOND])]
    assert json.loads(json.dumps(rows)) == rows
    left = f"Window dag / left / {CLOSE} (abandoned: its run is over): left paused, as asked or as before, {SECOND}."
    assert left in capsys.readouterr().out


@pytest.mark.parametrize(("index", "close"), [("", CLOSE), ("_0", f"{CLOSE} [0]")], ids=["", "mapped"])
def test_the_sweep_closes_a_window_whose_work_has_ended(
    sandbox: SandboxServer, airflow: Airflow, capsys: pytest.CaptureFixture[str], index: str, close: str
) -> None:
    """Its Dag is paused, its file deleted or the scheduler dead: ``close`` does not begin, or waits for a slot."""
    airflow.runs.tasks["run"] = {f"{CLOSE}{index}": None}
    window = opened(FIRST, map_index=0 if index else -1)
    opened(SECOND, run_id="at work")
    others = {f"{CLOSE}_1": "running", "rebuild_1": "running"} if index else {}
    ended = {f"first{index}": "success", f"rebuild{index}": "success"}
    airflow.runs.tasks["run"] = {f"{CLOSE}{index}": "queued", **ended, **others}
    airflow.runs.tasks["at work"] = {CLOSE: None, "rebuild": "running"}
    assert sweep()["windows"] == []
    ((name, first),) = [(name, each) for name, each in airflow.swept["windows"].items() if each["state"] == "closing"]
    why = "its work has ended and its closing task has not begun"
    assert first["why"] == why
    assert {each["state"] for each in airflow.swept["windows"].values()} == {"closing", "open"}
    assert sweep()["windows"] == []
    assert airflow.swept["windows"][name] == first
    old = json.dumps(airflow.swept).replace(airflow.swept["at"], PAST)
    airflow.variables.values[SWEEP] = old.replace(first["since"], PAST)
    Window(SECOND, run_id="warns").open()
    assert (
        f"by a window that is abandoned: {why}. Run '{COMMAND} sweep'. Window: dag / run / {close}. Exports: "
        f"{FIRST}." in capsys.readouterr().out
    )
    with pytest.raises(
        AirflowFailException, match=rf"\(abandoned: its work has ended and .* has not begun\): resumed {FIRST}\."
    ):
        sweep()
    assert airflow.swept["windows"][name]["text"] == f"abandoned: {why}"
    assert window.close()["resumed"] == []
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], ["pause"])


def test_a_window_warns_if_there_is_no_sweep(airflow: Airflow, capsys: pytest.CaptureFixture[str]) -> None:
    opened(SECOND, run_id="abandoned")
    airflow.end("abandoned", "its run is gone")
    Window(FIRST, run_id="first").open()
    said = capsys.readouterr().out
    assert "No sweep ran in the last hour" in said
    assert f"by a window that is abandoned: its run is gone. Run '{COMMAND} sweep'" in said
    sweep(fail_if_any=False)
    Window(FIRST, run_id="second").open()
    assert "No sweep ran" not in capsys.readouterr().out


EDITS: dict[str, list[Any]] = {
    "map_index": ["-1", 1.5, True],
    "leave_paused": ["no"],
    "exports": ["2"],
    "work_task_ids": ["rebuild", 5, [5]],
    "resume_fields": ["backfill", {"paused": False}, {"x": math.nan}, {"": {}}],
    "dag_id": [5],
    "run_id": ["other"],
    "group_id": [[]],
    "service": ["https://other.example.com"],
    "workspace_conn_id": ["unknown", ["a"]],
    "organization_id": ["other"],
    "batch_export_id": [None],
    "state": ["open", ["paused"]],
    "paused_at": [None],
    "resumed_at": [PAST, "2999-01-01"],
    "since": [20261123],
    "until": ["soon", {}],
    "late_pause_until": ["2999-01-01"],
    "late_resume_until": ["2999-01-01"],
    "refused": [5],
    "state_of": ["", "nowhere.at_all", 5],
    "paused_before": ["no", None],
    "seen": ["maybe", "running"],
    "seen_at": ["soon"],
    "closer": [{}],
    "unknown": ["field"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in EDITS.items() for value in values])
def test_an_edited_lease_ends_resumed_or_named(sandbox: SandboxServer, airflow: Airflow, name: str, value: Any) -> None:
    """And it stops nobody else's."""
    for run_id, export in (("edited", FIRST), ("other", SECOND)):
        opened(export, run_id=run_id)
        airflow.end(run_id, "its run is over")
    airflow.edit(next(key for key in airflow.lease_keys() if FIRST in key), **{name: value})
    with pytest.raises((AirflowFailException, WorkspaceError), match=f"resumed {SECOND}|STILL PAUSED") as said:
        sweep()
    assert history(sandbox, SECOND) == ["pause", "unpause"]
    assert history(sandbox, FIRST) == ["pause", "unpause"] or FIRST in str(said.value)


@pytest.mark.parametrize("has_result", [True, False], ids=["", "the XCom of open is deleted"])
def test_a_window_whose_lease_was_overwritten_is_resumed_or_fails(
    sandbox: SandboxServer, airflow: Airflow, *, has_result: bool
) -> None:
    window = opened(FIRST, SECOND)
    (key,) = (key for key in airflow.lease_keys() if FIRST in key)
    airflow.variables.values[key] = "none"
    if has_result:
        assert sorted(window.close()["resumed"]) == [FIRST, SECOND]
    else:
        del window.results[f"{GROUP}.open"]
        for _ in range(2):
            still_paused(window.close, f"run '.* resume {FIRST}' first, then delete the Variable '{re.escape(key)}'")
    assert history(sandbox, FIRST) == (["pause", "unpause"] if has_result else ["pause"])
    assert history(sandbox, SECOND) == ["pause", "unpause"]


def test_an_overwritten_lease_fails_the_sweep_only_if_its_window_is_over(airflow: Airflow) -> None:
    """A sweep has seen the window, and notes it as long as one of its leases is there."""
    opened(FIRST)
    sweep()
    broken = airflow.lease_keys()
    airflow.variables.values[broken[0]] = "none"
    for _ in range(2):
        assert list(sweep()["unreadable"]) == broken
    airflow.end("run", "its run is over")
    with pytest.raises(
        AirflowFailException,
        match=f"The lease of batch export {FIRST} cannot be read.* resume {FIRST}' first, then delete",
    ):
        sweep()


@pytest.mark.parametrize("closer", [..., "sweep#1"], ids=["nobody closes", "paused later"])
def test_an_export_is_resumed_though_its_lease_says_so(sandbox: SandboxServer, airflow: Airflow, closer: Any) -> None:
    window = opened(FIRST)
    airflow.edit(airflow.lease_keys()[0], state="closing", resumed_at=PAST, closer=closer)
    assert window.close()["resumed"] == [FIRST]
    assert history(sandbox, FIRST) == ["pause", "unpause"]


# Connections and resume_fields


def test_a_lease_is_resumed_only_with_its_own_connection_and_service(
    connect: Connect, sandbox: SandboxServer, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(FIRST)
    connect(host=sandbox.url.replace("127.0.0.1", "localhost"))
    still_paused(window.close, "Connection 'workspace_default' leads to")
    monkeypatch.delenv("AIRFLOW_CONN_WORKSPACE_DEFAULT")
    still_paused(window.close, FIRST)
    assert held(airflow) == [FIRST]


@pytest.mark.usefixtures("no_waits")
def test_a_refusal_that_is_not_about_resume_fields_keeps_them(sandbox: SandboxServer, airflow: Airflow) -> None:
    window = opened(FIRST, resume_fields={"backfill": True})
    sandbox.inject("status_before", "unpause_batch_export", status=409, times=2)
    with pytest.raises(WorkspaceError, match=r"^\[still-paused\]"):
        window.close()
    (lease,) = airflow.leases()
    assert lease["resume_fields"] == {"backfill": True}


def test_the_guard_says_what_resume_fields_had_no_effect(sandbox: SandboxServer, clock: Clock) -> None:
    window = opened(FIRST, resume_fields={"unknown": True}, max_length=60)
    clock.wait(61)
    with pytest.raises(AirflowFailException, match=rf"^\[window-overdue\] .* Fill by hand what was missed by {FIRST}"):
        window.guard("over")
    assert history(sandbox, FIRST) == ["pause", "unpause"]


@pytest.mark.parametrize(("field", "says"), [("backfil", rf"'backfil'.*{SECOND}: "), ("backfill", ".*409")])
def test_an_export_is_resumed_without_refused_resume_fields(
    sandbox: SandboxServer, airflow: Airflow, field: str, says: str
) -> None:
    if "409" in says:
        sandbox.inject("status_before", "unpause_batch_export", status=409)
    window = opened(FIRST, SECOND, resume_fields={field: True})
    message = rf"^\[resume-fields-refused\] Resumed without resume_fields.*: 2 batch exports\. .*{says}"
    with pytest.raises(AirflowFailException, match=message):
        window.close()
    assert history(sandbox, FIRST) == history(sandbox, SECOND) == ["pause", "unpause"]
    assert airflow.lease_keys() == []


UNTRUE: list[dict[str, Any]] = [
    {"detail": "Not allowed"},
    {"id": FIRST, "paused": "2026-11-29T00:00:00Z"},
    {"id": FIRST, "paused": None},
]


@pytest.mark.parametrize("body", [*UNTRUE, {"batch_export": {"paused": False}}])
def test_a_window_does_not_open_by_an_answer_that_shows_no_pause(
    sandbox: SandboxServer, airflow: Airflow, body: dict[str, Any]
) -> None:
    sandbox.inject("say", "pause_batch_export", body=body, rows=0, times=None)
    with pytest.raises(WorkspaceNotAppliedError, match="PauseBatchExport returned 200, but was not applied"):
        opened(FIRST)
    assert len(airflow.lease_keys()) == 1


@pytest.mark.parametrize("body", [*UNTRUE, {"batch_export": {"paused": True}}])
def test_an_answer_that_shows_no_resume_leaves_the_export_to_the_next_try(
    sandbox: SandboxServer, airflow: Airflow, body: dict[str, Any]
) -> None:
    window = opened(FIRST)
    sandbox.inject("say", "unpause_batch_export", body=body, rows=0, times=3)
    with pytest.raises(
        WorkspaceError, match=r"^\[still-paused\].*UnpauseBatchExport returned 200, but was not applied"
    ):
        window.close()
    assert len(airflow.lease_keys()) == 1
    assert history(sandbox, FIRST) == ["pause"]


# Arguments


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"resume_fields": {"paused": False}}, "paused"),
    ({"resume_fields": {"x": math.nan}}, "nan|NaN"),
    ({"resume_fields": "backfill"}, "resume_fields must be a mapping"),
    ({"max_length": 60, "drain": 60}, "The window is overdue after 60 s, and drain and hold together take 60 s"),
    ({"leave_paused": ["all"]}, "leave_paused must be a list of batch exports"),
    ({"leave_paused": f"['{FIRST}']"}, r"\(UUID\)\. Pass task.output"),
]


@pytest.mark.parametrize(("arguments", "error"), INVALID)
def test_an_invalid_argument_is_refused_before_pausing(
    sandbox: SandboxServer, airflow: Airflow, arguments: dict[str, Any], error: str
) -> None:
    """Such as of a template or XCom, which is read only now."""
    window = Window(FIRST)
    for name, value in arguments.items():
        setattr(window.dag.get_task("maintenance_window.open"), name, value)
    with pytest.raises((AirflowFailException, ValueError), match=error):
        window.open()
    assert airflow.lease_keys() == []
    assert sandbox.requests() == []


@pytest.mark.parametrize("value", [5, ["close"], "a\x00b", "", None])
def test_an_invalid_task_id_is_refused_in_the_dag_file(value: Any) -> None:
    operator: Any = type(Window(FIRST).dag.get_task(f"{GROUP}.pause"))
    with pytest.raises(WorkspaceInputError, match="close_task_id must be the id of a task"):
        operator(task_id="pause", close_task_id=value)


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        *(({"max_length": value}, HOUR) for value in (timedelta(hours=1), 3600, 3600.0, "3600", " 3600 ")),
        ({"drain": 600, "hold": timedelta(days=2)}, 600 + 3 * 86_400),
    ],
)
def test_every_window_has_a_latest_end(
    arguments: dict[str, Any], seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    window = Window(FIRST, **arguments).open()
    assert window["until"] - window["opened_at"] == seconds
    who = "guard" if "max_length" in arguments else "sweep"
    said = f"at the latest. If it is not closed by then, the {who} resumes its exports, and no further task"
    assert said in capsys.readouterr().out


def test_a_window_warns_in_multi_team_mode(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    Window(FIRST).open()
    assert "within one team" in capsys.readouterr().out


# The work


def refused(window: Window, why: str) -> None:
    message = rf"^\[window-not-open\] The window is .*{why}.*was not run. Clear it with 'Downstream'"
    with pytest.raises(AirflowFailException, match=message):
        window.work()


@pytest.mark.usefixtures("no_waits")
def test_the_work_runs_only_in_an_open_window(sandbox: SandboxServer, airflow: Airflow) -> None:
    window = Window(FIRST, SECOND)
    refused(window, "closed: no export is held")
    with pytest.raises(AirflowFailException, match=r"The window is closed: no export is held, so nothing was sent"):
        window.pause()
    assert sandbox.requests() == []
    window.open()
    refused(window, "opening")
    window.pause()
    window.work()
    key = airflow.lease_keys()[0]
    lease = airflow.variables.values.pop(key)
    refused(window, "closing: not all of its exports are held any more")
    airflow.variables.values[key] = "{"
    refused(window, "or a lease cannot be read")
    airflow.variables.values[key] = lease
    window.work()
    airflow.runs.tasks["run"] = {CLOSE: "running"}
    refused(window, "closing: its closing task has begun")
    with pytest.raises(AirflowFailException, match="The window is closing: its closing task has begun"):
        window.pause()


@pytest.mark.usefixtures("sandbox")
def test_deferred_work_goes_on_in_a_closed_window(airflow: Airflow, caplog: pytest.LogCaptureFixture) -> None:
    """Airflow calls pre_execute again as a task resumes, and to run it anew would do its work twice."""
    window = opened(FIRST)
    airflow.edit(airflow.lease_keys()[0], until=PAST)
    refused(window, "overdue since")
    check: Any = window.dag.get_task("rebuild")._pre_execute_hook
    context = window.context("rebuild")
    context["ti"]._ti_context_from_server = SimpleNamespace(next_method="execute_complete")
    check(context)
    assert "This task goes on, because it began before it was deferred" in caplog.text
    assert "the window is overdue since" in caplog.text


@pytest.mark.parametrize("spelled", [ORGANIZATION.replace("-", ""), f" {ORGANIZATION.upper()}\n"])
@pytest.mark.parametrize("ends", ["close", "sweep"])
def test_windows_see_each_other_however_the_organization_is_written(
    sandbox: SandboxServer, airflow: Airflow, spelled: str, ends: str
) -> None:
    window = opened(FIRST, organization_id=spelled)
    window.open()
    window.work()
    other = opened(FIRST, run_id="other")
    assert other.close()["held"] == {FIRST: [f"dag / run / {CLOSE}"]}
    assert [lease["organization_id"] for lease in airflow.leases()] == [ORGANIZATION]
    airflow.end("run", "its run is over")
    assert (window.close() if ends == "close" else sweep(fail_if_any=False)["windows"][0])["resumed"] == [FIRST]
    assert (airflow.lease_keys(), history(sandbox, FIRST)) == ([], ["pause", "unpause"])


def test_another_window_does_not_resume_after_open_alone_was_cleared(sandbox: SandboxServer) -> None:
    window, other = opened(FIRST), opened(FIRST, run_id="other")
    window.open()
    window.work()
    assert other.close()["held"] == {FIRST: [f"dag / run / {CLOSE}"]}
    assert "unpause" not in history(sandbox, FIRST)
    assert window.close()["resumed"] == [FIRST]


# Several tasks at once, kills, and exported intervals, as the sandbox records them


@live
@pytest.mark.parametrize(("first", "second"), list(permutations(("close", "guard", "sweep"), 2)))
@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_backfill_is_asked_for_once(
    sandbox: SandboxServer, airflow: Airflow, monkeypatch: pytest.MonkeyPatch, first: str, second: str, moment: str
) -> None:
    """Two tasks close a window at the same time: the second one begins while a request of the first is under way."""
    window = opened(FIRST, SECOND, resume_fields={"backfill": True}, max_length=HOUR)
    for key in airflow.lease_keys():
        airflow.edit(key, until=PAST)
    tasks: dict[str, Any] = {"close": window.close, "sweep": sweep, "guard": lambda: window.guard("over")}
    begun: list[str] = []

    def begin() -> None:
        begun.append(second)
        with suppress(AirflowFailException, TaskDeferred):
            tasks[second]()

    getattr(Interruptions(monkeypatch), moment)("/unpause/", begin)
    with suppress(AirflowFailException):
        tasks[first]()
    assert begun == [second]
    for export in (FIRST, SECOND):
        assert [effect["detail"].get("backfill") for effect in sandbox.effects() if effect["target"] == export] == [
            None,
            True,
        ]
    assert asked(sandbox, "unpause") == 2
    assert airflow.lease_keys() == []
