"""Plan access for a while, and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.operations.members import ListMembers
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.ends import REMOVED
from airflow_provider_workspace.procedures.members import Guards, plan_members
from airflow_provider_workspace.procedures.plan import Change, Plan

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient

Rows = Iterable[Mapping[str, Any]]
NO_GUARDS = Guards(frozenset(), None)


def plan_grant(
    client: WorkspaceClient,
    organization_id: str,
    row: Mapping[str, Any],
    now: datetime,
    given: Callable[[], Mapping[int | None, int | None]],
    terms: Mapping[str, Any],
) -> tuple[Plan, int | None, int | None]:
    """
    Plan access for a while; the plan is empty if the person has it already without an end.

    :param row: the person and the level
    :param given: returns levels that other grants gave the person, and what they have after those
    :param terms: what an approval covers besides the levels: how long, and why
    :return: the plan, the level before, and the level after the end; ``None`` if the person is no member
    :raises WorkspaceInputError: if their level cannot be known, or they hold an open invite with a lower one
    """
    email, level = row["target_email"], row["level"]
    # Who has a higher level is held like an owner.
    plan = plan_members(client, organization_id, [row], Guards(frozenset(), level), complete=False, now=now)
    change = next(iter(plan.changes), None)
    before = change.before.get("level") if change else level
    if change and not change.sends and (before is None or before < level):
        raise WorkspaceInputError(f"Correct this by hand first, such as the open invite: {change.name}: {change.notes}")
    then, plan.changes = given().get(before, before), []
    if then is None or then < level:
        if change is None or not change.sends:  # another grant gave it: it is noted, and nothing is sent
            read = ListMembers(organization_id=organization_id)
            change = Change("change", "members", f"member {email}", operation=read)
        after = {"level": level, **terms, "then": REMOVED if then is None else then}
        why = ", ".join(f"{name} {after[name]}" for name in ("until", "then") if name in after)
        had = {} if before is None else {"level": before}
        plan.changes = [replace(change, before=had, after=after, why=why)]
    return plan, before, then


def plan_half(
    client: WorkspaceClient, organization_id: str, rows: Rows, now: datetime, guards: Guards | None = None
) -> Plan:
    """
    Plan what the grants of one person give, or what their end takes; the other half of the plan is left out.

    :param rows: the grants as rows
    :param guards: whom their end leaves alone; ``None`` for what they give: invites and higher levels
    """

    def gives(change: Change) -> bool:
        return change.raises or change.action == "create"

    plan = plan_members(client, organization_id, rows, guards or NO_GUARDS, complete=False, now=now)
    plan.changes = [change for change in plan.changes if gives(change) is (guards is None)]
    return plan
