"""Variables in Airflow's database, for the command line, which does not run in a task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.variable import Variable
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_workspace.api.database_limits import check_variable
from airflow_provider_workspace.notes.leases import ACTIVE_RUN_STATES, LEASE_PREFIX, Run
from airflow_provider_workspace.notes.store import RETURNS_ANOTHER, not_kept

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Window


class DatabaseStore:
    """Stores notes as Variables in Airflow's database; ``prefix`` is that of the keys to list."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def list_keys(self) -> list[str]:
        with create_session() as session:
            found = session.scalars(select(Variable.key).where(Variable.key.startswith(self.prefix, autoescape=True)))
            return sorted(found)

    def read(self, key: str) -> str | None:
        value: str | None = Variable.get(key, default_var=None)
        return value

    def write(self, key: str, value: str) -> None:
        check_variable(key, value)
        before = self.read(key)
        Variable.set(key, value)
        if self.read(key) == before != value:
            raise not_kept(key, RETURNS_ANOTHER)

    add = write

    def delete(self, key: str) -> None:
        Variable.delete(key)


class LeaseDatabase(DatabaseStore):
    """Stores leases in Airflow's database."""

    def __init__(self) -> None:
        super().__init__(LEASE_PREFIX)

    def run(self, window: Window, task_ids: Iterable[str]) -> Run:
        with create_session() as session:
            run = select(DagRun.state).where(DagRun.dag_id == window.dag_id, DagRun.run_id == window.run_id)
            run_state = session.scalar(run)
            if run_state is None:
                return Run("gone")
            if run_state not in ACTIVE_RUN_STATES:
                return Run("over")
            tasks = select(TaskInstance.task_id, TaskInstance.map_index, TaskInstance.state).where(
                TaskInstance.dag_id == window.dag_id,
                TaskInstance.run_id == window.run_id,
                TaskInstance.task_id.in_([window.close_task_id, *task_ids]),
            )
            rows = session.execute(tasks).all()
        states: dict[str, Any] = {}
        for task_id, map_index, state in rows:
            is_mapped = map_index >= 0
            states[f"{task_id}_{map_index}" if is_mapped else task_id] = state
        return Run(tasks=states)
