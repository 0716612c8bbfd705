"""The most important part of the fault matrix: writes with a lost response. ``make faults`` runs all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.contract.parts import BY_NAME
from tests.faults.matrix import CASES, WAYS, Fault, check_connection, environment, nothing_to_try

LOST = (
    *("reset before", "reset after", "timeout after", "503 after", "cut body", "redirect to another host"),
    *("applied 8 s after a timeout", "applied 50 s after a reset", "reset after, lists lag 20 s"),
)

Surroundings = tuple[SandboxServer, dict[str, Fault], list[str]]


@pytest.fixture(scope="module")
def prepared() -> Iterator[Surroundings]:
    with environment() as all_of_it:
        yield all_of_it


@pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
@pytest.mark.parametrize("fault_name", LOST)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("operation", [name for name, case in CASES.items() if case.effects])
def test_no_fault_applies_a_write_twice(prepared: Surroundings, operation: str, way: str, fault_name: str) -> None:
    sandbox, faults, strays = prepared
    fault = faults[fault_name]
    assert not nothing_to_try(way, operation, fault)
    cell = check_connection(sandbox, way, operation, fault)
    assert not cell.wrong, (
        f"{operation} by {way}: {cell.wrong}. {cell.message} "
        "If it needs more than its required arguments: a row in PREPARED of tests/faults/matrix.py"
    )
    assert cell.effects <= cell.intended
    assert not strays


@pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
@pytest.mark.parametrize("operation", [name for name in CASES if BY_NAME[name].status == 204])
def test_a_delete_without_effect_fails_its_operator(prepared: Surroundings, operation: str) -> None:
    sandbox, faults, _ = prepared
    cell = check_connection(sandbox, "operator", operation, faults["success, not applied"])
    assert (cell.result, cell.effects) == ("WorkspaceNotAppliedError", 0), cell.message
