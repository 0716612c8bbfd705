"""Plan access for a while, and its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvite, ListInvites
from airflow_provider_workspace.api.operations.members import ListMembers, UpdateMember
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.ends import REMOVED
from airflow_provider_workspace.procedures.find import read_rows
from airflow_provider_workspace.procedures.members import Guards, plan_members
from airflow_provider_workspace.procedures.plan import Change, Plan

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.client.client import WorkspaceClient


def find_member(client: WorkspaceClient, organization_id: str, email: str) -> Member | None:
    """
    Return the member with an address; ``None`` if there is none.

    :raises WorkspaceInputError: if there are several, or the service does not show their level or user
    """
    found = [
        member
        for member in read_rows(client, ListMembers(organization_id=organization_id))
        if member.user and address_key(member.user.email or "") == address_key(email)
    ]
    if len(found) > 1:
        raise WorkspaceInputError(f"Give access by hand: {len(found)} members have the address {email}")
    if found and (found[0].level is None or not (found[0].user and found[0].user.uuid)):
        raise WorkspaceInputError(
            f"Use the API key of somebody who may see members: the level of {email} cannot be known, nor put back"
        )
    return found[0] if found else None


def plan_grant(
    client: WorkspaceClient,
    organization_id: str,
    email: str,
    level: int,
    given: Mapping[int, int | None],
    terms: Mapping[str, Any],
    *,
    is_noted: bool = False,
) -> tuple[Plan, int | None, int | None]:
    """
    Plan access for a while; the plan is empty if the person has it already without an end.

    :param given: levels that other grants gave the person, and what they have after those
    :param terms: what an approval covers besides the levels: how long, and why
    :param is_noted: whether an earlier try noted it; then the plan is empty as soon as the person has it
    :return: the plan, the level before, and the level after the end; ``None`` if the person is no member
    :raises WorkspaceInputError: if their level cannot be known, or they hold an open invite with another one
    """
    invites = [
        invite
        for invite in read_rows(client, ListInvites(organization_id=organization_id))
        if not invite.is_expired and address_key(invite.target_email or "") == address_key(email)
    ]
    member = find_member(client, organization_id, email)
    plan = Plan(client.settings.organization_at_service(organization_id))
    if member is not None:
        before = int(member.level or 0)
        then = given.get(before, before)
        if (then is not None and then >= level) or (is_noted and before >= level):
            return plan, before, then
        user_uuid = (member.user and member.user.uuid) or ""
        update = UpdateMember(organization_id=organization_id, user_uuid=user_uuid, level=max(before, level))
        change = _change("change", f"member {email}", level, then, terms, {"level": before}, update)
    else:
        before = then = None
        others = [invite.level for invite in invites if invite.level != level]
        if others:
            had = "a level that the service does not show" if others[0] is None else f"level {others[0]}"
            raise WorkspaceInputError(f"Withdraw the open invite of {email} first: it has {had}, and not {level}")
        if invites and (is_noted or level not in given):
            return plan, level, level
        invite = CreateInvite(organization_id=organization_id, target_email=email, level=level)
        change = _change("create", f"invite {email}", level, then, terms, {}, invite)
    plan.changes.append(change)
    return plan, before, then


def _change(
    action: str,
    name: str,
    level: int,
    then: int | None,
    terms: Mapping[str, Any],
    before: Mapping[str, Any],
    operation: UpdateMember | CreateInvite,
) -> Change:
    after = {"level": level, **terms, "then": REMOVED if then is None else then}
    why = f"until {terms['until']}, then {after['then']}" if "until" in terms else f"then {after['then']}"
    return Change(action, "members", name, after, before, why, operation)


def plan_end(
    client: WorkspaceClient, organization_id: str, rows: Iterable[Mapping[str, Any]], guards: Guards, now: datetime
) -> Plan:
    """Plan the end of grants of one person, given as rows: nobody is invited, and no level raised."""
    plan = plan_members(client, organization_id, rows, guards, complete=False, now=now)
    plan.changes = [change for change in plan.changes if not gives(change)]
    return plan


def gives(change: Change) -> bool:
    """Return whether a change gives access."""
    return change.action == "create" or (
        isinstance(change.operation, UpdateMember) and change.after["level"] > change.before["level"]
    )
