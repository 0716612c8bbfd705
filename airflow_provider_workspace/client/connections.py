"""
The connections of the client for workers: those of urllib3, below requests, with an end to everything.

An exchange ends in time and in bytes, however slowly the service writes. It is known whether a byte of the request may
have left, and a connection that is in doubt is not used again.
"""

from __future__ import annotations

import http.client
import io
import ssl
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.client.transport import (
    AnswerTooLargeError,
    Body,
    UnreadableBodyError,
    failed,
    headers_for,
    proxy_for,
    tls_context,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.api.request_errors import RequestContext
    from airflow_provider_workspace.client.call import Call
    from airflow_provider_workspace.client.settings import Settings

# How many bytes are read and written at once.
PIECE = 65_536
WRITTEN = 16_384
# What sending can raise. Not Exception: Airflow ends a task by raising something wherever it is.
FAILURES = (OSError, HTTPError, http.client.HTTPException, ValueError, AnswerTooLargeError, UnreadableBodyError)


class Exchange:
    """
    One request and its answer.

    :param settings: how long it may take, and how many bytes the answer may have
    :ivar deadline: when it ends at the latest, by the monotonic clock
    :ivar sent: whether a byte of the request may have left
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.deadline = time.monotonic() + settings.total_timeout
        self.sent = False
        self._received = 0

    @property
    def late(self) -> bool:
        """Whether it takes as long as it may as a whole."""
        return time.monotonic() >= self.deadline

    def patience(self) -> float:
        """
        Return how many seconds the next byte may take.

        :raises TimeoutError: if none
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.settings.read_timeout)

    def count(self, received: int) -> None:
        """
        Count what was received, heads and all.

        :raises AnswerTooLargeError: if it is more than an answer may have
        """
        self._received += received
        # A head has up to a hundred lines of 64 KB besides.
        if self._received > self.settings.max_response_bytes + PIECE:
            raise AnswerTooLargeError


# The exchange that a connection works for: requests has no way to hand it down.
_exchange: ContextVar[Exchange] = ContextVar("exchange")


class Connections:
    """
    The connections of a client; the surroundings (proxy, authorities) are looked up once.

    Of requests it uses the adapter, not the session: a session reads ``.netrc``, keeps cookies, and parses the
    ``Location`` of every redirect, whether it follows it or not, with whatever error that leads to.

    :param settings: where and as whom to ask
    :raises WorkspaceConfigError: if the proxy or the certificate authorities of the environment cannot be used
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._headers = CaseInsensitiveDict(headers_for(settings))
        proxy = proxy_for(settings)
        self._proxies = {"http": proxy, "https": proxy} if proxy else {}
        https = settings.base_url.startswith("https://") or (proxy or "").startswith("https://")
        self._adapter = _Adapter(tls_context(settings.verify) if https else None, settings.max_concurrency)

    def send(self, call: Call[Any], url: str, context: RequestContext) -> Response:
        """
        Send the request of a call and read the whole answer.

        :raises WorkspaceRequestError: if it cannot be sent, or no answer can be read
        """
        exchange = Exchange(self._settings)
        try:
            return self._ask(exchange, call.request.method, url, call.request.body)
        except FAILURES as error:
            failure = failed(call.op, error, context, self._settings, sent=exchange.sent, late=exchange.late)
        except BaseException as error:  # noqa: BLE001 - a task that is stopped, with all its frames
            raise error.with_traceback(None)  # noqa: B904 - the frames below hold the key
        raise failure  # here, where it has no context whose frames hold the key

    def close(self) -> None:
        """Close the connections."""
        self._adapter.close()

    def _ask(self, exchange: Exchange, method: str, url: str, body: bytes | None) -> Response:
        seconds = min(self._settings.connect_timeout, self._settings.total_timeout)
        verify = self._settings.verify is not False
        token = _exchange.set(exchange)
        try:
            answer = self._adapter.send(
                _prepare(method, url, self._headers, body),
                stream=True,
                timeout=(seconds, self._settings.read_timeout),
                verify=verify,
                proxies=self._proxies,
            )
        finally:
            _exchange.reset(token)
        with answer:
            content = Body(answer.headers.get("Content-Encoding"), self._settings.max_response_bytes)
            for piece in answer.raw.stream(PIECE, decode_content=False):
                content.add(piece)
        return Response(answer.status_code, answer.headers, content.whole())


def _prepare(method: str, url: str, headers: CaseInsensitiveDict[str], body: bytes | None) -> requests.PreparedRequest:
    """Fill a request by hand: ``api`` has encoded everything, and requests must not encode it once more."""
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
    """Uses bounded connections, and the process's TLS context instead of reading the authorities for each pool."""

    def __init__(self, tls: ssl.SSLContext | None, connections: int) -> None:
        self._tls: dict[str, Any] = {} if tls is None else {"ssl_context": tls}
        super().__init__(pool_maxsize=connections)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **{**kwargs, **self._tls})
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **{**kwargs, **self._tls})
        manager.pool_classes_by_scheme = POOLS
        return manager

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Do nothing: the context holds the authorities."""


class _Bounded(HTTPConnection):
    """A connection that works for one exchange after the other."""

    _connects = False

    @property
    def is_connected(self) -> bool:
        """Whether it stands, and nothing came while it was idle: neither its end nor what nobody asked for."""
        pending = isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
        return super().is_connected and not pending

    def connect(self) -> None:
        """Connect to the service, or to its proxy and through that to the service."""
        self._connects = True
        try:
            super().connect()
        finally:
            self._connects = False

    def send(self, data: Any) -> None:
        """Send some of the request, until the deadline."""
        if self.sock is None:
            self.connect()
        exchange, sock = _exchange.get(), cast("ssl.SSLSocket", self.sock)
        for start in range(0, len(data), WRITTEN):
            sock.settimeout(exchange.patience())
            exchange.sent |= not self._connects  # asking a proxy to connect is not the request
            sock.sendall(data[start : start + WRITTEN])

    def _answer(self, sock: Any, debuglevel: int = 0, method: str | None = None) -> _Answer:
        """Return an answer that is read from the socket within the bounds of the exchange."""
        connection = None if self._connects else self  # a proxy's answer to CONNECT is followed by the service's bytes
        return _Answer(_Incoming(sock, connection, _exchange.get()), debuglevel, method)  # type: ignore[arg-type]

    response_class: Any = _answer


class _BoundedTls(_Bounded, HTTPSConnection):
    """The same with TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls: Any = _Bounded


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls: Any = _BoundedTls


POOLS = {"http": _Pool, "https": _TlsPool}


class _Answer(http.client.HTTPResponse):
    """An answer, however many provisional ones come before it."""

    def begin(self) -> None:
        """Read the head of the answer; those with a status of 1xx are not it."""
        super().begin()
        while 100 <= self.status < 200:
            if self.status == 101:
                msg = "101, which nobody asked for"
                raise http.client.HTTPException(msg)
            self.headers = self.msg = None  # type: ignore[assignment]
            super().begin()
        if self.headers.defects:
            self.will_close = True  # a head that breaks off hides how long the body is


class _Incoming(io.RawIOBase):
    """
    What an answer is read from.

    :param sock: the socket; stays open until the answer is read, even if the connection is closed
    :param connection: what to close if more comes than the answer; ``None`` for nothing
    :param exchange: knows how long to wait, and how much is too much
    """

    def __init__(self, sock: Any, connection: HTTPConnection | None, exchange: Exchange) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._exchange = exchange
        self.connection = connection
        self.over = False

    def makefile(self, _mode: str) -> _Reader:
        """Return the reader, as http.client asks a socket for it."""
        return _Reader(self)

    def readable(self) -> bool:
        """Be readable."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for some bytes, as long as the deadline allows."""
        if self.over:
            return 0
        self._sock.settimeout(self._exchange.patience())
        received: int = self._raw.readinto(buffer)
        self._exchange.count(received)
        return received

    def close(self) -> None:
        """Let the socket go."""
        self._raw.close()
        super().close()


class _Reader(io.BufferedReader):
    """Notices, when an answer was read, that more came than it: that belongs to no request."""

    raw: Any

    def close(self) -> None:
        """Close, and the connection as well if something is left."""
        if not self.closed:
            self.raw.over = True
            if self.raw.connection is not None and self.peek(1):
                self.raw.connection.close()
        super().close()
