"""A template that finds no value: the words that it renders to are never sent."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.batch_exports import WorkspaceUnpauseBatchExportOperator
from airflow_provider_workspace.operators.dashboards import (
    WorkspaceCreateDashboardOperator,
    WorkspaceUpdateDashboardOperator,
)
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator, WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import (
    WorkspaceDeleteMemberOperator,
    WorkspaceListMembersOperator,
    WorkspaceSyncMembersOperator,
)
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.operators.window_closing import WorkspaceGuardMaintenanceWindowOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.triggers.workspace import WorkspaceDomainVerifiedTrigger
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.audit import effects, writes
from tests.events import first_event
from tests.meta.test_operators import TASKS
from tests.robustness.test_arguments import own_arguments
from tests.variables import install, install_runs

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.usefixtures("in_memory"),
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
]
NONE = "{{ params.nothing }}"
# Arguments that are as if not given; all others are refused.
LEFT_OUT = {
    *("access_control", "anonymize_ips", "app_urls", "is_demo", "product_description", "timezone"),
    *("combine_pending_invites", "first_name", "message", "private_project_access", "send_email"),
    *("delete_insights", "deleted", "description", "pinned", "restriction_level", "tags"),
    *("jit_provisioning_enabled", "saml_acs_url", "saml_entity_id", "saml_x509_cert", "sso_enforcement"),
    *("body", "defaults", "resume_fields", "settings"),
    *("level", "organization", "path", "report_path", "use_dashboard", "use_template", "user_email", "user_uuid"),
}
EVERY = [
    (cls, "dry_run" if name == "is_dry_run" else name)
    for cls in TASKS
    for name in cls.template_fields
    if cls is not WorkspaceGuardMaintenanceWindowOperator  # each lease names its connection
]


@pytest.fixture
def in_memory(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(max_attempts=1)
    install(monkeypatch)
    install_runs(monkeypatch)


def run(cls: type[Any], *, native: bool, **arguments: Any) -> Any:
    """Render the templates of a task as Airflow does, and run it."""
    ti = SimpleNamespace(
        dag_id="dag",
        run_id="run",
        task_id="task",
        map_index=-1,
        try_number=1,
        xcom_pull=lambda **_: None,
        xcom_push=lambda **_: None,
        get_task_states=lambda **_: {},
    )
    with DAG("dag", schedule=None, render_template_as_native_obj=native) as dag:
        task = cls(task_id="task", **arguments)
    context: Any = {"params": {"nothing": None}, "ti": ti}
    task.render_template_fields(context, dag.get_template_env())
    return task.execute(context)


def check_nothing_says_none(sandbox: SandboxServer) -> None:
    for request in sandbox.requests():
        sent = json.dumps([request["path"], request["query"], request["body"]])
        assert "None" not in sent, f"{request['operation']} sent {sent}"


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
@pytest.mark.parametrize(("cls", "name"), EVERY, ids=lambda value: getattr(value, "__name__", value))
def test_the_word_none_is_never_sent(sandbox: SandboxServer, cls: type[Any], name: str, *, native: bool) -> None:
    try:
        run(cls, native=native, **own_arguments(cls) | {name: NONE})
        said = ""
    except TaskDeferred:
        said = ""
    except AirflowFailException as error:
        said = str(error)
    assert (f"Check the task that {name} comes from: it" in said) is (name not in LEFT_OUT)
    check_nothing_says_none(sandbox)
    if said:
        assert writes(sandbox) == []


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
def test_optional_fields_without_a_value_are_left_out(sandbox: SandboxServer, *, native: bool) -> None:
    invite = {"first_name": NONE, "message": NONE, "level": NONE, "send_email": NONE, "private_project_access": NONE}
    run(WorkspaceCreateInviteOperator, native=native, target_email="new@example.com", **invite)
    project = {"timezone": NONE, "product_description": f" {NONE} ", "is_demo": NONE, "app_urls": NONE}
    run(WorkspaceCreateProjectOperator, native=native, name="Northwind", **project)
    run(WorkspaceCreateDashboardOperator, native=native, name="Sales", description=NONE, tags=NONE, pinned=NONE)
    assert [request["body"] for request in writes(sandbox)] == [
        {"target_email": "new@example.com"},
        {"name": "Northwind"},
        {"name": "Sales"},
    ]


def test_an_empty_text_is_a_value(sandbox: SandboxServer) -> None:
    arguments: dict[str, Any] = {"dashboard_id": SEED.dashboard_id, "description": "{{ params.nothing or '' }}"}
    run(WorkspaceUpdateDashboardOperator, native=False, **arguments)
    assert [request["body"] for request in writes(sandbox)] == [{"description": ""}]


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
@pytest.mark.parametrize(
    ("cls", "arguments", "bodies"),
    [
        (
            WorkspaceCreateProjectOperator,
            {
                "name": "Northwind",
                "settings": {"timezone": NONE, "test_account_filters": [{"key": "a", "label": NONE}]},
            },
            [{"name": "Northwind", "test_account_filters": [{"key": "a"}]}],
        ),
        (
            WorkspaceUnpauseBatchExportOperator,
            {"batch_export_id": SEED.batch_export_ids[0], "resume_fields": {"backfill": NONE}},
            [{}],
        ),
        (
            WorkspaceCreateInviteOperator,
            {"target_email": "a@example.com", "private_project_access": [{"id": 1, "level": NONE}]},
            [{"target_email": "a@example.com", "private_project_access": [{"id": 1}]}],
        ),
        (
            WorkspaceCreateInvitesOperator,
            {"invites": [{"email": "a@example.com", "first_name": NONE}], "defaults": {"message": NONE, "level": 1}},
            [[{"target_email": "a@example.com", "level": 1}]],
        ),
    ],
    ids=["settings", "resume_fields", "access", "rows"],
)
def test_entries_of_mappings_without_a_value_are_left_out(
    sandbox: SandboxServer, cls: type[Any], arguments: dict[str, Any], bodies: list[Any], *, native: bool
) -> None:
    run(cls, native=native, **arguments)
    assert [request["body"] for request in writes(sandbox)] == bodies


def test_json_text_follows_the_same_rule(sandbox: SandboxServer) -> None:
    rows = f'[{{"email": "a@example.com", "message": "{NONE}"}}]'
    run(WorkspaceCreateInvitesOperator, native=False, invites=rows, defaults=f'{{"first_name": "{NONE}"}}')
    assert [request["body"] for request in writes(sandbox)] == [[{"target_email": "a@example.com"}]]


ROSTER = {"protected": [], "roster": ["a@example.com"]}


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
@pytest.mark.parametrize(
    ("cls", "arguments", "name"),
    [
        (WorkspaceCreateDashboardOperator, {"name": "Sales", "tags": ["a", NONE]}, "tags"),
        (WorkspaceListMembersOperator, {"where": {"user.email": NONE}}, "where"),
        (WorkspaceListMembersOperator, {"where": {"user.email": ["a@example.com", NONE]}}, "where"),
        (WorkspacePlanOrganizationOperator, {"file": {"projects": [{"name": "Sales", "timezone": NONE}]}}, "file"),
        (WorkspaceApplyOrganizationOperator, {"file": {"max_removals": NONE}, "part": "members"}, "file"),
        (WorkspaceSyncMembersOperator, {**ROSTER, "protected": ["ada@example.com", NONE]}, "protected"),
        (WorkspaceCreateInvitesOperator, {"invites": ["a@example.com", NONE]}, "row"),
    ],
)
def test_items_filters_and_files_without_a_value_are_refused(
    sandbox: SandboxServer, cls: type[Any], arguments: dict[str, Any], name: str, *, native: bool
) -> None:
    with pytest.raises(AirflowFailException, match=name):
        run(cls, native=native, **arguments)
    assert effects(sandbox) == []
    check_nothing_says_none(sandbox)


def test_none_as_written_in_the_dag_file_is_kept_where_it_means_something(sandbox: SandboxServer) -> None:
    assert run(WorkspaceListMembersOperator, native=True, where={"is_2fa_enabled": None}, count_only=True) == 0
    run(WorkspacePlanOrganizationOperator, native=True, file={"projects": [], "max_removals": None})
    assert writes(sandbox) == []


def test_a_template_in_an_organization_file_needs_a_value(tmp_path: Any) -> None:
    (tmp_path / "northwind.yaml").write_text(f"projects:\n  - name: Sales {NONE}\n")
    with pytest.raises(AirflowFailException, match=r"organization file.*returned no value; give it a default"):
        run(WorkspacePlanOrganizationOperator, native=False, file=str(tmp_path / "northwind.yaml"), render_file=True)
    (tmp_path / "northwind.yaml").write_text("projects:\n  - {name: Sales, timezone: {{ params.nothing | tojson }}}\n")
    plan = run(WorkspacePlanOrganizationOperator, native=False, file=str(tmp_path / "northwind.yaml"), render_file=True)
    assert plan["pending"] == 1


def test_cells_of_files_are_data(sandbox: SandboxServer, tmp_path: Any) -> None:
    (tmp_path / "team.csv").write_text("email,first_name\na@example.com,None\n")
    run(WorkspaceCreateInvitesOperator, native=False, path=str(tmp_path / "team.csv"))
    assert [request["body"] for request in writes(sandbox)] == [
        [{"target_email": "a@example.com", "first_name": "None"}]
    ]


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
def test_one_of_uuid_and_address_is_enough(sandbox: SandboxServer, *, native: bool) -> None:
    """Rows of a list name people by one or the other."""
    run(WorkspaceDeleteMemberOperator, native=native, user_uuid=NONE, user_email="noah.newton@example.com")
    assert effects(sandbox) == ["delete_member"]


def test_an_id_for_the_hook_that_rendered_to_none_is_refused(sandbox: SandboxServer) -> None:
    """A templated argument of a Python task comes to the hook as it is."""
    with pytest.raises(WorkspaceInputError, match="Check the task that organization_id comes from"):
        list(WorkspaceHook().list_members(organization_id="None"))
    assert sandbox.requests() == []


@pytest.mark.parametrize("name", ["domain_id", "organization_id"])
@pytest.mark.parametrize("value", [None, "None"])
def test_a_task_that_starts_in_the_triggerer_refuses_ids_without_a_value(
    sandbox: SandboxServer, name: str, value: Any
) -> None:
    ids: dict[str, Any] = {"domain_id": SEED.domain_id, "organization_id": SEED.organization_id, name: NONE}
    trigger = WorkspaceDomainVerifiedTrigger(**ids, poll_interval=0.1)
    setattr(trigger, name, value)  # as Airflow does
    with pytest.raises(WorkspaceInputError, match=f"Check the task that {name} comes from"):
        asyncio.run(asyncio.wait_for(first_event(trigger), 5))
    assert sandbox.requests() == []
