"""Memory use of lists of 100,000 rows and rosters of 50 MB is constant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.fault_kinds import TEST_FAULTS

ROWS = 100_000
MEGABYTES = 50
# Allowed growth: one page of rows, or one piece of a file and its row.
MAX_MEGABYTES = 8

# Not ru_maxrss: a new process inherits that of its parent.
PEAK = """
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
"""
MEASURE = """
import asyncio, sys, tracemalloc
{peak}
{setup}
def measured(walk):
    walk(50)  # imports, connections, caches
    tracemalloc.start()
    before = peak()
    rows = walk(None)
    objects = tracemalloc.get_traced_memory()[1] / 1e6
    print(rows, round(objects, 2), round(peak() - before, 2))
measured({walk})
"""

CLIENTS = {
    "requests": (
        "from airflow_provider_workspace.client.client import WorkspaceClient as Client\n",
        "lambda most: sum(1 for _, _ in zip(client.rows(op), range(most or 10**9)))",
        "client = Client(Settings({url!r}, {key!r}, page_size=100))\n",
    ),
    "httpx": (
        "import greenback\nfrom airflow_provider_workspace.client.client import WorkspaceClient as Client\n",
        "lambda most: asyncio.run(greenback.with_portal_run_sync(count, most or 10**9))",
        """
from airflow_provider_workspace.client.loop import LoopBackend
def count(most):
    settings = Settings({url!r}, {key!r})
    with Client(settings, backend=LoopBackend(settings)) as client:
        return sum(1 for _, _ in zip(client.rows(op), range(most)))
""",
    ),
}


def measure(setup: str, walk: str) -> tuple[int, float, float]:
    """Read in a new process; return the number of rows, and the growth of objects and process in MB."""
    code = MEASURE.replace("{peak}", PEAK).replace("{setup}", setup).replace("{walk}", walk)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows, objects, process = done.stdout.split()
    return int(rows), float(objects), float(process)


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_a_long_list_is_read_in_constant_memory(client: str) -> None:
    imports, walk, build = CLIENTS[client]
    with SandboxServer("lenient", fault_kinds=TEST_FAULTS) as server:
        server.inject("large_list", "list_members", rows=ROWS)
        setup = (
            "from airflow_provider_workspace.client.settings import Settings\n"
            "from airflow_provider_workspace.api.operations import ListMembers\n"
            f"{imports}{build.format(url=server.url, key=server.seed.admin_key)}"
            f"op = ListMembers(organization_id={server.seed.organization_id!r}, limit=100)\n"
        )
        rows, objects, process = measure(setup, walk)
    print(f"\n{client}: {rows:,} rows, objects {objects} MB at most, the process grew by {process} MB")
    assert rows == ROWS
    assert objects < MAX_MEGABYTES
    assert process < 2 * MAX_MEGABYTES


def write_roster(path: Path) -> int:
    """Write a roster of 50 MB and return its number of rows."""
    line = {
        ".csv": "person{}@example.com,Person {},1,Welcome to the team and to all that comes with it\n",
        ".json": '{{"email": "person{}@example.com", "first_name": "Person {}", "level": 1}},\n',
        ".jsonl": '{{"email": "person{}@example.com", "first_name": "Person {}", "level": 1}}\n',
    }[path.suffix]
    rows = 0
    with path.open("w") as file:
        file.write({".csv": "email,first_name,level,message\n", ".json": "[\n", ".jsonl": ""}[path.suffix])
        while file.tell() < MEGABYTES * 1_000_000:
            file.write("".join(line.format(number, number) for number in range(rows, rows + 10_000)))
            rows += 10_000
        if path.suffix == ".json":
            file.write('"last@example.com"]')
            rows += 1
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_a_large_roster_is_read_in_bounded_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"roster{suffix}"
    written = write_roster(path)
    setup = "from airflow_provider_workspace.procedures.roster_files import read_roster\n"
    walk = f"lambda most: sum(1 for _, _ in zip(read_roster(None, {str(path)!r}), range(most or 10**9)))"
    rows, objects, process = measure(setup, walk)
    size = path.stat().st_size / 1e6
    path.unlink()
    print(f"\n{suffix} of {size:.0f} MB: {rows:,} rows, objects {objects} MB at most, the process grew by {process} MB")
    assert rows == written
    assert size >= MEGABYTES
    assert objects < MAX_MEGABYTES
    assert process < 2 * MAX_MEGABYTES


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_a_million_rows_with_an_invalid_last_one_are_refused_in_constant_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"roster{suffix}"
    row = {".csv": "person{}@example.com\n", ".json": '"person{}@example.com",\n', ".jsonl": '"person{}@example.com"\n'}
    first, last = {".csv": ("email\n", "nobody"), ".json": ("[", '"nobody"]'), ".jsonl": ("", '"nobody"')}[suffix]
    with path.open("w") as file:
        file.write(first + "".join(row[suffix].format(number) for number in range(1_000_000)) + last)
    # Without tracemalloc, which would take minutes.
    code = (
        "from airflow_provider_workspace.procedures.roster import check_roster\n"
        "from airflow_provider_workspace.procedures.roster_files import read_roster\n"
        f"{PEAK}"
        "check_roster(['a@example.com'], strict=True)\n"
        "before = peak()\n"
        f"found = check_roster(read_roster(None, {str(path)!r}), strict=True).invalid[0].row\n"
        "print(found, round(peak() - before, 2))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found, process = done.stdout.split()
    print(f"\n{suffix}: row {found} refused, the process grew by {process} MB")
    assert int(found) == 1_000_001
    assert float(process) < 2 * MAX_MEGABYTES
