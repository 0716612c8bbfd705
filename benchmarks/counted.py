"""What runs under Valgrind: ``counted.py URL KIND...`` counts the contestants of each kind; ``KIND:ours`` only ours."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from measure import airflow_home, connect, count, counting, in_child

REPETITIONS = 3
CALLS = 5
PAGES = 3


def count_imports() -> None:
    """Import what Airflow has; then, module by module, what is ours. The count is the same each time."""
    import contestants

    def measure() -> None:
        with counting():
            count("imports:floor", contestants.import_base_classes)
            for module in contestants.MODULES:
                count(f"imports:{module}", lambda module=module: importlib.import_module(module))

    in_child(measure)


def count_calls(label: str, ready: Callable[[str], Callable[[], object]], url: str) -> None:
    """Call until everything is set up, then count calls."""

    def measure() -> None:
        work = ready(url)
        repeat(work, 3)
        with counting():
            for _ in range(REPETITIONS):
                count(f"gets:{label}", lambda: repeat(work, CALLS))

    in_child(measure)


def count_pages(label: str, rows: Callable[[str], Iterator[Any]], url: str) -> None:
    """Read the first pages, then count further ones."""

    def measure() -> None:
        reading = rows(url)
        read(reading, 2)
        with counting():
            for _ in range(REPETITIONS):
                count(f"pages:{label}", lambda: read(reading, PAGES))

    in_child(measure)


def import_clients() -> None:
    """Import what the contestants use, once for all of them: Valgrind takes its time."""
    import airflow.providers.http.hooks.http
    import httpx

    import airflow_provider_workspace.hooks.workspace

    assert airflow
    assert httpx
    assert airflow_provider_workspace


def repeat(work: Callable[[], object], times: int) -> None:
    """Do something a number of times."""
    for _ in range(times):
        work()


def read(rows: Iterator[Any], pages: int) -> None:
    """Read as many rows as there are on a number of pages."""
    deque(itertools.islice(rows, 100 * pages), 0)


def main() -> None:
    """Count."""
    url, *kinds = sys.argv[1:]
    with airflow_home():
        connect(url)
        import airflow.sdk
        import contestants

        assert airflow.sdk
        for chosen in kinds:
            kind, _, only = chosen.partition(":")
            if kind == "imports":
                count_imports()
                continue
            contestants.import_base_classes() if only else import_clients()
            everybody: dict[str, Any] = contestants.GETS if kind == "gets" else contestants.LISTS
            for name, ready in everybody.items():
                if only and name not in contestants.BUDGETED:
                    continue
                (count_calls if kind == "gets" else count_pages)(name, ready, url)


if __name__ == "__main__":
    main()
