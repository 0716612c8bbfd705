"""What an organization file holds that is made from an organization, against the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.organization.importing import import_organization
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

REMEMBERED = {str(SEED.project_id): {str(SEED.dashboard_id): "overview"}}
LISTS = ("list_projects", "list_domains", "list_members", "list_invites")


def imported() -> Any:
    with WorkspaceHook() as hook:
        return yaml.safe_load(import_organization(hook.client, SEED.organization_id, REMEMBERED))


def say(sandbox: SandboxServer, operation: str, *rows: dict[str, Any]) -> None:
    sandbox.inject("say", operation, body={"count": len(rows), "next": None, "results": list(rows)}, times=None)


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_file_has_what_the_organization_has(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    user = {"uuid": "u-1", "email": "cora@example.com"}
    unseen = {"uuid": "u-2", "email": None}
    boards = [{"user": user, "level": 37}, {"user": user | {"email": "dan@example.com"}}, {"user": unseen, "level": 37}]
    sandbox.inject("say", "list_dashboard_collaborators", body=boards)
    sandbox.inject("say", "list_dashboard_collaborators", body=[], times=None)
    sandbox.inject("say", "retrieve_project", body={"id": SEED.project_id, "name": "North\u202ewind"})
    say(sandbox, "list_domains", {"id": SEED.domain_id, "domain": "new.example.com", "is_verified": False})
    say(sandbox, "list_invites", {"id": SEED.invite_id, "target_email": None}, {"target_email": "eve@example.com"})
    say(sandbox, "list_members", {"user": user, "level": 8}, {"user": unseen, "level": 1}, {"user": None})
    file = imported()
    assert file["domains"] == [{"domain": "new.example.com", "verified": False}]
    assert file["members"] == {"people": ["eve@example.com", {"email": "cora@example.com", "level": "admin"}]}
    assert file["projects"][0]["name"] == "North\u202ewind"
    (dashboard,) = file["projects"][0]["dashboards"]
    assert dashboard["collaborators"] == [{"email": "cora@example.com", "level": 37}, {"email": "dan@example.com"}]
    (dashboard,) = imported()["projects"][0]["dashboards"]
    assert "collaborators" not in dashboard


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_file_leaves_out_what_is_empty_or_gone(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    sandbox.inject("status_before", "retrieve_dashboard", status=404, times=None)
    assert not any("dashboards" in project for project in imported()["projects"])
    sandbox.inject("say", "retrieve_project", body={"id": SEED.project_id, "name": "https://ada:s3cret@example.com"})
    assert "projects" not in imported(), "its name holds a secret"
    for operation in LISTS:
        say(sandbox, operation)
    assert imported() == {"organization_id": SEED.organization_id}
