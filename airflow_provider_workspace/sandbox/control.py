"""
The control calls below ``/_sandbox/``, which change or show what the interface cannot, without a key.

They are for this machine only, except the page and its data, which ``--allow-remote`` opens to others.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from airflow_provider_workspace.sandbox.page import HEADERS, PAGE, summarize
from airflow_provider_workspace.sandbox.profiles import PROFILES
from airflow_provider_workspace.sandbox.request import Fields, check_fields, parse_json, path_integer, require
from airflow_provider_workspace.sandbox.responses import (
    LONE_SURROGATE,
    ApiError,
    JsonObject,
    dumps,
    forbidden,
    invalid,
    not_found,
    to_response,
)
from airflow_provider_workspace.sandbox.routes.batch_exports import export_runs
from airflow_provider_workspace.sandbox.routes.members import add_member, add_user, is_member
from airflow_provider_workspace.sandbox.seed import SEED, add_fictional_members, add_organization
from airflow_provider_workspace.sandbox.service import Service
from airflow_provider_workspace.sandbox.state import Key, State

MAX_LATENCY_MS = 600_000
MAX_NEW_MEMBERS = 1_000_000
REQUIRED = object()
"""The default of a required field."""


@dataclass(frozen=True)
class ControlRequest:
    """The argument of a control call's handler."""

    service: Service
    state: State
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: JsonObject
    """The checked fields with their defaults."""


@dataclass(frozen=True)
class ControlCall:
    """A control call."""

    method: str
    path: str
    handler: Callable[[ControlRequest], object]
    """Returns the body of the response, or None for a 204."""
    fields: Fields | None = None
    """The fields of its body; None: there are none, or the handler checks them."""
    status: int = 200
    public: bool = False
    """Whether other machines may call it."""


def _show_page(_request: ControlRequest) -> Response:
    return HTMLResponse(PAGE, headers=HEADERS)


def _health(request: ControlRequest) -> object:
    return {"status": "ok", "profile": request.service.settings.profile.name}


def _workspace(request: ControlRequest) -> object:
    """Summarize an organization for the page, without secrets."""
    organization_id = request.query.get("organization_id", SEED.organization_id)
    return summarize(request.service, organization_id)


def _list_effects(request: ControlRequest) -> object:
    rows = request.state.db.execute("SELECT * FROM audit ORDER BY id")
    effects = [dict(row) | {"detail": json.loads(row["detail"])} for row in rows]
    return {"count": len(effects), "effects": effects}


def _list_requests(request: ControlRequest) -> object:
    entries = list(request.service.log)
    return {"total": request.service.request_total, "count": len(entries), "requests": entries}


def _list_batch_exports(request: ControlRequest) -> object:
    rows = request.state.db.execute("SELECT * FROM batch_exports ORDER BY organization_id, id")
    exports = [dict(row) | {"paused": bool(row["paused"])} for row in rows]
    return {"count": len(exports), "batch_exports": exports}


def _list_runs(request: ControlRequest) -> object:
    return export_runs(request.state, request.state.find("batch_exports", id=request.path["id"]))


def _list_dns(request: ControlRequest) -> object:
    rows = request.state.db.execute("SELECT name, value FROM dns ORDER BY name, value")
    return {"records": [dict(row) for row in rows]}


def _publish_dns(request: ControlRequest) -> None:
    name = request.body["name"].lower().rstrip(".")
    request.state.db.execute("INSERT OR IGNORE INTO dns VALUES (?, ?)", (name, request.body["value"]))


def _advance_clock(request: ControlRequest) -> object:
    request.state.advance_clock(request.body["advance_seconds"])
    return {"now": request.state.timestamp()}


def _accept_invite(request: ControlRequest) -> object:
    state = request.state
    row = state.find("invites", id=request.path["id"])
    if row["expires_at"] <= state.timestamp():
        raise invalid("This invite has expired.", code="expired")
    if is_member(state, row["organization_id"], row["email"]):
        raise invalid("The addressee is a member already.", code="unique")
    invite = json.loads(row["record"])
    with state.transaction():
        if state.one("users", email=row["email"]):
            user = state.record("users", email=row["email"])
        else:
            user = add_user(state, invite["first_name"] or "", "", invite["target_email"])
        member = add_member(state, row["organization_id"], user, invite["level"])
        state.db.execute("DELETE FROM invites WHERE id = ?", (row["id"],))
    return member


def _set_project(request: ControlRequest) -> object:
    project_id = path_integer(request.path["id"])
    record = request.state.record("projects", id=project_id)
    for name in request.body:
        if name not in record:
            raise invalid("A project has no such field.", name, "unknown_field")
    record |= request.body | {"updated_at": request.state.timestamp()}
    request.state.db.execute("UPDATE projects SET record = ? WHERE id = ?", (dumps(record), project_id))
    return record


def _add_key(request: ControlRequest) -> None:
    """Add an API key of the seed's owner."""
    body = request.body
    scopes, organizations = frozenset(body["scopes"]), frozenset({body["organization_id"]})
    request.state.add_key(Key(body["key"], body["name"], scopes, organizations, SEED.owner_uuid))


def _revoke_key(request: ControlRequest) -> None:
    if not request.state.db.execute("UPDATE keys SET revoked = 1 WHERE key = ?", (request.body["key"],)).rowcount:
        raise not_found()


def _add_members(request: ControlRequest) -> object:
    organization_id, count = request.body["organization_id"], request.body["count"]
    request.state.find("organizations", id=organization_id)
    if not 0 <= count <= MAX_NEW_MEMBERS:
        raise invalid(f"A number from 0 to {MAX_NEW_MEMBERS} is required.", "count")
    with request.state.transaction():
        add_fictional_members(request.state, organization_id, count)
    total = request.state.count("members", organization_id)
    return {"organization_id": organization_id, "count": total}


def _new_organization(request: ControlRequest) -> object:
    with request.state.transaction():
        return add_organization(request.state, request.body["name"])


def _change_settings(request: ControlRequest) -> object:
    wanted = {name: value for name, value in request.body.items() if value is not None}
    if "profile" in wanted:
        if wanted["profile"] not in PROFILES:
            raise invalid(f"Choose one of {', '.join(PROFILES)}.", "profile")
        wanted["profile"] = PROFILES[wanted["profile"]]
    if not 0 <= wanted.get("latency_ms", 0) <= MAX_LATENCY_MS:
        raise invalid(f"A number from 0 to {MAX_LATENCY_MS} is required.", "latency_ms")
    settings = dataclasses.replace(request.service.settings, **wanted)
    request.service.settings = settings
    return {**dataclasses.asdict(settings), "profile": settings.profile.name}


def _list_faults(request: ControlRequest) -> object:
    """List the injected faults, including those that will not hit again."""
    faults = [fault.describe() for fault in request.service.faults.active]
    return {"count": len(faults), "faults": faults}


def _inject_fault(request: ControlRequest) -> object:
    try:
        return request.service.faults.inject(request.body).describe()
    except ValueError as error:
        raise invalid(str(error)) from error


def _clear_faults(request: ControlRequest) -> None:
    request.service.faults.clear()


def _reset(request: ControlRequest) -> None:
    request.service.reset()


KEY_FIELDS: Fields = {
    "key": ("string", REQUIRED),
    "name": ("string", REQUIRED),
    "scopes": ("strings", REQUIRED),
    "organization_id": ("string", SEED.organization_id),
}
MEMBERS_FIELDS: Fields = {"count": ("integer", REQUIRED), "organization_id": ("string", SEED.organization_id)}
NAME_FIELD: Fields = {"name": ("string", REQUIRED)}
SETTINGS: Fields = {"profile": ("string", None), "latency_ms": ("number", None), "rate_limit": ("boolean", None)}
CALLS = (
    ControlCall("GET", "/", _show_page, public=True),
    # Targets of task links, for connections with the sandbox as web_url.
    ControlCall("GET", "/organization/{path:path}", _show_page, public=True),
    ControlCall("GET", "/project/{path:path}", _show_page, public=True),
    ControlCall("GET", "/_sandbox/health", _health, public=True),
    ControlCall("GET", "/_sandbox/workspace", _workspace, public=True),
    ControlCall("GET", "/_sandbox/effects", _list_effects),
    ControlCall("GET", "/_sandbox/requests", _list_requests),
    ControlCall("GET", "/_sandbox/batch_exports", _list_batch_exports),
    ControlCall("GET", "/_sandbox/batch_exports/{id}/runs", _list_runs),
    ControlCall("GET", "/_sandbox/dns", _list_dns),
    ControlCall("POST", "/_sandbox/dns", _publish_dns, {"name": ("string", REQUIRED), "value": ("string", REQUIRED)}),
    ControlCall("POST", "/_sandbox/clock", _advance_clock, {"advance_seconds": ("number", REQUIRED)}),
    ControlCall("POST", "/_sandbox/invites/{id}/accept", _accept_invite, status=201),
    ControlCall("PATCH", "/_sandbox/projects/{id}", _set_project),
    ControlCall("POST", "/_sandbox/keys", _add_key, KEY_FIELDS),
    ControlCall("POST", "/_sandbox/keys/revoke", _revoke_key, {"key": ("string", REQUIRED)}),
    ControlCall("POST", "/_sandbox/members", _add_members, MEMBERS_FIELDS, 201),
    ControlCall("POST", "/_sandbox/organizations", _new_organization, NAME_FIELD, 201),
    ControlCall("POST", "/_sandbox/settings", _change_settings, SETTINGS),
    ControlCall("GET", "/_sandbox/faults", _list_faults),
    ControlCall("POST", "/_sandbox/faults", _inject_fault, status=201),
    ControlCall("DELETE", "/_sandbox/faults", _clear_faults),
    ControlCall("POST", "/_sandbox/reset", _reset),
)


def control_routes(service: Service) -> list[BaseRoute]:
    """Return the routes of the page and of all control calls."""
    return [Route(call.path, _endpoint(service, call), methods=[call.method]) for call in CALLS]


def _endpoint(service: Service, call: ControlCall) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        try:
            if not call.public:
                _check_caller(request)
            body = _check_body(call.fields, await request.body())
            service.apply_due()
            result = call.handler(
                ControlRequest(service, service.state, request.path_params, request.query_params, body)
            )
            return to_response(result, 204 if result is None else call.status)
        except ApiError as error:
            return error.response()
        except UnicodeEncodeError:
            return invalid(LONE_SURROGATE).response()

    return endpoint


def _check_caller(request: Request) -> None:
    if request.client is None or not ipaddress.ip_address(request.client.host).is_loopback:
        raise forbidden("Control calls are for this machine only.")


def _check_body(fields: Fields | None, raw: bytes) -> JsonObject:
    body = parse_json(raw) if raw else {}
    if not isinstance(body, dict):
        raise invalid("Expected an object.")
    if fields is None:
        return body
    given = check_fields(body, fields, unnamed_refused=True)
    given = {name: value for name, value in given.items() if value is not None}
    for name, (_, default) in fields.items():
        if default is REQUIRED:
            require(given, name)
    return {name: given.get(name, default) for name, (_, default) in fields.items()}
