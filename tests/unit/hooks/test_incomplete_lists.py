"""Incomplete lists: whatever would decide by a missing row stops, and nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceIncompleteListError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator, WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceMembersJoinedSensor
from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger
from tests.audit import effects
from tests.events import until

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture
def members(connect: Connect) -> list[str]:
    """Addresses of all members; lists are read in pages of two."""
    connect(page_size=2, consistency_time=0)
    return [str(member.user and member.user.email) for member in WorkspaceHook().list_members()]


@pytest.fixture
def hide(sandbox: SandboxServer) -> Callable[..., None]:
    """Hide the newest row of lists, which still count it."""

    def hide_newest(*lists: str) -> None:
        for name in lists:
            sandbox.inject("short_pages", f"list_{name}", missing="newest", times=None)

    return hide_newest


@pytest.mark.parametrize("arguments", [{"count_only": True}, {"where": {"level": 8}}, {}], ids=str)
def test_list_operators_fail_on_an_incomplete_list(
    members: list[str], hide: Callable[..., None], connect: Connect, arguments: dict[str, Any]
) -> None:
    hide("members")
    with pytest.raises(WorkspaceIncompleteListError, match="trust_counts"):
        WorkspaceListMembersOperator(task_id="list", **arguments).execute({})
    connect(page_size=2, trust_counts=False)
    assert WorkspaceListMembersOperator(task_id="list", count_only=True).execute({}) == len(members) - 1


@pytest.mark.parametrize("kept", [1, None], ids=["that removes", "that invites"])
def test_a_member_sync_writes_nothing_because_of_an_incomplete_list(
    sandbox: SandboxServer, members: list[str], hide: Callable[..., None], kept: int | None
) -> None:
    hide("members", "invites")
    sync = WorkspaceSyncMembersOperator(task_id="sync", roster=members[:kept], protected=[], max_removals=None)
    with pytest.raises(WorkspaceIncompleteListError, match=r"rows, and .* Nothing was changed"):
        sync.execute({})
    assert effects(sandbox) == []


def test_nobody_is_invited_because_of_an_incomplete_list(
    sandbox: SandboxServer, members: list[str], hide: Callable[..., None]
) -> None:
    hide("members")
    invite = WorkspaceCreateInvitesOperator(task_id="invite", invites=members)
    with pytest.raises(WorkspaceIncompleteListError):
        invite.execute({})
    assert effects(sandbox) == []


def test_a_row_that_is_found_needs_no_complete_list(
    sandbox: SandboxServer, members: list[str], hide: Callable[..., None], connect: Connect
) -> None:
    WorkspaceHook().create_domain(domain="another.example.com")
    hide("domains", "projects", "members", "invites")
    found = WorkspaceCreateDomainOperator(task_id="create", domain="example.com").execute({})
    assert found["id"] == sandbox.seed.domain_id
    assert effects(sandbox) == ["create_domain"]
    with pytest.raises(WorkspaceIncompleteListError):  # another project may have the same name
        WorkspaceCreateProjectOperator(task_id="create", name="Default project").execute({})
    connect(page_size=2, trust_counts=False)
    for address, joined in ((members[0], True), (members[-1], False)):
        assert WorkspaceMembersJoinedSensor(task_id="joined", emails=[address]).poke({}).is_done is joined


@pytest.mark.usefixtures("members")
def test_an_incomplete_list_causes_no_arrival(sandbox: SandboxServer, hide: Callable[..., None]) -> None:
    told: list[Any] = []

    async def watch() -> None:
        async for event in WorkspaceArrivalTrigger(what="member", poll_interval=0.01).run():
            told.extend(row["name"] for row in event.payload["rows"])

    async def watch_several_polls() -> None:
        watching = asyncio.create_task(watch())
        for incomplete in (False, True, False):
            if incomplete:
                hide("members")
            else:
                sandbox.clear_faults()
            enough = len(sandbox.requests()) + 30
            await until(lambda enough=enough: len(sandbox.requests()) > enough)  # type: ignore[misc]
        assert told == []
        sandbox.add_members(1)
        await until(lambda: bool(told))
        watching.cancel()

    asyncio.run(watch_several_polls())
    assert len(told) == 1
