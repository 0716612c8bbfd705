"""What the decisions of an access review change, and what became of each, as a later look shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.members.lines import ORDER, MemberChange
from airflow_provider_workspace.access.reviews.population import grants_of
from airflow_provider_workspace.access.rules.entitlements import NOTHING_NOTED, NotedAccess
from airflow_provider_workspace.access.rules.guards import HIDDEN, raise_if_no_owner_left
from airflow_provider_workspace.access.rules.review_records import (
    CHANGED,
    COLLABORATOR,
    DONE,
    GONE,
    INVITE,
    KEEP,
    KEPT,
    LATER,
    MEMBER,
    NOT_DONE,
    NOT_SENT,
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
from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.api.outcome import is_in_doubt
from airflow_provider_workspace.errors import (
    WorkspaceConnectionError,
    WorkspaceStatusError,
    WorkspaceTransportError,
)
from airflow_provider_workspace.procedures.access_list import homes_of
from airflow_provider_workspace.procedures.plan import Change, Plan

if TYPE_CHECKING:
    from airflow_provider_workspace.access.rules.entitlements import TemporaryAccess
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient


@dataclass(frozen=True)
class Words:
    """
    What an outcome says.

    :param left: of what is left to do
    :param gone: of who is not there any more
    """

    left: str
    gone: str


# Before anything is sent, and after all of it.
BEFORE = Words(NOT_SENT, "gone already")
AFTER = Words(NOT_DONE, "gone")


def judge(population: Population, decided: Decisions, present: Population, words: Words) -> list[DecisionOutcome]:
    """
    Return the outcome of each decision as a later look shows it.

    :param present: who has access now
    """
    moment = decided.moment(population)
    outcomes: list[DecisionOutcome] = []
    for person, now in population.pairs_in(present):
        decision = decided.decisions[person.who]
        outcome, detail = _judge(person, decision, now, words, moment)
        outcomes.append(_outcome(person, decision, outcome, detail))
    return outcomes


def _outcome(person: ReviewedPerson, decision: Decision, outcome: str, detail: str) -> DecisionOutcome:
    return DecisionOutcome(who=person.who, kind=person.kind, decision=decision, outcome=outcome, detail=detail)


def _judge(
    person: ReviewedPerson, decision: Decision, now: ReviewedPerson | None, words: Words, decided_at: float
) -> tuple[str, str]:
    """Return the outcome of a decision, and its detail."""
    if now is None:
        return (GONE, "not by this review") if decision == KEEP else (DONE, words.gone)
    changed = _changes(person, now)
    described = ", ".join(changed.values())
    if decision == KEEP:
        return (CHANGED if person.is_raised_in(now) else KEPT), described
    if list(changed) == ["level"] and now.level_under == decision:
        return DONE, described
    if changed:
        return CHANGED, described
    if now.kept:
        return REFUSED, now.kept
    if now.temporary and _waits(decision, now.temporary.since, decided_at):
        return LATER, f"{now.temporary.says}; then {_after(decision)}"
    if not person.id:
        return REFUSED, f"{HIDDEN}their id"
    return words.left, ""


def _changes(person: ReviewedPerson, now: ReviewedPerson) -> dict[str, str]:
    """Return what changed of somebody since their row was read, without what is temporary."""
    before = {"kind": person.kind, "id": person.id, "level": person.level_under_name}
    after = {"kind": now.kind, "id": now.id, "level": now.level_under_name}
    changes: dict[str, str] = {}
    for name, value in before.items():
        if value != after[name]:
            values = f"{_shown(value)} to {_shown(after[name])}"
            changes[name] = f"{name} {values}"
    return changes


def _shown(value: str | None) -> str:
    return "not shown" if value is None else value


def _waits(decision: Decision, granted_at: float, decided_at: float) -> bool:
    """Return whether a decision is done at the end of temporary access: all but a removal that is newer than it."""
    return decision != REMOVE or granted_at > decided_at


def _after(decision: Decision) -> str:
    return describe_level(decision) if isinstance(decision, int) else "removed"


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
    present: Population,
    noted: NotedAccess = NOTHING_NOTED,
) -> PlannedReview:
    """
    Plan what was decided, where nothing changed since.

    :param present: who has access now
    :param noted: temporary access, which ends with a removal
    :raises WorkspaceInputError: if no owner would be left
    """
    outcomes = judge(population, decided, present, BEFORE)
    due = {outcome.who for outcome in outcomes if outcome.outcome == NOT_SENT}
    members = [_member(person) for person in present.people if person.kind == MEMBER]
    homes = homes_of(members)
    changes: list[Change] = []
    for person, now in population.pairs_in(present):
        if person.who not in due:
            continue
        level = now.level if now else person.level
        decision = decided.decisions[person.who]
        ends: tuple[TemporaryAccess, ...] = ()
        if decision == REMOVE and person.kind != COLLABORATOR:
            ends = grants_of(noted, person.kind, person.email, person.id, homes)
        changes.append(_change(population.organization_id, person, level, decision, decided, ends))
    changes.sort(key=lambda change: ORDER.index(change.action))
    raise_if_no_owner_left(members, changes)
    organization = client.settings.organization_at_service(population.organization_id)
    return PlannedReview(Plan(organization, changes, members=len(members)), outcomes)


def _member(person: ReviewedPerson) -> Member:
    return Member(user=User(uuid=person.id, email=person.email), level=person.level)


def _change(
    organization_id: str,
    person: ReviewedPerson,
    level: int | None,
    decision: Decision,
    decided: Decisions,
    ends: tuple[TemporaryAccess, ...],
) -> Change:
    name = _change_name(person.kind, person.who)
    why = f"decided {decided.decided_at}"
    operation = _operation(organization_id, person, decision)
    before = {"level": level}
    if person.kind == COLLABORATOR:
        return Change("remove", "collaborators", name, before=before, why=why, operation=operation)
    if decision == REMOVE:
        return MemberChange("remove", "members", name, before=before, why=why, operation=operation, ends=ends)
    after = {"level": decision}
    return MemberChange("change", "members", name, before=before, after=after, why=why, operation=operation)


def _change_name(kind: str, who: str) -> str:
    return f"{kind} {who}"


def _operation(organization_id: str, person: ReviewedPerson, decision: Decision) -> Operation[Any]:
    identity = person.id or ""
    if isinstance(decision, int):
        return ops.members.UpdateMember(organization_id=organization_id, user_uuid=identity, level=decision)
    if person.kind == INVITE:
        return ops.invites.DeleteInvite(organization_id=organization_id, invite_id=identity)
    if person.kind == MEMBER:
        return ops.members.DeleteMember(organization_id=organization_id, user_uuid=identity)
    return ops.dashboards.RemoveDashboardCollaborator(
        project_id=person.project_id or "", dashboard_id=person.dashboard_id or "", user_uuid=identity
    )


def outcomes_of(planned: PlannedReview, intended: Mapping[str, int] | None = None) -> list[DecisionOutcome]:
    """
    Return the outcomes of a plan after it was applied.

    :param intended: whom an earlier try was about to change when it ended, by the number of that try
    """
    changes = {change.name: change for change in planned.plan.changes}
    outcomes: list[DecisionOutcome] = []
    for outcome in planned.outcomes:
        name = _change_name(outcome.kind, outcome.who)
        number = (intended or {}).get(outcome.who)
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
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.outcome] = counts.get(outcome.outcome, 0) + 1
    return counts
