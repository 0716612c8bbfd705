"""The "Test" button of the connection form reports the scopes and only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from tests.raw_server import RawServer, Scene, answer

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect


def test_connection_test_reports_confirmed_scopes(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    works, message = WorkspaceHook().test_connection()
    assert works
    assert f"The service at {sandbox.url} accepts the API key" in message
    assert "Scopes confirmed by reading: project:read, organization:read, organization_member:read." in message
    assert sandbox.effects() == []
    assert {request["method"] for request in sandbox.requests()} == {"GET"}

    sandbox.add_key("some-scopes", "some", ["project:read"], organization_id=sandbox.seed.organization_id)
    connect("some-scopes")
    works, message = WorkspaceHook().test_connection()
    assert works
    assert "Scopes that are missing: organization:read, organization_member:read." in message


def test_connection_test_names_moved_and_deprecated_operations(connect: Connect) -> None:
    path = "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause"
    row = {"id": 1, "name": "Sales", "domain": "example.com", "level": 8}
    lists = answer(200, {"results": [row]}, Sunset="Sun, 31 Jan 2027 10:00:00 GMT")
    with RawServer(lists, lists, lists, lists, answer(200, row)) as server:
        connect(host=server.url, paths={"PauseBatchExport": path}, project_id="1")
        works, message = WorkspaceHook().test_connection()
    assert works, message
    assert f"Path of PauseBatchExport: {path} (set in the extra)." in message
    assert "ListMembers is deprecated and ends on 2027-01-31." in message


@pytest.mark.parametrize(
    ("key", "extra", "says"),
    [
        ("no-such-key", {}, "The service refuses the API key."),
        ("sandbox-admin", {"organization_id": None}, "Put organization_id into the extra"),
        ("sandbox-admin", {"organization_id": "0190c0de-0000-4000-8000-0000000000ff"}, "but not these ids."),
        ("sandbox-admin", {"project_id": 999}, "The service accepts the API key, but not these ids."),
        ("sandbox-admin", {"page_sise": 1}, "did you mean 'page_size'?"),
        ("sandbox-admin", {"host": "http://127.0.0.1:9", "max_attempts": 1}, "was not sent"),
        ("sandbox-no-scopes", {}, "Nothing of its organization can be read"),
    ],
)
def test_connection_test_reports_errors(connect: Connect, key: str, extra: dict[str, Any], says: str) -> None:
    connect(key, **extra)
    works, message = WorkspaceHook().test_connection()
    assert not works
    assert says in message
    assert "sandbox-admin" not in message
    assert "workspace_default" not in message  # in the form it is an id of Airflow's


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (
            answer(403, {"detail": "You don't have access to the organization."}),
            "the owner of the API key of this connection has no access to this organization",
        ),
        (answer(403, b"<html>Forbidden"), "This may be the answer of a proxy"),
        (answer(404, b"<html>Not Found"), "this does not look like an answer of the workspace service"),
        (answer(200, b"<html>"), "ListProjects returned 200 with an HTML or XML page"),
        (answer(200, [{"id": 1, "title": "x"}]), "ListProjects returned a row with ['id', 'title']."),
        (answer(200, {"results": []}), "Another service responds at this host: ListMembers returned nobody."),
    ],
)
@pytest.mark.usefixtures("no_waits")
def test_connection_test_says_what_came(connect: Connect, response: Scene, says: str) -> None:
    with RawServer(response) as server:
        connect(host=server.url)
        works, message = WorkspaceHook().test_connection()
    assert not works
    assert says in message
    assert "Scopes that are missing" not in message
    assert ("accepts the API key" in message) is ("no access to this organization" in says)
