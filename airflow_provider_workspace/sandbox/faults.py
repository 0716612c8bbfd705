"""
Faults: what each kind does to a request that it hits, which faults are switched on, and which requests they hit.

A handler either answers in the ordinary way, by returning a response, or deals with the connection itself and returns
None. ``context.handle()`` is the one place where the request takes effect. The first line of a handler's docstring is
what ``--faults`` shows.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import unicodedata
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from airflow_provider_workspace.sandbox.connection import RawConnection, reset
from airflow_provider_workspace.sandbox.request import PAGE_SIZE, parse_number
from airflow_provider_workspace.sandbox.responses import JsonObject, dumps, invalid, json_response, page_response
from airflow_provider_workspace.sandbox.routes import LISTS, OPERATIONS, WRITES
from airflow_provider_workspace.sandbox.state import State, format_time

COMMON = ("operation", "times", "after", "probability", "seed")
"""The parameters of every fault."""
CREATED_BY = {
    "list_dashboard_collaborators": "add_dashboard_collaborator",
    "list_domains": "create_domain",
    "list_invites": "create_invite",
    "list_members": "create_member",
    "list_projects": "create_project",
}
"""The lists, and what the audit calls a new row of each."""
NAMING_FIELDS = ("name", "domain", "target_email", "user_uuid")
"""The fields of a create that say what it is about."""
MAX_ROWS = 2**31
MAX_NORMALIZED = 60
FAILURE = "A server error occurred."


@dataclass(frozen=True)
class FaultContext:
    """A request that a fault has hit."""

    request: Request
    operation: str
    """Name of the operation, or nothing where the interface has none such."""
    body: Any
    """The JSON of the request, None where there is none."""
    hits: int
    """How many requests the fault has hit, this one included."""
    connection: RawConnection
    state: State
    handler: Callable[[Request, bytes | None], Response]
    take_down: Callable[[float], None]
    """Takes the sandbox down for some seconds."""
    apply_later: Callable[[float, Callable[[], object]], None]
    """Calls something so many seconds later, by the clock of the sandbox."""

    def handle(self, request: Request | None = None, body: object = None) -> Response:
        """Handle the request, or another one in its place, or with another body, as if there were no fault."""
        return self.handler(request or self.request, None if body is None else dumps(body).encode())


@dataclass(frozen=True)
class Parameter:
    """Something to choose about a kind of fault."""

    name: str
    default: Any
    about: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault, which has the name of its handler."""

    handler: Callable[..., Coroutine[Any, Any, Response | None]]
    """Gets the context, and each parameter by name."""
    parameters: tuple[Parameter, ...] = ()
    times: int | None = 1
    """How many requests it hits by default; None: for ever."""
    reads_body: bool = True
    operations: tuple[str, ...] | None = None
    """The operations that it can hit; None: any request."""

    @property
    def name(self) -> str:
        """The name."""
        return self.handler.__name__

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return (self.handler.__doc__ or "").partition("\n")[0]


# --- What each kind does ---


async def down(context: FaultContext, seconds: float) -> None:
    """Reset all connections and refuse new ones for a while: the service is restarted."""
    context.take_down(seconds)
    await context.connection.reset()


async def reset_before(context: FaultContext) -> None:
    """Read the request, then reset the connection; nothing was done."""
    await context.connection.reset()


async def reset_after(context: FaultContext) -> None:
    """Do what was asked, then reset the connection."""
    context.handle()
    await context.connection.reset()


async def time_out_before(context: FaultContext, seconds: float | None) -> None:
    """Keep silent until the client goes; nothing was done."""
    await context.connection.keep_silent(seconds)


async def time_out_after(context: FaultContext, seconds: float | None) -> None:
    """Do what was asked, then keep silent until the client goes."""
    context.handle()
    await context.connection.keep_silent(seconds)


async def rate_limit(_context: FaultContext, retry_after: str, seconds: float) -> Response:
    """Answer 429; nothing was done."""
    body = {"type": "throttled_error", "code": "throttled", "detail": "Request was throttled.", "attr": None}
    response = json_response(body, 429)
    now = datetime.now(timezone.utc)
    # Rounded up twice: a date has no parts of a second, and now has.
    date = now + timedelta(seconds=math.ceil(now.microsecond / 1e6 + seconds))
    headers = {"seconds": f"{seconds:g}", "date": format_datetime(date, usegmt=True), "nonsense": "soon"}
    if retry_after in headers:
        response.headers["Retry-After"] = headers[retry_after]
    return response


async def status_before(_context: FaultContext, status: int, body: str, detail: str) -> Response:
    """Answer a failure; nothing was done."""
    return _failure(status, body, detail)


async def status_after(context: FaultContext, status: int, body: str, detail: str) -> Response:
    """Do what was asked, then answer a failure."""
    context.handle()
    return _failure(status, body, detail)


async def scheduler_error(_context: FaultContext) -> Response:
    """Refuse to pause or unpause an export with 400, as where the scheduler fails for a while; nothing was done."""
    return invalid("Invalid request to unpause a BatchExport could not be carried out").response()


async def slow_effect(context: FaultContext, seconds: float, answer: str) -> Response | None:
    """Lose the answer, and do what was asked some seconds later, by the clock of the sandbox."""
    if answer == "time_out":
        await context.connection.keep_silent(None)
    context.apply_later(seconds, context.handle)
    if answer == "504":
        return _failure(504)
    if answer == "reset":
        await context.connection.reset()
    return None


async def late_rows(context: FaultContext, seconds: float) -> Response:
    """Leave what was created in the last seconds, by the clock of the sandbox, out of a list and its count."""
    whole, rows = _whole_list(context)
    since = format_time(context.state.now() - timedelta(seconds=seconds))
    created = context.state.created_since(CREATED_BY[context.operation], since)
    rows = [row for row in rows if not created & {str(row["id"]), row.get("user_uuid")}]
    # Whoever accepts an invite becomes a member without a request of the interface.
    rows = [row for row in rows if row.get("joined_at", "") <= since]
    if whole.status_code != 200 or context.operation in LISTS:
        return _page(context, whole, rows, len(rows))
    return json_response(rows)


async def short_pages(context: FaultContext, missing: str, rows: int) -> Response:
    """Leave rows out of a list whose count is right: after this page, the last ones of it, or the newest for good."""
    whole, listed = _whole_list(context)
    response = _page(context, whole, listed[:-rows] if missing == "newest" else listed, len(listed))
    if response.status_code != 200 or missing == "newest":
        return response
    page = json.loads(bytes(response.body))
    return json_response(page | ({"next": None} if missing == "rest" else {"results": page["results"][:-rows]}))


async def moving_rows(context: FaultContext, rows: int) -> Response:
    """Move the last rows of a list to its start, more of them with each page: some come twice, others never."""
    whole, listed = _whole_list(context)
    split = len(listed) - context.hits * rows % max(1, len(listed))
    return _page(context, whole, listed[split:] + listed[:split], len(listed))


async def said_otherwise(context: FaultContext, how: str, rows: int) -> Response:
    """Answer success, but do only a part of what was asked, or something else, or say something else."""
    body, operation = context.body, context.operation
    if how == "normalized":
        return context.handle(body=_normalized(body))
    if how == "other_answer":
        response = context.handle()
        answer = json.loads(bytes(response.body)) if response.status_code < 300 and response.body else None
        if isinstance(answer, list):
            return json_response(answer[:-rows], response.status_code)
        if isinstance(answer, dict):
            asked = body.keys() & answer.keys() if isinstance(body, dict) and "paused" not in answer else {"paused"}
            return json_response(answer | {name: _other(answer[name]) for name in asked}, response.status_code)
        return response
    if operation in ("pause_batch_export", "unpause_batch_export"):
        return json_response({"paused": operation == "unpause_batch_export"})
    if operation.startswith(("delete_", "remove_")):
        return Response(status_code=204)
    if isinstance(body, list):
        return context.handle(body=body[:-rows])
    kept = () if operation.startswith("update_") else NAMING_FIELDS
    return context.handle(body={name: value for name, value in (body or {}).items() if name in kept})


def asking_for(request: Request, **query: int) -> Request:
    """Return the request with other values in its query."""
    query_string = urlencode({**request.query_params, **query}).encode()
    return Request({**request.scope, "query_string": query_string})


def page_asked_for(request: Request) -> tuple[int, int]:
    """Return limit and offset of a request for a page."""
    limit, offset = (parse_number(request.query_params.get(name, "")) or 0 for name in ("limit", "offset"))
    return limit or PAGE_SIZE, offset


def _whole_list(context: FaultContext) -> tuple[Response, list[JsonObject]]:
    """Read a list without its pages; return the answer, and its rows if it is none of an error."""
    paged = context.operation in LISTS
    whole = context.handle(asking_for(context.request, limit=MAX_ROWS, offset=0) if paged else None)
    if whole.status_code != 200:
        return whole, []
    listed = json.loads(bytes(whole.body))
    return whole, listed if isinstance(listed, list) else listed.get("results", [listed])


def _page(context: FaultContext, whole: Response, rows: list[JsonObject], count: int) -> Response:
    """Answer the page that was asked for, of these rows, or the error that the whole list was answered with."""
    if whole.status_code != 200:
        return whole
    limit, offset = page_asked_for(context.request)
    url = str(context.request.url.replace(query=""))
    return page_response(url, limit, offset, count, map(dumps, rows[offset : offset + limit]))


def _normalized(value: Any) -> Any:
    """Write texts as a service may store them: composed Unicode, single blanks, up to so many characters."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).split())[:MAX_NORMALIZED]
    if isinstance(value, list):
        return [_normalized(item) for item in value]
    return {name: _normalized(item) for name, item in value.items()} if isinstance(value, dict) else value


def _other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value} too" if isinstance(value, str) else None


def _failure(status: int, body: str = "json", detail: str = FAILURE) -> Response:
    if body == "json":
        failure = {"type": "server_error", "code": "error", "detail": detail, "attr": None}
        return json_response(failure, status)
    return Response(_html(f"{status} {_phrase(status)}") if body == "html" else b"", status, media_type="text/html")


def _html(title: str) -> bytes:
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n".encode()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unassigned"


# --- The kinds ---


def is_count(value: Any) -> bool:
    """Tell whether a value is a positive integer."""
    return type(value) is int and value > 0


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 86_400


def _is_seconds_or_none(value: Any) -> bool:
    return value is None or _is_seconds(value)


def _one_of(name: str, *choices: Any) -> Parameter:
    return Parameter(name, choices[0], f"one of {', '.join(map(str, choices))}", choices.__contains__)


_STATUS = Parameter(
    "status", 503, "a status code from 400 to 599", lambda value: type(value) is int and 400 <= value <= 599
)
_BODY = _one_of("body", "json", "empty", "html")
_DETAIL = Parameter("detail", FAILURE, "what the JSON says", lambda value: isinstance(value, str))
_PATIENCE = Parameter(
    "seconds", None, "how long to wait for the client before closing the connection, null for ever", _is_seconds_or_none
)
_ROWS = Parameter("rows", 1, "how many rows", is_count)

KINDS = (
    FaultKind(down, (Parameter("seconds", 1, "how long the sandbox is down", _is_seconds),), reads_body=False),
    FaultKind(reset_before),
    FaultKind(reset_after),
    FaultKind(time_out_before, (_PATIENCE,)),
    FaultKind(time_out_after, (_PATIENCE,)),
    FaultKind(
        rate_limit,
        (
            _one_of("retry_after", "seconds", "date", "nonsense", "none"),
            Parameter("seconds", 1, "how long to wait", _is_seconds),
        ),
    ),
    FaultKind(status_before, (_STATUS, _BODY, _DETAIL)),
    FaultKind(status_after, (_STATUS, _BODY, _DETAIL)),
    FaultKind(scheduler_error, operations=("pause_batch_export", "unpause_batch_export")),
    FaultKind(
        slow_effect,
        (
            Parameter("seconds", 8, "how long after the answer was lost", _is_seconds),
            _one_of("answer", "time_out", "reset", "504"),
        ),
        operations=(*WRITES, "verify_domain"),
    ),
    FaultKind(
        late_rows,
        (Parameter("seconds", 20, "how far the list lags behind", _is_seconds),),
        times=None,
        operations=tuple(CREATED_BY),
    ),
    FaultKind(short_pages, (_one_of("missing", "rest", "last", "newest"), _ROWS), operations=LISTS),
    FaultKind(moving_rows, (_ROWS,), times=None, operations=LISTS),
    FaultKind(
        said_otherwise,
        (
            _one_of("how", "not_done", "other_answer", "normalized"),
            Parameter("rows", 2, "how many rows of a bulk request are left out", is_count),
        ),
        operations=WRITES,
    ),
)


# --- The faults that are switched on ---


@dataclass
class Fault:
    """A fault that is switched on; built by :meth:`Faults.read`, which checks the values."""

    kind: FaultKind
    parameters: JsonObject
    operation: str | None = None
    """Name or pattern of the operations it is for; None: all of them."""
    times: int | None = 1
    """How many requests it hits; None: for ever."""
    after: int = 0
    """How many requests that it is for it lets pass before."""
    probability: float = 1
    """The share of the remaining ones that it hits."""
    seed: int | None = None
    """Decides which ones these are."""
    number: int = 0
    seen: int = 0
    """How many requests it was for."""
    hits: int = 0
    """How many of them it hit."""
    random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)  # noqa: S311 -- no secret

    def is_for(self, operation: str | None) -> bool:
        """Tell whether the fault is for a request; the operation is None where the interface has none such."""
        if self.kind.operations is not None and operation not in self.kind.operations:
            return False
        return self.operation is None or fnmatchcase(operation or "", self.operation)

    def is_due(self) -> bool:
        """Count a request that the fault is for, and tell whether it is to be hit."""
        self.seen += 1
        if self.seen <= self.after or (self.times is not None and self.hits >= self.times):
            return False
        return self.probability >= 1 or self.random.random() < self.probability

    def describe(self) -> JsonObject:
        """Return the fault as control calls show it."""
        return {
            "id": self.number,
            "kind": self.kind.name,
            "operation": self.operation,
            "times": self.times,
            "after": self.after,
            "probability": self.probability,
            "seed": self.seed,
            **self.parameters,
            "seen": self.seen,
            "hits": self.hits,
        }


class Faults:
    """
    The faults of a running sandbox.

    :param initial: those that are there from the start, and again after a reset
    :param more_kinds: kinds besides those that every sandbox has
    :raises ValueError: if a fault cannot be understood
    """

    def __init__(self, initial: Iterable[Mapping[str, Any]] = (), more_kinds: Iterable[FaultKind] = ()) -> None:
        self.kinds = {kind.name: kind for kind in (*KINDS, *more_kinds)}
        self.held: set[asyncio.Transport] = set()
        """The connections that a fault keeps waiting."""
        self.active: list[Fault] = []
        self._initial = tuple(initial)
        self._numbers = itertools.count(1)
        self.restart()

    def inject(self, wanted: Mapping[str, Any]) -> Fault:
        """
        Switch a fault on.

        :param wanted: its kind and everything else, by name
        :raises ValueError: if it cannot be understood; the message says what can be
        """
        fault = self.read(wanted)
        fault.number = next(self._numbers)
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        """Switch all faults off, and let go of the clients they keep waiting."""
        self.active.clear()
        self.let_go()

    def restart(self) -> None:
        """Go back to the faults that were there from the start."""
        self.clear()
        for wanted in self._initial:
            self.inject(wanted)

    def let_go(self) -> None:
        """Reset the connections of the clients that faults keep waiting."""
        for transport in list(self.held):
            reset(transport)

    def choose(self, operation: str | None) -> Fault | None:
        """Count a request, and return the fault that hits it: of those that are due, the one switched on first."""
        concerned = [fault for fault in self.active if fault.is_for(operation)]
        due = [fault for fault in concerned if fault.is_due()]
        if not due:
            return None
        due[0].hits += 1
        return due[0]

    def read(self, wanted: Mapping[str, Any]) -> Fault:
        """Check what is wanted of a fault, as :meth:`inject` does, and build it."""
        rest = dict(wanted)
        name = rest.pop("kind", None)
        kind = self.kinds.get(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(f"Unknown fault {name!r}. Kinds are {', '.join(self.kinds)}.")
        operation = _operation(kind, rest.pop("operation", None))
        times = rest.pop("times", kind.times)
        if times is not None:
            times = _integer("times", times, 1)
        after = _integer("after", rest.pop("after", 0), 0)
        probability = rest.pop("probability", 1)
        if type(probability) not in (int, float) or not 0 < probability <= 1:
            raise ValueError(f"probability={probability!r}: a number above 0 and up to 1 is expected.")
        # Shown, so that what happened by chance can be had again.
        seed = rest.pop("seed", None if probability >= 1 else random.SystemRandom().randrange(2**31))
        if seed is not None:
            seed = _integer("seed", seed, 0)
        return Fault(kind, _parameters(kind, rest), operation, times, after, probability, seed)


def parse_fault(text: str) -> JsonObject:
    """
    Read a fault of the command line, such as ``reset_after,operation=create_*,times=2``.

    :param text: the kind, and values by name; a value is JSON where it can be read as that
    :raises ValueError: if a part is no ``name=value``
    """
    kind, *parts = text.split(",")
    wanted: JsonObject = {"kind": kind}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r}: name=value is expected.")
        try:
            wanted[name] = json.loads(value)
        except ValueError:
            wanted[name] = value
    return wanted


def _parameters(kind: FaultKind, wanted: Mapping[str, Any]) -> JsonObject:
    names = [parameter.name for parameter in kind.parameters]
    for name in wanted:
        if name not in names:
            raise ValueError(f"{kind.name} has no {name!r}; it takes {', '.join([*COMMON, *names])}.")
    values = {parameter.name: wanted.get(parameter.name, parameter.default) for parameter in kind.parameters}
    for parameter in kind.parameters:
        value = values[parameter.name]
        if not parameter.fits(value):
            raise ValueError(f"{parameter.name}={value!r} is not valid for {kind.name}: it is {parameter.about}.")
    return values


def _operation(kind: FaultKind, operation: object) -> str | None:
    if operation is None:
        return None
    known = OPERATIONS if kind.operations is None else kind.operations
    if not isinstance(operation, str) or not any(fnmatchcase(name, operation) for name in known):
        raise ValueError(f"Unknown operation {operation!r} for {kind.name}. Operations are {', '.join(known)}.")
    return operation


def _integer(name: str, value: object, minimum: int) -> int:
    if type(value) is not int or value < minimum:
        raise ValueError(f"{name}={value!r}: an integer of at least {minimum} is expected.")
    return value
