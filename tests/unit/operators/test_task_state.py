"""Retries after a worker was killed between a create and its result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.client import WorkspaceClient
from airflow_provider_workspace.operators.batch_exports import WorkspacePauseBatchExportOperator
from airflow_provider_workspace.operators.dashboards import WorkspaceCreateDashboardOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.state.task_state import LATEST_TRY
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.task_instance import Killed, TaskInstance, TaskStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")


@pytest.fixture
def killed_after(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Kill the worker after the first effect of an operation."""
    send = WorkspaceClient.send
    names: list[str] = []

    def send_and_die(self: WorkspaceClient, operation: Any, **options: Any) -> Any:
        answer = send(self, operation, **options)
        if type(operation).__name__ in names:
            names.clear()
            raise Killed
        return answer

    monkeypatch.setattr(WorkspaceClient, "send", send_and_die)
    return names.append


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


def dashboard(**arguments: Any) -> WorkspaceCreateDashboardOperator:
    return WorkspaceCreateDashboardOperator(task_id="t", name="Revenue", do_xcom_push=False, **arguments)


def test_if_exists_fail_accepts_what_a_killed_try_created(
    connect: Connect, sandbox: SandboxServer, killed_after: Any
) -> None:
    connect()
    context: Any = {"task_state_store": TaskStore()}
    killed_after("CreateProject")
    with pytest.raises(Killed):
        project(if_exists="fail").execute(context)
    task = project(if_exists="fail")
    assert task.execute(context)["name"] == "Northwind"
    assert task.created
    assert len(sandbox.effects("create_project")) == 1


def test_a_retry_without_task_state_counts_the_record_as_found(
    connect: Connect, sandbox: SandboxServer, killed_after: Any
) -> None:
    connect()
    killed_after("CreateProject")
    with pytest.raises(Killed):
        project().execute({})
    task = project()
    task.execute({})
    assert not task.created
    assert len(sandbox.effects("create_project")) == 1
    with pytest.raises(AirflowFailException, match="project 'Northwind' exists already"):
        project(if_exists="fail").execute({})


retries = pytest.mark.parametrize(
    "context", [{"task_state_store": True}, {"ti": TaskInstance(2)}], ids=["remembered", "any retry"]
)


@pytest.mark.usefixtures("no_waits")
@retries
def test_a_retry_creates_nothing_twice_if_the_list_lags(
    connect: Connect, sandbox: SandboxServer, killed_after: Any, context: Any
) -> None:
    connect()
    if "task_state_store" in context:
        context = {"task_state_store": TaskStore()}
    killed_after("CreateProject")
    with pytest.raises(Killed):
        project().execute(context)
    sandbox.inject("late_rows", "list_projects", times=1)
    assert project().execute(context)["name"] == "Northwind"
    assert len(sandbox.effects("create_project")) == 1


@pytest.mark.parametrize("task", [invites, sync])
@retries
def test_a_retry_invites_nobody_twice_if_the_list_lags(
    connect: Connect,
    sandbox: SandboxServer,
    killed_after: Any,
    monkeypatch: pytest.MonkeyPatch,
    context: Any,
    task: Callable[[], Any],
) -> None:
    connect()
    if "task_state_store" in context:
        context = {"task_state_store": TaskStore()}
    killed_after("CreateInvites")
    with pytest.raises(Killed):
        task().execute({} if "ti" in context else context)
    sandbox.inject("late_rows", "list_invites", times=None)
    retry = task()
    with pytest.raises(TaskDeferred) as wait:
        retry.execute(context)
    trigger: Any = wait.value.trigger
    assert 120 < trigger.end_at - time.time() <= 125, "the consistency time, since the earlier try noted that it sends"
    sandbox.clear_faults()
    monkeypatch.setattr(time, "time", lambda: trigger.end_at)
    retry.execute_complete(context, {"status": "over", "state": trigger.state})
    assert len(sandbox.effects("create_invite")) == 1


@pytest.mark.parametrize("task", [invites, sync])
def test_a_task_that_is_cleared_at_once_invites_nobody_twice_if_the_list_lags(
    connect: Connect, sandbox: SandboxServer, task: Callable[[], Any]
) -> None:
    connect()
    context: Any = {"task_state_store": TaskStore()}
    task().execute(context)
    sandbox.inject("late_rows", "list_invites", times=None)
    with pytest.raises(TaskDeferred):
        task().execute(context)
    assert len(sandbox.effects("create_invite")) == 1


def test_a_refused_create_clears_the_task_state(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    store = TaskStore()
    sandbox.inject("status_before", "create_project", status=403)
    context: Any = {"task_state_store": store}
    with pytest.raises(AirflowFailException, match="403"):
        project().execute(context)
    assert store.keys() == {LATEST_TRY}


def test_a_try_that_another_one_replaced_repeats_no_request(
    connect: Connect, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second try begins while the first one waits to send a request again."""
    connect()
    store = TaskStore()
    context: Any = {"task_state_store": store}
    sandbox.inject("status_before", "pause_batch_export", status=503)

    def pause() -> WorkspacePauseBatchExportOperator:
        return WorkspacePauseBatchExportOperator(task_id="pause", batch_export_id=sandbox.seed.batch_export_ids[0])

    def sleep(_: float) -> None:
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 5)
        pause().execute(context)

    monkeypatch.setattr(waits, "sleep", sleep)
    with pytest.raises(AirflowFailException, match="another try of this task has taken over"):
        pause().execute(context)
    assert len(sandbox.audit("pause_batch_export")) == 1


def test_dry_run_writes_no_task_state(connect: Connect) -> None:
    connect()
    store = TaskStore()
    context: Any = {"task_state_store": store}
    project(dry_run=True).execute(context)
    dashboard(dry_run=True).execute(context)
    assert not store


def test_an_interrupted_dashboard_create_is_not_repeated(
    connect: Connect, sandbox: SandboxServer, killed_after: Any
) -> None:
    connect()
    context: Any = {"task_state_store": TaskStore()}
    killed_after("CreateDashboard")
    with pytest.raises(Killed):
        dashboard().execute(context)
    with pytest.raises(AirflowFailException, match="was interrupted: the dashboard may exist"):
        dashboard().execute(context)
    assert len(sandbox.effects("create_dashboard")) == 1
    dashboard(if_unknown="create").execute(context)
    assert len(sandbox.effects("create_dashboard")) == 2


def test_a_retry_returns_the_dashboard_of_an_earlier_try(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    context: Any = {"task_state_store": TaskStore()}
    first, again = dashboard().execute(context), dashboard().execute(context)
    assert first["id"] == again["id"]
    assert len(sandbox.effects("create_dashboard")) == 1
