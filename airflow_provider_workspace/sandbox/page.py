"""
The page at ``/`` and the summary of an organization that it shows, without secrets.

The page is one HTML file without external resources, which polls the summary every second.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

from airflow_provider_workspace.sandbox.responses import JsonObject
from airflow_provider_workspace.sandbox.routes.batch_exports import COLUMN as EXPORT_COLUMN
from airflow_provider_workspace.sandbox.routes.invites import INVITE_COLUMN
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.service import Service
from airflow_provider_workspace.sandbox.state import State

PAGE = Path(__file__).with_name("page.html").read_text(encoding="utf-8")


def _hash_of(tag: str) -> str:
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src {_hash_of('style')}; script-src {_hash_of('script')}; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers that keep foreign scripts out of the page, and the page out of foreign frames."""

ROWS = 20
AUDIT_ROWS = 30

PROJECT_FIELDS = ("id", "name", "timezone", "ingested_event", "is_demo", "created_at")
DASHBOARD_FIELDS = ("id", "name", "pinned", "deleted", "tags")
DOMAIN_FIELDS = ("id", "domain", "is_verified", "verified_at", "verification_challenge", "has_saml")
EXPORT_FIELDS = ("id", "name", "model", "paused", "last_paused_at")
INVITE_FIELDS = ("id", "target_email", "first_name", "level", "is_expired", "emailing_attempt_made", "created_at")
MEMBER_FIELDS = ("level", "is_2fa_enabled", "last_login", "joined_at")


def summarize(service: Service, organization_id: str = SEED.organization_id) -> JsonObject:
    """Return the latest rows of everything in an organization."""
    state = service.state
    organization = state.find("organizations", id=organization_id)
    return {
        "profile": service.settings.profile,
        "now": state.timestamp(),
        "request_total": service.request_total,
        "faults": service.list_faults(),
        "fault_kinds": list(service.faults.kinds),
        "organizations": [dict(row) for row in state.db.execute("SELECT id, name FROM organizations ORDER BY name")],
        "organization": dict(organization),
        "projects": _projects(state, organization_id),
        "domains": _latest(state, "domains", organization_id, DOMAIN_FIELDS),
        "batch_exports": _latest(state, "batch_exports", organization_id, EXPORT_FIELDS, EXPORT_COLUMN),
        "invites": _invites(state, organization_id),
        "members": _members(state, organization_id),
        "effects": _audit(state, organization_id),
    }


def _latest(
    state: State, table: str, organization_id: str, names: tuple[str, ...], column: str = "record", *values: object
) -> JsonObject:
    count = state.count(table, organization_id)
    records = state.page(table, organization_id, ROWS, max(0, count - ROWS), column, *values)
    return {"count": count, "results": [_pick(record, names) for record in reversed(records)]}


def _projects(state: State, organization_id: str) -> JsonObject:
    projects = _latest(state, "projects", organization_id, PROJECT_FIELDS)
    for project in projects["results"]:
        sql = "SELECT record FROM dashboards WHERE project_id = ? ORDER BY id DESC LIMIT ?"
        rows = state.db.execute(sql, (project["id"], ROWS)).fetchall()
        project["dashboards"] = [
            _pick(row["record"], DASHBOARD_FIELDS) | {"collaborators": _collaborators(state, row["record"])}
            for row in rows
        ]
    return projects


def _collaborators(state: State, dashboard: str) -> list[str]:
    sql = "SELECT record FROM collaborators WHERE dashboard_id = ? ORDER BY seq LIMIT ?"
    rows = state.db.execute(sql, (json.loads(dashboard)["id"], ROWS))
    return [json.loads(row["record"])["user"]["email"] for row in rows]


def _invites(state: State, organization_id: str) -> JsonObject:
    now = state.timestamp()
    invites = _latest(state, "invites", organization_id, INVITE_FIELDS, INVITE_COLUMN, now)
    sql = "SELECT count(*) FROM invites WHERE organization_id = ? AND expires_at <= ?"
    expired = state.number(sql, organization_id, now)
    return invites | {"pending": invites["count"] - expired, "expired": expired}


def _members(state: State, organization_id: str) -> JsonObject:
    members = _latest(state, "members", organization_id, ("user", *MEMBER_FIELDS))
    for member in members["results"]:
        user = member.pop("user")
        member |= {"name": f"{user['first_name']} {user['last_name']}", "email": user["email"]}
    return members


def _audit(state: State, organization_id: str) -> JsonObject:
    sql = "SELECT id, at, operation, target, key_name, detail FROM audit WHERE organization_id = ?"
    rows = state.db.execute(f"{sql} ORDER BY id DESC LIMIT ?", (organization_id, AUDIT_ROWS))
    entries = [dict(row) | {"detail": json.loads(row["detail"])} for row in rows]
    return {"count": state.count("audit", organization_id), "results": entries}


def _pick(record: str, names: tuple[str, ...]) -> JsonObject:
    fields = json.loads(record)
    return {name: fields[name] for name in names}
