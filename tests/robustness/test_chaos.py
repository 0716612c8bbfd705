"""Waits during 24 simulated hours of random faults: each ends with its event or is cancelled."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.connection import Protocol, reset
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import Listener, bind
from airflow_provider_workspace.sandbox.service import Service, Settings
from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger
from tests.events import Silent
from tests.fault_kinds import TEST_FAULTS
from tests.robustness.fast_forward import FastForward

if TYPE_CHECKING:
    from airflow.triggers.shared_stream import SharedStreamManager

HOURS = 24
WAITERS = 400
BEGAN = 1_700_000_000.0
# How late an event may be: one poll of at most five minutes and some time of the loop.
LATE = 360
FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("refuse", {}),
    ("reset_before", {}),
    ("reset_after", {}),
    ("time_out_before", {}),
    ("time_out_after", {}),
    ("rate_limit", {"seconds": 5}),
    ("rate_limit", {"seconds": 86_400}),
    ("odd_rate_limit", {"retry_after": "nonsense"}),
    ("status_before", {"status": 503}),
    ("proxy_error", {"status": 502}),
    ("status_after", {"status": 500}),
    ("odd_body", {"body": "empty"}),
    ("cut_body", {}),
    ("odd_body", {"body": "half"}),
    ("odd_body", {"body": "html"}),
    ("wrong_content_type", {}),
    ("redirect", {}),
    ("slow_drip", {"pause": 0.5, "times": 1}),  # each byte is a jump of the clock
]


class Quiet(Listener):
    """The server of the sandbox without its ten ticks per second, which are too many in a day; and outages."""

    async def main_loop(self) -> None:
        self.over = asyncio.Event()
        await self.over.wait()

    async def take_down(self, seconds: float) -> None:
        """Reset all connections, and refuse new ones for some seconds, as in a restart."""
        for listening in self.servers:
            listening.close()
        # Keep the port: a bound socket that does not listen refuses connections.
        self.socket = bind("127.0.0.1", self.port)
        for connection in list(self.server_state.connections):
            reset(connection.transport)
        await asyncio.sleep(seconds)
        loop = asyncio.get_running_loop()
        self.servers = [await loop.create_server(self._protocol, sock=self.socket)]

    def _protocol(self) -> Protocol:
        return Protocol(self.config, self.server_state, self.lifespan.state)


@dataclass
class Waiter:
    """The result of a wait."""

    number: int
    trigger: WorkspaceWaitTrigger
    task: asyncio.Task[None] | None = None
    events: int = 0
    status: str = "waiting"
    ended_at: float = 0.0


@pytest.mark.slow
@pytest.mark.needs_airflow("3.3", "shared trigger streams")
def test_every_waiter_ends_during_a_day_of_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(2**31)))
    print(f"\nCHAOS_SEED={seed}")
    loop = FastForward()
    monkeypatch.setattr(time, "time", lambda: BEGAN + loop.time())
    began = time.monotonic()
    descriptors = open_files()
    try:
        waiters, requests = loop.run_until_complete(scenario(random.Random(seed), loop, monkeypatch))  # noqa: S311
        left = asyncio.all_tasks(loop)
    finally:
        loop.close()
    gc.collect()
    ends = Counter(waiter.status for waiter in waiters)
    print(
        f"{HOURS} h in {time.monotonic() - began:.0f} s, {requests} requests, {len(waiters)} waiters: "
        f"{', '.join(f'{count} {end}' for end, count in sorted(ends.items()))}"
    )
    assert left == set()
    assert open_files() <= descriptors
    assert set(ends) <= {"done", "timeout", "failed", "cancelled"}
    assert min(ends["done"], ends["timeout"], ends["cancelled"]) > 10
    for waiter in waiters:
        assert waiter.events == (0 if waiter.status == "cancelled" else 1)
        assert waiter.trigger.end_at is not None
        assert waiter.ended_at <= waiter.trigger.end_at + LATE, waiter
        if waiter.status == "timeout":
            assert waiter.ended_at >= waiter.trigger.end_at, waiter


async def scenario(chance: random.Random, loop: FastForward, patch: pytest.MonkeyPatch) -> tuple[list[Waiter], int]:
    """Run the day, and return the waits."""
    service = Service(":memory:", Settings("strict"), TEST_FAULTS)
    server = Quiet(service, "127.0.0.1", 0)
    serving = asyncio.ensure_future(server.serve(sockets=[server.socket]))
    while not server.started:  # noqa: ASYNC110 - it has no event for this
        await asyncio.sleep(0.01)
    extra = {"organization_id": SEED.organization_id, "max_attempts": 2, "read_timeout": 30, "max_retry_wait": 10}
    host = f"http://127.0.0.1:{server.port}"
    connection = {"conn_type": "workspace", "host": host, "password": SEED.admin_key, "extra": extra}
    patch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
    from airflow.triggers.shared_stream import SharedStreamManager

    manager = SharedStreamManager(log=Silent())  # type: ignore[arg-type]
    waiters: list[Waiter] = []
    trouble = asyncio.ensure_future(make_trouble(chance, service, server))
    for number in range(WAITERS):
        await asyncio.sleep(chance.expovariate(1) * HOURS * 3600 / WAITERS)
        waiter = Waiter(number, trigger_of(chance, loop))
        waiter.task = asyncio.ensure_future(wait(manager, waiter, loop))
        waiters.append(waiter)
        if chance.random() < 0.2:
            loop.call_later(chance.uniform(0, 7200), waiter.task.cancel)
    await asyncio.wait([waiter.task for waiter in waiters if waiter.task], timeout=12 * 3600)
    trouble.cancel()
    with suppress(asyncio.CancelledError):
        await trouble
    service.faults.clear()
    for waiter in waiters:
        if waiter.task and not waiter.task.done():
            waiter.status = "LOST"
            waiter.task.cancel()
    await asyncio.gather(*(waiter.task for waiter in waiters if waiter.task), return_exceptions=True)
    await asyncio.sleep(60)
    assert not manager._groups, "a stream goes on without anybody who waits"
    await manager.stop_all()
    connections = len(server.server_state.connections)
    assert connections == 0, f"{connections} connections are still open"
    server.should_exit = True
    server.over.set()
    await serving
    await asyncio.sleep(5)
    total = service.request_total
    service.state.db.close()
    return waiters, total


def open_files() -> int:
    """Return the number of open files and sockets of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def trigger_of(chance: random.Random, loop: FastForward) -> WorkspaceWaitTrigger:
    """Return a random trigger; the conditions of some are never met."""
    people = [f"person{chance.randrange(40)}@example.com"]
    conditions: list[tuple[str, dict[str, Any]]] = [
        ("members_joined", {"emails": people, "share": 1.0}),
        ("invites_settled", {"emails": people}),
        ("domain_verified", {"domain_id": SEED.domain_id}),
        ("domain_verified", {"domain_id": SEED.invite_id}),
        ("project_receiving_events", {"project_id": str(SEED.project_id)}),
    ]
    condition, arguments = chance.choice(conditions)
    poll_interval = chance.choice([60.0, 300.0])
    end_at = BEGAN + loop.time() + chance.uniform(120, 4 * 3600)
    asks = condition == "domain_verified" and chance.random() < 0.1
    return WorkspaceWaitTrigger(
        condition=condition, arguments=arguments, poll_interval=poll_interval, end_at=end_at, ask_verification=asks
    )


async def wait(manager: SharedStreamManager, waiter: Waiter, loop: FastForward) -> None:
    """Run a trigger as Airflow's triggerer does. It must send one event."""
    key = waiter.trigger.shared_stream_key()
    assert key is not None
    stream = manager.subscribe(trigger_id=waiter.number, trigger=waiter.trigger, key=key)
    events = waiter.trigger.filter_shared_stream(stream)
    try:
        async for event in events:
            waiter.events += 1
            waiter.status = event.payload["status"]
            waiter.ended_at = BEGAN + loop.time()
    except asyncio.CancelledError:
        waiter.status = "cancelled"
        raise
    finally:
        await events.aclose()  # type: ignore[attr-defined]
        await manager.unsubscribe(waiter.number, key)


async def make_trouble(chance: random.Random, service: Service, server: Quiet) -> None:
    """Inject random faults all day: single responses, bad hours and outages."""
    while True:
        await asyncio.sleep(chance.expovariate(1 / 240))
        kind, options = chance.choice(FAULTS)
        times = chance.choice([1, 2, 5, 20])
        service.inject(kind, **{"times": times, **options})
        if chance.random() < 0.02:
            await server.take_down(chance.uniform(1, 900))
        if len(service.faults.active) > 20:
            service.faults.clear()
        if chance.random() < 0.2:
            service.set_project(SEED.project_id, ingested_event=chance.random() < 0.5)
