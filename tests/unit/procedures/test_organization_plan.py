"""Plans of organization files when rows of the service lack names or addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.models import (
    Dashboard,
    DashboardCollaborator,
    Domain,
    Member,
    Page,
    ProjectItem,
    User,
)
from airflow_provider_workspace.procedures.organization_file import Organization
from airflow_provider_workspace.procedures.organization_plan import (
    OrganizationPlan,
    OrganizationReader,
    plan_organization,
)
from airflow_provider_workspace.procedures.plan import Change
from tests.unit.procedures.drive import drive

if TYPE_CHECKING:
    from collections.abc import Iterator

ADA = User(uuid="019a0000-0000-7000-8000-00000000000a", email="ada@example.com")
LIN = User(uuid="019a0000-0000-7000-8000-00000000000b", email="lin@example.com")
DOMAIN_ID = "019a0000-0000-7000-8000-00000000000c"


def planned(file: dict[str, Any], **lists: list[Any]) -> list[tuple[str, str]]:
    def find_dashboard(*_: object) -> Iterator[Any]:
        yield from ()
        return Dashboard(id=7, name="Sign-ups")

    def answer(operation: Any) -> Any:
        name = type(operation).__name__
        return ProjectItem(id=3, name="Sales") if name == "GetProject" else Page[Any](results=lists[name])

    reader = OrganizationReader("o", 100, find_dashboard, lambda _: "", str)  # type: ignore[arg-type]
    plan = drive(plan_organization(Organization.model_validate(file), reader), answer)
    return [(change.action, change.name) for change in plan.changes]


def test_a_domain_without_a_name_is_not_removed() -> None:
    file = {"domains": [{"domain": "bücher.example.com", "verified": False}], "complete": ["domains"]}
    named = Domain(id=DOMAIN_ID, domain="xn--bcher-kva.example.com")
    assert planned(file, ListDomains=[named, Domain(id="d")]) == []
    other = Domain(id=DOMAIN_ID[:-1] + "d", domain="other.example.com")
    assert planned(file, ListDomains=[named, other]) == [("remove", "domain other.example.com")]


def test_control_characters_are_removed_from_the_plan() -> None:
    change = Change("remove", "domains", "domain x.example.com\n  + all well\x1b[2J")
    table = OrganizationPlan(changes=[change]).table()
    assert len(table.splitlines()) == 2
    assert table.replace("\n", "").isprintable()


def test_collaborators_are_matched_by_user_id() -> None:
    dashboards = [{"name": "Sign-ups", "collaborators": ["ada@example.com"]}]
    file = {"projects": [{"name": "Sales", "dashboards": dashboards}], "complete": ["collaborators"]}
    lists: dict[str, Any] = {
        "ListProjects": [ProjectItem(id=3, name="Sales")],
        "ListMembers": [Member(user=ADA), Member(user=LIN)],
    }
    ada, lin = (DashboardCollaborator(user_uuid=str(user.uuid).upper()) for user in (ADA, LIN))
    assert planned(file, **lists, ListDashboardCollaborators=[ada]) == []
    removed = [("remove", "collaborator lin@example.com of Sales / Sign-ups")]
    assert planned(file, **lists, ListDashboardCollaborators=[ada, lin]) == removed
    stranger = DashboardCollaborator(user=User(uuid="u", email="guest@example.com"))
    removed = [("remove", "collaborator guest@example.com of Sales / Sign-ups")]
    assert planned(file, **lists, ListDashboardCollaborators=[ada, stranger]) == removed
