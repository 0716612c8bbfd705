"""Idempotent create and delete, driven by hand against a service that loses answers or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_workspace.api.operations import CreateProject, DeleteInvite, GetProject
from airflow_provider_workspace.api.procedure import Pause, Procedure, send_one
from airflow_provider_workspace.api.retry import LOOK_UP_PAUSES, MAX_SENDS
from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
    WorkspaceRequestError,
    WorkspaceServerError,
)
from airflow_provider_workspace.procedures.create_or_get import create_or_get, delete_if_present
from airflow_provider_workspace.procedures.dry_run import Planned, until_first_write
from airflow_provider_workspace.state.task_state import TaskState
from tests.unit.procedures.drive import drive

CREATE = CreateProject(organization_id="o", name="thing")
DELETE = DeleteInvite(organization_id="o", invite_id="0190c0de-0000-4000-8000-0000000000e1")


class Service:
    """
    Answers creates and look-ups.

    :param creates: what becomes of the creates, one after the other: an error, ``lost`` (applied without an answer)
    :param visible_after: how many look-ups find nothing before they find what was created
    """

    def __init__(self, *creates: Any, visible_after: int = 0, there: bool = False) -> None:
        self.creates = list(creates)
        self.visible_after = visible_after
        self.there = there
        self.sent = 0

    def answer(self, operation: Any) -> Any:
        if isinstance(operation, GetProject):
            if self.there and self.visible_after <= 0:
                return "it"
            self.visible_after -= self.there
            return None
        self.sent += 1
        result = self.creates.pop(0) if self.creates else "it"
        self.there |= result in ("it", "lost")
        return lost() if result == "lost" else result


def lost() -> WorkspaceOutcomeUnknownError:
    return WorkspaceOutcomeUnknownError("The answer was lost.", operation="CreateProject", retryable=False)


def create(service: Service, if_exists: str = "return", pauses: list[float] | None = None) -> tuple[Any, bool]:
    procedure: Procedure[tuple[Any, bool]] = create_or_get(
        "thing",
        CREATE,
        find=lambda: send_one(GetProject(organization_id="o", project_id=1)),
        if_exists=if_exists,
        memory=TaskState({}),
    )
    return drive(procedure, service.answer, pauses)


def test_what_does_not_exist_is_created_once() -> None:
    service = Service()
    assert create(service) == ("it", True)
    assert create(service) == ("it", False)
    assert service.sent == 1


def test_what_exists_can_be_an_error() -> None:
    with pytest.raises(WorkspaceInputError, match="already"):
        create(Service(there=True), if_exists="fail")


@pytest.mark.parametrize("visible_after", [0, 1])
def test_a_create_whose_answer_was_lost_is_looked_up_and_not_sent_again(visible_after: int) -> None:
    service, pauses = Service("lost", visible_after=visible_after), list[float]()
    assert create(service, pauses=pauses) == ("it", True)
    assert service.sent == 1
    assert pauses == list(LOOK_UP_PAUSES[: visible_after + 1])


def test_a_create_that_is_lost_for_good_ends_with_its_error() -> None:
    service = Service(*[lost() for _ in range(MAX_SENDS)])
    with pytest.raises(WorkspaceOutcomeUnknownError):
        create(service)
    assert service.sent == MAX_SENDS


def test_a_refused_create_ends_with_its_error() -> None:
    with pytest.raises(WorkspaceBadRequestError):
        create(Service(WorkspaceBadRequestError("400", status=400)))


@pytest.mark.parametrize(
    "error",
    [WorkspaceBadRequestError("400", status=400, code="unique"), WorkspaceRequestError("409", outcome="rejected")],
)
def test_what_somebody_else_created_at_the_same_time_is_reused(error: WorkspaceRequestError) -> None:
    if not hasattr(error, "status"):
        error = WorkspaceBadRequestError("409", status=409)
    service = Service(error)
    procedure: Procedure[tuple[Any, bool]] = create_or_get(
        "thing", CREATE, find=appearing(service), if_exists="return", memory=TaskState({})
    )
    assert drive(procedure, service.answer) == ("it", False)


def appearing(service: Service) -> Callable[[], Procedure[Any]]:
    """Look up, and find it from the second time on."""

    def find() -> Procedure[Any]:
        found = yield from send_one(GetProject(organization_id="o", project_id=1))
        service.there = True
        return found

    return find


@pytest.mark.parametrize(
    ("answer", "if_missing", "deleted"),
    [
        (None, "fail", True),
        (WorkspaceNotFoundError("404", status=404), "ignore", False),
        (WorkspaceNotFoundError("404", status=404, outcome="unknown"), "fail", True),
    ],
)
def test_a_delete_says_whether_it_deleted(answer: Any, if_missing: str, deleted: bool) -> None:  # noqa: FBT001
    assert drive(delete_if_present("thing", DELETE, if_missing), lambda _: answer) is deleted


@pytest.mark.parametrize("error", [WorkspaceNotFoundError("404", status=404), WorkspaceServerError("500", status=500)])
def test_a_delete_that_fails_is_an_error(error: WorkspaceRequestError) -> None:
    with pytest.raises(type(error)):
        drive(delete_if_present("thing", DELETE, "fail"), lambda _: error)


def test_a_dry_run_ends_before_the_first_write() -> None:
    def procedure() -> Procedure[str]:
        yield Pause(1.0)
        yield from send_one(GetProject(organization_id="o", project_id=1))
        yield from send_one(CREATE, "there is none")
        return "created"

    sent: list[Any] = []
    assert drive(until_first_write(procedure()), sent.append) == Planned(CREATE, "there is none")
    assert [type(operation) for operation in sent] == [GetProject]


def test_a_dry_run_of_what_only_reads_has_its_result() -> None:
    assert drive(until_first_write(send_one(GetProject(organization_id="o", project_id=1))), lambda _: "it") == "it"
