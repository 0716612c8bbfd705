"""Tasks of a maintenance window against the sandbox, with leases in memory. tests/e2e runs them in Airflow."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.client.sync import WorkspaceClient
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.operators import window_closing, windows
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.state import lease_store
from airflow_provider_workspace.state.leases import Lease, LeaseRegistry
from airflow_provider_workspace.state.resuming import marked_as_failed
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException, TaskDeferred
from tests.task_instance import Killed, TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from airflow_provider_workspace.state.leases import Window
    from tests.conftest import Connect

FIRST, SECOND = SEED.batch_export_ids[:2]
NOBODY = "0190c0de-0000-4000-8000-0000000000ee"
CLOSE = "maintenance_window.close"


class MemoryStore:
    """Leases in memory, and the reasons why windows are over."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.over: dict[str, str] = {}

    def list_keys(self) -> list[str]:
        return sorted(self.values)

    def read(self, key: str) -> str | None:
        return self.values.get(key)

    def write(self, key: str, value: str) -> None:
        self.values[key] = value

    add = write

    def delete(self, key: str) -> None:
        self.values.pop(key, None)

    def why_over(self, window: Window) -> str | None:
        return self.over.get(window.run_id)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    memory = MemoryStore()
    monkeypatch.setattr(lease_store, "VariableStore", lambda: memory)
    return memory


@pytest.fixture(autouse=True)
def connected(connect: Connect, store: MemoryStore) -> None:
    assert not store.values
    connect(max_attempts=2, read_timeout=1)


class Run:
    """A Dag run with a window."""

    def __init__(self, run_id: str = "run") -> None:
        self.run_id = run_id
        self.max_tries = 15
        self.state: TaskStore | None = TaskStore()
        self.xcoms: dict[str, Any] = {}
        self.states: dict[str, str] = {}

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
            get_task_states=lambda **_: {self.run_id: self.states},
        )
        return {"ti": ti, "task_state_store": self.state}

    def open(self, *export_ids: str, **arguments: Any) -> Any:
        task = windows.WorkspaceOpenMaintenanceWindowOperator(
            task_id="open", close_task_id=CLOSE, batch_export_ids=export_ids, **arguments
        )
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


def leases(store: MemoryStore) -> list[Lease]:
    return LeaseRegistry(store).all()


def test_a_window_pauses_and_resumes_each_export_once(sandbox: SandboxServer, store: MemoryStore) -> None:
    run = Run()
    opened = run.open(FIRST, SECOND)
    assert opened["batch_export_ids"] == [FIRST, SECOND]
    assert {lease.state for lease in leases(store)} == {"opening"}
    assert run.pause()["paused"] == [FIRST, SECOND]
    assert {lease.state for lease in leases(store)} == {"paused"}
    assert run.close() == {"resumed": [FIRST, SECOND], "held": {}, "left_paused": [], "never_paused": {}}
    assert history(sandbox, FIRST) == history(sandbox, SECOND) == ["pause", "unpause"]
    assert (asked(sandbox, "pause"), asked(sandbox, "unpause")) == (2, 2)
    assert store.values == {}


def test_close_checks_later_whether_another_task_has_resumed(
    sandbox: SandboxServer, connect: Connect, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
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
    assert store.values == {}


def test_lease_keys_are_valid_variable_keys(store: MemoryStore) -> None:
    Run("manual__2026-11-21T00:00:00+00:00/" + "x" * 300).open(FIRST)
    (key,) = store.values
    assert len(key) <= 250
    assert key.replace("_", "").replace(".", "").replace("-", "").isalnum()
    assert FIRST in key


def test_the_last_window_resumes(sandbox: SandboxServer, store: MemoryStore) -> None:
    first, second = Run("first"), Run("second")
    for run in (first, second):
        run.open(FIRST)
        run.pause()
    assert first.close()["held"] == {FIRST: [f"dag / second / {CLOSE}"]}
    assert history(sandbox, FIRST) == ["pause"]
    assert second.close()["resumed"] == [FIRST]
    assert store.values == {}


def test_only_an_open_window_takes_over_an_export(sandbox: SandboxServer, store: MemoryStore) -> None:
    first, opening, gone = Run("first"), Run("opening"), Run("gone")
    for run in (first, gone):
        run.open(FIRST)
        run.pause()
    opening.open(FIRST)
    store.over["gone"] = "its run is over"
    assert first.close()["resumed"] == [FIRST]
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_close_retries_only_what_failed(sandbox: SandboxServer, store: MemoryStore) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    sandbox.inject("status_before", operation="unpause_batch_export", status=403, times=1)
    with pytest.raises(Exception, match=f"STILL PAUSED.*: {FIRST}"):
        run.close()
    assert [lease.batch_export_id for lease in leases(store)] == [FIRST]
    run.close()
    assert asked(sandbox, "unpause") == 3
    assert store.values == {}


def test_an_export_that_could_not_be_paused_fails_close_without_retry(
    sandbox: SandboxServer, store: MemoryStore
) -> None:
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
    assert store.values == {}


@pytest.mark.parametrize("task_state_store", [True, False], ids=["3.3", "before 3.3"])
def test_a_pause_with_unknown_outcome_is_resumed_twice(
    sandbox: SandboxServer, store: MemoryStore, connect: Connect, *, task_state_store: bool
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
    assert store.values == {}


def test_a_window_whose_closing_task_is_over_is_not_opened(sandbox: SandboxServer, store: MemoryStore) -> None:
    """Clearing the work of one mapped window clears the setups of all of them, and the teardown of that one."""
    run = Run()
    run.states = {CLOSE: "success"}
    with pytest.raises(AirflowSkipException, match=f"^Clear '{CLOSE}' too to open this window again: it is success"):
        run.open(FIRST)
    assert store.values == {}
    assert sandbox.requests() == []


def test_exports_of_unreadable_leases_are_resumed(sandbox: SandboxServer, store: MemoryStore) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    for key, value in zip(sorted(store.values), ('{"ends": "soon"}', "[" * 5000), strict=True):
        store.values[key] = value
    assert sorted(run.close()["resumed"]) == [FIRST, SECOND]
    assert store.values == {}
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_a_lease_with_the_fields_of_another_is_not_resumed_for_ever(sandbox: SandboxServer, store: MemoryStore) -> None:
    """A person may edit the Variable, and older releases had other keys."""
    run = Run()
    run.open(FIRST)
    run.pause()
    ((key, value),) = store.values.items()
    store.values[key] = value.replace(FIRST, SECOND)
    assert run.close()["resumed"] == [FIRST]
    assert history(sandbox, FIRST) == ["pause", "unpause"]
    assert history(sandbox, SECOND) == []
    assert store.values == {}

    renamed = key[:-1] + "_"
    store.values[renamed] = value
    assert run.close()["resumed"] == [FIRST]
    with pytest.raises(AirflowFailException, match=f"Delete or correct the Variable '{renamed}'"):
        sweep()
    assert asked(sandbox, "unpause") == 2


def test_an_export_whose_lease_was_deleted_stays_paused(sandbox: SandboxServer, store: MemoryStore) -> None:
    """As docs/guides/maintenance-windows.md says: a deleted lease looks like a window that was closed."""
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    del store.values[next(key for key in store.values if FIRST in key)]
    assert run.close()["resumed"] == [SECOND]
    assert history(sandbox, FIRST) == ["pause"]


def test_pause_fails_after_the_window_was_closed(sandbox: SandboxServer) -> None:
    run = Run()
    with pytest.raises(AirflowFailException, match="holds nothing"):
        run.pause()
    assert sandbox.requests() == []


@pytest.mark.parametrize(
    ("states", "map_index", "marked"),
    [
        ({"outcome": "skipped", "work": "failed"}, -1, True),
        ({"outcome": "skipped", "work": "skipped"}, -1, False),
        ({"outcome": "upstream_failed", "work": "failed"}, -1, False),
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
    assert marked_as_failed(ti, "outcome", ["work"]) == marked


def test_close_names_what_was_never_paused(sandbox: SandboxServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as after somebody marked the pause as successful in its place."""
    run = Run()
    run.open(FIRST)
    assert run.close()["never_paused"] == {FIRST: None}
    assert f"Never paused by this window, and so not resumed: {FIRST}" in capsys.readouterr().out
    assert sandbox.requests() == []


def test_the_guard_closes_an_overdue_window(sandbox: SandboxServer, store: MemoryStore) -> None:
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
def test_the_sweep_closes_only_abandoned_windows(sandbox: SandboxServer, store: MemoryStore, why: str | None) -> None:
    abandoned, at_work = Run("abandoned"), Run("at work")
    for run, export in ((abandoned, FIRST), (at_work, SECOND)):
        run.open(export, max_length=timedelta(seconds=1) if run is abandoned and why is None else None)
        run.pause()
    if why is None:
        time.sleep(1.1)
    else:
        store.over["abandoned"] = why
    with pytest.raises(
        AirflowFailException, match=rf"Abandoned window dag / abandoned / {CLOSE} \(.*\): resumed {FIRST}\."
    ):
        sweep()
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], ["pause"])
    assert sweep() == {"windows": [], "unreadable": {}}


def test_the_sweep_ignores_a_window_that_closes_meanwhile(
    sandbox: SandboxServer, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()

    def closed_meanwhile(_: Window) -> str:
        if store.values:
            run.close()
        return "its run is over"

    monkeypatch.setattr(store, "why_over", closed_meanwhile)
    assert sweep() == {"windows": [], "unreadable": {}}
    assert history(sandbox, FIRST) == ["pause", "unpause"]


def test_the_sweep_succeeds_with_fail_if_any_false(store: MemoryStore) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()
    store.over["run"] = "its run is over"
    (row,) = sweep(fail_if_any=False)["windows"]
    assert row["resumed"] == [FIRST]
    assert json.loads(json.dumps(row)) == row


def test_the_sweep_names_unreadable_leases(store: MemoryStore) -> None:
    store.values["workspace_lease.foreign"] = "12"
    with pytest.raises(AirflowFailException, match=r"workspace_lease\.foreign"):
        sweep()


def test_the_sweep_names_exports_it_cannot_resume(sandbox: SandboxServer, store: MemoryStore) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()
    store.over["run"] = "its run is over"
    sandbox.revoke_key(SEED.admin_key)
    with pytest.raises(Exception, match=f"STILL PAUSED.*: {FIRST}.*401.*Abandoned window dag / run"):
        sweep()
    assert leases(store)


def test_a_lease_is_resumed_only_with_its_own_connection_and_service(
    connect: Connect, sandbox: SandboxServer, store: MemoryStore
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


def test_an_export_is_resumed_without_refused_resume_fields(sandbox: SandboxServer, store: MemoryStore) -> None:
    run = Run()
    run.open(FIRST, SECOND, resume_fields={"backfil": True})
    run.pause()
    with pytest.raises(AirflowFailException, match=rf"^Correct resume_fields.*{FIRST}: .*'backfil'.*{SECOND}: "):
        run.close()
    assert history(sandbox, FIRST) == history(sandbox, SECOND) == ["pause", "unpause"]
    assert store.values == {}


def test_a_transient_refusal_keeps_the_resume_fields(
    sandbox: SandboxServer, store: MemoryStore, connect: Connect
) -> None:
    connect(max_attempts=2)
    run = Run()
    run.open(FIRST, resume_fields={"backfill": True})
    run.pause()
    sandbox.inject("status_before", operation="unpause_batch_export", status=400, times=2)
    with pytest.raises(Exception, match="STILL PAUSED"):
        run.close()
    assert [lease.resume_fields for lease in leases(store)] == [{"backfill": True}]


@pytest.mark.parametrize("fields", [{"paused": False}, {"x": math.nan}, "backfill"])
def test_invalid_resume_fields_are_refused_before_pausing(store: MemoryStore, fields: Any) -> None:
    with pytest.raises((AirflowFailException, ValueError)):
        Run().open(FIRST, resume_fields=fields)
    assert store.values == {}


@pytest.mark.parametrize("value", [math.nan, 1e300, -1, timedelta(seconds=-1), "soon", "nan", True, [], timedelta.max])
@pytest.mark.parametrize("name", ["hold", "drain", "max_length"])
def test_an_invalid_max_length_is_refused_before_pausing(store: MemoryStore, name: str, value: Any) -> None:
    with pytest.raises(AirflowFailException, match=f"{name} must be a timedelta or a number of seconds"):
        Run().open(FIRST, **{name: value})
    assert store.values == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, -1, 1e12, "soon", "nan", True, [], None])
def test_an_invalid_start_time_is_refused(value: Any) -> None:
    task = windows.WorkspaceHoldMaintenanceWindowOperator(task_id="hold", opened_at=value, length=60)
    with pytest.raises(AirflowFailException, match="opened_at must be a number of seconds since 1970"):
        task.execute(Run().context("hold"))


@pytest.mark.parametrize("value", [5, ["close"], "a\x00b", None])
def test_an_invalid_close_task_id_is_refused_before_pausing(store: MemoryStore, value: Any) -> None:
    task = windows.WorkspaceOpenMaintenanceWindowOperator(task_id="open", close_task_id=value, batch_export_ids=[FIRST])
    with pytest.raises(AirflowFailException, match="close_task_id must be the id of a task"):
        task.execute(Run().context("open"))
    assert store.values == {}


@pytest.mark.parametrize("value", [timedelta(hours=1), 3600, 3600.0, "3600", " 3600 "])
def test_max_length_accepts_numbers_and_durations(value: Any) -> None:
    opened = Run().open(FIRST, max_length=value)
    assert opened["until"] - opened["opened_at"] == 3600


def test_every_window_has_a_latest_end(store: MemoryStore) -> None:
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


def test_a_window_warns_if_there_is_no_sweep(monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> None:
    Run("abandoned").open(SECOND)
    store.over["abandoned"] = "its run is gone"

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
    assert f"batch export {SECOND} may be paused since" in said
    assert "its run is gone" in said
    sweep()
    assert "Add a Dag" not in warnings("second")


@pytest.mark.needs_airflow("3.2", "an error of its own for an unknown connection outside of a task")
def test_a_missing_connection_is_named(monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> None:
    run = Run()
    run.open(FIRST)
    run.pause()
    monkeypatch.delenv("AIRFLOW_CONN_WORKSPACE_DEFAULT")
    with pytest.raises(Exception, match=f"STILL PAUSED.*: {FIRST}.*Add connection 'workspace_default' again"):
        run.close()
    assert leases(store)


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
    sandbox: SandboxServer, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, connect: Connect, kills: int
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
        store.over[run.run_id] = "its run is over"
        while leases(store):
            sweep(fail_if_any=False)
            time.sleep(0.01)
    assert killed == kills
    assert not [export for export in sandbox.batch_exports() if export["paused"]]
    assert len(sandbox.export_runs(FIRST)["missing"]) == missing


def test_a_cleared_window_forgets_earlier_pause_failures(sandbox: SandboxServer, store: MemoryStore) -> None:
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
    assert store.values == {}


def test_leave_paused_accepts_any_spelling_of_a_uuid(sandbox: SandboxServer) -> None:
    run = Run()
    assert run.open(FIRST, leave_paused=[FIRST.replace("-", "").upper()])["leave_paused"] == [FIRST]
    with pytest.raises(AirflowFailException, match="leave_paused must be a list of batch exports"):
        run.open(FIRST, leave_paused=["all"])
    with pytest.raises(AirflowFailException, match=r"\(UUID\)\. Pass task.output"):
        run.open(FIRST, leave_paused=f"['{FIRST}']")
    assert sandbox.requests() == []


def test_an_unreadable_lease_does_not_keep_other_exports_paused(
    sandbox: SandboxServer, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run()
    run.open(FIRST, SECOND)
    run.pause()
    store.over["run"] = "its run is gone"
    (secret,) = [lease.key for lease in leases(store) if lease.batch_export_id == SECOND]
    read = store.read

    def read_unless_encrypted(key: str) -> str | None:
        if key == secret:
            msg = f"See the log of Airflow's API server: the Variable '{key}' cannot be read."
            raise WorkspaceError(msg)
        return read(key)

    monkeypatch.setattr(store, "read", read_unless_encrypted)
    with pytest.raises(AirflowFailException, match=rf"(?s)resumed {FIRST}.*the Variable '{secret}' cannot be read"):
        sweep()
    assert (history(sandbox, FIRST), history(sandbox, SECOND)) == (["pause", "unpause"], ["pause"])


def test_a_window_closes_its_hooks(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert store.values == {}
    assert set(opened) == set(closed)
