"""Fixtures for tests with a complete Airflow: a sandbox, and an Airflow with a connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.live_airflow import LiveAirflow

DAGS = Path(__file__).parent / "dags"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("lenient") as running:
        yield running


@pytest.fixture(scope="module")
def airflow(
    request: pytest.FixtureRequest, server: SandboxServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveAirflow]:
    """An Airflow for the tests of a module, which may set ``DAGS`` and ``SETTINGS``."""
    dags = getattr(request.module, "DAGS", DAGS)
    settings: dict[str, str] = getattr(request.module, "SETTINGS", {})
    running = LiveAirflow(tmp_path_factory.mktemp("airflow"), dags, server, **settings)
    try:
        running.start()
        yield running
    finally:
        running.stop()
