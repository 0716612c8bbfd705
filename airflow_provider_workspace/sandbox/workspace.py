"""The summary of an organization that the page shows: what a person would like to see, and no secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.sandbox.answers import JsonObject, not_found
from airflow_provider_workspace.sandbox.routes.invites import INVITE_COLUMN

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.service import Service
    from airflow_provider_workspace.sandbox.state import State

ROWS = 20
EFFECT_ROWS = 30


def describe_workspace(service: Service, organization_id: str) -> JsonObject:
    """
    Describe an organization.

    :param service: The running sandbox.
    :param organization_id: UUID of the organization.
    """
    state = service.state
    organization = state.one("SELECT id, name FROM organizations WHERE id = ?", organization_id)
    if organization is None:
        raise not_found()
    return {
        "profile": service.settings.profile.name,
        "now": state.timestamp(),
        "request_total": service.request_total,
        "organizations": [dict(row) for row in state.db.execute("SELECT id, name FROM organizations ORDER BY name")],
        "organization": dict(organization),
        "projects": _projects(state, organization_id),
        "domains": _domains(state, organization_id),
        "batch_exports": _batch_exports(state, organization_id),
        "invites": _invites(state, organization_id),
        "members": _members(state, organization_id),
        "effects": _effects(state, organization_id),
    }


def _projects(state: State, organization_id: str) -> JsonObject:
    rows = state.db.execute(
        "SELECT record FROM projects WHERE organization_id = ? ORDER BY id DESC LIMIT ?", (organization_id, ROWS)
    )
    projects = [
        _pick(row["record"], "id", "name", "timezone", "ingested_event", "is_demo", "created_at") for row in rows
    ]
    for project in projects:
        project["dashboards"] = _dashboards(state, project["id"])
    count = _count(state, "projects", organization_id)
    return {"count": count, "results": projects}


def _dashboards(state: State, project_id: int) -> list[JsonObject]:
    rows = state.db.execute(
        "SELECT record FROM dashboards WHERE project_id = ? ORDER BY id DESC LIMIT ?", (project_id, ROWS)
    )
    dashboards = [_pick(row["record"], "id", "name", "pinned", "deleted", "tags") for row in rows]
    for dashboard in dashboards:
        sql = "SELECT record FROM collaborators WHERE dashboard_id = ? ORDER BY seq LIMIT ?"
        collaborators = [json.loads(row["record"]) for row in state.db.execute(sql, (dashboard["id"], ROWS))]
        dashboard["collaborators"] = [_name(collaborator["user"]) for collaborator in collaborators]
    return dashboards


def _domains(state: State, organization_id: str) -> JsonObject:
    names = ("id", "domain", "is_verified", "verified_at", "verification_challenge", "has_saml")
    rows = state.db.execute(
        "SELECT record FROM domains WHERE organization_id = ? ORDER BY seq DESC LIMIT ?", (organization_id, ROWS)
    )
    count = _count(state, "domains", organization_id)
    return {"count": count, "results": [_pick(row["record"], *names) for row in rows]}


def _batch_exports(state: State, organization_id: str) -> JsonObject:
    sql = "SELECT id, name, model, paused, last_paused_at FROM batch_exports WHERE organization_id = ? ORDER BY id"
    exports = [dict(row) | {"paused": bool(row["paused"])} for row in state.db.execute(sql, (organization_id,))]
    return {"count": len(exports), "results": exports}


def _invites(state: State, organization_id: str) -> JsonObject:
    now = state.timestamp()
    rows = state.db.execute(
        f"SELECT {INVITE_COLUMN} FROM invites WHERE organization_id = ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
        (now, organization_id, ROWS),
    )
    count = _count(state, "invites", organization_id)
    sql = "SELECT count(*) FROM invites WHERE organization_id = ? AND expires_at <= ?"
    expired = state.number(sql, organization_id, now)
    names = ("id", "target_email", "first_name", "level", "is_expired", "emailing_attempt_made", "created_at")
    return {
        "count": count,
        "pending": count - expired,
        "expired": expired,
        "results": [_pick(row[0], *names) for row in rows],
    }


def _members(state: State, organization_id: str) -> JsonObject:
    rows = state.db.execute(
        "SELECT record FROM members WHERE organization_id = ? ORDER BY seq DESC LIMIT ?", (organization_id, ROWS)
    )
    members = []
    for row in rows:
        record = json.loads(row["record"])
        members.append(
            {
                "name": _name(record["user"]),
                "email": record["user"]["email"],
                "level": record["level"],
                "is_2fa_enabled": record["is_2fa_enabled"],
                "last_login": record["last_login"],
                "joined_at": record["joined_at"],
            }
        )
    count = _count(state, "members", organization_id)
    return {"count": count, "results": members}


def _effects(state: State, organization_id: str) -> JsonObject:
    sql = "SELECT id, at, operation, target, key_name, detail FROM effects WHERE organization_id = ?"
    rows = state.db.execute(f"{sql} ORDER BY id DESC LIMIT ?", (organization_id, EFFECT_ROWS))
    count = _count(state, "effects", organization_id)
    return {"count": count, "results": [dict(row) | {"detail": json.loads(row["detail"])} for row in rows]}


def _count(state: State, table: str, organization_id: str) -> int:
    return state.number(f"SELECT count(*) FROM {table} WHERE organization_id = ?", organization_id)  # noqa: S608


def _pick(record: str, *names: str) -> JsonObject:
    fields: dict[str, Any] = json.loads(record)
    return {name: fields[name] for name in names}


def _name(user: JsonObject) -> str:
    return " ".join(part for part in (user["first_name"], user["last_name"]) if part) or str(user["email"])
