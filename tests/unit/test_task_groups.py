"""Dependencies and arguments of the tasks in ``task_groups``. tests/e2e runs them in Airflow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from airflow.cli.commands.task_command import _generate_temporary_run_id
from airflow.models.taskinstance import TaskInstance
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, task, task_group
from airflow.task.priority_strategy import PriorityWeightStrategy, validate_and_load_priority_weight_strategy

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.task_groups import STEPS, maintenance_window, workspace_organization
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.dag_bag import DagBag
from tests.variables import install
from tests.windows import Airflow, Window

if TYPE_CHECKING:
    from tests.conftest import Connect

EXPORTS = [SEED.batch_export_ids[0]]


def test_a_window_has_tasks_before_and_after_it() -> None:
    with DAG("around", schedule=None) as dag:
        before, after = EmptyOperator(task_id="before"), EmptyOperator(task_id="after")
        with maintenance_window(batch_export_ids=EXPORTS, drain=60) as work:
            EmptyOperator(task_id="rebuild")
        assert work.parent_group is not None
        before >> work.parent_group
        work >> after
    assert dag.get_task("maintenance_window.open").upstream_task_ids == {"before"}
    assert dag.get_task("maintenance_window.drain").upstream_task_ids == {"maintenance_window.pause"}
    assert dag.get_task("rebuild").upstream_task_ids == {"maintenance_window.drain"}
    assert dag.get_task("after").upstream_task_ids == {"rebuild"}


class OwnWeights(PriorityWeightStrategy):
    """A strategy of an author's that sums all tasks before and after a task."""

    def get_weight(self, ti: Any) -> int:
        relatives = ti.task.get_flat_relative_ids(upstream=True) | ti.task.get_flat_relative_ids(upstream=False)
        tasks = [ti.task.dag.task_dict[task_id] for task_id in relatives]
        return sum(task.priority_weight for task in [ti.task, *tasks])


@contextmanager
def plain_group(group_id: str = "maintenance_window", **_: Any) -> Iterator[TaskGroup]:
    """Hold tasks as a window does, without its own."""
    with TaskGroup(group_id), TaskGroup("work", prefix_group_id=False) as work:
        yield work


def plain(window: Any) -> None:
    with window(batch_export_ids=EXPORTS, max_length=60):
        number()


def before_and_after(window: Any) -> None:
    first, last = number.override(task_id="first")(), number.override(task_id="last")()
    with window(batch_export_ids=EXPORTS, drain=1, max_length=60) as work:
        number.override(task_id="a")() >> number.override(task_id="b", priority_weight=7)()
    first >> work.parent_group
    work >> last


def after_the_group(window: Any) -> None:
    with window(batch_export_ids=EXPORTS, max_length=60) as work:
        number()
    work.parent_group >> number.override(task_id="last")()


def nested(window: Any) -> None:
    with window(batch_export_ids=EXPORTS, max_length=60):
        number()
        with window("inner", batch_export_ids=EXPORTS, max_length=60):
            number.override(task_id="deep")()


def overlapping(window: Any) -> None:
    first = number.override(task_id="first")()
    for group_id in ("one", "two"):
        with window(group_id, batch_export_ids=EXPORTS, max_length=60) as work:
            number.override(task_id=f"in_{group_id}")()
        first >> work.parent_group


def in_groups(window: Any) -> None:
    first = number.override(task_id="first")()
    with TaskGroup("outer") as outer, window(batch_export_ids=EXPORTS, max_length=60), TaskGroup("deep"):
        number()
    first >> outer


def mapped_work(window: Any) -> None:
    with window(batch_export_ids=EXPORTS, max_length=60):
        number.expand(n=[1, 2]) >> number.override(task_id="then")()


def mapped_window(window: Any) -> None:
    @task_group(group_id="each")
    def each(n: int) -> None:
        with window(batch_export_ids=EXPORTS, max_length=60):
            number(n)

    number.override(task_id="first")() >> each.expand(n=[1, 2])


def after_a_branch(window: Any) -> None:
    @task.branch
    def choose() -> str:
        return "number"

    with window(batch_export_ids=EXPORTS, max_length=60):
        choose() >> number()
        choose.override(task_id="at_the_end")()


SHAPES = [
    plain,
    before_and_after,
    after_the_group,
    nested,
    overlapping,
    in_groups,
    mapped_work,
    mapped_window,
    after_a_branch,
]


def priorities(shape: Any, window: Any, rule: Any) -> dict[str, int]:
    """Return the priority of each task, as the scheduler will compute it."""
    with DAG("weights", schedule=None, default_args={"weight_rule": rule, "priority_weight": 3}) as dag:
        shape(window)
    dag.resolve_template_files()
    result = {}
    for each in dag.tasks:
        weights = each.weight_rule
        if isinstance(weights, str):
            weights = validate_and_load_priority_weight_strategy(weights)
        result[each.task_id] = weights.get_weight(cast("Any", SimpleNamespace(task=each)))
    return result


OWN = pytest.param(OwnWeights(), marks=pytest.mark.needs_airflow("3.2", "strategies without a plugin"))


@pytest.mark.parametrize("rule", ["downstream", "upstream", "absolute", OWN])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_window_changes_no_priority_and_what_resumes_comes_first(shape: Any, rule: Any) -> None:
    without = priorities(shape, plain_group, rule)
    with_window = priorities(shape, maintenance_window, rule)
    assert {task_id: with_window[task_id] for task_id in without} == without
    own = {task_id: weight for task_id, weight in with_window.items() if task_id not in without}
    resuming = [weight for task_id, weight in own.items() if task_id.endswith((".close", ".guard"))]
    assert resuming
    assert min(resuming) > max(without.values()) + 100_000_000
    assert max(own.values()) <= 2_147_483_647


def test_weights_that_postgresql_cannot_store_are_an_import_error() -> None:
    with DAG("heavy", schedule=None) as dag:
        heavy = EmptyOperator(task_id="heavy", priority_weight=2_000_000_000, weight_rule="absolute")
        with maintenance_window(batch_export_ids=EXPORTS) as work:
            number()
        heavy >> work.parent_group
    with pytest.raises(ValueError, match=r"'maintenance_window\.close' is 3000000001, .* store 2147483647"):
        dag.resolve_template_files()


@pytest.mark.filterwarnings("ignore:Dag 'between'.* in a cycle")  # since 3.4, before the error
@pytest.mark.parametrize("first", ["a", "maintenance_window.open"])
def test_a_task_between_two_tasks_of_a_window_is_an_import_error(tmp_path: Path, first: str) -> None:
    """Airflow 3.5 refuses such a Dag. DagBag is what reads Dag files."""
    file = tmp_path / "between.py"
    file.write_text(f"""
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow_provider_workspace.task_groups import maintenance_window

with DAG("between", schedule=None) as dag:
    with maintenance_window(batch_export_ids="{EXPORTS[0]}"):
        EmptyOperator(task_id="a") >> EmptyOperator(task_id="b")
    outside = EmptyOperator(task_id="outside")
    dag.get_task("{first}") >> outside >> EmptyOperator(task_id="further") >> dag.get_task("b")
""")
    errors = DagBag(str(file)).import_errors
    assert "Task 'further' is outside of the window 'maintenance_window'" in errors[next(iter(errors))]


@pytest.mark.parametrize("cleared", ["rebuild", "maintenance_window.hold"])
def test_whoever_clears_a_task_of_the_work_clears_the_window_around_it(cleared: str) -> None:
    dag = Window(*EXPORTS, drain=60, hold=60, max_length=3600).dag
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


@pytest.mark.parametrize("mapped", [False, True])
def test_work_does_not_run_in_a_closed_window(monkeypatch: pytest.MonkeyPatch, *, mapped: bool) -> None:
    """Airflow clears the failed tasks of a run without their setups."""
    install(monkeypatch)

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
    context = {"ti": SimpleNamespace(dag_id="closed", run_id="run", map_index=3)}
    window = f"closed / run / {prefix}maintenance_window.close{' [3]' if mapped else ''}"
    for hook in hooks.values():
        with pytest.raises(AirflowFailException) as error:
            hook(context)
        beginning = "[window-not-open] The window is "
        assert str(error.value).startswith(beginning)
        assert str(error.value).endswith(f"({window}).")


@pytest.mark.parametrize(("release", "permanent"), [("3.3", True), ("3.2", False)])
def test_mapped_work_does_not_run_in_a_closed_window(
    monkeypatch: pytest.MonkeyPatch, release: str, *, permanent: bool
) -> None:
    """Before 3.3 a passing error of Airflow looks like a missing lease, so the task is retried."""
    install(monkeypatch, release=release)
    with DAG("closed", schedule=None) as dag, maintenance_window(batch_export_ids=EXPORTS):
        number.expand(n=[1, 2])
    hook = dag.get_task("number").partial_kwargs["pre_execute"]
    with pytest.raises(AirflowFailException if permanent else WorkspaceError, match="The window is closed"):
        hook({"ti": SimpleNamespace(dag_id="closed", run_id="run", map_index=1)})


def test_airflow_tasks_test_runs_the_work_without_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    Window(*EXPORTS, run_id=_generate_temporary_run_id()).work()


def test_the_pre_execute_of_default_args_is_called_too(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    connect()
    Airflow(monkeypatch)
    called: list[Any] = []
    window = Window(*EXPORTS, default_args={"pre_execute": called.append})
    window.open()
    window.pause()
    window.work()
    assert [context["ti"].task_id for context in called] == ["rebuild"]


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
        "pool": "work",
        "pool_slots": 2,
        "weight_rule": "upstream",
        "priority_weight": 5,
    }
    arguments: dict[str, Any] = {"drain": 60, "hold": 60, "max_length": 3600, "resume_args": {"retries": 1}}
    dag = Window(*EXPORTS, default_args=defaults, **arguments).dag
    assert Window(*EXPORTS).dag.get_task("maintenance_window.close").retries == 15
    for name in ("open", "pause", "drain", "hold", "outcome", "close", "guard"):
        task = dag.get_task(f"maintenance_window.{name}")
        assert not task.depends_on_past
        assert not task.wait_for_downstream
        assert task._post_execute_hook is None
        assert (task._pre_execute_hook is None) == (name != "hold")
        rules = {"close": "all_done_setup_success", "guard": "all_done_setup_success", "outcome": "none_failed"}
        assert task.trigger_rule == rules.get(name, "all_success")
        assert (task.pool, task.pool_slots, task.priority_weight) == ("default_pool", 1, int(name == "hold"))
        rule = "upstream" if name in ("close", "guard") else "downstream"
        strategy = validate_and_load_priority_weight_strategy(rule)
        assert task.weight_rule in (rule, strategy)  # the latter before 3.2
        assert task.retries == (1 if name == "close" else 3)
        assert task.retry_delay < timedelta(minutes=1)
        assert task.execution_timeout is None
        assert task.do_xcom_push
    assert dag.get_task("rebuild").depends_on_past


@task.branch
def choose() -> str:
    """Decide what follows the window."""
    return "after"


def test_a_branch_at_the_end_of_the_work_cannot_skip_close() -> None:
    with DAG("branch", schedule=None) as dag:
        after = EmptyOperator(task_id="after")
        with maintenance_window(batch_export_ids=EXPORTS) as work:
            number() >> choose()
            EmptyOperator(task_id="beside")
        work >> after
    group = "maintenance_window"
    assert dag.get_task("choose").downstream_task_ids == {f"{group}.branched_1", "after"}
    assert dag.get_task(f"{group}.branched_1").downstream_task_ids == {f"{group}.close", f"{group}.outcome"}
    assert "choose" not in dag.get_task(f"{group}.close").upstream_task_ids
    assert "beside" in dag.get_task(f"{group}.close").upstream_task_ids
    assert dag.get_task(f"{group}.open").work_task_ids == ["beside", "choose", "number"]
    assert dag.get_task(f"{group}.outcome").trigger_rule == "none_failed"


def test_an_inner_window_that_cannot_close_does_not_hold_the_outer_one_open() -> None:
    with DAG("nested", schedule=None) as dag:
        nested(maintenance_window)
    work = dag.get_task("maintenance_window.open").work_task_ids
    assert work == ["deep", "inner.open", "inner.outcome", "inner.pause", "number"]


def test_a_fail_fast_dag_may_have_a_window() -> None:
    with DAG("fast", schedule=None, fail_fast=True) as dag, maintenance_window(batch_export_ids=EXPORTS):
        number()
    assert dag.get_task("maintenance_window.outcome").trigger_rule == "all_success"


@pytest.mark.parametrize(
    ("arguments", "callbacks"),
    [
        ({}, print),
        ({"on_overdue": repr}, [print, repr]),
        ({"on_overdue": [repr]}, [print, repr]),
        ({"on_overdue": repr, "guard_args": {"on_failure_callback": [len]}}, [len, repr]),
        ({"guard_args": {"pool": "guards"}}, print),
    ],
)
def test_the_guard_keeps_the_callbacks_of_default_args(arguments: dict[str, Any], callbacks: Any) -> None:
    dag = Window(*EXPORTS, default_args={"on_failure_callback": print}, max_length=60, **arguments).dag
    guard = dag.get_task("maintenance_window.guard")
    expected = callbacks if isinstance(callbacks, list) else [callbacks]
    assert list(guard.on_failure_callback) == expected
    assert guard.pool == arguments.get("guard_args", {}).get("pool", "default_pool")


def test_a_guard_needs_a_second_active_task() -> None:
    with (
        DAG("one", schedule=None, max_active_tasks=1),
        pytest.raises(ValueError, match=r"^With max_active_tasks=1, the guard of the window .* Set max_active_tasks"),
        maintenance_window(batch_export_ids=EXPORTS, max_length=60),
    ):
        pass


def test_default_args_name_the_connection_of_groups() -> None:
    """Otherwise a file would be applied to the workspace of the default connection."""
    defaults = {"workspace_conn_id": "north", "organization_id": "acme"}
    with DAG("dag", schedule=None, default_args=defaults) as dag:
        workspace_organization("file", file="northwind.yaml")
        workspace_organization("south", file="northwind.yaml", workspace_conn_id="south")
        with TaskGroup("east", default_args={"workspace_conn_id": "east"}):
            workspace_organization("mapped", file=["a.yaml", {"file": "b.yaml", "workspace_conn_id": "west"}])
        with maintenance_window(batch_export_ids=EXPORTS, hold=60):
            pass
    tasks = ("file.domains", "south.plan", "maintenance_window.open", "maintenance_window.hold")
    assert [dag.get_task(name).workspace_conn_id for name in tasks] == ["north", "south", "north", "north"]
    group: Any = dag.get_task("east.mapped.plan").get_closest_mapped_task_group()
    assert [row["workspace_conn_id"] for row in group._expand_input.value] == ["east", "west"]
    assert dag.get_task("maintenance_window.open").organization_id == "acme"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        *(({name: value}, f"{name} must be a timedelta or a number of seconds")
         for name in ("hold", "drain", "max_length") for value in (math.nan, 1e300, -1, timedelta(days=-1), True,
          "soon", [])),
        *(({"max_length": timedelta(hours=1), **lengths}, "The window is overdue after ")
         for lengths in ({"drain": 3600}, {"hold": "4000"}, {"drain": 1800, "hold": 1800})),
        ({"on_overdue": []}, "on_overdue needs max_length"),
        ({"guard_args": {}}, "guard_args needs max_length"),
        # Templates are known when the window opens.
        ({"drain": "{% if params.x %}60{% endif %}", "max_length": "{# later #}{{ 9 }}"}, "create tasks inside"),
        ({}, "create tasks inside the with statement, or set hold"),
    ],
)  # fmt: skip
def test_an_invalid_window_is_an_import_error(arguments: dict[str, Any], error: str) -> None:
    with (
        DAG("wrong", schedule=None),
        pytest.raises(ValueError, match=error),
        maintenance_window(batch_export_ids=EXPORTS, **arguments),
    ):
        pass


@task
def publish(domains: list[dict[str, str]]) -> None:
    """Publish DNS records."""


def test_the_tasks_of_an_organization() -> None:
    prefix = "organization."
    with DAG("onboard", schedule=None, default_args={"do_xcom_push": False, "trigger_rule": "all_done"}) as dag:
        workspace_organization(file="northwind.yaml", publish=publish, require_approval=True, pool="workspace")
    tasks = {task.task_id.removeprefix(prefix): task for task in dag.tasks}
    assert set(tasks) == {"plan", *STEPS, "publish", "report"}
    assert not tasks["plan"].is_mapped
    upstream: dict[str, set[str]] = {}
    for name, one in tasks.items():
        upstream[name] = {task_id.removeprefix(prefix) for task_id in one.upstream_task_ids}
    assert upstream["verification"] == {"plan", "domains", "publish"}
    assert upstream["collaborators"] == {"plan", "dashboards", "members"}
    assert upstream["report"] == set(STEPS)
    del tasks["publish"]
    for one in tasks.values():
        assert (one.retries, one.pool, one.do_xcom_push, one.trigger_rule) == (3, "workspace", True, "all_success")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"publish": lambda _: None}, "publish must create a task, not return something of type NoneType: a plain"),
        ({"dry_run": "{{ params.dry_run }}"}, "Set dry_run to True or False in the Dag file: it is not templated"),
    ],
)
def test_what_decides_about_the_tasks_of_an_organization_is_checked(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(WorkspaceInputError, match=says), DAG("onboard", schedule=None):
        workspace_organization(file="northwind.yaml", **arguments)


def test_the_report_begins_with_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    with DAG("onboard", schedule=None) as dag:
        workspace_organization(file="northwind.yaml")
    created = {"action": "create", "part": "projects", "name": "project x", "before": {}, "after": {}}
    created |= {"why": "", "status": "done", "reason": ""}
    parts = [
        {"changes": [created] * count, "table": f"{count} created\n  + …", "counts": {"create": count}}
        for count in (1, 0, 0, 43, 0, 0, 0)
    ]
    assert dag.get_task("organization.report").python_callable(parts)["create"] == 44
    assert capsys.readouterr().out.splitlines() == [
        "44 created, 0 changed, 0 removed",
        *("projects: 1 created", "  + …"),
        *("members: 43 created", "  + …"),
    ]


def test_the_people_of_an_organization_may_come_from_another_task() -> None:
    @task
    def people() -> list[Any]:
        return [["ada@example.com"]]

    with DAG("onboard", schedule=None) as dag:
        workspace_organization(
            file="northwind.yaml", roster=people(), columns=["email"], where={"email": "ada@example.com"}
        )
    followers = [dag.get_task(task_id) for task_id in dag.get_task("people").downstream_task_ids]
    assert {task.task_id: (task.columns, task.where) for task in followers} == {
        "organization.plan": (["email"], {"email": "ada@example.com"}),
        "organization.members": (["email"], {"email": "ada@example.com"}),
    }


def test_a_drift_check_is_one_task() -> None:
    with DAG("drift", schedule=None) as dag:
        workspace_organization("north", file="northwind.yaml", dry_run=True, retries=0)
    (plan,) = dag.tasks
    assert (plan.task_id, plan.fail_on_difference, plan.retries) == ("north.plan", True, 0)


@pytest.mark.parametrize("name", ["360", "2026.5", "None", "True", "[1, 2]", "{}", "'quoted'", "north"])
def test_native_rendering_keeps_the_title_of_a_mapped_organization_a_text(name: str) -> None:
    """Airflow takes its length when the work is done."""
    with DAG("several", schedule=None, render_template_as_native_obj=True) as dag:
        workspace_organization(file=[{"file": "a.yaml", "organization": name}])
    mapped = [each for each in dag.tasks if each.map_index_template]
    assert len(mapped) == 1 + len(STEPS)
    assert {label_of(each, name) for each in mapped} == {f"Organization {name}"}


@pytest.mark.parametrize(
    ("name", "end"), [("n" * 300, "n…"), ("\U0001f600" * 300, "\U0001f600…"), ("a\0b\ud800", "a?b?")]
)
def test_airflow_can_store_the_title_of_a_mapped_organization(name: str, end: str) -> None:
    with DAG("several", schedule=None) as dag:
        workspace_organization(file=[{"file": "a.yaml", "organization": name}])
    label = label_of(dag.get_task("organization.plan"), name)
    assert len(label) <= TaskInstance.__table__.c.rendered_map_index.type.length
    assert label.startswith("Organization ")
    assert label.endswith(end)


def label_of(task: Any, organization: str) -> str:
    """Return what Airflow shows in place of the index of a mapped task, as it renders it."""
    unmapped = WorkspacePlanOrganizationOperator(task_id="unmapped", file="a.yaml", organization=organization)
    template = task.dag.get_template_env().from_string(task.map_index_template)
    label: str = template.render(task=unmapped)
    return label


def test_organizations_can_be_mapped() -> None:
    @task
    def files() -> list[str]:
        return ["data/my-file.yaml"]

    with DAG("several", schedule=None) as dag:
        workspace_organization("listed", file=["a.yaml", {"file": "b.yaml", "workspace_conn_id": "b"}])
        workspace_organization("found", file=files(), organization="north", verification_args={"timeout": 60})
    assert all(task.get_closest_mapped_task_group() for task in dag.tasks if task.task_id != "files")
    assert dag.get_task("found.verification").timeout == 60
    group: Any = dag.get_task("found.plan").get_closest_mapped_task_group()
    (arguments_of,) = group._expand_input.value.callables
    common = {"organization": "north", "workspace_conn_id": "workspace_default"}
    assert arguments_of("data/my-file.yaml") == {"file": "data/my-file.yaml", **common}
    assert arguments_of({"file": "b.yaml", "organization": "b"}) == {**common, "file": "b.yaml", "organization": "b"}
