"""Bulk invites at rate limits: they wait in the triggerer and continue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.operators import base as module
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.procedures.invites_report import WorkspaceInvitesIncompleteError
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.events import first_event
from tests.task_instance import TaskInstance

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)
pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
PEOPLE = [f"person-{number}@example.com" for number in range(1, 121)]


def operator(**arguments: Any) -> WorkspaceCreateInvitesOperator:
    return WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE, **arguments)


def deferred(task: WorkspaceCreateInvitesOperator, state: dict[str, Any] | None) -> WorkspaceDeadlineTrigger:
    """Run the task until it defers."""
    with pytest.raises(TaskDeferred) as wait:
        resume(task, state)
    trigger = wait.value.trigger
    assert isinstance(trigger, WorkspaceDeadlineTrigger)
    return trigger


def resume(task: WorkspaceCreateInvitesOperator, state: dict[str, Any] | None) -> Any:
    """Resume the task from its state, as in a new process."""
    return task.execute({}) if state is None else task.execute_complete({}, {"status": "over", "state": state})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, sandbox: SandboxServer) -> Any:
    """Advance the clocks of task and service to the end of a wait."""
    real, ahead = module.time.time, [0.0]
    monkeypatch.setattr(module.time, "time", lambda: real() + ahead[0])

    def advance(end_at: float) -> None:
        seconds = end_at - module.time.time()
        ahead[0] += seconds
        sandbox.advance_clock(seconds)

    return advance


@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_invites_per_hour_is_kept(connect: Connect, sandbox: SandboxServer, clock: Any) -> None:
    connect()
    first = deferred(operator(max_per_hour=50), None)
    sent = [len(sandbox.effects("create_invite"))]
    clock(first.end_at)
    second = deferred(operator(max_per_hour=50), first.state)
    sent.append(len(sandbox.effects("create_invite")))
    clock(second.end_at)
    report = resume(operator(max_per_hour=50), second.state)
    sent.append(len(sandbox.effects("create_invite")))
    assert 0 < sent[0] <= 50
    assert sent[1] - sent[0] <= 50
    assert sent[2] == 120
    assert report["counts"]["invited"] == 120


@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_a_connection_changed_during_a_wait_gets_all_invites(
    connect: Connect, sandbox: SandboxServer, clock: Any
) -> None:
    connect()
    first = deferred(operator(max_per_hour=50), None)
    there = {"organization_id": SEED.other_organization_id}
    connect(key=SEED.research_key, **there)
    clock(first.end_at)
    report = resume(operator(), first.state)
    assert report["counts"]["invited"] == 120
    invited = [
        effect for effect in sandbox.effects("create_invite") if effect["organization_id"] == there["organization_id"]
    ]
    assert len(invited) == 120


def run_to_the_end(
    task: Callable[[], Any], sandbox: SandboxServer, clock: Callable[[float], None], most: int = 40
) -> tuple[Any, float, int]:
    """Run a task with all its waits; return its result, the hours by the clock of the service, and the refusals."""
    began, state, refused = module.time.time(), None, 0
    for _ in range(most):
        try:
            return resume(task(), state), (module.time.time() - began) / 3600, refused
        except TaskDeferred as wait:  # noqa: PERF203 - a few rounds
            trigger: Any = wait.trigger
            state = json.loads(json.dumps(trigger.state))
            refused = sum(entry["status"] == 429 for entry in sandbox.requests())
            clock(trigger.end_at)
    raise AssertionError("no end")


@live
@pytest.mark.parametrize(
    ("rows", "extra", "hours", "refusals"),
    [
        (52, {}, 2, 1),
        (300, {}, 30, 2),
        (300, {"invites_per_hour": 50, "invites_per_day": 200}, 26, 0),
    ],
)
def test_everybody_is_invited_once_at_the_service_rates(
    connect: Connect, sandbox: SandboxServer, clock: Any, rows: int, extra: dict[str, int], hours: float, refusals: int
) -> None:
    connect(**extra)
    people = [f"person-{number}@example.com" for number in range(1, rows + 1)]
    report, took, refused = run_to_the_end(
        lambda: WorkspaceCreateInvitesOperator(task_id="invites", invites=people), sandbox, clock
    )
    print(f"\n{rows} rows, {extra}: {took:.1f} h, {refused} refusals")
    assert report["counts"]["invited"] == rows
    assert sorted(effect["target"] for effect in sandbox.effects("create_invite")) == sorted(people)
    assert took <= hours
    assert refused <= refusals


@live
@pytest.mark.parametrize(
    ("arguments", "left", "why"),
    [
        (
            {"max_per_hour": 50},
            70,
            "the limit of 50 invites per hour (as configured) is reached, and leaves room for 20",
        ),
        ({}, 80, "the limit of 40 invites per hour (learned from a refusal) is reached, and leaves room for 20"),
    ],
)
def test_a_wait_names_the_limit_and_what_is_left_in_log_and_on_the_page(
    connect: Connect, caplog: pytest.LogCaptureFixture, arguments: dict[str, int], left: int, why: str
) -> None:
    connect()
    caplog.set_level("INFO")
    ti = TaskInstance()
    with pytest.raises(TaskDeferred):
        operator(**arguments).execute({"ti": ti})
    log = caplog.text
    assert f"120 rows: {120 - left} invited, {left} left. Continuing in 36" in log
    assert f": {why}" in log
    assert "pool" not in log[log.index("120 rows") :]
    assert (ti.xcoms["progress"]["left"], ti.xcoms["progress"]["why"].startswith(why)) == (left, True)


@live
def test_member_sync_of_100_new_people_completes(connect: Connect, sandbox: SandboxServer, clock: Any) -> None:
    connect()
    people = [f"person-{number}@example.com" for number in range(1, 101)]

    def task() -> WorkspaceSyncMembersOperator:
        return WorkspaceSyncMembersOperator(
            task_id="sync", roster=people, protected=["adam.admin@example.com"], max_removals=None
        )

    _, took, refused = run_to_the_end(task, sandbox, clock)
    print(f"\nmember sync of 100 new people: {took:.1f} h, {refused} refusals")
    assert sorted(effect["target"] for effect in sandbox.effects("create_invite")) == sorted(people)
    assert took <= 4
    assert refused <= 2


@live
@pytest.mark.usefixtures("sandbox")
def test_a_second_run_does_not_wait(connect: Connect) -> None:
    connect()
    task = WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE[:10])
    assert task.execute({})["counts"]["invited"] == 10
    assert task.execute({})["counts"]["already_invited"] == 10


@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_the_task_fails_after_two_days_without_progress(connect: Connect, sandbox: SandboxServer, clock: Any) -> None:
    connect()
    sandbox.inject("rate_limit", "create_invites", seconds=600, times=None)
    began = module.time.time()
    with pytest.raises(WorkspaceInvitesIncompleteError, match="429"):
        run_to_the_end(operator, sandbox, clock, most=100)
    assert 48 <= (module.time.time() - began) / 3600 <= 50
    assert not sandbox.effects("create_invite")


@live
def test_a_refused_row_does_not_block_the_rows_after_the_limit(
    connect: Connect, sandbox: SandboxServer, clock: Any
) -> None:
    """The task reports it at the end, after all other invites."""
    connect()
    people: list[Any] = [{"email": PEOPLE[0], "level": 7}, *PEOPLE[1:30]]

    def task() -> WorkspaceCreateInvitesOperator:
        return WorkspaceCreateInvitesOperator(task_id="invites", invites=people, max_per_hour=20)

    with pytest.raises(AirflowFailException, match=r"The service refused 1 of 30 rows"):
        run_to_the_end(task, sandbox, clock)
    refused = [entry for entry in sandbox.requests() if entry["status"] == 400]
    assert [len(entry["body"]) for entry in refused] == [20, 1], (
        "the row is sent once more, alone, and not after a wait"
    )
    assert sorted(effect["target"] for effect in sandbox.effects("create_invite")) == sorted(PEOPLE[1:30])


def test_an_invalid_limit_fails_before_anything_is_sent(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    with pytest.raises(AirflowFailException, match="max_per_hour must be a whole number of at least 1"):
        operator(max_per_hour=0).execute({})
    assert not sandbox.requests()


def test_the_deferral_is_plain_json_with_a_wall_clock_deadline() -> None:
    path, arguments = WorkspaceDeadlineTrigger(end_at=0.0, state={"invites": {}}).serialize()
    assert path == "airflow_provider_workspace.triggers.deadline.WorkspaceDeadlineTrigger"

    event = asyncio.run(first_event(WorkspaceDeadlineTrigger(**arguments)))
    assert event.payload == {
        "status": "over",
        "state": {"invites": {}},
    }
