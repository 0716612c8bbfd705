"""What the streams of a connection share in a triggerer: a hook, and how many poll at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook

if TYPE_CHECKING:
    from typing_extensions import Self

# How many streams of a connection poll at the same time: more would only queue inside the HTTP library. Each connection
# has its own, so that nobody waits for a service that is not theirs.
MAX_CONCURRENT_POLLS = 20


class SharedHook:
    """
    The part of one stream in the hook that all streams of a connection share on a loop.

    Thousands of organizations then cost one look-up of the connection and one pool, of no more connections to the
    service than there are polls at once.

    ``fresh`` says whether the connection was looked up for this stream, and no poll has succeeded since.

    :param conn_id: connection to the service
    :ivar polls: to be held while polling
    """

    _in_use: ClassVar[dict[tuple[asyncio.AbstractEventLoop, str], WorkspaceAsyncHook]] = {}
    _parts: ClassVar[Counter[WorkspaceAsyncHook]] = Counter()
    _polls: ClassVar[dict[WorkspaceAsyncHook, asyncio.Semaphore]] = {}

    def __init__(self, conn_id: str) -> None:
        if not isinstance(conn_id, str):
            msg = f"workspace_conn_id must be the id of a connection, not something of type {type(conn_id).__name__}"
            raise WorkspaceInputError(msg)
        self._key = (asyncio.get_running_loop(), conn_id)
        self.fresh = False

    async def __aenter__(self) -> Self:
        """Take part."""
        self.fresh = self._key not in self._in_use
        self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Take part no more."""
        await self._release(self.hook)

    async def renew(self) -> bool:
        """
        Change to a hook that has looked the connection up anew, for its key may have been replaced.

        :return: false if that was just done
        """
        if self.fresh:
            return False
        self.fresh = True
        refused = self.hook
        if self._in_use.get(self._key) is refused:
            del self._in_use[self._key]
        self._take()
        await self._release(refused)
        return True

    def _take(self) -> None:
        if self._key not in self._in_use:
            self._in_use[self._key] = WorkspaceAsyncHook(self._key[1])
        self.hook = self._in_use[self._key]
        self._parts[self.hook] += 1
        self.polls = self._polls.setdefault(self.hook, asyncio.Semaphore(MAX_CONCURRENT_POLLS))

    async def _release(self, hook: WorkspaceAsyncHook) -> None:
        self._parts[hook] -= 1
        if self._parts[hook]:
            return
        del self._parts[hook], self._polls[hook]
        if self._in_use.get(self._key) is hook:
            del self._in_use[self._key]
        await hook.aclose()
