"""Changes and deletes whose answers or lists are untrue: green means done, and nothing is decided by a missing row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests

from airflow_provider_workspace.errors import WorkspaceNotAppliedError, WorkspaceNotFoundError, WorkspaceResponseError
from airflow_provider_workspace.operators import batch_exports, dashboards, domains, invites, members, projects
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, say, writes
from tests.task_instance import TaskInstance
from tests.variables import install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock

pytestmark = pytest.mark.usefixtures("clock")


def run(cls: type[Any], **arguments: Any) -> Any:
    return cls(task_id="task", **arguments).execute({})


# Deletes

DELETES: dict[str, tuple[type[Any], dict[str, Any], str]] = {
    "delete_domain": (
        domains.WorkspaceDeleteDomainOperator,
        {"domain_id": SEED.domain_id.replace("-", "")},
        "list_domains",
    ),
    "delete_invite": (invites.WorkspaceDeleteInviteOperator, {"invite_id": SEED.invite_id.upper()}, "list_invites"),
    "delete_member": (members.WorkspaceDeleteMemberOperator, {"user_uuid": SEED.member_uuid}, "list_members"),
    "remove_dashboard_collaborator": (
        dashboards.WorkspaceRemoveDashboardCollaboratorOperator,
        {"dashboard_id": 1, "user_uuid": SEED.analyst_uuid},
        "list_dashboard_collaborators",
    ),
}
deletes = pytest.mark.parametrize("operation", DELETES)


def reads_first(operation: str) -> int:
    """Return how often a delete reads its list before it is sent: who is an owner or protected is asked first."""
    return int(operation in ("delete_member", "delete_invite"))


def delete(operation: str, **more: Any) -> Any:
    cls, arguments, _ = DELETES[operation]
    return run(cls, **arguments, **more)


@deletes
def test_a_delete_that_cannot_be_checked_is_said(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    sandbox.inject("status_before", DELETES[operation][2], status=403, times=None, after=reads_first(operation))
    if operation == "delete_member":  # whoever was removed may own the key
        with pytest.raises(AirflowFailException, match="key-owner-removed"):
            delete(operation)
        return
    assert delete(operation)["deleted"]
    assert "this API key may not check it" in caplog.text


@deletes
def test_an_incomplete_list_does_not_prove_a_delete(sandbox: SandboxServer, operation: str) -> None:
    say(sandbox, DELETES[operation][2], count=1, after=reads_first(operation))
    with pytest.raises(WorkspaceNotAppliedError, match=r"The list is too short to tell\.") as short:
        delete(operation)
    assert short.value.outcome == "unknown"


def test_a_delete_is_done_when_the_record_leaves_the_list(sandbox: SandboxServer, clock: Clock) -> None:
    url = f"{sandbox.url}/api/organizations/{SEED.organization_id}/invites/"
    listed = requests.get(url, headers={"Authorization": f"Bearer {SEED.admin_key}"}, timeout=5).json()
    sandbox.inject("say", "list_invites", body=listed, times=3)
    assert delete("delete_invite")["deleted"]
    assert clock.waited[:2] == [0.5, 5.0]


@deletes
@pytest.mark.parametrize("body", ["html", "empty", "json"])
def test_a_404_of_a_proxy_does_not_count_as_deleted(sandbox: SandboxServer, operation: str, body: str) -> None:
    """The list still has the record; a retry may reach the service."""
    sandbox.inject("proxy_error", operation, status=404, body=body)
    with pytest.raises(WorkspaceNotFoundError, match=r"^\[not-(found|the-service)\] The service still"):
        delete(operation)
    assert effects(sandbox) == []
    sandbox.inject("status_after", operation, status=503)
    sandbox.inject("proxy_error", operation, status=404, body=body, after=1)
    assert delete(operation, if_missing="fail")["deleted"]
    assert effects(sandbox) == [operation]


@pytest.mark.parametrize(("operation", "body"), [("update", "html"), ("update", "empty"), ("retrieve", "html")])
def test_a_404_of_a_proxy_does_not_delete_a_dashboard(sandbox: SandboxServer, operation: str, body: str) -> None:
    """Without a list the dashboard is read, and only the service's own 404 counts."""
    sandbox.inject("proxy_error", f"{operation}_dashboard", status=404, body=body)
    sandbox.inject("say", "update_dashboard", rows=0, body={})
    says = "The service still shows what it did not find|This 404 may be that of a proxy"
    with pytest.raises((AirflowFailException, WorkspaceNotFoundError), match=says):
        run(dashboards.WorkspaceDeleteDashboardOperator, dashboard_id=1)
    assert effects(sandbox) == []


@pytest.mark.parametrize("operation", ["delete_domain", "delete_invite", "delete_member"])
def test_a_404_for_a_wrong_organization_is_an_error(sandbox: SandboxServer, operation: str) -> None:
    with pytest.raises(AirflowFailException, match=r"List\w+ returned 40[34]|returned 403"):
        delete(operation, organization_id=SEED.other_organization_id)
    assert effects(sandbox) == []


ANSWERS = [{"id": 1, "name": "Weekly overview"}, {}]


@pytest.mark.parametrize("sandbox", ["strict", "live"], indirect=True)
@pytest.mark.parametrize("body", ANSWERS, ids=["a record", "empty"])
def test_a_change_that_deletes_a_dashboard_is_read_back(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture, body: dict[str, Any]
) -> None:
    def delete_by_change() -> dict[str, Any]:
        ti = TaskInstance()
        task = dashboards.WorkspaceUpdateDashboardOperator(task_id="t", dashboard_id=1, deleted=True)
        dashboard = task.execute({"ti": ti})  # type: ignore[typeddict-item]
        return {"deleted": dashboard["deleted"], "not_shown": ti.xcoms.get("not_shown")}

    sandbox.inject("say", "update_dashboard", body=body, rows=0)
    with pytest.raises(WorkspaceNotAppliedError, match=r"The service says that dashboard 1 was deleted, but did not"):
        delete_by_change()
    sandbox.inject("say", "update_dashboard", body=body, rows=0)
    sandbox.inject("status_before", "retrieve_dashboard", status=403)
    assert not delete_by_change()["deleted"]
    assert "this API key may not check it" in caplog.text
    sandbox.inject("say", "update_dashboard", body=body)
    assert delete_by_change() == {"deleted": True, "not_shown": None}


# Updates

UPDATE = {"domain_id": SEED.domain_id, "jit_provisioning_enabled": True}


def update(**more: Any) -> Any:
    return run(domains.WorkspaceUpdateDomainOperator, **UPDATE, **more)


def test_an_update_shown_in_its_response_is_not_read_back(sandbox: SandboxServer) -> None:
    assert update()["jit_provisioning_enabled"] is True
    assert [entry["operation"] for entry in sandbox.requests()] == ["update_domain"]


@pytest.mark.parametrize("body", [{}, {"id": SEED.domain_id}])
def test_an_update_not_shown_in_its_response_is_read_back(
    sandbox: SandboxServer, clock: Clock, body: dict[str, Any]
) -> None:
    sandbox.inject("say", "update_domain", body=body)
    sandbox.inject("say", "retrieve_domain", body={"id": SEED.domain_id, "jit_provisioning_enabled": False}, times=2)
    assert update()["jit_provisioning_enabled"] is True
    assert clock.waited == [0.5, 5.0]


def test_an_update_without_effect_is_an_error(sandbox: SandboxServer) -> None:
    sandbox.inject("say", "update_domain", rows=0, body={})
    with pytest.raises(WorkspaceNotAppliedError, match="UpdateDomain was done"):
        update()


def test_an_update_that_cannot_be_checked_is_a_warning(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture
) -> None:
    shown = {"id": SEED.domain_id, "domain": "example.com"}
    sandbox.inject("say", "update_domain", body={}, times=None)
    sandbox.inject("say", "retrieve_domain", body=shown)
    assert update()["domain"] == "example.com"
    assert "does not show these fields: jit_provisioning_enabled" in caplog.text
    caplog.clear()
    sandbox.inject("status_before", "retrieve_domain", status=403)
    update()
    assert "this API key may not check it" in caplog.text


def test_an_update_with_deleted_false_is_read_back(sandbox: SandboxServer) -> None:
    sandbox.inject("say", "update_dashboard", body={"id": 1})
    changed = run(dashboards.WorkspaceUpdateDashboardOperator, dashboard_id=1, name="Other", deleted="False")
    assert changed["name"] == "Other"


def test_xcom_not_applied_lists_fields_with_other_values(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The create succeeds, and so does reusing a record that differs."""

    def not_applied(**arguments: Any) -> Any:
        ti = TaskInstance()
        dashboards.WorkspaceAddDashboardCollaboratorOperator(
            task_id="add", dashboard_id=1, user_uuid=SEED.member_uuid, **arguments
        ).execute({"ti": ti})  # type: ignore[typeddict-item]
        return ti.xcoms.get("not_applied")

    sandbox.inject("said_otherwise", "add_dashboard_collaborator", how="other_answer")
    row = not_applied(level=37)[-1]
    assert (row["field"], row["asked"], row["got"] != 37) == ("level", 37, True)
    assert "AddDashboardCollaborator was applied with differences: " in caplog.text
    assert not_applied(level="37") is None
    assert not_applied() is None
    assert not_applied(level=21) == [{"field": "level", "asked": 21, "got": 37}]


@pytest.mark.parametrize("operation", ["create", "update"])
def test_xcom_not_shown_lists_fields_that_the_answer_lacks(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    """One warning names them; what already exists and what is shown says nothing."""
    shown = {"id": SEED.domain_id, "domain": "new.example.com"}
    fields = {"domain": "new.example.com", "saml_entity_id": "urn:example", "saml_x509_cert": "Certificate"}
    sandbox.inject("say", f"{operation}_domain", body=shown, times=None)
    sandbox.inject("say", "retrieve_domain", body=shown, times=None)
    ti = TaskInstance()
    if operation == "create":
        task: Any = domains.WorkspaceCreateDomainOperator(task_id="task", **fields)
    else:
        task = domains.WorkspaceUpdateDomainOperator(task_id="task", domain_id=SEED.domain_id, **fields)
    task.execute({"ti": ti})
    assert "saml_entity_id" in ti.xcoms["not_shown"]
    assert "domain" not in ti.xcoms["not_shown"]
    assert caplog.text.count("does not show these fields: saml_entity_id") == 1


PAUSES: dict[bool, type[Any]] = {
    True: batch_exports.WorkspacePauseBatchExportOperator,
    False: batch_exports.WorkspaceUnpauseBatchExportOperator,
}
EXPORT = SEED.batch_export_ids[0]


@pytest.mark.parametrize("is_paused", PAUSES)
@pytest.mark.parametrize(
    "body",
    [
        {"detail": "Not allowed"},
        [{"detail": "Not allowed"}],
        {"id": EXPORT, "paused": "paused"},
        {"id": EXPORT, "paused": "2026-11-29T00:00:00Z"},
        {"id": EXPORT, "paused": None},
        {"paused": None},
        "within",
    ],
)
def test_a_pause_is_done_only_if_the_answer_does_not_say_otherwise(
    sandbox: SandboxServer, body: Any, *, is_paused: bool
) -> None:
    if body == "within":
        body = {"batch_export": {"paused": not is_paused}}
    sandbox.inject("say", f"{'pause' if is_paused else 'unpause'}_batch_export", body=body, rows=0, times=None)
    with pytest.raises(WorkspaceNotAppliedError, match=r"returned 200, but was not applied: (detail|paused) is"):
        run(PAUSES[is_paused], batch_export_id=EXPORT)


@pytest.mark.parametrize("is_paused", PAUSES)
@pytest.mark.parametrize(
    "body", [{}, {"status": "ok"}, {"detail": "Done.", "success": True}, "shown", "within", {"batch_export": {}}]
)
def test_what_the_answer_to_a_pause_does_not_show_is_no_difference(
    sandbox: SandboxServer, body: Any, *, is_paused: bool
) -> None:
    shown = {"paused": is_paused}
    body = {"shown": shown, "within": {"batch_export": shown}}.get(body, body) if isinstance(body, str) else body
    sandbox.inject("say", f"{'pause' if is_paused else 'unpause'}_batch_export", body=body)
    assert run(PAUSES[is_paused], batch_export_id=EXPORT)["paused"] is is_paused


@pytest.mark.parametrize("is_paused", PAUSES)
def test_a_pause_does_not_send_that_it_is_none(sandbox: SandboxServer, *, is_paused: bool) -> None:
    with pytest.raises(AirflowFailException, match=f"'paused': .*BatchExport makes it {str(is_paused).lower()}"):
        run(PAUSES[is_paused], batch_export_id=EXPORT, body={"paused": not is_paused})
    assert writes(sandbox) == []
    run(PAUSES[is_paused], batch_export_id=EXPORT, body={"paused": is_paused})
    assert writes(sandbox)[-1]["body"] == {"paused": is_paused}


def test_a_field_of_another_type_is_not_taken_as_not_shown(sandbox: SandboxServer) -> None:
    sandbox.inject("say", "update_domain", body={"id": SEED.domain_id, "jit_provisioning_enabled": "later"}, times=None)
    with pytest.raises(AirflowFailException, match='jit_provisioning_enabled is "later" and not true'):
        run(domains.WorkspaceUpdateDomainOperator, domain_id=SEED.domain_id, jit_provisioning_enabled=True)


# Reads

READS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "retrieve_dashboard": (dashboards.WorkspaceGetDashboardOperator, {"dashboard_id": 1}),
    "list_dashboard_sharing": (dashboards.WorkspaceGetDashboardSharingOperator, {"dashboard_id": 1}),
    "retrieve_domain": (domains.WorkspaceGetDomainOperator, {"domain_id": SEED.domain_id}),
    "retrieve_project": (projects.WorkspaceGetProjectOperator, {"project_id": SEED.project_id}),
}


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("body", [{}, {"detail": "The workspace is being migrated."}, {"data": {"id": 1}}, [{}]])
def test_what_is_no_record_is_not_taken_as_one(sandbox: SandboxServer, operation: str, body: Any) -> None:
    cls, arguments = READS[operation]
    sandbox.inject("say", operation, body=body, times=None)
    with pytest.raises(WorkspaceResponseError, match="returned 200 with JSON that is not the record"):
        run(cls, **arguments)


@pytest.mark.parametrize(
    ("operation", "other"),
    [
        ("retrieve_dashboard", 99),
        ("retrieve_dashboard", "99"),
        ("retrieve_domain", SEED.member_uuid),
        ("retrieve_project", 99),
    ],
)
def test_a_record_with_another_id_is_another_record(sandbox: SandboxServer, operation: str, other: object) -> None:
    cls, arguments = READS[operation]
    sandbox.inject("say", operation, body={"id": other, "name": "Other"}, times=None)
    with pytest.raises(WorkspaceResponseError, match="returned 200 with another record than that of the path"):
        run(cls, **arguments)


@pytest.mark.parametrize("other", [7, "main", None])
def test_ids_of_other_kinds_are_not_compared(sandbox: SandboxServer, other: object) -> None:
    sandbox.inject("say", "retrieve_domain", body={"id": other, "domain": "a.example.com"})
    assert run(domains.WorkspaceGetDomainOperator, domain_id=SEED.domain_id)["domain"] == "a.example.com"


def test_a_change_of_another_record_is_said(sandbox: SandboxServer) -> None:
    sandbox.inject("say", "update_dashboard", body={"id": 99, "name": "Sales"}, rows=0, times=None)
    with pytest.raises(WorkspaceResponseError, match="another record than that of the path"):
        run(dashboards.WorkspaceUpdateDashboardOperator, dashboard_id=1, name="Sales")


@pytest.mark.parametrize("page", [{"count": 1, "next": "http://x/?offset=1"}, {"count": 2, "next": None}])
def test_one_page_of_sharing_configurations_is_not_all(sandbox: SandboxServer, page: dict[str, Any]) -> None:
    operation = "list_dashboard_sharing"
    cls, arguments = READS[operation]
    sandbox.inject("say", operation, body={**page, "results": [{"enabled": True}]})
    assert run(cls, **arguments)["enabled"]
    sandbox.inject("say", operation, body={**page, "results": [{"enabled": False}]}, times=None)
    with pytest.raises(WorkspaceResponseError, match=r"1 of [12] sharing configurations, none of which is enabled"):
        run(cls, **arguments)


@pytest.mark.parametrize("body", [{"detail": "The workspace is being migrated."}, {"id": 99, "name": "Other"}])
def test_no_dashboard_is_adopted_from_another_answer(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any]
) -> None:
    variables = install(monkeypatch)
    create = dashboards.WorkspaceCreateDashboardOperator
    first = run(create, name="Sales", variable_key="board")
    noted = variables.values["board"]
    sandbox.inject("say", "retrieve_dashboard", body=body, times=5)
    with pytest.raises(WorkspaceResponseError):
        run(create, name="Sales", variable_key="board")
    assert variables.values["board"] == noted
    assert effects(sandbox) == ["create_dashboard"]
    assert first["id"] != 99


# Lists

LOOK_UPS: dict[str, tuple[type[Any], dict[str, Any], dict[str, Any]]] = {
    "list_projects": (projects.WorkspaceCreateProjectOperator, {"name": "Sales"}, {"id": 1, "Name": "Sales"}),
    "list_domains": (domains.WorkspaceCreateDomainOperator, {"domain": "a.example.com"}, {"id": "d", "hostname": "a"}),
    "list_invites": (
        invites.WorkspaceCreateInviteOperator,
        {"target_email": "ada@example.com"},
        {"id": "i", "targetEmail": "ada@example.com", "is_expired": False},
    ),
    "list_members": (
        members.WorkspaceDeleteMemberOperator,
        {"user_email": "ada@example.com"},
        {"id": "m", "email": "ada@example.com"},
    ),
}


@pytest.mark.parametrize("name", LOOK_UPS)
def test_a_list_whose_rows_show_no_name_decides_nothing(sandbox: SandboxServer, name: str) -> None:
    cls, arguments, row = LOOK_UPS[name]
    say(sandbox, name, row, {**row, "id": 2})
    with pytest.raises(AirflowFailException, match="none of which shows its name, address or id"):
        run(cls, **arguments)
    assert writes(sandbox) == []


EXPIRED = "exp.ired@example.com"
OF_INVITES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "create invite": (invites.WorkspaceCreateInviteOperator, {"target_email": EXPIRED}),
    "create invites": (invites.WorkspaceCreateInvitesOperator, {"invites": [EXPIRED]}),
    "sync": (members.WorkspaceSyncMembersOperator, {"roster": [EXPIRED], "protected": [], "max_removals": None}),
}


@pytest.mark.parametrize("road", OF_INVITES)
@pytest.mark.parametrize("change", ["renamed", "of another type"])
def test_invites_that_do_not_show_whether_they_expired_invite_nobody(
    sandbox: SandboxServer, road: str, change: str
) -> None:
    """Else the person whose invite has expired would count as invited."""
    rows = run(invites.WorkspaceListInvitesOperator)
    for row in rows:
        expired = row.pop("is_expired")
        row.update({"expired": expired} if change == "renamed" else {"is_expired": {"at": "2026-01-01"}})
    say(sandbox, "list_invites", *rows)
    cls, arguments = OF_INVITES[road]
    with pytest.raises(AirflowFailException, match=r"\[field-not-sent\].*none of which has is_expired"):
        run(cls, **arguments)
    assert writes(sandbox) == []


def test_an_invite_can_be_deleted_by_its_id_without_knowing_whether_it_expired(sandbox: SandboxServer) -> None:
    rows = run(invites.WorkspaceListInvitesOperator)
    for row in rows:
        del row["is_expired"]
    others = [row for row in rows if row["id"] != SEED.invite_id]
    say(sandbox, "list_invites", *others, after=reads_first("delete_invite"))
    assert delete("delete_invite")["deleted"]
