"""What tasks put into Airflow's database fits into its columns on PostgreSQL and MySQL, whose limits SQLite ignores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.models import crypto
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.models.variable import Variable
from airflow.sdk.execution_time import task_runner
from cryptography.fernet import Fernet
from sqlalchemy.dialects import mysql

from airflow_provider_workspace.api import database_limits
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.notes.database_store import DatabaseStore
from airflow_provider_workspace.notes.store import VariableStore
from airflow_provider_workspace.operators.base import WorkspaceWriteOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.sensors.workspace import (
    WorkspaceMembersJoinedSensor,
    WorkspaceProjectReceivingEventsSensor,
)
from airflow_provider_workspace.version_compat import TaskDeferred
from tests import task_instance
from tests.audit import say
from tests.variables import install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("no_waits")

# How many bytes MySQL stores, by the type that Airflow gives a column there.
MYSQL_BYTES = {"TEXT": 65_535, "MEDIUMTEXT": 16_777_215}
FOUR_BYTES = "\U0001f600"


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect(max_attempts=1, consistency_time=0)


@pytest.fixture
def fernet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let Airflow encrypt, as it does in production."""
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", Fernet.generate_key().decode())
    forget_fernet()
    yield
    monkeypatch.undo()
    forget_fernet()


def forget_fernet() -> None:
    """Let Airflow read its key anew."""
    airflow_crypto: Any = crypto
    if hasattr(airflow_crypto, "_fernet"):  # before 3.2
        airflow_crypto._fernet = None
    else:
        airflow_crypto.get_fernet.cache_clear()


def mysql_bytes(model: Any, column: str) -> int:
    """Return how many bytes a column of Airflow stores on MySQL."""
    return MYSQL_BYTES[model.__table__.c[column].type.compile(dialect=mysql.dialect())]


def test_the_limits_are_those_of_the_columns_of_airflow() -> None:
    variables: Any = Variable
    tasks: Any = TaskInstance
    for column in (variables.__table__.c.key, tasks.__table__.c.rendered_map_index, tasks.__table__.c.task_id):
        assert column.type.length == database_limits.MAX_ID
    assert mysql_bytes(HITLDetail, "subject") == database_limits.MAX_TEXT_BYTES
    assert mysql_bytes(HITLDetail, "body") == database_limits.MAX_TEXT_BYTES
    assert mysql_bytes(Trigger, "kwargs") == database_limits.MAX_TEXT_BYTES
    assert mysql_bytes(Variable, "val") == database_limits.MAX_MEDIUMTEXT_BYTES


@pytest.mark.parametrize("char", ["\0", "\ud800"], ids=["NUL", "surrogate"])
def test_no_xcom_of_an_invalid_row_has_what_postgresql_refuses(char: str) -> None:
    ti = task_instance.TaskInstance()
    rows = [{"email": f"ivo{char}@example.com"}, {"email": "ada@example.com", "first_name": f"A{char}"}]
    task = WorkspaceCreateInvitesOperator(task_id="invite", invites=rows, on_invalid="skip")
    result = task.execute({"ti": ti})  # type: ignore[typeddict-item]
    assert ti.xcoms["progress"]["needs_person"]
    with WorkspaceHook() as hook:
        report = hook.create_invites(rows, on_invalid="skip").serialize()
    for value in (result, report, *ti.xcoms.values()):
        text = json.dumps(value)
        assert "\\u0000" not in text
        assert "\\ud800" not in text


def test_no_xcom_of_the_service_has_what_postgresql_refuses(sandbox: SandboxServer) -> None:
    say(sandbox, "list_projects", {"id": 7, "name": "Shop\0", "ingested_event": True})
    sensor = WorkspaceProjectReceivingEventsSensor(task_id="events", project_id="7")
    assert sensor.poke({}).xcom_value == {"project_id": "7", "name": "Shop?"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("n" * 70_000, id="long", marks=pytest.mark.slow),
        pytest.param(FOUR_BYTES * 20_000, id="four bytes"),
        pytest.param("€" * 30_000, id="three", marks=pytest.mark.slow),
        pytest.param("north", id="short"),
    ],
)
def test_the_question_about_an_organization_fits(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    question = task_instance.Question(refreshes=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    install(monkeypatch)
    file = {"projects": [{"name": f"{FOUR_BYTES * 40} {number}"} for number in range(450)]}
    operator = WorkspacePlanOrganizationOperator(
        task_id="plan", file={"organizations": {name: file}}, organization=name, require_approval=True
    )
    task_instance.Task(question).ask(operator)
    asked = question.now
    for column, text in (("subject", asked.subject), ("body", asked.body)):
        assert len(text.encode()) <= mysql_bytes(HITLDetail, column)
    assert asked.subject.endswith("…") == (len(name) > 10)
    assert "**Approve** sends what is in this plan" in asked.body


def wait_for(count: int) -> Any:
    sensor = WorkspaceMembersJoinedSensor(
        task_id="joined", emails=[f"{number:030d}@example.com" for number in range(count)], deferrable=True
    )
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    return deferred.value.trigger.serialize()[1]


@pytest.mark.usefixtures("fernet")
@pytest.mark.parametrize("count", [1, 500, 1_000, 1_050, 1_500])
def test_a_wait_whose_arguments_mysql_cannot_store_says_so(capsys: pytest.CaptureFixture[str], count: int) -> None:
    """Measured as Airflow stores them; the limit is between 1,000 and 1,500 of these."""
    kwargs = wait_for(count)
    stored = len(Trigger.encrypt_kwargs(kwargs))
    assert 0 <= database_limits.trigger_size(kwargs) - stored < 100
    assert ("set deferrable=False and mode='reschedule'" in capsys.readouterr().out) == (
        stored > mysql_bytes(Trigger, "kwargs")
    )


class Keeping(WorkspaceWriteOperator):
    """A task that waits for an hour once, and then returns what it has kept."""

    resource_kind = "members"

    def write(self, hook: WorkspaceHook) -> Any:
        if not self._carried:
            refused = {f"{number}@example.com": "no\0" for number in range(self.params["count"])}
            self._carried["refused"] = refused
            hook.client.pause(3600)
        return dict(self._carried)


@pytest.mark.usefixtures("fernet")
@pytest.mark.parametrize("count", [1, 2_000])
def test_a_task_that_keeps_much_defers_with_a_short_trigger(count: int) -> None:
    """As a bulk invite does whose service refused many rows before it has to wait."""
    task = Keeping(task_id="keeping", params={"count": count})
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    left = deferred.value
    _, arguments = left.trigger.serialize()
    assert len(Trigger.encrypt_kwargs(arguments)) <= mysql_bytes(Trigger, "kwargs")
    assert "\\u0000" not in json.dumps([arguments, left.kwargs])
    resumed = Keeping(task_id="keeping")
    event = {"status": "over", "state": arguments["state"]}
    result = getattr(resumed, left.method_name)(context={}, event=event, **left.kwargs or {})
    assert result["refused"] == {f"{number}@example.com": "no?" for number in range(count)}


@pytest.mark.parametrize(
    ("key", "size", "message"),
    [
        ("k" * 251, 1, "has 251 characters, and Airflow stores 250"),
        ("k", 12_700_000, "16,933,432 bytes when encrypted, and MySQL stores 16,777,215"),
    ],
)
@pytest.mark.parametrize("store", [VariableStore("", "index", "about"), DatabaseStore("")], ids=["task", "command"])
def test_a_variable_that_cannot_be_stored_is_refused(
    monkeypatch: pytest.MonkeyPatch, store: Any, key: str, size: int, message: str
) -> None:
    """Before the effect that it would note: notes are written first."""
    variables = install(monkeypatch)
    monkeypatch.setattr("airflow_provider_workspace.notes.database_store.Variable", variables)
    with pytest.raises(WorkspaceInputError, match=message):
        store.add(key, "x" * size)
    assert variables.values == {}
    store.add("k" * 250, FOUR_BYTES * 1_000)
    assert list(variables.values) == ["k" * 250]


@pytest.mark.usefixtures("fernet")
def test_a_variable_is_measured_as_airflow_encrypts_it() -> None:
    for size in (0, 1, 15, 16, 17, 31, 1_000):
        variable = Variable(key="k", val="x" * size)  # type: ignore[no-untyped-call]
        assert variable.is_encrypted
        assert database_limits.encrypted_size(size) == len(variable._val)


@pytest.mark.parametrize("other", ["Sales", "sales ", "SALES"])
def test_variable_keys_that_mysql_takes_for_one_are_refused(other: str) -> None:
    dashboards = [{"name": "a", "variable_key": "sales"}, {"name": "b", "variable_key": other}]
    file = {"projects": [{"name": "p", "dashboards": dashboards}]}
    task = WorkspacePlanOrganizationOperator(task_id="plan", file=file)
    context: Any = {"ti": SimpleNamespace(try_number=1, xcom_push=lambda **_: None)}
    with pytest.raises(Exception, match="variable_key, without regard to case: sales is repeated"):
        task.execute(context)
