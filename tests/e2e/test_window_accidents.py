"""
Accidents that could leave an export paused, with a complete Airflow.

Each runs to its end without a sweep; then the sweep runs once. Without the sweep nothing may stay paused without an
error; with it nothing may stay paused. Accidents that need no scheduler are in ``tests/unit``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.live_airflow import LiveAirflow
from tests.fault_kinds import TEST_FAULTS
from tests.leases import seconds_of

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).parent / "dags"
READ_TIMEOUT = 5.0
WITH_WINDOW = """
from datetime import timedelta
from airflow.sdk import DAG, task
from airflow_provider_workspace.task_groups import maintenance_window
from pathlib import Path
import json, os, time

@task
def work():
    (Path(os.environ["AIRFLOW_HOME"]) / "work_accident_removed").write_text("")
    time.sleep(20)

with DAG("accident_removed", schedule=None):
    organization, export = json.loads(os.environ["ACCIDENT_EXPORTS"])["2"]
    with maintenance_window(
        batch_export_ids=[export], organization_id=organization, workspace_conn_id="workspace_slow"
    ):
        work()
"""
# The file of this Dag is deleted during the work.
DELETED = (
    WITH_WINDOW.replace("removed", "deleted")
    .replace('["2"]', '["17"]')
    .replace(
        "time.sleep(20)",
        'while not (Path(os.environ["AIRFLOW_HOME"]) / "end_accident_deleted").exists(): time.sleep(0.2)',
    )
)
WITHOUT_WINDOW = WITH_WINDOW[: WITH_WINDOW.index("    organization,")] + "    work()\n"


# Exports of one organization are in one row.
NUMBERS = ((2, 4, 5), (6, 7, 9), (12, 13, 14), (15, 16, 17), (18, 19, 20))


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("live", rate_limit=False, fault_kinds=TEST_FAULTS) as running:
        yield running


@pytest.fixture(scope="module")
def exports(server: SandboxServer) -> dict[int, tuple[str, str]]:
    """Organization and id of each export."""
    found: dict[int, tuple[str, str]] = {}
    for numbers in NUMBERS:
        made = server.add_organization(f"Organization {numbers}")
        ids = sorted(made["batch_exports"])  # the order in which a window resumes them
        found |= {number: (made["id"], export) for number, export in zip(numbers, ids, strict=True)}
    return found


@pytest.fixture(scope="module")
def airflow(
    server: SandboxServer, exports: dict[int, tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveAirflow]:
    dags = tmp_path_factory.mktemp("dags")
    shutil.copy(DAGS / "window_accidents.py", dags)
    (dags / "removed.py").write_text(WITH_WINDOW)
    (dags / "deleted.py").write_text(DELETED)
    with LiveAirflow(
        tmp_path_factory.mktemp("airflow"),
        dags,
        server,
        ACCIDENT_EXPORTS=json.dumps(exports),
        AIRFLOW_CONN_WORKSPACE_SLOW=server.connection(read_timeout=READ_TIMEOUT, max_attempts=3),
        AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL="2",
        AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL="2",
        AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL="1",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def env(airflow: LiveAirflow, server: SandboxServer, exports: dict[int, tuple[str, str]]) -> Environment:
    return Environment(airflow, server, exports)


@dataclass
class Environment:
    """Airflow and service, with shortcuts for the accidents."""

    airflow: LiveAirflow
    server: SandboxServer
    exports: dict[int, tuple[str, str]]

    def paused(self) -> set[int]:
        """Return the numbers of the paused exports."""
        paused = {row["id"] for row in self.server.batch_exports() if row["paused"]}
        return {number for number, (_, export) in self.exports.items() if export in paused}

    def count(self, action: str, number: int) -> int:
        """Return the number of requests to pause or unpause an export."""
        path = f"/{self.exports[number][1]}/{action}/"
        return sum(request["path"].endswith(path) for request in self.server.requests())

    def refuse(self, *, after: int = 0, times: int = 1, status: int = 403) -> None:
        """Refuse the next requests to resume an export."""
        detail = "Invalid request to unpause a BatchExport could not be carried out"
        options = {"after": after, "times": times, "status": status, "detail": detail}
        self.server.inject("status_before", "unpause_batch_export", **options)

    def begin(self, dag_id: str) -> str:
        """Start a run; return when its work has started."""
        mark = self.mark(dag_id)
        run_id = self.airflow.trigger(dag_id)
        self.airflow.wait_for(mark.exists, 300, f"the work of {dag_id}")
        return run_id

    def mark(self, dag_id: str) -> Path:
        mark = self.airflow.home / f"work_{dag_id}"
        mark.unlink(missing_ok=True)
        return mark

    def set_variable(self, key: str, value: str) -> None:
        body = {"key": key, "value": value}
        try:
            self.airflow.call("PATCH", f"variables/{key}", body)
        except OSError:
            self.airflow.call("POST", "variables", body)

    def lease_keys(self, dag_id: str) -> list[str]:
        rows = self.airflow.call("GET", "variables?limit=100")["variables"]
        leases = {row["key"]: row["value"] for row in rows if row["key"].startswith("workspace_lease.")}
        return [key for key, value in leases.items() if json.loads(value)["dag_id"] == dag_id]

    def forget_sweep(self) -> None:
        """Remove the traces of earlier sweeps."""
        with suppress(OSError, ValueError):  # there is none; the response is empty
            self.airflow.call("DELETE", "variables/workspace_window_sweep")

    def sweep(self) -> str:
        """Run the sweep once; return its log."""
        run_id = self.airflow.trigger("window_sweep")
        state = self.airflow.finish("window_sweep", run_id)
        return f"[{state}] " + self.airflow.log("window_sweep", run_id, "sweep")

    def end_work(self, dag_id: str, run_id: str) -> None:
        """End the work, let a first sweep see that, and let some minutes pass by its Variable."""
        (self.airflow.home / f"end_{dag_id}").write_text("")
        self.airflow.wait_for(lambda: self.airflow.tasks(dag_id, run_id)["work"] == "success", 120, "the work")
        paused = self.paused()
        assert self.sweep().startswith("[success]")
        assert self.paused() == paused
        note = json.loads(self.airflow.call("GET", "variables/workspace_window_sweep")["value"])
        (window,) = note["windows"].values()
        assert (window["state"], window["why"]) == ("closing", "its work has ended and its closing task has not begun")
        window["since"] = "2026-01-01T00:00:00.000Z"
        self.set_variable("workspace_window_sweep", json.dumps(note))


def removed(env: Environment) -> tuple[str, str]:
    run_id = env.begin("accident_removed")
    folder = Path(env.airflow.env["AIRFLOW__CORE__DAGS_FOLDER"])
    (folder / "removed.py").write_text(WITHOUT_WINDOW)
    return "accident_removed", run_id


def depends_on_past(env: Environment) -> tuple[str, str]:
    env.refuse()
    first = env.begin("accident_depends")
    assert env.airflow.finish("accident_depends", first) == "failed"
    return "accident_depends", env.begin("accident_depends")


def dag_paused(env: Environment) -> tuple[str, str]:
    run_id = env.begin("accident_paused")
    env.airflow.call("PATCH", "dags/accident_paused", {"is_paused": True})
    time.sleep(40)
    return "accident_paused", run_id


def timed_out(env: Environment) -> tuple[str, str]:
    return "accident_timeout", env.begin("accident_timeout")


def killed(env: Environment) -> tuple[str, str]:
    """The pause takes 9 s; its process is killed, and the run is marked as failed before the retry."""
    env.server.inject("slow_effect", "pause_batch_export", seconds=9)
    run_id = env.airflow.trigger("accident_killed")
    env.airflow.wait_for(lambda: env.count("pause", 7) > 0, 120, "the pause", every=0.1)
    path = f"dags/accident_killed/dagRuns/{run_id}"
    pid = env.airflow.call("GET", f"{path}/taskInstances/maintenance_window.pause")["pid"]
    os.kill(pid, signal.SIGKILL)
    env.airflow.wait_for(
        lambda: env.airflow.tasks("accident_killed", run_id)["maintenance_window.pause"] == "up_for_retry",
        60,
        "the retry",
        every=0.1,
    )
    env.airflow.call("PATCH", path, {"state": "failed"})
    env.airflow.wait_for(lambda: 7 in env.paused(), 30, "the late pause", every=0.1)
    env.airflow.wait_for(
        lambda: env.airflow.tasks("accident_killed", run_id)["maintenance_window.close"] in ("success", "failed"),
        120,
        "the second resume",
    )
    return "accident_killed", run_id


def opened_while_the_other_closes(env: Environment) -> tuple[str, str]:
    """The resume of the first window takes 12 s, longer than its read timeout; the second window opens meanwhile."""
    env.server.inject("slow_effect", "unpause_batch_export", seconds=12, times=2)
    first = env.begin("accident_first")
    env.airflow.wait_for(lambda: env.count("unpause", 9) > 0, 120, "the resume", every=0.1)
    run_id = env.begin("accident_second")
    begun = time.time()
    assert env.airflow.finish("accident_second", run_id) == "success"
    ended = float((env.airflow.home / "work_accident_second.end").read_text())
    effects = env.server.effects("unpause_batch_export", target=env.exports[9][1])
    ran = [seconds_of(effect["at"]) for effect in effects]
    assert not [when for when in ran if begun < when < ended], "the export ran during the work of the other"
    assert env.airflow.finish("accident_first", first) == "success"
    return "accident_second", run_id


def scheduler_outage(env: Environment) -> tuple[str, str]:
    """The scheduler ends during drain, and starts again after max_length: with the guard and the work."""
    run_id = env.airflow.trigger("accident_outage")
    env.airflow.wait_for(
        lambda: env.airflow.tasks("accident_outage", run_id)["maintenance_window.drain"] == "deferred", 400, "drain"
    )
    (key,) = env.lease_keys("accident_outage")
    until = json.loads(env.airflow.call("GET", f"variables/{key}")["value"])["until"]
    env.airflow.kill_scheduler()
    time.sleep(max(0.0, seconds_of(until) - time.time()) + 5)
    env.airflow.begin("scheduler", "scheduler")
    assert env.airflow.finish("accident_outage", run_id) == "failed"
    assert not (env.airflow.home / "more_accident_outage").exists(), "the work ran in an overdue window"
    tasks = env.airflow.tasks("accident_outage", run_id)
    print({name: tasks[name] for name in ("after_the_work", "maintenance_window.guard", "maintenance_window.close")})
    return "accident_outage", run_id


def guard_refused(env: Environment) -> tuple[str, str]:
    """The guard resumes one export and is refused on the other; then the next task of the work would begin."""
    env.refuse(after=1, times=2)
    run_id = env.begin("accident_guard")
    env.airflow.wait_for(lambda: env.count("unpause", 16) > 0, 400, "the guard", every=0.1)
    (env.airflow.home / "end_accident_guard").write_text("")
    assert env.airflow.finish("accident_guard", run_id) == "failed"
    assert not (env.airflow.home / "more_accident_guard").exists(), "the work ran over a running export"
    assert [env.count("unpause", number) for number in (15, 16)] == [1, 3]
    assert "Clear 'maintenance_window.open' with all that follows" in env.airflow.log(
        "accident_guard", run_id, "after_the_work"
    )
    return "accident_guard", run_id


def file_deleted(env: Environment) -> tuple[str, str]:
    run_id = env.begin("accident_deleted")
    (Path(env.airflow.env["AIRFLOW__CORE__DAGS_FOLDER"]) / "deleted.py").unlink()
    env.airflow.wait_for(lambda: env.airflow.call("GET", "dags/accident_deleted")["is_stale"], 180, "the deletion")
    env.end_work("accident_deleted", run_id)
    return "accident_deleted", run_id


def dag_paused_during_work(env: Environment) -> tuple[str, str]:
    run_id = env.begin("accident_paused_work")
    env.airflow.call("PATCH", "dags/accident_paused_work", {"is_paused": True})
    env.end_work("accident_paused_work", run_id)
    return "accident_paused_work", run_id


def scheduler_fault(env: Environment) -> tuple[str, str]:
    env.refuse(status=400, times=5)
    return "accident_400", env.airflow.trigger("accident_400")


def contradicting_response(env: Environment) -> tuple[str, str]:
    env.server.inject("said_otherwise", "unpause_batch_export", times=5)
    return "accident_contradicting_response", env.begin("accident_contradicting_response")


ACCIDENTS: list[tuple[Callable[[Environment], tuple[str, str]], int, str, bool, bool]] = [
    # accident, export, state of the run, whether it stays paused without the sweep, whether to wait for the run
    (removed, 2, "success", True, True),
    (depends_on_past, 4, "success", False, True),
    (dag_paused, 5, "running", True, False),
    (timed_out, 6, "failed", True, True),
    (killed, 7, "failed", False, True),
    (opened_while_the_other_closes, 9, "success", False, True),
    (scheduler_fault, 12, "success", False, True),
    (contradicting_response, 13, "success", False, True),
    (scheduler_outage, 14, "failed", False, True),
    (guard_refused, 16, "failed", False, True),
    (file_deleted, 17, "running", True, False),
    (dag_paused_during_work, 18, "running", True, False),
]


@pytest.mark.parametrize(
    ("accident", "number", "state", "stays", "ends"), ACCIDENTS, ids=[accident[0].__name__ for accident in ACCIDENTS]
)
def test_accident(
    env: Environment,
    accident: Callable[[Environment], tuple[str, str]],
    number: int,
    state: str,
    *,
    stays: bool,
    ends: bool,
) -> None:
    airflow = env.airflow
    env.server.clear_faults()
    env.forget_sweep()
    dag_id, run_id = accident(env)
    ended = airflow.finish(dag_id, run_id) if ends else airflow.run(dag_id, run_id)
    if ended != "running":
        time.sleep(4)  # close runs shortly after the run was marked as failed
    off = number in env.paused()
    assert not off or ended == "failed" or "nobody " in logs(airflow, dag_id, run_id), "still paused in silence"
    told = env.sweep()
    print(f"\n{accident.__name__:32} run {ended:8} export {'STILL PAUSED' if off else 'resumed'} without the sweep")
    assert number not in env.paused()
    assert (ended, off) == (state, stays)
    if stays:
        assert told.startswith("[failed]")
        assert f"Abandoned window {dag_id} / {run_id}" in told


def test_a_paused_dag_succeeds_after_it_continues(env: Environment) -> None:
    runs = env.airflow.call("GET", "dags/accident_paused/dagRuns")["dag_runs"]
    resumes = env.count("unpause", 5)
    env.airflow.call("PATCH", "dags/accident_paused", {"is_paused": False})
    env.airflow.finish("accident_paused", runs[0]["dag_run_id"])
    assert env.count("unpause", 5) == resumes, "what the sweep has resumed is not resumed again"


def test_a_window_that_the_sweep_has_closed_is_not_closed_again(env: Environment) -> None:
    run_id = env.airflow.call("GET", "dags/accident_paused_work/dagRuns")["dag_runs"][0]["dag_run_id"]
    env.airflow.call("PATCH", "dags/accident_paused_work", {"is_paused": False})
    assert env.airflow.finish("accident_paused_work", run_id) == "success"
    assert env.count("unpause", 18) == 1


def logs(airflow: LiveAirflow, dag_id: str, run_id: str) -> str:
    return "".join(airflow.log(dag_id, run_id, task_id) for task_id in airflow.tasks(dag_id, run_id))
