"""
The settings of a client, and how an Airflow connection becomes settings.

The keys of the connection's extra, their checks and messages are derived from the fields. ``dev/make_connection.py``
generates the connection form and the table in the documentation from them.
"""

# Without postponed annotations: pydantic would have to compile each one when this is imported.

import ipaddress
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo

from airflow_provider_workspace.api.fields import TextId
from airflow_provider_workspace.errors import WorkspaceConfigError, did_you_mean, resembling, shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from airflow_provider_workspace.api.operation import Operation

# Accepted connection types: the own one, and those that are not of another system.
CONNECTION_TYPES = (None, "", "workspace", "generic", "http", "https")

# Where the 27 operations are; the classes of authors are elsewhere.
OPERATIONS_PACKAGE = "airflow_provider_workspace.api.operations."
# The ids of the connection that fill a placeholder of a path.
DEFAULT_IDS = ("organization_id", "project_id")
PATHS_EXAMPLE = '{"PauseBatchExport": "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause"}'

# Parsers of settings. The message of their ValueError says what is expected.


def _boolean(value: object) -> bool:
    """Parse a boolean; forms and environment variables deliver text."""
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise ValueError("true or false")  # noqa: TRY004 - pydantic collects ValueError only
    return value


def _url(value: object) -> str:
    """Parse a URL and drop its trailing slashes."""
    if not isinstance(value, str) or not is_url(value):
        raise ValueError("a URL that begins with http:// or https://")
    return value.rstrip("/")


def _verify(value: object) -> bool | str:
    """Parse whether to verify TLS certificates, or the path of CA certificates."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if isinstance(value, str) and not Path(value).exists():
        raise ValueError("true, false, or the path of a CA file that exists on this machine")
    if not isinstance(value, bool | str):
        raise ValueError("true, false, or the path of a CA file")  # noqa: TRY004 - pydantic collects ValueError only
    return value


def operation_key(cls: "type[Operation[Any]]") -> str:
    """Return the name of an operation in ``paths``: that of its class, with the module if it is an author's own."""
    if cls.__module__.startswith(OPERATIONS_PACKAGE):
        return cls.__name__
    return f"{cls.__module__}.{cls.__qualname__}"


def _paths(value: object, info: ValidationInfo) -> dict[str, str]:
    """Parse the paths of operations; forms and URIs deliver JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object of operations and paths, such as {PATHS_EXAMPLE}")  # noqa: TRY004 - as above
    defaults = {name for name in DEFAULT_IDS if info.data.get(name) is not None}
    return {name: _path(name, path, defaults) for name, path in value.items()}


def _path(name: str, path: object, defaults: set[str]) -> str:
    """
    Check the path of one operation.

    An operation of an author's own is not imported here: a connection must not decide what is imported. Its
    placeholders are checked when it is sent.

    :param defaults: names of the ids that the connection has
    """
    from airflow_provider_workspace.api.endpoint import PATH_PATTERN, own_ids, path_fields

    problem = f"paths by operation. The path of {name} must"
    text = path if isinstance(path, str) else ""
    with_slash = text if text.endswith("/") else f"{text}/"
    segments = text.split("/")
    is_plain = text.isascii() and text.isprintable() and "\\" not in text
    is_path = is_plain and bool(PATH_PATTERN.fullmatch(with_slash))
    if not is_path or "." in segments or ".." in segments or with_slash == "/api/":
        raise ValueError(f"{problem} begin with /api/, and have no host, query or blanks; it is {shown(path)}")
    if "." in name:
        return text
    from airflow_provider_workspace.api.fields import interface_names
    from airflow_provider_workspace.api.operations import OPERATIONS

    operations = {operation.__name__: operation for operation in OPERATIONS}
    if name not in operations:
        hint = did_you_mean(name, operations)
        raise ValueError(f"paths by operation. {name} is no operation: {hint} Write your own as 'module.Class'")
    operation = operations[name]
    names = interface_names(operation)
    required = {names[field] for field, about in operation.model_fields.items() if about.is_required()}
    unknown = [field for field in path_fields(text) if field not in required | defaults]
    if unknown:
        known = ", ".join(sorted(required | defaults))
        raise ValueError(f"{problem} name only {known} (of the operation and the connection), and {unknown[0]} is none")
    forgotten = [field for field in own_ids(operation.endpoint.path) if field not in path_fields(text)]
    if forgotten:
        names_forgotten = ", ".join(forgotten)
        raise ValueError(f"{problem} name {names_forgotten}, or it leads to something else; it is {shown(path)}")
    return text


Boolean = Annotated[bool, PlainValidator(_boolean)]
Paths = Annotated[dict[str, str], PlainValidator(_paths)]
Url = Annotated[str, PlainValidator(_url)]
Verify = Annotated[bool | str, PlainValidator(_verify)]


class Settings(BaseModel):
    """
    The settings of a client. See the connection page of the documentation.

    A field with a title is a key of the connection's extra; the title is its label in the connection form, and its
    docstring the description. In
    ``json_schema_extra``, ``allowed`` and ``default_text`` are descriptions for the documentation, and
    ``values_display`` is for the form.

    :param base_url: URL of the service without a trailing slash, such as ``https://workspace.example.com``
    :param api_key: personal API key
    :param source: name of the connection, for messages
    :param extra: keys of the extra; ``None`` and empty text count as not set
    :raises WorkspaceConfigError: naming each invalid key and what is expected
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    base_url: str
    api_key: str
    source: str = "the settings"

    organization_id: TextId | None = Field(
        default=None, title="Organization", json_schema_extra={"allowed": "id (text or number)"}
    )
    """Organization id for tasks that do not set one. Required to test the connection."""
    project_id: TextId | None = Field(
        default=None, title="Project", json_schema_extra={"allowed": "id (text or number)"}
    )
    """Project id for tasks that do not set one."""
    connect_timeout: float = Field(default=10.0, ge=0.01, le=600, title="Connect timeout")
    """Connect timeout in seconds."""
    read_timeout: float = Field(default=60.0, ge=0.01, le=3600, title="Read timeout")
    """Read timeout in seconds: the longest wait for the next part of a response."""
    total_timeout: float = Field(
        default_factory=lambda given: 10 * given.get("read_timeout", 0),
        ge=0.01,
        le=36_000,
        title="Total timeout",
        json_schema_extra={"default_text": "10 times the read timeout"},
    )
    """Longest time of one attempt in seconds, from connecting to the last byte of the response."""
    max_response_bytes: int = Field(default=64_000_000, ge=1_000, le=10_000_000_000, title="Maximum response size")
    """Largest response in bytes, before and after decompression; a larger one is an error."""
    consistency_time: float = Field(
        default_factory=lambda given: 2 * given.get("read_timeout", 0),
        ge=0,
        le=86_400,
        title="Consistency time",
        json_schema_extra={"default_text": "2 times the read timeout"},
    )
    """
    How long after a request the service may still apply it and its lists may still miss it, in seconds. A create whose
    response was lost is looked up until then before it is sent again.
    """
    trust_counts: Boolean = Field(default=True, title="Trust counts")
    """
    Fail where a list has fewer rows than it counts. Set to false for a service that counts wrong, or that counts
    members that the key may not see.
    """
    count_members: Boolean = Field(default=False, title="Count members")
    """
    Fail where the list of members has fewer rows than ``member_count`` of the organization's record says: it hides some
    from this key. The record is no part of the interface, and is not read otherwise; its scope is organization:read.
    """
    max_attempts: int = Field(default=5, ge=1, le=20, title="Maximum attempts")
    """Attempts per request, including the first. Only requests that are safe to repeat are retried."""
    max_retry_wait: float = Field(default=60.0, ge=0, le=3600, title="Maximum retry wait")
    """Longest wait between two attempts in seconds; if Retry-After is longer, the task fails instead of waiting."""
    page_size: int = Field(default=100, ge=1, le=10_000, title="Page size")
    """Rows requested per page of a list."""
    max_concurrency: int = Field(default=4, ge=1, le=100, title="Maximum concurrency")
    """Concurrent requests per task. Used by bulk invites."""
    invites_per_hour: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        title="Invites per hour",
        json_schema_extra={"default_text": "learned from the first refusal"},
    )
    """Most invites of an organization within an hour."""
    invites_per_day: int | None = Field(
        default=None,
        ge=1,
        le=10_000_000,
        title="Invites per day",
        json_schema_extra={"default_text": "learned from the first refusal"},
    )
    """Most invites of an organization within 24 hours."""
    bulk_invite_limit: int = Field(default=20, ge=1, le=10_000, title="Bulk invite limit")
    """Maximum invites per bulk request."""
    bulk_invite_body: Literal["array", "object"] = Field(
        default="array",
        title="Bulk invite body",
        json_schema_extra={"values_display": {"array": "array of invites", "object": "one object"}},
    )
    """Body of a bulk request: an array of invites, or one object. With an object, each request carries one invite."""
    verify: Verify = Field(
        default=True, title="Verify TLS certificates", json_schema_extra={"allowed": "true, false, path"}
    )
    """true, false, or the path of a CA file or directory."""
    proxy: Url | None = Field(
        default=None,
        title="Proxy",
        json_schema_extra={"allowed": "`http://…`, `https://…`", "default_text": "proxy of the environment"},
    )
    """Proxy URL, such as http://proxy.example.com:3128."""
    web_url: Url | None = Field(default=None, title="Web URL", json_schema_extra={"allowed": "`http://…`, `https://…`"})
    """URL of the workspace in a browser. Links of tasks lead there."""
    allow_http: Boolean = Field(default=False, title="Allow plain http://")
    """Allow sending the API key unencrypted over http:// to hosts other than localhost."""
    paths: Paths | None = Field(
        default=None, title="Paths", json_schema_extra={"allowed": "JSON object of operations and paths"}
    )
    """Paths of operations that the service has moved, by the name of the operation."""

    def __init__(self, base_url: str, api_key: str, source: str = "the settings", **extra: Any) -> None:
        given = {key: value for key, value in extra.items() if value not in (None, "")}
        for key in BOUNDS.keys() & given:
            if isinstance(given[key], bool):  # pydantic would parse true as 1, but refuses this text
                given[key] = str(given[key])
        wrong = ""
        try:
            super().__init__(base_url=base_url, api_key=api_key, source=source, **given)
        except ValidationError as error:
            wrong = " ".join(_messages(error.errors(include_url=False, include_input=False), source))
        if wrong:  # outside of the except block: the frames of a context would contain the API key
            raise WorkspaceConfigError(wrong)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show the URL and the name of the connection."""
        yield None, self.__dict__.get("base_url")  # missing during validation
        yield "source", self.__dict__.get("source")

    def organization_at_service(self, organization_id: str) -> str:
        """Return the service and an organization; an edited connection may lead to others."""
        return f"{self.base_url} {organization_id}"

    @property
    def default_ids(self) -> dict[str, str]:
        """The ids of the connection by name, those that are set."""
        ids = {"organization_id": self.organization_id, "project_id": self.project_id}
        return {name: value for name, value in ids.items() if value is not None}

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """The API key and the password of the proxy, which must not appear in logs and messages."""
        password = urlsplit(self.proxy or "").password or ""
        return tuple(dict.fromkeys(filter(None, (self.api_key, password, unquote(password)))))


EXTRAS = tuple(name for name, field in Settings.model_fields.items() if field.title)
"""The keys of the extra of a connection."""
BOUNDS: dict[str, tuple[float, float]] = {
    name: (limits["ge"], limits["le"])
    for name, field in Settings.model_fields.items()
    if (limits := {key: getattr(item, key) for item in field.metadata for key in ("ge", "le") if hasattr(item, key)})
}
"""Minimum and maximum of each numeric setting."""


def _messages(findings: "list[ErrorDetails]", source: str) -> Iterator[str]:
    """Yield a message for each invalid setting."""
    for finding in findings:
        key = str(finding["loc"][0])
        if finding["type"] == "extra_forbidden":
            yield unknown_key(key, source)
        elif finding["type"] != "default_factory_not_called":  # only follows from another one
            yield f"The extra '{key}' of {source} must be {_expected(key, finding)}."


def _expected(key: str, finding: "ErrorDetails") -> str:
    """Describe the expected value of a setting."""
    if key not in BOUNDS:
        context = finding.get("ctx", {})
        # Without the value, which may be a secret in the wrong place.
        expectation = context.get("expected") or context.get("error") or "text"
        expected, _, _ = str(expectation).partition(", not ")
        return expected.removeprefix("expected ")
    low, high = BOUNDS[key]
    is_whole = finding["type"].startswith("int_")
    number = "whole number" if is_whole else "number"
    return f"a {number} from {low} to {high}"


def unknown_key(key: str, source: str) -> str:
    """Return the message for an unknown key of the extra."""
    return f"The extra of {source} has an unknown key '{key}': {resembling(key, EXTRAS)}Known are {', '.join(EXTRAS)}."


def is_url(text: str) -> bool:
    """Return whether a text is an http or https URL that both HTTP libraries accept."""
    try:
        parts = urlsplit(text)
        (parts.hostname or "").encode("idna")
        return parts.scheme in ("http", "https") and bool(parts.hostname and parts.port != 0 and text.split() == [text])
    except ValueError:  # an invalid port or IPv6 address, or a label of the host name that is empty or too long
        return False


def is_loopback(hostname: str) -> bool:
    """Return whether a host name is this machine."""
    if hostname == "localhost" or hostname.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def read_connection(connection: Any, conn_id: str) -> Settings:
    """
    Return the settings of an Airflow connection.

    The host is a base URL, or a host name; then the port and the schema count, by default ``https``, or ``http`` on
    this machine. The extra is a JSON object with keys of :data:`EXTRAS`; it is parsed here, because Airflow treats
    invalid JSON as an empty extra.

    :raises WorkspaceConfigError: naming the invalid part and what is expected
    """
    source = f"connection '{conn_id}'"
    if connection.conn_type not in CONNECTION_TYPES:
        raise WorkspaceConfigError(
            f"Connection '{conn_id}' is of type '{connection.conn_type}', whose password is not for this service. Set "
            "workspace_conn_id to a connection of type 'workspace'."
        )
    given = _read_extra(connection.extra, source)
    base_url = _read_base_url(connection.host, connection.port, connection.schema, source)
    settings = Settings(base_url, _read_api_key(connection.password, source), source, **given)
    hostname = urlsplit(settings.base_url).hostname or ""
    if settings.base_url.startswith("http://") and not settings.allow_http and not is_loopback(hostname):
        raise WorkspaceConfigError(
            f"The host of {source} is plain http://, which would send the API key unencrypted to {hostname}. "
            'Use https://, or set "allow_http": true in the extra if the network between is trusted.'
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
        raise WorkspaceConfigError(f"No API key in the password of {source}. Put the personal API key there.")
    if api_key.lower().startswith("bearer "):
        raise WorkspaceConfigError(
            f"The password of {source} begins with 'Bearer '. Leave that out: it is sent anyway."
        )
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise WorkspaceConfigError(
            f"The API key in the password of {source} has characters that cannot be sent in a header. Copy it again."
        )
    return api_key


def _read_base_url(host: str | None, port: int | None, schema: str | None, source: str) -> str:
    """Check the base URL, and add scheme and port if they are missing."""
    given = (host or "").strip()
    if not given.rstrip("/"):
        raise WorkspaceConfigError(
            f"No host in {source}. Put the URL of the service there, such as https://workspace.example.com."
        )
    url = _with_scheme(given, (schema or "").strip().lower(), source).rstrip("/")
    if not is_url(url) or "\\" in url or not url.isprintable():
        raise WorkspaceConfigError(
            f"The host of {source} is not a URL: expected something like https://workspace.example.com."
        )
    parts = urlsplit(url)
    if parts.username is not None or parts.query or parts.fragment:
        raise WorkspaceConfigError(
            f"The host of {source} must not contain a user, query or fragment. Put the API key into the password."
        )
    if parts.path.rstrip("/").endswith("/api"):
        raise WorkspaceConfigError(f"The host of {source} ends with /api, which every request adds. Leave it out.")
    # Normalized, because leases and dashboards of different connections compare it.
    host_and_port = str(parts.hostname)
    if ":" in host_and_port:
        host_and_port = f"[{host_and_port}]"
    used_port = port if parts.port is None else parts.port
    default_port = {"http": 80, "https": 443}[parts.scheme]
    if used_port not in (None, default_port):
        host_and_port += f":{used_port}"
    return f"{parts.scheme}://{host_and_port}{parts.path}"


def _with_scheme(url: str, schema: str, source: str) -> str:
    """Add a scheme to a host; connection URIs and some secrets backends have it in the schema."""
    scheme_of_url = url.partition("://")[0].lower() if "://" in url else ""
    contradicts = schema != "" and scheme_of_url not in ("", schema)
    if schema not in ("", "http", "https") or contradicts:
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
    if schema:
        return f"{schema}://{url}"
    host_and_port = url.partition("/")[0].rpartition("@")[2]
    hostname = host_and_port.partition(":")[0]
    if host_and_port.startswith("["):
        hostname = host_and_port[1:].partition("]")[0]
    return f"http://{url}" if is_loopback(hostname) else f"https://{url}"
