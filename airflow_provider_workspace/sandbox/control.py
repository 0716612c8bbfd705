"""
The control calls under ``/_sandbox/``, which change or show what the interface cannot; no key, this machine only.

Only what the page shows, which holds no secret, is for others too, where they are let in by ``--allow-remote``.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from airflow_provider_workspace.sandbox import records, seed
from airflow_provider_workspace.sandbox.answers import JsonObject, answer, denied, dumps, empty, invalid, not_found
from airflow_provider_workspace.sandbox.page import CONTENT_SECURITY_POLICY, PAGE
from airflow_provider_workspace.sandbox.profiles import PROFILES
from airflow_provider_workspace.sandbox.state import Key
from airflow_provider_workspace.sandbox.workspace import describe_workspace

if TYPE_CHECKING:
    from starlette.requests import Request

    from airflow_provider_workspace.sandbox.service import Service

EFFECT_FILTERS = ("operation", "organization_id", "target")


class Control:
    """
    The handlers of the control calls.

    :param service: The running sandbox.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.state = service.state

    def routes(self) -> list[BaseRoute]:
        """Return the page, at ``/`` and where tasks link to, and every control call."""
        return [
            Route("/", self.page),
            # Where the links of tasks lead whose connection has the sandbox as its web_url.
            Route("/organization/{path:path}", self.page),
            Route("/project/{path:path}", self.page),
            Route("/_sandbox/health", self.health),
            Route("/_sandbox/workspace", self.workspace),
            Route("/_sandbox/effects", self.effects),
            Route("/_sandbox/requests", self.requests),
            Route("/_sandbox/batch_exports", self.batch_exports),
            Route("/_sandbox/dns", self.list_dns, methods=["GET"]),
            Route("/_sandbox/dns", self.publish_dns, methods=["POST"]),
            Route("/_sandbox/clock", self.advance_clock, methods=["POST"]),
            Route("/_sandbox/invites/{id}/accept", self.accept_invite, methods=["POST"]),
            Route("/_sandbox/projects/{id:int}", self.set_project, methods=["PATCH"]),
            Route("/_sandbox/keys", self.add_key, methods=["POST"]),
            Route("/_sandbox/keys/revoke", self.revoke_key, methods=["POST"]),
            Route("/_sandbox/members", self.add_members, methods=["POST"]),
            Route("/_sandbox/organizations", self.add_organization, methods=["POST"]),
            Route("/_sandbox/settings", self.change_settings, methods=["POST"]),
            Route("/_sandbox/faults", self.list_faults, methods=["GET"]),
            Route("/_sandbox/faults", self.inject_fault, methods=["POST"]),
            Route("/_sandbox/faults", self.clear_faults, methods=["DELETE"]),
            Route("/_sandbox/reset", self.reset, methods=["POST"]),
        ]

    async def page(self, _request: Request) -> Response:
        """Show the page."""
        return HTMLResponse(PAGE, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    async def health(self, _request: Request) -> Response:
        """Tell that the sandbox is up."""
        return answer({"status": "ok", "profile": self.service.settings.profile.name})

    async def workspace(self, request: Request) -> Response:
        """Describe an organization for the page; without secrets."""
        organization_id = request.query_params.get("organization_id", seed.SEED.organization_id)
        return answer(describe_workspace(self.service, organization_id))

    async def effects(self, request: Request) -> Response:
        """List what writes have changed, oldest first, filtered by operation, organization or target."""
        _check_caller(request)
        wanted = {name: request.query_params[name] for name in EFFECT_FILTERS if name in request.query_params}
        where = " AND ".join(f"{name} = ?" for name in wanted) or "1"
        sql = f"SELECT * FROM effects WHERE {where} ORDER BY id"  # noqa: S608 -- names of our own
        effects = [
            dict(row) | {"detail": json.loads(row["detail"])} for row in self.state.db.execute(sql, (*wanted.values(),))
        ]
        return answer({"count": len(effects), "effects": effects})

    async def requests(self, request: Request) -> Response:
        """List the latest requests of the interface, oldest first."""
        _check_caller(request)
        entries = list(self.service.log)
        limit = request.query_params.get("limit", str(len(entries)))
        if not limit.isdecimal():
            raise invalid("A valid integer is required.", "limit")
        entries = entries[max(0, len(entries) - int(limit)) :]
        return answer({"total": self.service.request_total, "count": len(entries), "requests": entries})

    async def batch_exports(self, request: Request) -> Response:
        """List all batch exports with their state, which the interface cannot show."""
        _check_caller(request)
        rows = self.state.db.execute("SELECT * FROM batch_exports ORDER BY organization_id, id")
        exports = [dict(row) | {"paused": bool(row["paused"])} for row in rows]
        return answer({"count": len(exports), "batch_exports": exports})

    async def list_dns(self, request: Request) -> Response:
        """List the TXT records."""
        _check_caller(request)
        rows = self.state.db.execute("SELECT name, value FROM dns ORDER BY name, value")
        return answer({"records": [dict(row) for row in rows]})

    async def publish_dns(self, request: Request) -> Response:
        """Publish a TXT record."""
        body = await _body(request)
        name = _text(body, "name").lower().rstrip(".")
        self.state.db.execute("INSERT OR IGNORE INTO dns VALUES (?, ?)", (name, _text(body, "value")))
        return empty(204)

    async def advance_clock(self, request: Request) -> Response:
        """Move the clock of the sandbox."""
        body = await _body(request)
        self.state.advance_clock(float(_value(body, "advance_seconds", int, float)))
        return answer({"now": self.state.timestamp()})

    async def accept_invite(self, request: Request) -> Response:
        """Accept an invite as its addressee would: a new member, and the invite is gone."""
        _check_caller(request)
        row = self.state.one("SELECT * FROM invites WHERE id = ?", request.path_params["id"])
        if row is None:
            raise not_found()
        if row["expires_at"] <= self.state.timestamp():
            raise invalid("This invite has expired.", code="expired")
        if self.state.is_member(row["organization_id"], row["email"]):
            raise invalid("The addressee is a member already.", code="unique")
        invite = json.loads(row["record"])
        with self.state.transaction():
            user = self.state.record("SELECT record FROM users WHERE email = ?", row["email"])
            if user is None:
                user = self.state.add_user(invite["first_name"] or "", "", invite["target_email"])
            member = records.member(user, invite["level"], self.state.timestamp())
            self.state.add_member(row["organization_id"], member)
            self.state.db.execute("DELETE FROM invites WHERE id = ?", (row["id"],))
        return answer(member, 201)

    async def set_project(self, request: Request) -> Response:
        """Set any fields of a project, such as ``ingested_event``."""
        fields = await _body(request)
        project_id = request.path_params["id"]
        record = self.state.record("SELECT record FROM projects WHERE id = ?", project_id)
        if record is None:
            raise not_found()
        for name in fields:
            if name not in record:
                raise invalid("A project has no such field.", name, "unknown_field")
        record |= fields | {"updated_at": self.state.timestamp()}
        self.state.db.execute("UPDATE projects SET record = ? WHERE id = ?", (dumps(record), project_id))
        return answer(record)

    async def add_key(self, request: Request) -> Response:
        """Issue an API key; it acts for the owner of the seed."""
        body = await _body(request)
        organization_id = body.get("organization_id", seed.SEED.organization_id)
        scopes = frozenset(_value(body, "scopes", list))
        name, secret = _text(body, "name"), _text(body, "key")
        self.state.add_key(Key(secret, name, scopes, frozenset({organization_id}), seed.SEED.owner_uuid))
        return empty(204)

    async def revoke_key(self, request: Request) -> Response:
        """Revoke an API key."""
        body = await _body(request)
        if not self.state.db.execute("UPDATE keys SET revoked = 1 WHERE key = ?", (_text(body, "key"),)).rowcount:
            raise not_found()
        return empty(204)

    async def add_members(self, request: Request) -> Response:
        """Add many fictional members."""
        body = await _body(request)
        organization_id = body.get("organization_id") or seed.SEED.organization_id
        if self.state.one("SELECT 1 FROM organizations WHERE id = ?", organization_id) is None:
            raise not_found()
        with self.state.transaction():
            seed.add_members(self.state, organization_id, _value(body, "count", int))
        count = self.state.lists.count("members", organization_id)
        return answer({"organization_id": organization_id, "count": count}, 201)

    async def add_organization(self, request: Request) -> Response:
        """Add an organization."""
        body = await _body(request)
        with self.state.transaction():
            return answer(seed.add_organization(self.state, _text(body, "name")), 201)

    async def change_settings(self, request: Request) -> Response:
        """Change latency, profile or rates until the next reset."""
        body = await _body(request)
        settings = self.service.settings
        if "profile" in body:
            if body["profile"] not in PROFILES:
                raise invalid(f"Choose one of {', '.join(PROFILES)}.", "profile")
            settings = dataclasses.replace(settings, profile=PROFILES[body["profile"]])
        if "latency_ms" in body:
            settings = dataclasses.replace(settings, latency_ms=float(_value(body, "latency_ms", int, float)))
        if "rate_limit" in body:
            settings = dataclasses.replace(settings, rate_limit=_value(body, "rate_limit", bool))
        self.service.settings = settings
        shown = {"latency_ms": settings.latency_ms, "profile": settings.profile.name, "rate_limit": settings.rate_limit}
        return answer(shown)

    async def list_faults(self, request: Request) -> Response:
        """List the faults that were switched on, also those that have hit as often as they should."""
        _check_caller(request)
        faults = [fault.describe() for fault in self.service.faults.active]
        return answer({"count": len(faults), "faults": faults})

    async def inject_fault(self, request: Request) -> Response:
        """Switch a fault on."""
        body = await _body(request)
        try:
            return answer(self.service.faults.inject(body).describe(), 201)
        except ValueError as error:
            raise invalid(str(error)) from error

    async def clear_faults(self, request: Request) -> Response:
        """Switch all faults off."""
        _check_caller(request)
        self.service.faults.clear()
        return empty(204)

    async def reset(self, request: Request) -> Response:
        """Go back to the seed."""
        _check_caller(request)
        self.service.reset()
        return empty(204)


def _check_caller(request: Request) -> None:
    if request.client is None or not ipaddress.ip_address(request.client.host).is_loopback:
        raise denied("Control calls are for this machine only.")


async def _body(request: Request) -> JsonObject:
    _check_caller(request)
    try:
        body = await request.json()
    except ValueError as error:
        raise invalid("JSON parse error.", code="parse_error") from error
    if not isinstance(body, dict):
        raise invalid("Expected an object.")
    return body


def _value(body: JsonObject, name: str, *types: type) -> Any:
    value = body.get(name)
    if not isinstance(value, types):
        raise invalid(f"Expected {' or '.join(kind.__name__ for kind in types)}.", name)
    return value


def _text(body: JsonObject, name: str) -> str:
    return str(_value(body, name, str))
