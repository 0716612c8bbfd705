"""Dependencies and arguments of the tasks in ``task_groups``. tests/e2e runs them in Airflow."""

from __future__ import annotations

import dataclasses
import math
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.cli.commands.task_command import _generate_temporary_run_id
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, task, task_group
from airflow.utils.code_utils import get_python_source

from airflow_provider_workspace.procedures.organization_plan import PARTS
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.state.leases import Lease, Window, WindowClosedError, dump
from airflow_provider_workspace.task_groups import STEPS, maintenance_window, workspace_organization
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.variables import Variables, install, install_runs

EXPORTS = [SEED.batch_export_ids[0]]
TASKS = ("open", "pause", "drain", "hold", "outcome", "close", "guard")


def test_a_window_has_tasks_before_and_after_it() -> None:
    with DAG("around", schedule=None) as dag:
        before, after = EmptyOperator(task_id="before"), EmptyOperator(task_id="after")
        with maintenance_window(batch_export_ids=EXPORTS) as work:
            EmptyOperator(task_id="rebuild")
        assert work.parent_group is not None
        before >> work.parent_group
        work >> after
    assert dag.get_task("maintenance_window.open").upstream_task_ids == {"before"}
    assert dag.get_task("rebuild").upstream_task_ids == {"maintenance_window.pause"}
    assert dag.get_task("after").upstream_task_ids == {"rebuild"}


def test_drain_waits_between_pause_and_work() -> None:
    with DAG("drained", schedule=None) as dag, maintenance_window(batch_export_ids=EXPORTS, drain=60):
        EmptyOperator(task_id="rebuild")
    assert dag.get_task("maintenance_window.drain").upstream_task_ids == {"maintenance_window.pause"}
    assert dag.get_task("rebuild").upstream_task_ids == {"maintenance_window.drain"}


@pytest.mark.parametrize("cleared", ["rebuild", "maintenance_window.hold"])
def test_whoever_clears_a_task_of_the_work_clears_the_window_around_it(cleared: str) -> None:
    with (
        DAG("cleared", schedule=None) as dag,
        maintenance_window(batch_export_ids=EXPORTS, drain=60, hold=60, max_length=3600),
    ):
        EmptyOperator(task_id="rebuild")
    around = {f"maintenance_window.{name}" for name in ("open", "pause", "drain", "close", "guard")}
    assert set(dag.partial_subset([cleared], include_upstream=False).task_ids) == {cleared, *around}
    assert set(dag.partial_subset([cleared], include_upstream=False, include_downstream=True).task_ids) == {
        cleared,
        *around,
        "maintenance_window.outcome",
    }


@task
def number(n: int = 0) -> int:
    """Return a number."""
    return n


def add_lease(variables: Variables, window: Window) -> None:
    """Pause an export for a window."""
    lease = Lease(
        **dataclasses.asdict(window),
        service="https://workspace.example.com",
        workspace_conn_id="workspace_default",
        organization_id="organization",
        batch_export_id=EXPORTS[0],
        state="paused",
        since=time.time(),
        until=time.time() + 3600,
        exports=1,
    )
    variables.values[lease.key] = dump(lease)


@pytest.mark.parametrize(("mapped", "index"), [(False, -1), (True, 3)])
def test_work_does_not_run_in_a_closed_window(monkeypatch: pytest.MonkeyPatch, index: int, *, mapped: bool) -> None:
    """Airflow clears the failed tasks of a run without their setups."""
    variables, runs = install(monkeypatch), install_runs(monkeypatch)

    def build(ids: Any) -> None:
        with maintenance_window(batch_export_ids=ids):
            number()
            with TaskGroup("nested"):
                EmptyOperator(task_id="inner")

    with DAG("closed", schedule=None) as dag:
        if mapped:
            task_group(group_id="one")(build).expand(ids=[EXPORTS])
        else:
            build(EXPORTS)
    prefix = "one." if mapped else ""
    hooks = {each.task_id: each._pre_execute_hook for each in dag.tasks if each._pre_execute_hook is not None}
    assert {each.removeprefix(prefix) for each in hooks} == {"number", "nested.inner"}
    hook = next(iter(hooks.values()))
    window = Window("closed", "run", f"{prefix}maintenance_window.close", index)
    context = {"ti": SimpleNamespace(dag_id="closed", run_id="run", map_index=3)}
    with pytest.raises(AirflowFailException, match=rf"^Clear '{prefix}maintenance_window\.open' with all that follows"):
        hook(context)
    runs.tasks["run"] = {window.close_task_id + (f"_{index}" if mapped else ""): None}
    add_lease(variables, window)
    hook(context)


@pytest.mark.parametrize(("release", "error"), [("3.3", AirflowFailException), ("3.2", WindowClosedError)])
def test_mapped_work_does_not_run_in_a_closed_window(
    monkeypatch: pytest.MonkeyPatch, release: str, error: type[Exception]
) -> None:
    """Before 3.3 a passing error of Airflow looks like a missing lease, so the task is retried."""
    install(monkeypatch, release=release)
    with DAG("closed", schedule=None) as dag, maintenance_window(batch_export_ids=EXPORTS):
        number.expand(n=[1, 2])
    hook = dag.get_task("number").partial_kwargs["pre_execute"]
    with pytest.raises(error, match="the window is closed"):
        hook({"ti": SimpleNamespace(dag_id="closed", run_id="run", map_index=1)})


def test_airflow_tasks_test_runs_the_work_without_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with DAG("one", schedule=None) as dag, maintenance_window(batch_export_ids=EXPORTS):
        EmptyOperator(task_id="rebuild")
    run_id = _generate_temporary_run_id()
    context = {"ti": SimpleNamespace(dag_id="one", run_id=run_id, map_index=-1)}
    dag.get_task("rebuild")._pre_execute_hook(context)


def test_the_pre_execute_of_default_args_is_called_too(monkeypatch: pytest.MonkeyPatch) -> None:
    variables, _ = install(monkeypatch), install_runs(monkeypatch)
    called: list[Any] = []
    with (
        DAG("own", schedule=None, default_args={"pre_execute": called.append}) as dag,
        maintenance_window(batch_export_ids=EXPORTS),
    ):
        EmptyOperator(task_id="rebuild")
    add_lease(variables, Window("own", "run", "maintenance_window.close"))
    context = {"ti": SimpleNamespace(dag_id="own", run_id="run", map_index=-1)}
    dag.get_task("rebuild")._pre_execute_hook(context)
    assert called == [context]


def test_the_check_of_the_work_takes_little_room_in_the_serialized_dag() -> None:
    """Airflow stores the source of a pre_execute with each task."""
    with DAG("small", schedule=None) as dag, maintenance_window(batch_export_ids=EXPORTS):
        EmptyOperator(task_id="rebuild")
    assert len(get_python_source(dag.get_task("rebuild")._pre_execute_hook)) < 150


def test_default_args_do_not_reach_the_tasks_of_a_window() -> None:
    defaults: dict[str, Any] = {
        "depends_on_past": True,
        "wait_for_downstream": True,
        "trigger_rule": "one_failed",
        "retries": 0,
        "retry_delay": timedelta(days=1),
        "execution_timeout": timedelta(seconds=1),
        "do_xcom_push": False,
        "pre_execute": print,
        "post_execute": print,
    }
    with (
        DAG("defaults", schedule=None, default_args=defaults) as dag,
        maintenance_window(batch_export_ids=EXPORTS, drain=60, hold=60, max_length=3600),
    ):
        EmptyOperator(task_id="rebuild")
    for name in TASKS:
        task = dag.get_task(f"maintenance_window.{name}")
        assert not task.depends_on_past
        assert not task.wait_for_downstream
        assert task._post_execute_hook is None
        assert (task._pre_execute_hook is None) == (name != "hold")
        assert task.trigger_rule == ("all_done_setup_success" if name in ("close", "guard") else "all_success")
        assert task.retries == (15 if name == "close" else 3)
        assert task.retry_delay < timedelta(minutes=1)
        assert task.execution_timeout is None
        assert task.do_xcom_push
    assert dag.get_task("rebuild").depends_on_past


def test_retries_of_close_can_be_set() -> None:
    with (
        DAG("changed", schedule=None) as dag,
        maintenance_window(batch_export_ids=EXPORTS, hold=1, resume_args={"retries": 1}),
    ):
        pass
    assert dag.get_task("maintenance_window.close").retries == 1


@pytest.mark.parametrize("value", [math.nan, 1e300, -1, timedelta(days=-1), True, "soon", []])
@pytest.mark.parametrize("name", ["hold", "drain", "max_length"])
def test_an_invalid_max_length_is_an_import_error(name: str, value: Any) -> None:
    lengths: dict[str, Any] = {name: value}
    with (
        DAG("wrong", schedule=None),
        pytest.raises(ValueError, match=f"{name} must be a timedelta or a number of seconds"),
        maintenance_window(batch_export_ids=EXPORTS, **lengths),
    ):
        EmptyOperator(task_id="rebuild")


@pytest.mark.parametrize("lengths", [{"drain": 3600}, {"hold": "4000"}, {"drain": 1800, "hold": 1800}])
def test_a_window_that_would_be_overdue_before_its_work_ends_is_an_import_error(lengths: dict[str, Any]) -> None:
    with (
        DAG("wrong", schedule=None),
        pytest.raises(ValueError, match="Set max_length above drain and hold together"),
        maintenance_window(batch_export_ids=EXPORTS, max_length=timedelta(hours=1), **lengths),
    ):
        EmptyOperator(task_id="rebuild")


@task
def publish(domains: list[dict[str, str]]) -> None:
    """Publish DNS records."""


def test_the_tasks_of_an_organization() -> None:
    with DAG("onboard", schedule=None) as dag:
        workspace_organization(file="northwind.yaml", publish=publish, require_approval=True, pool="workspace")
    ids = {task.task_id.removeprefix("organization."): task for task in dag.tasks}
    assert set(ids) == {"plan", *STEPS, "publish", "report"}
    assert set(STEPS) == set(PARTS)
    before = {name: {one.removeprefix("organization.") for one in task.upstream_task_ids} for name, task in ids.items()}
    assert before["verification"] == {"plan", "domains", "publish"}
    assert before["collaborators"] == {"plan", "dashboards", "members"}
    assert before["report"] == set(STEPS)
    assert all(task.retries == 3 for name, task in ids.items() if name != "publish")
    assert {task.pool for name, task in ids.items() if name != "publish"} == {"workspace"}
    assert not dag.get_task("organization.plan").is_mapped


def test_default_args_do_not_break_the_tasks_of_an_organization() -> None:
    with DAG("defaults", schedule=None, default_args={"do_xcom_push": False, "trigger_rule": "all_done"}) as dag:
        workspace_organization(file="northwind.yaml")
    assert {(task.do_xcom_push, task.trigger_rule) for task in dag.tasks} == {(True, "all_success")}


def test_a_drift_check_is_one_task() -> None:
    with DAG("drift", schedule=None) as dag:
        workspace_organization("north", file="northwind.yaml", dry_run=True, retries=0)
    (plan,) = dag.tasks
    assert (plan.task_id, plan.fail_on_difference, plan.retries) == ("north.plan", True, 0)


def test_organizations_can_be_mapped() -> None:
    @task
    def files() -> list[str]:
        return ["a.yaml"]

    with DAG("several", schedule=None) as dag:
        workspace_organization("listed", file=["a.yaml", {"file": "b.yaml", "workspace_conn_id": "b"}])
        workspace_organization("found", file=files(), verification_args={"timeout": 60})
    assert all(task.get_closest_mapped_task_group() for task in dag.tasks if task.task_id != "files")
    assert dag.get_task("found.verification").timeout == 60


def test_mapped_files_may_have_any_name() -> None:
    @task
    def files() -> list[str]:
        return ["data/my-file.yaml"]

    with DAG("named", schedule=None) as dag:
        workspace_organization("found", file=files(), organization="north")
    group: Any = dag.get_task("found.plan").get_closest_mapped_task_group()
    (arguments_of,) = group._expand_input.value.callables
    common = {"organization": "north", "workspace_conn_id": "workspace_default"}
    assert arguments_of("data/my-file.yaml") == {"file": "data/my-file.yaml", **common}
    assert arguments_of({"file": "b.yaml", "organization": "b"}) == {**common, "file": "b.yaml", "organization": "b"}
