"""The public fixture ``workspace_sandbox``: state, connection and imports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

pytest_plugins = ["airflow_provider_workspace.sandbox.pytest_fixture"]

IMPORTED = "import pytest, airflow_provider_workspace.sandbox.pytest_fixture, sys; print(*sys.modules)"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["Northwind", "Contoso"])
def test_each_test_starts_from_the_seed(workspace_sandbox: SandboxServer, name: str) -> None:
    assert workspace_sandbox.effects() == workspace_sandbox.requests() == []
    assert workspace_sandbox.advance_clock(0)[:10] == time.strftime("%Y-%m-%d", time.gmtime())
    with closing(WorkspaceHook()) as hook:
        hook.create_project(name=name)
    workspace_sandbox.advance_clock(86400)
    (effect,) = workspace_sandbox.effects("project")
    assert effect["detail"]["name"] == name


def test_no_task_waits_for_lists_that_are_always_current(workspace_sandbox: SandboxServer) -> None:
    began = time.monotonic()
    WorkspaceSyncMembersOperator(
        task_id="leavers",
        leavers=["liv.invited@example.com"],
        protected=["olive.owner@example.com"],
        require_approval=False,
    ).execute({})
    assert [effect["operation"] for effect in workspace_sandbox.effects()] == ["delete_invite"]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("workspace_sandbox", ["strict"], indirect=True)
def test_a_profile_is_selected(workspace_sandbox: SandboxServer) -> None:
    assert workspace_sandbox.change_settings().profile == "strict"
    workspace_sandbox.inject("reset_after")


def test_the_default_profile_is_live_without_faults(workspace_sandbox: SandboxServer) -> None:
    assert workspace_sandbox.change_settings().profile == "live"
    assert workspace_sandbox.faults() == []


def test_effects_are_selected_by_operation(workspace_sandbox: SandboxServer) -> None:
    seed = workspace_sandbox.seed
    with closing(WorkspaceHook()) as hook:
        hook.create_invite(target_email="ada@example.com")
        hook.delete_invite(invite_id=seed.invite_id)
        hook.pause_batch_export(batch_export_id=seed.batch_export_ids[0])
    created, paused = ["create_invite"], ["pause_batch_export"]
    for words, operations in (
        ("invite", ["create_invite", "delete_invite"]), ("create_invite", created), ("delete", ["delete_invite"]),
        ("batch_export", paused), ("export", paused), ("vite", []), ("create", created),
    ):  # fmt: skip
        assert [effect["operation"] for effect in workspace_sandbox.effects(words)] == operations, words


def test_the_connection_is_removed_after_the_test(request: pytest.FixtureRequest) -> None:
    assert "AIRFLOW_CONN_WORKSPACE_DEFAULT" not in os.environ
    request.getfixturevalue("workspace_sandbox")
    assert "AIRFLOW_CONN_WORKSPACE_DEFAULT" in os.environ


def test_the_fixture_imports_nothing_until_it_is_used() -> None:
    modules = run(IMPORTED).split()
    assert not [name for name in modules if name.startswith(("airflow.", "uvicorn", "starlette", "sqlite3"))]
    assert [name for name in modules if name.startswith("airflow_provider_workspace.sandbox.")] == [
        "airflow_provider_workspace.sandbox.pytest_fixture"
    ]
