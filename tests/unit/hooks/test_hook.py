"""The connection, organization and project of a hook, and its handling of secrets."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_workspace.api.models import Resource
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceInputError, WorkspacePermissionError
from airflow_provider_workspace.hooks.connection import RECORDS
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Call

Connect = Callable[..., None]


def asked(sandbox: SandboxServer) -> list[str]:
    return [entry["path"].removeprefix("/api/") for entry in sandbox.requests()]


# Processes and event loops


FORK = """
import os
from airflow_provider_workspace.hooks.workspace import WorkspaceHook

with WorkspaceHook() as hook:
    client = hook.client
    assert hook.get_project(project_id=1).id == 1
    child = os.fork()
    assert hook.get_project(project_id=1).id == 1
    assert (hook.client is client) == (child != 0)
assert child == 0 or os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_opens_connections_of_its_own(connect: Connect) -> None:
    connect()
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=180)


SEVERAL_LOOPS = """
import asyncio
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook

hook = WorkspaceAsyncHook()

async def ask():
    return len(await asyncio.gather(*(hook.get_project(project_id=1) for _ in range(20))))

async def ask_and_close():
    async with hook:
        return await ask()

answers = [asyncio.run(ask()), asyncio.run(ask()), asyncio.run(ask_and_close()), asyncio.run(ask())]
asyncio.run(hook.aclose())
assert answers == [20] * 4, answers
"""


def test_an_async_hook_serves_several_event_loops(connect: Connect) -> None:
    """In a process of its own, where the connections of the closed loops are left."""
    connect()
    subprocess.run([sys.executable, "-c", SEVERAL_LOOPS], check=True, timeout=180)


# Organization and project


def test_organization_and_project_default_to_the_connection(
    call: Call, connect: Connect, sandbox: SandboxServer
) -> None:
    connect()
    assert [domain.domain for domain in call("list_domains")] == ["example.com"]
    assert call("get_dashboard", dashboard_id=1).name == "Weekly overview"
    assert asked(sandbox) == [f"organizations/{SEED.organization_id}/domains/", "environments/1/dashboards/1/"]


@pytest.mark.parametrize(
    ("hook", "arguments"),
    [
        ({"organization_id": SEED.other_organization_id, "project_id": 2}, ({}, {})),
        ({}, ({"organization_id": SEED.other_organization_id}, {"project_id": "2"})),
        (
            {"organization_id": "elsewhere", "project_id": "elsewhere"},
            ({"organization_id": SEED.other_organization_id}, {"project_id": 2}),
        ),
    ],
)
def test_hook_and_call_override_the_connection(
    call: Call, connect: Connect, sandbox: SandboxServer, hook: dict[str, Any], arguments: Any
) -> None:
    connect(key=SEED.research_key)
    organization, project = arguments
    assert call("list_domains", hook=hook, **organization) == []
    assert call("create_dashboard", hook=hook, name="Sales", **project).name == "Sales"
    assert asked(sandbox) == [f"organizations/{SEED.other_organization_id}/domains/", "environments/2/dashboards/"]


@pytest.mark.parametrize(
    ("method", "arguments", "name"),
    [("get_project", {"project_id": 1}, "organization_id"), ("get_dashboard", {"dashboard_id": 1}, "project_id")],
)
def test_a_missing_organization_or_project_is_an_error(
    call: Call, connect: Connect, sandbox: SandboxServer, method: str, arguments: dict[str, Any], name: str
) -> None:
    connect(organization_id=None, project_id=None)
    with pytest.raises(WorkspaceConfigError) as error:
        call(method, **arguments)
    assert str(error.value) == (f"No {name}: pass {name}=…, or set it in the extra of connection 'workspace_default'.")
    assert sandbox.requests() == []


def test_an_empty_id_is_not_replaced_by_the_default(call: Call, connect: Connect) -> None:
    connect()
    with pytest.raises(WorkspaceInputError, match="organization_id must be an identifier, not ''"):
        call("get_project", project_id=1, organization_id="")


# Connection


def test_conn_id_selects_the_connection(call: Call, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {"conn_type": "workspace", "host": sandbox.url, "password": SEED.reader_key}
    monkeypatch.setenv("AIRFLOW_CONN_READ_ONLY", json.dumps(connection))
    hook = {"workspace_conn_id": "read_only", "organization_id": SEED.organization_id, "project_id": 1}
    assert call("get_project", hook=hook, project_id=1).name == "Default project"
    with pytest.raises(WorkspacePermissionError, match="Give the API key of connection 'read_only' the scope"):
        call("update_dashboard", hook=hook, dashboard_id=1, name="x")


def test_a_connection_of_another_type_is_refused(
    call: Call, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for conn_type in ("postgres", "http"):
        connection = {"conn_type": conn_type, "host": sandbox.url, "password": SEED.admin_key}
        monkeypatch.setenv("AIRFLOW_CONN_DWH", json.dumps(connection))
        hook = {"workspace_conn_id": "dwh", "organization_id": SEED.organization_id}
        if conn_type == "http":
            assert call("get_project", hook=hook, project_id=1).id == 1
        else:
            with pytest.raises(WorkspaceConfigError, match="'dwh' is of type 'postgres'"):
                call("get_project", hook=hook, project_id=1)
            assert not sandbox.requests()


def test_the_connection_is_read_once_until_the_hook_is_closed(connect: Connect) -> None:
    async def open_and_close() -> None:
        hook = WorkspaceAsyncHook()
        await hook.aclose()
        connect()
        client = await hook.client()
        assert client is await hook.client()
        await hook.aclose()
        connect(page_size=7)
        assert (await hook.client()).settings.page_size == 7
        await hook.aclose()

    asyncio.run(open_and_close())
    connect()
    with WorkspaceHook() as hook:
        hook.close()
        client = hook.get_conn()
        assert client is hook.client
        connect(page_size=7)
        assert hook.client.settings.page_size != 7
    assert hook.client.settings.page_size == 7
    hook.close()


# Methods that do more than send one operation


@pytest.mark.parametrize(
    ("options", "pages"),
    [({}, [(100, 0)]), ({"limit": 3}, [(3, 0), (3, 3)]), ({"limit": 2, "offset": 2}, [(2, 2), (2, 4)])],
)
def test_lists_are_read_in_pages(
    call: Call, connect: Connect, sandbox: SandboxServer, options: dict[str, int], pages: list[tuple[int, int]]
) -> None:
    connect()
    assert len(call("list_members", **options)) == 5 - options.get("offset", 0)
    queries = [{name: int(value) for name, value in entry["query"]} for entry in sandbox.requests()]
    assert queries == [{"limit": limit, "offset": offset} for limit, offset in pages]


def test_pages_are_read_lazily(connect: Connect, sandbox: SandboxServer) -> None:
    connect(page_size=2)
    members = WorkspaceHook().list_members()
    assert sandbox.requests() == []
    next(members)
    assert len(sandbox.requests()) == 1


def test_delete_dashboard_sets_deleted(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    assert call("delete_dashboard", dashboard_id=1).deleted is True
    (request,) = sandbox.requests()
    assert (request["method"], request["body"]) == ("PATCH", {"deleted": True})


# Secrets


def test_the_key_and_secrets_in_responses_are_masked_in_logs(
    call: Call, connect: Connect, sandbox: SandboxServer
) -> None:
    key = f"key-{uuid4()}"
    sandbox.add_key(key, "masked", ["*"])
    connect(key=key)
    token = call("get_dashboard_sharing", dashboard_id=1).access_token
    webhook = f"https://hooks.example.com/{uuid4()}"
    call("create_project", name="Shop", slack_incoming_webhook=webhook)
    assert token
    assert redact(f"{key} {token} {webhook}") == "*** *** ***"


# Records in XCom


@pytest.mark.needs_airflow("3.3", "objects that a provider lets into XCom")
def test_records_in_xcom_have_no_secrets(call: Call, connect: Connect) -> None:
    from airflow.sdk import serde

    connect()
    project = call("get_project", project_id=SEED.project_id)
    stored: Any = serde.serialize([project])
    assert project.api_token
    assert project.api_token not in json.dumps(stored)
    (read,) = serde.deserialize(json.loads(json.dumps(stored)))  # type: ignore[attr-defined]
    assert type(read) is type(project)
    assert read.to_dict() == project.to_dict()


def test_every_record_class_can_be_deserialized() -> None:
    assert set(RECORDS) == {record.__name__ for record in Resource.__subclasses__()}


def test_importing_the_hook_imports_no_model_and_no_settings() -> None:
    code = "import sys, airflow_provider_workspace.hooks.workspace as _; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "airflow_provider_workspace.hooks.connection" in loaded
    assert not {f"airflow_provider_workspace.{name}" for name in ("api.models", "client.settings")} & {*loaded}


@pytest.mark.needs_airflow("3.3", "objects that a provider lets into XCom")
def test_a_report_of_invites_in_xcom_is_plain_json(call: Call, connect: Connect) -> None:
    from airflow.sdk import serde

    connect()
    report = call("create_invites", invites=["new.person@example.com"])
    stored: Any = serde.serialize(report)
    read: Any = serde.deserialize(json.loads(json.dumps(stored)))
    assert read == report.to_dict()
