"""Who decides about a person: a table of all who have a say, in pairs and in the triples that bite."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.access.members.lines import MemberChange
from airflow_provider_workspace.access.members.plan import plan_members
from airflow_provider_workspace.access.rules.entitlements import NotedAccess, NotedGrant, ReviewDecision
from airflow_provider_workspace.access.rules.guards import Guards
from airflow_provider_workspace.access.rules.review_records import Lift
from airflow_provider_workspace.api.models import Invite, Member, User
from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.procedures.people import NotedPerson
from airflow_provider_workspace.procedures.roster_files import read_roster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.procedures.plan import Plan

ORGANIZATION = "0190c0de-0000-4000-8000-000000000001"
NOW = datetime(2026, 11, 26, 12, tzinfo=timezone.utc)
ADA, NEW_ADDRESS, USER, INVITE = (
    "ada@example.com",
    "ada.new@example.com",
    "u-ada",
    "0190c0de-0000-4000-8002-000000000001",
)
OLGA = "olga@example.com"


def at(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()


def row(level: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"email": ADA, **({} if level is None else {"level": level}), **fields}


def member(level: int | None = None, email: str | None = ADA, uuid: str = USER) -> Member:
    return Member(id=f"m-{uuid}", user=User(uuid=uuid, email=email), level=level)


def invited(level: int | None = None, email: str | None = ADA, invite_id: str = INVITE) -> Invite:
    return Invite(id=invite_id, target_email=email, level=level, is_expired=False)


def granted(level: int, since: str, user: str | None = USER, email: str = ADA, approved_by: str = "ruth") -> Any:
    person = NotedPerson(email, at(since), user_uuid=user, invite_ids=frozenset({INVITE}))
    until, key = "2026-12-01T08:00:00Z", f"workspace_grant.{since}"
    # What it leaves is as much as any row gives.
    return NotedGrant(person, level, at(since), until, approved_by, key, then=15)


def decided(level: int | None, on: str, until: str = "2027-11-01", user: str | None = USER, email: str = ADA) -> Any:
    person = NotedPerson(email, at(on), user_uuid=user, invite_ids=frozenset({INVITE}))
    return ReviewDecision(person, level, at(on), at(until), f"of {on}", "Rita", f"workspace_decisions.{on}")


class Lists:
    """A client of an organization that nobody changes."""

    settings = SimpleNamespace(
        count_members=False, source="-", organization_at_service=lambda _: "service / organization"
    )

    def __init__(self, records: tuple[Member | Invite, ...]) -> None:
        self.records = records

    def pages(self, op: Operation[Any], *_: Any) -> Iterator[list[Any]]:
        yield [record for record in self.records if isinstance(record, Invite) == isinstance(op, ListInvites)]


def plan(rows: list[Any], records: list[Member | Invite], *notes: Any, **options: Any) -> Plan:
    """Plan a complete roster with Olga, the owner, whom each test has; ``leavers`` is a list of people who leave."""
    client: Any = Lists((*records, member(15, OLGA, "u-olga")))
    guards = Guards.read(options.pop("protected", ()), options.pop("owner_level", 15))
    leaving = options.pop("leaving", False)
    noted = NotedAccess(
        grants=[note for note in notes if isinstance(note, NotedGrant)],
        decisions=[note for note in notes if isinstance(note, ReviewDecision)],
    )
    roster = read_roster(rows if leaving else [*rows, OLGA])
    return plan_members(client, ORGANIZATION, roster, guards, now=NOW, leaving=leaving, noted=noted, **options)


ENDED, BACK = row(8, until="2026-11-20"), row(8, until="2026-11-20", then=1)
LONG_AGO = row(8, until="2020-12-31", then=1)
BEFORE, AFTER = "2026-11-10", "2026-11-24"  # the end of the row above
LOWERED, REMOVED = decided(1, "2026-11-22"), decided(None, "2026-11-22")
LIFT = Lift(by="sam", reason="the review was wrong", at="2026-11-23T00:00:00Z")
LIFTED = replace(REMOVED, lifted=LIFT)
EARLY, LATE = granted(8, BEFORE), granted(8, AFTER)
# Over since the day before, and not swept yet.
UNSWEPT = replace(LATE, until="2026-11-25T08:00:00Z", is_over=True)
HELD = "temporary: admin (8) until 2026-12-01T08:00:00Z, approved by ruth"
OVER = "access ended 2026-11-20 (UTC)"
RITA = "Rita {} in access review of 2026-11-22 (2026-11-22)"
BY_HAND = f"and row 1 gives more: correct the row, or lift the decision about {ADA}"
LOWERED_BY, REMOVED_BY = RITA.format("lowered them to member (1)"), RITA.format("removed them")

# Rows, level of the member, notes and options; then the action and the level after it, and how the line ends.
Case = tuple[str, list[Any], int | None, tuple[Any, ...], dict[str, Any], tuple[str, int | None, str] | None]
CASES: list[Case] = [
    # One source
    ("a row", [row(8)], 1, (), {}, ("change", 8, "level: 1 -> 8")),
    ("a row without a level", [row()], 8, (), {}, None),
    ("a row that ended", [ENDED], 8, (), {}, ("remove", None, OVER)),
    ("a row that ended, and then", [BACK], 8, (), {}, ("change", 1, f"{OVER}, back to 1")),
    ("no row", [], 8, (), {}, ("remove", None, "not on the roster")),
    ("no row, of an incomplete list", [], 8, (), {"complete": False}, None),
    ("a leaver", [row()], 8, (), {"leaving": True}, ("remove", None, "is leaving")),
    # A row, and a grant
    ("row, grant", [row(1)], 8, (EARLY,), {}, ("wait", None, HELD)),
    ("row, grant without approval", [row(1)], 8, (granted(8, BEFORE, approved_by=""),), {},
     ("wait", None, "temporary: admin (8) until 2026-12-01T08:00:00Z")),
    ("higher row, grant", [row(8)], 1, (granted(5, BEFORE),), {}, ("change", 8, "level: 1 -> 8")),
    ("row between, grant not applied yet", [row(5)], 1, (EARLY,), {}, ("change", 5, "level: 1 -> 5")),
    ("row without level, grant", [row()], 8, (EARLY,), {}, None),
    ("no row, grant", [], 8, (EARLY,), {}, ("wait", None, HELD)),
    ("row, more than the grant", [row(1)], 12, (EARLY,), {}, ("change", 8, HELD)),
    ("no row, more than the grant", [], 12, (EARLY,), {}, ("change", 8, HELD)),
    ("two grants", [row(1)], 8, (granted(5, BEFORE), LATE), {}, ("wait", None, HELD)),
    ("ended row, grant before", [ENDED], 8, (EARLY,), {}, ("remove", None, OVER)),
    ("ended row, grant after", [ENDED], 8, (LATE,), {}, ("wait", None, HELD)),
    ("ended row then, grant before", [BACK], 8, (EARLY,), {}, ("change", 1, f"{OVER}, back to 1")),
    ("ended row then, grant after", [BACK], 8, (LATE,), {}, ("wait", None, HELD)),
    ("ended row of another level, grant before", [row(1, until="2026-11-20")], 8, (EARLY,), {},
     ("remove", None, OVER)),
    ("leaver, grant", [row()], 8, (LATE,), {"leaving": True}, ("remove", None, "is leaving")),
    # A row, and a grant that is over
    ("row, unswept grant", [row(1)], 8, (UNSWEPT,), {}, ("change", 1, "level: 8 -> 1")),
    ("row as the unswept grant", [row(8)], 8, (UNSWEPT,), {}, None),
    ("higher row, unswept grant", [row(8)], 1, (UNSWEPT,), {}, ("change", 8, "level: 1 -> 8")),
    ("row without level, unswept grant", [row()], 8, (UNSWEPT,), {}, None),
    ("no row, unswept grant", [], 8, (UNSWEPT,), {}, ("remove", None, "not on the roster")),
    ("no row, unswept grant, of an incomplete list", [], 8, (UNSWEPT,), {"complete": False}, None),
    ("row, unswept grant and another", [row(1)], 8, (UNSWEPT, granted(5, BEFORE)), {},
     ("change", 5, "temporary: level 5 until 2026-12-01T08:00:00Z, approved by ruth")),
    ("ended row of another level, unswept grant after it", [row(1, until="2026-11-20")], 8, (UNSWEPT,), {},
     ("remove", None, OVER)),
    ("ended row then, unswept grant after it", [row(5, until="2026-11-20", then=1)], 8, (UNSWEPT,), {},
     ("change", 1, f"{OVER}, back to 1")),
    ("leaver, unswept grant", [row()], 8, (UNSWEPT,), {"leaving": True}, ("remove", None, "is leaving")),
    ("row, unswept grant, protected", [row(1)], 8, (UNSWEPT,), {"protected": [ADA]},
     ("differs", 1, "another level on the roster, but protected")),
    ("row, removed, unswept grant after it", [row(1)], 8, (UNSWEPT, REMOVED), {}, ("remove", None, REMOVED_BY)),
    # A row, and a decision
    ("row, lowered", [row(8)], 1, (LOWERED,), {}, ("differs", 8, f"{LOWERED_BY}, {BY_HAND}")),
    ("row, lowered, and raised since", [row(8)], 8, (LOWERED,), {}, ("change", 1, LOWERED_BY)),
    ("row, removed, and there again", [row(8)], 1, (REMOVED,), {}, ("remove", None, REMOVED_BY)),
    ("row as decided", [row(1)], 1, (LOWERED,), {}, None),
    ("lower row than decided", [row(1)], 8, (decided(5, "2026-11-22"),), {}, ("change", 1, "level: 8 -> 1")),
    ("row without level, lowered", [row()], 1, (LOWERED,), {}, None),
    ("row without level, lowered, and raised since", [row()], 8, (LOWERED,), {}, ("change", 1, LOWERED_BY)),
    ("row without level, removed, and there again", [row()], 1, (REMOVED,), {}, ("remove", None, REMOVED_BY)),
    ("no row, lowered", [], 1, (LOWERED,), {}, ("remove", None, "not on the roster")),
    ("no row, removed", [], 1, (REMOVED,), {}, ("remove", None, "not on the roster")),
    ("ended row, lowered", [ENDED], 8, (LOWERED,), {}, ("remove", None, OVER)),
    ("ended row then, lowered", [row(8, until="2026-11-20", then=5)], 8, (LOWERED,), {}, ("change", 1, LOWERED_BY)),
    ("ended row then, removed", [BACK], 8, (REMOVED,), {}, ("remove", None, REMOVED_BY)),
    ("leaver, lowered", [row()], 1, (LOWERED,), {"leaving": True}, ("remove", None, "is leaving")),
    ("a row that gives no more, a decision that expired", [row(1)], 8, (decided(1, "2025-10-01", "2026-11-01"),), {},
     ("change", 1, "level: 8 -> 1")),
    ("row, a decision that expired", [row(8)], 1, (decided(1, "2025-10-01", "2026-11-01"),), {},
     ("change", 8, "in access review of 2025-10-01 (2025-10-01), which counted until 2026-11-01")),
    ("row, two decisions", [row(8)], 5, (LOWERED, decided(5, "2026-11-23")), {},
     ("differs", 8, f"Rita lowered them to level 5 in access review of 2026-11-23 (2026-11-23), {BY_HAND}")),
    ("row, removed, and lifted", [row(8)], 1, (LIFTED,), {}, ("change", 8, "level: 1 -> 8")),
    ("row, lowered, then removed, and the last one lifted", [row(8)], 1, (decided(1, "2026-11-21"), LIFTED), {},
     ("change", 8, "level: 1 -> 8")),
    ("row, lifted, then lowered again", [row(8)], 1, (LIFTED, decided(1, "2026-11-24")), {},
     ("differs", 8, f"Rita lowered them to member (1) in access review of 2026-11-24 (2026-11-24), {BY_HAND}")),
    ("no row, lifted", [], 1, (LIFTED,), {}, ("remove", None, "not on the roster")),
    ("no row, lifted, owner", [], 15, (LIFTED,), {},
     ("skip", None, "not on the roster, but an owner (owner_level=15)")),
    ("leaver, lifted", [row()], 1, (LIFTED,), {"leaving": True}, ("remove", None, "is leaving")),
    # A grant, and a decision
    ("no row, grant, then removed, and lifted", [], 8, (EARLY, LIFTED), {}, ("wait", None, HELD)),
    ("no row, grant, then lowered", [], 8, (EARLY, LOWERED), {}, ("wait", None, HELD)),
    ("no row, lowered, then grant", [], 8, (LATE, LOWERED), {}, ("wait", None, HELD)),
    ("no row, grant, then removed", [], 8, (EARLY, REMOVED), {}, ("remove", None, "not on the roster")),
    ("no row, removed, then grant", [], 8, (LATE, REMOVED), {}, ("wait", None, HELD)),
    # Protected, or an owner
    ("row, protected", [row(8)], 1, (), {"protected": [ADA]}, ("differs", 8, "level on the roster, but protected")),
    ("no row, protected", [], 1, (), {"protected": [ADA]}, ("skip", None, "not on the roster, but protected")),
    ("no row, owner", [], 15, (), {}, ("skip", None, "not on the roster, but an owner (owner_level=15)")),
    ("row, owner", [row(1)], 15, (), {}, ("differs", 1, "but an owner (owner_level=15)")),
    ("ended row, protected", [ENDED], 8, (), {"protected": [ADA]}, ("differs!", None, f"{OVER}, but protected")),
    ("ended row, owner", [ENDED], 15, (), {}, ("differs!", None, f"{OVER}, but an owner (owner_level=15)")),
    ("leaver, protected", [row()], 1, (), {"leaving": True, "protected": [ADA]},
     ("differs!", None, "is leaving, but protected")),
    ("leaver, owner", [row()], 15, (), {"leaving": True},
     ("differs!", None, "is leaving, but an owner (owner_level=15)")),
    ("grant, protected", [row(1)], 8, (EARLY,), {"protected": [ADA]}, ("wait", None, HELD)),
    ("lowered, protected", [row(8)], 8, (LOWERED,), {"protected": [ADA]},
     ("differs!", 1, f"{LOWERED_BY}, but protected")),
    ("lowered, owner", [row(15)], 15, (LOWERED,), {},
     ("differs!", 1, f"{LOWERED_BY}, but an owner (owner_level=15)")),
    ("no row, lowered, owner", [], 15, (LOWERED,), {},
     ("differs!", None, "not on the roster, but an owner (owner_level=15)")),
    ("no row, removed, protected", [], 1, (REMOVED,), {"protected": [ADA]},
     ("differs!", None, "not on the roster, but protected")),
    # Triples
    ("row, grant, then lowered", [row(5)], 8, (EARLY, LOWERED), {}, ("wait", None, HELD)),
    ("row, grant, then lowered, and less than the row", [row(8)], 5, (granted(5, AFTER), LOWERED), {},
     ("differs", 8, f"{LOWERED_BY}, {BY_HAND}")),
    ("row, grant, then removed", [row(8)], 8, (EARLY, REMOVED), {}, ("remove", None, REMOVED_BY)),
    ("row, removed, then grant", [row(1)], 8, (LATE, REMOVED), {}, ("wait", None, HELD)),
    ("ended row, grant before and after", [ENDED], 8, (EARLY, granted(5, AFTER)), {},
     ("change", 5, "temporary: level 5 until 2026-12-01T08:00:00Z, approved by ruth")),
    ("ended row, grant before, protected", [ENDED], 8, (EARLY,), {"protected": [ADA]},
     ("differs!", None, f"{OVER}, but protected")),
    ("leaver, grant, removed", [row()], 8, (LATE, REMOVED), {"leaving": True}, ("remove", None, "is leaving")),
    ("leaver with a row without an end", [ENDED, row()], 8, (), {"leaving": True},
     ("skip", None, "row 2 has no end, and keeps them")),
    ("leaver with a row without an end, grant", [ENDED, row()], 8, (EARLY,), {"leaving": True},
     ("skip", None, "row 2 has no end, and keeps them")),
    ("leaver with a later end", [ENDED, row(until="2026-12-31")], 8, (), {"leaving": True},
     ("wait", None, "leaves later: until 2026-12-31, then removed")),
    ("ended row, row without level, grant", [ENDED, row()], 8, (EARLY,), {}, ("wait", None, HELD)),
    ("ended row then, row without level, grant", [BACK, row()], 8, (EARLY,), {}, ("wait", None, HELD)),
    # Rows follow each other
    ("a level by hand, ended row", [row(1, until="2026-11-20")], 8, (), {},
     ("differs!", None, f"{OVER}, but it was changed since: it was 1")),
    ("a level that an earlier row gave years ago", [LONG_AGO, row(1, until="2026-11-20")], 8, (), {},
     ("differs!", None, f"{OVER}, but it was changed since: it was 1")),
    ("a level that an earlier row gave days ago", [row(8, until="2026-11-10"), row(1, until="2026-11-20")], 8, (), {},
     ("remove", None, OVER)),
    ("a level that a row gave years ago, row without level", [LONG_AGO, row()], 8, (), {}, None),
    ("a level that a row gave days ago, row without level", [ENDED, row()], 8, (), {},
     ("differs", None, f"{OVER}, but another row keeps them, and names no level")),
    # A level that is not shown
    ("row, hidden level", [row(8)], None, (), {}, ("unknown", 8, "but the service does not show their level")),
    ("ended row then, hidden level", [BACK], None, (), {"owner_level": None},
     ("unknown!", 1, "but the service does not show their level")),
    ("row, lowered, hidden level", [row(8)], None, (LOWERED,), {},
     ("unknown!", 1, f"{LOWERED_BY}, but the service does not show their level")),
]  # fmt: skip


def described(planned: Plan) -> list[tuple[str, int | None, str]]:
    """Return what is planned about Ada; an action with ``!`` fails a run, since she should lose access and does not."""
    about = [change for change in planned.changes if "ada" in change.name]
    left = {*planned.left_by_hand, *planned.unproven}
    found: list[tuple[str, int | None, str]] = []
    for change in about:
        is_left = f"{change.name}: {change.notes}" in left
        action = f"{change.action}!" if is_left else change.action
        found.append((action, change.after.get("level"), change.notes))
    return found


@pytest.mark.parametrize(
    ("rows", "level", "notes", "options", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_who_decides_about_a_member(
    rows: list[Any],
    level: int | None,
    notes: tuple[Any, ...],
    options: dict[str, Any],
    expected: tuple[str, int | None, str] | None,
) -> None:
    records: list[Member | Invite] = [member(level)]
    found = described(plan(rows, records, *notes, **options))
    if options.get("leaving") and expected and expected[0] == "skip":
        assert len(found) == 1
    if expected is None:
        assert found == []
        return
    ((action, after, why),) = found
    assert (action, after) == expected[:2]
    reason, _, _ = why.partition("; ")  # a cure may follow
    assert reason.endswith(expected[2])


@pytest.mark.parametrize(
    ("rows", "records", "notes", "options", "expected"),
    [
        ([], [invited(8)], (EARLY,), {}, [("wait", HELD)]),
        ([row(1)], [invited(8)], (EARLY,), {}, [("wait", HELD)]),
        ([], [invited(12)], (EARLY,), {}, [("remove", "")]),
        ([row(8)], [invited(8)], (REMOVED,), {}, [("remove", REMOVED_BY), ("differs", BY_HAND)]),
        ([row(8)], [invited(8)], (LOWERED,), {}, [("remove", LOWERED_BY), ("differs", BY_HAND)]),
        ([row(8)], [invited(1)], (LOWERED,), {}, [("differs", BY_HAND)]),
        ([row(8)], [], (REMOVED,), {}, [("differs", BY_HAND)]),
        ([row()], [], (REMOVED,), {}, [("differs", BY_HAND)]),
        ([row(8)], [], (decided(None, "2025-10-01", "2026-11-01"),), {}, [("create", "counted until 2026-11-01")]),
        ([ENDED], [invited(8)], (EARLY,), {}, [("remove", OVER)]),
        ([ENDED], [invited(8)], (LATE,), {}, [("wait", HELD)]),
        ([row()], [invited(8)], (LATE,), {"leaving": True}, [("remove", "is leaving")]),
        ([row()], [invited(8)], (), {"leaving": True, "protected": [ADA]},
         [("differs!", "but protected; remove them by hand")]),
    ],
)  # fmt: skip
def test_who_decides_about_who_is_invited(
    rows: list[Any],
    records: list[Member | Invite],
    notes: tuple[Any, ...],
    options: dict[str, Any],
    expected: list[tuple[str, str]],
) -> None:
    found = described(plan(rows, records, *notes, **options))
    assert [action for action, _, _ in found] == [action for action, _ in expected]
    assert all(why.endswith(end) for (_, _, why), (_, end) in zip(found, expected, strict=True))


def ends(planned: Plan) -> list[str]:
    changes = [change for change in planned.changes if isinstance(change, MemberChange)]
    return [grant.key for change in changes for grant in change.ends]


@pytest.mark.parametrize(
    ("rows", "notes", "options", "expected"),
    [
        ([row()], (EARLY, LATE), {"leaving": True}, [EARLY, LATE]),
        ([ENDED], (EARLY,), {}, [EARLY]),
        ([ENDED], (EARLY, granted(5, AFTER)), {}, [EARLY]),
        ([row(8)], (EARLY, REMOVED), {}, [EARLY]),
        ([row(1)], (EARLY,), {}, []),
        ([row()], (UNSWEPT,), {"leaving": True}, [UNSWEPT]),
        ([], (UNSWEPT,), {}, [UNSWEPT]),
        ([], (UNSWEPT, granted(5, BEFORE)), {}, []),
        ([row(8)], (UNSWEPT, REMOVED), {}, [UNSWEPT]),
        ([row(1)], (UNSWEPT,), {}, []),
    ],
)
def test_which_grants_end_with_a_change(
    rows: list[Any], notes: tuple[Any, ...], options: dict[str, Any], expected: list[NotedGrant]
) -> None:
    assert ends(plan(rows, [member(8)], *notes, **options)) == [grant.key for grant in expected]


UNTIL_FRIDAY, UNTIL_LATER = row(8, until="2026-11-27"), row(8, until="2026-12-24")
REMOVES, REMOVED_UNSWEPT = replace(LATE, then=None), replace(UNSWEPT, then=None)


@pytest.mark.parametrize("record", [member, invited])
@pytest.mark.parametrize(
    ("rows", "level", "notes", "expected"),
    [
        ([row(1)], 8, (REMOVES,), [1]),
        ([row(8)], 8, (REMOVES,), [8]),
        ([row(12)], 8, (REMOVES,), [8]),
        ([row(1)], 8, (REMOVED_UNSWEPT,), [1]),
        ([row(8)], 8, (REMOVED_UNSWEPT,), [8]),
        ([row(8)], 1, (REMOVED_UNSWEPT,), [8]),
        ([row(1)], 1, (REMOVED_UNSWEPT,), [1]),
        ([row(8)], 8, (replace(UNSWEPT, then=5),), [8]),
        ([row(5)], 8, (replace(UNSWEPT, then=5),), []),
        ([row(5)], 8, (REMOVED_UNSWEPT, granted(8, BEFORE), replace(EARLY, then=1)), [5, 5]),
        # A row that names no level keeps its person, with the lowest one
        ([row()], 8, (REMOVED_UNSWEPT,), [1]),
        ([row()], 8, (replace(UNSWEPT, then=1),), []),
        # A row that ends before the grant does
        ([UNTIL_FRIDAY], 8, (REMOVES,), []),
        ([UNTIL_FRIDAY], 8, (REMOVED_UNSWEPT,), [8]),
        ([UNTIL_LATER], 8, (REMOVES,), [8]),
        ([ENDED], 8, (REMOVED_UNSWEPT,), []),
        ([row(8)], 1, (REMOVED_UNSWEPT, LOWERED), [1]),
        ([row(8)], 8, (REMOVED_UNSWEPT, REMOVED), []),
        ([], 8, (REMOVED_UNSWEPT,), []),
    ],
)
def test_what_rows_leave_people_after_their_grants(
    rows: list[Any], level: int, notes: tuple[Any, ...], expected: list[int], record: Callable[[int], Any]
) -> None:
    """The sweep neither removes nor lowers who should have that level."""
    planned = plan(rows, [record(level)], *notes)
    assert [level for _, level in left_by(planned)] == expected


def left_by(planned: Plan) -> list[tuple[str, int]]:
    changes = [change for change in planned.changes if isinstance(change, MemberChange)]
    return [left for change in changes for left in change.leaves]


def test_who_keeps_a_level_after_the_end_of_their_row_keeps_it_after_a_grant_too() -> None:
    planned = plan([BACK], [member(8)], REMOVED_UNSWEPT)
    assert left_by(planned) == [(UNSWEPT.key, 1)]


def test_who_is_invited_by_a_roster_keeps_that_after_a_grant_whose_invite_has_expired() -> None:
    planned = plan([row(1)], [], REMOVED_UNSWEPT)
    assert [action for action, _, _ in described(planned)] == ["create"]
    assert left_by(planned) == [(UNSWEPT.key, 1)]


@pytest.mark.parametrize(
    ("rows", "records", "notes", "options", "expected"),
    [
        # The user has another address now, and somebody else the old one
        ([], [member(8, NEW_ADDRESS)], (EARLY,), {}, [("wait", HELD)]),
        ([row(8)], [member(1, NEW_ADDRESS)], (REMOVED,), {"complete": False}, [("create", "level: 8")]),
        ([], [member(8, uuid="u-other")], (EARLY,), {}, [("remove", "not on the roster")]),
        ([row(8)], [member(1, uuid="u-other")], (LOWERED,), {}, [("change", "level: 1 -> 8")]),
        # Who leaves, or whose row ended, is found by what was noted of the old address
        *(
            (rows, [member(8, NEW_ADDRESS)], (note,), options, [("differs!", f"(user {USER}): remove them by hand")])
            for rows, options in (([row()], {"leaving": True}), ([ENDED], {"complete": False}))
            for note in (EARLY, LOWERED)
        ),
        # The new address is among the leavers too
        ([row(), NEW_ADDRESS], [member(8, NEW_ADDRESS)], (EARLY,), {"leaving": True},
         [("remove", "is leaving"), ("skip", "is neither a member nor invited")]),
        # A note that no list shows: only of a known user it is certain that they are no member
        ([row()], [], (LATE,), {"leaving": True}, [("skip", f"invited; ends {HELD}")]),
        ([ENDED], [], (EARLY,), {}, [("skip", f"invited; ends {HELD}")]),
        ([ENDED], [], (granted(8, BEFORE, user=None), EARLY), {},
         [("skip", f"invited; ends {HELD}, the sweep ends {HELD}")]),
        ([ENDED], [], (LATE,), {}, []),
        # People without an address are not each other
        ([row(8)], [member(8), member(1, None, "u-x"), invited(1, None, "i-x"), invited(1, OLGA, "i-o")],
         (decided(None, "2026-11-22", user="u-hidden", email=""),), {}, []),
        # Before a list has shown the user
        ([row(1)], [member(8)], (granted(8, BEFORE, user=None),), {}, [("wait", HELD)]),
    ],
)  # fmt: skip
def test_notes_are_about_persons_not_addresses(
    rows: list[Any],
    records: list[Member | Invite],
    notes: tuple[Any, ...],
    options: dict[str, Any],
    expected: list[tuple[str, str]],
) -> None:
    found = described(plan(rows, records, *notes, **options))
    assert [action for action, _, _ in found] == [action for action, _ in expected]
    assert all(why.endswith(end) for (_, _, why), (_, end) in zip(found, expected, strict=True))


def test_administrators_lose_access_after_all_others() -> None:
    levels = {"kim": 8, "lin": 8, "max": 1, "pat": 1}
    records: list[Member | Invite] = []
    for name, level in levels.items():
        records.append(member(level, f"{name}@example.com", f"u-{name}"))
    rows = [{"email": "lin@example.com", "level": 1}, {"email": "pat@example.com", "level": 8}]
    planned = plan(rows, records)
    assert [change.name for change in planned.changes] == [
        "member max@example.com",
        "member pat@example.com",
        "member kim@example.com",
        "member lin@example.com",
    ]


def test_a_protected_address_of_nobody_is_told_and_one_of_a_newcomer_is_not() -> None:
    planned = plan([row(1)], [], protected=["adda@example.com", ADA])
    assert [(change.action, change.notes) for change in planned.changes] == [
        ("create", "level: 1"),
        ("skip", "protected, but neither a member nor invited: check the address"),
    ]


def test_the_address_of_who_changes_it_while_the_list_is_read_cannot_be_known() -> None:
    shown: list[Member | Invite] = [
        member(1, "grace@example.com", "u-grace"),
        member(1, "old@example.com"),
        member(1, "grace@example.com"),
    ]
    planned = plan([ADA], shown, granted(8, AFTER), leaving=True)
    (change,) = planned.changes
    assert "cannot be known: is leaving" in change.line()
    assert change.should_lose
