"""`make demo`: first run, second run and interrupts."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

DEMO = Path(__file__).resolve().parents[2] / "dev" / "demo.py"


def demo(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DEMO, "--home", home], capture_output=True, text=True, check=False, timeout=300
    )


def start(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, DEMO, "--home", home], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def programs_with(home: Path) -> list[int]:
    """Return processes with the folder in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(home).encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:  # noqa: PERF203 - it has ended, or is not ours
            continue
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """AIRFLOW_HOME of the demo, for all tests of this module in order."""
    return tmp_path_factory.mktemp("demo") / "home"


def test_the_first_run_shows_the_contents_of_the_workspace(home: Path) -> None:
    run = demo(home)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    for line in (
        r"  Project +Northwind \(\d+\)",
        r"  Domain +northwind\.example\.com, verified",
        r"  Invites +151 open, 1 expired",
        r"  Member +grace\.analyst@example\.com",
        r"  Dashboard +Retention \(\d+\) in project \d+, with grace\.analyst@example\.com",
        r" +150 x create invite",
        r" +3 x create dashboard",
    ):
        assert re.search(f"^{line}$", run.stdout, re.MULTILINE), line
    assert len(run.stdout.splitlines()) < 80
    assert run.stderr == ""


def test_the_second_run_changes_nothing(home: Path) -> None:
    run = demo(home)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    assert "This run created nothing and changed nothing: everything was there." in run.stdout
    assert "Making Airflow's database" not in run.stdout
    assert " x create" not in run.stdout


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for what still runs in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_stops_every_process(home: Path, number: signal.Signals) -> None:
    process = start(home)
    assert process.stdout is not None
    while "organization.projects" not in process.stdout.readline():
        assert process.poll() is None
    assert programs_with(home)
    began = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output.endswith("\nStopped.\n")
    assert "Traceback" not in output
    assert time.monotonic() - began < 30
    assert not programs_with(home)
