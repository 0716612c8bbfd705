"""
The members of an organization from a table in PostgreSQL.

`make e2e-celery` runs this in an environment with Airflow's provider for PostgreSQL; `make test` runs it with SQLite.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2
import pytest

from tests.audit import effects
from tests.dags.examples import EFFECTS, EXAMPLES, folder_of

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli

pytest.importorskip("airflow.providers.postgres", reason="`make e2e-celery` runs this, in an environment that has it")

pytestmark = pytest.mark.e2e

DAG = "people_from_warehouse"


def test_the_members_become_those_of_a_table(
    airflow_cli: AirflowCli, server: SandboxServer, postgres: str, tmp_path: Path
) -> None:
    airflow_cli.migrated_home(tmp_path, tmp_path / "template" / "airflow.db")
    with closing(psycopg2.connect(f"postgresql://airflow@{postgres}")) as database, database:
        people = (EXAMPLES / "data" / "people.sql").read_text()
        database.cursor().execute(people.replace("INTEGER", "NUMERIC(3)"))
    run = airflow_cli.run(
        *("dags", "test", DAG),
        home=tmp_path,
        timeout=300,
        AIRFLOW__CORE__DAGS_FOLDER=str(folder_of(tmp_path, DAG)),
        AIRFLOW_CONN_WORKSPACE_DEFAULT=server.connection(consistency_time=2),
        AIRFLOW_CONN_WAREHOUSE=f"postgresql://airflow@{postgres}",
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert Counter(effects(server)) == EFFECTS[DAG]
