"""Maintenance windows in a complete Airflow: what closes them, what only the sweep closes, and what does not run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.live_airflow import LiveAirflow
from tests.fault_kinds import TEST_FAULTS

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).parent / "dags"
FIRST, SECOND = SEED.batch_export_ids[:2]
SWEEP = "variables/workspace_window_sweep"
# Where the service has moved pause and unpause, for the sandbox and for a connection.
MOVED = "/api/projects/{project_id}/batch_exports/{id}"
MOVED_PATHS = {
    "PauseBatchExport": "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause/",
    "UnpauseBatchExport": "/api/projects/{project_id}/batch_exports/{batch_export_id}/unpause/",
}
# A Dag whose file is edited or deleted during the work.
WITH_WINDOW = f"""
from airflow.sdk import DAG, task
from airflow_provider_workspace.task_groups import maintenance_window
from pathlib import Path
import os, time

HOME = Path(os.environ["AIRFLOW_HOME"])

@task
def long():
    (HOME / "long.pid").write_text(str(os.getpid()))
    while not (HOME / "end").exists():
        time.sleep(0.2)

with DAG("window_edited", schedule=None), maintenance_window(batch_export_ids=["{FIRST}"]):
    long()
"""
WITHOUT_WINDOW = WITH_WINDOW.replace(f', maintenance_window(batch_export_ids=["{FIRST}"])', "")


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("live", rate_limit=False, fault_kinds=TEST_FAULTS) as running:
        yield running


@pytest.fixture(scope="module")
def airflow(server: SandboxServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    dags = tmp_path_factory.mktemp("dags")
    shutil.copy(DAGS / "windows.py", dags)
    for name in ("edited", "deleted"):
        (dags / f"{name}.py").write_text(WITH_WINDOW.replace("window_edited", f"window_{name}"))
    settings = {
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": server.connection(read_timeout=5.0, max_attempts=3),
        "AIRFLOW_CONN_WORKSPACE_MOVED": server.connection(read_timeout=5.0, max_attempts=3, paths=MOVED_PATHS),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "2",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "2",
        "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
    }
    with LiveAirflow(tmp_path_factory.mktemp("airflow"), dags, server, **settings) as running:
        yield running


@pytest.fixture(autouse=True)
def begin_again(server: SandboxServer, airflow: LiveAirflow) -> None:
    server.reset()
    for file in ("long.pid", "end", "overdue.txt"):
        (airflow.home / file).unlink(missing_ok=True)
    with suppress(OSError, ValueError):  # no sweep ran; the response is empty
        airflow.call("DELETE", SWEEP)


def paused(server: SandboxServer) -> set[str]:
    return {row["id"] for row in server.batch_exports() if row["paused"]} & {FIRST, SECOND}


def history(server: SandboxServer, export: str) -> list[str]:
    return [effect["operation"].split("_")[0] for effect in server.effects() if effect["target"] == export]


def begin(airflow: LiveAirflow, dag_id: str) -> tuple[str, int]:
    """Start a run; return its id and the process of its work after that has started."""
    run_id = airflow.trigger(dag_id)
    return run_id, process_of_work(airflow)


def process_of_work(airflow: LiveAirflow) -> int:
    airflow.wait_for((airflow.home / "long.pid").exists, 200, "the work to begin")
    time.sleep(0.5)
    return int((airflow.home / "long.pid").read_text())


def clear(airflow: LiveAirflow, dag_id: str, run_id: str, **which: Any) -> None:
    body = {"dry_run": False, "dag_run_id": run_id, "only_failed": False, **which}
    airflow.call("POST", f"dags/{dag_id}/clearTaskInstances", body)


def sweep(airflow: LiveAirflow) -> str:
    """Run the sweep once; return its state and log."""
    run_id = airflow.trigger("window_sweep")
    state = airflow.finish("window_sweep", run_id)
    return f"[{state}] " + airflow.log("window_sweep", run_id, "sweep")


@pytest.mark.parametrize("end", ["the work is killed", "the work is marked as failed", "the run is marked as failed"])
def test_a_window_closes_after_its_work_was_ended(airflow: LiveAirflow, server: SandboxServer, end: str) -> None:
    run_id, pid = begin(airflow, "window_long")
    assert paused(server) == {FIRST, SECOND}
    if end == "the work is killed":
        os.kill(pid, signal.SIGKILL)
    elif end == "the work is marked as failed":
        airflow.call("PATCH", f"dags/window_long/dagRuns/{run_id}/taskInstances/long", {"new_state": "failed"})
    else:
        airflow.call("PATCH", f"dags/window_long/dagRuns/{run_id}", {"state": "failed"})
    airflow.wait_for(lambda: not paused(server), 120, "the exports to be resumed")
    assert airflow.finish("window_long", run_id) == "failed"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_close_is_retried_until_the_service_accepts(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, _ = begin(airflow, "window_refused")
    server.revoke_key(server.seed.admin_key)
    (airflow.home / "end").touch()
    airflow.wait_for(
        lambda: airflow.log("window_refused", run_id, "maintenance_window.close").count("STILL PAUSED") >= 3,
        180,
        "three refusals",
    )
    assert paused(server) == {FIRST, SECOND}
    server.add_key(server.seed.admin_key, "admin", ["*"], organization_id=server.seed.organization_id)
    assert airflow.finish("window_refused", run_id) == "success"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_a_window_closes_at_its_maximum_length_also_after_its_work_is_cleared(
    airflow: LiveAirflow, server: SandboxServer
) -> None:
    run_id, pid = begin(airflow, "window_overdue")
    for _ in range(2):
        airflow.wait_for(lambda: not paused(server), 60, "the exports to be resumed")
        os.kill(pid, 0)  # the work continues
        assert airflow.tasks("window_overdue", run_id)["long"] == "running"
        os.kill(pid, signal.SIGKILL)
        assert airflow.finish("window_overdue", run_id) == "failed"
        assert "The window is overdue" in airflow.log("window_overdue", run_id, "maintenance_window.guard")
        assert "window_overdue: [window-overdue] The window is overdue" in (airflow.home / "overdue.txt").read_text()
        for file in ("long.pid", "overdue.txt"):
            (airflow.home / file).unlink()
        clear(airflow, "window_overdue", run_id, task_ids=["long"])
        pid = process_of_work(airflow)
        assert paused(server) == {FIRST, SECOND}
    os.kill(pid, signal.SIGKILL)
    assert airflow.finish("window_overdue", run_id) == "failed"
    assert not paused(server)


def test_a_branch_at_the_end_of_the_work_skips_no_task_of_the_window(
    airflow: LiveAirflow, server: SandboxServer
) -> None:
    run_id = airflow.trigger("window_branch")
    assert airflow.finish("window_branch", run_id) == "success"
    states = airflow.tasks("window_branch", run_id)
    assert (states["after"], states["other"]) == ("success", "skipped")
    assert states["maintenance_window.close"] == states["maintenance_window.outcome"] == "success"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_a_guard_runs_beside_work_that_fills_its_pool(airflow: LiveAirflow, server: SandboxServer) -> None:
    """And the callback of the author hears that the window was overdue."""
    airflow.call("POST", "pools", {"name": "one_slot", "slots": 1})
    run_id, _ = begin(airflow, "window_pool")
    airflow.wait_for(lambda: not paused(server), 60, "the exports to be resumed")
    assert airflow.tasks("window_pool", run_id)["long"] == "running"
    airflow.wait_for((airflow.home / "overdue.txt").exists, 30, "the callback")
    assert "[window-overdue] The window is overdue" in (airflow.home / "overdue.txt").read_text()
    (airflow.home / "end").touch()
    assert airflow.finish("window_pool", run_id) == "failed"


def test_a_guard_does_not_believe_a_close_that_was_marked(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, _ = begin(airflow, "window_marked")
    path = f"dags/window_marked/dagRuns/{run_id}/taskInstances/maintenance_window.close"
    airflow.call("PATCH", path, {"new_state": "success"})
    (airflow.home / "end").touch()
    assert paused(server) == {FIRST, SECOND}
    assert airflow.finish("window_marked", run_id) == "failed"
    assert not paused(server)
    assert "[window-overdue]" in airflow.log("window_marked", run_id, "maintenance_window.guard")


def test_no_sweep_resumes_under_work_whose_close_was_marked(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, _ = begin(airflow, "window_long")
    path = f"dags/window_long/dagRuns/{run_id}/taskInstances/maintenance_window.close"
    airflow.call("PATCH", path, {"new_state": "success"})
    assert sweep(airflow).startswith("[success]")
    assert airflow.tasks("window_long", run_id)["long"] == "running"
    assert paused(server) == {FIRST, SECOND}
    assert history(server, FIRST) == history(server, SECOND) == ["pause"]
    (airflow.home / "end").touch()
    airflow.finish("window_long", run_id)
    assert sweep(airflow).startswith("[failed]")
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]


def test_deferred_work_goes_on_in_a_window_that_closed(airflow: LiveAirflow) -> None:
    run_id = airflow.trigger("window_deferred")
    assert airflow.finish("window_deferred", run_id) == "failed"
    assert airflow.tasks("window_deferred", run_id)["later"] == "success"
    assert (airflow.home / "later.txt").read_text() == "done"
    log = airflow.log("window_deferred", run_id, "later")
    assert "This task goes on, because it began before it was deferred" in log


def test_clearing_only_the_failed_tasks_does_not_run_the_work(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id = airflow.trigger("window_exception")
    assert airflow.finish("window_exception", run_id) == "failed"
    clear(airflow, "window_exception", run_id, only_failed=True)
    assert airflow.finish("window_exception", run_id) == "failed"
    assert history(server, FIRST) == ["pause", "unpause"]
    log = airflow.log("window_exception", run_id, "exception")
    assert log.count("the maintenance went wrong") > 0
    assert "Clear it with 'Downstream' and without 'only failed tasks'" in log
    clear(airflow, "window_exception", run_id, task_ids=["exception"], include_downstream=True)
    assert airflow.finish("window_exception", run_id) == "failed"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause", "pause", "unpause"]
    tries = {
        name: airflow.call("GET", f"dags/window_exception/dagRuns/{run_id}/taskInstances/{name}")["try_number"]
        for name in ("well", "exception")
    }
    assert tries == {"well": 1, "exception": 3}, "what was done is not done again"


def test_a_window_over_moved_pause_and_resume(airflow: LiveAirflow, server: SandboxServer) -> None:
    server.move("pause_batch_export", f"{MOVED}/pause/", how="gone")
    server.move("unpause_batch_export", f"{MOVED}/unpause/", how="gone")
    run_id, _ = begin(airflow, "window_moved")
    assert paused(server) == {FIRST, SECOND}
    (airflow.home / "end").touch()
    assert airflow.finish("window_moved", run_id) == "success"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]
    writes = [row["path"] for row in server.requests() if row["method"] == "POST"]
    exports = f"/api/projects/{SEED.project_id}/batch_exports"
    assert sorted(writes) == sorted(
        f"{exports}/{export}/{verb}/" for export in (FIRST, SECOND) for verb in ("pause", "unpause")
    )
    assert f"target={writes[0]}" in airflow.log("window_moved", run_id, "maintenance_window.pause")


# In 3.1 the API server fails for cleared tasks of a mapped group: apache/airflow#58499.
@pytest.mark.needs_airflow("3.2", "cleared tasks of a mapped group start")
def test_clearing_the_work_of_one_mapped_window_pauses_no_other(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id = airflow.trigger("window_mapped")
    assert airflow.finish("window_mapped", run_id) == "success"
    # With what follows, Airflow clears the teardown of this window alone, but the setups of both.
    clear(airflow, "window_mapped", run_id, task_ids=[["well", 1]], include_downstream=True)
    assert airflow.finish("window_mapped", run_id) == "success"
    assert history(server, FIRST) == ["pause", "unpause"]
    assert history(server, SECOND) == ["pause", "unpause", "pause", "unpause"]


@pytest.mark.needs_airflow("3.4", "draining Dags")
def test_a_draining_dag_closes_its_window_before_it_pauses(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, _ = begin(airflow, "window_long")
    airflow.call("PATCH", "dags/window_long", {"scheduling_state": "draining"})
    assert paused(server) == {FIRST, SECOND}
    (airflow.home / "end").touch()
    assert airflow.finish("window_long", run_id) == "success"
    assert history(server, FIRST) == history(server, SECOND) == ["pause", "unpause"]
    airflow.wait_for(lambda: airflow.call("GET", "dags/window_long")["is_paused"], 60, "the end of the drain")
    airflow.call("PATCH", "dags/window_long", {"is_paused": False})


# Accidents: without the sweep nothing stays paused without an error; with it nothing stays paused.


def edited(airflow: LiveAirflow, server: SandboxServer) -> tuple[str, str]:  # noqa: ARG001
    run_id, _ = begin(airflow, "window_edited")
    (Path(airflow.env["AIRFLOW__CORE__DAGS_FOLDER"]) / "edited.py").write_text(WITHOUT_WINDOW)
    airflow.wait_for(lambda: "maintenance_window.close" not in task_ids(airflow, "window_edited"), 180, "the edit")
    (airflow.home / "end").touch()
    return "window_edited", run_id


def task_ids(airflow: LiveAirflow, dag_id: str) -> set[str]:
    return {row["task_id"] for row in airflow.call("GET", f"dags/{dag_id}/tasks")["tasks"]}


def deleted(airflow: LiveAirflow, server: SandboxServer) -> tuple[str, str]:
    run_id, _ = begin(airflow, "window_deleted")
    (Path(airflow.env["AIRFLOW__CORE__DAGS_FOLDER"]) / "deleted.py").unlink()
    airflow.wait_for(lambda: airflow.call("GET", "dags/window_deleted")["is_stale"], 180, "the deletion")
    end_work(airflow, server, "window_deleted", run_id)
    return "window_deleted", run_id


def dag_paused(airflow: LiveAirflow, server: SandboxServer) -> tuple[str, str]:
    run_id, _ = begin(airflow, "window_dag_paused")
    airflow.call("PATCH", "dags/window_dag_paused", {"is_paused": True})
    end_work(airflow, server, "window_dag_paused", run_id)
    return "window_dag_paused", run_id


def end_work(airflow: LiveAirflow, server: SandboxServer, dag_id: str, run_id: str) -> None:
    """End the work, let a first sweep see that, and let some minutes pass by its Variable."""
    (airflow.home / "end").touch()
    airflow.wait_for(lambda: airflow.tasks(dag_id, run_id)["long"] == "success", 120, "the work")
    before = paused(server)
    assert sweep(airflow).startswith("[success]")
    assert paused(server) == before
    note = json.loads(airflow.call("GET", SWEEP)["value"])
    (window,) = note["windows"].values()
    assert (window["state"], window["why"]) == ("closing", "its work has ended and its closing task has not begun")
    window["since"] = "2026-01-01T00:00:00.000Z"
    airflow.call("PATCH", SWEEP, {"key": "workspace_window_sweep", "value": json.dumps(note)})


def timed_out(airflow: LiveAirflow, server: SandboxServer) -> tuple[str, str]:  # noqa: ARG001
    return "window_run_timeout", begin(airflow, "window_run_timeout")[0]


def killed(airflow: LiveAirflow, server: SandboxServer) -> tuple[str, str]:
    """The pause takes 9 s; its process is killed, and the run is marked as failed before the retry."""
    server.inject("slow_effect", "pause_batch_export", seconds=9)
    run_id = airflow.trigger("window_success")
    path, pause, close = f"dags/window_success/dagRuns/{run_id}", "maintenance_window.pause", "maintenance_window.close"
    airflow.wait_for(
        lambda: any(row["path"].endswith("/pause/") for row in server.requests()), 120, "the pause", every=0.1
    )
    os.kill(airflow.call("GET", f"{path}/taskInstances/{pause}")["pid"], signal.SIGKILL)
    state = lambda task: airflow.tasks("window_success", run_id)[task]  # noqa: E731
    airflow.wait_for(lambda: state(pause) == "up_for_retry", 60, "the retry", every=0.1)
    airflow.call("PATCH", path, {"state": "failed"})
    airflow.wait_for(lambda: paused(server), 30, "the late pause", every=0.1)
    airflow.wait_for(lambda: state(close) in ("success", "failed"), 120, "the second resume")
    return "window_success", run_id


@pytest.mark.parametrize(
    ("accident", "state", "stays"),
    [
        (edited, "success", True),
        (deleted, "running", True),
        (dag_paused, "running", True),
        (timed_out, "failed", True),
        (killed, "failed", False),
    ],
)
def test_an_accident_leaves_no_export_paused(
    airflow: LiveAirflow,
    server: SandboxServer,
    accident: Callable[[LiveAirflow, SandboxServer], tuple[str, str]],
    state: str,
    *,
    stays: bool,
) -> None:
    """``stays``: whether an export stays paused until the sweep."""
    dag_id, run_id = accident(airflow, server)
    ended = airflow.run(dag_id, run_id) if state == "running" else airflow.finish(dag_id, run_id)
    time.sleep(0 if state == "running" else 4)  # close runs shortly after the run was marked as failed
    assert (ended, bool(paused(server))) == (state, stays)
    said = "".join(airflow.log(dag_id, run_id, task_id) for task_id in airflow.tasks(dag_id, run_id))
    assert not stays or ended == "failed" or "nobody " in said, "still paused in silence"
    swept = sweep(airflow)
    assert not paused(server)
    if stays:
        assert swept.startswith("[failed]")
        assert f"Window {dag_id} / {run_id}" in swept
