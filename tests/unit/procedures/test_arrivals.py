"""The state of an asset watch: each row is reported once, and the state stays small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_workspace.procedures.arrivals import MAX_KEPT, ListedRow, SeenRows

BEGAN = 1_700_000_000


def listed(*numbers: int, timed: bool = True) -> dict[str, ListedRow]:
    """Return rows that were created one per second."""
    return {f"row-{number}": ListedRow(None, BEGAN + number if timed else None) for number in numbers}


def again(told: SeenRows) -> SeenRows:
    """Return the state after a restart."""
    remembered = SeenRows.from_json(json.loads(json.dumps(told.to_json())))
    assert remembered == told
    return remembered


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("count", [0, 3, MAX_KEPT, MAX_KEPT + 1, 3 * MAX_KEPT])
def test_a_row_is_new_unless_the_last_list_showed_it_at_that_time(count: int, *, timed: bool) -> None:
    rows = listed(*range(count), timed=timed)
    told = again(SeenRows.of(rows))
    assert told.new(rows) == []
    for number in range(count, count + 5):
        rows |= listed(number, timed=timed)
        assert told.new(rows) == [f"row-{number}"]
        told = again(SeenRows.of(rows))
        assert told.new(rows) == []
    later = BEGAN + count + 9 if timed else None
    for row_id in ("row-0", f"row-{count + 4}"):
        again_there = {row_id: ListedRow(None, later)}
        assert told.new(again_there) == ([row_id] if timed else [])
        without = dict(rows)
        del without[row_id]
        assert SeenRows.of(without).new(again_there) == [row_id]


@pytest.mark.parametrize("count", [50_000, 105_000])
def test_the_state_of_a_long_list_is_below_60_kb(count: int) -> None:
    told = SeenRows.of(listed(*range(count)))
    assert len(json.dumps(told.to_json())) < 60_000
    assert len(told.ids) == MAX_KEPT


@pytest.mark.parametrize("times", [[5], [5, 6, 7], range(9000)])
@pytest.mark.parametrize("there", [0, 3 * MAX_KEPT])
def test_rows_wait_for_their_event_however_old_they_are(times: Any, there: int) -> None:
    """An event lists a part of the rows; the others must not count as seen because they are as old."""
    rows = listed(*range(-there, 0))
    told = SeenRows.of(rows)
    for number in range(3 * MAX_KEPT):
        created_at = BEGAN + times[number % len(times)]
        rows[f"late-{number}"] = ListedRow(None, created_at)
    in_an_event = MAX_KEPT // 2
    reported: list[str] = []
    new = told.new(rows)
    while new:
        reported += new[:in_an_event]
        waiting = set(new[in_an_event:])
        told = again(SeenRows.of(rows, waiting))
        new = told.new(rows)
    assert reported == list(rows)[there:]


def test_rows_without_a_time_are_never_forgotten() -> None:
    timeless = listed(*range(MAX_KEPT), timed=False)
    late = {number: ListedRow(None, BEGAN + number) for number in range(5, 9)}
    told = SeenRows.of(timeless | {"five": late[5], "seven": late[7]})
    assert told.new({"new": ListedRow(None, None), "eight": late[8], "six": late[6], **timeless}) == ["new", "eight"]
    assert told.new({row_id: ListedRow(None, BEGAN + 9) for row_id in timeless}) == [], "a service may begin to show it"


def test_a_late_row_is_reported_if_it_is_among_the_newest() -> None:
    assert SeenRows.of(listed(*range(0, 2 * MAX_KEPT, 2))).new(listed(1)) == ["row-1"]
    told = SeenRows.of(listed(*range(0, 4 * MAX_KEPT, 2)))
    assert told.new(listed(2 * MAX_KEPT + 1)) == [f"row-{2 * MAX_KEPT + 1}"]
    assert told.new(listed(1)) == []


@pytest.mark.parametrize("value", [None, [], ["a"], {}, {"ids": ["a"]}])
def test_an_unusable_state_is_ignored(value: Any) -> None:
    assert SeenRows.from_json(value) is None


def test_a_row_without_a_time_may_wait_beside_a_long_list() -> None:
    rows = listed(*range(2 * MAX_KEPT)) | {"timeless": ListedRow(None, None)}
    told = SeenRows.of(rows, {"timeless"})
    assert told.new(rows) == ["timeless"]


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("count", [4, MAX_KEPT, 3 * MAX_KEPT])
@pytest.mark.parametrize("shown", [0, 2])
def test_rows_that_one_list_misses_are_not_new(count: int, shown: int, *, timed: bool) -> None:
    rows = listed(*range(count), timed=timed)
    told = SeenRows.of(rows)
    short = again(SeenRows.of(listed(*range(shown), timed=timed), earlier=[None, told]))
    assert short.new(rows) == ([] if timed or count <= MAX_KEPT else list(rows)[MAX_KEPT:])
    assert len(short.ids) <= MAX_KEPT
    assert SeenRows.of(rows, earlier=[short]).new(rows) == []
    if timed:
        assert short.new({"row-0": ListedRow(None, BEGAN + count)}) == ["row-0"], "somebody who joins again"


def test_a_row_waits_for_its_event_though_another_asset_has_seen_it() -> None:
    rows = listed(0, 1)
    told = SeenRows.of(rows, {"row-1"}, [SeenRows.of(rows), SeenRows.of(listed(0))])
    assert told.new(rows) == ["row-1"]
