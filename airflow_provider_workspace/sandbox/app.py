"""
The application: authenticate, check, handle and log each API request.

Handlers call SQLite on the event loop, so requests are served one after the other. Each is one transaction: a change
and its audit row are stored together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from airflow_provider_workspace.sandbox.connection import RawConnection
from airflow_provider_workspace.sandbox.control import control_routes
from airflow_provider_workspace.sandbox.faults import FaultContext
from airflow_provider_workspace.sandbox.own_routes import ServedRoute
from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, parse_json
from airflow_provider_workspace.sandbox.responses import (
    ApiError,
    JsonObject,
    forbidden,
    invalid,
    to_response,
)
from airflow_provider_workspace.sandbox.routes import ROUTES
from airflow_provider_workspace.sandbox.service import Service
from airflow_provider_workspace.sandbox.state import Key

BODY_METHODS = ("POST", "PATCH", "PUT")

Routes = Mapping[str, ServedRoute]
"""The routes of the path of a request, by method."""


def create_app(service: Service) -> Starlette:
    paths: dict[str, dict[str, ApiRoute]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = route
    # Paths that end in an id go last, so that "bulk" is not parsed as the id of an invite.
    routes: list[BaseRoute] = [
        Route(path, ApiPath(service, paths[path])) for path in sorted(paths, key=lambda path: path.endswith("{id}/"))
    ]
    routes += control_routes(service)
    # The last route refuses all other paths; Starlette would redirect those without a final slash.
    routes.append(Route("/api/{path:path}", ApiPath(service, {})))
    return Starlette(routes=routes)


class ApiPath:
    """One path of the API, as an ASGI application; one without routes is unknown."""

    def __init__(self, service: Service, routes: Mapping[str, ApiRoute]) -> None:
        self.service = service
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        routes = self.service.own_routes.at(scope["path"], self.routes, request.path_params)
        served = routes.get(request.method)
        entry = self._log(request, served.route if served else None)
        fault = self.service.faults.choose(entry["operation"])
        try:
            raw = await request.body()
        except ClientDisconnect:
            return
        entry["body"] = _parsed_or_none(raw)
        if self.service.settings.latency_ms:
            await asyncio.sleep(self.service.settings.latency_ms / 1000)

        def handle(request: Request, other: bytes | None = None) -> Response:
            return self._handle(request, raw if other is None else other, routes, entry)

        self.service.apply_due()
        if fault is None:
            response: Response | None = handle(request)
        else:
            entry["fault"] = {"kind": fault.kind.name}
            service, operation = self.service, entry["operation"] or ""
            connection = RawConnection(scope, receive, service.faults.held)
            seen = (request, operation, entry["body"], fault.hits, connection)
            context = FaultContext(*seen, service.state, service.apply_later, handle)
            response = await fault.kind.handler(context, **fault.parameters)
        if response is not None:
            entry["status"] = response.status_code
            await response(scope, receive, send)

    def _log(self, request: Request, route: ApiRoute | None) -> JsonObject:
        entry: JsonObject = {
            "at": self.service.state.timestamp(),
            "operation": route.operation if route else None,
            "method": request.method,
            "path": request.scope["raw_path"].decode("ascii"),
            "query": [list(pair) for pair in request.query_params.multi_items()],
            "body": None,
            "content_type": request.headers.get("content-type"),
            "key_name": None,
            "scope": route.scope if route else None,
            "handled": None,
            "status": None,
            "fault": None,
        }
        self.service.log_request(entry)
        return entry

    def _handle(self, request: Request, raw: bytes, routes: Routes, entry: JsonObject) -> Response:
        try:
            with self.service.state.transaction():
                response = self._perform(request, raw, routes, entry)
        except ApiError as error:
            response = error.response()
        except Exception:
            entry["handled"] = entry["status"] = 500
            raise
        entry["handled"] = response.status_code
        return response

    def _perform(self, request: Request, raw: bytes, routes: Routes, entry: JsonObject) -> Response:
        live = self.service.settings.live
        served = routes.get(request.method)
        route = served.route if served else None
        if not routes or (route is not None and route.live_only and not live):
            raise ApiError(404, "invalid_request", "not_found", "Endpoint not found.")
        key = self._authenticate(request)
        entry["key_name"] = key.name
        if served is None or route is None:
            _refuse_method(request.method, routes)
        if route.session_only and live and "session" not in key.scopes:
            raise forbidden("This action does not support Personal API Key access")
        if not route.own or route.scope is not None:
            _check_scope(key, route.scope, live=live)
        limits = self.service.active_limits
        if limits is not None:
            limits.take(limits.requests, key.key, 1, self.service.state.now().timestamp())
        unknown = request.query_params.keys() - set(route.query)
        if unknown and not live and not route.own:
            raise invalid("This query parameter is not part of the interface.", min(unknown), "unknown_field")
        own_routes = self.service.own_routes
        body = _read_body(request, raw, live=live)
        api_request = ApiRequest(
            state=self.service.state,
            live=live,
            limits=limits,
            key=key,
            path=served.parameters,
            query=request.query_params,
            body=own_routes.without_dropped(route.operation, body),
            url=str(request.url.replace(query="")),
            query_text=request.url.query,
            schedules=self.service.schedules,
        )
        response = to_response(route.handler(api_request), route.status)
        return own_routes.shown(route.operation, response)

    def _authenticate(self, request: Request) -> Key:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            _refuse_key("not_authenticated", "Authentication credentials were not provided.")
        key = self.service.state.key(secret.strip())
        if key is None:
            _refuse_key("authentication_failed", "API key in the Authorization header is invalid.")
        return key


def _refuse_method(method: str, routes: Routes) -> NoReturn:
    detail = f'Method "{method}" not allowed.'
    headers = {"Allow": ", ".join(routes)}
    raise ApiError(405, "invalid_request", "method_not_allowed", detail, headers=headers)


def _refuse_key(code: str, detail: str) -> NoReturn:
    raise ApiError(401, "authentication_error", code, detail, headers={"WWW-Authenticate": "Bearer"})


def _check_scope(key: Key, scope: str | None, *, live: bool) -> None:
    if scope is None:
        if live and "*" not in key.scopes:
            raise forbidden("This action does not support API keys with scopes.")
        return
    granted = {"*", scope}
    if live:  # x:write includes x:read
        granted.add(scope.replace(":read", ":write"))
    if not granted & key.scopes:
        raise forbidden(f"API key missing required scope '{scope}'")


def _read_body(request: Request, raw: bytes, *, live: bool) -> Any:
    if request.method not in BODY_METHODS:
        if raw and not live:
            raise invalid(f"{request.method} takes no body.", code="unexpected_body")
        return {}
    if not raw:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        detail = f'Unsupported media type "{media_type}" in request.'
        raise ApiError(415, "invalid_request", "unsupported_media_type", detail)
    return parse_json(raw)


def _parsed_or_none(raw: bytes) -> Any:
    try:
        return parse_json(raw) if raw else None
    except ApiError:
        return None
