"""Maintenance windows whose tasks a test runs one by one, with Airflow's Variables in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.task_groups import maintenance_window
from tests.task_instance import TaskStore
from tests.variables import install, install_runs, runs_of_airflow

if TYPE_CHECKING:
    import pytest

GROUP = "maintenance_window"
CLOSE = f"{GROUP}.close"
SWEEP = "workspace_window_sweep"


class Airflow:
    """Airflow's Variables, and what it tells about runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, release: str = "3.3") -> None:
        self.variables = install(monkeypatch, release=release)
        self.runs = install_runs(monkeypatch)

    def end(self, run_id: str, why: str) -> None:
        """End a window: ``its run is over``, ``its closing task is failed``, …."""
        what, _, state = why.rpartition(" is ")
        if what == "its run":
            self.runs.over[run_id] = state
        else:
            self.runs.tasks[run_id] = {CLOSE: state, "first": "success", "rebuild": "success"}

    def lease_keys(self) -> list[str]:
        """Return the keys of all leases."""
        return [key for key in self.variables.values if key.startswith("workspace_lease.")]

    def leases(self) -> list[dict[str, Any]]:
        """Return all leases."""
        return [json.loads(self.variables.values[key]) for key in self.lease_keys()]

    def edit(self, key: str, **changes: Any) -> None:
        """Change fields of a lease; those that are ``...`` are deleted."""
        lease = {**json.loads(self.variables.values[key]), **changes}
        self.variables.values[key] = json.dumps({name: value for name, value in lease.items() if value is not ...})

    @property
    def swept(self) -> Any:
        """What the last sweep noted."""
        return json.loads(self.variables.values[SWEEP])


class Window:
    """A maintenance window, built as an author builds it; its Dag run is simulated."""

    def __init__(
        self, *export_ids: str, run_id: str = "run", dag_id: str = "dag", default_args: Any = None, **arguments: Any
    ) -> None:
        arguments.setdefault("batch_export_ids", list(export_ids))
        with DAG(dag_id, schedule=None, default_args=default_args or {}) as self.dag, maintenance_window(**arguments):
            EmptyOperator(task_id="first") >> EmptyOperator(task_id="rebuild")
        self.run_id = run_id
        self.map_index = -1
        self.max_tries = 15
        self.tasks: dict[str, str] = {}
        self.state: TaskStore | None = TaskStore()
        self.run_began: datetime | None = None
        self.results: dict[str, Any] = {}
        self.pushed: dict[str, Any] = {}

    def context(self, task_id: str) -> Any:
        """Return the context of a task."""
        ti = SimpleNamespace(
            dag_id=self.dag.dag_id,
            run_id=self.run_id,
            task_id=task_id,
            map_index=self.map_index,
            try_number=1,
            max_tries=self.max_tries,
            xcom_pull=lambda task_ids, **_: self.results.get(task_ids),
            xcom_push=lambda key, value: self.pushed.update({key: value}),
            get_task_states=self._states,
        )
        dag_run = SimpleNamespace(start_date=self.run_began)
        state = {} if self.state is None else {"task_state_store": self.state}
        return {"ti": ti, "dag_run": dag_run, **state}

    def _states(
        self, *, run_ids: list[str], task_ids: list[str], map_index: int | None = None, **_: Any
    ) -> dict[str, dict[str, str]]:
        index = "" if map_index is None else f"_{map_index}"
        asked = {f"{task_id}{index}" for task_id in task_ids}
        return {run_ids[0]: {name: state for name, state in self.tasks.items() if name in asked}}

    def execute(self, name: str, event: Any = None) -> Any:
        """Execute a task of the window, or its end after a deferral."""
        task_id = f"{GROUP}.{name}"
        task: Any = self.dag.get_task(task_id)
        task._carried = {}
        context = self.context(task_id)
        self.results[task_id] = task.execute(context) if event is None else task.execute_complete(context, event)
        return self.results[task_id]

    def open(self) -> Any:
        """Open the window."""
        return self.execute("open")

    def pause(self) -> Any:
        """Pause its exports."""
        return self.execute("pause")

    def close(self, event: Any = None) -> Any:
        """Close it, when its work has ended."""
        self.end_work()
        return self.execute("close", event)

    def clear(self) -> None:
        """Clear its tasks."""
        runs_of_airflow().tasks.pop(self.run_id, None)
        self.max_tries += 1

    def end_work(self) -> None:
        """Let the tasks of the work have ended, unless a test says what they are."""
        index = "" if self.map_index < 0 else f"_{self.map_index}"
        for task_id in self.dag.get_task(f"{GROUP}.close").work_task_ids:
            runs_of_airflow().tasks.setdefault(self.run_id, {}).setdefault(f"{task_id}{index}", "success")

    def guard(self, status: str | None = None) -> Any:
        """Wait for its end, or resume after that with a status of the trigger."""
        return self.execute("guard", None if status is None else {"status": status})

    def work(self) -> None:
        """Begin a task of the work."""
        check: Callable[[Any], None] = self.dag.get_task("rebuild")._pre_execute_hook  # type: ignore[assignment]
        check(self.context("rebuild"))


def opened(*export_ids: str, map_index: int = -1, **arguments: Any) -> Window:
    """Return a window whose exports are paused; ``map_index`` is its index in a mapped task group."""
    window = Window(*export_ids, **arguments)
    window.map_index = map_index
    window.open()
    window.pause()
    return window


def sweep(**arguments: Any) -> Any:
    """Run the sweep over windows, and return what became of them."""
    task = WorkspaceSweepOperator(task_id="sweep", kinds=["windows"], **arguments)
    ti = SimpleNamespace(dag_id="sweep", run_id="now", task_id="sweep", try_number=1, xcom_push=lambda **_: None)
    return task.execute({"ti": ti})["windows"]  # type: ignore[typeddict-item]
