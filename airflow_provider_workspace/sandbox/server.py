"""The sandbox as a server in a thread, for tests and the command line."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import uvicorn

from airflow_provider_workspace.sandbox.app import create_app
from airflow_provider_workspace.sandbox.connection import Protocol, reset
from airflow_provider_workspace.sandbox.faults import FaultKind, Faults
from airflow_provider_workspace.sandbox.guard import BrowserGuard
from airflow_provider_workspace.sandbox.profiles import PROFILES
from airflow_provider_workspace.sandbox.responses import JsonObject
from airflow_provider_workspace.sandbox.seed import SEED, Seed
from airflow_provider_workspace.sandbox.service import SandboxSettings, Service

if TYPE_CHECKING:
    from typing_extensions import Self

STOP_SECONDS = 5


class SandboxServer:
    """
    A sandbox, as a context manager or with :meth:`start` and :meth:`stop`.

    :param profile: ``lenient``, ``strict`` or ``live``
    :param database: SQLite file, or ``:memory:``
    :param port: port; 0 picks a free one
    :param host: address to listen on
    :param latency_ms: delay of each API request in milliseconds
    :param rate_limit: whether the rate limits of the profile apply
    :param faults: initial faults, with the arguments of :meth:`inject`
    :param fault_kinds: additional kinds of faults
    :raises ValueError: if a fault is invalid
    """

    seed: Seed = SEED
    """The ids and keys of a new sandbox."""

    def __init__(
        self,
        profile: str = "lenient",
        database: str = ":memory:",
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        latency_ms: float = 0,
        rate_limit: bool = True,
        faults: Iterable[Mapping[str, Any]] = (),
        fault_kinds: Iterable[FaultKind] = (),
    ) -> None:
        self.database = database
        self.host = host
        self.port = port
        self._settings = SandboxSettings(PROFILES[profile], latency_ms, rate_limit)
        self._faults = Faults([dict(fault) for fault in faults], fault_kinds)
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL of the sandbox without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def connection(self, key: str = SEED.admin_key, **extra: object) -> str:
        """
        Return an Airflow connection to the sandbox as JSON, for an environment variable ``AIRFLOW_CONN_…``.

        :param key: API key; by default one with all scopes
        :param extra: keys of the connection's extra; by default the first organization and project
        """
        defaults = {"organization_id": self.seed.organization_id, "project_id": self.seed.project_id}
        return json.dumps({"conn_type": "workspace", "host": self.url, "password": key, "extra": {**defaults, **extra}})

    def start(self) -> Self:
        """Start the server, and return when it is ready."""
        self._faults.restart()
        service = Service(self.database, self._settings, self._faults)
        try:
            listener = Listener(service, self.host, self.port)
        except (OSError, OverflowError):
            service.state.db.close()
            raise
        self.port = listener.port
        thread = threading.Thread(target=listener.serve_until_stopped, name="workspace-sandbox", daemon=True)
        thread.start()
        while not listener.started:
            if not thread.is_alive():
                raise RuntimeError("The sandbox did not start; its log tells why.")
            time.sleep(0.002)
        self._listener, self._thread = listener, thread
        return self

    def stop(self) -> None:
        """Stop the server and close the database; does nothing if it is not running."""
        if self._listener is not None and self._thread is not None:
            self._listener.should_exit = True
            self._thread.join(STOP_SECONDS)
            self._listener = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- What happened ---

    def audit(self, operation: str | None = None, **filters: str) -> list[JsonObject]:
        """
        Return the changes by writes, oldest first.

        :param operation: operation such as ``create_invite``, or a part of names such as ``invite`` or ``delete``; by
            default all
        :param filters: ``organization_id`` or ``target``
        """
        return [
            entry
            for entry in self.control("GET", "effects")["effects"]
            if (operation is None or f"_{operation}_" in f"_{entry['operation']}_")
            and all(entry[name] == value for name, value in filters.items())
        ]

    effects = audit

    def requests(self) -> list[JsonObject]:
        """Return the latest API requests, oldest first."""
        return list(self.control("GET", "requests")["requests"])

    def batch_exports(self) -> list[JsonObject]:
        """Return the batch exports with their state."""
        return list(self.control("GET", "batch_exports")["batch_exports"])

    def export_runs(self, batch_export_id: str) -> JsonObject:
        """
        Return which intervals of a batch export were ``exported`` and which are ``missing``.

        Each has ``interval_start`` and ``interval_end``; an exported one also has ``started_at`` and ``status``
        (``running`` or ``completed``).
        """
        return self.control("GET", f"batch_exports/{batch_export_id}/runs")

    # --- Faults ---

    def inject(self, kind: str, operation: str | None = None, **options: object) -> JsonObject:
        """
        Inject a fault and return it.

        :param kind: kind of fault; ``python -m airflow_provider_workspace.sandbox --faults`` lists them
        :param operation: name or pattern (``create_*``) of operations; by default all
        :param options: ``times`` (requests to hit; the default of most kinds is 1, None: no limit), ``after`` (requests
            to let pass before), ``probability`` and ``seed`` (hit a random share, reproducibly), and the parameters of
            the kind
        """
        return self.control("POST", "faults", {"kind": kind, "operation": operation, **options})

    def faults(self) -> list[JsonObject]:
        """Return the injected faults with the number of matching requests, ``seen``, and of ``hits``."""
        return list(self.control("GET", "faults")["faults"])

    def clear_faults(self) -> None:
        """Remove all faults, and reset the connections that they hold."""
        self.control("DELETE", "faults")

    # --- What the interface cannot do ---

    def publish_dns(self, name: str, value: str) -> None:
        """Publish a TXT record."""
        self.control("POST", "dns", {"name": name, "value": value})

    def reset(self) -> None:
        """Restore the seed and the initial settings and faults."""
        self.control("POST", "reset")

    def advance_clock(self, seconds: float) -> None:
        """Move the clock of the sandbox; a negative number moves it back."""
        self.control("POST", "clock", {"advance_seconds": seconds})

    def accept_invite(self, invite_id: str) -> JsonObject:
        """Accept an invite and return the new Member."""
        return self.control("POST", f"invites/{invite_id}/accept")

    def set_project(self, project_id: int, **fields: object) -> None:
        """Set any fields of a project record."""
        self.control("PATCH", f"projects/{project_id}", fields)

    def add_key(self, key: str, name: str, scopes: list[str], organization_id: str = SEED.organization_id) -> None:
        """
        Add an API key.

        :param key: secret
        :param name: name in the audit and log
        """
        self.control("POST", "keys", {"key": key, "name": name, "scopes": scopes, "organization_id": organization_id})

    def revoke_key(self, key: str) -> None:
        """Revoke an API key."""
        self.control("POST", "keys/revoke", {"key": key})

    def add_members(self, count: int, organization_id: str | None = None) -> None:
        """Add members with generated names, by default to the first organization."""
        self.control("POST", "members", {"count": count, "organization_id": organization_id})

    def add_organization(self, name: str) -> JsonObject:
        """Add an organization and return its ``id``, ``name``, ``project_id``, ``batch_exports`` and ``key``."""
        return self.control("POST", "organizations", {"name": name})

    def change_settings(self, **settings: object) -> None:
        """Change ``latency_ms``, ``profile`` or ``rate_limit`` until the next reset."""
        self.control("POST", "settings", settings)

    def control(self, method: str, path: str, body: object = None) -> JsonObject:
        """
        Send a control call and return the response; wait while a fault has taken the sandbox down.

        :param path: path below ``/_sandbox/``
        :param body: JSON body
        :raises ValueError: if the call is refused
        """
        if self._listener is not None:
            self._listener.up.wait()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, f"/_sandbox/{path}", None if body is None else json.dumps(body))
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise ValueError(f"{method} /_sandbox/{path} was refused with {response.status}: {text.decode()}")
        answer: JsonObject = json.loads(text) if text else {}
        return answer


class Listener(uvicorn.Server):
    """The web server of a sandbox; the constructor binds the port, a free one for 0."""

    def __init__(self, service: Service, host: str, port: int) -> None:
        self.service = service
        self.host = host
        self.socket = _bind(host, port)
        self.port: int = self.socket.getsockname()[1]
        self.up = threading.Event()
        """Whether the port takes connections."""
        self.up.set()
        self._outages: set[asyncio.Task[None]] = set()
        service.take_down = self.take_down
        super().__init__(
            uvicorn.Config(
                BrowserGuard(create_app(service), host),
                http=Protocol,
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=1,
            )
        )

    def serve_until_stopped(self) -> None:
        """Serve requests until ``should_exit`` is set, then close the database."""
        try:
            self.run(sockets=[self.socket])
        finally:
            self.service.state.db.close()

    def take_down(self, seconds: float) -> None:
        """Reset all connections, and refuse new ones for some seconds."""
        if not self.up.is_set():
            return
        self.up.clear()
        for server in self.servers:
            server.close()
        # Keep the port: a bound socket that does not listen refuses connections.
        self.socket = _bind(self.host, self.port)
        for connection in list(self.server_state.connections):
            reset(connection.transport)
        outage = asyncio.get_running_loop().create_task(self._come_back(seconds))
        self._outages.add(outage)
        outage.add_done_callback(self._outages.discard)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop without waiting for connections that a fault holds."""
        for outage in self._outages:
            outage.cancel()
        self.up.set()
        self.service.faults.let_go()
        await super().shutdown(sockets)
        self.socket.close()

    async def _come_back(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        again = await asyncio.get_running_loop().create_server(self._protocol, sock=self.socket)
        self.servers = [again]
        self.up.set()

    def _protocol(self) -> Protocol:
        return Protocol(self.config, self.server_state, self.lifespan.state)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is named; with it, a response in two packets takes 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except (OSError, OverflowError):
        sock.close()
        raise
    return sock
