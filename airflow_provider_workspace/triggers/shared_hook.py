"""What the streams of one triggerer share: a hook for each connection, and how many poll at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook

if TYPE_CHECKING:
    from typing_extensions import Self

# How many streams of one triggerer poll at the same time: more would only queue inside the HTTP library.
MAX_CONCURRENT_POLLS = 20
_semaphores: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


class SharedHook:
    """
    The part of one stream in the hook that all streams of a connection share on a loop.

    Thousands of organizations then cost one look-up of the connection and one pool, of no more connections to the
    service than there are polls at once.

    ``fresh`` says whether the connection was looked up for this stream, and no poll has succeeded since.

    :param conn_id: connection to the service
    """

    _in_use: ClassVar[dict[tuple[asyncio.AbstractEventLoop, str], WorkspaceAsyncHook]] = {}
    _parts: ClassVar[Counter[WorkspaceAsyncHook]] = Counter()

    def __init__(self, conn_id: str) -> None:
        self._key = (asyncio.get_running_loop(), conn_id)
        self.fresh = False

    async def __aenter__(self) -> Self:
        """Take part."""
        self.fresh = self._key not in self._in_use
        self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Take part no more."""
        await self._leave()

    async def renew(self) -> bool:
        """
        Change to a hook that has looked the connection up anew, for its key may have been replaced.

        :return: false if that was just done
        """
        if self.fresh:
            return False
        self.fresh = True
        refused = self.hook
        await self._leave()
        if self._in_use.get(self._key) is refused:
            del self._in_use[self._key]
        self._take()
        return True

    def _take(self) -> None:
        if self._key not in self._in_use:
            self._in_use[self._key] = WorkspaceAsyncHook(self._key[1])
        self.hook = self._in_use[self._key]
        self._parts[self.hook] += 1

    async def _leave(self) -> None:
        self._parts[self.hook] -= 1
        if self._parts[self.hook]:
            return
        del self._parts[self.hook]
        if self._in_use.get(self._key) is self.hook:
            del self._in_use[self._key]
        await self.hook.aclose()


def poll_semaphore() -> asyncio.Semaphore:
    """Return the semaphore of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _semaphores:
        _semaphores.clear()
        _semaphores[loop] = asyncio.Semaphore(MAX_CONCURRENT_POLLS)
    return _semaphores[loop]
