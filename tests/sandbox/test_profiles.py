"""What the interface leaves open, in each profile."""

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
DASHBOARD = f"{DASHBOARDS}{SEED.dashboard_id}/"
DOMAINS = ORGANIZATION + "domains/"
INVITES = ORGANIZATION + "invites/"
MEMBERS = ORGANIZATION + "members/"
PROJECTS = ORGANIZATION + "projects/"
EXPORT = f"{ORGANIZATION}batch_exports/{SEED.batch_export_ids[0]}/"

strict = pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


def invites(*addresses: str) -> list[dict[str, str]]:
    return [{"target_email": address} for address in addresses]


# Fields and parameters outside the interface


@live
def test_unnamed_fields_and_parameters_are_ignored(api: httpx.Client) -> None:
    response = api.patch(DASHBOARD, params={"format": "json"}, json={"id": 77, "colour": "red", "is_shared": True})
    assert response.status_code == 200
    assert response.json()["id"] == SEED.dashboard_id
    assert response.json()["is_shared"] is False
    assert api.get(MEMBERS, params={"limit": "word", "offset": "-1"}).json()["count"] == 5
    assert api.request("DELETE", f"{MEMBERS}{SEED.member_uuid}/", json={"level": 1}).status_code == 204


@strict
@pytest.mark.parametrize(
    ("method", "path", "body", "attr"),
    [
        ("POST", DASHBOARDS, {"colour": "red"}, "colour"),
        ("PATCH", DASHBOARD, {"is_shared": True}, "is_shared"),
        ("POST", EXPORT + "unpause/", {"backfill": True}, "backfill"),
        ("POST", INVITES + "bulk/", [{"target_email": "a@example.com", "role": "admin"}], "0__role"),
        ("PATCH", f"{MEMBERS}{SEED.member_uuid}/", {"joined_at": None}, "joined_at"),
        ("GET", MEMBERS + "?page=2", None, "page"),
        ("GET", MEMBERS + "?limit=0", None, "limit"),
        ("GET", MEMBERS + "?offset=-1", None, "offset"),
        ("GET", DASHBOARD + "?limit=10", None, "limit"),
        ("DELETE", f"{MEMBERS}{SEED.member_uuid}/", {"level": 1}, None),
        ("GET", MEMBERS, {"limit": 1}, None),
    ],
)
def test_strict_refuses_unnamed_fields_and_parameters(
    api: httpx.Client, sandbox: SandboxServer, method: str, path: str, body: object, attr: str | None
) -> None:
    response = api.request(method, path, json=body) if body is not None else api.request(method, path)
    assert (response.status_code, response.json()["attr"]) == (400, attr)
    assert sandbox.effects() == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        *(("POST", DASHBOARDS, {"name": 5}), ("POST", DASHBOARDS, {"pinned": "true"})),
        *(("POST", DASHBOARDS, {"tags": "weekly"}), ("POST", DASHBOARDS, {"use_dashboard": "1"})),
        *(("POST", DASHBOARDS, {"restriction_level": level}) for level in (21.0, True, 2**80)),
        *(("POST", EXPORT + "pause/", body) for body in ({"model": "sessions"}, {"paused": 1})),
        *(("POST", DOMAINS, {"domain": domain}) for domain in ("not a domain", None)),
        ("POST", INVITES, {"target_email": "a@example.com", "level": None}),
        ("POST", INVITES, {"target_email": "a@example.com", "private_project_access": {}}),
        ("PATCH", f"{MEMBERS}{SEED.member_uuid}/", {"level": "8"}),
        *(("POST", PROJECTS, body) for body in ({"app_urls": [1]}, ["name"])),
    ],
)
def test_wrong_types_are_refused(
    api: httpx.Client, sandbox: SandboxServer, method: str, path: str, body: object
) -> None:
    assert api.request(method, path, json=body).status_code == 400
    assert sandbox.effects() == []


# Dashboards and batch exports


def test_deleted_dashboards(api: httpx.Client, sandbox: SandboxServer, profile: str) -> None:
    api.patch(DASHBOARD, json={"deleted": True})
    paths = [DASHBOARD, DASHBOARD + "collaborators/", DASHBOARD + "sharing/", DASHBOARD + "access_controls/"]
    status = 404 if profile == "live" else 200
    assert {api.get(path).status_code for path in paths} == {status}
    for deleted in (True, False):
        assert api.patch(DASHBOARD, json={"deleted": deleted}).status_code == status
    assert effects(sandbox) == ["delete_dashboard", "update_dashboard"][: 1 if status == 404 else 2]


# Domains


def test_domains_are_unique_in_live(
    api: httpx.Client, sandbox: SandboxServer, client_for: Callable[[str], httpx.Client], profile: str
) -> None:
    theirs = f"/api/organizations/{SEED.other_organization_id}/domains/"
    unique = profile == "live"
    response = client_for(SEED.research_key).post(theirs, json={"domain": "EXAMPLE.com"})
    assert (response.status_code, response.json().get("code")) == ((400, "unique") if unique else (201, None))
    assert api.patch(f"{DOMAINS}{SEED.domain_id}/", json={"domain": "example.com"}).status_code == 200
    statuses = [api.post(DOMAINS, json={"domain": "acme.example.org"}).status_code for _ in range(2)]
    assert statuses == [201, 400 if unique else 201]
    assert len(sandbox.effects("create_domain", target="acme.example.org")) == statuses.count(201)


SSO = {"jit_provisioning_enabled": True, "sso_enforcement": "saml"}


@live
def test_live_sso_fields_need_a_verified_domain(api: httpx.Client, sandbox: SandboxServer) -> None:
    domain = api.post(DOMAINS, json={"domain": "acme.example.org", **SSO}).json()
    assert (domain["jit_provisioning_enabled"], domain["sso_enforcement"]) == (False, "")
    path = f"{DOMAINS}{domain['id']}/"
    assert api.patch(path, json={"domain": "other.example.org"}).json() == domain
    assert api.post(DOMAINS, json={"domain": "xn--bcher-kva.example.org"}).status_code == 400
    refused = api.patch(path, json=SSO)
    assert (refused.status_code, refused.json()["attr"]) == (400, "jit_provisioning_enabled")
    sandbox.publish_dns("_workspace-challenge.acme.example.org", domain["verification_challenge"])
    assert api.get(path).json()["is_verified"] is True
    assert api.patch(path, json=SSO).json()["sso_enforcement"] == "saml"


@live
def test_live_verifies_on_reads_and_by_request_of_a_session(
    api: httpx.Client, sandbox: SandboxServer, client_for: Callable[[str], httpx.Client]
) -> None:
    domains = [api.post(DOMAINS, json={"domain": f"{name}.example.org"}).json() for name in ("acme", "other")]
    paths = [f"{DOMAINS}{domain['id']}/verify/" for domain in domains]
    refused = api.post(paths[0])
    assert (refused.status_code, "Personal API Key" in refused.json()["detail"]) == (403, True)
    session = client_for(SEED.session_key)
    assert session.post(paths[1]).json() == domains[1]
    for domain in domains:
        sandbox.publish_dns(f"_workspace-challenge.{domain['domain']}", domain["verification_challenge"])
    assert session.post(paths[1]).json()["is_verified"] is True
    again = session.post(paths[1])
    assert (again.status_code, again.json()["code"]) == (400, "already_verified")
    assert [row["is_verified"] for row in api.get(DOMAINS).json()["results"]] == [True, True, True]
    assert [effect["key_name"] for effect in sandbox.effects("verify_domain")] == ["session", "the service"]


# Invites


@strict
def test_bulk_repeats_invites_and_refuses_all_with_a_member(api: httpx.Client, sandbox: SandboxServer) -> None:
    response = api.post(INVITES + "bulk/", json=invites("new@example.com", "Olive.Owner@example.com"))
    assert (response.status_code, response.json()["attr"]) == (400, "1__target_email")
    assert sandbox.effects() == []
    assert api.post(INVITES + "bulk/", json=invites("twice@example.com")[0]).status_code == 200
    response = api.post(INVITES + "bulk/", json=invites("twice@example.com", "twice@example.com"))
    assert (response.status_code, response.content) == (200, b"")
    assert len(sandbox.effects("create_invite", target="twice@example.com")) == 3


@live
def test_live_bulk_takes_up_to_twenty_rows(api: httpx.Client, sandbox: SandboxServer) -> None:
    assert api.post(INVITES + "bulk/", json=invites("one@example.com")[0]).json()["code"] == "not_a_list"
    many = invites(*(f"person.{number}@example.com" for number in range(21)))
    assert api.post(INVITES + "bulk/", json=many).status_code == 400
    assert sandbox.effects() == []
    created = api.post(INVITES + "bulk/", json=many[:20])
    assert created.status_code == 201
    assert created.json() == api.get(INVITES).json()["results"][2:]
    stopped = api.post(INVITES + "bulk/", json=invites("first@example.com", "olive.owner@example.com", "z@example.com"))
    assert (stopped.status_code, stopped.json()["attr"]) == (400, "1__target_email")
    assert [effect["target"] for effect in sandbox.effects("create_invite")][20:] == ["first@example.com"]


@live
def test_live_invites_replace_older_ones(api: httpx.Client, sandbox: SandboxServer) -> None:
    first = api.post(INVITES, json={"target_email": "new.person@EXAMPLE.com"}).json()
    assert first["target_email"] == "new.person@example.com"
    second = api.post(INVITES, json={"target_email": "new.person@example.com"}).json()
    ids = [row["id"] for row in api.get(INVITES).json()["results"]]
    assert second["id"] in ids
    assert first["id"] not in ids
    details = [effect["detail"] for effect in sandbox.effects("create_invite")]
    assert [(row["invite_id"], row["replaced"]) for row in details] == [
        (first["id"], []),
        (second["id"], [first["id"]]),
    ]


# Members


@live
def test_live_keeps_the_last_owner_and_keys_of_removed_members_stop_working(
    api: httpx.Client, client_for: Callable[[str], httpx.Client]
) -> None:
    last = api.delete(f"{MEMBERS}{SEED.owner_uuid}/")
    assert (last.status_code, last.json()["detail"]) == (400, "The last owner can't leave the organization.")
    assert api.patch(f"{MEMBERS}{SEED.member_uuid}/", json={"level": 15}).status_code == 200
    assert api.delete(f"{MEMBERS}{SEED.admin_uuid}/").status_code == 204
    assert client_for(SEED.onboarding_key).get(MEMBERS).status_code == 403
    assert api.delete(f"{MEMBERS}{SEED.owner_uuid}/").status_code == 204
    assert api.get(MEMBERS).status_code == 403


@live
def test_live_refuses_levels_above_the_callers(
    sandbox: SandboxServer, client_for: Callable[[str], httpx.Client]
) -> None:
    admin = client_for(SEED.onboarding_key)
    rows: list[dict[str, object]] = [{"target_email": f"{level}@example.com", "level": level} for level in (1, 8, 15)]
    owner, member = f"{MEMBERS}{SEED.owner_uuid}/", f"{MEMBERS}{SEED.member_uuid}/"
    refused = [admin.post(INVITES + "bulk/", json=rows), admin.post(INVITES, json=rows[2]), admin.delete(owner)]
    refused += [admin.patch(member, json={"level": 15}), admin.patch(owner, json={"level": 8})]
    assert [response.status_code for response in refused] == [403] * 5
    assert sandbox.effects() == []
    assert admin.post(INVITES + "bulk/", json=rows[:2]).status_code == 201
    assert admin.patch(member, json={"level": 8}).status_code == 200


@live
def test_live_collaborators_need_a_level_and_a_restricted_dashboard(api: httpx.Client) -> None:
    dashboard = api.post(DASHBOARDS, json={"name": "Sales"}).json()
    path = f"{DASHBOARDS}{dashboard['id']}/collaborators/"
    person: dict[str, object] = {"user_uuid": SEED.member_uuid}
    for response in (api.post(path, json=person | {"level": 37}), api.delete(f"{path}{SEED.member_uuid}/")):
        assert (response.status_code, "restriction level" in response.json()["detail"]) == (400, True)
    api.patch(f"{DASHBOARDS}{dashboard['id']}/", json={"restriction_level": 37})
    refused = api.post(path, json=person)
    assert (refused.status_code, refused.json()["attr"], refused.json()["code"]) == (400, "level", "required")
    assert api.post(path, json=person | {"level": 37}).status_code == 201
    assert api.delete(f"{path}{SEED.member_uuid}/").status_code == 204


def test_levels(api: httpx.Client, profile: str) -> None:
    path = f"{MEMBERS}{SEED.member_uuid}/"
    assert api.patch(path, json={"level": 15}).json()["level"] == 15
    odd = api.patch(path, json={"level": 2})
    own = api.patch(f"{MEMBERS}{SEED.owner_uuid}/", json={"level": 1})
    bulk = api.post(INVITES + "bulk/", json=[{"target_email": "a@example.com", "level": 2}])
    statuses = (odd.status_code, own.status_code, bulk.status_code)
    assert statuses == ((400, 403, 400) if profile == "live" else (200, 200, 200))
    if profile == "live":
        assert (odd.json()["code"], bulk.json()["attr"]) == ("invalid_choice", "0__level")


# Rates


@live
def test_live_invites_are_limited_per_hour_and_day(api: httpx.Client, sandbox: SandboxServer) -> None:
    def invite(number: int, round_: int) -> httpx.Response:
        many = invites(*(f"person.{round_}.{item}@example.com" for item in range(number)))
        return api.post(INVITES + "bulk/", json=many)

    assert [invite(20, 0).status_code, invite(20, 0).status_code] == [201, 201]
    # Refused by the hourly limit, counted for the day; Retry-After is too short.
    for _ in range(2):
        refused = invite(20, 1)
        assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
        assert 320 <= int(refused.headers["Retry-After"]) <= 328
    # Invalid, counted for both limits.
    assert api.post(INVITES, json={"target_email": "nobody"}).status_code == 400
    sandbox.advance_clock(330)
    assert [invite(10, 2).status_code, invite(9, 2).status_code] == [429, 201]
    sandbox.advance_clock(3600)
    # 40 + 2 x 20 + 1 + 10 + 9
    assert [invite(20, 3 + part).status_code for part in range(2)] == [201, 201]
    sandbox.advance_clock(3600)
    assert [invite(number, 6 + number).status_code for number in (19, 20, 18)] == [201, 201, 429]
    sandbox.advance_clock(3600)
    # 3 are left of the day.
    per_day = invite(4, 9)
    assert per_day.status_code == 429
    assert 5 * 3600 < int(per_day.headers["Retry-After"]) < 6 * 3600
    assert invite(3, 9).status_code == 201
    sandbox.change_settings(rate_limit=False)
    assert invite(20, 10).status_code == 201
