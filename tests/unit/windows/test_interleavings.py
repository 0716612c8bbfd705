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

from airflow_provider_workspace.notes import leases
from airflow_provider_workspace.windows import pausing, requests
from tests.unit.windows.simulation import World, build


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Disable logging, and parse each lease once: there are millions of lines, and only a few leases."""
    monkeypatch.setattr(leases.LeaseRegistry, "load", staticmethod(lru_cache(100_000)(leases.LeaseRegistry.load)))
    monkeypatch.setattr(requests, "read_state", lambda world, *_: world.read_state())
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def check_end(world: World, path: Any, *, paused: bool = False) -> None:
    world.sweep()
    assert world.paused is paused, f"{'resumed' if paused else 'still paused'}: {path}"
    assert paused or not world.gap, f"intervals are missing: {path}"
    assert not world.variables.keys() - {leases.SWEEP}, f"a lease is left: {path}"


def explore(most: int | None = None, **options: Any) -> int:
    """
    Visit all states, or the first ``most``; return how many there are.

    :param most: maximum number of states
    """
    seen: set[Any] = set()
    pending: list[tuple[int, ...]] = [()]
    while pending and (most is None or len(seen) < most):
        path = pending.pop()
        world = build(**options)
        for choice in path:
            world.choices()[choice]()
        # Depth first: follow one path to its end, and remember the others.
        while (state := world.state()) not in seen:
            seen.add(state)
            assert world.violation() is None, f"{world.violation()}: {path}"
            choices = world.choices()
            if not choices:
                check_end(world, path)
                break
            pending += [(*path, choice) for choice in range(1, len(choices))]
            path = (*path, 0)
            choices[0]()
    return len(seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "at_least"),
    [
        ({"max_kills": 0}, 10_000),
        # The two windows are equal, so it does not matter which one is killed before, during or after a request.
        ({"max_kills": 1, "mortal": ("a",), "kills_anywhere": False}, 100_000),
        # Only a part of the states is visited.
        ({"max_kills": 1, "mortal": ("a",), "most": 20_000}, 20_000),
    ],
    ids=["without kills", "with a kill at a request", "with a kill anywhere"],
)
def test_every_interleaving(options: dict[str, Any], at_least: int) -> None:
    states = explore(**options)
    print(f"\n{states:,} states: 0 still paused, 0 run during the work")
    assert states >= at_least


def walk(seed: int, **options: Any) -> World:
    """Follow one random path; kills and delays are as likely as steps."""
    chance = random.Random(seed)  # noqa: S311 - the same each time
    world = build(**options)
    path: list[int] = []
    while choices := world.choices():
        path.append(chance.randrange(len(choices)))
        choices[path[-1]]()
        assert world.violation() is None, f"seed {seed}, {world.violation()}: {path}"
    check_end(world, f"seed {seed}: {path}", paused=options.get("paused", False))
    return world


@pytest.mark.parametrize(
    ("names", "kills"),
    [("abc", 1_000), *(pytest.param(names, 30_000, marks=pytest.mark.slow) for names in ("abc", "ab"))],
    ids=["three", "three, many", "two"],
)
def test_random_kills(names: str, kills: int) -> None:
    """Up to four kills per world, at any step of any task."""
    killed = worlds = 0
    while killed < kills:
        killed += walk(worlds, max_kills=4, names=tuple(names)).kills
        worlds += 1
    print(f"\n{killed:,} kills in {worlds:,} worlds: 0 still paused, 0 with a gap, 0 run during the work")


@pytest.mark.parametrize("worlds", [75, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("names", ["ab", "abc"])
def test_windows_that_see_an_export_leave_it_as_it_was(names: str, worlds: int, *, paused: bool) -> None:
    """And their proofs are never contradicted by another window, nor by a request that takes effect late."""
    for seed in range(worlds):
        walk(seed, max_kills=3, names=tuple(names), sees=True, paused=paused)


def test_the_simulation_finds_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that ignores the other leases lets an export run during another window's work."""
    monkeypatch.setattr(pausing.Pauser, "pause", lambda self, lease: (self._pause_first(lease), None))
    with pytest.raises(AssertionError, match="runs during the work"):
        [walk(seed, max_kills=0) for seed in range(2000)]
