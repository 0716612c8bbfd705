"""Parsing of operator arguments, as written in Dags or rendered from templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from airflow.sdk import DAG

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.operators.arguments import (
    parse_choice,
    parse_fields,
    parse_integer,
    parse_names,
)
from airflow_provider_workspace.operators.dashboards import (
    WorkspaceCreateDashboardOperator,
    WorkspaceGetDashboardOperator,
)
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator, WorkspaceGetDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator, WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator, WorkspaceGetProjectOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceInvitesSettledSensor
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE


@pytest.mark.parametrize(
    ("value", "fields"), [(None, {}), ({}, {}), ({"name": "Sales"}, {"name": "Sales"}), (' {"level": 1}', {"level": 1})]
)
def test_valid_fields_are_accepted(value: Any, fields: dict[str, Any]) -> None:
    assert parse_fields("settings", value) == fields


@pytest.mark.parametrize("value", ["name", "{'name': 1}", "[1]", 5, ["name"], {5: 6}, "[" * 100_000])
def test_invalid_fields_are_refused(value: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="settings must be a mapping of fields by name"):
        parse_fields("settings", value)


def test_a_field_that_is_an_argument_is_refused() -> None:
    with pytest.raises(
        WorkspaceInputError, match="Pass domain_id=…: body holds 'domain_id', which is an argument of its own"
    ):
        parse_fields("body", {"domain_id": "x"}, taken=("domain_id",))


def test_a_field_named_self_is_refused() -> None:
    with pytest.raises(WorkspaceInputError, match="body holds 'self'"):
        parse_fields("body", {"self": 1})


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (None, []),
        ("email", ["email"]),
        ('["a", "b"]', ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        ([UUID(int=7)], [str(UUID(int=7))]),
    ],
)
def test_valid_names_are_accepted(value: Any, names: list[str]) -> None:
    assert parse_names("fields", value) == names


@pytest.mark.parametrize("value", [5, [5], [None], {"a": 1}, b"ab"])
def test_invalid_names_are_refused(value: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="fields must be a list of texts"):
        parse_names("fields", value)


@pytest.mark.parametrize("value", ["", "None", ["ada", " "], ("None",)])
def test_names_whose_template_found_no_value_are_refused(value: Any) -> None:
    """Nobody could approve what only the user ``None`` may approve."""
    with pytest.raises(WorkspaceInputError, match="Check the task that approvers comes from"):
        parse_names("approvers", value)


@pytest.mark.parametrize(("value", "number"), [(5, 5), (" 5 ", 5)])
def test_valid_integers_are_accepted(value: Any, number: int) -> None:
    assert parse_integer("max_rows", value) == number


@pytest.mark.parametrize("value", [None, "", "many", "1.5", 1.5, True, "9" * 5000, 10**4400], ids=range(8))
def test_invalid_integers_are_refused(value: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="max_rows must be a whole number"):
        parse_integer("max_rows", value)


def test_an_unknown_choice_is_refused() -> None:
    assert parse_choice("if_exists", "fail", ("return", "fail")) == "fail"
    with pytest.raises(WorkspaceInputError, match="if_exists is 'ignore'; expected 'return' or 'fail'"):
        parse_choice("if_exists", "ignore", ("return", "fail"))
    with pytest.raises(WorkspaceInputError, match="if_exists is something of type list"):
        parse_choice("if_exists", ["fail"], ("return", "fail"))


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
    ],
    ids=["no value", "blank", "name", "bool", "huge", "list", "uuid", "unprintable", "cycle"],
)
@pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
def test_invalid_arguments_are_refused(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any], says: str
) -> None:
    connect()
    task = cls(task_id="task", **dict.fromkeys(arguments, "x"))
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
