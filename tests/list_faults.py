"""
Kinds of faults that only this repository's tests use; most are of lists, for clients that read them page by page.

A sandbox knows them if it is started with ``SandboxServer(fault_kinds=LIST_FAULTS)``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.sandbox.faults import (
    FaultContext,
    FaultKind,
    Parameter,
    asking_for,
    is_count,
    is_header,
    page_asked_for,
    with_body,
)
from airflow_provider_workspace.sandbox.responses import dumps, json_response, page_response
from airflow_provider_workspace.sandbox.routes import LISTS

if TYPE_CHECKING:
    from starlette.responses import Response


async def wrong_content_type(context: FaultContext, content_type: str) -> Response:
    """Do what was asked, and answer the right body under a wrong content type."""
    response = context.handle()
    return with_body(response, bytes(response.body), content_type)


async def next_elsewhere(context: FaultContext, origin: str) -> Response:
    """Let the page of a list point to another origin for the next one."""
    address = f"{origin.rstrip('/')}{context.request.url.path}?limit=100&offset=100"
    return with_next(context, lambda _following: address)


async def next_loop(context: FaultContext) -> Response:
    """Let the page of a list point back to the first one."""
    address = str(context.request.url.include_query_params(offset=0))
    return with_next(context, lambda _following: address)


async def next_relative(context: FaultContext) -> Response:
    """Let the page of a list point to the next one without scheme and host."""
    origin = str(context.request.base_url).rstrip("/")
    return with_next(context, lambda following: following and following.removeprefix(origin))


async def large_list(context: FaultContext, rows: int) -> Response:
    """Answer pages of a large list whose rows are copies of the first row, with ids and addresses of their own."""
    limit, offset = page_asked_for(context.request)
    first = context.handle(asking_for(context.request, limit=1, offset=0))
    if first.status_code != 200:
        return first
    (row,) = json.loads(bytes(first.body))["results"]
    texts = (dumps(numbered(row, offset + index + 1)) for index in range(min(limit, max(0, rows - offset))))
    return page_response(str(context.request.url.replace(query="")), limit, offset, rows, texts)


def numbered(row: dict[str, Any], index: int) -> dict[str, Any]:
    """Return the row of a large list at an index, which is the same each time."""
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


def with_next(context: FaultContext, change: Callable[[Any], Any]) -> Response:
    """Answer a page with another link to the next one."""
    response = context.handle()
    if response.status_code != 200:
        return response
    page = json.loads(bytes(response.body))
    return json_response(page | {"next": change(page["next"])})


LIST_FAULTS = (
    FaultKind(wrong_content_type, (Parameter("content_type", "text/plain", "what to send instead", is_header),)),
    FaultKind(
        next_elsewhere,
        (Parameter("origin", "http://elsewhere.invalid", "scheme and host of the next page", is_header),),
        operations=LISTS,
    ),
    FaultKind(next_loop, operations=LISTS),
    FaultKind(next_relative, operations=LISTS),
    FaultKind(
        large_list,
        (Parameter("rows", 100_000, "how many rows the list has", is_count),),
        times=None,
        operations=LISTS,
    ),
)
