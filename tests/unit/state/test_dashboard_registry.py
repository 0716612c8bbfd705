"""Dashboards registered in Variables: reused, never mixed up, never created twice."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_workspace.api.models import Dashboard
from airflow_provider_workspace.api.operations import CreateDashboard, GetDashboard
from airflow_provider_workspace.api.procedure import Pause, Procedure
from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceDuplicateError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.state import lease_store
from airflow_provider_workspace.state.dashboard_registry import PREFIX, DashboardIdentity, DashboardRegistry
from airflow_provider_workspace.state.task_state import TaskState
from tests.variables import Variables, install

SALES = DashboardIdentity("https://a.example.com", "1", "org", "Sales")
REMEMBERED = {"service": "https://a.example.com", "project_id": "1", "organization_id": "org", "name": "Sales"}


class Service:
    """The dashboards of a service; after ``lost`` a create returns no response."""

    def __init__(self) -> None:
        self.dashboards: dict[int, Dashboard] = {}
        self.answer_with: Any = None

    def answer(self, operation: Any) -> Any:
        if isinstance(operation, GetDashboard):
            found = self.dashboards.get(int(operation.dashboard_id))
            gone = WorkspaceNotFoundError("404", status=404)
            gone.from_service = True
            return found or gone
        if isinstance(self.answer_with, WorkspaceBadRequestError):
            return self.answer_with
        made = Dashboard(id=len(self.dashboards) + 1, name=operation.name)
        assert made.id is not None
        self.dashboards[made.id] = made
        return self.answer_with or made


class Task:
    """A task that creates a dashboard step by step; it continues only when told to."""

    def __init__(
        self,
        service: Service,
        owner: str = "task",
        number: int = 1,
        *,
        key: str | None = "sales",
        identity: DashboardIdentity = SALES,
        if_unknown: str = "fail",
        state: TaskState | None = None,
    ) -> None:
        self.service = service
        registry = DashboardRegistry(key, identity, state or TaskState({}), (owner, number))
        create = CreateDashboard(project_id=identity.project_id, name=identity.name)
        self.procedure: Procedure[tuple[Dashboard, bool]] = registry.get_or_create(create, if_unknown)
        self.step: Any = next(self.procedure)
        self.waited = 0.0

    def send(self) -> Any:
        """Send the current request and return the response, without passing it to the task."""
        return self.service.answer(self.step.operations[0])

    def take(self, answer: Any) -> None:
        self.step = self.procedure.send([answer])

    def go_on(self) -> tuple[Dashboard, bool]:
        """Run to the end."""
        try:
            while True:
                if isinstance(self.step, Pause):
                    self.waited += self.step.seconds
                    self.step = self.procedure.send([])
                else:
                    self.take(self.send())
        except StopIteration as stop:
            result: tuple[Dashboard, bool] = stop.value
            return result


@pytest.fixture(params=["3.3", "3.2"])
def variables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Variables:
    monkeypatch.setattr(lease_store, "SECONDS_BETWEEN_CHECKS", 0.0)
    return install(monkeypatch, release=request.param)


@pytest.fixture
def service() -> Service:
    return Service()


def notes(variables: Variables) -> list[str]:
    return [key for key in variables.values if key.startswith(PREFIX)]


def test_a_dashboard_is_created_once_and_registered(service: Service, variables: Variables) -> None:
    assert [Task(service, f"task {number}").go_on()[1] for number in range(3)] == [True, False, False]
    assert json.loads(variables.values["sales"]) == {**REMEMBERED, "dashboard_id": 1}
    assert not notes(variables)


@pytest.mark.usefixtures("variables")
def test_a_dashboard_that_was_deleted_is_created_again(service: Service) -> None:
    Task(service).go_on()
    service.dashboards[1].deleted = True
    assert Task(service).go_on() == (service.dashboards[2], True)


@pytest.mark.parametrize("key", ["sales", None])
def test_a_create_whose_response_has_no_id_is_not_repeated(
    service: Service, variables: Variables, key: str | None
) -> None:
    service.answer_with = Dashboard(name="Sales")
    with pytest.raises(
        WorkspaceOutcomeUnknownError, match=r"^Look for .* The response to CreateDashboard has no id\.$"
    ):
        Task(service, key=key).go_on()
    assert len(service.dashboards) == 1
    assert len(notes(variables)) == (key is not None)


@pytest.mark.usefixtures("variables")
def test_a_404_of_a_proxy_is_an_error(service: Service) -> None:
    Task(service).go_on()
    task = Task(service)
    with pytest.raises(WorkspaceNotFoundError, match=r"^Check the host of the connection"):
        task.take(WorkspaceNotFoundError("404", status=404))
    assert len(service.dashboards) == 1


@pytest.mark.parametrize(
    "other",
    [
        DashboardIdentity("https://b.example.com", "1", "org", "Sales"),
        DashboardIdentity("https://a.example.com", "2", "org", "Sales"),
        DashboardIdentity("https://a.example.com", "1", "another", "Sales"),
        DashboardIdentity("https://a.example.com", "1", "org", "Costs"),
    ],
)
@pytest.mark.parametrize("key", ["sales", None])
def test_a_registered_dashboard_from_elsewhere_is_an_error(
    service: Service, variables: Variables, key: str | None, other: DashboardIdentity
) -> None:
    state = TaskState({})
    Task(service, key=key, state=state).go_on()
    before = dict(variables.values)
    with pytest.raises(WorkspaceInputError, match=f"and not '{'Costs|another|2|https://b'}") as caught:
        Task(service, key=key, identity=other, state=state).go_on()
    assert str(caught.value).startswith("Use another variable_key" if key else "Set the connection")
    assert len(service.dashboards) == 1
    assert variables.values == before


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize(
    "same",
    [
        DashboardIdentity("https://a.example.com", "1", None, "Sales"),
        DashboardIdentity("https://a.example.com", "1", "org", " Sales "),
        DashboardIdentity("https://a.example.com", "1", "org", None),
    ],
)
def test_unknown_parts_and_equivalent_names_are_no_difference(service: Service, same: DashboardIdentity) -> None:
    Task(service).go_on()
    assert not Task(service, identity=same).go_on()[1]


def test_ids_written_by_people_are_checked_by_name(service: Service, variables: Variables) -> None:
    service.dashboards[1] = Dashboard(id=1, name="Sales")
    variables.values["sales"] = '{"project_id": 1, "dashboard_id": 1}'
    assert Task(service).go_on() == (service.dashboards[1], False)
    service.dashboards[1] = Dashboard(id=1, name="Costs")
    cure = json.dumps({**REMEMBERED, "dashboard_id": 1})
    with pytest.raises(WorkspaceInputError, match="name 'Costs' and not 'Sales'") as caught:
        Task(service).go_on()
    assert f"put {cure} into the Airflow Variable 'sales'" in str(caught.value)
    variables.values["sales"] = cure
    assert Task(service).go_on() == (service.dashboards[1], False)


@pytest.mark.parametrize("value", ["1", "[]", "no JSON", "{}"])
def test_a_variable_with_another_value_is_an_error(service: Service, variables: Variables, value: str) -> None:
    variables.values["sales"] = value
    with pytest.raises(WorkspaceInputError, match=r"^Put .* into the Airflow Variable 'sales', or delete it"):
        Task(service).go_on()


def lost() -> WorkspaceOutcomeUnknownError:
    return WorkspaceOutcomeUnknownError("The answer was lost.", operation="CreateDashboard", retryable=False)


def test_the_instructions_after_a_lost_create_work(service: Service, variables: Variables) -> None:
    service.answer_with = lost()
    for _ in range(2):  # the try itself, and a later one
        with pytest.raises(WorkspaceOutcomeUnknownError) as caught:
            Task(service).go_on()
        assert str(caught.value).startswith("Look for dashboard 'Sales' in project 1. If it exists, put its id into")
        assert caught.value.permanent
    assert len(service.dashboards) == 1
    (note,) = notes(variables)
    assert f"if not, delete the Variable '{note}'. Then clear this task." in str(caught.value)

    before = dict(variables.values)
    variables.values["sales"] = json.dumps({**REMEMBERED, "dashboard_id": 1})
    assert Task(service).go_on() == (service.dashboards[1], False)
    assert not notes(variables)

    variables.values = before
    service.answer_with = None
    variables.delete(note)
    assert Task(service).go_on() == (service.dashboards[2], True)


def test_a_refused_create_deletes_its_note(service: Service, variables: Variables) -> None:
    service.answer_with = WorkspaceBadRequestError("400", status=400)
    for key in ("sales", None):
        state = TaskState({})
        with pytest.raises(WorkspaceBadRequestError):
            Task(service, key=key, state=state).go_on()
        assert not notes(variables)
        assert state.read() is None


def test_a_retry_after_a_killed_create_is_an_error(service: Service, variables: Variables) -> None:
    killed = Task(service)
    killed.send()
    retry = pytest.raises(WorkspaceOutcomeUnknownError, match=r"task try 1 was interrupted: the dashboard may exist\.$")
    with retry:
        Task(service, number=2)
    assert len(notes(variables)) == 1
    task = Task(service, number=3, if_unknown="create")
    assert task.go_on() == (service.dashboards[2], True)
    assert not notes(variables)


@pytest.mark.usefixtures("variables")
def test_waiting_for_another_task_times_out(service: Service) -> None:
    killed = Task(service, "another")
    killed.send()
    waiting = Task(service)
    with pytest.raises(WorkspaceOutcomeUnknownError, match="another try 1 was interrupted: the dashboard may exist"):
        waiting.go_on()
    assert 30 < waiting.waited < 120
    assert Task(service, if_unknown="create").go_on()[1]


def test_only_one_of_two_concurrent_tasks_creates(service: Service, variables: Variables) -> None:
    first, second = Task(service, "first"), Task(service, "second")
    assert isinstance(second.step, Pause)
    assert len(notes(variables)) == 1
    made = first.go_on()
    assert second.go_on() == (made[0], False)
    assert len(service.dashboards) == 1
    assert not notes(variables)


def test_simultaneous_notes_let_neither_task_create_first(service: Service, variables: Variables) -> None:
    (key,) = (note for note in notes_of(service, variables, "second"))
    add, variables_set = [key], variables.set

    def set_both(name: str, value: str, description: str | None = None) -> None:
        variables_set(name, value, description)
        if name.startswith(PREFIX) and add:  # the other task writes at the same moment
            variables_set(add.pop(), '["second", "1", "sales"]', "x")
            if not hasattr(variables, "keys"):
                index = json.loads(variables.values.get("workspace_creating", "[]"))
                variables_set("workspace_creating", json.dumps([*index, key]), "x")

    variables.set = set_both  # type: ignore[method-assign]
    first = Task(service, "first")
    assert isinstance(first.step, Pause)
    variables.delete(key)
    assert first.go_on()[1]


def notes_of(service: Service, variables: Variables, owner: str) -> list[str]:
    """Return the notes that a task with this name writes."""
    task = Task(service, owner)
    found = notes(variables)
    task.procedure.close()
    variables.values.clear()
    return found


def test_a_variable_changed_during_the_create_is_an_error_with_both_ids(service: Service, variables: Variables) -> None:
    task = Task(service)
    answer = task.send()
    variables.values["sales"] = json.dumps({**REMEMBERED, "dashboard_id": 77})
    with pytest.raises(WorkspaceDuplicateError, match=r"this task created 1 .* 77") as caught:
        task.take(answer)
    assert caught.value.permanent


def test_a_retry_without_task_state_and_variable_key_is_an_error(service: Service) -> None:
    state = TaskState({"ti": SimpleNamespace(try_number=2)})
    with pytest.raises(WorkspaceOutcomeUnknownError, match="if not, set if_unknown='create'"):
        Task(service, key=None, state=state)
    assert Task(service, key=None, state=state, if_unknown="create").go_on()[1]
