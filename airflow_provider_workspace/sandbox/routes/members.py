"""Members of an organization: list, update, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_workspace.sandbox import fields, records
from airflow_provider_workspace.sandbox.answers import JsonObject, answer, denied, dumps, empty, invalid, not_found
from airflow_provider_workspace.sandbox.call import Call, Endpoint

if TYPE_CHECKING:
    from starlette.responses import Response


def list_members(call: Call) -> Response:
    """
    List the members, in the order in which they joined.

    :param call: The request.
    """
    return call.page("members", call.organization())


def update_member(call: Call) -> Response:
    """
    Change the level of a member.

    :param call: The request.
    """
    record, organization_id = _find(call)
    wanted = call.fields(fields.MEMBER)
    user_uuid, old = record["user"]["uuid"], record["level"]
    level = wanted.get("level", old)
    if call.profile.levels_closed and level not in records.LEVELS:
        raise invalid(f'"{level}" is not a valid choice.', "level", "invalid_choice")
    if call.profile.own_level_fixed and user_uuid == call.key.user_uuid:
        raise denied("You can't change your own access level.")
    if level != old:
        record |= {"level": level, "updated_at": call.state.timestamp()}
        sql = "UPDATE members SET record = ? WHERE organization_id = ? AND user_uuid = ?"
        call.state.db.execute(sql, (dumps(record), organization_id, user_uuid))
        call.effect("update_member", organization_id, user_uuid, email=record["user"]["email"], level=level, old=old)
    return answer(record)


def delete_member(call: Call) -> Response:
    """
    Remove a member from the organization.

    :param call: The request.
    """
    record, organization_id = _find(call)
    user_uuid = record["user"]["uuid"]
    sql = "DELETE FROM members WHERE organization_id = ? AND user_uuid = ?"
    call.state.db.execute(sql, (organization_id, user_uuid))
    call.effect("delete_member", organization_id, user_uuid, email=record["user"]["email"])
    return empty(204)


def _find(call: Call) -> tuple[JsonObject, str]:
    organization_id = call.organization()
    sql = "SELECT record FROM members WHERE organization_id = ? AND user_uuid = ?"
    record = call.state.record(sql, organization_id, call.path["user__uuid"])
    if record is None:
        raise not_found()
    return record, organization_id


MEMBERS = "/api/organizations/{organization_id}/members/"
ENDPOINTS = (
    Endpoint("GET", MEMBERS, "organization_member:read", list_members, query=("limit", "offset")),
    Endpoint("PATCH", MEMBERS + "{user__uuid}/", "organization_member:write", update_member),
    Endpoint("DELETE", MEMBERS + "{user__uuid}/", "organization_member:write", delete_member),
)
