"""Boolean arguments, as rendered from templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.operators.dashboards import WorkspaceGetDashboardSharingOperator
from airflow_provider_workspace.operators.domains import WorkspaceVerifyDomainOperator
from airflow_provider_workspace.operators.members import WorkspaceDeleteMemberOperator, WorkspaceListMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.operators.window_closing import WorkspaceResumeAbandonedExportsOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceDomainVerifiedSensor
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.audit import effects

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
SWITCH = "{{ params.switch }}"


def rendered(cls: type[Any], *, switch: Any, native: bool = False, **arguments: Any) -> Any:
    """Return a task with rendered templates; ``switch`` is the value of a parameter."""
    with DAG("dag", schedule=None, render_template_as_native_obj=native) as dag:
        task = cls(task_id="task", **arguments)
    task.render_template_fields({"params": {"switch": switch}}, dag.get_template_env())
    return task


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("switch", [True, "true", " YES ", 1, "1", "on"])
def test_a_rendered_dry_run_sends_nothing(
    sandbox: SandboxServer, connect: Connect, switch: Any, *, native: bool
) -> None:
    connect()
    task = rendered(WorkspaceCreateProjectOperator, switch=switch, native=native, name="Northwind", dry_run=SWITCH)
    assert task.execute({})["dry_run"] is True
    assert sandbox.effects() == []


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("switch", [False, "False", "no", 0, "0", "off"])
def test_a_rendered_false_is_no_dry_run(sandbox: SandboxServer, connect: Connect, switch: Any, *, native: bool) -> None:
    """Any text is true in Python."""
    connect()
    task = rendered(WorkspaceCreateProjectOperator, switch=switch, native=native, name="Northwind", dry_run=SWITCH)
    assert task.execute({})["name"] == "Northwind"
    assert effects(sandbox) == ["create_project"]


@pytest.mark.parametrize(
    ("cls", "arguments", "name"),
    [
        (WorkspaceDeleteMemberOperator, {"user_uuid": SEED.member_uuid}, "dry_run"),
        (WorkspaceListMembersOperator, {}, "count_only"),
        (WorkspaceVerifyDomainOperator, {"domain_id": SEED.domain_id}, "fail_unverified"),
        (WorkspaceResumeAbandonedExportsOperator, {}, "fail_if_any"),
        (WorkspaceDomainVerifiedSensor, {"domain_id": SEED.domain_id}, "deferrable"),
        (WorkspaceDomainVerifiedSensor, {"domain_id": SEED.domain_id}, "ask_verification"),
    ],
)
@pytest.mark.parametrize("switch", ["", "None", "maybe", "2", None, [True]])
def test_other_texts_are_refused(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any], name: str, switch: Any
) -> None:
    connect()
    task = rendered(cls, switch=switch, native=True, **arguments, **{name: SWITCH})
    with pytest.raises(
        AirflowFailException, match=f"{name} must be true or false, not |task that {name} comes from: it"
    ):
        task.execute({})
    assert sandbox.requests() == []


@pytest.mark.parametrize("switch", [SWITCH, "True", "", None, 1])
def test_return_secrets_is_a_boolean_of_the_dag_file(switch: Any) -> None:
    """Otherwise whoever starts a run could set it."""
    with pytest.raises(WorkspaceInputError, match="Set return_secrets to True or False in the Dag file: "):
        WorkspaceGetDashboardSharingOperator(task_id="task", dashboard_id=1, return_secrets=switch)
    assert "return_secrets" not in WorkspaceGetDashboardSharingOperator.template_fields


def test_template_of_count_only(connect: Connect) -> None:
    connect()
    assert rendered(WorkspaceListMembersOperator, switch=True, count_only=SWITCH).execute({}) == 5
    assert len(rendered(WorkspaceListMembersOperator, switch=False, count_only=SWITCH).execute({})) == 5


def test_templates_of_sensor_switches(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    domain_id = rendered_domain(sandbox)
    arguments = {"domain_id": domain_id, "ask_verification": SWITCH, "timeout": 0}
    task = rendered(WorkspaceDomainVerifiedSensor, switch=False, deferrable=True, **arguments)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    assert deferred.value.trigger.serialize()[1]["ask_verification"] is False
    assert "verify_domain" not in [request["operation"] for request in sandbox.requests()]
    with pytest.raises(WorkspaceInputError, match="With start_from_trigger, it and ask_verification must be True or"):
        WorkspaceDomainVerifiedSensor(task_id="s", domain_id="d", ask_verification=SWITCH, start_from_trigger=True)


def rendered_domain(sandbox: SandboxServer) -> str:
    """Create an unverified domain and return its id."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    created = WorkspaceHook().create_domain(domain="fresh.example.com").id
    assert created
    assert sandbox.effects()
    return created


def test_a_mapped_task_renders_its_switches() -> None:
    """Airflow reads ``template_fields`` of a mapped task from its class."""
    assert "is_dry_run" in WorkspaceCreateProjectOperator.template_fields
    assert {"deferrable", "ask_verification"} <= set(WorkspaceDomainVerifiedSensor.template_fields)
