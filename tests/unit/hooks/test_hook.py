"""The connection, organization and project of a hook, and its handling of secrets."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import Cursor, Operation, endpoint
from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceInputError, WorkspacePermissionError
from airflow_provider_workspace.hooks.workspace import RECORDS, WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Call

Connect = Callable[..., None]


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


def test_a_forked_process_opens_connections_of_its_own(connect: Connect, airflow_cli: AirflowCli) -> None:
    connect()
    airflow_cli.run_code(FORK)


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


def test_an_async_hook_serves_several_event_loops(connect: Connect, airflow_cli: AirflowCli) -> None:
    """In a process of its own, where the connections of the closed loops are left."""
    connect()
    airflow_cli.run_code(SEVERAL_LOOPS)


# Organization and project

PATHS = [f"organizations/{SEED.organization_id}/domains/", "environments/1/dashboards/"]
OTHER_PATHS = [f"organizations/{SEED.other_organization_id}/domains/", "environments/2/dashboards/"]
OTHERS = {"organization_id": SEED.other_organization_id, "project_id": 2}
ELSEWHERE = {"organization_id": "elsewhere", "project_id": "elsewhere"}


@pytest.mark.parametrize(
    ("key", "hook", "organization", "project", "paths"),
    [
        (SEED.admin_key, {}, {}, {}, PATHS),
        (SEED.research_key, OTHERS, {}, {}, OTHER_PATHS),
        (SEED.research_key, ELSEWHERE, {"organization_id": SEED.other_organization_id}, {"project_id": 2}, OTHER_PATHS),
    ],
    ids=["connection", "hook", "call"],
)
def test_call_overrides_hook_and_hook_the_connection(
    call: Call,
    connect: Connect,
    sandbox: SandboxServer,
    key: str,
    hook: Any,
    organization: Any,
    project: Any,
    paths: Any,
) -> None:
    connect(key=key)
    call("list_domains", hook=hook, **organization)
    call("create_dashboard", hook=hook, name="Sales", **project)
    assert [entry["path"].removeprefix("/api/") for entry in sandbox.requests()] == paths


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
    assert error.value.args[0] == f"No {name}: pass {name}=…, or set it in the extra of connection 'workspace_default'."
    connect()
    with pytest.raises(WorkspaceInputError, match=f"{name}: expected an id, .* not ''"):
        call(method, **arguments, **{name: ""})
    assert sandbox.requests() == []


# Connection


@pytest.mark.parametrize("conn_type", ["workspace", "http", "postgres"])
def test_conn_id_selects_a_connection_which_is_of_our_type_or_http(
    call: Call, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, conn_type: str
) -> None:
    connection = {"conn_type": conn_type, "host": sandbox.url, "password": SEED.reader_key}
    monkeypatch.setenv("AIRFLOW_CONN_READ_ONLY", json.dumps(connection))
    hook = {"workspace_conn_id": "read_only", "organization_id": SEED.organization_id, "project_id": 1}
    if conn_type == "postgres":
        with pytest.raises(WorkspaceConfigError, match="'read_only' is of type 'postgres'"):
            call("get_project", hook=hook, project_id=1)
    else:
        assert call("get_project", hook=hook, project_id=1).name == "Default project"
        with pytest.raises(WorkspacePermissionError, match="the API key of connection 'read_only' lacks the scope"):
            call("update_dashboard", hook=hook, dashboard_id=1, name="x")
    assert bool(sandbox.requests()) is (conn_type != "postgres")


def test_the_connection_is_read_once_until_the_hook_is_closed(connect: Connect) -> None:
    async def open_and_close() -> None:
        hook = WorkspaceAsyncHook()
        await hook.aclose()
        connect()
        assert await hook.client() is await hook.client()
        await hook.aclose()
        connect(page_size=7)
        assert (await hook.client()).settings.page_size == 7
        await hook.aclose()

    asyncio.run(open_and_close())
    connect()
    with WorkspaceHook() as hook:
        hook.close()
        assert hook.get_conn() is hook.client
        connect(page_size=7)
        assert hook.client.settings.page_size != 7
    assert hook.client.settings.page_size == 7
    hook.close()


def test_a_used_hook_can_be_copied_and_pickled(connect: Connect) -> None:
    """As a process pool and deepcopy of a task do."""
    connect()
    with WorkspaceHook(project_id=1) as hook:
        client = hook.client
        copies = [copy.deepcopy(hook), pickle.loads(pickle.dumps(hook))]  # noqa: S301 - written here
        for copied in copies:
            with copied:
                assert copied.client is not client
                assert copied.get_dashboard(dashboard_id=1).id == 1
        assert hook.client is client


def test_no_road_to_the_service_repeats_a_create(connect: Connect, sandbox: SandboxServer) -> None:
    """Airflow would retry a task that sends it with the client, which is public."""
    connect()
    create = CreateDashboard(project_id="1", name="Sales")

    async def send_with_client() -> object:
        async with WorkspaceAsyncHook() as hook:
            return await hook.run(lambda client: client.send(create))

    def send() -> object:
        with WorkspaceHook() as hook:
            return hook.client.send(create)

    for send_once in (send, lambda: asyncio.run(send_with_client())):
        sandbox.inject("reset_after", "create_dashboard", times=1)
        with pytest.raises(AirflowFailException, match="CreateDashboard may or may not have been applied"):
            send_once()


# Methods that do more than send one operation


def test_pages_are_read_lazily(connect: Connect, sandbox: SandboxServer) -> None:
    connect(page_size=2)
    members = WorkspaceHook().list_members()
    assert sandbox.requests() == []
    next(members)
    assert len(sandbox.requests()) == 1


@endpoint("GET", "/projects/{project_id}/runs/", scope="project:read", repeatable=True)
class ListRuns(Operation[Page[Resource]]):
    project_id: int
    cursor: Cursor = None


def test_pages_by_cursor_are_read_to_the_end(connect: Connect, sandbox: SandboxServer) -> None:
    """Each page once, by the link of the one before."""
    connect()
    rows = [{"id": f"run-{number}"} for number in range(5)]
    sandbox.respond("GET", "/api/projects/1/runs/", rows, cursor=True, page_size=2)

    async def listed() -> list[Resource]:
        async with WorkspaceAsyncHook() as hook:
            return await hook.run(lambda client: list(client.rows(ListRuns(project_id=1))))

    assert [row.to_dict() for row in asyncio.run(listed())] == rows
    assert len(sandbox.requests()) == 3


def test_delete_dashboard_sets_deleted(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    assert call("delete_dashboard", dashboard_id=1).deleted is True
    (request,) = sandbox.requests()
    assert (request["method"], request["body"]) == ("PATCH", {"deleted": True})


# Secrets


def test_the_key_and_secrets_in_responses_are_masked_in_logs(
    call: Call, connect: Connect, sandbox: SandboxServer
) -> None:
    key, webhook = f"key-{uuid4()}", f"https://hooks.example.com/{uuid4()}"
    sandbox.add_key(key, "masked", ["*"])
    connect(key=key)
    created = call("create_project", name="Shop", slack_incoming_webhook=webhook)
    (_, listed) = call("list_projects")
    secrets = [key, webhook, call("get_dashboard_sharing", dashboard_id=1).access_token]
    secrets += [created.live_events_token, listed.api_token]
    assert redact(" ".join(secrets)) == " ".join("***" for _ in secrets)


# Records in XCom


@pytest.mark.needs_airflow("3.3", "objects that a provider lets into XCom")
def test_records_in_xcom_have_no_secrets(call: Call, connect: Connect) -> None:
    from airflow.sdk import serde

    connect()
    project = call("get_project", project_id=SEED.project_id)
    report = call("create_invites", invites=["new.person@example.com"])
    stored: Any = serde.serialize([project, report])
    assert project.api_token
    assert project.api_token not in json.dumps(stored)
    (read, read_report) = serde.deserialize(json.loads(json.dumps(stored)))  # type: ignore[attr-defined]
    assert type(read) is type(project)
    assert read.to_dict() == project.to_dict()
    assert read_report == report.to_dict()
    own = {record.__name__ for record in Resource.__subclasses__() if record.__module__ == Resource.__module__}
    assert set(RECORDS) == own, "others cannot be read"
