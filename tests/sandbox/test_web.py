"""Web security of the sandbox, and its handling of invalid requests."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.sandbox.__main__ import main
from airflow_provider_workspace.sandbox.control import CALLS, ControlCall
from airflow_provider_workspace.sandbox.faults import KINDS
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer

MEMBERS = f"/api/organizations/{SEED.organization_id}/members/"
PROJECTS = f"/api/organizations/{SEED.organization_id}/projects/"


# The profiles do not differ here.
PROFILES = ("lenient",)


@pytest.fixture(scope="module")
def remote() -> Iterator[SandboxServer]:
    """A sandbox that listens on all addresses."""
    with SandboxServer(host="0.0.0.0") as server:
        yield server


def ask(sandbox: SandboxServer, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Send a request with exactly these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers)
    sent = {"Authorization": f"Bearer {SEED.admin_key}", "Content-Length": str(len(body or b"")), **headers}
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    status, text = response.status, response.read()
    connection.close()
    return status, text


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:80", "192.0.2.7:8765", "localhost.evil.example", "0.0.0.0", "", "["]
)
@pytest.mark.parametrize("path", ["/", "/_sandbox/workspace", "/_sandbox/effects", MEMBERS, "/nowhere"])
def test_a_foreign_host_is_refused(sandbox: SandboxServer, host: str, path: str) -> None:
    status, text = ask(sandbox, "GET", path, Host=host)
    assert status == 403
    assert b"Olive" not in text


def test_hosts_of_this_machine_and_of_a_remote_sandbox_private_names_are_accepted(
    sandbox: SandboxServer, remote: SandboxServer
) -> None:
    local = ("LOCALHOST:8765", "127.8.9.1:80", "[::1]:8765", "a.localhost")
    for host in local:
        assert ask(sandbox, "GET", MEMBERS, Host=host)[0] == 200
    for host in (*local, "192.0.2.7:8765", "sandbox", "host.docker.internal:8765"):
        assert ask(remote, "GET", MEMBERS, Host=host)[0] == 200
    assert ask(remote, "GET", MEMBERS, Host="evil.example.com")[0] == 403


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://127.0.0.1:1", "http://localhost"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_sandbox/reset"),
        ("POST", "/_sandbox/keys"),
        ("GET", "/_sandbox/workspace"),
        ("DELETE", "/_sandbox/faults"),
        ("POST", PROJECTS),
    ],
)
def test_a_foreign_origin_is_refused(sandbox: SandboxServer, method: str, path: str, origin: str) -> None:
    sandbox.publish_dns("kept.example.com", "text")
    status, _ = ask(sandbox, method, path, b"{}", Origin=origin, **{"Content-Type": "text/plain"})
    assert status == 403
    assert sandbox.control("GET", "dns")["records"]
    assert sandbox.audit() == []


def test_requests_of_its_own_page_are_accepted(sandbox: SandboxServer) -> None:
    assert ask(sandbox, "GET", "/_sandbox/workspace", Origin=sandbox.url)[0] == 200
    assert ask(sandbox, "POST", "/_sandbox/reset", Origin=sandbox.url)[0] == 204


def test_the_page_has_a_content_security_policy(sandbox: SandboxServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", sandbox.port)
    connection.request("GET", "/")
    response = connection.getresponse()
    page = response.read().decode()
    connection.close()
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Frame-Options"] == "DENY"
    # Inline code would be blocked.
    assert not re.search(r"<[^>]+\s(style|on\w+)=", page)


DEEP = b"[" * 50_000
DEEP_BUT_WHOLE = b'{"name": ' + b"[" * 500 + b"]" * 500 + b"}"


@pytest.mark.parametrize("call", [call for call in CALLS if call.fields], ids=lambda call: call.path)
@pytest.mark.parametrize("body", [DEEP, DEEP_BUT_WHOLE, b"{", b"\xff", b"[]", b'{"latency": 1}', b'{"count": {}}'])
def test_malformed_requests_are_refused(sandbox: SandboxServer, call: ControlCall, body: bytes) -> None:
    status, text = ask(sandbox, call.method, call.path.replace("{id}", "1"), body)
    assert status in (400, 404), text
    json.loads(text)
    assert ask(sandbox, "GET", MEMBERS)[0] == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(("clock", body) for body in ({"advance_seconds": 1e18}, {})),
        *(("dns", body) for body in ({"name": "\ud800", "value": "x"}, {"name": "x"})),
        ("keys/revoke", {"key": "unheard-of"}),
        (f"invites/{SEED.domain_id}/accept", None),
        *(("settings", body) for body in ({"profile": ["live"]}, {"latency_ms": -1}, {"latency": 5})),
        *(("projects/1", {"colour": "red"}), ("projects/999", {})),
        *(("members", body) for body in ({"count": 10**9}, {"count": 1, "organization_id": "unheard-of"})),
        ("keys", {"key": "k", "name": "n", "scopes": "*"}),
        *(("faults", body) for body in ({"kind": "status_before", "status": [503]}, {"kind": "unheard-of"})),
    ],
)
def test_invalid_values_are_refused(sandbox: SandboxServer, path: str, body: object) -> None:
    with pytest.raises(ValueError, match=r"was refused with 40[04]"):
        sandbox.control("PATCH" if path.startswith("projects") else "POST", path, body)
    assert sandbox.control("POST", "clock", {"advance_seconds": 0})["now"] > "2020"
    assert ask(sandbox, "GET", MEMBERS)[0] == 200


TRIED = (
    1e18,
    -1e18,
    10**400,
    2**63,
    1e-300,
    "\ud800",
    "live",
    "*",
    SEED.organization_id,
    *(kind.name for kind in KINDS),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(TRIED)
VALUES = st.recursive(SCALARS, lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(), some, max_size=3))
# Parameters of faults.
NAMES = ["kind", *sorted({name for kind in KINDS for name in kind.options.model_fields})]
REQUESTS = st.sampled_from([call for call in CALLS if call.path.startswith("/_sandbox/")]).flatmap(
    lambda call: st.tuples(
        st.just(call),
        st.sampled_from([SEED.invite_id, SEED.batch_export_ids[0], "1", "0", "%00", "9" * 30]),
        st.dictionaries(st.sampled_from([*(call.fields or NAMES)]), VALUES, max_size=4) | VALUES,
    )
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=REQUESTS)
def test_any_request_leaves_the_sandbox_working(sandbox: SandboxServer, request: tuple[Any, str, object]) -> None:
    call, place, body = request
    status, text = ask(sandbox, call.method, call.path.replace("{id}", place), json.dumps(body).encode())
    assert status < 500, text
    sandbox.clear_faults()
    assert json.loads(ask(sandbox, "GET", MEMBERS)[1])["count"] >= 5
    assert json.loads(ask(sandbox, "GET", "/_sandbox/workspace")[1])["invites"]["count"] >= 1
    sandbox.reset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "99999"], "port must be 0-65535"),
        (["--database", "/"], "unable to open database file"),
        (["--host", "nowhere.invalid", "--allow-remote"], "did not start"),
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--port", "0", "--latency-ms=nan"], "--latency-ms must be a number from 0 to 600000"),
        (["--port", "{busy}"], "did not start"),
    ],
)
def test_a_failing_start_says_the_reason(
    capsys: pytest.CaptureFixture[str], sandbox: SandboxServer, options: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        main([option.format(busy=sandbox.port) for option in options])
    said = f"{raised.value.code} {capsys.readouterr().err}"
    assert message in said
    assert "Traceback" not in said
