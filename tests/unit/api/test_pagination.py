"""Pagination: it reads to the end, detects loops, and never leaves the host."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_provider_workspace.api import pagination
from airflow_provider_workspace.api.models import Invite, Page
from airflow_provider_workspace.api.operation import Cursor, Limit, Operation, endpoint
from airflow_provider_workspace.api.operations import ListInvites
from airflow_provider_workspace.api.pagination import Pages, pages_of
from airflow_provider_workspace.api.retry import MAX_READINGS
from airflow_provider_workspace.errors import (
    WorkspaceIncompleteListError,
    WorkspacePaginationError,
    WorkspaceRequestError,
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


def without_next(*ids: str, count: int | None = None) -> Page[Invite]:
    """An array, or an envelope without ``next``."""
    return Page[Invite](results=[Invite(id=id_) for id_ in ids], **({} if count is None else {"count": count}))


@pytest.mark.parametrize(
    ("pages", "offsets"),
    [
        ([without_next("a", "b"), without_next("c"), without_next()], [2, 3, None]),
        ([without_next("a", "b", "c"), without_next("a", "b", "c")], [3, None]),
        ([without_next("a", "b", count=2)], [None]),
        ([without_next("a", count=3), without_next("b", count=3), without_next("c", count=3)], [1, 2, None]),
        ([without_next(count=3)], [None]),
    ],
)
def test_a_page_without_next_is_followed_until_its_count_or_an_empty_page(
    pages: list[Page[Invite]], offsets: list[int | None]
) -> None:
    assert requested_offsets(*pages) == offsets


@pytest.mark.parametrize(
    ("following", "offset"),
    [
        (f"{BASE}/api/x/?limit=2&offset=30", 30),
        ("https://HOST.example.com:443/elsewhere/?offset=30", 30),
        ("?offset=30", 30),
        ("/api/x/?limit=2&offset=30#frag", 30),
        # No offset, or an implausible one, or elsewhere: the offset grows by the rows of the page.
        *((f"{BASE}/?{query}", 2) for query in ("cursor=abc", "offset=", "offset=many", "offset=-7")),
        (f"{BASE}/?offset={'9' * 5000}", 2),
        *((f"http{rest}/?offset=30", 2) for rest in ("s://evil.example", "://host.example.com", "s://[::1")),
        ("https://host.example.com:8443/?offset=30", 2),
        *((value, 2) for value in ("\N{SNOWMAN}", {"href": "?offset=30"}, True, 7)),
    ],
)
def test_next_offset(following: Any, offset: int) -> None:
    assert requested_offsets(page(following, "a", "b")) == [offset]


@pytest.mark.parametrize(
    "pages",
    [
        [page("?offset=0", "a", "b")],
        [page("?offset=2", "a", "b"), page("?offset=2", "c", "d")],
        [page("?offset=2", "a", "b"), page("?offset=4", "c", "d"), page("?offset=0", "e", "f")],
        [page("?offset=2", "a", "b"), page("?offset=4", "a", "b")],
    ],
)
def test_an_endless_list_is_an_error(pages: list[Page[Invite]]) -> None:
    with pytest.raises(WorkspacePaginationError) as error:
        requested_offsets(*pages)
    assert str(error.value).startswith("ListInvites never ends: the page at offset ")
    assert error.value.permanent


def test_links_with_a_cursor_that_repeat_rows_say_how_to_declare_it() -> None:
    with pytest.raises(
        WorkspacePaginationError, match=r"^ListInvites never ends: .* If the service pages by cursor, declare"
    ):
        requested_offsets(page("?cursor=x", "a", "b"), page("?cursor=y", "a", "b"))


def test_a_repeated_row_is_no_loop_in_a_list_with_a_count() -> None:
    """Each page has one row, and somebody joins at the front of the list."""
    pages = [page(f"?offset={offset}", "a").model_copy(update={"count": 3}) for offset in (1, 2)]
    assert requested_offsets(*pages) == [1, 2]


# Lists with fewer rows than their count


@dataclass
class Sent:
    """A page, for a fault to change: ids, the offset of the next page, and what may be drawn by chance."""

    offset: int
    limit: int
    ids: list[int]
    following: int | None
    everything: list[int]
    chance: random.Random


def moving(sent: Sent) -> None:
    sent.ids = sent.chance.sample(sent.everything, len(sent.ids))


def hidden(sent: Sent) -> None:
    sent.ids = [number for number in sent.ids if number % 9]


def at_most_seven(sent: Sent) -> None:
    sent.ids = sent.ids[:7]
    sent.following = sent.offset + 7 if sent.offset + len(sent.ids) < len(sent.everything) else None


def one_by_chance(sent: Sent) -> None:
    sent.ids, sent.following = [] if sent.offset else sent.chance.sample(sent.everything, 1), None


def more_than_counted(sent: Sent) -> None:
    sent.ids = [sent.offset * 2 + 1, sent.offset * 2 + 2]
    sent.following = sent.offset + 1 if sent.offset < 9 else None


def endless(sent: Sent) -> None:
    sent.ids = list(range(sent.offset + 1, sent.offset + sent.limit + 1))
    sent.following = sent.offset + sent.limit


class Service:
    """
    A list of rows with ids from 1.

    :param fault: changes each page
    :param changes: before each page but the first, whether somebody joins at the front or leaves there
    """

    def __init__(self, count: int, fault: Callable[[Sent], object] = lambda _: None, *changes: str) -> None:
        self.ids = list(range(1, count + 1))
        self.stayed = set(self.ids)
        self.fault = fault
        self.changes = ["stay", *changes]
        self.chance = random.Random(7)  # noqa: S311 - the same each time

    def page(self, op: Any) -> Page[Invite]:
        change = self.changes.pop(0) if self.changes else "stay"
        if change == "join":
            self.ids.insert(0, 1000 + len(self.changes))
        elif change == "leave":
            self.stayed.discard(self.ids.pop(0))
        offset = op.offset or 0
        end = offset + op.limit
        following = end if end < len(self.ids) else None
        sent = Sent(offset, op.limit, self.ids[offset:end], following, self.ids, self.chance)
        self.fault(sent)
        link = None if sent.following is None else f"?offset={sent.following}"
        results = [Invite(id=str(number)) for number in sent.ids]
        return Page[Invite](count=len(self.ids), next=link, results=results)

    def read(self, limit: int = 10, **first: int) -> list[int]:
        """Return the ids that were read."""
        following: Any = ListInvites(organization_id="o", limit=limit, **first)
        pages = Pages(following, BASE)
        came: list[int] = []
        while following is not None:
            page = self.page(following)
            came += [int(row.id or 0) for row in pages.new_rows(page)]
            following = pages.next_operation(page)
        return came


@pytest.mark.parametrize("fault", [lambda _: None, moving, at_most_seven])
def test_each_row_is_returned_once(fault: Any) -> None:
    service = Service(35, fault)
    assert sorted(service.read()) == service.ids


@pytest.mark.parametrize("changes", [["join"], ["leave"] * 4, ["join", "leave"] * 3, ["join"] * 200, ["leave"] * 15])
def test_rows_added_or_removed_meanwhile_are_no_error(changes: list[str]) -> None:
    service = Service(350, lambda _: None, *changes)
    assert service.stayed <= set(service.read(limit=100))


@pytest.mark.parametrize(
    ("count", "fault", "first", "kind", "says"),
    [
        (35, hidden, {}, WorkspaceIncompleteListError, "counts 35 rows, and 32 came in 3 readings. Try again."),
        (35, hidden, {"offset": 20}, WorkspaceIncompleteListError, "counts 35 rows, and 34 came"),
        (1000, one_by_chance, {"limit": 1000}, WorkspaceIncompleteListError, f"came in {MAX_READINGS} readings"),
        (300, endless, {}, WorkspacePaginationError, "counts 300 rows, gave 710, and has another page"),
    ],
)
def test_a_list_that_stays_short_or_never_ends_is_an_error(
    count: int, fault: Any, first: dict[str, int], kind: type[WorkspaceRequestError], says: str
) -> None:
    service = Service(count, fault)
    with pytest.raises(kind, match=re.escape(says)) as error:
        service.read(**first)
    short = kind is WorkspaceIncompleteListError
    assert str(error.value).startswith("[list-too-short] ListInvites counts ") is short
    assert "set trust_counts to false" in str(error.value)
    assert (error.value.permanent, error.value.outcome) == (not short, "rejected")


def test_more_rows_than_counted_and_rows_before_the_first_offset_are_no_error() -> None:
    assert len(Service(5, more_than_counted).read()) == 20
    assert Service(35).read(offset=30) == [31, 32, 33, 34, 35]
    assert Service(35).read(offset=40) == []


def test_rows_without_an_id_are_not_deduplicated() -> None:
    rows = [Invite(), Invite(id="a"), Invite()]
    whole, short, rest = (Page[Invite](count=count, next=None, results=rows) for count in (3, 4, 4))
    pages = Pages(ListInvites(organization_id="o", limit=3), BASE)
    assert pages.new_rows(whole) == rows
    assert pages.next_operation(whole) is None
    pages = Pages(ListInvites(organization_id="o", limit=4), BASE)
    rest = rest.model_copy(update={"results": []})
    came: list[Invite] = []

    def read_again_and_again() -> None:
        for page in itertools.cycle((short, rest)):
            came.extend(pages.new_rows(page))
            pages.next_operation(page)

    with pytest.raises(WorkspaceIncompleteListError, match="3 came in 3 readings"):
        read_again_and_again()
    assert came == rows


def test_a_list_without_a_count_has_a_maximum_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MAX_PAGES", 3)
    pages = [page(f"?offset={offset + 1}", str(offset)) for offset in range(3)]
    assert requested_offsets(*pages[:2]) == [1, 2]
    with pytest.raises(WorkspacePaginationError, match="more than 3 pages"):
        requested_offsets(*pages)


# Pages by cursor


@endpoint("GET", "/invites/{kind}/", scope=None, repeatable=True)
class ListByCursor(Operation[Page[Invite]]):
    """A list whose links have a cursor."""

    kind: str
    limit: Limit = None
    cursor: Cursor = None


PATH = "/api/invites/open/"


def requested_targets(*pages: Page[Invite], cursor: str | None = None) -> tuple[list[str | None], list[str]]:
    """Return what is requested after each page, and the ids that came."""
    steps = pages_of(ListByCursor(kind="open", **({"limit": 2} if cursor is None else {"cursor": cursor})), BASE)
    targets: list[str | None] = []
    ids: list[str] = []
    for read in pages:
        ids += [str(row.id) for row in steps.new_rows(read)]
        following = steps.next_operation(read)
        targets.append(None if following is None else following.request().target.removeprefix(PATH))
    return targets, ids


def counted(count: int, following: Any, *ids: str) -> Page[Invite]:
    return page(following, *ids).model_copy(update={"count": count})


@pytest.mark.parametrize(
    ("pages", "targets", "ids"),
    [
        ([page(f"{BASE}{PATH}?cursor=cD0y%3D&limit=2", "a", "b"), page(None, "c")],
         ["?cursor=cD0y%3D&limit=2", None], "abc"),
        ([page("?after=9&time=1 2", "a"), page("?before=\N{SNOWMAN}#x", "b")],
         ["?after=9&time=1%202", "?before=%E2%98%83"], "ab"),
        # Rows that moved, and pages without rows, are no end.
        ([page("?c=1", "a", "b"), page("?c=2"), page("?c=3", "b", "c"), page(None)],
         ["?c=1", "?c=2", "?c=3", None], "abc"),
        # Another path, as an alias or a proxy has, is not used.
        ([page("https://HOST.example.com:443/elsewhere/?c=1", "a")], ["?c=1"], "a"),
        ([page("?c=1", "a"), without_next("b")], ["?c=1", None], "ab"),
        ([without_next()], [None], ""),
        ([without_next("a", count=1)], [None], "a"),
        # A list that is shorter than its count is read again.
        ([counted(3, "?c=1", "a"), counted(3, None, "b")], ["?c=1", "?limit=1"], "ab"),
    ],
)  # fmt: skip
def test_links_with_a_cursor_are_followed_as_they_are(
    pages: list[Page[Invite]], targets: list[str | None], ids: str
) -> None:
    assert requested_targets(*pages) == (targets, list(ids))


def test_a_count_says_nothing_about_a_list_from_a_cursor_on() -> None:
    assert requested_targets(counted(30, None, "a"), cursor="x") == ([None], ["a"])


@pytest.mark.parametrize(
    ("pages", "says"),
    [
        ([page("?limit=2", "a")], "ListByCursor never ends: page 1 leads back to one that was read before. "),
        ([page("?c=1", "a"), page("?c=2", "b"), page("?c=1", "c")], "never ends: page 3 leads back to one that"),
        ([page("?c=1", "a"), page("?c=2", "a")], "never ends: page 2 is the one before it once more"),
        *(([page(link, "a")], "has a 'next' on page 1 that cannot be followed")
          for link in ("https://evil.example/?c=1", "http://host.example.com/?c=1", "//evil.example?c=1", "abc", True,
                       "https://[::1/?c=1")),
        ([without_next("a")], "Declare the result as list[X] if the service gives the whole list at once"),
        ([without_next("a", count=2)], "has a first page without 'next'"),
    ],
)  # fmt: skip
def test_a_cursor_that_leads_nowhere_is_an_error(pages: list[Page[Invite]], says: str) -> None:
    with pytest.raises(WorkspacePaginationError, match=re.escape(says)) as error:
        requested_targets(*pages)
    assert (error.value.permanent, error.value.outcome) == (True, "rejected")
    assert ("a bug of the service" in str(error.value)) is ("never ends" in says)


def test_a_list_by_cursor_has_a_maximum_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MAX_PAGES", 2)
    with pytest.raises(WorkspacePaginationError, match=r"^ListByCursor has more than 2 pages\. Nothing was changed"):
        requested_targets(page("?c=1", "a"), page("?c=2", "b"))
