"""Code and commands of the README. ``tests/meta/test_package_page.py`` follows its links."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from tests.dag_bag import DagBag

if TYPE_CHECKING:
    from tests.airflow_cli import AirflowCli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]


@pytest.mark.parametrize("code", PYTHON)
def test_a_dag_in_the_readme_loads(tmp_path: Path, code: str) -> None:
    (tmp_path / "readme_dag.py").write_text(code)
    bag = DagBag(tmp_path)
    assert not bag.import_errors
    assert len(bag.dags) == 1


CONNECTIONS = re.findall(r"AIRFLOW_CONN_WORKSPACE_DEFAULT='(.*?)'", README, re.DOTALL)


@pytest.mark.parametrize("text", CONNECTIONS)
def test_a_connection_in_the_readme_is_valid(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    connection = json.loads(text)
    connection["password"] = connection["password"].strip("<>").replace(" ", "-")
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
    with WorkspaceHook() as hook:
        assert hook.project_or_default() == "1"


@pytest.mark.per_airflow
@pytest.mark.slow
def test_the_test_in_the_readme_passes(airflow_cli: AirflowCli, tmp_path: Path) -> None:
    (code,) = [code for language, code in BLOCKS if language == "py"]
    (tmp_path / "test_readme.py").write_text(code)
    assert "1 passed" in airflow_cli.run_tests(tmp_path)
