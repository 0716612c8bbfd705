"""Tasks of a maintenance window against the sandbox, with leases in memory. tests/e2e runs them in Airflow."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_provider_workspace.client.client import WorkspaceClient
from airflow_provider_workspace.operators import window_closing, windows
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.state.lease_store import VariableStore
from airflow_provider_workspace.state.leases import Lease, LeaseRegistry
from airflow_provider_workspace.state.resuming import describe_sweep, marked_as_failed
from airflow_provider_workspace.task_groups import maintenance_window
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException, TaskDeferred
from tests.task_instance import Killed, TaskStore
from tests.variables import install, install_runs

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

FIRST, SECOND = SEED.batch_export_ids[:2]
NOBODY = "0190c0de-0000-4000-8000-0000000000ee"
CLOSE = "maintenance_window.close"


class Store:
    """Airflow's Variables, and reasons why windows are over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.variables = install(monkeypatch)
        self.runs = install_runs(monkeypatch)
        self.values = self.variables.values

    def end(self, run_id: str, why: str) -> None:
        """End a window: ``its run is over``, ``its closing task is failed``, …."""
        what, _, state = why.rpartition(" is ")
        if what == "its run":
            self.runs.over[run_id] = state
        else:
            self.runs.tasks[run_id] = {CLOSE: state}

    @property
    def sweep(self) -> Any:
        """The Variable of the sweep."""
        return json.loads(self.values["workspace_window_sweep"])

    def leases(self) -> dict[str, str]:
        return {key: value for key, value in self.values.items() if key.startswith("workspace_lease.")}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


@pytest.fixture(autouse=True)
def connected(connect: Connect, store: Store) -> None:
    assert not store.values
    connect(max_attempts=2, read_timeout=1)


class Run:
    """A Dag run with a window."""

    def __init__(self, run_id: str = "run") -> None:
        self.run_id = run_id
        self.max_tries = 15
        self.state: TaskStore | None = TaskStore()
        self.xcoms: dict[str, Any] = {}

    def context(self, task_id: str) -> Any:
        ti = SimpleNamespace(
            dag_id="dag",
            run_id=self.run_id,
            task_id=task_id,
            map_index=-1,
            try_number=1,
            max_tries=self.max_tries,
            xcom_pull=lambda task_ids, map_indexes: self.xcoms.get(task_ids) if map_indexes == -1 else None,
            xcom_push=lambda key, value: self.xcoms.__setitem__((task_id, key), value),
        )
        return {"ti": ti, "task_state_store": self.state}

    def open(self, *export_ids: str, work_task_ids: Sequence[str] = (), **arguments: Any) -> Any:
        task = windows.WorkspaceOpenMaintenanceWindowOperator(
            task_id="open", close_task_id=CLOSE, batch_export_ids=export_ids, **arguments
        )
        task.work_task_ids = work_task_ids
        self.xcoms["maintenance_window.open"] = task.execute(self.context("maintenance_window.open"))
        return self.xcoms["maintenance_window.open"]

    def pause(self) -> Any:
        task = windows.WorkspacePauseWindowExportsOperator(task_id="pause", close_task_id=CLOSE)
        return task.execute(self.context("maintenance_window.pause"))

    def close(self, event: Any = None) -> Any:
        task = window_closing.WorkspaceCloseMaintenanceWindowOperator(
            task_id="close", open_task_id="maintenance_window.open"
        )
        context = self.context(CLOSE)
        return task.execute_complete(context, event) if event else task.execute(context)

    def guard(self, status: str | None = None) -> Any:
        task = window_closing.WorkspaceGuardMaintenanceWindowOperator(task_id="guard", close_task_id=CLOSE)
        context = self.context("maintenance_window.guard")
        return task.execute_complete(context, {"status": status}) if status else task.execute(context)


def sweep(**arguments: Any) -> Any:
    task = window_closing.WorkspaceResumeAbandonedExportsOperator(task_id="sweep", **arguments)
    return task.execute(Run("sweep").context("sweep"))


def history(sandbox: SandboxServer, export: str) -> list[str]:
    return [effect["operation"].split("_")[0] for effect in sandbox.effects() if effect["target"] == export]


def asked(sandbox: SandboxServer, word: str) -> int:
    return sum(1 for entry in sandbox.requests() if entry["path"].endswith(f"/{word}/"))


def leases(_: Store) -> list[Lease]:
    return LeaseRegistry(VariableStore()).all()


def test_a_window_pauses_and_resumes_each_export_once(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    opened = run.open(FIRST, SECOND)
    assert opened["batch_export_ids"] == [FIRST, SECOND]
    assert {lease.state for lease in leases(store)} == {"opening"}
    assert run.pause()["paused"] == [FIRST, SECOND]
    assert {lease.state for lease in leases(store)} == {"paused"}
    assert run.close() == {"resumed": [FIRST, SECOND], "held": {}, "left_paused": [], "never_paused": {}}
    assert history(sandbox, FIRST) == history(sandbox, SECOND) == ["pause", "unpause"]
    assert (asked(sandbox, "pause"), asked(sandbox, "unpause")) == (2, 2)
    assert store.leases() == {}


def test_close_checks_later_whether_another_task_has_resumed(
    sandbox: SandboxServer, connect: Connect, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(consistency_time=0)
    run = Run()
    run.open(FIRST)
    run.pause()
    claim = LeaseRegistry.claim

    def lose(registry: LeaseRegistry, lease: Lease, closer: str, **changes: Any) -> Lease:
        """Claim a lease; then another task claims it, and is killed."""
        claim(registry, lease, "guard#1", **changes)
        return dataclasses.replace(lease, closer=closer, **changes)

    with monkeypatch.context() as patch:
        patch.setattr(LeaseRegistry, "claim", lose)
        with pytest.raises(TaskDeferred) as deferred:
            run.close()
    assert history(sandbox, FIRST) == ["pause"]
    trigger: Any = deferred.value.trigger
    assert run.close({"status": "over", "state": trigger.state})["resumed"] == [FIRST]
    assert store.leases() == {}


def test_lease_keys_are_valid_variable_keys(store: Store) -> None:
    Run("manual__2026-11-21T00:00:00+00:00/" + "x" * 300).open(FIRST)
    (key,) = store.values
    assert len(key) <= 250
    assert key.replace("_", "").replace(".", "").replace("-", "").isalnum()
    assert FIRST in key


def test_the_last_window_resumes(sandbox: SandboxServer, store: Store) -> None:
    first, second = Run("first"), Run("second")
    for run in (first, second):
        run.open(FIRST)
        run.pause()
    assert first.close()["held"] == {FIRST: [f"dag / second / {CLOSE}"]}
    assert history(sandbox, FIRST) == ["pause"]
    assert second.close()["resumed"] == [FIRST]
    assert store.leases() == {}


def test_only_an_open_window_takes_over_an_export(sandbox: SandboxServer, store: Store) -> None:
    first, opening, gone = Run("first"), Run("opening"), Run("gone")
    for run in (first, gone):
        run.open(FIRST)
        run.pause()
    opening.open(FIRST)
    store.end("gone", "its run is over")
    assert first.close()["resumed"] == [FIRST]
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_close_retries_only_what_failed(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    sandbox.inject("status_before", operation="unpause_batch_export", status=403, times=1)
    with pytest.raises(Exception, match=f"STILL PAUSED.*: {FIRST}"):
        run.close()
    assert [lease.batch_export_id for lease in leases(store)] == [FIRST]
    run.close()
    assert asked(sandbox, "unpause") == 3
    assert store.leases() == {}


def test_an_export_that_could_not_be_paused_fails_close_without_retry(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    run.open(FIRST, NOBODY, SECOND)
    with pytest.raises(AirflowFailException, match="404"):
        run.pause()
    with pytest.raises(
        AirflowFailException, match=rf"NEVER PAUSED, and so not resumed: {NOBODY}: .*resumed: {FIRST}, {SECOND}\.$"
    ):
        run.close()
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert asked(sandbox, "unpause") == 2
    assert store.leases() == {}


@pytest.mark.parametrize("task_state_store", [True, False], ids=["3.3", "before 3.3"])
def test_a_pause_with_unknown_outcome_is_resumed_twice(
    sandbox: SandboxServer, store: Store, connect: Connect, *, task_state_store: bool
) -> None:
    connect(max_attempts=2, read_timeout=1, consistency_time=0.5)
    run = Run()
    if not task_state_store:
        run.state = None
    run.open(FIRST, SECOND)
    sandbox.inject("reset_after", operation="pause_batch_export", times=2)
    with pytest.raises(Exception, match="no complete response"):
        run.pause()
    with pytest.raises(TaskDeferred) as deferred:
        run.close()
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    trigger: Any = deferred.value.trigger
    assert 0 < trigger.end_at - time.time() <= 0.5
    time.sleep(max(0.0, trigger.end_at - time.time()))
    closed = run.close({"status": "over", "state": trigger.state})
    assert closed == {"resumed": [FIRST], "held": {}, "left_paused": [], "never_paused": {SECOND: None}}
    assert asked(sandbox, "unpause") == 2
    assert store.leases() == {}


def test_a_window_whose_closing_task_is_over_is_not_opened(sandbox: SandboxServer, store: Store) -> None:
    """Clearing the work of one mapped window clears the setups of all of them, and the teardown of that one."""
    run = Run()
    store.end("run", "its closing task is success")
    with pytest.raises(AirflowSkipException, match=f"^Clear '{CLOSE}' too to open this window again: it is success"):
        run.open(FIRST)
    assert store.leases() == {}
    assert sandbox.requests() == []


def test_exports_of_unreadable_leases_are_resumed(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    for key, value in zip(sorted(store.values), ('{"ends": "soon"}', "[" * 5000), strict=True):
        store.values[key] = value
    assert sorted(run.close()["resumed"]) == [FIRST, SECOND]
    assert store.leases() == {}
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_a_lease_with_the_fields_of_another_is_not_resumed_for_ever(sandbox: SandboxServer, store: Store) -> None:
    """A person may edit the Variable, and older releases had other keys."""
    run = Run()
    run.open(FIRST)
    run.pause()
    ((key, value),) = store.values.items()
    store.values[key] = value.replace(FIRST, SECOND)
    assert run.close()["resumed"] == [FIRST]
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert history(sandbox, SECOND) == []
    assert store.leases() == {}

    renamed = key[:-1] + "_"
    store.values[renamed] = value
    assert run.close()["resumed"] == [FIRST]
    with pytest.raises(AirflowFailException, match=f"Delete or correct the Variable '{renamed}'"):
        sweep()
    assert asked(sandbox, "unpause") == 2


def test_an_export_whose_lease_was_deleted_stays_paused(sandbox: SandboxServer, store: Store) -> None:
    """As docs/guides/maintenance-windows.md says: a deleted lease looks like a window that was closed."""
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    del store.values[next(key for key in store.values if FIRST in key)]
    assert run.close()["resumed"] == [SECOND]
    assert history(sandbox, FIRST) == ["pause"]


def test_pause_fails_after_the_window_was_closed(sandbox: SandboxServer) -> None:
    run = Run()
    with pytest.raises(AirflowFailException, match=r"the window is closed: no export is held\. Nothing was sent"):
        run.pause()
    assert sandbox.requests() == []


@pytest.mark.parametrize(
    ("states", "map_index", "marked"),
    [
        ({"outcome": "skipped", "work": "failed"}, -1, True),
        ({"outcome": "skipped", "work": "skipped"}, -1, False),
        ({"outcome": "skipped", "work": "skipped", "open": "success", "pause": "skipped"}, -1, True),
        ({"outcome": "skipped", "work": "skipped", "open": "success", "pause": "success"}, -1, False),
        ({"outcome": "upstream_failed", "work": "failed"}, -1, False),
        ({"outcome_0": "skipped", "work_0": "skipped", "pause_0": "skipped"}, 0, True),
        ({"outcome_0": "skipped", "work_0": "failed", "outcome_1": "success", "work_1": "success"}, 0, True),
        ({"outcome_0": "skipped", "work_0": "skipped", "outcome_1": "upstream_failed", "work_1": "failed"}, 0, False),
    ],
)
def test_a_run_that_was_marked_as_failed_is_recognized(states: dict[str, str], map_index: int, *, marked: bool) -> None:
    """In a mapped task group Airflow appends the index to the ids of its tasks."""

    def get_task_states(*, map_index: int | None = None, **_: Any) -> Any:
        index = "" if map_index is None else f"_{map_index}"
        return {"run": {name: state for name, state in states.items() if name.endswith(index)}}

    ti = SimpleNamespace(dag_id="dag", run_id="run", map_index=map_index, get_task_states=get_task_states)
    assert marked_as_failed(ti, "outcome", ["open", "pause"], ["work"]) == marked


def test_close_names_what_was_never_paused(sandbox: SandboxServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as after somebody marked the pause as successful in its place."""
    run = Run()
    run.open(FIRST)
    assert run.close()["never_paused"] == {FIRST: None}
    assert f"Never paused by this window, and so not resumed: {FIRST}" in capsys.readouterr().out
    assert sandbox.requests() == []


def test_the_guard_closes_an_overdue_window(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    run.open(FIRST, max_length=timedelta(hours=1))
    run.pause()
    with pytest.raises(TaskDeferred) as deferred:
        run.guard()
    trigger: Any = deferred.value.trigger
    assert trigger.end_at == pytest.approx(time.time() + 3600, abs=5)
    run.guard("closed")
    assert leases(store)
    with pytest.raises(AirflowFailException, match=f"overdue: .*Resumed: {FIRST}"):
        run.guard("over")
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert run.guard() is None
    assert run.close()["resumed"] == []


@pytest.mark.parametrize("why", ["its run is over", "its run is gone", "its closing task is removed", None])
def test_the_sweep_closes_only_abandoned_windows(sandbox: SandboxServer, store: Store, why: str | None) -> None:
    abandoned, at_work = Run("abandoned"), Run("at work")
    for run, export in ((abandoned, FIRST), (at_work, SECOND)):
        run.open(export, max_length=timedelta(seconds=1) if run is abandoned and why is None else None)
        run.pause()
    if why is None:
        time.sleep(1.1)
    else:
        store.end("abandoned", why)
    with pytest.raises(
        AirflowFailException, match=rf"Abandoned window dag / abandoned / {CLOSE} \(.*\): resumed {FIRST}\."
    ):
        sweep()
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], ["pause"])
    assert sweep() == {"windows": [], "unreadable": {}}


def test_the_sweep_ignores_a_window_that_closes_meanwhile(
    sandbox: SandboxServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()

    def closed_meanwhile(**_: Any) -> int:
        if store.leases():
            run.close()
        return 0

    monkeypatch.setattr(RuntimeTaskInstance, "get_dr_count", closed_meanwhile)
    assert sweep() == {"windows": [], "unreadable": {}}
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_the_sweep_succeeds_with_fail_if_any_false(store: Store) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()
    store.end("run", "its run is over")
    (row,) = sweep(fail_if_any=False)["windows"]
    assert row["resumed"] == [FIRST]
    assert json.loads(json.dumps(row)) == row


def test_the_sweep_names_unreadable_leases(store: Store) -> None:
    store.values["workspace_lease.foreign"] = "12"
    with pytest.raises(AirflowFailException, match=r"workspace_lease\.foreign"):
        sweep()


def test_the_sweep_names_exports_it_cannot_resume(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()
    store.end("run", "its run is over")
    sandbox.revoke_key(SEED.admin_key)
    with pytest.raises(Exception, match=f"STILL PAUSED.*: {FIRST}.*401.*Abandoned window dag / run"):
        sweep()
    assert leases(store)


def test_a_lease_is_resumed_only_with_its_own_connection_and_service(
    connect: Connect, sandbox: SandboxServer, store: Store
) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()
    connect(host=sandbox.url.replace("127.0.0.1", "localhost"))
    with pytest.raises(Exception, match="Set the host of connection 'workspace_default' back to"):
        run.close()
    assert leases(store)


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_resume_fields_are_sent(sandbox: SandboxServer) -> None:
    run = Run()
    run.open(FIRST, resume_fields={"backfill": True})
    run.pause()
    run.close()
    (effect,) = sandbox.effects("unpause_batch_export")
    assert effect["detail"]["backfill"] is True


def test_an_export_is_resumed_without_refused_resume_fields(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    run.open(FIRST, SECOND, resume_fields={"backfil": True})
    run.pause()
    with pytest.raises(AirflowFailException, match=rf"^Correct resume_fields.*{FIRST}: .*'backfil'.*{SECOND}: "):
        run.close()
    assert history(sandbox, FIRST) == history(sandbox, SECOND) == ["pause", "unpause"]
    assert store.leases() == {}


def test_a_transient_refusal_keeps_the_resume_fields(sandbox: SandboxServer, store: Store, connect: Connect) -> None:
    connect(max_attempts=2)
    run = Run()
    run.open(FIRST, resume_fields={"backfill": True})
    run.pause()
    sandbox.inject("status_before", operation="unpause_batch_export", status=400, times=2)
    with pytest.raises(Exception, match="STILL PAUSED"):
        run.close()
    assert [lease.resume_fields for lease in leases(store)] == [{"backfill": True}]


@pytest.mark.parametrize("fields", [{"paused": False}, {"x": math.nan}, "backfill"])
def test_invalid_resume_fields_are_refused_before_pausing(store: Store, fields: Any) -> None:
    with pytest.raises((AirflowFailException, ValueError)):
        Run().open(FIRST, resume_fields=fields)
    assert store.leases() == {}


@pytest.mark.parametrize("value", [math.nan, 1e300, -1, timedelta(seconds=-1), "soon", "nan", True, [], timedelta.max])
@pytest.mark.parametrize("name", ["hold", "drain", "max_length"])
def test_an_invalid_max_length_is_refused_before_pausing(store: Store, name: str, value: Any) -> None:
    with pytest.raises(AirflowFailException, match=f"{name} must be a timedelta or a number of seconds"):
        Run().open(FIRST, **{name: value})
    assert store.leases() == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, -1, 1e12, "soon", "nan", True, [], None])
def test_an_invalid_start_time_is_refused(value: Any) -> None:
    task = windows.WorkspaceHoldMaintenanceWindowOperator(task_id="hold", opened_at=value, length=60)
    with pytest.raises(AirflowFailException, match="opened_at must be a number of seconds since 1970"):
        task.execute(Run().context("hold"))


@pytest.mark.parametrize("value", [5, ["close"], "a\x00b", None])
def test_an_invalid_close_task_id_is_refused_before_pausing(store: Store, value: Any) -> None:
    task = windows.WorkspaceOpenMaintenanceWindowOperator(task_id="open", close_task_id=value, batch_export_ids=[FIRST])
    with pytest.raises(AirflowFailException, match="close_task_id must be the id of a task"):
        task.execute(Run().context("open"))
    assert store.leases() == {}


@pytest.mark.parametrize("value", [timedelta(hours=1), 3600, 3600.0, "3600", " 3600 "])
def test_max_length_accepts_numbers_and_durations(value: Any) -> None:
    opened = Run().open(FIRST, max_length=value)
    assert opened["until"] - opened["opened_at"] == 3600


def test_every_window_has_a_latest_end(store: Store) -> None:
    opened = Run().open(FIRST, drain=600, hold=timedelta(days=2))
    assert opened["until"] - opened["opened_at"] == 600 + 3 * 86_400
    (lease,) = leases(store)
    assert Lease.from_dict(json.loads(json.dumps(lease.to_dict()))) == lease


def test_a_window_warns_in_multi_team_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    task = windows.WorkspaceOpenMaintenanceWindowOperator(task_id="open", close_task_id=CLOSE, batch_export_ids=[FIRST])
    monkeypatch.setattr(task.log, "warning", lambda message, *_: said.append(message))
    task.execute(Run().context("open"))
    assert "within one team" in " ".join(said)


def test_a_window_warns_if_there_is_no_sweep(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    Run("abandoned").open(SECOND)
    store.end("abandoned", "its run is gone")

    def warnings(run_id: str) -> str:
        said: list[str] = []
        task = windows.WorkspaceOpenMaintenanceWindowOperator(
            task_id="open", close_task_id=CLOSE, batch_export_ids=[FIRST]
        )
        monkeypatch.setattr(task.log, "warning", lambda message, *values: said.append(message % values))
        task.execute(Run(run_id).context("open"))
        return "\n".join(said)

    said = warnings("first")
    assert "Add a Dag with WorkspaceResumeAbandonedExportsOperator" in said
    assert f"may have paused {SECOND} at" in said
    assert "its run is gone" in said
    sweep()
    assert "Add a Dag" not in warnings("second")


@pytest.mark.needs_airflow("3.2", "an error of its own for an unknown connection outside of a task")
def test_a_missing_connection_is_named(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()
    monkeypatch.delenv("AIRFLOW_CONN_WORKSPACE_DEFAULT")
    with pytest.raises(Exception, match=f"STILL PAUSED.*: {FIRST}.*Add connection 'workspace_default' again"):
        run.close()
    assert leases(store)


# What a window is


with (
    DAG("dag", schedule=None) as WINDOW_DAG,
    maintenance_window(batch_export_ids=[FIRST], max_length=3600),
):
    EmptyOperator(task_id="first") >> EmptyOperator(task_id="rebuild")
CHECK = WINDOW_DAG.get_task("rebuild")._pre_execute_hook


def work(run: Run) -> None:
    """Begin a task of the work."""
    CHECK(run.context("rebuild"))


def refused(run: Run, why: str) -> None:
    with pytest.raises(
        AirflowFailException, match=rf"^Clear 'maintenance_window\.open' with all that follows.*{why}.*was not run"
    ):
        work(run)


def test_the_work_runs_only_in_an_open_window(store: Store) -> None:
    run = Run()
    refused(run, "closed: no export is held")
    run.open(FIRST, SECOND)
    refused(run, "is opening")
    run.pause()
    work(run)
    store.runs.tasks["run"] = {CLOSE: "running"}
    refused(run, "closing: its closing task has begun")


def test_the_work_does_not_begin_in_an_overdue_window() -> None:
    """As after an outage of the scheduler, when it starts the guard and the next task together."""
    run = Run()
    run.open(FIRST, max_length=1)
    run.pause()
    time.sleep(1.1)
    refused(run, "overdue since 20")
    with pytest.raises(AirflowFailException, match=f"overdue: .*Resumed: {FIRST}"):
        run.guard("over")


def test_nothing_is_paused_in_an_overdue_window(sandbox: SandboxServer) -> None:
    run = Run()
    run.open(FIRST, max_length=1)
    time.sleep(1.1)
    with pytest.raises(AirflowFailException, match=r"Clear the task that opens.*overdue since.*Nothing was sent"):
        run.pause()
    assert sandbox.requests() == []


@pytest.mark.parametrize("by", ["guard", "sweep"])
@pytest.mark.parametrize("fault", [{"kind": "status_before", "status": 403}, {"kind": "reset_after", "times": 2}])
def test_the_work_does_not_begin_in_a_partly_resumed_window(
    sandbox: SandboxServer, store: Store, by: str, fault: dict[str, Any]
) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    sandbox.inject(operation="unpause_batch_export", **fault)
    if by == "sweep":
        store.runs.over["run"] = "over"
    with pytest.raises(Exception, match="STILL PAUSED"):
        run.guard("over") if by == "guard" else sweep()
    store.runs.over.clear()
    refused(run, "closing: (its exports are being resumed|not all of its exports are paused any more)")


def test_the_work_does_not_begin_in_a_window_short_of_a_lease(store: Store) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    key = next(iter(store.leases()))
    lease = store.values.pop(key)
    refused(run, "closing: not all of its exports are held any more")
    store.values[key] = "{"
    refused(run, "or a lease cannot be read")
    store.values[key] = lease
    work(run)


def test_windows_of_the_previous_release_stay_open(store: Store) -> None:
    """Its leases do not say how many there are, nor what the work is, and its sweep noted a time alone."""
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    for key, value in store.leases().items():
        lease = json.loads(value)
        del lease["exports"], lease["work_task_ids"]
        store.values[key] = json.dumps(lease)
    store.values["workspace_window_sweep"] = lease["since"]
    assert LeaseRegistry(VariableStore()).last_sweep() == pytest.approx(time.time(), abs=60)
    work(run)
    assert sweep()["windows"] == []
    assert run.close()["resumed"] == [FIRST, SECOND]


def test_another_window_does_not_resume_after_open_alone_was_cleared(sandbox: SandboxServer) -> None:
    run, other = Run("run"), Run("other")
    for each in (run, other):
        each.open(FIRST)
        each.pause()
    run.open(FIRST)
    work(run)
    assert other.close()["held"] == {FIRST: [f"dag / run / {CLOSE}"]}
    assert "unpause" not in history(sandbox, FIRST)
    assert run.close()["resumed"] == [FIRST]


def test_a_cleared_window_waits_for_its_own_resume(sandbox: SandboxServer, connect: Connect) -> None:
    """A resume without a response may take effect during the work of the window that is opened again."""
    connect(max_attempts=1, consistency_time=1.5)
    run = Run()
    run.open(FIRST)
    run.pause()
    sandbox.inject("reset_before", operation="unpause_batch_export")
    with pytest.raises(Exception, match="STILL PAUSED"):
        run.close()
    run.max_tries += 1
    began = time.monotonic()
    run.open(FIRST)
    run.pause()
    assert time.monotonic() - began > 1
    assert history(sandbox, FIRST)[-1] == "pause"
    work(run)


def test_a_window_may_open_again_without_its_work(store: Store) -> None:
    """Clearing one mapped window may clear the setups and teardowns of the others."""
    run = Run()
    store.runs.tasks["run"] = {CLOSE: None, "rebuild": "success"}
    run.open(FIRST, work_task_ids=["rebuild"])
    run.pause()
    assert run.close()["resumed"] == [FIRST]


def test_the_sweep_closes_a_window_whose_work_has_ended(sandbox: SandboxServer, store: Store) -> None:
    """Its Dag is paused, its file deleted or the scheduler dead: ``close`` does not begin, or waits for a slot."""
    run, at_work = Run(), Run("at work")
    for each, export in ((run, FIRST), (at_work, SECOND)):
        each.open(export, work_task_ids=["rebuild", "mapped"])
        each.pause()
    store.runs.tasks["run"] = {CLOSE: "queued", "rebuild": "success", "mapped_0": "failed", "mapped_1": "skipped"}
    store.runs.tasks["at work"] = {CLOSE: None, "rebuild": "success", "mapped_0": "failed", "mapped_1": "running"}
    assert sweep()["windows"] == []
    (window,) = [lease.window for lease in leases(store) if lease.run_id == "run"]
    first = store.sweep["windows"][window.id]
    assert first == {
        "state": "closing",
        "why": "its work has ended and its closing task has not begun",
        "since": first["since"],
    }
    assert {each["state"] for each in store.sweep["windows"].values()} == {"closing", "open"}
    assert sweep()["windows"] == []
    assert store.sweep["windows"][window.id] == first
    earlier = "2026-01-01T00:00:00.000Z"
    store.values["workspace_window_sweep"] = json.dumps(store.sweep).replace(first["since"], earlier)
    with pytest.raises(AirflowFailException, match=rf"\(its work has ended and .* has not begun\): resumed {FIRST}\."):
        sweep()
    assert store.sweep["windows"][window.id]["state"] == "abandoned"
    assert run.close()["resumed"] == []
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], ["pause"])


@pytest.mark.parametrize("state", ["running", "up_for_retry", "success"])
def test_the_guard_leaves_a_window_to_its_closing_task(sandbox: SandboxServer, store: Store, state: str) -> None:
    run = Run()
    run.open(FIRST, max_length=3600)
    run.pause()
    with pytest.raises(TaskDeferred) as deferred:
        run.guard()
    trigger: Any = deferred.value.trigger
    trigger.trigger_id = 1
    trigger.end_at, overdue = 0.0, trigger.end_at
    assert asyncio.run(anext(trigger.run())).payload["status"] == "over"
    trigger.end_at = overdue
    store.runs.tasks["run"] = {CLOSE: state}
    assert asyncio.run(anext(trigger.run())).payload["status"] == "closed"
    run.guard("over")
    assert history(sandbox, FIRST) == ["pause"]


def test_the_work_of_a_window_are_its_last_tasks() -> None:
    assert WINDOW_DAG.get_task("maintenance_window.open").work_task_ids == ["rebuild"]


def test_the_sweep_says_what_stays_paused(store: Store) -> None:
    run = Run()
    run.open(FIRST, leave_paused=[FIRST])
    run.pause()
    store.runs.over["run"] = "over"
    (row,) = sweep()["windows"]
    assert row["left_paused"] == [FIRST]
    said = describe_sweep([row], {})
    assert said == (
        f"Abandoned window dag / run / {CLOSE} (its run is over): left paused, as leave_paused asks, {FIRST}."
    )


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize(("first", "second"), list(permutations(("close", "guard", "sweep"), 2)))
@pytest.mark.parametrize("answered", [True, False])
def test_the_backfill_is_asked_for_once(
    sandbox: SandboxServer, store: Store, monkeypatch: pytest.MonkeyPatch, first: str, second: str, *, answered: bool
) -> None:
    """Two tasks close a window at the same time: the second one begins while a request of the first is under way."""
    run = Run()
    run.open(FIRST, SECOND, resume_fields={"backfill": True})
    run.pause()
    for key, value in store.leases().items():
        store.values[key] = json.dumps({**json.loads(value), "until": "2026-01-01T00:00:00Z"})
    tasks: dict[str, Any] = {"close": run.close, "sweep": sweep, "guard": lambda: run.guard("over")}
    send = WorkspaceClient.send
    begun: list[str] = []

    def send_while_another_begins(self: WorkspaceClient, operation: Any, **options: Any) -> Any:
        answer = send(self, operation, **options) if answered else None
        if not begun:
            begun.append(second)
            with suppress(AirflowFailException, TaskDeferred):
                tasks[second]()
        return answer if answered else send(self, operation, **options)

    monkeypatch.setattr(WorkspaceClient, "send", send_while_another_begins)
    with suppress(AirflowFailException):
        tasks[first]()
    assert begun
    assert [history(sandbox, export).count("unpause") for export in (FIRST, SECOND)] == [1, 1]
    assert asked(sandbox, "unpause") == 2
    assert store.leases() == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"map_index": "-1"},
        {"map_index": 1.5},
        {"map_index": True},
        {"leave_paused": "no"},
        {"exports": "2"},
        {"work_task_ids": "rebuild"},
        {"work_task_ids": 5},
        {"work_task_ids": [5]},
        {"resume_fields": "backfill"},
        {"resume_fields": {"paused": False}},
        {"resume_fields": {"x": math.nan}},
        {"resume_fields": {"": {}}},
        {"dag_id": 5},
        {"run_id": "other"},
        {"group_id": []},
        {"service": "https://other.example.com"},
        {"workspace_conn_id": "unknown"},
        {"workspace_conn_id": ["a"]},
        {"organization_id": "other"},
        {"batch_export_id": None},
        {"state": "open"},
        {"state": ["paused"]},
        {"state": "opening", "paused_at": 5},
        {"paused_at": None},
        {"since": 20261123},
        {"until": "soon"},
        {"until": {}},
        {"late_pause_until": "2999-01-01"},
        {"late_resume_until": "2999-01-01"},
        {"refused": 5},
        {"closer": {}},
        {"unknown": "field"},
    ],
    ids=str,
)
def test_an_edited_lease_ends_resumed_or_named(sandbox: SandboxServer, store: Store, changes: dict[str, Any]) -> None:
    """And it stops nobody else's."""
    for run_id, export in (("edited", FIRST), ("other", SECOND)):
        run = Run(run_id)
        run.open(export)
        run.pause()
        store.runs.over[run_id] = "over"
    key = next(key for key in store.leases() if FIRST in key)
    store.values[key] = json.dumps({**json.loads(store.values[key]), **changes})
    with pytest.raises(Exception, match=f"resumed {SECOND}|STILL PAUSED") as said:
        sweep()
    assert history(sandbox, SECOND) == ["pause", "unpause"]
    assert history(sandbox, FIRST) == ["pause", "unpause"] or FIRST in str(said.value)


@pytest.mark.parametrize("lengths", [{"drain": 60}, {"hold": 60}, {"drain": 30, "hold": timedelta(seconds=30)}])
def test_drain_and_hold_end_before_max_length(store: Store, lengths: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match="Set max_length above drain and hold together, which take 60 s"):
        Run().open(FIRST, max_length=60, **lengths)
    assert store.leases() == {}


def test_open_says_until_when_it_is_open(capsys: pytest.CaptureFixture[str]) -> None:
    Run("a").open(FIRST)
    Run("b").open(FIRST, max_length=60)
    said = capsys.readouterr().out
    assert "at the latest. If it is not closed by then, the sweep resumes its exports, and no further task" in said
    assert "at the latest. If it is not closed by then, the guard resumes its exports, and no further task" in said
    assert "is overdue at" not in said


# Exported intervals, as the sandbox records them


HOUR = 3600
live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


@live
@pytest.mark.parametrize(("resume_fields", "missing"), [(None, 5), ({"backfill": True}, 0)])
def test_missed_intervals_are_exported_only_with_a_backfill(
    sandbox: SandboxServer, resume_fields: dict[str, Any] | None, missing: int
) -> None:
    before = len(sandbox.export_runs(FIRST)["missing"])
    run = Run()
    run.open(FIRST, resume_fields=resume_fields)
    run.pause()
    sandbox.advance_clock(5 * HOUR)
    assert run.close()["resumed"] == [FIRST]
    assert len(sandbox.export_runs(FIRST)["missing"]) - before == missing


@live
@pytest.mark.parametrize("kills", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_kills_leave_no_export_paused_and_no_interval_missing(
    sandbox: SandboxServer, store: Store, monkeypatch: pytest.MonkeyPatch, connect: Connect, kills: int
) -> None:
    chance = random.Random(kills)  # noqa: S311 - the same kills each time
    connect(max_attempts=2, read_timeout=1, consistency_time=0.02)
    sandbox.change_settings(rate_limit=False)
    send = WorkspaceClient.send
    armed: list[str] = []

    def send_or_die(self: WorkspaceClient, operation: Any, **options: Any) -> Any:
        moment = armed.pop() if armed else None
        if moment == "before":
            raise Killed
        answer = send(self, operation, **options)
        if moment == "after":
            raise Killed
        return answer

    monkeypatch.setattr(WorkspaceClient, "send", send_or_die)
    missing = len(sandbox.export_runs(FIRST)["missing"])
    killed = 0
    for number in range(kills):
        run = Run(f"run {number}")
        run.open(FIRST, resume_fields={"backfill": True})
        victim, moment = chance.choice(["pause", "close"]), chance.choice(["before", "after"])
        try:
            armed[:] = [moment] if victim == "pause" else []
            run.pause()
            sandbox.advance_clock(chance.choice([0, HOUR, 3 * HOUR]))
            armed[:] = [moment]
            run.close()
        except Killed:
            killed += 1
        armed.clear()
        sandbox.advance_clock(chance.choice([0, HOUR]))
        store.end(run.run_id, "its run is over")
        while leases(store):
            sweep(fail_if_any=False)
            time.sleep(0.01)
    assert killed == kills
    assert not [export for export in sandbox.batch_exports() if export["paused"]]
    assert len(sandbox.export_runs(FIRST)["missing"]) == missing


def test_a_cleared_window_forgets_earlier_pause_failures(sandbox: SandboxServer, store: Store) -> None:
    run = Run()
    run.open(FIRST)
    sandbox.inject("status_before", "pause_batch_export", status=403)
    with pytest.raises(AirflowFailException, match="403"):
        run.pause()
    with pytest.raises(AirflowFailException, match="NEVER PAUSED"):
        run.close()
    run.max_tries += 1  # by clearing its tasks
    run.open(FIRST)
    run.pause()
    assert run.close() == {"resumed": [FIRST], "held": {}, "left_paused": [], "never_paused": {}}
    assert store.leases() == {}


def test_leave_paused_accepts_any_spelling_of_a_uuid(sandbox: SandboxServer) -> None:
    run = Run()
    assert run.open(FIRST, leave_paused=[FIRST.replace("-", "").upper()])["leave_paused"] == [FIRST]
    with pytest.raises(AirflowFailException, match="leave_paused must be a list of batch exports"):
        run.open(FIRST, leave_paused=["all"])
    with pytest.raises(AirflowFailException, match=r"\(UUID\)\. Pass task.output"):
        run.open(FIRST, leave_paused=f"['{FIRST}']")
    assert sandbox.requests() == []


def test_an_unreadable_lease_does_not_keep_other_exports_paused(
    sandbox: SandboxServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    store.end("run", "its run is gone")
    (secret,) = [lease.key for lease in leases(store) if lease.batch_export_id == SECOND]
    read = store.variables.get
    monkeypatch.setattr(
        store.variables, "get", lambda key, default=None: default if key == secret else read(key, default)
    )
    with pytest.raises(AirflowFailException, match=rf"(?s)resumed {FIRST}.*the Variable '{secret}' cannot be read"):
        sweep()
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], ["pause"])


def test_a_window_closes_its_hooks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[WorkspaceClient] = []
    closed: list[WorkspaceClient] = []
    begin, close = WorkspaceClient.__init__, WorkspaceClient.close

    def noted_begin(self: WorkspaceClient, *arguments: Any, **options: Any) -> None:
        opened.append(self)
        begin(self, *arguments, **options)

    def noted_close(self: WorkspaceClient) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(WorkspaceClient, "__init__", noted_begin)
    monkeypatch.setattr(WorkspaceClient, "close", noted_close)
    run = Run()
    run.open(FIRST)
    run.pause()
    run.close()
    assert store.leases() == {}
    assert set(opened) == set(closed)
