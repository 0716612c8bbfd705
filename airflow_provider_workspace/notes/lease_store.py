"""Where leases are kept: Airflow's Variables, as tasks and triggers reach them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.notes.leases import ACTIVE_RUN_STATES, LEASE_PREFIX, Run
from airflow_provider_workspace.notes.store import VariableStore
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Window

# Before Airflow 3.3 Variables cannot be listed: this one lists the keys of the leases.
INDEX = "workspace_leases"
# So many tasks at once: a URL names each task. Others must not be read: "load_1" may be a task, or one that is mapped.
MAX_NAMED_TASKS = 100


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
        watched = [window.close_task_id, *task_ids]
        tasks: dict[str, Any] = {}
        for first in range(0, len(watched), MAX_NAMED_TASKS):
            named = watched[first : first + MAX_NAMED_TASKS]
            states = Ti.get_task_states(dag_id=dag_id, run_ids=run_ids, task_ids=named)
            tasks.update(states.get(window.run_id, {}))
        return Run(tasks=tasks)
