"""Responses become results, or errors that name the request, the response and the cure."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.api.models import Invite, Member
from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.api.operations import (
    CreateDashboard,
    CreateInvite,
    CreateProject,
    DeleteInvite,
    GetDashboard,
    GetDashboardAccessControls,
    HardDeleteDashboard,
    ListMembers,
    PauseBatchExport,
    UnpauseBatchExport,
    UpdateMember,
    VerifyDomain,
)
from airflow_provider_workspace.api.outcome import Outcome, outcome_of_status
from airflow_provider_workspace.api.request_errors import (
    RequestContext,
    _parse_error_body,
    final_error,
    not_sent_error,
    transport_error,
)
from airflow_provider_workspace.api.response import follow, parse_response
from airflow_provider_workspace.errors import (
    WorkspaceAuthenticationError,
    WorkspaceBadRequestError,
    WorkspaceConnectionError,
    WorkspaceError,
    WorkspaceMethodNotAllowedError,
    WorkspaceNotAppliedError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
    WorkspacePermissionError,
    WorkspaceRateLimitError,
    WorkspaceRedirectError,
    WorkspaceResponseError,
    WorkspaceServerError,
    WorkspaceStatusError,
    WorkspaceTimeoutError,
    WorkspaceTransportError,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
KEY = "phx_s3cret"
CONTEXT = RequestContext("connection 'workspace_default'", (KEY,))
UUID_TEXT = "0190c0de-0000-4000-8000-0000000000e1"

GET = GetDashboard(project_id="1", dashboard_id=7)
POST = CreateDashboard(project_id="1", name="Sales")
PROJECT = CreateProject(organization_id="o", name="Shop", slack_incoming_webhook="https://hooks.example.com/s3cret\n")
PAUSE = PauseBatchExport(organization_id="o", batch_export_id=UUID_TEXT)
DELETE = DeleteInvite(organization_id="o", invite_id=UUID_TEXT)
VERIFY = VerifyDomain(organization_id="o", domain_id=UUID_TEXT)

GET_PATH = "(GET /api/environments/1/dashboards/7/)"


def answer(
    op: Operation[Any],
    status: int,
    body: bytes = b"",
    *,
    may_have_been_applied: bool = False,
    context: RequestContext = CONTEXT,
    **headers: str,
) -> Any:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return parse_response(
        op, Response(status, headers, body), context, NOW, may_have_been_applied=may_have_been_applied
    )


def refused(op: Operation[Any], status: int, body: bytes = b"", **options: Any) -> WorkspaceStatusError:
    with pytest.raises(WorkspaceStatusError) as error:
        answer(op, status, body, **options)
    return error.value


# Success


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(status: int) -> None:
    assert answer(GET, status, b'{"id": 7}').id == 7
    assert answer(PAUSE, status) is None
    assert outcome_of_status(status) is Outcome.APPLIED


@pytest.mark.parametrize(("trust_counts", "count"), [(True, 7), (False, None)])
def test_a_count_is_read_only_where_it_is_trusted(count: int | None, *, trust_counts: bool) -> None:
    response = Response(200, {}, b'{"count": 7, "results": []}')
    page = parse_response(ListMembers(organization_id="o"), response, CONTEXT, NOW, trust_counts=trust_counts)
    assert page.count == count


def test_a_record_does_not_repeat_the_key() -> None:
    body = json.dumps({"id": 7, "debug": {"Bearer phx_0123456789": ["Bearer phx_0123456789"]}, "name": "pw"}).encode()
    record = answer(GET, 200, body, context=RequestContext("settings", ("phx_0123456789", "pw")))
    assert record.to_dict()["debug"] == {"Bearer ***": ["Bearer ***"]}
    assert record.name == "pw"


def test_an_update_with_an_empty_response_succeeds() -> None:
    assert answer(UpdateMember(organization_id="o", user_uuid="u", level=8), 204) == Member()
    with pytest.raises(WorkspaceResponseError):
        answer(CreateProject(organization_id="o", name="n"), 204)


def test_an_unreadable_2xx_is_a_response_error() -> None:
    with pytest.raises(WorkspaceResponseError) as error:
        answer(GET, 200, b"<html>", content_type=f"text/html; {KEY}", x_request_id="r-1")
    assert str(error.value) == (
        "Check that the host of connection 'workspace_default' is the address of the service itself and that no login "
        "page or proxy responds in its place. "
        f"GetDashboard returned 200 with an HTML or XML page (6 bytes), text/html; *** {GET_PATH}."
    )
    assert (error.value.outcome, error.value.retryable, error.value.request_id) == ("unknown", True, "r-1")
    with pytest.raises(WorkspaceResponseError, match="with an empty body where a record was expected, no content type"):
        answer(GET, 200)


@pytest.mark.parametrize("body", [b'{"error": "limit reached"}', b'{"result": {"id": 7}}'])
def test_a_create_whose_response_is_not_a_record_has_an_unknown_outcome(body: bytes) -> None:
    with pytest.raises(WorkspaceResponseError, match="with JSON that is not the new record") as error:
        answer(POST, 201, body)
    assert error.value.outcome == "unknown"
    looked_up = parse_response(POST, Response(201, {}, body), CONTEXT, NOW, caller_looks_up=True)
    assert looked_up.id is None


@pytest.mark.parametrize("body", [{}, {"id": None}, {"target_email": "a@example.com"}])
def test_a_create_may_return_a_record_without_an_id(body: dict[str, Any]) -> None:
    create = CreateInvite(organization_id="o", target_email="a@example.com")
    assert answer(create, 201, json.dumps(body).encode()) == Invite(**body)


# Refusals

WHOSE = "the API key of connection 'workspace_default'"
FAILED = "The service or a proxy failed. If it keeps failing, check its status."
STATUSES = [
    # status, class, outcome, retryable, hint
    (100, WorkspaceStatusError, "unknown", False, "The service refused the request."),
    (301, WorkspaceRedirectError, "unknown", False, "The redirect to nowhere was not followed."),
    (302, WorkspaceRedirectError, "unknown", False, "The redirect to nowhere was not followed."),
    (304, WorkspaceRedirectError, "rejected", False, "The redirect to nowhere was not followed."),
    (308, WorkspaceRedirectError, "rejected", False, "The redirect to nowhere was not followed."),
    (307, WorkspaceRedirectError, "rejected", False, "The redirect to nowhere was not followed."),
    (400, WorkspaceBadRequestError, "rejected", False, "Correct the request; a retry fails the same way."),
    (401, WorkspaceAuthenticationError, "rejected", False, "The API key in the password of connection 'workspace"),
    (403, WorkspacePermissionError, "rejected", False, f"Give {WHOSE} the scope dashboard:read, or check the access"),
    (404, WorkspaceNotFoundError, "rejected", False, f"Check the ids: the resource does not exist, or {WHOSE} may"),
    (405, WorkspaceMethodNotAllowedError, "rejected", False, "Check that the host of connection 'workspace_default'"),
    (408, WorkspaceStatusError, "unknown", True, FAILED),
    (409, WorkspaceStatusError, "rejected", False, "The service refused the request."),
    (410, WorkspaceNotFoundError, "rejected", False, "The service refused the request."),
    (425, WorkspaceStatusError, "rejected", True, "The service refused the request."),
    (429, WorkspaceRateLimitError, "rejected", True, "Rate limit exceeded: retry later, or limit concurrent tasks by"),
    (500, WorkspaceServerError, "unknown", True, FAILED),
    (501, WorkspaceServerError, "unknown", False, FAILED),
    (503, WorkspaceServerError, "unknown", True, FAILED),
    (599, WorkspaceServerError, "unknown", True, FAILED),
]


@pytest.mark.parametrize(("status", "kind", "outcome", "retryable", "hint"), STATUSES)
def test_each_status_maps_to_its_error(status: int, kind: type, outcome: str, retryable: bool, hint: str) -> None:  # noqa: FBT001
    error = refused(GET, status, request_id="r-2")
    assert type(error) is kind
    assert (error.status, error.outcome, error.retryable) == (status, outcome, retryable)
    assert (error.operation, error.request_id, error.retry_after) == ("GetDashboard", "r-2", None)
    assert str(error).startswith(hint)
    assert str(error).endswith(f" GetDashboard returned {status} without details {GET_PATH}.")
    assert outcome_of_status(status).value == outcome


def test_hard_delete_error_names_delete_dashboard() -> None:
    assert str(refused(HardDeleteDashboard(project_id=1, dashboard_id=7), 405)) == (
        "Dashboards are never hard-deleted: use delete_dashboard, which sets deleted to true. "
        "HardDeleteDashboard returned 405 without details (DELETE /api/environments/1/dashboards/7/)."
    )


@pytest.mark.parametrize(
    ("op", "detail", "hint"),
    [
        (GET, "API key missing required scope 'organization:read'", "the scope organization:read, or"),
        (GET, "Missing scopes: [project:write]", "the scope dashboard:read, or"),
        (GET, "Plan limit reached", "Upgrade the plan of the organization"),
        (
            GetDashboardAccessControls(project_id="1", dashboard_id=7),
            "",
            "the scope that it lacks, or check the access level",
        ),
    ],
)
def test_403_names_the_missing_scope(op: Operation[Any], detail: str, hint: str) -> None:
    assert hint in str(refused(op, 403, detail.encode()))


@pytest.mark.parametrize(("header", "seconds", "when"), [("30", 30.0, "in 30 s"), ("soon", None, "later")])
def test_429_error_has_retry_after(header: str, seconds: float | None, when: str) -> None:
    error = refused(POST, 429, retry_after=header)
    assert error.retry_after == seconds
    assert f"retry {when}," in str(error)


@pytest.mark.parametrize(
    ("detail", "header", "seconds"),
    [
        ("Request was throttled. Expected available in 328 seconds.", None, 328.0),
        ("Expected available in 1 second.", None, 1.0),
        ("Try again in 20s", None, 20.0),
        ("Expected available in 328 seconds.", "30", 30.0),
        ("At most 50 invites", None, None),
    ],
)
def test_seconds_of_a_429_are_read_from_its_text_without_a_header(
    detail: str, header: str | None, seconds: float | None
) -> None:
    body = json.dumps({"detail": detail}).encode()
    assert refused(POST, 429, body, **({"retry_after": header} if header else {})).retry_after == seconds
    assert refused(POST, 503, body).retry_after is None


@pytest.mark.parametrize(
    ("body", "detail", "code", "attr"),
    [
        (b"", None, None, None),
        (b"<html>oops</html>", None, None, None),
        (b'{"type":"t","code":"c","detail":"d","attr":"a"}', "d", "c", "a"),
        (b'{"message": "m"}', "m", None, None),
        (b'{"error": "e", "code": 7}', "e", None, None),
        (b'{"error": {"message": "e"}}', '{"message": "e"}', None, None),
        (b'{"errors": ["x", "y"]}', '["x", "y"]', None, None),
        (b'{"name": ["too long"]}', '{"name": ["too long"]}', None, None),
        (b'{"code": "c"}', None, "c", None),
        (b'{"detail": "", "code": "c"}', None, "c", None),
        (b"{}", None, None, None),
        (b'[{"detail": "first"}, {"detail": "second"}]', "first", None, None),
        (b'["first"]', "first", None, None),
        (b"[]", None, None, None),
        (b'"words"', "words", None, None),
        (b"7", None, None, None),
        (b"Rate limited\n", "Rate limited", None, None),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}", None, None),
        (b"[" * 5000, "[" * 5000, None, None),
    ],
)
def test_error_details_are_read_from_each_body_shape(
    body: bytes, detail: str | None, code: str | None, attr: str | None
) -> None:
    assert _parse_error_body(body) == {"detail": detail, "code": code, "attr": attr}


def test_field_and_detail_are_in_the_message() -> None:
    error = refused(POST, 400, b'{"code":"invalid","detail":"Too long.","attr":"name"}')
    assert str(error).startswith("Correct the request")
    assert str(error).endswith(" returned 400 (field 'name'): Too long (POST /api/environments/1/dashboards/).")
    assert (error.code, error.detail, error.attr) == ("invalid", "Too long.", "name")


def test_messages_are_one_short_printable_line() -> None:
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
@pytest.mark.parametrize("status", [400, 401, 403, 500])
def test_no_secret_is_in_a_message(body: bytes, status: int) -> None:
    error = refused(PROJECT, status, body)
    assert "s3cret" not in f"{error} {error!r} {error.__dict__}"


def test_repr_of_the_request_context_has_no_secrets() -> None:
    assert repr(CONTEXT) == "RequestContext(source=\"connection 'workspace_default'\")"
    assert repr(Response(200, {"x": KEY}, KEY.encode())) == "Response(status=200)"


# Already applied


def test_404_on_a_repeated_delete_counts_as_deleted() -> None:
    own = b'{"detail": "Not found."}'
    for status in (404, 410):
        assert answer(DELETE, status, own, may_have_been_applied=True) is None
    assert refused(DELETE, 404, own).status == 404
    assert refused(DELETE, 403, own, may_have_been_applied=True).status == 403
    assert refused(GET, 404, own, may_have_been_applied=True).status == 404


@pytest.mark.parametrize(
    "body", [b"", b"404 page not found", b"<html>404</html>", b'{"message": "no Route matched"}', b'["x"]', b"[" * 9999]
)
def test_404_of_a_proxy_does_not_count_as_deleted(body: bytes) -> None:
    error = refused(DELETE, 404, body, may_have_been_applied=True)
    assert (error.status, error.from_service) == (404, False)


def test_verify_of_a_verified_domain_succeeds() -> None:
    assert answer(VERIFY, 400, b'{"code": "already_verified", "detail": "d"}') is None
    assert refused(VERIFY, 400, b'{"code": "invalid", "detail": "d"}').code == "invalid"
    assert refused(POST, 400, b'{"detail": "d"}').code is None


# Redirects

URL = "https://host.example.com/base/api/x/"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://host.example.com/other/", "https://host.example.com/other/"),
        ("https://HOST.example.com:443/other/", "https://HOST.example.com:443/other/"),
        ("/other/?a=b#c", "https://host.example.com/other/?a=b"),
        ("?a=b", "https://host.example.com/base/api/x/?a=b"),
        ("http://host.example.com/other/", None),
        ("https://host.example.com:8443/", None),
        ("https://host.example.com.evil.example/", None),
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
    assert follow(GET, Response(304, {"location": "/other/"}, b""), URL) is None
    assert follow(GET, Response(302, {}, b""), URL) is None


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://user:s3cret@evil.example/s3cret?s3cret", "https://evil.example"),
        ("//evil.example/", "evil.example"),
        ("http://evil.example:8080/", "http://evil.example:8080"),
        ("/login?s3cret", "another path"),
        ("https://[::1", "an invalid URL"),
    ],
)
def test_refused_redirect_error_names_its_target(location: str, where: str) -> None:
    error = refused(POST, 302, location=location)
    assert str(error).startswith(f"The redirect to {where} was not followed. If that is the service")
    assert "s3cret" not in str(error)


# Broken connections and final errors


def test_connect_failure_has_outcome_not_sent() -> None:
    error = not_sent_error(GET, f"ConnectError: {KEY}.", CONTEXT)
    assert type(error) is WorkspaceConnectionError
    assert (error.outcome, error.retryable) == ("not_sent", True)
    assert str(error) == (
        "Check the host, port and proxy of connection 'workspace_default'. "
        f"GetDashboard was not sent: ConnectError: *** {GET_PATH}."
    )


def test_an_untrusted_certificate_has_a_cure_of_its_own() -> None:
    error = not_sent_error(GET, "self-signed certificate", CONTEXT, retryable=False, untrusted=True)
    assert str(error) == (
        "Correct the host of connection 'workspace_default', or set 'verify' in its extra to the file of your CA. "
        f"GetDashboard was not sent: self-signed certificate {GET_PATH}."
    )


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        (None, WorkspaceTransportError),
        ("read_timeout", WorkspaceTimeoutError),
        ("total_timeout", WorkspaceTimeoutError),
    ],
)
def test_broken_connection_has_outcome_unknown(
    setting: Literal["read_timeout", "total_timeout"] | None, kind: type
) -> None:
    error = transport_error(POST, f"reset {KEY}", CONTEXT, setting=setting)
    assert type(error) is kind
    assert (error.outcome, error.retryable) == ("unknown", True)
    cure = f"Raise {setting} in the extra of connection 'workspace_default' if the service needs longer. "
    said = (
        "CreateDashboard was sent, but no complete response arrived: reset *** (POST /api/environments/1/dashboards/)."
    )
    assert str(error) == (cure if setting else "") + said


def test_final_error_of_an_unknown_write_says_what_to_check() -> None:
    lost = transport_error(POST, "reset", CONTEXT)
    error = final_error(POST, lost, 3, may_have_been_applied=True)
    assert type(error) is WorkspaceOutcomeUnknownError
    assert (error.attempts, error.retryable, error.outcome, error.permanent) == (3, False, "unknown", True)
    assert str(error).startswith("Look for the dashboard in the workspace itself")
    assert "CreateDashboard may or may not have been applied. It was not sent again, because" in str(error)
    assert str(error).endswith(str(lost))


@pytest.mark.parametrize(
    ("op", "caller_looks_up", "permanent"),
    [
        (PROJECT, False, True),
        (PROJECT, True, False),
        (POST, False, True),
        (POST, True, True),
    ],
)
def test_an_unknown_outcome_is_permanent_unless_the_caller_looks_up(
    op: Operation[Any],
    caller_looks_up: bool,  # noqa: FBT001
    permanent: bool,  # noqa: FBT001
) -> None:
    lost = transport_error(op, "reset", CONTEXT)
    error = final_error(op, lost, 1, may_have_been_applied=True, caller_looks_up=caller_looks_up)
    assert error.permanent is permanent


@pytest.mark.parametrize("op", [GET, PAUSE])
def test_final_error_of_a_repeatable_operation_is_the_last_error(op: Operation[Any]) -> None:
    lost = transport_error(op, "reset", CONTEXT)
    assert final_error(op, lost, 5, may_have_been_applied=True) is lost
    assert lost.attempts == 5


def test_final_error_says_that_an_earlier_attempt_may_have_been_applied() -> None:
    error = final_error(PAUSE, not_sent_error(PAUSE, "refused", CONTEXT), 5, may_have_been_applied=True)
    assert error.outcome == Outcome.UNKNOWN.value
    assert str(error).endswith("An earlier attempt got no clear answer, so PauseBatchExport may have been applied.")
    read = final_error(GET, not_sent_error(GET, "refused", CONTEXT), 5, may_have_been_applied=True)
    assert (read.outcome, "earlier" in str(read)) == ("not_sent", False)


@given(
    st.sampled_from([GET, POST, PROJECT, PAUSE, DELETE, VERIFY]),
    st.integers(100, 599),
    st.binary() | st.text().map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from(["location", "retry-after", "content-type", "x-request-id"]),
    st.text(),
)
def test_any_response_is_a_result_or_a_workspace_error(
    op: Operation[Any], status: int, body: bytes, header: str, value: str
) -> None:
    try:
        answer(op, status, body, **{header: value})
    except WorkspaceError as error:
        assert str(error).isprintable()  # noqa: PT017 - what comes back may also be a result


@pytest.mark.parametrize(
    ("op", "body"),
    [
        (PAUSE, b'{"paused": false}'),
        (UnpauseBatchExport(organization_id="o", batch_export_id=UUID_TEXT), b'{"paused": true}'),
    ],
)
def test_a_2xx_that_contradicts_the_request_is_an_error(op: Operation[Any], body: bytes) -> None:
    with pytest.raises(WorkspaceNotAppliedError, match="was not applied: paused is ") as error:
        answer(op, 200, body)
    assert (error.value.outcome, error.value.retryable) == ("unknown", True)
    assert not final_error(op, error.value, 5, may_have_been_applied=True).permanent


@pytest.mark.parametrize("body", [b'{"success": false}', b'{"error": "busy"}', b'{"id": null, "status": "failed"}'])
def test_a_delete_that_reports_a_failure_is_an_error(body: bytes) -> None:
    with pytest.raises(WorkspaceNotAppliedError, match="DeleteInvite was not applied: ") as error:
        answer(DELETE, 200, body)
    assert (error.value.outcome, error.value.retryable) == ("unknown", True)


@pytest.mark.parametrize(
    "body", [b"", b"ok", b"[]", b'{"success": true}', b'{"id": "i", "status": "failed"}', b'{"deleted": 1}']
)
def test_other_bodies_of_a_delete_are_ignored(body: bytes) -> None:
    assert answer(DELETE, 200, body) is None


def test_an_update_that_is_never_applied_is_a_permanent_error() -> None:
    op = UpdateMember(organization_id="o", user_uuid=UUID_TEXT, level=8)
    with pytest.raises(WorkspaceNotAppliedError) as error:
        answer(op, 200, b'{"id": "m", "level": 1}')
    assert str(error.value) == (
        "Check that the service lets this be changed, and that the owner of the API key may: the response shows that "
        "UpdateMember was not applied: level is 1 and not 8. "
        f"UpdateMember returned 200 (PATCH /api/organizations/o/members/{UUID_TEXT}/)."
    )
    assert error.value.retryable
    assert final_error(op, error.value, 5, may_have_been_applied=True).permanent


def test_a_create_with_other_values_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    op = CreateProject(organization_id="o", name=f"Shop {KEY}")
    assert answer(op, 201, b'{"id": 7, "name": "Shop"}').id == 7
    assert caplog.messages == ['CreateProject was applied with differences: name is "Shop" and not "Shop ***"']
