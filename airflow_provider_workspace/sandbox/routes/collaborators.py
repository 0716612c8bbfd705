"""Collaborators of a dashboard: list, add, remove."""

from __future__ import annotations

import json
from uuid import uuid4

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, Fields, require
from airflow_provider_workspace.sandbox.responses import JsonObject, dumps, invalid
from airflow_provider_workspace.sandbox.routes.dashboards import COLLABORATOR_LEVEL, EVERYBODY_EDITS, find_dashboard
from airflow_provider_workspace.sandbox.state import State

FIELDS: Fields = {"level": ("integer", COLLABORATOR_LEVEL), "user_uuid": ("string", None)}


def add_collaborator(state: State, dashboard_id: int, user: JsonObject, level: int = COLLABORATOR_LEVEL) -> JsonObject:
    """Add a collaborator to a dashboard and return the record."""
    at = state.timestamp()
    record = {
        "id": str(uuid4()),
        "dashboard_id": dashboard_id,
        "user": user,
        "level": level,
        "added_at": at,
        "updated_at": at,
        "user_uuid": user["uuid"],
    }
    state.insert("collaborators", dashboard_id=dashboard_id, user_uuid=user["uuid"], record=dumps(record))
    return record


def list_dashboard_collaborators(request: ApiRequest) -> object:
    """List the collaborators, in a shape of each profile: the interface does not show it."""
    dashboard, _ = find_dashboard(request, "dashboard_id")
    sql = "SELECT record FROM collaborators WHERE dashboard_id = ? ORDER BY seq"
    collaborators = [json.loads(row["record"]) for row in request.state.db.execute(sql, (dashboard["id"],))]
    return collaborators[0] if len(collaborators) == 1 and not request.live else collaborators


def add_dashboard_collaborator(request: ApiRequest) -> object:
    """Add a member of the organization as collaborator; a duplicate is refused."""
    dashboard, organization_id = find_dashboard(request, "dashboard_id")
    fields = request.fields(FIELDS)
    require(fields, "user_uuid")
    _check_restriction(request, dashboard)
    if request.live:
        require(fields, "level")
    user_uuid = fields["user_uuid"].lower()
    member = request.state.one("members", organization_id=organization_id, user_uuid=user_uuid)
    if member is None:
        raise invalid("User does not exist.", "user_uuid")
    if request.state.one("collaborators", dashboard_id=dashboard["id"], user_uuid=user_uuid):
        raise invalid("User already is a collaborator.", "user_uuid", "unique")
    level = fields.get("level", COLLABORATOR_LEVEL)
    user = json.loads(member["record"])["user"]
    record = add_collaborator(request.state, dashboard["id"], user, level)
    request.audit(
        "add_dashboard_collaborator",
        organization_id,
        user_uuid,
        email=user["email"],
        dashboard_id=dashboard["id"],
        level=level,
    )
    return record


def remove_dashboard_collaborator(request: ApiRequest) -> None:
    dashboard, organization_id = find_dashboard(request, "dashboard_id")
    _check_restriction(request, dashboard)
    user_uuid = request.path["user__uuid"]
    row = request.state.find("collaborators", dashboard_id=dashboard["id"], user_uuid=user_uuid)
    request.state.db.execute("DELETE FROM collaborators WHERE seq = ?", (row["seq"],))
    user = json.loads(row["record"])["user"]
    request.audit(
        "remove_dashboard_collaborator",
        organization_id,
        user["uuid"],
        email=user["email"],
        dashboard_id=dashboard["id"],
    )


def _check_restriction(request: ApiRequest, dashboard: JsonObject) -> None:
    restricted = dashboard["restriction_level"] != EVERYBODY_EDITS
    if request.live and not restricted:
        raise invalid("Cannot change collaborators of a dashboard on the lowest restriction level.")


COLLABORATORS = "/api/environments/{project_id}/dashboards/{dashboard_id}/collaborators/"
ROUTES = (
    ApiRoute("GET", COLLABORATORS, "dashboard:read", list_dashboard_collaborators),
    ApiRoute("POST", COLLABORATORS, "dashboard:write", add_dashboard_collaborator, 201),
    ApiRoute("DELETE", COLLABORATORS + "{user__uuid}/", "dashboard:write", remove_dashboard_collaborator, 204),
)
