"""Every command of ``airflow workspace`` works after real tasks ran in the same Airflow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.cli.definition import get_workspace_commands
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.windows import Airflow, Window

if TYPE_CHECKING:
    import subprocess

    from tests.airflow_cli import AirflowCli

EXAMPLES = Path(__file__).resolve().parents[2] / "example_dags"
# They create projects, invites and dashboards, wait in sensors, and pause exports.
RUN_BEFORE = ("onboard_organization", "maintenance_window")
# Each command with its arguments, its exit code, and a text that it prints.
COMMANDS = [
    ("ping", (), 0, "accepts the API key"),
    ("whoami", (), 0, "Scopes confirmed by reading"),
    ("plan", (EXAMPLES / "data" / "members.csv",), 0, " keep\n"),
    ("plan", (EXAMPLES / "data" / "northwind.yaml",), 0, "0 to create"),
    ("import", (), 0, "members:"),
    ("windows", (), 0, "ABANDONED"),
    ("windows", ("--resume",), 0, "Abandoned window maintenance_window / "),
    ("resume", (SEED.batch_export_ids[1],), 0, "Resumed batch export"),
]
# It starts another program, and reads nothing of Airflow.
READS_NOTHING = {"sandbox"}

pytestmark = [pytest.mark.per_airflow, pytest.mark.needs_airflow("3.2", "commands of providers")]


class Used:
    """An Airflow in which real tasks ran, and a window of a run that is over has left a lease."""

    def __init__(self, airflow_cli: AirflowCli, home: Path, server: SandboxServer) -> None:
        self.airflow_cli = airflow_cli
        self.home = home
        self.connection = server.connection()
        for dag_id in RUN_BEFORE:
            folder = home / dag_id
            folder.mkdir()
            for name in (f"{dag_id}.py", "data"):
                (folder / name).symlink_to(EXAMPLES / name)
            run = self.run("dags", "test", dag_id, AIRFLOW__CORE__DAGS_FOLDER=str(folder))
            assert run.returncode == 0, run.stdout[-3000:]
        runs = json.loads(self.run("dags", "list-runs", "maintenance_window", "-o", "json").stdout)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", self.connection)
            airflow = Airflow(patch)
            Window(server.seed.batch_export_ids[0], dag_id="maintenance_window", run_id=runs[0]["run_id"]).open()
            (key,) = airflow.lease_keys()
            airflow.edit(key, state="paused", paused_at=airflow.leases()[0]["since"])
            assert self.run("variables", "set", key, airflow.variables.values[key]).returncode == 0

    def run(self, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return self.airflow_cli.run(*arguments, home=self.home, AIRFLOW_CONN_WORKSPACE_DEFAULT=self.connection, **env)


@pytest.fixture(scope="module")
def used(airflow_cli: AirflowCli, migrated_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Used]:
    home = tmp_path_factory.mktemp("airflow")
    airflow_cli.migrated_home(home, migrated_database)
    airflow_cli.preload_dag_test()
    with SandboxServer("lenient") as server:
        yield Used(airflow_cli, home, server)


def test_every_command_is_tested() -> None:
    (group,) = get_workspace_commands()
    assert {command.name for command in group.subcommands} == {name for name, *_ in COMMANDS} | READS_NOTHING


@pytest.mark.parametrize(("name", "arguments", "code", "said"), COMMANDS)
def test_command_works_after_real_tasks(
    used: Used, name: str, arguments: tuple[str | Path, ...], code: int, said: str
) -> None:
    run = used.run("workspace", name, *arguments)
    assert run.returncode == code, run.stdout + run.stderr
    assert said in run.stdout
