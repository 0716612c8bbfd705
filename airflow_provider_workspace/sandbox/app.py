"""
The application: each request of the interface is authenticated, checked, handled in one transaction, and logged.

Handlers call SQLite on the event loop. Requests are therefore served one after the other and each is atomic: a change
and its row in the audit are stored together or not at all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute, Route

from airflow_provider_workspace.sandbox.answers import JsonObject, Refused, denied, invalid
from airflow_provider_workspace.sandbox.call import Call, Endpoint
from airflow_provider_workspace.sandbox.connection import Connection
from airflow_provider_workspace.sandbox.control import Control
from airflow_provider_workspace.sandbox.fault_plays import Exchange
from airflow_provider_workspace.sandbox.routes import ENDPOINTS

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from airflow_provider_workspace.sandbox.profiles import Profile
    from airflow_provider_workspace.sandbox.service import Service
    from airflow_provider_workspace.sandbox.state import Key

BODY_METHODS = ("POST", "PATCH", "PUT")


def create_app(service: Service) -> Starlette:
    """
    Put the application together.

    :param service: The running sandbox.
    """
    paths: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    # Paths that end in an id go last: "bulk" must not be taken for the id of an invite.
    routes: list[BaseRoute] = [
        Route(path, ApiPath(service, paths[path])) for path in sorted(paths, key=lambda path: path.endswith("{id}/"))
    ]
    routes += Control(service).routes()
    # Last, and for all the rest: otherwise a path without its final slash would be redirected instead of refused.
    routes.append(Route("/api/{path:path}", ApiPath(service, {})))
    return Starlette(routes=routes, exception_handlers={Refused: _send_refusal})


class ApiPath:
    """
    One path of the interface, as an ASGI application.

    :param service: The running sandbox.
    :param endpoints: The operations by method; empty for a path the interface does not have.
    """

    def __init__(self, service: Service, endpoints: Mapping[str, Endpoint]) -> None:
        self.service = service
        self.endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Serve a request.

        :param scope: The request line and headers.
        :param receive: Where the body comes from.
        :param send: Where the answer goes.
        """
        request = Request(scope, receive)
        endpoint = self.endpoints.get(request.method)
        entry = self._log(request, endpoint)
        fault = self.service.faults.choose(entry["operation"], later_page=_is_later_page(request))
        raw = b""
        if fault is None or fault.kind.reads_body:
            try:
                raw = await request.body()
            except ClientDisconnect:
                return
            entry["body"] = _parsed_or_none(raw)
            if self.service.settings.latency_ms:
                await asyncio.sleep(self.service.settings.latency_ms / 1000)

        def handle(request: Request) -> Response:
            return self._handle(request, raw, endpoint, entry)

        if fault is None:
            entry["status"] = 500
            response: Response | None = handle(request)
        else:
            entry["fault"] = {"id": fault.number, "kind": fault.kind.name}
            connection = Connection(scope, receive, self.service.faults.held)
            exchange = Exchange(request, entry["operation"] or "", connection, handle, self.service.take_down)
            response = await fault.kind.play(exchange, **fault.parameters)
        if response is not None:
            entry["status"] = response.status_code
            await response(scope, receive, send)

    def _log(self, request: Request, endpoint: Endpoint | None) -> JsonObject:
        entry: JsonObject = {
            "at": self.service.state.timestamp(),
            "operation": endpoint.operation if endpoint else None,
            "method": request.method,
            "path": request.scope["raw_path"].decode("ascii"),
            "query": [list(pair) for pair in request.query_params.multi_items()],
            "body": None,
            "content_type": request.headers.get("content-type"),
            "key_name": None,
            "scope": endpoint.scope if endpoint else None,
            "handled": None,
            "status": None,
            "fault": None,
        }
        self.service.log_request(entry)
        return entry

    def _handle(self, request: Request, raw: bytes, endpoint: Endpoint | None, entry: JsonObject) -> Response:
        entry["handled"] = 500
        try:
            with self.service.state.transaction():
                response = self._perform(request, raw, endpoint, entry)
        except Refused as refused:
            response = refused.response()
        entry["handled"] = response.status_code
        return response

    def _perform(self, request: Request, raw: bytes, endpoint: Endpoint | None, entry: JsonObject) -> Response:
        if not self.endpoints:
            raise Refused(404, "invalid_request", "not_found", "Endpoint not found.")
        profile = self.service.settings.profile
        key = self._authenticate(request)
        entry["key_name"] = key.name
        if endpoint is None:
            self._refuse_method(request.method)
        _check_scope(profile, key, endpoint.scope)
        limits = self.service.active_limits
        if limits is not None:
            limits.take(limits.requests, key.key, 1, self.service.state.now().timestamp())
        if profile.unnamed_refused:
            _check_query(request, endpoint)
        return endpoint.handler(
            Call(
                state=self.service.state,
                profile=profile,
                limits=limits,
                key=key,
                path=request.path_params,
                query=request.query_params,
                body=_read_body(profile, request, raw),
                url=str(request.url.replace(query="")),
            )
        )

    def _authenticate(self, request: Request) -> Key:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            _refuse_key("not_authenticated", "Authentication credentials were not provided.")
        key = self.service.state.key(secret.strip())
        if key is None:
            _refuse_key("authentication_failed", "API key in the Authorization header is invalid.")
        return key

    def _refuse_method(self, method: str) -> NoReturn:
        detail = f'Method "{method}" not allowed.'
        headers = {"Allow": ", ".join(self.endpoints)}
        raise Refused(405, "invalid_request", "method_not_allowed", detail, headers=headers)


def _is_later_page(request: Request) -> bool:
    offset = request.query_params.get("offset", "")
    return offset.isascii() and offset.isdigit() and len(offset) < 16 and int(offset) > 0


def _refuse_key(code: str, detail: str) -> NoReturn:
    raise Refused(401, "authentication_error", code, detail, headers={"WWW-Authenticate": "Bearer"})


def _check_scope(profile: Profile, key: Key, scope: str | None) -> None:
    if "*" in key.scopes:
        return
    if scope is None:
        if profile.unscoped_needs_all:
            raise denied("This action does not support API keys with scopes.")
        return
    granted = {scope}
    if profile.write_includes_read:
        granted.add(scope.replace(":read", ":write"))
    if not granted & key.scopes:
        raise denied(f"API key missing required scope '{scope}'")


def _check_query(request: Request, endpoint: Endpoint) -> None:
    for name in request.query_params:
        if name not in endpoint.query:
            raise invalid("This query parameter is not part of the interface.", name, "unknown_field")


def _read_body(profile: Profile, request: Request, raw: bytes) -> Any:
    if request.method not in BODY_METHODS:
        if raw and profile.unnamed_refused:
            raise invalid(f"{request.method} takes no body.", code="unexpected_body")
        return {}
    if not raw:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if profile.content_type_checked and media_type != "application/json":
        detail = f'Unsupported media type "{media_type}" in request.'
        raise Refused(415, "invalid_request", "unsupported_media_type", detail)
    try:
        return _parse(raw)
    except (ValueError, RecursionError) as error:
        raise invalid("JSON parse error.", code="parse_error") from error


def _parse(raw: bytes) -> Any:
    # NaN and the infinities, which Python reads and JSON does not know, raise here.
    return json.loads(raw, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _parsed_or_none(raw: bytes) -> Any:
    try:
        return _parse(raw) if raw else None
    except (ValueError, RecursionError):
        return None


async def _send_refusal(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)  # noqa: S101 -- registered for nothing else
    return error.response()
