"""Organization files written from an existing organization."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.api.models import (
    Dashboard,
    DashboardCollaborator,
    Invite,
    Member,
    Page,
    Project,
    ProjectItem,
    User,
)
from airflow_provider_workspace.errors import WorkspaceNotFoundError
from airflow_provider_workspace.procedures.organization_file import Organization, read_organizations
from airflow_provider_workspace.procedures.organization_import import describe_organization
from tests.unit.procedures.drive import drive


def described(remembered: dict[str, dict[str, str]] | None = None, **answers: Any) -> Any:
    return yaml.safe_load(written(remembered, **answers))


def written(remembered: dict[str, dict[str, str]] | None = None, **answers: Any) -> str:
    def answer(operation: Any) -> Any:
        found = answers.get(type(operation).__name__, Page[Any](results=[]))
        return found(operation) if callable(found) else found

    return drive(describe_organization("o", 100, remembered or {}), answer)


def test_a_member_with_an_open_invite_is_listed_once() -> None:
    found = described(
        ListInvites=Page[Invite](results=[Invite(target_email="ADA@example.com", level=1)]),
        ListMembers=Page[Member](results=[Member(user=User(email="ada@example.com"), level=8)]),
    )
    assert found["members"]["people"] == [{"email": "ada@example.com", "level": "admin"}]
    Organization.model_validate(found)


def test_deleted_dashboards_are_left_out() -> None:
    def dashboard(operation: Any) -> Any:
        gone = WorkspaceNotFoundError("gone", status=404)
        gone.from_service = True
        return {
            "1": Dashboard(id=1, name="Sales"),
            "2": Dashboard(id=2, name="Old", deleted=True),
            "3": gone,
            "4": WorkspaceNotFoundError("from a proxy", status=404),
        }[str(operation.dashboard_id)]

    answers: dict[str, Any] = {
        "ListProjects": Page[ProjectItem](results=[ProjectItem(id=7, name="North")]),
        "GetProject": Project(id=7, name="North"),
        "GetDashboard": dashboard,
        "ListDashboardCollaborators": Page[DashboardCollaborator](results=[]),
    }
    (project,) = described({"7": {"1": "a", "2": "b", "3": "c"}}, **answers)["projects"]
    assert project["dashboards"] == [{"name": "Sales", "variable_key": "a"}]
    with pytest.raises(WorkspaceNotFoundError, match="proxy"):
        described({"7": {"4": "d"}}, **answers)


TEXTS = st.text(
    st.one_of(
        st.sampled_from("{}%# \"'\\\n\r\x85\u2028\u202e\ufeff:-?&*!|>@`,[]~"), st.characters(exclude_categories=["Cs"])
    ),
    min_size=1,
)


@given(TEXTS, st.dictionaries(TEXTS, TEXTS, min_size=1))
def test_every_text_comes_back_with_the_same_characters(name: str, settings: dict[str, str]) -> None:
    """Also if somebody renders the file."""
    project = Project(id=7, name=name, extra_settings=settings)
    text = written(ListProjects=Page[ProjectItem](results=[ProjectItem(id=7, name=name)]), GetProject=project)
    environment = jinja2.Environment(keep_trailing_newline=True)  # noqa: S701 - no HTML
    assert environment.from_string(text).render() == text
    if "projects" in yaml.safe_load(text):
        (entry,) = read_organizations(text, "imported.yaml")[""].projects
        assert (entry.name, entry.extra_settings) == (name, settings)


def test_projects_whose_name_cannot_be_written_are_left_out() -> None:
    """A name that holds a secret, or none."""
    for name in ("https://ada:hunter2@example.com", "https://ada:hunter2@example.com/{{ x }}", ""):
        found = described(
            ListProjects=Page[ProjectItem](results=[ProjectItem(id=7, name="x")]),
            GetProject=Project(id=7, name=name, timezone="UTC"),
        )
        assert found == {"organization_id": "o"}
