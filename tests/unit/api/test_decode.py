"""Bodies of successful responses: every shape that the interface leaves open, and unreadable ones."""

from __future__ import annotations

import json
import logging
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.api import response as module
from airflow_provider_workspace.api.models import (
    Dashboard,
    DashboardCollaborator,
    DashboardSharing,
    Domain,
    Invite,
    Member,
    Page,
    Project,
    Resource,
    User,
)
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.api.response import UnreadableResponseError, decode

COLLABORATOR = {"id": "c1", "level": 21}
INVITE = {"id": "i1", "target_email": "a@example.com"}

HTML = b"\n <!DOCTYPE html><html><title>Log in</title></html>"


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


class Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    handler = Warnings()
    module.log.addHandler(handler)
    yield handler.messages
    module.log.removeHandler(handler)


# Shapes that the interface leaves open


@pytest.mark.parametrize("body", [b"", b" \n", b"{}", b"null", b"[]", b'{"paused": true}', b"OK", b"\xff"])
def test_an_empty_body_is_none(body: bytes) -> None:
    assert decode(None, body) is None


@pytest.mark.parametrize("page", [HTML, BOM_UTF8 + HTML])
def test_an_html_page_is_an_error(page: bytes) -> None:
    with pytest.raises(UnreadableResponseError) as error:
        decode(None, page)
    assert str(error.value) == f"an HTML or XML page ({len(page)} bytes) where nothing or JSON was expected"


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        ([COLLABORATOR, COLLABORATOR], ["c1", "c1"]),
        ([], []),
        (COLLABORATOR, ["c1"]),
        ({"count": 1, "next": None, "previous": None, "results": [COLLABORATOR]}, ["c1"]),
        ({"results": []}, []),
        ({}, []),
    ],
)
def test_collaborators_are_read_in_each_shape(value: Any, ids: list[str]) -> None:
    page = decode(Page[DashboardCollaborator], as_json(value))
    assert [row.id for row in page.results] == ids
    assert page.next is None


@pytest.mark.parametrize(
    ("answer", "value"),
    [(Page[DashboardCollaborator], {"detail": "no"}), (Page[Invite], {}), (Page[DashboardCollaborator], None)],
)
def test_an_object_in_place_of_a_list_is_an_error(answer: Any, value: Any) -> None:
    with pytest.raises(UnreadableResponseError, match="another shape"):
        decode(answer, as_json(value))


ON, OFF = {"enabled": True, "access_token": "t1"}, {"enabled": False, "access_token": "t2"}


@pytest.mark.parametrize(
    ("value", "enabled", "token"),
    [
        (ON, True, "t1"),
        ([], False, None),
        ([OFF], False, "t2"),
        ([OFF, ON], True, "t1"),
        ([OFF, {}], False, "t2"),
        ({"count": 2, "next": None, "previous": None, "results": [OFF, ON]}, True, "t1"),
        ({"results": []}, False, None),
        ({}, None, None),
    ],
)
def test_sharing_is_read_in_each_shape(value: Any, enabled: Any, token: Any) -> None:
    sharing = decode(DashboardSharing, as_json(value))
    assert (sharing.enabled, sharing.access_token) == (enabled, token)


@pytest.mark.parametrize("value", [[1], ["on"], "on", {"results": [None]}])
def test_sharing_of_another_shape_is_an_error(value: Any) -> None:
    with pytest.raises(UnreadableResponseError, match="another shape"):
        decode(DashboardSharing, as_json(value))


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        (b"", []),
        (b"null", []),
        (b"{}", []),
        (b'{"detail": "7 invites sent"}', []),
        (b"[]", []),
        (as_json([INVITE, INVITE]), ["i1", "i1"]),
        (as_json(INVITE), ["i1"]),
        (as_json({"count": 1, "results": [INVITE]}), ["i1"]),
    ],
)
def test_bulk_invites_are_read_in_each_shape(body: bytes, ids: list[str]) -> None:
    assert [invite.id for invite in decode(list[Invite], body)] == ids


@pytest.mark.parametrize(
    ("body", "verified"), [(b"", "nothing"), (b"null", "nothing"), (b"{}", None), (b'{"is_verified": true}', True)]
)
def test_verify_is_read_in_each_shape(body: bytes, verified: Any) -> None:
    domain = decode(Domain | None, body)
    assert ("nothing" if domain is None else domain.is_verified) == verified


def test_numeric_ids_are_read() -> None:
    page = decode(Page[Invite], as_json({"count": 1, "results": [{"id": 7, "target_email": "a@example.com"}]}))
    assert page.results[0].id == "7"


def test_an_empty_list_may_be_null() -> None:
    assert decode(Page[Invite], b'{"count": 0, "next": null, "results": null}').results == []
    for body in (b'{"count": 3, "results": null}', b'{"results": null, "error": "no"}'):
        with pytest.raises(UnreadableResponseError, match="JSON of another shape"):
            decode(Page[Invite], body)


def test_a_single_object_in_an_array_is_read() -> None:
    assert decode(Dashboard, b'[{"id": 7}]').id == 7


# Fields


def test_any_field_may_be_missing_null_or_unknown() -> None:
    project = decode(Project, b'{"id": 7, "name": null, "brand_new": {"deep": [1]}}')
    assert (project.id, project.name, project.timezone) == (7, None, None)
    assert project.to_dict()["brand_new"] == {"deep": [1]}


def test_fields_of_another_type_are_read_as_null(warnings: list[str]) -> None:
    body = as_json({"id": 7, "name": {"de": "Umsatz"}, "tags": "weekly", "created_by": {"id": "x", "email": "a@b.de"}})
    dashboard = decode(Dashboard, body)
    assert dashboard == Dashboard(id=7, created_by=User(email="a@b.de"))
    fields = [warning.split()[1] for warning in warnings]
    assert sorted(fields) == ["created_by.id", "name", "tags"]
    assert all(warning.endswith("has another type than in the interface; read as null") for warning in warnings)


def test_rows_with_mistyped_fields_warn_once_per_field(warnings: list[str]) -> None:
    rows = [{"level": 1}, {"level": "owner", "user": 3}, {"level": "admin"}]
    page = decode(Page[Member], as_json({"count": "?", "results": rows}))
    assert [(row.level, row.user) for row in page.results] == [(1, None), (None, None), (None, None)]
    assert [warning.split()[1] for warning in warnings] == ["count", "results.level", "results.user"]


@pytest.mark.parametrize("following", ["?offset=2", {"href": "?offset=2"}, 2, True])
def test_next_of_a_page_is_kept(following: Any) -> None:
    assert decode(Page[Member], as_json({"next": following, "results": [{}]})).next == following


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"id": 1, "id": 2}', {"id": 2}),
        (b'\xef\xbb\xbf{"id": 1}', {"id": 1}),
        ('{"id": 1}'.encode("utf-16"), {"id": 1}),
        (b'{"id": %s}' % (b"9" * 100), {"id": int("9" * 100)}),
        (b'{"name": "\\ud800"}', {}),
        (b'{"tiles": [NaN, Infinity, 1e999]}', {"tiles": [None, None, None]}),
        (b'{"to_dict": 1, "model_dump": 2, "__class__": 3}', {"to_dict": 1, "model_dump": 2, "__class__": 3}),
        (b'{"tiles": %s1%s}' % (b"[" * 150, b"]" * 150), {}),
    ],
)
def test_unusual_json_is_read(body: bytes, expected: dict[str, Any]) -> None:
    result = decode(Dashboard, body).to_dict()
    assert expected.items() <= result.items()
    json.dumps(result, allow_nan=False)


# Unreadable bodies


@pytest.mark.parametrize(
    ("answer", "body", "found"),
    [
        (Dashboard, b"", "an empty body where a record was expected"),
        (Page[Member], b" \r\n", "an empty body where a record was expected"),
        (Dashboard, b'{"id": 7, "na', "JSON that is cut off or broken (13 bytes)"),
        (list[Invite], b"[{", "JSON that is cut off or broken (2 bytes)"),
        (Dashboard, '{"name": "ä"}'.encode("latin-1"), "JSON that is cut off or broken (13 bytes)"),
        (Dashboard, b'{"filters": {"a": %s}}' % (b"9" * 5000), "JSON that is cut off or broken (5020 bytes)"),
        (Dashboard, b"[" * 100_000, "JSON that is nested too deeply (100000 bytes)"),
        (Dashboard, b'{"tiles": %s%s}' % (b"[" * 300, b"]" * 300), "JSON that is nested too deeply (611 bytes)"),
        (Dashboard, HTML, f"an HTML or XML page ({len(HTML)} bytes)"),
        (list[Invite], HTML, f"an HTML or XML page ({len(HTML)} bytes)"),
        (Dashboard, b"upstream timed out", "something that is not JSON (18 bytes)"),
        (Dashboard, b"\x00\x01", "something that is not JSON (2 bytes)"),
        (Dashboard, b"null", "JSON of another shape (Input should be"),
        (Dashboard, b"[]", "JSON of another shape (Input should be"),
        (Dashboard, b'[{"id": 1}, {"id": 2}]', "JSON of another shape (Input should be"),
        (Domain | None, b'"verified"', "JSON of another shape (Input should be"),
        (Page[Member], b"{}", "JSON of another shape (Field required"),
        (Page[Member], b'{"results": [1]}', "JSON of another shape (Input should be"),
        (Page[Member], b'{"results": null}', "JSON of another shape"),
        (list[Invite], b'["i1"]', "JSON of another shape (Input should be"),
        (list[Invite], b"true", "JSON of another shape (Input should be"),
    ],
)
def test_an_unreadable_body_is_an_error(answer: Any, body: bytes, found: str) -> None:
    with pytest.raises(UnreadableResponseError) as error:
        decode(answer, body)
    assert str(error.value).startswith(found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "results", "next", "count", "user", "level", "name", "x"]), inner)
    ),
    max_leaves=10,
)
ANSWERS = sorted({operation.endpoint.result for operation in OPERATIONS}, key=str)


@given(st.sampled_from(ANSWERS), JSON.map(as_json) | st.binary())
def test_any_body_is_decoded_or_raises(answer: Any, body: bytes) -> None:
    try:
        result = decode(answer, body)
    except UnreadableResponseError:
        return
    rows = result.results if isinstance(result, Page) else result if isinstance(result, list) else [result]
    for row in rows:
        if isinstance(row, Resource):
            json.dumps(row.to_dict(return_secrets=True), allow_nan=False)
            assert repr(row)
