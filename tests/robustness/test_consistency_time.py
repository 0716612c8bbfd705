"""
Late effects and lagging lists: nothing is created twice.

Waits advance the clock of the sandbox and take no time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import WorkspaceOutcomeUnknownError
from airflow_provider_workspace.operators.dashboards import WorkspaceAddDashboardCollaboratorOperator
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
    pytest.mark.parametrize("sandbox", ["lenient"], indirect=True),
]

KINDS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "create_project": (WorkspaceCreateProjectOperator, {"name": "Northwind"}),
    "create_domain": (WorkspaceCreateDomainOperator, {"domain": "northwind.example.com"}),
    "create_invite": (WorkspaceCreateInviteOperator, {"target_email": "ada@example.com"}),
    "add_dashboard_collaborator": (
        WorkspaceAddDashboardCollaboratorOperator,
        {"dashboard_id": 1, "user_uuid": SEED.member_uuid, "level": 37},
    ),
}
LISTS = {
    "create_project": "list_projects",
    "create_domain": "list_domains",
    "create_invite": "list_invites",
    "add_dashboard_collaborator": "list_dashboard_collaborators",
}
kinds = pytest.mark.parametrize("kind", KINDS)


def task(kind: str) -> Any:
    operator, arguments = KINDS[kind]
    return operator(task_id="t", do_xcom_push=False, **arguments)


class Store:
    """Airflow's task state store in a file, which outlives a killed process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, key: str) -> Any:
        return json.loads(self.path.read_text()).get(key) if self.path.exists() else None

    def set(self, key: str, value: Any) -> None:
        self.path.write_text(json.dumps({key: value}))

    def delete(self, key: str) -> None:
        assert key in json.loads(self.path.read_text())
        self.path.unlink()


@pytest.fixture(autouse=True)
def waits_move_the_clock(monkeypatch: pytest.MonkeyPatch, sandbox: SandboxServer) -> list[float]:
    """Make all waits of the package advance the clock of the sandbox and take no time."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        sandbox.advance_clock(seconds)

    monkeypatch.setattr(waits, "sleep", sleep)
    return waited


@kinds
@pytest.mark.parametrize(("answer", "seconds"), [("time_out", 8), ("504", 10), ("reset", 70), ("504", 110)])
def test_a_late_effect_is_not_created_twice(
    sandbox: SandboxServer, connect: Connect, kind: str, answer: str, seconds: float
) -> None:
    connect(read_timeout=0.3, consistency_time=120)
    sandbox.inject("slow_effect", kind, answer=answer, seconds=seconds)
    operator = task(kind)
    operator.execute({})
    assert operator.created
    sandbox.advance_clock(3600)
    assert len(sandbox.audit(kind)) == 1


@kinds
def test_a_lagging_list_causes_no_second_create(
    sandbox: SandboxServer, connect: Connect, kind: str, waits_move_the_clock: list[float]
) -> None:
    connect(consistency_time=60)
    sandbox.advance_clock(3600)  # the seed is old enough to be listed
    sandbox.inject("late_rows", LISTS[kind], seconds=20, times=None)
    sandbox.inject("reset_after", kind)
    operator = task(kind)
    operator.execute({})
    assert operator.created
    assert len(sandbox.audit(kind)) == 1
    assert 20 <= sum(waits_move_the_clock) < 60


@kinds
@pytest.mark.parametrize("memory", ["stored", "carried"])
def test_long_waits_defer_and_create_nothing_twice(
    sandbox: SandboxServer, connect: Connect, kind: str, tmp_path: Path, memory: str
) -> None:
    connect(consistency_time=7200)
    sandbox.inject("slow_effect", kind, answer="504", seconds=1000)
    context: Any = {"task_state_store": Store(tmp_path / "store")} if memory == "stored" else {}
    event: dict[str, Any] | None = None
    deferred = 0
    while True:
        operator = task(kind)
        try:
            operator.execute(context) if event is None else operator.execute_complete(context, event)
            break
        except TaskDeferred as left:
            deferred += 1
            trigger: Any = left.trigger
            sandbox.advance_clock(trigger.end_at - time.time())
            event = {"status": "over", "state": json.loads(json.dumps(trigger.state))}
    assert operator.created
    assert deferred
    assert len(sandbox.audit(kind)) == 1


@kinds
def test_a_create_that_never_takes_effect_is_an_error(sandbox: SandboxServer, connect: Connect, kind: str) -> None:
    connect(consistency_time=20)
    sandbox.inject("reset_before", kind, times=None)
    with pytest.raises(WorkspaceOutcomeUnknownError, match="sent 5 times"):
        task(kind).execute({})
    assert not sandbox.audit(kind)


@pytest.mark.parametrize("name", ["Cafe\u0301  Nord", "  Café Nord ", "Café\tNord"])
def test_a_normalized_name_is_found_again(sandbox: SandboxServer, connect: Connect, name: str) -> None:
    connect()
    sandbox.inject("said_otherwise", "create_project", how="normalized", times=None)
    ids = {
        WorkspaceCreateProjectOperator(task_id="t", name=name, do_xcom_push=False).execute({})["id"] for _ in range(3)
    }
    assert len(ids) == len(sandbox.audit("create_project")) == 1


def test_a_truncated_name_is_an_error(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    sandbox.inject("said_otherwise", "create_project", how="normalized", times=None)
    with pytest.raises(AirflowFailException, match=f"Set name='{'N' * 60}'"):
        WorkspaceCreateProjectOperator(task_id="t", name="N" * 70, do_xcom_push=False).execute({})
    WorkspaceCreateProjectOperator(task_id="t", name="N" * 60, do_xcom_push=False).execute({})
    assert len(sandbox.audit("create_project")) == 1


def test_two_concurrent_creates_raise_a_duplicate_error(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    first = task("create_project").execute({})
    sandbox.inject("late_rows", "list_projects", times=1)  # the other task had looked before the first one created
    with pytest.raises(AirflowFailException, match="project 'Northwind' exists 2 times, as ") as caught:
        task("create_project").execute({})
    for entry in sandbox.audit("create_project"):
        assert entry["target"] in str(caught.value)
    assert str(first["id"]) in str(caught.value)
    assert len(sandbox.audit("create_project")) == 2


def run(kind: str, connection: str, context: Any) -> None:
    """Run the task once in this process."""
    os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"] = connection
    task(kind).execute(context)


@kinds
@pytest.mark.parametrize("memory", ["stored", "none"])
@pytest.mark.slow
def test_an_immediate_retry_after_kill_9_creates_nothing_twice(
    sandbox: SandboxServer, connect: Connect, kind: str, tmp_path: Path, memory: str
) -> None:
    connect(consistency_time=60)
    sandbox.inject("slow_effect", kind, seconds=8)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.robustness.test_consistency_time"])
    store = {"task_state_store": Store(tmp_path / "store")} if memory == "stored" else {}
    worker = context.Process(target=run, args=(kind, os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"], store))
    worker.start()
    while worker.is_alive() and not any(fault["hits"] for fault in sandbox.faults()):
        time.sleep(0.01)
    assert worker.is_alive()
    worker.kill()
    worker.join()
    operator = task(kind)
    operator.execute({"ti": SimpleNamespace(try_number=2), **store})
    assert operator.created == (memory == "stored")  # without a store, the creator is unknown
    sandbox.advance_clock(3600)
    assert len(sandbox.audit(kind)) == 1
