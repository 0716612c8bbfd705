"""The TCP connection of a request, for faults below HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import Any

from starlette.types import Receive, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

RESET_ON_CLOSE = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
"""SO_LINGER with a timeout of 0: closing the socket resets the connection."""


class Protocol(H11Protocol):
    """uvicorn's h11 protocol, which puts the transport into the scope of its requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # uvicorn passes a copy of this to each request.
        self.app_state: dict[str, Any] = {**self.app_state, "transport": transport}


def reset(transport: asyncio.Transport) -> None:
    with suppress(OSError):  # the client has closed it
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    transport.abort()


class RawConnection:
    """
    The connection of one request.

    After a method here has written to it or closed it, no response may be sent.

    :param scope: ASGI scope with the transport from :class:`Protocol`
    :param receive: ASGI callable that reports a disconnect
    :param held: set of connections that wait, so that all of them can be reset
    """

    def __init__(self, scope: Scope, receive: Receive, held: set[asyncio.Transport]) -> None:
        self.transport: asyncio.Transport = scope["state"]["transport"]
        self._receive = receive
        self._held = held

    async def reset(self) -> None:
        reset(self.transport)
        await self._gone()

    async def close(self, data: bytes = b"") -> None:
        """Send bytes, then close the connection."""
        self.transport.write(data)
        self.transport.close()
        await self._gone()

    async def keep_silent(self) -> None:
        """Send nothing until the client disconnects."""
        self._held.add(self.transport)
        try:
            await self._gone()
        finally:
            self._held.discard(self.transport)

    async def _gone(self) -> None:
        # Until it notices the disconnect, uvicorn reports an error if a request gets no response.
        while (await self._receive())["type"] != "http.disconnect":
            pass
