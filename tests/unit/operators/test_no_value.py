"""A template that finds no value: the words that it renders to are never sent."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG
from jinja2 import StrictUndefined, Undefined

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators import (
    access,
    access_review,
    dashboards,
    invites,
    members,
    organization,
    projects,
    window_closing,
)
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.audit import effects, writes
from tests.classes import TASKS, own_arguments
from tests.task_instance import task_instance
from tests.variables import install, install_runs

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("in_memory", "no_waits")
NONE = "{{ params.nothing }}"
UNDEFINED = "{{ params.missing }}"
native = pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
# Arguments that are as if not given; all others are refused.
LEFT_OUT = {
    *("access_control", "anonymize_ips", "app_urls", "is_demo", "product_description", "timezone"),
    *("combine_pending_invites", "first_name", "message", "private_project_access", "send_email"),
    *("delete_insights", "deleted", "description", "pinned", "restriction_level", "tags"),
    *("jit_provisioning_enabled", "saml_acs_url", "saml_entity_id", "saml_x509_cert", "sso_enforcement"),
    *("arguments", "body", "defaults", "resume_fields", "settings"),
    *(
        "level",
        "leavers_path",
        "organization",
        "path",
        "report_path",
        "requested_by",
        "use_dashboard",
        "use_template",
        "user_email",
        "user_uuid",
    ),
}
# Of these, who gets what is no field that may be left out.
NEEDED = {
    (access.WorkspaceGrantAccessOperator, "level"),
    (access.WorkspaceGrantAccessOperator, "user_email"),
    (access.WorkspaceEndAccessOperator, "user_email"),
    (access_review.WorkspaceLiftDecisionOperator, "user_email"),
}


@pytest.fixture
def in_memory(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(max_attempts=1)
    install(monkeypatch)
    install_runs(monkeypatch)


def run(cls: type[Any], *, native: bool, undefined: type[Undefined] = StrictUndefined, **arguments: Any) -> Any:
    """Render the templates of a task as Airflow does, and run it."""
    with DAG("dag", schedule=None, render_template_as_native_obj=native, template_undefined=undefined) as dag:
        task = cls(task_id="task", **arguments)
    context: Any = {"params": {"nothing": None}, "ti": task_instance()}
    task.render_template_fields(context, dag.get_template_env())
    return task.execute(context)


def bodies(sandbox: SandboxServer) -> list[Any]:
    return [request["body"] for request in writes(sandbox)]


def check_nothing_says_none(sandbox: SandboxServer) -> None:
    for request in sandbox.requests():
        sent = json.dumps([request["path"], request["query"], request["body"]])
        assert "None" not in sent, f"{request['operation']} sent {sent}"


@pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "both"])
@pytest.mark.parametrize("cls", TASKS)
def test_the_word_none_is_never_sent(sandbox: SandboxServer, cls: type[Any], *, both: bool) -> None:
    """Rendered as text and as a value of Python; if not ``both``, each argument in one of these ways."""
    templated = [name for name, each in cls.declared.items() if each.templated]
    for (number, name), native in product(enumerate(templated), (True, False)):
        if not both and number % 2 == native:
            continue
        if cls is window_closing.WorkspaceGuardMaintenanceWindowOperator and name == "workspace_conn_id":
            continue  # each lease names its connection
        try:
            run(cls, native=native, **own_arguments(cls) | {name: NONE})
            said = ""
        except TaskDeferred:
            said = ""
        except AirflowFailException as error:
            said = str(error)
        refused = f"{name} has no value: it" in said
        assert refused is (name not in LEFT_OUT or (cls, name) in NEEDED), (
            f"{cls.__name__}: without a value, {name} is {'refused' if refused else 'left out'}. Give it another kind, "
            f"or {'take it out of' if refused else 'add it to'} LEFT_OUT in tests/unit/operators/test_no_value.py"
        )
        check_nothing_says_none(sandbox)
        assert not said or writes(sandbox) == [], name
        sandbox.reset()


ADA = "a@example.com"
SENT: list[tuple[str, type[Any], dict[str, Any], Any]] = [
    ("optional fields are left out", invites.WorkspaceCreateInviteOperator,
     {"target_email": ADA, "first_name": NONE, "message": f" {NONE} ", "level": NONE, "send_email": NONE},
     {"target_email": ADA}),
    ("entries of settings are left out", projects.WorkspaceCreateProjectOperator,
     {"name": "Northwind", "app_urls": NONE, "is_demo": NONE,
     "settings": {"timezone": NONE, "test_account_filters": [{"key": "a", "label": NONE}]}},
     {"name": "Northwind", "test_account_filters": [{"key": "a"}]}),
    ("cells and defaults are left out", invites.WorkspaceCreateInvitesOperator,
     {"invites": [{"email": ADA, "first_name": NONE}], "defaults": {"message": NONE, "level": 1}},
     [{"target_email": ADA, "level": 1}]),
    ("so are those of JSON text", invites.WorkspaceCreateInvitesOperator,
     {"invites": f'[{{"email": "{ADA}", "message": "{NONE}"}}]', "defaults": f'{{"first_name": "{NONE}"}}'},
     [{"target_email": ADA}]),
    ("an empty text is a value", dashboards.WorkspaceUpdateDashboardOperator,
     {"dashboard_id": SEED.dashboard_id, "description": "{{ params.nothing or '' }}"}, {"description": ""}),
    ("one of two ids is enough", members.WorkspaceDeleteMemberOperator,
     {"user_uuid": NONE, "user_email": "noah.newton@example.com"}, None),
]  # fmt: skip


@native
@pytest.mark.parametrize(("_", "cls", "arguments", "body"), SENT, ids=[row[0] for row in SENT])
def test_only_values_are_sent(
    sandbox: SandboxServer, _: str, cls: type[Any], arguments: dict[str, Any], body: Any, *, native: bool
) -> None:
    run(cls, native=native, **arguments)
    assert bodies(sandbox) == [body]


ROSTER = {"protected": [], "roster": [ADA]}


@native
@pytest.mark.parametrize(
    ("cls", "arguments", "name"),
    [
        (dashboards.WorkspaceCreateDashboardOperator, {"name": "Sales", "tags": ["a", NONE]}, "tags"),
        (members.WorkspaceListMembersOperator, {"where": {"user.email": NONE}}, "where"),
        (members.WorkspaceListMembersOperator, {"where": {"user.email": [ADA, NONE]}}, "where"),
        (organization.WorkspacePlanOrganizationOperator, {"file": {"projects": [{"name": "Sales", "timezone": NONE}]}},
         "file"),
        (organization.WorkspaceApplyOrganizationOperator, {"file": {"max_removals": NONE}, "part": "members"}, "file"),
        (members.WorkspaceSyncMembersOperator, {**ROSTER, "protected": ["ada@example.com", NONE]}, "protected"),
        (invites.WorkspaceCreateInvitesOperator, {"invites": [ADA, NONE]}, "row"),
    ],
)  # fmt: skip
def test_items_filters_and_files_without_a_value_are_refused(
    sandbox: SandboxServer, cls: type[Any], arguments: dict[str, Any], name: str, *, native: bool
) -> None:
    with pytest.raises(AirflowFailException, match=name):
        run(cls, native=native, **arguments)
    assert effects(sandbox) == []
    check_nothing_says_none(sandbox)


@pytest.mark.parametrize("undefined", [Undefined, StrictUndefined])
@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (members.WorkspaceSyncMembersOperator, {"leavers": ["mina.member@example.com"], "protected": UNDEFINED}),
        (members.WorkspaceListMembersOperator, {"fields": UNDEFINED}),
        (invites.WorkspaceCreateInvitesOperator, {"invites": UNDEFINED}),
        (organization.WorkspacePlanOrganizationOperator, {"file": UNDEFINED}),
    ],
)
def test_what_native_rendering_leaves_undefined_has_no_value(
    sandbox: SandboxServer, cls: type[Any], arguments: dict[str, Any], undefined: type[Undefined]
) -> None:
    """In Python it is an empty list: nobody would be protected."""
    with pytest.raises(AirflowFailException, match=r"\w+ has no value: it returned no value"):
        run(cls, native=True, undefined=undefined, **arguments)
    assert sandbox.requests() == []


def test_none_as_written_in_the_dag_file_is_kept_where_it_means_something(sandbox: SandboxServer) -> None:
    assert run(members.WorkspaceListMembersOperator, native=True, where={"is_2fa_enabled": None}, count_only=True) == 0
    run(organization.WorkspacePlanOrganizationOperator, native=True, file={"projects": [], "max_removals": None})
    assert writes(sandbox) == []


def test_files_are_data_and_their_templates_need_a_value(sandbox: SandboxServer, tmp_path: Path) -> None:
    file, team = tmp_path / "northwind.yaml", tmp_path / "team.csv"
    plan: dict[str, Any] = {"native": False, "file": str(file), "render_file": True}
    file.write_text(f"projects:\n  - name: Sales {NONE}\n")
    with pytest.raises(AirflowFailException, match=r"organization file.*returned no value; give it a default"):
        run(organization.WorkspacePlanOrganizationOperator, **plan)
    file.write_text("projects:\n  - {name: Sales, timezone: {{ params.nothing | tojson }}}\n")
    assert run(organization.WorkspacePlanOrganizationOperator, **plan)["pending"] == 1
    team.write_text(f"email,first_name\n{ADA},None of them\n")
    run(invites.WorkspaceCreateInvitesOperator, native=False, path=str(team))
    assert bodies(sandbox) == [[{"target_email": ADA, "first_name": "None of them"}]]


def test_hooks_refuse_ids_without_a_value(sandbox: SandboxServer) -> None:
    with pytest.raises(WorkspaceInputError, match="organization_id has no value"):
        list(WorkspaceHook().list_members(organization_id="None"))
    with pytest.raises(WorkspaceInputError, match="organization_id: expected an id, a number"):
        list(WorkspaceHook().list_members(organization_id=10**4400))  # type: ignore[arg-type]
    assert sandbox.requests() == []
