"""The concurrency limit, and how it slows down after a 429."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.retry import RetryPolicy
from airflow_provider_workspace.client.call import Call
from airflow_provider_workspace.client.throttle import (
    AsyncParallelCalls,
    AsyncThrottle,
    ConcurrencyLimit,
    ParallelCalls,
    Throttle,
)


def call_of(*, throttled: bool = False) -> Call[None]:
    call = Call(ops.ListProjects(organization_id="o"), RetryPolicy())
    call.throttled = throttled
    return call  # type: ignore[return-value]


def enter(limit: ConcurrencyLimit, *, throttled: bool = False) -> Call[None]:
    assert limit.admits()
    call = call_of(throttled=throttled)
    limit.under_way.add(call)
    return call


def test_concurrency_is_limited() -> None:
    limit = ConcurrencyLimit(2)
    first = enter(limit)
    enter(limit)
    assert not limit.admits()
    limit.leave(first)
    assert limit.admits()


def test_no_request_starts_during_retry_after() -> None:
    limit = ConcurrencyLimit(4)
    call = enter(limit)
    assert limit.admits()
    call.throttled = True
    assert not limit.admits()


def test_concurrency_drops_to_one_after_429_and_recovers() -> None:
    limit = ConcurrencyLimit(4)
    limit.leave(enter(limit, throttled=True))
    widths = []
    for _ in range(5):
        widths.append(limit.current)
        limit.leave(enter(limit))
    assert widths == [1, 2, 3, 4, 4]


def peak_concurrency(throttle: Throttle) -> int:
    """Return how many threads were inside the throttle at once."""
    inside, most, lock = [0], [0], threading.Lock()

    def go() -> None:
        with throttle.acquire(call_of()):
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
    assert peak_concurrency(Throttle(3)) == 3


def test_coroutines_share_the_concurrency_limit() -> None:
    async def go_all() -> int:
        throttle, inside, most = AsyncThrottle(3), 0, 0

        async def go() -> None:
            nonlocal inside, most
            async with throttle.acquire(call_of()):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(go() for _ in range(12)))
        return most

    assert asyncio.run(go_all()) == 3


def test_threads_are_reused_between_batches() -> None:
    calls = ParallelCalls(2)
    names = [set(calls.map(lambda _: threading.current_thread().name, range(20))) for _ in range(3)]
    assert len(set.union(*names)) <= 2


def test_a_failing_call_starts_no_more_and_waits_for_running_ones() -> None:
    calls, started, finished = ParallelCalls(2), list[int](), list[int]()
    released = threading.Event()

    def work(number: int) -> None:
        started.append(number)
        if number == 0:
            threading.Timer(0.05, released.set).start()
            raise ValueError("broken")
        released.wait(10)
        finished.append(number)

    with pytest.raises(ValueError, match="broken"):
        calls.map(work, range(50))
    assert sorted(finished) == sorted(set(started) - {0})
    assert len(started) < 50
    time.sleep(0.05)
    assert len(started) == len(finished) + 1


@pytest.mark.parametrize("maximum", [1, 2])
def test_a_failing_coroutine_cancels_running_ones_and_starts_no_more(maximum: int) -> None:
    started: list[int] = []

    async def work(number: int) -> None:
        started.append(number)
        if number == 0:
            raise ValueError("broken")
        await asyncio.sleep(0.01)

    async def scenario() -> None:
        with pytest.raises(ValueError, match="broken"):
            await AsyncParallelCalls(maximum).map(work, range(20))
        count = len(started)
        await asyncio.sleep(0.1)
        assert len(started) == count < 20

    asyncio.run(scenario())
