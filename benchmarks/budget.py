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
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import measure
from counted import CALLS, PAGES, POLLS, ROWS_OF_A_PLAN, WAITS_OF_A_POLL
from measure import HERE, OURS
from service import running

FILE = HERE / "budget.json"
MAX_RATIO = 1.01
# Where Python or Airflow are others, their own share differs by more than that.
MAX_RATIO_ELSEWHERE = 1.5
# By how much two counts may differ.
MAX_DIFFERENCE = 0.005
# What stands beside each kind: for polls and plans, which nothing else does, a call.
FLOORS = {
    "imports": ("imports", "floor"),
    "gets": ("gets", "requests.Session"),
    "pages": ("pages", "requests.Session, dicts"),
    "polls": ("gets", "requests.Session"),
    "plans": ("gets", "requests.Session"),
}
MEANING = {
    "imports": "Importing all operators, sensors, triggers and links",
    "gets": "One get_dashboard through WorkspaceHook",
    "pages": "A page of 100 members through WorkspaceHook",
    "polls": f"A poll for {WAITS_OF_A_POLL} waits in the triggerer",
    "plans": f"The plan of a member sync with {ROWS_OF_A_PLAN:,} rows",
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
            print(f"That is over {most - 1:.0%} more.")
            grown = culprits(before, now, kind, share)
            print("\n".join(["What grew most:", *(f"  {line}" for line in grown)]) if grown else "")
    if status:
        print("If it is worth it: make budget ARGS=--write, and say in the commit why.")
    return status


def count() -> dict[str, Any]:
    """Count instructions, imported modules and calls of functions."""
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda _: count_once(), range(2))
    for kind in MEANING:
        one, other = of_all(first, kind), of_all(second, kind)
        if abs(one - other) > MAX_DIFFERENCE * one:
            print(f"{kind}: {one / 1e6:.2f} M instructions in one count and {other / 1e6:.2f} M in another.")
    middle = {label: min(value, second[label]) for label, value in first.items()}
    with running() as service, measure.airflow_home():
        measure.connect(service.url)
        imported, called = measure.in_child(imported_modules), measure.in_child(lambda: called_functions(service.url))
    return {
        "made_with": {name: version(name) for name in ("apache-airflow", "pydantic", "requests")}
        | {"python": platform.python_version(), "machine": platform.machine()},
        "imports": of_kind(middle, "imports:", 1),
        "gets": of_kind(middle, "gets:", CALLS),
        "pages": of_kind(middle, "pages:", PAGES),
        "polls": of_kind(middle, "polls:", POLLS),
        "plans": of_kind(middle, "plans:", 1),
        "imported": imported,
        "called": called,
    }


def count_once() -> dict[str, float]:
    """Count once, in a process of its own: the median of what is repeated there."""
    with running() as service:
        kinds = ("imports", "gets:budget", "pages:budget", "polls", "plans")
        counts = measure.instructions("counted.py", service.url, *kinds)
    return {label: statistics.median(values) for label, values in counts.items()}


def of_all(counts: dict[str, float], kind: str) -> float:
    """Return the instructions of a kind, whatever was done."""
    return sum(value for label, value in counts.items() if label.startswith(f"{kind}:"))


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
    _, floor = FLOORS[kind]
    return float(sum(value for name, value in counts[kind].items() if name != floor))


def floor_of(counts: dict[str, Any], kind: str) -> float:
    """Return what stands beside it."""
    of, floor = FLOORS[kind]
    return float(counts[of][floor])


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
    if kind != "gets":
        return []
    calls = {name: times - before["called"].get(name, 0) for name, times in now["called"].items()}
    most = sorted(calls, key=lambda name: -calls[name])[:8]
    return [f"{name}: {calls[name]:+d} calls" for name in most if calls[name] > 0] or [
        "no function is called more often: one of those called takes longer"
    ]


if __name__ == "__main__":
    sys.exit(main())
