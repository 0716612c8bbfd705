"""What an author adds to the routes: answers of own endpoints, operations under another path, dropped fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from functools import cached_property
from itertools import pairwise
from typing import Literal
from urllib.parse import quote

from starlette.responses import Response

from airflow_provider_workspace.sandbox.request import PAGE_SIZE, ApiRequest, ApiRoute, parse_number, path_integer
from airflow_provider_workspace.sandbox.responses import (
    ApiError,
    JsonObject,
    cursor_page_response,
    dumps,
    invalid,
    json_response,
    page_response,
    to_response,
)
from airflow_provider_workspace.sandbox.routes import OPERATIONS, RESOURCES, ROUTES

How = Literal["gone", "redirect", "both", "deprecated"]
HOW = ("gone", "redirect", "both", "deprecated")
"""What the old path of a moved operation does."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SUNSET_DAYS = 90
"""Days from now to the end of a deprecated path, unless a date is given."""

Answer = Callable[[ApiRequest], object]

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class PathTemplate:
    """A path with placeholders such as ``{id}``, with or without a final slash."""

    text: str

    @cached_property
    def segments(self) -> list[str]:
        return self.text.strip("/").split("/")

    @cached_property
    def names(self) -> list[str]:
        """The names of the placeholders."""
        return _PLACEHOLDER.findall(self.text)

    def check(self) -> None:
        """Refuse a path that cannot be served."""
        if not self.text.startswith("/api/"):
            raise invalid(f"A path starts with /api/, unlike {self.text!r}.", "path")
        if len(self.names) != len(set(self.names)):
            raise invalid(f"A placeholder occurs twice in {self.text!r}.", "path")
        for segment in self.segments:
            if not _PLACEHOLDER.fullmatch(segment) and re.search(r"[{}?#]", segment):
                raise invalid(f"{segment!r} in {self.text!r} is neither a text nor a placeholder like {{id}}.", "path")

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of the placeholders; None if it is another path."""
        segments = path.strip("/").split("/")
        if len(segments) != len(self.segments):
            return None
        values: dict[str, str] = {}
        for own, segment in zip(self.segments, segments, strict=True):
            placeholder = _PLACEHOLDER.fullmatch(own)
            if placeholder:
                values[placeholder[1]] = segment
            elif own != segment:
                return None
        return values

    def overlaps(self, other: PathTemplate) -> bool:
        """Return whether there is a path that both match."""
        if len(self.segments) != len(other.segments):
            return False
        for own, segment in zip(self.segments, other.segments, strict=True):
            is_open = own.startswith("{") or segment.startswith("{")
            if not is_open and own != segment:
                return False
        return True

    def fill(self, values: Mapping[str, object]) -> str:
        return _PLACEHOLDER.sub(lambda placeholder: quote(str(values[placeholder[1]]), safe=""), self.text)


@dataclass(frozen=True)
class ServedRoute:
    """A route with the values of the placeholders in the path of a request."""

    route: ApiRoute
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class OwnAnswer:
    """The answer of an own endpoint."""

    method: str
    path: str
    body: object | Answer = None
    """JSON, or a function of the request that returns it."""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    scope: str | None = None
    name: str = "respond"
    cursor: bool = False
    paged: bool = True
    page_size: int = PAGE_SIZE

    @property
    def place(self) -> tuple[str, str]:
        """The method and the path, of which there is one answer."""
        return self.method, self.path.rstrip("/")

    def check(self) -> None:
        """Refuse an answer that cannot be given."""
        if self.method not in METHODS:
            raise invalid(f"Methods are {', '.join(METHODS)}, not {self.method!r}.", "method")
        if self.name in OPERATIONS or not self.name.isidentifier():
            raise invalid(f"{self.name!r} is an operation of the sandbox, or no name: choose another one.", "name")
        if self.status is not None and self.status not in range(200, 600):
            raise invalid(f"A status is from 200 to 599, not {self.status}.", "status")
        if self.page_size < 1:
            raise invalid("A page has at least 1 row.", "page_size")
        if self.cursor and not (self.method == "GET" and self.paged):
            raise invalid("Only the list of a GET is paged by cursor.", "cursor")
        for name, text in self.headers.items():
            if not (name + text).isascii() or not (name + text).isprintable():
                raise invalid(f"The header {name!r} is not printable ASCII.", "headers")
        if callable(self.body):
            return
        if self.cursor and not isinstance(self.body, list):
            raise invalid("Only a list is paged by cursor.", "cursor")
        try:
            dumps(self.body)
        except (TypeError, ValueError) as error:
            raise invalid(f"The body is no JSON: {error}.", "body") from error

    def route(self) -> ApiRoute:
        return ApiRoute(self.method, self.path, self.scope, self.answer, name=self.name, own=True)

    def answer(self, request: ApiRequest) -> Response:
        body = self.body(request) if callable(self.body) else self.body
        response = self._response(request, body)
        response.headers.update(self.headers)
        if self.method != "GET" and response.status_code < 400:
            path = request.url_path()
            request.audit(self.name, _organization_of(request), path, method=self.method)
        return response

    def _response(self, request: ApiRequest, body: object) -> Response:
        if isinstance(body, list) and self.method == "GET" and self.paged:
            response = self._page(request, [dumps(row) for row in body])
            response.status_code = self.status or 200
            return response
        if body is None:
            return to_response(None, self.status or 204)
        return json_response(body, self.status or 200)

    def _page(self, request: ApiRequest, rows: list[str]) -> Response:
        limit = request.number("limit", 1, self.page_size)
        limit = min(limit, self.page_size)
        if self.cursor:
            return cursor_page_response(request.url, request.query, limit, request.cursor_start(), rows)
        offset = request.number("offset", 0, 0)
        return page_response(request.url, limit, offset, len(rows), rows[offset : offset + limit])


def _organization_of(request: ApiRequest) -> str:
    """Return the organization that the path names, itself or by a project; else the first one of the key."""
    segments = request.url_path().strip("/").split("/")
    for kind, name in pairwise(segments):
        if kind == "organizations":
            return name
        number = parse_number(name)
        if kind in ("projects", "environments") and number is not None:
            project = request.state.one("projects", id=number)
            if project is not None:
                return str(project["organization_id"])
    return min(request.key.organizations, default="")


@dataclass(frozen=True)
class Move:
    """An operation under another path."""

    old: ApiRoute
    new: PathTemplate
    how: How
    status: int
    sunset: datetime | None

    @cached_property
    def old_names(self) -> list[str]:
        return PathTemplate(self.old.path).names

    @cached_property
    def renamed(self) -> tuple[str, str] | None:
        """The placeholder of the old path that has another name in the new one, and this name; None if none has."""
        missing = [name for name in self.old_names if name not in (*self.new.names, "organization_id")]
        added = [name for name in self.new.names if name not in (*self.old_names, "organization_id", "project_id")]
        if len(missing) == len(added) == 1:
            return missing[0], added[0]
        return None

    def check(self) -> None:
        """Refuse a path from which the operation cannot take its ids."""
        given = {*self.new.names}
        if self.renamed is not None:
            missing, added = self.renamed
            given = given - {added} | {missing}
        if "project_id" in given:
            given.add("organization_id")
        needed = {*self.old_names}
        unknown = given - needed - {"organization_id", "project_id"}
        if not needed <= given or unknown:
            names = ", ".join(f"{{{name}}}" for name in self.old_names)
            message = f"{self.new.text} needs the placeholders of {self.old.operation}: {names}"
            raise invalid(f"{message}; {{project_id}} may stand for {{organization_id}}.", "path")

    def new_route(self) -> ApiRoute:
        """Return the route of the new path."""
        return replace(self.old, path=self.new.text, handler=self._answer_new, name=self.old.operation)

    def old_route(self) -> ApiRoute | None:
        """Return the route of the old path; None if it is gone."""
        if self.how == "gone":
            return None
        if self.how == "redirect":
            return replace(self.old, handler=self._redirect, name="redirect", own=True, session_only=False)
        if self.how == "deprecated":
            return replace(self.old, handler=self._answer_deprecated, name=self.old.operation)
        return self.old

    def _answer_new(self, request: ApiRequest) -> object:
        path = dict(request.path)
        if self.renamed is not None:
            missing, added = self.renamed
            path[missing] = path.pop(added)
        if "project_id" in path and "project_id" not in self.old_names:
            project = request.state.find("projects", id=path_integer(path["project_id"]))
            organization_id = str(project["organization_id"])
            if path.setdefault("organization_id", organization_id) != organization_id:
                raise ApiError(404, "invalid_request", "not_found", "Not found.")
        return self.old.handler(replace(request, path=path))

    def _redirect(self, request: ApiRequest) -> Response:
        location = self._new_path(request)
        if request.query_text:
            location = f"{location}?{request.query_text}"
        return Response(status_code=self.status, headers={"Location": location})

    def _answer_deprecated(self, request: ApiRequest) -> Response:
        response = to_response(self.old.handler(request), self.old.status)
        sunset = self.sunset or request.state.now() + timedelta(days=SUNSET_DAYS)
        sunset_in_utc = sunset.astimezone(timezone.utc)
        successor = self._new_path(request)
        response.headers["Deprecation"] = "true"
        response.headers["Sunset"] = format_datetime(sunset_in_utc, usegmt=True)
        response.headers["Link"] = f'<{successor}>; rel="successor-version"'
        return response

    def _new_path(self, request: ApiRequest) -> str:
        values: dict[str, object] = dict(request.path)
        if self.renamed is not None:
            missing, added = self.renamed
            values[added] = values[missing]
        if "project_id" in self.new.names and "project_id" not in values:
            sql = "SELECT coalesce(min(id), 0) FROM projects WHERE organization_id = ?"
            values["project_id"] = request.state.number(sql, values["organization_id"])
        if "organization_id" in self.new.names and "organization_id" not in values:
            project = request.state.find("projects", id=path_integer(str(values["project_id"])))
            values["organization_id"] = project["organization_id"]
        return self.new.fill(values)


class OwnRoutes:
    """What an author has added to the routes of a running sandbox."""

    def __init__(self) -> None:
        self.answers: list[OwnAnswer] = []
        self.export_routes: tuple[ApiRoute, ...] = ()
        """The routes of runs of batch exports, while they are played."""
        self.moves: dict[str, Move] = {}
        """By operation."""
        self.dropped: dict[str, frozenset[str]] = {}
        """The names of the dropped fields by operation."""

    def names(self) -> list[str]:
        """Return the names of own endpoints and of those of runs, for faults."""
        return [*(answer.name for answer in self.answers), *(route.operation for route in self.export_routes)]

    def at(self, path: str, built_in: Mapping[str, ApiRoute], parameters: Mapping[str, str]) -> dict[str, ServedRoute]:
        """
        Return the routes of a path by method.

        :param built_in: routes of the interface with this path, by method
        :param parameters: values of the placeholders of ``built_in``
        """
        routes: dict[str, ServedRoute] = {}
        for method, route in built_in.items():
            served = self._in_place(route)
            if served is not None:
                routes[method] = ServedRoute(served, parameters)
        added = [*self.export_routes, *(move.new_route() for move in self.moves.values())]
        added += [answer.route() for answer in self.answers]
        # The path with the fewest placeholders comes last, and stays.
        for route in sorted(added, key=lambda route: -len(PathTemplate(route.path).names)):
            values = PathTemplate(route.path).match(path)
            if values is not None:
                routes[route.method] = ServedRoute(route, values)
        return routes

    def respond(self, answer: OwnAnswer) -> None:
        """Add the answer of an own endpoint, or replace that of the same path."""
        template = PathTemplate(answer.path)
        template.check()
        answer.check()
        served = [*self._served_in_place(), *self._served_elsewhere()]
        self._check_free(answer.method, template, served)
        others = [other for other in self.answers if other.place != answer.place]
        self.answers = [*others, answer]

    def clear_responses(self) -> None:
        self.answers = []

    def move(self, operation: str, path: str, how: str, status: int, sunset: str | None) -> None:
        """Serve an operation under another path."""
        if operation not in OPERATIONS:
            raise invalid(f"Unknown operation {operation!r}. Operations are {', '.join(OPERATIONS)}.", "operation")
        if how not in HOW:
            raise invalid(f"The old path is one of {', '.join(HOW)}, not {how!r}.", "how")
        if status not in (307, 308):
            raise invalid(f"A redirect is a 307 or 308, not {status}.", "status")
        (route,) = [route for route in ROUTES if route.operation == operation]
        move = Move(route, PathTemplate(path), how, status, _date(sunset))  # type: ignore[arg-type]
        move.new.check()
        move.check()
        other_moves = {name: other for name, other in self.moves.items() if name != operation}
        answers = [answer.route() for answer in self.answers]
        elsewhere = [other.new_route() for other in other_moves.values()]
        self._check_free(route.method, move.new, [*ROUTES, *answers, *elsewhere])
        if move.old_route() is not None:
            self._check_unanswered([route])
        self.moves = {**other_moves, operation: move}

    def clear_moves(self) -> None:
        self._check_unanswered([move.old for move in self.moves.values()])
        self.moves = {}

    def drop_fields(self, resource: str, names: Iterable[str]) -> None:
        """Ignore fields of a resource that are sent, and do not show them."""
        if resource not in RESOURCES:
            raise invalid(f"Unknown resource {resource!r}. Resources are {', '.join(RESOURCES)}.", "resource")
        dropped = frozenset(names)
        unknown = sorted(dropped - RESOURCES[resource].FIELDS.keys())
        if unknown:
            known = ", ".join(RESOURCES[resource].FIELDS)
            raise invalid(f"{resource} has no field {', '.join(unknown)} that is sent. Fields are {known}.", "names")
        for route in RESOURCES[resource].ROUTES:
            self.dropped[route.operation] = dropped

    def without_dropped(self, operation: str, value: object) -> object:
        """Return a record, a list or a page of records without the dropped fields."""
        dropped = self.dropped.get(operation)
        return _without(value, dropped) if dropped else value

    def shown(self, operation: str, response: Response) -> Response:
        """Return the response without the dropped fields."""
        if not self.dropped.get(operation) or not response.body:
            return response
        value: object = json.loads(bytes(response.body))
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            value["results"] = self.without_dropped(operation, value["results"])
        shown = json_response(self.without_dropped(operation, value), response.status_code)
        for name, text in response.headers.items():
            if name not in ("content-length", "content-type"):
                shown.headers[name] = text
        return shown

    def _in_place(self, route: ApiRoute) -> ApiRoute | None:
        move = self.moves.get(route.operation)
        return route if move is None else move.old_route()

    def _served_in_place(self) -> list[ApiRoute]:
        return [route for route in ROUTES if self._in_place(route) is not None]

    def _served_elsewhere(self) -> list[ApiRoute]:
        return [move.new_route() for move in self.moves.values()]

    def _check_unanswered(self, routes: Iterable[ApiRoute]) -> None:
        """Refuse to serve again what an own endpoint answers."""
        answers = [answer.route() for answer in self.answers]
        for route in routes:
            self._check_free(route.method, PathTemplate(route.path), answers)

    def _check_free(self, method: str, path: PathTemplate, routes: Iterable[ApiRoute]) -> None:
        for route in routes:
            if route.method == method and path.overlaps(PathTemplate(route.path)):
                message = f"{method} {path.text} is served by {route.operation} ({route.path})"
                raise invalid(f"{message}: choose another path, or move or clear that one first.", "path")


def _without(value: object, dropped: frozenset[str]) -> object:
    if isinstance(value, list):
        return [_without(item, dropped) for item in value]
    if not isinstance(value, dict):
        return value
    kept: JsonObject = {}
    for name, item in value.items():
        if name not in dropped:
            kept[name] = item
    return kept


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise invalid(f"{text!r} is no date like 2027-06-30.", "sunset") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
