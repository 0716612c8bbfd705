"""Requests at once: as many as the connection allows, and all of them slower where the service says so."""

from __future__ import annotations

import asyncio
import threading
import time

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.retry import RetryPolicy
from airflow_provider_workspace.client.call import Call
from airflow_provider_workspace.client.gate import AsyncGate, Gate, Width


def call_of(*, throttled: bool = False) -> Call[None]:
    call = Call(ops.ListProjects(organization_id="o"), RetryPolicy())
    call.throttled = throttled
    return call  # type: ignore[return-value]


def enter(width: Width, *, throttled: bool = False) -> Call[None]:
    assert width.admits()
    call = call_of(throttled=throttled)
    width.under_way.add(call)
    return call


def test_concurrency_is_limited() -> None:
    width = Width(2)
    first = enter(width)
    enter(width)
    assert not width.admits()
    width.leave(first)
    assert width.admits()


def test_no_request_starts_while_one_waits_for_retry_after() -> None:
    width = Width(4)
    call = enter(width)
    assert width.admits()
    call.throttled = True
    assert not width.admits()


def test_concurrency_drops_to_one_after_429_and_recovers() -> None:
    width = Width(4)
    width.leave(enter(width, throttled=True))
    widths = []
    for _ in range(5):
        widths.append(width.width)
        width.leave(enter(width))
    assert widths == [1, 2, 3, 4, 4]


def most_at_once(gate: Gate) -> int:
    """Send many threads through a gate, and count how many are inside."""
    inside, most, lock = [0], [0], threading.Lock()

    def go() -> None:
        with gate.passed(call_of()):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=go) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    return most[0]


def test_threads_share_the_concurrency_limit() -> None:
    assert most_at_once(Gate(3)) == 3


def test_coroutines_share_the_concurrency_limit() -> None:
    async def go_all() -> int:
        gate, inside, most = AsyncGate(3), 0, 0

        async def go() -> None:
            nonlocal inside, most
            async with gate.passed(call_of()):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(go() for _ in range(12)))
        return most

    assert asyncio.run(go_all()) == 3
