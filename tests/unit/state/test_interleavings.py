"""
All interleavings of two windows over one export, and many with kills.

Invariants: while a window's work runs, its export is paused. At every end, after the sweep, the export runs and no
lease is left.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

from airflow_provider_workspace.state import leases, pausing
from tests.unit.state.simulation import World, build


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Disable logging, and parse each lease once: there are millions of lines, and only a few leases."""
    monkeypatch.setattr(leases, "load", lru_cache(100_000)(leases.load))
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def check_end(world: World, path: Any) -> None:
    world.sweep()
    assert not world.paused, f"still paused: {path}"
    assert not world.gap, f"intervals are missing: {path}"
    assert not world.variables, f"a lease is left: {path}"


def explore(most: int | None = None, **options: Any) -> tuple[int, int]:
    """
    Visit all states, or the first ``most``; return how many there are, and how many paths lead through them.

    :param most: maximum number of states
    """
    following: dict[Any, list[Any]] = {}
    pending: list[tuple[int, ...]] = [()]
    start = build(**options).state()
    while pending and (most is None or len(following) < most):
        path = pending.pop()
        world = build(**options)
        before: Any = None
        for choice in path:
            before = world.state()
            world.choices()[choice]()
        # Depth first: follow one path to its end, and remember the others.
        while True:
            state = world.state()
            if before is not None:
                following[before].append(state)
            assert world.violation() is None, f"{world.violation()}: {path}"
            if state in following:
                break
            following[state] = []
            choices = world.choices()
            if not choices:
                check_end(world, path)
                break
            pending += [(*path, choice) for choice in range(1, len(choices))]
            path, before = (*path, 0), state
            choices[0]()
    return len(following), count_paths(start, following)


def count_paths(start: Any, following: dict[Any, list[Any]]) -> int:
    ways: dict[Any, int] = {}
    stack = [start]
    while stack:
        state = stack[-1]
        unknown = [after for after in following[state] if after not in ways]
        if unknown:
            stack += unknown
        else:
            ways[state] = sum(ways[after] for after in following[state]) or 1
            stack.pop()
    return ways[start]


@pytest.mark.slow
def test_every_interleaving() -> None:
    states, ways = explore(max_kills=0)
    print(f"\n{states:,} states, {ways:.3e} interleavings: 0 still paused, 0 run during the work")
    assert states > 10_000


@pytest.mark.slow
def test_every_interleaving_with_a_kill_at_a_request() -> None:
    """One of the two windows is killed before, during or after a request. They are equal, so either will do."""
    states, ways = explore(max_kills=1, mortal=("a",), kills_anywhere=False)
    print(f"\n{states:,} states, {ways:.3e} interleavings with a kill: 0 still paused, 0 run during the work")
    assert states > 100_000


@pytest.mark.slow
def test_interleavings_with_a_kill_anywhere() -> None:
    """Only a part of the states is visited."""
    states, ways = explore(most=20_000, max_kills=1, mortal=("a",))
    print(f"\n{states:,} states, {ways:.3e} interleavings with a kill: 0 still paused, 0 run during the work")


@pytest.mark.slow
def test_many_random_kills_of_two_windows() -> None:
    worlds = [walk(seed, max_kills=2) for seed in range(20_000)]
    print(f"\n{sum(world.kills for world in worlds):,} kills in {len(worlds):,} worlds: 0 still paused, 0 with a gap")


def walk(seed: int, **options: Any) -> World:
    """Follow one random path; kills and delays are as likely as steps."""
    chance = random.Random(seed)  # noqa: S311 - the same each time
    world = build(**options)
    path: list[int] = []
    while choices := world.choices():
        path.append(chance.randrange(len(choices)))
        choices[path[-1]]()
        assert world.violation() is None, f"seed {seed}, {world.violation()}: {path}"
    check_end(world, f"seed {seed}: {path}")
    return world


def test_random_kills() -> None:
    """Three windows, up to four kills per world, at any step of any task."""
    kills = worlds = 0
    while kills < 3000:
        kills += walk(worlds, max_kills=4, names=("a", "b", "c")).kills
        worlds += 1
    print(f"\n{kills:,} kills in {worlds:,} worlds: 0 still paused, 0 with a gap, 0 run during the work")


def test_the_simulation_finds_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that ignores the other leases lets an export run during another window's work."""
    monkeypatch.setattr(pausing.Pauser, "pause", lambda self, lease: self._pause_first(lease) and None)
    with pytest.raises(AssertionError, match="runs during the work"):
        [walk(seed, max_kills=0) for seed in range(2000)]
