"""Endpoints of an author's own, sent by the operator: what it returns, sends, refuses and remembers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.send import WorkspaceSendOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, writes
from tests.endpoints import (
    AddProject,
    ListBatchExports,
    ListExportsByCursor,
    ListFewExports,
    ReadInvite,
    ReadProject,
    RemoveInvite,
    WithdrawInvite,
)
from tests.interruptions import Interruptions
from tests.raw_server import RawServer, answer
from tests.task_instance import Killed, TaskInstance, TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)
EXPORTS = [{"id": each, "paused": False} for each in SEED.batch_export_ids]
NEW = {"name": "Sales", "timezone": "UTC", "slack_incoming_webhook": "https://hooks.example.com/secret-of-sales"}


@pytest.fixture(autouse=True)
def connected(sandbox: SandboxServer, connect: Connect) -> None:
    assert sandbox.effects() == []
    connect(page_size=1, max_attempts=2, read_timeout=1)


def send(operation: Any, arguments: Any = None, context: Any = None, **others: Any) -> Any:
    task = WorkspaceSendOperator(task_id="send", operation=operation, arguments=arguments, **others)
    return task.execute(context or {})


@pytest.mark.parametrize(
    ("operation", "arguments", "others", "result"),
    [
        (ListBatchExports, None, {"fields": ["id", "paused"]}, EXPORTS),
        ("tests.endpoints.ListBatchExports", {"limit": "2"}, {"fields": ["id", "paused"]}, EXPORTS),
        (ListBatchExports, {}, {"where": {"paused": True}}, []),
        (ListExportsByCursor, {"limit": 1}, {"fields": ["id", "paused"]}, EXPORTS),
        (ListBatchExports, {"offset": 1}, {"count_only": True}, len(EXPORTS) - 1),
        (ReadProject, {"id": "1"}, {"return_secrets": False}, None),
        (RemoveInvite, {"id": SEED.invite_id}, {}, {"deleted": True}),
        (RemoveInvite, {"id": SEED.absent_uuid}, {}, {"deleted": False}),
        ("tests.endpoints.AddProject", NEW, {"set_null": ["timezone"], "dry_run": "true"}, None),
    ],
)
def test_the_result_is_that_of_other_operators(operation: Any, arguments: Any, others: Any, result: Any) -> None:
    found = send(operation, arguments, **others)
    if operation is ReadProject:
        assert found["name"] == "Default project"
        assert "api_token" not in found
        assert send(operation, arguments, return_secrets=True)["api_token"]
    elif "dry_run" in others:
        request = f"POST /api/organizations/{SEED.organization_id}/projects/"
        assert (found["action"], found["request"]) == ("create", request)
        assert found["fields"] == {"name": "Sales", "timezone": None}
    else:
        assert found == result


def test_a_create_is_sent_once_and_its_secrets_are_masked(
    sandbox: SandboxServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow_provider_workspace.hooks.workspace.mask_secret", masked.append)
    ti = TaskInstance()
    project = send(AddProject, NEW, {"ti": ti, "task_state_store": TaskStore()})
    assert project.items() >= {"name": "Sales", "zone": "UTC"}.items()
    assert ti.xcoms == {"id": project["id"], "created": True}
    assert "api_token" not in project
    token = send(ReadProject, {"id": project["id"]}, return_secrets=True)["api_token"]
    assert {NEW["slack_incoming_webhook"], token} <= {*masked}
    assert "secret-of-sales" not in capsys.readouterr().out
    assert effects(sandbox) == ["create_project"]


@pytest.mark.parametrize("fault", ["kill", "reset_after"])
@pytest.mark.parametrize(
    ("operation", "arguments", "name", "look_for"),
    [
        (AddProject, NEW, "create_project", "Look for the project before you create it again"),
        (WithdrawInvite, {"access_token": SEED.invite_id}, "delete_invite", "Look for the invite before you delete it"),
    ],
)
def test_what_is_not_repeatable_is_not_sent_again_without_an_answer(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, fault: str, operation: Any, arguments: Any, name: str,
    look_for: str,
) -> None:  # fmt: skip
    """Until somebody has looked, and cleared the task."""
    said = rf"^\[outcome-unknown\] WorkspaceOutcomeUnknownError: \w+ may or may not have been applied.*{look_for}"
    ti, store = TaskInstance(), TaskStore()
    context = {"ti": ti, "task_state_store": store}
    if fault == "kill":
        Interruptions(monkeypatch).after("/api/")
        with pytest.raises(Killed):
            send(operation, arguments, context)
    else:
        sandbox.inject(fault, operation=name)
        with pytest.raises(AirflowFailException, match=said):
            send(operation, arguments, context)
    ti.try_number = 2
    with pytest.raises(AirflowFailException, match=f"{said}.*To send it again, clear this task"):
        send(operation, arguments, context)
    assert len(writes(sandbox)) == 1
    assert effects(sandbox) == [name]
    ti.max_tries = 5  # type: ignore[attr-defined]
    send(operation, arguments, context)
    assert len(writes(sandbox)) == 2


SECRET = "phs_a secret/of 26 letters"


def test_secrets_in_a_path_are_shown_nowhere(
    caplog: pytest.LogCaptureFixture, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow_provider_workspace.hooks.workspace.mask_secret", masked.append)
    shown = []
    caplog.set_level("INFO")
    with (
        RawServer(answer(503), answer(503), answer(404, {"detail": SECRET}), answer(204)) as server,
        WorkspaceHook() as hook,
    ):
        connect(host=server.url, max_attempts=2, max_retry_wait=0)
        for _ in range(2):
            with pytest.raises(WorkspaceError, match=r"/invites/\*\*\*/") as caught:
                hook.client.send(ReadInvite(organization_id="1", access_token=SECRET))
            shown.append(str(caught.value))
        send(WithdrawInvite, {"access_token": SECRET})
        assert [quote(SECRET, safe="") in request.target for request in server.requests] == [True] * 4
        planned = send(WithdrawInvite, {"access_token": SECRET}, dry_run=True)
        assert planned["request"] == f"DELETE /api/organizations/{SEED.organization_id}/invites/***/"
        with pytest.raises(AirflowFailException, match="access_token must be an identifier, not \\*\\*\\*"):
            send(WithdrawInvite, {"access_token": f"{SECRET}\n"})
    said = "\n".join([caplog.text, *shown])
    assert "Attempt 1 of 2" in said
    assert "operation=WithdrawInvite outcome=applied" in said
    assert "phs_" not in said
    assert {SECRET, quote(SECRET, safe="")} <= {*masked}


def test_a_create_that_was_refused_is_sent_again(sandbox: SandboxServer) -> None:
    context = {"ti": TaskInstance(), "task_state_store": TaskStore()}
    sandbox.inject("status_before", operation="create_project", status=403)
    with suppress(AirflowFailException):
        send(AddProject, NEW, context)
    send(AddProject, NEW, context)
    assert effects(sandbox) == ["create_project"]


@pytest.mark.parametrize(
    ("operation", "arguments", "others", "says"),
    [
        (AddProject, {"name": "None"}, {}, r"AddProject: field 'name' is required"),
        (AddProject, {"nam": "Sales", "name": "S"}, {}, r"unknown field 'nam' \(did you mean 'name'\?\)"),
        (AddProject, {**NEW, "organization_id": "None"}, {},
         r"arguments\['organization_id'\] has no value"),
        (AddProject, {**NEW, "organization_id": None}, {}, r"arguments\['organization_id'\] has no value"),
        (AddProject, "Sales", {}, "arguments must be a mapping of fields by name"),
        (ListBatchExports, {}, {"where": {"pausd": True}}, "where names 'pausd', which is unknown: did you"),
        (ReadProject, {"id": 1}, {"where": {"id": 1}}, "Leave out where, fields and count_only: ReadProject"),
        ("tests.endpoints.Nothing", {}, {}, "operation: 'tests.endpoints.Nothing' cannot be imported here"),
        ("nowhere.at.all", {}, {}, "operation: 'nowhere.at.all' cannot be imported here: No module named 'nowhere'"),
        ("tests.endpoints.scripted", {}, {}, "operation must be a class that @endpoint decorates, or its name"),
        (dict, {}, {}, "operation must be a class that @endpoint decorates, or its name"),
        ("ListBatchExports", {}, {}, "operation must be a class that @endpoint decorates, or its name"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_before_anything_is_sent(
    sandbox: SandboxServer, operation: Any, arguments: Any, others: Any, says: str
) -> None:
    with pytest.raises(AirflowFailException, match=says) as refused:
        send(operation, arguments, **others)
    assert str(refused.value).count("Nothing was sent") == 1
    assert sandbox.requests() == []


def test_a_page_is_no_list(sandbox: SandboxServer) -> None:
    """Otherwise the first rows would be all of them."""
    assert [row["id"] for row in send(ListFewExports)] == [each["id"] for each in EXPORTS]
    with pytest.raises(AirflowFailException, match=r"returned 1 of 3 rows\. Declare the result as Page\[X\]"):
        send(ListFewExports, {"limit": 1})
    assert len(sandbox.requests()) == 2


class AddSales(WorkspaceSendOperator):
    """Creates one project, or says how."""

    operation = "tests.endpoints.AddProject"
    arguments = NEW
    dry_run = True


def test_a_subclass_may_be_one_request(sandbox: SandboxServer) -> None:
    assert AddSales(task_id="sales").execute({})["action"] == "create"
    assert effects(sandbox) == []


def test_the_hook_sends_own_operations_and_reads_their_rows() -> None:
    with WorkspaceHook() as hook:
        rows = hook.client.rows(ListBatchExports(organization_id=SEED.organization_id))
        assert [(row.id, row.paused) for row in rows] == [(each["id"], False) for each in EXPORTS]
        assert hook.client.send(ReadProject(organization_id=SEED.organization_id, id=1)).name == "Default project"
