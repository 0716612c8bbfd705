"""The status page in a browser: before, during and after windows, for an admin and a viewer."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.version import Version
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.e2e.chromium import HEIGHT, TAKES_PICTURES, WIDTH, Browser, needs_chromium
from tests.e2e.processes import find_child, kill_tree
from tests.grant_notes import PREFIX as GRANTS
from tests.grant_notes import grant
from tests.leases import PREFIX, SWEEP, iso, lease, swept, variable

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.e2e.live_airflow import LiveAirflow

pytestmark = [pytest.mark.e2e, needs_chromium]

DAGS = Path(__file__).with_name("page_dags")
FIRST, SECOND, THIRD = (f"0190c0de-0000-4000-8000-0000000000e{number}" for number in (1, 2, 3))
PHONE = 390
# What is opened at first on a phone.
SCREEN = 844
# The script of axe-core, unchanged from its package in the npm registry. Its license is the MPL-2.0.
AXE = Path(__file__).with_name("vendor") / "axe-4.14.1.min.js"
FIND_VIOLATIONS = """
const done = arguments[0];
axe.run({ rules: { "target-size": { enabled: true } } }).then(({ violations }) => done(violations));
"""
OPEN_ALL = "for (const one of document.querySelectorAll('details')) one.open = true"
SMALL_TARGETS = """
const targets = [...document.querySelectorAll("a, button, summary, input")].filter((one) => one.checkVisibility());
const boxes = targets.map((one) => [one.outerHTML, one.getBoundingClientRect()]);
return boxes.filter(([, { width, height }]) => width < 24 || height < 24).map(([markup]) => markup);
"""
# Requests of each refresh without windows: Variables, health, sweeps, failed tasks, two of campaigns, waits, questions,
# a Dag, and one for a task that failed.
# Before Airflow 3.3, each list of tasks that has some needs another one with the rendered fields.
CALLS = 10 if Version(version("apache-airflow")) >= Version("3.3") else 15
# Maximum milliseconds of one long task in the browser; on an idle machine it takes far less.
STUTTER_MS = 400
CALLS_MADE = (
    "return performance.getEntriesByType('resource').map(e => e.name).filter(name => name.includes('/api/v2/'))"
)

WATCH_LONG_TASKS = (
    "window.tasks = []; new PerformanceObserver(l => tasks.push(...l.getEntries().map(e => e.duration)))"
    ".observe({entryTypes: ['longtask']})"
)


# Answers in place of those of Airflow, by a part of the address: none, a status, HTML, a log without end, or JSON.
FAULTS = """
const [ask, limit] = [window.fetch, AbortSignal.timeout.bind(AbortSignal)];
const read = () => JSON.parse(sessionStorage.getItem("faults") ?? "{}");
AbortSignal.timeout = (usual) => limit(Object.keys(read()).length ? 3000 : usual);
window.fetch = (url, init) => {
  const faults = read();
  const fault = faults[Object.keys(faults).find((part) => url.href.includes(part))];
  if (!fault) return ask(url, init);
  const { signal } = init;
  if (fault === "hang") return new Promise((_, no) => signal.addEventListener("abort", () => no(signal.reason)));
  if (fault === "html") return Promise.resolve(new Response("<p>", { headers: { "Content-Type": "text/html" } }));
  if (fault > 200) return Promise.resolve(new Response("{}", { status: fault }));
  window.parent.sent = 0;
  const part = new TextEncoder().encode('{"event": "line", "level": "info"}\\n'.repeat(1000));
  const pull = (stream) => { window.parent.sent += part.length; stream.enqueue(part); };
  return Promise.resolve(fault === "endless" ? new Response(new ReadableStream({ pull })) : Response.json(fault));
};
"""

# A user and a viewer may not read Variables.
USERS = {role: role for role in ("admin", "user", "viewer")}


class Page:
    """
    The status page in a browser.

    :param user: the user who is logged in
    """

    def __init__(self, browser: Browser, airflow: LiveAirflow) -> None:
        self.browser = browser
        self.airflow = airflow
        self.fails = False

    def open(self, user: str = "admin", fragment: str = "") -> None:
        """Log in, and open the page like its link in the navigation."""
        driver = self.browser.driver
        driver.switch_to.default_content()
        self.browser.open(f"{self.airflow.url}/auth/login")
        driver.delete_all_cookies()
        driver.execute_script("localStorage.removeItem('token')")  # where Airflow 3.1.0 stores the session
        driver.add_cookie({"name": "_token", "value": self.airflow.token(user)})
        self.browser.open(f"{self.airflow.url}/plugin/workspace{fragment}")
        self.enter()

    def fail(self, **faults: Any) -> None:
        """Let requests fail whose addresses contain a text; forget the reasons of failed tasks."""
        if not self.fails:
            self.browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": FAULTS})
            self.fails = True
        script = "sessionStorage.clear(); sessionStorage.setItem('faults', arguments[0])"
        self.browser.driver.execute_script(script, json.dumps(faults))

    def filtered(self, text: str) -> list[str]:
        """Return the rows of windows that a filter leaves."""
        driver = self.browser.driver
        field = driver.find_element(By.ID, "filter")
        field.clear()
        field.send_keys(text)
        return [row.text for row in driver.find_elements(By.CSS_SELECTOR, "#windows .rows > li")]

    def enter(self) -> None:
        """Switch to the frame of the page and wait until it is loaded."""
        driver = self.browser.driver
        driver.switch_to.default_content()
        frame = self.browser.find("iframe")
        driver.switch_to.frame(frame)
        self.browser.read("Updated ", selector="#updated")

    def section(self, name: str) -> str:
        """Return the text of a section."""
        return self.browser.text(f"#{name}")

    def until(self, said: Callable[[], bool], what: str, seconds: float = 120) -> None:
        """Refresh until a text appears."""

        def refreshed() -> bool:
            if said():
                return True
            self.browser.driver.find_element(By.ID, "refresh").click()
            time.sleep(1)
            return said()

        self.browser.wait_for(refreshed, what, seconds)

    def is_in_view(self, name: str) -> bool:
        """Return whether the title of a section is in the window."""
        script = f"return document.getElementById('{name}').getBoundingClientRect().top"
        return bool(-1 <= self.browser.driver.execute_script(script) < HEIGHT)

    def violations(self) -> list[str]:
        """Return what axe finds, with all details open: its rule, how bad it is, and the first element."""
        driver = self.browser.driver
        driver.execute_script(OPEN_ALL)
        driver.execute_script(AXE.read_text(encoding="utf-8"))
        found = driver.execute_async_script(FIND_VIOLATIONS)
        return [f"{one['impact']} {one['id']}: {one['nodes'][0]['html']}" for one in found]

    def top(self, name: str) -> float:
        """Return how far below the top of the page a section begins."""
        script = f"return document.getElementById('{name}').getBoundingClientRect().top + window.scrollY"
        return float(self.browser.driver.execute_script(script))

    def paused(self) -> set[str]:
        """Return the exports that the page shows as paused."""
        rows = self.browser.driver.find_elements(By.CSS_SELECTOR, "#windows .exports li")
        shown = [row.text for row in rows]
        return {export for export in (FIRST, SECOND, THIRD) if any(export in row and "aused" in row for row in shown)}

    def picture(self, name: str, height: int = HEIGHT) -> None:
        """Save a screenshot of the whole window."""
        driver = self.browser.driver
        driver.switch_to.default_content()
        self.browser.resize(height)
        self.browser.picture(name)
        self.browser.resize(HEIGHT)
        self.enter()


@pytest.fixture(scope="module")
def page_of_all(browser: Browser, airflow: LiveAirflow) -> Page:
    return Page(browser, airflow)


@pytest.fixture
def page(page_of_all: Page) -> Iterator[Page]:
    yield page_of_all
    if page_of_all.fails:
        page_of_all.fail()


def paused_in(server: SandboxServer) -> set[str]:
    """Return the exports that are paused in the service."""
    return {row["id"] for row in server.batch_exports() if row["paused"]}


def abandon(airflow: LiveAirflow) -> str:
    """Open a window, skip its closing task, and return its run."""
    run_id = airflow.trigger("abandoned")
    airflow.wait_for(lambda: airflow.tasks("abandoned", run_id)["work"] == "running", 200, "the work")
    path = f"dags/abandoned/dagRuns/{run_id}/taskInstances/maintenance_window.close"

    def skipped() -> bool:
        """A database locked by the scheduler leads to a 500."""
        try:
            airflow.call("PATCH", path, {"new_state": "skipped"})
        except urllib.error.HTTPError as error:
            if error.code != 500:
                raise
            return False
        return True

    airflow.wait_for(skipped, 60, "the state")
    return run_id


def runs_of_the_sweep(airflow: LiveAirflow) -> int:
    """Return how many runs of the sweep there are."""
    return int(airflow.call("GET", "dags/workspace_sweep/dagRuns")["total_entries"])


def note_sweep(airflow: LiveAirflow, run_id: str) -> None:
    """Write what a sweep writes that could not resume an export."""
    window = lease(dag_id="abandoned", run_id=run_id, close_task_id="maintenance_window.close")
    value = swept(window, "abandoned", "its closing task is skipped", at=time.time())
    airflow.call("PATCH", f"variables/{SWEEP}", {"key": SWEEP, "value": value})


def test_empty_sections_explain_themselves(page: Page) -> None:
    """The page is in the navigation."""
    page.open()
    page.browser.driver.switch_to.default_content()
    page.browser.open(page.airflow.url)
    page.browser.press("Browse")
    page.browser.click("//a[normalize-space()='Workspace'] | //*[@role='menuitem'][normalize-space()='Workspace']")
    page.enter()
    assert "No maintenance window holds a batch export" in page.section("windows")
    health = ("scheduler runs", "triggerer runs", "dag processor runs", "no sweep has run")
    page.browser.read(*health, selector="#health")
    assert "No bulk invite has run yet" in page.section("invites")
    assert "No sensors are waiting" in page.section("waits")
    assert "No approvals are waiting" in page.section("questions")
    assert "No open failures" in page.section("failed")


def test_windows_campaigns_and_waits_are_shown(page: Page, server: SandboxServer) -> None:
    airflow = page.airflow
    labels = {FIRST: "Orders to S3", SECOND: "Events to BigQuery", server.seed.organization_id: "Northwind"}
    airflow.call("POST", "variables", {"key": "workspace_labels", "value": json.dumps(labels)})
    run_id = airflow.trigger("nightly_maintenance")
    airflow.trigger("invite_team")
    airflow.trigger("organization")
    airflow.trigger("wait_for_people")
    airflow.trigger("approval")
    airflow.trigger("failing")
    airflow.finish("workspace_sweep", airflow.trigger("workspace_sweep"))
    abandoned = abandon(airflow)
    airflow.wait_for(lambda: airflow.tasks("nightly_maintenance", run_id)["work"] == "running", 200, "the work")
    page.open()
    page.until(lambda: "Goes on in" in page.section("invites"), "the campaign that waits", 200)
    page.until(lambda: "Invites Settled" in page.section("waits"), "the wait")
    page.until(lambda: page.paused() == {FIRST, SECOND, THIRD}, "the windows")
    page.until(lambda: "maintenance_window.close skipped" in page.section("windows"), "the state of the task")
    assert page.browser.text("#summary").startswith("3 exports paused, for "), "only the sweep says what is abandoned"
    assert "work running" in page.section("windows")
    note_sweep(airflow, abandoned)
    page.until(
        lambda: "1 export stuck: abandoned (last sweep)" in page.browser.text("#summary"), "the verdict of the sweep"
    )
    page.until(lambda: "isn't defined" in page.section("invites"), "the reason of the campaign that failed")
    assert page.paused() == paused_in(server) == {FIRST, SECOND, THIRD}
    windows = page.section("windows")
    assert windows.index(THIRD) < windows.index(FIRST), "what needs a person comes first"
    assert "ask ops" in windows
    assert "The last sweep said: abandoned: its closing task is skipped" in windows
    assert "Work not over" in windows
    assert [windows.count(name) for name in ("Orders to S3", "organization Northwind")] == [1, 2]
    invites = page.section("invites")
    assert "61 rows: 20 invited, 1 invalid, 40 left" in invites
    assert "Goes on in 59 min: the limit of 20 invites per hour (as configured) is reached" in invites
    assert "organization Northwind" in invites
    page.until(lambda: "1 rows: 1 invited" in page.section("invites"), "the members of an organization file")
    assert "organization / projects" not in page.section("invites"), "that part invites nobody"
    page.picture("status_page", HEIGHT + 50)
    page.browser.driver.switch_to.default_content()
    page.browser.driver.execute_script("document.documentElement.className = 'dark'")
    page.picture("status_page_dark", HEIGHT + 50)
    page.browser.driver.switch_to.default_content()
    page.browser.driver.execute_script("document.documentElement.className = 'light'")
    page.enter()
    width = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    page.browser.resize(HEIGHT, PHONE)
    scrolled, seen = page.browser.driver.execute_script(width)
    page.browser.resize(HEIGHT, WIDTH)
    assert scrolled <= seen <= PHONE, "the page fits on a phone"
    page.browser.click("//*[@id='windows']//a[contains(@href, '/dags/abandoned/runs/')]")
    page.browser.wait_for(lambda: "/dags/abandoned/runs/" in page.browser.driver.current_url, "the page of the run")


def test_what_waits_for_a_person_leads_to_the_answer(page: Page) -> None:
    page.open()
    page.until(lambda: "Make these changes to organization" in page.section("questions"), "the question", 200)
    page.browser.click("//*[@id='questions']//a[contains(@href, '/required_actions')]")
    page.browser.driver.switch_to.default_content()
    page.browser.read("Approve plan")


def test_what_failed_is_listed_until_it_succeeds(page: Page) -> None:
    """A failed sync behind an older green run."""
    airflow = page.airflow
    airflow.finish("sync", airflow.trigger("sync", email="mina.member@example.com"))
    airflow.finish("sync", airflow.trigger("sync", email="nobody"))
    page.open()
    page.until(lambda: "sync / members" in page.section("failed"), "the sync that failed")
    page.browser.read("[rows-invalid] ", "row 1 (nobody)", "member sync", "Open its log", selector="#failed")
    summary = page.browser.read("failed: ", "1 member sync", selector="#summary.error")
    assert "bulk invite" in summary, "the one of the Dag failing"
    page.browser.click("//*[@id='summary']//a[starts-with(., 'failed: ')]")
    page.browser.wait_for(lambda: page.is_in_view("failed"), "the section to be in view")
    airflow.finish("sync", airflow.trigger("sync", email="mina.member@example.com"))
    page.until(lambda: "sync / members" not in page.section("failed"), "the success")
    assert "failing / invite" in page.section("failed")


def test_the_link_of_a_sync_leads_to_its_rows(page: Page) -> None:
    page.open(fragment="#failing / invite")
    page.browser.read("failing / invite", selector="#failed")
    assert "No row matches the filter" in page.section("invites") or "failing" in page.section("invites")


def test_a_broken_answer_stops_one_section_only(page: Page) -> None:
    """Of an Airflow that answers with what nobody expects, in a browser that lacks what newer ones have."""
    page.open()
    driver = page.browser.driver
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete Map.groupBy"})
    wait = {"operator": "WorkspaceInvitesSettledSensor", "start_date": "no time", "rendered_fields": {"product": "x"}}
    broken = {"task_instances": [wait], "total_entries": 1}
    page.fail(**{"operator=WorkspaceDomainVerifiedSensor": broken})
    page.open()
    page.browser.read("This section cannot be shown: RangeError", selector="#waits .error")
    page.browser.read("failing / invite", selector="#failed")
    page.browser.read("Updated ", selector="#updated")


def test_the_documentation_is_linked_where_its_address_is_known(page: Page) -> None:
    page.open()
    about = "#docs a, #failed .rows a[href^='https://docs']"
    assert page.browser.driver.find_elements(By.CSS_SELECTOR, about) == []
    known = {"package_name": "airflow-provider-workspace", "documentation_url": "https://docs.example.com/workspace"}
    page.fail(**{"api/v2/providers": {"providers": [known], "total_entries": 1}})
    page.open()
    link = page.browser.find("#docs a").get_attribute("href")
    assert link == "https://docs.example.com/workspace/guides/status-page.html"


def test_grants_that_should_have_ended_are_red(page: Page) -> None:
    now = time.time()
    until = iso(now - 7200)
    notes = [grant(reason="rollout <b>", until=until), grant(then=None, until=iso(now + 7260)), {}]
    keys = [f"{GRANTS}{number}" for number in range(3)]
    for key, note in zip(keys, notes, strict=True):
        page.airflow.call("POST", "variables", {"key": key, "value": json.dumps(note)})
    page.open()
    page.until(lambda: "should have ended 2 h 0 min ago" in page.section("grants"), "the overdue grant")
    shown = page.section("grants")
    for said in (
        f"The grant in Variable {keys[2]} cannot be read, so nothing ends its access",
        "admin (8), then member (1)",
        "admin (8), then removed",
        "The next run of workspace_sweep is to end it.",
        "ends in 2 h",
        "rollout <b> · asked for by ada · approved by ruth",
        "End them now",
    ):
        assert said in shown
    red = page.browser.driver.find_elements(By.CSS_SELECTOR, "#grants .rows .bad, #grants .rows .error")
    assert len(red) == 3, "that it should have ended, what ends it, and the one that cannot be read"
    assert "grants that should have ended: 1 · unreadable grants: 1" in page.browser.text("#summary.error")
    for key in keys:
        page.airflow.call("PATCH", "variables", {"actions": [{"action": "delete", "entities": [key]}]})


@pytest.mark.skipif(TAKES_PICTURES, reason="the pictures show plain names")
def test_markup_in_names_is_escaped(page: Page) -> None:
    page.open()
    page.until(lambda: "onerror" in page.section("windows"), "the owner")
    page.browser.click("#invites summary")
    assert "<img src=x" in page.section("invites"), "the address of a row"
    assert "data-team <img src=x" in page.section("windows"), "the owner of a Dag"
    driver = page.browser.driver
    assert driver.find_elements(By.CSS_SELECTOR, "main img") == []
    assert driver.title != "markup ran"
    assert "markup" not in driver.execute_script("return document.title")


@pytest.mark.parametrize("width", [WIDTH, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_page(page: Page, width: int, theme: str) -> None:
    """Whoever sees no colours, reads with a screen reader, or taps with a thumb."""
    page.browser.resize(SCREEN, width)
    page.open()
    page.browser.driver.execute_script(
        "document.documentElement.classList.toggle('dark', arguments[0])", theme == "dark"
    )
    page.until(lambda: "stuck" in page.browser.text("#summary"), "the verdict of the sweep")
    page.browser.read("failing / invite", selector="#failed")
    first = (page.top("failed"), page.top("windows"))
    violations = page.violations()
    targets = page.browser.driver.execute_script(SMALL_TARGETS)
    page.browser.resize(HEIGHT)
    assert violations == []
    assert targets == []
    assert first[0] < first[1] < SCREEN, "what failed and what is stuck come first, on a phone as well"


def test_escape_closes_the_confirmation(page: Page) -> None:
    page.open()
    page.until(lambda: "Resume them now" in page.section("windows"), "the verdict of the sweep")
    driver = page.browser.driver
    page.browser.click("//summary[normalize-space()='Resume them now']")
    page.browser.read("Yes", selector=".action[open] button")
    driver.find_element(By.CSS_SELECTOR, ".action[open] button").send_keys(Keys.ESCAPE)
    assert driver.find_elements(By.CSS_SELECTOR, ".action[open]") == []
    assert driver.switch_to.active_element.text == "Resume them now", "the focus is where it was"


def test_the_filter_searches_what_a_person_sees(page: Page) -> None:
    page.open()
    page.until(lambda: "stuck" in page.browser.text("#summary"), "the verdict of the sweep")
    for text, exports in {"stuck": 1, "Orders to S3": 1, "ask ops": 1, "task_id": 0}.items():
        assert len(page.filtered(text)) == exports, text


def test_a_log_delays_nothing_and_is_not_read_to_its_end(page: Page) -> None:
    page.open()
    page.fail(**{"/logs/": "hang"})
    page.open()
    assert "failing / invite" in page.section("invites")
    assert "Failed:" not in page.section("invites")
    page.browser.read("Failed: its log cannot be read", selector="#invites")
    page.fail(**{"/logs/": "endless"})
    page.open()
    page.browser.read("Failed: its log is too long to look through here", selector="#invites")
    assert page.browser.driver.execute_script("return window.parent.sent") < 3 * 1_500_000, "three at a time"
    page.fail()


def test_a_failed_answer_leaves_the_last_one(page: Page) -> None:
    page.open()
    driver = page.browser.driver
    for fault, why in {
        "html": "a proxy answered in place of it",
        "hang": "no answer within",
        500: "status 500",
    }.items():
        page.fail(variables=fault)
        driver.find_element(By.ID, "refresh").click()
        page.browser.read("as of under 1 min ago: Airflow did not answer: ", why, FIRST, selector="#windows")
    assert "as of" not in page.browser.text("#summary")
    driver.execute_script("const now = Date.now(); Date.now = () => now + 120000")
    page.browser.read("as of 2 min ago: Airflow did not answer", selector="#summary.error")
    page.browser.read("as of 2 min ago: Airflow did not answer", FIRST, selector="#windows .error, #windows .rows")
    page.fail(**{"api/v2": 401})
    page.browser.read("Log in again: the session is over", "Log in", selector="#summary")
    assert "Log in" not in driver.find_element(By.TAG_NAME, "main").text
    page.browser.click("//*[@id='summary']//a[normalize-space()='Log in']")
    driver.switch_to.default_content()
    page.browser.wait_for(lambda: "login" in driver.current_url, "the login")
    page.fail()


def test_sections_wait_only_for_their_own_answer(page: Page) -> None:
    page.open()
    # Only tasks of organization files that invite nobody: the campaigns are behind them.
    other = {"operator": "WorkspaceApplyOrganizationOperator", "rendered_fields": {"part": "domains"}}
    others = [{**other, "id": str(number)} for number in range(100)]
    nothing = {"task_instances": others, "total_entries": 900}
    page.fail(variables="hang", **{"operator=WorkspaceCreateInvitesOperator": nothing})
    page.browser.driver.refresh()
    page.browser.driver.switch_to.frame(page.browser.find("iframe"))
    page.browser.read("None can be listed.", "Older ones are not listed.", selector="#invites")
    assert "Asking Airflow …: paused exports" in page.browser.text("#summary")
    page.browser.read("Airflow did not answer: no answer within", selector="#windows")
    page.fail()


@pytest.mark.parametrize("user", ["viewer", "user"])
def test_a_role_that_may_not_read_variables_is_told_so(page: Page, user: str) -> None:
    page.open(user)
    assert "Not visible to your role: paused exports, temporary access" in page.browser.text("#summary")
    for section in ("windows", "grants"):
        assert "Not visible to your role: it may not read Variables" in page.section(section)
    assert FIRST not in page.browser.text()
    assert "invite_team / invite" in page.section("invites")
    assert "failing / invite" in page.section("failed")
    assert "Run the sweep now" not in page.section("windows")
    page.browser.driver.switch_to.default_content()
    page.browser.open(f"{page.airflow.url}/workspace-ui/#waits")  # where links of tasks lead
    page.browser.read("Not visible to your role: paused exports", selector="#summary")


def test_the_sweep_is_run_from_the_page(page: Page, server: SandboxServer) -> None:
    airflow = page.airflow
    page.open()
    page.until(lambda: "clear it to resume the exports" in page.section("windows"), "the link to the closing task")
    page.browser.click("//summary[normalize-space()='Resume them now']")
    before = runs_of_the_sweep(airflow)
    page.browser.driver.execute_script("for (let i = 0; i < 3; i++) document.querySelector('.action button')?.click()")
    page.browser.read("workspace_sweep: Started, now ", "A sweep runs", seconds=30)
    page.until(lambda: page.paused() == {FIRST, SECOND}, "the export to be resumed", 200)
    assert paused_in(server) == {FIRST, SECOND}
    # A sweep that had to resume an export fails, so that somebody is told.
    said = ("workspace_sweep failed: [window-abandoned] windows: Window abandoned", "Now: 2 exports paused")
    page.browser.read(*said, selector="#said.error")
    assert runs_of_the_sweep(airflow) == before + 1
    page.fail(**{"workspace_sweep/dagRuns/": {"state": "failed", "dag_id": "-", "dag_run_id": "-"}})
    page.open()
    page.browser.click("//summary[normalize-space()='Run the sweep now']")
    page.browser.press("Yes")
    page.browser.read("workspace_sweep failed: Airflow began none of its tasks", selector="#said.error")
    page.fail()
    (airflow.home / "go_on").write_text("")
    page.until(lambda: "No maintenance window holds a batch export" in page.section("windows"), "the end", 200)
    assert paused_in(server) == set()


def test_a_refresh_sends_few_requests_and_a_hidden_page_none(page: Page) -> None:
    page.open()
    driver = page.browser.driver
    time.sleep(3)  # the logs of failed tasks, which the first poll asks last, are not counted
    made = driver.execute_script(CALLS_MADE)
    driver.execute_script("performance.clearResourceTimings()")
    driver.find_element(By.ID, "refresh").click()
    page.browser.wait_for(lambda: driver.execute_script(CALLS_MADE), "a refresh")
    time.sleep(3)
    again = driver.execute_script(CALLS_MADE)
    print(f"\ncalls at first {len(made)}, at a refresh {len(again)}")
    assert len(again) <= CALLS
    driver.execute_script(
        "Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });performance.clearResourceTimings()"
    )
    driver.find_element(By.ID, "refresh").click()
    time.sleep(3)
    assert driver.execute_script(CALLS_MADE) == []


def test_a_thousand_windows_and_one_unreadable_lease(page: Page) -> None:
    now = time.time()
    leases = [
        lease(
            dag_id="nightly_maintenance",
            run_id=f"manual__{number}",
            close_task_id="maintenance_window.close",
            batch_export_id=f"0190c0de-0000-4000-8000-{number:012d}",
            since=now - number,
            until=now + 3600,
            paused_at=now,
        )
        for number in range(1000)
    ]
    variables = dict(map(variable, leases)) | {f"{PREFIX}broken": "{"}
    entities = [{"key": key, "value": value} for key, value in variables.items()]
    page.airflow.call("PATCH", "variables", {"actions": [{"action": "create", "entities": entities}]})
    page.open()
    driver = page.browser.driver
    page.browser.read("Show more: 50 of 1000", "left to repair it", selector="#windows")
    made = [url for url in driver.execute_script(CALLS_MADE) if "variable_key_pattern" in url or "/list" in url]
    print(f"\n1,000 leases: {len(made)} calls for leases and states")
    assert len(made) <= 11 + 3 * 10 + 4  # the last for rendered fields
    driver.execute_script(WATCH_LONG_TASKS)
    for shown in (50, 250, 450, 650, 850):
        page.browser.press(f"Show more: {shown} of 1000")
    page.browser.wait_for(
        lambda: len(driver.find_elements(By.CSS_SELECTOR, "#windows .rows > li")) == len(leases), "all rows"
    )
    driver.find_element(By.ID, "refresh").click()
    time.sleep(8)
    longest = max(driver.execute_script("return tasks"), default=0)
    print(f"longest task of the browser: {longest:.0f} ms")
    assert longest < STUTTER_MS
    driver.find_element(By.ID, "filter").send_keys("000000000999")
    page.browser.wait_for(
        lambda: len(driver.find_elements(By.CSS_SELECTOR, "#windows .rows > li")) == 1, "the one that is meant"
    )


def test_without_a_scheduler_the_page_names_the_command(page: Page) -> None:
    kill_tree(find_child(page.airflow.processes["standalone"].pid, "scheduler"))
    page.open()
    command = "Where Airflow is installed, run python -m airflow_provider_workspace sweep."
    page.until(lambda: f"The scheduler is down, so no Dag runs. {command}" in page.section("windows"), "the command")
