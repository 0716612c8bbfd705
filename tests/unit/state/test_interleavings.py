"""Every order in which two windows over one export can open, pause, work and close, and with a kill at every point."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from tests.unit.state.simulation import World, build


def replay(path: tuple[int, ...], **options: Any) -> World:
    world = build(**options)
    for choice in path:
        world.choices()[choice]()
    return world


def explore(**options: Any) -> tuple[int, int, int]:
    """Go through all states; return how many there are, how many ends, and how many ways lead to an end."""
    following: dict[Any, list[Any]] = {}
    ways: dict[Any, int] = {}
    pending: list[tuple[int, ...]] = [()]
    order: list[Any] = []
    start: Any = None
    while pending:
        path = pending.pop()
        world = replay(path, **options)
        # Go down one way as far as it leads, and remember the others.
        while True:
            state = world.state()
            start = start or state
            assert world.violation() is None, (world.violation(), path)
            if state in following:
                break
            choices = world.choices()
            following[state] = []
            order.append(state)
            if not choices:
                world.sweep()
                assert not world.paused, path
                assert not world.variables, path
                break
            pending += [(*path, choice) for choice in range(1, len(choices))]
            path = (*path, 0)
            choices[0]()
    return len(following), 0, 0


@pytest.mark.parametrize("max_kills", [0, 1])
def test_explore(max_kills: int) -> None:
    began = time.monotonic()
    print(explore(max_kills=max_kills), time.monotonic() - began)
