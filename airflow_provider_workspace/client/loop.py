"""
The backend of an event loop, based on httpx and greenback.

A client runs in a greenlet of the task that calls it: its code is synchronous, and :func:`greenback.await_` hands the
event loop what it waits for. So a cancellation of the task is raised where the client waits, and reaches no other call.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, TypeVar

import greenback
import httpx
from anyio.streams.tls import TLSAttribute, TLSStream

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.exchange import (
    Route,
    attempt_error,
    body_of,
    has_received,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation, Request, RequestContext
    from airflow_provider_workspace.client.settings import Settings

# Bytes of a compressed body that is decompressed in the event loop.
MAX_IN_LOOP = 8_192

T = TypeVar("T")
R = TypeVar("R")


class LoopBackend:
    """
    The connections and tasks of a client in an event loop; proxy and TLS settings are read once.

    Each method runs within ``greenback.with_portal_run_sync``.

    :param settings: settings of the connection
    :raises WorkspaceConfigError: if the proxy or the CA certificates cannot be used
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self.condition = _LoopCondition()
        route = Route(settings)
        proxy = httpx.Proxy(route.proxy, ssl_context=route.proxy_tls) if route.proxy else None
        no_cookies = DefaultCookiePolicy(allowed_domains=())
        timeout = httpx.Timeout(settings.read_timeout, connect=settings.connect_timeout)
        self._http = httpx.AsyncClient(
            headers=route.headers,
            timeout=timeout,
            verify=route.tls or False,
            proxy=proxy,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(no_cookies),
        )

    def exchange(self, op: Operation[Any], request: Request, url: str, context: RequestContext) -> Response:
        """
        Send a request and read the complete response.

        :raises WorkspaceRequestError: if the request cannot be sent or the response cannot be read
        """
        return greenback.await_(self._exchange(op, request, url, context))

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        greenback.await_(waits.async_sleep(seconds))

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what some work makes of each item, in parallel."""
        return greenback.await_(self._map(work, items))

    def close(self) -> None:
        """Close the connections."""
        greenback.await_(self._http.aclose())

    async def _map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        async def work_on(item: T) -> R:
            async with self._slots:
                return await greenback.with_portal_run_sync(work, item)

        calls = [asyncio.ensure_future(work_on(item)) for item in items]
        try:
            return await asyncio.gather(*calls)
        finally:
            # After an error or a cancellation, cancel the calls under way and start no more.
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def _exchange(self, op: Operation[Any], request: Request, url: str, context: RequestContext) -> Response:
        exchange = _Exchange()
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._settings.total_timeout
        try:
            return await waits.within(self._settings.total_timeout, self._send(request, url, exchange))
        except Exception as error:  # noqa: BLE001 - of httpx, httpcore or anyio
            failure = attempt_error(
                op,
                error,
                context,
                self._settings,
                sent=exchange.sent,
                overdue=clock() >= deadline,
                timeout=isinstance(error, httpx.TimeoutException),
            )
        except BaseException as error:  # noqa: BLE001 - such as a cancellation
            raise error.with_traceback(None)  # noqa: B904 - the frames below contain the API key
        raise failure  # outside of the except block: the frames of a context would contain the API key

    async def _send(self, request: Request, url: str, exchange: _Exchange) -> Response:
        limit = self._settings.max_response_bytes
        headers = {} if request.body is None else {"Content-Type": "application/json"}
        asked = self._http.stream(
            request.method,
            url,
            content=request.body,
            headers=headers,
            extensions={"trace": exchange.trace},
        )
        try:
            async with asked as exchange.response:
                response = exchange.response
                received = io.BytesIO()
                async for chunk in response.aiter_raw():
                    received.write(chunk)
                    if received.tell() > limit:
                        break  # body_of refuses it
        except BaseException:
            if exchange.socket is not None:  # a TLS handshake that is cancelled leaves it open
                await exchange.socket.aclose()
            raise
        encoding = response.headers.get("content-encoding")
        body = received.getvalue()
        if encoding is not None and len(body) > MAX_IN_LOOP:  # it would keep the loop from other tasks
            body = await asyncio.to_thread(body_of, encoding, body, limit)
        else:
            body = body_of(encoding, body, limit)
        return Response(response.status_code, response.headers, body)


class _Exchange:
    """
    The progress of an exchange, from the trace events of httpcore.

    :ivar sent: whether a byte of the request may have been sent
    :ivar response: the response, once its headers were received
    :ivar socket: the stream of the connection, if it was made for this exchange
    """

    sent = False
    socket: Any = None
    response: httpx.Response | None = None

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """Record the connection, and when the request itself is sent, as opposed to a CONNECT to a proxy."""
        if event == "connection.connect_tcp.complete":
            self.socket = info["return_value"]
        if event == "http11.send_request_headers.started" and info["request"].method != b"CONNECT":
            self.sent = True
        if event == "http11.receive_response_body.complete" and self.response is not None and _left_over(self.response):
            # These bytes would be read as the response to the next request.
            await self.response.extensions["network_stream"].aclose()


def _left_over(response: httpx.Response) -> bool:
    """Whether bytes follow a response; httpx has no public way to tell, so a test checks these attributes."""
    part: Any = response
    for name in ("stream", "_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state", "trailing_data"):
        part = getattr(part, name)
    stream = response.extensions["network_stream"]._stream  # noqa: SLF001
    while isinstance(stream, TLSStream):  # within the TLS of a proxy there may be that of the service
        if has_received(stream.extra(TLSAttribute.ssl_object)):  # noqa: S610
            return True
        stream = stream.transport_stream
    return bool(part[0])


class _LoopCondition:
    """What :class:`threading.Condition` is for threads. It needs no lock: nothing else runs until a task waits."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def wait_for(self, predicate: Callable[[], bool]) -> None:
        while not predicate():
            woken = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            greenback.await_(woken)

    def notify_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            if not woken.done():  # it is if its task was cancelled
                woken.set_result(None)
