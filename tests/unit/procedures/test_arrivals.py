"""The state of an asset watch: each row is reported once, and the state stays small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_workspace.procedures.arrivals import MAX_KEPT, ListedRow, SeenRows


def listed(*numbers: int, timed: bool = True) -> dict[str, ListedRow]:
    """Return rows that were created one per second."""
    return {f"row-{number}": ListedRow(None, number if timed else None) for number in numbers}


def again(told: SeenRows) -> SeenRows:
    """Return the state after a restart."""
    remembered = SeenRows.from_json(json.loads(json.dumps(told.to_json())))
    assert remembered is not None
    return remembered


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("count", [0, 3, MAX_KEPT, MAX_KEPT + 1, 3 * MAX_KEPT])
def test_each_row_after_the_first_poll_is_reported_once(count: int, *, timed: bool) -> None:
    rows = listed(*range(count), timed=timed)
    told = again(SeenRows.all_of(rows))
    assert told.new(rows) == []
    for number in range(count, count + 5):
        rows |= listed(number, timed=timed)
        assert told.new(rows) == [f"row-{number}"]
        told.add(rows, told.new(rows))
        told = again(told)
        assert told.new(rows) == []
    gone = dict(list(rows.items())[1:])
    told.add(gone, [])
    assert told.new(rows) == [], "who is missed in one poll does not arrive with the next"


def test_rows_that_an_earlier_release_saw_under_another_spelling_are_not_new() -> None:
    row = ListedRow(None, 5)
    told = SeenRows.all_of({"0190C0DE00004000800000000000A001": row, "7": row})
    assert told.new({"0190c0de-0000-4000-8000-00000000a001": row, "7": row, "8": row}) == ["8"]


def test_the_state_of_100000_members_is_below_60_kb() -> None:
    began = 1_700_000_000
    rows = listed(*range(began, began + 100_000))
    told = SeenRows.all_of(rows)
    assert len(json.dumps(told.to_json())) < 60_000
    assert len(told.ids) == MAX_KEPT
    rows |= listed(*range(began + 100_000, began + 105_000))
    told.add(rows, told.new(rows))
    assert len(json.dumps(told.to_json())) < 60_000
    assert told.new(rows) == []


def test_rows_that_came_in_the_same_second_wait_for_their_event() -> None:
    """An event lists a part of the rows; the others must not count as seen because they are as old."""
    rows = {f"row-{number}": ListedRow(None, 5) for number in range(3 * MAX_KEPT)}
    told, reported = SeenRows.all_of({}), list[str]()
    while new := told.new(rows)[: MAX_KEPT // 2]:
        reported += new
        told.add(rows, new)
        told = again(told)
    assert reported == list(rows)
    assert len(told.ids) <= MAX_KEPT


def test_rows_without_a_time_are_never_forgotten() -> None:
    told = SeenRows.all_of(
        listed(*range(MAX_KEPT), timed=False) | {"late": ListedRow(None, 5), "later": ListedRow(None, 7)}
    )
    assert told.before == 7
    rows = {"new": ListedRow(None, None), "newer": ListedRow(None, 8), "old": ListedRow(None, 6)}
    assert told.new(rows) == ["new", "newer"]


def test_a_late_row_is_reported_if_it_is_among_the_newest() -> None:
    assert SeenRows.all_of(listed(*range(0, 2 * MAX_KEPT, 2))).new(listed(1)) == ["row-1"]
    told = SeenRows.all_of(listed(*range(0, 4 * MAX_KEPT, 2)))
    assert told.new(listed(2 * MAX_KEPT + 1)) == [f"row-{2 * MAX_KEPT + 1}"]
    assert told.new(listed(1)) == []


@pytest.mark.parametrize("value", [None, [], ["a"], {}, {"ids": ["a"]}])
def test_an_unusable_state_is_ignored(value: Any) -> None:
    assert SeenRows.from_json(value) is None
