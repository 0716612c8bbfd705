"""Carrying out a plan that keeps the members of an organization in step with a roster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
)
from airflow_provider_workspace.operators.create_or_get import delete_once
from airflow_provider_workspace.procedures.member_sync import WorkspaceSyncIncompleteError

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.member_sync import Change, MemberPlan

log = logging.getLogger(__name__)

# After so many refusals it is not the people: the key may lack the scope.
MAX_REFUSALS = 5


def carry_out(plan: MemberPlan, hook: WorkspaceHook, organization_id: str | None) -> None:
    """
    Send the changes; what the service refuses for one person does not keep the others from theirs.

    :param organization_id: organization; ``None`` for that of the connection
    :raises WorkspaceSyncIncompleteError: if something was refused
    """
    refused: list[str] = []
    for change in plan.changes:
        if change.action not in ("withdraw", "remove", "change_level"):
            continue
        try:
            send(change, hook, organization_id)
        except (WorkspaceBadRequestError, WorkspacePermissionError) as error:
            log.error("Refused: %s", error)  # noqa: TRY400 - another error tells of all of them
            refused.append(f"{change.action} {change.email}: {error.detail or error}")
            if len(refused) == MAX_REFUSALS:
                break
    invites = [change.row.invite.model_dump(exclude_unset=True) for change in plan.changes if change.row]
    if invites and len(refused) < MAX_REFUSALS:
        log.info("%s", hook.create_invites(invites, organization_id=organization_id).table())
    if refused:
        msg = f"The service refused {len(refused)} changes. {'; '.join(refused)}"
        raise WorkspaceSyncIncompleteError(msg)


def send(change: Change, hook: WorkspaceHook, organization_id: str | None) -> None:
    """Send one change."""
    target, email = str(change.target), change.email
    if change.action == "withdraw":
        delete_once(
            f"invite of {email}",
            lambda: hook.delete_invite(invite_id=target, organization_id=organization_id),
            "ignore",
        )
    elif change.action == "remove":
        delete_once(
            f"member {email}",
            lambda: hook.delete_member(user_uuid=target, organization_id=organization_id),
            "ignore",
        )
    elif change.level is not None:
        try:
            hook.update_member(user_uuid=target, level=change.level, organization_id=organization_id)
        except WorkspaceNotFoundError:
            log.warning("%s has left since the members were read; the next run invites them.", email)
        else:
            log.info("Changed the level of %s from %s.", email, change.levels)
