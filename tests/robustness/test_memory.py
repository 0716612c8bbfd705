"""Memory use of lists of 100,000 rows is constant."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.fault_kinds import TEST_FAULTS

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


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["requests", "httpx"])
def test_a_long_list_is_read_in_constant_memory(hook: str) -> None:
    with SandboxServer("strict", fault_kinds=TEST_FAULTS) as server:
        server.inject("large_list", "list_members", rows=ROWS)
        said = run(LISTS.replace("{hook}", hook), AIRFLOW_CONN_WORKSPACE_DEFAULT=server.connection())
    rows, objects, process = map(float, said.split()[-3:])
    print(f"\n{hook}: {rows:,} rows, objects {objects} MB at most, the process grew by {process} MB")
    assert rows == ROWS
    assert objects < MAX_MEGABYTES
    assert process < 2 * MAX_MEGABYTES
