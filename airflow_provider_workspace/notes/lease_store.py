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


@dataclass(frozen=True)
class LeaseVariables(VariableStore):
    """Stores leases as Variables, for tasks and triggers."""

    prefix: str = LEASE_PREFIX
    index: str = INDEX
    description: str = f"Lease of a maintenance window: {COMMAND} windows shows it."

    def run(self, window: Window, task_ids: Iterable[str]) -> Run:
        """Return the run of a window, with the states of its closing task and of other tasks."""
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance as Ti

        run: dict[str, Any] = {"dag_id": window.dag_id, "run_ids": [window.run_id]}
        if Ti.get_dr_count(**run, states=ACTIVE_RUN_STATES) == 0:
            return Run("over" if Ti.get_dr_count(**run) else "gone")
        states = Ti.get_task_states(**run, task_ids=[window.close_task_id, *task_ids])
        return Run(tasks=states.get(window.run_id, {}))
