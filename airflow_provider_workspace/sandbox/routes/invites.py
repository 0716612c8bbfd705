"""Invites of an organization: list, create one or many, delete."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from airflow_provider_workspace.sandbox.request import (
    ApiRequest,
    ApiRoute,
    Fields,
    check_fields,
    require,
    with_defaults,
)
from airflow_provider_workspace.sandbox.responses import ApiError, JsonObject, dumps, invalid, json_response
from airflow_provider_workspace.sandbox.routes.members import MEMBER_LEVEL, check_level, is_member
from airflow_provider_workspace.sandbox.state import State, format_time, parse_time

INVITE_DAYS = 3
BULK_LIMIT = 20
"""Maximum invites in a bulk request, in ``live``."""

# The flag is_expired depends on the time, so it is set on read.
INVITE_COLUMN = """json_set(record, '$.is_expired', json(CASE WHEN expires_at <= ? THEN 'true' ELSE 'false' END))"""

FIELDS: Fields = {
    "target_email": ("email", None),
    "first_name": ("string", ""),
    "level": ("integer", MEMBER_LEVEL),
    "message": ("string", None),
    "private_project_access": ("array", None),
    "send_email": ("boolean", True),
    "combine_pending_invites": ("boolean", False),
}


def add_invite(
    state: State, organization_id: str, fields: JsonObject, created_by: JsonObject, **more: object
) -> JsonObject:
    """Add an invite and return its record; ``more`` has further fields of it, for the seed."""
    at = state.timestamp()
    record: JsonObject = with_defaults(FIELDS, fields)
    record |= {
        "id": str(uuid4()),
        "emailing_attempt_made": bool(record["send_email"]),
        "is_expired": False,
        "created_by": created_by,
        "created_at": at,
        "updated_at": at,
        **more,
    }
    state.insert(
        "invites",
        id=record["id"],
        organization_id=organization_id,
        email=record["target_email"].lower(),
        expires_at=format_time(parse_time(record["created_at"]) + timedelta(days=INVITE_DAYS)),
        record=dumps(record),
    )
    return record


def list_invites(request: ApiRequest) -> object:
    """List the invites, oldest first, including expired ones."""
    return request.page("invites", INVITE_COLUMN, request.state.timestamp())


def create_invite(request: ApiRequest) -> object:
    organization_id = request.organization()
    _count(request, organization_id, 1)
    fields = _check(request, request.body)
    _refuse_member(request, organization_id, fields)
    return _invite(request, organization_id, fields)


def create_invites(request: ApiRequest) -> object:
    organization_id = request.organization()
    rows = request.body if isinstance(request.body, list) else [request.body]
    _count(request, organization_id, len(rows))
    if request.live and rows is not request.body:
        raise invalid("Expected a list of items.", code="not_a_list")
    if request.live and len(rows) > BULK_LIMIT:
        raise invalid(f"A maximum of {BULK_LIMIT} invites can be sent in a single request.")
    invites: list[JsonObject] = []
    created: list[JsonObject] = []
    item = 0
    try:
        for item, row in enumerate(rows):  # noqa: B007 -- for the error
            invites.append(_check(request, row))
        for item, fields in enumerate(invites):  # noqa: B007 -- as above
            _refuse_member(request, organization_id, fields)
            created.append(_invite(request, organization_id, fields))
    except ApiError as error:
        if error.status == 400 and rows is request.body:
            error.body["attr"] = "__".join(filter(None, (str(item), error.body["attr"])))
        if not request.live:
            raise  # none are created
        # Returned instead of raised, because the invites before it are kept.
        return error.response()
    return json_response(created, 201) if request.live else None


def delete_invite(request: ApiRequest) -> None:
    organization_id = request.organization()
    row = request.state.find("invites", id=request.path["id"], organization_id=organization_id)
    request.state.db.execute("DELETE FROM invites WHERE id = ?", (row["id"],))
    request.audit("delete_invite", organization_id, row["email"], invite_id=row["id"])


def _check(request: ApiRequest, body: object) -> JsonObject:
    fields = check_fields(body, FIELDS, unnamed_refused=not request.live)
    require(fields, "target_email")
    check_level(request, fields.get("level", MEMBER_LEVEL))
    if request.live:
        fields["target_email"] = fields["target_email"].lower()
    return fields


def _count(request: ApiRequest, organization_id: str, amount: int) -> None:
    if request.limits is not None:
        request.limits.take(request.limits.invites, organization_id, amount, request.state.now().timestamp())


def _refuse_member(request: ApiRequest, organization_id: str, fields: JsonObject) -> None:
    if is_member(request.state, organization_id, fields["target_email"]):
        raise invalid("A user with this email address already belongs to the organization.", "target_email")


def _invite(request: ApiRequest, organization_id: str, fields: JsonObject) -> JsonObject:
    replaced = []
    if request.live:  # a new invite replaces older ones
        place = (organization_id, fields["target_email"].lower())
        older = request.state.db.execute("SELECT id FROM invites WHERE organization_id = ? AND email = ?", place)
        replaced = [row["id"] for row in older]
        request.state.db.execute("DELETE FROM invites WHERE organization_id = ? AND email = ?", place)
    record = add_invite(request.state, organization_id, fields, request.user())
    request.audit(
        "create_invite",
        organization_id,
        record["target_email"],
        invite_id=record["id"],
        level=record["level"],
        send_email=record["send_email"],
        replaced=replaced,
    )
    return record


INVITES = "/api/organizations/{organization_id}/invites/"
ROUTES = (
    ApiRoute("GET", INVITES, "organization_member:read", list_invites, query=("limit", "offset")),
    ApiRoute("POST", INVITES, "organization_member:write", create_invite, 201),
    ApiRoute("POST", INVITES + "bulk/", "organization_member:write", create_invites),
    ApiRoute("DELETE", INVITES + "{id}/", "organization_member:write", delete_invite, 204),
)
