"""An event loop that jumps over its waits."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _Jumping(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """A selector that waits for sockets, but not for timers."""

    def __init__(self, loop: FastForward) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self.loop.threads:
            return super().select(0.05)
        # Nothing can arrive where only the pipe of the loop itself is watched.
        ready = super().select(self.loop.patience if len(self.get_map()) > 1 else 0)
        if not ready and timeout is not None:
            self.loop.now += timeout
        return ready


class FastForward(asyncio.SelectorEventLoop):
    """
    An event loop that jumps over its waits.

    :param patience: seconds to wait for sockets before the clock jumps; the default is for connections whose both ends
        run in it, so that no socket being ready means that nothing is under way
    """

    def __init__(self, patience: float = 0.0005) -> None:
        self.now = 0.0
        self.patience = patience
        self.threads = 0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """Stop the clock while a thread works."""
        self.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: Any) -> None:
        self.threads -= 1
