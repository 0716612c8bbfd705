"""Waits for people of more than one page, in each mode, while people leave, join without an invite, or are hidden."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceInvitesSettledSensor, WorkspaceMembersJoinedSensor
from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger
from airflow_provider_workspace.version_compat import TaskDeferred
from tests.audit import say, set_address
from tests.events import Silent, first_event, until

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

ADA, LIV = "ada@example.com", "liv.invited@example.com"
NOAH = SEED.absent_uuid
INTERVAL = 0.05
MODES = ["poke", "reschedule", "deferred"]


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect(page_size=2, max_attempts=1, consistency_time=0)


def change(sandbox: SandboxServer, statement: str, *values: str) -> None:
    """Change the members of the sandbox, as people do and no key can."""

    async def execute() -> None:
        sandbox.listener.service.state.db.execute(statement, values)

    asyncio.run_coroutine_threadsafe(execute(), sandbox.listener.loop).result(10)


def join(sandbox: SandboxServer, email: str = ADA, *, leaver: str = "") -> None:
    """
    Let somebody join without an invite, as by a domain that lets people in.

    :param leaver: user who leaves in the same moment, so that no poll sees another number of members
    """

    async def change_members() -> None:
        service = sandbox.listener.service
        execute = service.state.db.execute
        execute("DELETE FROM members WHERE user_uuid = ?", (leaver,))
        service.add_members(1)
        record = "json_set(record, '$.user.email', ?)"
        execute(
            f"UPDATE members SET email = ?, record = {record} WHERE seq = (SELECT MAX(seq) FROM members)",  # noqa: S608
            (email, email),
        )

    asyncio.run_coroutine_threadsafe(change_members(), sandbox.listener.loop).result(10)


def polls(sandbox: SandboxServer) -> int:
    return sum(row["operation"] == "list_invites" for row in sandbox.requests())


class Wait:
    """
    A wait for people in one of the modes.

    :param mode: ``poke``, ``reschedule`` or ``deferred``
    """

    def __init__(self, sandbox: SandboxServer, mode: str, cls: type[Any], *emails: str) -> None:
        self.sandbox = sandbox
        self.mode = mode
        self.make = lambda **arguments: cls(task_id="wait", emails=[*emails], poke_interval=INTERVAL, **arguments)

    def result_after(self, act: Callable[[], object], most: int = 8) -> Any:
        """
        Poll twice, act, and return the result of the wait.

        :param most: polls after the action in which the wait must end; ``None`` is the result if it does not
        """
        if self.mode == "deferred":
            return asyncio.run(self._deferred(act, most))
        sensor = self.make(mode=self.mode)
        began = datetime.now(timezone.utc) - timedelta(hours=1)
        for number in range(2 + most):
            first = began if number and self.mode == "reschedule" else None
            ti = SimpleNamespace(get_first_reschedule_date=lambda _, first=first: first)
            if number == 2:
                act()
            done = sensor.poke({"ti": ti})
            assert number > 1 or not done.is_done
            if done.is_done:
                return done.xcom_value
            if self.mode == "reschedule":
                sensor = self.make(mode=self.mode)
        return None

    async def _deferred(self, act: Callable[[], object], most: int) -> Any:
        sensor = self.make(deferrable=True)
        with pytest.raises(TaskDeferred) as deferred:
            await asyncio.to_thread(sensor.execute, {})
        running = asyncio.ensure_future(first_event(deferred.value.trigger))
        before = polls(self.sandbox)
        await until(lambda: polls(self.sandbox) > before + 1)
        assert not running.done()
        await asyncio.to_thread(act)
        before = polls(self.sandbox)
        await until(lambda: running.done() or polls(self.sandbox) > before + most)
        if not running.done():
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            return None
        return sensor.execute_complete({}, running.result().payload)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("leaver", [NOAH, SEED.analyst_uuid])
def test_who_joins_without_an_invite_when_somebody_leaves_is_found(
    sandbox: SandboxServer, mode: str, leaver: str
) -> None:
    """The count of members is as before, and so is the first page."""
    wait = Wait(sandbox, mode, WorkspaceMembersJoinedSensor, ADA)
    assert wait.result_after(lambda: join(sandbox, leaver=leaver)) == {"joined": [ADA], "missing": {}}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("user_uuid", [SEED.admin_uuid, NOAH, SEED.analyst_uuid])
def test_a_member_who_takes_the_awaited_address_is_found(sandbox: SandboxServer, mode: str, user_uuid: str) -> None:
    """On the first page at the next poll."""
    most = 1 if user_uuid == SEED.admin_uuid and mode != "deferred" else 8
    wait = Wait(sandbox, mode, WorkspaceMembersJoinedSensor, ADA)
    assert wait.result_after(lambda: set_address(sandbox, user_uuid, ADA), most) == {"joined": [ADA], "missing": {}}


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_the_list_does_not_matter(sandbox: SandboxServer, mode: str) -> None:
    def act() -> None:
        join(sandbox, leaver=NOAH)
        change(
            sandbox, "UPDATE members SET seq = (SELECT 1 + MAX(seq) FROM members) WHERE user_uuid = ?", SEED.owner_uuid
        )

    assert Wait(sandbox, mode, WorkspaceMembersJoinedSensor, ADA).result_after(act) == {"joined": [ADA], "missing": {}}


@pytest.mark.parametrize("mode", MODES)
def test_somebody_with_an_open_invite_may_join_without_it(sandbox: SandboxServer, mode: str) -> None:
    wait = Wait(sandbox, mode, WorkspaceMembersJoinedSensor, LIV)
    assert wait.result_after(lambda: join(sandbox, LIV)) == {"joined": [LIV], "missing": {}}


@pytest.mark.parametrize("mode", MODES)
def test_a_hidden_address_is_found_as_soon_as_it_is_shown(
    sandbox: SandboxServer, mode: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    set_address(sandbox, SEED.analyst_uuid, ADA)
    change(
        sandbox,
        "UPDATE members SET record = json_set(record, '$.user.email', NULL) WHERE user_uuid = ?",
        SEED.analyst_uuid,
    )
    caplog.set_level("INFO")
    wait = Wait(sandbox, mode, WorkspaceMembersJoinedSensor, ADA)
    assert wait.result_after(lambda: set_address(sandbox, SEED.analyst_uuid, ADA)) == {"joined": [ADA], "missing": {}}
    assert "may be among 1 members without a shown address" in caplog.text + capsys.readouterr().out


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_list_of_members_proves_nothing(sandbox: SandboxServer, mode: str) -> None:
    """The owner of the key is a member."""

    def act() -> None:
        say(sandbox, "list_members")
        sandbox.accept_invite(SEED.invite_id)

    wait = Wait(sandbox, mode, WorkspaceInvitesSettledSensor, LIV)
    assert wait.result_after(act) is None


@pytest.mark.parametrize("mode", MODES)
def test_who_accepts_while_the_list_of_members_lags_is_not_gone(
    sandbox: SandboxServer, connect: Connect, mode: str
) -> None:
    """The wait is older than the consistency time, and the acceptance is not."""
    connect(page_size=2, max_attempts=1, consistency_time=0.5)

    def act() -> None:
        time.sleep(0.6)
        sandbox.inject("late_rows", "list_members", seconds=0.3)
        sandbox.accept_invite(SEED.invite_id)

    wait = Wait(sandbox, mode, WorkspaceInvitesSettledSensor, LIV)
    accepted = {"accepted": [LIV], "expired": [], "gone": [], "open": []}
    assert wait.result_after(act, most=1000) == accepted


def test_a_poll_that_takes_long_does_not_show_who_is_gone(sandbox: SandboxServer, connect: Connect) -> None:
    """Its lists were read before the consistency time was over, however late their last page came."""
    connect(max_attempts=2, consistency_time=0.5)
    WorkspaceHook().create_invite(target_email=ADA)
    sandbox.inject("late_rows", "list_invites", seconds=30, times=None)
    sandbox.inject("rate_limit", "list_members", seconds=1, times=1)
    sensor: Any = WorkspaceInvitesSettledSensor(task_id="settled", emails=[ADA], poke_interval=INTERVAL)
    assert not sensor.poke({"ti": SimpleNamespace(get_first_reschedule_date=lambda _: None)}).is_done


def test_a_poll_of_the_triggerer_that_takes_long_does_not_show_who_is_gone(
    sandbox: SandboxServer, connect: Connect
) -> None:
    connect(max_attempts=2, consistency_time=0.5)
    WorkspaceHook().create_invite(target_email=ADA)
    sandbox.inject("late_rows", "list_invites", seconds=30, times=2)
    sandbox.inject("rate_limit", "list_members", seconds=1, times=1, after=1)
    trigger = WorkspaceWaitTrigger(
        condition="invites_settled",
        arguments={"emails": [ADA]},
        poll_interval=INTERVAL,
        end_at=time.time() + 1.5,
    )
    assert asyncio.run(first_event(trigger)).payload["status"] == "timeout"


@pytest.mark.needs_airflow("3.3", "shared trigger streams")
def test_a_new_wait_does_not_end_with_members_of_an_earlier_poll(sandbox: SandboxServer) -> None:
    """A wait that shares polls with others: whoever left since all pages were read is no member."""
    asyncio.run(_wait_for_who_has_left(sandbox))


async def _wait_for_who_has_left(sandbox: SandboxServer) -> None:
    from airflow.triggers.shared_stream import SharedStreamManager

    manager = SharedStreamManager(log=Silent())  # type: ignore[arg-type]

    async def wait_for(number: int, email: str) -> Any:
        arguments = {"emails": [email], "share": 1.0}
        trigger = WorkspaceWaitTrigger(
            condition="members_joined",
            arguments=arguments,
            organization_id=SEED.organization_id,
            poll_interval=INTERVAL,
        )
        key = trigger.shared_stream_key()
        assert key is not None
        async for event in trigger.filter_shared_stream(manager.subscribe(trigger_id=number, trigger=trigger, key=key)):
            return event.payload["result"]
        return None

    waits = [asyncio.ensure_future(wait_for(1, ADA))]
    await until(lambda: polls(sandbox) > 1)
    await asyncio.to_thread(set_address, sandbox, SEED.analyst_uuid, "grace.married@example.com")
    waits.append(asyncio.ensure_future(wait_for(2, "grace.analyst@example.com")))
    before = polls(sandbox)
    await until(lambda: polls(sandbox) > before + 8)
    assert [wait.done() for wait in waits] == [False, False]
    await asyncio.to_thread(set_address, sandbox, SEED.analyst_uuid, ADA)
    assert await asyncio.wait_for(waits[0], 10) == {"joined": [ADA], "missing": {}}
    waits[1].cancel()
    await asyncio.wait(waits)
    await manager.stop_all()
