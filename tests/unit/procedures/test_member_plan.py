"""Plans of the member sync: a table of rosters, members and invites; and rosters that are refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from airflow_provider_workspace.api.models import Invite, Member, User
from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.procedures.members import STEPS, MemberPlan, plan_members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_workspace.api.operation import Operation

ORGANIZATION = "0190c0de-0000-4000-8000-000000000001"


def id_of(kind: str, email: str | None) -> str:
    return str(uuid5(NAMESPACE_URL, f"{kind}-{email}"))


def member(email: str | None = "ada@example.com", level: int | None = 1, **fields: Any) -> Member:
    return Member(**{"id": f"m-{email}", "user": User(uuid=id_of("u", email), email=email), "level": level, **fields})


def invite(email: str | None = "ada@example.com", **fields: Any) -> Invite:
    return Invite(**{"id": id_of("i", email), "target_email": email, "level": 1, "is_expired": False, **fields})


class Lists:
    """A client of an organization that nobody changes."""

    settings = SimpleNamespace(place=lambda _: "service / organization")

    def __init__(self, records: tuple[Member | Invite, ...]) -> None:
        self.records = records

    def pages(self, op: Operation[Any], *_: Any) -> Iterator[list[Any]]:
        yield [record for record in self.records if isinstance(record, Invite) == isinstance(op, ListInvites)]


def plan(
    rows: list[Any],
    *records: Member | Invite,
    protected: tuple[str, ...] = (),
    owner_level: int | None = 15,
    leavers: list[str] | None = None,
) -> MemberPlan:
    client: Any = Lists((*records, OWNER, invite("olga@example.com")))
    rows = [] if leavers else [*rows, "olga@example.com"]
    return plan_members(client, ORGANIZATION, rows, protected=protected, owner_level=owner_level, leavers=leavers)


OWNER = member("olga@example.com", 15)
OTHER = ["lin@example.com"]
ADA = {"email": "Ada@Example.com", "level": 8}
# Roster, present members and invites, action, levels, part of the reason.
CASES: list[tuple[list[Any], Member | Invite | None, str, str, str]] = [
    ([ADA], None, "invite", "8", "neither"),
    ([ADA], invite(is_expired=True), "invite", "8", "neither"),
    ([ADA], invite(), "skip", "1 to 8", "open invite"),
    (
        [ADA],
        invite(level=15),
        "skip",
        "15 to 8",
        "as an owner (owner_level=15), whom a sync never changes: withdraw it by hand",
    ),
    ([ADA], member(), "change_level", "1 to 8", "another level"),
    ([ADA], member(level=15), "skip", "15 to 8", "owner"),
    ([ADA], member(level=None), "skip", "8", "level"),
    ([ADA], member(level=8), "keep", "", ""),
    ([ADA], member("ADA@example.com", 8), "keep", "", ""),
    (["ada@example.com"], member(), "keep", "", ""),
    (["ada@example.com"], member(level=15), "keep", "", ""),
    (["ada@example.com"], member(level=None), "keep", "", ""),
    (OTHER, member(), "remove", "1", "not on the roster"),
    (OTHER, member(level=8), "remove", "8", "not on the roster"),
    (OTHER, member(level=15), "skip", "15", "owner"),
    (OTHER, member(level=None), "skip", "", "level"),
    (OTHER, invite(), "withdraw", "1", "not on the roster"),
    (OTHER, invite(id=None), "skip", "1", "its address or id"),
]


@pytest.mark.parametrize(("rows", "there", "action", "levels", "why"), CASES)
def test_plan_for_one_address(
    rows: list[Any], there: Member | Invite | None, action: str, levels: str, why: str
) -> None:
    planned = plan(rows, *([there] if there else []), member("lin@example.com", 1))
    about = [change for change in planned.changes if change.email.casefold() == "ada@example.com"]
    if action == "keep":
        assert about == []
        assert planned.counts["keep"] == 2 + (rows == OTHER)
    else:
        (change,) = about
        assert (change.step, change.levels) == (action, levels)
        assert why in change.why
        assert planned.pending == (action != "skip") + (rows != OTHER)


@pytest.mark.parametrize(
    ("rows", "records", "options", "found"),
    [
        # People without an address
        *(
            (OTHER, [record], {"protected": protected}, ["invite", "skip"])
            for record in (member(None), member(user=None), invite(None))
            for protected in ((), ("ada@example.com",))
        ),
        # Protected people
        *(
            (rows, [there, member("lin@example.com")], {"protected": (" ADA@example.com",)}, ["skip"])
            for rows in (OTHER, [ADA, *OTHER])
            for there in (member(), invite())
        ),
        ([ADA], [], {"protected": ("ada@example.com",)}, ["invite"]),
        # Owners, if they are like others
        (OTHER, [member(level=15)], {"owner_level": None}, ["remove", "invite"]),
        (OTHER, [member(level=None)], {"owner_level": None}, ["remove", "invite"]),
        ([ADA], [member(level=15)], {"owner_level": None}, ["change_level"]),
        ([ADA], [member(level=None)], {"owner_level": None}, ["skip"]),
        # Removals first; the first row of an address counts
        (
            [ADA, "ada@example.com", *OTHER, "new@example.com"],
            [member(), member("old@example.com"), invite("x@x.org")],
            {},
            ["withdraw", "remove", "change_level", "invite", "invite", "skip"],
        ),
    ],
)
def test_actions_of_a_plan(
    rows: list[Any], records: list[Member | Invite], options: dict[str, Any], found: list[str]
) -> None:
    planned = plan(rows, *records, **options)
    assert [change.step for change in planned.changes] == found
    assert list(planned.counts) == [*STEPS, "keep"]
    assert {action: planned.counts[action] for action in STEPS} == {action: found.count(action) for action in STEPS}


def test_the_plan_table_shows_each_change_and_reason_and_is_cut_with_a_note() -> None:
    lines = plan([ADA, ADA, *OTHER], member(), member("old@example.com", 8)).table().splitlines()
    assert lines[0] == "0 withdraw, 1 remove, 1 change level, 1 invite, 1 skip, 1 keep"
    assert lines[1].split(maxsplit=3) == ["remove", "old@example.com", "8", "not on the roster"]
    assert " ".join(lines[2].split()) == "change_level ada@example.com 1 to 8 another level on the roster"
    assert lines[4].endswith("row 2: same address as row 1")
    lines = plan([f"p{number}@example.com" for number in range(203)]).table(limit=200).splitlines()
    assert len(lines) == 202
    assert lines[-1].split() == ["…", "and", "3", "more", "invite"]


def test_only_leavers_are_removed() -> None:
    planned = plan(
        [],
        *(invite("kim@example.com"), invite("lin@example.com"), invite("nobody@example.com", is_expired=True)),
        *(member(), member("lin@example.com"), member("olive@example.com", 15), member("pat@example.com")),
        protected=("pat@example.com",),
        leavers=["Ada@Example.com", "kim@example.com", "olive@example.com", "nobody@example.com", "pat@example.com"],
    )
    assert [(change.step, change.email, change.levels) for change in planned.changes] == [
        ("withdraw", "kim@example.com", "1"),
        ("remove", "ada@example.com", "1"),
        ("skip", "olive@example.com", "15"),
        ("skip", "pat@example.com", "1"),
        ("skip", "nobody@example.com", ""),
    ]
    assert planned.keep == 2
    assert "is leaving, but protected" in planned.table()
