"""5,000 organizations in chunks, as in the guide on mapping, with ``airflow dags test``."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

if TYPE_CHECKING:
    from tests.airflow_cli import AirflowCli

ORGANIZATIONS = 5_000
CHUNK = 100
DAG = """
import json
from contextlib import closing

from airflow.sdk import dag, task

from airflow_provider_workspace.hooks.workspace import WorkspaceHook


@dag(schedule=None, params={{"chunk": {chunk}}})
def audit_many():
    @task
    def chunks(params=None):
        ids = json.load(open({ids!r}))
        return [ids[first : first + params["chunk"]] for first in range(0, len(ids), params["chunk"])]

    @task
    def audit(organization_ids):
        with closing(WorkspaceHook()) as hook:
            return {{one: sum(1 for _ in hook.list_members(organization_id=one)) for one in organization_ids}}

    audit.expand(organization_ids=chunks())


audit_many()
"""


@pytest.mark.slow
@pytest.mark.per_airflow
def test_five_thousand_organizations_in_chunks(
    airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path
) -> None:
    airflow_cli.migrated_home(tmp_path, migrated_database)
    folder = tmp_path / "dags"
    folder.mkdir()
    ids = tmp_path / "organizations.json"
    (folder / "audit_many.py").write_text(DAG.format(chunk=CHUNK, ids=str(ids)))
    with SandboxServer("lenient") as server:
        made = [server.add_organization(f"Organization {number}") for number in range(ORGANIZATIONS)]
        ids.write_text(json.dumps([one["id"] for one in made]))
        connection = {"conn_type": "workspace", "host": server.url, "password": server.seed.admin_key}

        def run(**params: int) -> tuple[str, int, float]:
            before = len(server.requests())
            began = time.monotonic()
            done = airflow_cli.run(
                *("dags", "test", "audit_many", "--conf", json.dumps(params)),
                home=tmp_path,
                timeout=900,
                AIRFLOW__CORE__DAGS_FOLDER=str(folder),
                AIRFLOW_CONN_WORKSPACE_DEFAULT=json.dumps(connection),
            )
            return done.stdout + done.stderr, len(server.requests()) - before, time.monotonic() - began

        said, requests, _ = run(chunk=1)
        assert "1024" in said
        assert "unmappable" in said.lower()
        assert requests == 0

        _, requests, seconds = run()
        print(f"\n{ORGANIZATIONS} organizations in chunks of {CHUNK}: {requests} requests in {seconds:.0f} s")
        assert requests >= ORGANIZATIONS
    with sqlite3.connect(tmp_path / "airflow.db") as database:
        states = database.execute("select state, count(*) from task_instance where task_id = 'audit' group by state")
        assert dict(states.fetchall())["success"] == ORGANIZATIONS // CHUNK
