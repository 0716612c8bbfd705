"""Errors of requests: what happened, what to do, and what was requested."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

from airflow_provider_workspace.api.outcome import TRY_LATER, Outcome, outcome_of_status
from airflow_provider_workspace.api.retry import MAX_WAIT, parse_retry_after
from airflow_provider_workspace.errors import (
    ERRORS_BY_STATUS,
    WorkspaceIncompleteListError,
    WorkspaceNotAppliedError,
    WorkspaceOutcomeUnknownError,
    WorkspaceRedirectError,
    WorkspaceRequestError,
    WorkspaceResponseError,
    WorkspaceServerError,
    WorkspaceStatusError,
)

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_workspace.api.operation import Operation, RequestContext, Response

E = TypeVar("E", bound=WorkspaceRequestError)

# How much of an error that is not JSON is read.
MAX_ERROR_TEXT = 20_000


class Hint(NamedTuple):
    """
    What a status means, and what to do about it.

    In cause and cure, ``{source}`` is the connection and ``{scope}`` the missing scope: see :meth:`filled`.

    :param words: case-insensitive pattern for the error detail, the only thing that distinguishes errors of one status
    :param cause: what is wrong; empty if the detail says it best
    :param cure: what to do
    :param path: part of the paths of the operations that it applies to
    :param problem: that of :class:`~airflow_provider_workspace.errors.WorkspaceError`
    """

    status: int
    words: str
    cause: str
    cure: str
    path: str = ""
    problem: str | None = None

    def filled(self, source: str, scope: str = "") -> Hint:
        """Return the hint with the connection and the scope in its texts."""
        cause = self.cause.format(source=source, scope=scope)
        return self._replace(cause=cause, cure=self.cure.format(source=source, scope=scope))


# The first match is used.
HINTS = (
    Hint(
        400,
        r"restriction.level",
        "",
        "Set restriction_level=37 on the dashboard first: known services accept collaborators only if editing "
        "is restricted; with 21 everybody can edit.",
        "/collaborators/",
        "request-refused",
    ),
    Hint(
        400,
        r"\blevel\b",
        "",
        "Pass level=37, which allows editing at known services.",
        "/collaborators/",
        "request-refused",
    ),
    Hint(
        400,
        r"already exists|unique|taken|in use",
        "",
        "Known services have each domain in one organization only: remove it from the organization that has it, or "
        "use another one.",
        "/domains/",
        "request-refused",
    ),
    Hint(400, "", "", "Correct the request; a retry fails the same way.", problem="request-refused"),
    Hint(
        401,
        "",
        "the API key in the password of {source} is refused",
        "If the key is right, let its owner open a project in the workspace: known services refuse this while the "
        "owner has no current project.",
        "/batch_exports/",
        "api-key-refused",
    ),
    Hint(
        401,
        "",
        "the API key in the password of {source} is missing, wrong or revoked",
        "Replace the key.",
        problem="api-key-refused",
    ),
    Hint(
        403,
        r"does not support",
        "the service refuses this for API keys such as that of {source}, whatever their scopes",
        "Use a key of another kind, or do this in the workspace while logged in.",
        problem="key-kind-refused",
    ),
    Hint(
        403,
        r"scoped (project|organi[sz]ation|team|environment)|access to the requested",
        "the API key of {source} is limited to other projects or organizations",
        "Use a key without this limit.",
    ),
    Hint(
        403,
        r"(access|belong) to the organi[sz]ation|member of the organi[sz]ation",
        "the owner of the API key of {source} has no access to this organization",
        "Check organization_id, or add the owner to the organization.",
        problem="no-access-to-organization",
    ),
    Hint(
        403,
        r"\bscope",
        "the API key of {source} lacks {scope}",
        "Add the scope to the key; if it has the scope, check the access level of its owner.",
        problem="scope-missing",
    ),
    Hint(
        403,
        r"\bplan\b|upgrade|subscription|billing|maximum (limit|number)",
        "the plan of the organization does not allow this",
        "Upgrade the plan, or remove what counts towards its limit: scopes and access levels do not help.",
    ),
    Hint(
        403,
        r"\bfeature|licen[cs]e|premium|enterprise",
        "the organization does not have this feature",
        "Enable the feature: scopes and access levels do not help.",
    ),
    Hint(
        403,
        r"\b2fa\b|(two|multi|second)[ -]factor",
        "the owner of the API key of {source} has no second factor, which the organization demands",
        "Let the owner set one up.",
    ),
    Hint(
        403,
        r"change your own",
        "this is about the owner of the API key of {source}, who may not do it",
        "Ask another user to do this.",
    ),
    Hint(
        403,
        r"edit|restrict",
        "the owner of the API key of {source} may not edit this dashboard",
        "Make them a collaborator with level=37, or set the restriction_level of the dashboard to 21, which lets "
        "everybody edit at known services.",
        "/dashboards/{dashboard_id}/",
    ),
    Hint(
        403,
        r"level|permission|admin|owner|not allowed|insufficient",
        "the access level of the owner of the API key of {source} is too low",
        "Raise it, or use the key of somebody with a higher level.",
        problem="level-too-low",
    ),
    Hint(
        403,
        r"\w",
        "the owner of the API key of {source} is not allowed to do this",
        "Raise their access level, or use the key of somebody else.",
        problem="level-too-low",
    ),
    Hint(
        403,
        "",
        "the API key of {source} lacks {scope}, or its owner the access level",
        "Add the scope to the key, or raise the level.",
        problem="scope-missing",
    ),
    Hint(
        404,
        "",
        "the resource does not exist, or the API key of {source} may not see it",
        "Check the ids.",
        problem="not-found",
    ),
    Hint(
        405,
        "",
        "the host of {source} may not be that of the workspace service",
        "Check the host.",
        problem="not-the-service",
    ),
    Hint(
        407,
        "",
        "the proxy of {source} demands a user and a password",
        "Put them into 'proxy' in the extra of the connection.",
        problem="not-reached",
    ),
)
FOREIGN_NOT_FOUND = Hint(
    404,
    "",
    "this does not look like an answer of the workspace service",
    "Check the host of {source} and 'paths' in its extra, then the ids.",
    problem="not-the-service",
)
CHECK_PATHS = "Check 'paths' in the extra of {source}, too: they move this operation."
PASSING_HINT = Hint(400, "", "", "This may be temporary: try again.")


def request_error(
    kind: type[E],
    op: Operation[Any],
    what: str,
    *,
    cure: str = "",
    end: str = "",
    outcome: Outcome = Outcome.UNKNOWN,
    **details: Any,
) -> E:
    """
    Build an error for an operation.

    :param kind: class of the error
    :param what: what happened, after the name of the operation
    :param cure: what to do
    :param end: what else there is to say
    :param details: further arguments of the class
    """
    name = type(op).__name__
    # The path is last, because Airflow's log page cuts long lines.
    request = f"Request: {op.endpoint.method} {op.path(shown=True)}."
    sentences = [f"{name} {what}.", cure, end, request]
    message = " ".join(sentence for sentence in sentences if sentence)
    return kind(message, operation=name, outcome=outcome.value, **details)


def unreadable_error(
    op: Operation[Any], response: Response, context: RequestContext, found: str
) -> WorkspaceResponseError:
    """Build the error for a 2xx response that cannot be read."""
    content_type = context.with_secrets_of(op).redacted(response.headers.get("content-type") or "no content type")
    cure = (
        f"Check that the host of {context.source} is that of the service, and that no login page or proxy responds in "
        "its place."
    )
    what = f"returned {response.status} with {found}, {content_type[:80]}"
    return request_error(
        WorkspaceResponseError, op, what, cure=cure, request_id=response.request_id, problem="not-the-service"
    )


def not_applied_error(
    op: Operation[Any], response: Response, context: RequestContext, other: str
) -> WorkspaceNotAppliedError:
    """Build the error for a change whose response shows another value than was sent."""
    cure = "Check that the service lets this be changed, and that the owner of the API key may."
    what = f"returned {response.status}, but was not applied: {context.redacted(other)}"
    return request_error(WorkspaceNotAppliedError, op, what, cure=cure, request_id=response.request_id)


def incomplete_list_error(op: Operation[Any], what: str, cure: str, **details: Any) -> WorkspaceIncompleteListError:
    """Build the error for a list that shows too little; the arguments are those of :func:`request_error`."""
    end = "Nothing was changed."
    return request_error(
        WorkspaceIncompleteListError, op, what, cure=cure, end=end, outcome=Outcome.REJECTED, **details
    )


def field_not_sent_error(op: Operation[Any], what: str) -> WorkspaceIncompleteListError:
    """Build the error for a list whose rows lack a field that decides: a field that is absent is not null."""
    cure = (
        "The service may have changed its name or type, or hide it from this key: compare a response with the API, and "
        "look for a newer release of this package."
    )
    return incomplete_list_error(op, what, cure, retryable=False, problem="field-not-sent")


def status_error(
    op: Operation[Any], response: Response, context: RequestContext, now: datetime
) -> WorkspaceStatusError:
    """Build the error for a status other than 2xx."""
    status = response.status
    context = context.with_secrets_of(op)
    body = _parse_error_body(response.body)
    detail = context.redacted(body.detail) if body.detail else None
    code = context.redacted(body.code) if body.code else None
    attr = context.redacted(body.attr) if body.attr else None
    asked = response.headers.get("retry-after")
    retry_after = parse_retry_after(asked, now, response.headers.get("date"))
    if retry_after is None and status == 429:
        retry_after = _seconds_in(detail)
    words = f"{attr or ''} {detail or ''}".strip()
    is_passing = status in op.endpoint.passing_statuses and attr is None
    if is_passing:
        hint = PASSING_HINT
    elif status == 404 and not body.from_service:
        hint = FOREIGN_NOT_FOUND.filled(context.source)
    else:
        hint = _hint(op, response, context, words, retry_after)
    about = f" (field '{attr}')" if attr else ""
    reason = detail.rstrip(".") if detail else ""
    ends = [f"Response: {reason}."] if hint.cause and reason else []
    if asked and retry_after == MAX_WAIT:
        ends.append(f"Its Retry-After is '{context.redacted(asked)}'; {MAX_WAIT / 3600:g} hours of it count.")
    explanation = hint.cause or reason
    what = f"returned {status}{about}: {explanation}" if explanation else f"returned {status}{about} without details"
    error = request_error(
        _error_class(status),
        op,
        what,
        cure=hint.cure,
        end=" ".join(ends),
        problem=hint.problem,
        outcome=outcome_of_status(status),
        status=status,
        code=code,
        detail=detail,
        attr=attr,
        retryable=is_passing or status in TRY_LATER or (status >= 500 and status != 501),
        retry_after=retry_after,
        request_id=response.request_id,
    )
    error.from_service = body.from_service
    return error


def _error_class(status: int) -> type[WorkspaceStatusError]:
    known = ERRORS_BY_STATUS.get(status)
    if known is not None:
        return known
    if status >= 500:
        return WorkspaceServerError
    if 300 <= status < 400:
        return WorkspaceRedirectError
    return WorkspaceStatusError


def _seconds_in(detail: str | None) -> float | None:
    """Return the seconds that the text of a refusal names; ``None`` if it names none."""
    seconds = re.search(r"(\d{1,6}) ?s(?:ec|econds?)?\b", detail or "")
    return min(float(seconds.group(1)), MAX_WAIT) if seconds else None


class ErrorBody(NamedTuple):
    """
    What the body of an error says.

    :param from_service: whether it comes from the service, whose errors have a ``detail``
    """

    detail: str | None
    code: str | None = None
    attr: str | None = None
    from_service: bool = False


def _parse_error_body(body: bytes) -> ErrorBody:
    """
    Return what the body of an error says.

    The interface does not show the shape. It may be an object with ``detail``, ``code`` and ``attr`` (or ``message``,
    ``error``), an object with lists of messages per field, or plain text. Gateways send pages, nothing, or JSON of
    another shape; HTML is ignored.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        text = body[:MAX_ERROR_TEXT].decode("utf-8", "replace").strip()
        value = "" if text.startswith("<") else text
    from_service = isinstance(value, dict) and bool(value.get("detail"))
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return ErrorBody(value if isinstance(value, str) and value else None)
    return ErrorBody(_detail_of(value), _text_at(value, "code"), _text_at(value, "attr"), from_service)


def _detail_of(fields: dict[str, Any]) -> str | None:
    """Return what an object says about an error, as JSON if it is no text."""
    detail: object = None
    for name in ("detail", "message", "error", "errors"):
        if fields.get(name):
            detail = fields[name]
            break
    if detail is None and fields and "code" not in fields:
        detail = fields
    return detail if isinstance(detail, str | None) else json.dumps(detail)


def _text_at(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _missing_scope(op: Operation[Any], said: str) -> str:
    """Return the scope that a refusal names, else that of the operation."""
    named = re.search(r"scope\W+([a-z_]+:[a-z]+)", said)
    scope = named[1] if named else op.endpoint.scope
    return f"the scope {scope}" if scope else "a scope"


def _hint(
    op: Operation[Any], response: Response, context: RequestContext, said: str, retry_after: float | None
) -> Hint:
    """
    Return what a status means.

    :param said: field and detail of the error
    """
    status = response.status
    if status == 405 and op.endpoint.instead:
        return Hint(status, "", "", op.endpoint.instead)
    for hint in HINTS:
        if hint.status == status and hint.path in op.endpoint.path and re.search(hint.words, said, re.IGNORECASE):
            more = f" {CHECK_PATHS}" if status == 404 and op.is_moved else ""
            return hint._replace(cure=hint.cure + more).filled(context.source, _missing_scope(op, said))
    if status == 429:
        when = "later" if retry_after is None else f"in {retry_after:.0f} s"
        cure = f"Retry {when}, or limit concurrent tasks by an Airflow pool."
        return Hint(status, "", "rate limit exceeded", cure, problem="rate-limited")
    if 300 <= status < 400:
        return _redirect_hint(op, response, context)
    if status >= 500 or status == 408:
        cure = "If it keeps failing, check the status of the service."
        return Hint(status, "", "the service or a proxy failed", cure, problem="service-failed")
    return Hint(status, "", "", "")


def _redirect_hint(op: Operation[Any], response: Response, context: RequestContext) -> Hint:
    """Return the hint for a redirect that was not followed, or led to another one."""
    status = response.status
    location = response.headers.get("location")
    if not location or status == 304 or not _is_within(location, context.base_url):
        where = context.redacted(_redirect_target(location))
        cause = f"a redirect to {where}, which was not followed"
        cure = f"If that is the service, set it as host of {context.source}."
        return Hint(status, "", cause, cure, problem="not-the-service")
    path = context.redacted(urlsplit(urljoin(context.base_url, location)).path)
    cure = f"If the operation has moved, set its path in 'paths' in the extra of {context.source}."
    if op.endpoint.is_write and status not in (307, 308):
        cause = (
            f"a redirect to {path}, which was not followed: this status does not say whether to send the write again"
        )
        return Hint(status, "", cause, cure)
    if not op.keeps_ids(urlsplit(urljoin(context.base_url, location)).path):
        cause = f"a redirect to {path}, which was not followed: it has other ids"
        return Hint(status, "", cause, "Ask who runs the service: a redirect must keep the ids of a request.")
    return Hint(status, "", f"the service redirects again and again, at last to {path}", cure)


def _is_within(location: str, base_url: str) -> bool:
    """Return whether a redirect stays within the service."""
    try:
        return origin(urljoin(base_url, location)) == origin(base_url)
    except ValueError:
        return False


def origin(url: str) -> tuple[str, str | None, int | None]:
    """
    Return scheme, host and port of a URL.

    :raises ValueError: if the URL is invalid
    """
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or default


def _redirect_target(location: str | None) -> str:
    """Return the origin that a redirect leads to, without the parts of the URL that may contain secrets."""
    if not location:
        return "nowhere"
    try:
        parts = urlsplit(location)
        host = parts.hostname
        where = f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        return "an invalid URL"
    if not where:
        return "another path"
    return f"{parts.scheme}://{where}" if parts.scheme else where


def final_error(
    op: Operation[Any],
    error: WorkspaceRequestError,
    attempts: int,
    *,
    may_have_been_applied: bool,
    caller_looks_up: bool = False,
    unknown_class: type[WorkspaceOutcomeUnknownError] = WorkspaceOutcomeUnknownError,
) -> WorkspaceRequestError:
    """
    Return the error to raise after the last attempt.

    For a write that is not repeatable and has an unknown outcome, it says what to look for.

    :param error: error of the last attempt
    :param may_have_been_applied: whether any attempt may have been applied
    :param caller_looks_up: whether the caller looks for the effect before it sends again; only then a retry is safe
    :param unknown_class: class of the error if a retry could apply the write twice
    """
    error.attempts = attempts
    if isinstance(error, WorkspaceNotAppliedError) and op.endpoint.shows is None:
        error.retryable = False  # every attempt had this result
    if may_have_been_applied and error.outcome != Outcome.UNKNOWN.value and op.endpoint.is_write:
        error.outcome = Outcome.UNKNOWN.value
        error.args = (f"{error} An earlier attempt got no clear answer, so {error.operation} may have been applied.",)
    if error.outcome != Outcome.UNKNOWN.value or op.endpoint.repeatable:
        return error
    looks_up = caller_looks_up and op.endpoint.recover == "look-up"
    unknown = (WorkspaceOutcomeUnknownError if looks_up else unknown_class)(
        f"{type(op).__name__} may or may not have been applied, and was not sent again, because that could apply it "
        f"twice. {op.endpoint.look_for} {error}",
        operation=error.operation,
        outcome=error.outcome,
        retryable=False,
        request_id=error.request_id,
    )
    unknown.attempts = attempts
    unknown.caller_looks_up = looks_up
    return unknown
