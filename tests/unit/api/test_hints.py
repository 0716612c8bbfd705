"""The hint of each refusal. Refusals with the same status differ only in their text."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.api.operations import (
    AddDashboardCollaborator,
    CreateProject,
    GetDashboardAccessControls,
    RemoveDashboardCollaborator,
    UnpauseBatchExport,
    UpdateDashboard,
    UpdateMember,
    VerifyDomain,
)
from airflow_provider_workspace.api.request_errors import HINTS, RequestContext, status_error

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

ID = "0190c0de-0000-4000-8000-0000000000e1"
ADD = AddDashboardCollaborator(project_id="1", dashboard_id=1, user_uuid=ID)
REMOVE = RemoveDashboardCollaborator(project_id="1", dashboard_id=1, user_uuid=ID)
UPDATE = UpdateDashboard(project_id="1", dashboard_id=1, name="Sales")
PROJECT = CreateProject(organization_id="o", name="Northwind")
MEMBER = UpdateMember(organization_id="o", user_uuid=ID, level=15)
VERIFY = VerifyDomain(organization_id="o", domain_id=ID)
UNPAUSE = UnpauseBatchExport(organization_id="o", batch_export_id=ID)
ACCESS = GetDashboardAccessControls(project_id="1", dashboard_id=1)

CASES: list[tuple[Operation[Any], int, str | dict[str, Any], str]] = [
    # Fields and states of a dashboard
    (ADD, 400, {"attr": "level", "detail": "This field is required."}, "Pass level=37"),
    (ADD, 400, {"level": ["This field is required."]}, "Pass level=37"),
    (
        ADD,
        400,
        "Cannot change collaborators of a dashboard on the lowest restriction level.",
        "Set restriction_level=37",
    ),
    (
        REMOVE,
        400,
        "Cannot remove collaborators from a dashboard on the lowest restriction level.",
        "Set restriction_level",
    ),
    (UPDATE, 400, {"attr": "restriction_level", "detail": "Not a valid choice."}, "Correct the request"),
    (UPDATE, 403, "You don't have edit permissions for this dashboard.", "Make the owner of the API key of conn"),
    (ADD, 403, "Only people with edit access may add collaborators.", "Make the owner of the API key of conn"),
    # Permissions of a key
    (
        PROJECT,
        403,
        "API key missing required scope 'project:write'",
        "Give the API key of conn the scope project:write",
    ),
    (VERIFY, 403, "API key missing required scope.", "Give the API key of conn the scope that it lacks"),
    (PROJECT, 403, "", "Give the API key of conn the scope project:write"),
    (VERIFY, 403, "This action does not support Personal API Key access", "Use a key of another kind"),
    (ACCESS, 403, "This action does not support API keys with scopes.", "Use a key of another kind"),
    (
        PROJECT,
        403,
        "API key does not have access to the requested organization: ID o.",
        "Use an API key that is not limited",
    ),
    (UPDATE, 403, "API key does not have access to the requested project: ID 1.", "Use an API key that is not limited"),
    (
        PROJECT,
        403,
        "API keys with scoped projects are only supported on project-based endpoints.",
        "Use an API key that",
    ),
    (MEMBER, 403, "You don't have access to the organization.", "Check organization_id"),
    (MEMBER, 403, "You are not a member of the organization.", "Check organization_id"),
    (PROJECT, 403, "You must upgrade your plan to create more projects.", "Upgrade the plan"),
    (PROJECT, 403, "You have reached the maximum limit of allowed projects.", "Upgrade the plan"),
    (VERIFY, 403, "This feature is part of the premium offering.", "Enable the feature"),
    (MEMBER, 403, "You can't change your own access level.", "Ask another user to do this"),
    (MEMBER, 403, "You can only act on levels up to your own.", "Use the API key of somebody with a higher"),
    (PROJECT, 403, "Your organization access level is insufficient.", "Use the API key of somebody with a higher"),
    (PROJECT, 403, "You shall not pass.", "The owner of the API key of conn is not allowed to do this"),
    # A valid key
    (
        UNPAUSE,
        401,
        "Authentication credentials were not provided.",
        "Check the API key in the password of conn. If it is r",
    ),
    (PROJECT, 401, "Invalid API key.", "The API key in the password of conn is missing, wrong or revoked"),
    (MEMBER, 404, "Not found.", "Check the ids"),
    # A proxy in between
    (PROJECT, 407, "", "Put the user and password of the proxy into 'proxy' in the extra of conn"),
]


def hint_for(op: Operation[Any], status: int, said: str | dict[str, Any]) -> str:
    body = {"detail": said} if isinstance(said, str) else said
    response = Response(status, {}, json.dumps(body).encode() if said else b"")
    message = str(status_error(op, response, RequestContext("conn"), datetime(2026, 1, 1, tzinfo=timezone.utc)))
    return message.partition(f" {type(op).__name__} (")[0]


@pytest.mark.parametrize(("op", "status", "said", "hint"), CASES, ids=lambda value: str(value)[:60])
def test_each_refusal_has_its_hint(op: Operation[Any], status: int, said: str | dict[str, Any], hint: str) -> None:
    assert hint_for(op, status, said).startswith(hint)


def test_every_hint_is_reached() -> None:
    """No row of the table is shadowed by an earlier one."""
    unpause_400 = hint_for(UNPAUSE, 400, {"attr": "name", "detail": "Too long."})
    told = unpause_400 + "".join(hint_for(op, status, said) for op, status, said, _ in CASES)
    missing = [hint.cure for hint in HINTS if hint.cure.partition("{")[0] not in told]
    assert not missing
