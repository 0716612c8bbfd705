"""Hosts, proxies, certificates and netrc: what is never sent says so, and what is sent goes where it should."""

from __future__ import annotations

import gc
import socket
import ssl
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceConnectionError,
    WorkspaceOutcomeUnknownError,
)
from tests.raw_server import (
    CLOSED_AFTER_READING,
    RawServer,
    Scene,
    answer,
    closed_port,
    dripping,
    full_backlog,
    read_request,
    tunnel,
)
from tests.unit.hooks.conftest import CREATE, READ

if TYPE_CHECKING:
    from pathlib import Path

    from tests.airflow_cli import AirflowCli
    from tests.unit.hooks.conftest import Ask, Question, SetConnection

pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")

FOUND = answer(200, {"id": 7})


@pytest.fixture(autouse=True)
def _no_proxy_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


# Not sent


@pytest.mark.parametrize("question", [READ, CREATE], ids=["read", "create"])
@pytest.mark.parametrize("place", ["service", "proxy"])
def test_a_refused_connection_is_retried(ask: Ask, question: Question, place: str) -> None:
    closed = f"http://127.0.0.1:{closed_port()}"
    asked = ask(closed, question) if place == "service" else ask("https://host.invalid", question, proxy=closed)
    assert type(asked.error) is WorkspaceConnectionError
    assert (asked.error.outcome, asked.error.attempts, len(asked.waits)) == ("not_sent", 3, 2)
    assert "Check the host, port and proxy of connection 'workspace_default'." in str(asked.error)
    assert [line.split()[1] for line in asked.audit] == ["outcome=not_sent"] * (question is not READ)


@pytest.mark.parametrize("good", [True, False], ids=["then a good one", "and no other"])
def test_dead_addresses_share_the_connect_timeout(ask: Ask, monkeypatch: pytest.MonkeyPatch, *, good: bool) -> None:
    dead = [f"127.0.0.{number}" for number in range(2, 6)]
    resolve = socket.getaddrinfo

    def resolve_many(host: str | bytes, *how: Any, **named: Any) -> list[Any]:
        hosts = [*dead, *["127.0.0.1"] * good] if host in ("many.invalid", b"many.invalid") else [host]
        return [found for host in hosts for found in resolve(host, *how, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve_many)
    with RawServer(FOUND) as service, ExitStack() as stack:
        port = int(service.url.rpartition(":")[2])
        for host in dead:
            stack.enter_context(full_backlog(host, port))
        began = time.monotonic()
        asked = ask(f"http://many.invalid:{port}", READ, connect_timeout=2, max_attempts=1)
        seconds = time.monotonic() - began
    assert asked.error is None if good else "was not sent: no connection within 2 s" in str(asked.error)
    assert 0.5 < seconds < 2.5


# What a server does before TLS is there, or a proxy in place of a tunnel, and whether it is tried again.
NEVER_SENT = {
    "TLS closed": (Scene(reads=False), True),
    "TLS reset": (Scene(reads=False, resets=True), True),
    "no TLS": (Scene(b"HTTP/1.1 400 Bad Request\r\n\r\n", reads=False), False),
    "proxy refused": (answer(407), True),
    "proxy closed": (Scene(), True),
    "proxy reset": (Scene(resets=True), True),
    "proxy without HTTP": (Scene(b"nonsense\r\n\r\n"), True),
    "proxy without TLS": (Scene(b"HTTP/1.1 200 OK\r\n\r\nnonsense, and enough of it for a record of TLS"), True),
    "proxy dripping": (dripping(b"", b"HTTP"), True),
}


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Python 3.10, of a refused tunnel
@pytest.mark.parametrize("name", NEVER_SENT)
def test_without_a_tunnel_or_tls_the_outcome_is_not_sent_and_nobody_sees_the_key(ask: Ask, name: str) -> None:
    scene, retried = NEVER_SENT[name]
    with RawServer(scene) as server:
        if name.startswith("proxy"):
            asked = ask("https://host.invalid", CREATE, proxy=server.url, max_attempts=2, total_timeout=0.5)
        else:
            asked = ask(server.url.replace("http:", "https:"), CREATE, verify=False, max_attempts=2)
    assert type(asked.error) is WorkspaceConnectionError
    assert (asked.error.outcome, asked.error.retryable, server.connections) == ("not_sent", retried, 1 + retried)
    assert {request.method for request in server.requests} <= {"CONNECT"}
    assert not any("authorization" in request.headers for request in server.requests)
    del asked
    gc.collect()


@pytest.mark.parametrize("host", ["nobody.invalid", "\u0661.invalid", "xn--.invalid"])
def test_an_unknown_or_invalid_host_name_has_outcome_not_sent(ask: Ask, host: str) -> None:
    asked = ask(f"http://{host}", CREATE, max_attempts=1)
    assert type(asked.error) is WorkspaceConnectionError
    assert asked.error.outcome == "not_sent"


def test_plain_bytes_after_a_request_in_tls_have_outcome_unknown(ask: Ask, server_tls: ssl.SSLContext) -> None:
    def play(connection: socket.socket) -> None:
        with server_tls.wrap_socket(connection.dup(), server_side=True) as wrapped:
            read_request(wrapped)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" * 100)

    with RawServer(Scene(reads=False, handler=play)) as service:
        asked = ask(service.url.replace("http:", "https:"), CREATE, verify=False)
    assert isinstance(asked.error, WorkspaceOutcomeUnknownError)
    assert service.connections == 1


# Proxies


@pytest.mark.parametrize("of_service", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("of_proxy", [False, True], ids=["http proxy", "https proxy"])
def test_a_proxy_and_a_service_may_have_tls_and_its_ca_each(
    ask: Ask, server_tls: ssl.SSLContext, certificate: Path, *, of_service: bool, of_proxy: bool
) -> None:
    ca = str(certificate)
    answers = (FOUND, FOUND, CLOSED_AFTER_READING)
    unknown = None
    with RawServer(*answers, tls=server_tls if of_service else None) as service:
        scenes = [tunnel(service.url)] if of_service else answers
        with RawServer(*scenes, tls=server_tls if of_proxy else None) as proxy:
            for verify in (ca, False):
                assert ask(service.url, READ, proxy=proxy.url, verify=verify).result.id == 7
            lost = ask(service.url, CREATE, proxy=proxy.url, verify=ca)
            if of_service or of_proxy:
                unknown = ask(service.url, CREATE, proxy=proxy.url)
    assert (lost.error.outcome, lost.error.attempts) == ("unknown", 1)
    if unknown:
        assert (unknown.error.outcome, unknown.error.retryable) == ("not_sent", False)
        assert "or set 'verify' in its extra" in str(unknown.error)
    answering = service if of_service else proxy
    assert len(answering.requests) == 3


OWN, OTHER = "{proxy}", "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("host", "environment", "extra", "through_proxy"),
    [
        ("http://host.invalid/base", {}, {"proxy": OWN}, True),
        ("http://host.invalid/base", {"HTTP_PROXY": OTHER}, {"proxy": OWN}, True),
        ("http://host.invalid/base", {"http_proxy": "{proxy_host}"}, {}, True),
        ("http://host.invalid/base", {"ALL_PROXY": OWN}, {}, True),
        ("https://host.invalid/base", {"HTTPS_PROXY": OWN}, {}, True),
        ("https://host.invalid/base", {"ALL_PROXY": OWN, "NO_PROXY": "host.example.org"}, {}, True),
        ("https://host.invalid/base", {"HTTP_PROXY": OWN}, {}, False),
        ("http://host.invalid/base", {"ALL_PROXY": OWN, "NO_PROXY": "invalid"}, {}, False),
        ("http://host.invalid:8080/base", {"ALL_PROXY": OWN, "NO_PROXY": "*"}, {}, False),
        ("http://localhost:9", {"HTTP_PROXY": "socks5://p:1"}, {}, False),
        ("http://[::1]:9", {"ALL_PROXY": OWN}, {}, False),
    ],
)
def test_requests_go_through_the_proxy_of_the_connection_or_the_environment(
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    environment: dict[str, str],
    extra: dict[str, str],
    through_proxy: bool,  # noqa: FBT001
) -> None:
    https = host.startswith("https")
    with RawServer(answer(407) if https else FOUND) as proxy:
        places = {"proxy": proxy.url, "proxy_host": proxy.url.removeprefix("http://")}
        for name, value in environment.items():
            monkeypatch.setenv(name, value.format_map(places))
        asked = ask(host, READ, max_attempts=1, **{name: value.format_map(places) for name, value in extra.items()})
    assert len(proxy.requests) == through_proxy
    if through_proxy:
        target = "host.invalid:443" if https else f"{host}/api/environments/1/dashboards/7/"
        assert proxy.requests[0].target == target
        assert https or asked.result.id == 7
    else:
        assert type(asked.error) is WorkspaceConnectionError
    del asked
    gc.collect()


@pytest.mark.parametrize(
    "proxy", ["socks5h://user:s3cret@p:1", "http://user:s3cret@p:x", "http://user:s3cret@[p", "p s3cret:1"]
)
def test_an_unusable_proxy_of_the_environment_is_refused(ask: Ask, monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    asked = ask("https://host.example.com", READ)
    assert isinstance(asked.error, WorkspaceConfigError)
    assert str(asked.error).startswith("The proxy in the environment is not a valid")
    assert "s3cret" not in str(asked.error)


def test_netrc_does_not_replace_the_key(ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with RawServer(FOUND) as service:
        ask(service.url, READ)
    assert service.requests[0].headers["authorization"] == "Bearer phx_s3cret-key"


# Certificates


def test_a_custom_ca_is_trusted_and_verification_can_be_disabled(
    ask: Ask, server_tls: ssl.SSLContext, certificate: Path
) -> None:
    with RawServer(FOUND, tls=server_tls) as service:
        for verify in (str(certificate), False, "false"):
            assert ask(service.url, READ, verify=verify).result.id == 7


def test_an_untrusted_certificate_has_outcome_not_sent(ask: Ask, server_tls: ssl.SSLContext, tmp_path: Path) -> None:
    with RawServer(FOUND, tls=server_tls) as service:
        for verify in (True, str(tmp_path)):  # a folder of CA files, without any
            asked = ask(service.url, CREATE, verify=verify)
            assert type(asked.error) is WorkspaceConnectionError
            assert (asked.error.outcome, asked.error.attempts, asked.error.retryable) == ("not_sent", 1, False)
            assert "CERTIFICATE_VERIFY_FAILED" in str(asked.error)
            assert "or set 'verify' in its extra" in str(asked.error)
    assert service.requests == []


def test_an_unreadable_ca_file_is_an_error(ask: Ask, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("no certificate")
    asked = ask("https://host.example.com", READ, verify=str(bundle))
    assert isinstance(asked.error, WorkspaceConfigError)
    assert str(asked.error).startswith(f"The CA certificates in '{bundle}' cannot be read (")


BY_THE_ENVIRONMENT = """
import asyncio
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook

async def read():
    async with WorkspaceAsyncHook() as hook:
        return await hook.get_dashboard(dashboard_id=7)

with WorkspaceHook() as hook:
    assert hook.get_dashboard(dashboard_id=7).id == asyncio.run(read()).id == 7
"""


def test_the_ca_of_the_environment_is_trusted(
    set_connection: SetConnection,
    server_tls: ssl.SSLContext,
    certificate: Path,
    airflow_cli: AirflowCli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a process of its own: the certificates are read once."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with RawServer(FOUND, tls=server_tls) as service:
        set_connection(service.url)
        airflow_cli.run_code(BY_THE_ENVIRONMENT)
    assert len(service.requests) == 2
