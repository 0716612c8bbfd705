"""
The parts of an operation of the reference: class, hook method, operator, sandbox route and request.

A missing part fails the test with a message that names the file it belongs in.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.operations import GROUPS, OPERATIONS
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.sandbox.routes import ROUTES
from airflow_provider_workspace.sandbox.seed import SEED
from tests.contract.reference import EXAMPLE_BODY, EXPECTED, Expected

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.sandbox.request import ApiRoute
    from tests.conftest import Call

BY_NAME = {expected.operation: expected for expected in EXPECTED}
CLASSES = {cls.__name__: cls for cls in OPERATIONS}

# Ids in the seed of the sandbox.
IDS: dict[str, object] = {
    "organization_id": SEED.organization_id,
    "project_id": str(SEED.project_id),
    "dashboard_id": SEED.dashboard_id,
    "batch_export_id": SEED.batch_export_ids[0],
    "domain_id": SEED.domain_id,
    "invite_id": SEED.invite_id,
    "user_uuid": SEED.analyst_uuid,
}
# Only a member can become a collaborator, so this value comes from the seed.
BODIES = EXAMPLE_BODY | {
    "AddDashboardCollaborator": EXAMPLE_BODY["AddDashboardCollaborator"] | {"user_uuid": SEED.member_uuid}
}


def operation_of(expected: Expected) -> type[Operation[Any]]:
    if expected.operation not in CLASSES:
        pytest.fail(f"{expected.operation}: write its class with @endpoint in api/operations/ ({', '.join(GROUPS)})")
    return CLASSES[expected.operation]


def hook_method_of(expected: Expected) -> Callable[..., Any]:
    name = str(expected.hook_method)
    if not hasattr(WorkspaceHook, name):
        pytest.fail(f"{expected.operation}: write {name} in hooks/workspace.py")
    if not hasattr(WorkspaceAsyncHook, name):
        pytest.fail(f"{expected.operation}: make {name} from that of WorkspaceHook in hooks/workspace_async.py")
    method: Callable[..., Any] = getattr(WorkspaceHook, name)
    return method


def send_by(call: Call, item: Expected, given: dict[str, Any]) -> Any:
    """Send an operation by its method of a hook, or by ``send`` if it has none."""
    if item.hook_method is None:
        return call("send", operation_of(item)(**given))
    return call(item.hook_method, **given)


def operator_name(expected: Expected) -> str:
    return f"Workspace{''.join(part.capitalize() for part in str(expected.hook_method).split('_'))}Operator"


def operator_of(expected: Expected) -> type[BaseOperator]:
    name = operator_name(expected)
    for group in GROUPS:
        module: Any = importlib.import_module(f"airflow_provider_workspace.operators.{group}")
        if hasattr(module, name):
            return getattr(module, name)  # type: ignore[no-any-return]
    pytest.fail(f"{expected.operation}: write {name} in operators/ ({', '.join(GROUPS)})")


def route_of(expected: Expected) -> ApiRoute:
    for route in ROUTES:
        if (route.method, without_names(route.path)) == (expected.method, without_names(expected.path)):
            return route
    pytest.fail(
        f"{expected.operation}: the sandbox has no {expected.method} {expected.path}: "
        "write its handler and its ApiRoute in sandbox/routes/"
    )


def without_names(path: str) -> str:
    """Return a path template without its parameter names, which the sandbox abbreviates."""
    return re.sub(r"{\w+}", "{}", path)


def path_of(expected: Expected) -> str:
    """Return the path with ids of the seed."""
    return expected.path.format_map(ids_of(expected))


def ids_of(expected: Expected) -> dict[str, object]:
    missing = set(expected.path_parameters) - set(IDS)
    assert not missing, f"{expected.operation}: give {names(missing)} a value in IDS of tests/contract/parts.py"
    return {name: IDS[name] for name in expected.path_parameters}


def example_of(expected: Expected) -> dict[str, object]:
    """Return every field of the body with a value."""
    example = BODIES.get(expected.operation, {})
    missing = set(expected.body) ^ set(example)
    assert not missing, (
        f"{expected.operation}: {names(missing)} stands only in the body of its row or only in EXAMPLE_BODY "
        "of tests/contract/reference.py: write it into the other, too"
    )
    return example


def body_of(expected: Expected) -> Any:
    """Return the JSON body with every field; None without a body."""
    if expected.method not in ("POST", "PATCH"):
        return None
    example = example_of(expected)
    return [example] if expected.operation == "CreateInvites" else example


def arguments(expected: Expected) -> dict[str, Any]:
    """Return all arguments of the hook method: path parameters, query parameters and body fields."""
    given = ids_of(expected)
    if expected.query:
        given |= {"limit": 2, "offset": 0}
    body = example_of(expected)
    return given | ({"invites": [body]} if expected.operation == "CreateInvites" else body)


def names(found: set[str]) -> str:
    """Join names for a message."""
    return ", ".join(f"'{name}'" for name in sorted(found))
