"""Turn a response into a result or an error, accepting every shape that the interface leaves open."""

from __future__ import annotations

import json
import logging
from codecs import BOM_UTF8
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin
from urllib.parse import quote, urljoin, urlsplit

from pydantic import TypeAdapter, ValidationError

from airflow_provider_workspace.api import request_errors
from airflow_provider_workspace.api.comparison import (
    contradictions,
    describe_differences,
    describe_unshown,
    differences,
    reported_failures,
    unshown_of_record,
)
from airflow_provider_workspace.api.database_limits import storable
from airflow_provider_workspace.api.ids import CANONICAL_UUID
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.request_errors import origin

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_workspace.api.operation import Operation, RequestContext, Response

T = TypeVar("T")

log = logging.getLogger(__name__)

# Redirects after which the same request, with its method and body, is sent to the new URL.
KEEPS_METHOD = (307, 308)
REDIRECTS = (301, 302, 303, *KEEPS_METHOD)
_MARKUP = "an HTML or XML page"
# In a body whose texts PostgreSQL may not store as they are.
ESCAPED_NUL = rb"\u0000"
BACKSLASH = b"\\"


def parse_response(
    op: Operation[T],
    response: Response,
    context: RequestContext,
    now: datetime,
    *,
    may_have_been_applied: bool = False,
    caller_looks_up: bool = False,
    trust_counts: bool = True,
) -> T:
    """
    Turn a response into the result of the operation.

    :param now: current time with a time zone, for a ``Retry-After`` that is a date
    :param may_have_been_applied: whether an earlier attempt may have been applied; then a 404 to a DELETE is a success
    :param caller_looks_up: whether the caller looks up a create whose response is not the record
    :param trust_counts: whether to keep the count of a list
    :return: the result; for a PATCH with status 204 a record without fields
    :raises WorkspaceStatusError: for a status other than 2xx
    :raises WorkspaceResponseError: if the body of a 2xx response cannot be read
    :raises WorkspaceNotAppliedError: if the response to a change shows another value than was sent, or if the response
        to a change or remove reports a failure
    """
    if response.status == 204 and op.endpoint.method == "PATCH" and isinstance(op.endpoint.result, type):
        unsaid: T = op.endpoint.result()  # changed, and no word about the record
        return unsaid
    if 200 <= response.status < 300:
        unreadable = None
        result: T = cast("Any", None)
        try:
            result = decode(op.endpoint.result, response.body)
        except UnreadableResponseError as found:
            unreadable = str(found)
        if isinstance(result, list) and not op.endpoint.is_write:
            _refuse_page(op, response.body, len(result), trust_counts=trust_counts)
        if isinstance(result, Resource):
            unreadable = _foreign(op, result, caller_looks_up=caller_looks_up)
        if unreadable is not None:  # raised here, so that its traceback does not hold the body
            raise request_errors.unreadable_error(op, response, context, unreadable)
        other = _differences(op, result, response.body)
        if other and op.endpoint.effect != "create":
            raise request_errors.not_applied_error(op, response, context, describe_differences(other))
        if op.endpoint.effect == "create":
            _warn_of_create(op, result, other, context)
        if not trust_counts and isinstance(result, Page):
            result.count = None
        return result
    error = request_errors.status_error(op, response, context, now)
    done = error.code is not None and error.code == op.endpoint.already_done_code
    is_gone = response.status in (404, 410) and error.from_service
    gone = may_have_been_applied and op.endpoint.method == "DELETE" and is_gone
    if not done and not gone:
        raise error
    nothing: T = cast("Any", None)
    return nothing


def _warn_of_create(op: Operation[Any], result: object, other: list[dict[str, Any]], context: RequestContext) -> None:
    """Log the fields that a new record has otherwise, or does not show. Operators read a change back first."""
    if other:
        shown = context.redacted(describe_differences(other))
        log.warning("%s was applied with differences: %s", type(op).__name__, shown)
    hidden = unshown_of_record(op, result)
    if hidden:
        log.warning("%s", describe_unshown(op, hidden))


def _refuse_page(op: Operation[Any], body: bytes, shown: int, *, trust_counts: bool) -> None:
    """Refuse one page of more rows, where the operation declares a list."""
    page = json.loads(body) if body.strip() else None
    if isinstance(page, dict) and "results" in page:
        count = page.get("count")
        if page.get("next") or (trust_counts and isinstance(count, int) and count > shown):
            cure, what = "Declare the result as Page[X] in place of list[X].", f"returned {shown} of {count} rows"
            raise request_errors.incomplete_list_error(op, what, cure, retryable=False)


def _foreign(op: Operation[Any], result: Resource, *, caller_looks_up: bool) -> str | None:
    """Return what a 2xx response is if it is not the record that was created, read or changed; else ``None``."""
    effect = op.endpoint.effect
    if effect == "create" and not caller_looks_up and _is_foreign(result):
        return "JSON that is not the new record"
    must_show = op.endpoint.shows is None and bool(type(result).model_fields)
    if effect == "read" and must_show and (_is_foreign(result) or not result.model_fields_set):
        return "JSON that is not the record"
    if effect in ("read", "change") and _is_other(op, result):
        return "another record than that of the path"
    return None


def _is_foreign(result: Resource) -> bool:
    """Return whether a record has only unknown fields and no ``id``, such as ``{"error": "…"}``."""
    if not result.model_extra or result.model_extra.get("id") is not None:
        return False
    return result.model_fields_set <= result.model_extra.keys()


def _is_other(op: Operation[Any], result: Resource) -> bool:
    """Return whether a record has another id than the path, which ends with the id of its kind, in the same form."""
    kind = type(result).__name__.lower()
    if not op.endpoint.path.endswith(f"/{{{kind}_id}}/"):
        return False
    asked = op.path().rstrip("/").rpartition("/")[2]
    shown = str(getattr(result, "id", None))
    is_same_form = (asked.isdecimal() and shown.isdecimal()) or (
        CANONICAL_UUID.fullmatch(asked) is not None and CANONICAL_UUID.fullmatch(shown) is not None
    )
    return is_same_form and asked != shown


def _differences(op: Operation[Any], result: object, body: bytes) -> list[dict[str, Any]]:
    """Return what the 2xx response to a write shows otherwise than was asked for, or reports as a failure."""
    if op.endpoint.effect == "remove":
        return _failures_of_remove(body)
    if not isinstance(result, Resource):
        return []
    found = differences(op, result)
    if op.endpoint.effect == "change":
        found += contradictions(op, result, _object_in(body))
    return found


def _failures_of_remove(body: bytes) -> list[dict[str, Any]]:
    """Return the failures that the 2xx response to a remove reports; a record, or any other body, reports none."""
    fields = _object_in(body)
    return reported_failures(fields) if fields.get("id") is None else []


def _object_in(body: bytes) -> dict[str, Any]:
    """Return the object that a body is, also as an array of one; an empty one if it is something else."""
    try:
        value = _reshape(Resource, json.loads(body))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def follow(op: Operation[Any], response: Response, url: str) -> str | None:
    """
    Return the URL of a redirect to follow; ``None`` if it must not be followed.

    Redirects are followed only within the same origin, so that the API key goes nowhere else, and only to what the
    operation is about. Those of a write are followed only if they keep the method and body (307, 308).

    :param url: URL of the request
    """
    location = response.headers.get("location")
    followed = KEEPS_METHOD if op.endpoint.is_write else REDIRECTS
    if response.status not in followed or not location:
        return None
    try:
        target = urljoin(url, location)
        if origin(target) != origin(url) or not op.keeps_ids(urlsplit(target).path):
            return None
        return quote(target.partition("#")[0], safe="!$%&'()*+,-./:;=?@[]_~")
    except ValueError:
        return None


class UnreadableResponseError(ValueError):
    """The body cannot be read; the message says what it is instead."""


def decode(result_type: object, body: bytes) -> Any:
    """
    Parse the body of a 2xx response.

    :param result_type: ``None``, a resource, ``Resource | None``, ``list[Resource]`` or ``Page[Resource]``
    :param body: the body as received
    :return: an instance of ``result_type``
    :raises UnreadableResponseError: if the body is cut off, is not JSON, or has another shape
    """
    if result_type is None:
        if _is_markup(body):
            raise UnreadableResponseError(f"{_MARKUP} ({len(body)} bytes) where nothing or JSON was expected")
        return None
    if not body.strip():
        if get_origin(result_type) is list:
            return []
        if type(None) in get_args(result_type):
            return None
        raise UnreadableResponseError("an empty body where a record was expected")
    if BACKSLASH in body and ESCAPED_NUL in body:  # a single byte is found ten times as fast, and most have none
        return _repair(result_type, _parse_json(body))
    try:
        return _adapter(result_type).validate_json(body)
    except ValidationError as error:
        finding = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if "recursion limit" in finding["msg"]:
            raise UnreadableResponseError(f"JSON that is nested too deeply ({len(body)} bytes)") from None
        return _repair(result_type, _parse_json(body))


@cache
def _adapter(result_type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(result_type)


def _parse_json(body: bytes) -> Any:
    """
    Parse JSON.

    :raises UnreadableResponseError: if the body is not JSON
    """
    try:
        return storable(json.loads(body))
    except (ValueError, RecursionError):
        if _is_markup(body):
            kind = _MARKUP
        elif body.lstrip()[:1] in (b"{", b"["):
            kind = "JSON that is cut off or broken"
        else:
            kind = "something that is not JSON"
        raise UnreadableResponseError(f"{kind} ({len(body)} bytes)") from None


def _is_markup(body: bytes) -> bool:
    """Return whether a body is HTML or XML, such as from a proxy or a login page."""
    return body.removeprefix(BOM_UTF8).lstrip()[:1] == b"<"


def _repair(result_type: object, value: object) -> Any:
    """
    Convert a value to the expected shape, then read fields with unexpected types as null.

    A list may be an array, an envelope or a single object; an object may be an array of one.
    """
    value = _reshape(result_type, value)
    paths: set[tuple[int | str, ...]] = set()
    try:
        return _adapter(result_type).validate_python(value)
    except ValidationError as error:
        for finding in error.errors(include_url=False, include_context=False, include_input=False):
            path = _field_path(finding["loc"], value)
            if not path or not isinstance(path[-1], str):
                raise UnreadableResponseError(f"JSON of another shape ({finding['msg']})") from None
            paths.add(path)  # once, although each member of a union has a finding
    for path in sorted(paths, key=len, reverse=True):  # a field of a field that is dropped, too, goes before it
        _drop(value, path)
    for name in sorted({".".join(part for part in path if isinstance(part, str)) for path in paths}):
        log.warning("Field %s of the response has another type than in the interface; read as null", name)
    try:
        return _adapter(result_type).validate_python(value)
    except ValidationError:
        raise UnreadableResponseError("JSON of another shape") from None


def _reshape(result_type: object, value: object) -> Any:
    """Convert arrays, envelopes and single objects to the expected shape."""
    if isinstance(result_type, type) and issubclass(result_type, Page):
        if isinstance(value, list):
            return {"results": value}
        if isinstance(value, dict) and "results" not in value and "id" in value:
            return {"results": [value]}
        if isinstance(value, dict) and value.get("results", "") is None and value.get("count") == 0:
            return {**value, "results": []}
        if value == {} and result_type.__pydantic_generic_metadata__["args"][0].empty_list_as_object:
            return {"results": []}
        return value
    if get_origin(result_type) is list:
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            return value["results"]
        if isinstance(value, dict):
            return [value] if "id" in value else []
        return [] if value is None else value
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _field_path(loc: tuple[int | str, ...], value: Any) -> tuple[int | str, ...]:
    """Return the part of a location that exists in the value; pydantic adds the members of unions."""
    path: list[int | str] = []
    for part in loc:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(part)
    return tuple(path)


def _drop(value: Any, path: tuple[int | str, ...]) -> None:
    for part in path[:-1]:
        value = value[part]
    del value[path[-1]]
