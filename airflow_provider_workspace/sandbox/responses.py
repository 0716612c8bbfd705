"""Responses: JSON, a page of a list, an empty body, or an error."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

JsonObject = dict[str, Any]

_ENCODER = json.JSONEncoder(separators=(",", ":"))


def dumps(value: object) -> str:
    """Serialize JSON without blanks."""
    return _ENCODER.encode(value)


def json_response(value: object, status: int = 200) -> Response:
    return Response(dumps(value), status, media_type="application/json")


def to_response(result: object, status: int) -> Response:
    """Build the response for the result of a handler: a JSON value, None for an empty body, or a response."""
    if isinstance(result, Response):
        return result
    return Response(status_code=status) if result is None else json_response(result, status)


def page_response(url: str, limit: int, offset: int, count: int, records: Iterable[str]) -> Response:
    """
    Build a page of a list with ``next`` and ``previous`` links.

    :param url: absolute URL of the list without a query
    :param records: records of the page as JSON text
    """

    def page_url(start: int) -> str:
        return f"{url}?{urlencode({'limit': limit, 'offset': start})}"

    following = page_url(offset + limit) if offset + limit < count else None
    previous = page_url(max(0, offset - limit)) if offset > 0 else None
    head = f'{{"count":{count},"next":{dumps(following)},"previous":{dumps(previous)},"results":['
    return Response(head + ",".join(records) + "]}", media_type="application/json")


def cursor_page_response(url: str, query: Mapping[str, str], limit: int, start: int, records: list[str]) -> Response:
    """
    Build a page of a list with an opaque cursor in its links, and without a count.

    :param url: absolute URL of the list without a query
    :param query: query of the request, which the links keep
    :param start: number of the first record of the page
    :param records: all records as JSON text
    """

    def page_url(first: int) -> str:
        cursor = base64.urlsafe_b64encode(f"row={first}".encode()).decode()
        return f"{url}?{urlencode({**query, 'cursor': cursor})}"

    end = start + limit
    following = page_url(end) if end < len(records) else None
    previous = page_url(max(0, start - limit)) if start > 0 else None
    head = f'{{"next":{dumps(following)},"previous":{dumps(previous)},"results":['
    return Response(head + ",".join(records[start:end]) + "]}", media_type="application/json")


class ApiError(ValueError):
    """A refused request with its error body; its transaction is rolled back. In Python it is a ``ValueError``."""

    def __init__(
        self,
        status: int,
        kind: str,
        code: str,
        detail: str,
        attr: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers
        self.body = {"type": kind, "code": code, "detail": detail, "attr": attr}

    def __reduce__(self) -> tuple[type[ApiError], tuple[object, ...], dict[str, Any]]:
        """Let it be pickled and copied."""
        body = self.body
        arguments = (self.status, body["type"], body["code"], body["detail"], body["attr"], self.headers)
        return type(self), arguments, self.__dict__

    def response(self) -> Response:
        return Response(dumps(self.body), self.status, self.headers, media_type="application/json")


def invalid(detail: str, attr: str | None = None, code: str = "invalid_input") -> ApiError:
    """Build a 400 for an invalid request."""
    return ApiError(400, "validation_error", code, detail, attr)


def forbidden(detail: str) -> ApiError:
    """Build a 403 for a caller without permission."""
    return ApiError(403, "authentication_error", "permission_denied", detail)


def not_found() -> ApiError:
    """Build a 404 for what does not exist or is not visible to the key."""
    return ApiError(404, "invalid_request", "not_found", "Not found.")


def too_many_requests(retry_after: str) -> ApiError:
    """Build a 429; ``Retry-After`` is in seconds."""
    detail = f"Request was throttled. Expected available in {retry_after} seconds."
    return ApiError(429, "throttled_error", "throttled", detail, headers={"Retry-After": retry_after})
