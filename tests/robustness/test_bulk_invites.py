"""Bulk invites at services that are slow, lag or say something else, by what the service did; no real time passes."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.sync import WorkspaceClient
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.procedures.bulk_invites import WorkspaceInvitesIncompleteError
from tests.task_store import Killed, TaskStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
    pytest.mark.parametrize("sandbox", ["live"], indirect=True),
]
PEOPLE = [f"person-{number}@example.com" for number in range(200)]


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch, sandbox: SandboxServer) -> Callable[[float], None]:
    """Move the clocks of the worker and of the service; the worker's sleeps do so too. There are no rates."""
    real, ahead = time.time, [0.0]

    def move(seconds: float) -> None:
        ahead[0] += seconds
        sandbox.advance_clock(seconds)

    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    monkeypatch.setattr(waits, "sleep", move)
    sandbox.change_settings(rate_limit=False)
    return move


def mailed(sandbox: SandboxServer) -> Counter[str]:
    """Return how often each was invited, once all that is under way has taken effect."""
    sandbox.advance_clock(600)
    return Counter(effect["target"] for effect in sandbox.audit("create_invite"))


@pytest.mark.usefixtures("advance")
@pytest.mark.parametrize("answer", ["504", "reset"])
@pytest.mark.parametrize("lag", [0, 20])
@pytest.mark.parametrize("seconds", [8, 10])
def test_nobody_is_invited_twice_where_requests_take_effect_late(
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
def test_what_was_not_applied_is_sent_again(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=60)
    sandbox.inject("reset_before", "create_invites", times=3, after=1)
    with closing(WorkspaceHook()) as hook:
        assert hook.create_invites(PEOPLE).counts["invited"] == len(PEOPLE)
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_killed_worker_with_an_immediate_retry_invites_nobody_twice(
    sandbox: SandboxServer, connect: Connect, advance: Callable[[float], None], *, remembered: bool
) -> None:
    """The service needs 8 s for what is under way when the worker dies."""
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

        class Retry:
            try_number = 2

            def xcom_push(self, **_: Any) -> None:
                pass

        context = {"ti": Retry()}
    advance(0.1)
    report = task().execute(context)
    assert report["counts"]["invited"] > 0
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.usefixtures("advance")
def test_rows_that_an_answer_leaves_out_are_found_if_they_are_there(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=60)
    sandbox.inject("said_otherwise", "create_invites", how="other_answer", rows=2)
    with closing(WorkspaceHook()) as hook:
        assert hook.create_invites(PEOPLE).counts["invited"] == len(PEOPLE)
    assert mailed(sandbox) == Counter(PEOPLE)


@pytest.mark.usefixtures("advance")
def test_rows_that_the_service_left_out_fail(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=60)
    sandbox.inject("said_otherwise", "create_invites", how="not_done", rows=2)
    with closing(WorkspaceHook()) as hook, pytest.raises(WorkspaceInvitesIncompleteError) as error:
        hook.create_invites(PEOPLE)
    assert error.value.report.counts["invited"] == len(PEOPLE) - 2
    failed = {entry.email for entry in error.value.report.entries if entry.status == "failed"}
    assert failed == set(PEOPLE) - mailed(sandbox).keys()
    assert len(failed) == 2


def test_a_process_that_slept_sends_only_what_was_under_way(
    sandbox: SandboxServer, connect: Connect, advance: Callable[[float], None]
) -> None:
    """It is suspended when the third request goes out; another run invites everybody meanwhile."""
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
