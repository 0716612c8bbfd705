"""Output of commands on the page about the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Connect

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs" / "cli.md").read_text(), re.DOTALL | re.MULTILINE)
SHELL = [text for language, text in BLOCKS if language == "shell"]
SAID = " ".join(text for language, text in BLOCKS if language == "text")

pytestmark = pytest.mark.needs_airflow("3.2", "commands of providers")


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_commands_print_what_the_page_shows(
    airflow_cli: AirflowCli, tmp_path: Path, sandbox: SandboxServer, connect: Connect
) -> None:
    connect()
    said = ""
    for command in SHELL:
        run = airflow_cli.run(*command.split()[1:], home=tmp_path, cwd=ROOT)
        assert run.returncode == (2 if "plan" in command else 0), run.stderr  # 2: something differs
        said += run.stdout.replace(sandbox.url, "http://127.0.0.1:8765")
    assert " ".join(SAID.split()) in " ".join(said.split())
    assert sandbox.seed.admin_key not in said
    assert sandbox.effects() == []
