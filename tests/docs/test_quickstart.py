"""The quick start, step by step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.audit import effects

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "quickstart.md").read_text()


@pytest.mark.slow
def test_two_runs_have_the_documented_effects(tmp_path: Path) -> None:
    (dag,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shell = re.findall(r"```shell\n(.*?)```", PAGE, re.DOTALL)
    (connect,) = (text for text in shell if "export" in text)
    (commands,) = (text for text in shell if "airflow dags test" in text)
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "hello_workspace.py").write_text(dag)
    with SandboxServer() as server:
        run = subprocess.run(
            ["/bin/sh", "-ec", connect.replace("8765", str(server.port)) + commands],
            env={
                **os.environ,
                "AIRFLOW_HOME": str(tmp_path),
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        made = effects(server)
    assert run.returncode == 0, run.stdout[-3000:]
    assert made == ["create_project", "create_invite", "create_invite"]
    for said in re.findall(r"`(\w[^`]* (?:invited|'Northwind'))`", PAGE):
        assert said in run.stdout
