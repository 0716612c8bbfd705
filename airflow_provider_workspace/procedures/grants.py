"""Plan temporary access and its end, and give it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.operations.members import ListMembers
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError
from airflow_provider_workspace.procedures.ends import REMOVED
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.procedures.members import Guards, plan_members
from airflow_provider_workspace.procedures.people import People, read_people
from airflow_provider_workspace.procedures.plan import Change, Plan, apply

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.client.client import WorkspaceClient

Rows = Collection[Mapping[str, Any]]
NO_GUARDS = Guards(frozenset(), None)


@dataclass(frozen=True)
class GrantPlan:
    """
    What a grant changes.

    :param plan: the plan; empty if the person has the level already without an end
    :param before: the level before; ``None`` if the person is no member
    :param then: the level after the end; ``None`` if the person is removed
    """

    plan: Plan
    before: int | None
    then: int | None


@dataclass(frozen=True)
class OrganizationPeople:
    """The people of an organization, from one reading of its lists."""

    client: WorkspaceClient
    organization_id: str
    people: People

    @classmethod
    def read(cls, client: WorkspaceClient, organization_id: str) -> OrganizationPeople:
        """Read the lists."""
        return cls(client, organization_id, read_people(client, organization_id))

    @property
    def members(self) -> list[Member]:
        """The members."""
        return self.people.members

    def plan(self, rows: Rows, guards: Guards, now: datetime) -> Plan:
        """Plan what rows say about their people, and about nobody else."""
        return plan_members(
            self.client,
            self.organization_id,
            rows,
            guards,
            complete=False,
            now=now,
            people=self.people,
        )


def plan_grant(
    client: WorkspaceClient,
    organization_id: str,
    row: Mapping[str, Any],
    now: datetime,
    given: Callable[[], Mapping[int | None, int | None]],
    terms: Mapping[str, Any],
) -> GrantPlan:
    """
    Plan temporary access.

    :param row: the person and the level
    :param given: returns levels that other grants gave the person, and what they have after those
    :param terms: what an approval covers besides the levels: how long, and why
    :raises WorkspaceInputError: if their level cannot be known, or they hold an open invite with a lower one
    """
    email, level = row["target_email"], row["level"]
    # Who has a higher level is held like an owner.
    plan = OrganizationPeople.read(client, organization_id).plan([row], Guards(frozenset(), level), now)
    change = next(iter(plan.changes), None)
    plan.changes = []
    before = change.before.get("level") if change else level
    if change and not change.sends and (before is None or before < level):
        raise WorkspaceInputError(f"Correct this by hand first, such as the open invite: {change.name}: {change.notes}")
    # What another grant gave ends as that grant says.
    then = given().get(before, before)
    if then is not None and then >= level:
        return GrantPlan(plan, before, then)
    if change is None or not change.sends:  # another grant gave it: it is noted, and nothing is sent
        read = ListMembers(organization_id=organization_id)
        change = Change("change", "members", f"member {email}", operation=read)
    after = {"level": level, **terms, "then": REMOVED if then is None else then}
    end = [f"{name} {after[name]}" for name in ("until", "then") if name in after]
    level_before = {} if before is None else {"level": before}
    plan.changes = [replace(change, before=level_before, after=after, why=", ".join(end))]
    return GrantPlan(plan, before, then)


def plan_give(people: OrganizationPeople, rows: Rows, now: datetime) -> Plan:
    """Plan what active grants give: invites and higher levels; nothing is taken."""
    plan = people.plan(rows, NO_GUARDS, now)
    plan.changes = [change for change in plan.changes if _gives(change)]
    return plan


def plan_end(people: OrganizationPeople, rows: Rows, guards: Guards, now: datetime) -> Plan:
    """
    Plan what the end of grants takes; nothing is given.

    :param guards: whom it leaves alone
    """
    plan = people.plan(rows, guards, now)
    plan.changes = [change for change in plan.changes if not _gives(change)]
    return plan


def _gives(change: Change) -> bool:
    return change.raises or change.action == "create"


def give(
    client: WorkspaceClient,
    organization_id: str,
    rows: Rows,
    now: datetime,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
) -> Plan:
    """
    Give what active grants say; nothing is taken. Return what was sent, with its outcomes.

    :param rows: the grants as rows
    :param invite: invites the people of these rows
    """

    def plan() -> Plan:
        return plan_give(OrganizationPeople.read(client, organization_id), rows, now)

    sent = plan()
    apply(client, sent, invite, plan)
    return sent


def is_refused(error: WorkspaceError) -> bool:
    """Return whether an error of :func:`give` says for certain that no access was given."""
    if isinstance(error, WorkspaceInvitesIncompleteError):
        return all(entry.status in ("failed", "not_sent") for entry in error.report.entries)
    for cause in getattr(error, "causes", [error]):
        operation = getattr(cause, "operation", "")
        outcome = getattr(cause, "outcome", "")
        if operation != "UpdateMember" or outcome not in ("rejected", "not_sent"):
            return False
    return True
