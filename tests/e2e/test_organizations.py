"""Organization files with a complete Airflow: approved, rejected, invalid, and later drift."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.audit import effects
from tests.e2e.chromium import HEIGHT, LEGIBLE, Browser, needs_chromium
from tests.e2e.live_airflow import READING_SECONDS

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).parent / "organization_dags"
DAG, PLAN = "onboard_three", "organization.plan"
NORTH, SOUTH, MISTAKE = range(3)
EFFECTS = {
    "create_project": 1,
    "create_domain": 1,
    "create_invite": 2,
    "update_member": 1,
    "create_dashboard": 1,
    "add_dashboard_collaborator": 1,
}


def states(airflow: LiveAirflow, run_id: str) -> dict[tuple[str, int], str]:
    rows = airflow.call("GET", f"dags/{DAG}/dagRuns/{run_id}/taskInstances?limit=100")["task_instances"]
    return {(row["task_id"].removeprefix("organization."), row["map_index"]): row["state"] for row in rows}


def log(airflow: LiveAirflow, dag_id: str, run_id: str) -> str:
    folder = airflow.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}" / f"task_id={PLAN}"
    return "".join(file.read_text() for file in sorted(folder.rglob("attempt=*.log")))


def question_of(run_id: str, number: int) -> str:
    return f"dags/{DAG}/dagRuns/{run_id}/taskInstances/{PLAN}/{number}/hitlDetails"


def answer(airflow: LiveAirflow, run_id: str, number: int, choice: int) -> None:
    option = airflow.call("GET", question_of(run_id, number))["options"][choice]
    airflow.call("PATCH", question_of(run_id, number), {"chosen_options": [option], "params_input": {}})


@pytest.fixture(scope="module")
def run_id(airflow: LiveAirflow, server: SandboxServer) -> str:
    """Start a run that waits for two answers."""
    started = airflow.trigger(DAG)
    waiting: dict[tuple[str, int], Any] = {("plan", NORTH): True, ("plan", SOUTH): True, ("plan", MISTAKE): False}

    def is_asked() -> bool:
        now = states(airflow, started)
        return all(
            now.get(task) in (("deferred", "awaiting_input") if waits else ("failed",))
            for task, waits in waiting.items()
        )

    airflow.wait_for(is_asked, 300, "two questions")
    time.sleep(3 * READING_SECONDS)
    assert server.effects() == []
    return started


def test_an_invalid_file_is_refused_with_the_line(airflow: LiveAirflow, run_id: str) -> None:
    said = log(airflow, DAG, run_id)
    assert "Correct mistake.yaml:" in said
    assert "line 3: projects.0.timezon: unknown field (did you mean 'timezone'?)" in said


@needs_chromium
def test_the_plan_is_readable_in_the_browser(airflow: LiveAirflow, browser: Browser, run_id: str) -> None:
    task = f"{airflow.url}/dags/{DAG}/runs/{run_id}/tasks/{PLAN}/mapped/{NORTH}"
    browser.resize(HEIGHT, LEGIBLE)
    browser.open(f"{task}/required_actions")
    browser.read("Make these changes to organization north.yaml (", "+ project Northwind", "level: 1 -> 8", "Reject")
    browser.picture("organization_approval")
    browser.resize(2 * HEIGHT)  # only visible lines of a log are in the page
    browser.open(task)
    browser.read("6 to create", "+ project Northwind", "level: 1 -> 8")
    browser.press("Press f for fullscreen")
    browser.resize(HEIGHT // 2, LEGIBLE)
    browser.picture("organization_plan", "[role=dialog]")


def test_only_approved_changes_are_sent(airflow: LiveAirflow, server: SandboxServer, run_id: str) -> None:
    answer(airflow, run_id, SOUTH, 1)
    answer(airflow, run_id, NORTH, 0)
    assert airflow.finish(DAG, run_id) == "failed"  # one file is invalid
    now = states(airflow, run_id)
    parts = ("projects", "domains", "verification", "members", "dashboards", "collaborators", "exports", "report")
    assert {now[part, NORTH] for part in parts} == {"success"}
    assert {now[part, SOUTH] for part in (*parts, "plan")} == {"skipped"}
    assert {now[part, MISTAKE] for part in parts} == {"upstream_failed"}
    assert Counter(effects(server)) == EFFECTS
    rows = airflow.call("GET", f"dags/{DAG}/dagRuns/{run_id}/taskInstances/organization.report/listMapped")
    assert [row["state"] for row in rows["task_instances"]] == ["success", "skipped", "upstream_failed"]
    plans = airflow.call("GET", f"dags/{DAG}/dagRuns/{run_id}/taskInstances/{PLAN}/listMapped")["task_instances"]
    assert [row["rendered_map_index"] for row in plans] == ["north.yaml", "south", "mistake.yaml"]


def test_drift_is_detected(airflow: LiveAirflow, server: SandboxServer) -> None:
    """After three days the invites have expired."""
    assert airflow.finish("check_north", airflow.trigger("check_north")) == "success"
    server.advance_clock(3 * 86_400 + 60)
    later = airflow.trigger("check_north")
    assert airflow.finish("check_north", later) == "failed"
    said = log(airflow, "check_north", later)
    assert "The organization differs from its file: 2 differences." in said
    assert "+ invite ada@northwind.example.com" in said
    assert Counter(effects(server)) == EFFECTS
