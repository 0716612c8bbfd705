"""How much longer a plan of many people takes with temporary access and reviews noted; side by side, alternating."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from airflow_provider_workspace.access.members.plan import plan_members
from airflow_provider_workspace.access.rules.entitlements import ActiveGrant, NotedAccess, ReviewDecision
from airflow_provider_workspace.access.rules.guards import Guards
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.procedures.people import NotedPerson, People
from airflow_provider_workspace.procedures.roster_files import read_roster

NOW = datetime(2026, 11, 26, tzinfo=timezone.utc)
GRANTS, REVIEWS, DECISIONS_OF_A_REVIEW = 100, 20, 20
ROUNDS = 5


def user_of(number: int) -> str:
    """Return the user of a person."""
    return str(uuid5(NAMESPACE_URL, str(number)))


def address_of(number: int) -> str:
    """Return the address of a person."""
    return f"person{number}@example.com"


def noted(people: int) -> NotedAccess:
    """Return notes about people who are spread over the list."""
    now = NOW.timestamp()
    grants: list[ActiveGrant] = []
    for index in range(GRANTS):
        number = index * people // GRANTS
        person = NotedPerson(address_of(number), now - 60, user_of(number))
        grants.append(ActiveGrant(person, 8, now - 60, "2026-12-01", "ruth", f"grant.{index}"))
    decisions: list[ReviewDecision] = []
    for index in range(REVIEWS * DECISIONS_OF_A_REVIEW):
        number = (index * 101 + 7) % people
        person = NotedPerson(address_of(number), now - 60, user_of(number))
        decisions.append(
            ReviewDecision(person, 1, now - 60, now + 60, "of October", "rita", f"review.{index % REVIEWS}")
        )
    return NotedAccess(grants, decisions)


def main(people: int) -> None:
    """Print the best times of a plan without and with notes, and by how much the second is longer."""
    rows = read_roster([{"email": address_of(number), "level": 1} for number in range(people)])
    members = [
        Member(id=str(number), user=User(uuid=user_of(number), email=address_of(number)), level=1)
        for number in range(people)
    ]
    client: Any = SimpleNamespace(settings=SimpleNamespace(organization_at_service=lambda _: "here"))
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, notes in (("without notes", NotedAccess()), ("with notes", noted(people))):
            began = time.process_time()
            plan_members(
                client,
                "organization",
                rows,
                Guards(frozenset(), 15),
                now=NOW,
                people=People([], [], members),
                noted=notes,
            )
            took = time.process_time() - began
            best[name] = min(took, best.get(name, took))
    more = best["with notes"] / best["without notes"] - 1
    for name, seconds in best.items():
        print(f"{name}: {seconds:.2f} s")
    print(f"{people} people, {GRANTS} grants, {REVIEWS} reviews: {more:+.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
