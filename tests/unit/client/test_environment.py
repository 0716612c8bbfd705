"""Proxies, certificates, netrc and other parts of the environment."""

from __future__ import annotations

import asyncio
import gc
import ssl
import threading
import warnings
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.api.operations import CreateDashboard, GetDashboard
from airflow_provider_workspace.client.aio import WorkspaceAsyncClient
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.client.sync import WorkspaceClient
from airflow_provider_workspace.client.transport import proxy_for, tls_context
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceConnectionError
from tests.raw_server import (
    CLOSED_AFTER_READING,
    CUT,
    RESET_AFTER_READING,
    RawServer,
    Scene,
    answer,
    closed_port,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.client.conftest import Send

READ = GetDashboard(project_id="1", dashboard_id=7)
CREATE = CreateDashboard(project_id="1", name="Sales")
FOUND = answer(200, {"id": 7})
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    tls_context.cache_clear()
    yield
    tls_context.cache_clear()


# Proxies


@pytest.mark.parametrize(
    ("base_url", "environment", "proxy"),
    [
        ("http://host.example.com", {}, None),
        ("http://host.example.com", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("http://host.example.com", {"http_proxy": "p:1"}, "http://p:1"),
        ("http://host.example.com", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://host.example.com", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://host.example.com", {"HTTPS_PROXY": "https://p:1"}, "https://p:1"),
        ("https://host.example.com", {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        ("https://host.example.com", {"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com"}, None),
        ("https://host.example.com:8443", {"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("https://host.example.com", {"ALL_PROXY": "http://p:1", "NO_PROXY": "example.org"}, "http://p:1"),
        ("http://127.0.0.1:8000", {"ALL_PROXY": "http://p:1"}, None),
        ("http://localhost:8000", {"HTTP_PROXY": "socks5://p:1"}, None),
        ("http://[::1]:8000", {"ALL_PROXY": "http://p:1"}, None),
    ],
)
def test_the_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, base_url: str, environment: dict[str, str], proxy: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(Settings(base_url, "key")) == proxy
    assert proxy_for(Settings(base_url, "key", proxy="http://own:2")) == "http://own:2"


def test_a_proxy_of_another_scheme_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://user:s3cret@p:1")
    with pytest.raises(WorkspaceConfigError) as error:
        WorkspaceClient(Settings("https://host.example.com", "key", source="connection 'w'"))
    assert str(error.value) == (
        "Set an http:// proxy as 'proxy' in the extra of connection 'w', or name host.example.com in NO_PROXY: "
        "the environment names a socks5h:// proxy, which is not supported."
    )
    with pytest.raises(WorkspaceConfigError, match="socks5h"):
        WorkspaceAsyncClient(Settings("https://host.example.com", "key"))


@pytest.mark.parametrize("proxy", ["http://user:s3cret@p:x", "http://[p", "p p:1"])
@pytest.mark.parametrize("client", [WorkspaceClient, WorkspaceAsyncClient])
def test_an_invalid_proxy_of_the_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, client: type[WorkspaceClient | WorkspaceAsyncClient], proxy: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(WorkspaceConfigError, match="Correct the proxy in the environment") as error:
        client(Settings("https://host.example.com", "key", source="connection 'w'"))
    assert "s3cret" not in str(error.value)


def test_requests_go_through_the_proxy(send: Send) -> None:
    with RawServer(FOUND) as proxy:
        assert send("http://host.invalid/base", READ, proxy=proxy.url).result.id == 7
    (request,) = proxy.requests
    assert request.target == "http://host.invalid/base/api/environments/1/dashboards/7/"


def test_loopback_bypasses_the_proxy_of_the_environment(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    with RawServer(FOUND) as service:
        assert send(service.url, READ).result.id == 7


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_down_has_outcome_not_sent(send: Send, scheme: str) -> None:
    sent = send(f"{scheme}://host.invalid", CREATE, proxy=f"http://127.0.0.1:{closed_port()}")
    assert type(sent.error) is WorkspaceConnectionError
    assert (sent.error.outcome, sent.error.attempts) == ("not_sent", 3)


def test_a_proxy_that_refuses_has_outcome_not_sent(send: Send) -> None:
    with RawServer(answer(407)) as proxy:
        sent = send("https://host.invalid", CREATE, proxy=proxy.url, max_attempts=1)
    assert type(sent.error) is WorkspaceConnectionError
    assert [request.method for request in proxy.requests] == ["CONNECT"]
    assert "authorization" not in proxy.requests[0].headers
    del sent
    with warnings.catch_warnings():  # Python 3.10 leaves the socket of a refused tunnel to the garbage collector
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.mark.parametrize("scene", [CLOSED_AFTER_READING, RESET_AFTER_READING, CUT], ids=["closed", "reset", "cut"])
def test_a_request_lost_behind_a_proxy_has_outcome_unknown(send: Send, scene: Scene) -> None:
    with RawServer(scene) as proxy:
        sent = send("http://host.invalid", CREATE, proxy=proxy.url)
    assert (sent.error.outcome, proxy.connections) == ("unknown", 1)


def test_netrc_does_not_replace_the_key(send: Send, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with RawServer(FOUND) as service:
        send(service.url, READ)
    assert service.requests[0].headers["authorization"] == "Bearer phx_s3cret-key"


# Certificates


def test_a_custom_ca_is_trusted(send: Send, server_tls: ssl.SSLContext, certificate: Path) -> None:
    with RawServer(FOUND, tls=server_tls) as service:
        assert send(service.url, READ, verify=str(certificate)).result.id == 7


def test_the_ca_of_the_environment_is_trusted(
    send: Send, server_tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with RawServer(FOUND, tls=server_tls) as service:
        assert send(service.url, READ).result.id == 7


def test_an_untrusted_certificate_has_outcome_not_sent(send: Send, server_tls: ssl.SSLContext) -> None:
    with RawServer(FOUND, tls=server_tls) as service:
        sent = send(service.url, CREATE)
    assert type(sent.error) is WorkspaceConnectionError
    assert (sent.error.outcome, sent.error.attempts, sent.error.retryable) == ("not_sent", 1, False)
    assert "CERTIFICATE_VERIFY_FAILED" in str(sent.error)
    assert "or set 'verify' in its extra" in str(sent.error)
    assert service.requests == []


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_verification_can_be_disabled(send: Send, server_tls: ssl.SSLContext) -> None:
    with RawServer(FOUND, tls=server_tls) as service:
        assert send(service.url, READ, verify=False).result.id == 7


def test_a_server_without_tls_has_outcome_not_sent(send: Send) -> None:
    with RawServer(Scene(b"HTTP/1.1 400 Bad Request\r\n\r\n", reads=False)) as service:
        sent = send(service.url.replace("http://", "https://"), CREATE)
    assert type(sent.error) is WorkspaceConnectionError
    assert (sent.error.outcome, sent.error.attempts) == ("not_sent", 1)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_unreadable_ca_file_is_an_error(
    tmp_path: Path, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content:
        bundle.write_text(content)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    for client in (WorkspaceClient, WorkspaceAsyncClient):
        with pytest.raises(WorkspaceConfigError) as error:
            client(Settings("https://host.example.com", "key"))
        assert str(error.value).startswith(
            "Correct 'verify' in the extra of the connection, or REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE in "
            f"the environment: the CA certificates in '{bundle}' cannot be read ("
        )


def test_a_ca_folder_is_trusted(tmp_path: Path) -> None:
    assert tls_context(str(tmp_path)).verify_mode is ssl.CERT_REQUIRED
    assert tls_context(str(tmp_path)) is tls_context(str(tmp_path))


# Connections


KEPT = Scene(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")


def test_a_create_after_an_idle_disconnect_is_sent_once() -> None:
    with RawServer(KEPT) as service, WorkspaceClient(Settings(service.url, "key", max_attempts=1)) as client:
        for _ in range(3):
            client.send(CREATE)
            assert service.closed.acquire(timeout=5)
    assert len(service.requests) == 3


def test_an_async_create_after_an_idle_disconnect_is_sent_once() -> None:
    async def create(base_url: str, closed: threading.Semaphore) -> None:
        async with WorkspaceAsyncClient(Settings(base_url, "key", max_attempts=1)) as client:
            for _ in range(3):
                await client.send(CREATE)
                assert closed.acquire(timeout=5)

    with RawServer(KEPT) as service:
        asyncio.run(create(service.url, service.closed))
    assert len(service.requests) == 3


# No repr contains the key


def test_repr_of_a_client_has_no_key() -> None:
    settings = Settings("http://127.0.0.1:1", "phx_s3cret", proxy="http://user:s3cret@p:1", source="connection 'w'")
    assert repr(settings) == "Settings('http://127.0.0.1:1', source=\"connection 'w'\")"
    with WorkspaceClient(settings) as client:
        assert "s3cret" not in f"{client!r} {client}"
    assert "s3cret" not in repr(WorkspaceAsyncClient(settings))
