"""The most important part of the fault matrix: writes with a lost response. ``make faults`` runs all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.contract.parts import BY_NAME
from tests.faults.matrix import CASES, Fault, check_connection, environment, faults, nothing_to_try
from tests.hook_calls import CALLS
from tests.matrix import chequered
from tests.raw_server import Received

# tests/unit/hooks has every way to lose a response.
LOST = (
    *("reset before", "reset after", "timeout after", "redirect to another host"),
    *("applied 8 s after a timeout", "applied 50 s after a reset", "reset after, lists lag 20 s"),
)
WRITES = [name for name, case in CASES.items() if case.effects]
WRITTEN = chequered(WRITES, ["operator"], LOST)
# The hooks do not look up: tests/unit/hooks has the other faults.
WRITTEN += [(operation, way, "timeout after") for operation in WRITES for way in CALLS]

Surroundings = tuple[SandboxServer, dict[str, Fault], list[Received]]


@pytest.fixture(scope="module")
def prepared() -> Iterator[Surroundings]:
    with environment() as all_of_it:
        yield all_of_it


@pytest.mark.parametrize(("operation", "way", "fault_name"), WRITTEN)
def test_no_fault_applies_a_write_twice(prepared: Surroundings, operation: str, way: str, fault_name: str) -> None:
    sandbox, kinds, strays = prepared
    fault = kinds[fault_name]
    assert not nothing_to_try(way, operation, fault)
    cell = check_connection(sandbox, way, operation, fault)
    assert not cell.wrong, (
        f"{operation} by {way}: {cell.wrong}. {cell.message} "
        "If it needs more than its required arguments: a row in PREPARED of tests/faults/matrix.py"
    )
    assert cell.effects <= cell.intended
    assert not strays


@pytest.mark.parametrize("operation", [name for name in CASES if BY_NAME[name].status == 204])
def test_a_delete_without_effect_fails_its_operator(prepared: Surroundings, operation: str) -> None:
    sandbox, kinds, _ = prepared
    cell = check_connection(sandbox, "operator", operation, kinds["success, not applied"])
    assert (cell.result, cell.effects) == ("WorkspaceNotAppliedError", 0), cell.message


# Lists that lose, repeat or hide rows.
SHORT = (
    *("next null too early", "next null too early, always", "last row of each page missing", "rows moving, always"),
    *("rows counted but not listed", "next in a loop", "next on another host", "very large list"),
)
PAGED = {item.operation for item in BY_NAME.values() if item.answer == "page"}
READERS = [("requests", name) for name in CASES if name in PAGED]
# Both hooks read pages in the same way.
READERS += [("httpx", "ListMembers")]
READERS += [("operator", name) for name in ("CreateProject", "CreateDomain", "CreateInvite", "CreateInvites")]
TRIED = [
    (way, operation, name)
    for way, operation in READERS
    for name in SHORT
    if not nothing_to_try(way, operation, faults("")[name])
]


@pytest.mark.parametrize(("way", "operation", "fault_name"), TRIED)
def test_no_list_is_short_without_an_error(prepared: Surroundings, way: str, operation: str, fault_name: str) -> None:
    """And nothing is written because of a row that is missing."""
    sandbox, kinds, strays = prepared
    cell = check_connection(sandbox, way, operation, kinds[fault_name])
    assert not cell.wrong, f"{operation} by {way}: {cell.wrong}. {cell.message}"
    if fault_name == "rows counted but not listed":
        assert cell.result == "WorkspaceIncompleteListError"
        assert "trust_counts" in cell.message
    assert not strays
