"""The client for the event loop. Written by dev/make_async_hook.py: change sync.py, not this."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import tenacity

from airflow_provider_workspace.api.pagination import Pages
from airflow_provider_workspace.api.procedure import Pause
from airflow_provider_workspace.api.request_errors import RequestContext
from airflow_provider_workspace.api.response import follow, parse_response
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.async_connections import AsyncConnections
from airflow_provider_workspace.client.call import MAX_REDIRECTS, Call, secrets_in
from airflow_provider_workspace.client.throttle import AsyncParallelCalls, AsyncThrottle
from airflow_provider_workspace.errors import WorkspaceRequestError

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.procedure import Procedure, Send
    from airflow_provider_workspace.client.settings import Settings

T = TypeVar("T")


async def _ignore(_: str) -> None:
    """Do nothing; the default for ``mask``."""


class WorkspaceAsyncClient:
    """
    Sends operations over persistent connections; proxy and TLS settings are read once.

    :param settings: settings of the connection
    :param mask: awaited with each secret as soon as it is seen
    :param sleep: waits between attempts; by default :mod:`airflow_provider_workspace.client.waits`
    :ivar before_write: called before each attempt of a write; an error that it raises stops the write
    """

    def __init__(
        self,
        settings: Settings,
        *,
        mask: Callable[[str], Awaitable[None]] = _ignore,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self.settings = settings
        self.mask = mask
        self.before_write: Callable[[], None] = lambda: None
        self._sleep = sleep or waits.async_sleep
        self._policy = settings.retry_policy()
        self._context = RequestContext(settings.source, settings.secrets())
        self._throttle = AsyncThrottle(settings.max_concurrency)
        self._parallel = AsyncParallelCalls(settings.max_concurrency)
        self._connections = AsyncConnections(settings)

    async def __aenter__(self) -> Self:
        """Use the client as a context manager."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.close()

    async def send(
        self, op: Operation[T], *, caller_looks_up: bool = False, note: Callable[[], object] | None = None
    ) -> T:
        """
        Send an operation, with retries where they are safe, and return its result.

        :param caller_looks_up: whether the caller looks up a write whose response was lost before it, or a retry of the
            task, sends it again
        :param note: called before each attempt
        :raises WorkspaceInputError: if the operation cannot be encoded; nothing was sent
        :raises WorkspaceRequestError: see :mod:`airflow_provider_workspace.errors`
        """
        call = Call(op, self._policy, caller_looks_up=caller_looks_up, note=note)
        await self._mask_all(op.secrets())
        retrying = tenacity.AsyncRetrying(**call.tenacity(), sleep=self._sleep)
        async with self._throttle.acquire(call):
            with call.recorded():
                try:
                    result: T = await retrying(partial(self._attempt, call))
                except WorkspaceRequestError as error:
                    final = call.failure(error)
                    raise final from (error.__cause__ if final is error else error)
        await self._mask_all(secrets_in(result))
        return result

    async def _mask_all(self, secrets: Iterable[str]) -> None:
        """Mask secrets, in a frame of their own so that no traceback shows them."""
        for secret in secrets:
            await self.mask(secret)

    async def run(self, procedure: Procedure[T]) -> T:
        """Run a procedure and return its result; see :mod:`airflow_provider_workspace.api.procedure`."""
        try:
            step = next(procedure)
            while True:
                if isinstance(step, Pause):
                    await self._sleep(step.seconds)
                    step = procedure.send([])
                else:
                    step = procedure.send(await self._send_all(step))
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _send_all(self, step: Send) -> list[Any]:
        """Send operations in parallel and return results or errors, and ``None`` for those that are not sent."""
        stopped = False

        async def send(op: Operation[Any]) -> Any:
            nonlocal stopped
            if stopped or step.must_stop():
                return None
            try:
                return await self.send(op, caller_looks_up=step.caller_looks_up, note=step.note)
            except WorkspaceRequestError as error:
                stopped = True
                return error

        return await self._parallel.map(send, step.operations)

    async def rows(self, op: Operation[Page[T]]) -> AsyncIterator[T]:
        """
        Yield each row of a list once, with one page in memory at a time.

        :raises WorkspaceIncompleteListError: after the last row, if there are fewer than the service counts
        """
        pages = Pages(op, self.settings.base_url)
        following: Operation[Page[T]] | None = op
        while following is not None:
            page = await self.send(following)
            for row in pages.new_rows(page):
                yield row
            following = pages.next_operation(page)

    async def _attempt(self, call: Call[T]) -> T:
        call.begin_attempt(self.before_write)
        url = self.settings.base_url + call.request.target
        response = await self._connections.send(call, url, self._context)
        for _ in range(MAX_REDIRECTS):
            target = follow(call.op, response, url)
            if target is None:
                break
            url = target
            response = await self._connections.send(call, url, self._context)
        if response.request_id is not None:
            call.request_id = self._context.with_secrets_of(call.op).redacted(response.request_id)
        return parse_response(
            call.op,
            response,
            self._context,
            datetime.now(timezone.utc),
            may_have_been_applied=call.may_have_been_applied,
            caller_looks_up=call.caller_looks_up,
            trust_counts=self.settings.trust_counts,
        )
