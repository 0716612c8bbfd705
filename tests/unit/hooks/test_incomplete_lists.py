"""Incomplete lists: whatever would decide by a missing row stops, and nothing is written."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import greenback
import pytest

from airflow_provider_workspace.api.operations import ListMembers
from airflow_provider_workspace.client.client import WorkspaceClient
from airflow_provider_workspace.client.loop import LoopBackend
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.errors import WorkspaceIncompleteListError, WorkspacePaginationError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator, WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator, WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceInvitesSettledSensor, WorkspaceMembersJoinedSensor
from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger, WorkspaceWaitTrigger
from tests.events import first_event, until
from tests.list_service import (
    ListService,
    PageContent,
    email,
    empty_page,
    endless,
    hidden,
    last_row_missing,
    moving,
    next_null,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
    pytest.mark.usefixtures("no_waits"),
]

COUNT = 150
# 16 of the 150 numbers are multiples of nine.
SHOWN = 134
HEALED = [next_null, last_row_missing, empty_page, moving]


@pytest.fixture
def service() -> Iterator[ListService]:
    with ListService(members=COUNT, invites=COUNT, projects=COUNT, domains=COUNT) as lists:
        yield lists


Point = Callable[..., None]


@pytest.fixture
def connect_to_lists(service: ListService, monkeypatch: pytest.MonkeyPatch) -> Point:
    """Set the connection to the list service; keyword arguments are keys of its extra."""

    def set_connection(**extra: Any) -> None:
        given = {"organization_id": "o", "max_attempts": 1, "page_size": 10, **extra}
        connection = {"conn_type": "workspace", "host": service.url, "password": "k", "extra": given}
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))

    set_connection()
    return set_connection


def read_by_requests(settings: Settings, came: list[Any]) -> None:
    with WorkspaceClient(settings) as client:
        for row in client.rows(ListMembers(organization_id="o", limit=10)):
            came.append(row.id)  # noqa: PERF401 - it may fail half-way


def read_by_httpx(settings: Settings, came: list[Any]) -> None:
    def read() -> None:
        with WorkspaceClient(settings, backend=LoopBackend(settings)) as client:
            for row in client.rows(ListMembers(organization_id="o", limit=10)):
                came.append(row.id)  # noqa: PERF401 - it may fail half-way

    asyncio.run(greenback.with_portal_run_sync(read))


both_clients = pytest.mark.parametrize("read", [read_by_requests, read_by_httpx])


@both_clients
@pytest.mark.parametrize("fault", HEALED)
def test_each_row_is_returned_once_from_pages_that_lose_rows(service: ListService, read: Any, fault: Any) -> None:
    service.faults["members"] = fault
    came: list[Any] = []
    read(Settings(service.url, "k"), came)
    assert len(came) == len(set(came)) == COUNT


@both_clients
def test_an_incomplete_list_raises_after_its_rows(service: ListService, read: Any) -> None:
    service.faults["members"] = hidden
    came: list[Any] = []
    with pytest.raises(WorkspaceIncompleteListError, match=f"counts {COUNT} rows, and {SHOWN} came in 3 readings"):
        read(Settings(service.url, "k"), came)
    assert len(came) == SHOWN
    came.clear()
    service.reads["members"] = 0
    read(Settings(service.url, "k", trust_counts=False), came)
    assert len(came) == SHOWN
    assert service.reads["members"] == COUNT / 10


@both_clients
def test_an_endless_list_with_a_count_is_not_followed_forever(service: ListService, read: Any) -> None:
    service.lists["members"] = list(range(1, 301))
    service.faults["members"] = endless
    with pytest.raises(WorkspacePaginationError, match="counts 300 rows, gave 710, and has another page"):
        read(Settings(service.url, "k"), [])
    assert service.reads["members"] == 71


@pytest.mark.usefixtures("connect_to_lists")
@pytest.mark.parametrize("fault", HEALED)
def test_list_operators_return_all_rows(service: ListService, fault: Any) -> None:
    service.faults["members"] = fault
    assert WorkspaceListMembersOperator(task_id="list", count_only=True).execute({}) == COUNT
    wanted = [email(10), email(150)]
    rows = WorkspaceListMembersOperator(task_id="list", where={"user.email": wanted}, fields=["user.email"]).execute({})
    assert sorted(rows, key=lambda row: len(row["user.email"])) == [{"user.email": address} for address in wanted]


def test_list_operators_fail_on_an_incomplete_list(service: ListService, connect_to_lists: Point) -> None:
    service.faults["members"] = hidden
    for arguments in ({"count_only": True}, {"where": {"level": 8}}, {}):
        with pytest.raises(WorkspaceIncompleteListError, match="trust_counts"):
            WorkspaceListMembersOperator(task_id="list", **arguments).execute({})
    connect_to_lists(trust_counts=False)
    assert WorkspaceListMembersOperator(task_id="list", count_only=True).execute({}) == SHOWN


ROSTER = [email(number) for number in range(1, COUNT + 1)]
WRITERS: dict[str, Any] = {
    "create project": lambda: WorkspaceCreateProjectOperator(task_id="create", name="Project 9"),
    "create domain": lambda: WorkspaceCreateDomainOperator(task_id="create", domain="d9.example.com"),
    "create invite": lambda: WorkspaceCreateInviteOperator(task_id="create", target_email=email(9)),
    "bulk invites": lambda: WorkspaceCreateInvitesOperator(task_id="create", invites=ROSTER),
    "member sync": lambda: WorkspaceSyncMembersOperator(task_id="sync", roster=ROSTER, protected=[], max_removals=None),
    "member sync that removes": lambda: WorkspaceSyncMembersOperator(
        task_id="sync", roster=ROSTER[:1], protected=[], max_removals=None
    ),
}


@pytest.mark.usefixtures("connect_to_lists")
@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_nothing_is_written_for_rows_missing_from_an_incomplete_list(service: ListService, writer: Any) -> None:
    service.faults = dict.fromkeys(service.lists, hidden)
    with pytest.raises(WorkspaceIncompleteListError, match=r"counts 150 rows, and 134 came.*Nothing was changed"):
        writer().execute({})
    assert service.writes == []


@pytest.mark.usefixtures("connect_to_lists")
@pytest.mark.parametrize("fault", HEALED)
@pytest.mark.parametrize("writer", [*WRITERS.values()][:5], ids=[*WRITERS][:5])
def test_nothing_is_written_twice_if_pages_lose_rows(service: ListService, writer: Any, fault: Any) -> None:
    service.faults = dict.fromkeys(service.lists, fault)
    writer().execute({})
    assert service.writes == []


def test_a_row_that_is_found_needs_no_complete_list(service: ListService, connect_to_lists: Point) -> None:
    service.faults = dict.fromkeys(service.lists, hidden)
    found = WorkspaceCreateProjectOperator(task_id="create", name="Project 10").execute({})
    assert found["id"] == 10
    assert service.writes == []
    joined = WorkspaceMembersJoinedSensor(task_id="joined", emails=[email(149)])
    service.lists["invites"].clear()
    assert joined.poke({}).xcom_value == {"joined": [email(149)], "missing": {}}
    connect_to_lists(trust_counts=False)
    assert not WorkspaceMembersJoinedSensor(task_id="joined", emails=[email(9)]).poke({}).is_done


def test_invites_missing_from_an_incomplete_list_are_not_settled(service: ListService, connect_to_lists: Point) -> None:
    connect_to_lists(consistency_time=0)
    service.faults = {"invites": hidden, "members": hidden}
    service.lists["members"] = [1, 2, 3]
    settled = WorkspaceInvitesSettledSensor(task_id="settled", emails=[email(9)])
    assert not settled.poke({}).is_done
    service.lists["invites"].remove(3)
    assert WorkspaceInvitesSettledSensor(task_id="settled", emails=[email(3)]).poke({}).is_done
    service.faults.clear()
    assert not settled.poke({}).is_done
    service.lists["invites"].remove(9)
    assert settled.poke({}).xcom_value["gone"] == [email(9)]
    service.faults = {"invites": hidden}
    connect_to_lists(trust_counts=False, consistency_time=0)
    assert settled.poke({}).is_done


@pytest.mark.usefixtures("connect_to_lists")
def test_a_trigger_logs_an_incomplete_list_and_continues(service: ListService) -> None:
    service.faults["invites"] = hidden
    service.lists["members"].clear()
    trigger = WorkspaceWaitTrigger(
        condition="invites_settled", arguments={"emails": [email(9)]}, poll_interval=0.01, end_at=time.time() + 0.5
    )

    ended = asyncio.run(asyncio.wait_for(first_event(trigger), 20)).payload
    assert ended["status"] == "timeout"
    assert "A list is short: Try again." in ended["message"]
    assert "trust_counts" in ended["message"]


@pytest.mark.usefixtures("connect_to_lists")
@pytest.mark.parametrize("fault", [hidden, moving])
def test_an_incomplete_list_causes_no_arrival(service: ListService, fault: Any) -> None:
    def sometimes(sent: PageContent) -> None:
        if service.reads["members"] % 60 < 30:
            fault(sent)

    service.faults["members"] = sometimes
    told: list[Any] = []

    async def watch() -> None:
        async for event in WorkspaceArrivalTrigger(what="member", poll_interval=0.01).run():
            told.extend(row["name"] for row in event.payload["rows"])

    async def watch_several_polls() -> None:
        watching = asyncio.create_task(watch())
        await until(lambda: service.reads["members"] > 200)
        assert told == []
        service.lists["members"].append(151)
        await until(lambda: bool(told))
        watching.cancel()

    asyncio.run(watch_several_polls())
    assert told == [email(151)]


@pytest.mark.usefixtures("connect_to_lists")
def test_the_hook_warns_about_an_incomplete_list(service: ListService) -> None:
    service.faults["domains"] = hidden
    rows = WorkspaceHook().list_domains()
    assert len([next(rows) for _ in range(SHOWN)]) == SHOWN
    with pytest.raises(WorkspaceIncompleteListError):
        next(rows)
