"""
From an Airflow connection to the settings of a client.

A module of its own, since Dag files that import a hook need no settings.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_workspace.client.settings import EXTRAS, Settings, is_loopback, unknown_key
from airflow_provider_workspace.errors import WorkspaceConfigError

if TYPE_CHECKING:
    from airflow.sdk import Connection

# Accepted connection types: the own one, and those that are not of another system.
CONNECTION_TYPES = (None, "", "workspace", "generic", "http", "https")


def read_connection(connection: Connection, conn_id: str) -> Settings:
    """
    Return the settings of a connection.

    The extra is parsed here, because Airflow treats invalid JSON as an empty extra.

    :raises WorkspaceConfigError: naming the invalid part and what is expected
    """
    if connection.conn_type not in CONNECTION_TYPES:
        raise WorkspaceConfigError(
            f"Set workspace_conn_id to a connection of type 'workspace': '{conn_id}' is of type "
            f"'{connection.conn_type}', whose password is not for this service."
        )
    return read_settings(
        host=connection.host,
        password=connection.password,
        extra=connection.extra,
        port=connection.port,
        schema=connection.schema,
        source=f"connection '{conn_id}'",
    )


def read_settings(
    *,
    host: str | None,
    password: str | None,
    extra: str | None,
    source: str,
    port: int | None = None,
    schema: str | None = None,
) -> Settings:
    """
    Return the settings of a connection, given its parts.

    :param host: base URL or host name
    :param password: personal API key
    :param extra: JSON object with keys of :data:`EXTRAS`; may be empty or ``None``
    :param source: name of the connection in messages
    :param port: port for a host without one
    :param schema: ``https`` or ``http`` for a host without a scheme; by default ``https``, or ``http`` on this machine
    :raises WorkspaceConfigError: naming the invalid part and what is expected
    """
    given = _read_extra(extra, source)
    settings = Settings(_read_base_url(host, port, schema, source), _read_api_key(password, source), source, **given)
    hostname = urlsplit(settings.base_url).hostname or ""
    if settings.base_url.startswith("http://") and not settings.allow_http and not is_loopback(hostname):
        raise WorkspaceConfigError(
            'Use https://, or set "allow_http": true in the extra if the network between is trusted: the host of '
            f"{source} is plain http://, which would send the API key unencrypted to {hostname}."
        )
    return settings


def _read_extra(extra: str | None, source: str) -> dict[str, Any]:
    """Parse the extra and refuse unknown keys."""
    try:
        value = json.loads(extra) if extra and extra.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise WorkspaceConfigError(f'The extra of {source} must be a JSON object, such as {{"organization_id": "…"}}.')
    for key in value:
        if key not in EXTRAS:
            raise WorkspaceConfigError(unknown_key(key, source))
    return value


def _read_api_key(password: str | None, source: str) -> str:
    """Check that the personal API key can be sent in a header."""
    api_key = (password or "").strip()
    if not api_key:
        raise WorkspaceConfigError(f"Put the personal API key into the password of {source}: it has no API key.")
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise WorkspaceConfigError(
            f"{source}: the API key in the password contains characters that cannot be sent in a header."
        )
    return api_key


def _read_base_url(host: str | None, port: int | None, schema: str | None, source: str) -> str:
    """Check the base URL, and add scheme and port if they are missing."""
    given = (host or "").strip()
    url = given.rstrip("/")
    if not url:
        raise WorkspaceConfigError(
            f"Put the URL of the service, such as https://workspace.example.com, into the host of {source}."
        )
    url = _with_scheme(given, (schema or "").strip().lower(), source).rstrip("/")
    try:
        parts = urlsplit(url)
        own_port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:  # such as a label of the host name that is empty or too long
        parts = urlsplit("")
        own_port = None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or re.search(r"[\s\\]", url)
        or not url.isprintable()
    ):
        raise WorkspaceConfigError(
            f"The host of {source} is not a URL: expected something like https://workspace.example.com."
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise WorkspaceConfigError(
            f"Put the API key into the password: the host of {source} must not contain a user, query or fragment."
        )
    if parts.path.rstrip("/").endswith("/api"):
        raise WorkspaceConfigError(f"Leave /api out of the host of {source}: every request adds it.")
    hostname = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    named = port if own_port is None else own_port
    usual = {"http": 80, "https": 443}[parts.scheme]
    # Normalized, because leases and dashboards of different connections compare it.
    return f"{parts.scheme}://{hostname}{'' if named in (None, usual) else f':{named}'}{parts.path}"


def _with_scheme(url: str, schema: str, source: str) -> str:
    """Add a scheme to a host; connection URIs and some secrets backends have it in the schema."""
    named = url.partition("://")[0].lower() if "://" in url else schema
    if schema not in ("", "http", "https") or named not in ("", schema or named):
        raise WorkspaceConfigError(
            f"The schema of {source} must be https or http, as the host has it, or be left out. As a URI: "
            "workspace://:<key>@workspace.example.com:443/https?organization_id=<id>"
        )
    if "://" in url:
        return url
    try:
        if ipaddress.ip_address(url.rstrip("/")).version == 6:
            url = f"[{url.rstrip('/')}]"
    except ValueError:
        pass  # not an IP address
    hostname = url.partition("/")[0].rpartition("@")[2]
    hostname = hostname[1:].partition("]")[0] if hostname.startswith("[") else hostname.partition(":")[0]
    return f"{schema or ('http' if is_loopback(hostname) else 'https')}://{url}"
