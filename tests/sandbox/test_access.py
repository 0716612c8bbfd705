"""
Keys, scopes and foreign organizations, for every operation.

Only what differs between profiles runs for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from tests.contract.parts import BY_NAME, body_of, path_of, route_of
from tests.contract.reference import EXPECTED, Expected
from tests.sandbox.paths import DASHBOARD, DASHBOARDS, EXPORT, EXPORTS, MEMBERS, ORGANIZATION, OTHER_ORGANIZATION

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

operations = pytest.mark.parametrize("expected", EXPECTED, ids=BY_NAME)
# Differences of the profile live; the domain of the seed is verified.
LIVE_STATUS = {"CreateInvites": 201, "VerifyDomain": 403}

one_profile = pytest.mark.parametrize("sandbox", ["strict"], indirect=True)


def send(api: httpx.Client, expected: Expected, path: str = "") -> httpx.Response:
    """Send an operation with all body fields, to its own path or another one."""
    route_of(expected)
    body = body_of(expected)
    path = path or path_of(expected)
    return api.request(expected.method, path) if body is None else api.request(expected.method, path, json=body)


@operations
def test_an_operation_needs_a_key_its_scope_its_organization_and_its_path(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client], profile: str, expected: Expected
) -> None:
    """``tests/contract`` says more about the right key, in profile ``strict``."""
    name, scope = expected.operation, expected.scope
    sandbox.add_key("only-this", "only this", [scope] if scope else ["*"])
    writes = scope.replace(":read", ":write") if scope else None
    others = {row.scope for row in EXPECTED if row.scope and row.scope not in (scope, writes)}
    sandbox.add_key("all-but-this", "all but this", sorted(others))

    unknown = send(client_for("unheard-of"), expected)
    assert (unknown.status_code, unknown.json()["code"]) == (401, "authentication_failed")
    assert sandbox.requests()[-1]["key_name"] is None
    foreign = send(client_for(SEED.research_key), expected).status_code
    assert foreign == (405 if expected.status == 405 else 403 if profile == "live" else 404), (
        f"{name}: a key of another organization is answered {foreign}: "
        "its handler in sandbox/routes/ begins with request.organization() or request.project()"
    )
    assert send(client_for("only-this"), expected, path_of(expected).removesuffix("/")).status_code == 404
    if scope or profile == "live":
        refused = send(client_for("all-but-this"), expected)
        assert refused.status_code == 403, f"{name}: without {scope} it is answered: correct its ApiRoute"
        assert set(refused.json()) == {"type", "code", "detail", "attr"}
        assert not scope or refused.json()["detail"] == f"API key missing required scope '{scope}'"
    assert sandbox.effects() == []

    response = send(client_for("only-this"), expected)
    status = LIVE_STATUS.get(name, expected.status) if profile == "live" else expected.status
    assert response.status_code == status, (
        f"{name}: with the scope {scope} the sandbox answers {response.status_code} {response.text}, not {status}: "
        "correct its ApiRoute in sandbox/routes/"
    )
    assert status not in {204, 405} or response.content == b""
    logged = sandbox.requests()[-1]
    assert (logged["key_name"], logged["scope"], logged["path"]) == ("only this", scope, path_of(expected))
    assert (logged["body"], logged["status"]) == (body_of(expected), status)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", DASHBOARDS + "999/"),
        ("GET", DASHBOARDS + "9999999999999999999999/"),
        ("DELETE", f"{DASHBOARD}collaborators/{SEED.member_uuid}/"),
        ("GET", "/api/environments/999/dashboards/1/"),
        ("GET", f"/api/environments/{SEED.project_id}/dashboards/"),
        ("POST", f"{EXPORTS}{SEED.other_batch_export_ids[0]}/pause/"),
        ("GET", f"{ORGANIZATION}domains/{SEED.invite_id}/"),
        ("PATCH", f"{MEMBERS}{SEED.research_uuid}/"),
        ("GET", f"{ORGANIZATION}projects/{SEED.other_project_id}/"),
        ("GET", "/api/organizations/0190c0de-0000-4000-8000-0000000000ff/members/"),
        ("GET", "/api/nothing/like/this/"),
    ],
)
def test_unknown_ids_return_404(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client], method: str, path: str
) -> None:
    response = client_for(SEED.session_key).request(method, path)
    # The path of dashboards exists, but not for lists.
    assert response.status_code == (405 if path == DASHBOARDS else 404)
    assert response.json()["attr"] is None
    assert sandbox.effects() == []


@one_profile
def test_a_key_is_sent_as_bearer_token(api: httpx.Client) -> None:
    for header in ("", "Bearer", "Basic c2FuZGJveDphZG1pbg==", SEED.admin_key):
        response = api.get(DASHBOARD, headers={"Authorization": header})
        assert (response.status_code, response.json()["code"]) == (401, "not_authenticated")


def test_write_includes_read_except_in_strict(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client], profile: str
) -> None:
    sandbox.add_key("writer", "writer", ["dashboard:write"])
    assert client_for("writer").get(DASHBOARD).status_code == (403 if profile == "strict" else 200)


def test_keys_of_the_seed_have_their_scopes(client_for: Callable[[str], httpx.Client]) -> None:
    assert client_for(SEED.reader_key).get(MEMBERS).status_code == 200
    assert client_for(SEED.reader_key).delete(f"{MEMBERS}{SEED.member_uuid}/").status_code == 403
    assert client_for(SEED.exports_key).post(EXPORT + "pause/").status_code == 200
    assert client_for(SEED.exports_key).get(MEMBERS).status_code == 403
    assert client_for(SEED.no_scopes_key).get(MEMBERS).status_code == 403
    assert client_for(SEED.onboarding_key).post(ORGANIZATION + "projects/", json={}).status_code == 201
    assert client_for(SEED.onboarding_key).post(EXPORT + "pause/").status_code == 403
    assert client_for(SEED.research_key).get(OTHER_ORGANIZATION + "members/").json()["count"] == 1
