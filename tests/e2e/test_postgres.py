"""
The longest road of each kind in a complete Airflow with PostgreSQL, side by side, and beside them somebody else's Dag.

PostgreSQL enforces what SQLite does not: lengths, ranges of numbers, locks. `make postgres` runs this.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.live_airflow import AIRFLOW, READING_SECONDS, LiveAirflow
from tests.leases import seconds_of

pytestmark = [pytest.mark.e2e, pytest.mark.needs_airflow("3.3", "the asset state store")]

DAGS = Path(__file__).parent / "postgres_dags"
OVERLAPPING, _, ABANDONED = SEED.batch_export_ids
# Dags with an organization and a connection of their own, so that none changes what another has planned.
ORGANIZATIONS = ("approval", "grants", "review", "bulk_invite", "arrivals")
OWNER = "olive.owner@example.com"
# From the first run, for all of them: without a scheduler the tests fail soon.
SECONDS = 300


@dataclass(frozen=True)
class Organization:
    """An organization of the service."""

    id: str
    key: str
    api: httpx.Client

    def people(self) -> dict[str, int]:
        """Return the level of each member but the owner."""
        rows = self.api.get("members/", params={"limit": 1000}).raise_for_status().json()["results"]
        return {row["user"]["email"]: row["level"] for row in rows if row["user"]["email"] != OWNER}


@dataclass(frozen=True)
class Runs:
    """Runs that began side by side: their ids by Dag, and the time until which all of them must end."""

    airflow: LiveAirflow
    ids: dict[str, str]
    until: float

    def left(self) -> float:
        """Return the seconds that are left."""
        return max(1.0, self.until - time.monotonic())

    def end(self, dag_id: str) -> str:
        """Wait for the end of a run and return its state."""
        return self.airflow.finish(dag_id, self.ids[dag_id], self.left())

    def task(self, dag_id: str, task_id: str) -> str:
        """Return the path of a task in Airflow's API."""
        return f"dags/{dag_id}/dagRuns/{self.ids[dag_id]}/taskInstances/{task_id}"

    def log(self, dag_id: str, task_id: str) -> str:
        """Return the log of a task."""
        return self.airflow.log(dag_id, self.ids[dag_id], task_id)

    def answer(self, dag_id: str, task_id: str, fields: dict[str, Any]) -> str:
        """Choose the first option of a question as soon as Airflow takes an answer, and return its text."""
        task = self.task(dag_id, task_id)
        is_asked = lambda: self.airflow.call("GET", task)["state"] in ("awaiting_input", "deferred")  # noqa: E731
        self.airflow.wait_for(is_asked, self.left(), f"the question of {dag_id}")
        question = self.airflow.call("GET", f"{task}/-1/hitlDetails")
        time.sleep(max(0.0, seconds_of(question["created_at"]) + 3 * READING_SECONDS - time.time()))
        body = {"chosen_options": question["options"][:1], "params_input": fields}
        self.airflow.call("PATCH", f"{task}/-1/hitlDetails", body)
        return str(question["body"])


@dataclass(frozen=True)
class Sweep:
    """What the commands listed before the sweep, and what the sweep did."""

    windows: str
    grants: str
    state: str
    log: str


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("live", rate_limit=False) as running:
        yield running


@pytest.fixture(scope="module")
def organizations(server: SandboxServer) -> Iterator[dict[str, Organization]]:
    made: dict[str, Organization] = {}
    for name in ORGANIZATIONS:
        row = server.add_organization(name)
        api = httpx.Client(
            base_url=f"{server.url}/api/organizations/{row['id']}/",
            headers={"Authorization": f"Bearer {row['key']}"},
            trust_env=False,
            timeout=60,
        )
        made[name] = Organization(id=row["id"], key=row["key"], api=api)
    for name, members in (("approval", 500), ("grants", 2), ("review", 3)):
        server.add_members(members, made[name].id)
    yield made
    for organization in made.values():
        organization.api.close()


@pytest.fixture(scope="module")
def airflow(
    server: SandboxServer,
    organizations: dict[str, Organization],
    postgres: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LiveAirflow]:
    connections = {
        f"AIRFLOW_CONN_{name.upper()}": server.connection(
            organization.key, organization_id=organization.id, consistency_time=1
        )
        for name, organization in organizations.items()
    }
    with LiveAirflow(
        tmp_path_factory.mktemp("airflow"),
        DAGS,
        server,
        users={"ruth": "admin"},
        postgres=postgres,
        AIRFLOW__CORE__PARALLELISM="8",
        **connections,
    ) as running:
        yield running


@pytest.fixture(scope="module")
def runs(
    airflow: LiveAirflow,
    server: SandboxServer,
    organizations: dict[str, Organization],
    tmp_path_factory: pytest.TempPathFactory,
) -> Runs:
    # The rates of a service that refuses the first invites, and others later. Airflow 3.3.2 counts a deferred task as
    # failed that goes on before its scheduler has seen it deferred.
    for requests in (0, 3):
        server.inject("rate_limit", "create_invites", seconds=4 * READING_SECONDS, after=requests)
    airflow.call("POST", "pools", {"name": "one_slot", "slots": 1})
    airflow.call("PATCH", "dags/somebody_else", {"is_paused": False})
    until = time.monotonic() + SECONDS
    short, long = organizations["grants"].people()
    # Alone, so that its window is open before its time is over.
    abandoned = airflow.trigger("abandoned")
    airflow.wait_for(lambda: history(server, ABANDONED), SECONDS, "the window that is abandoned")
    conf: dict[str, dict[str, Any]] = {
        "crowd": {},
        "full_pool": {},
        "approval": {"leavers": list(organizations["approval"].people())},
        "review": {"evidence": str(tmp_path_factory.mktemp("evidence"))},
        "bulk_invite": {"people": [f"person{number}@example.com" for number in range(80)]},
        "grants": {"short": short, "long": long},
        "overlapping": {},
        "organizations": {},
    }
    ids = {dag_id: airflow.trigger(dag_id, **params) for dag_id, params in conf.items()}
    return Runs(airflow, {"abandoned": abandoned, **ids}, until)


def command(airflow: LiveAirflow, name: str) -> tuple[int, str]:
    """Run a command of `airflow workspace`; return its exit status and output."""
    run = subprocess.run([AIRFLOW, "workspace", name], env=airflow.env, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def history(server: SandboxServer, export: str) -> list[str]:
    return [effect["operation"].split("_")[0] for effect in server.effects() if effect["target"] == export]


def test_a_window_comes_before_what_waits_in_its_pool(airflow: LiveAirflow, runs: Runs) -> None:
    """The pool has one slot. Guard and close start before thirty others, and change no priority of the work."""
    assert runs.end("full_pool") == "success"
    airflow.call("PATCH", f"dags/crowd/dagRuns/{runs.ids['crowd']}", {"state": "failed"})
    started = airflow.query(
        "SELECT task_id, priority_weight FROM task_instance "
        "WHERE pool = 'one_slot' AND start_date IS NOT NULL ORDER BY start_date"
    )
    order = [task_id for task_id, _ in started]
    assert order[:4] == ["hold_the_slot", "maintenance_window.guard", "work", "work"]
    # One may get the slot of the last work, before the scheduler has found that close is due.
    assert "maintenance_window.close" in order[4:6]
    assert {weight for task_id, weight in started if task_id == "work"} == {5}


def test_a_plan_for_500_people_is_approved(
    runs: Runs, server: SandboxServer, organizations: dict[str, Organization]
) -> None:
    question = runs.answer("approval", "off_board", {})
    assert "500" in question
    assert runs.end("approval") == "success"
    assert organizations["approval"].people() == {}
    assert len(server.effects("delete_member")) >= 500


def test_an_access_review_removes_whom_its_reviewer_removes(
    airflow: LiveAirflow, runs: Runs, organizations: dict[str, Organization]
) -> None:
    first, *others = organizations["review"].people()
    answers = {**dict.fromkeys(others, "keep"), first: "remove", OWNER: "keep", "exceptions": ""}
    runs.answer("review", "access_review.decide", answers)
    assert runs.end("review") == "success"
    assert list(organizations["review"].people()) == others
    code, said = command(airflow, "decisions")
    assert (code, first in said) == (0, True), said


def test_ten_arrivals_at_once_are_told_once_each(
    airflow: LiveAirflow, runs: Runs, organizations: dict[str, Organization]
) -> None:
    remembers = lambda: airflow.query("SELECT 1 FROM asset_state_store")  # noqa: E731
    airflow.wait_for(remembers, runs.left(), "the watcher to remember what is there")
    names = [f"Project {number}" for number in range(10)]
    for name in names:
        organizations["arrivals"].api.post("projects/", json={"name": name}).raise_for_status()

    def told() -> list[str]:
        extras = airflow.query("SELECT CAST(extra AS TEXT) FROM asset_event")
        return [row["name"] for (extra,) in extras for row in json.loads(extra)["payload"]["rows"]]

    airflow.wait_for(lambda: len(told()) >= len(names), runs.left(), "ten arrivals")
    assert sorted(told()) == names

    def states() -> set[str]:
        return {run["state"] for run in airflow.call("GET", "dags/arrivals/dagRuns")["dag_runs"]}

    airflow.wait_for(lambda: states() == {"success"}, runs.left(), "a run")


def test_a_bulk_invite_that_deferred_twice_invites_everybody_once(
    runs: Runs, server: SandboxServer, organizations: dict[str, Organization]
) -> None:
    assert runs.end("bulk_invite") == "success"
    assert runs.log("bulk_invite", "invite").count("Deferring until") == 2
    target = organizations["bulk_invite"].id
    invited = [effect["target"] for effect in server.effects("create_invite") if effect["organization_id"] == target]
    assert sorted(invited) == sorted(f"person{number}@example.com" for number in range(80))


def test_organizations_with_long_and_odd_names_are_mapped(airflow: LiveAirflow, runs: Runs, api: httpx.Client) -> None:
    assert runs.end("organizations") == "success"
    plans = airflow.call("GET", f"{runs.task('organizations', 'organization.plan')}/listMapped")["task_instances"]
    long, *others = [row["rendered_map_index"] for row in plans]
    assert long.startswith("Organization North North ")
    assert others == ["Organization 🦊 \U00020bb7野家", 'Organization O\'Brien "& <Sons>"', "Organization 360"]
    projects = {row["name"] for row in api.get("projects/", params={"limit": 100}).json()["results"]}
    assert projects >= {f"Project {number}" for number in range(4)}


def test_the_last_of_two_overlapping_windows_resumes_the_export(
    airflow: LiveAirflow, runs: Runs, server: SandboxServer
) -> None:
    assert runs.end("overlapping") == "success"
    assert history(server, OVERLAPPING) == ["pause", "unpause"]
    resumed = next(row["at"] for row in server.effects("unpause_batch_export") if row["target"] == OVERLAPPING)
    assert seconds_of(resumed) >= seconds_of(airflow.call("GET", runs.task("overlapping", "long"))["end_date"])


@pytest.fixture(scope="module")
def sweep(airflow: LiveAirflow, runs: Runs) -> Sweep:
    """Sweep after a window was abandoned and a grant is over; both commands list them before."""
    assert runs.end("abandoned") == "failed"
    assert runs.end("grants") == "success"
    _, windows = command(airflow, "windows")
    _, grants = command(airflow, "grants")
    run_id = airflow.trigger("sweep")
    state = airflow.finish("sweep", run_id, runs.left())
    return Sweep(windows=windows, grants=grants, state=state, log=airflow.log("sweep", run_id, "sweep"))


def test_the_sweep_closes_an_abandoned_window(runs: Runs, server: SandboxServer, sweep: Sweep) -> None:
    assert runs.ids["abandoned"] in sweep.windows
    assert sweep.state == "failed", "a window was abandoned"
    assert f"Window abandoned / {runs.ids['abandoned']}" in sweep.log
    assert history(server, ABANDONED) == ["pause", "unpause"]


def test_the_sweep_ends_a_grant_that_is_over(sweep: Sweep, organizations: dict[str, Organization]) -> None:
    short, long = organizations["grants"].people()
    assert all(who in sweep.grants for who in (short, long))
    assert organizations["grants"].people() == {short: 1, long: 8}


def test_after_the_sweep_the_command_finds_nothing_left(
    airflow: LiveAirflow, server: SandboxServer, sweep: Sweep
) -> None:
    assert sweep.log
    before = len(server.effects())
    code, said = command(airflow, "sweep")
    assert (code, len(server.effects())) == (0, before), said


def test_the_dag_of_somebody_else_got_each_of_its_runs(airflow: LiveAirflow, runs: Runs) -> None:
    """Its last test: the Dag was due beside all the others."""
    assert runs.ids

    def due() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = airflow.call("GET", "dags/somebody_else/dagRuns?order_by=logical_date")["dag_runs"]
        return rows

    airflow.wait_for(lambda: {run["state"] for run in due()} == {"success"}, 60, "its last run")
    minutes = [seconds_of(run["logical_date"]) // 60 for run in due()]
    assert minutes == list(range(int(minutes[0]), int(minutes[-1]) + 1))
    assert len(minutes) >= 2
    assert time.time() // 60 - minutes[-1] <= 1
    weights = airflow.query(
        "SELECT DISTINCT task_id, priority_weight FROM task_instance WHERE dag_id = 'somebody_else'"
    )
    assert sorted(weights) == [("extract", 10), ("load", 3)]
