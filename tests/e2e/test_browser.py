"""
The Airflow UI: connection form, trigger form, graph, log and extra link.

``make screenshots`` runs this, too, and saves the screenshots in docs/images: see :mod:`tests.e2e.pictures`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_workspace.get_provider_info import get_provider_info
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.chromium import HEIGHT, LEGIBLE, Browser, needs_chromium
from tests.e2e.live_airflow import LiveAirflow

pytestmark = [pytest.mark.e2e, needs_chromium]

EXAMPLES = Path(__file__).resolve().parents[2] / "example_dags"
BROWSER_DAGS = Path(__file__).with_name("browser_dags")
DAG = "onboard_organization"
DIALOG = "[role=dialog][data-state=open]"
TOAST = "[data-scope=toast][data-part=root]"
INVITES_PER_REQUEST = 20


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("live", rate_limit=False) as running:
        yield running


@pytest.fixture(scope="module")
def airflow(server: SandboxServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    """Airflow with two Dags and without the connection."""
    dags = tmp_path_factory.mktemp("dags")
    for file in (EXAMPLES / f"{DAG}.py", EXAMPLES / "data", BROWSER_DAGS / "bulk_invites.py"):
        (dags / file.name).symlink_to(file)
    airflow = LiveAirflow(tmp_path_factory.mktemp("airflow"), dags, server, AIRFLOW__CORE__TEST_CONNECTION="Enabled")
    del airflow.env["AIRFLOW_CONN_WORKSPACE_DEFAULT"]
    with airflow as running:
        yield running


@pytest.fixture(scope="module")
def form(browser: Browser, airflow: LiveAirflow, server: SandboxServer) -> str:
    """Create the connection with its form, and return the texts of the form."""
    browser.open(f"{airflow.url}/connections")
    browser.press("Add Connection")
    browser.fill("connection_id", "workspace_default")
    browser.find(f"{DIALOG} input[role=combobox]").send_keys("Workspace")
    browser.click("//*[@role='option'][normalize-space()='Workspace']")
    browser.fill("host", "http://127.0.0.1")
    browser.fill("port", str(server.port))
    browser.fill("password", server.seed.admin_key)
    standard = browser.read("Personal API key", selector=DIALOG)
    browser.picture("connection_form", DIALOG)

    browser.resize(3 * HEIGHT)
    browser.press("Extra Fields")
    browser.fill("element_organization_id", server.seed.organization_id)
    browser.fill("element_project_id", str(server.seed.project_id))
    browser.fill("element_bulk_invite_limit", str(INVITES_PER_REQUEST))
    browser.fill("element_web_url", server.url)
    extra = browser.read("Allow plain http://", selector=DIALOG)
    browser.press("Save")
    browser.resize(HEIGHT)
    browser.read("1 Connection", "workspace_default")
    return f"{standard}\n{extra}"


@pytest.fixture(scope="module")
def run(browser: Browser, airflow: LiveAirflow, form: str) -> str:  # noqa: ARG001 - the form makes the connection
    """Trigger the Dag with its form, wait for the end of the run, and return its page."""
    browser.open(f"{airflow.url}/dags/{DAG}")
    browser.press("Trigger")
    browser.read("Organization file", "The organization: a YAML file", selector=DIALOG)
    browser.click("//*[@role='dialog']//button[normalize-space()='Trigger']")
    airflow.wait_for(lambda: airflow.call("GET", f"dags/{DAG}/dagRuns")["dag_runs"], 120, "the run")
    run_id = airflow.call("GET", f"dags/{DAG}/dagRuns")["dag_runs"][0]["dag_run_id"]
    page = f"{airflow.url}/dags/{DAG}/runs/{run_id}"
    browser.open(page)
    browser.read("Running", run_id)
    assert airflow.finish(DAG, run_id, 480) == "success"
    browser.read("Success", "10 Task Instances")
    return page


def test_the_connection_form_explains_every_field(form: str) -> None:
    for field in get_provider_info()["connection-types"][0]["conn-fields"].values():
        assert field["label"] in form
        assert field["description"] in form


@pytest.mark.usefixtures("form")
def test_the_key_is_not_shown(browser: Browser, airflow: LiveAirflow, server: SandboxServer) -> None:
    browser.open(f"{airflow.url}/connections")
    browser.press("Edit Connection")
    field = browser.find("[name=password]")
    assert (field.get_attribute("type"), field.get_attribute("value")) == ("password", "***")
    assert server.seed.admin_key not in browser.driver.page_source


@pytest.mark.usefixtures("form")
def test_the_test_button_reports_the_confirmed_scopes(
    browser: Browser, airflow: LiveAirflow, server: SandboxServer
) -> None:
    browser.open(f"{airflow.url}/connections")
    browser.press("Test Connection")
    said = browser.read("Test Connection Successful", selector=TOAST)
    browser.resize(2 * HEIGHT // 3, LEGIBLE)
    browser.picture("connection_tested")
    browser.resize(HEIGHT)
    assert f"The service at {server.url} accepts the API key." in said
    assert f"Organization {server.seed.organization_id} can be read. Project 1 is 'Default project'." in said
    assert "Scopes confirmed by reading: project:read, organization:read, organization_member:read." in said
    assert "Scopes that reading cannot confirm: batch_export:write, " in said
    assert server.effects() == []


@pytest.mark.usefixtures("form")
def test_the_dag_documentation_is_shown(browser: Browser, airflow: LiveAirflow) -> None:
    browser.open(f"{airflow.url}/dags/{DAG}")
    browser.press("Dag Docs")
    said = browser.read("a second run changes nothing", selector=DIALOG)
    assert "**" not in said


def test_the_graph_shows_task_names(run: str, browser: Browser) -> None:
    browser.open(run)
    browser.press("Show Graph")
    browser.press("Collapse Details Panel")
    browser.press("Expand all task groups")
    shown = browser.read("Plan", "Publish the DNS challenges", "Report", selector=".react-flow__nodes")
    assert "publish_challenges" not in shown
    browser.resize(2 * HEIGHT // 3)
    browser.press("Fit View")
    browser.picture("graph", ".react-flow")
    browser.resize(HEIGHT)
    browser.press("Show Details Panel")
    browser.press("Show Grid")  # Airflow remembers the view


def test_the_extra_link_opens_the_workspace(run: str, browser: Browser, server: SandboxServer) -> None:
    browser.open(f"{run}/tasks/organization.projects/details")
    browser.read("Extra Links", "Workspace")
    browser.resize(2 * HEIGHT // 3, LEGIBLE)
    browser.picture("extra_link")
    browser.resize(HEIGHT)
    browser.follow("Workspace")
    assert browser.driver.current_url == f"{server.url}/organization/{server.seed.organization_id}/projects"
    browser.read("Northwind", "project 3", "Sign-ups", "151 pending, 1 expired", "northwind.example.com")
    browser.resize(HEIGHT, LEGIBLE)
    browser.picture("sandbox_after")


@pytest.mark.usefixtures("form")
def test_the_log_shows_the_report(airflow: LiveAirflow, browser: Browser) -> None:
    run_id = airflow.trigger("bulk_invites")
    assert airflow.finish("bulk_invites", run_id) == "success"
    browser.resize(2 * HEIGHT)  # only visible lines of a log are in the page
    browser.open(f"{airflow.url}/dags/bulk_invites/runs/{run_id}/tasks/invite_everybody")
    browser.read(
        "operation=CreateInvites outcome=applied rows=20 attempts=1",
        "Invites: 220 of 220 (100 %), ",
        "228 rows: 220 invited, 1 member, 2 duplicate, 5 invalid",
        "'example.com.' is not a domain",
    )
    browser.press("Press f for fullscreen")
    browser.resize(HEIGHT, LEGIBLE)
    browser.picture("bulk_invites_log", "[role=dialog]")
    browser.resize(HEIGHT)
