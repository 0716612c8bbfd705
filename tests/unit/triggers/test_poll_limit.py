"""Polls of many waits before Airflow 3.3, where each polls on its own."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger
from tests.raw_server import HEAD, RawServer, Scene, dripping

if TYPE_CHECKING:
    from tests.conftest import Connect

WAITS = 30
EMPTY = b'{"count": 0, "next": null, "results": []}'


class Load:
    """Responds with an empty list after a while, and counts the requests under way."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.lock = threading.Lock()
        self.under_way = self.most = self.requests = 0

    def __call__(self, connection: socket.socket) -> None:
        with self.lock:
            self.requests += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        time.sleep(self.seconds)
        with self.lock:
            self.under_way -= 1
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(EMPTY), EMPTY))


async def watch(interval: float, seconds: float, conn_id: str = "workspace_default") -> None:
    """Run waits until their time is over."""
    trigger = WorkspaceWaitTrigger(
        condition="domain_verified",
        arguments={"domain_id": "0190c0de-0000-4000-8000-0000000000d1"},
        workspace_conn_id=conn_id,
        poll_interval=interval,
        end_at=time.time() + seconds,
    )

    async def one() -> None:
        async for _ in trigger.run():
            pass

    await asyncio.gather(*(one() for _ in range(WAITS)))
    await asyncio.sleep(0.1)  # as in a triggerer, the loop goes on while the streams of the waits end


@pytest.mark.parametrize(
    ("load", "interval", "seconds", "most", "late"),
    [(Load(0.7), 0.1, 0.5, range(11, 21), 1), (Load(0.05), 1.5, 0.3, range(1, 21), 0)],
)
def test_polls_have_a_limit_of_their_own_and_say_once_that_they_are_late(
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
    load: Load,
    interval: float,
    seconds: float,
    most: range,
    late: int,
) -> None:
    with RawServer(Scene(handler=load)) as service:
        connect(host=service.url, max_concurrency=1, max_attempts=1)
        asyncio.run(watch(interval, seconds))
    assert load.requests > WAITS / 2
    assert load.most in most
    lines = [record.getMessage() for record in caplog.records if "is polled every" in record.getMessage()]
    assert len(lines) == late
    assert all("'workspace_default' is polled every " in line and f"of every {interval} s" in line for line in lines)


def test_a_slow_service_does_not_delay_polls_of_another(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many waits for a service that sends byte by byte; waits for another service end on time."""
    load = Load(0)

    async def both() -> None:
        slow = asyncio.ensure_future(watch(0.2, 60, "slow"))
        await asyncio.sleep(0.3)
        await asyncio.wait_for(watch(0.2, 0.4), 20)
        slow.cancel()
        await asyncio.wait({slow})

    slowly = dripping(HEAD + b"Content-Length: 10000\r\n\r\n", b" ", 0.3)
    with RawServer(slowly) as slow, RawServer(Scene(handler=load)) as quick:
        connect(host=quick.url, max_attempts=1)
        connection = {"conn_type": "workspace", "host": slow.url, "password": "key-of-a-test"}
        monkeypatch.setenv(
            "AIRFLOW_CONN_SLOW", json.dumps(connection | {"extra": {"organization_id": "o", "max_attempts": 1}})
        )
        asyncio.run(both())
    assert load.requests >= WAITS
