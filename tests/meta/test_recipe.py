"""
The steps of CONTRIBUTING.md for a new endpoint. Each failure names the missing part and its file.

The rows are those of ``tests/contract/reference.py``. Other tests check what the parts do: ``tests/contract`` sends
each operation, ``tests/sandbox/test_access.py`` checks its scope, ``tests/faults`` breaks it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from airflow_provider_workspace.api import bodies
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from tests.contract.parts import (
    BY_NAME,
    example_of,
    hook_method_of,
    ids_of,
    names,
    operation_of,
    operator_name,
    operator_of,
    route_of,
)
from tests.contract.reference import EXPECTED, Expected

ROOT = Path(__file__).resolve().parents[2]
METHODS = {expected.hook_method: expected for expected in EXPECTED if expected.hook_method}
# Public methods of the hooks without a row of their own. delete_dashboard is an UpdateDashboard.
OTHERS = {"delete_dashboard", "send", "test_connection", "close", "aclose", "client", "get_conn"}
OTHERS |= {"organization_or_default", "project_or_default"}
# The only repeatable POSTs.
REPEATABLE_POSTS = {"PauseBatchExport", "UnpauseBatchExport", "VerifyDomain"}

# For fields that the interface does not name.
MORE_FIELDS = {"UnpauseBatchExport": {"resume_fields"}}
# Bulk invites have rows, which have the fields.
FIELDS_OF_ROWS = "CreateInvites"

every_row = pytest.mark.parametrize("expected", EXPECTED, ids=BY_NAME)
every_method = pytest.mark.parametrize("expected", METHODS.values(), ids=METHODS)


# Step 1: the row of the reference


def test_operations_are_those_of_the_reference_in_its_order() -> None:
    there = [cls.__name__ for cls in OPERATIONS]
    assert there == [name for name in BY_NAME if name in there], "in api/operations/, or tests/contract/reference.py"


# Step 2: the operation, its typed dict, its model


@every_row
def test_every_row_has_an_example_and_an_operation(expected: Expected) -> None:
    """``tests/contract`` compares what it sends."""
    example_of(expected)
    ids_of(expected)
    row = operation_of(expected).endpoint
    assert row.repeatable is (expected.method != "POST" or expected.operation in REPEATABLE_POSTS), (
        f"{expected.operation}: repeatable={row.repeatable}. A POST is repeatable only if sending it twice has the "
        "effect of sending it once: then add it to REPEATABLE_POSTS here"
    )


@pytest.mark.parametrize(
    "expected", [row for row in EXPECTED if row.operation != FIELDS_OF_ROWS], ids=lambda row: row.operation
)
def test_an_operation_has_the_fields_of_its_row(expected: Expected) -> None:
    fields = set(operation_of(expected).model_fields) - set(expected.path_parameters)
    wanted = set(expected.body) | set(expected.query)
    assert not wanted - fields, f"{expected.operation}: its class in api/operations/ lacks {names(wanted - fields)}"
    allowed = {"offset"} if expected.answer == "undefined list" else MORE_FIELDS.get(expected.operation, set())
    more = fields - wanted - allowed
    assert not more, (
        f"{expected.operation}: {names(more)} of its class is not in its row of tests/contract/reference.py"
    )


@pytest.mark.parametrize(
    "expected", [row for row in METHODS.values() if row.operation != FIELDS_OF_ROWS], ids=lambda row: row.operation
)
def test_a_method_takes_every_field_of_its_operation(expected: Expected) -> None:
    """By name, or with the typed dict of ``**fields``."""
    method = hook_method_of(expected)
    taken = set(inspect.signature(method).parameters) - {"self", "fields"}
    unpacked = re.fullmatch(r"Unpack\[(\w+)\]", str(method.__annotations__.get("fields", "")))
    typed = set(getattr(bodies, unpacked[1]).__annotations__) if unpacked else set()
    where = f"{unpacked[1]} in api/bodies.py" if unpacked else f"{expected.hook_method} in hooks/workspace.py"
    missing = set(expected.body) - taken - typed
    assert not missing, f"{expected.operation}: {where} lacks the field {names(missing)}"
    more = (typed | taken) - set(operation_of(expected).model_fields)
    assert not more, f"{expected.operation}: {where} has {names(more)}, which the operation does not have"
    assert not typed & taken, f"{expected.operation}: {names(typed & taken)} is in {where}, and a parameter as well"


# Step 3: the hook


def test_every_method_has_an_operation() -> None:
    own = {name for name in vars(WorkspaceHook) if not name.startswith("_") and callable(getattr(WorkspaceHook, name))}
    more = own - OTHERS - set(METHODS)
    assert not more, f"WorkspaceHook has {names(more)}: name it as hook_method in tests/contract/reference.py"


@pytest.mark.parametrize("name", sorted({*METHODS, "delete_dashboard", "send", "__init__"}))
def test_both_hooks_have_the_same_parameters_and_docstrings(name: str) -> None:
    method, twin = getattr(WorkspaceHook, name, None), getattr(WorkspaceAsyncHook, name, None)
    cure = f"{name} of WorkspaceAsyncHook is not that of WorkspaceHook: make it of that one in hooks/workspace_async.py"
    assert method, f"write {name} in hooks/workspace.py"
    assert twin, cure
    assert [*inspect.signature(method).parameters.values()][1:] == [*inspect.signature(twin).parameters.values()][1:], (
        cure
    )
    assert method.__annotations__.keys() == twin.__annotations__.keys(), cure
    assert (method.__doc__ or "").split() == (twin.__doc__ or "").split(), cure


@every_method
def test_a_method_takes_the_ids_of_its_path_and_names_its_scope(expected: Expected) -> None:
    method = hook_method_of(expected)
    where = f"{expected.operation}: {expected.hook_method} in hooks/workspace.py"
    taken, ids = inspect.signature(method).parameters, set(expected.path_parameters)
    assert ids <= set(taken), f"{where} lacks the parameter {names(ids - set(taken))}"
    default = "organization_id" if "organization_id" in ids else "project_id"
    optional = {name for name in ids if taken[name].default is None}
    assert optional == ids & {default}, f"{where}: of its ids, '{default}' and no other defaults to None"
    scope = f"``{expected.scope}``" if expected.scope else "scope"
    for documented in (method, operator_of(expected)):
        assert scope in (inspect.getdoc(documented) or ""), (
            f"{where}, or its operator: say Scope {scope} in the docstring"
        )


# Step 4: the sandbox. Its scope and status are those of the reference by tests/sandbox/test_access.py


@every_row
def test_the_sandbox_has_a_route(expected: Expected) -> None:
    query = set(route_of(expected).query) ^ set(expected.query)
    assert not query, f"{expected.operation}: its ApiRoute and the reference differ in the query {names(query)}"


# Step 5: the operator, its tests and pages


@every_method
def test_an_operator_takes_its_fields_and_renders_them(expected: Expected) -> None:
    operator = operator_of(expected)
    taken = set(inspect.signature(operator).parameters) - {"self", "kwargs"}
    writable = (
        {"invites"} if expected.operation == "CreateInvites" else set(expected.path_parameters) | set(expected.body)
    )
    no_body = expected.operation == "VerifyDomain"  # the interface shows a body, which says nothing
    missing = set() if taken & {"body", "settings"} or no_body else writable - taken
    assert not missing, f"{expected.operation}: {operator.__name__} lacks the argument {names(missing)}"
    rendered = set(operator.template_fields)
    plain = (taken & writable) - rendered
    assert not plain, f"{expected.operation}: add {names(plain)} to template_fields of {operator.__name__}"
    reads = expected.method == "GET"
    assert reads is not hasattr(operator, "has_own_dry_run"), (
        f"{expected.operation}: {operator.__name__} is to derive from "
        f"{'WorkspaceOperator' if reads else 'WorkspaceWriteOperator, which gives it dry_run'}"
    )


@every_method
def test_an_operator_has_a_test_and_a_section_in_the_docs(expected: Expected) -> None:
    name = operator_name(expected)
    tests = (file.read_text() for file in (ROOT / "tests" / "unit").rglob("test_*.py"))
    assert any(re.search(rf"\b{name}\b", test) for test in tests), (
        f"{expected.operation}: try {name} against the sandbox in tests/unit/operators/"
    )
    pages = "".join(file.read_text() for file in (ROOT / "docs" / "operators").glob("*.md"))
    assert f".{name}" in pages, f"{expected.operation}: add an autoclass of {name} to a page in docs/operators/"


def test_the_page_of_endpoints_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "dev")
    page = importlib.import_module("make_endpoints").page()
    written = (ROOT / "docs" / "endpoints.md").read_text()
    assert written == page, "docs/endpoints.md is not up to date: run python dev/make_endpoints.py"
