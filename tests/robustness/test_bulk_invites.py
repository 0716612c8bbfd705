"""Bulk invites with a slow, lagging or untruthful service, on a simulated clock."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.interruptions import Interruptions, kill
from tests.task_instance import Killed, TaskInstance, TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
    pytest.mark.parametrize("sandbox", ["live"], indirect=True),
]
PEOPLE = [f"person-{number}@example.com" for number in range(200)]


@pytest.fixture(autouse=True)
def without_limits(sandbox: SandboxServer, clock: Clock) -> Clock:  # the clock first: all tests simulate it
    sandbox.change_settings(rate_limit=False)
    return clock


def mailed(sandbox: SandboxServer) -> Counter[str]:
    """Return the number of invites per address after all requests have taken effect."""
    sandbox.advance_clock(600)
    return Counter(effect["target"] for effect in sandbox.audit("create_invite"))


def before_bulk_request(number: int, patch: pytest.MonkeyPatch, act: Callable[[], object] = kill) -> None:
    """Call a function before the bulk request of this number; the default is a kill."""
    interruptions = Interruptions(patch)
    for _ in range(number - 1):
        interruptions.before("/bulk/", lambda: None)
    interruptions.before("/bulk/", act)


@pytest.mark.parametrize("answer", ["504", "reset", "never applied"])
@pytest.mark.parametrize("lag", [0, 20])
@pytest.mark.parametrize("seconds", [8, 10])
def test_nobody_is_invited_twice_if_requests_take_effect_late(
    sandbox: SandboxServer, connect: Connect, answer: str, lag: int, seconds: int
) -> None:
    connect(consistency_time=60)
    if answer == "never applied":
        sandbox.inject("reset_before", "create_invites", times=3, after=1)
    else:
        sandbox.inject("slow_effect", "create_invites", seconds=seconds, answer=answer, times=3, after=1)
    if lag:
        sandbox.inject("late_rows", "list_invites", seconds=lag)
    with WorkspaceHook() as hook:
        report = hook.create_invites(PEOPLE)
    assert report.counts["invited"] == len(PEOPLE)
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.parametrize("remembered", [True, False])
def test_an_immediate_retry_after_a_kill_invites_nobody_twice(
    sandbox: SandboxServer, connect: Connect, clock: Clock, *, remembered: bool
) -> None:
    """The service applies the running requests 8 s after the worker was killed."""
    connect(consistency_time=30)
    sandbox.inject("slow_effect", "create_invites", seconds=8, answer="reset", times=None, after=3)
    context: Any = {"task_state_store": TaskStore()} if remembered else {}

    def task() -> WorkspaceCreateInvitesOperator:
        return WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE, do_xcom_push=False)

    with pytest.MonkeyPatch.context() as patch:
        before_bulk_request(4, patch)
        with pytest.raises(Killed):
            task().execute(context)
    assert 0 < len(sandbox.audit("create_invite")) < len(PEOPLE)
    sandbox.clear_faults()
    if not remembered:
        context = {"ti": TaskInstance(2)}
    clock.advance(0.1)
    report = task().execute(context)
    assert report["counts"]["invited"] > 0
    assert mailed(sandbox) == Counter(PEOPLE)


INVITERS: dict[str, Callable[[], Any]] = {
    "invites": lambda: WorkspaceCreateInvitesOperator(task_id="task", invites=PEOPLE),
    "members": lambda: WorkspaceSyncMembersOperator(task_id="task", roster=PEOPLE, protected=[], max_removals=100),
    "organization": lambda: WorkspaceApplyOrganizationOperator(
        task_id="task", part="members", file={"members": {"people": [{"email": email} for email in PEOPLE]}}
    ),
}


@pytest.mark.parametrize("inviter", INVITERS)
@pytest.mark.parametrize(("clock_name", "seconds"), [("time", 300), ("monotonic", 5)])
def test_a_try_that_wakes_stops_if_another_one_has_begun(
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    inviter: str,
    clock_name: str,
    seconds: float,
) -> None:
    """The first try is suspended before a request, and only one clock shows it; the second try invites everybody."""
    connect(max_concurrency=2, consistency_time=1)
    context: Any = {"task_state_store": TaskStore()}

    def shift(name: str, by: float) -> None:
        now = getattr(time, name)
        monkeypatch.setattr(time, name, lambda: now() + by)

    def sleep() -> None:
        began = {name: getattr(time, name)() for name in ("time", "monotonic")}
        INVITERS[inviter]().execute(context)
        for name, then in began.items():  # what the second try took does not count
            shift(name, then - getattr(time, name)() + (seconds if name == clock_name else 0))

    before_bulk_request(3, monkeypatch, sleep)
    with pytest.raises(AirflowFailException, match="another try of this task has taken over"):
        INVITERS[inviter]().execute(context)
    twice = [email for email, times in mailed(sandbox).items() if times > 1]
    assert set(mailed(sandbox)) == set(PEOPLE)
    assert len(twice) <= 2 * 20, "more than the requests under way"


def test_a_resumed_process_sends_only_its_current_requests(
    sandbox: SandboxServer, connect: Connect, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is suspended at its third request; another run invites everybody meanwhile."""
    connect(max_concurrency=2)

    def sleep() -> None:
        clock.advance(300)
        with WorkspaceHook() as other:
            other.create_invites(PEOPLE)

    before_bulk_request(3, monkeypatch, sleep)
    with WorkspaceHook() as hook:
        report = hook.create_invites(PEOPLE)
    twice = [email for email, times in mailed(sandbox).items() if times > 1]
    assert set(mailed(sandbox)) == set(PEOPLE)
    assert max(mailed(sandbox).values()) <= 2
    assert 0 < len(twice) <= 2 * 20
    assert report.counts["already_invited"] >= len(PEOPLE) - 4 * 20
