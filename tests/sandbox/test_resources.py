"""Effects of each operation in all profiles. ``tests/contract`` compares the fields of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects
from tests.sandbox.paths import DOMAINS, EXPORT, EXPORTS, INVITES, MEMBERS, PROJECTS

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer


def test_repeated_pauses_have_one_effect(api: httpx.Client, sandbox: SandboxServer) -> None:
    export = SEED.batch_export_ids[0]
    path = f"{EXPORTS}{export}/"
    for action, body in (("pause", {"paused": True, "model": "events", "interval": "hour"}), ("unpause", None)):
        for _ in range(2):
            assert api.post(f"{path}{action}/", json=body).status_code == 200
        row = {row["id"]: row for row in sandbox.batch_exports()}[export]
        assert (row["paused"], bool(row["last_paused_at"])) == (action == "pause", True)
    assert effects(sandbox) == ["pause_batch_export", "unpause_batch_export"]
    assert [effect["target"] for effect in sandbox.effects()] == [export, export]


def test_only_live_lists_batch_exports(api: httpx.Client, sandbox: SandboxServer, profile: str) -> None:
    api.post(f"{EXPORTS}{SEED.batch_export_ids[1]}/pause/")
    listed = api.get(EXPORTS)
    assert listed.status_code == (200 if profile == "live" else 404)
    if profile == "live":
        rows = listed.json()["results"]
        assert [row["id"] for row in rows] == [*SEED.batch_export_ids]
        assert [row["paused"] for row in rows] == [bool(row["last_paused_at"]) for row in rows] == [False, True, False]
        sandbox.add_key("writer", "writer", ["organization:write"])
        assert api.get(EXPORTS, headers={"Authorization": "Bearer writer"}).status_code == 403


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


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_renamed_domain_must_be_verified_again(api: httpx.Client) -> None:
    renamed = api.patch(f"{DOMAINS}{SEED.domain_id}/", json={"domain": "other.example.org"}).json()
    assert (renamed["domain"], renamed["is_verified"], renamed["verified_at"]) == ("other.example.org", False, None)


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


def test_a_new_member_is_listed_late(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("late_rows", seconds=20)
    sandbox.accept_invite(SEED.invite_id)
    assert api.get(MEMBERS).json()["count"] == 5
    sandbox.advance_clock(21)
    assert api.get(MEMBERS).json()["count"] == 6


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"name": NaN}', b"[" * 100_000])
def test_invalid_json_is_refused(api: httpx.Client, body: bytes) -> None:
    response = api.post(PROJECTS, content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (400, "parse_error")


# Runs of batch exports: one per interval, none during a pause, and backfills

HOURLY, _, DAILY = SEED.batch_export_ids
HOUR = 3600


def runs(sandbox: SandboxServer) -> tuple[int, int]:
    """Return the numbers of exported and missing intervals."""
    found = sandbox.export_runs(HOURLY)
    return len(found["exported"]), len(found["missing"])


@pytest.fixture
def just_after_the_hour(sandbox: SandboxServer) -> None:
    """Start one minute after a run, so that no hour ends during a test."""
    now = sandbox.advance_clock(0)
    minute, second = int(now[14:16]), int(now[17:19])
    sandbox.advance_clock((61 - minute) * 60 - second)


def since(sandbox: SandboxServer, before: tuple[int, int]) -> tuple[int, int]:
    exported, missing = runs(sandbox)
    return exported - before[0], missing - before[1]


@pytest.mark.usefixtures("just_after_the_hour")
def test_one_run_per_interval(sandbox: SandboxServer) -> None:
    before = runs(sandbox)
    days = len(sandbox.export_runs(DAILY)["exported"])
    sandbox.advance_clock(48 * HOUR)
    assert since(sandbox, before) == (48, 0)
    assert len(sandbox.export_runs(DAILY)["exported"]) - days == 2
    first, second = sandbox.export_runs(HOURLY)["exported"][-2:]
    assert first["interval_end"] == second["interval_start"]
    assert first["interval_start"].endswith(":00:00.000000Z")
    assert first["started_at"] == first["interval_end"]


@pytest.mark.usefixtures("just_after_the_hour")
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize(
    ("hours", "body", "exported", "missing"),
    [(3, {}, 0, 3), (3, {"backfill": False}, 0, 3), (3, {"backfill": True}, 3, 0), (1 / 6, {}, 0, 0)],
)
def test_intervals_during_a_pause_are_missing_until_a_backfill(
    sandbox: SandboxServer, api: httpx.Client, hours: float, body: dict[str, Any], exported: int, missing: int
) -> None:
    before = runs(sandbox)
    assert api.post(EXPORT + "pause/", json={}).json() == {"paused": True}
    sandbox.advance_clock(hours * HOUR)
    assert since(sandbox, before) == (0, int(hours))
    assert api.post(EXPORT + "unpause/", json=body).json() == {"paused": False}
    assert since(sandbox, before) == (exported, missing)
    for run in sandbox.export_runs(HOURLY)["exported"][-exported:] if exported else ():
        assert (run["status"], run["started_at"] > run["interval_end"]) == ("running", True)
    sandbox.advance_clock(HOUR)
    assert since(sandbox, before) == (exported + 1, missing)


@pytest.mark.usefixtures("just_after_the_hour")
def test_a_pause_does_not_stop_a_started_run(sandbox: SandboxServer, api: httpx.Client) -> None:
    last = sandbox.export_runs(HOURLY)["exported"][-1]
    assert last["status"] == "running"
    api.post(EXPORT + "pause/")
    assert sandbox.export_runs(HOURLY)["exported"][-1] == last
    sandbox.advance_clock(300)
    assert sandbox.export_runs(HOURLY)["exported"][-1] == last | {"status": "completed"}
