"""
Protects a local sandbox from web pages in a browser on the same machine.

A page can send requests to this machine, and read the responses by DNS rebinding. The ``Origin`` header of the page, or
a ``Host`` that is not a name of this machine, reveals both.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_workspace.sandbox.responses import forbidden

PRIVATE_SUFFIXES = (".internal", ".local")
"""Suffixes of names that are not in public DNS, such as ``host.docker.internal``."""


class BrowserGuard:
    """
    Refuses requests of foreign web pages.

    :param host: address that the sandbox listens on
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app = app
        self._names = {"localhost", host.lower()}
        self._remote = not is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_own_name(_hostname(host)):
            response = forbidden(f"The sandbox is not known as {host!r}. Use the address of its machine.").response()
            await response(scope, receive, send)
        elif origin is not None and origin.partition("://")[2].lower() != host.lower():
            await forbidden("Requests from pages of another origin are refused.").response()(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _is_own_name(self, name: str) -> bool:
        if name in self._names or is_loopback(name):
            return True
        if not self._remote:
            return False
        return name != "" and ("." not in name or name.endswith(PRIVATE_SUFFIXES) or _is_address(name))


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    if _is_address(host):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _hostname(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
