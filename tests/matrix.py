"""Combinations of arguments, half of which are slow tests."""

from __future__ import annotations

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
