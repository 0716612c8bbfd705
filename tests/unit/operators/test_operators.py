"""Each operator against the sandbox: result, effect, idempotence and errors."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk import DAG

from airflow_provider_workspace.errors import WorkspaceConnectionError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators import batch_exports, dashboards, domains, invites, members, projects
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, writes
from tests.contract.parts import operation_of, operator_of
from tests.contract.reference import EXPECTED
from tests.interruptions import Interruptions
from tests.raw_server import RawServer, answer
from tests.task_instance import TaskInstance
from tests.variables import install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.parametrize("sandbox", ["strict", "live"], indirect=True)
no_waits = pytest.mark.usefixtures("no_waits")


def run(cls: type[Any], **arguments: Any) -> Any:
    return cls(task_id="task", **arguments).execute({})


def operation(cls: type[Any]) -> str:
    """Return the name of an operator's operation in the sandbox."""
    words = cls.__name__.removeprefix("Workspace").removesuffix("Operator")
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", words).lower()


EXPORT = SEED.batch_export_ids[0]
ON_DASHBOARD = {"dashboard_id": 1, "user_uuid": SEED.analyst_uuid}
DOMAIN = {"domain_id": SEED.domain_id}
MEMBER = {"user_uuid": SEED.member_uuid}
NEW_INVITE = {"target_email": "ada@Example.com", "level": "1", "send_email": False}
# Operator, arguments, part of the result.
CHANGES: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (projects.WorkspaceCreateProjectOperator, {"name": "Northwind"}, {"name": "Northwind"}),
    (projects.WorkspaceCreateProjectOperator, {"name": " Blanks around "}, {}),
    (projects.WorkspaceCreateProjectOperator, {"name": "Set", "timezone": "UTC", "settings": {"week_start_day": 1}},
     {"name": "Set", "timezone": "UTC", "week_start_day": 1}),
    (domains.WorkspaceCreateDomainOperator, {"domain": " New.Example.com. "}, {"domain": "new.example.com"}),
    (domains.WorkspaceUpdateDomainOperator, {**DOMAIN, "sso_enforcement": "saml"}, {"sso_enforcement": "saml"}),
    (domains.WorkspaceDeleteDomainOperator, DOMAIN, {"deleted": True}),
    (invites.WorkspaceCreateInviteOperator, NEW_INVITE, {"target_email": "ada@example.com", "level": 1}),
    (invites.WorkspaceDeleteInviteOperator, {"invite_id": SEED.invite_id}, {"deleted": True}),
    (members.WorkspaceUpdateMemberOperator, {**MEMBER, "level": "8"}, {"level": 8}),
    (members.WorkspaceDeleteMemberOperator, MEMBER, {"deleted": True}),
    (dashboards.WorkspaceCreateDashboardOperator, {"name": "Sales"}, {"name": "Sales"}),
    (dashboards.WorkspaceUpdateDashboardOperator, {"dashboard_id": 1, "pinned": False}, {"pinned": False}),
    (dashboards.WorkspaceDeleteDashboardOperator, {"dashboard_id": 1}, {"deleted": True}),
    (dashboards.WorkspaceAddDashboardCollaboratorOperator, {"dashboard_id": 1, **MEMBER, "level": 37}, {"level": 37}),
    (dashboards.WorkspaceRemoveDashboardCollaboratorOperator, ON_DASHBOARD, {"deleted": True}),
    (batch_exports.WorkspacePauseBatchExportOperator, {"batch_export_id": EXPORT}, {"paused": True}),
]  # fmt: skip
NO_CHANGES: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (projects.WorkspaceCreateProjectOperator, {"name": "Default project"}, {"id": 1}),
    (projects.WorkspaceGetProjectOperator, {"project_id": "1"}, {"id": 1}),
    (domains.WorkspaceCreateDomainOperator, {"domain": "EXAMPLE.com"}, {"id": SEED.domain_id}),
    (domains.WorkspaceGetDomainOperator, DOMAIN, {"domain": "example.com"}),
    (domains.WorkspaceVerifyDomainOperator, DOMAIN, {"is_verified": True}),
    (dashboards.WorkspaceGetDashboardOperator, {"dashboard_id": "1"}, {"id": 1}),
    (dashboards.WorkspaceGetDashboardAccessControlsOperator, {"dashboard_id": 1}, {}),
    (dashboards.WorkspaceGetDashboardSharingOperator, {"dashboard_id": 1}, {}),
    (batch_exports.WorkspaceUnpauseBatchExportOperator, {"batch_export_id": EXPORT}, {"paused": False}),
    # Missing records
    (domains.WorkspaceDeleteDomainOperator, {"domain_id": SEED.absent_uuid}, {"deleted": False}),
    (invites.WorkspaceDeleteInviteOperator, {"invite_id": SEED.absent_uuid}, {"deleted": False}),
    (members.WorkspaceDeleteMemberOperator, {"user_uuid": SEED.domain_id}, {"deleted": False}),
    (dashboards.WorkspaceDeleteDashboardOperator, {"dashboard_id": 99}, {"deleted": False}),
    (dashboards.WorkspaceRemoveDashboardCollaboratorOperator, {"dashboard_id": 1, "user_uuid": SEED.owner_uuid},
     {"deleted": False}),
]  # fmt: skip
# The interface cannot show whether they were applied.
NOT_LOOKED_UP = [operator_of(item) for item in EXPECTED if operation_of(item).endpoint.recover == "none"]


@no_waits
@pytest.mark.parametrize(("cls", "arguments", "holds"), CHANGES)
def test_an_operator_makes_its_change_once(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any], holds: dict[str, Any]
) -> None:
    """Creates push the XComs ``id`` and ``created``."""
    connect(key=SEED.session_key)
    first, again = TaskInstance(), TaskInstance()
    result = cls(task_id="task", **arguments).execute({"ti": first})
    assert result.items() >= holds.items()
    assert effects(sandbox) == [operation(cls)], f"request.audit(…) of its handler in sandbox/routes/ of {cls.__name__}"
    if cls not in NOT_LOOKED_UP and "Update" not in cls.__name__:
        cls(task_id="task", **arguments).execute({"ti": again})
        assert effects(sandbox) == [operation(cls)]
        if operation(cls).startswith(("create", "add")):
            assert (first.xcoms["created"], again.xcoms["created"]) == (True, False)
            assert first.xcoms["id"] == again.xcoms["id"] == result["id"]
        else:
            assert "created" not in first.xcoms


@pytest.mark.parametrize(("cls", "arguments", "holds"), NO_CHANGES)
def test_an_operator_with_nothing_to_change_changes_nothing(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any], holds: dict[str, Any]
) -> None:
    connect(key=SEED.session_key)
    assert run(cls, **arguments).items() >= holds.items()
    assert set(effects(sandbox)) <= {"verify_domain"}
    if holds == {"deleted": False}:
        with pytest.raises(AirflowFailException, match="WorkspaceNotFoundError") as failed:
            run(cls, **arguments, if_missing="fail")
        assert failed.value.__suppress_context__, "two tracebacks in the log"
        assert effects(sandbox) == []


@pytest.mark.parametrize("context", [None, {"ti": MagicMock()}], ids=["no context", "mock"])
def test_the_contexts_of_other_peoples_tests_are_accepted(sandbox: SandboxServer, context: Any) -> None:
    projects.WorkspaceCreateProjectOperator(task_id="task", name="Northwind").execute(context)
    assert effects(sandbox) == ["create_project"]


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (projects.WorkspaceCreateProjectOperator, {"name": "Default project"}),
        (domains.WorkspaceCreateDomainOperator, {"domain": "example.com"}),
        (dashboards.WorkspaceAddDashboardCollaboratorOperator, ON_DASHBOARD),
        (dashboards.WorkspaceAddDashboardCollaboratorOperator,
         {"dashboard_id": "01", "user_uuid": SEED.analyst_uuid.replace("-", "").upper()}),
    ],
)  # fmt: skip
def test_if_exists_fail_refuses_an_existing_record(
    sandbox: SandboxServer, cls: type[Any], arguments: dict[str, Any]
) -> None:
    with pytest.raises(AirflowFailException, match=r"exists already\. Set if_exists='return' to reuse it"):
        run(cls, **arguments, if_exists="fail")
    plan, found = run(cls, **arguments, dry_run=True), run(cls, **arguments)
    has_id = {"id": found["id"]} if "id" in found else {}
    assert plan == {"dry_run": True, "action": "skip", "why": "it exists already", "found": found, **has_id}
    assert effects(sandbox) == []


def test_two_projects_of_one_name_are_named_and_none_is_chosen(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if somebody creates the second one while the answer to the create is lost."""
    hook, create = WorkspaceHook(), partial(run, projects.WorkspaceCreateProjectOperator, name="Sales")
    sandbox.inject("reset_after", "create_project", after=1)
    Interruptions(monkeypatch).before("POST", partial(hook.create_project, name="Sales"))
    for how in ("return", "return", "fail"):
        with pytest.raises(
            AirflowFailException, match=r"2 projects are named 'Sales'\. Rename all but one .* Ids: 3, 4"
        ):
            create(if_exists=how)
    assert effects(sandbox) == ["create_project"] * 2


NOT_BY_KEY = "This action does not support Personal API Key access"


@pytest.mark.parametrize(
    ("key", "cls", "arguments", "says"),
    [
        ("wrong", projects.WorkspaceGetProjectOperator, {"project_id": 1}, "WorkspaceAuthenticationError"),
        ("sandbox-no-scopes", projects.WorkspaceGetProjectOperator, {"project_id": 1}, "the scope project:read"),
        (None, projects.WorkspaceGetProjectOperator, {"project_id": 99}, "WorkspaceNotFoundError"),
        (None, members.WorkspaceUpdateMemberOperator, {**MEMBER, "level": "boss"}, "field 'level'"),
        (SEED.reader_key, invites.WorkspaceCreateInvitesOperator, {"invites": ["ada@example.com"]},
         "organization_member:write"),
        (NOT_BY_KEY, domains.WorkspaceVerifyDomainOperator, DOMAIN,
         f"A personal API key .*ask_verification=False.*{NOT_BY_KEY}"),
        ("No.", domains.WorkspaceVerifyDomainOperator, DOMAIN,
         r"WorkspacePermissionError: VerifyDomain returned 403: .* Response: No"),
    ],
)  # fmt: skip
def test_permanent_errors_fail_without_retry(
    sandbox: SandboxServer, connect: Connect, key: str | None, cls: type[Any], arguments: dict[str, Any], says: str
) -> None:
    if cls is domains.WorkspaceVerifyDomainOperator:
        sandbox.inject("status_before", "verify_domain", status=403, detail=key)
        key = None
    connect(key or sandbox.seed.admin_key)
    with pytest.raises(AirflowFailException, match=says):
        run(cls, **arguments)
    assert effects(sandbox) == []


def test_transient_errors_are_left_to_task_retries(connect: Connect) -> None:
    connect(host="http://127.0.0.1:9", max_attempts=1)
    with pytest.raises(WorkspaceConnectionError):
        run(projects.WorkspaceGetProjectOperator, project_id=1)


def test_secrets_are_returned_only_with_return_secrets() -> None:
    secrets = {"api_token", "live_events_token", "slack_incoming_webhook"}
    assert not secrets & set(run(projects.WorkspaceGetProjectOperator, project_id=1))
    assert run(projects.WorkspaceGetProjectOperator, project_id=1, return_secrets=True)["api_token"]
    assert "access_token" not in run(dashboards.WorkspaceGetDashboardSharingOperator, dashboard_id=1)


def test_fields_named_in_set_null_are_sent_as_null(sandbox: SandboxServer) -> None:
    run(dashboards.WorkspaceUpdateDashboardOperator, dashboard_id=1, set_null=["description"])
    assert sandbox.requests()[-1]["body"] == {"description": None}


@pytest.mark.parametrize(
    ("cls", "arguments", "says"),
    [
        (domains.WorkspaceUpdateDomainOperator, DOMAIN, "There is nothing to change: no field has a value"),
        (dashboards.WorkspaceUpdateDashboardOperator, {"dashboard_id": 1}, "There is nothing to change"),
        *(
            (domains.WorkspaceCreateDomainOperator, {"domain": domain}, "expected a domain such as example.com")
            for domain in ("https://new.example.com", "new.example.com/", "ada@example.com", "*.example.com", "a b.com")
        ),
        (domains.WorkspaceUpdateDomainOperator, {**DOMAIN, "domain": "ada@example.com"}, "expected a domain such as"),
    ],
)
def test_what_no_service_could_apply_is_not_sent(
    sandbox: SandboxServer, cls: type[Any], arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(AirflowFailException, match=says):
        run(cls, **arguments)
    assert sandbox.requests() == []


def test_lists_are_counted_and_have_a_maximum(connect: Connect) -> None:
    connect(page_size=2)
    listing = members.WorkspaceListMembersOperator
    assert run(listing, count_only=True) == 5
    assert run(listing, where={"level": 1}, count_only=True, max_rows=1) == 3
    assert len(run(dashboards.WorkspaceListDashboardCollaboratorsOperator, dashboard_id=1)) == 1
    assert [row["domain"] for row in run(domains.WorkspaceListDomainsOperator)] == ["example.com"]
    with pytest.raises(AirflowFailException, match="more than max_rows=4 rows"):
        run(listing, max_rows=4)


def test_the_extra_link_points_to_the_record_or_the_status_page(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(cls: type[Any], arguments: dict[str, Any], **extra: Any) -> str:
        connect(**extra)
        operator = cls(task_id="task", dag=DAG("nightly", schedule=None), **arguments)
        operator.execute({})
        (item,) = operator.operator_extra_links
        found: str = item.get_link(operator, ti_key=None)
        return found

    export: Any = batch_exports.WorkspacePauseBatchExportOperator, {"batch_export_id": EXPORT}
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/prod/")
    assert link(*export) == f"https://airflow.example.com/prod/workspace-ui/#{EXPORT}"
    assert link(*export, web_url="https://app.example.com").startswith("https://app.example.com/organization/")
    sync: Any = (
        members.WorkspaceSyncMembersOperator,
        {"roster": ["ada@example.com"], "protected": [], "max_removals": None, "dry_run": True},
    )
    assert link(*sync) == "https://airflow.example.com/prod/workspace-ui/#nightly%20/%20task"
    assert link(*sync, web_url="https://app.example.com").endswith("/members")


# Dry runs

WRITING = [row for row in (*CHANGES, *NO_CHANGES) if "is_dry_run" in row[0].template_fields]


@no_waits
@pytest.mark.parametrize(("cls", "arguments", "holds"), WRITING)
def test_dry_run_shows_the_request_that_is_sent(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any], holds: dict[str, Any]
) -> None:
    connect(key=SEED.session_key)
    plan = run(cls, **arguments, dry_run=True)
    assert plan["dry_run"] is True
    assert writes(sandbox) == []
    result = run(cls, **arguments)
    if plan["action"] == "skip":
        assert effects(sandbox) == []
        assert plan["found"] == result
    else:
        sent = writes(sandbox)[0]
        assert f"{sent['method']} {sent['path']}" == plan["request"]
        assert plan["action"] in ("create", "change", "remove")
    assert result.items() >= holds.items()


def test_dry_run_shows_no_secrets() -> None:
    arguments = {"domain_id": SEED.domain_id, "saml_x509_cert": "a-certificate", "dry_run": True}
    assert run(domains.WorkspaceUpdateDomainOperator, **arguments)["fields"] == {}
    shown = run(domains.WorkspaceUpdateDomainOperator, **arguments, return_secrets=True)
    assert shown["fields"] == {"saml_x509_cert": "a-certificate"}


def test_dry_run_of_bulk_invites_returns_the_report(sandbox: SandboxServer, connect: Connect) -> None:
    connect(key=SEED.reader_key)
    rows = ["ada@example.com", "liv.invited@example.com", "grace.analyst@example.com", "Ada@example.com", "nobody"]
    report = run(invites.WorkspaceCreateInvitesOperator, invites=rows, on_invalid="skip", dry_run=True)
    assert [entry["status"] for entry in report["addresses"]] == [
        "planned",
        "already_invited",
        "member",
        "duplicate",
        "invalid",
    ]
    assert writes(sandbox) == []


def test_dry_run_does_not_register_a_dashboard(sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = install(monkeypatch)
    plan = run(dashboards.WorkspaceCreateDashboardOperator, name="Sales", variable_key="sales_dashboard", dry_run=True)
    assert plan["action"] == "create"
    assert variables.values == {}
    assert effects(sandbox) == []


# Announcements


@pytest.mark.parametrize("pushes", [True, False])
def test_a_task_pushes_what_the_service_announces(connect: Connect, *, pushes: bool) -> None:
    announced = answer(200, {"id": 7, "name": "Sales"}, Deprecation="true", Sunset="Sun, 31 Jan 2027 10:00:00 GMT")
    ti = TaskInstance()
    with RawServer(announced) as server:
        connect(host=server.url)
        task = dashboards.WorkspaceGetDashboardOperator(task_id="task", dashboard_id=7, do_xcom_push=pushes)
        task.execute({"ti": ti})
    expected = [{"operation": "GetDashboard", "since": None, "sunset": "2027-01-31", "successor": None}]
    assert ti.xcoms.get("deprecations") == (expected if pushes else None)
