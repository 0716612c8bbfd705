"""The workflow for pull requests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.docs.blocks import the

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

slow = [pytest.mark.slow, pytest.mark.per_airflow]
pytestmark = pytest.mark.needs_airflow("3.2", "commands of providers")

PEOPLE = ("adam.admin", "mina.member", "noah.newton", "grace.analyst", "liv.invited", "zoe")
ALL = "".join(f"{name}@example.com\n" for name in PEOPLE)
WORKFLOW = the("guides/pull-request.md", "on: pull_request")


@pytest.mark.parametrize(
    ("people", "installs", "code", "comment"),
    [
        pytest.param(ALL, True, 0, "| create | invite zoe@example.com |", marks=slow),
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
    for step in yaml.safe_load(WORKFLOW.text)["jobs"]["plan"]["steps"]:
        shell = ["/bin/bash", "-ec", step.get("run", "")]
        run = subprocess.run(shell, cwd=tmp_path, env=env, capture_output=True, check=False)
        if run.returncode:
            break
    assert min(run.returncode, 1) == code, run.stderr
    assert comment in (tmp_path / "comment.md").read_text()
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "comment.md").read_text()
