"""End the grants that are over: for the operator and for the command line."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.api.operations.members import UpdateMember
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.procedures.grants import gives, plan_end
from airflow_provider_workspace.procedures.invites_report import InvitesReport
from airflow_provider_workspace.procedures.members import Guards, plan_members
from airflow_provider_workspace.procedures.plan import apply
from airflow_provider_workspace.version_compat import COMMAND, AirflowNotFoundException

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.plan import Change
    from airflow_provider_workspace.state.grants import Grant, GrantRegistry

log = logging.getLogger(__name__)


class WorkspaceAccessNotEndedError(WorkspaceError):
    """Grants are over, and the access could not be taken away."""

    problem = "access-not-ended"

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self._permanent = permanent


@dataclass
class Ended:
    """
    What was done: grants as plain JSON, with ``done`` or ``why`` they are left, and the number of active ones.

    :ivar permanent: whether another try would leave the same
    """

    ended: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    left: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    active: int = 0
    permanent: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"ended": self.ended, "left": self.left, "active": self.active}

    def raise_left(self) -> NoReturn:
        """Raise the error that names who still has access."""
        named = "; ".join(
            f"{one['user_email']}: {one['why']}" if "user_email" in one else one["why"] for one in self.left
        )
        msg = f"Do what is said of each, then run this or '{COMMAND} grants --end' again: {len(self.left)} not ended. "
        raise WorkspaceAccessNotEndedError(msg + named, permanent=self.permanent)


def utc_now() -> datetime:
    """Return the time that decides which grants are over."""
    return datetime.fromtimestamp(time.time(), timezone.utc)


def end_grants(registry: GrantRegistry, protected: Collection[str] = (), *, dry_run: bool = False) -> Ended:
    """
    End the grants that are over; what goes wrong with one person stops no other.

    :param protected: rows or addresses of people who are never removed or lowered
    :param dry_run: whether to send nothing, and say what would be done
    """
    done, guards, now = Ended(), Guards.read(protected, None), utc_now()
    people: dict[str, list[Grant]] = {}
    for grant in registry.all():
        people.setdefault(grant.person, []).append(grant)
    for grants in people.values():
        over = [grant for grant in grants if grant.is_over(now)]
        done.active += len(grants) - len(over)
        if not over:
            continue
        said = why = ""
        try:
            said, why = _end(registry, over, guards, now, dry_run=dry_run)
        except Exception as error:  # noqa: BLE001 - of one person; the others are ended all the same
            why = str(error)
            done.permanent = done.permanent and getattr(error, "permanent", False)
        if why:
            log.error("The access of %s is not ended: %s", over[-1].user_email, why)
            done.left += [{**grant.to_dict(), "variable": grant.key, "why": why} for grant in over]
        else:
            log.info("The access of %s is ended: %s", over[-1].user_email, said)
            done.ended += [{**grant.to_dict(), "done": said} for grant in over]
    for key, why in registry.unreadable.items():
        done.left.append({"variable": key, "why": registry.describe_unreadable(key, why)})
    return done


def _end(
    registry: GrantRegistry, over: list[Grant], guards: Guards, now: datetime, *, dry_run: bool
) -> tuple[str, str]:
    """End the grants of one person that are over; return what was done, or why they are left."""
    last = over[-1]
    grants = registry.of_person(last)
    rows = [grant.row for grant in grants]
    with _open_hook(last) as hook:
        client = hook.client
        plan_again = partial(plan_end, client, last.organization_id, rows, guards, now)
        plan = plan_again()
        changes = [change for change in plan.changes if change.sends]
        held = [change for change in plan.changes if change.action in ("differs", "unknown") or change.mark == "kept"]
        said = "; ".join(f"{change.name}: {change.notes}" for change in changes) or "nothing is left of it"
        if dry_run:
            return said, _by_hand(last, held)
        apply(client, plan, lambda _: InvitesReport(), plan_again)
        if held:
            return "", _by_hand(last, held)
        why = _give_again(client, registry, grants, last)
    if not why:
        for grant in over:
            registry.store.delete(grant.key)
    return said, why


def _open_hook(grant: Grant) -> WorkspaceHook:
    """Return the hook of a grant, whose connection leads where it led."""
    hook = WorkspaceHook(grant.workspace_conn_id)
    what = "or take the access away by hand and delete the Variable"
    try:
        base_url = hook.client.settings.base_url
    except AirflowNotFoundException as error:
        raise WorkspaceConfigError(
            f"Add connection '{grant.workspace_conn_id}' again, {what} '{grant.key}'. {error}"
        ) from None
    if base_url != grant.service:
        hook.close()
        raise WorkspaceConfigError(
            f"Set the host of connection '{grant.workspace_conn_id}' back to {grant.service}, {what} '{grant.key}'. "
            f"The connection now leads to {base_url}. Nothing was sent."
        )
    return hook


def _by_hand(grant: Grant, held: list[Change]) -> str:
    """Return what a person has to do about changes that are not sent; empty if there are none."""
    if not held:
        return ""
    what = "Remove them" if grant.then is None else f"Set level {grant.then}"
    named = "; ".join(f"{change.name}: {change.notes}" for change in held)
    return f"{what} by hand, or delete the Variable '{grant.key}' if they may keep what they have: {named}"


def _give_again(client: WorkspaceClient, registry: GrantRegistry, known: list[Grant], last: Grant) -> str:
    """Send the level of a grant that was noted meanwhile, which the end may have undone; return what is left to do."""
    now = utc_now()
    rows = [grant.row for grant in registry.of_person(last) if grant not in known and not grant.is_over(now)]
    if not rows:
        return ""
    plan = plan_members(client, last.organization_id, rows, Guards(frozenset(), None), complete=False, now=now)
    for change in filter(gives, plan.changes):
        if not isinstance(change.operation, UpdateMember):
            return "Start the run again that gave access meanwhile: the end of an earlier grant removed them"
        change.send(client)
    return ""
