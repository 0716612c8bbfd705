"""Snapshots of an organization's lists, which read no more pages than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.models import (
    DashboardCollaborator,
    Domain,
    Invite,
    Member,
    Page,
    ProjectItem,
    User,
)
from airflow_provider_workspace.api.operations.domains import ListDomains
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.errors import WorkspaceIncompleteListError, WorkspaceServerError
from airflow_provider_workspace.procedures.snapshot import Snapshot, find_row, read_rows, take_snapshot
from tests.unit.procedures.drive import drive

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation


def link(offset: int, rows: list[Any]) -> str | None:
    return f"/?offset={offset}" if offset < len(rows) else None


def member(email: str | None) -> Member:
    return Member(user=User(email=email))


SETTINGS = Settings("http://127.0.0.1", "key", page_size=2)
LISTS: dict[str, list[Any]] = {
    "ListDomains": [Domain(id="d1"), Domain(id="d2"), Domain(id="d3")],
    "ListProjects": [ProjectItem(id=1), ProjectItem(id=2)],
    "ListInvites": [
        Invite(target_email="Open@example.com"),
        Invite(target_email="again@example.com", is_expired=True),
        Invite(target_email="again@example.com", is_expired=False),
        Invite(target_email="again@example.com", is_expired=True),
        Invite(target_email="late@example.com", is_expired=True),
        Invite(target_email=None),
    ],
    "ListMembers": [member("One@example.com"), Member(), member(None), member("two@example.com")],
}


class Reader:
    """
    Returns pages of two rows from :data:`LISTS`, and records the requests.

    :param count: the row count that the service reports
    """

    def __init__(self, *, count: bool = True) -> None:
        self.count = count
        self.asked: list[str] = []

    def run(self, subject: str, **options: Any) -> Snapshot:
        return drive(take_snapshot(subject, "o", SETTINGS, **options), self.answer)

    def answer(self, operation: Operation[Any]) -> Page[Any]:
        name = type(operation).__name__
        self.asked.append(name)
        rows, start = LISTS[name], getattr(operation, "offset", None) or 0
        count = len(rows) if self.count else None
        return Page[Any](count=count, next=link(start + 2, rows), results=rows[start : start + 2])


def test_domains_and_projects_are_keyed_by_id() -> None:
    assert list(Reader().run("domains").domains) == ["d1", "d2", "d3"]
    assert list(Reader().run("projects").projects) == ["1", "2"]


def test_people_are_keyed_by_address() -> None:
    seen = Reader().run("people")
    assert seen.invites == {"open@example.com": False, "again@example.com": False, "late@example.com": True}
    assert seen.open_invites() == {"open@example.com", "again@example.com"}
    assert seen.members == {"one@example.com", "two@example.com"}
    assert seen.member_count == 4


ALL = ["ListInvites"] * 3 + ["ListMembers"] * 2
SAME = Snapshot(invites={"open@example.com": False}, members={"before@example.com"}, member_count=4)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, ALL),
        # All addresses of interest still have an invite, so none of them has joined.
        ({"wanted": {"open@example.com"}}, ["ListInvites"] * 3),
        ({"wanted": {"open@example.com", "late@example.com"}}, ALL),
        # The same number of members and no invite gone: the members have not changed.
        ({"previous": SAME}, ["ListInvites"] * 3 + ["ListMembers"]),
        ({"previous": Snapshot(invites={"open@example.com": False}, member_count=3)}, ALL),
        ({"previous": Snapshot(invites={"gone@example.com": False}, member_count=4)}, ALL),
        (
            {"previous": Snapshot(invites={"gone@example.com": True}, member_count=4)},
            ["ListInvites"] * 3 + ["ListMembers"],
        ),
    ],
)
def test_a_snapshot_reads_no_more_than_needed(options: dict[str, Any], asked: list[str]) -> None:
    reader = Reader()
    reader.run("people", **options)
    assert reader.asked == asked


def test_a_snapshot_keeps_previous_members_it_did_not_read() -> None:
    assert Reader().run("people", previous=SAME).members == {"before@example.com"}


def test_all_members_are_read_without_a_count() -> None:
    reader = Reader(count=False)
    seen = reader.run("people", previous=Snapshot(member_count=None))
    assert reader.asked == ALL
    assert seen.members == {"one@example.com", "two@example.com"}


def test_one_bad_page_fails_the_snapshot() -> None:
    with pytest.raises(WorkspaceServerError, match="500"):
        drive(take_snapshot("domains", "o", SETTINGS), lambda _: WorkspaceServerError("500"))


def test_unknown_snapshot_subjects_are_refused() -> None:
    with pytest.raises(ValueError, match="dashboards"):
        next(take_snapshot("dashboards", "o", SETTINGS))


class Skipping(Reader):
    """Leaves out the third row of a list for the first reads."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def answer(self, operation: Operation[Any]) -> Page[Any]:
        page = super().answer(operation)
        if getattr(operation, "offset", None) == 2 and self.times:
            self.times -= 1
            page.results.pop(0)
        return page

    def find(self, wanted: str) -> Any:
        search = find_row(
            ListDomains(organization_id="o", limit=2), lambda row: row.id == wanted, identity=lambda row: row.id
        )
        return drive(search, self.answer)


class Hiding(Reader):
    """Counts one row more than it returns, in lists whose name has a given prefix."""

    def __init__(self, hidden: str = "List") -> None:
        super().__init__()
        self.hidden = hidden

    def answer(self, operation: Operation[Any]) -> Page[Any]:
        page = super().answer(operation)
        if type(operation).__name__.startswith(self.hidden) and self.hidden and page.count is not None:
            page.count += 1
        return page


def test_find_stops_at_the_first_match() -> None:
    reader = Skipping(0)
    assert reader.find("d1").id == "d1"
    assert len(reader.asked) == 1


def test_find_reads_again_if_rows_are_missing() -> None:
    reader = Skipping(1)
    assert reader.find("d3").id == "d3"
    assert len(reader.asked) == 4


def test_a_complete_list_is_read_once() -> None:
    reader = Skipping(0)
    assert reader.find("nowhere") is None
    assert len(reader.asked) == 2


def test_a_row_missing_from_an_incomplete_list_is_an_error() -> None:
    reader = Skipping(99)
    with pytest.raises(WorkspaceIncompleteListError, match="counts 3 rows, and 2 came"):
        reader.find("d3")
    assert Skipping(99).find("d2").id == "d2"


@pytest.mark.parametrize(
    "rows",
    [
        [ProjectItem(id=1, Name="Sales"), ProjectItem(id=2)],
        [Domain(id="d", hostname="one.example.com")],
        [Invite(id="i", targetEmail="ada@example.com")],
        [Member(id="m", email="ada@example.com"), Member(user=User(uuid="u"))],
        [DashboardCollaborator(id="c", user=User(email="ada@example.com"))],
    ],
    ids=lambda rows: type(rows[0]).__name__,
)
def test_rows_without_a_name_are_an_error(rows: list[Any]) -> None:
    first: Any = ListDomains(organization_id="o")
    with pytest.raises(WorkspaceIncompleteListError, match="none of which shows its name") as found:
        drive(find_row(first, lambda _: False), lambda _: Page[Any](results=rows))
    assert found.value.permanent
    assert drive(find_row(first, lambda row: row is rows[0]), lambda _: Page[Any](results=rows)) is rows[0]
    assert drive(read_rows(first), lambda _: Page[Any](results=[])) == []


@pytest.mark.parametrize(("subject", "lists"), [("domains", 1), ("projects", 1), ("people", 2)])
def test_a_snapshot_of_an_incomplete_list_is_marked_or_fails(subject: str, lists: int) -> None:
    for complete in (False, True):
        reader = Hiding()
        if complete:
            with pytest.raises(WorkspaceIncompleteListError, match="trust_counts"):
                reader.run(subject, complete=True)
            assert len(set(reader.asked)) == 1
        else:
            assert "trust_counts" in reader.run(subject).incomplete
            assert len(set(reader.asked)) == lists


def test_members_of_an_incomplete_list_are_read_again_next_time() -> None:
    reader = Hiding("ListMembers")
    seen = reader.run("people")
    assert "ListMembers" in seen.incomplete
    reader.hidden = ""
    seen = reader.run("people", previous=seen)
    assert seen.members == {"one@example.com", "two@example.com"}
    assert not seen.incomplete


def test_people_are_read_again_if_rows_are_missing() -> None:
    reader = Skipping(1)
    seen = reader.run("people", complete=True)
    assert seen.members == {"one@example.com", "two@example.com"}
    assert reader.asked.count("ListInvites") == 6
    assert reader.asked.count("ListMembers") == 2


def test_times_of_invites_are_noted_once() -> None:
    invites = [
        Invite(id=str(number), target_email="a@example.com", created_at=f"2026-01-0{number}") for number in range(1, 5)
    ]

    def answer(operation: Any) -> Page[Any]:
        if type(operation).__name__ == "ListMembers":
            return Page[Any](count=0, next=None, results=[])
        start, limit = operation.offset or 0, operation.limit
        rows = [row for row in invites[start : start + limit] if row.id != "3" or limit == 1]
        return Page[Any](count=4, next=link(start + limit, invites), results=rows)

    seen = drive(take_snapshot("people", "o", SETTINGS, complete=True), answer)
    assert sorted(seen.invited_at) == [row.created_at for row in invites]


def test_each_row_is_kept_once() -> None:
    pages = [
        Page[Any](count=2, next="/?offset=1", results=[Domain(id="d1", domain="one.example.com")]),
        Page[Any](count=2, next=None, results=[Domain(id="d1", domain="moved.example.com"), Domain(domain="no id")]),
    ]
    rows = drive(read_rows(ListDomains(organization_id="o", limit=1)), lambda _: pages.pop(0))
    assert [row.domain for row in rows] == ["one.example.com", "no id"]
