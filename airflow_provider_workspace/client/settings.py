"""The settings of a client, read from the parts of a connection and checked before anything is sent."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from airflow_provider_workspace.api.retry import RetryPolicy
from airflow_provider_workspace.client.resource_urls import RESOURCE_PATHS, url_for
from airflow_provider_workspace.errors import WorkspaceConfigError


@dataclass(frozen=True, slots=True)
class Settings:
    """
    Everything a client needs to know. See the connection page of the documentation.

    :param base_url: address of the service without a trailing slash, such as ``https://workspace.example.com``
    :param api_key: personal API key
    :param source: where the settings come from, for messages
    :param organization_id: default organization; may be ``None``
    :param project_id: default project; may be ``None``
    :param connect_timeout: seconds until a connection must stand
    :param read_timeout: seconds of silence after which an answer is given up
    :param max_attempts: attempts per request, the first included
    :param max_retry_wait: longest wait between two attempts in seconds
    :param page_size: rows asked for per page of a list
    :param max_concurrency: requests of one hook that are under way at once; bulk invites make use of it
    :param bulk_invite_limit: invites per bulk request
    :param bulk_invite_body: whether a bulk request carries an array or one object
    :param verify: whether to check the TLS certificate, or the file with the authorities to check it against
    :param proxy: URL of a proxy; ``None`` for that of the environment
    :param web_url: address of the workspace's pages for people, or a template per kind of resource (see
        :data:`~airflow_provider_workspace.client.resource_urls.RESOURCE_PATHS`); ``None`` if there are none
    """

    base_url: str
    api_key: str
    source: str = "the settings"
    organization_id: str | None = None
    project_id: str | None = None
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    max_attempts: int = 5
    max_retry_wait: float = 60.0
    page_size: int = 100
    max_concurrency: int = 4
    bulk_invite_limit: int = 20
    bulk_invite_body: Literal["array", "object"] = "array"
    verify: bool | str = True
    proxy: str | None = None
    web_url: str | dict[str, str] | None = None

    def __repr__(self) -> str:
        """Print where the settings come from, and no secret."""
        return f"Settings({self.base_url!r}, source={self.source!r})"

    def secrets(self) -> tuple[str, ...]:
        """Return what no log and no message may hold: the key, and the password of the proxy."""
        password = urlsplit(self.proxy or "").password or ""
        return tuple(dict.fromkeys(filter(None, (self.api_key, password, unquote(password)))))

    def url_for(self, kind: str, ids: Mapping[str, object]) -> str:
        """
        Return the URL of a resource for people; empty if an id is not known.

        :param kind: one of :data:`~airflow_provider_workspace.client.resource_urls.RESOURCE_PATHS`
        :param ids: the ids its path needs; for those that are ``None`` the defaults of these settings count
        """
        defaults = {"organization_id": self.organization_id, "project_id": self.project_id}
        known = defaults | {name: value for name, value in ids.items() if value is not None}
        return url_for(kind, known, base_url=self.base_url, web_url=self.web_url)

    def retry_policy(self) -> RetryPolicy:
        """Return the policy that both clients follow."""
        return RetryPolicy(max_attempts=self.max_attempts, max_wait=self.max_retry_wait)


EXTRAS = (
    "organization_id",
    "project_id",
    "connect_timeout",
    "read_timeout",
    "max_attempts",
    "max_retry_wait",
    "page_size",
    "max_concurrency",
    "bulk_invite_limit",
    "bulk_invite_body",
    "verify",
    "proxy",
    "web_url",
    "allow_http",
)


def read_settings(
    *, host: str | None, password: str | None, extra: str | None, source: str, port: int | None = None
) -> Settings:
    """
    Check the parts of a connection.

    :param host: base URL
    :param password: personal API key
    :param extra: JSON object with any of :data:`EXTRAS`; may be empty or ``None``
    :param source: what to call the connection in messages
    :param port: added to the host where that names none
    :raises WorkspaceConfigError: naming the part that is wrong and what is expected there
    """
    given = read_extra(extra, source)
    base_url = read_base_url(host, port, source, allow_http=boolean(given, "allow_http", source, default=False))
    api_key = (password or "").strip()
    if not api_key:
        msg = f"{source} has no API key: put the personal API key into its password."
        raise WorkspaceConfigError(msg)
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        msg = f"{source}: the API key in the password holds characters that cannot be sent in a header."
        raise WorkspaceConfigError(msg)
    body = given.get("bulk_invite_body", "array")
    if body not in ("array", "object"):
        raise wrong(source, "bulk_invite_body", "'array' or 'object'")
    return Settings(
        base_url=base_url,
        api_key=api_key,
        source=source,
        organization_id=identifier(given, "organization_id", source),
        project_id=identifier(given, "project_id", source),
        connect_timeout=number(given, "connect_timeout", source, default=10.0, low=0.01, high=600),
        read_timeout=number(given, "read_timeout", source, default=60.0, low=0.01, high=3600),
        max_attempts=whole(given, "max_attempts", source, default=5, low=1, high=20),
        max_retry_wait=number(given, "max_retry_wait", source, default=60.0, low=0, high=3600),
        page_size=whole(given, "page_size", source, default=100, low=1, high=10_000),
        max_concurrency=whole(given, "max_concurrency", source, default=4, low=1, high=100),
        bulk_invite_limit=whole(given, "bulk_invite_limit", source, default=20, low=1, high=10_000),
        bulk_invite_body=body,
        verify=read_verify(given, source),
        proxy=web_address(given, "proxy", source),
        web_url=read_web_url(given, source),
    )


def read_extra(extra: str | None, source: str) -> dict[str, Any]:
    """Parse the extra; empty values count as not given, unknown keys are refused."""
    try:
        value = json.loads(extra) if extra and extra.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        msg = f'The extra of {source} must be a JSON object, such as {{"organization_id": "…"}}.'
        raise WorkspaceConfigError(msg)
    for key in value:
        if key not in EXTRAS:
            from difflib import get_close_matches

            close = get_close_matches(key, EXTRAS, n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            msg = f"The extra of {source} has an unknown key '{key}': {hint}Known are {', '.join(EXTRAS)}."
            raise WorkspaceConfigError(msg)
    return {key: item for key, item in value.items() if item not in (None, "")}


def read_base_url(host: str | None, port: int | None, source: str, *, allow_http: bool) -> str:
    """Check the base URL; plain http is for loopback, or for those who say that they want it."""
    given = (host or "").strip()
    url = given.rstrip("/")
    if not url:
        msg = f"{source} has no host: put in the base URL of the service, such as https://workspace.example.com."
        raise WorkspaceConfigError(msg)
    if "://" not in given:
        shown = url.rpartition("@")[2][:100]
        msg = f"The host of {source} is '{shown}', which has no scheme: write https://{shown}."
        raise WorkspaceConfigError(msg)
    try:
        parts = urlsplit(url)
        own_port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:  # also a part of the host that is empty or too long
        parts = urlsplit("")
        own_port = None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or re.search(r"[\s\\]", url)
        or not url.isprintable()
    ):
        msg = f"The host of {source} is not a URL: expected something like https://workspace.example.com."
        raise WorkspaceConfigError(msg)
    if parts.username is not None or parts.query or parts.fragment:
        msg = f"The host of {source} must hold no user, query or fragment; the API key goes into the password."
        raise WorkspaceConfigError(msg)
    if parts.path.rstrip("/").endswith("/api"):
        msg = f"The host of {source} ends in /api, which every request adds by itself: leave it out."
        raise WorkspaceConfigError(msg)
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname):
        msg = (
            f"The host of {source} is plain http://, which would send the API key unencrypted to {parts.hostname}: "
            'use https://, or set "allow_http": true in the extra if the network between is trusted.'
        )
        raise WorkspaceConfigError(msg)
    port_text = f":{port}" if own_port is None and port else ""
    return f"{parts.scheme}://{parts.netloc}{port_text}{parts.path}"


def is_loopback(hostname: str) -> bool:
    """Tell whether a host name means this machine."""
    if hostname == "localhost" or hostname.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def wrong(source: str, key: str, expected: str) -> WorkspaceConfigError:
    """Build the error for an extra of the wrong kind."""
    return WorkspaceConfigError(f"The extra '{key}' of {source} must be {expected}.")


def boolean(given: dict[str, Any], key: str, source: str, *, default: bool) -> bool:
    """Read true or false; forms and environments deliver them as text too."""
    value = given.get(key, default)
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise wrong(source, key, "true or false")
    return value


def number(given: dict[str, Any], key: str, source: str, *, default: float, low: float, high: float) -> float:
    """Read a number within bounds."""
    value = given.get(key, default)
    try:
        result = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = float("nan")
    if not low <= result <= high:
        raise wrong(source, key, f"a number from {low:g} to {high:g}")
    return result


def whole(given: dict[str, Any], key: str, source: str, *, default: int, low: int, high: int) -> int:
    """Read a whole number within bounds."""
    value = number(given, key, source, default=default, low=low, high=high)
    if value != int(value):
        raise wrong(source, key, f"a whole number from {low} to {high}")
    return int(value)


def identifier(given: dict[str, Any], key: str, source: str) -> str | None:
    """Read an id, which forms and JSON deliver as text or as a number."""
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise wrong(source, key, "an id")
    return str(value).strip()


def web_address(given: dict[str, Any], key: str, source: str) -> str | None:
    """Read an address that begins with http:// or https://."""
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not re.match(r"https?://[^\s/]+", value):
        raise wrong(source, key, "a URL that begins with http:// or https://")
    return value.rstrip("/")


def read_web_url(given: dict[str, Any], source: str) -> str | dict[str, str] | None:
    """Read the address of the pages for people, or a template per kind of resource."""
    templates = given.get("web_url")
    if not isinstance(templates, dict):
        return web_address(given, "web_url", source)
    for kind, template in templates.items():
        if kind not in RESOURCE_PATHS or not isinstance(template, str) or not re.match(r"https?://[^\s/]+", template):
            raise wrong(source, "web_url", f"a URL, or an object of URL templates for {', '.join(RESOURCE_PATHS)}")
    return templates


def read_verify(given: dict[str, Any], source: str) -> bool | str:
    """Read whether and against what TLS certificates are checked."""
    value = given.get("verify", True)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if isinstance(value, str) and not Path(value).exists():
        raise wrong(source, "verify", "true, false, or the path of a CA file that exists on this machine")
    if not isinstance(value, bool | str):
        raise wrong(source, "verify", "true, false, or the path of a CA file")
    return value
