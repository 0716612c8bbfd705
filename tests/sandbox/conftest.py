"""
Tests that use ``sandbox``, ``api`` or ``client_for`` run once for each profile.

For a single profile mark the test with ``@pytest.mark.parametrize("sandbox", ["live"], indirect=True)``, or set
``PROFILES`` in the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

PROFILES = ("strict", "live")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = any("sandbox" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "sandbox" in metafunc.fixturenames and not named:
        metafunc.parametrize("sandbox", getattr(metafunc.module, "PROFILES", PROFILES), indirect=True)


@pytest.fixture
def profile(sandbox: SandboxServer) -> str:
    """The profile of the sandbox."""
    return sandbox.change_settings().profile


@pytest.fixture
def client_for(sandbox: SandboxServer) -> Iterator[Callable[[str], httpx.Client]]:
    """Return a function that opens a client with an API key."""
    with ExitStack() as opened:

        def open_client(key: str) -> httpx.Client:
            headers = {"Authorization": f"Bearer {key}"}
            # Without verify=False each client reads the CA bundle.
            client = httpx.Client(base_url=sandbox.url, headers=headers, trust_env=False, verify=False)  # noqa: S501
            return opened.enter_context(client)

        yield open_client


@pytest.fixture
def api(client_for: Callable[[str], httpx.Client], sandbox: SandboxServer) -> httpx.Client:
    """A client with all scopes in the first organization."""
    return client_for(sandbox.seed.admin_key)
