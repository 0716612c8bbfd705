"""Dashboards: create, retrieve, update, the refused delete, access controls and sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_workspace.sandbox import fields
from airflow_provider_workspace.sandbox.answers import JsonObject, answer, dumps, empty, not_found
from airflow_provider_workspace.sandbox.call import Call, Endpoint, integer

if TYPE_CHECKING:
    from starlette.responses import Response


def create_dashboard(call: Call) -> Response:
    """
    Create a dashboard. Two of the same name are two dashboards.

    :param call: The request.
    """
    project_id, organization_id = call.project()
    record = call.state.add_dashboard(project_id, call.fields(fields.DASHBOARD), call.user())
    call.effect("create_dashboard", organization_id, str(record["id"]), name=record["name"], project_id=project_id)
    return answer(record, 201)


def retrieve_dashboard(call: Call) -> Response:
    """
    Retrieve a dashboard.

    :param call: The request.
    """
    record, _ = find_dashboard(call, "id")
    return answer(record)


def update_dashboard(call: Call) -> Response:
    """
    Update a dashboard; ``deleted: true`` is how one is deleted.

    :param call: The request.
    """
    record, organization_id = find_dashboard(call, "id")
    wanted = call.fields(fields.DASHBOARD)
    if "deleted" in wanted:
        wanted["deleted"] = bool(wanted["deleted"])
    changes = {name: value for name, value in wanted.items() if record[name] != value}
    if changes:
        record |= changes
        record["effective_restriction_level"] = record["restriction_level"]
        call.state.db.execute(
            "UPDATE dashboards SET record = ?, deleted = ? WHERE id = ?",
            (dumps(record), record["deleted"], record["id"]),
        )
        operation = "delete_dashboard" if changes.get("deleted") else "update_dashboard"
        call.effect(operation, organization_id, str(record["id"]), name=record["name"], changed=changes)
    return answer(record)


def hard_delete_dashboard(_call: Call) -> Response:
    """Refuse: dashboards are never removed, known or unknown."""
    return empty(405)


def retrieve_dashboard_access_controls(call: Call) -> Response:
    """
    Retrieve the access controls of a dashboard, which the interface depicts as the dashboard itself.

    :param call: The request.
    """
    record, _ = find_dashboard(call, "id")
    if not call.profile.access_controls_own_shape:
        return answer(record)
    return answer(
        {
            "access_controls": [],
            "available_access_levels": ["none", "viewer", "editor", "manager"],
            "default_access_level": record["user_access_level"],
            "user_can_edit_access_levels": True,
        }
    )


def list_dashboard_sharing(call: Call) -> Response:
    """
    Retrieve the sharing configuration of a dashboard, a single object.

    :param call: The request.
    """
    record, _ = find_dashboard(call, "dashboard_id")
    return answer(call.state.record("SELECT sharing FROM dashboards WHERE id = ?", record["id"]))


def find_dashboard(call: Call, parameter: str) -> tuple[JsonObject, str]:
    """
    Return the dashboard in the path and the organization of its project.

    :param call: The request.
    :param parameter: The path parameter that holds its number.
    """
    project_id, organization_id = call.project()
    sql = "SELECT record FROM dashboards WHERE id = ? AND project_id = ?"
    record = call.state.record(sql, integer(call.path[parameter]), project_id)
    if record is None or (record["deleted"] and call.profile.deleted_dashboards_gone):
        raise not_found()
    return record, organization_id


DASHBOARDS = "/api/environments/{project_id}/dashboards/"
ENDPOINTS = (
    Endpoint("POST", DASHBOARDS, "dashboard:write", create_dashboard),
    Endpoint("GET", DASHBOARDS + "{id}/", "dashboard:read", retrieve_dashboard),
    Endpoint("PATCH", DASHBOARDS + "{id}/", "dashboard:write", update_dashboard),
    Endpoint("DELETE", DASHBOARDS + "{id}/", "dashboard:write", hard_delete_dashboard),
    Endpoint("GET", DASHBOARDS + "{id}/access_controls/", None, retrieve_dashboard_access_controls),
    Endpoint("GET", DASHBOARDS + "{dashboard_id}/sharing/", "sharing_configuration:read", list_dashboard_sharing),
)
