"""Output of commands on the page about the command line, and the workflow for pull requests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Connect

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs" / "cli.md").read_text(), re.DOTALL | re.MULTILINE)
SHELL = [text for language, text in BLOCKS if language == "shell"]
SAID = " ".join(text for language, text in BLOCKS if language == "text")

slow = [pytest.mark.slow, pytest.mark.per_airflow]
pytestmark = pytest.mark.needs_airflow("3.2", "commands of providers")


@pytest.mark.slow
@pytest.mark.per_airflow
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


PEOPLE = ("adam.admin", "mina.member", "noah.newton", "grace.analyst", "liv.invited", "zoe")
ALL = "".join(f"{name}@example.com\n" for name in PEOPLE)
WORKFLOW = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("people", "installs", "code", "comment"),
    [
        pytest.param(ALL, True, 0, "| create | <code>invite zoe@example.com</code> |", marks=slow),
        pytest.param(
            "mina\n",
            True,
            1,
            "**Error** in <code>members.csv</code>: <code>&#91;rows-invalid&#93; Cannot use 1 row of the roster",
            marks=slow,
        ),
        (ALL, False, 1, "There is no plan"),
    ],
)
def test_the_workflow_always_replaces_the_comment(
    sandbox: SandboxServer, tmp_path: Path, people: str, code: int, comment: str, *, installs: bool
) -> None:
    """Runs the steps as GitHub does, with the installed program ``airflow``; ``gh`` writes the comment into a file."""
    (workflow,) = WORKFLOW.findall((ROOT / "docs" / "guides" / "pull-request.md").read_text())
    programs = tmp_path / "bin"
    for folder in (programs, tmp_path / "orgs"):
        folder.mkdir()
    for name, script in {"pip": f"exit {int(not installs)}", "gh": 'cp "$5" comment.md'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    if installs:
        (programs / "airflow").symlink_to(Path(sys.executable).with_name("airflow"))
    (tmp_path / "orgs" / "north.yaml").write_text("members: {people: [zoe@example.com]}")
    (tmp_path / "members.csv").write_text(f"email\n{people}")
    (tmp_path / "comment.md").write_text("An old plan")
    env = {"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin", "PR": "https://example.com/1"}
    env |= {"AIRFLOW_CONN_WORKSPACE_DEFAULT": sandbox.connection(), "GITHUB_STEP_SUMMARY": "summary.md"}
    for step in yaml.safe_load(workflow)["jobs"]["plan"]["steps"]:
        shell = ["/bin/bash", "-ec", step.get("run", "")]
        run = subprocess.run(shell, cwd=tmp_path, env=env, capture_output=True, check=False)
        if run.returncode:
            break
    assert min(run.returncode, 1) == code, run.stderr
    assert comment in (tmp_path / "comment.md").read_text()
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "comment.md").read_text()
