"""From an answer to a result or an error. Every message says what was asked, what came back and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urljoin, urlsplit

from airflow_provider_workspace.api.decode import UnreadableAnswerError, decode
from airflow_provider_workspace.api.outcome import TRY_LATER, Outcome, outcome_of_status
from airflow_provider_workspace.api.retry import parse_retry_after
from airflow_provider_workspace.errors import (
    WorkspaceAuthenticationError,
    WorkspaceBadRequestError,
    WorkspaceConnectionError,
    WorkspaceMethodNotAllowedError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
    WorkspacePermissionError,
    WorkspaceRateLimitError,
    WorkspaceRedirectError,
    WorkspaceRequestError,
    WorkspaceResponseError,
    WorkspaceServerError,
    WorkspaceStatusError,
    WorkspaceTimeoutError,
    WorkspaceTransportError,
)

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")

MAX_DETAIL_LENGTH = 300

_CLASSES: dict[int, type[WorkspaceStatusError]] = {
    400: WorkspaceBadRequestError,
    401: WorkspaceAuthenticationError,
    403: WorkspacePermissionError,
    404: WorkspaceNotFoundError,
    405: WorkspaceMethodNotAllowedError,
    429: WorkspaceRateLimitError,
}


@dataclass(frozen=True, slots=True)
class Response:
    """
    An answer, whichever library received it.

    :param headers: must find names whatever their case
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """
    Who asks, for the messages.

    :param source: where the settings come from, such as ``connection 'workspace_default'``
    :param secrets: values that must not appear in a message, whatever the service writes
    """

    source: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hiding(self, op: Operation[Any]) -> RequestContext:
        """Return the same with the secrets that an operation sends, which the service may repeat."""
        return RequestContext(self.source, (*self.secrets, *op.secrets()))

    def clean(self, text: str) -> str:
        """Take the secrets and everything unprintable out of a text and shorten it."""
        for secret in self.secrets:
            text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
        text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return text if len(text) <= MAX_DETAIL_LENGTH else text[:MAX_DETAIL_LENGTH] + "…"


def interpret(
    op: Operation[T], response: Response, asking: RequestContext, now: datetime, *, may_have_been_applied: bool = False
) -> T:
    """
    Turn an answer into the result of the operation.

    :param now: the present with a time zone, for a ``Retry-After`` that is a date
    :param may_have_been_applied: an earlier attempt may have been applied: then a 404 to a DELETE means that it was
    :return: the result; of a change that is answered with 204 a record without any field
    :raises WorkspaceStatusError: for every status that is not a success
    :raises WorkspaceResponseError: for a success whose body cannot be read
    """
    if response.status == 204 and op.endpoint.method == "PATCH":
        unsaid: T = op.endpoint.answer()  # changed, and no word about the record
        return unsaid
    if 200 <= response.status < 300:
        try:
            result: T = decode(op.endpoint.answer, response.body)
        except UnreadableAnswerError as found:
            raise unreadable(op, response, asking, str(found)) from None
        contradiction = op.contradiction(result)
        if contradiction:
            raise contradicted(op, response, asking, contradiction)
        return result
    error = refusal(op, response, asking, now)
    done = error.code is not None and error.code == op.endpoint.already_done_code
    gone = may_have_been_applied and op.endpoint.method == "DELETE" and response.status in (404, 410)
    if not done and not gone:
        raise error
    nothing: T = cast("Any", None)
    return nothing


def asked(op: Operation[Any]) -> str:
    """Say what was asked: the operation, the method and the path."""
    return f"{type(op).__name__} ({op.endpoint.method} {op.path()})"


def unreadable(op: Operation[Any], response: Response, asking: RequestContext, found: str) -> WorkspaceResponseError:
    """Build the error for a success that cannot be read."""
    asking = asking.hiding(op)
    content_type = asking.clean(response.headers.get("content-type") or "no content type")
    return WorkspaceResponseError(
        f"{asked(op)} was answered with {response.status} and {found}, {content_type[:80]}. Check that the host of "
        f"{asking.source} is the address of the service itself and that no login page or proxy answers in its place.",
        operation=type(op).__name__,
        outcome=Outcome.UNKNOWN.value,
        request_id=request_id(response, asking),
    )


def contradicted(
    op: Operation[Any], response: Response, asking: RequestContext, contradiction: str
) -> WorkspaceResponseError:
    """Build the error for a success whose body says the contrary of what was asked."""
    return WorkspaceResponseError(
        f"{asked(op)} was answered with {response.status}, but the answer {contradiction}. "
        "Try again; if it stays so, ask the people who run the service.",
        operation=type(op).__name__,
        outcome=Outcome.UNKNOWN.value,
        request_id=request_id(response, asking),
    )


def refusal(op: Operation[Any], response: Response, asking: RequestContext, now: datetime) -> WorkspaceStatusError:
    """Build the error for a status that is not a success."""
    status = response.status
    asking = asking.hiding(op)
    body = error_body(response.body)
    detail = asking.clean(body["detail"]) if body["detail"] else None
    retry_after = parse_retry_after(response.headers.get("retry-after"), now)
    outcome = outcome_of_status(status)
    error_class = _CLASSES.get(status, WorkspaceStatusError)
    if 300 <= status < 400:
        error_class = WorkspaceRedirectError
    elif status >= 500:
        error_class = WorkspaceServerError
    said = f": {detail}" if detail else " and no explanation"
    code = asking.clean(body["code"]) if body["code"] else None
    attr = asking.clean(body["attr"]) if body["attr"] else None
    about = f" (field '{attr}')" if attr else ""
    passing = status in op.endpoint.passing_statuses and attr is None
    return error_class(
        f"{asked(op)} was answered with {status}{about}{said.rstrip('.')}. "
        f"{'It may pass: try again.' if passing else advice(op, response, asking, detail, retry_after)}",
        status=status,
        code=code,
        detail=detail,
        attr=attr,
        operation=type(op).__name__,
        outcome=outcome.value,
        retryable=passing or status in TRY_LATER or (status >= 500 and status != 501),
        retry_after=retry_after,
        request_id=request_id(response, asking),
    )


def error_body(body: bytes) -> dict[str, str | None]:
    """
    Read the body of an error, whose shape the interface does not show.

    Understood are an object with ``detail``, ``code``, ``attr`` (or ``message``, ``error``), and an object of lists of
    messages per field; of anything else that is not a page of HTML, the text itself.
    """
    found: dict[str, str | None] = {"detail": None, "code": None, "attr": None}
    text = body[:20_000].decode("utf-8", "replace").strip()
    if not text or text.startswith("<"):
        return found
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {**found, "detail": text}
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        return {**found, "detail": value}
    if not isinstance(value, dict):
        return found
    for key in ("detail", "message", "error", "errors"):
        if value.get(key):
            found["detail"] = value[key] if isinstance(value[key], str) else json.dumps(value[key])
            break
    else:
        if value and "code" not in value:
            found["detail"] = json.dumps(value)
    for key in ("code", "attr"):
        if isinstance(value.get(key), str):
            found[key] = value[key]
    return found


def advice(
    op: Operation[Any], response: Response, asking: RequestContext, detail: str | None, retry_after: float | None
) -> str:
    """Say what to do about a refusal."""
    status = response.status
    if status == 400:
        return "Correct the request; sending it again unchanged will not help."
    if status == 401:
        return f"The API key in the password of {asking.source} is missing, wrong or revoked: put in a valid one."
    if status == 403:
        scope = missing_scope(op, detail)
        if scope is None:
            return f"The owner of the API key of {asking.source} is not allowed to do this."
        return f"Give the API key of {asking.source} the scope {scope}, or check the access level of its owner."
    if status == 404:
        return f"Check the ids: the resource does not exist, or the API key of {asking.source} may not see it."
    if status == 405:
        if type(op).__name__ == "HardDeleteDashboard":
            return "Dashboards are never hard-deleted: use delete_dashboard, which sets deleted to true."
        return f"Is the host of {asking.source} the address of the workspace service?"
    if status == 429:
        when = "later" if retry_after is None else f"in {retry_after:.0f} s"
        return f"Too many requests: try again {when}; a pool limits how many tasks ask at once."
    if 300 <= status < 400:
        where = asking.clean(place(response.headers.get("location")))
        return (
            f"It points to {where}, which was not followed. If that is the service, set it as host of {asking.source}."
        )
    if status >= 500:
        return "The service or a proxy before it failed: look at its status if this goes on."
    return "The service refused the request."


def place(location: str | None) -> str:
    """Say where a redirect points to, without the parts of a URL that may hold secrets."""
    if not location:
        return "nowhere"
    try:
        parts = urlsplit(location)
        host = parts.hostname
        where = f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        return "an address that makes no sense"
    if not where:
        return "another path"
    return f"{parts.scheme}://{where}" if parts.scheme else where


def missing_scope(op: Operation[Any], detail: str | None) -> str | None:
    """Return the scope that the service says is missing, or else the one that the interface asks for."""
    named = re.search(r"scope\W+([a-z_]+:[a-z]+)", detail or "")
    if named:
        return named.group(1)
    return op.endpoint.scope if not detail or "scope" in detail.lower() else None


def request_id(response: Response, asking: RequestContext) -> str | None:
    """Return the service's identifier of a request, if it sends one; it may repeat a secret there."""
    sent = response.headers.get("x-request-id") or response.headers.get("request-id")
    return asking.clean(sent) or None if sent else None


def follow(op: Operation[Any], response: Response, url: str) -> str | None:
    """
    Return where to follow a redirect to, or ``None`` if it must not be followed.

    Only a read may be followed, and only within the origin of the connection: elsewhere the API key must not go.

    :param url: the URL that was asked for
    """
    location = response.headers.get("location")
    if op.endpoint.method != "GET" or response.status not in (301, 302, 303, 307, 308) or not location:
        return None
    try:
        target = urljoin(url, location)
        return target.partition("#")[0] if origin(target) == origin(url) else None
    except ValueError:
        return None


def origin(url: str) -> tuple[str, str | None, int | None]:
    """
    Return scheme, host and port of a URL.

    :raises ValueError: if the URL makes no sense
    """
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or default


def not_sent(
    op: Operation[Any], why: str, asking: RequestContext, *, retryable: bool = True
) -> WorkspaceConnectionError:
    """Build the error for a request that never reached the service."""
    return WorkspaceConnectionError(
        f"{asked(op)} was not sent: {asking.clean(why).rstrip('.: ')}. "
        f"Check the host, port and proxy of {asking.source}.",
        operation=type(op).__name__,
        outcome=Outcome.NOT_SENT.value,
        retryable=retryable,
    )


def broken(op: Operation[Any], why: str, asking: RequestContext, *, timeout: bool = False) -> WorkspaceTransportError:
    """Build the error for a request that broke after it was sent."""
    error_class = WorkspaceTimeoutError if timeout else WorkspaceTransportError
    hint = f" Raise read_timeout in the extra of {asking.source} if the service needs longer." if timeout else ""
    return error_class(
        f"{asked(op)} was sent, but no complete answer came: {asking.clean(why).rstrip('.: ')}.{hint}",
        operation=type(op).__name__,
        outcome=Outcome.UNKNOWN.value,
    )


def given_up(
    op: Operation[Any], error: WorkspaceRequestError, attempts: int, *, may_have_been_applied: bool
) -> WorkspaceRequestError:
    """
    Return the error to raise once no further attempt is made.

    For a write whose outcome is unknown and that is not repeatable it says what to look for.

    :param error: the error of the last attempt
    :param may_have_been_applied: some attempt may have been applied, whatever became of the last one
    """
    error.attempts = attempts
    if may_have_been_applied and error.outcome != Outcome.UNKNOWN.value and op.endpoint.method != "GET":
        error.outcome = Outcome.UNKNOWN.value
        error.args = (f"{error} An earlier attempt got no clear answer, so {error.operation} may have been applied.",)
    if error.outcome != Outcome.UNKNOWN.value or op.endpoint.repeatable:
        return error
    unknown = WorkspaceOutcomeUnknownError(
        f"{type(op).__name__} may or may not have been applied, and was not sent again so that nothing is done twice. "
        f"{error} {LOOK_FOR.get(type(op).__name__, '')}".rstrip(),
        operation=error.operation,
        outcome=error.outcome,
        retryable=False,
        request_id=error.request_id,
    )
    unknown.attempts = attempts
    unknown.readable = type(op).__name__ != "CreateDashboard"
    return unknown


LOOK_FOR = {
    "CreateProject": "Look for the project by its name in the list of projects before you create it again.",
    "CreateDomain": "Look for the domain in the list of domains before you create it again.",
    "CreateInvite": "Look for the address in the list of invites before you invite it again.",
    "CreateInvites": "Look for the addresses in the list of invites before you invite them again.",
    "AddDashboardCollaborator": "Look for the person in the dashboard's collaborators before you add them again.",
    "CreateDashboard": (
        "The interface has no list of dashboards: look in the workspace itself whether the dashboard is there, and "
        "clear the task only if it is not."
    ),
}
