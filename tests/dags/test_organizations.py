"""Several organizations from several files: a mistake in one does not keep the others from going on."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.airflow_cli import AirflowCli

pytestmark = [pytest.mark.per_airflow, pytest.mark.slow]  # 36 tasks of a real Airflow

DAG = """\
from airflow.sdk import dag

from airflow_provider_workspace.task_groups import workspace_organization


@dag(schedule=None)
def onboard_many():
    workspace_organization(
        file=[
            "north.yaml",
            {"file": "all.yaml", "organization": "wrong"},
            {"file": "all.yaml", "organization": "research", "workspace_conn_id": "workspace_research"},
            "mistake.yaml",
        ],
        retries=0,
    )


onboard_many()
"""
ALL = "organizations:\n  research: {projects: [{name: Southwind}], members: {people: [joe@example.com]}}\n  other: {}\n"


def test_each_organization_goes_its_way(airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path) -> None:
    airflow_cli.migrated_home(tmp_path, migrated_database)
    airflow_cli.preload_dag_test()
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "onboard_many.py").write_text(DAG)
    (dags / "all.yaml").write_text(ALL)
    (dags / "north.yaml").write_text("projects: [{name: '{{ dag.dag_id }}'}]\nmembers: {people: [ada@example.com]}\n")
    (dags / "mistake.yaml").write_text("projects:\n  - name: Eastwind\n    timezon: UTC\n")
    with SandboxServer("lenient") as server:
        connection = json.loads(server.connection())
        research = {
            **connection,
            "password": server.seed.research_key,
            "extra": {"organization_id": server.seed.other_organization_id},
        }
        run = airflow_cli.run(
            *("dags", "test", "onboard_many"),
            home=tmp_path,
            timeout=900,
            AIRFLOW__CORE__DAGS_FOLDER=str(dags),
            AIRFLOW_CONN_WORKSPACE_DEFAULT=json.dumps(connection),
            AIRFLOW_CONN_WORKSPACE_RESEARCH=json.dumps(research),
        )
        log = run.stdout + run.stderr
        effects = Counter((effect["operation"], str(effect["detail"].get("name"))) for effect in server.effects())
    assert "Correct mistake.yaml:" in log
    assert "line 3: projects.0.timezon: unknown field (did you mean 'timezone'?)" in log
    assert "Set organization (one of research, other): there is no 'wrong' in all.yaml" in log
    assert "DagRun failed" in log or run.returncode
    assert effects["create_project", "onboard_many"] == effects["create_project", "Southwind"] == 1, log[-3000:]
    assert sum(count for (operation, _), count in effects.items() if operation == "create_invite") == 2
