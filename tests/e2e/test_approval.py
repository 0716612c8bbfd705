"""Approvals in a complete Airflow: through its API, in the browser, and with a killed worker."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
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
DAG, TASK = "approval", "off_board"
NOAH, GRACE, LIV = "noah.newton@example.com", "grace.analyst@example.com", "liv.invited@example.com"


USERS = dict.fromkeys(("ruth", "max", "eve"), "admin")


def question_of(run_id: str) -> str:
    return f"dags/{DAG}/dagRuns/{run_id}/taskInstances/{TASK}/-1/hitlDetails"


def ask(airflow: LiveAirflow, server: SandboxServer, *leavers: str, **conf: Any) -> tuple[str, dict[str, Any]]:
    """Start a run; return its id and its question when it waits for the answer."""
    server.reset()
    run_id = airflow.trigger(DAG, leavers=leavers, **conf)
    return run_id, wait_for_question(airflow, run_id)


def wait_for_question(airflow: LiveAirflow, run_id: str) -> dict[str, Any]:
    waiting = ("deferred", "awaiting_input")
    airflow.wait_for(lambda: airflow.tasks(DAG, run_id).get(TASK) in waiting, 120, "the question")
    time.sleep(3 * READING_SECONDS)  # these tests answer often, and meet a slow scheduler more often
    question: dict[str, Any] = airflow.call("GET", question_of(run_id))
    return question


def answer(airflow: LiveAirflow, run_id: str, option: str, user: str = "ruth") -> None:
    airflow.user = user
    airflow.call("PATCH", question_of(run_id), {"chosen_options": [option], "params_input": {}})


def test_only_approvers_can_answer(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, question = ask(airflow, server, NOAH, LIV, approvers=["ruth", "max"])
    assert f"  remove        {NOAH} " in question["body"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        answer(airflow, run_id, question["options"][0], "eve")
    assert effects(server) == []
    answer(airflow, run_id, question["options"][0], "max")
    with pytest.raises(urllib.error.HTTPError, match="409"):
        answer(airflow, run_id, "Reject", "ruth")
    assert airflow.finish(DAG, run_id) == "success"
    assert effects(server) == ["delete_invite", "delete_member"]
    path = f"dags/{DAG}/dagRuns/{run_id}/taskInstances/{TASK}/xcomEntries/approved"
    approved = airflow.call("GET", path)["value"]
    approved = json.loads(approved) if isinstance(approved, str) else approved
    assert (f"Approve plan {approved['plan']}", approved["by"]) == (question["options"][0], "max")


@pytest.mark.needs_airflow("3.3", "the task state store")
def test_a_retry_after_a_kill_applies_the_approved_plan(airflow: LiveAirflow, server: SandboxServer) -> None:
    run_id, question = ask(airflow, server, NOAH, GRACE)
    server.inject("time_out_before", "delete_member")
    answer(airflow, run_id, question["options"][0])
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
    browser.open(f"{airflow.url}/auth/login")
    browser.driver.add_cookie({"name": "_token", "value": airflow.token("ruth")})
    browser.open(f"{airflow.url}/dags/{DAG}/runs/{run_id}/tasks/{TASK}/required_actions")
    browser.read(NOAH, GRACE, LIV, "is leaving, but protected", question["options"][0], "Reject")
    browser.resize(HEIGHT, LEGIBLE)
    browser.picture("approval")
    browser.press(question["options"][0])
    assert airflow.finish(DAG, run_id) == "success"
    assert effects(server) == ["delete_invite", "delete_member", "delete_member"]
    assert {effect["target"] for effect in server.effects("delete_member")} == {SEED.absent_uuid, SEED.analyst_uuid}
