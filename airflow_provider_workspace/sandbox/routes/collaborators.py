"""Collaborators of a dashboard: list, add, remove."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from airflow_provider_workspace.sandbox import fields, records
from airflow_provider_workspace.sandbox.answers import answer, empty, invalid, not_found
from airflow_provider_workspace.sandbox.call import Call, Endpoint
from airflow_provider_workspace.sandbox.routes.dashboards import find_dashboard

if TYPE_CHECKING:
    from starlette.responses import Response


def list_dashboard_collaborators(call: Call) -> Response:
    """
    List the collaborators, in the shape of the profile.

    :param call: The request.
    """
    dashboard, _ = find_dashboard(call, "dashboard_id")
    sql = "SELECT record FROM collaborators WHERE dashboard_id = ? ORDER BY seq"
    collaborators = [json.loads(row["record"]) for row in call.state.db.execute(sql, (dashboard["id"],))]
    shape = call.profile.collaborator_list
    if shape == "envelope":
        count = len(collaborators)
        return answer({"count": count, "next": None, "previous": None, "results": collaborators})
    if shape == "single" and len(collaborators) == 1:
        return answer(collaborators[0])
    return answer(collaborators)


def add_dashboard_collaborator(call: Call) -> Response:
    """
    Add a member of the organization as collaborator, once.

    :param call: The request.
    """
    dashboard, organization_id = find_dashboard(call, "dashboard_id")
    wanted = call.fields(fields.COLLABORATOR)
    fields.require(wanted, "user_uuid")
    user_uuid = wanted["user_uuid"].lower()
    sql = "SELECT record FROM members WHERE organization_id = ? AND user_uuid = ?"
    member = call.state.record(sql, organization_id, user_uuid)
    if member is None:
        raise invalid("User does not exist.", "user_uuid")
    sql = "SELECT 1 FROM collaborators WHERE dashboard_id = ? AND user_uuid = ?"
    if call.state.one(sql, dashboard["id"], user_uuid):
        raise invalid("User already is a collaborator.", "user_uuid", "unique")
    level = wanted.get("level", records.COLLABORATOR_LEVEL)
    record = records.collaborator(dashboard["id"], member["user"], level, call.state.timestamp())
    call.state.add_collaborator(record)
    call.effect(
        "add_dashboard_collaborator",
        organization_id,
        user_uuid,
        email=member["user"]["email"],
        dashboard_id=dashboard["id"],
        level=level,
    )
    return answer(record, 201)


def remove_dashboard_collaborator(call: Call) -> Response:
    """
    Remove a collaborator.

    :param call: The request.
    """
    dashboard, organization_id = find_dashboard(call, "dashboard_id")
    place = (dashboard["id"], call.path["user__uuid"])
    record = call.state.record("SELECT record FROM collaborators WHERE dashboard_id = ? AND user_uuid = ?", *place)
    if record is None:
        raise not_found()
    call.state.db.execute("DELETE FROM collaborators WHERE dashboard_id = ? AND user_uuid = ?", place)
    call.effect(
        "remove_dashboard_collaborator",
        organization_id,
        record["user"]["uuid"],
        email=record["user"]["email"],
        dashboard_id=dashboard["id"],
    )
    return empty(204)


COLLABORATORS = "/api/environments/{project_id}/dashboards/{dashboard_id}/collaborators/"
ENDPOINTS = (
    Endpoint("GET", COLLABORATORS, "dashboard:read", list_dashboard_collaborators),
    Endpoint("POST", COLLABORATORS, "dashboard:write", add_dashboard_collaborator),
    Endpoint("DELETE", COLLABORATORS + "{user__uuid}/", "dashboard:write", remove_dashboard_collaborator),
)
