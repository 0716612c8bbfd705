"""Limits of both clients: endless, too large, misplaced or truncated responses, over real sockets and TLS."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.operations import CreateDashboard, GetDashboard
from airflow_provider_workspace.client.aio import WorkspaceAsyncClient
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.client.sync import WorkspaceClient
from airflow_provider_workspace.errors import (
    WorkspaceConnectionError,
    WorkspaceOutcomeUnknownError,
    WorkspaceRequestError,
    WorkspaceResponseError,
    WorkspaceTimeoutError,
    WorkspaceTransportError,
)
from tests.raw_server import HEAD, RawServer, Scene, answer, read_request

if TYPE_CHECKING:
    from tests.unit.client.conftest import Send

# Tests of TLS do not verify the certificate.
pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")

READ = GetDashboard(project_id="1", dashboard_id=7)
CREATE = CreateDashboard(project_id="1", name="Sales")
OK = b"HTTP/1.1 200 OK\r\n"


def dripping(before: bytes, drops: bytes) -> Scene:
    """Send ``before``, then the bytes of ``drops`` one at a time, forever."""

    def play(connection: socket.socket) -> None:
        connection.sendall(before)
        for drop in chain.from_iterable(repeat(drops)):
            connection.sendall(bytes([drop]))
            time.sleep(0.03)

    return Scene(handler=play)


def endless(before: bytes, piece: bytes) -> Scene:
    """Send ``before``, then ``piece`` again and again as fast as possible."""

    def play(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(piece)

    return Scene(handler=play)


# Time limits

DRIPPING = {
    "status line": dripping(b"", b"HTTP"),
    "head": dripping(OK, b"X-A: b\r\n"),
    "long header": dripping(OK + b"X-A: ", b"b"),
    "100 Continue": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "103 Early Hints": dripping(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "body": dripping(HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
    "body without length": dripping(HEAD + b"\r\n", b" "),
    "chunks": dripping(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "chunk size": dripping(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "trailers": dripping(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-A: b\r\n"),
    "body of an error": dripping(b"HTTP/1.1 400 Bad\r\nContent-Length: 1000000\r\n\r\n", b" "),
    "gzip": dripping(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}")[:10], b"\x00\x00\x00\xff\xff"),
}


@pytest.mark.parametrize("scene", DRIPPING.values(), ids=DRIPPING)
def test_a_slow_drip_ends_at_the_total_timeout(send: Send, scene: Scene) -> None:
    check_total_timeout(send, scene, 0.4)


@pytest.mark.parametrize("name", ["head", "body", "chunks", "gzip"])
def test_a_slow_drip_through_tls_ends_at_the_total_timeout(send: Send, server_tls: ssl.SSLContext, name: str) -> None:
    check_total_timeout(send, DRIPPING[name], 1.0, tls=server_tls)


def check_total_timeout(send: Send, scene: Scene, total: float, tls: ssl.SSLContext | None = None) -> None:
    bounds = {"read_timeout": total + 0.1, "total_timeout": total, "max_attempts": 1, "verify": False}
    with RawServer(scene, tls=tls) as service:
        began = time.monotonic()
        sent = send(service.url, CREATE, **bounds)
        seconds = time.monotonic() - began
    assert type(sent.error) is WorkspaceOutcomeUnknownError
    assert type(sent.error.__cause__) is WorkspaceTimeoutError
    assert "Raise total_timeout in the extra of " in str(sent.error)
    assert f"no complete response arrived: not within {total:g} s (" in str(sent.error)
    assert total - 0.05 < seconds < total + 5


ENDLESS = {
    "100 Continue": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "103 Early Hints": endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1000),
    "body": endless(HEAD + b"\r\n", b" " * 10_000),
    "chunks": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\nnull\r\n" * 1000),
    "head": endless(OK, b"X-A: b\r\n" * 1000),
    "body of an error": endless(b"HTTP/1.1 400 Bad\r\n\r\n", b" " * 10_000),
}


@pytest.mark.parametrize("scene", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_response_is_an_error(send: Send, scene: Scene) -> None:
    with RawServer(scene) as service:
        began = time.monotonic()
        sent = send(service.url, CREATE, total_timeout=1.0, max_response_bytes=200_000)
        seconds = time.monotonic() - began
    assert type(sent.error) is WorkspaceOutcomeUnknownError
    assert seconds < 30


def test_a_service_that_does_not_read_ends_at_the_total_timeout(send: Send) -> None:
    many = CreateDashboard(project_id="1", name="x" * 30_000_000)
    with RawServer(Scene(reads=False, handler=lambda _: time.sleep(0.8))) as service:
        sent = send(service.url, many, read_timeout=2.0, total_timeout=0.4, max_attempts=1)
    assert type(sent.error.__cause__) is WorkspaceTimeoutError


# Size limits


def body_of(size: int, *, status: int = 200, packed: bool = False, **headers: str) -> Scene:
    return answer(status, b" " * (size - 2) + b"{}", packed=packed, **headers)


def deflated(body: bytes, *, wrapped: bool = True) -> Scene:
    packer = zlib.compressobj(wbits=15 if wrapped else -15)
    return answer(200, packer.compress(body) + packer.flush(), Content_Encoding="deflate")


LIMIT = 1_000_000
LARGE = {
    "length": body_of(LIMIT + 1),
    "gzip": body_of(LIMIT + 1, packed=True),
    "deflate": deflated(b" " * LIMIT + b"{}"),
    "error": body_of(LIMIT + 1, status=400),
    "error in gzip": body_of(LIMIT * 50, status=400, packed=True),
    "gzip twice": answer(200, gzip.compress(b" " * LIMIT) + gzip.compress(b"{}"), Content_Encoding="gzip"),
}


@pytest.mark.parametrize("scene", LARGE.values(), ids=LARGE)
def test_a_response_above_the_limit_is_an_error(send: Send, scene: Scene) -> None:
    with RawServer(scene) as service:
        sent = send(service.url, READ, max_response_bytes=LIMIT)
    assert type(sent.error) is WorkspaceResponseError
    assert (sent.error.outcome, sent.error.retryable, service.connections) == ("unknown", False, 1)
    assert str(sent.error) == (
        "Raise max_response_bytes in the extra of the settings if the service really returns that much. "
        "GetDashboard returned more than 1,000,000 bytes (GET /api/environments/1/dashboards/7/)."
    )


@pytest.mark.parametrize(
    "scene",
    [
        body_of(LIMIT),
        body_of(LIMIT, packed=True),
        deflated(b" " * (LIMIT - 2) + b"{}"),
        deflated(b" " * (LIMIT - 2) + b"{}", wrapped=False),
        answer(200, gzip.compress(b" " * 9) + gzip.compress(b"{}"), Content_Encoding="x-gzip"),
        answer(200, b"{}", Content_Encoding="identity"),
    ],
)
def test_a_response_at_the_limit_is_read(send: Send, scene: Scene) -> None:
    with RawServer(scene) as service:
        assert send(service.url, READ, max_response_bytes=LIMIT).error is None


@pytest.mark.parametrize(
    ("scene", "found"),
    [
        (answer(200, gzip.compress(b"{}" * 99)[:-9], Content_Encoding="gzip"), "the compressed body is cut off"),
        (answer(200, b"{}", Content_Encoding="gzip"), "the body cannot be decompressed"),
        (answer(200, b"{}", Content_Encoding="br"), "unexpected Content-Encoding br"),
        (answer(200, b"{}", Content_Encoding="gzip, gzip"), "unexpected Content-Encoding gzip, gzip"),
    ],
)
def test_an_undecodable_body_has_outcome_unknown(send: Send, scene: Scene, found: str) -> None:
    with RawServer(scene) as service:
        sent = send(service.url, CREATE)
    assert type(sent.error.__cause__) is WorkspaceTransportError
    assert found in str(sent.error)


# Outcome "not sent" or "unknown"


def plain_bytes_after_tls(tls: ssl.SSLContext) -> Scene:
    """Read the request through TLS, then respond in plain bytes."""

    def play(connection: socket.socket) -> None:
        with tls.wrap_socket(connection.dup(), server_side=True) as wrapped:
            read_request(wrapped)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" * 100)

    return Scene(reads=False, handler=play)


def test_plain_bytes_in_a_tls_connection_have_outcome_unknown(send: Send, server_tls: ssl.SSLContext) -> None:
    with RawServer(plain_bytes_after_tls(server_tls)) as service:
        sent = send(service.url.replace("http:", "https:"), CREATE, verify=False)
    assert type(sent.error) is WorkspaceOutcomeUnknownError
    assert service.connections == 1


@pytest.mark.parametrize("words", ["Tunnel connection failed: 407", "CERTIFICATE_VERIFY_FAILED", "[Errno 111] refused"])
@pytest.mark.parametrize("head", ["HTTP/1.1 500 {}\r\n\r\n", "{}\r\n\r\n", "HTTP/1.1 abc {}\r\n\r\n"])
def test_texts_of_the_service_do_not_change_the_outcome_to_not_sent(send: Send, head: str, words: str) -> None:
    with RawServer(Scene(head.format(words).encode())) as service:
        sent = send(service.url, CREATE)
    assert type(sent.error) is WorkspaceOutcomeUnknownError
    assert service.connections == 1


@pytest.mark.parametrize("reads", [True, False], ids=["closed", "closed in the handshake"])
def test_an_aborted_handshake_has_outcome_not_sent_and_is_retried(send: Send, *, reads: bool) -> None:
    scene = Scene(reads=False, resets=reads)
    with RawServer(scene) as service:
        sent = send(service.url.replace("http:", "https:"), CREATE, verify=False)
    assert type(sent.error) is WorkspaceConnectionError
    assert (sent.error.outcome, sent.error.retryable, service.connections) == ("not_sent", True, 3)


CONNECT_FAILS = {
    "refused": answer(407),
    "closed": Scene(),
    "reset": Scene(resets=True),
    "no HTTP": Scene(b"nonsense\r\n\r\n"),
    "no TLS behind it": Scene(b"HTTP/1.1 200 OK\r\n\r\nnonsense, and enough of it for a record of TLS"),
    "dripping": dripping(b"", b"HTTP"),
}


@pytest.mark.parametrize("scene", CONNECT_FAILS.values(), ids=CONNECT_FAILS)
def test_a_proxy_that_does_not_connect_has_outcome_not_sent(send: Send, scene: Scene) -> None:
    with RawServer(scene) as proxy:
        sent = send("https://host.invalid", CREATE, proxy=proxy.url, max_attempts=1, total_timeout=1.0)
    assert type(sent.error) is WorkspaceConnectionError
    assert sent.error.outcome == "not_sent"


# Which response belongs to which request


def responses(replies: Callable[[int], bytes], late: float = 0.0) -> Scene:
    """Respond to one request after the other on one connection; the first request was read already."""

    def play(connection: socket.socket) -> None:
        for number in range(1, 9):
            for part in replies(number).split(b"|"):
                connection.sendall(part)
                time.sleep(late)
            read_request(connection)

    return Scene(handler=play)


def reply(number: int) -> bytes:
    body = json.dumps({"id": number, "name": f"for {number}"}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


PLACES: dict[str, Callable[[int], bytes]] = {
    "103": lambda number: b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n|" + reply(number),
    "102 and 100": lambda number: b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n|" + reply(number),
}


@pytest.fixture(params=["requests", "httpx"])
def read_names(request: pytest.FixtureRequest) -> Callable[..., list[str | None]]:
    """Read dashboards 1, 2 and 3 with one client, and return their names or errors."""

    def with_requests(base_url: str) -> list[str | None]:
        found: list[str | None] = []
        with WorkspaceClient(Settings(base_url, "key", max_attempts=1, read_timeout=2)) as client:
            for number in (1, 2, 3):
                try:
                    found.append(client.send(GetDashboard(project_id="1", dashboard_id=number)).name)
                except WorkspaceRequestError as error:  # noqa: PERF203 - three rounds
                    found.append(type(error).__name__)
        return found

    async def with_httpx(base_url: str) -> list[str | None]:
        found: list[str | None] = []
        async with WorkspaceAsyncClient(Settings(base_url, "key", max_attempts=1, read_timeout=2)) as client:
            for number in (1, 2, 3):
                try:
                    found.append((await client.send(GetDashboard(project_id="1", dashboard_id=number))).name)
                except WorkspaceRequestError as error:  # noqa: PERF203 - three rounds
                    found.append(type(error).__name__)
        return found

    return with_requests if request.param == "requests" else lambda base_url: asyncio.run(with_httpx(base_url))


@pytest.mark.parametrize("replies", PLACES.values(), ids=PLACES)
def test_provisional_responses_are_skipped(read_names: Callable[..., list[str | None]], replies: Any) -> None:
    with RawServer(responses(replies, late=0.05)) as service:
        assert read_names(service.url) == ["for 1", "for 2", "for 3"]
        assert service.connections == 1


def test_101_is_an_error(read_names: Callable[..., list[str | None]]) -> None:
    with RawServer(responses(lambda number: b"HTTP/1.1 101 Switching\r\n\r\n" + reply(number))) as service:
        assert read_names(service.url) == ["WorkspaceTransportError"] * 3
    assert service.connections == 3


@pytest.mark.parametrize("surplus", [reply(99), b"{}"], ids=["answer", "junk"])
def test_a_connection_with_surplus_bytes_is_not_reused(
    read_names: Callable[..., list[str | None]], surplus: bytes
) -> None:
    with RawServer(responses(lambda number: reply(number) + surplus)) as service:
        assert read_names(service.url) == ["for 1"] * 3
    assert service.connections == 3


def test_a_refusal_during_the_upload_is_read(send: Send) -> None:
    def play(connection: socket.socket) -> None:
        connection.sendall(b'HTTP/1.1 413 Too Large\r\nContent-Length: 16\r\n\r\n{"detail":"big"}')
        connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while connection.recv(65536):
                pass

    many = CreateDashboard(project_id="1", name="x" * 3_000_000)
    with RawServer(Scene(reads=False, handler=play)) as service:
        sent = send(service.url, many)
    assert "returned 413: big" in str(sent.error)
