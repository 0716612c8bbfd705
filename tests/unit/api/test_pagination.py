"""The walk through a list: always to its end, never round in circles, never to another host."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.api.models import DashboardCollaborator, Invite, Page
from airflow_provider_workspace.api.operations import OPERATIONS, ListDashboardCollaborators, ListInvites
from airflow_provider_workspace.api.pagination import Pages
from airflow_provider_workspace.errors import WorkspacePaginationError

BASE = "https://host.example.com/base"


def page(following: Any, *ids: str) -> Page[Invite]:
    return Page[Invite](next=following, results=[Invite(id=id_) for id_ in ids])


def walk(*pages: Page[Invite], base_url: str = BASE, offset: int | None = None) -> list[int | None]:
    """Return the offsets asked for after the first one; ``None`` where the list ended."""
    first = (
        ListInvites(organization_id="o", limit=2) if offset is None else ListInvites(organization_id="o", offset=offset)
    )
    steps = Pages(first, base_url)
    offsets: list[int | None] = []
    for read in pages:
        following = steps.following(read)
        assert following is None or following.organization_id == "o"  # type: ignore[attr-defined]
        offsets.append(None if following is None else following.offset)  # type: ignore[attr-defined]
    return offsets


@pytest.mark.parametrize("last", [None, "", False])
def test_the_list_ends_where_nothing_follows(last: Any) -> None:
    assert walk(page(last, "a", "b")) == [None]


def silent(*ids: str, count: int | None = None) -> Page[Invite]:
    """An array, or an envelope without ``next``."""
    return Page[Invite](results=[Invite(id=id_) for id_ in ids], **({} if count is None else {"count": count}))


@pytest.mark.parametrize(
    ("pages", "offsets"),
    [
        ([silent("a", "b"), silent("c"), silent()], [2, 3, None]),
        ([silent("a", "b"), silent("c", "d"), silent()], [2, 4, None]),
        ([silent("a"), silent()], [1, None]),
        ([silent("a", "b", "c"), silent("a", "b", "c")], [3, None]),
        ([silent("a", "b", count=2)], [None]),
        ([silent("a", count=3), silent("b", count=3), silent("c", count=3)], [1, 2, None]),
        ([silent(count=3)], [None]),
    ],
)
def test_a_page_without_next_and_count_is_followed_until_empty(
    pages: list[Page[Invite]], offsets: list[int | None]
) -> None:
    assert walk(*pages) == offsets


def test_collaborators_have_no_pages_unless_they_say_so() -> None:
    steps = Pages(ListDashboardCollaborators(project_id="1", dashboard_id=1), BASE)
    assert steps.following(Page[DashboardCollaborator](results=[DashboardCollaborator(id="a")])) is None


def test_a_repeated_page_ends_the_list() -> None:
    steps = Pages(ListInvites(organization_id="o", limit=2), BASE)
    whole = silent("a", "b")
    assert not steps.repeats(whole)
    steps.following(whole)
    assert steps.repeats(whole)
    assert steps.following(whole) is None
    assert not steps.repeats(silent("c", "d"))
    assert not steps.repeats(page(None, "a", "b"))


def test_an_empty_page_ends_the_list_whatever_follows() -> None:
    assert walk(page(f"{BASE}/?offset=2", "a"), page(f"{BASE}/?offset=4")) == [2, None]


@pytest.mark.parametrize(
    ("following", "offset"),
    [
        (f"{BASE}/api/x/?limit=2&offset=30", 30),
        ("https://HOST.example.com:443/elsewhere/?offset=30", 30),
        ("?offset=30", 30),
        ("/api/x/?limit=2&offset=30#frag", 30),
        # Names no offset, or not one to believe: as many rows further as came.
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
    assert walk(page(following, "a", "b")) == [offset]


def test_next_offset_without_a_url_counts_rows() -> None:
    assert walk(page("https://anywhere.example/?offset=30", "a", "b"), base_url="") == [2]


def test_the_request_is_the_first_one_with_another_offset() -> None:
    steps = Pages(ListInvites(organization_id="o", limit=2), BASE)
    following = steps.following(page("https://evil.example/steal?offset=9", "a", "b"))
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
        walk(*pages)
    assert str(error.value).startswith(
        "ListInvites (GET /api/organizations/o/invites/) never ends: the page at offset "
    )
    assert error.value.permanent


def test_a_row_that_moved_to_the_next_page_is_not_a_loop() -> None:
    assert walk(page("?offset=2", "a", "b"), page("?offset=4", "x", "b"), page(None, "c")) == [2, 4, None]


def test_pagination_can_start_at_an_offset() -> None:
    assert walk(page("?cursor=x", "a", "b", "c"), page("?cursor=y", "d"), offset=10) == [13, 14]


@pytest.mark.parametrize(
    "operation",
    [item for item in OPERATIONS if isinstance(item.endpoint.answer, type) and issubclass(item.endpoint.answer, Page)],
)
def test_every_list_operation_takes_an_offset(operation: Any) -> None:
    assert "offset" in operation.model_fields
