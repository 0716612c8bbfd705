"""
What runs under Valgrind: ``counted.py URL KIND...`` counts the contestants of each kind; ``KIND:budget`` only some.

The kinds are ``imports``, ``gets``, ``pages``, ``polls`` and ``plans``; there are no contestants for the last two.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from measure import airflow_home, connect, count, counter, counting, in_child

REPETITIONS = 3
CALLS = 5
PAGES = 3
POLLS = 10
# How many wait for each poll, and how many polls come before those that are counted.
WAITS_OF_A_POLL = 100
FIRST_POLLS = 5
ROWS_OF_A_PLAN = 1_000


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


def count_polls() -> None:
    """Count polls of one list, for which many wait."""
    import waiting

    from airflow_provider_workspace.client import waits

    async def wait_for_polls() -> None:
        enough = asyncio.Event()
        polls = 0

        async def between_polls(seconds: float) -> None:
            nonlocal polls
            if seconds != waiting.INTERVAL:  # no pause between polls
                return
            polls += 1
            await asyncio.sleep(0.1)
            if polls == FIRST_POLLS:
                counter().zero()
            if polls == FIRST_POLLS + POLLS:
                counter().dump(b"polls:ours")
                enough.set()

        waits.async_sleep = between_polls
        wait = waiting.waits(lambda _: "small")
        tasks = [asyncio.ensure_future(wait(number)) for number in range(WAITS_OF_A_POLL)]
        await enough.wait()
        for task in tasks:
            task.cancel()

    def measure() -> None:
        with counting():
            asyncio.run(wait_for_polls())

    in_child(measure)


def count_plans() -> None:
    """Count the plan of a member sync: its rows are read, selected and compared with as many members."""
    from datetime import datetime, timezone

    from service import MEMBER

    from airflow_provider_workspace.access.members.plan import plan_members
    from airflow_provider_workspace.access.rules.guards import Guards
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.people import People
    from airflow_provider_workspace.procedures.roster_files import read_roster

    client = WorkspaceHook().client
    now = datetime(2026, 1, 2, tzinfo=timezone.utc)
    members = [Member.model_validate_json(MEMBER.replace("@@@", f"{number:06}")) for number in range(ROWS_OF_A_PLAN)]
    people = People([], members)
    rows: list[dict[str, Any]] = []
    for number in range(ROWS_OF_A_PLAN):
        level = 8 if number % 100 == 0 else 1
        status = "left" if number % 50 == 1 else "active"
        rows.append({"email": f"person{number:06}@example.com", "level": level, "Status": status})

    def plan() -> None:
        roster = read_roster(rows, where={"Status": "active"}, now=now)
        made = plan_members(client, "org", roster, Guards(frozenset(), 15), now=now, people=people)
        assert len(made.changes) > ROWS_OF_A_PLAN / 50, made.changes

    def measure() -> None:
        with counting():
            count("plans:ours", plan)

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


ALONE = {"imports": count_imports, "polls": count_polls, "plans": count_plans}


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
            if kind in ALONE:
                ALONE[kind]()
                continue
            contestants.import_base_classes() if only else import_clients()
            everybody: dict[str, Any] = contestants.GETS if kind == "gets" else contestants.LISTS
            for name, ready in everybody.items():
                if only and name not in contestants.BUDGETED:
                    continue
                (count_calls if kind == "gets" else count_pages)(name, ready, url)


if __name__ == "__main__":
    main()
