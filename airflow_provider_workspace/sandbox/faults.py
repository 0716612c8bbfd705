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
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from airflow_provider_workspace.sandbox.connection import RawConnection, reset
from airflow_provider_workspace.sandbox.responses import JsonObject, invalid, json_response
from airflow_provider_workspace.sandbox.routes import LISTS, OPERATIONS

if TYPE_CHECKING:
    from starlette.requests import Request

COMMON = ("operation", "times", "after", "probability", "seed")
"""The parameters of every fault."""


@dataclass(frozen=True)
class FaultContext:
    """A request that a fault has hit."""

    request: Request
    operation: str
    """Name of the operation, or nothing where the interface has none such."""
    connection: RawConnection
    handler: Callable[[Request], Response]
    take_down: Callable[[float], None]
    """Takes the sandbox down for some seconds."""

    def handle(self) -> Response:
        """Handle the request as if there were no fault."""
        return self.handler(self.request)


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
    matches: Callable[[Request], bool] = lambda _request: True
    """Which of their requests it can hit."""

    @property
    def name(self) -> str:
        """The name."""
        return self.handler.__name__

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return (self.handler.__doc__ or "").partition("\n")[0]


# --- What each kind does ---


async def refuse(context: FaultContext) -> None:
    """Close the connection at once, before the body is read."""
    await context.connection.close()


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


async def status_before(_context: FaultContext, status: int, body: str) -> Response:
    """Answer a failure; nothing was done."""
    return _failure(status, body)


async def status_after(context: FaultContext, status: int, body: str) -> Response:
    """Do what was asked, then answer a failure."""
    context.handle()
    return _failure(status, body)


async def scheduler_error(_context: FaultContext) -> Response:
    """Refuse to pause or unpause an export with 400, as where the scheduler fails for a while; nothing was done."""
    return invalid("Invalid request to unpause a BatchExport could not be carried out").response()


async def empty_body(context: FaultContext) -> Response:
    """Do what was asked, then answer without a body."""
    return with_body(context.handle(), b"", "application/json")


async def cut_body(context: FaultContext) -> None:
    """Do what was asked, then close the connection after half of the body."""
    response = context.handle()
    body = bytes(response.body)
    await context.connection.close(_head(response, max(1, len(body))) + body[: len(body) // 2])


async def invalid_json(context: FaultContext) -> Response:
    """Do what was asked, then answer JSON that ends half-way, with a length that fits."""
    response = context.handle()
    body = bytes(response.body) or b"{}"
    return with_body(response, body[: len(body) // 2], "application/json")


async def html_body(context: FaultContext) -> Response:
    """Do what was asked, then answer an HTML page with the status of success."""
    return with_body(context.handle(), _html("Welcome"), "text/html")


async def slow_drip(context: FaultContext, pause: float) -> None:
    """Do what was asked, then send the answer byte by byte."""
    response = context.handle()
    body = bytes(response.body)
    await context.connection.drip(_head(response, len(body)) + body, pause)


async def redirect(context: FaultContext, status: int, location: str | None) -> Response:
    """Answer with another address; nothing was done."""
    return Response(b"", status, {"Location": location or str(context.request.url)})


async def late_rows(context: FaultContext, rows: int) -> Response:
    """Leave the newest rows out of a list and its count, as where lists lag behind."""
    response = context.handle()
    if response.status_code != 200:
        return response
    page = json.loads(bytes(response.body))
    shown = page["results"] if page["next"] else page["results"][:-rows]
    return json_response(page | {"count": max(0, page["count"] - rows), "results": shown})


def with_body(response: Response, body: bytes, content_type: str) -> Response:
    """Return an answer with another body; a 204, which cannot have any, becomes a 200."""
    status = 200 if response.status_code == 204 and body else response.status_code
    kept = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
    return Response(body, status, kept, media_type=content_type)


def _failure(status: int, body: str) -> Response:
    if body == "json":
        failure = {"type": "server_error", "code": "error", "detail": "A server error occurred.", "attr": None}
        return json_response(failure, status)
    return Response(_html(f"{status} {_phrase(status)}") if body == "html" else b"", status, media_type="text/html")


def _head(response: Response, length: int) -> bytes:
    """Write the lines before the body, with this length, true or not."""
    lines = [f"HTTP/1.1 {response.status_code} {_phrase(response.status_code)}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items() if name != "content-length"]
    lines += [f"content-length: {length}", "connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


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


def is_header(value: Any) -> bool:
    """Tell whether a value can be sent in a header."""
    return isinstance(value, str) and value.isascii() and value.isprintable() and value != ""


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 86_400


def _is_seconds_or_none(value: Any) -> bool:
    return value is None or _is_seconds(value)


def _is_header_or_none(value: Any) -> bool:
    return value is None or is_header(value)


def _one_of(name: str, *choices: Any) -> Parameter:
    return Parameter(name, choices[0], f"one of {', '.join(map(str, choices))}", choices.__contains__)


_STATUS = Parameter(
    "status", 503, "a status code from 400 to 599", lambda value: type(value) is int and 400 <= value <= 599
)
_BODY = _one_of("body", "json", "empty", "html")
_PATIENCE = Parameter(
    "seconds", None, "how long to wait for the client before closing the connection, null for ever", _is_seconds_or_none
)
_LOCATION = Parameter("location", None, "a path or a URL, null for the same address again", _is_header_or_none)

KINDS = (
    FaultKind(refuse, reads_body=False),
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
    FaultKind(status_before, (_STATUS, _BODY)),
    FaultKind(status_after, (_STATUS, _BODY)),
    FaultKind(scheduler_error, operations=("pause_batch_export", "unpause_batch_export")),
    FaultKind(empty_body),
    FaultKind(cut_body),
    FaultKind(invalid_json),
    FaultKind(html_body),
    FaultKind(slow_drip, (Parameter("pause", 0.05, "the seconds between two bytes", _is_seconds),)),
    FaultKind(redirect, (_one_of("status", 307, 301, 302, 303, 308), _LOCATION)),
    FaultKind(late_rows, (Parameter("rows", 1, "how many rows", is_count),), operations=LISTS),
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

    def is_for(self, operation: str | None, request: Request) -> bool:
        """Tell whether the fault is for a request; the operation is None where the interface has none such."""
        if self.kind.operations is not None and operation not in self.kind.operations:
            return False
        if self.operation is not None and not fnmatchcase(operation or "", self.operation):
            return False
        return self.kind.matches(request)

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

    def choose(self, operation: str | None, request: Request) -> Fault | None:
        """Count a request, and return the fault that hits it: of those that are due, the one switched on first."""
        concerned = [fault for fault in self.active if fault.is_for(operation, request)]
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
