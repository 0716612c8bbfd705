"""Looking again and again: what runs in the triggerer behind the triggers that wait."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.errors import WorkspaceAuthenticationError, WorkspaceError
from airflow_provider_workspace.triggers.shared_hook import SharedHook, gate

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.snapshot import Snapshot

T = TypeVar("T")

# Longest time one look may take, all its pages and attempts included.
POLL_TIMEOUT = 300.0
# Longest pause between looks while the service fails.
MAX_PAUSE = 600.0
# Longest pause a service can ask for with a ``Retry-After``: some name a day, or nonsense.
MAX_RETRY_AFTER = 3600.0
# How long after its end a wait still takes a last look, if one comes; then it ends without.
LAST_LOOK_SECONDS = 300.0
# The wall clock may be set forward: it is read at least so often.
CLOCK_SECONDS = 60.0


class Failure:
    """
    A look that failed.

    :param permanent: whether the next look would fail in the same way
    """

    def __init__(self, message: str, *, permanent: bool) -> None:
        self.message = message
        self.permanent = permanent


async def looks(
    subject: str, *, workspace_conn_id: str, organization_id: str | None, interval: float
) -> AsyncIterator[Snapshot | Failure]:
    """
    Look again and again; a look that fails is told and does not end the stream.

    :param subject: ``domains``, ``projects`` or ``people``
    :param organization_id: organization; ``None`` for that of the connection
    :param interval: seconds between two looks
    """
    before: Snapshot | None = None
    failures = 0
    # The first look was the worker's; a random part of the interval keeps streams from looking all at once.
    pause = interval * random.random()  # noqa: S311 - jitter, not cryptography
    async with SharedHook(workspace_conn_id) as shared:
        while True:
            await asyncio.sleep(pause)
            try:
                async with gate():
                    look = shared.hook.look(subject, before=before, organization_id=organization_id)
                    before = await within(POLL_TIMEOUT, look)
                failures, pause = 0, interval
                shared.fresh = False
                yield before
            except TimeoutError:
                failures += 1
                pause = backoff(interval, failures)
                yield Failure(f"a look took longer than {POLL_TIMEOUT:.0f} s", permanent=False)
            except WorkspaceError as error:
                if isinstance(error, WorkspaceAuthenticationError) and await shared.renew():
                    pause = 0.0
                    continue
                failures += 1
                asked_for = min(MAX_RETRY_AFTER, getattr(error, "retry_after", None) or 0.0)
                pause = max(backoff(interval, failures), asked_for)
                yield Failure(f"{type(error).__name__}: {error}", permanent=error.permanent)


async def until(stream: AsyncIterator[T], end_at: float | None) -> AsyncIterator[T | None]:
    """
    Yield what a stream yields, and ``None`` as the last if it keeps silent beyond the end of the wait.

    :param end_at: end of the wait in seconds since 1970; ``None`` for never
    """
    while True:
        coming = asyncio.ensure_future(anext(stream))
        try:
            while not coming.done():
                left = CLOCK_SECONDS if end_at is None else end_at + LAST_LOOK_SECONDS - time.time()
                if left <= 0:
                    yield None
                    return
                await asyncio.wait({coming}, timeout=min(left, CLOCK_SECONDS))
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            yield item
        finally:
            await give_up(coming)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """
    Return the result of some work that may take so long.

    Not ``asyncio.wait_for``: before Python 3.12 it forgets that it was cancelled if the work ends at the same moment,
    and a stream would go on without anybody who waits.

    :raises TimeoutError: if it takes longer; then it was cancelled
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        await give_up(task)


async def give_up(task: asyncio.Future[Any]) -> None:
    """Cancel a task unless it is done, and wait until it has cleaned up."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def backoff(interval: float, failures: int) -> float:
    """Return the pause after a number of failures in a row."""
    return max(interval, min(MAX_PAUSE, interval * 2.0 ** min(failures - 1, 10)))
