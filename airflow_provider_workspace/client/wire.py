"""
The sockets of a worker, and what those of an event loop share: headers, proxy, TLS context, body and errors.

They add to requests and urllib3 a total timeout, a maximum response size, the knowledge of whether a byte of the
request may have been sent, and the refusal to reuse a connection with unexpected bytes.
"""

from __future__ import annotations

import http.client
import io
import ssl
import threading
import time
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from airflow_provider_workspace import __version__
from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.request_errors import request_error
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.settings import is_loopback, is_url
from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceConnectionError,
    WorkspaceResponseError,
    WorkspaceTimeoutError,
    WorkspaceTransportError,
)

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from airflow_provider_workspace.api.operation import Operation, Request, RequestContext
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.errors import WorkspaceRequestError

T = TypeVar("T")
R = TypeVar("R")

# Bytes per read and per write.
READ_SIZE = 65_536
WRITE_SIZE = 16_384
# Bytes that are decompressed at once.
CHUNK_SIZE = 1_000_000
COMPRESSIONS = ("gzip", "x-gzip", "deflate")
# TLS errors that a retry may not meet: the connection broke during the handshake.
TRANSIENT_TLS_ERRORS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class ResponseTooLargeError(Exception):
    """The response exceeds the maximum size."""


class UnreadableBodyError(Exception):
    """The body does not match its Content-Encoding."""


# Exceptions of a failed attempt. Not Exception, because Airflow stops tasks with exceptions of its own.
FAILURES = (OSError, HTTPError, http.client.HTTPException, ValueError, ResponseTooLargeError, UnreadableBodyError)


class Exchange:
    """
    One request and its response.

    :param settings: timeouts and the maximum response size
    :ivar deadline: end of the total timeout by the monotonic clock
    :ivar sent: whether a byte of the request may have been sent
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.deadline = time.monotonic() + settings.total_timeout
        self.sent = False
        self._received = 0

    @property
    def overdue(self) -> bool:
        """Whether the total timeout is over."""
        return time.monotonic() >= self.deadline

    def timeout(self) -> float:
        """
        Return the timeout in seconds for the next read or write.

        :raises TimeoutError: if the total timeout is over
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.settings.read_timeout)

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
        self._headers = CaseInsensitiveDict(headers_for(settings))
        proxy = proxy_for(settings)
        self._proxies = {"http": proxy, "https": proxy} if proxy else {}
        https = settings.base_url.startswith("https://") or (proxy or "").startswith("https://")
        self._adapter = _Adapter(tls_context(settings.verify) if https else None, settings.max_concurrency)

    def exchange(self, op: Operation[Any], request: Request, url: str, context: RequestContext) -> Response:
        """
        Send a request and read the complete response.

        :raises WorkspaceRequestError: if the request cannot be sent or the response cannot be read
        """
        exchange = Exchange(self._settings)
        try:
            return self._send(exchange, request.method, url, request.body)
        except FAILURES as error:
            failure = attempt_error(op, error, context, self._settings, sent=exchange.sent, overdue=exchange.overdue)
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
        seconds = min(self._settings.connect_timeout, self._settings.total_timeout)
        verify = self._settings.verify is not False
        token = _exchange.set(exchange)
        try:
            response = self._adapter.send(
                _prepare(method, url, self._headers, body),
                stream=True,
                timeout=(seconds, self._settings.read_timeout),
                verify=verify,
                proxies=self._proxies,
            )
        finally:
            _exchange.reset(token)
        with response:
            received = Body(response.headers.get("Content-Encoding"), self._settings.max_response_bytes)
            for chunk in response.raw.stream(READ_SIZE, decode_content=False):
                received.add(chunk)
        return Response(response.status_code, response.headers, received.content())


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
    """An adapter with bounded connections and a shared TLS context; by default each pool reads the CA certificates."""

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
        """Do nothing; the TLS context has the CA certificates."""


class _BoundedConnection(HTTPConnection):
    """A connection that obeys the limits of the current exchange."""

    _connecting = False

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open and received nothing while it was idle."""
        pending = isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
        return super().is_connected and not pending

    def connect(self) -> None:
        """Connect to the service, directly or through a proxy."""
        self._connecting = True
        try:
            super().connect()
        finally:
            self._connecting = False

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


def headers_for(settings: Settings) -> dict[str, str]:
    """Return the headers of every request."""
    return {
        "Authorization": f"Bearer {settings.api_key}",
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": f"airflow-provider-workspace/{__version__}",
    }


def proxy_for(settings: Settings) -> str | None:
    """
    Return the proxy of the settings, else that of the environment, else ``None``.

    For a service on this machine the proxy of the environment is ignored.

    :raises WorkspaceConfigError: if the proxy of the environment is not an HTTP proxy or not a valid URL
    """
    if settings.proxy is not None:
        return settings.proxy
    parts = urlsplit(settings.base_url)
    if is_loopback(parts.hostname or "") or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None:
        return None
    scheme, found, _ = proxy.rpartition("://")
    if found and scheme.lower() not in ("http", "https"):
        raise WorkspaceConfigError(
            f"Set an http:// proxy as 'proxy' in the extra of {settings.source}, or name {parts.hostname} in NO_PROXY: "
            f"the environment names a {scheme}:// proxy, which is not supported."
        )
    url = proxy if found else f"http://{proxy}"
    if not is_url(url):  # not shown: it may hold a password
        raise WorkspaceConfigError(
            f"Correct the proxy in the environment, set 'proxy' in the extra of {settings.source}, or name "
            f"{parts.hostname} in NO_PROXY: the proxy in the environment is not a valid URL."
        )
    return url


@cache
def tls_context(verify: bool | str) -> ssl.SSLContext:  # noqa: FBT001 - the setting as it is, hashable for the cache
    """
    Return the TLS context, which is cached because reading the CA certificates takes 45 ms.

    :param verify: true for the default CA certificates (those of ``REQUESTS_CA_BUNDLE``, ``CURL_CA_BUNDLE`` or
        ``SSL_CERT_FILE`` if set), a file or directory with others, or false to disable verification
    :raises WorkspaceConfigError: if the CA certificates cannot be read
    """
    import os

    import certifi

    if verify is False:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    bundle = verify if isinstance(verify, str) else next(filter(None, map(os.environ.get, names)), certifi.where())
    try:
        if os.path.isdir(bundle):  # noqa: PTH112 - one call, no Path needed
            return ssl.create_default_context(capath=bundle)
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise WorkspaceConfigError(
            f"Correct 'verify' in the extra of the connection, or {', '.join(names)} in the environment: the "
            f"CA certificates in '{bundle}' cannot be read ({error})."
        ) from error


class Body:
    """
    Collects and decompresses the chunks of a body.

    :param encoding: Content-Encoding; ``None`` if the response has none
    :param limit: maximum bytes, before and after decompression
    :raises UnreadableBodyError: if the encoding is not in Accept-Encoding
    """

    def __init__(self, encoding: str | None, limit: int) -> None:
        self._limit = limit
        self._received = 0
        self._content = io.BytesIO()
        name = (encoding or "identity").strip().lower()
        if name not in ("identity", *COMPRESSIONS):
            raise UnreadableBodyError(f"unexpected Content-Encoding {name[:40]}")
        self._compressed = name in COMPRESSIONS
        self._deflate = name == "deflate"
        # With these window bits zlib detects gzip and zlib.
        self._decompressor: Any = zlib.decompressobj(47) if self._compressed else None

    def add(self, chunk: bytes) -> None:
        """
        Add a chunk.

        :raises ResponseTooLargeError: if the body exceeds the limit, before the rest is decompressed
        :raises UnreadableBodyError: if the chunk cannot be decompressed
        """
        if self._deflate and not self._received and chunk[0] & 0x0F != 8:
            self._decompressor = zlib.decompressobj(-15)  # raw deflate without a zlib header
        self._received += len(chunk)
        if self._received > self._limit:
            raise ResponseTooLargeError
        if self._compressed:
            self._decompress(chunk)
        else:
            self._append(chunk)

    def content(self) -> bytes:
        """
        Return the body.

        :raises UnreadableBodyError: if a compressed one is cut off
        """
        if self._compressed and self._received:
            self._decompress(b"")
            if not self._decompressor.eof:
                raise UnreadableBodyError("the compressed body is cut off")
        return self._content.getvalue()

    def _decompress(self, chunk: bytes) -> None:
        while True:
            if self._decompressor.eof and chunk:  # another gzip member
                self._decompressor = zlib.decompressobj(47)
            try:
                decompressed = self._decompressor.decompress(chunk, CHUNK_SIZE)
            except zlib.error as error:
                raise UnreadableBodyError(f"the body cannot be decompressed ({error})") from None
            self._append(decompressed)
            chunk = self._decompressor.unconsumed_tail or self._decompressor.unused_data
            if not chunk and len(decompressed) < CHUNK_SIZE:
                return

    def _append(self, chunk: bytes) -> None:
        if self._content.tell() + len(chunk) > self._limit:
            raise ResponseTooLargeError
        self._content.write(chunk)


def attempt_error(
    op: Operation[Any],
    error: Exception,
    context: RequestContext,
    settings: Settings,
    *,
    sent: bool,
    overdue: bool,
    timeout: bool = False,
) -> WorkspaceRequestError:
    """
    Build the error for a failed attempt.

    :param error: exception of a library; it is not kept, because its frames contain the API key
    :param sent: whether a byte of the request may have been sent
    :param overdue: whether the total timeout is over
    :param timeout: whether the error is a timeout; a ``TimeoutError`` is recognized without it
    """
    causes, redacted = _causes(error), context.with_secrets_of(op).redacted
    timeout = timeout or any(isinstance(cause, TimeoutError) for cause in causes)
    why, cure = f"{type(causes[-1]).__name__}: {causes[-1]}", ""
    if isinstance(error, ResponseTooLargeError):
        cure = f"Raise max_response_bytes in the extra of {context.source} if the service really returns that much."
        what = f"returned more than {settings.max_response_bytes:,} bytes"
        return request_error(WorkspaceResponseError, op, what, cure=cure, retryable=False)
    if not sent:
        cure = f"Check the host, port and proxy of {context.source}."
        retryable = not isinstance(error, ValueError | http.client.InvalidURL)  # such a host name or URL is permanent
        tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
        if timeout:
            why = f"no connection within {settings.total_timeout if overdue else settings.connect_timeout:g} s"
        elif tls is not None and not isinstance(tls, TRANSIENT_TLS_ERRORS):
            why, retryable = f"TLS failed, {type(tls).__name__}: {tls}", False
            if isinstance(tls, ssl.SSLCertVerificationError):
                cure = f"Correct the host of {context.source}, or set 'verify' in its extra to the file of your CA."
        what = f"was not sent: {redacted(why).rstrip('.: ')}"
        return request_error(
            WorkspaceConnectionError, op, what, cure=cure, outcome=Outcome.NOT_SENT, retryable=retryable
        )
    if timeout:
        setting = "total_timeout" if overdue else "read_timeout"
        why = f"{'not within' if overdue else 'nothing for'} {getattr(settings, setting):g} s"
        cure = f"Raise {setting} in the extra of {context.source} if the service needs longer."
    what = f"was sent, but no complete response arrived: {redacted(why).rstrip('.: ')}"
    return request_error(WorkspaceTimeoutError if timeout else WorkspaceTransportError, op, what, cure=cure)


def _causes(error: BaseException) -> list[BaseException]:
    """Return an exception and its causes, through the wrappers of the libraries."""
    found: list[BaseException] = []
    cause: Any = error
    while cause is not None:
        found.append(cause)
        context = None if cause.__suppress_context__ else cause.__context__
        parts = (getattr(cause, "reason", None), *cause.args, cause.__cause__, context)
        cause = next((part for part in parts if isinstance(part, BaseException) and part not in found), None)
    return found
