"""
Tests that use ``sandbox``, ``api`` or ``client_for`` run once for each profile.

For a single profile mark the test with ``@pytest.mark.parametrize("sandbox", ["live"], indirect=True)``, or set
``PROFILES`` in the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

PROFILES = ("strict", "live")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = any(mark.args[0] == "sandbox" for mark in metafunc.definition.iter_markers("parametrize"))
    if "sandbox" in metafunc.fixturenames and not named:
        metafunc.parametrize("sandbox", getattr(metafunc.module, "PROFILES", PROFILES), indirect=True)


@pytest.fixture
def profile(sandbox: SandboxServer) -> str:
    """The profile of the sandbox."""
    return sandbox.change_settings().profile


@pytest.fixture(scope="session")
def clients() -> Iterator[dict[tuple[str, str], httpx.Client]]:
    """Clients by URL and key, kept for the session because creating one reads the CA bundle."""
    opened: dict[tuple[str, str], httpx.Client] = {}
    yield opened
    for client in opened.values():
        client.close()


@pytest.fixture
def client_for(sandbox: SandboxServer, clients: dict[tuple[str, str], httpx.Client]) -> Callable[[str], httpx.Client]:
    """Return a function that opens a client with an API key."""

    def open_client(key: str) -> httpx.Client:
        place = (sandbox.url, key)
        if place not in clients:
            headers = {"Authorization": f"Bearer {key}"}
            clients[place] = httpx.Client(base_url=sandbox.url, headers=headers, trust_env=False)
        return clients[place]

    return open_client


@pytest.fixture
def api(client_for: Callable[[str], httpx.Client], sandbox: SandboxServer) -> httpx.Client:
    """A client with all scopes in the first organization."""
    return client_for(sandbox.seed.admin_key)
