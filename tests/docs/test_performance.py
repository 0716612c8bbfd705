"""The figures of the page on performance are those of the last run of the benchmarks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_chart_and_table_are_drawn_from_the_last_run() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "chart.py"), "--check"]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr
