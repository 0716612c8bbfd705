"""
The connections of the client for workers: the HTTP of the standard library, with an end to everything.

An exchange ends in time and in bytes, however slowly the service writes. It is known whether a byte of the request may
have left, and a connection that is in doubt is not used again.
"""

from __future__ import annotations

import base64
import http.client
import io
import select
import socket
import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.client.body import AnswerTooLargeError, Body
from airflow_provider_workspace.client.call import headers_for
from airflow_provider_workspace.client.transport import proxy_for, tls_context

if TYPE_CHECKING:
    from airflow_provider_workspace.client.settings import Settings

# How many bytes are read and written at once.
PIECE = 65_536
WRITTEN = 16_384
PORTS = {"http": 80, "https": 443}


class Route:
    """
    Where the requests of a client go, and with which headers.

    :param settings: where and as whom to ask
    :raises WorkspaceConfigError: if the proxy or the certificate authorities of the environment cannot be used
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.service = urlsplit(settings.base_url)
        proxy = proxy_for(settings)
        self.proxy = urlsplit(proxy) if proxy else None
        schemes = {self.service.scheme, self.proxy.scheme if self.proxy else None}
        self.tls = tls_context(settings.verify) if "https" in schemes else None
        self.headers = {"Host": _host(self.service), **headers_for(settings)}
        self.proxy_headers: dict[str, str] = {}
        if self.proxy and self.proxy.username is not None:
            login = f"{unquote(self.proxy.username)}:{unquote(self.proxy.password or '')}"
            self.proxy_headers["Proxy-Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        if self.proxy and self.service.scheme == "http":  # the proxy is told the whole URL
            self.headers |= self.proxy_headers


class Connections:
    """
    The idle connections of a client.

    :param settings: see :class:`Route`
    """

    def __init__(self, settings: Settings) -> None:
        self._route = Route(settings)
        self._idle: list[Connection] = []

    def take(self) -> Connection:
        """Return a connection that nobody else uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return Connection(self._route)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for another request; where something speaks against it, it connects anew for that."""
        if connection.in_doubt:
            connection.close()
        self._idle.append(connection)

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()


class Connection(http.client.HTTPConnection):
    """
    One connection; it connects when it is first used, and again where it was closed.

    :ivar sent: whether a byte of the request may have left
    :ivar in_doubt: whether something came that no request asked for, or not everything was sent
    :ivar deadline: when the exchange ends at the latest, by the monotonic clock
    """

    sock: Any

    def __init__(self, route: Route) -> None:
        first = route.proxy or route.service
        super().__init__(first.hostname or "", first.port or PORTS[first.scheme])
        self._route = route
        self._received = 0
        self.sent = self.in_doubt = False
        self.deadline = 0.0

    def __del__(self) -> None:
        """Close the socket of a client that nobody closed."""
        self.close()

    def exchange(self, method: str, url: str, body: bytes | None) -> Response:
        """
        Send a request and read the whole answer.

        :raises OSError: if connecting, writing or reading fails, or takes too long
        :raises HTTPException: if what comes is not HTTP
        :raises AnswerTooLargeError: if the answer is larger than the settings permit
        :raises UnreadableBodyError: if its body cannot be decompressed
        """
        settings = self._route.settings
        self.deadline = time.monotonic() + settings.total_timeout
        self._received = 0
        self.sent = self.in_doubt = False
        if self.sock is not None and self._was_dropped():
            self.close()
        if self.sock is None:
            self.connect()
        headers = self._route.headers if body is None else {**self._route.headers, "Content-Type": "application/json"}
        try:
            self.request(method, self._target(url), body, headers)
        except (BrokenPipeError, ConnectionResetError):
            self.in_doubt = True  # a service may refuse a request that it has not read to the end
        with self.getresponse() as answer:
            self.in_doubt |= bool(answer.headers.defects)  # a head that breaks off hides how long the body is
            content = Body(answer.getheader("Content-Encoding"), settings.max_response_bytes)
            while piece := answer.read(PIECE):
                content.add(piece)
            if answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content.whole())

    def connect(self) -> None:
        """Connect to the service or its proxy, and through that to the service; then begin TLS."""
        route = self._route
        self.timeout = min(route.settings.connect_timeout, route.settings.total_timeout)
        self.sock = socket.create_connection((self.host, self.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if route.proxy and route.proxy.scheme == "https":
            self._begin_tls(self.host)
        if route.service.scheme == "https":
            if route.proxy:
                self._open_tunnel()
            self._begin_tls(route.service.hostname or "")

    def _open_tunnel(self) -> None:
        """Let the proxy connect to the service."""
        service = self._route.service
        target = _host(service) if service.port else f"{_host(service)}:{PORTS[service.scheme]}"
        headers = {"Host": target, **self._route.proxy_headers}
        lines = [f"CONNECT {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "\r\n"]
        self.sock.sendall("\r\n".join(lines).encode("ascii"))
        with self.response_class(self.sock, method="CONNECT") as answer:
            answer.begin()
            if not 200 <= answer.status < 300:
                msg = f"the proxy refused to connect: {answer.status} {answer.reason}"
                raise ConnectionRefusedError(msg)

    def _begin_tls(self, hostname: str) -> None:
        tls = self._route.tls
        assert tls is not None  # noqa: S101 - as the schemes say
        if isinstance(self.sock, ssl.SSLSocket):
            from urllib3.util.ssltransport import SSLTransport

            self.sock = SSLTransport(self.sock, tls, hostname)
        else:
            self.sock = tls.wrap_socket(self.sock, server_hostname=hostname)

    def _target(self, url: str) -> str:
        """Return what stands in the first line of a request."""
        if self._route.proxy and self._route.service.scheme == "http":
            return url
        parts = urlsplit(url)
        return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"

    def _was_dropped(self) -> bool:
        """Tell whether something came while the connection was idle: its end, or what nobody asked for."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0)) or (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0)

    def patience(self) -> float:
        """
        Return how many seconds the next byte may take.

        :raises TimeoutError: if none
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self._route.settings.read_timeout)

    def send(self, data: Any) -> None:
        """Send some of the request, until the deadline."""
        for start in range(0, len(data), WRITTEN):
            self.sock.settimeout(self.patience())
            self.sent = True
            self.sock.sendall(data[start : start + WRITTEN])

    def count(self, received: int) -> None:
        """
        Count what was received, heads and all.

        :raises AnswerTooLargeError: if it is more than an answer may have
        """
        self._received += received
        # A head has up to a hundred lines of 64 KB besides.
        if self._received > self._route.settings.max_response_bytes + PIECE:
            raise AnswerTooLargeError

    def response_class(self, sock: Any, debuglevel: int = 0, method: str | None = None) -> _Answer:  # type: ignore[override]
        """Return an answer that is read from the socket within the bounds of the exchange."""
        return _Answer(_Incoming(sock, self), debuglevel, method)  # type: ignore[arg-type]


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


class _Incoming(io.RawIOBase):
    """
    What an answer is read from.

    :param sock: the socket; stays open until the answer is read, even if the connection is closed
    :param connection: knows how long to wait, and how much is too much
    """

    def __init__(self, sock: Any, connection: Connection) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
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
        self._sock.settimeout(self.connection.patience())
        received: int = self._raw.readinto(buffer)
        self.connection.count(received)
        return received

    def close(self) -> None:
        """Let the socket go."""
        self._raw.close()
        super().close()


class _Reader(io.BufferedReader):
    """Notices, when an answer was read, that more came than it."""

    def __init__(self, incoming: _Incoming) -> None:
        super().__init__(incoming)
        self._incoming = incoming

    def close(self) -> None:
        """Close; what is left belongs to no request."""
        if not self.closed:
            self._incoming.over = True
            self._incoming.connection.in_doubt |= bool(self.peek(1))
        super().close()


def _host(parts: SplitResult) -> str:
    """Return host and port for a header."""
    name = parts.hostname or ""
    with suppress(UnicodeError):  # connecting says so
        name = name.encode("idna").decode()
    name = f"[{name}]" if ":" in name else name
    return f"{name}:{parts.port}" if parts.port else name
