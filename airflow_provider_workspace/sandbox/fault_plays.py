"""
What each fault does to a request that it hits.

A play either answers in the ordinary way, by returning a response, or deals with the connection itself and returns
None. ``exchange.handle()`` is the one place where the request takes effect. The first line of a docstring is what
``--help`` shows; the parameters are described in :mod:`airflow_provider_workspace.sandbox.fault_kinds`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request

from airflow_provider_workspace.sandbox import fault_answers
from airflow_provider_workspace.sandbox.answers import answer
from airflow_provider_workspace.sandbox.synthetic import large_page

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_workspace.sandbox.connection import Connection


@dataclass(frozen=True)
class Exchange:
    """A request that a fault has hit."""

    request: Request
    operation: str
    """Name of the operation, or nothing where the interface has none such."""
    connection: Connection
    handler: Callable[[Request], Response]
    take_down: Callable[[float], None]
    """Takes the sandbox down for some seconds."""

    def handle(self) -> Response:
        """Handle the request as if there were no fault."""
        return self.handler(self.request)


async def refuse(exchange: Exchange) -> None:
    """Close the connection at once, before the body is read."""
    await exchange.connection.close()


async def down(exchange: Exchange, seconds: float) -> None:
    """Reset all connections and refuse new ones for a while: the service is restarted."""
    exchange.take_down(seconds)
    await exchange.connection.reset()


async def reset_before(exchange: Exchange) -> None:
    """Read the request, then reset the connection; nothing was done."""
    await exchange.connection.reset()


async def reset_after(exchange: Exchange) -> None:
    """Do what was asked, then reset the connection."""
    exchange.handle()
    await exchange.connection.reset()


async def time_out_before(exchange: Exchange, seconds: float | None) -> None:
    """Keep silent until the client goes; nothing was done."""
    await exchange.connection.keep_silent(seconds)


async def time_out_after(exchange: Exchange, seconds: float | None) -> None:
    """Do what was asked, then keep silent until the client goes."""
    exchange.handle()
    await exchange.connection.keep_silent(seconds)


async def rate_limit(_exchange: Exchange, retry_after: str, seconds: float) -> Response:
    """Answer 429; nothing was done."""
    return fault_answers.throttled(retry_after, seconds)


async def status_before(_exchange: Exchange, status: int, body: str) -> Response:
    """Answer a failure; nothing was done."""
    return fault_answers.failure(status, body)


async def status_after(exchange: Exchange, status: int, body: str) -> Response:
    """Do what was asked, then answer a failure."""
    exchange.handle()
    return fault_answers.failure(status, body)


async def redirect(exchange: Exchange, status: int, location: str | None) -> Response:
    """Answer with another address; nothing was done."""
    return fault_answers.redirect(status, location or str(exchange.request.url))


async def empty_body(exchange: Exchange) -> Response:
    """Do what was asked, then answer without a body."""
    return fault_answers.with_body(exchange.handle(), b"", "application/json")


async def cut_body(exchange: Exchange) -> None:
    """Do what was asked, then close the connection after half of the body."""
    response = exchange.handle()
    body = bytes(response.body)
    await exchange.connection.close(fault_answers.head(response, max(1, len(body))) + body[: len(body) // 2])


async def invalid_json(exchange: Exchange) -> Response:
    """Do what was asked, then answer JSON that ends half-way, with a length that fits."""
    response = exchange.handle()
    body = bytes(response.body) or b"{}"
    return fault_answers.with_body(response, body[: len(body) // 2], "application/json")


async def html_body(exchange: Exchange) -> Response:
    """Do what was asked, then answer an HTML page with the status of success."""
    return fault_answers.with_body(exchange.handle(), fault_answers.html("Welcome"), "text/html")


async def wrong_content_type(exchange: Exchange, content_type: str) -> Response:
    """Do what was asked, and answer the right body under a wrong content type."""
    response = exchange.handle()
    return fault_answers.with_body(response, bytes(response.body), content_type)


async def slow_drip(exchange: Exchange, pause: float) -> None:
    """Do what was asked, then send the answer byte by byte."""
    response = exchange.handle()
    body = bytes(response.body)
    await exchange.connection.drip(fault_answers.head(response, len(body)) + body, pause)


async def next_elsewhere(exchange: Exchange, origin: str) -> Response:
    """Let the page of a list point to another origin for the next one."""
    address = f"{origin.rstrip('/')}{exchange.request.url.path}?limit=100&offset=100"
    return _with_next(exchange, lambda _following: address)


async def next_loop(exchange: Exchange) -> Response:
    """Let the page of a list point back to the first one."""
    address = str(exchange.request.url.include_query_params(offset=0))
    return _with_next(exchange, lambda _following: address)


async def next_relative(exchange: Exchange) -> Response:
    """Let the page of a list point to the next one without scheme and host."""
    origin = str(exchange.request.base_url).rstrip("/")
    return _with_next(exchange, lambda following: following and following.removeprefix(origin))


async def repeated_rows(exchange: Exchange, rows: int) -> Response:
    """Begin a page, other than the first, with the last rows of the page before."""
    return exchange.handler(_moved(exchange.request, -rows))


async def missing_rows(exchange: Exchange, rows: int) -> Response:
    """Leave out the first rows of a page other than the first."""
    return exchange.handler(_moved(exchange.request, rows))


async def late_rows(exchange: Exchange, rows: int) -> Response:
    """Leave the newest rows out of a list and its count, as where lists lag behind."""
    response = exchange.handle()
    if response.status_code != 200:
        return response
    page = json.loads(bytes(response.body))
    shown = page["results"] if page["next"] else page["results"][:-rows]
    return answer(page | {"count": max(0, page["count"] - rows), "results": shown})


async def large_list(exchange: Exchange, rows: int) -> Response:
    """Answer pages of a large list that is made up while it is sent."""
    response = exchange.handle()
    return response if response.status_code != 200 else large_page(exchange.request, exchange.operation, rows)


def _with_next(exchange: Exchange, change: Callable[[Any], Any]) -> Response:
    response = exchange.handle()
    if response.status_code != 200:
        return response
    page = json.loads(bytes(response.body))
    return answer(page | {"next": change(page["next"])})


def _moved(request: Request, rows: int) -> Request:
    """Return the request with an offset that is off by some rows; the link to the next page then goes on from there."""
    query = dict(request.query_params)
    query["offset"] = str(max(0, int(query["offset"]) + rows))
    return Request({**request.scope, "query_string": urlencode(query).encode()})
