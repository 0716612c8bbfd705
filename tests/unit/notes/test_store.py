"""Notes before Airflow 3.3, where an error of the API server looks like a Variable that is not found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.lease_store import LeaseVariables
from tests import variables

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "workspace_lease.beside"


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    return variables.install(monkeypatch, release="3.2").values


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[ErrorType], None]:
    """Let the API server answer with an error, as 3.2 returns it."""

    def let(error: ErrorType, *, is_raised: bool = False) -> None:
        def send(_: object) -> Any:
            answered = ErrorResponse(error=error)
            if is_raised:  # as 3.1 does
                raise AirflowRuntimeError(answered)
            return answered

        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", SimpleNamespace(send=send), raising=False)

    return let


@pytest.mark.parametrize("is_raised", [False, True])
def test_an_error_of_the_api_server_is_no_absence(answer: Any, values: dict[str, str], *, is_raised: bool) -> None:
    answer(ErrorType.API_SERVER_ERROR, is_raised=is_raised)
    with pytest.raises(WorkspaceError, match=rf"cannot read the Variable '{KEY}', its API server answered API_SERVER"):
        LeaseVariables().read(KEY)
    for ask in (LeaseVariables().list_keys, lambda: LeaseVariables().add(KEY, "{}")):
        with pytest.raises(WorkspaceError, match="cannot read the Variable 'workspace_leases'"):
            ask()
    assert "workspace_leases" not in values
    answer(ErrorType.VARIABLE_NOT_FOUND, is_raised=is_raised)
    assert LeaseVariables().read("workspace_lease.none") is None
    assert LeaseVariables().list_keys() == []


@pytest.mark.parametrize("text", ["", "oops", "{}", "null"])
def test_an_index_that_is_no_list_is_not_empty(values: dict[str, str], text: str) -> None:
    values["workspace_leases"] = text
    with pytest.raises(WorkspaceError, match=r"'workspace_leases' holds no list of keys\. Let it hold those"):
        LeaseVariables().list_keys()
