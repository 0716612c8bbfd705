"""``WorkspaceCheckContractOperator``: a task that fails with the list of what will break."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.operators.contract import WorkspaceCheckContractOperator
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

ROOT = Path(__file__).resolve().parents[3]


class Pushed(dict[str, Any]):
    """A task instance that keeps XComs."""

    def xcom_push(self, key: str, value: object) -> None:
        self[key] = value


def test_a_contract_that_breaks_fails_the_task_with_the_list(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    whole = str(ROOT / "example_dags" / "data" / "openapi.yaml")
    result = WorkspaceCheckContractOperator(task_id="check", schema=whole).execute({})
    assert result["breaks"] is False
    assert len(result["operations"]) == 27
    moved = str(ROOT / "tests" / "data" / "service.yaml")
    check = WorkspaceCheckContractOperator(
        task_id="check", schema=moved, operations=["tests.endpoints.ListBatchExports"]
    )
    ti: Any = Pushed()
    with pytest.raises(AirflowFailException) as error:
        check.execute({"ti": ti})  # type: ignore[typeddict-item]
    first, *lines = str(error.value).splitlines()
    assert first.startswith("[contract-broken] 28 operations: 16 gone, 2 moved, ")
    assert len(lines) == 25
    assert all(not line.startswith("there") for line in lines)
    assert ti["return_value"]["breaks"] is True
    assert sandbox.requests() == []
