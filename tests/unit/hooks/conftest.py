"""Fixture ``ask``: calls a method of either hook against a raw server, and returns what its user sees."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from airflow_provider_workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from tests.conftest import Call

KEY = "phx_s3cret-key"
UUID_TEXT = "0190c0de-0000-4000-8000-0000000000e1"

# Methods of the hooks with arguments.
Question = tuple[str, dict[str, Any]]
READ: Question = ("get_dashboard", {"dashboard_id": 7})
LIST: Question = ("list_members", {"limit": 2})
CREATE: Question = ("create_dashboard", {"name": "Sales"})
CHANGE: Question = ("update_dashboard", {"dashboard_id": 7, "name": "Sales"})
PAUSE: Question = ("pause_batch_export", {"batch_export_id": UUID_TEXT})
DELETE: Question = ("delete_invite", {"invite_id": UUID_TEXT})


@dataclass
class Asked:
    """Result or error of a call, and the lines that it logged."""

    result: Any = None
    error: Any = None
    log: list[str] = field(default_factory=list)

    @property
    def audit(self) -> list[str]:
        """The audit lines up to the seconds."""
        return [line.partition(" seconds=")[0] for line in self.log if line.startswith("operation=")]

    @property
    def waits(self) -> list[float]:
        """The announced seconds before each retry."""
        return [float(found[1]) for line in self.log if (found := re.search(r"retrying in ([\d.]+) s", line))]


@pytest.fixture
def log_lines() -> Iterator[list[str]]:
    """Messages that the package logs at INFO and above."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("airflow_provider_workspace")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


SetConnection = Callable[..., None]


@pytest.fixture
def set_connection(monkeypatch: pytest.MonkeyPatch) -> SetConnection:
    """Set the connection ``workspace_default`` to a host; keyword arguments are keys of its extra."""

    def set_to(host: str, password: str = KEY, **extra: Any) -> None:
        given = {"organization_id": "o", "project_id": "1", "allow_http": True, "max_attempts": 3, "read_timeout": 2}
        connection = {"conn_type": "workspace", "host": host, "password": password, "extra": {**given, **extra}}
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))

    return set_to


Ask = Callable[..., Asked]


@pytest.fixture
def ask(call: Call, set_connection: SetConnection, no_waits: None, log_lines: list[str]) -> Ask:  # noqa: ARG001
    """Call a method of either hook at a host, with the settings given by name; pauses take no time."""

    def ask_host(host: str, question: Question, **extra: Any) -> Asked:
        method, arguments = question
        set_connection(host, **extra)
        log_lines.clear()
        asked = Asked()
        try:
            asked.result = call(method, **arguments)
        except WorkspaceError as error:
            asked.error = error
        asked.log = [*log_lines]
        assert KEY not in f"{asked.error} {asked.error!r} {asked.result!r} {asked.log}"
        return asked

    return ask_host


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with a private key and its self-signed certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.now(timezone.utc)
    day = timedelta(days=1)
    unsigned = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    unsigned = unsigned.not_valid_before(now - day).not_valid_after(now + day)
    unsigned = unsigned.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    unsigned = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = unsigned.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private_key = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path_factory.mktemp("tls") / "loopback.pem"
    file.write_bytes(private_key + signed.public_bytes(pem))
    return file


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
