"""Plans of organization files when rows of the service lack names or addresses, or hold control characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")


def plan(file: dict[str, Any]) -> Any:
    return WorkspacePlanOrganizationOperator(task_id="plan", file=file).execute({})


def say(sandbox: SandboxServer, operation: str, *rows: dict[str, Any]) -> None:
    """Let a list have these rows."""
    body: Any = {"count": len(rows), "next": None, "results": list(rows)}
    sandbox.inject("say", operation, body=list(rows) if "collaborators" in operation else body, times=None)


def test_a_domain_is_removed_by_its_name_only(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    file = {"domains": [{"domain": "bücher.example.com", "verified": False}], "complete": ["domains"]}
    own = {"id": SEED.domain_id, "domain": "xn--bcher-kva.example.com"}
    say(sandbox, "list_domains", own, {"id": SEED.absent_uuid})
    assert plan(file)["changes"] == []
    sandbox.clear_faults()
    say(sandbox, "list_domains", own, {"id": SEED.absent_uuid, "domain": "x.example.com\n  + all well\x1b[2J"})
    (change,) = (removed := plan(file))["changes"]
    assert change["action"] == "remove"
    assert len(removed["table"].splitlines()) == 2
    assert removed["table"].replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("rows", "removed"),
    [
        ([{"user_uuid": SEED.analyst_uuid.upper()}], []),
        (
            [{"user_uuid": SEED.analyst_uuid.upper()}, {"user_uuid": SEED.member_uuid.upper()}],
            ["mina.member@example.com"],
        ),
        (
            [{"user_uuid": SEED.analyst_uuid}, {"user": {"uuid": "u", "email": "guest@example.com"}}],
            ["guest@example.com"],
        ),
    ],
)
def test_collaborators_are_matched_by_user_id(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, rows: list[Any], removed: list[str]
) -> None:
    connect()
    monkeypatch.setenv("AIRFLOW_VAR_OVERVIEW", '{"project_id": "1", "dashboard_id": 1}')
    dashboard = {
        "name": "Weekly overview",
        "variable_key": "overview",
        "collaborators": ["grace.analyst@example.com"],
    }
    file = {"projects": [{"name": "Default project", "dashboards": [dashboard]}], "complete": ["collaborators"]}
    say(sandbox, "list_dashboard_collaborators", *rows)
    assert [(change["action"], change["name"].split()[1]) for change in plan(file)["changes"]] == [
        ("remove", email) for email in removed
    ]
