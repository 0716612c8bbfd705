"""Variables in Airflow's database, for the command line, which does not run in a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.variable import Variable
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_workspace.state.lease_store import ACTIVE_RUN_STATES, why_task_over
from airflow_provider_workspace.state.leases import PREFIX

if TYPE_CHECKING:
    from airflow_provider_workspace.state.leases import Window


class DatabaseStore:
    """A lease store that reads and writes Airflow's database; also for Variables with another prefix."""

    def __init__(self, prefix: str = PREFIX) -> None:
        self.prefix = prefix

    def list_keys(self) -> list[str]:
        with create_session() as session:
            found = session.scalars(select(Variable.key).where(Variable.key.startswith(self.prefix, autoescape=True)))
            return sorted(found)

    def read(self, key: str) -> str | None:
        value: str | None = Variable.get(key, default_var=None)
        return value

    def add(self, key: str, value: str) -> None:
        self.write(key, value)

    def write(self, key: str, value: str) -> None:
        Variable.set(key, value)

    def delete(self, key: str) -> None:
        Variable.delete(key)

    def why_over(self, window: Window) -> str | None:
        with create_session() as session:
            run = select(DagRun.state).where(DagRun.dag_id == window.dag_id, DagRun.run_id == window.run_id)
            state = session.scalar(run)
            if state is None:
                return "its run is gone"
            if state not in ACTIVE_RUN_STATES:
                return "its run is over"
            task = select(TaskInstance.state).where(
                TaskInstance.dag_id == window.dag_id,
                TaskInstance.run_id == window.run_id,
                TaskInstance.task_id == window.close_task_id,
                TaskInstance.map_index == window.map_index,
            )
            row = session.execute(task).first()
        index = "" if window.map_index < 0 else f"_{window.map_index}"
        return why_task_over({} if row is None else {f"{window.close_task_id}{index}": row[0]}, window)
