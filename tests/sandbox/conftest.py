"""
A test here that takes ``sandbox``, ``api`` or ``client_for`` runs once for each profile.

One for a single profile is marked with ``@pytest.mark.parametrize("sandbox", ["live"], indirect=True)``; a module names
those of all its tests in ``PROFILES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

PROFILES = ("lenient", "strict", "live")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = any(mark.args[0] == "sandbox" for mark in metafunc.definition.iter_markers("parametrize"))
    if "sandbox" in metafunc.fixturenames and not named:
        metafunc.parametrize("sandbox", getattr(metafunc.module, "PROFILES", PROFILES), indirect=True)


@pytest.fixture
def profile(sandbox: SandboxServer) -> str:
    """The name of the sandbox's profile."""
    name: str = sandbox.control("GET", "health")["profile"]
    return name


@pytest.fixture(scope="session")
def clients() -> Iterator[dict[tuple[str, str], httpx.Client]]:
    """Clients by address and key, kept for the session: each new one would read the CA bundle."""
    opened: dict[tuple[str, str], httpx.Client] = {}
    yield opened
    for client in opened.values():
        client.close()


@pytest.fixture
def client_for(sandbox: SandboxServer, clients: dict[tuple[str, str], httpx.Client]) -> Callable[[str], httpx.Client]:
    """Open a client that sends an API key."""

    def open_client(key: str) -> httpx.Client:
        place = (sandbox.url, key)
        if place not in clients:
            headers = {"Authorization": f"Bearer {key}"}
            clients[place] = httpx.Client(base_url=sandbox.url, headers=headers, trust_env=False)
        return clients[place]

    return open_client


@pytest.fixture
def api(client_for: Callable[[str], httpx.Client], sandbox: SandboxServer) -> httpx.Client:
    """A client that may do everything in the first organization."""
    return client_for(sandbox.seed.admin_key)
