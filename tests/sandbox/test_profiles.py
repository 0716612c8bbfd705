"""What the interface leaves open, in each profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects
from tests.sandbox.paths import (
    BULK,
    COLLABORATORS,
    DASHBOARD,
    DASHBOARDS,
    DOMAINS,
    EXPORT,
    INVITES,
    MEMBER,
    MEMBERS,
    OTHER_ORGANIZATION,
    PROJECTS,
)

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

    Clients = Callable[[str], httpx.Client]

strict = pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)
EMAIL = {"target_email": "a@example.com"}
SSO = {"jit_provisioning_enabled": True, "sso_enforcement": "saml"}


def invites(*addresses: str) -> list[dict[str, str]]:
    return [{"target_email": address} for address in addresses]


# Fields and parameters outside the interface, and wrong values


@live
def test_unnamed_fields_and_parameters_are_ignored(api: httpx.Client) -> None:
    response = api.patch(DASHBOARD, params={"format": "json"}, json={"id": 77, "colour": "red", "is_shared": True})
    assert response.status_code == 200
    assert (response.json()["id"], response.json()["is_shared"]) == (SEED.dashboard_id, False)
    assert api.get(MEMBERS, params={"limit": "word", "offset": "-1"}).json()["count"] == 5
    assert api.request("DELETE", MEMBER, json={"level": 1}).status_code == 204


BOTH = ("strict", "live")
REFUSED: dict[tuple[str, ...], list[tuple[str, str, object, str | None]]] = {
    ("strict",): [
        ("POST", DASHBOARDS, {"colour": "red"}, "colour"),
        ("PATCH", DASHBOARD, {"is_shared": True}, "is_shared"),
        ("POST", EXPORT + "unpause/", {"backfill": True}, "backfill"),
        ("POST", BULK, [EMAIL | {"role": "admin"}], "0__role"),
        ("PATCH", MEMBER, {"joined_at": None}, "joined_at"),
        ("GET", MEMBERS + "?page=2", None, "page"),
        ("GET", MEMBERS + "?limit=0", None, "limit"),
        ("GET", MEMBERS + "?offset=-1", None, "offset"),
        ("GET", DASHBOARD + "?limit=10", None, "limit"),
        ("DELETE", MEMBER, {"level": 1}, None),
        ("GET", MEMBERS, {"limit": 1}, None),
        # Nobody is invited if one is a member.
        ("POST", BULK, invites("new@example.com", "Olive.Owner@example.com"), "1__target_email"),
    ],
    ("live",): [
        ("POST", DOMAINS, {"domain": "xn--bcher-kva.example.org"}, "domain"),
        ("POST", COLLABORATORS, {"user_uuid": SEED.member_uuid}, "level"),
        ("POST", BULK, EMAIL, None),
        ("POST", BULK, invites(*(f"person.{number}@example.com" for number in range(21))), None),
        ("POST", BULK, [EMAIL | {"level": 2}], "0__level"),
        ("PATCH", MEMBER, {"level": 2}, "level"),
        ("DELETE", f"{MEMBERS}{SEED.owner_uuid}/", None, None),  # the last one
    ],
    BOTH: [
        ("POST", DASHBOARDS, {"name": 5}, "name"),
        ("POST", DASHBOARDS, {"pinned": "true"}, "pinned"),
        ("POST", DASHBOARDS, {"tags": "weekly"}, "tags"),
        ("POST", DASHBOARDS, {"use_dashboard": "1"}, "use_dashboard"),
        *(("POST", DASHBOARDS, {"restriction_level": level}, "restriction_level") for level in (21.0, True, 2**80)),
        *(("POST", EXPORT + "pause/", {name: value}, name) for name, value in (("model", "sessions"), ("paused", 1))),
        *(("POST", DOMAINS, {"domain": domain}, "domain") for domain in ("not a domain", None)),
        ("POST", INVITES, EMAIL | {"level": None}, "level"),
        ("POST", INVITES, EMAIL | {"private_project_access": {}}, "private_project_access"),
        ("PATCH", MEMBER, {"level": "8"}, "level"),
        ("POST", PROJECTS, {"app_urls": [1]}, "app_urls"),
        ("POST", PROJECTS, ["name"], None),
    ],
}


@pytest.mark.parametrize(
    ("sandbox", "method", "path", "body", "attr"),
    [(profile, *row) for profiles, rows in REFUSED.items() for profile in profiles for row in rows],
    indirect=["sandbox"],
)
def test_unnamed_fields_wrong_types_and_values_are_refused(
    api: httpx.Client, sandbox: SandboxServer, method: str, path: str, body: object, attr: str | None
) -> None:
    response = api.request(method, path, json=body) if body is not None else api.request(method, path)
    assert (response.status_code, response.json()["attr"], sandbox.effects()) == (400, attr, [])


# Dashboards and domains


def test_deleted_dashboards(api: httpx.Client, sandbox: SandboxServer, profile: str) -> None:
    api.patch(DASHBOARD, json={"deleted": True})
    status = 404 if profile == "live" else 200
    paths = [DASHBOARD, COLLABORATORS, DASHBOARD + "sharing/", DASHBOARD + "access_controls/"]
    assert {api.get(path).status_code for path in paths} == {status}
    for deleted in (True, False):
        assert api.patch(DASHBOARD, json={"deleted": deleted}).status_code == status
    assert effects(sandbox) == ["delete_dashboard", "update_dashboard"][: 1 if status == 404 else 2]


@live
def test_live_collaborators_need_a_restricted_dashboard(api: httpx.Client) -> None:
    path = f"{DASHBOARDS}{api.post(DASHBOARDS, json={'name': 'Sales'}).json()['id']}/"
    person = {"user_uuid": SEED.member_uuid, "level": 37}
    urls = (path + "collaborators/", f"{path}collaborators/{SEED.member_uuid}/")
    for response in (api.post(urls[0], json=person), api.delete(urls[1])):
        assert (response.status_code, "restriction level" in response.json()["detail"]) == (400, True)
    api.patch(path, json={"restriction_level": 37})
    assert [api.post(urls[0], json=person).status_code, api.delete(urls[1]).status_code] == [201, 204]


def test_domains_are_unique_in_live(
    api: httpx.Client, sandbox: SandboxServer, client_for: Clients, profile: str
) -> None:
    unique = profile == "live"
    response = client_for(SEED.research_key).post(OTHER_ORGANIZATION + "domains/", json={"domain": "EXAMPLE.com"})
    assert (response.status_code, response.json().get("code")) == ((400, "unique") if unique else (201, None))
    assert api.patch(f"{DOMAINS}{SEED.domain_id}/", json={"domain": "example.com"}).status_code == 200
    statuses = [api.post(DOMAINS, json={"domain": "acme.example.org"}).status_code for _ in range(2)]
    assert statuses == [201, 400 if unique else 201]
    assert len(sandbox.effects("create_domain", target="acme.example.org")) == statuses.count(201)


@live
def test_live_domains_keep_their_name_and_sso_fields_need_verification(
    api: httpx.Client, sandbox: SandboxServer, client_for: Clients
) -> None:
    first = api.post(DOMAINS, json={"domain": "acme.example.org", **SSO}).json()
    second = api.post(DOMAINS, json={"domain": "other.example.org", **SSO}).json()
    first_path = f"{DOMAINS}{first['id']}/"
    second_path = f"{DOMAINS}{second['id']}/"
    assert first["jit_provisioning_enabled"] is False
    assert first["sso_enforcement"] == ""
    assert api.patch(first_path, json={"domain": "renamed.example.org"}).json() == first
    unverified = api.patch(first_path, json=SSO)
    assert unverified.status_code == 400
    assert unverified.json()["attr"] == "jit_provisioning_enabled"
    # Only a session may ask for the verification; the service looks at the DNS when domains are read.
    session = client_for(SEED.session_key)
    personal = api.post(first_path + "verify/")
    assert personal.status_code == 403
    assert "Personal API Key" in personal.json()["detail"]
    assert session.post(second_path + "verify/").json() == second
    for domain in (first, second):
        sandbox.publish_dns(f"_workspace-challenge.{domain['domain']}", domain["verification_challenge"])
    assert session.post(second_path + "verify/").json()["is_verified"] is True
    assert session.post(second_path + "verify/").json()["code"] == "already_verified"
    assert [row["is_verified"] for row in api.get(DOMAINS).json()["results"]] == [True, True, True]
    assert [effect["key_name"] for effect in sandbox.effects("verify_domain")] == ["session", "the service"]
    assert api.patch(first_path, json=SSO).json()["sso_enforcement"] == "saml"


# Invites and members


@strict
def test_strict_repeats_invites(api: httpx.Client, sandbox: SandboxServer) -> None:
    assert api.post(BULK, json=invites("twice@example.com")[0]).status_code == 200
    response = api.post(BULK, json=invites("twice@example.com", "twice@example.com"))
    assert (response.status_code, response.content) == (200, b"")
    assert len(sandbox.effects("create_invite", target="twice@example.com")) == 3


@live
def test_live_bulk_stops_at_a_member(api: httpx.Client, sandbox: SandboxServer) -> None:
    created = api.post(BULK, json=invites(*(f"person.{number}@example.com" for number in range(20))))
    assert created.status_code == 201
    assert created.json() == api.get(INVITES).json()["results"][2:]
    stopped = api.post(BULK, json=invites("first@example.com", "olive.owner@example.com", "z@example.com"))
    assert (stopped.status_code, stopped.json()["attr"]) == (400, "1__target_email")
    assert [effect["target"] for effect in sandbox.effects("create_invite")][20:] == ["first@example.com"]


@live
def test_live_invites_replace_older_ones(api: httpx.Client, sandbox: SandboxServer) -> None:
    first = api.post(INVITES, json={"target_email": "new.person@EXAMPLE.com"}).json()
    second = api.post(INVITES, json={"target_email": "new.person@example.com"}).json()
    assert first["target_email"] == "new.person@example.com"
    ids = {row["id"] for row in api.get(INVITES).json()["results"]}
    assert ids & {first["id"], second["id"]} == {second["id"]}
    details = [effect["detail"] for effect in sandbox.effects("create_invite")]
    replaced = [(row["invite_id"], row["replaced"]) for row in details]
    assert replaced == [(first["id"], []), (second["id"], [first["id"]])]


@live
def test_keys_of_removed_members_stop_working_in_live(api: httpx.Client, client_for: Clients) -> None:
    assert api.patch(MEMBER, json={"level": 15}).status_code == 200
    assert api.delete(f"{MEMBERS}{SEED.admin_uuid}/").status_code == 204
    assert client_for(SEED.onboarding_key).get(MEMBERS).status_code == 403
    assert api.delete(f"{MEMBERS}{SEED.owner_uuid}/").status_code == 204
    assert api.get(MEMBERS).status_code == 403


@live
def test_live_refuses_levels_above_the_callers(sandbox: SandboxServer, client_for: Clients) -> None:
    admin = client_for(SEED.onboarding_key)
    rows: list[dict[str, object]] = [{"target_email": f"{level}@example.com", "level": level} for level in (1, 8, 15)]
    owner = f"{MEMBERS}{SEED.owner_uuid}/"
    own = f"{MEMBERS}{SEED.admin_uuid}/"
    assert admin.post(BULK, json=rows).status_code == 403
    assert admin.post(INVITES, json=rows[2]).status_code == 403
    assert admin.delete(owner).status_code == 403
    assert admin.patch(owner, json={"level": 8}).status_code == 403
    assert admin.patch(MEMBER, json={"level": 15}).status_code == 403
    assert admin.patch(own, json={"level": 1}).status_code == 403
    assert sandbox.effects() == []
    assert admin.post(BULK, json=rows[:2]).status_code == 201
    assert admin.patch(MEMBER, json={"level": 8}).status_code == 200


@live
def test_live_invites_are_limited_per_hour_and_day(api: httpx.Client, sandbox: SandboxServer) -> None:
    def invite(number: int, round_: int) -> httpx.Response:
        return api.post(BULK, json=invites(*(f"person.{round_}.{item}@example.com" for item in range(number))))

    assert [invite(20, 0).status_code, invite(20, 0).status_code] == [201, 201]
    # Refused by the hourly limit, counted for the day; Retry-After is too short.
    for _ in range(2):
        throttled = invite(20, 1)
        assert (throttled.status_code, throttled.json()["code"]) == (429, "throttled")
        assert 320 <= int(throttled.headers["Retry-After"]) <= 328
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
