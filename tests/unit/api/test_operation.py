"""Requests: paths, queries and bodies as they are sent, and input that is refused before sending."""

from __future__ import annotations

import json
import math
import types
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import unquote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

import airflow_provider_workspace.api.operations as ops
from airflow_provider_workspace.api.endpoint import result_type
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import Cursor, Limit, Offset, Operation, endpoint
from airflow_provider_workspace.errors import WorkspaceInputError

UUID_TEXT = "0190c0de-0000-4000-8000-0000000000e1"


def member(user_uuid: str) -> ops.DeleteMember:
    return ops.DeleteMember(organization_id="o", user_uuid=user_uuid)


# Paths


@pytest.mark.parametrize("value", [".", "..", " .. ", "../../other", "a/..", "a\\..\\b", "./a"])
def test_path_traversal_is_refused(value: str) -> None:
    with pytest.raises(WorkspaceInputError) as error:
        member(value).request()
    assert (
        str(error.value) == f"DeleteMember: user_uuid must be an identifier, not {value.strip()!r}. Nothing was sent."
    )


@given(st.text())
def test_any_path_value_stays_one_segment(value: str) -> None:
    try:
        op = member(value)
        target = op.request().target
    except WorkspaceInputError:
        return
    assert target.isascii()
    before, segment = target[: len("/api/organizations/o/members/")], target[len("/api/organizations/o/members/") : -1]
    assert (before, target[-1]) == ("/api/organizations/o/members/", "/")
    assert not set(segment) & set("/?#\\ ")
    assert segment not in ("", ".", "..")
    assert unquote(segment) == op.user_uuid
    assert member(op.user_uuid) == op


# Ids


def test_ids_are_normalized() -> None:
    for number in (7, "7", " 7 "):
        request = ops.GetDashboard(project_id="1", dashboard_id=number).request()
        assert (request.method, request.target, request.body) == ("GET", "/api/environments/1/dashboards/7/", None)
    for value in (UUID_TEXT, UUID_TEXT.upper(), f" {UUID_TEXT} ", UUID(UUID_TEXT)):
        request = ops.PauseBatchExport(organization_id="o", batch_export_id=value).request()
        target = f"/api/organizations/o/batch_exports/{UUID_TEXT}/pause/"
        assert (request.method, request.target, request.body) == ("POST", target, b"{}")


EXPORT = {"organization_id": "o", "batch_export_id": UUID_TEXT}


@pytest.mark.parametrize(
    ("operation", "fields", "complaint"),
    [
        *((ops.GetDashboard, {"project_id": "1", "dashboard_id": value},
         "field 'dashboard_id': expected a whole number")
         for value in ("x", "-7", -7, None, True)),
        (ops.GetDashboard, {"project_id": True, "dashboard_id": 1},
         "field 'project_id': expected an id, a number or text that can be printed, not something of type bool"),
        *((ops.DeleteMember, {"organization_id": "o", "user_uuid": value},
         "field 'user_uuid': expected an id, a number")
         for value in ("", " ", "\t", "a\nb", "\ud800", None, 1.5)),
        (ops.GetDashboard, {"project_id": "1", "dashboard_id": "9" * 5000}, "field 'dashboard_id': Exceeds the limit"),
        (ops.GetDashboard, {"project_id": "1"}, "field 'dashboard_id' is required"),
        (ops.CreateProject, {"organization_id": "o", "week_start_day": True}, "field 'week_start_day': expected a"),
        (ops.PauseBatchExport, EXPORT | {"batch_export_id": "x"}, "field 'batch_export_id': expected a UUID, not 'x'"),
        (ops.PauseBatchExport, EXPORT | {"model": "x"}, "field 'model': "),
        (ops.CreateDashboard, {"project_id": "1", "nmae": "x"}, "unknown field 'nmae' (did you mean 'name'?)"),
        (ops.CreateDashboard, {"project_id": "1", "colour": "x"},
         "unknown field 'colour' (known fields: delete_insights, "),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_before_sending(
    operation: type[Operation[Any]], fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(WorkspaceInputError) as error:
        operation(**fields)
    assert str(error.value).startswith(f"{operation.__name__}: {complaint}")
    assert str(error.value).endswith("Nothing was sent.")


# Fields


def test_errors_name_every_wrong_field_and_no_value() -> None:
    with pytest.raises(WorkspaceInputError) as error:
        ops.CreateInvite(organization_id="o", target_email="", level="secret-value", send_emial=True)
    assert str(error.value) == (
        "CreateInvite: field 'level': expected a whole number from 0, or member (1) or admin (8) or owner (15); "
        "field 'target_email': String should have at least 1 character; "
        "unknown field 'send_emial' (did you mean 'send_email'?). Nothing was sent."
    )


def test_omitted_fields_are_not_sent_and_none_is_null() -> None:
    def body(**fields: Any) -> Any:
        return json.loads(ops.UpdateDashboard(project_id="1", dashboard_id=7, **fields).request().body or b"")

    assert body() == {}
    assert body(name=None, pinned=False, tags=[]) == {"name": None, "pinned": False, "tags": []}


def test_query_is_encoded() -> None:
    def target(**fields: Any) -> str:
        return ops.ListDomains(organization_id="o", **fields).request().target

    assert target() == "/api/organizations/o/domains/"
    assert target(limit=None) == "/api/organizations/o/domains/"
    assert target(limit=5, offset=0) == "/api/organizations/o/domains/?limit=5&offset=0"
    for wrong in ({"limit": 0}, {"offset": -1}, {"limit": "many"}, {"limit": True}, {"offset": False}):
        with pytest.raises(WorkspaceInputError, match="ListDomains: field"):
            target(**wrong)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\ud800", object(), b"\xff", {1: 2}, nested(10_000)], ids=type
)
def test_values_that_are_not_json_serializable_are_refused(value: Any) -> None:
    for operation, fields in (
        (ops.CreateDashboard, {"project_id": "1", "tags": [value]}),
        (ops.CreateProject, {"organization_id": "o", "survey_config": value}),
        (ops.CreateInvite, {"organization_id": "o", "target_email": "a@b.de", "private_project_access": [value]}),
        (ops.CreateProject, {"organization_id": "o", "slack_incoming_webhook": value}),  # a secret
    ):
        with pytest.raises(WorkspaceInputError, match=r"Nothing was sent\.") as error:
            operation(**fields).request()
        assert len(str(error.value)) < 300


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(), st.lists))
def test_any_json_value_is_sent_unchanged(value: Any) -> None:
    try:
        request = ops.CreateDashboard(project_id="1", tags=[value]).request()
    except WorkspaceInputError:
        return
    assert json.loads(request.body or b"") == {"tags": [value]}


def test_bulk_body_as_array_or_object() -> None:
    invites = [{"target_email": "a@b.de"}, {"target_email": "c@b.de"}]
    for body, sent in (("array", invites[:1]), ("object", invites[0])):
        request = ops.CreateInvites(organization_id="o", invites=invites[:1], body=body).request()
        assert json.loads(request.body or b"") == sent
    with pytest.raises(WorkspaceInputError, match="CreateInvites: body 'object' takes one invite per request"):
        ops.CreateInvites(organization_id="o", invites=invites, body="object")


# The table


def test_an_operation_needs_a_result_type() -> None:
    class Untyped(Operation):  # type: ignore[type-arg]
        """An operation without a type parameter."""

    with pytest.raises(TypeError, match=r"Untyped must derive from Operation\[...\]"):
        result_type(Untyped)


def test_numbers_and_ids_of_thousands_of_digits_are_refused() -> None:
    with pytest.raises(WorkspaceInputError, match="organization_id is longer than"):
        ops.ListMembers(organization_id="o" * 5000).request()
    with pytest.raises(WorkspaceInputError, match="ListMembers: a number exceeds Python's integer string limit"):
        ops.ListMembers(organization_id="o", offset=10**5000).request()
    with pytest.raises(WorkspaceInputError, match="CreateProject: a number exceeds Python's integer string limit"):
        ops.CreateProject(organization_id="o", session_recording_sample_rate=10**5000)


class Found(Resource):
    """A record of an author's own endpoint."""

    id: str | None = None


# A field that is `a` in Python and `b` in the interface.
ALIAS = Annotated[str, Field(alias="b")]
CREATE = {"effect": "create", "repeatable": True}
LIST = ("GET", "/found/", {"repeatable": True})


@pytest.mark.parametrize(
    ("method", "path", "row", "result", "fields", "says"),
    [
        ("POST", "/found/", {"repeatable": True}, None, {},
         "a POST needs effect='create' or 'change' or 'remove' or 'r"),
        *(
            (method, "/found/", {"repeatable": True, "effect": effect}, None, {}, f"effect={needs}, not '{effect}'")
            for method, effect, needs in (
                ("POST", "cretae", "'create' or 'change' or 'remove' or 'read'"),
                ("GET", "create", "'read'"),
                *((method, "read", "'create' or 'change' or 'remove'") for method in ("DELETE", "PATCH", "PUT")),
            )
        ),
        *(("POST", "/found/", {"effect": "create", **row}, Found, {},
         "needs recover='look-up' or 'none', and look_for='…'")
         for row in ({"repeatable": False}, {"repeatable": False, "recover": "nonee", "look_for": "Look."},
          {"repeatable": "no"})),
        ("POST", "/found/", {"repeatable": False, "effect": "create", "recover": "none"}, None, {}, "and look_for="),
        ("POST", "/found/", {**CREATE, "look_for": "Look."}, None, {}, "a repeatable one (True) needs"),
        (*("get", "/found/", {"repeatable": True}, None, {}),
         "the method is 'get'; expected GET or POST or PUT or PATCH or DELETE"),
        ("POST", "/found", CREATE, None, {}, "the path is '/found'; expected one below /api that begins and ends with"),
        ("POST", "/api/found/", CREATE, None, {}, "the path is '/api/found/'; expected one below /api"),
        *(("POST", f"/found/{name}/", CREATE, None, {"id": str},
         f"the path is '/found/{name}/'; expected one below /api")
         for name in ("{id!r}", "{id:>5}", "{}", "{id.x}", "{{id}}", "{id", "?id=5&a=")),
        *(("GET", "/found/{id}/", {"repeatable": True}, Found, {"id": type_},
         "the path names 'id': it must be required")
         for type_ in (str | None, Annotated[str, Field(default="x")])),
        ("GET", "/found/{a}/", {"repeatable": True}, Found, {"a": ALIAS},
         "the path names 'a': add it to the fields of the"),
        (*("POST", "/found/{b}/{a}/", CREATE, None, {"c": int}),
         "the path names 'a', 'b': add it to the fields of the class"),
        (*("DELETE", "/found/{a}/", {"repeatable": True}, None, {"a": str, "b": int}),
         "a DELETE sends its path alone: remove 'b'"),
        ("POST", "/found/", CREATE, None, {"rows": int}, "name the field otherwise, with Field(alias='rows')"),
        *((*LIST, result, {"offset": Offset}, "the result must be None, or a class below Resource: X, X | None, list")
         for result in (dict, dict[str, Any], list[dict[str, Any]], Page, Page[Any], Any, str | None)),
        *((*LIST, Page[Found], names, "a Page needs the field 'offset: Offset = None', or 'cursor: Cursor = None' if")
         for names in ({"limit": Limit}, {"offset": Offset, "cursor": Cursor})),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Field name")  # pydantic, which only warns
def test_a_wrong_declaration_is_refused(
    method: str, path: str, row: dict[str, Any], result: Any, fields: dict[str, Any], says: str
) -> None:
    """Its imports are those that docs/guides/endpoints.md promises."""
    body = {"__module__": __name__, "__annotations__": fields}
    cls = types.new_class("Invented", (Operation[result],), exec_body=lambda names: names.update(body))
    with pytest.raises(TypeError, match="@endpoint of Invented: ") as error:
        endpoint(method, path, scope=None, **row)(cls)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("positional", "row", "says"),
    [
        (("GET", "/found/"), {"scope": None}, "'repeatable' missing"),
        (("GET", "/found/"), {"repeatable": True}, "'scope' missing"),
        ((), {}, "'method', 'path', 'repeatable', 'scope' missing"),
        (LIST[:2], {"scope": None, "repeatable": True, "repeatabel": True}, "unexpected keyword argument 'repeatabel'"),
    ],
)
def test_an_incomplete_row_names_what_is_missing(positional: Any, row: Any, says: str) -> None:
    with pytest.raises(TypeError, match=f"^@endpoint: .*{says}. Write a row such as @endpoint.*repeatable=True"):
        endpoint(*positional, **row)


@pytest.mark.parametrize("result", [None, Found, Found | None, list[Found], Page[Found]])
def test_a_right_declaration_is_accepted(result: Any) -> None:
    body = {"__module__": __name__, "__annotations__": {"offset": Offset}, "offset": None}
    cls = types.new_class("Invented", (Operation[result],), exec_body=lambda names: names.update(body))
    assert endpoint(*LIST[:2], scope=None, repeatable=True)(cls)(offset=5).request().target == "/api/found/?offset=5"


@endpoint("DELETE", "/found/{path}/", scope=None, repeatable=True)
class Remove(Operation[None]):
    """An operation with a field whose name is taken."""

    what: Any = Field(alias="path")


def test_a_subclass_without_a_row_is_checked_too() -> None:
    with pytest.raises(TypeError, match="@endpoint of Wider: a DELETE sends its path alone: remove 'why'"):
        types.new_class("Wider", (Remove,), exec_body=lambda names: names.update(__annotations__={"why": str}))


@endpoint("GET", "/found/", scope=None, repeatable=True)
class Search(Operation[Found]):
    """An operation with a query."""

    ids: list[int] | None = Field(default=None, serialization_alias="id__in")
    is_deep: bool = Field(default=False, alias="deep")
    other: Any = None


@pytest.mark.parametrize(
    ("cls", "fields", "target"),
    [
        (Search, {"id__in": [1, 2], "deep": True}, "?id__in=1&id__in=2&deep=true"),
        (Search, {"deep": False, "id__in": None, "other": ["a b", 1.5, False]},
         "?deep=false&other=a+b&other=1.5&other=false"),
        (Remove, {"path": "a/b"}, "a%2Fb/"),
        (Remove, {"path": UUID(int=7)}, "00000000-0000-0000-0000-000000000007/"),
        (Remove, {"path": True}, "true/"),
    ],
)  # fmt: skip
def test_paths_and_queries_are_written_as_services_read_them(cls: Any, fields: dict[str, Any], target: str) -> None:
    assert cls(**fields).request().target == f"/api/found/{target}"


@pytest.mark.parametrize(
    ("cls", "fields", "says"),
    [
        *((Search, {"other": value}, "other must be a text, a number, true or f")
         for value in ([], {"a": 1}, [[1]], [None])),
        (Search, {"other": "half an emoji \ud83d"}, "other holds lone surrogates"),
        *((Remove, {"path": value}, "path must be a text, a number, true or false") for value in (None, ["a"], {})),
        (Search, {"deep": "maybe", "id__in": "x"}, "field 'id__in': expected a list, as in '[one, another]'; field"),
        (Search, {"id__im": 1}, "unknown field 'id__im' (did you mean 'id__in'?)"),
        (Search, {"id__in": [1], "ids": [2]}, "unknown field 'id__in'"),
        (Remove, {}, "field 'path' is required"),
    ],
)  # fmt: skip
def test_what_a_path_or_a_query_cannot_say_is_refused(cls: Any, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(WorkspaceInputError) as error:
        cls(**fields).request()
    assert str(error.value).startswith(f"{cls.__name__}: {says}")


def test_an_unknown_operation_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="CreateNothing"):
        ops.CreateNothing  # noqa: B018
    assert ops.members.ListMembers is ops.ListMembers


# Levels


def level_of(value: Any) -> Any:
    return ops.UpdateMember(organization_id="o", user_uuid="u", level=value).payload()["level"]


@pytest.mark.parametrize(
    ("value", "level"),
    [
        *((value, 8) for value in (8, "8", " 8 ", "8.0", 8.0, Decimal("8.0"), " Admin")),
        *((value, value) for value in (0, 37)),
        *(("+3", 3), ("member", 1), ("OWNER", 15)),
    ],
)
def test_levels_may_be_integers_or_names(value: Any, level: int) -> None:
    invite = ops.CreateInvite(organization_id="o", target_email="ada@example.com", level=value)
    assert level_of(value) == invite.payload()["level"] == level


@pytest.mark.parametrize(
    "value",
    [True, False, 8.5, Decimal("8.5"), Decimal("NaN"), math.nan, math.inf, 10**200, "8.5", "boss", "", None, [8], -8],
)
def test_invalid_levels_are_refused(value: Any) -> None:
    with pytest.raises(WorkspaceInputError) as error:
        level_of(value)
    assert str(error.value) == (
        "UpdateMember: field 'level': expected a whole number from 0, or member (1) or admin (8) or owner (15). "
        "Nothing was sent."
    )


def test_levels_of_dashboards_have_no_names() -> None:
    """Their levels are of another kind: 37 is "can edit"."""
    add = ops.AddDashboardCollaborator(project_id="1", dashboard_id=1, user_uuid="u", level="37")
    assert add.payload()["level"] == 37
    for value in (True, "admin", 0.5):
        with pytest.raises(WorkspaceInputError, match=r"field 'restriction_level': expected a whole number\. "):
            ops.UpdateDashboard(project_id="1", dashboard_id=1, restriction_level=value)
