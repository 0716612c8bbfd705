"""Plans of the member sync: a table of rosters, members and invites; and rosters that are refused."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from airflow_provider_workspace.access.members.plan import plan_members
from airflow_provider_workspace.access.rules.guards import Guards
from airflow_provider_workspace.api.models import Invite, Member, User
from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError
from airflow_provider_workspace.procedures.apply_plan import raise_if_access_is_left
from airflow_provider_workspace.procedures.plan import Change, Plan
from airflow_provider_workspace.procedures.plan_markdown import plan_lines
from airflow_provider_workspace.procedures.roster_files import read_roster

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

    settings = SimpleNamespace(
        count_members=False, source="-", organization_at_service=lambda _: "service / organization"
    )

    def __init__(self, records: tuple[Member | Invite, ...]) -> None:
        self.records = records

    def pages(self, op: Operation[Any], *_: Any) -> Iterator[list[Any]]:
        yield [record for record in self.records if isinstance(record, Invite) == isinstance(op, ListInvites)]


def plan(
    rows: list[Any],
    *records: Member | Invite,
    protected: tuple[str, ...] = (),
    owner_level: int | None = 15,
    leavers: list[Any] | None = None,
) -> Plan:
    client: Any = Lists((*records, OWNER, invite("olga@example.com")))
    rows = read_roster(leavers or [*rows, "olga@example.com"])
    guards = Guards.read(protected, owner_level)
    return plan_members(client, ORGANIZATION, rows, guards, now=NOW, leaving=bool(leavers))


def test_a_plan_without_changes_has_no_table() -> None:
    lines = plan_lines(plan(["ada@example.com"], member()))
    assert "None." not in lines
    assert not any("|" in line for line in lines)


NOW = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
OWNER = member("olga@example.com", 15)
OTHER = ["lin@example.com"]
ADA = {"email": "Ada@Example.com", "level": 8}
# Roster, present members and invites, action, levels before and after, part of the reason.
CASES: list[tuple[list[Any], Member | Invite | None, str, dict[str, int], dict[str, int], str]] = [
    ([ADA], None, "create", {}, {"level": 8}, ""),
    ([ADA], invite(is_expired=True), "create", {}, {"level": 8}, ""),
    ([ADA], invite(), "differs", {"level": 1}, {"level": 8}, "open invite"),
    ([ADA], invite(level=8), "", {}, {}, ""),
    ([ADA], invite(level=15), "differs", {"level": 15}, {"level": 8},
     "as an owner (owner_level=15), whom a sync never changes: withdraw it by hand"),
    ([ADA], member(), "change", {"level": 1}, {"level": 8}, ""),
    ([ADA], member(level=15), "differs", {"level": 15}, {"level": 8}, "owner"),
    ([ADA], member(level=None), "unknown", {}, {"level": 8}, "level"),
    ([ADA], member(level=8), "", {}, {}, ""),
    ([ADA], member("ADA@example.com", 8), "", {}, {}, ""),
    (["ada@example.com"], member(), "", {}, {}, ""),
    (["ada@example.com"], member(level=15), "", {}, {}, ""),
    (["ada@example.com"], member(level=None), "", {}, {}, ""),
    (OTHER, member(), "remove", {"level": 1}, {}, "not on the roster"),
    (OTHER, member(level=8), "remove", {"level": 8}, {}, "not on the roster"),
    (OTHER, member(level=15), "skip", {"level": 15}, {}, "owner"),
    ([ADA], invite(level=None), "unknown", {}, {"level": 8}, "does not show its level"),
    (OTHER, member(level=None), "unknown", {}, {}, "level"),
    (OTHER, invite(), "remove", {"level": 1}, {}, "not on the roster"),
    (OTHER, invite(id=None), "unknown", {"level": 1}, {}, "its address or id"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "there", "action", "before", "after", "why"), CASES)
def test_plan_for_one_address(
    rows: list[Any], there: Member | Invite | None, action: str, before: dict[str, int], after: dict[str, int], why: str
) -> None:
    present = [there] if there else []
    planned = plan(rows, *present, member("lin@example.com", 1))
    about = [change for change in planned.changes if change.name.casefold().endswith(" ada@example.com")]
    expected = [(action, before, after)] if action else []
    assert [(change.action, change.before, change.after) for change in about] == expected
    assert all(why in change.why for change in about)
    sent_for_ada = int(action in ("create", "change", "remove"))
    sent_for_lin = int(rows != OTHER)
    assert planned.pending == sent_for_ada + sent_for_lin


def until(end: Any, level: int | None = 8, **fields: Any) -> dict[str, Any]:
    return {"email": "ada@example.com", "until": end, **({} if level is None else {"level": level}), **fields}


OVER, LATER, MONDAY = until("2026-11-23"), until("2026-11-24"), {"level": 8, "until": "2026-11-30", "then": "removed"}
BACK, STANDING = until("2026-10-31", then="member"), {"email": "ada@example.com", "level": 1}
ENDS: list[tuple[list[Any], Member | Invite | None, list[tuple[str, dict[str, Any], str]]]] = [
    # Before the end
    ([until("2026-11-30")], None, [("create", MONDAY, "until 2026-11-30, then removed")]),
    ([until(date(2026, 11, 30))], member(), [("change", MONDAY, "level: 1 -> 8, until 2026-11-30, then removed")]),
    ([LATER], member(level=8), [("wait", {}, "until 2026-11-24, then removed")]),
    ([LATER], invite(level=8), [("wait", {}, "until 2026-11-24, then removed")]),
    (
        [until("2026-11-24T12:00:00+00:00", then=1)],
        member(level=8),
        [("wait", {}, "until 2026-11-24T12:00:00Z, then 1")],
    ),
    # After it
    ([OVER], None, []),
    ([OVER], invite(level=8), [("remove", {}, "access ended 2026-11-23 (UTC)")]),
    ([OVER], member(level=8), [("remove", {}, "access ended 2026-11-23 (UTC)")]),
    ([until("2026-11-24T13:59:59+02:00")], member(level=8), [("remove", {}, "access ended 2026-11-24T11:59:59Z")]),
    ([until("2026-11-23", None)], member(level=5), [("remove", {}, "access ended")]),
    ([OVER], member(), [("differs", {}, "access ended 2026-11-23 (UTC), but it was changed since: it was 8")]),
    ([OVER], member(level=None), [("unknown", {}, "does not show")]),
    ([until("2026-11-23", 15)], member(level=15), [("differs", {}, "owner")]),
    ([BACK], member(level=8), [("change", {"level": 1}, "level: 8 -> 1, access ended 2026-10-31 (UTC), back to 1")]),
    ([BACK], member(), []),
    ([BACK], member(level=12), [("differs", {"level": 1}, "changed since")]),
    ([BACK], invite(level=8), [("remove", {}, "access ended 2026-10-31 (UTC)")]),
    ([BACK], invite(level=1), []),
    # Another row of the same person
    ([OVER, STANDING], member(level=8), [("change", {"level": 1}, "access ended 2026-11-23 (UTC), back to 1")]),
    ([until("2026-11-30"), STANDING], member(), [("change", MONDAY, "until 2026-11-30")]),
    ([OVER, until("2026-11-30")], member(level=8), [("wait", {}, "until 2026-11-30, then removed")]),
    ([OVER, "ada@example.com"], member(level=8), [("differs", {}, "another row keeps them, and names no level")]),
    ([BACK, "ada@example.com"], member(level=8), [("change", {"level": 1}, "back to 1")]),
    ([BACK, "ada@example.com"], member(level=5), []),
    ([OVER, BACK], member(level=8), [("remove", {}, "access ended 2026-11-23 (UTC)")]),
    ([OVER, STANDING], invite(level=8), [("remove", {}, "access ended"), ("create", {"level": 1}, "")]),
    ([OVER, OVER], member(level=8), [("remove", {}, "access ended"), ("skip", {}, "same address as row 1")]),
]


@pytest.mark.parametrize(("rows", "there", "found"), ENDS)
def test_rows_with_an_end(
    rows: list[Any], there: Member | Invite | None, found: list[tuple[str, dict[str, Any], str]]
) -> None:
    planned = plan(rows, *([there] if there else []))
    about = [change for change in planned.changes if "ada@" in change.name]
    assert [(change.action, change.after) for change in about] == [(action, after) for action, after, _ in found]
    assert all(note in change.notes for change, (_, _, note) in zip(about, found, strict=True))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        *((until(end), "row 1 (ada@example.com): field 'until': expected a date such as 2026-12-31")
          for end in (20270331, "20270331", "2027-W13-3", "2027-02-30", "18:00", datetime(2026, 12, 1), True,  # noqa: DTZ001
                      "9998-02-30T23:00:00-12:00", "2026-12-31T18:00:00", "31.12.2026")),
        (until("9999-12-31", then="gone"), "field 'then': expected a whole number from 0, or member (1) or admin (8)"),
        (until("9999-12-31", then=15), "then: 15 must not be above the level, which the row must name"),
        (until("9999-12-31", None, then=1), "then: 1 must not be above the level, which the row must name"),
        ({**ADA, "then": "removed"}, "then: give until as well, or leave it out"),
    ],
)  # fmt: skip
def test_invalid_ends_are_refused(row: dict[str, Any], why: str) -> None:
    with pytest.raises(WorkspaceInputError) as error:
        plan([row])
    assert why in str(error.value)


def test_an_approval_covers_the_end() -> None:
    first, second = (plan([until(end)], member()).changes[0] for end in ("2026-11-30", "2027-11-30"))
    assert first.approval_digest("x") != second.approval_digest("x")


@pytest.mark.parametrize(
    ("rows", "records", "options", "found"),
    [
        # People without an address
        *((OTHER, [record], {"protected": protected}, ["create", "unknown"])
         for record in (member(None), member(user=None), invite(None)) for protected in ((), ("olga@example.com",))),
        # Protected people
        *(
            (rows, [there, member("lin@example.com")], {"protected": (" ADA@example.com",)}, found)
            for rows, there, found in (
                (OTHER, member(), ["skip"]),
                (OTHER, invite(), ["skip"]),
                ([ADA, *OTHER], member(), ["differs"]),
                ([ADA, *OTHER], invite(), ["differs"]),
            )
        ),
        ([ADA], [], {"protected": ("ada@example.com",)}, ["create"]),
        (OTHER, [], {"protected": ("ada@example.com",)}, ["create", "skip"]),
        # Several open invites of one person
        ([ADA], [invite(level=1), invite(level=8)], {}, ["differs"]),
        (["ada@example.com"], [invite(level=8), invite(level=1)], {}, ["differs"]),
        (["ada@example.com"], [invite(), invite()], {}, []),
        # Owners, if they are like others
        (OTHER, [member(level=15)], {"owner_level": None}, ["remove", "create"]),
        (OTHER, [member(level=None)], {"owner_level": None}, ["remove", "create"]),
        ([ADA], [member(level=15)], {"owner_level": None}, ["change"]),
        ([ADA], [member(level=None)], {"owner_level": None}, ["unknown"]),
        # Two people, whom casefold would make one
        (["weiß@example.com", "ﬁona@example.com"], [member("weiss@example.com")], {}, ["remove", "create", "create"]),
        (["STRAẞE@example.com"], [member("straße@example.com")], {}, []),
        # Removals first; equal rows are one person
        ([ADA, {**ADA, "email": "ada@example.com"}, *OTHER, "new@example.com"],
         [member(), member("old@example.com"), invite("x@x.org")], {},
         ["remove", "remove", "change", "create", "create", "skip"]),
    ],
)  # fmt: skip
def test_actions_of_a_plan(
    rows: list[Any], records: list[Member | Invite], options: dict[str, Any], found: list[str]
) -> None:
    planned = plan(rows, *records, **options)
    assert [change.action for change in planned.changes] == found
    assert {action: count for action, count in planned.counts.items() if count} == Counter(found)


def test_the_plan_table_shows_each_change_and_reason_and_is_cut_with_a_note() -> None:
    remark, reading, *lines = plan([ADA, ADA, *OTHER], member(), member("old@example.com", 8)).table().splitlines()
    assert remark.startswith("Levels come from column 'level' (8)")
    assert reading == "The lists were read with the key of -, which may be shown only some of the members."
    assert lines[0] == "1 to create, 1 to change, 1 to remove, 1 duplicate"
    assert " ".join(lines[1].split()) == "~ member ada@example.com level: 1 -> 8"
    assert " ".join(lines[2].split()) == "- member old@example.com level: 8, not on the roster"
    assert lines[4].endswith("row 2: same address as row 1")
    lines = plan([f"p{number}@example.com" for number in range(203)]).table(limit=200).splitlines()
    assert len(lines) == 203
    assert lines[-1].split() == ["…", "and", "3", "more", "members"]


def test_the_digests_of_a_plan_are_those_of_earlier_releases() -> None:
    """If they differ, count ``DIGEST_VERSION`` up: waiting approvals then say why they are void."""
    planned = plan([ADA, "new@example.com"], member(), member("old@example.com"))
    early = Change(
        "change", "verification", "domain b.example", after={"sso_enforcement": "x"}, intended={"domain": "b"}
    )
    assert [change.approval_digest(planned.planned_for) for change in (*planned.changes, early)] == [
        "1:f71d0af73b220a002b776669b9647893",
        "1:570604b2201de2d54f35be5ad47513da",
        "1:5677e9e4f7da3a434be9060bb7d40435",
        "1:f406ee6e7764bf99788b2833e6d3462e",
    ]


def test_a_change_says_what_it_takes_from_a_person() -> None:
    rows = [ADA, {"email": "kim@example.com", "level": 1}, "new@example.com"]
    people = [member(), member("kim@example.com", 8), member("old@example.com"), invite("lin@example.com")]
    planned = plan(rows, *people)
    domain = Change("remove", "domains", "domain b.example")
    answers: dict[str, tuple[bool, bool, bool, bool]] = {}
    for change in [*planned.changes, domain]:
        answers[change.name] = (change.removes, change.lowers, change.raises, change.takes_from_person)
    assert answers == {
        "invite lin@example.com": (True, False, False, True),
        "member old@example.com": (True, False, False, True),
        "member ada@example.com": (False, False, True, False),
        "member kim@example.com": (False, True, False, True),
        "invite new@example.com": (False, False, False, False),
        "domain b.example": (True, False, False, False),
    }


def test_a_change_without_values_and_reason_is_a_line() -> None:
    assert Change("skip", "domains", "domain b.example").line().split() == ["domain", "b.example", "skipped"]


@pytest.mark.parametrize(
    ("part", "members", "says"),
    [
        ("domains", 9, r"domains removed: 2; the organization has 9 members\); max_removals=1 allows 1"),
        ("members", 0, r"away \(members removed: 2\); max_removals=1 allows 1"),
        ("members", 9, r"members removed: 2; the organization has 9 members\); max"),
    ],
)
def test_a_plan_that_takes_too_much_says_how_much(part: str, members: int, says: str) -> None:
    removals = [Change("remove", part, f"{name}.example") for name in "ab"]
    with pytest.raises(WorkspaceInputError, match=says):
        Plan("service / organization", removals, members=members).check_losses(1)


def test_only_leavers_are_removed() -> None:
    members = [member(), member("lin@example.com"), member("olive@example.com", 15), member("pat@example.com")]
    invites = [
        invite("kim@example.com"),
        invite("lin@example.com"),
        invite("nobody@example.com", is_expired=True),
    ]
    leavers = [
        "Ada@Example.com",
        "kim@example.com",
        "olive@example.com",
        "nobody@example.com",
        "pat@example.com",
        {"email": "lin@example.com", "until": "2026-11-24"},
        {"email": "nobody@example.com", "until": "2026-11-01"},
    ]
    planned = plan([], *members, *invites, protected=("pat@example.com",), leavers=leavers)
    assert [(change.action, change.name, change.before) for change in planned.changes] == [
        ("remove", "invite kim@example.com", {"level": 1}),
        ("remove", "member ada@example.com", {"level": 1}),
        ("differs", "person olive@example.com", {"level": 15}),
        ("differs", "person pat@example.com", {"level": 1}),
        ("skip", "person nobody@example.com", {}),
        ("wait", "person lin@example.com", {}),
    ]
    assert "leaves later: until 2026-11-24, then removed" in planned.table()


@pytest.mark.parametrize("problem", ["people-hidden", "access-left"])
def test_an_error_about_200_people_names_the_first_20(problem: str) -> None:
    people = [f"member person-{number}@example.com" for number in range(200)]
    with pytest.raises(
        WorkspaceError, match=r"\] 200 people .*person-19@example\.com; … and 180 more: see the plan$"
    ) as red:
        raise_if_access_is_left(people if problem == "people-hidden" else [], people)
    assert red.value.problem == problem
    assert str(red.value).count("@example.com") == 20


def named(email: str | None, first: str | None = None, last: str | None = None) -> Member:
    return member(email, user=User(uuid=id_of("u", email), email=email, first_name=first, last_name=last))


HEIDI, VERA = "heidi.altmann@example.com", "vera.altmann@example.com"


@pytest.mark.parametrize(
    ("row", "there", "is_hinted"),
    [
        (VERA, named(HEIDI, "Vera", "Altmann"), True),
        (VERA, named(HEIDI, "V\u00e9ra", "ALTMANN"), True),
        ({"email": "altmann@example.com", "first_name": "Vera"}, named(HEIDI, "Vera", "Altmann"), True),
        ("heidi_altmann@example.org", named(HEIDI), True),
        ("altmann.heidi@example.com", named(HEIDI, "Heidi", "Altmann"), True),
        (VERA, named(HEIDI, "Heidi", "Altmann"), False),
        (VERA, named(HEIDI), False),
        ("info@example.org", named("info@example.com"), False),
        (VERA, named("info@example.com", "Vera"), False),
        (VERA, named(HEIDI, "Vera", "Altmann-Berg"), False),
    ],
)
def test_a_removal_and_an_invite_say_that_they_may_be_about_one_person(
    row: Any, there: Member, *, is_hinted: bool
) -> None:
    planned = plan([row], there, named("noor.berg@example.com", "Noor", "Berg"))
    removal, other, created = planned.changes
    assert (removal.action, other.action, created.action) == ("remove", "remove", "create")
    assert other.why == "not on the roster"
    hints = [
        f"not on the roster, perhaps the same person as {created.name}",
        f"perhaps the same person as {removal.name}",
    ]
    assert [removal.why, created.why] == (hints if is_hinted else ["not on the roster", ""])


def plan_with_ids(
    rows: list[Any], *records: Member | Invite, leaving: bool = False, complete: bool = True, on_invalid: str = "fail"
) -> Plan:
    client: Any = Lists((*records, OWNER))
    read = read_roster(rows, argument="leavers" if leaving else "roster", columns={"id": "user_uuid"})
    guards = Guards.read([], 15, on_invalid)
    return plan_members(client, ORGANIZATION, read, guards, now=NOW, leaving=leaving, complete=complete)


OLGA = {"email": "olga@example.com"}


def test_whom_a_row_names_by_their_user_is_not_removed_at_another_address() -> None:
    there = member(VERA)
    planned = plan_with_ids([OLGA, {"email": HEIDI, "id": there.user_uuid, "level": 8}], there)
    (change,) = planned.changes
    assert (change.action, change.name, change.before["level"], change.after["level"]) == (
        "change",
        f"member {VERA}",
        1,
        8,
    )
    assert f"The user of row 2, {HEIDI}, has the address {VERA} now." in planned.remark
    assert plan_with_ids([OLGA, {"email": VERA, "id": there.user_uuid}], there).changes == []
    assert plan_with_ids([OLGA, {"email": HEIDI, "id": "unknown"}]).changes[0].action == "create"
    shared = member(VERA, user=User(uuid="u-2", email=VERA))
    assert plan_with_ids([OLGA, {"email": VERA, "id": there.user_uuid}], there, shared).changes == []


@pytest.mark.parametrize("spelling", [str.lower, str.upper])
def test_a_leaver_who_is_named_by_their_user_is_removed_at_another_address(spelling: Any) -> None:
    there = member(VERA)
    user_uuid = spelling(there.user_uuid)
    (change,) = plan_with_ids([{"email": HEIDI, "id": user_uuid}], there, leaving=True).changes
    assert (change.action, change.name) == ("remove", f"member {VERA}")


MISTAKE = {"until": "31.12.2030"}


@pytest.mark.parametrize(
    ("over", "invalid"),
    [
        ({"email": HEIDI, "id": 1}, {"email": VERA, **MISTAKE}),
        ({"email": VERA}, {"email": HEIDI, "id": 1, **MISTAKE}),
        ({"email": VERA, "id": 1}, {"email": HEIDI, "id": 1, **MISTAKE}),
        ({"email": HEIDI, "id": 1}, {"email": HEIDI, **MISTAKE}),
        ({"email": VERA}, {"email": None, "id": 1, **MISTAKE}),
        ({"email": VERA}, {"id": 1, "level": "boss"}),
    ],
)
@pytest.mark.parametrize("leaving", [True, False])
def test_who_has_an_invalid_row_of_another_address_keeps_what_they_have(
    over: dict[str, Any], invalid: dict[str, Any], *, leaving: bool
) -> None:
    """One of them names the user."""
    there = member(VERA)
    rows = [{**row, "id": there.user_uuid} if "id" in row else row for row in (over, invalid)]
    if not leaving:
        rows[0]["until"] = "2020-01-01"
    planned = plan_with_ids([OLGA, *rows], there, leaving=leaving, complete=False, on_invalid="skip")
    (change,) = [change for change in planned.changes if "olga" not in change.name]
    assert (change.action, change.should_lose) == ("differs", True)
    assert change.name.startswith("row 3")


def test_rows_of_three_addresses_of_one_person_are_left_out_together() -> None:
    there = member(VERA)
    rows = [{"email": VERA}, {"email": HEIDI, "id": there.user_uuid}, {"email": HEIDI, **MISTAKE}]
    (change,) = plan_with_ids(rows, there, leaving=True, on_invalid="skip").changes
    assert (change.action, change.should_lose) == ("differs", True)


@pytest.mark.parametrize("leaving", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_two_rows_of_one_user_that_differ_are_refused(number: int, *, leaving: bool) -> None:
    """What one of them takes, the other one may keep."""
    there = member(VERA)
    rows = [{"email": VERA}, {"email": HEIDI, "id": there.user_uuid}]
    rows[number]["until"] = "2020-01-01"
    with pytest.raises(WorkspaceInputError, match=rf"are about one user, and differ .* has the address {VERA} now"):
        plan_with_ids([OLGA, *rows], there, leaving=leaving)


def test_the_levels_of_two_rows_of_one_leaver_do_not_matter() -> None:
    there = member(VERA)
    rows = [{"email": VERA, "level": 1}, {"email": HEIDI, "id": there.user_uuid, "level": 8}]
    removal, duplicate = plan_with_ids(rows, there, leaving=True).changes
    assert (removal.action, duplicate.mark) == ("remove", "duplicate")
    with pytest.raises(WorkspaceInputError, match="Rows 2 and 3 are about one user"):
        plan_with_ids([OLGA, *rows], there)


def test_two_rows_of_one_user_are_duplicates_and_an_address_of_another_user_is_refused() -> None:
    there = member(VERA)
    planned = plan_with_ids([OLGA, VERA, {"email": HEIDI, "id": there.user_uuid}], there)
    assert [(change.mark, change.name) for change in planned.changes] == [("duplicate", f"person {HEIDI}")]
    assert f"its user has the address {VERA} now" in planned.changes[0].why
    with pytest.raises(WorkspaceInputError, match=rf"Row 2 names user u-1, but {VERA} is the address of user"):
        plan_with_ids([OLGA, {"email": VERA, "id": "u-1"}], there)
