"""Members of an organization: list, update, delete."""

from __future__ import annotations

import json
from uuid import uuid4

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, Fields
from airflow_provider_workspace.sandbox.responses import JsonObject, dumps, forbidden, invalid
from airflow_provider_workspace.sandbox.state import State

MEMBER_LEVEL = 1
OWNER_LEVEL = 15
LEVELS = (MEMBER_LEVEL, 8, OWNER_LEVEL)

FIELDS: Fields = {"level": ("integer", MEMBER_LEVEL)}


def add_user(state: State, first_name: str, last_name: str, email: str, uuid: str | None = None) -> JsonObject:
    """Add a user and return the record; the UUID is derived from the id, so that seeds are reproducible."""
    user_id = state.next_id("users")
    record = {
        "id": user_id,
        "uuid": uuid or f"0190c0de-0000-4000-8001-{user_id:012x}",
        "distinct_id": f"user-{user_id}",
        "first_name": first_name,
        "last_name": last_name,
        "email": email,
        "is_email_verified": True,
        "hedgehog_config": {},
    }
    state.insert("users", id=user_id, uuid=record["uuid"], email=email.lower(), record=dumps(record))
    return record


def add_member(state: State, organization_id: str, user: JsonObject, level: int, **more: object) -> JsonObject:
    """Add a member and return the record; ``more`` has further fields of it, for the seed."""
    at = state.timestamp()
    record = {
        "id": str(uuid4()),
        "user": user,
        "level": level,
        "joined_at": at,
        "updated_at": at,
        "is_2fa_enabled": False,
        "has_social_auth": False,
        "last_login": None,
        **more,
    }
    state.insert(
        "members",
        organization_id=organization_id,
        user_uuid=user["uuid"],
        email=user["email"].lower(),
        record=dumps(record),
    )
    return record


def is_member(state: State, organization_id: str, email: str) -> bool:
    """Return whether an e-mail address, ignoring case, belongs to a member."""
    return state.one("members", organization_id=organization_id, email=email.lower()) is not None


def check_level(request: ApiRequest, level: int) -> None:
    """Refuse an unknown level, and one above that of the key's owner, in ``live``."""
    if not request.live:
        return
    if level not in LEVELS:
        raise invalid(f'"{level}" is not a valid choice.', "level", "invalid_choice")
    place = {"organization_id": request.path["organization_id"], "user_uuid": request.key.user_uuid}
    own = request.state.one("members", **place)
    if level > (json.loads(own["record"])["level"] if own else OWNER_LEVEL):
        raise forbidden("You can only act on levels up to your own.")


def list_members(request: ApiRequest) -> object:
    """List the members in the order in which they joined."""
    return request.page("members")


def update_member(request: ApiRequest) -> object:
    record, organization_id = _find(request)
    user_uuid, old = record["user"]["uuid"], record["level"]
    level = (record | request.fields(FIELDS))["level"]
    check_level(request, level)
    if request.live and user_uuid == request.key.user_uuid:
        raise forbidden("You can't change your own access level.")
    check_level(request, old)
    if level != old:
        record |= {"level": level, "updated_at": request.state.timestamp()}
        sql = "UPDATE members SET record = ? WHERE organization_id = ? AND user_uuid = ?"
        request.state.db.execute(sql, (dumps(record), organization_id, user_uuid))
        email = record["user"]["email"]
        request.audit("update_member", organization_id, user_uuid, email=email, level=level, old=old)
    return record


def delete_member(request: ApiRequest) -> None:
    record, organization_id = _find(request)
    check_level(request, record["level"])
    user_uuid = record["user"]["uuid"]
    owners = "SELECT count(*) FROM members WHERE organization_id = ? AND json_extract(record, '$.level') = ?"
    if (
        request.live
        and record["level"] == OWNER_LEVEL
        and request.state.number(owners, organization_id, OWNER_LEVEL) == 1
    ):
        raise invalid("The last owner can't leave the organization.")
    sql = "DELETE FROM members WHERE organization_id = ? AND user_uuid = ?"
    request.state.db.execute(sql, (organization_id, user_uuid))
    if request.live:
        request.state.take_from_keys(organization_id, user_uuid)
    request.audit("delete_member", organization_id, user_uuid, email=record["user"]["email"])


def _find(request: ApiRequest) -> tuple[JsonObject, str]:
    organization_id = request.organization()
    place = {"organization_id": organization_id, "user_uuid": request.path["user__uuid"]}
    return request.state.record("members", **place), organization_id


MEMBERS = "/api/organizations/{organization_id}/members/"
ROUTES = (
    ApiRoute("GET", MEMBERS, "organization_member:read", list_members, query=("limit", "offset")),
    ApiRoute("PATCH", MEMBERS + "{user__uuid}/", "organization_member:write", update_member),
    ApiRoute("DELETE", MEMBERS + "{user__uuid}/", "organization_member:write", delete_member, 204),
)
