"""The complete messages of common mistakes: the cure first, then what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

UNKNOWN_ID = "0190c0de-0000-4000-8000-00000000dead"
EXPORT = SEED.batch_export_ids[0]
EXPORTS = f"/api/organizations/{SEED.organization_id}/batch_exports"
ROWS = [
    {"email": "ok@example.org", "level": "1"},
    {"email": "mara@example", "level": "1"},
    {"email": "", "level": "1"},
    {"email": "ivo@example.org", "level": "boss"},
    {"email": "noa@example.org", "levle": "1"},
]
# Mistake: key, method, arguments, message. What ends in "Nothing was sent." sends nothing.
MESSAGES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "wrong key": (
        "no-such-key",
        "get_dashboard",
        {"dashboard_id": 1},
        (
            "The API key in the password of connection 'workspace_default' is missing, wrong or revoked. Replace it. "
            "GetDashboard returned 401: API key in the Authorization header is invalid "
            "(GET /api/environments/1/dashboards/1/)."
        ),
    ),
    "missing scope": (
        SEED.reader_key,
        "pause_batch_export",
        {"batch_export_id": EXPORT},
        (
            "Give the API key of connection 'workspace_default' the scope batch_export:write, or check the access "
            "level of its owner. PauseBatchExport returned 403: API key missing required scope 'batch_export:write' "
            f"(POST {EXPORTS}/{EXPORT}/pause/)."
        ),
    ),
    "unknown id": (
        SEED.admin_key,
        "unpause_batch_export",
        {"batch_export_id": UNKNOWN_ID},
        (
            "Check the ids: the resource does not exist, or the API key of connection 'workspace_default' may not see "
            f"it. UnpauseBatchExport returned 404: Not found (POST {EXPORTS}/{UNKNOWN_ID}/unpause/)."
        ),
    ),
    "invalid id": (
        SEED.admin_key,
        "pause_batch_export",
        {"batch_export_id": "warehouse"},
        "PauseBatchExport: field 'batch_export_id': expected a UUID, not 'warehouse'. Nothing was sent.",
    ),
    "misspelt field": (
        SEED.admin_key,
        "create_dashboard",
        {"nmae": "Sales"},
        "CreateDashboard: unknown field 'nmae' (did you mean 'name'?). Nothing was sent.",
    ),
    "wrong value": (
        SEED.admin_key,
        "pause_batch_export",
        {"batch_export_id": EXPORT, "model": "sessions"},
        "PauseBatchExport: field 'model': Input should be 'events' or 'persons'. Nothing was sent.",
    ),
    "400": (
        SEED.admin_key,
        "add_dashboard_collaborator",
        {"dashboard_id": 1, "user_uuid": UNKNOWN_ID},
        (
            "Correct the request; a retry fails the same way. "
            "AddDashboardCollaborator returned 400 (field 'user_uuid'): User does not exist "
            "(POST /api/environments/1/dashboards/1/collaborators/)."
        ),
    ),
    "bad rows": (
        SEED.admin_key,
        "create_invites",
        {"invites": ROWS},
        (
            "Correct the invalid rows (4), or leave them out with on_invalid='skip': "
            "row 2 (mara@example): 'example' is not a domain; "
            "row 3 (no address): field 'target_email' is required; row 4 (ivo@example.org): field 'level': expected "
            "a whole number, or member (1) or admin (8) or owner (15); row 5 (noa@example.org): unknown field 'levle' "
            "(did you mean 'level'?). Nothing was sent."
        ),
    ),
}


@pytest.mark.parametrize("mistake", MESSAGES)
def test_the_message_of_a_mistake(mistake: str, connect: Connect, sandbox: SandboxServer) -> None:
    key, method, arguments, message = MESSAGES[mistake]
    connect(key=key)
    with WorkspaceHook() as hook, pytest.raises(WorkspaceError) as error:
        getattr(hook, method)(**arguments)
    assert str(error.value) == message
    assert bool(sandbox.requests()) is not message.endswith("Nothing was sent.")


def test_message_for_an_unreachable_service(connect: Connect) -> None:
    connect(host="http://127.0.0.1:9", max_attempts=1)
    with WorkspaceHook() as hook, pytest.raises(WorkspaceError) as error:
        hook.get_dashboard(dashboard_id=1)
    assert str(error.value).startswith(
        "Check the host, port and proxy of connection 'workspace_default'. "
        "GetDashboard was not sent: ConnectionRefusedError: "
    )
    assert str(error.value).endswith(" (GET /api/environments/1/dashboards/1/).")
