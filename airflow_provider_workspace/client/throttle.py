"""Parallel calls of one client, and their limit, which a 429 lowers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from airflow_provider_workspace.client.call import Call

T = TypeVar("T")
R = TypeVar("R")


class ConcurrencyLimit:
    """
    A limit of calls under way.

    While a call waits after a 429, no other starts. Afterwards the limit is one, and grows by one with each call that
    gets no 429.

    :param maximum: maximum calls under way
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.current = maximum
        self.under_way: set[Call[Any]] = set()

    def admits(self) -> bool:
        """Return whether another call may start."""
        return len(self.under_way) < self.current and not any(call.throttled for call in self.under_way)

    def leave(self, call: Call[Any]) -> None:
        """Remove a call that has ended."""
        self.under_way.discard(call)
        self.current = 1 if call.throttled else min(self.maximum, self.current + 1)


class Throttle:
    """Limits the calls of threads; see :class:`ConcurrencyLimit`."""

    def __init__(self, maximum: int) -> None:
        self._limit = ConcurrencyLimit(maximum)
        self._changed = threading.Condition()

    @contextmanager
    def acquire(self, call: Call[Any]) -> Iterator[None]:
        """Wait until the call may begin, and count it until it is over."""
        with self._changed:
            self._changed.wait_for(self._limit.admits)
            self._limit.under_way.add(call)
        try:
            yield
        finally:
            with self._changed:
                self._limit.leave(call)
                self._changed.notify_all()


class AsyncThrottle:
    """Limits the calls of an event loop; see :class:`ConcurrencyLimit`."""

    def __init__(self, maximum: int) -> None:
        self._limit = ConcurrencyLimit(maximum)
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def acquire(self, call: Call[Any]) -> AsyncIterator[None]:
        """Wait until the call may begin, and count it until it is over."""
        async with self._changed:
            await self._changed.wait_for(self._limit.admits)
            self._limit.under_way.add(call)
        try:
            yield
        finally:
            async with self._changed:
                self._limit.leave(call)
                self._changed.notify_all()


class ParallelCalls:
    """
    Runs calls in parallel threads, which are reused because starting one costs as much as a call.

    :param maximum: maximum parallel calls
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """The threads; each starts on first use and ends with the client."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self._maximum, thread_name_prefix="workspace")

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what some work makes of each item."""
        if len(items) == 1:
            return [work(items[0])]
        from concurrent.futures import wait
        from contextvars import copy_context

        # Threads inherit the context for tracing and logging.
        calls = [self._pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [call.result() for call in calls]
        finally:
            # After an error, or when the task is stopped, wait for the calls under way and start no more.
            for call in calls:
                call.cancel()
            wait(calls)


class AsyncParallelCalls:
    """
    Runs calls in parallel in an event loop.

    :param maximum: maximum parallel calls
    """

    def __init__(self, maximum: int) -> None:
        self._slots = asyncio.Semaphore(maximum)

    async def map(self, work: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
        """Return what some work makes of each item."""

        async def work_on(item: T) -> R:
            async with self._slots:
                return await work(item)

        calls = [asyncio.ensure_future(work_on(item)) for item in items]
        try:
            return await asyncio.gather(*calls)
        finally:
            # After an error or a cancellation, cancel the calls under way and start no more.
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
