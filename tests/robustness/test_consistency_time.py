"""
Creates whose response is lost, late or wrong: nothing is created twice, and the task knows whether it created.

Waits advance the clocks of worker and sandbox and take no time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import (
    WorkspaceNotAppliedError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.operators.dashboards import WorkspaceAddDashboardCollaboratorOperator
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.task_instance import Killed, TaskInstance, TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
    pytest.mark.parametrize("sandbox", ["lenient"], indirect=True),
    pytest.mark.usefixtures("clock"),
]

KINDS: dict[str, tuple[type[Any], dict[str, Any], str]] = {
    "create_project": (WorkspaceCreateProjectOperator, {"name": "Northwind"}, "list_projects"),
    "create_domain": (WorkspaceCreateDomainOperator, {"domain": "northwind.example.com"}, "list_domains"),
    "create_invite": (WorkspaceCreateInviteOperator, {"target_email": "ada@example.com"}, "list_invites"),
    "add_dashboard_collaborator": (
        WorkspaceAddDashboardCollaboratorOperator,
        {"dashboard_id": 1, "user_uuid": SEED.member_uuid, "level": 37},
        "list_dashboard_collaborators",
    ),
}
kinds = pytest.mark.parametrize("kind", KINDS)
CONSISTENCY_TIME = 120.0


def task(kind: str, **more: Any) -> Any:
    operator, arguments, _ = KINDS[kind]
    return operator(task_id="t", do_xcom_push=False, **arguments, **more)


def list_of(kind: str) -> str:
    return KINDS[kind][2]


def finish(clock: Clock, kind: str, context: Any, **more: Any) -> tuple[Any, int]:
    """Run a task with its deferrals, in a new process after each; return it and their number."""
    event: dict[str, Any] | None = None
    for deferrals in range(100):
        operator = task(kind, **more)
        try:
            operator.execute(context) if event is None else operator.execute_complete(context, event)
        except TaskDeferred as left:
            trigger: Any = left.trigger
            clock.wait(trigger.end_at - time.time())
            event = {"status": "over", "state": json.loads(json.dumps(trigger.state))}
        else:
            return operator, deferrals
    raise AssertionError("no end")


def sent(sandbox: SandboxServer, kind: str) -> int:
    """Return how many creates were sent."""
    return [entry["operation"] for entry in sandbox.requests()].count(kind)


@kinds
@pytest.mark.parametrize(("answer", "seconds"), [("time_out", 8), ("504", 10), ("reset", 70), ("504", 110)])
def test_a_late_effect_is_not_created_twice(
    sandbox: SandboxServer, connect: Connect, kind: str, answer: str, seconds: float
) -> None:
    connect(read_timeout=0.3, consistency_time=CONSISTENCY_TIME)
    sandbox.inject("slow_effect", kind, answer=answer, seconds=seconds)
    operator = task(kind)
    operator.execute({})
    assert operator.created
    sandbox.advance_clock(3600)
    assert len(sandbox.audit(kind)) == 1


@pytest.mark.parametrize(
    ("seconds", "waits"),
    [
        (0, [0.5]),
        (5, [0.5, 5.0]),
        (10, [0.5, 5.0, 5.5]),
        (20, [0.5, 5.0, 5.5, 11.0]),
        (120, [0.5, 5.0, 5.5, 11.0, 22.0, 44.0, 32.0]),
    ],
)
def test_look_ups_of_a_lost_create_become_rarer(
    sandbox: SandboxServer, connect: Connect, clock: Clock, seconds: float, waits: list[float]
) -> None:
    connect()
    sandbox.inject("slow_effect", "create_project", answer="reset", seconds=seconds)
    assert finish(clock, "create_project", {})[0].created
    assert clock.waited == pytest.approx(waits, abs=0.5)


@kinds
def test_a_lagging_list_causes_no_second_create(
    sandbox: SandboxServer, connect: Connect, kind: str, clock: Clock
) -> None:
    connect()
    sandbox.advance_clock(3600)  # the seed is old enough to be listed
    sandbox.inject("late_rows", list_of(kind), seconds=20, times=None)
    sandbox.inject("reset_after", kind)
    operator = task(kind)
    operator.execute({})
    assert operator.created
    assert len(sandbox.audit(kind)) == 1
    assert 20 <= sum(clock.waited) < 60


@kinds
def test_a_lost_create_is_sent_again_after_the_consistency_time(
    sandbox: SandboxServer, connect: Connect, kind: str, clock: Clock
) -> None:
    connect()
    sandbox.inject("reset_before", kind)
    assert finish(clock, kind, {})[0].created
    assert (sent(sandbox, kind), len(sandbox.audit(kind))) == (2, 1)
    assert sum(clock.waited) == pytest.approx(CONSISTENCY_TIME, abs=1)


@kinds
@pytest.mark.parametrize("memory", ["stored", "carried"])
def test_long_waits_defer_and_create_nothing_twice(
    sandbox: SandboxServer, connect: Connect, kind: str, clock: Clock, memory: str
) -> None:
    connect(consistency_time=7200)
    sandbox.inject("slow_effect", kind, answer="504", seconds=1000)
    operator, deferrals = finish(clock, kind, {"task_state_store": TaskStore()} if memory == "stored" else {})
    assert operator.created
    assert deferrals
    assert len(sandbox.audit(kind)) == 1


@kinds
@pytest.mark.parametrize("seconds", [20, 7200])
def test_a_create_that_never_takes_effect_is_an_error(
    sandbox: SandboxServer, connect: Connect, kind: str, clock: Clock, seconds: float
) -> None:
    connect(consistency_time=seconds)
    sandbox.inject("reset_before", kind, times=None)
    with pytest.raises(WorkspaceOutcomeUnknownError, match="sent 5 times") as lost:
        finish(clock, kind, {})
    assert not lost.value.permanent
    assert sent(sandbox, kind) == 5
    assert not sandbox.audit(kind)


# Retries after a kill


@pytest.fixture
def killed(
    sandbox: SandboxServer, connect: Connect, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Kill the first try when it waits for its create, which takes effect later or never; then let time pass."""

    def die(_: float) -> None:
        raise Killed

    def first_try(context: Any, takes_effect_after: float | None, passes: float) -> None:
        connect()
        if takes_effect_after is None:
            sandbox.inject("reset_before", "create_project")
        else:
            sandbox.inject("slow_effect", "create_project", answer="reset", seconds=takes_effect_after)
        with monkeypatch.context() as patch:
            patch.setattr(clock, "advance", die)
            with pytest.raises(Killed):
                task("create_project").execute(context)
        clock.advance(passes)

    return first_try


@pytest.mark.parametrize("passes", [0.0, 3.0, 50.0, 119.0])
@pytest.mark.parametrize("seconds", [0.0, 8.0, 20.0, 119.5])
def test_a_retry_after_a_kill_looks_the_create_up(
    sandbox: SandboxServer, clock: Clock, killed: Callable[..., None], passes: float, seconds: float
) -> None:
    context: Any = {"task_state_store": TaskStore()}
    killed(context, seconds, passes)
    assert finish(clock, "create_project", context, if_exists="fail")[0].created
    assert sent(sandbox, "create_project") == 1
    assert sum(clock.waited) + passes <= CONSISTENCY_TIME + 1 or not clock.waited


@pytest.mark.parametrize(("passes", "waits"), [(100.0, 20.0), (200.0, 0.0)])
def test_a_retry_creates_again_after_the_consistency_time(
    sandbox: SandboxServer, clock: Clock, killed: Callable[..., None], passes: float, waits: float
) -> None:
    context: Any = {"task_state_store": TaskStore()}
    killed(context, None, passes)
    assert finish(clock, "create_project", context)[0].created
    assert (sent(sandbox, "create_project"), len(sandbox.audit("create_project"))) == (2, 1)
    assert sum(clock.waited) == pytest.approx(waits, abs=1)


def test_a_retry_without_a_store_waits_for_the_whole_consistency_time(
    sandbox: SandboxServer, clock: Clock, killed: Callable[..., None]
) -> None:
    """Who created the record is unknown then."""
    killed({}, 100.0, 0.0)
    assert not finish(clock, "create_project", {"ti": TaskInstance(2)})[0].created
    assert sent(sandbox, "create_project") == 1


class FileStore:
    """Airflow's task state store in a file, which outlives a killed process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def get(self, key: str) -> Any:
        return self.read().get(key)

    def set(self, key: str, value: Any) -> None:
        self.path.write_text(json.dumps({**self.read(), key: value}))

    def delete(self, key: str) -> None:
        self.path.write_text(json.dumps({name: value for name, value in self.read().items() if name != key}))


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
    store = {"task_state_store": FileStore(tmp_path / "store")} if memory == "stored" else {}
    worker = context.Process(target=run, args=(kind, os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"], store))
    worker.start()
    while worker.is_alive() and not any(fault["hits"] for fault in sandbox.faults()):
        time.sleep(0.01)
    assert worker.is_alive()
    worker.kill()
    worker.join()
    operator = task(kind)
    operator.execute({"ti": TaskInstance(2), **store})
    assert operator.created == (memory == "stored")  # without a store, the creator is unknown
    sandbox.advance_clock(3600)
    assert len(sandbox.audit(kind)) == 1


# Responses and lists that do not show the record


@kinds
def test_a_create_whose_response_has_no_id_is_looked_up(
    sandbox: SandboxServer, connect: Connect, clock: Clock, kind: str
) -> None:
    connect()
    sandbox.inject("say", kind, status=201, body={})
    sandbox.inject("late_rows", list_of(kind), seconds=8)
    assert finish(clock, kind, {})[0].created
    assert sent(sandbox, kind) == 1


@kinds
def test_a_create_that_is_never_shown_is_an_error(
    sandbox: SandboxServer, connect: Connect, clock: Clock, kind: str
) -> None:
    connect()
    sandbox.inject("say", kind, status=201, body={}, rows=0)
    with pytest.raises(WorkspaceNotAppliedError, match="was created, but did not show it within 120 s"):
        finish(clock, kind, {})
    assert sent(sandbox, kind) == 1


@pytest.mark.parametrize("applied", [True, False])
def test_a_response_with_another_domain_is_looked_up(
    sandbox: SandboxServer, connect: Connect, *, applied: bool
) -> None:
    connect(consistency_time=6)
    other = {"id": SEED.absent_uuid, "domain": "other.example.com"}
    sandbox.inject("say", "create_domain", status=201, body=other, rows=None if applied else 0)
    claim = task("create_domain")
    if applied:
        assert claim.execute({})["domain"] == "northwind.example.com"
        assert claim.created
    else:
        with pytest.raises(WorkspaceNotAppliedError, match="did not show it within 6 s"):
            claim.execute({})
    assert sent(sandbox, "create_domain") == 1


def test_a_listed_project_without_an_id_is_an_error_and_nothing_is_created(
    sandbox: SandboxServer, connect: Connect
) -> None:
    connect()
    sandbox.inject("say", "list_projects", body={"count": 1, "next": None, "results": [{"name": " Northwind"}]})
    with pytest.raises(AirflowFailException, match=r"WorkspaceResponseError: .* 'Northwind' without a numeric id"):
        task("create_project").execute({})
    assert sent(sandbox, "create_project") == 0


UNIQUE = {"type": "validation_error", "code": "unique", "detail": "It exists already.", "attr": "domain"}


@pytest.mark.parametrize("status", [400, 409])
@pytest.mark.parametrize("if_exists", ["return", "fail"])
def test_a_record_that_somebody_creates_at_the_same_time_is_reused(
    sandbox: SandboxServer, connect: Connect, clock: Clock, status: int, if_exists: str
) -> None:
    connect()
    task("create_domain").execute({})
    sandbox.inject("late_rows", "list_domains", seconds=3)
    sandbox.inject("say", "create_domain", status=status, body=UNIQUE, rows=0)
    second = task("create_domain", if_exists=if_exists)
    if if_exists == "return":
        second.execute({})
        assert not second.created
        assert sum(clock.waited) < 10
    else:
        with pytest.raises(AirflowFailException, match=str(status)):
            second.execute({})


def test_a_taken_name_without_a_visible_record_is_an_error(
    sandbox: SandboxServer, connect: Connect, clock: Clock
) -> None:
    connect()
    sandbox.inject("say", "create_domain", status=400, body=UNIQUE, rows=0)
    with pytest.raises(AirflowFailException, match="It exists already"):
        task("create_domain").execute({})
    assert sum(clock.waited) < 10


def test_a_create_that_takes_effect_after_the_consistency_time_is_found_by_its_unique_name(
    sandbox: SandboxServer, connect: Connect, clock: Clock
) -> None:
    connect()
    sandbox.inject("slow_effect", "create_domain", answer="reset", seconds=123)
    sandbox.inject("say", "create_domain", status=400, body=UNIQUE, rows=0, after=1)
    assert finish(clock, "create_domain", {}, if_exists="fail")[0].created
    assert len(sandbox.audit("create_domain")) == 1


# Names


@pytest.mark.parametrize("name", ["Cafe\u0301  Nord", "  Café Nord ", "Café\tNord"])
def test_a_normalized_name_is_found_again(sandbox: SandboxServer, connect: Connect, name: str) -> None:
    connect()
    sandbox.inject("said_otherwise", "create_project", how="normalized", times=None)
    ids = {
        WorkspaceCreateProjectOperator(task_id="t", name=name, do_xcom_push=False).execute({})["id"] for _ in range(3)
    }
    assert len(ids) == len(sandbox.audit("create_project")) == 1


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


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("late_rows", {}, "another task may have created one too"),
        ("short_pages", {"missing": "newest"}, "A short list cannot show whether another task created the project"),
    ],
)
def test_a_list_without_the_new_project_is_a_warning(
    sandbox: SandboxServer,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    options: dict[str, Any],
    says: str,
) -> None:
    connect()
    sandbox.inject(kind, "list_projects", after=1, times=None, **options)
    created = task("create_project")
    created.execute({})
    assert created.created
    assert says in caplog.text
