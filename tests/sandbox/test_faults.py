"""Faults: late effects, lagging lists, wrong counts, untrue responses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

ORGANIZATION = f"/api/organizations/{SEED.organization_id}/"
PROJECTS, INVITES, DOMAINS = (f"{ORGANIZATION}{name}/" for name in ("projects", "invites", "domains"))
MEMBERS = f"{ORGANIZATION}members/"
MEMBER = f"{MEMBERS}{SEED.member_uuid}/"
DASHBOARD = f"/api/environments/{SEED.project_id}/dashboards/{SEED.dashboard_id}/"
COLLABORATORS = DASHBOARD + "collaborators/"
EXPORT = f"{ORGANIZATION}batch_exports/{SEED.batch_export_ids[0]}/"

live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)
lenient = pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)


def names(api: httpx.Client) -> list[str]:
    return [row["name"] for row in api.get(PROJECTS).json()["results"]]


def pages(api: httpx.Client, path: str, limit: int) -> tuple[int, list[str]]:
    """Read a list in pages; return its count and the ids of its rows."""
    following, ids, count = f"{path}?limit={limit}", list[str](), 0
    while following:
        page = api.get(following).json()
        following, count = page["next"], page["count"]
        ids += [row["id"] for row in page["results"]]
    return count, ids


# --- slow_effect ---


@lenient
@pytest.mark.parametrize("answer", ["reset", "time_out"])
def test_a_slow_effect_follows_the_lost_response(api: httpx.Client, sandbox: SandboxServer, answer: str) -> None:
    sandbox.inject("slow_effect", "create_project", seconds=3600, answer=answer)
    with pytest.raises(httpx.TransportError):
        api.post(PROJECTS, json={"name": "Shop"}, timeout=0.1)
    assert names(api) == ["Default project"]
    sandbox.advance_clock(3500)
    assert names(api) == ["Default project"]
    sandbox.advance_clock(101)
    (effect,) = sandbox.effects("create_project")
    assert names(api) == ["Default project", "Shop"]
    # Its timestamp is the time when it was due.
    now = sandbox.control("POST", "clock", {"advance_seconds": 7200})["now"]
    assert effect["at"] < now


@lenient
def test_a_slow_effect_also_follows_real_time(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("slow_effect", "create_project", seconds=0.2, answer="504")
    assert api.post(PROJECTS, json={"name": "Shop"}).status_code == 504
    assert names(api) == ["Default project"]
    time.sleep(0.25)
    assert names(api) == ["Default project", "Shop"]


@lenient
def test_slow_effects_are_applied_in_order_of_time(api: httpx.Client, sandbox: SandboxServer) -> None:
    for name, seconds in (("second", 20), ("first", 10)):
        sandbox.inject("slow_effect", "create_project", seconds=seconds, answer="504")
        api.post(PROJECTS, json={"name": name})
    sandbox.advance_clock(600)
    assert names(api) == ["Default project", "first", "second"]
    first, second = sandbox.effects("create_project")
    assert first["at"] < second["at"]
    assert sandbox.requests()[0]["handled"] == 201


@lenient
def test_a_reset_drops_pending_effects(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("slow_effect", "create_project", seconds=10, answer="504")
    api.post(PROJECTS, json={"name": "Shop"})
    sandbox.reset()
    sandbox.advance_clock(20)
    assert names(api) == ["Default project"]


# --- Lists ---


def test_late_rows_appear_after_their_delay(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.advance_clock(60)  # so that the seed is old enough
    sandbox.inject("late_rows", seconds=20)
    lists: dict[str, dict[str, Any]] = {
        PROJECTS: {"name": "Shop"},
        DOMAINS: {"domain": "new.example.com"},
        INVITES: {"target_email": "new@example.com"},
        COLLABORATORS: {"user_uuid": SEED.member_uuid, "level": 37},
    }
    api.patch(DASHBOARD, json={"restriction_level": 37})
    before = {path: rows_of(api.get(path).json()) for path in (*lists, MEMBERS)}
    for path, body in lists.items():
        assert api.post(path, json=body).status_code == 201
    (invite,) = list(sandbox.effects("create_invite"))
    assert {path: rows_of(api.get(path).json()) for path in before} == before
    assert api.get(PROJECTS).json()["count"] == len(before[PROJECTS])
    sandbox.accept_invite(invite["detail"]["invite_id"])
    assert rows_of(api.get(MEMBERS).json()) == before[MEMBERS]
    sandbox.advance_clock(21)
    grown = {path: len(rows_of(api.get(path).json())) - len(rows) for path, rows in before.items()}
    assert grown == {PROJECTS: 1, DOMAINS: 1, INVITES: 0, COLLABORATORS: 1, MEMBERS: 1}


def rows_of(answer: Any) -> list[Any]:
    if isinstance(answer, list):
        return answer
    rows: list[Any] = answer.get("results", [answer])
    return rows


def test_late_rows_keep_pages_consistent(api: httpx.Client, sandbox: SandboxServer) -> None:
    for number in range(5):
        api.post(PROJECTS, json={"name": f"Shop {number}"})
    sandbox.advance_clock(60)
    api.post(PROJECTS, json={"name": "Late"})
    sandbox.inject("late_rows", seconds=20)
    assert pages(api, PROJECTS, 2)[0] == 6
    assert len(pages(api, PROJECTS, 2)[1]) == 6


@lenient
@pytest.mark.parametrize(
    ("missing", "left"),
    [("rest", [0, 1]), ("last", [0, 2, 4]), ("newest", [0, 1, 2, 3])],
)
def test_short_pages_lack_rows_and_have_the_right_count(
    api: httpx.Client, sandbox: SandboxServer, missing: str, left: list[int]
) -> None:
    count, ids = pages(api, MEMBERS, 2)
    assert (count, len(ids)) == (5, 5)
    sandbox.inject("short_pages", "list_members", missing=missing, times=None)
    lacking = pages(api, MEMBERS, 2)
    assert lacking == (5, [ids[index] for index in left if index < len(ids) - (missing == "last")])
    sandbox.clear_faults()
    sandbox.inject("short_pages", "list_members", missing=missing)
    assert pages(api, MEMBERS, 2)[1] != ids or missing == "newest"
    assert pages(api, MEMBERS, 2) == (5, ids)


@lenient
def test_moving_rows_are_repeated_or_missing(api: httpx.Client, sandbox: SandboxServer) -> None:
    _, ids = pages(api, MEMBERS, 2)
    sandbox.inject("moving_rows", "list_members")
    count, moved = pages(api, MEMBERS, 2)
    assert (count, len(moved)) == (5, 5)
    assert set(moved) < set(ids)
    # Several reads joined by id have all rows.
    for _ in range(4):
        moved += pages(api, MEMBERS, 2)[1]
    assert set(moved) == set(ids)


@lenient
@pytest.mark.parametrize("kind", ["late_rows", "short_pages", "moving_rows"])
def test_faults_of_lists_do_not_change_errors(
    client_for: Callable[[str], httpx.Client], sandbox: SandboxServer, kind: str
) -> None:
    sandbox.inject(kind)
    assert client_for(SEED.no_scopes_key).get(MEMBERS).status_code == 403


# --- said_otherwise ---


@live
def test_said_otherwise_can_skip_the_change(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("said_otherwise", times=None)
    assert api.patch(MEMBER, json={"level": 8}).json()["level"] == 1
    assert api.delete(MEMBER).status_code == 204
    assert api.patch(DASHBOARD, json={"deleted": True}).json()["deleted"] is False
    assert api.post(EXPORT + "pause/").json() == {"paused": False}
    assert api.post(EXPORT + "unpause/").json() == {"paused": True}
    assert sandbox.effects() == []
    rows = [{"target_email": f"new.{number}@example.com"} for number in range(20)]
    assert len(api.post(INVITES + "bulk/", json=rows).json()) == 18
    assert len(sandbox.effects("create_invite")) == 18
    project = api.post(PROJECTS, json={"name": "Shop", "timezone": "Europe/Oslo"}).json()
    assert (project["name"], project["timezone"]) == ("Shop", "UTC")


@live
def test_said_otherwise_can_change_the_response(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("said_otherwise", times=None, how="other_answer")
    assert api.patch(MEMBER, json={"level": 8}).json()["level"] == 9
    assert api.post(EXPORT + "pause/").json() == {"paused": False}
    assert api.patch(DASHBOARD, json={"name": "Sales"}).json()["name"] == "Sales too"
    assert api.patch(DASHBOARD, json={"deleted": True}).json()["deleted"] is False
    rows = [{"target_email": f"new.{number}@example.com"} for number in range(3)]
    assert len(api.post(INVITES + "bulk/", json=rows).json()) == 1
    assert api.delete(MEMBER).status_code == 204
    assert effects(sandbox) == [
        "update_member",
        "pause_batch_export",
        "update_dashboard",
        "delete_dashboard",
        *["create_invite"] * 3,
        "delete_member",
    ]


@lenient
def test_said_otherwise_can_normalize_texts(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("said_otherwise", times=None, how="normalized")
    made = api.post(PROJECTS, json={"name": " Cafe\u0301   au lait ", "app_urls": ["a  b"]}).json()
    assert (made["name"], made["app_urls"]) == ("Caf\u00e9 au lait", ["a b"])
    assert len(api.post(PROJECTS, json={"name": "x" * 100}).json()["name"]) == 60


@lenient
def test_a_failure_has_the_given_detail(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("status_before", "create_project", status=403, detail="Your plan has no room for more projects.")
    refused = api.post(PROJECTS, json={"name": "Shop"})
    assert (refused.status_code, refused.json()["detail"]) == (403, "Your plan has no room for more projects.")
