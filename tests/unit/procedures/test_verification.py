"""Verification requests: which refusals end a wait."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
    WorkspaceServerError,
)
from airflow_provider_workspace.procedures.verification import ask_verification
from airflow_provider_workspace.sandbox.seed import SEED
from tests.unit.procedures.drive import drive


def refused(detail: str | None) -> WorkspacePermissionError:
    return WorkspacePermissionError(f"403: {detail}", status=403, detail=detail)


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (None, True),
        (refused("This action does not support Personal API Key access"), False),
        (WorkspaceBadRequestError("400", status=400), True),
        (WorkspaceServerError("500", status=500, retryable=True), True),
    ],
)
def test_these_errors_do_not_end_the_wait(answer: Any, *, again: bool) -> None:
    assert drive(ask_verification("o", SEED.domain_id), lambda _: answer) is again


@pytest.mark.parametrize(
    "answer",
    [
        refused("API key missing required scope 'organization:write'"),
        refused("A personal API key with another scope is needed"),
        refused("You do not have sufficient permissions"),
        refused(None),
        WorkspaceNotFoundError("404", status=404),
    ],
    ids=str,
)
def test_other_refusals_end_the_wait(answer: Any) -> None:
    with pytest.raises(type(answer)):
        drive(ask_verification("o", SEED.domain_id), lambda _: answer)
