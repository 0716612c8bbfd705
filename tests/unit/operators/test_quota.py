"""Bulk invites at rate limits: they wait in the triggerer and continue, on a clock that jumps over each wait."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.sandbox.limits import DAY, HOUR, Rate
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.task_instance import TaskInstance

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


def people(count: int) -> list[Any]:
    return [f"person-{number}@example.com" for number in range(1, count + 1)]


def inviting(invites: list[Any], **arguments: Any) -> Callable[[], Any]:
    """Return a function that builds the task, as each process does."""
    return lambda: WorkspaceCreateInvitesOperator(task_id="invites", invites=invites, **arguments)


class Run(NamedTuple):
    """
    A task that has ended.

    :param hours: duration by the clock of the service
    :param refused: number of requests that a rate limit refused
    :param sent: number of invites before each wait and at the end
    :param error: its error; ``None`` at success
    """

    result: Any
    hours: float
    refused: int
    sent: list[int]
    error: Any


Run_ = Callable[..., Run]


@pytest.fixture
def run(sandbox: SandboxServer, clock: Clock) -> Run_:
    """Run a task with all its waits."""

    def run_to_the_end(task: Callable[[], Any]) -> Run:
        began, event = time.time(), None
        refused, sent = 0, list[int]()
        for _ in range(100):
            wait = result = error = None
            try:
                result = task().execute({}) if event is None else task().execute_complete({}, event)
            except TaskDeferred as deferred:
                wait = deferred.trigger
            except (AirflowFailException, WorkspaceError) as ended:
                error = ended
            sent.append(len(sandbox.effects("create_invite")))
            if wait is None:
                return Run(result, (time.time() - began) / HOUR, refused, sent, error)
            assert isinstance(wait, WorkspaceDeadlineTrigger)
            refused = sum(entry["status"] == 429 for entry in sandbox.requests())
            event = {"status": "over", "state": json.loads(json.dumps(wait.state))}
            clock.advance(wait.end_at - time.time())
        raise AssertionError("no end")

    return run_to_the_end


def limit(sandbox: SandboxServer, *rates: Rate) -> None:
    """Set the rates of invites until the next reset."""
    assert sandbox._listener is not None
    limits = sandbox._listener.service.active_limits
    assert limits is not None
    limits.invites = rates  # type: ignore[assignment]


def check_everybody_is_invited_once(sandbox: SandboxServer, invited: list[Any]) -> None:
    assert sorted(effect["target"] for effect in sandbox.effects("create_invite")) == sorted(invited)


@pytest.mark.parametrize(
    ("rows", "extra", "hours", "refusals"),
    [
        (52, {}, 2, 1),
        (300, {}, 30, 2),
        (300, {"invites_per_hour": 50, "invites_per_day": 200}, 26, 0),
        pytest.param(300, {"invites_per_hour": 50}, 30, 1, marks=pytest.mark.slow),
        (120, {"invites_per_hour": 50}, 3, 0),
        pytest.param(700, {}, 4 * 24, 3, marks=pytest.mark.slow),
    ],
)
def test_everybody_is_invited_once_at_the_rates_of_the_service(
    connect: Connect, sandbox: SandboxServer, run: Run_, rows: int, extra: dict[str, int], hours: float, refusals: int
) -> None:
    connect(**extra)
    ended = run(inviting(people(rows)))
    assert ended.result["counts"]["invited"] == rows
    check_everybody_is_invited_once(sandbox, people(rows))
    assert ended.hours <= hours
    assert ended.refused <= refusals
    assert max(late - early for early, late in zip([0, *ended.sent], ended.sent, strict=False)) <= 50


def test_a_limit_below_the_size_of_a_request_is_learned(sandbox: SandboxServer, run: Run_) -> None:
    limit(sandbox, Rate(7, HOUR), Rate(100, DAY))
    assert run(inviting(people(30))).hours < 48
    check_everybody_is_invited_once(sandbox, people(30))


def test_a_limit_of_requests_is_not_learned_as_a_limit_of_invites(sandbox: SandboxServer, run: Run_) -> None:
    limit(sandbox, Rate(10**6, HOUR))
    for after in range(10, 50, 10):
        sandbox.inject("rate_limit", "create_invites", seconds=30, after=after)
    assert run(inviting(people(600))).hours < 0.25
    check_everybody_is_invited_once(sandbox, people(600))


def test_a_connection_changed_during_a_wait_gets_all_invites(
    connect: Connect, sandbox: SandboxServer, run: Run_
) -> None:
    connect(invites_per_hour=40)
    there = SEED.other_organization_id
    task = inviting(people(60))

    def moved() -> Any:
        if sandbox.effects():
            connect(key=SEED.research_key, organization_id=there, invites_per_hour=40)
        return task()

    assert run(moved).result["counts"]["invited"] == 60
    assert len(sandbox.effects("create_invite", organization_id=there)) == 60


@pytest.mark.parametrize("span", [HOUR, 10**6], ids=["two days without progress", "Retry-After of days"])
def test_a_limit_that_never_leaves_room_is_an_error(sandbox: SandboxServer, run: Run_, span: int) -> None:
    limit(sandbox, Rate(0, span))
    ended = run(inviting(people(5)))
    assert "429" in str(ended.error)
    assert ended.error.report.counts["not_sent"] == 5
    assert ended.error.retry_after is not None
    assert not ended.error.permanent
    assert 48 <= ended.hours <= 50 if span == HOUR else ended.hours < 1


@pytest.mark.parametrize("named", [True, False])
def test_a_refused_row_does_not_block_the_rows_after_the_limit(
    connect: Connect, sandbox: SandboxServer, run: Run_, *, named: bool
) -> None:
    """The task reports it at the end, after all other invites, and does not send it again after a wait."""
    connect(invites_per_hour=20)
    rows = people(30)
    if named:
        rows[0] = {"email": rows[0], "level": 7}
    else:
        sandbox.inject("refuse_address", "create_invites", email=rows[0])
    ended = run(inviting(rows))
    assert "1 of 30 rows were refused" in str(ended.error)
    assert isinstance(ended.error, AirflowFailException)
    check_everybody_is_invited_once(sandbox, people(30)[1:])
    refused = [len(entry["body"]) for entry in sandbox.requests() if entry["status"] == 400]
    assert refused == ([20, 1] if named else [20, 4, 1])


@pytest.mark.parametrize(
    ("extra", "left", "why"),
    [
        (
            {"invites_per_hour": 50},
            70,
            "the limit of 50 invites per hour (as configured) is reached, and leaves room for 20",
        ),
        ({}, 80, "the limit of 40 invites per hour (learned from a refusal) is reached, and leaves room for 20"),
    ],
)
def test_a_wait_names_the_limit_and_what_is_left_in_log_and_on_the_page(
    connect: Connect, caplog: pytest.LogCaptureFixture, extra: dict[str, int], left: int, why: str
) -> None:
    connect(**extra)
    caplog.set_level("INFO")
    ti = TaskInstance()
    with pytest.raises(TaskDeferred):
        inviting(people(120))().execute({"ti": ti})
    log = caplog.text
    assert f"120 rows: {120 - left} invited, {left} left. Continuing in 36" in log
    assert f": {why}" in log
    assert "pool" not in log[log.index("120 rows") :]
    assert (ti.xcoms["progress"]["left"], ti.xcoms["progress"]["why"].startswith(why)) == (left, True)
