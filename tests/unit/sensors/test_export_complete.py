"""The sensor that waits until a batch export is complete, against an export whose runs the sandbox plays."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceBatchExportCompleteSensor
from airflow_provider_workspace.version_compat import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)
from airflow_provider_workspace.windows.intervals import Schedule

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)
HOURLY = SEED.batch_export_ids[0]
HOUR = 3600


@pytest.fixture(autouse=True)
def hour(sandbox: SandboxServer, clock: Clock, connect: Connect) -> datetime:
    """The clocks show this full hour; the run of the hour before it has not begun."""
    connect()
    sandbox.play_runs(history_hours=48)
    clock.wait(HOUR - time.time() % HOUR)
    return datetime.fromtimestamp(time.time() // HOUR * HOUR, timezone.utc)


def sensor(**arguments: Any) -> Any:
    return WorkspaceBatchExportCompleteSensor(task_id="complete", batch_export_id=HOURLY, **arguments)


def iso(moment: datetime, days: int = 0) -> str:
    return f"{datetime.fromtimestamp(moment.timestamp() - days * 86400, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def test_it_waits_in_the_triggerer_until_the_last_run_is_completed(clock: Clock, hour: datetime) -> None:
    whole = Asset("whole-day")
    task = sensor(deferrable=True, outlets=[whole], poke_interval=60)
    events = OutletEventAccessors()
    context: Any = {"data_interval_end": hour, "outlet_events": events}
    began, event = time.time(), None
    while True:
        try:
            result = task.execute(context) if event is None else task.execute_complete(context, event)
            break
        except TaskDeferred as deferred:
            trigger: Any = deferred.trigger
            clock.wait(trigger.end_at - time.time())
            event = {"status": "over", "state": trigger.state}
    assert 60 < time.time() - began < 1500
    assert result == {"export": HOURLY, "from": iso(hour, days=1), "to": iso(hour)}
    assert events[whole].extra == result


def test_it_pokes_and_takes_the_due_time_of_a_run_without_a_data_interval(clock: Clock, hour: datetime) -> None:
    clock.wait(1500)
    context: Any = {"data_interval_end": None, "dag_run": SimpleNamespace(run_after=hour)}
    assert sensor().execute(context)["to"] == iso(hour)


@pytest.mark.parametrize(("soft", "error"), [(False, AirflowSensorTimeout), (True, AirflowSkipException)])
def test_its_time_ends_with_what_is_left(
    sandbox: SandboxServer, clock: Clock, hour: datetime, *, soft: bool, error: type[Exception]
) -> None:
    sandbox.fail_runs(HOURLY)
    clock.wait(1500)
    task = sensor(deferrable=True, soft_fail=soft, until=hour, since=hour.timestamp() - 3 * HOUR, timeout=600)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    clock.wait(700)
    trigger: Any = deferred.value.trigger
    with pytest.raises(error, match="1 intervals have no completed run; the first is"):
        task.execute_complete({}, {"status": "over", "state": trigger.state})


def test_what_was_not_looked_at_is_not_complete(clock: Clock, hour: datetime) -> None:
    clock.wait(1500)
    later = hour + timedelta(minutes=50)
    task = sensor(until=later)
    assert task.execute({})["to"] == iso(hour)
    message = task.poll_once().message
    assert message.endswith(f"up to {iso(hour)}, the end of the last interval that ended by {iso(later)}")
    with pytest.raises(AirflowFailException, match=f"has no interval that ended from {iso(hour)} to {iso(later)}"):
        sensor(since=hour, until=later).execute({})


def test_it_looks_at_a_whole_interval_at_least(sandbox: SandboxServer, hour: datetime) -> None:
    sandbox.set_batch_export(HOURLY, interval="week")
    monday = Schedule.read("week").latest_end(hour) + timedelta(days=1)
    with pytest.raises(TaskDeferred):
        sensor(until=monday, deferrable=True).execute({})


def test_a_service_without_runs_is_a_permanent_error(sandbox: SandboxServer, hour: datetime) -> None:
    sandbox.reset()
    with pytest.raises(AirflowFailException, match=r"\[runs-not-shown\]"):
        sensor(until=hour, soft_fail=True).execute({})


def test_a_ready_made_state_of_shows_whether_an_export_is_paused(sandbox: SandboxServer) -> None:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.windows.export_runs import export_state

    with WorkspaceHook() as hook:
        assert export_state(hook, HOURLY) == "running"
        hook.pause_batch_export(batch_export_id=HOURLY)
        assert export_state(hook, HOURLY) == "paused"
        sandbox.reset()
