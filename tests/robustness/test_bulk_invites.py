"""Bulk invites with a slow, lagging or untruthful service, on a simulated clock."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.client import WorkspaceClient
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.procedures.invites_report import WorkspaceInvitesIncompleteError
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.task_instance import Killed, TaskInstance, TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
    pytest.mark.parametrize("sandbox", ["live"], indirect=True),
]
PEOPLE = [f"person-{number}@example.com" for number in range(200)]


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch, sandbox: SandboxServer) -> Callable[[float], None]:
    """Return a function that advances the clocks of worker and service, as the worker's sleeps do."""
    real, ahead = time.time, [0.0]

    def move(seconds: float) -> None:
        ahead[0] += seconds
        sandbox.advance_clock(seconds)

    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    monkeypatch.setattr(waits, "sleep", move)
    sandbox.change_settings(rate_limit=False)
    return move


def mailed(sandbox: SandboxServer) -> Counter[str]:
    """Return the number of invites per address after all requests have taken effect."""
    sandbox.advance_clock(600)
    return Counter(effect["target"] for effect in sandbox.audit("create_invite"))


@pytest.mark.usefixtures("advance")
@pytest.mark.parametrize("answer", ["504", "reset"])
@pytest.mark.parametrize("lag", [0, 20])
@pytest.mark.parametrize("seconds", [8, 10])
def test_nobody_is_invited_twice_if_requests_take_effect_late(
    sandbox: SandboxServer, connect: Connect, answer: str, lag: int, seconds: int
) -> None:
    connect(consistency_time=60)
    sandbox.inject("slow_effect", "create_invites", seconds=seconds, answer=answer, times=3, after=1)
    if lag:
        sandbox.inject("late_rows", "list_invites", seconds=lag)
    with closing(WorkspaceHook()) as hook:
        report = hook.create_invites(PEOPLE)
    assert report.counts["invited"] == len(PEOPLE)
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.usefixtures("advance")
def test_requests_that_were_not_applied_are_sent_again(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=60)
    sandbox.inject("reset_before", "create_invites", times=3, after=1)
    with closing(WorkspaceHook()) as hook:
        assert hook.create_invites(PEOPLE).counts["invited"] == len(PEOPLE)
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.parametrize("remembered", [True, False])
def test_an_immediate_retry_after_a_kill_invites_nobody_twice(
    sandbox: SandboxServer, connect: Connect, advance: Callable[[float], None], *, remembered: bool
) -> None:
    """The service applies the running requests 8 s after the worker was killed."""
    connect(consistency_time=30)
    sandbox.inject("slow_effect", "create_invites", seconds=8, answer="reset", times=None, after=3)
    context: Any = {"task_state_store": TaskStore()} if remembered else {}
    send = WorkspaceClient.send

    def send_and_die(self: WorkspaceClient, operation: Any, **options: Any) -> Any:
        try:
            return send(self, operation, **options)
        finally:
            if len([entry for entry in sandbox.requests() if entry["operation"] == "create_invites"]) > 3:
                raise Killed

    def task() -> WorkspaceCreateInvitesOperator:
        return WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE, do_xcom_push=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkspaceClient, "send", send_and_die)
        with pytest.raises(Killed):
            task().execute(context)
    assert 0 < len(sandbox.audit("create_invite")) < len(PEOPLE)
    sandbox.clear_faults()
    if not remembered:
        context = {"ti": TaskInstance(2)}
    advance(0.1)
    report = task().execute(context)
    assert report["counts"]["invited"] > 0
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.usefixtures("advance")
def test_rows_missing_from_a_response_are_found_in_the_list(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=60)
    sandbox.inject("said_otherwise", "create_invites", how="other_answer", rows=2)
    with closing(WorkspaceHook()) as hook:
        assert hook.create_invites(PEOPLE).counts["invited"] == len(PEOPLE)
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.usefixtures("advance")
def test_rows_that_the_service_skipped_fail(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=60)
    sandbox.inject("said_otherwise", "create_invites", how="not_done", rows=2)
    with closing(WorkspaceHook()) as hook, pytest.raises(WorkspaceInvitesIncompleteError) as error:
        hook.create_invites(PEOPLE)
    assert error.value.report.counts["invited"] == len(PEOPLE) - 2
    failed = {entry.email for entry in error.value.report.entries if entry.status == "failed"}
    assert failed == set(PEOPLE) - mailed(sandbox).keys()
    assert len(failed) == 2


INVITERS: dict[str, Callable[[], Any]] = {
    "invites": lambda: WorkspaceCreateInvitesOperator(task_id="task", invites=PEOPLE),
    "members": lambda: WorkspaceSyncMembersOperator(task_id="task", roster=PEOPLE, protected=[], max_removals=100),
    "organization": lambda: WorkspaceApplyOrganizationOperator(
        task_id="task", part="members", file={"members": {"people": [{"email": email} for email in PEOPLE]}}
    ),
}


@pytest.mark.usefixtures("advance")
@pytest.mark.parametrize("inviter", INVITERS)
@pytest.mark.parametrize(("clock", "seconds"), [("time", 300), ("monotonic", 5)])
def test_a_try_that_wakes_stops_if_another_one_has_begun(
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    inviter: str,
    clock: str,
    seconds: float,
) -> None:
    """The first try is suspended before a request, and only one clock shows it; the second try invites everybody."""
    connect(max_concurrency=2, consistency_time=1)
    send, sent = WorkspaceClient.send, list[int]()
    context: Any = {"task_state_store": TaskStore()}

    def shift(clock: str, seconds: float) -> None:
        now = getattr(time, clock)
        monkeypatch.setattr(time, clock, lambda: now() + seconds)

    def send_and_sleep(self: WorkspaceClient, operation: Any, **options: Any) -> Any:
        if type(operation).__name__ == "CreateInvites":
            sent.append(len(sent))
            if len(sent) == 3:
                began = {name: getattr(time, name)() for name in ("time", "monotonic")}
                with pytest.MonkeyPatch.context() as awake:
                    awake.setattr(WorkspaceClient, "send", send)
                    INVITERS[inviter]().execute(context)
                for name, then in began.items():  # what the second try took does not count
                    shift(name, then - getattr(time, name)() + (seconds if name == clock else 0))
        return send(self, operation, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkspaceClient, "send", send_and_sleep)
        with pytest.raises(AirflowFailException, match="another try of this task has taken over"):
            INVITERS[inviter]().execute(context)
    twice = [email for email, times in mailed(sandbox).items() if times > 1]
    assert set(mailed(sandbox)) == set(PEOPLE)
    assert len(twice) <= 2 * 20, "more than the requests under way"


def test_a_resumed_process_sends_only_its_current_requests(
    sandbox: SandboxServer, connect: Connect, advance: Callable[[float], None]
) -> None:
    """The process is suspended at its third request; another run invites everybody meanwhile."""
    connect(max_concurrency=2)
    send = WorkspaceClient.send
    sent: list[int] = []

    def send_and_sleep(self: WorkspaceClient, operation: Any, **options: Any) -> Any:
        if type(operation).__name__ == "CreateInvites":
            sent.append(len(sent))
            if len(sent) == 3:
                advance(300)
                with pytest.MonkeyPatch.context() as awake, closing(WorkspaceHook()) as other:
                    awake.setattr(WorkspaceClient, "send", send)
                    other.create_invites(PEOPLE)
        return send(self, operation, **options)

    with pytest.MonkeyPatch.context() as patch, closing(WorkspaceHook()) as hook:
        patch.setattr(WorkspaceClient, "send", send_and_sleep)
        report = hook.create_invites(PEOPLE)
    twice = [email for email, times in mailed(sandbox).items() if times > 1]
    assert set(mailed(sandbox)) == set(PEOPLE)
    assert max(mailed(sandbox).values()) <= 2
    assert 0 < len(twice) <= 2 * 20
    assert report.counts["already_invited"] >= len(PEOPLE) - 4 * 20
