"""Effects of each operation in all profiles. ``tests/contract`` compares the fields of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

ORGANIZATION = f"/api/organizations/{SEED.organization_id}/"
DASHBOARDS = f"/api/environments/{SEED.project_id}/dashboards/"
DOMAINS = ORGANIZATION + "domains/"
INVITES = ORGANIZATION + "invites/"
MEMBERS = ORGANIZATION + "members/"
PROJECTS = ORGANIZATION + "projects/"


def test_dashboard(api: httpx.Client, sandbox: SandboxServer) -> None:
    created = api.post(DASHBOARDS, json={"name": "Signups", "tags": ["weekly"], "pinned": True})
    assert created.status_code == 201
    dashboard = created.json()
    assert (dashboard["name"], dashboard["tags"], dashboard["deleted"]) == ("Signups", ["weekly"], False)
    assert dashboard["created_by"]["email"] == "olive.owner@example.com"

    path = f"{DASHBOARDS}{dashboard['id']}/"
    assert api.get(path).json() == dashboard
    updated = api.patch(path, json={"name": None, "description": "By week"})
    assert updated.json() == dashboard | {"name": None, "description": "By week"}
    assert api.patch(path, json={"description": "By week"}).status_code == 200
    deleted = api.patch(path, json={"deleted": True})
    assert (deleted.status_code, deleted.json()["deleted"]) == (200, True)
    assert effects(sandbox) == ["create_dashboard", "update_dashboard", "delete_dashboard"]
    assert {effect["target"] for effect in sandbox.effects()} == {str(dashboard["id"])}


def test_a_dashboard_is_never_hard_deleted(api: httpx.Client, sandbox: SandboxServer) -> None:
    for dashboard_id in (SEED.dashboard_id, 999):
        response = api.delete(f"{DASHBOARDS}{dashboard_id}/")
        assert (response.status_code, response.content) == (405, b"")
        assert response.headers["Content-Length"] == "0"
    assert api.get(f"{DASHBOARDS}{SEED.dashboard_id}/").json()["deleted"] is False
    assert effects(sandbox) == []


def test_collaborators(api: httpx.Client, sandbox: SandboxServer) -> None:
    path = f"{DASHBOARDS}{SEED.dashboard_id}/collaborators/"
    added = api.post(path, json={"level": 37, "user_uuid": SEED.member_uuid})
    assert added.status_code == 201
    collaborator = added.json()
    assert set(collaborator) == {"id", "dashboard_id", "user", "level", "added_at", "updated_at", "user_uuid"}
    assert collaborator["user"]["email"] == "mina.member@example.com"
    again = api.post(path, json={"level": 37, "user_uuid": SEED.member_uuid})
    assert (again.status_code, again.json()["attr"]) == (400, "user_uuid")
    assert api.post(path, json={"level": 37, "user_uuid": SEED.research_uuid}).status_code == 400
    assert api.post(path, json={"level": 37}).json()["code"] == "required"
    removed = api.delete(f"{path}{SEED.member_uuid}/")
    assert (removed.status_code, removed.content) == (204, b"")
    assert api.delete(f"{path}{SEED.member_uuid}/").status_code == 404
    assert effects(sandbox) == ["add_dashboard_collaborator", "remove_dashboard_collaborator"]


def test_repeated_pauses_have_one_effect(api: httpx.Client, sandbox: SandboxServer) -> None:
    export = SEED.batch_export_ids[0]
    path = f"{ORGANIZATION}batch_exports/{export}/"
    for action, body in (("pause", {"paused": True, "model": "events", "interval": "hour"}), ("unpause", None)):
        for _ in range(2):
            assert api.post(f"{path}{action}/", json=body).status_code == 200
        row = {row["id"]: row for row in sandbox.batch_exports()}[export]
        assert (row["paused"], bool(row["last_paused_at"])) == (action == "pause", True)
    assert effects(sandbox) == ["pause_batch_export", "unpause_batch_export"]
    assert [effect["target"] for effect in sandbox.effects()] == [export, export]


def test_domain(api: httpx.Client, sandbox: SandboxServer) -> None:
    created = api.post(DOMAINS, json={"domain": "acme.example.org"})
    assert created.status_code == 201
    domain = created.json()
    assert (domain["is_verified"], domain["verified_at"], domain["has_saml"]) == (False, None, False)
    path = f"{DOMAINS}{domain['id']}/"
    assert api.get(path).json() == domain
    saml = {
        "saml_entity_id": "acme",
        "saml_acs_url": "https://acme.example.org/saml",
        "saml_x509_cert": "made-up-certificate",
    }
    assert api.patch(path, json=saml).json() == domain | saml | {"has_saml": True}
    assert api.get(DOMAINS).json()["count"] == 2
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404
    assert effects(sandbox) == ["create_domain", "update_domain", "delete_domain"]
    assert "made-up-certificate" not in str(sandbox.effects())


def test_verify_queries_the_dns(sandbox: SandboxServer, client_for: Callable[[str], httpx.Client]) -> None:
    api = client_for(SEED.session_key)
    domain = api.post(DOMAINS, json={"domain": "acme.example.org"}).json()
    path = f"{DOMAINS}{domain['id']}/"
    assert api.post(path + "verify/").status_code == 200
    sandbox.publish_dns("_workspace-challenge.acme.example.org", "something else")
    assert api.post(path + "verify/").status_code == 200
    assert api.get(path).json()["is_verified"] is False
    sandbox.publish_dns("_workspace-challenge.ACME.example.org.", domain["verification_challenge"])
    assert api.post(path + "verify/", json={"domain": "acme.example.org"}).status_code == 200
    verified = api.get(path).json()
    assert verified["is_verified"] is True
    assert verified["verified_at"] > verified["verified_at"][:10]
    assert effects(sandbox) == ["create_domain", "verify_domain"]


@pytest.mark.parametrize("sandbox", ["lenient", "strict"], indirect=True)
def test_a_renamed_domain_must_be_verified_again(api: httpx.Client) -> None:
    renamed = api.patch(f"{DOMAINS}{SEED.domain_id}/", json={"domain": "other.example.org"}).json()
    assert (renamed["domain"], renamed["is_verified"], renamed["verified_at"]) == ("other.example.org", False, None)


def test_invite(api: httpx.Client, sandbox: SandboxServer) -> None:
    created = api.post(INVITES, json={"target_email": "new.person@example.com", "send_email": False, "message": "Hi"})
    assert created.status_code == 201
    invite = created.json()
    assert (invite["emailing_attempt_made"], invite["level"], invite["is_expired"]) == (False, 1, False)
    assert api.get(INVITES).json()["results"][-1] == invite
    assert api.post(INVITES, json={"target_email": "other.person@example.com"}).json()["emailing_attempt_made"] is True
    deleted = api.delete(f"{INVITES}{invite['id']}/")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert effects(sandbox) == ["create_invite", "create_invite", "delete_invite"]
    assert [effect["target"] for effect in sandbox.effects("delete_invite")] == ["new.person@example.com"]


def test_an_invite_expires_after_three_days(api: httpx.Client, sandbox: SandboxServer) -> None:
    assert [row["is_expired"] for row in api.get(INVITES).json()["results"]] == [False, True]
    created = api.post(INVITES, json={"target_email": "new.person@example.com"}).json()
    sandbox.advance_clock(3 * 86400 - 60)
    assert [row["is_expired"] for row in api.get(INVITES).json()["results"]] == [True, True, False]
    sandbox.advance_clock(60)
    assert [row["is_expired"] for row in api.get(INVITES).json()["results"]] == [True, True, True]
    with pytest.raises(ValueError, match="expired"):
        sandbox.accept_invite(created["id"])


def test_accepting_an_invite_creates_a_member(api: httpx.Client, sandbox: SandboxServer) -> None:
    wanted = {"target_email": "new.person@example.com", "first_name": "Nell", "level": 8}
    invite = api.post(INVITES, json=wanted).json()
    member = sandbox.accept_invite(invite["id"])
    assert (member["user"]["email"], member["user"]["first_name"], member["level"]) == (*wanted.values(),)
    assert api.get(MEMBERS).json()["results"][-1] == member
    assert invite["id"] not in [row["id"] for row in api.get(INVITES).json()["results"]]
    refused = api.post(INVITES, json=wanted)
    assert (refused.status_code, refused.json()["attr"]) == (400, "target_email")


@pytest.mark.parametrize("email", ["", "word", "two words@example.com", "a@b@example.com", "a@example", None, 5])
def test_invalid_addresses_are_refused(api: httpx.Client, sandbox: SandboxServer, email: object) -> None:
    for path, body, attr in (
        (INVITES, {"target_email": email}, "target_email"),
        (INVITES + "bulk/", [{"target_email": "fine@example.com"}, {"target_email": email}], "1__target_email"),
    ):
        response = api.post(path, json=body)
        assert (response.status_code, response.json()["attr"]) == (400, attr)
    assert api.post(INVITES, json={}).json()["code"] == "required"
    assert effects(sandbox) == []


def test_bulk_invites_have_an_effect_per_row(api: httpx.Client, sandbox: SandboxServer) -> None:
    addresses = [f"person.{number}@example.com" for number in range(20)]
    response = api.post(INVITES + "bulk/", json=[{"target_email": address} for address in addresses])
    assert response.is_success
    assert [effect["target"] for effect in sandbox.effects("create_invite")] == addresses
    assert api.get(INVITES).json()["count"] == 22


def test_member(api: httpx.Client, sandbox: SandboxServer) -> None:
    member = api.get(MEMBERS).json()["results"][2]
    path = f"{MEMBERS}{member['user']['uuid']}/"
    for _ in range(2):
        updated = api.patch(path, json={"level": 8})
        assert (updated.status_code, updated.json()["level"]) == (200, 8)
    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404
    assert api.get(MEMBERS).json()["count"] == 4
    assert effects(sandbox) == ["update_member", "delete_member"]


def test_project(api: httpx.Client, sandbox: SandboxServer) -> None:
    created = api.post(
        PROJECTS, json={"name": "Shop", "timezone": "Europe/Vienna", "app_urls": ["https://example.com"]}
    )
    assert created.status_code == 201
    project = created.json()
    assert len(project) == 52
    assert (project["name"], project["timezone"], project["ingested_event"]) == ("Shop", "Europe/Vienna", False)
    sandbox.set_project(project["id"], ingested_event=True)
    path = f"{PROJECTS}{project['id']}/"
    shown = api.get(path).json()
    assert shown == project | {"ingested_event": True, "updated_at": shown["updated_at"]}
    listed = api.get(PROJECTS).json()["results"][-1]
    assert listed.items() <= shown.items()
    assert api.post(PROJECTS, json={"name": "Shop"}).json()["id"] != project["id"]
    assert effects(sandbox) == ["create_project", "create_project"]


def test_strings_are_stored_unchanged(api: httpx.Client) -> None:
    name = 'Ünï "quoted" \u2028 \U0001f9ea \\ </script>'
    created = api.post(PROJECTS, json={"name": name}).json()
    assert api.get(f"{PROJECTS}{created['id']}/").json()["name"] == name
    lone_surrogate = api.post(PROJECTS, content=b'{"name": "\\ud800"}', headers={"Content-Type": "application/json"})
    assert lone_surrogate.status_code == 201


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"name": NaN}', b"[" * 100_000])
def test_invalid_json_is_refused(api: httpx.Client, body: bytes) -> None:
    response = api.post(PROJECTS, content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (400, "parse_error")


def test_pages(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.add_members(245)
    first = api.get(MEMBERS).json()
    assert (first["count"], len(first["results"]), first["previous"]) == (250, 100, None)
    assert first["next"] == f"{sandbox.url}{MEMBERS}?limit=100&offset=100"
    seen = list(first["results"])
    page = first
    while page["next"]:
        page = api.get(page["next"]).json()
        seen += page["results"]
    assert len({member["user"]["uuid"] for member in seen}) == 250
    assert page["previous"] == f"{sandbox.url}{MEMBERS}?limit=100&offset=100"
    assert len(api.get(MEMBERS, params={"limit": 250}).json()["results"]) == 250
    past = api.get(MEMBERS, params={"limit": 10, "offset": 1000}).json()
    assert (past["count"], past["next"], past["results"]) == (250, None, [])


def test_links_use_the_host_header(api: httpx.Client) -> None:
    page = api.get(MEMBERS, params={"limit": 2}, headers={"Host": "localhost:1234"}).json()
    assert page["next"] == f"http://localhost:1234{MEMBERS}?limit=2&offset=2"
