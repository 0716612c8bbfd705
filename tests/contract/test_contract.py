"""
Each operation of the interface, over HTTP, by both clients, against the reference that was written down separately.

The sandbox in profile ``strict`` refuses every field and parameter that the interface does not name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.operations import OPERATIONS, HardDeleteDashboard
from airflow_provider_workspace.errors import WorkspaceMethodNotAllowedError, WorkspacePermissionError
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.procedures.bulk_invites import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.sandbox.seed import SEED
from tests.contract.reference import EXAMPLE_BODY, EXPECTED, Expected

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Resource
    from airflow_provider_workspace.sandbox.server import SandboxServer

SCOPES = frozenset(expected.scope for expected in EXPECTED if expected.scope)
BY_NAME = {expected.operation: expected for expected in EXPECTED}

# Where the seed of the sandbox has something to act upon.
IDS: dict[str, object] = {
    "organization_id": SEED.organization_id,
    "project_id": str(SEED.project_id),
    "dashboard_id": SEED.dashboard_id,
    "batch_export_id": SEED.batch_export_ids[0],
    "domain_id": SEED.domain_id,
    "invite_id": SEED.invite_id,
    "user_uuid": SEED.analyst_uuid,
}
# Only a member can become a collaborator, so this one value of the examples is taken from the seed, too.
BODIES = EXAMPLE_BODY | {
    "AddDashboardCollaborator": EXAMPLE_BODY["AddDashboardCollaborator"] | {"user_uuid": SEED.member_uuid}
}
# Looking up who is invited already is part of inviting many.
ALSO_NEEDED = {"CreateInvites": {"organization_member:read"}}

# Type word of the interface -> type of what JSON holds; words that leave the type open are not in here.
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

Ask = Callable[[Expected], Any]


def arguments(expected: Expected) -> dict[str, Any]:
    """What the hook's method is given: every path parameter, every query parameter, every field of the body."""
    given = {name: IDS[name] for name in expected.path_parameters}
    if expected.query:
        given |= {"limit": 2, "offset": 0}
    body = BODIES[expected.operation]
    return given | ({"invites": [body]} if expected.operation == "CreateInvites" else body)


def ask_by_requests(expected: Expected) -> Any:
    hook = WorkspaceHook()
    try:
        if expected.hook_method is None:
            return hook.send(HardDeleteDashboard(**arguments(expected)))
        answer = getattr(hook, expected.hook_method)(**arguments(expected))
        return list(answer) if isinstance(answer, Iterator) else answer
    finally:
        hook.close()


def ask_by_httpx(expected: Expected) -> Any:
    async def ask() -> Any:
        async with WorkspaceAsyncHook() as hook:
            if expected.hook_method is None:
                return await hook.send(HardDeleteDashboard(**arguments(expected)))
            answer = getattr(hook, expected.hook_method)(**arguments(expected))
            return [row async for row in answer] if isinstance(answer, AsyncIterator) else await answer

    return asyncio.run(ask())


@pytest.fixture(params=[ask_by_requests, ask_by_httpx], ids=["requests", "httpx"])
def ask(request: pytest.FixtureRequest) -> Ask:
    asker: Ask = request.param
    return asker


@pytest.fixture
def use_key(sandbox: SandboxServer, connect: Callable[..., None]) -> Callable[[set[str]], None]:
    """Issue a key with these scopes and put it into the connection."""

    def issue(scopes: set[str]) -> None:
        sandbox.add_key("sandbox-contract", "contract", sorted(scopes))
        connect(key="sandbox-contract")

    return issue


def test_the_table_has_the_operations_of_the_reference() -> None:
    assert [operation.__name__ for operation in OPERATIONS] == [expected.operation for expected in EXPECTED]
    assert len(EXPECTED) == 27


@pytest.mark.parametrize("expected", EXPECTED, ids=BY_NAME)
def test_both_clients_send_and_read_what_the_reference_says(
    expected: Expected, ask: Ask, use_key: Callable[[set[str]], None], sandbox: SandboxServer
) -> None:
    use_key(ALSO_NEEDED.get(expected.operation, set()) | ({expected.scope} if expected.scope else set()))
    if expected.status == 405:
        with pytest.raises(WorkspaceMethodNotAllowedError, match="use delete_dashboard"):
            ask(expected)
        result = None
    else:
        result = ask(expected)

    path = expected.path.format_map(IDS)
    sent = next(entry for entry in sandbox.requests() if entry["path"] == path)
    assert sent["method"] == expected.method
    assert sent["status"] == expected.status
    assert sent["key_name"] == "contract"
    assert sorted(name for name, _ in sent["query"]) == sorted(expected.query)
    body = BODIES[expected.operation]
    assert set(body) == set(expected.body)
    if expected.method in ("POST", "PATCH"):
        assert sent["body"] == ([body] if expected.operation == "CreateInvites" else body)
        assert sent["content_type"] == "application/json"
    else:
        assert (sent["body"], sent["content_type"]) == (None, None)
    check_result(expected, result)


@pytest.mark.parametrize("expected", [item for item in EXPECTED if item.scope], ids=lambda item: item.operation)
def test_an_operation_needs_exactly_its_scope(
    expected: Expected, ask: Ask, use_key: Callable[[set[str]], None], sandbox: SandboxServer
) -> None:
    use_key(set(SCOPES) - {str(expected.scope)})
    with pytest.raises((WorkspacePermissionError, WorkspaceInvitesIncompleteError)) as refused:
        ask(expected)
    assert f"the scope {expected.scope}" in str(refused.value)
    assert sandbox.effects() == []


@pytest.mark.parametrize(
    "expected", [item for item in EXPECTED if item.answer == "page"], ids=lambda item: item.operation
)
def test_a_list_is_read_page_by_page(
    expected: Expected, ask: Ask, connect: Callable[..., None], sandbox: SandboxServer
) -> None:
    sandbox.add_members(5)
    connect(page_size=2)
    ask(expected)
    path = expected.path.format_map(IDS)
    offsets = [dict(entry["query"])["offset"] for entry in sandbox.requests() if entry["path"] == path]
    total = {"ListMembers": 10, "ListInvites": 2}.get(expected.operation, 1)
    assert offsets == [str(offset) for offset in range(0, total, 2)]


def check_result(expected: Expected, result: Any) -> None:
    """Compare names and types of what came back."""
    if isinstance(result, InvitesReport):
        assert result.counts["invited"] == 1
    elif expected.answer == "none":
        assert result is None
    elif expected.answer == "object":
        check_resource(expected, result)
        for name in set(expected.body) & set(expected.answer_fields):
            assert getattr(result, name) == BODIES[expected.operation][name], name
    else:
        assert result
        for row in result:
            check_resource(expected, row)


def check_resource(expected: Expected, resource: Resource) -> None:
    assert list(type(resource).model_fields) == list(expected.answer_fields)
    assert not resource.__pydantic_extra__
    for name, value in resource.to_dict(return_secrets=True).items():
        kind = TYPES.get(expected.answer_fields[name], object)
        assert value is None or isinstance(value, kind), (name, value)
