"""The sandbox as a server in a thread, for tests and the command line."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import uvicorn

from airflow_provider_workspace.sandbox.app import create_app
from airflow_provider_workspace.sandbox.connection import Protocol
from airflow_provider_workspace.sandbox.faults import FaultKind
from airflow_provider_workspace.sandbox.guard import BrowserGuard
from airflow_provider_workspace.sandbox.seed import SEED, Seed
from airflow_provider_workspace.sandbox.service import Service, Settings

if TYPE_CHECKING:
    from typing_extensions import Self

P = ParamSpec("P")
T = TypeVar("T")

STOP_SECONDS = 5
CALL_SECONDS = 60


def _method(method: Callable[Concatenate[Service, P], T]) -> Callable[Concatenate[SandboxServer, P], T]:
    """Make a method of the server from one of its service, called in the server's thread between two requests."""

    @functools.wraps(method)
    def call(server: SandboxServer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        listener = server.listener

        async def run() -> T:
            return listener.service.call(lambda: method(listener.service, *args, **kwargs))

        return asyncio.run_coroutine_threadsafe(run(), listener.loop).result(CALL_SECONDS)

    return call


class SandboxServer:
    """
    A sandbox, as a context manager or with :meth:`start` and :meth:`stop`.

    :param profile: ``live`` or ``strict``
    :param database: SQLite file, or ``:memory:``
    :param port: port; 0 picks a free one
    :param host: address to listen on
    :param rate_limit: whether the rate limits of ``live`` apply
    :param fault_kinds: additional kinds of faults
    :raises ValueError: if there is no such profile
    """

    seed: Seed = SEED
    """
    The ids and keys of a new sandbox.

    :meta hide-value:
    """

    def __init__(
        self,
        profile: str = "live",
        database: str = ":memory:",
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        rate_limit: bool = True,
        fault_kinds: Iterable[FaultKind] = (),
    ) -> None:
        self.database = database
        self.host = host
        self.port = port
        self._settings = Settings(profile, rate_limit)
        self._fault_kinds = tuple(fault_kinds)
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    @property
    def listener(self) -> Listener:
        """The running web server."""
        if self._listener is None:
            raise RuntimeError("The sandbox is not running: start it, or use it in a with statement.")
        return self._listener

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
        service = Service(self.database, self._settings, self._fault_kinds)
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

    audit = effects = _method(Service.audit)
    requests = _method(Service.requests)
    batch_exports = _method(Service.batch_exports)
    export_runs = _method(Service.export_runs)

    # --- Faults ---

    inject = _method(Service.inject)
    faults = _method(Service.list_faults)
    clear_faults = _method(Service.clear_faults)

    # --- Own endpoints, and a service that moves on ---

    respond = _method(Service.respond)
    clear_responses = _method(Service.clear_responses)
    move = _method(Service.move)
    clear_moves = _method(Service.clear_moves)
    drop_fields = _method(Service.drop_fields)

    # --- Runs of batch exports ---

    play_runs = _method(Service.play_runs)
    set_batch_export = _method(Service.set_batch_export)
    fail_runs = _method(Service.fail_runs)
    fail_backfills = _method(Service.fail_backfills)

    # --- What the interface cannot do ---

    publish_dns = _method(Service.publish_dns)
    advance_clock = _method(Service.advance_clock)
    accept_invite = _method(Service.accept_invite)
    set_project = _method(Service.set_project)
    add_key = _method(Service.add_key)
    revoke_key = _method(Service.revoke_key)
    add_members = _method(Service.add_members)
    add_organization = _method(Service.add_organization)
    change_settings = _method(Service.change_settings)
    reset = _method(Service.reset)


class Listener(uvicorn.Server):
    """The web server of a sandbox; the constructor binds the port, a free one for 0."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, service: Service, host: str, port: int) -> None:
        self.service = service
        self.socket = bind(host, port)
        self.port: int = self.socket.getsockname()[1]
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop without waiting for connections that a fault holds."""
        self.service.faults.let_go()
        await super().shutdown(sockets)
        self.socket.close()


def bind(host: str, port: int) -> socket.socket:
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
