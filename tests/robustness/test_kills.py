"""
A thousand invites by real processes that are killed fifty times while responses get lost.

``KILLS_SEED=… make test-slow ARGS=tests/robustness/test_kills.py`` repeats a run, as far as timing allows.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import SimpleQueue

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)]

PEOPLE = [f"person-{number}@example.com" for number in range(1000)]
WRONG = ["no address", "two@@example.com"]
KILLS = 50


def work(connection: str, outcome: SimpleQueue[Any]) -> None:
    """Run a try of the task in this process."""
    from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator

    os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"] = connection  # the fork server may have that of another test
    task = WorkspaceCreateInvitesOperator(task_id="invites", invites=[*PEOPLE, *WRONG], on_invalid="skip")
    try:
        outcome.put(task.execute({})["counts"]["invited"])
    except Exception as error:  # noqa: BLE001 - the test reads it
        outcome.put(f"{type(error).__name__}: {error}")


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.001)


def test_everybody_is_invited_exactly_once(sandbox: SandboxServer, connect: Connect) -> None:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(
        ["airflow_provider_workspace.operators.invites", "airflow_provider_workspace.hooks.workspace"]
    )
    seed = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(10**6))
    chance = random.Random(seed)  # noqa: S311 - accidents, not cryptography
    connect(bulk_invite_limit=2, consistency_time=1)  # two per request, so that a thousand take a while
    sandbox.change_settings(latency_ms=30)
    for kind in ("reset_before", "reset_after", "status_after", "cut_body"):
        sandbox.inject(kind, "create_invites", times=None, probability=0.04, seed=chance.randrange(2**31))
    outcome = processes.SimpleQueue()
    out_at_kill: list[int] = []
    while len(out_at_kill) < KILLS:
        worker = processes.Process(target=work, args=(os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"], outcome))
        before = len(sandbox.requests())
        worker.start()
        wait_until(lambda: len(sandbox.requests()) > before)  # noqa: B023
        time.sleep(chance.uniform(0.0, 0.3))
        assert worker.is_alive(), "it was done before it was killed often enough"
        worker.kill()
        worker.join()
        out_at_kill.append(len(sandbox.effects("create_invite")))
    last = processes.Process(target=work, args=(os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"], outcome))
    last.start()
    last.join(120)
    told = outcome.get()
    lost = sum(fault["hits"] for fault in sandbox.faults())
    print(f"KILLS_SEED={seed}: killed {KILLS} times when so many were out: {out_at_kill}; {lost} answers lost")
    assert isinstance(told, int), told
    assert Counter(effect["target"] for effect in sandbox.effects("create_invite")) == dict.fromkeys(PEOPLE, 1)
    assert len(set(out_at_kill)) > KILLS / 4, "hardly any kill met it at work"
