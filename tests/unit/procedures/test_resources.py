"""What ``create_or_get`` requires of the rows of a list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_workspace.api.models import Domain, Page, ProjectItem
from airflow_provider_workspace.api.operations import CreateDomain, CreateProject
from airflow_provider_workspace.errors import WorkspaceNotAppliedError, WorkspaceResponseError
from airflow_provider_workspace.procedures.resources import create_domain, create_project
from airflow_provider_workspace.state.task_state import TaskState
from tests.unit.procedures.drive import drive


def test_a_project_without_an_id_is_an_error_and_nothing_is_created() -> None:
    sent: list[Any] = []

    def answer(operation: Any) -> Any:
        sent.append(operation)
        return Page(results=[ProjectItem(name=" Northwind")], count=1)

    settings: Any = SimpleNamespace(page_size=100, consistency_time=1.0)
    create = CreateProject(organization_id="o", name="Northwind")
    with pytest.raises(WorkspaceResponseError, match="'Northwind' without a numeric id"):
        drive(create_project(create, settings, if_exists="return", memory=TaskState({})), answer)
    assert [type(operation).__name__ for operation in sent] == ["ListProjects"]


@pytest.mark.parametrize("listed", [True, False])
def test_a_response_with_another_domain_is_looked_up(*, listed: bool) -> None:
    sent: list[str] = []

    def answer(operation: Any) -> Any:
        sent.append(type(operation).__name__)
        if isinstance(operation, CreateDomain):
            return Domain(id="other", domain="other.example.com")
        there = listed and "CreateDomain" in sent
        return Page(results=[Domain(id="own", domain="sales.example.com")] if there else [], count=int(there))

    settings: Any = SimpleNamespace(page_size=100, consistency_time=6.0)
    create = CreateDomain(organization_id="o", domain="sales.example.com")
    claim = create_domain(create, settings, if_exists="return", memory=TaskState({}))
    if listed:
        domain, created = drive(claim, answer)
        assert (domain.id, created) == ("own", True)
    else:
        with pytest.raises(WorkspaceNotAppliedError, match="did not show it within 6 s"):
            drive(claim, answer)
    assert sent.count("CreateDomain") == 1
