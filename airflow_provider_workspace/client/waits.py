"""How clients, procedures and triggers sleep, with one switch for tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

scale = 1.0
"""What every wait is multiplied by. Tests set it to 0: then no wait takes time."""


def sleep(seconds: float) -> None:
    """Sleep in a worker."""
    time.sleep(seconds * scale)


async def async_sleep(seconds: float) -> None:
    """Sleep in the event loop."""
    await asyncio.sleep(seconds * scale)


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
        await cancel(task)


async def cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task unless it is done, and wait until it has cleaned up."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
