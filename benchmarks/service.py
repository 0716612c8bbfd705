"""
A service that costs next to nothing, in a process of its own: what is measured is the client.

It keeps connections open, answers from ready-made bytes and counts what it was asked.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

MEMBERS = 100_000
INVITES = "/api/organizations/org/invites/"


class Asked:
    """What the service was asked, and what it keeps of it."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.requests = 0
        self.connections = 0
        self.max_connections = 0
        self.invited: Counter[str] = Counter()

    def report(self) -> dict[str, Any]:
        """Return the counts since the last report."""
        counts = {
            "requests": self.requests,
            "max_connections": self.max_connections,
            "invited": len(self.invited),
            "twice": sum(1 for times in self.invited.values() if times > 1),
        }
        self.requests, self.max_connections = 0, self.connections
        self.invited.clear()
        return counts


class Answering(asyncio.Protocol):
    """One connection."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it."""
        self.transport = transport
        self.asked.connections += 1
        self.asked.max_connections = max(self.asked.max_connections, self.asked.connections)

    def connection_lost(self, _: Exception | None) -> None:
        """Count it."""
        self.asked.connections -= 1

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
            asyncio.get_running_loop().create_task(self.answer(method, target, rest[:length]))

    async def answer(self, method: str, target: str, body: bytes) -> None:
        """Wait as long as the service takes, and send the answer."""
        if target == "/report":
            status, content = 200, json.dumps(self.asked.report()).encode()
        else:
            self.asked.requests += 1
            if self.asked.latency:
                await asyncio.sleep(self.asked.latency)
            status, content = respond(self.asked, method, target, body)
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        if not self.transport.is_closing():
            self.transport.write(head.encode() + content)  # type: ignore[attr-defined]


def respond(asked: Asked, method: str, target: str, body: bytes) -> tuple[int, bytes]:
    """Return status and body."""
    parts = urlsplit(target)
    query = parse_qs(parts.query)
    limit = int(query.get("limit", ["100"])[0])
    offset = int(query.get("offset", ["0"])[0])
    if method == "POST" and parts.path.endswith(("/invites/", "/invites/bulk/")):
        given = json.loads(body)
        rows = given if isinstance(given, list) else [given]
        asked.invited.update(row["target_email"] for row in rows)
        made = [invite(row["target_email"]) for row in rows]
        return 201, json.dumps(made if isinstance(given, list) else made[0]).encode()
    if parts.path.endswith("/invites/"):
        return 200, page(list(map(invite, asked.invited)), offset, limit)
    if parts.path.endswith("/members/"):
        return 200, page_of_members(offset, limit, parts.path)
    if parts.path.endswith("/domains/"):
        return 200, page([DOMAIN], offset, limit)
    if parts.path == "/missing":
        return 404, b"{}"
    return 200, DASHBOARD


def page(rows: list[dict[str, Any]], offset: int, limit: int) -> bytes:
    """Return one page of rows."""
    following = f"/?limit={limit}&offset={offset + limit}" if offset + limit < len(rows) else None
    return json.dumps(
        {"count": len(rows), "next": following, "previous": None, "results": rows[offset : offset + limit]}
    ).encode()


def page_of_members(offset: int, limit: int, path: str) -> bytes:
    """Return one page of :data:`MEMBERS` members; the rows of a small organization are its own seven."""
    total = 7 if "/small/" in path else MEMBERS
    number = max(0, min(limit, total - offset))
    following = json.dumps(f"{path}?limit={limit}&offset={offset + limit}" if offset + limit < total else None)
    rows = ",".join(MEMBER.replace("@@@", f"{offset + row:06}") for row in range(number))
    return f'{{"count":{total},"next":{following},"previous":null,"results":[{rows}]}}'.encode()


def invite(email: str) -> dict[str, Any]:
    """Return an invite as the service shows it."""
    return {
        "id": "0190c0de-0000-4000-8000-000000000001",
        "target_email": email,
        "first_name": "Ada",
        "emailing_attempt_made": True,
        "level": 1,
        "is_expired": False,
        "created_by": PERSON,
        "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:04:05Z",
        "message": None,
    }


PERSON = {
    "id": 1,
    "uuid": "0190c0de-0000-4000-8000-000000000002",
    "distinct_id": "b3a1f6c0d9e84f7c8a6b",
    "first_name": "Ada",
    "last_name": "Lovelace",
    "email": "ada@example.com",
    "is_email_verified": True,
    "hedgehog_config": None,
}
MEMBER = json.dumps(
    {
        "id": "0190c0de-0000-4000-8000-000000@@@",
        "user": {**PERSON, "uuid": "0190c0de-0000-4000-8001-000000@@@", "email": "person@@@@example.com"},
        "level": 1,
        "joined_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:04:05Z",
        "is_2fa_enabled": True,
        "has_social_auth": False,
        "last_login": "2026-01-02T03:04:05Z",
    }
)
DOMAIN = {
    "id": "0190c0de-0000-4000-8000-000000000003",
    "domain": "example.com",
    "is_verified": False,
    "verified_at": None,
    "verification_challenge": "b3a1f6c0d9e84f7c8a6b",
    "jit_provisioning_enabled": False,
    "sso_enforcement": "",
    "has_saml": False,
}
# 1.5 kB
DASHBOARD = json.dumps(
    {
        "id": 1,
        "name": "Weekly numbers",
        "description": "What the sales team looks at on Mondays",
        "pinned": False,
        "created_at": "2026-01-02T03:04:05Z",
        "created_by": PERSON,
        "is_shared": False,
        "deleted": False,
        "creation_mode": "default",
        "filters": {"date_from": "-7d", "properties": []},
        "variables": {},
        "tags": ["sales", "weekly"],
        "tiles": [
            {"id": number, "layouts": {"sm": {"x": 0, "y": number, "w": 6, "h": 5}}, "color": None, "insight": number}
            for number in range(8)
        ],
        "restriction_level": 21,
        "effective_restriction_level": 21,
        "effective_privilege_level": 37,
        "user_access_level": "editor",
    }
).encode()


class Service:
    """
    The running service, as a benchmark sees it.

    :param url: its address
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def report(self) -> dict[str, Any]:
        """Return what it was asked since the last report."""
        with urlopen(f"{self.url}/report") as answer:  # noqa: S310 - to this machine
            report: dict[str, Any] = json.load(answer)
            return report


@contextmanager
def running(latency: float = 0.0, certificate: str = "") -> Iterator[Service]:
    """
    Run the service in a process of its own.

    :param latency: seconds that each request takes
    :param certificate: PEM file with key and certificate, for TLS
    """
    process = subprocess.Popen(
        [sys.executable, __file__, str(latency), certificate], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield Service(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()


async def serve(latency: float, certificate: str) -> None:
    """Listen on a free port, say which, and stop when the other end of the standard input is gone."""
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    asked = Asked(latency)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(asked), "127.0.0.1", 0, ssl=context, backlog=2048)
    port = server.sockets[0].getsockname()[1]
    print(f"http{'s' if context else ''}://127.0.0.1:{port}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), sys.argv[2]))
