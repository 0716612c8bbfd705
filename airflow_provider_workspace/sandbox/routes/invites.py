"""Invites of an organization: list, create one or many, delete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_workspace.sandbox import fields, records
from airflow_provider_workspace.sandbox.answers import (
    JsonObject,
    Refused,
    answer,
    answer_text,
    dumps,
    empty,
    invalid,
    not_found,
)
from airflow_provider_workspace.sandbox.call import Call, Endpoint

if TYPE_CHECKING:
    from starlette.responses import Response

# An invite expires as time goes by, so its flag is set when it is read.
INVITE_COLUMN = """json_set(record, '$.is_expired', json(CASE WHEN expires_at <= ? THEN 'true' ELSE 'false' END))"""


def list_invites(call: Call) -> Response:
    """
    List the invites, oldest first, expired ones too.

    :param call: The request.
    """
    return call.page("invites", call.organization(), INVITE_COLUMN, call.state.timestamp())


def create_invite(call: Call) -> Response:
    """
    Invite one address.

    :param call: The request.
    """
    organization_id = call.organization()
    wanted = _check(call, call.body)
    _spend(call, organization_id, 1)
    _refuse_member(call, organization_id, wanted)
    return answer(_invite(call, organization_id, wanted), 201)


def create_invites(call: Call) -> Response:
    """
    Invite many addresses.

    :param call: The request.
    """
    organization_id = call.organization()
    wanted = _check_bulk(call)
    _spend(call, organization_id, len(wanted))
    if call.profile.bulk_stops_at_member:
        return _invite_until_member(call, organization_id, wanted)
    for item, invite in enumerate(wanted):
        _refuse_member(call, organization_id, invite, item)
    created = [dumps(_invite(call, organization_id, invite)) for invite in wanted]
    return _bulk_answer(call, created)


def delete_invite(call: Call) -> Response:
    """
    Delete an invite.

    :param call: The request.
    """
    organization_id = call.organization()
    invite_id = call.path["id"]
    row = call.state.one("SELECT email FROM invites WHERE id = ? AND organization_id = ?", invite_id, organization_id)
    if row is None:
        raise not_found()
    call.state.db.execute("DELETE FROM invites WHERE id = ?", (invite_id,))
    call.effect("delete_invite", organization_id, row["email"], invite_id=invite_id)
    return empty(204)


def _check(call: Call, body: object, item: int | None = None) -> JsonObject:
    wanted = fields.check_fields(body, fields.INVITE, unnamed_refused=call.profile.unnamed_refused, item=item)
    fields.require(wanted, "target_email", item)
    if call.profile.levels_closed and wanted.get("level", records.MEMBER_LEVEL) not in records.LEVELS:
        attr = "level" if item is None else f"{item}__level"
        raise invalid(f'"{wanted["level"]}" is not a valid choice.', attr, "invalid_choice")
    if call.profile.email_domain_lowered:
        local, _, domain = wanted["target_email"].rpartition("@")
        wanted["target_email"] = f"{local}@{domain.lower()}"
    return wanted


def _check_bulk(call: Call) -> list[JsonObject]:
    body = call.body
    if not isinstance(body, list):
        if call.profile.bulk_array_only:
            raise invalid("Expected a list of items.", code="not_a_list")
        return [_check(call, body)]
    if call.profile.bulk_limit is not None and len(body) > call.profile.bulk_limit:
        raise invalid(f"A maximum of {call.profile.bulk_limit} invites can be sent in a single request.")
    return [_check(call, invite, item) for item, invite in enumerate(body)]


def _spend(call: Call, organization_id: str, amount: int) -> None:
    if call.limits is not None:
        call.limits.take(call.limits.invites, organization_id, amount, call.state.now().timestamp())


def _refuse_member(call: Call, organization_id: str, wanted: JsonObject, item: int | None = None) -> None:
    if call.state.is_member(organization_id, wanted["target_email"]):
        attr = "target_email" if item is None else f"{item}__target_email"
        raise invalid("A user with this email address already belongs to the organization.", attr)


def _invite_until_member(call: Call, organization_id: str, wanted: Iterable[JsonObject]) -> Response:
    created = []
    for item, invite in enumerate(wanted):
        try:
            _refuse_member(call, organization_id, invite, item)
        except Refused as refused:
            # Answered, not raised, because the invites before it stay.
            return refused.response()
        created.append(dumps(_invite(call, organization_id, invite)))
    return _bulk_answer(call, created)


def _bulk_answer(call: Call, created: list[str]) -> Response:
    if not call.profile.bulk_answers_invites:
        return empty(200)
    response = answer_text(f"[{','.join(created)}]")
    response.status_code = 201
    return response


def _invite(call: Call, organization_id: str, wanted: JsonObject) -> JsonObject:
    replaced = []
    if call.profile.invites_replace:
        sql = "DELETE FROM invites WHERE organization_id = ? AND email = ?"
        older = "SELECT id FROM invites WHERE organization_id = ? AND email = ?"
        place = (organization_id, wanted["target_email"].lower())
        replaced = [row["id"] for row in call.state.db.execute(older, place)]
        call.state.db.execute(sql, place)
    record = records.invite(wanted, call.user(), call.state.timestamp())
    call.state.add_invite(organization_id, record)
    call.effect(
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
ENDPOINTS = (
    Endpoint("GET", INVITES, "organization_member:read", list_invites, query=("limit", "offset")),
    Endpoint("POST", INVITES, "organization_member:write", create_invite),
    Endpoint("POST", INVITES + "bulk/", "organization_member:write", create_invites),
    Endpoint("DELETE", INVITES + "{id}/", "organization_member:write", delete_invite),
)
