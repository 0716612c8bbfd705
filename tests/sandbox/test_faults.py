"""Faults of the package: late effects, lagging lists, failures. ``tests/faults`` tries all kinds with the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

ORGANIZATION = f"/api/organizations/{SEED.organization_id}/"
PROJECTS, INVITES, DOMAINS, MEMBERS = (
    f"{ORGANIZATION}{name}/" for name in ("projects", "invites", "domains", "members")
)
DASHBOARD = f"/api/environments/{SEED.project_id}/dashboards/{SEED.dashboard_id}/"
COLLABORATORS = DASHBOARD + "collaborators/"

live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


def names(api: httpx.Client) -> list[str]:
    return [row["name"] for row in api.get(PROJECTS).json()["results"]]


@live
def test_slow_effects_are_applied_in_order_of_time_and_dropped_by_a_reset(
    api: httpx.Client, sandbox: SandboxServer
) -> None:
    for name, seconds in (("second", 20), ("first", 10), ("dropped", 3600)):
        sandbox.inject("slow_effect", "create_project", seconds=seconds, answer="504")
        assert api.post(PROJECTS, json={"name": name}).status_code == 504
    assert names(api) == ["Default project"]
    sandbox.advance_clock(600)
    assert names(api) == ["Default project", "first", "second"]
    first, second = sandbox.effects("create_project")
    assert first["at"] < second["at"]
    assert sandbox.requests()[0]["handled"] == 201
    sandbox.reset()
    sandbox.advance_clock(3600)
    assert names(api) == ["Default project"]


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
    (invite,) = sandbox.effects("create_invite")
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


@live
def test_a_failure_has_the_given_detail(api: httpx.Client, sandbox: SandboxServer) -> None:
    sandbox.inject("status_before", "create_project", status=403, detail="Your plan has no room for more projects.")
    refused = api.post(PROJECTS, json={"name": "Shop"})
    assert (refused.status_code, refused.json()["detail"]) == (403, "Your plan has no room for more projects.")
