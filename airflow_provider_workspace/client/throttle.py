"""How many requests of one client are under way at once, and how a 429 to one of them slows down all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_workspace.client.call import Call


class ConcurrencyLimit:
    """
    How many calls may be under way.

    While one of them waits out a 429, no other begins. After it they go one at a time, and with each that meets none,
    one more at a time.

    :param most: how many at most
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.width = most
        self.under_way: set[Call[Any]] = set()

    def admits(self) -> bool:
        """Tell whether another call may begin."""
        return len(self.under_way) < self.width and not any(call.throttled for call in self.under_way)

    def leave(self, call: Call[Any]) -> None:
        """Note that a call is over."""
        self.under_way.discard(call)
        self.width = 1 if call.throttled else min(self.most, self.width + 1)


class Throttle:
    """The gate of threads. See :class:`ConcurrencyLimit`."""

    def __init__(self, most: int) -> None:
        self._width = ConcurrencyLimit(most)
        self._changed = threading.Condition()

    @contextmanager
    def passed(self, call: Call[Any]) -> Iterator[None]:
        """Wait until the call may begin, and count it until it is over."""
        with self._changed:
            self._changed.wait_for(self._width.admits)
            self._width.under_way.add(call)
        try:
            yield
        finally:
            with self._changed:
                self._width.leave(call)
                self._changed.notify_all()


class AsyncThrottle:
    """The gate of an event loop. See :class:`ConcurrencyLimit`."""

    def __init__(self, most: int) -> None:
        self._width = ConcurrencyLimit(most)
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def passed(self, call: Call[Any]) -> AsyncIterator[None]:
        """Wait until the call may begin, and count it until it is over."""
        async with self._changed:
            await self._changed.wait_for(self._width.admits)
            self._width.under_way.add(call)
        try:
            yield
        finally:
            async with self._changed:
                self._width.leave(call)
                self._changed.notify_all()
