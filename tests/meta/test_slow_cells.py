"""Which cells of a table of tests are slow: see ``tests/matrix.py``."""

from __future__ import annotations

import pytest


@pytest.fixture(params=[0, 1])
def third(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.mark.parametrize(("first", "of_first"), [(0, "same"), (1, "same"), (2, "same")])
@pytest.mark.parametrize("second", [0, 1])
def test_every_second_cell_of_several_axes_is_slow(
    request: pytest.FixtureRequest, first: int, second: int, third: int, of_first: str
) -> None:
    assert of_first == "same"
    assert bool(request.node.get_closest_marker("slow")) == bool((first + second + third) % 2)


@pytest.mark.parametrize(("number", "other"), [(0, 1), (1, 0)])
def test_no_row_of_one_axis_is_slow(request: pytest.FixtureRequest, number: int, other: int) -> None:
    assert number != other
    assert not request.node.get_closest_marker("slow")
