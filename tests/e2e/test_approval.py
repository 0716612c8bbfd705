"""Approvals in a complete Airflow: through its API, in the browser, for mapped files, and with a killed worker."""

from __future__ import annotations

import json
import time
import urllib.error
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects
from tests.e2e.chromium import HEIGHT, LEGIBLE, Browser, needs_chromium
from tests.e2e.live_airflow import READING_SECONDS
from tests.e2e.test_retries import kill_workers

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).parent / "approval_dags"
USERS = dict.fromkeys(("ruth", "max", "eve"), "admin")
# A Dag with one question, and one with a question for each of three files.
DAG, TASK = "approval", "off_board"
THREE, PLAN = "onboard_three", "organization.plan"
NORTH, SOUTH, MISTAKE = range(3)
NOAH, GRACE, LIV = "noah.newton@example.com", "grace.analyst@example.com", "liv.invited@example.com"
EFFECTS = {
    "create_project": 1,
    "create_domain": 1,
    "create_invite": 2,
    "update_member": 1,
    "create_dashboard": 1,
    "add_dashboard_collaborator": 1,
}


def task_url(dag_id: str, run_id: str, task_id: str, number: int = -1) -> str:
    return f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/{number}"


def states(airflow: LiveAirflow, dag_id: str, run_id: str) -> dict[tuple[str, int], str]:
    rows = airflow.call("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=100")["task_instances"]
    return {(row["task_id"].removeprefix("organization."), row["map_index"]): row["state"] for row in rows}


def wait_for_questions(airflow: LiveAirflow, dag_id: str, run_id: str, *tasks: tuple[str, int]) -> None:
    def asked() -> bool:
        now = states(airflow, dag_id, run_id)
        return all(now.get(task) in ("deferred", "awaiting_input") for task in tasks)

    airflow.wait_for(asked, 300, "the questions")
    time.sleep(3 * READING_SECONDS)  # these tests answer often, and meet a slow scheduler more often


def ask(airflow: LiveAirflow, server: SandboxServer, *leavers: str, **conf: Any) -> tuple[str, dict[str, Any]]:
    """Start a run; return its id and its question when it waits for the answer."""
    server.reset()
    run_id = airflow.trigger(DAG, leavers=leavers, **conf)
    wait_for_questions(airflow, DAG, run_id, (TASK, -1))
    return run_id, airflow.call("GET", f"{task_url(DAG, run_id, TASK)}/hitlDetails")


def answer(airflow: LiveAirflow, task: str, option: str, user: str = "ruth", **fields: Any) -> None:
    airflow.user = user
    airflow.call("PATCH", f"{task}/hitlDetails", {"chosen_options": [option], "params_input": fields})


def open_page(airflow: LiveAirflow, browser: Browser, page: str) -> None:
    browser.open(f"{airflow.url}/auth/login")
    browser.driver.add_cookie({"name": "_token", "value": airflow.token("ruth")})
    browser.open(f"{airflow.url}/{page}")


def test_only_approvers_can_answer(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, question = ask(airflow, server, NOAH, LIV, approvers=["ruth", "max"])
    task, approve = task_url(DAG, run_id, TASK), question["options"][0]
    assert f"| remove | member {NOAH} (Noah Newton) | " in question["body"].replace("<wbr>", "")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        answer(airflow, task, approve, "eve")
    assert effects(server) == []
    answer(airflow, task, approve, "max")
    with pytest.raises(urllib.error.HTTPError, match="409"):
        answer(airflow, task, "Reject", "ruth")
    assert airflow.finish(DAG, run_id) == "success"
    assert effects(server) == ["delete_invite", "delete_member"]
    path = f"dags/{DAG}/dagRuns/{run_id}/taskInstances/{TASK}/xcomEntries/approved"
    approved = airflow.call("GET", path)["value"]
    approved = json.loads(approved) if isinstance(approved, str) else approved
    assert (f"Approve plan {approved['plan']}", approved["by"]) == (approve, "max")


def test_whoever_approves_leaves_out_a_leaver(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, question = ask(airflow, server, NOAH, GRACE)
    field = question["params"]["leave_out"]
    (noah,) = [choice for choice in field["schema"]["examples"] if NOAH in choice]
    answer(airflow, task_url(DAG, run_id, TASK), question["options"][0], leave_out=[noah])
    assert airflow.finish(DAG, run_id) == "success"
    assert [effect["target"] for effect in server.effects()] == [SEED.analyst_uuid]
    assert "left out by ruth on " in airflow.log(DAG, run_id, TASK)


@pytest.mark.needs_airflow("3.3", "the task state store")
def test_a_retry_after_a_kill_applies_the_approved_plan(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, question = ask(airflow, server, NOAH, GRACE)
    server.inject("time_out_before", "delete_member")
    answer(airflow, task_url(DAG, run_id, TASK), question["options"][0])
    airflow.wait_for(lambda: any(fault["hits"] for fault in server.faults()), 120, "the first change")
    assert kill_workers(server) == 1
    server.clear_faults()
    assert airflow.finish(DAG, run_id) == "success"
    assert effects(server) == ["delete_member", "delete_member"]
    assert airflow.log(DAG, run_id, TASK).count("Waiting until plan") == 1, "nobody is asked twice"


@needs_chromium
def test_a_plan_is_read_and_approved_in_the_browser(
    airflow: LiveAirflow, server: SandboxServer, browser: Browser
) -> None:
    run_id, question = ask(airflow, server, NOAH, GRACE, LIV, "olive.owner@example.com")
    open_page(airflow, browser, f"dags/{DAG}/runs/{run_id}/tasks/{TASK}/required_actions")
    browser.read(NOAH, GRACE, LIV, "is leaving, but protected", question["options"][0], "Reject")
    browser.resize(HEIGHT, LEGIBLE)
    browser.picture("approval")
    browser.press(question["options"][0])
    # A leaver keeps access, so the run is red, after everything else.
    assert airflow.finish(DAG, run_id) == "failed"
    assert effects(server) == ["delete_invite", "delete_member", "delete_member"]
    assert {effect["target"] for effect in server.effects("delete_member")} == {SEED.absent_uuid, SEED.analyst_uuid}


@pytest.fixture(scope="module")
def three(airflow: LiveAirflow, server: SandboxServer) -> str:
    """Start a run of three files that waits for two answers; the third file is invalid."""
    server.reset()
    run_id = airflow.trigger(THREE)
    wait_for_questions(airflow, THREE, run_id, ("plan", NORTH), ("plan", SOUTH))
    airflow.wait_for(lambda: states(airflow, THREE, run_id)["plan", MISTAKE] == "failed", 120, "the invalid file")
    assert server.effects() == []
    return run_id


@needs_chromium
def test_the_plan_of_an_organization_is_readable_in_the_browser(
    airflow: LiveAirflow, browser: Browser, three: str
) -> None:
    task = f"dags/{THREE}/runs/{three}/tasks/{PLAN}/mapped/{NORTH}"
    browser.resize(HEIGHT, LEGIBLE)
    open_page(airflow, browser, f"{task}/required_actions")
    browser.read("Make these changes to organization north.yaml (", "create project Northwind", "Reject")
    browser.read("level: member (1) → admin (8)")
    browser.picture("organization_approval")
    browser.resize(2 * HEIGHT)  # only visible lines of a log are in the page
    browser.open(f"{airflow.url}/{task}")
    browser.read("6 to create", "+ project Northwind", "level: 1 -> 8")
    browser.press("Press f for fullscreen")
    browser.resize(HEIGHT // 2, LEGIBLE)
    browser.picture("organization_plan", "[role=dialog]")


def test_only_the_approved_one_of_three_files_is_applied(
    airflow: LiveAirflow, server: SandboxServer, three: str
) -> None:
    for number, choice in ((SOUTH, 1), (NORTH, 0)):
        task = task_url(THREE, three, PLAN, number)
        answer(airflow, task, airflow.call("GET", f"{task}/hitlDetails")["options"][choice])
    assert airflow.finish(THREE, three) == "failed"  # one file is invalid
    now = states(airflow, THREE, three)
    parts = ("projects", "domains", "verification", "members", "dashboards", "collaborators", "exports", "report")
    assert {now[part, NORTH] for part in parts} == {"success"}
    assert {now[part, SOUTH] for part in (*parts, "plan")} == {"skipped"}
    assert {now[part, MISTAKE] for part in parts} == {"upstream_failed"}
    assert Counter(effects(server)) == EFFECTS
    plans = airflow.call("GET", f"dags/{THREE}/dagRuns/{three}/taskInstances/{PLAN}/listMapped")["task_instances"]
    titles = ["Organization north.yaml", "Organization south", "Organization mistake.yaml"]
    assert [row["rendered_map_index"] for row in plans] == titles
