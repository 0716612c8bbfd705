"""Responses become results, or errors that name the request, the response and the cure."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

import airflow_provider_workspace.api.operations as ops
from airflow_provider_workspace import errors
from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.models import Invite, Member
from airflow_provider_workspace.api.operation import MovedPath, Operation, RequestContext, Response
from airflow_provider_workspace.api.request_errors import HINTS, final_error
from airflow_provider_workspace.api.response import follow, parse_response

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
KEY = "phx_s3cret"
CONTEXT = RequestContext("connection 'workspace_default'", (KEY,))
ID = UUID_TEXT = "0190c0de-0000-4000-8000-0000000000e1"

GET = ops.GetDashboard(project_id="1", dashboard_id=7)
POST = ops.CreateDashboard(project_id="1", name="Sales")
SHOP = ops.CreateProject(organization_id="o", name="Shop", slack_incoming_webhook="https://hooks.example.com/s3cret\n")
PAUSE = ops.PauseBatchExport(organization_id="o", batch_export_id=UUID_TEXT)
DELETE = ops.DeleteInvite(organization_id="o", invite_id=UUID_TEXT)
ADD = ops.AddDashboardCollaborator(project_id="1", dashboard_id=1, user_uuid=ID)
REMOVE = ops.RemoveDashboardCollaborator(project_id="1", dashboard_id=1, user_uuid=ID)
UPDATE = ops.UpdateDashboard(project_id="1", dashboard_id=1, name="Sales")
PROJECT = ops.CreateProject(organization_id="o", name="Northwind")
NEW_DOMAIN = ops.CreateDomain(organization_id="o", domain="example.com")
MEMBER = ops.UpdateMember(organization_id="o", user_uuid=ID, level=15)
MOVED = MEMBER.moved_to(MovedPath("/v2/organizations/{organization_id}/people/{user_uuid}/", {}))
VERIFY = ops.VerifyDomain(organization_id="o", domain_id=ID)
UNPAUSE = ops.UnpauseBatchExport(organization_id="o", batch_export_id=ID)
ACCESS = ops.GetDashboardAccessControls(project_id="1", dashboard_id=1)


REQUEST = "Request: GET /api/environments/1/dashboards/7/."


@endpoint("GET", "/everything/", scope=None, repeatable=True)
class ListAll(Operation[list[Invite]]):
    """A list that has no pages."""


def answer(
    op: Operation[Any],
    status: int,
    body: bytes | str | dict[str, Any] = b"",
    *,
    may_have_been_applied: bool = False,
    context: RequestContext = CONTEXT,
    **headers: str,
) -> Any:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, str):
        body = {"detail": body} if body else b""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = context.cleaned(op, Response(status, headers, content))
    return parse_response(op, response, context, NOW, may_have_been_applied=may_have_been_applied)


def refused(op: Operation[Any], status: int, body: bytes | str | dict[str, Any] = b"", **options: Any) -> Any:
    with pytest.raises(errors.WorkspaceStatusError) as error:
        answer(op, status, body, **options)
    return error.value


# Success


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(status: int) -> None:
    assert answer(GET, status, b'{"id": 7}').id == 7
    assert answer(PAUSE, status) is None


def test_a_record_does_not_repeat_the_key() -> None:
    body = {"id": 7, "debug": {"Bearer phx_0123456789": ["Bearer phx_0123456789"]}, "name": "pw"}
    record = answer(GET, 200, body, context=RequestContext("settings", ("phx_0123456789", "pw")))
    assert record.to_dict()["debug"] == {"Bearer ***": ["Bearer ***"]}
    assert record.name == "pw"


def test_an_update_with_an_empty_response_succeeds() -> None:
    assert answer(MEMBER, 204) == Member()
    with pytest.raises(errors.WorkspaceResponseError):
        answer(PROJECT, 204)


@endpoint("PATCH", "/found/", scope=None, repeatable=True)
class Touch(Operation[None]):
    """A change of an author's own whose response has no content."""


@pytest.mark.parametrize("body", [b"", b"[]", b'[{"id": "i1"}]', b'{"results": [], "count": 0, "next": null}'])
def test_a_read_of_a_list_takes_each_shape_that_is_complete(body: bytes) -> None:
    assert len(answer(ListAll(), 200, body)) == body.count(b"id")


def test_an_update_without_a_result_succeeds() -> None:
    assert answer(Touch(), 204) is None


def test_an_unreadable_2xx_is_a_response_error() -> None:
    with pytest.raises(errors.WorkspaceResponseError) as error:
        answer(GET, 200, b"<html>", content_type=f"text/html; {KEY}", x_request_id="r-1")
    assert error.value.args[0] == (
        "GetDashboard returned 200 with an HTML or XML page (6 bytes), text/html; ***. Check that the host of "
        f"connection 'workspace_default' is that of the service, and that no login page or proxy responds in its "
        f"place. {REQUEST}"
    )
    assert (error.value.outcome, error.value.retryable, error.value.request_id) == ("unknown", True, "r-1")
    with pytest.raises(
        errors.WorkspaceResponseError, match="with an empty body where a record was expected, no content type"
    ):
        answer(GET, 200)


@pytest.mark.parametrize("body", [b'{"error": "limit reached"}', b'{"result": {"id": 7}}'])
def test_a_create_whose_response_is_not_a_record_has_an_unknown_outcome(body: bytes) -> None:
    with pytest.raises(errors.WorkspaceResponseError, match="with JSON that is not the new record") as error:
        answer(POST, 201, body)
    assert error.value.outcome == "unknown"
    assert parse_response(POST, Response(201, {}, body), CONTEXT, NOW, caller_looks_up=True).id is None


@pytest.mark.parametrize("body", [{}, {"id": None}, {"target_email": "a@example.com"}])
def test_a_create_may_return_a_record_without_an_id(body: dict[str, Any]) -> None:
    assert answer(ops.CreateInvite(organization_id="o", target_email="a@example.com"), 201, body) == Invite(**body)


# Refusals

WHOSE = "the API key of connection 'workspace_default'"
FAILED = "the service or a proxy failed. If it keeps failing, check the status of the service."
NOWHERE = "a redirect to nowhere, which was not followed."
STATUSES = [
    # status, class, outcome, retryable, hint
    (100, "Status", "unknown", False, "without details."),
    *((status, "Redirect", "unknown", False, NOWHERE) for status in (301, 302)),
    *((status, "Redirect", "rejected", False, NOWHERE) for status in (304, 307, 308)),
    (400, "BadRequest", "rejected", False, "without details. Correct the request; a retry fails the same way."),
    (
        401,
        "Authentication",
        "rejected",
        False,
        "the API key in the password of connection 'workspace_default' is missing, wrong or revoked.",
    ),
    (403, "Permission", "rejected", False, f"{WHOSE} lacks the scope dashboard:read, or its owner the access level."),
    (404, "NotFound", "rejected", False, "this does not look like an answer of the workspace service. Check the host"),
    (
        405,
        "MethodNotAllowed",
        "rejected",
        False,
        "the host of connection 'workspace_default' may not be that of the workspace service.",
    ),
    (408, "Status", "unknown", True, FAILED),
    (409, "Status", "rejected", False, "without details."),
    (410, "NotFound", "rejected", False, "without details."),
    (425, "Status", "rejected", True, "without details."),
    (429, "RateLimit", "rejected", True, "rate limit exceeded. Retry later, or limit concurrent tasks by"),
    (500, "Server", "unknown", True, FAILED),
    (501, "Server", "unknown", False, FAILED),
    (503, "Server", "unknown", True, FAILED),
    (599, "Server", "unknown", True, FAILED),
]


@pytest.mark.parametrize(("status", "kind", "outcome", "retryable", "hint"), STATUSES)
def test_each_status_maps_to_its_error(status: int, kind: str, outcome: str, retryable: bool, hint: str) -> None:  # noqa: FBT001
    error = refused(GET, status, request_id="r-2")
    assert type(error).__name__ == f"Workspace{kind}Error"
    assert (error.status, error.outcome, error.retryable) == (status, outcome, retryable)
    assert (error.operation, error.request_id, error.retry_after) == ("GetDashboard", "r-2", None)
    separator = " " if hint.startswith("without") else ": "
    assert error.args[0].startswith(f"GetDashboard returned {status}{separator}{hint}")
    assert error.args[0].endswith(f" {REQUEST}")
    assert (error.problem == "service-failed") is (hint == FAILED)


@pytest.mark.parametrize(
    ("detail", "header", "seconds", "says"),
    [
        ("", "30", 30.0, "Retry in 30 s,"),
        ("", "soon", None, "Retry later,"),
        ("Request was throttled. Expected available in 328 seconds.", None, 328.0, "Retry in 328 s,"),
        ("Expected available in 1 second.", None, 1.0, "Retry in 1 s,"),
        ("Try again in 20s", None, 20.0, "Retry in 20 s,"),
        ("Expected available in 328 seconds.", "30", 30.0, "Retry in 30 s,"),
        ("At most 50 invites", None, None, "Retry later,"),
    ],
)
def test_seconds_of_a_429_are_read_from_its_header_or_else_its_text(
    detail: str, header: str | None, seconds: float | None, says: str
) -> None:
    error = refused(POST, 429, detail, **({"retry_after": header} if header else {}))
    assert error.retry_after == seconds
    assert says in str(error)
    assert refused(POST, 503, detail).retry_after is None


@pytest.mark.parametrize(
    ("body", "detail", "code", "attr"),
    [
        (b'{"type":"t","code":"c","detail":"d","attr":"a"}', "d", "c", "a"),
        (b'{"message": "m"}', "m", None, None),
        (b'{"error": "e", "code": 7}', "e", None, None),
        (b'{"error": {"message": "e"}}', '{"message": "e"}', None, None),
        (b'{"errors": ["x", "y"]}', '["x", "y"]', None, None),
        (b'{"name": ["too long"]}', '{"name": ["too long"]}', None, None),
        (b'{"detail": "", "code": "c"}', None, "c", None),
        (b'[{"detail": "first"}, {"detail": "second"}]', "first", None, None),
        (b'["first"]', "first", None, None),
        *((body, None, None, None) for body in (b"", b"<html>oops</html>", b"{}", b"[]", b"7")),
        (b'"words"', "words", None, None),
        (b"Rate limited\n", "Rate limited", None, None),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}", None, None),
        (b"[" * 5000, "[" * 300 + "…", None, None),
    ],
)
def test_error_details_are_read_from_each_body_shape(
    body: bytes, detail: str | None, code: str | None, attr: str | None
) -> None:
    error = refused(POST, 400, body)
    assert (error.detail, error.code, error.attr) == (detail, code, attr)


def test_field_and_detail_are_one_short_printable_line() -> None:
    error = refused(POST, 400, {"code": "invalid", "detail": "Too long.", "attr": "name"})
    assert error.args[0].endswith(
        " returned 400 (field 'name'): Too long. Correct the request; a retry fails the same way. "
        "Request: POST /api/environments/1/dashboards/."
    )
    error = refused(POST, 400, b'{"detail": "a\\nb\\u001b[31m\\u200b \\ud800%s"}' % (b"x" * 1000))
    assert str(error).isprintable()
    assert ": a b [31m xxx" in str(error)
    assert len(error.detail or "") == 301


@pytest.mark.parametrize(
    "body",
    [
        f"bad key {KEY}".encode(),
        f'{{"detail": "{KEY}", "code": "{KEY}", "attr": "{KEY}"}}'.encode(),
        b'{"detail": "https://hooks.example.com/s3cret\\n is no URL"}',
        b'{"slack_incoming_webhook": ["https://hooks.example.com/s3cret\\n is no URL"]}',
        b"x" * 19_995 + KEY.encode(),
    ],
)
@pytest.mark.parametrize("status", [400, 500])
def test_no_secret_is_in_a_message(body: bytes, status: int) -> None:
    error = refused(SHOP, status, body)
    assert "s3cret" not in f"{error} {error!r} {error.__dict__} {CONTEXT!r} {Response(status, {'x': KEY}, body)!r}"


# Hints: refusals with the same status differ only in their text

CASES: list[tuple[Operation[Any], int, str | dict[str, Any], str]] = [
    # Fields and states of a dashboard
    (ADD, 400, {"attr": "level", "detail": "This field is required."}, "Pass level=37"),
    (ADD, 400, {"level": ["This field is required."]}, "Pass level=37"),
    (ADD, 400, "Cannot change collaborators of a dashboard on the lowest restriction level.",
     "Set restriction_level=37"),
    (REMOVE, 400, "Cannot remove collaborators from a dashboard on the lowest restriction level.",
     "Set restriction_level"),
    (NEW_DOMAIN, 400, {"attr": "domain", "detail": "Domain with this domain already exists."},
     "Known services have each domain in one organization only"),
    (UPDATE, 400, {"attr": "restriction_level", "detail": "Not a valid choice."}, "Correct the request"),
    (UPDATE, 403, "You don't have edit permissions for this dashboard.",
     "the owner of the API key of C may not edit this dashboard"),
    (ADD, 403, "Only people with edit access may add collaborators.",
     "the owner of the API key of C may not edit this dashboard"),
    # Permissions of a key
    (PROJECT, 403, "API key missing required scope 'project:write'", "the API key of C lacks the scope project:write"),
    (VERIFY, 403, "API key missing required scope.", "the API key of C lacks a scope"),
    (PROJECT, 403, "", "the API key of C lacks the scope project:write"),
    (VERIFY, 403, "This action does not support Personal API Key access",
     "the service refuses this for API keys such as that of C, whatever their scopes"),
    (ACCESS, 403, "This action does not support API keys with scopes.",
     "the service refuses this for API keys such as that of C, whatever their scopes"),
    (PROJECT, 403, "API key does not have access to the requested organization: ID o.",
     "the API key of C is limited to other projects or organizations"),
    (UPDATE, 403, "API key does not have access to the requested project: ID 1.",
     "the API key of C is limited to other projects or organizations"),
    (PROJECT, 403, "API keys with scoped projects are only supported on project-based endpoints.",
     "the API key of C is limited to other projects or organizations"),
    (MEMBER, 403, "You don't have access to the organization.",
     "the owner of the API key of C has no access to this organization"),
    (MEMBER, 403, "You are not a member of the organization.",
     "the owner of the API key of C has no access to this organization"),
    (PROJECT, 403, "You must upgrade your plan to create more projects.",
     "the plan of the organization does not allow this"),
    (PROJECT, 403, "You have reached the maximum limit of allowed projects.",
     "the plan of the organization does not allow this"),
    (VERIFY, 403, "This feature is part of the premium offering.", "the organization does not have this feature"),
    (MEMBER, 403, "You can't change your own access level.", "this is about the owner of the API key of C"),
    (MEMBER, 403, "You can only act on levels up to your own.",
     "the access level of the owner of the API key of C is too low"),
    (PROJECT, 403, "Your organization access level is insufficient.",
     "the access level of the owner of the API key of C is too low"),
    (PROJECT, 403, "Two-factor authentication is required for this organization.",
     "the owner of the API key of C has no second factor"),
    (PROJECT, 403, "You shall not pass.", "the owner of the API key of C is not allowed to do this"),
    # A valid key
    (UNPAUSE, 401, "Authentication credentials were not provided.",
     "the API key in the password of C is refused"),
    (PROJECT, 401, "Invalid API key.", "the API key in the password of C is missing, wrong or revoked"),
    (MEMBER, 404, "Not found.", "the resource does not exist"),
    (MEMBER, 404, {"message": "no Route matched"}, "this does not look like an answer of the workspace service"),
    (MEMBER, 404, "", "Check the host of C and 'paths' in its extra, then the ids."),
    (MOVED, 404, "Not found.", "Check the ids. Check 'paths' in the extra of C, too"),
    (GET, 403, "API key missing required scope 'organization:read'",
     "the API key of C lacks the scope organization:read"),
    (GET, 403, "Missing scopes: [project:write]", "the API key of C lacks the scope dashboard:read. "),
    (ACCESS, 403, "", "the API key of C lacks a scope, or its owner the access level"),
    # A proxy in between
    (PROJECT, 405, "", "the host of C may not be that of the workspace service"),
    (PROJECT, 407, "", "the proxy of C demands a user and a password"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "status", "said", "hint"), CASES, ids=lambda value: str(value)[:60])
def test_each_refusal_has_its_hint(op: Operation[Any], status: int, said: str | dict[str, Any], hint: str) -> None:
    message = refused(op, status, said, context=RequestContext("C")).args[0]
    assert message.startswith(f"{type(op).__name__} returned {status}")
    # What is wrong comes first, then what to do; what the service said word by word is last.
    assert hint in message.partition(" Response: ")[0]


def test_every_hint_is_reached() -> None:
    """No row of the table is shadowed by an earlier one."""
    told = "".join(str(refused(op, status, said)) for op, status, said, _ in CASES)
    parts = [part.partition("{")[0] for hint in HINTS for part in (hint.cause, hint.cure)]
    assert [part for part in parts if part not in told] == []


# Already applied


def test_404_on_a_repeated_delete_counts_as_deleted() -> None:
    for status in (404, 410):
        assert answer(DELETE, status, "Not found.", may_have_been_applied=True) is None
    assert refused(DELETE, 404, "Not found.").status == 404
    assert refused(DELETE, 403, "Not found.", may_have_been_applied=True).status == 403
    assert refused(GET, 404, "Not found.", may_have_been_applied=True).status == 404


@pytest.mark.parametrize(
    "body", [b"", b"404 page not found", b"<html>404</html>", b'{"message": "no Route matched"}', b'["x"]', b"[" * 9999]
)
def test_404_of_a_proxy_does_not_count_as_deleted(body: bytes) -> None:
    error = refused(DELETE, 404, body, may_have_been_applied=True)
    assert (error.status, error.from_service) == (404, False)


def test_verify_of_a_verified_domain_succeeds() -> None:
    assert answer(VERIFY, 400, {"code": "already_verified", "detail": "d"}) is None
    assert refused(VERIFY, 400, {"code": "invalid", "detail": "d"}).code == "invalid"


# Redirects

URL = "https://host.example.com/base/api/x/"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://HOST.example.com:443/other/", "https://HOST.example.com:443/other/"),
        ("/other/?a=b#c", "https://host.example.com/other/?a=b"),
        ("?a=b", "https://host.example.com/base/api/x/?a=b"),
        ("http://host.example.com/other/", None),
        ("https://host.example.com:8443/", None),
        ("https://host.example.com@evil.example/", None),
        ("//evil.example/", None),
        ("https://[::1", None),
        ("https://host.example.com:port/", None),
        ("", None),
    ],
)
def test_redirects_within_the_origin_are_followed(location: str, target: str | None) -> None:
    response = Response(302, {"location": location}, b"")
    assert follow(GET, response, URL) == target
    assert follow(POST, response, URL) is None
    for status in (307, 308):
        assert follow(POST, Response(status, {"location": location}, b""), URL) == target
    assert follow(GET, Response(304, {"location": "/other/"}, b""), URL) is None
    assert follow(GET, Response(302, {}, b""), URL) is None


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://user:s3cret@evil.example:8080/s3cret?s3cret", "https://evil.example:8080"),
        ("//evil.example/", "evil.example"),
        ("https://[::1", "an invalid URL"),
        ("mailto:s3cret", "another path"),
    ],
)
def test_refused_redirect_error_names_its_target(location: str, where: str) -> None:
    error = refused(POST, 302, location=location)
    assert str(error).startswith(
        f"[not-the-service] CreateDashboard returned 302: a redirect to {where}, which was not followed. If that is"
    )
    assert "s3cret" not in str(error)


# Not applied


@pytest.mark.parametrize("body", [b'{"success": false}', b'{"error": "busy"}', b'{"id": null, "status": "failed"}'])
def test_a_delete_that_reports_a_failure_is_not_applied(body: bytes) -> None:
    with pytest.raises(
        errors.WorkspaceNotAppliedError, match=r"^\[not-applied\] DeleteInvite returned 200, but was not applied: "
    ) as error:
        answer(DELETE, 200, body)
    assert (error.value.outcome, error.value.retryable) == ("unknown", True)
    for other in (b"", b"ok", b"[]", b'{"success": true}', b'{"id": "i", "status": "failed"}', b'{"deleted": 1}'):
        assert answer(DELETE, 200, other) is None


def test_an_update_that_is_never_applied_is_a_permanent_error() -> None:
    op = ops.UpdateMember(organization_id="o", user_uuid=UUID_TEXT, level=8)
    with pytest.raises(errors.WorkspaceNotAppliedError) as error:
        answer(op, 200, b'{"id": "m", "level": 1}')
    assert error.value.args[0] == (
        "UpdateMember returned 200, but was not applied: level is 1 and not 8. Check that the service lets this be "
        "changed, and that the owner of the API key may. "
        f"Request: PATCH /api/organizations/o/members/{UUID_TEXT}/."
    )
    assert error.value.retryable
    assert final_error(op, error.value, 5, may_have_been_applied=True).permanent


def test_a_create_with_other_values_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    op = ops.CreateProject(organization_id="o", name=f"Shop {KEY}")
    assert answer(op, 201, b'{"id": 7, "name": "Shop"}').id == 7
    assert caplog.messages == ['CreateProject was applied with differences: name is "Shop" and not "Shop ***"']
