"""The connection beneath a request, for faults that go below HTTP: silence, raw bytes, a close or a reset."""

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
"""SO_LINGER, switched on with no time to linger: closing the socket resets the connection."""


class Protocol(H11Protocol):
    """The protocol of uvicorn that is always there; its requests find their connection in the scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember the connection."""
        super().connection_made(transport)
        # uvicorn hands a copy of this to each request.
        self.app_state: dict[str, Any] = {**self.app_state, "transport": transport}


def reset(transport: asyncio.Transport) -> None:
    """Break a connection with a TCP reset."""
    with suppress(OSError):  # the client was faster
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    transport.abort()


class RawConnection:
    """
    The connection of one request.

    Once something here has written to it or closed it, the request must not be answered in the ordinary way.

    :param scope: the request line and headers, and the transport that :class:`Protocol` left there
    :param receive: tells when the client has gone
    :param held: collects the connections that the sandbox keeps waiting, so that it can let go of all of them
    """

    def __init__(self, scope: Scope, receive: Receive, held: set[asyncio.Transport]) -> None:
        self._transport: asyncio.Transport = scope["state"]["transport"]
        self._receive = receive
        self._held = held

    async def reset(self) -> None:
        """Break the connection with a TCP reset."""
        reset(self._transport)
        await self._gone()

    async def close(self, data: bytes = b"") -> None:
        """Send these bytes, then close the connection."""
        self._transport.write(data)
        self._transport.close()
        await self._gone()

    async def keep_silent(self, seconds: float | None) -> None:
        """Send nothing until the client goes, and close the connection after so many seconds; None: never."""
        self._held.add(self._transport)
        try:
            await asyncio.wait_for(self._gone(), seconds)
        except asyncio.TimeoutError:
            await self.close()
        finally:
            self._held.discard(self._transport)

    def is_closing(self) -> bool:
        """Tell whether the connection is closed or about to be."""
        return self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send these bytes."""
        self._transport.write(data)

    async def _gone(self) -> None:
        # uvicorn calls for an answer as long as it does not know that the connection is lost.
        while (await self._receive())["type"] != "http.disconnect":
            pass
