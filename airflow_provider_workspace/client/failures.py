"""What an exception means that either client meets while it sends."""

from __future__ import annotations

import http.client
import ssl
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.request_errors import not_sent, too_large_error, transport_error
from airflow_provider_workspace.client.body import AnswerTooLargeError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.request_errors import RequestContext
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.errors import WorkspaceRequestError

# A connection that breaks off during the handshake; any other error of TLS stays as it is.
PASSING_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def failed(
    op: Operation[Any],
    error: Exception,
    context: RequestContext,
    settings: Settings,
    *,
    sent: bool,
    late: bool,
    timeout: bool = False,
) -> WorkspaceRequestError:
    """
    Build the error for an attempt that failed; where it failed says whether the request was sent, never the words.

    :param error: what was raised; it is not kept, for its frames hold the API key
    :param sent: whether a byte of the request may have left
    :param late: whether the attempt took as long as it may as a whole
    :param timeout: whether something took too long; seen by itself where it is a ``TimeoutError``
    """
    causes = _causes(error)
    timeout = timeout or any(isinstance(cause, TimeoutError) for cause in causes)
    innermost = causes[-1]
    why = f"{type(innermost).__name__}: {innermost}"
    if not sent:
        if timeout:
            seconds = settings.total_timeout if late else settings.connect_timeout
            return not_sent(op, f"no connection within {seconds:g} s", context)
        tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
        if tls is not None and not isinstance(tls, PASSING_TLS):
            return not_sent(op, f"TLS failed, {type(tls).__name__}: {tls}", context, retryable=False)
        # Host names that cannot be written out, and URLs that are none.
        return not_sent(op, why, context, retryable=not isinstance(error, ValueError | http.client.InvalidURL))
    if isinstance(error, AnswerTooLargeError):
        return too_large_error(op, settings.max_response_bytes, context)
    if timeout and late:
        return transport_error(op, f"not within {settings.total_timeout:g} s", context, setting="total_timeout")
    if timeout:
        why = f"nothing for {settings.read_timeout:g} s"
        return transport_error(op, why, context, setting="read_timeout")
    return transport_error(op, why, context)


def _causes(error: BaseException) -> list[BaseException]:
    """Return an exception and what led to it, through the wrappers of the libraries."""
    found: list[BaseException] = []
    cause: Any = error
    while cause is not None:
        found.append(cause)
        context = None if cause.__suppress_context__ else cause.__context__
        parts = (getattr(cause, "reason", None), *cause.args, cause.__cause__, context)
        cause = next((part for part in parts if isinstance(part, BaseException) and part not in found), None)
    return found
