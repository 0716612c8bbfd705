"""The connections of the client for the event loop, based on httpx."""

from __future__ import annotations

import asyncio
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import httpx

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.transport import Body, attempt_error, headers_for, proxy_for, tls_context

if TYPE_CHECKING:
    from airflow_provider_workspace.api.request_errors import RequestContext
    from airflow_provider_workspace.client.call import Call
    from airflow_provider_workspace.client.settings import Settings


class AsyncConnections:
    """
    The connections of a client; proxy and TLS settings are read once.

    :param settings: settings of the connection
    :raises WorkspaceConfigError: if the proxy or the CA certificates cannot be used
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http = httpx.AsyncClient(
            headers=headers_for(settings),
            timeout=httpx.Timeout(settings.read_timeout, connect=settings.connect_timeout),
            verify=tls_context(settings.verify) if settings.base_url.startswith("https://") else False,
            proxy=proxy_for(settings),
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # stores no cookies
        )

    async def send(self, call: Call[Any], url: str, context: RequestContext) -> Response:
        """
        Send the request of a call and read the complete response.

        :raises WorkspaceRequestError: if the request cannot be sent or the response cannot be read
        """
        exchange = _Exchange()
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._settings.total_timeout
        try:
            return await waits.within(self._settings.total_timeout, self._send(call, url, exchange))
        except Exception as error:  # noqa: BLE001 - of httpx, httpcore or anyio
            failure = attempt_error(
                call.op,
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

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call[Any], url: str, exchange: _Exchange) -> Response:
        headers = {} if call.request.body is None else {"Content-Type": "application/json"}
        asked = self._http.stream(
            call.request.method,
            url,
            content=call.request.body,
            headers=headers,
            extensions={"trace": exchange.trace},
        )
        async with asked as exchange.response:
            response = exchange.response
            received = Body(response.headers.get("content-encoding"), self._settings.max_response_bytes)
            async for chunk in response.aiter_raw():
                received.add(chunk)
        return Response(response.status_code, response.headers, received.content())


class _Exchange:
    """
    The progress of an exchange, from the trace events of httpcore.

    :ivar sent: whether a byte of the request may have been sent
    :ivar response: the response, once its headers were received
    """

    sent = False
    response: httpx.Response | None = None

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """Record when the request itself is sent, as opposed to a CONNECT to a proxy."""
        if event == "http11.send_request_headers.started" and info["request"].method != b"CONNECT":
            self.sent = True
        if event == "http11.receive_response_body.complete" and self.response is not None and _left_over(self.response):
            # These bytes would be read as the response to the next request.
            await self.response.extensions["network_stream"].aclose()


def _left_over(response: httpx.Response) -> bytes:
    """Return the bytes after a response; httpx has no public way to read them, so a test checks this path."""
    found: Any = response
    for name in ("stream", "_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state", "trailing_data"):
        found = getattr(found, name, None)
    return found[0] if found else b""
