"""
The fixture ``workspace_sandbox`` for tests of your own Dags.

``pytest_plugins = ["airflow_provider_workspace.sandbox.pytest_fixture"]`` in ``conftest.py`` makes it known. It is no
entry point of pytest: for one, pytest rewrites all modules of the package, which those who never test would wait for.
The server is imported and started for the first test that asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer


@pytest.fixture(scope="session")
def workspace_sandbox_server() -> Iterator[SandboxServer]:
    """Start one sandbox for all tests of the session."""
    from airflow_provider_workspace.sandbox.server import SandboxServer

    with SandboxServer("live") as server:
        yield server


@pytest.fixture
def workspace_sandbox(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, workspace_sandbox_server: SandboxServer
) -> SandboxServer:
    """
    Hand over a sandbox at its seed, with ``workspace_default`` as the connection to it.

    It answers as a live service does; ``parametrize("workspace_sandbox", ["strict"], indirect=True)`` names another
    profile.
    """
    workspace_sandbox_server.reset()
    if hasattr(request, "param"):
        workspace_sandbox_server.change_settings(profile=request.param)
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", workspace_sandbox_server.connection())
    return workspace_sandbox_server
