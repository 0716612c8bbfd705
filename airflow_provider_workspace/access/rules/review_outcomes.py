"""What became of each decision of an access review, as a later look shows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from airflow_provider_workspace.access.rules.entitlements import outlasts
from airflow_provider_workspace.access.rules.guards import HIDDEN
from airflow_provider_workspace.access.rules.review_records import (
    CHANGED,
    DONE,
    GONE,
    INVITE,
    KEEP,
    KEPT,
    LATER,
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
    Temporary,
)
from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.errors import name_first


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
NOBODY_SEEN: Mapping[str, Collection[str]] = MappingProxyType({})


def judge(
    population: Population,
    decided: Decisions,
    present: Population,
    words: Words,
    seen: Mapping[str, Collection[str]] = NOBODY_SEEN,
) -> list[DecisionOutcome]:
    """
    Return the outcome of each decision as a later look shows it.

    :param present: who has access now
    :param seen: by the name of who was invited, the users who were members while a task saw the invite open: they have
        not accepted it
    """
    decided_at = decided.moment(population)
    joined = present.access_list.joined_since(population.access_list)
    outcomes: list[DecisionOutcome] = []
    for person, now in population.pairs_in(present):
        decision = decided.decisions[person.who]
        outcome, detail = _judge(person, now, decision, decided_at=decided_at, words=words)
        if outcome == DONE and now is None and person.kind == INVITE:
            known = seen.get(person.who, ())
            candidates = [name for identity, name in joined.items() if identity[-1] not in known]
            if candidates:
                outcome, detail = UNKNOWN, f"{words.gone}, but {describe_candidates(candidates)}"
        outcomes.append(
            DecisionOutcome(who=person.who, kind=person.kind, decision=decision, outcome=outcome, detail=detail)
        )
    return outcomes


def _judge(
    person: ReviewedPerson, now: ReviewedPerson | None, decision: Decision, *, decided_at: float, words: Words
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
    if now.temporary and _waits(decision, now.temporary, decided_at):
        return LATER, f"{now.temporary.says}; then {_after(decision)}"
    if not person.id:
        return REFUSED, f"{HIDDEN}their id"
    return words.left, ""


def describe_candidates(names: Sequence[str]) -> str:
    """Say who may have accepted an invite that is gone."""
    named = name_first(names, "the last look", separator=", ")
    return f"somebody who joined since may have accepted it under another address: {named}"


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


def _waits(decision: Decision, temporary: Temporary, decided_at: float) -> bool:
    """Return whether a decision is done at the end of temporary access: all but a removal that is newer than it."""
    if temporary.is_over:
        return False
    return decision != REMOVE or outlasts(temporary.since, decided_at)


def _after(decision: Decision) -> str:
    return describe_level(decision) if isinstance(decision, int) else "removed"
