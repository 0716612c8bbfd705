"""Parsing of operator arguments, as written in Dags or rendered from templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from airflow.sdk import DAG

from airflow_provider_workspace.operators.dashboards import (
    WorkspaceCreateDashboardOperator,
    WorkspaceGetDashboardOperator,
)
from airflow_provider_workspace.operators.domains import (
    WorkspaceCreateDomainOperator,
    WorkspaceGetDomainOperator,
    WorkspaceVerifyDomainOperator,
)
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator, WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator, WorkspaceGetProjectOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceInvitesSettledSensor
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

REQUIRED = ("domain_id", "name", "dashboard_id", "target_email", "domain", "project_id")
CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE


@pytest.mark.parametrize(
    ("cls", "arguments", "says"),
    [
        (
            WorkspaceGetDomainOperator,
            {"domain_id": "None"},
            "Check the task that domain_id comes from: its template found no value and rendered to 'None'",
        ),
        (WorkspaceCreateProjectOperator, {"name": " "}, "Check the task that name comes from: its template found no"),
        (WorkspaceCreateProjectOperator, {"name": 5}, "name must be a string"),
        (
            WorkspaceGetDashboardOperator,
            {"dashboard_id": True},
            "dashboard_id must be a string or a number, not .* bool",
        ),
        (
            WorkspaceGetDashboardOperator,
            {"dashboard_id": 10**4400},
            "dashboard_id must be a string or a number, not .* int",
        ),
        (WorkspaceCreateInviteOperator, {"target_email": ["a@example.com"]}, "target_email must be a string"),
        (WorkspaceCreateDomainOperator, {"domain": UUID(int=7)}, "domain must be a string"),
        (WorkspaceGetProjectOperator, {"project_id": "\x00"}, r"project_id contains characters .* printed: '\\x00'"),
        (WorkspaceCreateProjectOperator, {"name": "Sales", "settings": CYCLE}, "settings is nested too deeply"),
        *(
            (
                WorkspaceCreateProjectOperator,
                {"name": "Sales", "settings": value},
                "settings must be a mapping of field",
            )
            for value in ("name", "{'name': 1}", "[1]", 5, ["name"], {5: 6}, "[" * 100_000)
        ),
        (
            WorkspaceVerifyDomainOperator,
            {"domain_id": "x", "body": {"domain_id": "x"}},
            "Pass domain_id=…: body holds 'domain_id', which is an argument of its own",
        ),
        (WorkspaceVerifyDomainOperator, {"domain_id": "x", "body": {"self": 1}}, "body holds 'self'"),
        *(
            (WorkspaceListMembersOperator, {"fields": value}, "fields must be a list of texts")
            for value in (5, [5], [None], {"a": 1}, b"ab")
        ),
        *(
            (WorkspaceListMembersOperator, {"fields": value}, "Check the task that fields comes from")
            for value in ("", "None", ["level", " "], ("None",))
        ),
        *(
            (WorkspaceListMembersOperator, {"max_rows": value}, "max_rows must be a whole number")
            for value in ("many", "1.5", 1.5, True, "9" * 5000, 10**4400)
        ),
        (
            WorkspaceCreateProjectOperator,
            {"name": "x", "if_exists": "ignore"},
            "if_exists is 'ignore'; expected 'return' or 'fail'",
        ),
        (WorkspaceCreateProjectOperator, {"name": "x", "if_exists": ["fail"]}, "if_exists is something of type list"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:20] if not isinstance(value, dict) else "",
)
@pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
def test_invalid_arguments_are_refused(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any], says: str
) -> None:
    connect()
    task = cls(task_id="task", **{name: "x" for name in arguments if name in REQUIRED})
    vars(task).update(arguments)
    with pytest.raises(AirflowFailException, match=says):
        task.execute({})
    assert sandbox.requests() == []


NONE = "{{ params.nothing }}"


@pytest.mark.parametrize(
    ("cls", "arguments", "name"),
    [
        (WorkspaceListMembersOperator, {"organization_id": NONE}, "organization_id"),
        (WorkspaceListMembersOperator, {"where": NONE}, "where"),
        (WorkspaceCreateDashboardOperator, {"name": "Sales", "project_id": NONE}, "project_id"),
        (WorkspaceCreateDashboardOperator, {"name": "Sales", "variable_key": NONE}, "variable_key"),
        (WorkspaceSyncMembersOperator, {"roster": [], "protected": [], "max_removals": NONE}, "max_removals"),
        (WorkspaceSyncMembersOperator, {"roster": [], "protected": [], "approved": NONE}, "approved"),
        (WorkspaceInvitesSettledSensor, {"emails": ["a@example.com"], "organization_id": NONE}, "organization_id"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
def test_an_argument_that_renders_to_none_is_not_left_out(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any], name: str
) -> None:
    """Else a task that returns nothing would lead to the default organization, or lift a limit."""
    connect()
    with DAG("dag", schedule=None, render_template_as_native_obj=True) as dag:
        task = cls(task_id="task", **arguments)
    task.render_template_fields({"params": {"nothing": None}}, dag.get_template_env())
    with pytest.raises(AirflowFailException, match=f"Check the task that {name} comes from: it returned no value"):
        task.execute({})
    assert effects(sandbox) == []


@pytest.mark.parametrize(
    ("fields", "names"),
    [("level", ["level"]), ('["level", "id"]', ["level", "id"]), (("level", "id"), ["level", "id"])],
)
@pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
def test_names_numbers_and_mappings_may_be_texts(
    sandbox: SandboxServer, connect: Connect, fields: Any, names: list[str]
) -> None:
    connect()
    rows = WorkspaceListMembersOperator(task_id="list", fields=fields, max_rows=" 5 ").execute({})
    assert [*rows[0]] == names
    settings: Any = ' {"week_start_day": 1}'
    project = WorkspaceCreateProjectOperator(task_id="create", name="Sales", settings=settings).execute({})
    assert project["week_start_day"] == 1
    assert effects(sandbox) == ["create_project"]
