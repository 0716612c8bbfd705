"""One hook per connection for all triggers of a triggerer, with a limit of concurrent polls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook
from airflow_provider_workspace.triggers.deadline import check_text

if TYPE_CHECKING:
    from typing_extensions import Self

# Maximum concurrent polls per connection, whatever its max_concurrency, which is that of a task.
MAX_CONCURRENT_POLLS = 20
# After how long a connection is read again while polls fail.
RENEW_SECONDS = 60.0


class PollLimit(asyncio.Semaphore):
    """
    The limit of concurrent polls of a connection.

    :ivar is_late: whether polls came too late, which is logged once
    :ivar references: number of triggers that share it, and the hook
    :ivar since: since when, in seconds of the event loop's clock
    """

    is_late = False
    references = 0
    since = 0.0


class SharedHook:
    """
    A reference to the hook that all triggers with the same connection share on an event loop.

    So thousands of waits read the connection once and use one pool of HTTP connections.

    :param conn_id: connection to the service
    :ivar fresh: whether the connection was read for this reference and no poll has succeeded since
    :ivar polls: limit to hold while polling
    """

    _in_use: ClassVar[dict[tuple[asyncio.AbstractEventLoop, str], tuple[WorkspaceAsyncHook, PollLimit]]] = {}

    def __init__(self, conn_id: str) -> None:
        check_text("workspace_conn_id", conn_id)
        self._key = (asyncio.get_running_loop(), conn_id)
        self.fresh = False

    async def __aenter__(self) -> Self:
        self.fresh = self._key not in self._in_use
        self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Release the hook; the last reference closes it."""
        await self._release(self.hook, self.polls)

    async def renew(self) -> bool:
        """Switch to a hook that reads the connection again for a rotated API key; false if it was just read."""
        if self.fresh:
            return False
        self.fresh = True
        refused = self.hook, self.polls
        if self._in_use.get(self._key) == refused:
            del self._in_use[self._key]
        self._take()
        await self._release(*refused)
        return True

    async def renew_if_old(self) -> None:
        """Switch to a hook that reads the connection again, unless that was a moment ago: it may be corrected."""
        if self._key[0].time() - self.polls.since >= RENEW_SECONDS:
            self.fresh = False
            await self.renew()

    def _take(self) -> None:
        if self._key not in self._in_use:
            hook = WorkspaceAsyncHook(self._key[1])
            hook.max_concurrency = MAX_CONCURRENT_POLLS
            polls = PollLimit(MAX_CONCURRENT_POLLS)
            polls.since = self._key[0].time()
            self._in_use[self._key] = hook, polls
        self.hook, self.polls = self._in_use[self._key]
        self.polls.references += 1

    async def _release(self, hook: WorkspaceAsyncHook, polls: PollLimit) -> None:
        polls.references -= 1
        if polls.references:
            return
        if self._in_use.get(self._key) == (hook, polls):
            del self._in_use[self._key]
        await hook.aclose()
