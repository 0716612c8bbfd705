"""
Faults: the kinds, the injected faults, and the requests that they hit.

The handler of a kind returns a response, or uses the connection itself and returns None. The request takes effect only
in ``context.handle()``. ``--faults`` shows the first line of a handler's docstring.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.requests import Request
from starlette.responses import Response

from airflow_provider_workspace.sandbox.connection import RawConnection, reset
from airflow_provider_workspace.sandbox.request import PAGE_SIZE, parse_number
from airflow_provider_workspace.sandbox.responses import (
    ApiError,
    JsonObject,
    dumps,
    invalid,
    json_response,
    page_response,
    too_many_requests,
)
from airflow_provider_workspace.sandbox.routes import LISTS, OPERATIONS, WRITES
from airflow_provider_workspace.sandbox.state import State, format_time

CREATED_BY = {
    "list_dashboard_collaborators": "add_dashboard_collaborator",
    "list_domains": "create_domain",
    "list_invites": "create_invite",
    "list_members": "create_member",
    "list_projects": "create_project",
}
"""The operation in the audit that creates a row of each list."""
MAX_ROWS = 2**31

Count = Annotated[int, Field(ge=1)]
Times = Count | None
Seconds = Annotated[float, Field(ge=0, le=86_400)]
Status = Annotated[int, Field(ge=400, le=599, description="a status code from 400 to 599")]
Detail = Annotated[str, Field(description="detail in the JSON body")]


@dataclass(frozen=True)
class FaultContext:
    """A request that a fault hits."""

    request: Request
    operation: str
    """Name of the operation; empty for an unknown path."""
    body: Any
    """The JSON of the request; None if there is none."""
    hits: int
    """Requests that the fault has hit, including this one."""
    connection: RawConnection
    state: State
    apply_later: Callable[[float, Callable[[], object]], None]
    """Schedules a call after some seconds by the clock of the sandbox."""
    handler: Callable[[Request, bytes | None], Response]

    def handle(self, request: Request | None = None, body: object = None) -> Response:
        """Handle the request as without a fault; optionally another request, or with another body."""
        return self.handler(request or self.request, None if body is None else dumps(body).encode())


class FaultOptions(BaseModel):
    """The parameters of every fault."""

    model_config = ConfigDict(extra="forbid", strict=True)

    operation: str | None = None
    """Name or pattern of operations; None: all."""
    times: Times = 1
    """Requests to hit; None: no limit."""
    after: Annotated[int, Field(ge=0)] = 0
    """Matching requests to let pass first."""
    probability: Annotated[float, Field(gt=0, le=1)] = 1
    """The share of matching requests to hit."""
    seed: Annotated[int, Field(ge=0)] = Field(default_factory=lambda: random.SystemRandom().randrange(2**31))
    """The seed of the random choice, to repeat it."""


COMMON = tuple(FaultOptions.model_fields)


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault with the name of its handler."""

    handler: Callable[..., Coroutine[Any, Any, Response | None]]
    """Called with the context, and with its other parameters by name, each with a type and a default."""
    times: int | None = 1
    """Default number of requests to hit; None: no limit."""
    operations: tuple[str, ...] | None = None
    """The operations that it can hit; None: any request."""

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def about(self) -> str:
        return (self.handler.__doc__ or "").partition("\n")[0]

    @cached_property
    def options(self) -> type[FaultOptions]:
        """Its parameters: those of every fault, and those of the handler after the context."""
        parameters = list(inspect.signature(self.handler).parameters.values())[1:]
        fields: dict[str, Any] = {item.name: (item.annotation, item.default) for item in parameters}
        fields["times"] = (Times, self.times)
        return create_model(self.name, __base__=FaultOptions, __module__=self.handler.__module__, **fields)


# --- Handlers ---


async def reset_before(context: FaultContext) -> None:
    """Reset the connection after the request without applying it."""
    await context.connection.reset()


async def reset_after(context: FaultContext) -> None:
    """Apply the request, then reset the connection."""
    context.handle()
    await context.connection.reset()


async def time_out_before(context: FaultContext) -> None:
    """Send no response until the client disconnects, without applying the request."""
    await context.connection.keep_silent()


async def time_out_after(context: FaultContext) -> None:
    """Apply the request, then send no response until the client disconnects."""
    context.handle()
    await context.connection.keep_silent()


async def rate_limit(
    _context: FaultContext, seconds: Annotated[Seconds, Field(description="Retry-After in seconds")] = 1
) -> Response:
    """Return 429 without applying the request."""
    return too_many_requests(f"{seconds:g}").response()


async def status_before(
    _context: FaultContext, status: Status = 503, detail: Detail = "A server error occurred."
) -> Response:
    """Return an error status without applying the request."""
    return ApiError(status, "server_error", "error", detail).response()


async def status_after(
    context: FaultContext, status: Status = 503, detail: Detail = "A server error occurred."
) -> Response:
    """Apply the request, then return an error status."""
    context.handle()
    return await status_before(context, status, detail)


async def slow_effect(
    context: FaultContext,
    seconds: Annotated[Seconds, Field(description="delay until the request is applied")] = 8,
    answer: Literal["time_out", "reset", "504"] = "time_out",
) -> Response | None:
    """Lose the response, and apply the request some seconds later by the clock of the sandbox."""
    context.apply_later(seconds, context.handle)
    if answer == "504":
        return await status_before(context, 504)
    await (context.connection.reset() if answer == "reset" else context.connection.keep_silent())
    return None


async def late_rows(
    context: FaultContext, seconds: Annotated[Seconds, Field(description="lag of the list")] = 20
) -> Response:
    """Hide records that were created in the last seconds, by the clock of the sandbox, from a list and its count."""
    whole, rows = whole_list(context)
    since = format_time(context.state.now() - timedelta(seconds=seconds))
    created = context.state.created_since(CREATED_BY[context.operation], since)
    rows = [row for row in rows if not created & {str(row["id"]), row.get("user_uuid")}]
    # Accepting an invite creates a member without an API request.
    rows = [row for row in rows if row.get("joined_at", "") <= since]
    if whole.status_code != 200 or context.operation in LISTS:
        return list_page(context, whole, rows, len(rows))
    return json_response(rows)


def asking_for(request: Request, **query: int) -> Request:
    """Return a copy of the request with other query parameters."""
    query_string = urlencode({**request.query_params, **query}).encode()
    return Request({**request.scope, "query_string": query_string})


def page_asked_for(request: Request) -> tuple[int, int]:
    """Return the limit and offset of a request."""
    limit, offset = (parse_number(request.query_params.get(name, "")) or 0 for name in ("limit", "offset"))
    return limit or PAGE_SIZE, offset


def whole_list(context: FaultContext) -> tuple[Response, list[JsonObject]]:
    """Return the response with the whole list, and its rows; no rows if it is an error."""
    paged = context.operation in LISTS
    whole = context.handle(asking_for(context.request, limit=MAX_ROWS, offset=0) if paged else None)
    if whole.status_code != 200:
        return whole, []
    listed = json.loads(bytes(whole.body))
    return whole, listed if isinstance(listed, list) else listed.get("results", [listed])


def list_page(context: FaultContext, whole: Response, rows: list[JsonObject], count: int) -> Response:
    """Return the requested page of the rows, or the response if it is an error."""
    if whole.status_code != 200:
        return whole
    limit, offset = page_asked_for(context.request)
    url = str(context.request.url.replace(query=""))
    return page_response(url, limit, offset, count, map(dumps, rows[offset : offset + limit]))


KINDS = (
    FaultKind(reset_before),
    FaultKind(reset_after),
    FaultKind(time_out_before),
    FaultKind(time_out_after),
    FaultKind(rate_limit),
    FaultKind(status_before),
    FaultKind(status_after),
    FaultKind(slow_effect, operations=(*WRITES, "verify_domain")),
    FaultKind(late_rows, times=None, operations=tuple(CREATED_BY)),
)


# --- Injected faults ---


class Fault:
    """An injected fault."""

    def __init__(self, kind: FaultKind, options: FaultOptions) -> None:
        self.kind = kind
        self.options = options
        self.seen = 0
        """Matching requests so far."""
        self.hits = 0
        """Requests hit so far."""
        self._random = random.Random(options.seed)  # noqa: S311 -- no secret

    @property
    def parameters(self) -> JsonObject:
        return self.options.model_dump(exclude=set(COMMON))

    def is_for(self, operation: str | None) -> bool:
        """Return whether the fault matches a request; the operation of an unknown path is None."""
        if self.kind.operations is not None and operation not in self.kind.operations:
            return False
        return self.options.operation is None or fnmatchcase(operation or "", self.options.operation)

    def is_due(self) -> bool:
        """Count a matching request, and return whether to hit it."""
        self.seen += 1
        options = self.options
        if self.seen <= options.after or (options.times is not None and self.hits >= options.times):
            return False
        return self._random.random() < options.probability

    def describe(self) -> JsonObject:
        """Return the fault for control calls."""
        return {"kind": self.kind.name, **self.options.model_dump(), "seen": self.seen, "hits": self.hits}


class Faults:
    """
    The faults of a running sandbox.

    :param more_kinds: additional kinds
    """

    def __init__(self, more_kinds: Iterable[FaultKind] = ()) -> None:
        self.kinds = {kind.name: kind for kind in (*KINDS, *more_kinds)}
        self.held: set[asyncio.Transport] = set()
        """The connections that faults hold."""
        self.active: list[Fault] = []

    def inject(self, name: str, own: Iterable[str] = (), **options: object) -> Fault:
        """
        Inject a fault.

        :param name: kind of fault
        :param own: names of an author's own endpoints
        :raises ValueError: if a value is invalid
        """
        kind = self.kinds.get(name)
        if kind is None:
            raise invalid(f"Unknown fault {name!r}. Kinds are {', '.join(self.kinds)}.", "kind")
        try:
            checked = kind.options.model_validate(options)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            names = ", ".join(kind.options.model_fields)
            message = f"{name}: {first['loc'][0]} is not valid: {first['msg']}. Parameters are {names}."
            raise invalid(message, str(first["loc"][0])) from error
        known = (*OPERATIONS, *own) if kind.operations is None else kind.operations
        pattern = checked.operation
        if pattern is not None and not any(fnmatchcase(operation, pattern) for operation in known):
            message = f"Unknown operation {pattern!r} for {name}. Operations are {', '.join(known)}."
            raise invalid(message, "operation")
        fault = Fault(kind, checked)
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        """Remove all faults, and reset the connections that they hold."""
        self.active.clear()
        self.let_go()

    def let_go(self) -> None:
        """Reset the connections that faults hold."""
        for transport in list(self.held):
            reset(transport)

    def choose(self, operation: str | None) -> Fault | None:
        """Count a request, and return the fault that hits it: the oldest one that is due."""
        concerned = [fault for fault in self.active if fault.is_for(operation)]
        due = [fault for fault in concerned if fault.is_due()]
        if not due:
            return None
        due[0].hits += 1
        return due[0]
