"""Both clients behind one function, so that every test of sending runs for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.client.aio import WorkspaceAsyncClient
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.client.sync import WorkspaceClient
from airflow_provider_workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

KEY = "phx_s3cret-key"


@dataclass
class Sent:
    """What became of an operation, and what was done on the way."""

    result: Any = None
    error: WorkspaceError | None = None
    waits: list[float] = field(default_factory=list)
    masked: list[str] = field(default_factory=list)


def send_by_requests(settings: Settings, operation: Operation[Any], *, rows: bool) -> Sent:
    sent = Sent()
    with WorkspaceClient(settings, mask=sent.masked.append, sleep=sent.waits.append) as client:
        try:
            sent.result = list(client.rows(operation)) if rows else client.send(operation)
        except WorkspaceError as error:
            sent.error = error
    return sent


def send_by_httpx(settings: Settings, operation: Operation[Any], *, rows: bool) -> Sent:
    sent = Sent()

    async def mask(secret: str) -> None:
        sent.masked.append(secret)

    async def sleep(seconds: float) -> None:
        sent.waits.append(seconds)

    async def send() -> Any:
        async with WorkspaceAsyncClient(settings, mask=mask, sleep=sleep) as client:
            return [row async for row in client.rows(operation)] if rows else await client.send(operation)

    try:
        sent.result = asyncio.run(send())
    except WorkspaceError as error:
        sent.error = error
    return sent


Send = Callable[..., Sent]


@pytest.fixture(params=[send_by_requests, send_by_httpx], ids=["requests", "httpx"])
def send(request: pytest.FixtureRequest) -> Send:
    """Send an operation to a base URL with the settings given by name; ``rows=True`` reads a whole list."""

    def send_to(base_url: str, operation: Operation[Any], *, rows: bool = False, **settings: Any) -> Sent:
        given = {"connect_timeout": 2.0, "read_timeout": 2.0, "max_attempts": 3, **settings}
        sent: Sent = request.param(Settings(base_url, KEY, **given), operation, rows=rows)
        assert KEY not in f"{sent.error} {sent.error!r} {sent.result!r}"
        return sent

    return send_to
