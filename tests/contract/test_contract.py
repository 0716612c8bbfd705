"""
Each operation over HTTP with both clients, compared with the independent reference.

The sandbox in profile ``strict`` refuses every field and parameter that the interface does not name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceMethodNotAllowedError
from tests.contract.parts import (
    BY_NAME,
    arguments,
    body_of,
    example_of,
    ids_of,
    names,
    operator_of,
    path_of,
    route_of,
    send_by,
)
from tests.contract.reference import EXPECTED, USER, Expected

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Resource
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Call

SCOPES = frozenset(expected.scope for expected in EXPECTED if expected.scope)
# Bulk invites also read the members and invites.
ALSO_NEEDED = {"CreateInvites": {"organization_member:read"}}

# Type name of the interface -> Python type of the JSON value; names that leave the type open are absent.
TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "integer (milliseconds)": int,
    "enumerated integer": int,
    "boolean": bool,
    "string": str,
    "string (UUID)": str,
    "string (e-mail format)": str,
    "string (<SHARING_ACCESS_TOKEN>)": str,
    "date-time string": str,
    "array": list,
    "array of strings": list,
    "array of objects (free-form keys)": list,
    "list of team IDs with corresponding access levels for private projects": list,
    "object (free-form keys)": dict,
    "User object": dict,
}

# Bulk invites have rows instead.
WITH_A_BODY = [item for item in EXPECTED if item.hook_method and item.body and item.operation != "CreateInvites"]


@pytest.fixture
def use_key(sandbox: SandboxServer, connect: Callable[..., None]) -> Callable[[set[str]], None]:
    """Return a function that issues a key with given scopes and sets it in the connection."""

    def issue(scopes: set[str]) -> None:
        sandbox.add_key("sandbox-contract", "contract", sorted(scopes))
        connect(key="sandbox-contract")

    return issue


@pytest.mark.parametrize("expected", EXPECTED, ids=BY_NAME)
def test_both_clients_match_the_reference(
    expected: Expected, call: Call, use_key: Callable[[set[str]], None], sandbox: SandboxServer
) -> None:
    scope = route_of(expected).scope
    assert scope == expected.scope, (
        f"{expected.operation}: its ApiRoute in sandbox/routes/ asks for the scope {scope}, not {expected.scope}"
    )
    use_key(ALSO_NEEDED.get(expected.operation, set()) | ({expected.scope} if expected.scope else set()))
    if expected.status == 405:
        with pytest.raises(WorkspaceMethodNotAllowedError, match="use delete_dashboard"):
            send_by(call, expected, arguments(expected))
        result = None
    else:
        result = send_by(call, expected, arguments(expected))

    name = expected.operation
    path = path_of(expected)
    sent = next((entry for entry in sandbox.requests() if entry["path"] == path), None)
    assert sent, f"{name}: nothing was sent to {path}, which is its path in the reference"
    assert sent["method"] == expected.method, f"{name}: the method of its @endpoint is not that of the reference"
    assert sent["status"] == expected.status, (
        f"{name}: the sandbox answers {sent['status']} where the reference has {expected.status}: "
        "correct its ApiRoute in sandbox/routes/"
    )
    assert sent["key_name"] == "contract"
    query = {name for name, _ in sent["query"]}
    assert query == set(expected.query), f"{name}: sends the query {sorted(query)}, not that of the reference"
    assert sent["body"] == body_of(expected), f"{name}: the body that was sent is not that of EXAMPLE_BODY"
    assert sent["content_type"] == (None if sent["body"] is None else "application/json")
    check_result(expected, result)


@pytest.mark.parametrize("expected", [item for item in EXPECTED if item.scope], ids=lambda item: item.operation)
def test_an_operation_needs_exactly_its_scope(
    expected: Expected, call: Call, use_key: Callable[[set[str]], None], sandbox: SandboxServer
) -> None:
    route_of(expected)  # without one, the sandbox returns 404
    use_key(set(SCOPES) - {str(expected.scope)})
    with pytest.raises(WorkspaceError) as refused:
        send_by(call, expected, arguments(expected))
    assert f"the scope {expected.scope}" in str(refused.value), (
        f"{expected.operation}: the scope of its @endpoint is not that of the reference, {expected.scope}"
    )
    assert sandbox.effects() == []


@pytest.mark.parametrize(
    "expected", [item for item in EXPECTED if item.answer == "page"], ids=lambda item: item.operation
)
def test_a_list_is_read_page_by_page(
    expected: Expected, call: Call, connect: Callable[..., None], sandbox: SandboxServer
) -> None:
    sandbox.add_members(5)
    connect(page_size=2)
    rows = send_by(call, expected, arguments(expected))
    offsets = [dict(entry["query"])["offset"] for entry in sandbox.requests() if entry["path"] == path_of(expected)]
    assert rows
    assert offsets == [str(offset) for offset in range(0, len(rows), 2)], (
        f"{expected.operation}: {len(rows)} rows in pages of 2 were read by the offsets {offsets}"
    )


@pytest.mark.parametrize(
    "expected",
    [item for item in WITH_A_BODY if item.operation != "VerifyDomain"],  # the interface does not say what its body does
    ids=lambda item: item.operation,
)
def test_an_operator_sends_every_field(expected: Expected, connect: Callable[..., None]) -> None:
    """The dry run shows the request."""
    connect()
    operator = operator_of(expected)
    taken = inspect.signature(operator).parameters
    body = example_of(expected)
    given = {name: value for name, value in (ids_of(expected) | body).items() if name in taken}
    others = {name: value for name, value in body.items() if name not in taken}
    if others:
        given["body" if "body" in taken else "settings"] = others
    plan = operator(task_id="task", dry_run=True, return_secrets=True, **given).execute({})
    lost = {name for name, value in body.items() if plan["fields"].get(name) != value}
    assert not lost, (
        f"{expected.operation}: {operator.__name__} takes {names(lost)} and does not send it: hand it to the operation "
        "in its procedure()"
    )


def check_result(expected: Expected, result: Any) -> None:
    """Compare names and types in the response."""
    if expected.operation == "CreateInvites":
        assert result.counts["invited"] == 1
    elif expected.answer == "none":
        assert result is None, f"{expected.operation}: is an Operation[None] by the reference, and returned {result!r}"
    elif expected.answer == "object":
        check_resource(expected, result)
        for name in set(expected.body) & set(expected.answer_fields):
            assert getattr(result, name) == example_of(expected)[name], (
                f"{expected.operation}: '{name}' came back as {getattr(result, name)!r}: "
                "its handler in sandbox/routes/ does not store it"
            )
    else:
        assert result, f"{expected.operation}: the seed of the sandbox has no rows for it: see sandbox/seed.py"
        for row in result:
            check_resource(expected, row)


def check_resource(expected: Expected, resource: Resource) -> None:
    name = type(resource).__name__
    fields = list(type(resource).model_fields)
    assert fields == list(expected.answer_fields), (
        f"{expected.operation}: {names(set(fields) ^ set(expected.answer_fields)) or 'the order of fields'} differs "
        f"between {name} in api/models.py and the reference"
    )
    assert not resource.__pydantic_extra__, (
        f"{expected.operation}: the sandbox answers {names(set(resource.__pydantic_extra__))}, "
        "which the reference has not"
    )
    for field, value in resource.to_dict(return_secrets=True).items():
        kind = TYPES.get(expected.answer_fields[field], object)
        assert value is None or isinstance(value, kind), (
            f"{expected.operation}: the sandbox answers {value!r} for '{field}', "
            f"which is of type {expected.answer_fields[field]} in the reference"
        )
        if kind is dict and field in ("user", "created_by") and value:
            assert list(value) == list(USER), (
                f"the fields of User in api/models.py are not those of the reference: {value}"
            )
