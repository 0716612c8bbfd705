"""
Compare what importing and calling cost with what they cost before, in instructions.

``budget.json`` holds the counts of the Python and the Airflow it was written with. Where either is another, counts are
compared in proportion to the floor, which is measured in the same run. ``--write`` writes the file anew.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
from importlib.metadata import version
from typing import Any

import measure
from counted import CALLS
from measure import HERE, OURS
from service import running

FILE = HERE / "budget.json"
MAX_RATIO = 1.05
# Where Python or Airflow are others, their own share differs by more than that.
MAX_RATIO_ELSEWHERE = 1.5
FLOORS = {"imports": "floor", "gets": "requests.Session"}
MEANING = {
    "imports": "Importing all operators, sensors, triggers and links",
    "gets": "One get_dashboard through WorkspaceHook",
}


def main() -> int:
    """Count, and compare or write."""
    now = count()
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(now, indent=2) + "\n")
        print(f"Wrote {FILE.relative_to(HERE.parent)}.")
        return 0
    before = json.loads(FILE.read_text())
    same = before["made_with"] == now["made_with"]
    if not same:
        print(f"The budget was made with {before['made_with']}, this is {now['made_with']}: compared to the floors.")
    status = 0
    for kind, meaning in MEANING.items():
        share = 1.0 if same else floor_of(now, kind) / floor_of(before, kind)
        allowed = total(before, kind) * share
        found = total(now, kind)
        print(
            f"{meaning}: {found / 1e6:.2f} M instructions, the budget is {allowed / 1e6:.2f} M ({found / allowed:.1%})"
        )
        most = MAX_RATIO if same else MAX_RATIO_ELSEWHERE
        if found > most * allowed:
            status = 1
            print(f"That is over {most - 1:.0%} more. What grew most:")
            for line in culprits(before, now, kind, share):
                print(f"  {line}")
    if status:
        print("If it is worth it: make budget ARGS=--write, and say in the commit why.")
    return status


def count() -> dict[str, Any]:
    """Count instructions, imported modules and calls of functions."""
    with running() as service:
        counts = measure.instructions("counted.py", service.url, "imports", "gets:budget")
    middle = {label: statistics.median(values) for label, values in counts.items()}
    with running() as service, measure.airflow_home():
        measure.connect(service.url)
        imported, called = measure.in_child(imported_modules), measure.in_child(lambda: called_functions(service.url))
    return {
        "made_with": {name: version(name) for name in ("apache-airflow", "pydantic", "requests")}
        | {"python": platform.python_version(), "machine": platform.machine()},
        "imports": of_kind(middle, "imports:", 1),
        "gets": of_kind(middle, "gets:", CALLS),
        "imported": imported,
        "called": called,
    }


def of_kind(counts: dict[str, float], prefix: str, times: int) -> dict[str, int]:
    """Return the counts of one kind, each by what was done."""
    return {label.removeprefix(prefix): round(n / times) for label, n in counts.items() if label.startswith(prefix)}


def imported_modules() -> dict[str, list[str]]:
    """Return what each module of ours loads, on top of Airflow's base classes."""
    import importlib

    import contestants

    contestants.import_base_classes()
    imported: dict[str, list[str]] = {}
    for module in contestants.MODULES:
        before = set(sys.modules)
        importlib.import_module(module)
        imported[module] = sorted(set(sys.modules) - before - {module})
    return imported


def called_functions(url: str) -> dict[str, int]:
    """Return how often one call of ours enters each function."""
    import contestants

    contestants.import_base_classes()
    get = contestants.GETS[OURS](url)
    get()
    called: dict[str, int] = {}

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
        elif event == "c_call":
            name = f"{getattr(argument, '__module__', None) or 'builtins'}.{argument.__qualname__}"
        else:
            return
        called[name] = called.get(name, 0) + 1

    sys.setprofile(note)
    get()
    sys.setprofile(None)
    return dict(sorted(called.items()))


def total(counts: dict[str, Any], kind: str) -> float:
    """Return what is ours of a kind."""
    floor = FLOORS[kind]
    return float(sum(value for name, value in counts[kind].items() if name != floor))


def floor_of(counts: dict[str, Any], kind: str) -> float:
    """Return what stands beside it."""
    return float(counts[kind][FLOORS[kind]])


def culprits(before: dict[str, Any], now: dict[str, Any], kind: str, share: float) -> list[str]:
    """Name the modules whose import grew and what they load now, or the functions that are called more often."""
    if kind == "imports":
        grown = {name: value - before[kind].get(name, 0) * share for name, value in now[kind].items()}
        lines: list[str] = []
        for name in sorted(grown, key=lambda name: -grown[name])[:3]:
            loaded = set(now["imported"].get(name, [])) - set(before["imported"].get(name, []))
            packages = sorted({module.partition(".")[0] for module in loaded if not module.startswith("_")})
            also = f"; it loads now: {', '.join(packages)}" if packages else ""
            if grown[name] > 0.01 * total(before, kind) * share:
                lines.append(f"{name}: {grown[name] / 1e6:+.2f} M instructions{also}")
        return lines
    calls = {name: times - before["called"].get(name, 0) for name, times in now["called"].items()}
    most = sorted(calls, key=lambda name: -calls[name])[:8]
    return [f"{name}: {calls[name]:+d} calls" for name in most if calls[name] > 0] or [
        "no function is called more often: one of those called takes longer"
    ]


if __name__ == "__main__":
    sys.exit(main())
