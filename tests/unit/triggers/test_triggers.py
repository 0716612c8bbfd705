"""The triggers against the sandbox, alone and in Airflow's manager of shared streams."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks import workspace_async
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger, WorkspaceWaitTrigger
from airflow_provider_workspace.version_compat import watchers_have_queues
from tests.audit import say
from tests.events import Silent, first_event, until
from tests.robustness.fast_forward import FastForward

if TYPE_CHECKING:
    from airflow.triggers.base import BaseEventTrigger, BaseTrigger

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

ADA = "ada@example.com"
INTERVAL = 0.05


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect(max_attempts=1)


def waiting(**changes: Any) -> WorkspaceWaitTrigger:
    arguments: dict[str, Any] = {
        "condition": "members_joined",
        "arguments": {"emails": [ADA], "share": 1.0},
        "organization_id": SEED.organization_id,
        "poll_interval": INTERVAL,
    }
    return WorkspaceWaitTrigger(**{**arguments, **changes})


def verified(domain_id: object, **changes: Any) -> WorkspaceWaitTrigger:
    arguments = {"domain_id": str(domain_id)}
    return waiting(**{"condition": "domain_verified", "arguments": arguments, "ask_verification": True, **changes})


def outcome(trigger: BaseTrigger, seconds: float = 5) -> Any:
    """Run a trigger to its event, and return the payload."""
    return asyncio.run(asyncio.wait_for(first_event(trigger), seconds)).payload


def statuses(waits: Callable[[], Awaitable[Any]], *steps: Callable[[], Any]) -> list[str]:
    """Run waits; take each step a while later, before which no wait ends. Return the statuses of their events."""

    async def scenario() -> Any:
        running = asyncio.ensure_future(waits())
        for step in steps:
            await asyncio.sleep(4 * INTERVAL)
            assert not running.done()
            await asyncio.to_thread(step)
        return await asyncio.wait_for(running, 10)

    return [event.payload["status"] for event in asyncio.run(scenario())]


def together(*triggers: BaseTrigger) -> Callable[[], Awaitable[Any]]:
    """Run triggers without shared streams, as before Airflow 3.3."""
    return lambda: asyncio.gather(*map(first_event, triggers))


def invited(sandbox: SandboxServer) -> Callable[[], Any]:
    """Invite Ada; return a function that accepts."""
    invite = WorkspaceHook().create_invite(target_email=ADA)
    return lambda: sandbox.accept_invite(str(invite.id))


@contextmanager
def fast_forward(patience: float = 0.3) -> Iterator[FastForward]:
    """Provide an event loop that jumps over its waits."""
    loop = FastForward(patience)
    try:
        yield loop
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())  # as asyncio.run() does
        loop.close()


@pytest.mark.parametrize(("interval", "left"), [(3600, 600), (300, -250), (300, -900)])
def test_a_triggerer_that_restarts_near_the_end_of_a_wait_looks_once_more(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, interval: float, left: float
) -> None:
    invite = WorkspaceHook().create_invite(target_email=ADA)
    sandbox.accept_invite(str(invite.id))
    monkeypatch.setattr("random.random", lambda: 0.9)
    now = time.time()
    with fast_forward(0.05) as loop:
        monkeypatch.setattr(time, "time", lambda: now + loop.time())
        event = loop.run_until_complete(first_event(waiting(poll_interval=interval, end_at=now + left)))
    assert event.payload["result"] == {"joined": [ADA], "missing": {}}


@pytest.mark.parametrize("status", [400, 403, 404, 405, 410])
def test_a_wait_survives_an_error_of_a_proxy(sandbox: SandboxServer, status: int) -> None:
    invite = WorkspaceHook().create_invite(target_email=ADA)
    sandbox.accept_invite(str(invite.id))
    sandbox.inject("proxy_error", "list_invites", status=status, times=3)
    assert outcome(waiting())["result"] == {"joined": [ADA], "missing": {}}


def test_a_record_that_does_not_exist_ends_the_wait(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=0.01)
    sandbox.inject("proxy_error", "retrieve_domain", status=404, times=1)
    event = outcome(verified(SEED.absent_uuid, ask_verification=False))
    assert event["status"] == "failed"
    assert f"domain {SEED.absent_uuid} not found in organization" in event["message"]


def test_a_poll_may_have_more_pages_than_one_attempt_has_time(sandbox: SandboxServer, connect: Connect) -> None:
    for number in range(8):
        WorkspaceHook().create_domain(domain=f"{number}.example.com")
    sandbox.change_settings(latency_ms=80)
    connect(page_size=1, total_timeout=0.4, max_attempts=1)
    assert outcome(verified(SEED.domain_id, ask_verification=False))["status"] == "done"


def test_a_poll_that_takes_too_long_names_the_page_size(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.change_settings(latency_ms=300)
    monkeypatch.setattr("airflow_provider_workspace.triggers.polling.POLL_TIMEOUT", 0.1)
    event = outcome(verified(SEED.domain_id, ask_verification=False, end_at=time.time()))
    assert "raise page_size in the extra of connection 'workspace_default'" in event["message"]


def test_a_record_that_is_deleted_meanwhile_ends_the_wait(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=0.01)
    domain = new_domain(sandbox, published=False)
    delete = partial(WorkspaceHook().delete_domain, domain_id=str(domain.id))
    assert statuses(together(verified(domain.id, ask_verification=False)), delete) == ["failed"]


def test_a_wait_reads_a_corrected_connection(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite = WorkspaceHook().create_invite(target_email=ADA)
    sandbox.accept_invite(str(invite.id))
    right = os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"]
    connect(host="http://127.0.0.1:9", max_attempts=1)
    with fast_forward(0.05) as loop:
        loop.call_later(30, monkeypatch.setenv, "AIRFLOW_CONN_WORKSPACE_DEFAULT", right)
        event = loop.run_until_complete(first_event(waiting(poll_interval=5)))
        assert loop.time() < 600
    assert event.payload["result"] == {"joined": [ADA], "missing": {}}


def test_a_wait_fails_if_only_a_proxy_answers(sandbox: SandboxServer) -> None:
    sandbox.inject("proxy_error", "list_invites", status=404, times=None)
    with fast_forward(0.05) as loop:
        event = loop.run_until_complete(first_event(waiting()))
        assert 600 < loop.time() < 1200
    assert event.payload["status"] == "failed"


@pytest.mark.parametrize(
    "trigger",
    [
        waiting(end_at=12.5, ask_verification=True),
        WorkspaceArrivalTrigger(what="member", poll_interval=5),
        WorkspaceDeadlineTrigger(end_at=12.5, dag_id="d", run_id="r", close_task_id="c"),
    ],
)
def test_triggers_survive_serialization(trigger: BaseTrigger) -> None:
    path, kwargs = trigger.serialize()
    assert json.loads(json.dumps(kwargs)) == kwargs
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**kwargs)
    assert again.serialize() == (path, kwargs)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"condition": "sunrise"}, "condition must be one of domain_verified, "),
        ({"arguments": {"emails": 5}}, "condition members_joined: field 'emails'"),
    ],
)
def test_an_invalid_condition_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(WorkspaceInputError, match=says):
        outcome(waiting(**changes))


@pytest.mark.parametrize(
    ("happens", "status", "message"),
    [
        ("nothing", "timeout", f"^0 of 1 joined, 1 needed; missing: {ADA} \\(no invite\\)$"),
        ("outage", "timeout", "^\\[not-reached\\] the last poll failed: WorkspaceConnectionError"),
        ("revoked key", "failed", "^\\[api-key-refused\\] the last poll failed: WorkspaceAuthenticationError"),
        ("no connection", "failed", "the last poll failed: The triggerer cannot find connection 'nowhere'"),
    ],
)
def test_how_a_wait_ends(sandbox: SandboxServer, connect: Connect, happens: str, status: str, message: str) -> None:
    if happens == "outage":
        connect(host="http://127.0.0.1:9", max_attempts=1)
    elif happens == "revoked key":
        sandbox.revoke_key(SEED.admin_key)
    wait = waiting(end_at=time.time() + 4 * INTERVAL)
    if happens == "no connection":
        wait.workspace_conn_id = "nowhere"
    event = outcome(wait)
    assert event["status"] == status
    assert re.search(message, event["message"])


@pytest.mark.parametrize("interval", [1, 60, 3600])
def test_a_key_that_stays_refused_ends_the_wait_a_minute_later(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, interval: float
) -> None:
    """Each refusal reads the connection again, since the new key may come a moment later."""
    lookups, get = list[str](), workspace_async.aget_connection

    async def count(conn_id: str) -> Any:
        lookups.append(conn_id)
        return await get(conn_id)

    monkeypatch.setattr(workspace_async, "aget_connection", count)
    monkeypatch.setattr("random.random", lambda: 0.0)  # the wait begins with a poll
    sandbox.revoke_key(SEED.admin_key)
    with fast_forward() as loop:
        event = loop.run_until_complete(first_event(waiting(poll_interval=interval)))
        assert 60 <= loop.time() < 200
    assert event.payload["status"] == "failed"
    assert event.payload["message"].startswith("[api-key-refused] WorkspaceAuthenticationError")
    assert 2 <= len(lookups) <= 7


def test_a_rotated_key_is_used(sandbox: SandboxServer, connect: Connect) -> None:
    accept = invited(sandbox)

    def revoke() -> None:
        sandbox.revoke_key(SEED.admin_key)

    def replace() -> None:
        connect(key=SEED.onboarding_key, max_attempts=1)

    waits = together(waiting(), waiting(poll_interval=3 * INTERVAL))
    assert statuses(waits, revoke, replace, accept) == ["done"] * 2
    assert outcome(waiting())["result"] == {"joined": [ADA], "missing": {}}


def test_waits_share_one_look_up_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups, get = list[str](), workspace_async.aget_connection

    async def count(conn_id: str) -> Any:
        lookups.append(conn_id)
        return await get(conn_id)

    monkeypatch.setattr(workspace_async, "aget_connection", count)
    end_at = time.time() + 4 * INTERVAL
    triggers = [waiting(poll_interval=INTERVAL + number / 1000, end_at=end_at) for number in range(30)]
    assert statuses(together(*triggers)) == ["timeout"] * 30
    assert lookups == ["workspace_default"]


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("interval", [0, 60])
def test_a_connection_missing_in_the_triggerer_for_minutes_ends_the_wait(interval: float) -> None:
    event = outcome(waiting(workspace_conn_id="on_workers_only", poll_interval=interval))
    assert event["status"] == "failed"
    assert event["message"].startswith("[connection-invalid] The triggerer cannot find connection 'on_workers_only'")


def test_a_secrets_backend_that_fails_does_not_end_the_wait(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To Airflow, a connection of a backend that fails is not defined."""
    accept = invited(sandbox)

    def unseal() -> None:
        monkeypatch.setenv("AIRFLOW_CONN_SEALED", os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"])
        accept()

    triggers = waiting(workspace_conn_id="sealed"), verified(SEED.domain_id, workspace_conn_id="sealed")
    assert statuses(together(*triggers), unseal) == ["done"] * 2


def test_a_secrets_backend_that_does_not_answer_does_not_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups, get = list[str](), workspace_async.aget_connection

    async def never_the_first_time(conn_id: str) -> Any:
        lookups.append(conn_id)
        if len(lookups) == 1:
            await asyncio.sleep(86_400)
        return await get(conn_id)

    monkeypatch.setattr(workspace_async, "aget_connection", never_the_first_time)
    with fast_forward() as loop:
        assert (
            loop.run_until_complete(first_event(verified(SEED.domain_id, poll_interval=60))).payload["status"] == "done"
        )
        assert loop.time() < 1000
    assert len(lookups) == 3, "of a poll, of a request for verification, and of a poll that reads it again"


def new_domain(sandbox: SandboxServer, *, published: bool) -> Any:
    domain = WorkspaceHook().create_domain(domain="new.example.com")
    if published:
        sandbox.publish_dns("_workspace-challenge.new.example.com", str(domain.verification_challenge))
    return domain


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_trigger_continues_if_the_key_may_not_request_verification(sandbox: SandboxServer) -> None:
    domain = new_domain(sandbox, published=False)
    publish = partial(sandbox.publish_dns, "_workspace-challenge.new.example.com", str(domain.verification_challenge))
    assert statuses(together(verified(domain.id)), publish) == ["done"]
    assert sum(row["path"].endswith("/verify/") for row in sandbox.requests()) == 1


@pytest.mark.parametrize(("status", "ends"), [(403, "failed"), (400, "timeout"), (401, "timeout")])
def test_a_refused_verification_ends_the_wait(sandbox: SandboxServer, status: int, ends: str) -> None:
    domain = new_domain(sandbox, published=False)
    sandbox.inject("status_before", "verify_domain", times=None, status=status, detail="No permission")
    event = outcome(verified(domain.id, end_at=time.time() + 5 * INTERVAL))
    assert event["status"] == ends
    assert "No permission" in event["message"] or ends == "timeout"


def test_a_request_for_verification_that_hangs_does_not_hold_up_the_wait(sandbox: SandboxServer) -> None:
    domain = new_domain(sandbox, published=True)
    sandbox.inject("time_out_before", "verify_domain", times=1)
    with fast_forward() as loop:
        event = loop.run_until_complete(first_event(verified(domain.id, poll_interval=60)))
        assert loop.time() < 1000
    assert event.payload["status"] == "done"


async def share(waits: int) -> list[Any]:
    """Run triggers with shared streams as Airflow's triggerer does, and return their first events."""
    from airflow.triggers.shared_stream import SharedStreamManager

    triggers = [waiting() for _ in range(waits)]
    manager = SharedStreamManager(log=Silent())  # type: ignore[arg-type]

    async def one(number: int, trigger: BaseEventTrigger) -> Any:
        key = trigger.shared_stream_key()
        assert key is not None
        try:
            async for event in trigger.filter_shared_stream(
                manager.subscribe(trigger_id=number, trigger=trigger, key=key)
            ):
                return event
        finally:
            await manager.unsubscribe(number, key)

    try:
        return await asyncio.gather(*(one(number, trigger) for number, trigger in enumerate(triggers)))
    finally:
        await manager.stop_all()


@pytest.mark.needs_airflow("3.3", "shared trigger streams")
def test_two_hundred_waits_share_one_poll_per_interval(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    accept = invited(sandbox)
    before, began = len(sandbox.requests()), time.monotonic()

    def accept_when_all_wait() -> None:
        while sum(record.message.startswith("Waiting: ") for record in caplog.records) < 200:
            assert time.monotonic() < began + 30
            time.sleep(INTERVAL)
        accept()

    assert statuses(lambda: share(200), accept_when_all_wait) == ["done"] * 200
    polls = (time.monotonic() - began) / INTERVAL + 1
    # A poll reads one page of invites and one of members.
    assert len(sandbox.requests()) - before <= 2 * polls
    # They do not write to their logs at once.
    logged = [record.created for record in caplog.records if record.message.startswith("Waiting: ")]
    assert len(logged) >= 200
    assert max(logged) - min(logged) > INTERVAL / 2


@pytest.mark.parametrize(
    ("changes", "shares"),
    [
        ({"arguments": {"emails": ["lin@example.com"]}}, True),
        ({"condition": "invites_settled", "arguments": {"emails": [ADA]}}, True),
        ({"end_at": 5.0}, True),
        ({"poll_interval": 1}, False),
        ({"organization_id": SEED.other_organization_id}, False),
        ({"workspace_conn_id": "other"}, False),
        ({"condition": "domain_verified", "arguments": {"domain_id": SEED.domain_id}}, False),
    ],
)
def test_shared_stream_key(changes: dict[str, Any], *, shares: bool) -> None:
    assert (waiting().shared_stream_key() == waiting(**changes).shared_stream_key()) == shares


@pytest.mark.parametrize(
    ("interval", "pauses"), [(60, [60, 120, 240, 480, 600, 600]), (900, [900, 900, 900]), (0.1, [0.1, 0.2, 0.4, 0.8])]
)
def test_polls_back_off_while_the_service_fails(connect: Connect, interval: float, pauses: list[float]) -> None:
    connect(host="http://127.0.0.1:9", max_attempts=1)
    times = list[float]()
    handler, logger = logging.Handler(), logging.getLogger("airflow_provider_workspace")
    handler.emit = lambda record: times.append(loop.time()) if "retried" in record.getMessage() else None  # type: ignore[method-assign]
    logger.addHandler(handler)

    async def scenario() -> None:
        wait = asyncio.ensure_future(first_event(waiting(poll_interval=interval)))
        while len(times) <= len(pauses):  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(interval)
        wait.cancel()
        await asyncio.wait({wait})

    with fast_forward(patience=0.0005) as loop:
        loop.run_until_complete(scenario())
    logger.removeHandler(handler)
    # Before it logs, each wait pauses a moment: not all of them at once.
    waited = [after - before for before, after in pairwise(times)]
    assert all(pause * 0.99 <= was <= pause + 2 * min(interval, 5) for was, pause in zip(waited, pauses, strict=False))


class _Store:
    """The methods of Airflow's asset state store that the trigger uses."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def aget(self, key: str) -> Any:
        return self.values.get(key)

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = value


@pytest.fixture
def stored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_workspace.triggers.workspace.STORED_SECONDS", 0.0)


async def watch(
    store: Any, *names: str, expected: int, ready: Callable[[], bool] = lambda: True, what: Any = "project"
) -> list[list[str]]:
    """Watch projects, create some, and return the names in each event."""
    trigger = WorkspaceArrivalTrigger(what=what, poll_interval=INTERVAL)
    trigger.asset_state_store = store
    told: list[list[str]] = []

    async def listen() -> None:
        async for event in trigger.run():
            assert event.payload.keys() == {"what", "organization_id", "rows"}
            told.append([row["name"] for row in event.payload["rows"]])

    task = asyncio.create_task(listen())
    if isinstance(store, _Store):
        await until(lambda: bool(store.values))
    for name in names:
        await asyncio.to_thread(WorkspaceHook().create_project, name=name)
    await until(lambda: sum(map(len, told)) >= expected and ready())
    await asyncio.sleep(3 * INTERVAL)
    task.cancel()
    return told


@pytest.mark.usefixtures("stored_at_once")
def test_arrivals_fire_once_across_restarts_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    store = _Store()
    told = asyncio.run(watch(store, "First", "Second", expected=2))
    assert [name for names in told for name in names] == ["First", "Second"]
    names = [f"While nobody watched {number}" for number in range(10)]
    for name in names:
        WorkspaceHook().create_project(name=name)
    monkeypatch.setattr("airflow_provider_workspace.triggers.workspace.MAX_ROWS", 7)
    first, second = asyncio.run(watch(store, expected=10))
    assert (len(first), sorted(first + second)) == (7, names)
    assert asyncio.run(watch(store, expected=0)) == []


@pytest.mark.usefixtures("stored_at_once")
@pytest.mark.parametrize("way", ["leaves", "after a reset"])
@pytest.mark.parametrize("polled", [True, False])
def test_whoever_joins_again_arrives_again(sandbox: SandboxServer, way: str, *, polled: bool) -> None:
    store = _Store()
    invited(sandbox)()
    asyncio.run(watch(store, expected=0, what="member"))
    (user_uuid,) = [row.user.uuid for row in WorkspaceHook().list_members() if row.user and row.user.email == ADA]
    if way == "leaves":
        WorkspaceHook().delete_member(user_uuid=str(user_uuid))
    else:
        sandbox.reset()
    if polled:
        asyncio.run(watch(store, expected=0, what="member"))
    sandbox.advance_clock(3600)
    invited(sandbox)()
    told = asyncio.run(watch(store, expected=1, what="member"))
    assert ADA in told[-1]
    assert user_uuid in [row.user.uuid for row in WorkspaceHook().list_members() if row.user]


@pytest.mark.usefixtures("stored_at_once")
def test_members_who_were_in_no_list_for_a_while_do_not_arrive(
    sandbox: SandboxServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = _Store()
    asyncio.run(watch(store, expected=0, what="member"))
    say(sandbox, "list_members")
    asyncio.run(watch(store, expected=0, what="member", ready=lambda: "The list of members is empty" in caplog.text))
    assert "The list of members is empty" in caplog.text
    sandbox.clear_faults()
    assert asyncio.run(watch(store, expected=0, what="member")) == []


@pytest.mark.usefixtures("stored_at_once")
def test_what_an_earlier_release_remembers_is_neither_repeated_nor_missed() -> None:
    store = _Store()
    store.values[f"workspace_project_{SEED.organization_id}"] = {"before": None, "ids": {"67w5qvAI": None}}
    WorkspaceHook().create_project(name="Meanwhile")
    assert asyncio.run(watch(store, expected=1)) == [["Meanwhile"]]


@pytest.mark.usefixtures("stored_at_once")
def test_a_watcher_says_once_an_hour_what_it_sees(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "airflow_provider_workspace")
    asyncio.run(watch(_Store(), "First", expected=1))
    monkeypatch.setattr("airflow_provider_workspace.triggers.workspace.ALIVE_SECONDS", 2 * INTERVAL)
    asyncio.run(watch(_Store(), "Second", expected=1))
    pattern = rf"Watching projects of {SEED.organization_id}: (\d rows, \d of them new) since [\dT:-]+Z"
    said = re.findall(pattern, "\n".join(record.getMessage() for record in caplog.records))
    assert said[:2] == ["1 rows, 0 of them new", "2 rows, 0 of them new"]
    assert "3 rows, 1 of them new" in said[2:]


def test_the_deadline_trigger_fires_by_the_wall_clock() -> None:
    began = time.time()
    event = asyncio.run(first_event(WorkspaceDeadlineTrigger(end_at=began + 0.3)))
    assert event.payload == {"status": "over", "state": None}
    assert time.time() - began >= 0.3
    event = asyncio.run(first_event(WorkspaceDeadlineTrigger(end_at=began + 3600, close_task_id="close")))
    assert event.payload == {"status": "unwatched", "state": None}


def test_a_watcher_uses_its_queue_or_is_refused() -> None:
    with pytest.raises(WorkspaceInputError, match="queue must be a string"):
        WorkspaceArrivalTrigger(what="member", queue=7)  # type: ignore[arg-type]
    if watchers_have_queues():
        assert WorkspaceArrivalTrigger(what="member", queue="north").serialize()[1]["queue"] == "north"
    else:
        with pytest.raises(WorkspaceInputError, match="or upgrade"):
            WorkspaceArrivalTrigger(what="member", queue="north")
    assert "queue" not in WorkspaceArrivalTrigger(what="member").serialize()[1]


@pytest.mark.parametrize("trigger", [waiting(), WorkspaceDeadlineTrigger(end_at=12.5)])
def test_triggers_inherit_the_queue_of_their_task(trigger: BaseTrigger) -> None:
    """Airflow reads one attribute in 3.3 and another one since 3.4."""
    assert getattr(trigger, "supports_triggerer_queue", True)
    assert getattr(trigger, "trigger_queue_inherited_from_task", True)
