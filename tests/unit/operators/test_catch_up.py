"""What a pause has cost, filled and proven, at a service that shows the runs of its exports."""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.catch_up import WorkspaceCatchUpOperator, WorkspaceCheckExportRunsOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.task_groups import maintenance_window
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.task_instance import TaskInstance, TaskStore
from tests.windows import Airflow, Window, opened

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)
HOURLY, OTHER, DAILY = SEED.batch_export_ids
HOUR = 3600
NOBODY = "0190c0de-0000-4000-8000-0000000000ee"


class CatchUp:
    """A task that catches up; it is deferred, killed and cleared as a scheduler would."""

    def __init__(self, clock: Clock, **arguments: Any) -> None:
        self.clock = clock
        given = {"batch_export_ids": [HOURLY], "poll_interval": 300, **arguments}
        self.task = WorkspaceCatchUpOperator(task_id="catch_up", **given)
        self.ti = TaskInstance()
        self.context: Any = {"ti": self.ti, "task_state_store": TaskStore()}

    def begin(self) -> Any:
        """Run a new try up to its first deferral."""
        self.task._carried = {}
        return self.task.execute(self.context)

    def run(self) -> Any:
        """Run it to its end."""
        try:
            return self.begin()
        except TaskDeferred as deferred:
            return self.resume(deferred)

    def resume(self, deferred: Any) -> Any:
        while True:
            self.clock.wait(max(0.0, deferred.trigger.end_at - time.time()))
            try:
                return self.task.execute_complete(self.context, {"state": deferred.trigger.state})
            except TaskDeferred as again:
                deferred = again


@pytest.fixture(autouse=True)
def _half_past_ten(sandbox: SandboxServer, clock: Clock) -> None:
    """Begin far from midnight (UTC), at which the daily export is due."""
    sandbox.play_runs(history_hours=48)
    clock.wait((10.5 * HOUR - time.time()) % (24 * HOUR))


def pause_for(clock: Clock, hours: float, export_id: str = HOURLY) -> tuple[float, float]:
    """Pause an export for some hours; return when it was paused and resumed."""
    paused_at = time.time()
    with WorkspaceHook() as hook:
        hook.pause_batch_export(batch_export_id=export_id)
        clock.wait(hours * HOUR)
        hook.unpause_batch_export(batch_export_id=export_id)
    return paused_at, time.time()


def exported(sandbox: SandboxServer, export_id: str = HOURLY) -> list[str]:
    return [run["interval_start"] for run in sandbox.export_runs(export_id)["exported"]]


def missing(sandbox: SandboxServer, until: float, export_id: str = HOURLY) -> list[str]:
    """Return the intervals that had ended by then, and were never exported."""
    found = sandbox.export_runs(export_id)["missing"]
    return [run["interval_start"] for run in found if run["interval_end"] <= iso(until)]


def backfills(sandbox: SandboxServer) -> list[Any]:
    """Return the backfills that were asked for."""
    sent = sandbox.requests()
    return [entry for entry in sent if entry["method"] == "POST" and entry["path"].endswith("/backfills/")]


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_pause_is_filled_once_and_proven(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    assert len(sandbox.export_runs(HOURLY)["missing"]) == 3
    result = CatchUp(clock, since=since, until=until).run()
    assert missing(sandbox, until) == []
    assert len(exported(sandbox)) == len(set(exported(sandbox)))
    assert len(backfills(sandbox)) == 1
    last_hour = until - until % HOUR
    (export,) = result["exports"]
    assert (result["complete_until"], export["missing"]) == (iso(last_hour), [])
    assert export["from"] == iso(since - since % HOUR - HOUR)
    assert len(export["filled"]) == 1


def test_nothing_is_sent_if_nothing_is_missing(sandbox: SandboxServer, clock: Clock) -> None:
    clock.wait(2 * HOUR)
    CatchUp(clock, since=time.time() - 2 * HOUR).run()
    assert backfills(sandbox) == []
    assert CatchUp(clock, batch_export_ids=[], since=1_700_000_000).run() == {"complete_until": None, "exports": []}


def test_a_run_that_the_pause_cut_off_is_filled(sandbox: SandboxServer, clock: Clock) -> None:
    """It was due when the window began, and begins up to a quarter of an hour after its interval ends."""
    clock.wait(HOUR - time.time() % HOUR + 1)
    since, until = pause_for(clock, 2)
    cut_off = iso(since - since % HOUR - HOUR)
    assert any(run["interval_start"].startswith(cut_off[:16]) for run in sandbox.export_runs(HOURLY)["missing"])
    assert CatchUp(clock, since=since, until=until).run()["exports"][0]["from"] == cut_off
    assert missing(sandbox, until) == []


@pytest.mark.parametrize("fault", ["reset_after", "reset_before", "status_before", "status_after"])
def test_a_lost_answer_is_looked_up_and_never_asked_twice(sandbox: SandboxServer, clock: Clock, fault: str) -> None:
    since, until = pause_for(clock, 3)
    sandbox.inject(fault, "create_batch_export_backfill", **({"status": 502} if "status" in fault else {}))
    CatchUp(clock, since=since, until=until).run()
    assert missing(sandbox, until) == []
    assert len(exported(sandbox)) == len(set(exported(sandbox)))
    assert len(backfills(sandbox)) == (1 if fault.endswith("after") else 2)


def test_a_run_that_failed_in_a_backfill_is_asked_for_again_alone(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    sandbox.fail_runs(HOURLY, interval_start=iso(since - since % HOUR + HOUR))
    CatchUp(clock, since=since, until=until).run()
    assert missing(sandbox, until) == []
    assert len(exported(sandbox)) == len(set(exported(sandbox)))
    assert len(backfills(sandbox)) == 2


def test_what_runs_already_is_waited_for(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    clock.wait(HOUR)
    start, end = (int(moment - moment % HOUR) for moment in (since, until))
    with WorkspaceHook() as hook:
        from airflow_provider_workspace.windows.export_runs import CreateBackfill

        ids = {"project_id": str(SEED.project_id), "batch_export_id": HOURLY}
        hook.send(CreateBackfill(**ids, start_at=iso(start), end_at=iso(end)))
    clock.wait(15)
    CatchUp(clock, since=since, until=until).run()
    assert len(backfills(sandbox)) == 1
    assert len(exported(sandbox)) == len(set(exported(sandbox)))


def test_a_limit_of_backfills_is_waited_for(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 2)
    sandbox.inject("status_before", "create_batch_export_backfill", status=429, times=6)
    CatchUp(clock, since=since, until=until).run()
    assert missing(sandbox, until) == []
    assert len(exported(sandbox)) == len(set(exported(sandbox)))


def test_a_killed_try_is_continued(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    clock.wait(HOUR)
    task = CatchUp(clock, since=since, until=until)
    with pytest.raises(TaskDeferred):
        task.begin()
    assert len(backfills(sandbox)) == 1
    task.run()
    assert len(backfills(sandbox)) == 1
    assert len(exported(sandbox)) == len(set(exported(sandbox)))


def test_requests_that_never_took_effect_do_not_count(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    clock.wait(HOUR)
    sandbox.inject("reset_before", "create_batch_export_backfill", times=5)
    CatchUp(clock, since=since, until=until).run()
    assert missing(sandbox, until) == []
    assert len(exported(sandbox)) == len(set(exported(sandbox)))


def test_intervals_that_are_left_fail_the_task_and_clearing_it_goes_on(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    failing = iso(since - since % HOUR + HOUR)
    sandbox.fail_runs(HOURLY, times=2, interval_start=failing)
    task = CatchUp(clock, since=since, until=until, timeout=HOUR)
    sandbox.inject("status_before", "create_batch_export_backfill", status=429, times=2000)
    with pytest.raises(
        AirflowFailException, match=r"\[export-incomplete\] 3 intervals have no completed run"
    ) as failed:
        task.run()
    assert f"{HOURLY}: {failing[:10]} {failing[11:16]} UTC to" in str(failed.value)
    assert len(task.ti.xcoms["return_value"]["exports"][0]["missing"]) == 1
    sandbox.clear_faults()
    assert task.run()["exports"][0]["missing"] == []


@pytest.mark.parametrize("max_tries", [3, 7], ids=["while it ran", "while it was deferred"])
def test_a_task_that_is_cleared_before_its_end_fills_the_next_pause(
    sandbox: SandboxServer, clock: Clock, max_tries: int
) -> None:
    since, _ = pause_for(clock, 3)
    task = CatchUp(clock, since=since)
    with pytest.raises(TaskDeferred):
        task.begin()
    clock.wait(7 * HOUR)
    again, until = pause_for(clock, 3)
    cleared = CatchUp(clock, since=since, opened_at=again if max_tries == 3 else None)
    cleared.context, task.ti.max_tries = task.context, max_tries
    assert cleared.run()["complete_until"] == iso(until - until % HOUR)
    assert missing(sandbox, until) == []


def test_an_export_that_is_named_twice_is_asked_for_once(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    arguments = {"batch_export_id": HOURLY.upper(), "batch_export_ids": [HOURLY]}
    assert len(CatchUp(clock, since=since, until=until, **arguments).run()["exports"]) == 1
    assert len(backfills(sandbox)) == 1


def test_an_event_of_exports_with_other_intervals_does_not_end_before_it_begins(
    sandbox: SandboxServer, clock: Clock
) -> None:
    clock.wait(24 * HOUR)
    since, until = pause_for(clock, 3)
    whole = Asset("whole")
    task = CatchUp(clock, batch_export_ids=[HOURLY, DAILY], since=since, until=until, outlets=[whole])
    events = task.context["outlet_events"] = OutletEventAccessors()
    complete_until = task.run()["complete_until"]
    assert len(backfills(sandbox)) == 1
    assert events[whole].extra == {"export": [HOURLY, DAILY], "from": complete_until, "to": complete_until}


@pytest.mark.parametrize("arguments", [{"batch_export_ids": []}, {"dry_run": True}])
def test_what_exports_nothing_announces_nothing(sandbox: SandboxServer, clock: Clock, arguments: Any) -> None:
    since, until = pause_for(clock, 3)
    task = CatchUp(clock, since=since, until=until, outlets=[Asset("whole")], **arguments)
    task.run()
    assert task.task.outlets == []
    assert backfills(sandbox) == []


def test_a_daily_export_is_asked_for_by_days(sandbox: SandboxServer, clock: Clock) -> None:
    clock.wait(24 * HOUR)
    since, until = pause_for(clock, 72, DAILY)
    CatchUp(clock, batch_export_ids=[DAILY], since=since, until=until).run()
    assert missing(sandbox, until, DAILY) == []
    assert len(exported(sandbox, DAILY)) == len(set(exported(sandbox, DAILY)))


def test_a_service_without_runs_is_said_at_once(sandbox: SandboxServer, clock: Clock) -> None:
    sandbox.reset()
    with pytest.raises(AirflowFailException, match=r"\[runs-not-shown\].*does not show the runs .*nothing was asked"):
        CatchUp(clock, since=time.time()).run()
    assert backfills(sandbox) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"since": "2026-11-28"}, "since must be a time with its zone, such as 2026-11-28T00:00:00Z, and not a day"),
        ({"since": "20261128"}, "since must be a time with its zone, such as 2026-11-28T00:00:00Z, and not a day"),
        ({"since": 20261128}, "since must be a time with its zone, such as 2026-11-28T00:00:00Z, and not a day"),
        ({"since": 1.8e9, "until": "20261128"}, "until must be a time with its zone, such as 2026-11-28T00:00:00Z"),
        ({"since": "2026-11-28T10:00"}, "this time has no zone"),
        ({"since": "yesterday"}, "since: expected a date"),
        ({"since": "2199-01-01T00:00:00Z"}, r"since, 2199-01-01 00:00 UTC, is after until, 20.* Give an earlier since"),
        ({"since": 1e9 + 800, "until": 1e9}, "since, 2001-09-09 02:00 UTC, is after until, 2001-09-09 01:46 UTC"),
        ({"since": 1e9, "timeout": 0}, "timeout must be"),
    ],
)
def test_invalid_times_are_named(clock: Clock, arguments: Any, message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        CatchUp(clock, **arguments).run()


def test_times_may_be_texts_and_datetimes(sandbox: SandboxServer, clock: Clock) -> None:
    clock.wait(HOUR)
    hour_ago = time.time() - HOUR
    texts = {
        json.dumps(CatchUp(clock, since=since, until=time.time()).run())
        for since in (hour_ago, str(hour_ago), iso(hour_ago), datetime.fromtimestamp(hour_ago, timezone.utc))
    }
    assert len(texts) == 1
    assert backfills(sandbox) == []


# The five others have each fault, and each with and without a killed worker, as all twelve do.
SEEDS = (1, 2, *range(4, 12))


@pytest.mark.parametrize("seed", [0, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS)])
def test_windows_of_any_length_with_any_fault_are_filled_and_nothing_is_exported_twice(
    sandbox: SandboxServer, clock: Clock, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 -- no secret
    for _ in range(4):
        clock.wait(chance.uniform(0, 2 * HOUR))
        since, until = pause_for(clock, chance.uniform(0.1, 5))
        fault = chance.choice(["reset_after", "reset_before", "status_after", "status_before", "fail", "backfill", ""])
        if fault == "fail":
            sandbox.fail_runs(HOURLY, interval_start=iso(since - since % HOUR))
        elif fault == "backfill":
            sandbox.fail_backfills()
        elif fault:
            options = {"status": chance.choice([500, 502, 429])} if "status" in fault else {}
            sandbox.inject(fault, "create_batch_export_backfill", **options)
        task = CatchUp(clock, since=since, until=until, poll_interval=chance.choice([60, 120, 300]))
        if chance.random() < 0.5:
            with suppress(TaskDeferred):
                task.begin()  # and the worker is killed
        assert [row["missing"] for row in task.run()["exports"]] == [[]]
        assert missing(sandbox, until) == []
        assert len(exported(sandbox)) == len(set(exported(sandbox)))
        sandbox.clear_faults()


def test_odd_answers_are_read(sandbox: SandboxServer, clock: Clock) -> None:
    """Nulls, an unknown status, a date for a time, no count; a backfill of unknown state may still run."""
    path = f"/api/projects/{SEED.project_id}/batch_exports/{NOBODY}/"
    sandbox.respond(
        "GET", path, {"id": NOBODY, "interval": "day", "timezone": None, "offset_hour": None, "paused": None}
    )
    runs = [
        {"id": "1", "status": "SomethingNew", "data_interval_start": "2026-11-25", "data_interval_end": "2026-11-26"},
        {"id": "2", "status": None, "data_interval_start": None, "data_interval_end": None, "new": {}},
    ]
    sandbox.respond("GET", f"{path}runs/", {"next": None, "results": runs})
    backfill = {"id": "3", "status": "SomethingNew", "start_at": "2026-11-24", "end_at": None}
    sandbox.respond("GET", f"{path}backfills/", {"next": None, "previous": None, "results": [backfill]})
    arguments = {"batch_export_ids": [NOBODY], "since": "2026-11-24T00:00:00Z", "until": "2026-11-27T00:00:00Z"}
    with pytest.raises(AirflowFailException, match="3 intervals have no completed run"):
        CatchUp(clock, **arguments).run()
    assert backfills(sandbox) == []


def test_a_completed_run_without_a_beginning_covers_everything_before_its_end(
    sandbox: SandboxServer, clock: Clock
) -> None:
    path = f"/api/projects/{SEED.project_id}/batch_exports/{NOBODY}/"
    sandbox.respond("GET", path, {"id": NOBODY, "interval": "hour", "paused": False})
    run = {"id": "1", "status": "Completed", "data_interval_start": None, "data_interval_end": "2026-11-25T12:00:00Z"}
    sandbox.respond("GET", f"{path}runs/", {"next": None, "results": [run]})
    sandbox.respond("GET", f"{path}backfills/", {"next": None, "results": []})
    arguments = {"batch_export_ids": [NOBODY], "since": "2026-11-25T08:00:00Z", "until": "2026-11-25T12:00:00Z"}
    assert CatchUp(clock, **arguments).run()["complete_until"] == "2026-11-25T12:00:00Z"
    assert backfills(sandbox) == []


def a_window(**arguments: Any) -> Any:
    """Return the Dag of a window, whose group is ``maintenance_window``."""
    with DAG("dag", schedule=None) as dag, maintenance_window(batch_export_ids=[HOURLY], **arguments):
        EmptyOperator(task_id="work")
    return dag


@pytest.mark.parametrize(
    ("paused", "resumed", "left_paused"),
    [({"paused_before": []}, [HOURLY], [OTHER]), (None, [HOURLY], [OTHER]), ({"paused_before": [OTHER]}, [], [])],
    ids=["by close", "by close, after a pause that failed", "by the sweep, or an earlier try of close"],
)
def test_a_window_catches_up_after_it_is_closed(
    sandbox: SandboxServer, clock: Clock, paused: Any, resumed: list[str], left_paused: list[str]
) -> None:
    whole = Asset("hourly-export")
    dag = a_window(catch_up=timedelta(hours=2), drain=timedelta(minutes=30), outlets=[whole])
    task = dag.get_task("maintenance_window.catch_up")
    assert task.upstream_task_ids == {"maintenance_window.close"}
    assert (task.timeout, task.outlets, task.trigger_rule) == (timedelta(hours=2), [whole], "all_success")
    ids = [HOURLY, OTHER, DAILY]
    results = {
        "maintenance_window.open": {
            "opened_at": time.time(),
            "missed_since": time.time(),
            "batch_export_ids": ids,
            "leave_paused": [DAILY],
        },
        "maintenance_window.pause": paused,
        "maintenance_window.close": {"resumed": resumed, "held": {}, "left_paused": left_paused},
    }
    since, _ = pause_for(clock, 3)
    events = OutletEventAccessors()
    context: Any = {
        "ti": SimpleNamespace(
            map_index=-1, xcom_pull=lambda task_ids, **_: results[task_ids], xcom_push=lambda **_: None
        ),
        "outlet_events": events,
        "task_state_store": TaskStore(),
    }
    task.render_template_fields(context)
    caught = CatchUp(clock, since=since)
    caught.task, caught.context = task, context
    result = caught.run()
    assert [row["missing"] for row in result["exports"]] == [[]]
    to = result["complete_until"]
    assert events[whole].extra == {"export": HOURLY, "from": iso(since - since % HOUR - HOUR), "to": to}
    assert len(backfills(sandbox)) == 1


@pytest.mark.parametrize("release", ["3.3", "3.2"])
@pytest.mark.parametrize("closes_between", [False, True])
def test_a_window_that_is_opened_again_fills_what_was_missed_since_it_was_first_opened(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch, release: str, *, closes_between: bool
) -> None:
    Airflow(monkeypatch, release=release)
    window = Window(HOURLY, catch_up=6 * HOUR)
    if release == "3.2":
        window.state = None
        window.run_began = datetime.fromtimestamp(time.time(), timezone.utc)
    window.open()
    window.pause()
    clock.wait(4 * HOUR)
    if closes_between:
        window.close()
        clock.wait(60)
    window.clear()
    window.open()
    window.pause()
    clock.wait(600)
    window.close()
    until = time.time()
    task: Any = window.dag.get_task("maintenance_window.catch_up")
    context = window.context(task.task_id)
    task.render_template_fields(context)
    assert float(task.opened_at) > float(task.since) + 4 * HOUR
    caught = CatchUp(clock, since=0)
    caught.task, caught.context = task, context
    caught.run()
    assert missing(sandbox, until) == []


def test_an_inner_window_that_catches_up_does_not_hold_the_outer_one_open(sandbox: SandboxServer) -> None:
    with (
        DAG("dag", schedule=None) as dag,
        maintenance_window("outer", batch_export_ids=[HOURLY], catch_up=HOUR),
        maintenance_window("inner", batch_export_ids=[HOURLY], catch_up=HOUR),
    ):
        EmptyOperator(task_id="work")
    close: Any = dag.get_task("outer.close")
    opened: Any = dag.get_task("outer.open")
    assert "inner.outcome" in close.upstream_task_ids
    assert "inner.catch_up" not in close.get_flat_relative_ids(upstream=True)
    assert "inner.catch_up" not in opened.work_task_ids
    assert {"work", "inner.open", "inner.check"} <= set(opened.work_task_ids)
    assert sandbox.requests() == []


def test_a_drain_ends_when_no_run_is_under_way(sandbox: SandboxServer, clock: Clock) -> None:
    drain: Any = a_window(catch_up=HOUR, drain=HOUR).get_task("maintenance_window.drain")
    while not any(run["status"] == "running" for run in sandbox.export_runs(HOURLY)["exported"]):
        clock.wait(60)
    began = time.time()
    drain.batch_export_ids, drain.opened_at = [HOURLY], began
    task = CatchUp(clock, since=0)
    task.task = drain
    assert 0 < task.run()["ended_at"] - began < 400


def test_a_window_checks_first_that_runs_are_shown(sandbox: SandboxServer) -> None:
    dag = a_window(catch_up=HOUR)
    assert dag.get_task("maintenance_window.open").upstream_task_ids == {"maintenance_window.check"}
    check: Any = dag.get_task("maintenance_window.check")
    nothing: Any = None
    with pytest.raises(AirflowFailException, match="batch_export_ids"):
        WorkspaceCheckExportRunsOperator(task_id="check", batch_export_ids=nothing).execute({})
    assert check.execute({}) == {"batch_export_ids": [HOURLY]}
    sandbox.reset()
    with pytest.raises(AirflowFailException, match=r"\[runs-not-shown\]"):
        check.execute({})
    assert sandbox.effects() == []


def test_a_dry_run_asks_for_nothing(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    result = CatchUp(clock, since=since, until=until, dry_run=True).run()
    assert len(result["exports"][0]["missing"]) == 1
    assert backfills(sandbox) == []


def test_a_service_that_fails_for_a_while_is_waited_for(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    sandbox.inject("status_before", "list_batch_export_runs", status=503, times=40)
    CatchUp(clock, since=since, until=until).run()
    assert missing(sandbox, until) == []


@pytest.mark.parametrize("bad", ["404", pytest.param("503", marks=pytest.mark.slow), "400"])
def test_an_export_that_fails_stops_no_other(sandbox: SandboxServer, clock: Clock, bad: str) -> None:
    since, until = pause_for(clock, 3)
    clock.wait(17 * 60)
    path = f"/api/projects/{SEED.project_id}/batch_exports/{NOBODY}/"
    if bad == "503":
        sandbox.respond("GET", path, {"detail": "x"}, status=503)
    if bad == "400":
        sandbox.respond("GET", path, {"id": NOBODY, "interval": "hour", "paused": False})
        sandbox.respond("GET", f"{path}runs/", {"next": None, "results": []})
        sandbox.respond("GET", f"{path}backfills/", {"next": None, "results": []})
        sandbox.respond("POST", f"{path}backfills/", {"detail": "x"}, status=400)
    task = CatchUp(clock, batch_export_ids=[NOBODY, HOURLY], since=since, until=until, timeout=4 * HOUR)
    began = time.time()
    with pytest.raises(AirflowFailException, match=r"\[export-incomplete\].*answered with an error: 1") as failed:
        task.run()
    assert f"{NOBODY}: " in str(failed.value)
    assert missing(sandbox, until) == []
    asked = [entry for entry in backfills(sandbox) if NOBODY in entry["path"]]
    assert len(asked) == (1 if bad == "400" else 0)
    assert (time.time() - began >= 4 * HOUR) == (bad == "503")
    reported = [row["batch_export_id"] for row in task.ti.xcoms["return_value"]["exports"]]
    assert reported == ([NOBODY, HOURLY] if bad == "400" else [HOURLY])


def test_a_key_without_its_scope_ends_it_and_names_what_is_left(sandbox: SandboxServer, clock: Clock) -> None:
    since, until = pause_for(clock, 3)
    clock.wait(17 * 60)
    sandbox.inject("status_before", "create_batch_export_backfill", status=403)
    task = CatchUp(clock, since=since, until=until)
    began = time.time()
    with pytest.raises(AirflowFailException, match=f"(?s)3 intervals have no completed run.*\n{HOURLY}: .* UTC to"):
        task.run()
    assert time.time() - began < HOUR
    assert len(task.ti.xcoms["return_value"]["exports"][0]["missing"]) == 1
    task.ti.max_tries += 1
    assert task.run()["exports"][0]["missing"] == []


def test_an_export_that_another_window_holds_is_not_to_be_resumed(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Airflow(monkeypatch)
    since = time.time()
    opened(HOURLY, run_id="other")
    clock.wait(3 * HOUR)
    with pytest.raises(AirflowFailException, match=f"{HOURLY} is held by dag / other / .* when that window is") as held:
        CatchUp(clock, since=since, timeout=HOUR).run()
    assert "resume the export" not in str(held.value)
    assert backfills(sandbox) == []


def test_a_drain_waits_for_backfills_and_for_a_service_that_fails(sandbox: SandboxServer, clock: Clock) -> None:
    path = f"/api/projects/{SEED.project_id}/batch_exports/{NOBODY}/"
    sandbox.respond("GET", path, {"id": NOBODY, "interval": "hour", "paused": True})
    sandbox.respond("GET", f"{path}runs/", {"next": None, "results": []})
    backfill = {"id": "3", "status": "Running", "start_at": "2026-11-25T08:00:00Z", "end_at": "2026-11-25T18:00:00Z"}
    sandbox.respond("GET", f"{path}backfills/", {"next": None, "results": [backfill]})
    drain: Any = a_window(catch_up=HOUR, drain=HOUR).get_task("maintenance_window.drain")
    task = CatchUp(clock, since=0)
    task.task = drain
    drain.batch_export_ids, drain.opened_at = [NOBODY], time.time()
    assert task.run()["ended_at"] - drain.opened_at >= HOUR
    sandbox.inject("status_before", "list_batch_export_runs", status=503, times=40)
    drain.batch_export_ids, drain.opened_at = [HOURLY], time.time()
    assert 60 < task.run()["ended_at"] - drain.opened_at < HOUR


def test_an_export_that_the_service_paused_is_named(sandbox: SandboxServer, clock: Clock) -> None:
    since = time.time()
    sandbox.fail_runs(HOURLY, times=3)
    clock.wait(4 * HOUR)
    with pytest.raises(AirflowFailException, match=f"Paused, so nothing was asked for: {HOURLY}. The service pauses"):
        CatchUp(clock, batch_export_ids=None, batch_export_id=HOURLY, since=since, timeout=HOUR).run()
    assert backfills(sandbox) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outlets": [1]}, "outlets needs catch_up"),
        ({"project_id": 1}, "project_id needs catch_up"),
        ({"catch_up": timedelta(minutes=16)}, "catch_up must be a timedelta .* from 961 s"),
        ({"catch_up": 0}, "catch_up must be a timedelta"),
        ({"catch_up": HOUR, "resume_fields": {"backfill": True}}, "exports intervals twice"),
        ({"catch_up": HOUR, "outlets": Asset("whole")}, "outlets must be a list of assets"),
        ({"catch_up": HOUR, "outlets": "whole"}, "outlets must be a list of assets"),
        ({"catch_up": HOUR, "outlets": [None]}, "outlets must be a list of assets"),
    ],
)
def test_arguments_that_do_not_catch_up_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        a_window(**arguments)


@pytest.mark.parametrize("length", ["soon", "600"])
def test_a_rendered_length_is_checked_before_anything_is_paused(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, length: str
) -> None:
    Airflow(monkeypatch)
    window = Window(HOURLY, catch_up="{{ params.length }}")
    task: Any = window.dag.get_task("maintenance_window.open")
    task.catch_up = length
    with pytest.raises(AirflowFailException, match="catch_up must be"):
        window.open()
    assert sandbox.effects() == []


def test_a_closing_task_without_a_result_hides_no_export(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Airflow(monkeypatch)
    window = Window(HOURLY, catch_up=HOUR, resume_args={"do_xcom_push": False})
    window.open()
    window.pause()
    clock.wait(HOUR)
    window.close()
    window.results.pop("maintenance_window.close")
    task: Any = window.dag.get_task("maintenance_window.catch_up")
    task.render_template_fields(window.context(task.task_id))
    assert json.loads(task.batch_export_ids) == [HOURLY]
    assert sandbox.requests() != []


@pytest.mark.parametrize("catches_up", [True, False])
def test_an_overdue_window_names_what_fills_it(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch, *, catches_up: bool
) -> None:
    Airflow(monkeypatch)
    since = iso(time.time())
    window = opened(HOURLY, max_length=HOUR, **({"catch_up": HOUR} if catches_up else {}))
    clock.wait(2 * HOUR)
    with pytest.raises(AirflowFailException, match=r"\[window-overdue\]") as overdue:
        window.close()
    cure = f"does not run now: fill what the exports missed with WorkspaceCatchUpOperator and since='{since}'"
    assert (cure in str(overdue.value)) == catches_up
    assert sandbox.requests() != []


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({"interval": "day", "offset_hour": 24}, "offset_hour of the batch export is 24; known are 0 to 23"),
        ({"interval": "day", "offset_hour": -1}, "offset_hour of the batch export is -1"),
        ({"interval": "week", "offset_day": 9}, "offset_day of the batch export is 9; known are 0 to 6"),
    ],
)
def test_odd_offsets_are_named_with_their_export(
    sandbox: SandboxServer, clock: Clock, offsets: Any, message: str
) -> None:
    path = f"/api/projects/{SEED.project_id}/batch_exports/{NOBODY}/"
    sandbox.respond("GET", path, {"id": NOBODY, "paused": False, **offsets})
    with pytest.raises(AirflowFailException, match=f"Batch export {NOBODY}: The {message}"):
        CatchUp(clock, batch_export_ids=[NOBODY], since=time.time()).run()
