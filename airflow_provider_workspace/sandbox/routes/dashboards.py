"""Dashboards: create, retrieve, update, the refused delete, access controls and sharing."""

from __future__ import annotations

import json
import secrets

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, Fields, path_integer, with_defaults
from airflow_provider_workspace.sandbox.responses import JsonObject, dumps, not_found
from airflow_provider_workspace.sandbox.state import State

EVERYBODY_EDITS = 21
COLLABORATOR_LEVEL = 37

FIELDS: Fields = {
    "name": ("string", None),
    "description": ("string", ""),
    "pinned": ("boolean", False),
    "deleted": ("boolean", False),
    "use_template": ("string", None),
    "use_dashboard": ("integer", None),
    "delete_insights": ("boolean", False),
    "tags": ("array", []),
    "restriction_level": ("integer", EVERYBODY_EDITS),
}


def add_dashboard(state: State, project_id: int, fields: JsonObject, created_by: JsonObject) -> JsonObject:
    """Add a dashboard with its sharing configuration, and return its record."""
    at = state.timestamp()
    record: JsonObject = with_defaults(FIELDS, fields)
    record |= {
        "id": state.next_id("dashboards"),
        "created_at": at,
        "created_by": created_by,
        "is_shared": False,
        "deleted": bool(record["deleted"]),
        "creation_mode": _creation_mode(record),
        "filters": {},
        "variables": {},
        "tiles": [],
        "effective_restriction_level": record["restriction_level"],
        "effective_privilege_level": COLLABORATOR_LEVEL,
        "user_access_level": "editor",
    }
    state.insert(
        "dashboards",
        id=record["id"],
        project_id=project_id,
        deleted=record["deleted"],
        record=dumps(record),
        sharing=dumps({"created_at": at, "enabled": False, "access_token": secrets.token_urlsafe(16)}),
    )
    return record


def create_dashboard(request: ApiRequest) -> object:
    """Create a dashboard; names need not be unique."""
    project_id, organization_id = request.project()
    record = add_dashboard(request.state, project_id, request.fields(FIELDS), request.user())
    request.audit("create_dashboard", organization_id, str(record["id"]), name=record["name"], project_id=project_id)
    return record


def retrieve_dashboard(request: ApiRequest) -> object:
    record, _ = find_dashboard(request, "id")
    return record


def update_dashboard(request: ApiRequest) -> object:
    """Update a dashboard; ``deleted: true`` deletes it."""
    record, organization_id = find_dashboard(request, "id")
    fields = request.fields(FIELDS)
    if "deleted" in fields:
        fields["deleted"] = bool(fields["deleted"])
    changes = {name: value for name, value in fields.items() if record[name] != value}
    if changes:
        record |= changes
        record["effective_restriction_level"] = record["restriction_level"]
        sql = "UPDATE dashboards SET record = ?, deleted = ? WHERE id = ?"
        request.state.db.execute(sql, (dumps(record), record["deleted"], record["id"]))
        operation = "delete_dashboard" if changes.get("deleted") else "update_dashboard"
        request.audit(operation, organization_id, str(record["id"]), name=record["name"], changed=changes)
    return record


def hard_delete_dashboard(_request: ApiRequest) -> None:
    """Do nothing; the route always returns 405."""


def retrieve_dashboard_access_controls(request: ApiRequest) -> object:
    """Retrieve the access controls of a dashboard, which the interface shows as the dashboard itself."""
    record, _ = find_dashboard(request, "id")
    if not request.live:
        return record
    return {
        "access_controls": [],
        "available_access_levels": ["none", "viewer", "editor", "manager"],
        "default_access_level": record["user_access_level"],
        "user_can_edit_access_levels": True,
    }


def list_dashboard_sharing(request: ApiRequest) -> object:
    """Retrieve the sharing configuration of a dashboard, a single object."""
    record, _ = find_dashboard(request, "dashboard_id")
    return json.loads(request.state.find("dashboards", id=record["id"])["sharing"])


def find_dashboard(request: ApiRequest, parameter: str) -> tuple[JsonObject, str]:
    """Return the dashboard in a path parameter, and the organization of its project."""
    project_id, organization_id = request.project()
    record = request.state.record("dashboards", id=path_integer(request.path[parameter]), project_id=project_id)
    if record["deleted"] and request.live:
        raise not_found()
    return record, organization_id


def _creation_mode(record: JsonObject) -> str:
    if record["use_template"]:
        return "template"
    return "duplicate" if record["use_dashboard"] else "default"


DASHBOARDS = "/api/environments/{project_id}/dashboards/"
ROUTES = (
    ApiRoute("POST", DASHBOARDS, "dashboard:write", create_dashboard, 201),
    ApiRoute("GET", DASHBOARDS + "{id}/", "dashboard:read", retrieve_dashboard),
    ApiRoute("PATCH", DASHBOARDS + "{id}/", "dashboard:write", update_dashboard),
    ApiRoute("DELETE", DASHBOARDS + "{id}/", "dashboard:write", hard_delete_dashboard, 405),
    ApiRoute("GET", DASHBOARDS + "{id}/access_controls/", None, retrieve_dashboard_access_controls),
    ApiRoute("GET", DASHBOARDS + "{dashboard_id}/sharing/", "sharing_configuration:read", list_dashboard_sharing),
)
