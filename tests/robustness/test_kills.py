"""
A thousand invites by real processes: one is killed fifty times while responses get lost, one is suspended.

``KILLS_SEED=… make test-slow ARGS=tests/robustness/test_kills.py`` repeats a run, as far as timing allows.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import BaseContext
    from multiprocessing.queues import SimpleQueue

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("sandbox", ["strict"], indirect=True)]

PEOPLE = [f"person-{number}@example.com" for number in range(1000)]
WRONG = ["no address", "two@@example.com"]
KILLS = 50


class FileStore:
    """A task state store that processes share: a file for each key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Any:
        file = self.folder / key
        return json.loads(file.read_text()) if file.exists() else None

    def set(self, key: str, value: Any) -> None:
        written = self.folder / f"{key}.{os.getpid()}"
        written.write_text(json.dumps(value))
        written.replace(self.folder / key)

    def delete(self, key: str) -> None:
        (self.folder / key).unlink(missing_ok=True)


def work(connection: str, folder: Path | None, outcome: SimpleQueue[Any]) -> None:
    """Run a try of the task in this process, with a store in a folder."""
    from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator

    os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"] = connection  # the fork server may have that of another test
    task = WorkspaceCreateInvitesOperator(task_id="invites", invites=[*PEOPLE, *WRONG], on_invalid="skip")
    context: Any = {} if folder is None else {"task_state_store": FileStore(folder)}
    try:
        outcome.put(task.execute(context)["counts"]["invited"])
    except Exception as error:  # noqa: BLE001 - the test reads it
        outcome.put(f"{type(error).__name__}: {error}")


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.001)


def out(sandbox: SandboxServer) -> int:
    return len(sandbox.effects("create_invite"))


def invited(sandbox: SandboxServer) -> Counter[str]:
    return Counter(effect["target"] for effect in sandbox.effects("create_invite"))


@pytest.fixture
def processes() -> BaseContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["airflow_provider_workspace.operators.invites", "airflow_provider_workspace.hooks.workspace"]
    )
    return context


def test_everybody_is_invited_exactly_once(sandbox: SandboxServer, connect: Connect, processes: Any) -> None:
    seed = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(10**6))
    chance = random.Random(seed)  # noqa: S311 - accidents, not cryptography
    connect(bulk_invite_limit=2, consistency_time=1)  # two per request, so that a thousand take a while
    sandbox.change_settings(latency_ms=30)
    for kind in ("reset_before", "reset_after", "status_after", "cut_body"):
        sandbox.inject(kind, "create_invites", times=None, probability=0.04, seed=chance.randrange(2**31))
    outcome = processes.SimpleQueue()
    out_at_kill: list[int] = []
    while len(out_at_kill) < KILLS:
        worker = processes.Process(target=work, args=(os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"], None, outcome))
        before = len(sandbox.requests())
        worker.start()
        wait_until(lambda: len(sandbox.requests()) > before)  # noqa: B023
        time.sleep(chance.uniform(0.0, 0.3))
        assert worker.is_alive(), "it was done before it was killed often enough"
        worker.kill()
        worker.join()
        out_at_kill.append(out(sandbox))
    last = processes.Process(target=work, args=(os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"], None, outcome))
    last.start()
    last.join(120)
    told = outcome.get()
    lost = sum(fault["hits"] for fault in sandbox.faults())
    print(f"KILLS_SEED={seed}: killed {KILLS} times when so many were out: {out_at_kill}; {lost} answers lost")
    assert isinstance(told, int), told
    assert invited(sandbox) == dict.fromkeys(PEOPLE, 1)
    assert len(set(out_at_kill)) > KILLS / 4, "hardly any kill met it at work"


def test_a_worker_that_wakes_sends_only_what_was_under_way(
    sandbox: SandboxServer, connect: Connect, processes: Any, tmp_path: Path
) -> None:
    """Airflow starts another try while the worker is suspended."""
    concurrency, limit, latency = 4, 20, 0.2
    connect(max_concurrency=concurrency, bulk_invite_limit=limit, consistency_time=1)
    sandbox.change_settings(latency_ms=int(latency * 1000))
    outcomes = [processes.SimpleQueue(), processes.SimpleQueue()]
    first, second = (
        processes.Process(target=work, args=(os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"], tmp_path, outcome))
        for outcome in outcomes
    )
    first.start()
    wait_until(lambda: out(sandbox) >= len(PEOPLE) // 5)
    os.kill(first.pid, signal.SIGSTOP)
    time.sleep(2 * latency)
    at_stop = out(sandbox)
    second.start()
    wait_until(lambda: out(sandbox) >= at_stop + len(PEOPLE) // 5)
    os.kill(first.pid, signal.SIGCONT)
    for process in (first, second):
        process.join(120)
    twice = [email for email, times in invited(sandbox).items() if times > 1]
    told = outcomes[0].get()
    print(f"suspended at {at_stop} invites; {len(twice)} people twice; the first try: {told}")
    assert set(invited(sandbox)) == set(PEOPLE)
    assert max(invited(sandbox).values()) <= 2
    assert len(twice) <= concurrency * limit
    assert "another try of this task has taken over" in told
    assert outcomes[1].get() > 0
