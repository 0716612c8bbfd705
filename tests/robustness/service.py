"""A server with scripted responses that records all received bytes."""

from __future__ import annotations

import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Recorder:
    """
    A server on loopback with keep-alive connections, for many quick requests.

    :ivar answer: status, headers and body of all following responses
    :ivar received: the bytes of every request
    """

    def __init__(self) -> None:
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")
        self.received: list[bytes] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                recorder.received.append(self.raw_requestline + bytes(self.headers) + body)
                status, headers, content = recorder.answer
                head = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}"]
                head += [f"{name}: {value}" for name, value in headers.items()]
                self.wfile.write("\r\n".join(head).encode() + b"\r\n\r\n" + content)

            do_GET = do_POST = do_PATCH = do_DELETE = do_CONNECT = do_PUT = handle_any  # noqa: N815 - the names of http.server

            def log_message(self, *_: object) -> None:
                """Write nothing to the terminal."""

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
