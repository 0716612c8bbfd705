"""What grants give and what their end takes: the cases that no service shows on demand."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.access.grants.plan import (
    MAX_ROUNDS,
    Giver,
    Giving,
    NotedPerson,
    OrganizationPeople,
    plan_end,
    plan_give,
)
from airflow_provider_workspace.access.rules.entitlements import NOTHING_NOTED
from airflow_provider_workspace.access.rules.guards import Guards
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.procedures.invites_report import InvitesReport
from airflow_provider_workspace.procedures.people import People
from airflow_provider_workspace.procedures.roster import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_workspace.api.operation import Operation

ORGANIZATION = "0190c0de-0000-4000-8000-000000000001"
USER = "0190c0de-0000-4000-8000-0000000000a1"
EMAIL = "ada@example.com"
PERSON = NotedPerson(email=EMAIL, since=0.0, user_uuid=USER)
NOW = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)


class Service:
    """A client of an organization with one member, whose level is changed, or with none."""

    settings = SimpleNamespace(
        count_members=False,
        source="-",
        organization_at_service=lambda _: "service / organization",
        consistency_time=0.0,
    )

    def __init__(self, level: int | None) -> None:
        self.level = level

    def pages(self, op: Operation[Any], *_: Any) -> Iterator[list[Any]]:
        is_member = self.level is not None and not isinstance(op, ListInvites)
        yield [Member(id="m", user=User(uuid=USER, email=EMAIL), level=self.level)] if is_member else []

    def send(self, op: Any, **_: Any) -> Member:
        self.level = op.level
        return Member(id="m", user=User(uuid=USER, email=EMAIL), level=self.level)


def given(client: Any, *levels: int, status: str = "invited") -> Any:
    """Give levels, one after the other, as other grants begin meanwhile."""
    remaining = list(levels)

    def read_giving() -> Giving:
        level = remaining.pop(0)
        row = {"target_email": EMAIL, "level": level, "until": "2026-11-25T12:00:00Z", "then": "removed"}
        return Giving([row], [PERSON])

    def invite(rows: list[dict[str, Any]]) -> InvitesReport:
        report = InvitesReport()
        report.add(*(Entry(number, row["target_email"], status) for number, row in enumerate(rows, 1)))
        return report

    return Giver(client, ORGANIZATION, read_giving, lambda: NOW, invite).give()


def test_without_active_grants_nothing_is_given() -> None:
    people = OrganizationPeople(SimpleNamespace(), ORGANIZATION, People([], []))  # type: ignore[arg-type]
    assert plan_give(people, Giving([]), NOW).changes == []


def test_giving_ends_with_a_change_that_was_not_made() -> None:
    result = given(Service(None), 8, 15, status="member")
    assert (result.is_made, result.people) == (False, None)


def test_giving_ends_although_levels_keep_rising() -> None:
    service = Service(1)
    result = given(service, *range(2, MAX_ROUNDS + 2))
    assert (service.level, result.is_made, result.people) == (MAX_ROUNDS + 1, True, None)


def test_a_hidden_address_may_be_protected() -> None:
    members = [Member(id="m", user=User(uuid=USER), level=8)]
    people = OrganizationPeople(SimpleNamespace(), ORGANIZATION, People([], members))  # type: ignore[arg-type]
    guards = Guards(frozenset(["olive@example.com"]), None)
    with pytest.raises(WorkspaceError, match=rf"^\[access-not-proven\] .*hides the address of user {USER}"):
        plan_end(people, PERSON, [], guards=guards, now=NOW, noted=NOTHING_NOTED)
