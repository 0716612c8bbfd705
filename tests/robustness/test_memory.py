"""Memory use is constant: for lists of 100,000 rows, and for hostile responses."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.fault_kinds import TEST_FAULTS
from tests.raw_server import HEAD, RawServer, Scene, endless

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("hook", ["requests", "httpx"])]

ROWS = 100_000
# Allowed growth: one page of rows.
MAX_MEGABYTES = 8

# Not ru_maxrss: a new process inherits that of its parent.
PEAK = """
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
"""
LISTS = f"""
import asyncio, tracemalloc
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
{PEAK}
def requests(most):
    with WorkspaceHook() as hook:
        return sum(1 for _, _ in zip(hook.list_members(), range(most)))

async def count(most):
    number = 0
    async with WorkspaceAsyncHook() as hook:
        async for _ in hook.list_members():
            number += 1
            if number == most:
                break
    return number

def httpx(most):
    return asyncio.run(count(most))

walk = {{hook}}
walk(50)  # imports, connections, caches
tracemalloc.start()
before = peak()
rows = walk(10**9)
print(rows, tracemalloc.get_traced_memory()[1] / 1e6, peak() - before)
"""


def run(code: str, **env: str) -> str:
    """Run code in a new process, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_long_list_is_read_in_constant_memory(hook: str) -> None:
    with SandboxServer("strict", fault_kinds=TEST_FAULTS) as server:
        server.inject("large_list", "list_members", rows=ROWS)
        said = run(LISTS.replace("{hook}", hook), AIRFLOW_CONN_WORKSPACE_DEFAULT=server.connection())
    rows, objects, process = map(float, said.split()[-3:])
    print(f"\n{hook}: {rows:,} rows, objects {objects} MB at most, the process grew by {process} MB")
    assert rows == ROWS
    assert objects < MAX_MEGABYTES
    assert process < 2 * MAX_MEGABYTES


def bomb(status: bytes) -> Scene:
    """Return a response whose 2 MB of gzip are 500 MB."""
    body = gzip.compress(b" " * 500_000_000, compresslevel=1)
    headers = b"Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    return Scene(b"HTTP/1.1 %s\r\n" % status + headers + body)


HOSTILE: dict[str, Callable[[], Scene]] = {
    "500 MB in 2 MB of gzip": lambda: bomb(b"200 OK"),
    "the same in a 400": lambda: bomb(b"400 Bad Request"),
    "endless body": lambda: endless(HEAD + b"\r\n", b" " * 65_536),
}
READS = f"""
import asyncio
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
{PEAK}
def requests(conn_id):
    WorkspaceHook(conn_id).get_project(project_id=1)

async def read(conn_id):
    async with WorkspaceAsyncHook(conn_id) as hook:
        await hook.get_project(project_id=1)

def httpx(conn_id):
    asyncio.run(read(conn_id))

for conn_id in ("workspace_nobody", "workspace_default"):  # the first one imports everything
    before = peak()
    try:
        {{hook}}(conn_id)
    except Exception as error:
        print(type(error).__name__)
print(peak() - before)
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_response_is_refused_in_constant_memory(hook: str, name: str) -> None:
    with RawServer(HOSTILE[name]()) as service:
        connection = {"conn_type": "workspace", "host": service.url, "password": "key-of-a-test"}
        connection["extra"] = {"organization_id": "o", "max_response_bytes": MAX_MEGABYTES * 1_000_000}
        nobody = json.dumps({**connection, "host": "http://127.0.0.1:9"})
        said = run(
            READS.replace("{hook}", hook),
            AIRFLOW_CONN_WORKSPACE_DEFAULT=json.dumps(connection),
            AIRFLOW_CONN_WORKSPACE_NOBODY=nobody,
        ).split()
    assert said[-2] == "WorkspaceResponseError"
    assert float(said[-1]) < 3 * MAX_MEGABYTES
