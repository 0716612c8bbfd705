"""
A thousand invites by a worker that is killed fifty times, while responses get lost.

``KILLS_SEED=… make test-slow ARGS=tests/robustness/test_kills.py`` repeats a run, as far as timing allows.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

PEOPLE = [f"person-{number}@example.com" for number in range(1000)]
WRONG = ["no address", "two@@example.com"]
KILLS = 50
# Two invites per request, so that a thousand take a while.
INVITES_PER_REQUEST = 2
LATENCY_MS = 30


def work(report: multiprocessing.SimpleQueue[dict[str, int]]) -> None:
    """Run the task once in this process."""
    from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator

    task = WorkspaceCreateInvitesOperator(task_id="invites", invites=[*PEOPLE, *WRONG], on_invalid="skip")
    report.put(task.execute({})["counts"])


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_everybody_is_invited_exactly_once(sandbox: SandboxServer, connect: Connect) -> None:
    seed = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(10**6))
    chance = random.Random(seed)  # noqa: S311 - accidents, not cryptography
    connect(bulk_invite_limit=INVITES_PER_REQUEST, consistency_time=1)
    sandbox.change_settings(latency_ms=LATENCY_MS)
    for kind in ("reset_before", "reset_after", "status_after", "cut_body"):
        sandbox.inject(kind, "create_invites", times=None, probability=0.04, seed=chance.randrange(2**31))

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["airflow_provider_workspace.operators.invites", "airflow_provider_workspace.hooks.workspace"]
    )
    report = context.SimpleQueue()
    out_at_kill: list[int] = []
    while len(out_at_kill) < KILLS:
        worker = context.Process(target=work, args=(report,))
        before = len(sandbox.requests())
        worker.start()
        while worker.is_alive() and len(sandbox.requests()) == before:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.3))
        assert worker.is_alive(), "it was done before it was killed often enough"
        worker.kill()
        worker.join()
        out_at_kill.append(len(sandbox.effects("create_invite")))
    last = context.Process(target=work, args=(report,))
    last.start()
    last.join(120)
    assert last.exitcode == 0

    invited = Counter(effect["target"] for effect in sandbox.effects("create_invite"))
    lost = sum(fault["hits"] for fault in sandbox.faults())
    print(f"KILLS_SEED={seed}: killed {KILLS} times when so many were out: {out_at_kill}; {lost} answers lost")
    print(f"the audit: {sum(invited.values())} invites of {len(invited)} addresses; the last try: {report.get()}")
    assert set(invited) == set(PEOPLE)
    assert set(invited.values()) == {1}
    assert len(set(out_at_kill)) > KILLS / 4, "hardly any kill met it at work"
