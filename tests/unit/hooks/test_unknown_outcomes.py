"""Lost responses of hook calls in ``@task`` functions: Airflow does not retry what could be done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.errors import WorkspaceOutcomeUnknownError, WorkspaceTransportError
from airflow_provider_workspace.hooks.connection import WorkspaceDoNotRetryError
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.raw_server import RESET_AFTER_READING, RawServer, answer

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Call, Connect


def test_a_task_is_not_retried_after_a_create_with_an_unknown_outcome(
    call: Call, connect: Connect, sandbox: SandboxServer
) -> None:
    connect()
    sandbox.inject("reset_after", "create_project")

    def create_project() -> int:
        project_id: int = call("create_project", name="Northwind").id
        return project_id

    with pytest.raises(
        AirflowFailException, match=r"^Look for the project by its name in the list of projects"
    ) as lost:
        create_project()
    assert isinstance(lost.value, WorkspaceOutcomeUnknownError)
    assert lost.value.permanent
    assert lost.value.outcome == "unknown"
    assert len(sandbox.effects("create_project")) == 1
    assert [project.name for project in call("list_projects")].count("Northwind") == 1


def test_a_task_may_be_retried_after_a_repeatable_write_with_an_unknown_outcome(
    call: Call, connect: Connect, sandbox: SandboxServer
) -> None:
    with RawServer(RESET_AFTER_READING) as service:
        connect(host=service.url, max_attempts=1)
        with pytest.raises(WorkspaceTransportError, match="was sent, but no complete response arrived") as lost:
            call("pause_batch_export", batch_export_id=sandbox.seed.batch_export_ids[0])
    assert not isinstance(lost.value, AirflowFailException | WorkspaceDoNotRetryError)


def test_a_create_whose_response_identifies_no_record_is_not_retried(call: Call, connect: Connect) -> None:
    with RawServer(answer(201, {"error": "limit reached"})) as service:
        connect(host=service.url)
        with pytest.raises(WorkspaceDoNotRetryError, match=r"^Look for the dashboard in the workspace itself"):
            call("create_dashboard", name="Sales")
    assert len(service.requests) == 1
