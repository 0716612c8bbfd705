"""What the transports of workers and of event loops share: headers, proxy, TLS context, body, and their errors."""

from __future__ import annotations

import http.client
import ssl
import urllib.request
import zlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from airflow_provider_workspace import __version__
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.request_errors import request_error
from airflow_provider_workspace.client.settings import is_loopback, is_url
from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceConnectionError,
    WorkspaceResponseError,
    WorkspaceTimeoutError,
    WorkspaceTransportError,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation, RequestContext
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.errors import WorkspaceRequestError

COMPRESSIONS = ("gzip", "x-gzip", "deflate")
# Maximum members of a gzip body: to read one copies all that follow.
MAX_MEMBERS = 100
# TLS errors that a retry may not meet: the connection broke during the handshake.
TRANSIENT_TLS_ERRORS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class ResponseTooLargeError(ValueError):
    """The response exceeds the maximum size."""


class UnreadableBodyError(ValueError):
    """The body does not match its Content-Encoding."""


class Route:
    """
    How every request of a client goes to the service; the environment and CA certificates are read once.

    :param settings: settings of the connection
    :ivar headers: headers of every request
    :ivar proxy: URL of the proxy; ``None`` if there is none
    :ivar tls: TLS context for the service; ``None`` if it has no TLS
    :ivar proxy_tls: TLS context for the proxy; ``None`` if it has no TLS
    :raises WorkspaceConfigError: if the proxy or the CA certificates cannot be used
    """

    def __init__(self, settings: Settings) -> None:
        self.headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "User-Agent": f"airflow-provider-workspace/{__version__}",
        }
        if settings.api_key:
            self.headers["Authorization"] = f"Bearer {settings.api_key}"
        self.proxy = _proxy_for(settings) if settings.proxy is None else settings.proxy
        self.tls = _tls_context_for(settings.base_url, settings)
        self.proxy_tls = _tls_context_for(self.proxy, settings)


def _tls_context_for(url: str | None, settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS context for a URL; ``None`` if it has no TLS."""
    if url is None or not url.lower().startswith("https://"):
        return None
    return _tls_context(settings.verify)


def _proxy_for(settings: Settings) -> str | None:
    """
    Return the proxy of the environment; ``None`` if there is none, or for a service on this machine.

    :raises WorkspaceConfigError: if it is not a valid http:// or https:// URL
    """
    parts = urlsplit(settings.base_url)
    if is_loopback(parts.hostname or "") or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None:
        return None
    url = proxy if "://" in proxy else f"http://{proxy}"
    if not is_url(url):  # not shown: it may hold a password
        raise WorkspaceConfigError(
            "The proxy in the environment is not a valid http:// or https:// URL. Correct it, set 'proxy' in the extra "
            f"of {settings.source}, or name {parts.hostname} in NO_PROXY."
        )
    return url


@cache
def _tls_context(verify: bool | str) -> ssl.SSLContext:  # noqa: FBT001 - the setting as it is, hashable for the cache
    """
    Return the TLS context, which is cached because reading the CA certificates takes 45 ms.

    :param verify: true for the default CA certificates (those of ``REQUESTS_CA_BUNDLE``, ``CURL_CA_BUNDLE`` or
        ``SSL_CERT_FILE`` if set), a file or directory with others, or false to disable verification
    :raises WorkspaceConfigError: if the CA certificates cannot be read
    """
    import os

    import certifi

    if verify is False:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    bundles = [verify] if isinstance(verify, str) else [os.environ.get(name) for name in names]
    bundle = next(filter(None, bundles), certifi.where())
    try:
        if os.path.isdir(bundle):  # noqa: PTH112 - one call, no Path needed
            return ssl.create_default_context(capath=bundle)
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise WorkspaceConfigError(
            f"The CA certificates in '{bundle}' cannot be read ({error}). Correct 'verify' in the extra of the "
            f"connection, or {', '.join(names)} in the environment."
        ) from error


def has_received(tls: ssl.SSLObject) -> bool:
    """Whether a TLS connection that should be idle has received bytes or its end, which a read decrypts."""
    try:
        tls.read(1)
    except ssl.SSLError as error:
        return not isinstance(error, ssl.SSLWantReadError)
    return True


def body_of(encoding: str | None, body: bytes, limit: int) -> bytes:
    """
    Return the body of a response, decompressed.

    :param encoding: Content-Encoding; ``None`` if the response has none
    :param body: the body as received
    :param limit: maximum bytes, before and after decompression
    :raises ResponseTooLargeError: if it exceeds the limit, before the rest is decompressed
    :raises UnreadableBodyError: if the encoding is not in Accept-Encoding, or the body cannot be decompressed
    """
    if len(body) > limit:
        raise ResponseTooLargeError
    name = (encoding or "identity").strip().lower()
    if name not in ("identity", *COMPRESSIONS):
        raise UnreadableBodyError(f"unexpected Content-Encoding {name[:40]}")
    if name == "identity" or not body:
        return body
    # With 47 zlib detects gzip and zlib; with -15 it reads deflate without the header of zlib.
    window_bits = -15 if name == "deflate" and body[0] & 0x0F != 8 else 47
    content: list[bytes] = []
    for _ in range(MAX_MEMBERS):
        decompressor = zlib.decompressobj(window_bits)
        try:
            content.append(decompressor.decompress(body, limit + 1))
        except zlib.error as error:
            raise UnreadableBodyError(f"the body cannot be decompressed ({error})") from None
        limit -= len(content[-1])
        if limit < 0:
            raise ResponseTooLargeError
        if not decompressor.eof:
            raise UnreadableBodyError("the compressed body is cut off")
        body, window_bits = decompressor.unused_data, 47  # another gzip member
        if not body:
            return b"".join(content)
    raise UnreadableBodyError("the compressed body has too many parts")


def attempt_error(
    op: Operation[Any],
    error: Exception,
    context: RequestContext,
    settings: Settings,
    *,
    sent: bool,
    overdue: bool,
    timeout: bool = False,
) -> WorkspaceRequestError:
    """
    Build the error for a failed attempt.

    :param error: exception of a library; it is not kept, because its frames contain the API key
    :param sent: whether a byte of the request may have been sent
    :param overdue: whether the total timeout is over
    :param timeout: whether the error is a timeout; a ``TimeoutError`` is recognized without it
    """
    if isinstance(error, ResponseTooLargeError):
        what = f"returned more than {settings.max_response_bytes:,} bytes"
        cure = f"Raise max_response_bytes in the extra of {context.source} if the service really returns that much."
        return request_error(WorkspaceResponseError, op, what, cure=cure, retryable=False)
    causes = _causes(error)
    timeout = timeout or any(isinstance(cause, TimeoutError) for cause in causes)
    redacted = context.with_secrets_of(op).redacted
    if not sent:
        failure = _connection_failure(causes, context, settings, timeout=timeout, overdue=overdue)
        reason = redacted(failure.reason).rstrip(".: ")
        return request_error(
            WorkspaceConnectionError,
            op,
            f"was not sent: {reason}",
            cure=failure.cure,
            outcome=Outcome.NOT_SENT,
            retryable=failure.retryable,
            problem=failure.problem,
        )
    what = "was sent, but no complete response arrived"
    if not timeout:
        last = causes[-1]
        reason = redacted(f"{type(last).__name__}: {last}").rstrip(".: ")
        return request_error(WorkspaceTransportError, op, f"{what}: {reason}")
    if overdue:
        setting = "total_timeout"
        reason = f"not within {settings.total_timeout:g} s"
    else:
        setting = "read_timeout"
        reason = f"nothing for {settings.read_timeout:g} s"
    cure = f"Raise {setting} in the extra of {context.source} if the service needs longer."
    return request_error(WorkspaceTimeoutError, op, f"{what}: {reason}", cure=cure)


class _ConnectionFailure(NamedTuple):
    """Why a request was not sent, and what to do about it."""

    reason: str
    cure: str
    retryable: bool = True
    problem: str = "not-reached"


def _connection_failure(
    causes: Sequence[BaseException], context: RequestContext, settings: Settings, *, timeout: bool, overdue: bool
) -> _ConnectionFailure:
    """
    Return why a request was not sent.

    :param causes: the exception of the attempt, and its causes
    """
    cure = f"Check the host, port and proxy of {context.source}."
    # Such a host name or URL is permanent.
    retryable = not isinstance(causes[0], ValueError | http.client.InvalidURL)
    if timeout:
        seconds = settings.total_timeout if overdue else settings.connect_timeout
        return _ConnectionFailure(f"no connection within {seconds:g} s", cure, retryable)
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if tls is None or isinstance(tls, TRANSIENT_TLS_ERRORS):
        last = causes[-1]
        return _ConnectionFailure(f"{type(last).__name__}: {last}", cure, retryable)
    if isinstance(tls, ssl.SSLCertVerificationError):
        cure = f"Correct the host or proxy of {context.source}, or set 'verify' in its extra to your CA file."
    return _ConnectionFailure(f"TLS failed, {type(tls).__name__}: {tls}", cure, retryable=False, problem="tls-failed")


def _causes(error: BaseException) -> list[BaseException]:
    """Return an exception and its causes, through the wrappers of the libraries."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        context = None if cause.__suppress_context__ else cause.__context__
        parts = (getattr(cause, "reason", None), *cause.args, cause.__cause__, context)
        cause = next((part for part in parts if isinstance(part, BaseException) and part not in causes), None)
    return causes
