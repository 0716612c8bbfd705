"""The web server: it listens on one address, and can stop listening for a while as a service does that is restarted."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn

from airflow_provider_workspace.sandbox.app import create_app
from airflow_provider_workspace.sandbox.connection import Protocol, reset

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.service import Service


class Listener(uvicorn.Server):
    """
    The web server of a running sandbox; the port is its own as soon as it is built, and it listens while it runs.

    :param service: The running sandbox.
    :param host: The address to listen on.
    :param port: The port; 0 picks a free one.
    """

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
                create_app(service),
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
        """Answer requests until ``should_exit`` is set, then close the database."""
        try:
            self.run(sockets=[self.socket])
        finally:
            self.service.state.close()

    def take_down(self, seconds: float) -> None:
        """
        Break all connections, and refuse new ones for a while.

        :param seconds: How long.
        """
        if not self.up.is_set():
            return
        self.up.clear()
        for server in self.servers:
            server.close()
        # The port stays ours: a socket that is bound and does not listen refuses connections.
        self.socket = _bind(self.host, self.port)
        for connection in list(self.server_state.connections):
            reset(connection.transport)
        outage = asyncio.get_running_loop().create_task(self._come_back(seconds))
        self._outages.add(outage)
        outage.add_done_callback(self._outages.discard)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """
        Stop, without waiting for the clients that a fault keeps waiting.

        :param sockets: The sockets to close.
        """
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
    # The protocol is named because asyncio turns Nagle's algorithm off only then; with it, every answer that is
    # sent in two pieces waits 40 ms for the acknowledgement of the first.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock
