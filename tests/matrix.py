"""Combinations of arguments, half of which are slow tests."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Any

import pytest


def chequered(*axes: Any) -> list[Any]:
    """
    Return each combination of values, for ``parametrize``; on a chequered board of them, the black ones are slow.

    The white ones have every value, and every pair of values if there are three axes or more.
    """
    board = product(*(enumerate(axis) for axis in axes))
    return [
        pytest.param(
            *(value for _, value in fields), marks=[pytest.mark.slow] * (sum(number for number, _ in fields) % 2)
        )
        for fields in board
    ]


def mark_black_cells(items: list[pytest.Item]) -> None:
    """Mark every second cell of each table of tests as slow that has several axes: parametrizations and fixtures."""
    tables: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not item.get_closest_marker("slow"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for cells in tables.values():
        axes = [axis for axis in _axes(cells[0]) if len({_value(cell, axis) for cell in cells}) > 1]
        numbers: dict[tuple[str, ...], dict[Any, int]] = {axis: {} for axis in axes}
        for cell in cells if len(axes) > 1 else []:
            if sum(known.setdefault(_value(cell, axis), len(known)) for axis, known in numbers.items()) % 2:
                cell.add_marker("slow")


def _axes(cell: pytest.Function) -> list[tuple[str, ...]]:
    """Return the names of each parametrization, and of each fixture with parameters."""
    given = [mark.args[0] for mark in cell.iter_markers("parametrize")]
    named = [
        tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else (*names,) for names in given
    ]
    of_fixtures = cell.callspec.params.keys() - {name for names in named for name in names}
    return [*named, *((name,) for name in sorted(of_fixtures))]


def _value(cell: pytest.Function, axis: tuple[str, ...]) -> tuple[int, ...]:
    """Return which of its values an axis has: each is one object."""
    return tuple(id(cell.callspec.params[name]) for name in axis)
