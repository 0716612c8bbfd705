"""
The backend of a worker: the sockets, based on requests and urllib3, and the threads.

The sockets add to requests and urllib3 a total timeout, a maximum response size, the knowledge of whether a byte of the
request may have been sent, and the refusal to reuse a connection with unexpected bytes.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError
from urllib3.util.connection import allowed_gai_family, create_connection
from urllib3.util.ssltransport import SSLTransport

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.exchange import (
    ResponseTooLargeError,
    Route,
    attempt_error,
    body_of,
    has_received,
)

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from urllib3.response import BaseHTTPResponse

    from airflow_provider_workspace.api.operation import Operation, Request, RequestContext
    from airflow_provider_workspace.client.settings import Settings

T = TypeVar("T")
R = TypeVar("R")

# Bytes per read and per write.
READ_SIZE = 65_536
WRITE_SIZE = 16_384


# Exceptions of a failed attempt. Not Exception, because Airflow stops tasks with exceptions of its own.
FAILURES = (OSError, HTTPError, http.client.HTTPException, ValueError)


class Exchange:
    """
    One request and its response.

    :param settings: timeouts and the maximum response size
    :ivar deadline: end of the total timeout by the monotonic clock
    :ivar sent: whether a byte of the request may have been sent
    :ivar connect_by: end of a step of connecting by the monotonic clock; ``None`` once connected
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.deadline = time.monotonic() + settings.total_timeout
        self.sent = False
        self.connect_by: float | None = None
        self._received = 0

    def begin_step(self) -> float:
        """
        Begin a step of connecting, such as a TLS handshake, and return its timeout in seconds.

        :raises TimeoutError: if the total timeout is over
        """
        self.connect_by = time.monotonic() + self.settings.connect_timeout
        return self.timeout()

    def timeout(self) -> float:
        """
        Return the timeout in seconds for the next read or write.

        :raises TimeoutError: if the total timeout, or the connect timeout of the step, is over
        """
        now = time.monotonic()
        patience = self.settings.read_timeout if self.connect_by is None else self.connect_by - now
        left = min(self.deadline - now, patience)
        if left <= 0:
            raise TimeoutError
        return left

    def count(self, received: int) -> None:
        """
        Count received bytes, including headers.

        :raises ResponseTooLargeError: if they exceed the maximum response size
        """
        self._received += received
        # The maximum is for the body; headers get another chunk.
        if self._received > self.settings.max_response_bytes + READ_SIZE:
            raise ResponseTooLargeError


# The current exchange of a connection; requests cannot pass it down.
_exchange: ContextVar[Exchange] = ContextVar("exchange")


class ThreadBackend:
    """
    The connections, sleeps and threads of a client in a worker; proxy and TLS settings are read once.

    They use an adapter of requests instead of a session, which reads ``.netrc``, stores cookies and parses the
    ``Location`` of every redirect.

    :param settings: settings of the connection
    :raises WorkspaceConfigError: if the proxy or the CA certificates cannot be used
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.condition = threading.Condition()
        route = Route(settings)
        self._headers = CaseInsensitiveDict(route.headers)
        self._proxies = {"http": route.proxy, "https": route.proxy} if route.proxy else {}
        self._adapter = _Adapter(route.tls or route.proxy_tls, settings.max_concurrency)

    def exchange(self, op: Operation[Any], request: Request, url: str, context: RequestContext) -> Response:
        """
        Send a request and read the complete response.

        :raises WorkspaceRequestError: if the request cannot be sent or the response cannot be read
        """
        exchange = Exchange(self._settings)
        try:
            return self._send(exchange, request.method, url, request.body)
        except FAILURES as error:
            overdue = time.monotonic() >= exchange.deadline
            failure = attempt_error(op, error, context, self._settings, sent=exchange.sent, overdue=overdue)
        except BaseException as error:  # noqa: BLE001 - such as when Airflow stops the task
            raise error.with_traceback(None)  # noqa: B904 - the frames below contain the API key
        raise failure  # outside of the except block: the frames of a context would contain the API key

    def close(self) -> None:
        """Close the connections."""
        self._adapter.close()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        waits.sleep(seconds)

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what some work makes of each item, in parallel."""
        from concurrent.futures import wait

        # Threads inherit the context for tracing and logging.
        calls = [self._pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [call.result() for call in calls]
        finally:
            # After an error, or when the task is stopped, wait for the calls under way and start no more.
            for call in calls:
                call.cancel()
            wait(calls)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """The threads; each starts on first use, and is reused because starting one costs as much as a call."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self._settings.max_concurrency, thread_name_prefix="workspace")

    def _send(self, exchange: Exchange, method: str, url: str, body: bytes | None) -> Response:
        request = _prepare(method, url, self._headers, body)
        verify = self._settings.verify is not False
        received = io.BytesIO()
        token = _exchange.set(exchange)
        try:
            # Not the response of requests, see build_response.
            response: Any = self._adapter.send(request, stream=True, verify=verify, proxies=self._proxies)
            with response:
                for chunk in response.stream(READ_SIZE, decode_content=False):
                    received.write(chunk)
        finally:
            _exchange.reset(token)
        body = body_of(response.headers.get("Content-Encoding"), received.getvalue(), self._settings.max_response_bytes)
        return Response(response.status, response.headers, body)


def _prepare(method: str, url: str, headers: CaseInsensitiveDict[str], body: bytes | None) -> requests.PreparedRequest:
    """Build a request without the encoding of requests, since ``api`` has encoded everything."""
    prepared = requests.PreparedRequest()
    prepared.method = method
    prepared.url = url
    prepared.headers = headers
    if body is not None:
        prepared.headers = headers.copy()
        prepared.headers["Content-Type"] = "application/json"
        prepared.headers["Content-Length"] = str(len(body))
        prepared.body = body
    return prepared


class _Adapter(HTTPAdapter):
    """
    An adapter with bounded connections and a shared TLS context; by default each pool reads the CA certificates.

    All of its requests go to one origin, so it has one pool.
    """

    def __init__(self, tls: ssl.SSLContext | None, connections: int) -> None:
        if tls is not None:
            tls.sslsocket_class = _TlsSocket
        self._tls = tls
        self._pool: Any = None
        super().__init__(pool_maxsize=connections)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, ssl_context=self._tls)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs, ssl_context=self._tls, proxy_ssl_context=self._tls)
        manager.pool_classes_by_scheme = POOLS
        return manager

    def get_connection_with_tls_context(
        self,
        request: requests.PreparedRequest,
        verify: bool | str | None,  # noqa: FBT001 - as in requests
        proxies: Mapping[str, str] | None = None,
        cert: tuple[str, str] | str | None = None,
    ) -> Any:
        """Return the pool; requests would look for it at each request."""
        if self._pool is None:
            self._pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
        return self._pool

    def build_response(self, req: requests.PreparedRequest, resp: BaseHTTPResponse) -> Any:  # noqa: ARG002
        """Return the response of urllib3, which is enough: that of requests has cookies and an encoding."""
        return resp

    def close(self) -> None:
        """Close the connections."""
        self._pool = None
        super().close()

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Do nothing; the TLS context has the CA certificates."""


class _TlsSocket(ssl.SSLSocket):
    """A socket with TLS, in which there may be more TLS: urllib3 reads a record of that in any number of parts."""

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive such a part before the deadline."""
        self.settimeout(_exchange.get().timeout())
        return super().recv(buflen, flags)


class _BoundedConnection(HTTPConnection):
    """A connection that obeys the limits of the current exchange."""

    _connecting = False

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open and received nothing while it was idle."""
        sock: Any = self.sock
        if isinstance(sock, SSLTransport):
            return super().is_connected and not has_received(sock.sslobj)
        return super().is_connected and not (isinstance(sock, ssl.SSLSocket) and sock.pending())

    def connect(self) -> None:
        """Connect to the service, directly or through a proxy."""
        self._connecting = True
        try:
            super().connect()
        finally:
            self._connecting, _exchange.get().connect_by = False, None

    def _new_conn(self) -> socket.socket:
        """Connect to the first address that answers; those still to try share the rest of the connect timeout."""
        exchange = _exchange.get()
        exchange.begin_step()
        found = socket.getaddrinfo(self._dns_host, self.port, allowed_gai_family(), socket.SOCK_STREAM)
        while True:
            seconds = exchange.timeout() / len(found)
            *_, address = found.pop(0)
            host = str(address[0])
            try:
                sock = create_connection((host, self.port), seconds, socket_options=self.socket_options)
            except OSError:
                if not found:
                    raise
            else:
                sock.settimeout(exchange.begin_step())  # for the TLS handshake
                return sock

    def _tunnel(self) -> None:
        """Ask the proxy for a tunnel, within the read timeout; then the TLS handshake begins."""
        _exchange.get().connect_by = None
        super()._tunnel()
        cast("socket.socket", self.sock).settimeout(_exchange.get().begin_step())

    def send(self, data: Any) -> None:
        """Send a part of the request before the deadline."""
        if self.sock is None:
            self.connect()
        exchange, sock = _exchange.get(), cast("ssl.SSLSocket", self.sock)
        for start in range(0, len(data), WRITE_SIZE):
            sock.settimeout(exchange.timeout())
            exchange.sent |= not self._connecting  # a CONNECT to the proxy is not the request
            sock.sendall(data[start : start + WRITE_SIZE])

    def _response(self, sock: Any, debuglevel: int = 0, method: str | None = None) -> _Response:
        """Return a response that is read within the limits of the exchange."""
        connection = None if self._connecting else self  # after the response to a CONNECT, the service sends more
        return _Response(_ResponseStream(sock, connection, _exchange.get()), debuglevel, method)  # type: ignore[arg-type]

    response_class: Any = _response


class _BoundedTlsConnection(_BoundedConnection, HTTPSConnection):
    """A bounded connection with TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls: Any = _BoundedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls: Any = _BoundedTlsConnection


POOLS = {"http": _Pool, "https": _TlsPool}


class _Response(http.client.HTTPResponse):
    """A response that skips 1xx responses before it."""

    def begin(self) -> None:
        """Read the status and headers."""
        super().begin()
        while 100 <= self.status < 200:
            if self.status == 101:
                raise http.client.HTTPException("unexpected status 101")
            self.headers = self.msg = None  # type: ignore[assignment]
            super().begin()
        if self.headers.defects:
            self.will_close = True  # headers that are cut off may lack the length of the body


class _ResponseStream(io.RawIOBase):
    """
    The stream that a response is read from.

    :param sock: socket; it stays open until the response is read, even if the connection is closed
    :param connection: connection to close if bytes follow the response; ``None`` if they are expected
    :param exchange: timeout and maximum size
    """

    def __init__(self, sock: Any, connection: HTTPConnection | None, exchange: Exchange) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._exchange = exchange
        self.connection = connection
        self.over = False

    def makefile(self, _mode: str) -> _Reader:
        """Return the reader; http.client calls this as on a socket."""
        return _Reader(self)

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes before the deadline."""
        if self.over:
            return 0
        self._sock.settimeout(self._exchange.timeout())
        received: int = self._raw.readinto(buffer)
        self._exchange.count(received)
        return received

    def close(self) -> None:
        """Release the socket."""
        self._raw.close()
        super().close()


class _Reader(io.BufferedReader):
    """A reader that closes the connection if bytes follow the response, which no request has asked for."""

    raw: Any

    def close(self) -> None:
        """Close the reader, and the connection if bytes are left."""
        if not self.closed:
            self.raw.over = True
            if self.raw.connection is not None and self.peek(1):
                self.raw.connection.close()
        super().close()
