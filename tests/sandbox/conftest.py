"""
One sandbox per profile for the whole session, back at its seed after each test.

A test that takes ``sandbox``, ``api`` or ``connect`` runs once for each profile; one for a single profile is marked
with ``@pytest.mark.parametrize("sandbox", ["live"], indirect=True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer

PROFILES = ("lenient", "strict", "live")


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, SandboxServer]]:
    with ExitStack() as stack:
        yield {profile: stack.enter_context(SandboxServer(profile)) for profile in PROFILES}


@pytest.fixture(params=PROFILES)
def sandbox(request: pytest.FixtureRequest, servers: dict[str, SandboxServer]) -> Iterator[SandboxServer]:
    server = servers[request.param]
    yield server
    server.reset()


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
def connect(sandbox: SandboxServer, clients: dict[tuple[str, str], httpx.Client]) -> Callable[[str], httpx.Client]:
    """Open a client that sends an API key."""

    def client_of(key: str) -> httpx.Client:
        place = (sandbox.url, key)
        if place not in clients:
            headers = {"Authorization": f"Bearer {key}"}
            clients[place] = httpx.Client(base_url=sandbox.url, headers=headers, trust_env=False)
        return clients[place]

    return client_of


@pytest.fixture
def api(connect: Callable[[str], httpx.Client], sandbox: SandboxServer) -> httpx.Client:
    """A client that may do everything in the first organization."""
    return connect(sandbox.seed.admin_key)
