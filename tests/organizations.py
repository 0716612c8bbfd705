"""``airflow workspace import`` in a home with the Variables of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.airflow_cli import AirflowCli
    from tests.variables import Variables


def imported(airflow_cli: AirflowCli, migrated_database: Path, home: Path, variables: Variables) -> str:
    """Return the organization file that ``airflow workspace import`` writes."""
    airflow_cli.migrated_home(home, migrated_database, {**variables.values, "workspace_dashboard_of_somebody": "5"})
    run = airflow_cli.run("workspace", "import", home=home)
    assert run.returncode == 0, run.stderr
    return run.stdout
