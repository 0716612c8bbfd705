"""Fixtures for tests with a complete Airflow: a sandbox, an Airflow with a connection to it, PostgreSQL, a browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e import services
from tests.e2e.live_airflow import LiveAirflow

if TYPE_CHECKING:
    from tests.e2e.chromium import Browser

DAGS = Path(__file__).parent / "dags"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("strict") as running:
        yield running


@pytest.fixture(scope="module")
def api(server: SandboxServer) -> Iterator[httpx.Client]:
    """A client of the service, with paths such as ``projects/`` in the first organization."""
    organization = f"{server.url}/api/organizations/{server.seed.organization_id}/"
    headers = {"Authorization": f"Bearer {server.seed.admin_key}"}
    with httpx.Client(base_url=organization, headers=headers, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """Host and name of an empty database. Tests are skipped where PostgreSQL is not installed, but not in CI."""
    try:
        services.program("initdb")
    except FileNotFoundError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    with services.postgres() as address:
        yield address


@pytest.fixture(scope="module")
def airflow(
    request: pytest.FixtureRequest, server: SandboxServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveAirflow]:
    """An Airflow for the tests of a module, which may set ``DAGS``, ``SETTINGS`` and ``USERS``."""
    dags = getattr(request.module, "DAGS", DAGS)
    settings: dict[str, str] = getattr(request.module, "SETTINGS", {})
    users: dict[str, str] | None = getattr(request.module, "USERS", None)
    with LiveAirflow(tmp_path_factory.mktemp("airflow"), dags, server, users=users, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.e2e.chromium import Browser

    running = Browser()
    yield running
    running.close()
