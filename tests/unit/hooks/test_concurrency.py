"""Many calls on one hook: one look-up of the connection, a limit of requests at once, cancellation."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded

from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from tests.raw_server import HEAD, SILENT, RawServer, Scene, answer, dripping, full_backlog, read_request

if TYPE_CHECKING:
    from tests.unit.hooks.conftest import SetConnection


class Load:
    """
    Requests under way at a server.

    :ivar at_arrival: how many there were at each arrival, with the one that arrived
    """

    def __init__(self) -> None:
        self.at_arrival: list[int] = []
        self._now = 0
        self._lock = threading.Lock()

    def scene(self, reply: Scene, seconds: float) -> Scene:
        """Send a reply after some seconds."""

        def play(connection: socket.socket) -> None:
            with self._lock:
                self._now += 1
                self.at_arrival.append(self._now)
            time.sleep(seconds)
            with self._lock:
                self._now -= 1
            assert isinstance(reply.answer, bytes)
            connection.sendall(reply.answer)

        return Scene(handler=play)


FOUND = answer(200, {"name": "Sales"})


def read_by_threads(count: int) -> list[Any]:
    with WorkspaceHook() as hook, ThreadPoolExecutor(count) as pool:
        hook.get_conn()
        return list(pool.map(lambda number: hook.get_dashboard(dashboard_id=number), range(count)))


def read_by_loop(count: int) -> list[Any]:
    async def read() -> list[Any]:
        async with WorkspaceAsyncHook() as hook:
            return await asyncio.gather(*(hook.get_dashboard(dashboard_id=number) for number in range(count)))

    return asyncio.run(read())


@pytest.fixture(params=[read_by_threads, read_by_loop])
def read_at_once(request: pytest.FixtureRequest) -> Any:
    """Read a number of dashboards at once with one hook."""
    return request.param


@pytest.fixture
def look_ups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The connections that were looked up in the environment."""
    found: list[str] = []
    (backend,) = (type(item) for item in ensure_secrets_backend_loaded() if "Environment" in type(item).__name__)
    look_up = backend.get_conn_value

    def counted(self: Any, conn_id: str, *args: Any, **kwargs: Any) -> Any:
        found.append(conn_id)
        return look_up(self, conn_id, *args, **kwargs)

    monkeypatch.setattr(backend, "get_conn_value", counted)
    return found


def test_first_calls_at_once_share_one_look_up_and_one_limit(
    read_at_once: Callable[[int], list[Any]], set_connection: SetConnection, look_ups: list[str]
) -> None:
    load = Load()
    with RawServer(load.scene(FOUND, 0.03)) as service:
        set_connection(service.url, max_concurrency=3)
        assert [dashboard.name for dashboard in read_at_once(20)] == ["Sales"] * 20
    assert look_ups == ["workspace_default"]
    assert len(load.at_arrival) == 20
    assert max(load.at_arrival) == 3


@pytest.mark.usefixtures("no_waits")
def test_concurrency_drops_to_one_after_429_and_recovers(
    read_at_once: Callable[[int], list[Any]], set_connection: SetConnection
) -> None:
    load = Load()
    refused, beside = load.scene(answer(429), 0.15), load.scene(FOUND, 0.35)
    slow, quick = load.scene(FOUND, 0.45), load.scene(FOUND, 0.03)
    # The first call is refused and asks again, slowly, while those beside it end.
    with RawServer(refused, beside, beside, beside, slow, quick) as service:
        set_connection(service.url, max_concurrency=4)
        read_at_once(20)
    assert max(load.at_arrival) == 4
    assert load.at_arrival[5] == 1
    assert max(load.at_arrival[6:8]) <= 2
    assert max(load.at_arrival[5:]) == 4


KEPT = Scene(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n" + b'{"id": 7}')


def test_a_create_after_an_idle_disconnect_is_sent_once(set_connection: SetConnection) -> None:
    async def create_by_loop() -> None:
        async with WorkspaceAsyncHook() as hook:
            for _ in range(3):
                await hook.create_dashboard(name="Sales")
                assert service.closed.acquire(timeout=5)

    with RawServer(KEPT) as service:
        set_connection(service.url, max_attempts=1)
        with WorkspaceHook() as hook:
            for _ in range(3):
                hook.create_dashboard(name="Sales")
                assert service.closed.acquire(timeout=5)
        asyncio.run(create_by_loop())
    assert len(service.requests) == 6


# Cancellation


def numbered(connection: socket.socket) -> None:
    """Answer each request on a connection with the number of its dashboard."""
    while True:
        number = read_request(connection).target.rstrip("/").rpartition("/")[2]
        time.sleep(0.02)
        body = json.dumps({"id": int(number)}).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


@pytest.mark.parametrize("method", ["get_dashboard", "update_dashboard"])
def test_cancelling_a_call_leaves_every_other_call_untouched(set_connection: SetConnection, method: str) -> None:
    async def read_and_cancel() -> None:
        async with WorkspaceAsyncHook() as hook:
            for turn in range(16):
                calls = [asyncio.ensure_future(getattr(hook, method)(dashboard_id=turn * 6 + n)) for n in range(6)]
                await asyncio.sleep(turn * 0.003)
                calls[turn % 6].cancel()
                results: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
                del results[turn % 6]
                assert [result.id for result in results] == [turn * 6 + n for n in range(6) if n != turn % 6]

    with RawServer(Scene(reads=False, handler=numbered)) as service:
        set_connection(service.url, max_attempts=1)
        asyncio.run(read_and_cancel())


def swallow(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


PHASES: dict[str, Scene | None] = {
    "turn": SILENT,
    "connect": None,
    "TLS handshake": Scene(reads=False, handler=swallow),
    "silent answer": SILENT,
    "drip": dripping(HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
    "pause between tries": answer(429, Retry_After="30"),
}


@contextmanager
def url_of(phase: str) -> Iterator[str]:
    """Yield the URL of a host at which a call stays in this phase."""
    scene = PHASES[phase]
    with ExitStack() as stack:
        url = stack.enter_context(full_backlog()) if scene is None else stack.enter_context(RawServer(scene)).url
        yield url.replace("http:", "https:") if phase == "TLS handshake" else url


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # anyio, of a TLS handshake
@pytest.mark.parametrize("phase", PHASES)
def test_a_cancelled_write_ends_within_a_second_and_keeps_its_audit_line(
    set_connection: SetConnection, log_lines: list[str], phase: str
) -> None:
    async def write_and_cancel() -> float:
        async with WorkspaceAsyncHook() as hook:
            before = asyncio.ensure_future(hook.get_dashboard(dashboard_id=7) if phase == "turn" else asyncio.sleep(0))
            await asyncio.sleep(0.05)
            writing = asyncio.ensure_future(hook.create_dashboard(name="Sales"))
            await asyncio.sleep(0.2)
            assert not writing.done()
            cancelled_at = time.monotonic()
            for call in (writing, before):
                call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        return cancelled_at

    with url_of(phase) as url:
        set_connection(url, max_concurrency=1, connect_timeout=30, read_timeout=30, verify=False)
        cancelled_at = asyncio.run(write_and_cancel())
        # After the end of the loop no thread is left.
        assert time.monotonic() - cancelled_at < 1
    gc.collect()
    audit = [line.partition(" seconds=")[0] for line in log_lines if line.startswith("operation=")]
    begun = phase != "turn"
    assert audit == ["operation=CreateDashboard outcome=unknown rows=1 attempts=1"] * begun
    assert sum("retrying" in line for line in log_lines) == (phase == "pause between tries")
