"""A service may show a key only some of the members, and count these; the record of the organization tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator, WorkspaceDeleteInviteOperator
from airflow_provider_workspace.operators.members import (
    WorkspaceDeleteMemberOperator,
    WorkspaceSyncMembersOperator,
    WorkspaceUpdateMemberOperator,
)
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceInvitesSettledSensor
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import grant_notes
from tests.audit import effects
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("no_waits")
MINA, LIV = "mina.member@example.com", "liv.invited@example.com"
KEPT: dict[str, Any] = {"protected": ["olive.owner@example.com"], "max_removals": None}
RECORD = "/api/organizations/{organization_id}/"


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Variables:
    connect(count_members=True, consistency_time=0, max_attempts=1)
    return install(monkeypatch)


def run(cls: type[Any], **arguments: Any) -> Any:
    return cls(task_id="task", **arguments).execute({})


ROADS: dict[str, Callable[[], object]] = {
    "sync": lambda: run(WorkspaceSyncMembersOperator, roster=["ada@example.com"], **KEPT),
    "leavers": lambda: run(WorkspaceSyncMembersOperator, leavers=[MINA], **KEPT),
    "delete member": lambda: run(WorkspaceDeleteMemberOperator, user_uuid=SEED.member_uuid),
    "delete member by address": lambda: run(WorkspaceDeleteMemberOperator, user_email=MINA),
    "update member": lambda: run(WorkspaceUpdateMemberOperator, user_uuid=SEED.member_uuid, level=8),
    "delete invite": lambda: run(WorkspaceDeleteInviteOperator, invite_id=SEED.invite_id),
    "create invites": lambda: run(WorkspaceCreateInvitesOperator, invites=["ada@example.com"]),
    "sweep": lambda: run(WorkspaceSweepOperator, kinds=["grants"]),
}


@pytest.mark.parametrize("road", ROADS)
def test_whoever_decides_by_absence_needs_a_list_of_all_members(
    sandbox: SandboxServer, notes: Variables, road: str
) -> None:
    place = {"service": sandbox.url, "organization_id": SEED.organization_id}
    over = {"user_email": MINA, "user_uuid": SEED.member_uuid, "until": "2026-09-02T00:00:00Z"}
    key, text = grant_notes.variable(**place, **over)
    notes.values[key] = text
    sandbox.respond("GET", RECORD, {"id": SEED.organization_id, "member_count": 6})
    with pytest.raises((AirflowFailException, WorkspaceError), match="shows 5 of 6 members"):
        ROADS[road]()
    assert effects(sandbox) == []
    assert key in notes.values


@pytest.mark.usefixtures("notes")
def test_a_list_of_all_members_is_believed(sandbox: SandboxServer) -> None:
    sandbox.respond("GET", RECORD, {"id": SEED.organization_id, "member_count": 5})
    plan = run(WorkspaceSyncMembersOperator, leavers=[MINA], dry_run=True, **KEPT)
    assert "may be shown only some" not in plan["table"]
    assert run(WorkspaceUpdateMemberOperator, user_uuid=SEED.member_uuid, level=8)["level"] == 8


@pytest.mark.usefixtures("notes")
def test_invites_are_not_settled_while_the_list_hides_members(sandbox: SandboxServer) -> None:
    with WorkspaceHook() as hook:
        hook.delete_invite(invite_id=SEED.invite_id)
    sensor = WorkspaceInvitesSettledSensor(task_id="settled", emails=[LIV])
    sandbox.respond("GET", RECORD, {"id": SEED.organization_id, "member_count": 6})
    assert not sensor.poke({})
    sandbox.respond("GET", RECORD, {"id": SEED.organization_id, "member_count": 5})
    assert sensor.poke({})


@pytest.mark.usefixtures("notes")
def test_a_record_without_a_count_says_what_to_do(sandbox: SandboxServer) -> None:
    sandbox.respond("GET", RECORD, {"id": SEED.organization_id})
    with pytest.raises(AirflowFailException, match=r"no member_count\. Set count_members to false"):
        run(WorkspaceDeleteMemberOperator, user_uuid=SEED.member_uuid)


def test_the_record_is_not_read_unless_the_connection_says_so(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    run(WorkspaceUpdateMemberOperator, user_uuid=SEED.member_uuid, level=8)
    assert not [request for request in sandbox.requests() if request["path"].endswith(f"{SEED.organization_id}/")]
