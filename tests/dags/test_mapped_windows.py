"""Maintenance windows in a mapped task group: each waits for its own drain and hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.airflow_cli import AirflowCli

DAG = """
from airflow.sdk import dag, task, task_group

from airflow_provider_workspace.task_groups import maintenance_window


@dag(schedule=None)
def mapped_windows():
    @task_group
    def around(exports):
        with maintenance_window(batch_export_ids=exports, drain=0.1, hold=0.1, max_length=600):

            @task
            def work(): ...

            work()

    around.expand(exports=[["0190c0de-0000-4000-8000-0000000000e1"], ["0190c0de-0000-4000-8000-0000000000e2"]])


mapped_windows()
"""


@pytest.mark.per_airflow
def test_windows_in_a_mapped_task_group(airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path) -> None:
    airflow_cli.migrated_home(tmp_path, migrated_database)
    airflow_cli.preload_dag_test()
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "mapped_windows.py").write_text(DAG)
    with SandboxServer("lenient") as server:
        done = airflow_cli.run(
            *("dags", "test", "mapped_windows"),
            home=tmp_path,
            timeout=300,
            AIRFLOW__CORE__DAGS_FOLDER=str(folder),
            AIRFLOW_CONN_WORKSPACE_DEFAULT=server.connection(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(server.effects("pause_batch_export")) == len(server.effects("unpause_batch_export")) == 2
        assert not [row for row in server.batch_exports() if row["paused"]]
