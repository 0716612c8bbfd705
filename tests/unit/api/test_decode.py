"""Bodies of successful responses: every shape that the interface leaves open, and unreadable ones."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from typing import Any

import pytest

from airflow_provider_workspace.api.models import (
    Dashboard,
    DashboardCollaborator,
    DashboardSharing,
    Domain,
    Invite,
    Member,
    Page,
    Project,
    User,
)
from airflow_provider_workspace.api.response import UnreadableResponseError, decode

COLLABORATOR = {"id": "c1", "level": 21}
INVITE = {"id": "i1", "target_email": "a@example.com"}

HTML = b"\n <!DOCTYPE html><html><title>Log in</title></html>"


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


# Shapes that the interface leaves open


def page_of(*rows: Any) -> dict[str, Any]:
    return {"count": len(rows), "next": None, "previous": None, "results": rows}


ON, OFF = {"enabled": True, "access_token": "t1"}, {"enabled": False, "access_token": "t2"}
NOTHING = Domain | None
# What is expected of the body, the body, and what is read of it.
SHAPES: list[tuple[Any, Any, Any]] = [
    *((None, body, None) for body in (b"", b" \n", {}, None, [], {"paused": True}, b"OK", b"\xff")),
    (Page[DashboardCollaborator], [COLLABORATOR, COLLABORATOR], ["c1", "c1"]),
    (Page[DashboardCollaborator], [], []),
    (Page[DashboardCollaborator], COLLABORATOR, ["c1"]),
    (Page[DashboardCollaborator], page_of(COLLABORATOR), ["c1"]),
    (Page[DashboardCollaborator], {"results": []}, []),
    (Page[DashboardCollaborator], {}, []),
    (Page[Invite], {"count": 1, "results": [{"id": 7}]}, ["7"]),
    (Page[Invite], {"count": 0, "next": None, "results": None}, []),
    *((list[Invite], body, []) for body in (b"", None, {}, [], {"detail": "7 invites sent"})),
    (list[Invite], [INVITE, INVITE], ["i1", "i1"]),
    (list[Invite], INVITE, ["i1"]),
    (list[Invite], page_of(INVITE), ["i1"]),
    (DashboardSharing, ON, (True, "t1")),
    (DashboardSharing, [], (False, None)),
    (DashboardSharing, [OFF], (False, "t2")),
    (DashboardSharing, [OFF, ON], (True, "t1")),
    (DashboardSharing, [OFF, {}], (False, "t2")),
    (DashboardSharing, page_of(OFF, ON), (True, "t1")),
    (DashboardSharing, {"results": []}, (False, None)),
    (DashboardSharing, {}, (None, None)),
    (NOTHING, b"", None),
    (NOTHING, None, None),
    (NOTHING, {}, "unverified"),
    (NOTHING, {"is_verified": True}, "verified"),
    (Dashboard, [{"id": 7}], 7),
]


@pytest.mark.parametrize(("expected", "body", "found"), SHAPES, ids=str)
def test_each_shape_that_the_interface_leaves_open_is_read(expected: Any, body: Any, found: Any) -> None:
    result = decode(expected, body if isinstance(body, bytes) else as_json(body))
    if isinstance(result, Page | list):
        result = [row.id for row in (result.results if isinstance(result, Page) else result)]
    elif isinstance(result, DashboardSharing):
        result = (result.enabled, result.access_token)
    elif isinstance(result, Domain):
        result = "verified" if result.is_verified else "unverified"
    elif isinstance(result, Dashboard):
        result = result.id
    assert result == found


# Fields


def test_any_field_may_be_missing_null_or_unknown() -> None:
    project = decode(Project, b'{"id": 7, "name": null, "brand_new": {"deep": [1]}}')
    assert (project.id, project.name, project.timezone) == (7, None, None)
    assert project.to_dict()["brand_new"] == {"deep": [1]}


def test_fields_of_another_type_are_read_as_null_with_one_warning_each(caplog: pytest.LogCaptureFixture) -> None:
    dashboard = {"id": 7, "name": {"de": "Umsatz"}, "tags": "weekly", "created_by": {"id": "x", "email": "a@b.de"}}
    assert decode(Dashboard, as_json(dashboard)) == Dashboard(id=7, created_by=User(email="a@b.de"))
    fields = [message.split()[1] for message in caplog.messages]
    assert sorted(fields) == ["created_by.id", "name", "tags"]
    caplog.clear()
    rows = [{"level": 1}, {"level": "owner", "user": 3}, {"level": "admin"}]
    page = decode(Page[Member], as_json({"count": "?", "results": rows}))
    assert [row.level for row in page.results] == [1, None, None]
    assert [row.user for row in page.results] == [None, None, None]
    assert [message.split()[1] for message in caplog.messages] == ["count", "results.level", "results.user"]
    assert all(text.endswith("has another type than in the interface; read as null") for text in caplog.messages)


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

SHAPE = "JSON of another shape"


@pytest.mark.parametrize(
    ("answer", "body", "found"),
    [
        (Dashboard, b"", "an empty body where a record was expected"),
        (Dashboard, b'{"id": 7, "na', "JSON that is cut off or broken (13 bytes)"),
        (Dashboard, '{"name": "ä"}'.encode("latin-1"), "JSON that is cut off or broken (13 bytes)"),
        (Dashboard, b'{"filters": {"a": %s}}' % (b"9" * 5000), "JSON that is cut off or broken (5020 bytes)"),
        (Dashboard, b"[" * 100_000, "JSON that is nested too deeply (100000 bytes)"),
        (Dashboard, b'{"tiles": %s%s}' % (b"[" * 300, b"]" * 300), "JSON that is nested too deeply (611 bytes)"),
        (Dashboard, HTML, f"an HTML or XML page ({len(HTML)} bytes)"),
        (Dashboard, b"upstream timed out", "something that is not JSON (18 bytes)"),
        (Dashboard, b"\x00\x01", "something that is not JSON (2 bytes)"),
        *((Dashboard, body, SHAPE + " (") for body in (b"null", b"[]", b'[{"id": 1}, {"id": 2}]')),
        (Domain | None, b'"verified"', SHAPE + " ("),
        *((Page[Member], body, SHAPE) for body in (b"{}", b'{"results": [1]}', b'{"results": null}')),
        *((list[Invite], body, SHAPE + " (") for body in (b'["i1"]', b"true")),
        *((Page[DashboardCollaborator], body, SHAPE) for body in (b'{"detail": "no"}', b"null")),
        *((Page[Invite], body, SHAPE)
         for body in (b'{"count": 3, "results": null}', b'{"results": null, "error": "x"}')),
        *((DashboardSharing, body, SHAPE) for body in (b"[1]", b'["on"]', b'"on"', b'{"results": [null]}')),
        *((None, body, f"an HTML or XML page ({len(body)} bytes) where nothing or")
         for body in (HTML, BOM_UTF8 + HTML)),
    ],
)  # fmt: skip
def test_an_unreadable_body_is_an_error(answer: Any, body: bytes, found: str) -> None:
    with pytest.raises(UnreadableResponseError) as error:
        decode(answer, body)
    assert str(error.value).startswith(found)
