"""Access reviews in a complete Airflow: answered in the browser, by keyboard, through its API, and too late."""

from __future__ import annotations

import json
import time
import urllib.error
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

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
MANY = {OLIVE: "keep", ADAM: "keep", "everybody_else": "keep", "exceptions": ""}
# The example, whose schedule is its own.
EXAMPLE = "quarterly_access_review"
# The field that has the focus, and the text of a button that has it.
FOCUSED = """
const focused = document.activeElement, field = focused.closest("[id^='element_']");
return [field ? field.id.slice("element_".length) : "", focused.textContent.trim()];
"""


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
def test_each_person_is_decided_by_keyboard_alone(
    airflow: LiveAirflow, server: SandboxServer, browser: Browser, tmp_path: Path
) -> None:
    server.add_members(4)
    run = Run(airflow, tmp_path)
    open_question(airflow, browser, run)
    browser.read("To look at first", NOAH, "Done")
    assert len(answer_by_keyboard(browser, remove=(NOAH, LIV))) == 10
    assert run.end() == ("success", "complete", {NOAH: "done", LIV: "done"})


def answer_by_keyboard(browser: Browser, remove: tuple[str, ...]) -> list[str]:
    """Decide everybody with Tab, letters and Enter, and return them in the order of the fields."""
    decided: list[str] = []
    for _ in range(200):
        field, text = browser.driver.execute_script(FOCUSED)
        keys = ActionChains(browser.driver)
        if text == "Done":  # which is no stop of Tab before everybody is decided
            keys.send_keys(Keys.ENTER).perform()
            return decided
        if "@" in field and field not in decided:
            decided.append(field)
            keys.send_keys("remove" if field in remove else "keep").pause(0.3).send_keys(Keys.ENTER)
        keys.send_keys(Keys.TAB).perform()
    raise AssertionError(f"Tab never came to Done; decided were {decided}")


@needs_chromium
def test_many_people_are_decided_in_the_browser(
    airflow: LiveAirflow, server: SandboxServer, browser: Browser, tmp_path: Path
) -> None:
    server.add_members(300)
    run = Run(airflow, tmp_path)
    open_question(airflow, browser, run)
    browser.read("To look at first", "Done")
    choose(browser, "remove", "sam.sample.77@example.com (Sam Sample 77)")
    choose(browser, "everybody_else", "keep")
    assert not browser.find("//button[normalize-space()='Done']").is_enabled()
    for who, decision in {OLIVE: "keep", ADAM: "keep", NOAH: "remove"}.items():
        choose(browser, who, decision)
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
    run.answer({**MANY, NOAH: "remove", "remove": [GRACE]})
    airflow.wait_for(lambda: any(fault["hits"] for fault in server.faults()), 120, "the second removal")
    assert kill_workers(server) == 1
    server.clear_faults()
    assert run.end() == ("success", "complete", {NOAH: "done", GRACE: "done"})
    assert effects(server) == ["delete_member", "delete_member"]


@pytest.mark.skipif(
    datetime.now(timezone.utc).month % 3 == 1 and datetime.now(timezone.utc).day < 9,
    reason="the run of this quarter is not late yet",
)
def test_a_review_that_an_unpaused_dag_starts_late_is_skipped(airflow: LiveAirflow, tmp_path: Path) -> None:
    """Airflow starts the run of the last quarter at once; whoever triggers a run is asked."""
    airflow.user = "ruth"

    def runs() -> list[tuple[str, str]]:
        found = airflow.call("GET", f"dags/{EXAMPLE}/dagRuns")["dag_runs"]
        return [(run["dag_run_id"], run["state"]) for run in found]

    airflow.wait_for(lambda: [state for _, state in runs()] == ["success"], 300, "the run of the last quarter")
    ((run_id, _),) = runs()
    assert run_id.startswith("scheduled__")
    group = [f"access_review.{name}" for name in ("read_population", "decide", "apply_decisions", "close_review")]
    assert airflow.tasks(EXAMPLE, run_id) == {"is_due": "success", **dict.fromkeys(group, "skipped")}
    by_hand = airflow.trigger(EXAMPLE, evidence=str(tmp_path), reviewers=["ruth"])
    airflow.wait_for(lambda: airflow.tasks(EXAMPLE, by_hand).get(TASK) in ("awaiting_input", "deferred"), 300, "asked")
