"""The complete messages of common mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

Connect = Callable[..., None]

UNKNOWN_ID = "0190c0de-0000-4000-8000-00000000dead"
EXPORT = SEED.batch_export_ids[0]
EXPORTS = f"/api/organizations/{SEED.organization_id}/batch_exports"


def message_of(method: str, **arguments: Any) -> str:
    hook = WorkspaceHook()
    try:
        with pytest.raises(WorkspaceError) as error:
            getattr(hook, method)(**arguments)
    finally:
        hook.close()
    return str(error.value)


def test_message_for_a_wrong_key(connect: Connect) -> None:
    connect(key="no-such-key")
    assert message_of("get_dashboard", dashboard_id=1) == (
        "The API key in the password of connection 'workspace_default' is missing, wrong or revoked. Replace it. "
        "GetDashboard returned 401: API key in the Authorization header is invalid "
        "(GET /api/environments/1/dashboards/1/)."
    )


def test_message_for_a_missing_scope(connect: Connect) -> None:
    connect(key=SEED.reader_key)
    assert message_of("pause_batch_export", batch_export_id=EXPORT) == (
        "Give the API key of connection 'workspace_default' the scope batch_export:write, or check the access level of "
        "its owner. PauseBatchExport returned 403: API key missing required scope 'batch_export:write' "
        f"(POST {EXPORTS}/{EXPORT}/pause/)."
    )


def test_message_for_an_unknown_id(connect: Connect) -> None:
    connect()
    assert message_of("unpause_batch_export", batch_export_id=UNKNOWN_ID) == (
        "Check the ids: the resource does not exist, or the API key of connection 'workspace_default' may not see it. "
        f"UnpauseBatchExport returned 404: Not found (POST {EXPORTS}/{UNKNOWN_ID}/unpause/)."
    )


def test_message_for_an_invalid_id(connect: Connect) -> None:
    connect()
    assert message_of("pause_batch_export", batch_export_id="warehouse") == (
        "PauseBatchExport: field 'batch_export_id': expected a UUID, not 'warehouse'. Nothing was sent."
    )


def test_message_for_a_misspelt_field(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    assert message_of("create_dashboard", nmae="Sales") == (
        "CreateDashboard: unknown field 'nmae' (did you mean 'name'?). Nothing was sent."
    )
    assert sandbox.requests() == []


def test_message_for_a_field_of_the_wrong_type(connect: Connect) -> None:
    connect()
    assert message_of("pause_batch_export", batch_export_id=EXPORT, model="sessions") == (
        "PauseBatchExport: field 'model': Input should be 'events' or 'persons'. Nothing was sent."
    )


def test_message_for_a_400(connect: Connect) -> None:
    connect()
    assert message_of("add_dashboard_collaborator", dashboard_id=1, user_uuid=UNKNOWN_ID) == (
        "Correct the request; a retry fails the same way. "
        "AddDashboardCollaborator returned 400 (field 'user_uuid'): User does not exist "
        "(POST /api/environments/1/dashboards/1/collaborators/)."
    )


def test_message_for_a_bad_row(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    rows = [
        {"email": "ok@example.org", "level": "1"},
        {"email": "mara@example", "level": "1"},
        {"email": "", "level": "1"},
        {"email": "ivo@example.org", "level": "boss"},
        {"email": "noa@example.org", "levle": "1"},
    ]
    assert message_of("create_invites", invites=rows) == (
        "Correct the invalid rows (4), or leave them out with on_invalid='skip': "
        "row 2 (mara@example): 'example' is not a domain; "
        "row 3 (no address): field 'target_email' is required; row 4 (ivo@example.org): field 'level': expected "
        "a whole number, or member (1) or admin (8) or owner (15); row 5 (noa@example.org): unknown field 'levle' "
        "(did you mean 'level'?). Nothing was sent."
    )
    assert sandbox.requests() == []


def test_message_for_an_invalid_schema(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connect()
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", "workspace://:key@workspace.example.com/api?organization_id=1")
    assert message_of("get_dashboard", dashboard_id=1) == (
        "The schema of connection 'workspace_default' must be https or http, as the host has it, or be left out. As a "
        "URI: workspace://:<key>@workspace.example.com:443/https?organization_id=<id>"
    )


def test_message_for_plain_http_to_another_machine(connect: Connect) -> None:
    connect(host="http://workspace.example.com")
    assert message_of("get_dashboard", dashboard_id=1) == (
        'Use https://, or set "allow_http": true in the extra if the network between is trusted: the host of '
        "connection 'workspace_default' is plain http://, which would send the API key unencrypted to "
        "workspace.example.com."
    )


def test_message_for_an_unknown_extra(connect: Connect) -> None:
    connect(orgnization_id="x")
    assert message_of("get_dashboard", dashboard_id=1) == (
        "The extra of connection 'workspace_default' has an unknown key 'orgnization_id': did you mean "
        "'organization_id'? Known are organization_id, project_id, connect_timeout, read_timeout, total_timeout, "
        "max_response_bytes, consistency_time, trust_counts, max_attempts, max_retry_wait, page_size, max_concurrency, "
        "invites_per_hour, invites_per_day, bulk_invite_limit, bulk_invite_body, "
        "verify, proxy, web_url, allow_http."
    )


def test_message_for_an_unreachable_service(connect: Connect) -> None:
    connect(host="http://127.0.0.1:9", max_attempts=1)
    message = message_of("get_dashboard", dashboard_id=1)
    assert message.startswith(
        "Check the host, port and proxy of connection 'workspace_default'. "
        "GetDashboard was not sent: ConnectionRefusedError: "
    )
    assert message.endswith(" (GET /api/environments/1/dashboards/1/).")


def test_message_for_a_host_of_another_service(connect: Connect, sandbox: SandboxServer) -> None:
    connect(host=f"{sandbox.url}/elsewhere")
    assert " GetDashboard returned 404: " in message_of("get_dashboard", dashboard_id=1)
