"""The callback ``note`` of a send runs before each attempt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from airflow_provider_workspace.api.operations import CreateProject
from airflow_provider_workspace.api.procedure import Procedure, Send
from airflow_provider_workspace.client.aio import WorkspaceAsyncClient
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.client.sync import WorkspaceClient
from tests.raw_server import RawServer, answer


@pytest.mark.parametrize("library", ["requests", "httpx"])
def test_each_attempt_is_noted_before_it_is_sent(library: str) -> None:
    events: list[str] = []

    def creating() -> Procedure[list[Any]]:
        create = CreateProject(organization_id="o", name="Northwind")
        return (yield Send([create], note=lambda: events.append("noted")))

    async def run_async(settings: Settings) -> list[Any]:
        async def sleep(_: float) -> None:
            events.append("waited")

        async with WorkspaceAsyncClient(settings, sleep=sleep) as client:
            return await client.run(creating())

    with RawServer(answer(429), answer(201, {"id": 1, "name": "Northwind"})) as service:
        settings = Settings(service.url, "key")
        if library == "requests":
            with WorkspaceClient(settings, sleep=lambda _: events.append("waited")) as client:
                (project,) = client.run(creating())
        else:
            (project,) = asyncio.run(run_async(settings))
        assert len(service.requests) == 2
    assert project.id == 1
    assert events == ["noted", "waited", "noted"]
