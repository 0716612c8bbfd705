"""
Sandbox faults that only these tests use: unreadable bodies, redirects, wrong pages, untrue responses.

``SandboxServer(fault_kinds=TEST_FAULTS)`` enables them.
"""

from __future__ import annotations

import asyncio
import json
import unicodedata
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import Response

from airflow_provider_workspace.sandbox.faults import (
    FaultContext,
    FaultKind,
    asking_for,
    list_page,
    page_asked_for,
    whole_list,
)
from airflow_provider_workspace.sandbox.responses import ApiError, dumps, json_response, page_response
from airflow_provider_workspace.sandbox.routes import LISTS, WRITES

# The fields that identify a record.
NAMING_FIELDS = ("name", "domain", "target_email", "user_uuid")
MAX_NORMALIZED = 60
Rows = Annotated[int, Field(ge=1, description="number of rows")]
HTML = b"<html><head><title>Welcome</title></head><body><h1>Welcome</h1></body></html>\n"


async def refuse(context: FaultContext) -> None:
    """Close the connection, without applying the request."""
    await context.connection.close()


async def odd_body(context: FaultContext, body: Literal["empty", "half", "html"] = "empty") -> Response:
    """Apply the request, then send no body, half of its JSON with the matching length, or an HTML page."""
    response = context.handle()
    if body == "html":
        return with_body(response, HTML, "text/html")
    whole = bytes(response.body) or b"{}"
    return with_body(response, whole[: len(whole) // 2] if body == "half" else b"", "application/json")


async def cut_body(context: FaultContext) -> None:
    """Apply the request, then close the connection after half of the body."""
    response = context.handle()
    body = bytes(response.body)
    await context.connection.close(head_of(response, max(1, len(body))) + body[: len(body) // 2])


async def proxy_error(
    _context: FaultContext, status: int = 502, body: Literal["html", "empty", "json"] = "html"
) -> Response:
    """Return an error status as something in front of the service does, without applying the request."""
    if body == "json":
        return ApiError(status, "server_error", "error", "A server error occurred.").response()
    return Response(HTML if body == "html" else b"", status, media_type="text/html")


async def odd_rate_limit(_context: FaultContext, retry_after: Literal["date", "nonsense", "none"] = "none") -> Response:
    """Return 429 with a Retry-After that is a date, is unreadable, or is missing, without applying the request."""
    # In one to two seconds, because an HTTP date has no fractions of a second.
    date = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=2), usegmt=True)
    waits = {"date": {"Retry-After": date}, "nonsense": {"Retry-After": "soon"}, "none": {}}
    return Response(b"{}", 429, waits[retry_after], media_type="application/json")


async def slow_drip(context: FaultContext, pause: float = 0.05) -> None:
    """Apply the request, then send the response byte by byte."""
    response = context.handle()
    body = bytes(response.body)
    for byte in head_of(response, len(body)) + body:
        if context.connection.transport.is_closing():
            break
        context.connection.transport.write(bytes((byte,)))
        await asyncio.sleep(pause)
    await context.connection.close()


async def redirect(context: FaultContext, status: int = 307, location: str | None = None) -> Response:
    """Redirect to another URL, or to the same one, without applying the request."""
    return Response(b"", status, {"Location": location or str(context.request.url)})


async def wrong_content_type(context: FaultContext, content_type: str = "text/plain") -> Response:
    """Apply the request, and send the right body with a wrong content type."""
    response = context.handle()
    return with_body(response, bytes(response.body), content_type)


async def odd_next(
    context: FaultContext,
    to: Literal["elsewhere", "first page", "relative"] = "elsewhere",
    origin: str = "http://elsewhere.invalid",
) -> Response:
    """Set the ``next`` link of a page to another origin or to the first page, or leave out scheme and host."""
    response = context.handle()
    if response.status_code != 200:
        return response
    page = json.loads(bytes(response.body))
    if to == "elsewhere":
        page["next"] = f"{origin.rstrip('/')}{context.request.url.path}?limit=100&offset=100"
    elif to == "first page":
        page["next"] = str(context.request.url.include_query_params(offset=0))
    elif page["next"]:
        page["next"] = page["next"].removeprefix(str(context.request.base_url).rstrip("/"))
    return json_response(page)


async def say(context: FaultContext, body: Any = None, status: int = 200, rows: int | None = None) -> Response:
    """Respond with this JSON and status; apply the request, or only so many rows of a bulk request."""
    if rows is None:
        context.handle()
    elif rows:
        context.handle(body=context.body[:rows])
    return json_response(body, status)


async def refuse_address(
    context: FaultContext, *, email: str = "", status: int = 400, names_row: bool = False
) -> Response:
    """Refuse each bulk request with this address, or one of several with spaces between them, as a whole."""
    refused = email.split()
    numbers = [number for number, row in enumerate(context.body) if row["target_email"] in refused]
    if not numbers:
        return context.handle()
    attr = f"{numbers[0]}__target_email" if names_row else None
    return json_response({"detail": "no such mailbox", "attr": attr}, status)


async def large_list(context: FaultContext, rows: int = 100_000) -> Response:
    """Respond with pages of a large list. Its rows copy the first row, with different ids and addresses."""
    limit, offset = page_asked_for(context.request)
    first = context.handle(asking_for(context.request, limit=1, offset=0))
    if first.status_code != 200:
        return first
    (row,) = json.loads(bytes(first.body))["results"]
    texts = (dumps(numbered(row, offset + index + 1)) for index in range(min(limit, max(0, rows - offset))))
    return page_response(str(context.request.url.replace(query="")), limit, offset, rows, texts)


async def short_pages(
    context: FaultContext, missing: Literal["rest", "last", "newest"] = "rest", rows: Rows = 1
) -> Response:
    """Omit rows of a list but count them: those after this page, the last ones of this page, or the newest ones."""
    whole, listed = whole_list(context)
    response = list_page(context, whole, listed[:-rows] if missing == "newest" else listed, len(listed))
    if response.status_code != 200 or missing == "newest":
        return response
    page = json.loads(bytes(response.body))
    return json_response(page | ({"next": None} if missing == "rest" else {"results": page["results"][:-rows]}))


async def moving_rows(context: FaultContext, rows: Rows = 1) -> Response:
    """Move more rows from the end of a list to its start with each page, so that some repeat and others are missing."""
    whole, listed = whole_list(context)
    split = len(listed) - context.hits * rows % max(1, len(listed))
    return list_page(context, whole, listed[split:] + listed[:split], len(listed))


async def said_otherwise(
    context: FaultContext, how: Literal["not_done", "other_answer", "normalized"] = "not_done", rows: Rows = 2
) -> Response:
    """Return success, but apply the request partly or differently, or return other values."""
    body, operation = context.body, context.operation
    if how == "normalized":
        return context.handle(body=normalized(body))
    if how == "other_answer":
        response = context.handle()
        answer = json.loads(bytes(response.body)) if response.status_code < 300 and response.body else None
        if isinstance(answer, list):
            return json_response(answer[:-rows], response.status_code)
        if isinstance(answer, dict):
            asked = body.keys() & answer.keys() if isinstance(body, dict) and "paused" not in answer else {"paused"}
            return json_response(answer | {name: other(answer[name]) for name in asked}, response.status_code)
        return response
    if operation in ("pause_batch_export", "unpause_batch_export"):
        return json_response({"paused": operation == "unpause_batch_export"})
    if operation.startswith(("delete_", "remove_")):
        return Response(status_code=204)
    if isinstance(body, list):
        return context.handle(body=body[:-rows])
    kept = () if operation.startswith("update_") else NAMING_FIELDS
    return context.handle(body={name: value for name, value in (body or {}).items() if name in kept})


def numbered(row: dict[str, Any], index: int) -> dict[str, Any]:
    """Return the row of a large list at an index."""
    uuid = f"0190c0de-0000-4000-8002-{index:012x}"
    own: dict[str, Any] = {"id": index if isinstance(row["id"], int) else uuid}
    if "uuid" in row:
        own["uuid"] = uuid
    if "user" in row:
        own["user"] = row["user"] | {"id": index, "uuid": uuid, "email": f"sam.sample.{index}@example.com"}
    if "target_email" in row:
        own["target_email"] = f"invited.{index}@example.com"
    if "domain" in row:
        own["domain"] = f"domain-{index}.example.org"
    return row | own


def with_body(response: Response, body: bytes, content_type: str) -> Response:
    """Return a response with another body; a 204 becomes a 200, because it cannot have a body."""
    status = 200 if response.status_code == 204 and body else response.status_code
    kept = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
    return Response(body, status, kept, media_type=content_type)


def head_of(response: Response, length: int) -> bytes:
    """Return the status line and headers with this Content-Length, true or not."""
    lines = [f"HTTP/1.1 {response.status_code} {HTTPStatus(response.status_code).phrase}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items() if name != "content-length"]
    lines += [f"content-length: {length}", "connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def normalized(value: Any) -> Any:
    """Normalize texts as a service may store them: Unicode NFC, single spaces, a maximum length."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).split())[:MAX_NORMALIZED]
    if isinstance(value, list):
        return [normalized(item) for item in value]
    return {name: normalized(item) for name, item in value.items()} if isinstance(value, dict) else value


def other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value} too" if isinstance(value, str) else None


TEST_FAULTS = (
    FaultKind(refuse),
    FaultKind(odd_body),
    FaultKind(cut_body),
    FaultKind(proxy_error),
    FaultKind(odd_rate_limit),
    FaultKind(slow_drip),
    FaultKind(redirect),
    FaultKind(wrong_content_type),
    FaultKind(odd_next, operations=LISTS),
    FaultKind(short_pages, operations=LISTS),
    FaultKind(moving_rows, times=None, operations=LISTS),
    FaultKind(said_otherwise, operations=WRITES),
    FaultKind(say),
    FaultKind(refuse_address, times=None, operations=("create_invites",)),
    FaultKind(large_list, times=None, operations=LISTS),
)
