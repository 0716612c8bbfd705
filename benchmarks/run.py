"""Run all benchmarks, print and keep what came out, and end with an error where a target is missed."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import chart
from measure import BUILD, HERE, Result

SCRIPTS = ("parsing", "calling", "inviting", "listing", "waiting")


def main() -> int:
    """Run them one after the other: two at once would measure each other."""
    began = time.monotonic()
    results: list[Result] = []
    took: list[str] = []
    for script in SCRIPTS:
        started = time.monotonic()
        subprocess.run([sys.executable, HERE / f"{script}.py", *sys.argv[1:]], check=True)
        took.append(f"{script} {time.monotonic() - started:.0f}")
        results += [Result(**result) for result in json.loads((BUILD / f"{script}.json").read_text())]
    missed = [what for result in results for what in result.missed()]  # of each round, before only medians are kept
    if "--quick" not in sys.argv:
        chart.keep(results)
    print(f"\nTook {time.monotonic() - began:.0f} s: {', '.join(took)}.")
    for what in missed:
        print(f"MISSED  {what}")
    if not missed:
        print("All targets are met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
