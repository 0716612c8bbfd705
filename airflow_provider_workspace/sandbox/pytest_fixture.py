"""
The fixture ``workspace_sandbox`` for tests of Dags.

Enable it with ``pytest_plugins = ["airflow_provider_workspace.sandbox.pytest_fixture"]`` in ``conftest.py``. It is not
an entry point of pytest, because pytest would then rewrite all modules of the package in every project. The server is
imported and started on first use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer


@pytest.fixture(scope="session")
def workspace_sandbox_server() -> Iterator[SandboxServer]:
    """Run one sandbox for the whole test session."""
    from airflow_provider_workspace.sandbox.server import SandboxServer

    with SandboxServer() as server:
        yield server


@pytest.fixture
def workspace_sandbox(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, workspace_sandbox_server: SandboxServer
) -> SandboxServer:
    """
    Return a sandbox with fresh seed data, and define the connection ``workspace_default`` to it.

    The sandbox shows each change at once, so ``consistency_time`` of the connection is 0: no task waits for its lists.

    Its profile is ``live``; select another one with ``parametrize("workspace_sandbox", ["strict"], indirect=True)``.
    """
    workspace_sandbox_server.reset()
    if hasattr(request, "param"):
        workspace_sandbox_server.change_settings(profile=request.param)
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", workspace_sandbox_server.connection(consistency_time=0))
    return workspace_sandbox_server
