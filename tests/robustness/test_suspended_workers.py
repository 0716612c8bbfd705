"""A worker is suspended, Airflow starts another try, and the worker wakes up: real processes, one store."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import SimpleQueue

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

PEOPLE = [f"person-{number}@example.com" for number in range(1000)]
LATENCY_MS = 200
# What may be under way when the worker is suspended: requests, and the people in each.
MAX_CONCURRENCY = 4
LIMIT = 20


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


def work(folder: Path, outcome: SimpleQueue[Any]) -> None:
    """Run a try of the task in this process."""
    from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator

    context: Any = {"task_state_store": FileStore(folder)}
    try:
        counts = WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE).execute(context)["counts"]
        outcome.put(counts["invited"])
    except Exception as error:  # noqa: BLE001 - the test reads it
        outcome.put(f"{type(error).__name__}: {error}")


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_a_worker_that_wakes_sends_only_what_was_under_way(
    sandbox: SandboxServer, connect: Connect, tmp_path: Path
) -> None:
    connect(max_concurrency=MAX_CONCURRENCY, bulk_invite_limit=LIMIT, consistency_time=1)
    sandbox.change_settings(latency_ms=LATENCY_MS)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["airflow_provider_workspace.operators.invites", "airflow_provider_workspace.hooks.workspace"]
    )

    def out() -> int:
        return len(sandbox.effects("create_invite"))

    outcomes = [context.SimpleQueue(), context.SimpleQueue()]
    first, second = (context.Process(target=work, args=(tmp_path, outcome)) for outcome in outcomes)
    first.start()
    wait_until(lambda: out() >= len(PEOPLE) // 5)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGSTOP)
    suspended = time.monotonic()
    time.sleep(2 * LATENCY_MS / 1000)
    at_stop = out()
    second.start()
    wait_until(lambda: out() >= at_stop + len(PEOPLE) // 5)
    os.kill(first.pid, signal.SIGCONT)
    seconds = time.monotonic() - suspended
    first.join(120)
    second.join(120)
    invited = Counter(effect["target"] for effect in sandbox.effects("create_invite"))
    twice = [email for email, times in invited.items() if times > 1]
    told = outcomes[0].get()
    print(f"suspended for {seconds:.0f} s at {at_stop} invites; {len(twice)} people twice; the first try: {told}")
    assert set(invited) == set(PEOPLE)
    assert max(invited.values()) <= 2
    assert len(twice) <= MAX_CONCURRENCY * LIMIT
    assert "another try of this task has taken over" in told
    assert outcomes[1].get() > 0
