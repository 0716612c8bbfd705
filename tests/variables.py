"""Airflow Variables, and the states of runs and tasks, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import airflow.sdk
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

if TYPE_CHECKING:
    import pytest


class Variables:
    """Airflow Variables in memory; before Airflow 3.3 without ``keys``."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        # What a secrets backend returns, and which method is refused.
        self.shadows: dict[str, str] = {}
        # What a task may not read.
        self.denied: set[str] = set()
        self.is_read_only = ""

    def get(self, key: str, default: Any = None, default_var: Any = None) -> Any:  # noqa: ARG002 - of commands
        if key in self.denied:
            raise PermissionError("Access denied")  # of which AirflowSecretsBackendAccessDenied is one
        return self.shadows.get(key, self.values.get(key, default))

    def set(self, key: str, value: str, description: str | None = None) -> None:
        assert isinstance(value, str)
        assert description != ""
        if self.is_read_only == "set":
            raise RuntimeError("read-only")
        self.values[key] = value

    def delete(self, key: str) -> None:
        if self.is_read_only == "delete":
            raise RuntimeError("read-only")
        self.values.pop(key, None)


def install(monkeypatch: pytest.MonkeyPatch, *, release: str = "3.3") -> Variables:
    """Replace Airflow's Variables."""
    variables: Any = Variables()
    if release >= "3.3":
        variables.keys = lambda prefix: [key for key in list(variables.values) if key.startswith(prefix)]
    monkeypatch.setattr(airflow.sdk, "Variable", variables)
    installed: Variables = variables
    return installed


class Runs:
    """
    What Airflow tells tasks about runs: active, with tasks that have not begun.

    :ivar over: runs that are ``over`` or ``gone``
    :ivar tasks: states of tasks by run; ``gone`` is a task that the run does not have
    :ivar unread: runs whose states Airflow does not tell
    :ivar longest: the most characters that one request has named tasks with
    """

    def __init__(self) -> None:
        self.over: dict[str, str] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.unread: set[str] = set()
        self.longest = 0

    def get_dr_count(self, *, dag_id: str, run_ids: list[str], states: list[str] | None = None) -> int:  # noqa: ARG002
        state = self.over.get(run_ids[0], "active")
        return int(state == "active" or (state == "over" and states is None))

    def get_task_states(self, *, run_ids: list[str], task_ids: list[str] | None, **_: Any) -> dict[str, dict[str, Any]]:
        if run_ids[0] in self.unread:
            raise RuntimeError("414 URI Too Long")
        self.longest = max(self.longest, len(urlencode([("task_ids", task_id) for task_id in task_ids or ()])))
        known = self.tasks.get(run_ids[0], {})
        missing = {task_id: None for task_id in task_ids or () if not any(name.startswith(task_id) for name in known)}
        return {run_ids[0]: {name: state for name, state in {**missing, **known}.items() if state != "gone"}}


def runs_of_airflow() -> Runs:
    """Return what a test has installed in place of what Airflow tells about runs."""
    runs: Runs = RuntimeTaskInstance.get_task_states.__self__  # type: ignore[attr-defined]
    return runs


def install_runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Replace what Airflow tells about runs."""
    runs = Runs()
    for name in ("get_dr_count", "get_task_states"):
        monkeypatch.setattr(RuntimeTaskInstance, name, getattr(runs, name))
    return runs
