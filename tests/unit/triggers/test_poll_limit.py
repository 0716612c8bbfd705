"""Polls of many waits before Airflow 3.3, where each polls on its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger

if TYPE_CHECKING:
    from tests.conftest import Connect


WAITS = 30


class SlowService(ThreadingHTTPServer):
    """Answers with an empty list after a while, and counts the requests under way."""

    daemon_threads = True
    request_queue_size = 100

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.under_way = self.most = self.requests = 0
        self.seconds = 0.1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SlowService

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.requests += 1
            self.server.under_way += 1
            self.server.most = max(self.server.most, self.server.under_way)
        time.sleep(self.server.seconds)
        with self.server.lock:
            self.server.under_way -= 1
        body = b'{"count": 0, "next": null, "results": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def service() -> Iterator[SlowService]:
    with SlowService() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def wait(service: SlowService, connect: Connect, interval: float, seconds: float) -> None:
    """Run the waits until their time is over."""
    connect(host=f"http://127.0.0.1:{service.server_port}", max_concurrency=1)

    trigger = WorkspaceWaitTrigger(
        condition="domain_verified",
        arguments={"domain_id": "0190c0de-0000-4000-8000-0000000000d1"},
        poll_interval=interval,
        end_at=time.time() + seconds,
    )

    async def one() -> None:
        async for _ in trigger.run():
            pass

    async def run() -> None:
        await asyncio.gather(*(one() for _ in range(WAITS)))
        await asyncio.sleep(0.5)  # as in a triggerer, the loop goes on while the streams of the waits end

    asyncio.run(run())


def test_polls_have_a_limit_of_their_own_and_say_once_that_they_are_late(
    service: SlowService, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    service.seconds = 1.2
    with caplog.at_level(logging.WARNING, logger="airflow_provider_workspace.triggers.polling"):
        wait(service, connect, interval=0.1, seconds=4)
    assert 10 < service.most <= 20
    (line,) = [record.getMessage() for record in caplog.records if "Raise poke_interval" in record.getMessage()]
    assert "'workspace_default' is polled every " in line
    assert "instead of every 0.1 s" in line


def test_polls_that_hold_their_interval_say_nothing(
    service: SlowService, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="airflow_provider_workspace.triggers.polling"):
        wait(service, connect, interval=2.5, seconds=4)
    assert service.requests > WAITS / 2
    assert "Raise poke_interval" not in caplog.text
