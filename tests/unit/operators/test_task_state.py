"""Retries after a worker was killed between a create and its result."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.operators.batch_exports import WorkspacePauseBatchExportOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.interruptions import Interruptions
from tests.task_instance import Killed, TaskInstance, TaskStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect


@pytest.fixture
def interruptions(monkeypatch: pytest.MonkeyPatch) -> Interruptions:
    return Interruptions(monkeypatch)


def project(**arguments: Any) -> WorkspaceCreateProjectOperator:
    return WorkspaceCreateProjectOperator(task_id="t", name="Northwind", do_xcom_push=False, **arguments)


def invites() -> WorkspaceCreateInvitesOperator:
    return WorkspaceCreateInvitesOperator(task_id="t", invites=["ada@example.com"], do_xcom_push=False)


def sync() -> WorkspaceSyncMembersOperator:
    return WorkspaceSyncMembersOperator(
        task_id="t",
        roster=["ada@example.com"],
        protected=["adam.admin@example.com"],
        max_removals=None,
        do_xcom_push=False,
    )


retries = pytest.mark.parametrize(
    "context", [{"task_state_store": True}, {"ti": TaskInstance(2)}], ids=["remembered", "any retry"]
)


@pytest.mark.parametrize(("task", "clock"), [(invites, 0), (invites, -1000), (invites, 1000), (sync, 0), (sync, 1000)])
@retries
@pytest.mark.usefixtures("no_waits")
def test_a_retry_invites_nobody_twice_if_the_list_lags(
    sandbox: SandboxServer,
    interruptions: Interruptions,
    monkeypatch: pytest.MonkeyPatch,
    context: Any,
    task: Callable[[], Any],
    clock: float,
) -> None:
    """Also if the clock was set back since the earlier try, or is ahead on another worker."""
    if "task_state_store" in context:
        context = {"task_state_store": TaskStore()}
    interruptions.after("POST")
    with pytest.raises(Killed):
        task().execute({} if "ti" in context else context)
    sandbox.inject("late_rows", "list_invites", times=None)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + clock)
    retry = task()
    with pytest.raises(TaskDeferred) as wait:
        retry.execute(context)
    trigger: Any = wait.value.trigger
    assert 120 < trigger.end_at - time.time() <= 125, "the consistency time, since the earlier try noted that it sends"
    sandbox.clear_faults()
    monkeypatch.setattr(time, "time", lambda: trigger.end_at)
    retry.execute_complete(context, {"status": "over", "state": trigger.state})
    assert len(sandbox.effects("create_invite")) == 1


@pytest.mark.parametrize("ahead", [0, 1000], ids=["same worker", "clock ahead"])
def test_a_retry_counts_from_its_own_start(
    sandbox: SandboxServer, interruptions: Interruptions, clock: Clock, ahead: float
) -> None:
    """The request took 50 seconds, and may still take effect."""
    context: Any = {"task_state_store": TaskStore()}
    sandbox.inject("reset_before", "create_project")

    def take_long() -> None:
        clock.advance(50)
        interruptions.before("GET")

    interruptions.before("POST", take_long)
    with pytest.raises(Killed):
        project().execute(context)
    clock.ahead += ahead
    project().execute(context)
    assert 115 < sum(clock.waited) <= 125, "the consistency time"
    assert len(sandbox.effects("create_project")) == 1


def test_a_refused_create_clears_the_task_state(sandbox: SandboxServer) -> None:
    store = TaskStore()
    sandbox.inject("status_before", "create_project", status=403)
    context: Any = {"task_state_store": store}
    with pytest.raises(AirflowFailException, match="403"):
        project().execute(context)
    assert store.keys() == {"airflow_provider_workspace.try"}


def test_a_try_that_another_one_replaced_repeats_no_request(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second try begins while the first one waits to send a request again."""
    store = TaskStore()
    context: Any = {"task_state_store": store}
    sandbox.inject("status_before", "pause_batch_export", status=503)

    def pause() -> WorkspacePauseBatchExportOperator:
        return WorkspacePauseBatchExportOperator(task_id="pause", batch_export_id=sandbox.seed.batch_export_ids[0])

    def sleep(_: float) -> None:
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 5)
        pause().execute(context)

    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(AirflowFailException, match="Another try of this task has taken over"):
        pause().execute(context)
    assert len(sandbox.audit("pause_batch_export")) == 1


def test_dry_run_writes_no_task_state() -> None:
    store = TaskStore()
    context: Any = {"task_state_store": store}
    project(dry_run=True).execute(context)
    assert not store


def test_the_progress_of_a_bulk_invite_is_an_xcom(connect: Connect, sandbox: SandboxServer) -> None:
    """It is for the status page: what is left, why, until when, and which rows need a person."""
    connect(bulk_invite_limit=1)
    people = ["ada@example.com", *(f"person {number}" for number in range(30)), "lin@example.com"]
    sandbox.inject("rate_limit", "create_invites", after=1, seconds=7200)
    ti = TaskInstance()
    task = WorkspaceCreateInvitesOperator(task_id="t", invites=people, on_invalid="skip")
    with pytest.raises(TaskDeferred) as wait:
        task.execute({"ti": ti})  # type: ignore[typeddict-item]
    progress = ti.xcoms["progress"]
    trigger: Any = wait.value.trigger
    again_at = datetime.fromisoformat(progress["again_at"].replace("Z", "+00:00")).timestamp()
    assert again_at == pytest.approx(trigger.end_at, abs=0.01)
    assert progress["counts"] == {"invited": 1, "invalid": 30}
    assert (progress["rows"], progress["left"], progress["organization_id"]) == (32, 1, sandbox.seed.organization_id)
    assert "limit" in progress["why"]
    assert (len(progress["needs_person"]), progress["needs_person_rows"]) == (20, 30)
    assert progress["needs_person"][0]["row"] == 2
    sandbox.clear_faults()
    WorkspaceCreateInvitesOperator(task_id="t", invites=["eve@example.com"]).execute({"ti": ti})  # type: ignore[typeddict-item]
    end = {name: ti.xcoms["progress"][name] for name in ("counts", "left", "why", "again_at", "needs_person")}
    assert end == {"counts": {"invited": 1}, "left": 0, "why": "", "again_at": None, "needs_person": []}


def test_a_task_without_xcoms_leaves_no_address_in_one(sandbox: SandboxServer) -> None:
    context: Any = {"ti": TaskInstance()}
    sandbox.inject("refuse_address", "create_invites", email="ada@example.com", times=None)
    with pytest.raises(AirflowFailException, match="1 of 1 rows were refused"):
        invites().execute(context)
    assert context["ti"].xcoms == {}
