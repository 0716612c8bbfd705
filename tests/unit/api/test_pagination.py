"""Pagination: it reads to the end, detects loops, and never leaves the host."""

from __future__ import annotations

import random
from typing import Any

import pytest

from airflow_provider_workspace.api import pagination
from airflow_provider_workspace.api.models import DashboardCollaborator, Invite, Page
from airflow_provider_workspace.api.operations import OPERATIONS, ListDashboardCollaborators, ListInvites
from airflow_provider_workspace.api.pagination import SLACK, Pages
from airflow_provider_workspace.api.retry import MAX_READS
from airflow_provider_workspace.errors import WorkspaceIncompleteListError, WorkspacePaginationError
from tests.list_service import (
    Fault,
    PageContent,
    at_most_seven,
    empty_page,
    endless,
    hidden,
    last_row_missing,
    more_than_counted,
    moving,
    next_null,
    one_by_chance,
)

BASE = "https://host.example.com/base"


def page(following: Any, *ids: str) -> Page[Invite]:
    return Page[Invite](next=following, results=[Invite(id=id_) for id_ in ids])


def requested_offsets(*pages: Page[Invite], base_url: str = BASE, offset: int | None = None) -> list[int | None]:
    """Return the requested offsets after the first one, then ``None`` for the end of the list."""
    first = (
        ListInvites(organization_id="o", limit=2) if offset is None else ListInvites(organization_id="o", offset=offset)
    )
    steps = Pages(first, base_url)
    offsets: list[int | None] = []
    for read in pages:
        steps.new_rows(read)
        following = steps.next_operation(read)
        assert following is None or following.organization_id == "o"  # type: ignore[attr-defined]
        offsets.append(None if following is None else following.offset)  # type: ignore[attr-defined]
    return offsets


@pytest.mark.parametrize("last", [None, "", False])
def test_a_list_ends_without_a_next_page(last: Any) -> None:
    assert requested_offsets(page(last, "a", "b")) == [None]


def without_next(*ids: str, count: int | None = None) -> Page[Invite]:
    """An array, or an envelope without ``next``."""
    return Page[Invite](results=[Invite(id=id_) for id_ in ids], **({} if count is None else {"count": count}))


@pytest.mark.parametrize(
    ("pages", "offsets"),
    [
        ([without_next("a", "b"), without_next("c"), without_next()], [2, 3, None]),
        ([without_next("a", "b"), without_next("c", "d"), without_next()], [2, 4, None]),
        ([without_next("a"), without_next()], [1, None]),
        ([without_next("a", "b", "c"), without_next("a", "b", "c")], [3, None]),
        ([without_next("a", "b", count=2)], [None]),
        ([without_next("a", count=3), without_next("b", count=3), without_next("c", count=3)], [1, 2, None]),
        ([without_next(count=3)], [None]),
    ],
)
def test_a_page_without_next_and_count_is_followed_until_empty(
    pages: list[Page[Invite]], offsets: list[int | None]
) -> None:
    assert requested_offsets(*pages) == offsets


def test_collaborators_have_one_page_unless_next_is_set() -> None:
    steps = Pages(ListDashboardCollaborators(project_id="1", dashboard_id=1), BASE)
    assert steps.next_operation(Page[DashboardCollaborator](results=[DashboardCollaborator(id="a")])) is None


def test_a_repeated_page_ends_the_list() -> None:
    steps = Pages(ListInvites(organization_id="o", limit=2), BASE)
    whole = without_next("a", "b")
    assert not steps.is_repeated(whole)
    steps.next_operation(whole)
    assert steps.is_repeated(whole)
    assert steps.next_operation(whole) is None
    assert not steps.is_repeated(without_next("c", "d"))
    assert steps.is_repeated(page(None, "a", "b"))
    assert not steps.is_repeated(page("?offset=2", "a", "b"))


def test_an_empty_page_ends_the_list_despite_next() -> None:
    assert requested_offsets(page(f"{BASE}/?offset=2", "a"), page(f"{BASE}/?offset=4")) == [2, None]


@pytest.mark.parametrize(
    ("following", "offset"),
    [
        (f"{BASE}/api/x/?limit=2&offset=30", 30),
        ("https://HOST.example.com:443/elsewhere/?offset=30", 30),
        ("?offset=30", 30),
        ("/api/x/?limit=2&offset=30#frag", 30),
        # No offset, or an implausible one: the offset grows by the rows of the page.
        (f"{BASE}/?cursor=abc", 2),
        (f"{BASE}/?offset=", 2),
        (f"{BASE}/?offset=many", 2),
        (f"{BASE}/?offset=-7", 2),
        (f"{BASE}/?offset={'9' * 5000}", 2),
        ("https://evil.example/?offset=30", 2),
        ("http://host.example.com/?offset=30", 2),
        ("https://host.example.com:8443/?offset=30", 2),
        ("https://[::1/?offset=30", 2),
        ("\N{SNOWMAN}", 2),
        ({"href": "?offset=30"}, 2),
        (True, 2),
        (7, 2),
    ],
)
def test_next_offset(following: Any, offset: int) -> None:
    assert requested_offsets(page(following, "a", "b")) == [offset]


def test_next_offset_without_a_url_counts_rows() -> None:
    assert requested_offsets(page("https://anywhere.example/?offset=30", "a", "b"), base_url="") == [2]


def test_following_requests_differ_only_in_the_offset() -> None:
    steps = Pages(ListInvites(organization_id="o", limit=2), BASE)
    following = steps.next_operation(page("https://evil.example/steal?offset=9", "a", "b"))
    assert following is not None
    assert following.request().target == "/api/organizations/o/invites/?limit=2&offset=2"


@pytest.mark.parametrize(
    "pages",
    [
        [page("?offset=0", "a", "b")],
        [page("?offset=2", "a", "b"), page("?offset=2", "c", "d")],
        [page("?offset=2", "a", "b"), page("?offset=4", "c", "d"), page("?offset=0", "e", "f")],
        [page("?cursor=x", "a", "b"), page("?cursor=x", "a", "b")],
    ],
)
def test_an_endless_list_is_an_error(pages: list[Page[Invite]]) -> None:
    with pytest.raises(WorkspacePaginationError) as error:
        requested_offsets(*pages)
    assert str(error.value).startswith("ListInvites never ends: the page at offset ")
    assert error.value.permanent


def test_a_repeated_row_is_no_loop_in_a_list_with_a_count() -> None:
    """Each page has one row, and somebody joins at the front of the list."""
    pages = [page(f"?offset={offset}", "a").model_copy(update={"count": 3}) for offset in (1, 2)]
    assert requested_offsets(*pages) == [1, 2]


def test_a_row_that_moved_to_the_next_page_is_not_a_loop() -> None:
    assert requested_offsets(page("?offset=2", "a", "b"), page("?offset=4", "x", "b"), page(None, "c")) == [2, 4, None]


def test_pagination_can_start_at_an_offset() -> None:
    assert requested_offsets(page("?cursor=x", "a", "b", "c"), page("?cursor=y", "d"), offset=10) == [13, 14]


@pytest.mark.parametrize(
    "operation",
    [item for item in OPERATIONS if isinstance(item.endpoint.result, type) and issubclass(item.endpoint.result, Page)],
)
def test_every_list_operation_takes_an_offset(operation: Any) -> None:
    assert "offset" in operation.model_fields


# Lists with fewer rows than their count


class Service:
    """
    A list of rows with ids from 1, and a fault.

    :param fault: changes the rows of a page
    :ivar asked: offset and limit of each request
    """

    def __init__(self, count: int, fault: Fault | None = None) -> None:
        self.ids = list(range(1, count + 1))
        self.fault = fault
        self.asked: list[tuple[int, int]] = []
        self.chance = random.Random(7)  # noqa: S311 - the same each time

    def before_page(self) -> None:
        """Change the list before a page is sent."""

    def page(self, op: Any) -> Page[Invite]:
        self.before_page()
        offset, limit = op.offset or 0, op.limit
        self.asked.append((offset, limit))
        following = offset + limit if offset + limit < len(self.ids) else None
        sent = PageContent(offset, limit, self.ids[offset : offset + limit], following, self.ids, self.chance)
        if self.fault:
            self.fault(sent)
        link = None if sent.following is None else f"?offset={sent.following}"
        return Page[Invite](count=len(self.ids), next=link, results=[Invite(id=str(number)) for number in sent.ids])

    def read(self, limit: int = 10, offset: int | None = None) -> list[int]:
        """Return how often each id was read."""
        first = ListInvites(organization_id="o", limit=limit, **({} if offset is None else {"offset": offset}))
        pages = Pages(first, BASE)
        came: list[int] = []
        following: Any = first
        while following is not None:
            page = self.page(following)
            came += [int(row.id or 0) for row in pages.new_rows(page)]
            following = pages.next_operation(page)
        return came


@pytest.mark.parametrize("fault", [None, next_null, last_row_missing, empty_page, moving, at_most_seven])
def test_each_row_is_returned_once(fault: Any) -> None:
    service = Service(35, fault)
    assert sorted(service.read()) == service.ids
    if fault in (None, next_null, at_most_seven):
        assert {limit for _, limit in service.asked} == {10}, "it is read once"


def test_an_incomplete_list_is_an_error() -> None:
    service = Service(35, hidden)
    with pytest.raises(WorkspaceIncompleteListError) as error:
        service.read()
    assert str(error.value).startswith("Try again. If the list stays short ")
    assert "trust_counts to false" in str(error.value)
    said = "ListInvites counts 35 rows, and 32 came in 3 readings (GET /api/organizations/o/invites/). Nothing"
    assert said in str(error.value)
    assert not error.value.permanent
    assert error.value.outcome == "rejected"


def test_a_list_that_keeps_changing_is_read_a_few_times() -> None:
    service = Service(1000, one_by_chance)
    with pytest.raises(WorkspaceIncompleteListError, match=f"came in {MAX_READS} readings"):
        service.read(limit=1000)


def test_more_rows_than_counted_are_no_error() -> None:
    assert len(Service(5, more_than_counted).read()) == 20


def test_rows_before_the_first_offset_are_not_missing() -> None:
    assert Service(35).read(offset=30) == [31, 32, 33, 34, 35]
    assert Service(35).read(offset=40) == []
    with pytest.raises(WorkspaceIncompleteListError, match="counts 35 rows, and 34 came"):
        Service(35, hidden).read(offset=20)


def test_rows_without_an_id_are_not_deduplicated() -> None:
    rows = [Invite(), Invite(id="a"), Invite()]
    pages = Pages(ListInvites(organization_id="o", limit=3), BASE)
    page = Page[Invite](count=3, next=None, results=rows)
    assert pages.new_rows(page) == rows
    assert pages.next_operation(page) is None
    pages = Pages(ListInvites(organization_id="o", limit=4), BASE)
    came: list[Invite] = []
    for read in range(3):
        came += pages.new_rows(Page[Invite](count=4, next=None, results=rows))
        assert pages.next_operation(Page[Invite](count=4, next=None, results=rows))
        rest = Page[Invite](count=4, next=None, results=[])
        assert not pages.new_rows(rest)
        if read < 2:
            assert pages.next_operation(rest)
    with pytest.raises(WorkspaceIncompleteListError, match="3 came in 3 readings"):
        pages.next_operation(rest)
    assert came == rows


class ChangingList(Service):
    """
    A list that changes before each page but the first.

    :param changes: for each page, whether somebody joins at the front or leaves there
    """

    def __init__(self, count: int, *changes: str) -> None:
        super().__init__(count)
        self.changes = ["stay", *changes]
        self.stayed = set(self.ids)

    def before_page(self) -> None:
        change = self.changes.pop(0) if self.changes else "stay"
        if change == "join":
            self.ids.insert(0, 1000 + len(self.changes))
        elif change == "leave":
            self.stayed.discard(self.ids.pop(0))


@pytest.mark.parametrize(
    "changes", [["join"], ["leave"], ["leave"] * 4, ["join", "leave"] * 3, ["join"] * 200, ["leave"] * 15]
)
def test_rows_added_or_removed_meanwhile_are_no_error(changes: list[str]) -> None:
    service = ChangingList(350, *changes)
    assert service.stayed <= set(service.read(limit=100))


def test_rows_skipped_after_a_removal_are_read_again() -> None:
    service = ChangingList(35, "leave")
    assert 11 in service.read()
    assert len({limit for _, limit in service.asked}) == 2


def test_a_list_without_a_count_is_not_checked() -> None:
    pages = Pages(ListInvites(organization_id="o", limit=2), BASE)
    first = page(None, "a")
    pages.new_rows(first)
    assert pages.next_operation(first) is None


# Endless lists


def test_a_list_with_far_more_rows_than_its_count_is_an_error() -> None:
    service = Service(300, endless)
    with pytest.raises(WorkspacePaginationError, match="counts 300 rows, gave 710, and has another page") as error:
        service.read()
    assert "trust_counts to false" in str(error.value)
    assert error.value.permanent
    assert error.value.outcome == "rejected"
    assert len(service.asked) * 10 <= 2 * 300 + SLACK + 10


def test_a_list_without_a_count_has_a_maximum_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MAX_PAGES", 3)
    pages = [page(f"?offset={offset + 1}", str(offset)) for offset in range(3)]
    assert requested_offsets(*pages[:2]) == [1, 2]
    with pytest.raises(WorkspacePaginationError, match="more than 3 pages"):
        requested_offsets(*pages)
