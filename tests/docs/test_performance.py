"""Figures of the page about performance."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_chart_and_table_match_the_last_benchmark() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "chart.py"), "--check"]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr
