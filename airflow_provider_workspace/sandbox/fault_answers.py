"""What faults send in place of an answer, or make of one."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from http import HTTPStatus

from starlette.responses import Response

from airflow_provider_workspace.sandbox.answers import answer

FAILURES = {
    "json": {"type": "server_error", "code": "error", "detail": "A server error occurred.", "attr": None},
    "empty": None,
    "html": None,
}
"""The body of a failure, by name."""


def failure(status: int, body: str) -> Response:
    """
    Answer that something went wrong.

    :param status: The status code.
    :param body: One of ``FAILURES``: ``json`` as the service itself answers, ``html`` as a proxy before it does.
    """
    if body == "json":
        return answer(FAILURES[body], status)
    return Response(html(f"{status} {_phrase(status)}") if body == "html" else b"", status, media_type="text/html")


def throttled(retry_after: str, seconds: float) -> Response:
    """
    Answer 429.

    :param retry_after: How the time to wait is told: ``seconds``, ``date``, ``nonsense`` or ``none``.
    :param seconds: The time to wait; a date is rounded up to whole seconds.
    """
    now = datetime.now(timezone.utc)
    told = {
        "seconds": f"{seconds:g}",
        # Rounded up twice: a date has no parts of a second, and now has.
        "date": format_datetime(now + timedelta(seconds=math.ceil(now.microsecond / 1e6 + seconds)), usegmt=True),
        "nonsense": "soon",
    }
    body = {"type": "throttled_error", "code": "throttled", "detail": "Request was throttled.", "attr": None}
    response = answer(body, 429)
    if retry_after in told:
        response.headers["Retry-After"] = told[retry_after]
    return response


def redirect(status: int, location: str) -> Response:
    """
    Answer with another address.

    :param status: The status code.
    :param location: The address, as it is to be sent.
    """
    return Response(b"", status, {"Location": location})


def with_body(response: Response, body: bytes, content_type: str) -> Response:
    """
    Return an answer with another body; a 204, which cannot have any, becomes a 200.

    :param response: The answer.
    :param body: The body.
    :param content_type: What it is said to be.
    """
    status = 200 if response.status_code == 204 and body else response.status_code
    kept = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
    return Response(body, status, kept, media_type=content_type)


def head(response: Response, length: int) -> bytes:
    """
    Write the lines before the body, as they go over the wire.

    :param response: The answer.
    :param length: The length of the body to declare, true or not.
    """
    kept = {name: value for name, value in response.headers.items() if name != "content-length"}
    lines = [f"HTTP/1.1 {response.status_code} {_phrase(response.status_code)}"]
    lines += [f"{name}: {value}" for name, value in kept.items()]
    lines += [f"content-length: {length}", "connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def html(title: str) -> bytes:
    """
    Write a page as a proxy would.

    :param title: What it says.
    """
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n".encode()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unassigned"
