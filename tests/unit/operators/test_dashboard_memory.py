"""Dashboards remembered in Variables, because the interface cannot list them: reused, never mixed up or made twice."""

from __future__ import annotations

import json
import re
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceOutcomeUnknownError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.dashboards import WorkspaceCreateDashboardOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.interruptions import Interruptions
from tests.task_instance import Killed, TaskStore
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

NOTE = "workspace_creating."
FAILED = (AirflowFailException, WorkspaceOutcomeUnknownError)


@pytest.fixture(params=["3.3", "3.2"])
def variables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Variables:
    connect(max_attempts=1)
    return install(monkeypatch, release=request.param)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the waits, and record them."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


@pytest.fixture
def interruptions(monkeypatch: pytest.MonkeyPatch) -> Interruptions:
    return Interruptions(monkeypatch)


def create(task: str = "first", number: int = 1, *, store: Any = None, **arguments: Any) -> tuple[Any, bool | None]:
    """Run a try of a task; return the id of its dashboard, and whether it created it."""
    ti = SimpleNamespace(
        dag_id="dag", run_id="run", task_id=task, map_index=-1, try_number=number, xcom_push=lambda **_: None
    )
    context: Any = {"ti": ti} if store is None else {"ti": ti, "task_state_store": store}
    operator = WorkspaceCreateDashboardOperator(
        **{"task_id": task, "name": "Sales", "variable_key": "sales", **arguments}
    )
    return operator.execute(context)["id"], operator.created


def created(sandbox: SandboxServer) -> int:
    return len(sandbox.effects("create_dashboard"))


def notes(variables: Variables) -> list[str]:
    return [key for key in variables.values if key.startswith(NOTE)]


def value(sandbox: SandboxServer, dashboard_id: int) -> dict[str, Any]:
    where = {"service": sandbox.url, "project_id": "1", "organization_id": SEED.organization_id}
    return {**where, "name": "Sales", "dashboard_id": dashboard_id}


@pytest.mark.usefixtures("waited")
def test_a_dashboard_is_created_once_and_registered(sandbox: SandboxServer, variables: Variables) -> None:
    assert [create(task) for task in ("first", "second", "third")] == [(2, True), (2, False), (2, False)]
    assert json.loads(variables.values["sales"]) == value(sandbox, 2)
    assert not notes(variables)
    with WorkspaceHook() as hook:
        hook.update_dashboard(dashboard_id=2, deleted=True)
    assert create() == (3, True)
    assert created(sandbox) == 2


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_dashboard_that_is_not_found_once_is_not_created_again(
    sandbox: SandboxServer,
    variables: Variables,
    connect: Connect,
    waited: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """This service shows a deleted dashboard as one that it does not find."""
    connect(max_attempts=1, consistency_time=300)
    assert create() == (2, True)
    remembered = dict(variables.values)
    sandbox.inject("status_before", "retrieve_dashboard", status=404, detail="Not found.", times=3)
    waited.clear()
    assert create() == (2, False)
    assert variables.values == remembered
    assert waited == [0.5, 5, 5.5]

    with WorkspaceHook() as hook:
        hook.update_dashboard(dashboard_id=2, deleted=True)
    waited.clear()
    assert create() == (3, True)
    assert 298 < sum(waited) < 310
    assert max(waited) <= 60, "longer ones would begin the task again"
    says = "Dashboard 2, which is remembered as the dashboard 'Sales' in project 1, is deleted, or the service has not"
    assert says in caplog.text
    assert created(sandbox) == 2


@pytest.mark.usefixtures("waited")
def test_a_dashboard_that_a_shadowed_variable_cannot_remember_is_created_once(
    sandbox: SandboxServer, variables: Variables
) -> None:
    """A secrets backend, or AIRFLOW_VAR_SALES, has the value of a dashboard that is deleted."""
    variables.shadows["sales"] = json.dumps(value(sandbox, 99))
    with pytest.raises(AirflowFailException, match=r"note-not-kept.*Dashboard 2 was created, and is not remembered"):
        create()
    for task, number in (("first", 2), ("second", 1), ("third", 1)):
        with pytest.raises(FAILED):
            create(task, number)
    assert created(sandbox) == 1


@pytest.mark.usefixtures("waited")
def test_where_variables_are_read_only_no_dashboard_is_created(sandbox: SandboxServer, variables: Variables) -> None:
    variables.is_read_only = "set"
    for number in (1, 2):
        with pytest.raises(WorkspaceError, match=r"note-not-kept.*Airflow does not write it .RuntimeError"):
            create(number=number)
    assert created(sandbox) == 0


@pytest.mark.usefixtures("waited")
@pytest.mark.parametrize(
    ("connection", "arguments", "difference"),
    [
        ({"host": "localhost"}, {}, "and not 'http://localhost"),
        ({"project_id": 2}, {}, "and not '2'"),
        ({"organization_id": SEED.other_organization_id}, {}, f"and not '{SEED.other_organization_id}'"),
        ({}, {"name": "Costs"}, "and not 'Costs'"),
        ({"organization_id": None}, {}, None),
        ({}, {"name": " Sales "}, None),
        ({}, {"name": None}, None),
    ],
)
@pytest.mark.parametrize("key", ["sales", None])
def test_a_registered_dashboard_of_another_place_or_name_is_an_error(
    sandbox: SandboxServer,
    variables: Variables,
    connect: Connect,
    key: str | None,
    connection: dict[str, Any],
    arguments: dict[str, Any],
    difference: str | None,
) -> None:
    store = TaskStore()
    assert create(store=store, variable_key=key) == (2, True)
    before = dict(variables.values)
    if "host" in connection:
        connection = {"host": sandbox.url.replace("127.0.0.1", "localhost")}
    connect(**connection)
    if difference is None:
        assert create(store=store, variable_key=key, **arguments) == (2, False)
    else:
        cure = r"\[input-invalid\] WorkspaceInputError: An earlier try of this task was about"
        if key:
            cure = r"\[another-dashboard\] WorkspaceInputError: The Airflow Variable '"
        with pytest.raises(AirflowFailException, match=rf"^{cure}.*{difference}"):
            create(store=store, variable_key=key, **arguments)
    assert created(sandbox) == 1
    assert variables.values == before


@pytest.mark.usefixtures("variables", "waited")
def test_a_key_that_airflow_would_cut_or_refuse_is_an_error(sandbox: SandboxServer) -> None:
    for key in ("sales?region=eu", "sales#1", "k\u00f6ln", "s" * 251):
        with pytest.raises(AirflowFailException, match=r"variable_key is '\S+'; expected up to 250 of"):
            create(variable_key=key)
    assert sandbox.requests() == []
    assert create(variable_key="Sales / EU") == (2, True)


def test_what_people_write_into_the_variable_is_checked(sandbox: SandboxServer, variables: Variables) -> None:
    for text in ("1", "[]", "no JSON", "{}", '{"dashboard_id": "#12"}', '{"dashboard_id": true}'):
        variables.values["sales"] = text
        with pytest.raises(
            AirflowFailException, match=r"Airflow Variable 'sales' is not a dashboard\. Put .* there, or delete it"
        ):
            create()
    variables.values["sales"] = '{"project_id": 1, "dashboard_id": 1}'
    assert create(name="Weekly overview") == (1, False)
    spelled = {"project_id": "01", "organization_id": SEED.organization_id.replace("-", ""), "dashboard_id": 1}
    variables.values["sales"] = json.dumps(spelled)
    assert create(name="Weekly overview") == (1, False)
    cure = json.dumps(value(sandbox, 1))
    with pytest.raises(AirflowFailException, match="name 'Weekly overview' and not 'Sales'") as error:
        create()
    assert f"put {cure} there" in str(error.value)
    variables.values["sales"] = cure
    assert create() == (1, False)
    sandbox.inject("proxy_error", "retrieve_dashboard", status=404)
    with pytest.raises(AirflowFailException, match="may be that of a proxy, so the record may still exist"):
        create()
    assert created(sandbox) == 0


@pytest.mark.usefixtures("waited")
def test_the_instructions_after_a_lost_create_work(sandbox: SandboxServer, variables: Variables) -> None:
    sandbox.inject("reset_after", "create_dashboard")
    for task in ("first", "first", "another"):
        with pytest.raises(
            FAILED, match=r"dashboard 'Sales' in project 1 may or may not exist\. Look for it\. If it exists"
        ) as lost:
            create(task)
    assert created(sandbox) == 1
    (note,) = notes(variables)
    told = re.search(r"put its id into the Airflow Variable 'sales' as (.*); if not, delete the Variable '(.*)'\. Then "
                     r"clear this task\.", str(lost.value))  # fmt: skip
    assert told is not None
    assert told[2] == note

    before = dict(variables.values)
    variables.values["sales"] = told[1].replace("123", "2")
    assert create() == (2, False)
    assert not notes(variables)

    variables.values = before
    variables.delete(note)
    assert create() == (3, True)


@pytest.mark.usefixtures("waited")
@pytest.mark.parametrize("key", ["sales", None])
def test_a_create_whose_response_has_no_id_is_not_repeated(
    sandbox: SandboxServer, variables: Variables, key: str | None
) -> None:
    sandbox.inject("say", "create_dashboard", status=201, body={"name": "Sales"})
    store = TaskStore()
    for why in ("The response to CreateDashboard has no id", "was interrupted"):
        with pytest.raises(
            AirflowFailException, match=f"The dashboard 'Sales' in project 1 may or may not exist.*{why}"
        ):
            create(store=store, variable_key=key)
    assert created(sandbox) == 1
    assert len(notes(variables)) == (key is not None)


@pytest.mark.usefixtures("waited")
def test_a_refused_create_forgets_its_note(sandbox: SandboxServer, variables: Variables) -> None:
    for key in ("sales", None):
        store = TaskStore()
        sandbox.inject("status_before", "create_dashboard", status=403)
        with pytest.raises(AirflowFailException, match="403"):
            create(store=store, variable_key=key)
        assert not notes(variables)
        assert create(number=2, store=store, variable_key=key)[1]


@pytest.mark.usefixtures("waited")
@pytest.mark.parametrize(
    ("key", "store", "again", "error"),
    [
        ("sales", True, ("first", 2), "first / -1 try 1 was interrupted"),
        ("sales", True, ("another", 1), "first / -1 try 1 is creating it, or was interrupted"),
        ("sales", False, ("first", 2), "first / -1 try 1 was interrupted"),
        (None, True, ("first", 2), "An earlier try was interrupted"),
        (None, False, ("first", 2), "if not, set if_unknown='create'"),
    ],
)
def test_a_killed_create_is_not_repeated(
    sandbox: SandboxServer,
    variables: Variables,
    interruptions: Interruptions,
    key: str | None,
    again: tuple[str, int],
    error: str,
    *,
    store: bool,
) -> None:
    memory = TaskStore() if store else None
    interruptions.after("POST")
    with pytest.raises(Killed):
        create(store=memory, variable_key=key)
    with pytest.raises(FAILED, match=error) as failed:
        create(*again, store=memory, variable_key=key)
    # What another task creates, a retry of this one may find.
    assert (failed.type is AirflowFailException) == (again[0] == "first")
    assert created(sandbox) == 1
    assert create("third", 3, store=memory, variable_key=key, if_unknown="create") == (3, True)
    assert not notes(variables)


@pytest.mark.usefixtures("waited")
@pytest.mark.parametrize(
    "text", ["", "none", "[]", '["dag / run / first / -1", "1", "sales"]', '{"task": 1}', '{"dashboard_id": null}', "5"]
)
def test_an_edited_note_still_stops_other_creates(
    sandbox: SandboxServer, variables: Variables, interruptions: Interruptions, text: str
) -> None:
    interruptions.after("POST")
    with pytest.raises(Killed):
        create()
    (note,) = notes(variables)
    variables.values[note] = text
    says = f"(?s)The dashboard 'Sales' in project 1 may or may not exist.*'{re.escape(note)}'.*somebody has changed"
    with pytest.raises(FAILED, match=says):
        create("second")
    assert created(sandbox) == 1
    variables.delete(note)
    assert create("second", 2) == (3, True)


@pytest.mark.usefixtures("waited")
def test_only_one_of_two_concurrent_tasks_creates(
    sandbox: SandboxServer, variables: Variables, interruptions: Interruptions
) -> None:
    def run_second() -> None:
        with pytest.raises(WorkspaceOutcomeUnknownError, match="first / -1 try 1 is creating it"):
            create("second")

    interruptions.before("POST", run_second)
    assert create() == (2, True)
    assert create("second", 2) == (2, False)
    assert created(sandbox) == 1
    assert not notes(variables)


@pytest.mark.usefixtures("waited")
def test_of_two_tasks_with_simultaneous_notes_neither_creates(
    sandbox: SandboxServer, variables: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, others = variables.set, list[str]()

    def write_both(name: str, text: str, description: str | None = None) -> None:
        write(name, text, description)
        if name.startswith(NOTE) and not others:  # the other task writes at the same moment
            others.append(f"{name.rpartition('.')[0]}.other")
            write(others[0], text.replace("/ first /", "/ second /"))
        index = json.loads(variables.values.get("workspace_creating", "null"))
        if others and index and others[0] not in index and others[0] in variables.values:
            write("workspace_creating", json.dumps([*index, others[0]]))

    monkeypatch.setattr(variables, "set", write_both)
    with pytest.raises(WorkspaceOutcomeUnknownError, match="/ second / -1 try 1 is creating it"):
        create()
    assert notes(variables) == others
    assert created(sandbox) == 0
    variables.delete(others[0])
    assert create() == (2, True)


@pytest.mark.usefixtures("waited")
def test_a_variable_changed_during_the_create_is_an_error_with_both_ids(
    sandbox: SandboxServer, variables: Variables, interruptions: Interruptions
) -> None:
    def change() -> None:
        variables.values["sales"] = json.dumps(value(sandbox, 77))

    interruptions.after("POST", change)
    with pytest.raises(AirflowFailException, match=r"There are two dashboards now: this task created 2 .* 77"):
        create()
    assert created(sandbox) == 1
