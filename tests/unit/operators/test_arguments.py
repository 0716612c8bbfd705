"""Parsing of operator arguments, as written in Dags or rendered from templates."""

from __future__ import annotations

import re
from inspect import signature
from types import SimpleNamespace, new_class
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from airflow.sdk import DAG

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.arguments import NAME, Arg, arg
from airflow_provider_workspace.operators.batch_exports import OfBatchExport, WorkspacePauseBatchExportOperator
from airflow_provider_workspace.operators.dashboards import (
    WorkspaceGetDashboardOperator,
    WorkspaceGetDashboardSharingOperator,
)
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator, WorkspaceGetDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator
from airflow_provider_workspace.operators.members import (
    WorkspaceDeleteMemberOperator,
    WorkspaceListMembersOperator,
    WorkspaceSyncMembersOperator,
    WorkspaceUpdateMemberOperator,
)
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator, WorkspaceGetProjectOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceDomainVerifiedSensor
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.audit import effects

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

REQUIRED = ("batch_export_id", "domain_id", "name", "dashboard_id", "target_email", "domain", "project_id")
CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE
# Operator, argument, values that it refuses, part of the error.
INVALID: list[tuple[type[Any], str, list[Any], str]] = [
    (WorkspaceGetDomainOperator, "domain_id", ["None"],
     "domain_id has no value: its template found no value and rendered to 'None'"),
    (WorkspaceCreateProjectOperator, "name", [" "], "name has no value: its template found no"),
    (WorkspaceCreateProjectOperator, "name", [5], "name must be a string"),
    (WorkspaceGetDashboardOperator, "dashboard_id", [True, 10**4400], "dashboard_id: expected an id, a number or text"),
    (WorkspaceCreateInviteOperator, "target_email", [["a@example.com"]], "target_email must be a string"),
    (WorkspaceCreateInviteOperator, "target_email", ["ada@@example.com"], "exactly one @"),
    (WorkspaceCreateDomainOperator, "domain", [UUID(int=7)], "domain must be a string"),
    (WorkspaceGetProjectOperator, "project_id", ["\x00"],
     r"project_id: expected an id, .* can be printed, not '\\x00'"),
    (WorkspaceGetProjectOperator, "organization_id", ["a\nb"], r"organization_id: expected an id, .*, not 'a\\nb'"),
    (WorkspaceCreateProjectOperator, "settings", [CYCLE], "settings is nested too deeply"),
    (WorkspaceCreateProjectOperator, "settings", [{"timezoen": "UTC"}], "did you mean 'timezone'"),
    (WorkspaceCreateProjectOperator, "settings", ["name", "{'name': 1}", "[1]", 5, ["name"], "[" * 100_000],
     "settings must be a mapping of field"),
    (WorkspaceCreateProjectOperator, "settings", [{5: 6}], "settings: put the key 5 in quotation marks"),
    (WorkspacePauseBatchExportOperator, "body", [{"batch_export_id": "x"}], "Pass batch_export_id=…: body holds"),
    (WorkspacePauseBatchExportOperator, "body", [{"self": 1}], "body holds 'self'"),
    (WorkspaceListMembersOperator, "fields", [5, [5], [None], {"a": 1}, b"ab"], "fields must be a list of texts"),
    (WorkspaceSweepOperator, "kinds", ["exports", ["windows", "leases"]], "kinds is |; expected 'windows' or 'grants'"),
    (WorkspaceSweepOperator, "kinds", [[], "[]"], "kinds is empty; expected 'windows' or 'grants'"),
    (WorkspaceListMembersOperator, "fields", ["", ["level", " "], ("None",)], "fields has no value"),
    *(
        (cls, name, ["", "None", "maybe", "2", [True]], f"{name} must be true or false, not |{name} has no value: ")
        for cls, name in (
            (WorkspaceDeleteMemberOperator, "is_dry_run"),
            (WorkspaceListMembersOperator, "count_only"),
            (WorkspaceSweepOperator, "fail_if_any"),
            (WorkspaceDomainVerifiedSensor, "deferrable"),
            (WorkspaceDomainVerifiedSensor, "ask_verification"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "name", "values", "says"), INVALID)
def test_invalid_arguments_are_refused(
    sandbox: SandboxServer, cls: type[Any], name: str, values: list[Any], says: str
) -> None:
    required = {"user_uuid": SEED.member_uuid} if cls is WorkspaceDeleteMemberOperator else {}
    required |= {key: "x" for key in REQUIRED if key in cls.template_fields and key != "project_id"}
    required |= {"project_id": "x"} if cls is WorkspaceGetProjectOperator else {}
    for value in values:
        task = cls(task_id="task", **required)
        vars(task)[name] = value
        with pytest.raises(AirflowFailException, match=says.replace("is_dry_run", "dry_run")):
            task.execute({})
    assert sandbox.requests() == []


@pytest.mark.parametrize(
    ("fields", "names"),
    [("level", ["level"]), ('["level", "id"]', ["level", "id"]), (("level", "id"), ["level", "id"])],
)
def test_names_numbers_and_mappings_may_be_texts(sandbox: SandboxServer, fields: Any, names: list[str]) -> None:
    rows = WorkspaceListMembersOperator(task_id="list", fields=fields, max_rows=" 5 ").execute({})
    assert [*rows[0]] == names
    settings: Any = ' {"week_start_day": 1}'
    project = WorkspaceCreateProjectOperator(task_id="create", name="Sales", settings=settings).execute({})
    assert project["week_start_day"] == 1
    assert effects(sandbox) == ["create_project"]


@pytest.mark.parametrize(
    ("cls", "arguments", "says"),
    [
        (WorkspaceListMembersOperator, {"max_rows": 1.5}, "max_rows must be a whole number"),
        (WorkspaceCreateProjectOperator, {"if_exists": "ignore"}, "if_exists is 'ignore'; expected 'return' or 'fail'"),
        (WorkspaceCreateProjectOperator, {"if_exists": ["fail"]}, "if_exists is something of type list"),
    ],
)
def test_arguments_that_are_not_templated_are_checked_in_the_dag_file(
    cls: type[Any], arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(WorkspaceInputError, match=says):
        cls(task_id="task", **({"name": "Sales"} if cls is WorkspaceCreateProjectOperator else {}), **arguments)


# Switches

SWITCH = "{{ params.switch }}"


def rendered(cls: type[Any], *, switch: Any, native: bool = False, **arguments: Any) -> Any:
    """Return a task with rendered templates; ``switch`` is the value of a parameter."""
    with DAG("dag", schedule=None, render_template_as_native_obj=native) as dag:
        task = cls(task_id="task", **arguments)
    task.render_template_fields({"params": {"switch": switch}}, dag.get_template_env())
    return task


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("switch", "is_on"),
    [
        *((switch, True) for switch in (True, "true", " YES ", 1, "1", "on")),
        *((switch, False) for switch in (False, "False", "no", 0, "0", "off")),
    ],
)
def test_a_rendered_switch_is_read_as_people_write_it(
    sandbox: SandboxServer, switch: Any, *, is_on: bool, native: bool
) -> None:
    """Any text is true in Python."""
    task = rendered(WorkspaceCreateProjectOperator, switch=switch, native=native, name="Northwind", dry_run=SWITCH)
    assert task.execute({}).get("dry_run", False) is is_on
    assert effects(sandbox) == ([] if is_on else ["create_project"])


TEMPLATE = "{{ params.switch }}"


@pytest.mark.parametrize("value", ["2024", "1e3", "True"])
@pytest.mark.parametrize(
    ("cls", "name", "needed"),
    [
        (WorkspaceCreateProjectOperator, "name", {}),
        (WorkspaceCreateProjectOperator, "timezone", {"name": "Northwind"}),
        (WorkspaceListMembersOperator, "fields", {}),
        (WorkspacePlanOrganizationOperator, "organization", {"file": {"organizations": {"2024": {}}}}),
        (WorkspaceSweepOperator, "kinds", {}),
    ],
)
def test_a_text_that_native_rendering_makes_a_number_says_how_to_keep_it(
    sandbox: SandboxServer, cls: type[Any], name: str, needed: dict[str, Any], value: str
) -> None:
    task = rendered(cls, switch=value, native=True, **{**needed, name: TEMPLATE})
    cure = f"If it comes from a template, quote it twice, as in {name}=\"'{{{{ … }}}}'\", or leave out render_"
    with pytest.raises(AirflowFailException, match=re.escape(cure)):
        task.execute({})
    quoted = rendered(cls, switch=value, native=True, **{**needed, name: f"'{TEMPLATE}'"})
    assert getattr(quoted, name) == value
    assert not effects(sandbox)


@pytest.mark.parametrize("switch", [SWITCH, "True", "", None, 1])
def test_return_secrets_is_a_boolean_of_the_dag_file(switch: Any) -> None:
    """Otherwise whoever starts a run could set it."""
    with pytest.raises(WorkspaceInputError, match="Set return_secrets to True or False in the Dag file: "):
        WorkspaceGetDashboardSharingOperator(task_id="task", dashboard_id=1, return_secrets=switch)
    assert "return_secrets" not in WorkspaceGetDashboardSharingOperator.template_fields


def test_templates_of_sensor_switches(sandbox: SandboxServer) -> None:
    domain_id = WorkspaceHook().create_domain(domain="fresh.example.com").id
    arguments = {"domain_id": domain_id, "ask_verification": SWITCH, "timeout": 0}
    task = rendered(WorkspaceDomainVerifiedSensor, switch=False, deferrable=True, **arguments)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    assert deferred.value.trigger.serialize()[1]["ask_verification"] is False
    assert "verify_domain" not in [request["operation"] for request in sandbox.requests()]


# Classes and tasks of authors


class Noting:
    """A mixin with an ``__init__`` of its own."""

    def __init__(self, *, note: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.note = note


class NotingCreateDomainOperator(Noting, WorkspaceCreateDomainOperator):
    """A class that only mixes."""


class TeamCreateDomainOperator(NotingCreateDomainOperator):
    """A class with an argument more."""

    team: Arg[str] = arg(NAME)


class Careful:
    """A mixin with a default."""

    dry_run = True


class SafeSync(Careful, WorkspaceSyncMembersOperator):
    """A class with defaults of its own, also for what is required and what is not templated."""

    max_removals = 0
    owner_level = "admin"
    protected = ("olive.owner@example.com",)
    workspace_conn_id = "north"
    return_secrets = True


class ExampleDomain(WorkspaceCreateDomainOperator):
    """A class that supplies a required argument itself."""

    if_exists = "fail"

    def __init__(self, *, team: str, **arguments: Any) -> None:
        super().__init__(domain=f"{team}.example.com", **arguments)


class NotedDomain(ExampleDomain):
    """A class with an argument more, and another default."""

    note: Arg[str] = arg(NAME)
    dry_run = True


class SalesDomain(NotingCreateDomainOperator):
    """A class that supplies what is required above the author's ``__init__``."""

    domain = "sales.example.com"


@pytest.mark.parametrize(
    ("cls", "arguments", "expected"),
    [
        (SafeSync, {}, {"is_dry_run": True, "max_removals": 0, "owner_level": "admin", "workspace_conn_id": "north"}),
        (SafeSync, {}, {"protected": ("olive.owner@example.com",), "return_secrets": True, "fail_on_reject": False}),
        (SafeSync, {"dry_run": False, "max_removals": None}, {"is_dry_run": False, "max_removals": None}),
        (new_class("Below", (SafeSync,)), {"protected": []}, {"is_dry_run": True, "protected": []}),
        (ExampleDomain, {"team": "north"}, {"domain": "north.example.com", "if_exists": "fail", "is_dry_run": False}),
        (NotedDomain, {"team": "north", "note": "why"}, {"domain": "north.example.com", "note": "why"}),
        (NotedDomain, {"team": "north", "note": "why"}, {"is_dry_run": True, "if_exists": "fail"}),
        (SalesDomain, {"note": "why"}, {"domain": "sales.example.com", "note": "why"}),
    ],
)
def test_attributes_and_an_init_of_an_author_supply_arguments(
    cls: Any, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    with DAG("dag", schedule=None, default_args={"organization_id": "acme"}):
        cls.partial(task_id="mapped").expand_kwargs([arguments])
        task = cls(task_id="task", **arguments)
    assert vars(task).items() >= {"organization_id": "acme", **expected}.items()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "missing keyword arguments 'note', 'team'"),
        ({"team": "north"}, "missing keyword argument 'note'"),
        ({"team": "north", "note": "why", "notes": 1}, "Invalid arguments were passed to NotedDomain"),
    ],
)
def test_what_a_class_of_an_author_lacks_is_said_in_the_dag_file(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        NotedDomain(task_id="task", **arguments)


def test_a_class_that_is_imported_after_a_task_of_its_base_was_made_has_its_own_arguments() -> None:
    WorkspaceUpdateMemberOperator(task_id="used", user_uuid="u", level=1)
    own = {"__module__": "airflow_provider_workspace.operators.late", "reason": arg(NAME)}
    bases = (OfBatchExport, WorkspaceUpdateMemberOperator)
    late: Any = new_class("Late", bases, exec_body=lambda names: names.update(own))
    assert {"reason", "batch_export_id", "level", "dry_run"} <= signature(late).parameters.keys()
    with pytest.raises(TypeError, match="missing keyword arguments 'batch_export_id', 'level', 'reason'"):
        late(task_id="late", user_uuid="u")
    given = {"batch_export_id": "b", "level": 1, "reason": "why"}
    assert late(task_id="late", user_uuid="u", **given).reason == "why"


def test_a_task_has_no_partial() -> None:
    task = WorkspaceUpdateMemberOperator(task_id="task", user_uuid="u", level=1)
    with pytest.raises(TypeError, match="partial can only be called on Operator classes"):
        task.partial(task_id="other")


def test_a_default_of_an_author_that_is_invalid_is_an_import_error() -> None:
    with pytest.raises(WorkspaceInputError, match="if_exists is 'retrun'; expected 'return' or 'fail'"):
        new_class("Typo", (ExampleDomain,), exec_body=lambda names: names.update(if_exists="retrun"))


@pytest.mark.parametrize("bases", [(SafeSync,), (Careful, WorkspaceSyncMembersOperator)])
def test_a_subclass_with_a_dry_run_removes_nobody(sandbox: SandboxServer, bases: Any) -> None:
    cls: Any = new_class("Sync", bases, exec_body=lambda names: names.update(max_removals=5))
    defaults = {name: each.default for name, each in signature(cls).parameters.items()}
    assert (defaults["dry_run"], defaults["max_removals"]) == (True, 5)
    arguments = {"protected": [], "workspace_conn_id": "workspace_default"}
    cls(task_id="sync", leavers=["mina.member@example.com"], **arguments).execute({})
    assert effects(sandbox) == []


def test_mixins_of_authors_may_have_an_init() -> None:
    arguments: dict[str, Any] = {"domain": "a.example.com", "note": "why", "team": "{{ params.team }}"}
    with DAG("dag", schedule=None, default_args={"organization_id": "acme", "unknown": 1}):
        task = TeamCreateDomainOperator(task_id="task", **arguments)
    assert (task.note, task.domain, task.organization_id) == ("why", "a.example.com", "acme")
    assert {"team", "domain", "organization_id"} <= {*task.template_fields}


@pytest.mark.parametrize("from_xcom", [True, False])
def test_none_of_a_mapped_xcom_is_not_that_of_the_dag_file(sandbox: SandboxServer, *, from_xcom: bool) -> None:
    """Otherwise a missing value would turn off a guard, or lead to the organization of the connection."""
    rows: Any = [{"max_removals": None, "organization_id": None}]
    with DAG("dag", schedule=None, default_args={"approved": None}) as dag:
        listed: Any = WorkspaceListMembersOperator(task_id="list").output if from_xcom else rows
        arguments = {"leavers": ["a@example.com"], "protected": [], "owner_level": None, "dry_run": True}
        mapped = WorkspaceSyncMembersOperator.partial(task_id="sync", **arguments).expand_kwargs(listed)
    ti = SimpleNamespace(map_index=0, task=mapped, xcom_pull=lambda **_: rows)
    context: Any = {"ti": ti, "dag": dag, "dag_run": SimpleNamespace(conf={}), "params": {}}
    mapped.render_template_fields(context)
    if from_xcom:
        with pytest.raises(AirflowFailException, match="max_removals has no value: it returned"):
            context["task"].execute(context)
        assert sandbox.requests() == []
    else:
        assert context["task"].execute(context)["planned_for"].endswith(SEED.organization_id)
