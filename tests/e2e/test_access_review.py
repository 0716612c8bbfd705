"""Access reviews in a complete Airflow: answered in the browser and through its API, in time and too late."""

from __future__ import annotations

import json
import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects
from tests.e2e.chromium import HEIGHT, LEGIBLE, Browser, needs_chromium
from tests.e2e.live_airflow import READING_SECONDS
from tests.e2e.test_retries import kill_workers

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = pytest.mark.e2e

DAGS = Path(__file__).parent / "review_dags"
USERS = {"ruth": "admin", "eve": "admin", "vera": "viewer"}
DAG, TASK = "review", "access_review.decide"
OLIVE, ADAM, MINA, NOAH, GRACE, LIV = (
    f"{name}@example.com"
    for name in ("olive.owner", "adam.admin", "mina.member", "noah.newton", "grace.analyst", "liv.invited")
)
KEPT = {**dict.fromkeys((OLIVE, ADAM, MINA, NOAH, GRACE, LIV), "keep"), "exceptions": ""}
MANY = {"lower_to_member": None, "exceptions": ""}


class Run:
    """A review in a run of its own, until it asks."""

    def __init__(self, airflow: LiveAirflow, evidence: Path, **conf: Any) -> None:
        airflow.user = "ruth"
        self.airflow, self.evidence = airflow, evidence
        self.run_id = airflow.trigger(DAG, evidence=str(evidence), **conf)
        self.task = f"dags/{DAG}/dagRuns/{self.run_id}/taskInstances/{TASK}/-1"
        airflow.wait_for(self.is_asked, 300, "the question")
        time.sleep(3 * READING_SECONDS)

    def is_asked(self) -> bool:
        return self.airflow.tasks(DAG, self.run_id).get(TASK) in ("awaiting_input", "deferred")

    def answer(self, fields: Any, user: str = "ruth") -> None:
        self.airflow.user = user
        body = {"chosen_options": ["Done"], "params_input": fields}
        try:
            self.airflow.call("PATCH", f"{self.task}/hitlDetails", body)
        finally:
            self.airflow.user = "ruth"

    def end(self) -> tuple[str, str, dict[str, str]]:
        """Return how the run ended, the state of the review, and the outcomes that are not "kept"."""
        state = self.airflow.finish(DAG, self.run_id)
        review = json.loads(next(self.evidence.glob("*/review.json")).read_text())
        outcomes = {row["who"]: row["outcome"] for row in review["outcomes"] if row["outcome"] != "kept"}
        return state, review["state"], outcomes


@pytest.fixture(autouse=True)
def begin_again(server: SandboxServer) -> None:
    server.reset()


def open_question(airflow: LiveAirflow, browser: Browser, run: Run) -> None:
    browser.open(f"{airflow.url}/auth/login")
    browser.driver.add_cookie({"name": "_token", "value": airflow.token("ruth")})
    browser.resize(2 * HEIGHT, LEGIBLE)
    browser.open(f"{airflow.url}/dags/{DAG}/runs/{run.run_id}/tasks/{TASK}/required_actions")


@needs_chromium
def test_each_person_is_decided_in_the_browser(
    airflow: LiveAirflow, server: SandboxServer, browser: Browser, tmp_path: Path
) -> None:
    run = Run(airflow, tmp_path)
    open_question(airflow, browser, run)
    browser.read("To look at first", NOAH, "Done")
    assert not browser.find("//button[normalize-space()='Done']").is_enabled()
    for who in (OLIVE, ADAM, MINA, NOAH, GRACE, LIV):
        choose(browser, who, "remove" if who in (NOAH, LIV) else "keep")
    browser.press("Done")
    assert run.end() == ("success", "complete", {NOAH: "done", LIV: "done"})
    assert sorted(effects(server)) == ["delete_invite", "delete_member"]


def choose(browser: Browser, name: str, *options: str) -> None:
    """Choose options of a drop-down."""
    field = f"//*[@id='element_{name}']"
    for option in options:
        browser.click(field)
        browser.click(f"//*[@role='option'][normalize-space()='{option}']")


@needs_chromium
def test_many_people_are_decided_in_the_browser(
    airflow: LiveAirflow, server: SandboxServer, browser: Browser, tmp_path: Path
) -> None:
    server.add_members(300)
    run = Run(airflow, tmp_path)
    open_question(airflow, browser, run)
    browser.read("To look at first", "Done")
    choose(browser, "remove", NOAH, "sam.sample.77@example.com")
    assert not browser.find("//button[normalize-space()='Done']").is_enabled()
    choose(browser, "all_others_stay", "yes")
    browser.press("Done")
    assert run.end() == ("success", "complete", {NOAH: "done", "sam.sample.77@example.com": "done"})
    assert effects(server) == ["delete_member", "delete_member"]


def test_only_a_reviewer_whose_role_permits_it_answers_and_silence_decides_nothing(
    airflow: LiveAirflow, server: SandboxServer, tmp_path: Path
) -> None:
    run = Run(airflow, tmp_path, reviewers=["ruth", "vera"], seconds=60)
    for user in ("eve", "vera"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            run.answer(KEPT, user)
    assert run.end() == ("failed", "not reviewed", {})
    assert airflow.tasks(DAG, run.run_id) == {
        "access_review.read_population": "success",
        TASK: "failed",
        "access_review.apply_decisions": "upstream_failed",
        "access_review.close_review": "failed",
    }
    assert effects(server) == []


def test_who_was_raised_between_question_and_apply_is_left(
    airflow: LiveAirflow, server: SandboxServer, api: httpx.Client, tmp_path: Path
) -> None:
    run = Run(airflow, tmp_path)
    api.patch(f"members/{SEED.member_uuid}/", json={"level": 8}).raise_for_status()
    run.answer({**KEPT, MINA: "remove", NOAH: "remove"})
    assert run.end() == ("failed", "incomplete", {MINA: "changed", NOAH: "done"})
    assert effects(server) == ["update_member", "delete_member"]


@pytest.mark.needs_airflow("3.3", "the task state store")
def test_a_killed_worker_sends_nothing_twice(airflow: LiveAirflow, server: SandboxServer, tmp_path: Path) -> None:
    server.add_members(300)
    run = Run(airflow, tmp_path)
    server.inject("time_out_before", "delete_member", after=1)
    run.answer({**MANY, "remove": [NOAH, GRACE], "all_others_stay": "yes"})
    airflow.wait_for(lambda: any(fault["hits"] for fault in server.faults()), 120, "the second removal")
    assert kill_workers(server) == 1
    server.clear_faults()
    assert run.end() == ("success", "complete", {NOAH: "done", GRACE: "done"})
    assert effects(server) == ["delete_member", "delete_member"]
