"""
Keys, scopes and foreign organizations, over the whole table of operations.

What the profiles answer differently is asked of each of them, the rest of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

ORGANIZATION = f"/api/organizations/{SEED.organization_id}/"
DASHBOARDS = f"/api/environments/{SEED.project_id}/dashboards/"
DASHBOARD = f"{DASHBOARDS}{SEED.dashboard_id}/"
EXPORT = f"{ORGANIZATION}batch_exports/{SEED.batch_export_ids[0]}/"
DOMAIN = f"{ORGANIZATION}domains/{SEED.domain_id}/"
INVITE = {"target_email": "new.person@example.com"}

# method, path, body, scope, status when granted: the interface's table of operations, copied by hand.
OPERATIONS = [
    ("POST", DASHBOARDS, {"name": "New"}, "dashboard:write", 201),
    ("GET", DASHBOARD, None, "dashboard:read", 200),
    ("PATCH", DASHBOARD, {"name": "Renamed"}, "dashboard:write", 200),
    ("DELETE", DASHBOARD, None, "dashboard:write", 405),
    ("GET", DASHBOARD + "access_controls/", None, None, 200),
    ("GET", DASHBOARD + "collaborators/", None, "dashboard:read", 200),
    ("POST", DASHBOARD + "collaborators/", {"user_uuid": SEED.member_uuid, "level": 37}, "dashboard:write", 201),
    ("DELETE", f"{DASHBOARD}collaborators/{SEED.analyst_uuid}/", None, "dashboard:write", 204),
    ("GET", DASHBOARD + "sharing/", None, "sharing_configuration:read", 200),
    ("POST", EXPORT + "pause/", None, "batch_export:write", 200),
    ("POST", EXPORT + "unpause/", None, "batch_export:write", 200),
    ("GET", ORGANIZATION + "domains/", None, "organization:read", 200),
    ("POST", ORGANIZATION + "domains/", {"domain": "acme.example.org"}, "organization:write", 201),
    ("GET", DOMAIN, None, "organization:read", 200),
    ("PATCH", DOMAIN, {"sso_enforcement": "saml"}, "organization:write", 200),
    ("DELETE", DOMAIN, None, "organization:write", 204),
    ("POST", DOMAIN + "verify/", None, None, 200),
    ("GET", ORGANIZATION + "invites/", None, "organization_member:read", 200),
    ("POST", ORGANIZATION + "invites/", INVITE, "organization_member:write", 201),
    ("DELETE", f"{ORGANIZATION}invites/{SEED.invite_id}/", None, "organization_member:write", 204),
    ("POST", ORGANIZATION + "invites/bulk/", [INVITE], "organization_member:write", 200),
    ("GET", ORGANIZATION + "members/", None, "organization_member:read", 200),
    ("PATCH", f"{ORGANIZATION}members/{SEED.member_uuid}/", {"level": 8}, "organization_member:write", 200),
    ("DELETE", f"{ORGANIZATION}members/{SEED.member_uuid}/", None, "organization_member:write", 204),
    ("GET", ORGANIZATION + "projects/", None, "project:read", 200),
    ("POST", ORGANIZATION + "projects/", {"name": "New"}, "project:write", 201),
    ("GET", f"{ORGANIZATION}projects/{SEED.project_id}/", None, "project:read", 200),
]
operations = pytest.mark.parametrize(
    ("method", "path", "body", "scope", "status"), OPERATIONS, ids=[f"{row[0]} {row[1][5:]}" for row in OPERATIONS]
)

one_profile = pytest.mark.parametrize("sandbox", ["strict"], indirect=True)


def send(api: httpx.Client, method: str, path: str, body: object) -> httpx.Response:
    return api.request(method, path) if body is None else api.request(method, path, json=body)


def live_status(path: str, status: int) -> int:
    if path.endswith("bulk/"):
        return 201
    return 400 if path.endswith("verify/") else status  # the seeded domain is verified already


def test_the_table_has_all_operations_of_the_interface() -> None:
    assert len(OPERATIONS) == 27


@operations
def test_the_exact_scope_is_enough(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client], profile: str,
    method: str, path: str, body: object, scope: str | None, status: int,
) -> None:  # fmt: skip
    sandbox.add_key("only-this", "only this", [scope] if scope else ["*"])
    response = send(client_for("only-this"), method, path, body)
    assert response.status_code == (live_status(path, status) if profile == "live" else status)
    if status in {204, 405}:
        assert response.content == b""
    logged = sandbox.requests()[-1]
    assert (logged["key_name"], logged["scope"]) == ("only this", scope)
    assert (logged["path"], logged["body"], logged["status"]) == (path, body, response.status_code)


@operations
def test_other_scopes_are_not(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client], profile: str,
    method: str, path: str, body: object, scope: str | None, status: int,
) -> None:  # fmt: skip
    scopes = {row[3] for row in OPERATIONS if row[3]}
    writes = scope.replace(":read", ":write") if scope else None
    sandbox.add_key("all-but-this", "all but this", sorted(scopes - {scope, writes}))
    response = send(client_for("all-but-this"), method, path, body)
    if scope is None and profile != "live":
        assert response.status_code == status
        return
    assert response.status_code == 403
    assert set(response.json()) == {"type", "code", "detail", "attr"}
    if scope:
        assert response.json()["detail"] == f"API key missing required scope '{scope}'"
    assert sandbox.effects() == []


@one_profile
@operations
def test_every_operation_needs_a_key(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client],
    method: str, path: str, body: object, scope: str | None, status: int,
) -> None:  # fmt: skip
    del scope, status
    response = send(client_for("unheard-of"), method, path, body)
    assert response.status_code == 401
    assert response.json()["code"] == "authentication_failed"
    assert sandbox.requests()[-1]["key_name"] is None


@operations
def test_a_foreign_organization_is_out_of_reach(
    client_for: Callable[[str], httpx.Client], profile: str,
    method: str, path: str, body: object, scope: str | None, status: int,
) -> None:  # fmt: skip
    del scope
    response = send(client_for(SEED.research_key), method, path, body)
    if status == 405:
        assert response.status_code == 405
    else:
        assert response.status_code == (403 if profile == "live" else 404)


@one_profile
@operations
def test_a_path_needs_its_final_slash(
    api: httpx.Client, method: str, path: str, body: object, scope: str | None, status: int
) -> None:
    del scope, status
    response = send(api, method, path.removesuffix("/"), body)
    assert response.status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", DASHBOARDS + "999/"),
        ("GET", DASHBOARDS + "word/"),
        ("GET", DASHBOARDS + "9999999999999999999999/"),
        ("PATCH", DASHBOARDS + "999/"),
        ("GET", DASHBOARDS + "999/access_controls/"),
        ("GET", DASHBOARDS + "999/collaborators/"),
        ("POST", DASHBOARDS + "999/collaborators/"),
        ("DELETE", f"{DASHBOARD}collaborators/{SEED.member_uuid}/"),
        ("GET", DASHBOARDS + "999/sharing/"),
        ("GET", "/api/environments/999/dashboards/1/"),
        ("GET", "/api/environments/word/dashboards/1/"),
        ("GET", f"/api/environments/{SEED.project_id}/dashboards/"),
        ("POST", f"{ORGANIZATION}batch_exports/{SEED.other_batch_export_ids[0]}/pause/"),
        ("POST", f"{ORGANIZATION}batch_exports/not-a-uuid/unpause/"),
        ("GET", f"{ORGANIZATION}domains/{SEED.invite_id}/"),
        ("PATCH", f"{ORGANIZATION}domains/{SEED.invite_id}/"),
        ("DELETE", f"{ORGANIZATION}domains/not-a-uuid/"),
        ("POST", f"{ORGANIZATION}domains/{SEED.invite_id}/verify/"),
        ("DELETE", f"{ORGANIZATION}invites/{SEED.domain_id}/"),
        ("PATCH", f"{ORGANIZATION}members/{SEED.research_uuid}/"),
        ("DELETE", f"{ORGANIZATION}members/not-a-uuid/"),
        ("GET", f"{ORGANIZATION}projects/{SEED.other_project_id}/"),
        ("GET", "/api/organizations/0190c0de-0000-4000-8000-0000000000ff/members/"),
        ("GET", "/api/nothing/like/this/"),
    ],
)
def test_what_does_not_exist_answers_404(api: httpx.Client, sandbox: SandboxServer, method: str, path: str) -> None:
    response = api.request(method, path)
    # The path of the dashboards exists, but the interface has no list of them.
    assert response.status_code == (405 if path == DASHBOARDS else 404)
    assert response.json()["attr"] is None
    assert sandbox.effects() == []


@one_profile
@pytest.mark.parametrize("header", ["", "Bearer", "Basic c2FuZGJveDphZG1pbg==", SEED.admin_key])
def test_a_key_comes_as_bearer(api: httpx.Client, header: str) -> None:
    response = api.get(DASHBOARD, headers={"Authorization": header})
    assert response.status_code == 401
    assert response.json()["code"] == "not_authenticated"


def test_a_revoked_key_is_no_key(api: httpx.Client, sandbox: SandboxServer) -> None:
    assert api.get(DASHBOARD).status_code == 200
    sandbox.revoke_key(SEED.admin_key)
    assert api.get(DASHBOARD).status_code == 401


def test_write_includes_read_but_not_in_strict(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client], profile: str
) -> None:
    sandbox.add_key("writer", "writer", ["dashboard:write"])
    assert client_for("writer").get(DASHBOARD).status_code == (403 if profile == "strict" else 200)


def test_the_seeded_keys_have_their_scopes(client_for: Callable[[str], httpx.Client]) -> None:
    members = ORGANIZATION + "members/"
    assert client_for(SEED.reader_key).get(members).status_code == 200
    assert client_for(SEED.reader_key).delete(f"{members}{SEED.member_uuid}/").status_code == 403
    assert client_for(SEED.exports_key).post(EXPORT + "pause/").status_code == 200
    assert client_for(SEED.exports_key).get(members).status_code == 403
    assert client_for(SEED.no_scopes_key).get(members).status_code == 403
    assert client_for(SEED.onboarding_key).post(ORGANIZATION + "projects/", json={}).status_code == 201
    assert client_for(SEED.onboarding_key).post(EXPORT + "pause/").status_code == 403
    theirs = f"/api/organizations/{SEED.other_organization_id}/members/"
    assert client_for(SEED.research_key).get(theirs).json()["count"] == 1


@one_profile
def test_other_methods_are_not_allowed(api: httpx.Client) -> None:
    response = api.put(DASHBOARD, json={})
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, PATCH, DELETE"
    assert response.json()["code"] == "method_not_allowed"
