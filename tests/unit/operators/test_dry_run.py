"""``dry_run=True`` sends no write, and returns exactly the requests that a run sends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Variable

from airflow_provider_workspace.operators import dashboards, domains, invites, projects
from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects, writes
from tests.meta.test_operators import OPERATORS
from tests.unit.operators.test_operators import CHANGES, NO_CHANGES, run

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)
pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")

WRITING = [row for row in (*CHANGES, *NO_CHANGES) if "is_dry_run" in row[0].template_fields]
READS = re.compile(r"Workspace(Get|List)\w+Operator")


@pytest.mark.parametrize(
    "cls", [cls for cls in OPERATORS if not cls.__module__.endswith((".windows", ".window_closing"))]
)
def test_every_operator_that_writes_has_dry_run(cls: type[Any]) -> None:
    assert ("is_dry_run" in cls.template_fields) != bool(READS.fullmatch(cls.__name__))


@live
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


@live
def test_dry_run_logs_the_request_and_the_reason(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    path = f"/api/organizations/{SEED.organization_id}/projects/"
    assert run(projects.WorkspaceCreateProjectOperator, name="Northwind", timezone="UTC", dry_run=True) == {
        "dry_run": True,
        "action": "create",
        "why": "there is no project 'Northwind'",
        "operation": "CreateProject",
        "request": f"POST {path}",
        "fields": {"name": "Northwind", "timezone": "UTC"},
    }
    found = run(projects.WorkspaceCreateProjectOperator, name="Default project", dry_run=True)
    assert (found["action"], found["id"], found["why"]) == ("skip", 1, "it exists already")
    gone = run(dashboards.WorkspaceDeleteDashboardOperator, dashboard_id=1, dry_run=True)
    assert (gone["action"], gone["fields"]) == ("remove", {"deleted": True})
    assert sandbox.effects() == []


@live
@pytest.mark.usefixtures("sandbox")
def test_dry_run_shows_no_secrets(connect: Connect) -> None:
    connect()
    arguments = {"domain_id": SEED.domain_id, "saml_x509_cert": "a-certificate", "dry_run": True}
    assert run(domains.WorkspaceUpdateDomainOperator, **arguments)["fields"] == {}
    shown = run(domains.WorkspaceUpdateDomainOperator, **arguments, return_secrets=True)
    assert shown["fields"] == {"saml_x509_cert": "a-certificate"}


@live
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


@live
def test_dry_run_does_not_register_a_dashboard(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect()
    written: list[str] = []
    monkeypatch.setattr(Variable, "get", lambda *_, **__: None)
    monkeypatch.setattr(Variable, "set", lambda key, *_, **__: written.append(key))
    plan = run(dashboards.WorkspaceCreateDashboardOperator, name="Sales", variable_key="sales_dashboard", dry_run=True)
    assert plan["action"] == "create"
    assert written == []
    assert effects(sandbox) == []
