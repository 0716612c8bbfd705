"""The connections of the client for the event loop: those of httpx, with an end to each exchange."""

from __future__ import annotations

import asyncio
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import httpx

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.transport import Body, failed, headers_for, proxy_for, tls_context

if TYPE_CHECKING:
    from airflow_provider_workspace.api.request_errors import RequestContext
    from airflow_provider_workspace.client.call import Call
    from airflow_provider_workspace.client.settings import Settings


class AsyncConnections:
    """
    The connections of a client; the surroundings (proxy, authorities) are looked up once.

    :param settings: where and as whom to ask
    :raises WorkspaceConfigError: if the proxy or the certificate authorities of the environment cannot be used
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
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # none are kept, as in the other client
        )

    async def send(self, call: Call[Any], url: str, context: RequestContext) -> Response:
        """
        Send the request of a call and read the whole answer.

        :raises WorkspaceRequestError: if it cannot be sent, or no answer can be read
        """
        exchange = _Exchange()
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._settings.total_timeout
        try:
            return await waits.within(self._settings.total_timeout, self._ask(call, url, exchange))
        except Exception as error:  # noqa: BLE001 - whatever three libraries raise
            failure = failed(
                call.op,
                error,
                context,
                self._settings,
                sent=exchange.sent,
                late=clock() >= deadline,
                timeout=isinstance(error, httpx.TimeoutException),
            )
        except BaseException as error:  # noqa: BLE001 - a task that is stopped, with all its frames
            raise error.with_traceback(None)  # noqa: B904 - the frames below hold the key
        raise failure  # here, where it has no context whose frames hold the key

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _ask(self, call: Call[Any], url: str, exchange: _Exchange) -> Response:
        headers = {} if call.request.body is None else {"Content-Type": "application/json"}
        asked = self._http.stream(
            call.request.method,
            url,
            content=call.request.body,
            headers=headers,
            extensions={"trace": exchange.trace},
        )
        async with asked as exchange.answer:
            answer = exchange.answer
            content = Body(answer.headers.get("content-encoding"), self._settings.max_response_bytes)
            async for piece in answer.aiter_raw():
                content.add(piece)
        return Response(answer.status_code, answer.headers, content.whole())


class _Exchange:
    """
    What the HTTP library tells of an exchange.

    :ivar sent: whether a byte of the request may have left
    :ivar answer: its answer, once the head of it is there
    """

    sent = False
    answer: httpx.Response | None = None

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """Note when the request itself begins to be sent; asking a proxy to connect is not that."""
        if event == "http11.send_request_headers.started" and info["request"].method != b"CONNECT":
            self.sent = True
        if event == "http11.receive_response_body.complete" and self.answer is not None and _left_over(self.answer):
            # More came than the answer, which would be read as the answer to the next request.
            await self.answer.extensions["network_stream"].aclose()


def _left_over(answer: httpx.Response) -> bytes:
    """Return what was received behind an answer. The library shows it nowhere; a test says if this finds it no more."""
    found: Any = answer
    for name in ("stream", "_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state", "trailing_data"):
        found = getattr(found, name, None)
    return found[0] if found else b""
