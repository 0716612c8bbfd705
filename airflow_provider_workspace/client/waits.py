"""The sleep of clients, procedures and triggers, with one switch for tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

scale = 1.0
"""Factor for every wait; tests set it to 0."""


def sleep(seconds: float) -> None:
    """Sleep in a worker."""
    time.sleep(seconds * scale)


async def async_sleep(seconds: float) -> None:
    """Sleep in the event loop."""
    await asyncio.sleep(seconds * scale)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """
    Return the result of a coroutine, with a timeout.

    Unlike ``asyncio.wait_for`` before Python 3.12, it does not lose a cancellation at the end of the coroutine.

    :raises TimeoutError: if the coroutine takes longer; it is cancelled
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
    """Cancel a task unless it is done, and wait for its end; its error, if any, is not logged."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # asyncio logs an error that nothing has read
