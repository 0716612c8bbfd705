"""Create unless it exists: what the list must show for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_workspace.api.models import Page, ProjectItem
from airflow_provider_workspace.api.operations import CreateProject
from airflow_provider_workspace.errors import WorkspaceResponseError
from airflow_provider_workspace.procedures.resources import create_project
from airflow_provider_workspace.state.task_state import TaskState
from tests.unit.procedures.drive import drive


def test_a_project_without_an_id_is_an_error_and_nothing_is_created() -> None:
    sent: list[Any] = []

    def answer(operation: Any) -> Any:
        sent.append(operation)
        return Page(results=[ProjectItem(name=" Northwind")], count=1)

    settings: Any = SimpleNamespace(page_size=100, consistency_time=1.0)
    create = CreateProject(organization_id="o", name="Northwind")
    with pytest.raises(WorkspaceResponseError, match="'Northwind' whose id is not the number"):
        drive(create_project(create, settings, if_exists="return", memory=TaskState({})), answer)
    assert [type(operation).__name__ for operation in sent] == ["ListProjects"]
