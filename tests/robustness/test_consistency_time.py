"""
Creates whose response is lost, late or wrong: nothing is created twice, and the task knows whether it created.

Waits advance the clocks of worker and sandbox and take no time.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceNotAppliedError, WorkspaceOutcomeUnknownError
from airflow_provider_workspace.operators.dashboards import WorkspaceAddDashboardCollaboratorOperator
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.interruptions import kill
from tests.task_instance import Killed, TaskInstance, TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = [pytest.mark.parametrize("sandbox", ["live"], indirect=True), pytest.mark.usefixtures("clock")]

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


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect()


def task(kind: str, **more: Any) -> Any:
    operator, arguments, _ = KINDS[kind]
    return operator(task_id="t", do_xcom_push=False, **arguments, **more)


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
@pytest.mark.parametrize(
    ("fault", "lag", "sends", "waits"),
    [
        (("slow_effect", {"answer": "reset", "seconds": 70}), 0, 1, (70, 120)),
        (("slow_effect", {"answer": "504", "seconds": 110}), 0, 1, (110, 120)),
        (("reset_after", {}), 20, 1, (20, 60)),
        (("say", {"status": 201, "body": {}}), 8, 1, (8, 30)),  # a response without an id
        (("reset_before", {}), 0, 2, (119, 121)),
    ],
)
def test_a_create_without_a_clear_response_is_found_or_sent_again(
    clock: Clock, sandbox: SandboxServer, connect: Connect, kind: str, fault: Any, lag: int, sends: int, waits: Any
) -> None:
    connect(read_timeout=0.3, consistency_time=CONSISTENCY_TIME)
    sandbox.advance_clock(3600)  # the seed is old enough to be listed
    if lag:
        sandbox.inject("late_rows", KINDS[kind][2], seconds=lag, times=None)
    sandbox.inject(fault[0], kind, **fault[1])
    assert finish(clock, kind, {})[0].created
    sandbox.advance_clock(3600)
    assert (sent(sandbox, kind), len(sandbox.audit(kind))) == (sends, 1)
    assert waits[0] <= sum(clock.waited) <= waits[1] + 1  # a retry waits up to a second


def test_look_ups_of_a_lost_create_become_rarer(sandbox: SandboxServer, clock: Clock) -> None:
    sandbox.inject("slow_effect", "create_project", answer="reset", seconds=120)
    assert finish(clock, "create_project", {})[0].created
    assert clock.waited == pytest.approx([0.5, 5.0, 5.5, 11.0, 22.0, 44.0, 32.0], abs=0.5)


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


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(
    ("takes_effect", "passes", "sends", "waits"),
    [
        (0.0, 0.0, 1, (0, 1)),
        (8.0, 3.0, 1, (5, 118)),
        (20.0, 50.0, 1, (0, 1)),
        (119.5, 0.0, 1, (119, 121)),
        (119.5, 119.0, 1, (0, 2)),
        (None, 100.0, 2, (119, 121)),
        (None, 200.0, 2, (119, 121)),
    ],
)
def test_a_retry_after_a_kill_finds_the_create_or_sends_it_again(
    sandbox: SandboxServer,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    takes_effect: float | None,
    passes: float,
    sends: int,
    waits: tuple[float, float],
    *,
    stored: bool,
) -> None:
    """The first try is killed when it waits for its create; without a store, it is unknown when it was sent."""
    fault: tuple[str, dict[str, Any]] = ("slow_effect", {"answer": "reset", "seconds": takes_effect})
    kind, options = fault if takes_effect is not None else ("reset_before", {})
    sandbox.inject(kind, "create_project", **options)
    context: Any = {"task_state_store": TaskStore()} if stored else {}
    with monkeypatch.context() as patch:
        patch.setattr(clock, "advance", lambda _: kill())
        with pytest.raises(Killed):
            task("create_project").execute(context)
    clock.advance(passes)
    clock.waited.clear()
    operator, _ = finish(clock, "create_project", {"ti": TaskInstance(2), **context})
    assert (sent(sandbox, "create_project"), len(sandbox.audit("create_project"))) == (sends, 1)
    if stored:
        assert operator.created
        assert waits[0] <= sum(clock.waited) <= waits[1]
    else:
        assert operator.created is (takes_effect is None)
        assert sum(clock.waited) <= CONSISTENCY_TIME + 1


# Responses and lists that do not show the record


@kinds
def test_a_create_that_is_never_shown_is_an_error(sandbox: SandboxServer, clock: Clock, kind: str) -> None:
    sandbox.inject("say", kind, status=201, body={}, rows=0)
    with pytest.raises(WorkspaceNotAppliedError, match="was created, but did not show it within 120 s"):
        finish(clock, kind, {})
    assert sent(sandbox, kind) == 1


def test_a_response_with_another_domain_is_looked_up(sandbox: SandboxServer) -> None:
    other = {"id": SEED.absent_uuid, "domain": "other.example.com"}
    sandbox.inject("say", "create_domain", status=201, body=other)
    claim = task("create_domain")
    assert claim.execute({})["domain"] == "northwind.example.com"
    assert claim.created
    assert sent(sandbox, "create_domain") == 1


def test_a_listed_project_without_an_id_is_an_error_and_nothing_is_created(sandbox: SandboxServer) -> None:
    sandbox.inject("say", "list_projects", body={"count": 1, "next": None, "results": [{"name": " Northwind"}]})
    with pytest.raises(AirflowFailException, match=r"WorkspaceResponseError: .* 'Northwind' without a numeric id"):
        task("create_project").execute({})
    assert sent(sandbox, "create_project") == 0


UNIQUE = {"type": "validation_error", "code": "unique", "detail": "It exists already.", "attr": "domain"}


@pytest.mark.parametrize("status", [400, 409])
@pytest.mark.parametrize("if_exists", ["return", "fail"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_record_that_somebody_creates_at_the_same_time_is_reused(
    sandbox: SandboxServer, clock: Clock, status: int, if_exists: str, *, exists: bool
) -> None:
    if exists:
        task("create_domain").execute({})
    sandbox.inject("late_rows", "list_domains", seconds=3)
    sandbox.inject("say", "create_domain", status=status, body=UNIQUE, rows=0)
    second = task("create_domain", if_exists=if_exists)
    if if_exists == "return" and exists:
        second.execute({})
        assert not second.created
    else:
        with pytest.raises(AirflowFailException, match=f"{status}.*It exists already"):
            second.execute({})
    assert sum(clock.waited) < 10


def test_a_create_that_takes_effect_after_the_consistency_time_is_found_by_its_unique_name(
    sandbox: SandboxServer, clock: Clock
) -> None:
    sandbox.inject("slow_effect", "create_domain", answer="reset", seconds=123)
    sandbox.inject("say", "create_domain", status=400, body=UNIQUE, rows=0, after=1)
    assert finish(clock, "create_domain", {}, if_exists="fail")[0].created
    assert len(sandbox.audit("create_domain")) == 1


# Names


def named(name: str) -> Any:
    return WorkspaceCreateProjectOperator(task_id="t", name=name, do_xcom_push=False)


@pytest.mark.parametrize("name", ["Cafe\u0301  Nord", "  Café Nord ", "Café\tNord"])
def test_a_normalized_name_is_found_again(sandbox: SandboxServer, name: str) -> None:
    sandbox.inject("said_otherwise", "create_project", how="normalized", times=None)
    ids = {named(name).execute({})["id"] for _ in range(3)}
    assert len(ids) == len(sandbox.audit("create_project")) == 1


def test_two_concurrent_creates_raise_a_duplicate_error(sandbox: SandboxServer) -> None:
    task("create_project").execute({})
    sandbox.inject("late_rows", "list_projects", times=1)  # the other task had looked before the first one created
    with pytest.raises(
        AirflowFailException, match=r"2 projects are named 'Northwind'\. Rename all but one of them.* Ids: "
    ) as caught:
        task("create_project").execute({})
    ids = [entry["target"] for entry in sandbox.audit("create_project")]
    assert [number in str(caught.value) for number in ids] == [True, True]


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("late_rows", {}, "another task may have created one too"),
        ("short_pages", {"missing": "newest"}, "A short list cannot show whether another task created the project"),
    ],
)
def test_a_list_without_the_new_project_is_a_warning(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture, kind: str, options: dict[str, Any], says: str
) -> None:
    sandbox.inject(kind, "list_projects", after=1, times=None, **options)
    created = task("create_project")
    created.execute({})
    assert created.created
    assert says in caplog.text


def test_a_service_that_cuts_names_gets_one_project_in_all_runs(sandbox: SandboxServer) -> None:
    name = "Northwind-" * 10
    sandbox.inject("said_otherwise", "create_project", how="normalized", times=None)
    for _ in range(3):
        with pytest.raises(
            AirflowFailException,
            match=r"^\[not-applied\] WorkspaceNotAppliedError: The service (stored project|seems to cut names)",
        ):
            named(name).execute({})
    with pytest.raises(AirflowFailException, match=r"the first 60 of 100 characters of this one\. Set name='North"):
        WorkspacePlanOrganizationOperator(task_id="p", file={"projects": [{"name": name}]}).execute({})
    assert len(sandbox.audit("create_project")) == 1
    named(f"Other {name}"[:60]).execute({})
    assert len(sandbox.audit("create_project")) == 2


def test_a_name_that_begins_like_another_is_created(sandbox: SandboxServer) -> None:
    for name in ("Northwind", "Northwind Europe", "N" * 80, "N" * 61, f"{'N' * 61} 2"):
        named(name).execute({})
    assert len(sandbox.audit("create_project")) == 5
