"""Where leases are kept: Airflow's Variables, as tasks and triggers reach them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.state.leases import ACTIVE_RUN_STATES, PREFIX, Run
from airflow_provider_workspace.version_compat import COMMAND, lists_variables, variable_keys

if TYPE_CHECKING:
    from airflow_provider_workspace.state.leases import Window

# Before Airflow 3.3 Variables cannot be listed: this one lists the keys of the leases.
INDEX = "workspace_leases"
# How often a window checks that its entry stays in the index, and the seconds between two checks.
CHECKS_OF_ENTRY = 2
SECONDS_BETWEEN_CHECKS = 0.7
MAX_WRITES = 20
# A Variable that is listed but not found is read again: Airflow reports a transient error as "not found".
MAX_READS = 3


@dataclass(frozen=True)
class VariableStore:
    """
    Stores leases as Variables, for tasks and triggers; also other notes that must not overwrite each other.

    :param prefix: prefix of the keys
    :param index: the Variable that lists the keys before Airflow 3.3
    :param description: description of each Variable in the Airflow UI
    """

    prefix: str = PREFIX
    index: str = INDEX
    description: str = f"Lease of a maintenance window: {COMMAND} windows shows it."

    def list_keys(self) -> list[str]:
        """Return the keys of all leases."""
        return variable_keys(self.prefix) if lists_variables() else self._index()

    def read(self, key: str) -> str | None:
        """
        Return a value; ``None`` only if there certainly is none.

        :raises WorkspaceError: if it cannot be read
        """
        from airflow.sdk import Variable

        for _ in range(MAX_READS):
            value: str | None = Variable.get(key, default=None)
            if value is not None:
                return value
            if lists_variables() and key not in variable_keys(key):
                return None
        if not lists_variables():
            return None
        raise WorkspaceError(f"See the log of Airflow's API server: the Variable '{key}' cannot be read.")

    def add(self, key: str, value: str) -> None:
        """Write a value whose key may be new."""
        self.write(key, value)
        if not lists_variables():
            self._add_to_index(key)

    def write(self, key: str, value: str) -> None:
        """Replace a value."""
        from airflow.sdk import Variable

        Variable.set(key, value, description=self.description)

    def delete(self, key: str) -> None:
        """Delete a value; one that is gone is no error."""
        from airflow.sdk import Variable

        Variable.delete(key)
        if not lists_variables():
            self._write_index([entry for entry in self._index() if entry != key])

    def run(self, window: Window, task_ids: Iterable[str]) -> Run:
        """Return the run of a window, with the states of its closing task and of other tasks."""
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance as Ti

        run: dict[str, Any] = {"dag_id": window.dag_id, "run_ids": [window.run_id]}
        if Ti.get_dr_count(**run, states=ACTIVE_RUN_STATES) == 0:
            return Run("over" if Ti.get_dr_count(**run) else "gone")
        states = Ti.get_task_states(**run, task_ids=[window.close_task_id, *task_ids])
        return Run(tasks=states.get(window.run_id, {}))

    def _index(self) -> list[str]:
        try:
            keys = json.loads(self.read(self.index) or "[]")
        except (ValueError, ImportError):  # ImportError outside of a task, as in tests of Dags
            keys = None
        return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []

    def _write_index(self, keys: list[str]) -> None:
        from airflow.sdk import Variable

        Variable.set(self.index, json.dumps(keys), description=f"Keys of Variables that begin with {self.prefix}")

    def _add_to_index(self, key: str) -> None:
        """Add a key, check that it stays, and add it again if another window overwrites the index."""
        stayed = 0
        for _ in range(MAX_WRITES):
            keys = self._index()
            if key in keys:
                stayed += 1
                if stayed > CHECKS_OF_ENTRY:
                    return
            else:
                stayed = 0
                self._write_index([*keys, key])
            # Jitter, so that windows that open together do not retry together.
            waits.sleep(SECONDS_BETWEEN_CHECKS * (0.5 + random.random()))  # noqa: S311
        raise WorkspaceError(
            f"Try again: other windows keep overwriting the Variable '{self.index}'. Nothing was sent."
        )
