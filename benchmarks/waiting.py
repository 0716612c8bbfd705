"""
Target 5: thousands of tasks that wait in one triggerer.

Ours wait as Airflow's triggerer lets them: subscribed to shared streams.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import measure
from measure import OURS, Result
from service import Service, running

WAITING = 5000
INTERVAL = 5.0
# The default of the sensors. Thousands of polls every five seconds are more than a processor can send.
INTERVAL_OF_MANY = 60.0
MANY = "5,000 organizations"
HTTP = "http triggers"
DOMAIN = "0190c0de-0000-4000-8000-000000000003"


async def sleep_alone(_: int) -> None:
    """Wait without asking anybody."""
    await asyncio.sleep(INTERVAL * random.random())  # noqa: S311 - jitter
    while True:
        await asyncio.sleep(INTERVAL)


def waits(organization: Callable[[int], str], interval: float = INTERVAL) -> Callable[[int], Any]:
    """Return waits for a domain, as the triggerer runs them."""
    from airflow.triggers.shared_stream import SharedStreamManager

    from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger

    streams: list[SharedStreamManager] = []

    async def wait(number: int) -> None:
        if not streams:
            streams.append(SharedStreamManager(log=None))
        trigger = WorkspaceWaitTrigger(
            condition="domain_verified",
            arguments={"domain_id": DOMAIN},
            organization_id=organization(number),
            poll_interval=interval,
        )
        stream = streams[0].subscribe(trigger_id=number, trigger=trigger, key=trigger.shared_stream_key())
        await first(trigger.filter_shared_stream(stream))

    return wait


def poll_with_http_trigger() -> Callable[[int], Any]:
    """Return waits of the http provider's sensor."""
    from airflow.providers.http.triggers.http import HttpSensorTrigger

    async def wait(_: int) -> None:
        await asyncio.sleep(INTERVAL * random.random())  # noqa: S311 - jitter
        await first(HttpSensorTrigger(endpoint="/missing", method="GET", poke_interval=INTERVAL).run())

    return wait


async def first(events: AsyncIterator[Any]) -> None:
    """Wait for an event; here none comes."""
    async for event in events:
        raise AssertionError(f"A wait ended: {event}")


def resident() -> float:
    """Return the memory this process holds now, in kB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def watch(ready: Callable[[], Callable[[int], Any]], service: Service, seconds: float) -> dict[str, float]:
    """Let thousands wait, and watch the loop once all of them do."""

    async def run() -> dict[str, float]:
        wait = ready()
        gc.collect()
        before = resident()
        tasks = [asyncio.ensure_future(wait(number)) for number in range(WAITING)]
        # By then all have looked for the first time; whoever only sleeps does so from the start.
        await asyncio.sleep(1.0 if wait is sleep_alone else INTERVAL + 1.0)
        service_report = await asyncio.to_thread(service.report)
        lags: list[float] = []
        began, cpu = time.monotonic(), time.process_time()
        while time.monotonic() - began < seconds:
            asked = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - asked - 0.01)
        cpu, took = time.process_time() - cpu, time.monotonic() - began
        service_report = await asyncio.to_thread(service.report)
        ended = [task for task in tasks if task.done()]
        assert not ended, ended[0]
        return {
            "cpu": 100 * cpu / took,
            "kB": (resident() - before) / WAITING,
            "lag": 1000 * statistics.quantiles(lags, n=100)[98],
            "requests": service_report["requests"] * INTERVAL / took,
            "connections": service_report["max_connections"],
        }

    return asyncio.run(run())


def main() -> None:
    """Measure."""
    quick = measure.quick(__doc__, "one short round: one organization, without the peer")
    rounds, seconds = (1, INTERVAL) if quick else (3, 30.0)
    with measure.airflow_home(), running() as service:
        measure.connect(service.url)
        contestants: dict[str, Callable[[], Callable[[int], Any]]] = {
            "coroutines that sleep": lambda: sleep_alone,
            "one organization": lambda: waits(lambda _: "small"),
        }
        if not quick:
            contestants |= {
                MANY: lambda: waits(lambda number: f"small-{number}", INTERVAL_OF_MANY),
                HTTP: poll_with_http_trigger,
            }
        import_all()
        seen: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
        gc.collect()
        gc.freeze()
        for _ in range(rounds):
            for name, ready in contestants.items():
                seen[name].append(measure.in_child(lambda ready=ready: watch(ready, service, seconds)))
                service.report()
        measure.report("waiting", list(results(seen)))


def import_all() -> None:
    """Import what the contestants need, which the memory of one wait does not include."""
    import aiohttp
    import airflow.providers.http.triggers.http
    import airflow.triggers.shared_stream

    import airflow_provider_workspace.client.loop
    import airflow_provider_workspace.hooks.workspace_async
    import airflow_provider_workspace.triggers.workspace

    assert aiohttp
    assert airflow
    assert airflow_provider_workspace


def results(seen: dict[str, list[dict[str, float]]]) -> Any:
    """Yield what was measured of each."""
    one = "one organization"

    def of(figure: str, *names: str) -> measure.Sample:
        return {
            OURS if position == 0 else name: [round_[figure] for round_ in seen[name]]
            for position, name in enumerate(names)
        }

    sleeping, http = "coroutines that sleep", [HTTP] if HTTP in seen else []
    what = f"{WAITING:,} waits on one organization, every {INTERVAL:.0f} s"
    yield Result(5, f"{what}: processor", "% of a core", of("cpu", one, sleeping, *http), {sleeping: 1.5})
    yield Result(5, f"{what}: memory of each", "kB", of("kB", one, sleeping, *http), bound=20)
    yield Result(5, f"{what}: 99th percentile of the loop's lag", "ms", of("lag", one, sleeping, *http), bound=20)
    yield Result(5, f"{what}: requests per interval", "requests", of("requests", one, *http), bound=1.5)
    if MANY not in seen:
        return
    what = f"{WAITING:,} waits on {WAITING:,} organizations every {INTERVAL_OF_MANY:.0f} s, theirs {INTERVAL:.0f} s"
    yield Result(5, f"{what}: processor", "% of a core", of("cpu", MANY, *http))
    yield Result(5, f"{what}: memory of each", "kB", of("kB", MANY, *http))
    yield Result(5, f"{what}: 99th percentile of the loop's lag", "ms", of("lag", MANY, *http))
    yield Result(5, f"{what}: requests per interval", "requests", of("requests", MANY, *http))
    yield Result(5, f"{what}: most connections", "connections", of("connections", MANY, *http), bound=20)


if __name__ == "__main__":
    main()
