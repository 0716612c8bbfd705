"""Each operator against the sandbox: result, effect, idempotence and errors."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from airflow_provider_workspace.errors import WorkspaceConnectionError
from airflow_provider_workspace.operators import batch_exports, dashboards, domains, invites, members, projects
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.ui import plugin
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects
from tests.contract.parts import operation_of, operator_of
from tests.contract.reference import EXPECTED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.parametrize("sandbox", ["strict", "live"], indirect=True),
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
]


def run(cls: type[Any], **arguments: Any) -> Any:
    return cls(task_id="task", **arguments).execute({})


EXPORT = SEED.batch_export_ids[0]
# Operator, arguments, part of the result, effects.
ONCE: list[tuple[type[Any], dict[str, Any], dict[str, Any], list[str]]] = [
    (projects.WorkspaceCreateProjectOperator, {"name": "Northwind"}, {"name": "Northwind"}, ["create_project"]),
    (projects.WorkspaceCreateProjectOperator, {"name": "Default project"}, {"id": 1}, []),
    (projects.WorkspaceCreateProjectOperator, {"name": " Blanks around "}, {}, ["create_project"]),
    (
        projects.WorkspaceCreateProjectOperator,
        {"name": "Set", "timezone": "UTC", "settings": {"week_start_day": 1}},
        {"name": "Set", "timezone": "UTC", "week_start_day": 1},
        ["create_project"],
    ),
    (projects.WorkspaceGetProjectOperator, {"project_id": "1"}, {"id": 1}, []),
    (
        domains.WorkspaceCreateDomainOperator,
        {"domain": " New.Example.com. "},
        {"domain": "new.example.com", "is_verified": False},
        ["create_domain"],
    ),
    (domains.WorkspaceCreateDomainOperator, {"domain": "EXAMPLE.com"}, {"id": SEED.domain_id}, []),
    (domains.WorkspaceGetDomainOperator, {"domain_id": SEED.domain_id}, {"domain": "example.com"}, []),
    (
        domains.WorkspaceUpdateDomainOperator,
        {"domain_id": SEED.domain_id, "jit_provisioning_enabled": True},
        {"jit_provisioning_enabled": True},
        ["update_domain"],
    ),
    (domains.WorkspaceVerifyDomainOperator, {"domain_id": SEED.domain_id}, {"is_verified": True}, []),
    (domains.WorkspaceDeleteDomainOperator, {"domain_id": SEED.domain_id}, {"deleted": True}, ["delete_domain"]),
    (
        invites.WorkspaceCreateInviteOperator,
        {"target_email": "ada@Example.com", "level": "1", "send_email": False},
        {"target_email": "ada@example.com", "level": 1, "send_email": False},
        ["create_invite"],
    ),
    (invites.WorkspaceDeleteInviteOperator, {"invite_id": SEED.invite_id}, {"deleted": True}, ["delete_invite"]),
    (
        members.WorkspaceUpdateMemberOperator,
        {"user_uuid": SEED.member_uuid, "level": "8"},
        {"level": 8},
        ["update_member"],
    ),
    (members.WorkspaceDeleteMemberOperator, {"user_uuid": SEED.member_uuid}, {"deleted": True}, ["delete_member"]),
    (dashboards.WorkspaceCreateDashboardOperator, {"name": "Sales"}, {"name": "Sales"}, ["create_dashboard"]),
    (dashboards.WorkspaceGetDashboardOperator, {"dashboard_id": "1"}, {"id": 1}, []),
    (
        dashboards.WorkspaceUpdateDashboardOperator,
        {"dashboard_id": 1, "name": "Renamed", "pinned": False},
        {"name": "Renamed", "pinned": False},
        ["update_dashboard"],
    ),
    (dashboards.WorkspaceDeleteDashboardOperator, {"dashboard_id": 1}, {"deleted": True}, ["delete_dashboard"]),
    (dashboards.WorkspaceGetDashboardAccessControlsOperator, {"dashboard_id": 1}, {}, []),
    (dashboards.WorkspaceGetDashboardSharingOperator, {"dashboard_id": 1}, {}, []),
    (
        dashboards.WorkspaceAddDashboardCollaboratorOperator,
        {"dashboard_id": 1, "user_uuid": SEED.member_uuid, "level": 37},
        {"dashboard_id": 1},
        ["add_dashboard_collaborator"],
    ),
    (
        dashboards.WorkspaceRemoveDashboardCollaboratorOperator,
        {"dashboard_id": 1, "user_uuid": SEED.analyst_uuid},
        {"deleted": True},
        ["remove_dashboard_collaborator"],
    ),
    (
        batch_exports.WorkspacePauseBatchExportOperator,
        {"batch_export_id": EXPORT},
        {"paused": True},
        ["pause_batch_export"],
    ),
]


# The interface cannot show whether they were applied.
NOT_LOOKED_UP = [operator_of(item) for item in EXPECTED if operation_of(item).endpoint.recover == "none"]


@pytest.mark.parametrize("context", [None, {"ti": MagicMock()}], ids=["no context", "mock"])
def test_the_contexts_of_other_peoples_tests_are_accepted(
    sandbox: SandboxServer, connect: Connect, context: Any
) -> None:
    connect()
    created = projects.WorkspaceCreateProjectOperator(task_id="task", name="Northwind").execute(context)
    found = projects.WorkspaceCreateProjectOperator(task_id="task", name="Northwind").execute(context)
    assert found["id"] == created["id"]
    assert effects(sandbox) == ["create_project"]


@pytest.mark.parametrize(("cls", "arguments", "holds", "changes"), ONCE)
def test_operator_makes_its_change(
    sandbox: SandboxServer,
    connect: Connect,
    cls: type[Any],
    arguments: dict[str, Any],
    holds: dict[str, Any],
    changes: list[str],
) -> None:
    connect(key=SEED.session_key)
    result = run(cls, **arguments)
    assert result.items() >= holds.items()
    changed = [name for name in effects(sandbox) if name != "verify_domain"]
    assert changed == changes, (
        f"{cls.__name__} should change {changes}, and the sandbox's audit has {changed}: correct its row in ONCE, or "
        "request.audit(…) of its handler in sandbox/routes/"
    )


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (cls, arguments)
        for cls, arguments, _, changes in ONCE
        if changes and "Update" not in cls.__name__ and cls not in NOT_LOOKED_UP
    ],
)
def test_operators_are_idempotent(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any]
) -> None:
    connect()
    run(cls, **arguments)
    before = effects(sandbox)
    run(cls, **arguments)
    assert effects(sandbox) == before


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (projects.WorkspaceCreateProjectOperator, {"name": "Default project"}),
        (domains.WorkspaceCreateDomainOperator, {"domain": "example.com"}),
        (
            dashboards.WorkspaceAddDashboardCollaboratorOperator,
            {"dashboard_id": 1, "user_uuid": SEED.analyst_uuid},
        ),
        (
            dashboards.WorkspaceAddDashboardCollaboratorOperator,
            {"dashboard_id": 1, "user_uuid": SEED.analyst_uuid.upper()},
        ),
    ],
)
def test_if_exists_fail_refuses_an_existing_record(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any]
) -> None:
    connect()
    with pytest.raises(AirflowFailException, match=r"Set if_exists='return' to reuse .* already"):
        run(cls, **arguments, if_exists="fail")
    assert effects(sandbox) == []


@pytest.mark.parametrize(
    ("operation", "cls", "arguments"),
    [
        ("update_dashboard", dashboards.WorkspaceDeleteDashboardOperator, {"dashboard_id": 1}),
        ("delete_domain", domains.WorkspaceDeleteDomainOperator, {"domain_id": SEED.domain_id}),
    ],
)
def test_a_delete_with_a_lost_response_succeeds(
    sandbox: SandboxServer, connect: Connect, operation: str, cls: type[Any], arguments: dict[str, Any]
) -> None:
    connect()
    sandbox.inject("status_after", operation)
    assert run(cls, **arguments, if_missing="fail")["deleted"]


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (domains.WorkspaceDeleteDomainOperator, {"domain_id": SEED.absent_uuid}),
        (invites.WorkspaceDeleteInviteOperator, {"invite_id": SEED.absent_uuid}),
        (members.WorkspaceDeleteMemberOperator, {"user_uuid": SEED.domain_id}),
        (dashboards.WorkspaceDeleteDashboardOperator, {"dashboard_id": 99}),
        (
            dashboards.WorkspaceRemoveDashboardCollaboratorOperator,
            {"dashboard_id": 1, "user_uuid": SEED.owner_uuid},
        ),
    ],
)
def test_deleting_a_missing_record_fails_only_with_if_missing_fail(
    sandbox: SandboxServer, connect: Connect, cls: type[Any], arguments: dict[str, Any]
) -> None:
    connect()
    assert run(cls, **arguments)["deleted"] is False
    with pytest.raises(AirflowFailException, match="WorkspaceNotFoundError") as failed:
        run(cls, **arguments, if_missing="fail")
    assert "direct cause" not in "".join(traceback.format_exception(failed.value)), "two tracebacks in the log"
    assert effects(sandbox) == []


@pytest.mark.parametrize(
    ("key", "cls", "arguments", "says"),
    [
        ("wrong", projects.WorkspaceGetProjectOperator, {"project_id": 1}, "WorkspaceAuthenticationError"),
        ("sandbox-no-scopes", projects.WorkspaceGetProjectOperator, {"project_id": 1}, "the scope project:read"),
        (None, projects.WorkspaceGetProjectOperator, {"project_id": 99}, "WorkspaceNotFoundError"),
        (None, projects.WorkspaceGetProjectOperator, {"project_id": "None"}, "its template found no value"),
        (None, projects.WorkspaceGetProjectOperator, {"project_id": "x"}, "expected a whole number"),
        (
            None,
            projects.WorkspaceCreateProjectOperator,
            {"name": "X", "settings": {"timezoen": "UTC"}},
            "did you mean 'timezone'",
        ),
        (None, invites.WorkspaceCreateInviteOperator, {"target_email": "ada@@example.com"}, "exactly one @"),
        (None, members.WorkspaceUpdateMemberOperator, {"user_uuid": "a", "level": "boss"}, "field 'level'"),
        (None, domains.WorkspaceGetDomainOperator, {"domain_id": "not-a-uuid"}, "expected a UUID"),
    ],
)
def test_permanent_errors_fail_without_retry(
    sandbox: SandboxServer, connect: Connect, key: str | None, cls: type[Any], arguments: dict[str, Any], says: str
) -> None:
    connect(key or sandbox.seed.admin_key)
    with pytest.raises(AirflowFailException, match=says):
        run(cls, **arguments)
    assert effects(sandbox) == []


def test_transient_errors_are_left_to_task_retries(connect: Connect) -> None:
    connect(host="http://127.0.0.1:9", max_attempts=1)
    with pytest.raises(WorkspaceConnectionError):
        run(projects.WorkspaceGetProjectOperator, project_id=1)


def test_secrets_are_returned_only_with_return_secrets(connect: Connect) -> None:
    connect()
    secrets = {"api_token", "live_events_token", "slack_incoming_webhook"}
    assert not secrets & set(run(projects.WorkspaceGetProjectOperator, project_id=1))
    assert run(projects.WorkspaceGetProjectOperator, project_id=1, return_secrets=True)["api_token"]
    assert "access_token" not in run(dashboards.WorkspaceGetDashboardSharingOperator, dashboard_id=1)


def test_fields_named_in_set_null_are_sent_as_null(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    run(dashboards.WorkspaceUpdateDashboardOperator, dashboard_id=1, set_null=["description"])
    assert sandbox.requests()[-1]["body"] == {"description": None}


def test_lists_are_filtered_by_where_and_fields(connect: Connect) -> None:
    connect(page_size=2)
    listing = members.WorkspaceListMembersOperator
    assert run(listing, where={"user.email": ["mina.member@example.com"]}, fields=["user.uuid", "level"]) == [
        {"user.uuid": SEED.member_uuid, "level": 1}
    ]
    assert run(listing, count_only=True) == 5
    assert run(listing, where={"level": 1}, count_only=True, max_rows=1) == 3
    assert len(run(invites.WorkspaceListInvitesOperator, where={"is_expired": True})) == 1
    assert len(run(dashboards.WorkspaceListDashboardCollaboratorsOperator, dashboard_id=1)) == 1
    assert [row["domain"] for row in run(domains.WorkspaceListDomainsOperator)] == ["example.com"]
    assert run(projects.WorkspaceListProjectsOperator, fields=["name"]) == [{"name": "Default project"}]
    with pytest.raises(AirflowFailException, match="more than max_rows=4 rows"):
        run(listing, max_rows=4)


def test_the_extra_link_points_to_the_record_in_a_browser(connect: Connect) -> None:
    def link(**extra: Any) -> str:
        connect(**extra)
        operator = projects.WorkspaceGetProjectOperator(task_id="task", project_id=1)
        operator.execute({})
        (item,) = operator.operator_extra_links
        return item.get_link(operator, ti_key=None)  # type: ignore[arg-type]

    assert link() == ""  # the API would answer a browser with 401
    assert link(web_url="https://app.example.com") == "https://app.example.com/project/1"
    assert link(web_url={"project": "https://x.example.com/p-{project_id}"}) == "https://x.example.com/p-1"


def test_the_extra_link_without_web_url_points_to_the_status_page(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(**extra: Any) -> str:
        connect(**extra)
        operator = batch_exports.WorkspacePauseBatchExportOperator(task_id="task", batch_export_id=EXPORT)
        operator.execute({})
        (item,) = operator.operator_extra_links
        return item.get_link(operator, ti_key=None)  # type: ignore[arg-type]

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/prod/")
    assert link() == f"https://airflow.example.com/prod/plugin/workspace#{EXPORT}"
    assert link(web_url="https://app.example.com").startswith("https://app.example.com/organization/")
    monkeypatch.setattr(plugin.WorkspacePlugin, "external_views", [])
    assert link() == ""


def test_a_paused_export_is_resumed_once(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    for cls in (
        batch_exports.WorkspacePauseBatchExportOperator,
        *[batch_exports.WorkspaceUnpauseBatchExportOperator] * 2,
    ):
        run(cls, batch_export_id=EXPORT)
    assert effects(sandbox) == ["pause_batch_export", "unpause_batch_export"]


@pytest.mark.parametrize("project_id", ['"1"', "1"])
def test_a_registered_dashboard_is_reused(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, project_id: str
) -> None:
    connect()
    monkeypatch.setenv("AIRFLOW_VAR_OVERVIEW", f'{{"project_id": {project_id}, "dashboard_id": 1}}')
    result = run(dashboards.WorkspaceCreateDashboardOperator, name="Weekly overview", variable_key="overview")
    assert result["id"] == 1
    assert effects(sandbox) == []


def test_a_variable_of_another_dashboard_is_an_error(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect()
    monkeypatch.setenv("AIRFLOW_VAR_OVERVIEW", "1")
    with pytest.raises(AirflowFailException, match=r"Error: Put .* into the Airflow Variable 'overview'"):
        run(dashboards.WorkspaceCreateDashboardOperator, name="Overview", variable_key="overview")
    assert effects(sandbox) == []


def test_an_interrupted_create_is_not_repeated(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect()
    monkeypatch.setenv("AIRFLOW_VAR_OVERVIEW", '{"project_id": "1", "dashboard_id": null}')
    with pytest.raises(
        AirflowFailException,
        match=r"Look for dashboard 'Overview' in project 1\..* was interrupted: the dashboard may exist\.",
    ):
        run(dashboards.WorkspaceCreateDashboardOperator, name="Overview", variable_key="overview")
    assert effects(sandbox) == []


def test_bulk_invites_outside_a_dag_run_raise_their_own_error(sandbox: SandboxServer, connect: Connect) -> None:
    connect(key=SEED.reader_key)
    with pytest.raises(AirflowFailException, match="organization_member:write"):
        run(invites.WorkspaceCreateInvitesOperator, invites=["ada@example.com"])
    assert effects(sandbox) == []


def test_a_refused_verification_says_what_to_do(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    kind = "This action does not support Personal API Key access"
    sandbox.inject("status_before", "verify_domain", status=403, detail=kind)
    with pytest.raises(AirflowFailException, match=f"Use .*ask_verification=False instead.*personal API key.*{kind}"):
        run(domains.WorkspaceVerifyDomainOperator, domain_id=SEED.domain_id)
    sandbox.clear_faults()
    sandbox.inject("status_before", "verify_domain", status=403, detail="No.")
    with pytest.raises(AirflowFailException, match=r"WorkspacePermissionError: .*VerifyDomain .* 403: No"):
        run(domains.WorkspaceVerifyDomainOperator, domain_id=SEED.domain_id)
