"""What the decisions of an access review change, and what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.members.lines import MemberChange, order_of
from airflow_provider_workspace.access.reviews.population import claims_of
from airflow_provider_workspace.access.rules.entitlements import NO_CLAIMS, NOTHING_NOTED, NotedAccess
from airflow_provider_workspace.access.rules.guards import raise_if_no_owner_left
from airflow_provider_workspace.access.rules.review_outcomes import BEFORE, NOBODY_SEEN, describe_candidates, judge
from airflow_provider_workspace.access.rules.review_records import (
    COLLABORATOR,
    DONE,
    INVITE,
    NOT_SENT,
    OVERRULED,
    REFUSED,
    REMOVE,
    UNKNOWN,
    Decision,
    DecisionOutcome,
    Decisions,
    Population,
    ReviewedPerson,
)
from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.outcome import is_in_doubt
from airflow_provider_workspace.errors import (
    WorkspaceConnectionError,
    WorkspaceStatusError,
    WorkspaceTransportError,
)
from airflow_provider_workspace.procedures.access_list import homes_of
from airflow_provider_workspace.procedures.plan import Change, Plan

if TYPE_CHECKING:
    from airflow_provider_workspace.access.rules.entitlements import Claims, NotedGrant, ReviewDecision
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient


@dataclass(frozen=True)
class PlannedReview:
    """
    What the decisions change.

    :param outcomes: the outcome of each before anything is sent
    """

    plan: Plan
    outcomes: list[DecisionOutcome]


def plan_decisions(
    client: WorkspaceClient,
    population: Population,
    decided: Decisions,
    *,
    present: Population,
    noted: NotedAccess = NOTHING_NOTED,
    seen: Mapping[str, Collection[str]] = NOBODY_SEEN,
    noted_as: str = "",
) -> PlannedReview:
    """
    Plan what was decided, where nothing changed since, and nobody decided otherwise since it was noted.

    :param present: who has access now
    :param noted: temporary access, which ends with a removal, and decisions
    :param seen: see :func:`~airflow_provider_workspace.access.rules.review_outcomes.judge`
    :param noted_as: the key of the Variable of the review, if the task has written it; else empty
    :raises WorkspaceInputError: if no owner would be left
    """
    outcomes = judge(population, decided, present, BEFORE, seen)
    due = {outcome.who for outcome in outcomes if outcome.outcome == NOT_SENT}
    overruled: dict[str, str] = {}
    members = present.members
    homes = homes_of(members)
    changes: list[Change] = []
    for person, now in population.pairs_in(present):
        if now is None or person.who not in due:
            continue
        decision = decided.decisions[person.who]
        claims = NO_CLAIMS
        if person.kind != COLLABORATOR:
            claims = claims_of(noted, person.kind, email=person.email, identity=person.id, homes=homes)
            why = _overruling(claims, noted_as)
            if why:
                overruled[person.who] = why
                continue
        ends = claims.grants if decision == REMOVE else ()
        change = _change(
            person,
            decision,
            organization_id=population.organization_id,
            level=now.level,
            why=f"decided {decided.decided_at}",
            ends=ends,
        )
        changes.append(change)
    changes.sort(key=order_of)
    raise_if_no_owner_left(members, changes)
    organization = client.settings.organization_at_service(population.organization_id)
    access_list = present.access_list
    withdrawn = {change.person for change in changes if isinstance(change.operation, ops.invites.DeleteInvite)}
    access_list.invited -= withdrawn  # who joins with such an invite has accepted it
    plan = Plan(organization, changes, members=len(members), access_list=access_list)
    outcomes = [_overruled(outcome, overruled) for outcome in outcomes]
    return PlannedReview(plan, outcomes)


def _overruling(claims: Claims, noted_as: str) -> str:
    """Return what counts instead of a decision that this review noted; empty if the decision still counts."""
    last = claims.decision
    if not noted_as or (last and last.key == noted_as):
        return ""
    return claims.lifted or (str(last) if last else "a later review decided about them, or the note was deleted")


def _overruled(outcome: DecisionOutcome, overruled: Mapping[str, str]) -> DecisionOutcome:
    """Return the outcome of a decision, or what counts instead of it."""
    why = overruled.get(outcome.who)
    return outcome.model_copy(update={"outcome": OVERRULED, "detail": why}) if why else outcome


def plan_lift(client: WorkspaceClient, organization_id: str, decisions: Iterable[ReviewDecision], reason: str) -> Plan:
    """
    Plan that decisions do not count any more: nothing is sent, and an approval covers what each says.

    :param reason: why
    """
    read = ops.members.ListMembers(organization_id=organization_id)
    changes: list[Change] = []
    for decision in decisions:
        if decision.lifted is None:
            change = Change(
                "change",
                "members",
                f"decision about {decision.who}",
                before={"decision": str(decision)},
                after={"decision": "lifted", "reason": reason},
                operation=read,
                person=address_key(decision.person.email),
            )
            changes.append(change)
    return Plan(client.settings.organization_at_service(organization_id), changes)


def _change(
    person: ReviewedPerson,
    decision: Decision,
    *,
    organization_id: str,
    level: int | None,
    why: str,
    ends: tuple[NotedGrant, ...],
) -> Change:
    """
    Return the change of somebody.

    :param level: what they have now
    :param ends: the temporary access that ends with a removal
    """
    name = _change_name(person.kind, person.who)
    before = {"level": level}
    identity = person.id or ""
    if person.kind == COLLABORATOR:
        taken = ops.dashboards.RemoveDashboardCollaborator(
            project_id=person.project_id or "", dashboard_id=person.dashboard_id or "", user_uuid=identity
        )
        return Change("remove", "collaborators", name, before=before, why=why, operation=taken)
    key = address_key(person.email or identity)
    if isinstance(decision, int):
        update = ops.members.UpdateMember(organization_id=organization_id, user_uuid=identity, level=decision)
        after = {"level": decision}
        return MemberChange(
            "change", "members", name, before=before, after=after, why=why, operation=update, person=key
        )
    delete: Operation[Any] = ops.members.DeleteMember(organization_id=organization_id, user_uuid=identity)
    if person.kind == INVITE:
        delete = ops.invites.DeleteInvite(organization_id=organization_id, invite_id=identity)
    return MemberChange("remove", "members", name, before=before, why=why, operation=delete, person=key, ends=ends)


def _change_name(kind: str, who: str) -> str:
    return f"{kind} {who}"


def outcomes_of(planned: PlannedReview, intended: Mapping[str, int]) -> list[DecisionOutcome]:
    """
    Return the outcomes of a plan after it was applied.

    :param intended: whom an earlier try was about to change when it ended, by the number of that try
    """
    changes = {change.name: change for change in planned.plan.changes}
    outcomes: list[DecisionOutcome] = []
    for outcome in planned.outcomes:
        name = _change_name(outcome.kind, outcome.who)
        number = intended.get(outcome.who)
        if name in changes:
            status, detail = _result_of(planned.plan, changes[name])
            outcomes.append(outcome.model_copy(update={"outcome": status, "detail": detail}))
        elif number is not None and outcome.outcome == DONE:
            detail = f"{outcome.detail}; try {number} was about to send it, and ended"
            outcomes.append(outcome.model_copy(update={"detail": detail}))
        else:
            outcomes.append(outcome)
    return outcomes


def _result_of(plan: Plan, change: Change) -> tuple[str, str]:
    """Return the outcome of a change that was planned to be sent, and its detail."""
    result = plan.outcomes.get(change)
    error = plan.failures.get(change)
    if error is None:
        if result is None:
            return NOT_SENT, "the task ended before it, or the person is gone"
        if plan.joined and isinstance(change.operation, ops.invites.DeleteInvite):
            candidates = describe_candidates(plan.joined)
            return UNKNOWN, f"sent, but {candidates}"
        return result.status, result.reason or "sent"
    if isinstance(error, WorkspaceConnectionError):
        return NOT_SENT, str(error)
    reason = result.reason if result else str(error)
    if isinstance(error, WorkspaceStatusError):
        said = (error.detail or reason).rstrip(".")
        reason = f"HTTP {error.status}: {said}"
    elif isinstance(error, WorkspaceTransportError):
        reason = "no answer came"
    if is_in_doubt(error):
        return UNKNOWN, f"sent, but {reason}; the last look shows whether it was done"
    return REFUSED, reason


def people_changed(planned: PlannedReview) -> tuple[str, ...]:
    """Return whom a plan changes, by their names in the review."""
    names = {change.name for change in planned.plan.changes}
    changed = [one for one in planned.outcomes if _change_name(one.kind, one.who) in names]
    return tuple(one.who for one in changed)


def counts_of(outcomes: Iterable[DecisionOutcome]) -> dict[str, int]:
    """Return how many decisions have each outcome."""
    return dict(Counter(outcome.outcome for outcome in outcomes))
