"""Bulk invites that must wait: in the triggerer, and then they go on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.operators import invites as module
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
PEOPLE = [f"person-{number}@example.com" for number in range(1, 121)]


def operator(**arguments: Any) -> WorkspaceCreateInvitesOperator:
    return WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE, **arguments)


def deferred(task: WorkspaceCreateInvitesOperator, state: dict[str, Any] | None) -> WorkspaceDeadlineTrigger:
    """Run a part of the task, which then waits."""
    with pytest.raises(TaskDeferred) as wait:
        go_on(task, state)
    trigger = wait.value.trigger
    assert isinstance(trigger, WorkspaceDeadlineTrigger)
    return trigger


def go_on(task: WorkspaceCreateInvitesOperator, state: dict[str, Any] | None) -> Any:
    """Run a part of the task; each begins in a process of its own and knows but the state."""
    return task.execute({}) if state is None else task.execute_complete({}, {"status": "over", "state": state})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, sandbox: SandboxServer) -> Any:
    """Move the clocks of the task and of the service to when a wait is over."""
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
    report = go_on(operator(max_per_hour=50), second.state)
    sent.append(len(sandbox.effects("create_invite")))
    assert 0 < sent[0] <= 50
    assert sent[1] - sent[0] <= 50
    assert sent[2] == 120
    assert report["counts"]["invited"] == 120


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_bulk_invites_defer_after_429_and_continue(connect: Connect, sandbox: SandboxServer, clock: Any) -> None:
    """The rate of the profile is 50 an hour; the author set no limit."""
    connect()
    state, parts = None, 0
    report = None
    while report is None:
        try:
            report = go_on(operator(), state)
        except TaskDeferred as wait:  # noqa: PERF203 - a few rounds
            trigger: Any = wait.trigger
            state, parts = trigger.state, parts + 1
            clock(trigger.end_at)
    assert report["counts"]["invited"] == 120
    assert len(sandbox.effects("create_invite")) == 120
    # The service says too short waits, see the sandbox's profile.
    assert 2 <= parts <= 9


@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_gives_up_after_repeated_empty_rounds(connect: Connect, sandbox: SandboxServer, clock: Any) -> None:
    connect()
    sandbox.inject("rate_limit", "create_invites", seconds=600, times=None)
    state = None
    for _ in range(module.MAX_EMPTY_ROUNDS - 1):
        trigger = deferred(operator(), state)
        state = trigger.state
        clock(trigger.end_at)
    with pytest.raises(Exception, match="429"):
        go_on(operator(), state)
    assert not sandbox.effects("create_invite")


@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_fails_if_retry_after_exceeds_the_longest_wait(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    sandbox.inject("rate_limit", "create_invites", seconds=86_400, times=None)
    deferred(operator(), None)
    sandbox.clear_faults()
    sandbox.inject("rate_limit", "create_invites", retry_after="seconds", seconds=86_400, times=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_WAIT", 3600.0)
        with pytest.raises(Exception, match="429"):
            operator().execute({})


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_refused_row_does_not_block_the_rows_beyond_the_limit(
    connect: Connect, sandbox: SandboxServer, clock: Any
) -> None:
    """It is reported in the end, when everybody else is invited."""
    connect()
    people: list[Any] = [{"email": PEOPLE[0], "level": 7}, *PEOPLE[1:30]]

    def task() -> WorkspaceCreateInvitesOperator:
        return WorkspaceCreateInvitesOperator(task_id="invites", invites=people, max_per_hour=20)

    trigger = deferred(task(), None)
    clock(trigger.end_at)
    with pytest.raises(AirflowFailException, match=r"The service refused 1 of 30 rows"):
        go_on(task(), trigger.state)
    assert sorted(effect["target"] for effect in sandbox.effects("create_invite")) == sorted(PEOPLE[1:30])


def test_an_invalid_limit_fails_before_anything_is_sent(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    with pytest.raises(AirflowFailException, match="max_per_hour must be a whole number of at least 1"):
        operator(max_per_hour=0).execute({})
    assert not sandbox.requests()


def test_the_deferral_is_plain_json_and_ends_by_the_wall_clock() -> None:
    path, arguments = WorkspaceDeadlineTrigger(end_at=0.0, state={"parts": [], "empty_rounds": 0}).serialize()
    assert path == "airflow_provider_workspace.triggers.deadline.WorkspaceDeadlineTrigger"

    async def first_event() -> Any:
        async for event in WorkspaceDeadlineTrigger(**arguments).run():
            return event.payload
        return None

    assert asyncio.run(first_event()) == {"status": "over", "state": {"parts": [], "empty_rounds": 0}}
