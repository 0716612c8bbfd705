"""Give what grants say, and end those that are over: for the operators and for the command line."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.notes.grants import rows_of
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.grants import plan_half
from airflow_provider_workspace.procedures.invites import invite_all
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.procedures.members import Guards
from airflow_provider_workspace.procedures.plan import Plan, apply
from airflow_provider_workspace.version_compat import COMMAND, AirflowNotFoundException

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.notes.grants import Grant, GrantRegistry

log = logging.getLogger(__name__)


def end_grants(
    registry: GrantRegistry, protected: Collection[Any] = (), *, dry_run: bool = False
) -> tuple[dict[str, Any], WorkspaceError | None]:
    """
    End the grants that are over; what goes wrong with one person stops no other.

    :param protected: rows or addresses of people who are never removed or lowered
    :param dry_run: whether to send nothing, and say what would be done
    :return: what was ``ended``, what is ``left`` and why, how many are ``active``; and the error for what is left
    """
    guards, now, permanent = Guards.read(protected, None), utc_now(), True
    grants = registry.all()
    people: dict[str, list[Grant]] = {}
    for grant in grants:
        if grant.is_over(now):
            people.setdefault(grant.person, []).append(grant)
    ended, left = list[dict[str, Any]](), list[dict[str, Any]]()
    for over in people.values():
        said = why = ""
        try:
            said = _end(registry, over, guards, now, dry_run=dry_run)
        except Exception as error:  # noqa: BLE001 - of one person; the others are ended all the same
            why, permanent = str(error), permanent and getattr(error, "permanent", False)
        log.log(logging.ERROR if why else logging.INFO, "%s: %s", over[-1].user_email, why or said)
        found = left if why else ended
        found += [{**grant.to_dict(), "variable": grant.key, "why" if why else "done": why or said} for grant in over]
    left += [
        {"user_email": "unknown", "variable": key, "why": registry.describe_unreadable(key, why)}
        for key, why in registry.unreadable.items()
    ]
    result = {"ended": ended, "left": left, "active": len(grants) - sum(map(len, people.values()))}
    if not left:
        return result, None
    named = "; ".join(f"{one['user_email']}: {one['why']}" for one in left)
    msg = f"Do what is said of each, then run this or '{COMMAND} sweep' again: {len(left)} not ended. {named}"
    return result, WorkspaceError(msg, permanent=permanent, problem="access-not-ended")


def _end(registry: GrantRegistry, over: list[Grant], guards: Guards, now: datetime, *, dry_run: bool) -> str:
    """
    End the grants of one person, and return what was done.

    :raises WorkspaceError: if something is left to people
    """
    last, noted = over[-1], registry.of_person(over[-1])
    if last not in noted:
        return "it was ended or changed meanwhile"
    with _open_hook(last) as hook:
        where = (hook.client, last.organization_id)
        plan_again = partial(plan_half, *where, rows_of(noted), now, guards)
        plan = plan_again()
        taken = [change for change in plan.changes if change.sends]
        held = [change for change in plan.changes if change.action in ("differs", "unknown") or change.mark == "kept"]
        invite = partial(invite_all, hook.client, organization_id=where[1], clock=time.time, monotonic=time.monotonic)
        if not dry_run:
            apply(hook.client, plan, invite, plan_again)
        if held:
            cure = "Remove them" if last.then is None else f"Set level {last.then}"
            named = "; ".join(f"{change.name}: {change.notes}" for change in held)
            msg = f"{cure} by hand, or delete the Variable '{last.key}' if they may keep what they have: {named}"
            raise WorkspaceError(msg)
        done = "; ".join(f"{change.name}: {change.notes}" for change in taken) or "they did not have it any more"
        if dry_run:
            return done
        # What was noted meanwhile may have been taken with the rest: it is given again.
        active = registry.active(last)
        if active and (taken or any(grant not in noted for grant in active)):
            give(*where, active, invite)
    for grant in over:
        registry.store.delete(grant.key)
    return done


def give(
    client: WorkspaceClient, organization_id: str, grants: list[Grant], invite: Callable[[Any], InvitesReport]
) -> Plan:
    """Give what active grants of one person say; nothing is taken. Return what was sent, with its outcomes."""
    plan_again = partial(plan_half, client, organization_id, rows_of(grants), utc_now())
    plan = plan_again()
    apply(client, plan, invite, plan_again)
    return plan


def is_refused(error: WorkspaceError) -> bool:
    """Return whether an error of :func:`give` says for certain that no access was given."""
    if isinstance(error, WorkspaceInvitesIncompleteError):
        return all(entry.status in ("failed", "not_sent") for entry in error.report.entries)
    causes = getattr(error, "causes", [error])
    found = {(getattr(one, "operation", ""), getattr(one, "outcome", "")) for one in causes}
    return found <= {("UpdateMember", "rejected"), ("UpdateMember", "not_sent")}


def _open_hook(grant: Grant) -> WorkspaceHook:
    """Return the hook of a grant, whose connection leads where it led."""
    hook, conn_id = WorkspaceHook(grant.workspace_conn_id), grant.workspace_conn_id
    otherwise = f"or take the access away by hand and delete the Variable '{grant.key}'"
    try:
        base_url = hook.client.settings.base_url
    except AirflowNotFoundException as error:
        raise WorkspaceConfigError(f"Add connection '{conn_id}' again, {otherwise}. {error}") from None
    if base_url != grant.service:
        msg = f"Set the host of connection '{conn_id}' back to {grant.service}, {otherwise}. It now leads to {base_url}"
        raise WorkspaceConfigError(msg)
    return hook
