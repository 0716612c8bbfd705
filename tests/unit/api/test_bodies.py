"""The keyword arguments of the hooks are the writable fields of the operations, name by name."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.api import bodies, operations
from airflow_provider_workspace.api.operation import path_fields


@pytest.mark.parametrize(
    ("operation", "body", "given_by_name"),
    [
        (operations.CreateDashboard, bodies.DashboardBody, set()),
        (operations.UpdateDashboard, bodies.DashboardBody, set()),
        (operations.AddDashboardCollaborator, bodies.CollaboratorSettings, {"user_uuid"}),
        (operations.PauseBatchExport, bodies.BatchExportBody, set()),
        (operations.UnpauseBatchExport, bodies.BatchExportResumeBody, set()),
        (operations.CreateDomain, bodies.DomainSettings, {"domain"}),
        (operations.UpdateDomain, bodies.DomainBody, set()),
        (operations.VerifyDomain, bodies.DomainBody, set()),
        (operations.CreateInvite, bodies.InviteSettings, {"target_email"}),
        (operations.CreateProject, bodies.ProjectBody, set()),
    ],
)
def test_typed_dict_matches_the_operation(operation: Any, body: Any, given_by_name: set[str]) -> None:
    writable = set(operation.model_fields) - set(path_fields(operation.endpoint.path))
    assert set(body.__annotations__) == writable - given_by_name
    assert body.__total__ is False
