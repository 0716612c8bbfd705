"""
Hostile responses to the hook, an operator and a trigger: each call ends within limits of time and memory.

Each case runs in its own process, over real sockets and TLS. ``pytest -s`` prints the table.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import ssl
import subprocess
import sys

import pytest

from tests.raw_server import HEAD, RawServer, Scene, dripping, endless, read_request
from tests.robustness.test_memory import PEAK

pytestmark = pytest.mark.slow

MAX_BYTES = 8_000_000
TOTAL = 2.0
KINDS = ("http", "https")


def of_size(head: bytes, body: bytes) -> Scene:
    return Scene(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


BOMB = gzip.compress(b" " * 500_000_000, compresslevel=1)
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = HEAD + b"Content-Encoding: gzip\r\n"
BAD = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
SCENES = {
    "dripping status line": dripping(b"", b"H", 0.3),
    "dripping head": dripping(b"HTTP/1.1 200 OK\r\nX-A: ", b"b", 0.3),
    "dripping body": dripping(HEAD + b"Content-Length: 10000\r\n\r\n", b" ", 0.3),
    "dripping chunks": dripping(CHUNKED, b"1\r\n \r\n", 0.3),
    "endless 100 Continue": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless 103": endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"),
    "endless head": endless(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
    "endless body": endless(HEAD + b"\r\n", b" " * 65_536),
    "endless chunks": endless(CHUNKED, b"8\r\n        \r\n" * 1000),
    "500 MB in 2 MB of gzip": of_size(GZIP, BOMB),
    "the same in a 400": of_size(BAD + b"Content-Encoding: gzip\r\n", BOMB),
    "500 MB announced": endless(HEAD + b"Content-Length: 500000000\r\n\r\n", b" " * 65_536),
    "silence": Scene(waits=True),
}
WAYS = {
    "hook, worker": "WorkspaceHook(conn_id).get_project(project_id=1)",
    "hook, loop": "asyncio.run(by_loop())",
    "operator": "WorkspaceGetProjectOperator(task_id='t', project_id=1, workspace_conn_id=conn_id).execute({})",
    "trigger": "asyncio.run(by_trigger())",
}
CODE = """
import asyncio, sys, time, warnings
warnings.simplefilter("ignore")
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.operators.projects import WorkspaceGetProjectOperator
from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger

async def by_loop():
    async with WorkspaceAsyncHook(conn_id) as hook:
        await hook.get_project(project_id=1)

async def by_trigger():
    trigger = WorkspaceWaitTrigger(
        condition="project_receiving_events", arguments={"project_id": "1"}, workspace_conn_id=conn_id,
        poll_interval=0.01, end_at=time.time(),
    )
    async for event in trigger.run():
        print(event.payload["status"], event.payload["message"])
        return
{peak}
conn_id = "workspace_nobody"  # imports and caches
try:
    {way}
except Exception:
    pass
conn_id = "workspace_default"
before, began = peak(), time.monotonic()
try:
    {way}
except Exception as error:
    print(type(error).__name__, getattr(error, "outcome", ""), error)
print(time.monotonic() - began)
print(peak() - before)
"""


@pytest.mark.parametrize("tls", [False, True], ids=KINDS)
@pytest.mark.parametrize("scene", SCENES)
def test_every_hostile_response_ends_with_an_error(server_tls: ssl.SSLContext, scene: str, *, tls: bool) -> None:
    for way, code in WAYS.items():
        with RawServer(SCENES[scene], tls=server_tls if tls else None) as service:
            extra = {"organization_id": "o", "max_attempts": 1, "verify": False, "read_timeout": 1.0,
                     "total_timeout": TOTAL, "max_response_bytes": MAX_BYTES}  # fmt: skip
            connection = {"conn_type": "workspace", "host": service.url, "password": "key-of-a-test", "extra": extra}
            connections = {
                "AIRFLOW_CONN_WORKSPACE_DEFAULT": json.dumps(connection),
                "AIRFLOW_CONN_WORKSPACE_NOBODY": json.dumps({**connection, "host": "http://127.0.0.1:9"}),
            }
            done = subprocess.run(
                [sys.executable, "-c", CODE.replace("{peak}", PEAK).replace("{way}", code)],
                env={**os.environ, **connections},
                capture_output=True, text=True, check=False, timeout=120,
            )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        said, seconds, grown = done.stdout.strip().splitlines()[-3:]
        print(f"{KINDS[tls]:5} {scene:24} {way:13} {float(seconds):4.1f} s {float(grown):5.1f} MB  {said[:90]}")
        # A response above max_response_bytes ends a wait at once: another poll would meet it again.
        ends = ("Workspace", "AirflowFailException", "timeout the last poll failed: ", "failed WorkspaceResponseError")
        assert said.startswith(ends), said
        assert "unknown" in said or way in ("operator", "trigger")
        assert float(seconds) < TOTAL + 5
        assert float(grown) * 1e6 < 3 * MAX_BYTES


def test_a_slow_service_does_not_delay_polls_of_another() -> None:
    """Sixty triggers wait for a service that sends byte by byte; a trigger for another service polls on time."""
    row = {"id": 1, "uuid": "0190c0de-0000-4000-8000-000000000002", "name": "Shop", "ingested_event": False}
    healthy = json.dumps({"count": 1, "next": None, "previous": None, "results": [row]}).encode()
    polls = []

    def answer_all(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(healthy), healthy))
            polls.append(read_request(connection))

    code = """
import asyncio, time
from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger

async def watch(conn_id, number=0):
    trigger = WorkspaceWaitTrigger(
        condition="project_receiving_events", arguments={"project_id": "1"}, workspace_conn_id=conn_id,
        poll_interval=0.2 + number / 1000,
    )
    async for event in trigger.run():
        print(event.payload["status"])

async def main():
    tasks = [asyncio.ensure_future(watch("slow", number)) for number in range(60)]
    await asyncio.sleep(2)
    tasks.append(asyncio.ensure_future(watch("quick")))
    await asyncio.sleep(4)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

asyncio.run(main())
"""
    extra = {"total_timeout": 60, "organization_id": "o"}
    with RawServer(SCENES["dripping body"]) as slow, RawServer(Scene(handler=answer_all)) as quick:
        env = dict(os.environ)
        for name, service in (("SLOW", slow), ("QUICK", quick)):
            connection = {"conn_type": "workspace", "host": service.url, "password": "key-of-a-test", "extra": extra}
            env[f"AIRFLOW_CONN_{name}"] = json.dumps(connection)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "the last poll failed" not in done.stderr
    assert len(polls) >= 8
