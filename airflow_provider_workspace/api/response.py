"""From an answer to a result or an error, tolerant of every shape that the interface leaves open."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin
from urllib.parse import quote, urljoin, urlsplit

from pydantic import TypeAdapter, ValidationError

from airflow_provider_workspace.api.comparison import describe_differences, differences
from airflow_provider_workspace.api.models import Page
from airflow_provider_workspace.api.request_errors import not_applied_error, status_error, unreadable_error

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_workspace.api.operation import Operation, Response
    from airflow_provider_workspace.api.request_errors import RequestContext

T = TypeVar("T")

log = logging.getLogger(__name__)

_MARKUP = "an HTML or XML page"
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def parse_response(
    op: Operation[T],
    response: Response,
    context: RequestContext,
    now: datetime,
    *,
    may_have_been_applied: bool = False,
    trust_counts: bool = True,
) -> T:
    """
    Turn an answer into the result of the operation.

    :param now: the present with a time zone, for a ``Retry-After`` that is a date
    :param may_have_been_applied: an earlier attempt may have been applied: then a 404 to a DELETE means that it was
    :param trust_counts: whether the count of a list is read; without, nothing is known about how many rows there are
    :return: the result; of a change that is answered with 204 a record without any field
    :raises WorkspaceStatusError: for every status that is not a success
    :raises WorkspaceResponseError: for a success whose body cannot be read
    :raises WorkspaceNotAppliedError: for a change whose answer shows something else than was asked
    """
    if response.status == 204 and op.endpoint.method == "PATCH":
        unsaid: T = op.endpoint.answer()  # changed, and no word about the record
        return unsaid
    if 200 <= response.status < 300:
        unreadable = None
        result: T = cast("Any", None)
        try:
            result = decode(op.endpoint.answer, context.without_key(response.body))
        except UnreadableAnswerError as found:
            unreadable = str(found)
        if unreadable is not None:  # raised here, where the body does not hang on it
            raise unreadable_error(op, response, context, unreadable)
        other = describe_differences(differences(op, result))
        if other and op.endpoint.effect == "change":
            raise not_applied_error(op, response, context, other)
        if other:
            log.warning("%s was applied, but not as asked: %s", type(op).__name__, context.redacted(other))
        if not trust_counts and isinstance(result, Page):
            result.count = None
        return result
    error = status_error(op, response, context, now)
    done = error.code is not None and error.code == op.endpoint.already_done_code
    is_gone = response.status in (404, 410) and error.from_service
    gone = may_have_been_applied and op.endpoint.method == "DELETE" and is_gone
    if not done and not gone:
        raise error
    nothing: T = cast("Any", None)
    return nothing


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
        if origin(target) != origin(url):
            return None
        return quote(target.partition("#")[0], safe="!$%&'()*+,-./:;=?@[]_~")
    except ValueError:
        return None


def origin(url: str) -> tuple[str, str | None, int | None]:
    """
    Return scheme, host and port of a URL.

    :raises ValueError: if the URL is invalid
    """
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or default


class UnreadableAnswerError(ValueError):
    """The bytes are not what was expected; the message says what they are."""


def decode(answer: Any, body: bytes) -> Any:
    """
    Read the body of a 2xx answer.

    :param answer: ``None``, a resource, ``Resource | None``, ``list[Resource]`` or ``Page[Resource]``
    :param body: the body as received
    :return: an instance of ``answer``
    :raises UnreadableAnswerError: if the body is cut, is not JSON, or has not the expected shape
    """
    if answer is None:
        if _is_markup(body):
            msg = f"{_MARKUP} ({len(body)} bytes) where nothing or JSON was expected"
            raise UnreadableAnswerError(msg)
        return None
    if not body.strip():
        if get_origin(answer) is list:
            return []
        if type(None) in get_args(answer):
            return None
        msg = "an empty body where a record was expected"
        raise UnreadableAnswerError(msg)
    try:
        return _adapter(answer).validate_json(body)
    except ValidationError as error:
        finding = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if "recursion limit" in finding["msg"]:
            msg = f"JSON that is nested too deeply ({len(body)} bytes)"
            raise UnreadableAnswerError(msg) from None
        return _repair(answer, _parse_json(body))


def _adapter(answer: Any) -> TypeAdapter[Any]:
    """Return the validator of a type; each is built once, when it is first needed."""
    if answer not in _ADAPTERS:
        _ADAPTERS[answer] = TypeAdapter(answer)
    return _ADAPTERS[answer]


def _parse_json(body: bytes) -> Any:
    """Parse JSON, or say what the body is instead."""
    try:
        return _replace_surrogates(json.loads(body))
    except (ValueError, RecursionError):
        if _is_markup(body):
            kind = _MARKUP
        elif body.lstrip()[:1] in (b"{", b"["):
            kind = "JSON that is cut off or broken"
        else:
            kind = "something that is not JSON"
        msg = f"{kind} ({len(body)} bytes)"
        raise UnreadableAnswerError(msg) from None


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which cannot be encoded as UTF-8: neither for XCom nor for a log."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(item) for name, item in value.items()}
    return value


def _is_markup(body: bytes) -> bool:
    """Tell whether a body is a page for people, as proxies and logins answer in place of the service."""
    return body.lstrip()[:1] == b"<"


def _repair(answer: Any, value: Any) -> Any:
    """
    Fit another reasonable shape into the expected one, then read fields of unexpected types as null.

    A list may come as an array, an envelope or a single object; one object may come as an array of one.
    """
    value = _reshape(answer, value)
    fields: set[str] = set()
    try:
        return _adapter(answer).validate_python(value)
    except ValidationError as error:
        for finding in error.errors(include_url=False, include_context=False, include_input=False):
            path = _field_path(finding["loc"], value)
            if not path or not isinstance(path[-1], str):
                msg = f"JSON of another shape ({finding['msg']})"
                raise UnreadableAnswerError(msg) from None
            _drop(value, path)
            fields.add(".".join(part for part in path if isinstance(part, str)))
    for name in sorted(fields):
        log.warning("Field %s of the answer has another type than the interface says: read as null", name)
    try:
        return _adapter(answer).validate_python(value)
    except ValidationError:
        msg = "JSON of another shape"
        raise UnreadableAnswerError(msg) from None


def _reshape(answer: Any, value: Any) -> Any:
    """Bring arrays, envelopes and single objects into the one that is expected."""
    if isinstance(answer, type) and issubclass(answer, Page):
        if isinstance(value, list):
            return {"results": value}
        if isinstance(value, dict) and "results" not in value and "id" in value:
            return {"results": [value]}
        if isinstance(value, dict) and value.get("results", "") is None and value.get("count") == 0:
            return {**value, "results": []}
        if value == {} and answer.__pydantic_generic_metadata__["args"][0].empty_list_as_object:
            return {"results": []}
        return value
    if get_origin(answer) is list:
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            return value["results"]
        if isinstance(value, dict):
            return [value] if "id" in value else []
        return [] if value is None else value
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _field_path(loc: tuple[int | str, ...], value: Any) -> list[int | str]:
    """Return the part of a location that exists in the value: pydantic adds names of its own for unions."""
    path: list[int | str] = []
    for part in loc:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(part)
    return path


def _drop(value: Any, path: list[int | str]) -> None:
    """Take one field out, so that it is read as null and as not answered."""
    for part in path[:-1]:
        value = value[part]
    del value[path[-1]]
