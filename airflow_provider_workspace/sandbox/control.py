"""
The page, and the control calls below ``/_sandbox/`` for a person at a terminal: what the interface cannot do.

A control call is a method of the service, whose arguments by name are the JSON body. It needs no key, and is for this
machine only; the page and its data are for everybody whom ``--allow-remote`` lets in.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from functools import partial

from pydantic import ConfigDict, ValidationError, validate_call
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from airflow_provider_workspace.sandbox.page import HEADERS, PAGE, summarize
from airflow_provider_workspace.sandbox.request import parse_json
from airflow_provider_workspace.sandbox.responses import ApiError, forbidden, invalid, to_response
from airflow_provider_workspace.sandbox.service import Service

Call = tuple[str, str, Callable[..., object]]

BUTTON_CALLS: tuple[Call, ...] = (
    ("POST", "/_sandbox/invites/{invite_id}/accept", Service.accept_invite),
    ("POST", "/_sandbox/dns", Service.publish_dns),
    ("POST", "/_sandbox/clock", Service.advance_clock),
    ("POST", "/_sandbox/faults", Service.inject),
    ("DELETE", "/_sandbox/faults", Service.clear_faults),
    ("POST", "/_sandbox/reset", Service.reset),
)
"""The calls for which the page has a button."""
CALLS: tuple[Call, ...] = (
    *BUTTON_CALLS,
    ("POST", "/_sandbox/responses", Service.respond),
    ("DELETE", "/_sandbox/responses", Service.clear_responses),
    ("POST", "/_sandbox/moves", Service.move),
    ("DELETE", "/_sandbox/moves", Service.clear_moves),
    ("POST", "/_sandbox/dropped_fields", Service.drop_fields),
    ("POST", "/_sandbox/runs", Service.play_runs),
    ("POST", "/_sandbox/batch_exports/{batch_export_id}", Service.set_batch_export),
    ("POST", "/_sandbox/batch_exports/{batch_export_id}/failures", Service.fail_runs),
    ("POST", "/_sandbox/backfill_failures", Service.fail_backfills),
)
PAGES = ("/", "/organization/{path:path}", "/project/{path:path}")
"""The page, also as target of task links, for connections with the sandbox as web_url."""


def control_routes(service: Service) -> list[BaseRoute]:
    """Return the routes of the page and of all control calls."""

    async def page(_request: Request) -> Response:
        return HTMLResponse(PAGE, headers=HEADERS)

    calls = (("GET", "/_sandbox/workspace", summarize), *CALLS)
    routes = [Route(path, _endpoint(service, method), methods=[verb]) for verb, path, method in calls]
    return [*(Route(path, page) for path in PAGES), *routes]


def _endpoint(service: Service, method: Callable[..., object]) -> Callable[[Request], object]:
    checked = validate_call(config=ConfigDict(strict=True))(partial(method, service))

    async def endpoint(request: Request) -> Response:
        try:
            if method is not summarize:
                _check_caller(request)
            raw = await request.body()
            body = parse_json(raw) if raw else {}
            if not isinstance(body, dict):
                raise invalid("Expected an object.")
            given = {**body, **request.query_params, **request.path_params}
            result = service.call(lambda: checked(**given))
            return to_response(result, 204 if result is None else 200)
        except ApiError as error:
            return error.response()
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return invalid(first["msg"], ".".join(map(str, first["loc"]))).response()

    return endpoint


def _check_caller(request: Request) -> None:
    if request.client is None or not ipaddress.ip_address(request.client.host).is_loopback:
        raise forbidden("Control calls are for this machine only.")
