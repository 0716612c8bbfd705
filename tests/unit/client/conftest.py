"""Fixture ``send``: runs a test with both clients."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import greenback
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from airflow_provider_workspace.client.client import ThreadBackend, WorkspaceClient
from airflow_provider_workspace.client.loop import LoopBackend
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

KEY = "phx_s3cret-key"


@dataclass
class Sent:
    """Result of an operation, and the waits and masked secrets on the way."""

    result: Any = None
    error: WorkspaceError | None = None
    waits: list[float] = field(default_factory=list)
    masked: list[str] = field(default_factory=list)


def send_by_requests(
    settings: Settings, operation: Operation[Any], *, rows: bool, backend: Any = ThreadBackend
) -> Sent:
    sent = Sent()
    opened = backend(settings)
    opened.sleep = sent.waits.append
    with WorkspaceClient(settings, mask=sent.masked.append, backend=opened) as client:
        try:
            sent.result = list(client.rows(operation)) if rows else client.send(operation)
        except WorkspaceError as error:
            sent.error = error
    return sent


def send_by_httpx(settings: Settings, operation: Operation[Any], *, rows: bool) -> Sent:
    return asyncio.run(
        greenback.with_portal_run_sync(send_by_requests, settings, operation, rows=rows, backend=LoopBackend)
    )


Send = Callable[..., Sent]


@pytest.fixture(params=[send_by_requests, send_by_httpx], ids=["requests", "httpx"])
def send(request: pytest.FixtureRequest) -> Send:
    """Send an operation to a base URL with the settings given by name; ``rows=True`` reads a whole list."""

    def send_to(base_url: str, operation: Operation[Any], *, rows: bool = False, **settings: Any) -> Sent:
        given = {"connect_timeout": 2.0, "read_timeout": 2.0, "max_attempts": 3, **settings}
        sent: Sent = request.param(Settings(base_url, KEY, **given), operation, rows=rows)
        assert KEY not in f"{sent.error} {sent.error!r} {sent.result!r}"
        return sent

    return send_to


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with a private key and its self-signed certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "loopback.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
