"""``create_or_get`` against a service in memory that loses responses or refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_workspace.api.models import Page, ProjectItem
from airflow_provider_workspace.api.operations import (
    CreateProject,
    GetProject,
    ListProjects,
)
from airflow_provider_workspace.api.procedure import Pause, Procedure, leave_at_long_pause, send_one
from airflow_provider_workspace.api.retry import MAX_SENDS
from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceDuplicateError,
    WorkspaceInputError,
    WorkspaceNotAppliedError,
    WorkspaceOutcomeUnknownError,
    WorkspaceRequestError,
)
from airflow_provider_workspace.procedures.create_or_get import (
    check_created,
    create_or_get,
)
from airflow_provider_workspace.procedures.dry_run import Planned, check_writes, until_first_write
from airflow_provider_workspace.state.task_state import TaskState
from tests.task_instance import TaskStore
from tests.unit.procedures.drive import Interrupted, drive, interrupt

CREATE = CreateProject(organization_id="o", name="thing")


class Record(str):
    """A record with an id."""

    __slots__ = ()
    id = 1
    label = None


IT = Record("it")
CONSISTENCY_TIME = 120.0
PAUSES = [0.5, 5.0, 5.5, 11.0, 22.0, 44.0, 32.0]


class Clock(list[float]):
    """The pauses of a procedure, and a clock that they advance."""

    began = 1000.0

    def __call__(self) -> float:
        return self.began + sum(self)


class Service:
    """
    Answers creates and look-ups.

    :param creates: the outcome of each create: an error, or ``lost`` (applied without a response)
    :param shown_after: seconds after a create until look-ups find its record
    """

    def __init__(self, *creates: Any, shown_after: float = 0.0, there: bool = False) -> None:
        self.creates = list(creates)
        self.shown_after = shown_after
        self.clock = Clock()
        self.shown_from = [0.0] if there else []
        self.sent = 0

    def answer(self, operation: Any) -> Any:
        if isinstance(operation, GetProject):
            return IT if any(time <= self.clock() for time in self.shown_from) else None
        self.sent += 1
        result = self.creates.pop(0) if self.creates else IT
        if result in (IT, "lost", "without id"):
            self.shown_from.append(self.clock() + self.shown_after)
        return lost() if result == "lost" else result


def lost() -> WorkspaceOutcomeUnknownError:
    return WorkspaceOutcomeUnknownError("The answer was lost.", operation="CreateProject", retryable=False)


def create(
    service: Service,
    if_exists: str = "return",
    context: dict[str, Any] | None = None,
    carried: dict[str, Any] | None = None,
    longest: float = 1e9,
) -> tuple[Any, bool]:
    procedure: Procedure[tuple[Any, bool]] = create_or_get(
        "thing",
        CREATE,
        find=lambda: send_one(GetProject(organization_id="o", project_id=1)),
        if_exists=if_exists,
        memory=TaskState(context or {}, carried, clock=service.clock),
        consistency_time=CONSISTENCY_TIME,
    )
    return drive(leave_at_long_pause(procedure, longest, interrupt), service.answer, service.clock)


def test_a_missing_record_is_created_once() -> None:
    service = Service()
    assert create(service) == ("it", True)
    assert create(service) == ("it", False)
    assert service.sent == 1


def test_an_existing_record_can_be_an_error() -> None:
    with pytest.raises(WorkspaceInputError, match="already"):
        create(Service(there=True), if_exists="fail")


@pytest.mark.parametrize(
    ("shown_after", "pauses"),
    [(0, [0.5]), (5, [0.5, 5.0]), (10, [0.5, 5.0, 5.5]), (20, [0.5, 5.0, 5.5, 11.0]), (120, PAUSES)],
)
def test_a_create_with_a_lost_response_is_looked_up(shown_after: float, pauses: list[float]) -> None:
    service = Service("lost", shown_after=shown_after)
    assert create(service) == ("it", True)
    assert service.sent == 1
    assert service.clock == pauses


def test_a_lost_create_is_sent_again_after_the_consistency_time() -> None:
    service = Service(lost())
    assert create(service) == ("it", True)
    assert service.sent == 2
    assert sum(service.clock) == CONSISTENCY_TIME


@pytest.mark.parametrize("killed_for", [0.0, 3.0, 50.0, 119.0])
@pytest.mark.parametrize("shown_after", [0.0, 8.0, 20.0, 119.9])
def test_a_retry_after_a_kill_looks_the_create_up(killed_for: float, shown_after: float) -> None:
    service, context = Service("it", shown_after=shown_after), {"task_state_store": TaskStore()}
    TaskState(context, clock=service.clock).begin("thing")
    service.answer(CREATE)
    service.clock.append(killed_for)
    assert create(service, "fail", context) == ("it", True)
    assert service.sent == 1
    assert sum(service.clock) <= CONSISTENCY_TIME


def test_a_retry_creates_again_after_the_consistency_time() -> None:
    service, context = Service(), {"task_state_store": TaskStore()}
    TaskState(context, clock=service.clock).begin("thing")
    service.clock.append(100.0)
    assert create(service, context=context) == ("it", True)
    assert service.sent == 1
    assert sum(service.clock) == CONSISTENCY_TIME


def test_a_late_retry_does_not_wait() -> None:
    service, context = Service(), {"task_state_store": TaskStore()}
    TaskState(context, clock=service.clock).begin("thing")
    service.clock.append(200.0)
    assert create(service, context=context) == ("it", True)
    assert service.clock == [200.0]


def test_a_retry_without_a_store_waits_for_the_whole_consistency_time() -> None:
    service = Service("it", shown_after=100.0)
    service.answer(CREATE)
    retry = type("Retry", (), {"try_number": 2})()
    assert create(service, context={"ti": retry}) == ("it", False)
    assert service.sent == 1


@pytest.mark.parametrize("context", [{}, {"task_state_store": TaskStore()}], ids=["carried", "stored"])
@pytest.mark.parametrize("shown_after", [0.0, 8.0, 30.0, 100.0])
def test_long_pauses_that_defer_cause_no_second_create(context: dict[str, Any], shown_after: float) -> None:
    context, carried = {key: TaskStore() for key in context}, dict[str, Any]()
    service = Service("lost", shown_after=shown_after)
    for _ in range(20):
        try:
            assert create(service, context=context, carried=carried, longest=7.0) == ("it", True)
            break
        except Interrupted as left:
            carried = json.loads(json.dumps(carried))
            service.clock.append(left.args[0])
    assert service.sent == 1
    assert sum(service.clock) <= CONSISTENCY_TIME


@pytest.mark.parametrize("longest", [1e9, 7.0])
def test_a_create_that_is_always_lost_ends_with_an_error(longest: float) -> None:
    service, carried = Service(*[lost() for _ in range(20)]), dict[str, Any]()
    left: BaseException = Interrupted()
    while isinstance(left, Interrupted):
        with pytest.raises((Interrupted, WorkspaceOutcomeUnknownError), match=r"\d|sent 5 times") as caught:
            create(service, carried=carried, longest=longest)
        left = caught.value
        service.clock.extend(left.args if isinstance(left, Interrupted) else [])
    assert isinstance(left, WorkspaceOutcomeUnknownError)
    assert not left.permanent
    assert service.sent == MAX_SENDS


def test_a_refused_create_ends_with_its_error() -> None:
    with pytest.raises(WorkspaceBadRequestError):
        create(Service(WorkspaceBadRequestError("400", status=400)))


def test_a_create_whose_response_has_no_id_is_looked_up() -> None:
    service = Service("without id", shown_after=8.0)
    assert create(service) == ("it", True)
    assert service.sent == 1
    service = Service("without id", shown_after=CONSISTENCY_TIME + 1)
    with pytest.raises(WorkspaceNotAppliedError, match="says that the thing was created, but did not"):
        create(service)
    assert service.sent == 1


@pytest.mark.parametrize(
    "error",
    [WorkspaceBadRequestError("400", status=400, code="unique"), WorkspaceRequestError("409", outcome="rejected")],
)
def test_a_record_created_concurrently_is_reused(error: WorkspaceRequestError) -> None:
    if not hasattr(error, "status"):
        error = WorkspaceBadRequestError("409", status=409)
    service = Service(error)
    service.shown_from = [service.clock() + 3]
    assert create(service) == ("it", False)
    service = Service(error)
    service.shown_from = [service.clock() + 3]
    with pytest.raises(type(error)):
        create(service, if_exists="fail")


def test_a_taken_name_without_a_visible_record_is_an_error() -> None:
    service = Service(WorkspaceBadRequestError("400", status=400, code="unique"))
    with pytest.raises(WorkspaceBadRequestError):
        create(service)
    assert sum(service.clock) < 10


def test_a_late_record_with_a_unique_name_is_found() -> None:
    service = Service("lost", WorkspaceBadRequestError("400", status=400, code="unique"), shown_after=122.0)
    assert create(service, if_exists="fail") == ("it", True)


def test_a_dry_run_ends_before_the_first_write() -> None:
    def procedure() -> Procedure[str]:
        yield Pause(1.0)
        yield from send_one(GetProject(organization_id="o", project_id=1))
        yield from send_one(CREATE, "there is none")
        return "created"

    sent: list[Any] = []
    assert drive(until_first_write(procedure()), sent.append) == Planned(CREATE, "there is none")
    assert [type(operation) for operation in sent] == [GetProject]


def test_a_dry_run_without_writes_returns_the_result() -> None:
    assert drive(until_first_write(send_one(GetProject(organization_id="o", project_id=1))), lambda _: "it") == "it"


def test_each_write_is_checked_before_it_is_sent() -> None:
    def procedure() -> Procedure[str]:
        yield Pause(1.0)
        yield from send_one(GetProject(organization_id="o", project_id=1))
        yield from send_one(CREATE, "there is none")
        return "created"

    events: list[Any] = []
    result = drive(check_writes(procedure(), events.append), lambda operation: events.append(type(operation)))
    assert result == "created"
    assert events == [GetProject, Planned(CREATE, "there is none"), type(CREATE)]


ORGANIZATION_PROJECTS = ListProjects(organization_id="o")


def check(record_id: int | None, *rows: tuple[int | None, str], count: int | None = None) -> None:
    def answer(_: Any) -> Page[ProjectItem]:
        return Page[ProjectItem](count=count, results=[ProjectItem(id=number, name=name) for number, name in rows])

    drive(check_created("project 'A'", record_id, ORGANIZATION_PROJECTS, lambda row: row.name == "A"), answer)


def test_a_single_record_of_a_name_passes_the_check() -> None:
    check(1, (1, "A"), (2, "B"))
    check(None, (1, "A"))


@pytest.mark.parametrize("rows", [[(1, "A"), (2, "A")], [(2, "A")]])
def test_a_second_record_of_the_name_is_an_error_with_both_ids(rows: list[Any]) -> None:
    with pytest.raises(WorkspaceDuplicateError, match="1, 2; this task created 1") as caught:
        check(1, *rows)
    assert caught.value.permanent


def test_a_list_without_the_new_record_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    check(1, (2, "B"))
    assert "another task may have created one too" in caplog.text


def test_an_incomplete_list_after_a_create_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    check(1, (1, "A"), count=2)
    assert "A short list cannot show whether another task created the project 'A' too" in caplog.text


def test_a_record_that_look_ups_cannot_find_is_an_error() -> None:
    with pytest.raises(WorkspaceNotAppliedError, match="Set name='A cut'") as caught:
        check(1, (1, "A cut"))
    assert caught.value.permanent
