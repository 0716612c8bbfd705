"""Where leases are kept: Airflow's Variables, as tasks and triggers reach them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from airflow_provider_workspace.notes.leases import ACTIVE_RUN_STATES, LEASE_PREFIX, Run
from airflow_provider_workspace.notes.store import VariableStore
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Window

# Before Airflow 3.3 Variables cannot be listed: this one lists the keys of the leases.
INDEX = "workspace_leases"
# A URL names each task, in up to so many characters: common servers take 8 KB. Others must not be read: "load_1" may be
# a task, or one that is mapped.
MAX_QUERY_LENGTH = 4_000


@dataclass(frozen=True)
class LeaseVariables(VariableStore):
    """Stores leases as Variables, for tasks and triggers."""

    prefix: str = LEASE_PREFIX
    index: str = INDEX
    description: str = f"Lease of a maintenance window: {COMMAND} windows shows it."

    def run(self, window: Window, task_ids: Iterable[str]) -> Run:
        """Return the run of a window, with the states of its closing task and of other tasks."""
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance as Ti

        dag_id, run_ids = window.dag_id, [window.run_id]
        active_runs = Ti.get_dr_count(dag_id=dag_id, run_ids=run_ids, states=ACTIVE_RUN_STATES)
        if active_runs == 0:
            runs = Ti.get_dr_count(dag_id=dag_id, run_ids=run_ids)
            return Run("over") if runs else Run("gone")
        return Run(tasks=task_states(Ti, dag_id, window.run_id, [window.close_task_id, *task_ids]))


def task_states(
    ti: Any, dag_id: str, run_id: str, task_ids: Iterable[str], map_index: int | None = None
) -> dict[str, Any]:
    """Return the states of tasks of a run, as a task instance or its class is told them."""
    states: dict[str, Any] = {}
    for named in _batches(task_ids):
        found = ti.get_task_states(dag_id=dag_id, run_ids=[run_id], task_ids=named, map_index=map_index)
        states.update(found.get(run_id, {}))
    return states


def _batches(task_ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield so many ids of tasks at once as a URL can name."""
    batch: list[str] = []
    length = 0
    for task_id in task_ids:
        added = len(urlencode({"task_ids": task_id})) + 1
        if batch and length + added > MAX_QUERY_LENGTH:
            yield batch
            batch, length = [], 0
        batch.append(task_id)
        length += added
    if batch:
        yield batch
