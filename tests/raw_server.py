"""The raw-socket server of all tests: it misbehaves on demand, byte by byte."""

from __future__ import annotations

import gzip
import json
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Scene:
    """
    What happens to one connection.

    :param answer: the bytes to send; or a function of the server's URL that returns them
    :param reads: whether the request is read at all
    :param resets: whether the connection ends with a reset instead of in peace
    :param waits: whether the server then keeps silent until the client leaves
    :param handler: does the rest with the connection, after the request was read, in place of an answer
    """

    answer: bytes | Callable[[str], bytes] = b""
    reads: bool = True
    resets: bool = False
    waits: bool = False
    handler: Callable[[socket.socket], None] | None = None


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire; ``body`` is parsed."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any


def answer(status: int = 200, body: Any = None, *, packed: bool = False, **headers: str) -> Scene:
    """Respond with JSON, or with bytes as they are; ``_`` in header names stands for ``-``."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    if packed:
        content = gzip.compress(content)
        headers["Content_Encoding"] = "gzip"
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Scene("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content)


def redirect(location: str, status: int = 302) -> Scene:
    """Redirect; ``{url}`` is the URL of the server."""

    def at(url: str) -> bytes:
        scene = answer(status, Location=location.replace("{url}", url))
        assert isinstance(scene.answer, bytes)
        return scene.answer

    return Scene(at)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
RESET_BEFORE_READING = Scene(reads=False, resets=True)
RESET_AFTER_READING = Scene(resets=True)
CLOSED_AFTER_READING = Scene()
CUT = Scene(HEAD + b'Content-Length: 100\r\n\r\n{"id": 7')
CUT_CHUNK = Scene(HEAD + b'Transfer-Encoding: chunked\r\n\r\n64\r\n{"id": 7')
BAD_CHUNK = Scene(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}")
BAD_GZIP = Scene(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}")
NOT_HTTP = Scene(b"220 mail.example.com ESMTP CERTIFICATE_VERIFY_FAILED VERSION\r\n")
SILENT = Scene(waits=True)
SILENT_HALF_WAY = Scene(HEAD + b'Content-Length: 100\r\n\r\n{"id": 7', waits=True)


class RawServer:
    """
    A server on loopback that plays one scene per connection, each in a thread; the last one is repeated.

    :param scenes: what happens
    :param tls: speak TLS with this context
    :ivar requests: what was read, in order
    :ivar connections: number of accepted connections
    :ivar closed: released when a scene has ended
    """

    def __init__(self, *scenes: Scene, tls: ssl.SSLContext | None = None) -> None:
        self.scenes = list(scenes)
        self.tls = tls
        self.requests: list[Received] = []
        self.connections = 0
        self.closed = threading.Semaphore(0)
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        # Closing the socket does not wake accept(); a connection does.
        socket.create_connection(self._listener.getsockname()).close()
        self._threads[0].join()
        for connection in [*self._open]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._over.is_set():
                connection.close()
                return
            scene = self.scenes[min(self.connections, len(self.scenes) - 1)]
            self.connections += 1
            self._open.add(connection)
            self._threads.append(threading.Thread(target=self._handle, args=(scene, connection), daemon=True))
            self._threads[-1].start()

    def _handle(self, scene: Scene, connection: socket.socket) -> None:
        with suppress(OSError), connection:  # the client may disconnect first
            self._play(scene, connection)
        self._open.discard(connection)
        self.closed.release()

    def _play(self, scene: Scene, connection: socket.socket) -> None:
        connection.settimeout(5)
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True)
        with connection:
            if scene.reads:
                self.requests.append(read_request(connection))
            else:
                connection.recv(1, socket.MSG_PEEK)  # read, but not recorded
            if scene.handler:
                scene.handler(connection)
                return
            if scene.resets:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            connection.sendall(scene.answer(self.url) if callable(scene.answer) else scene.answer)
            if scene.waits:
                connection.recv(1)


def read_request(connection: socket.socket) -> Received:
    """Read one request to its end."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += more(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += more(connection)
    return Received(method, target, headers, json.loads(body) if body else None)


def more(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise ConnectionResetError
    return received


def closed_port() -> int:
    """Return a port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@contextmanager
def full_backlog(host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Yield the URL of a host that swallows each SYN: nobody accepts, and the backlog is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((host, port), backlog=0))
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0)
            filler.connect_ex(listener.getsockname())
        yield f"http://{host}:{listener.getsockname()[1]}"


def dripping(before: bytes, drops: bytes, pause: float = 0.03) -> Scene:
    """Send ``before``, then the bytes of ``drops`` one at a time, for ten seconds."""

    def play(connection: socket.socket) -> None:
        connection.sendall(before)
        for drop in islice(cycle(drops), int(10 / pause)):
            connection.sendall(bytes([drop]))
            time.sleep(pause)

    return Scene(handler=play)


def dripping_record(tls: ssl.SSLContext, before: bytes = b"") -> Scene:
    """Read a request and send ``before`` in TLS, then the bytes of a long record, one at a time."""

    def play(connection: socket.socket) -> None:
        with tls.wrap_socket(connection.dup(), server_side=True) as wrapped:
            read_request(wrapped)
            wrapped.sendall(before)
            handler = dripping(b"\x17\x03\x03\x40\x00", b" ").handler
            assert handler
            handler(connection)

    return Scene(reads=False, handler=play)


def tunnel(url: str) -> Scene:
    """Connect to a server on loopback, as a proxy does, and pass on what comes from either side."""

    def play(connection: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as service:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                for source in select.select([connection, service], [], [])[0]:
                    other = service if source is connection else connection
                    other.sendall(more(source))

    return Scene(handler=play)


def endless(before: bytes, piece: bytes) -> Scene:
    """Send ``before``, then ``piece`` again and again as fast as possible."""

    def play(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(piece)

    return Scene(handler=play)
