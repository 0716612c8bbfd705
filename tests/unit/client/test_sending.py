"""Both clients against a failing service, over real sockets."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace import __version__
from airflow_provider_workspace.api.operations import (
    CreateDashboard,
    CreateProject,
    DeleteInvite,
    DeleteMember,
    GetDashboard,
    GetDashboardSharing,
    ListMembers,
    ListProjects,
    PauseBatchExport,
    UpdateDashboard,
)
from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceConnectionError,
    WorkspaceOutcomeUnknownError,
    WorkspacePaginationError,
    WorkspaceRateLimitError,
    WorkspaceRedirectError,
    WorkspaceResponseError,
    WorkspaceServerError,
    WorkspaceTimeoutError,
    WorkspaceTransportError,
)
from tests import raw_server as loopback
from tests.raw_server import RawServer, Scene, answer, closed_port, redirect

if TYPE_CHECKING:
    from tests.unit.client.conftest import Send

UUID_TEXT = "0190c0de-0000-4000-8000-0000000000e1"
READ = GetDashboard(project_id="1", dashboard_id=7)
CREATE = CreateDashboard(project_id="1", name="Sales")
CHANGE = UpdateDashboard(project_id="1", dashboard_id=7, name="Sales")
PAUSE = PauseBatchExport(organization_id="o", batch_export_id=UUID_TEXT)
DELETE = DeleteInvite(organization_id="o", invite_id=UUID_TEXT)

FOUND = answer(200, {"id": 7, "name": "Sales"})


# Requests


def test_a_read_sends_the_documented_request(send: Send) -> None:
    with RawServer(FOUND) as service:
        assert send(service.url, READ).result.name == "Sales"
    (request,) = service.requests
    assert (request.method, request.target, request.body) == ("GET", "/api/environments/1/dashboards/7/", None)
    assert request.headers["authorization"] == "Bearer phx_s3cret-key"
    assert request.headers["user-agent"] == f"airflow-provider-workspace/{__version__}"
    assert request.headers["accept"] == "application/json"
    assert request.headers["host"] == service.url.removeprefix("http://")
    assert not {"content-type", "content-length", "cookie"} & set(request.headers)


def test_a_write_sends_the_documented_request(send: Send) -> None:
    with RawServer(answer(201, {"id": 8})) as service:
        send(f"{service.url}/base", CreateDashboard(project_id="1", name="Umsätze"))
    (request,) = service.requests
    assert (request.method, request.target) == ("POST", "/base/api/environments/1/dashboards/")
    assert (request.headers["content-type"], request.body) == ("application/json", {"name": "Umsätze"})


@pytest.mark.parametrize("value", ["a/b", "..%2f", "%2e%2e", "a?b#c", "日本", "a b", "...", '~{}|^`"<>\\'])
def test_an_encoded_path_is_sent_unchanged(send: Send, value: str) -> None:
    operation = DeleteMember(organization_id="o", user_uuid=value)
    with RawServer(answer(204)) as service:
        send(service.url, operation)
    assert [request.target for request in service.requests] == [operation.request().target]


def test_compressed_responses_are_read(send: Send) -> None:
    with RawServer(answer(200, {"id": 7, "name": "x" * 100_000}, packed=True)) as service:
        assert len(send(service.url, READ).result.name) == 100_000
        assert "gzip" in service.requests[0].headers["accept-encoding"]


def test_cookies_are_not_kept(send: Send) -> None:
    pages = [answer(200, {"next": "?offset=1", "results": [{}]}, Set_Cookie="session=1; Path=/"), answer(200, [])]
    with RawServer(*pages) as service:
        send(service.url, ListMembers(organization_id="o"), rows=True)
    assert ["cookie" in request.headers for request in service.requests] == [False, False]


# Lost responses

BROKEN = {
    "reset before reading": (loopback.RESET_BEFORE_READING, WorkspaceTransportError),
    "reset after reading": (loopback.RESET_AFTER_READING, WorkspaceTransportError),
    "closed after reading": (loopback.CLOSED_AFTER_READING, WorkspaceTransportError),
    "cut": (loopback.CUT, WorkspaceTransportError),
    "cut chunk": (loopback.CUT_CHUNK, WorkspaceTransportError),
    "bad chunk": (loopback.BAD_CHUNK, WorkspaceTransportError),
    "bad gzip": (loopback.BAD_GZIP, WorkspaceTransportError),
    "not HTTP": (loopback.NOT_HTTP, WorkspaceTransportError),
    "silent": (loopback.SILENT, WorkspaceTimeoutError),
    "silent half-way": (loopback.SILENT_HALF_WAY, WorkspaceTimeoutError),
    "cut JSON": (answer(200, b'{"id": 7'), WorkspaceResponseError),
    "HTML": (answer(200, b"<html>Log in</html>", Content_Type="text/html"), WorkspaceResponseError),
    "500": (answer(500), WorkspaceServerError),
    "503": (answer(503, b"busy"), WorkspaceServerError),
}
# The result of this write is None, whatever its body.
LOST = {name: case for name, case in BROKEN.items() if case[1] is not WorkspaceResponseError}


@pytest.fixture
def short_timeouts(scene: Scene) -> dict[str, float]:
    """Return settings with timeouts as short as the scene allows."""
    return {"read_timeout": 0.2} if scene.waits else {}


@pytest.mark.parametrize(("scene", "kind"), BROKEN.values(), ids=BROKEN)
def test_a_read_is_retried_after_a_broken_response(
    send: Send, scene: Scene, kind: type, short_timeouts: dict[str, float]
) -> None:
    with RawServer(scene, FOUND) as service:
        sent = send(service.url, READ, **short_timeouts)
    assert (sent.result.id, sent.error, len(sent.waits), service.connections) == (7, None, 1, 2)
    with RawServer(scene) as service:
        sent = send(service.url, READ, max_attempts=2, **short_timeouts)
    assert type(sent.error) is kind
    assert (sent.error.attempts, sent.error.outcome, service.connections) == (2, "unknown", 2)


@pytest.mark.parametrize(("scene", "kind"), BROKEN.values(), ids=BROKEN)
def test_a_create_is_not_retried_after_a_broken_response(
    send: Send, scene: Scene, kind: type, short_timeouts: dict[str, float]
) -> None:
    with RawServer(scene) as service:
        sent = send(service.url, CREATE, **short_timeouts)
    assert type(sent.error) is WorkspaceOutcomeUnknownError
    assert type(sent.error.__cause__) is kind
    assert (sent.error.attempts, service.connections, sent.waits) == (1, 1, [])


@pytest.mark.parametrize("operation", [CHANGE, PAUSE], ids=["change", "pause"])
@pytest.mark.parametrize("scene", [scene for scene, _ in LOST.values()], ids=LOST)
def test_a_repeatable_write_is_retried(
    send: Send, scene: Scene, operation: Any, short_timeouts: dict[str, float]
) -> None:
    with RawServer(scene, answer(200, {"id": 7})) as service:
        sent = send(service.url, operation, **short_timeouts)
    assert (sent.error, service.connections) == (None, 2)


@pytest.mark.parametrize("scene", [scene for scene, _ in LOST.values()], ids=LOST)
def test_404_on_a_retried_delete_is_a_success(send: Send, scene: Scene, short_timeouts: dict[str, float]) -> None:
    with RawServer(scene, answer(404, {"detail": "Not found."})) as service:
        sent = send(service.url, DELETE, **short_timeouts)
    assert (sent.result, sent.error, service.connections) == (None, None, 2)


def test_a_login_page_is_a_response_error(send: Send) -> None:
    with RawServer(answer(200, b"<html>Log in</html>")) as service:
        assert type(send(service.url, PAUSE).error) is WorkspaceResponseError


def test_404_on_a_first_delete_is_an_error(send: Send) -> None:
    with RawServer(answer(404)) as service:
        assert "returned 404" in str(send(service.url, DELETE).error)
    with RawServer(answer(429), answer(404)) as service:
        assert "returned 404" in str(send(service.url, DELETE).error)


def test_final_error_says_that_an_earlier_attempt_may_have_been_applied(send: Send) -> None:
    with RawServer(loopback.RESET_AFTER_READING, answer(403, {"detail": "no"})) as service:
        sent = send(service.url, PAUSE)
    assert (sent.error.outcome, sent.error.attempts) == ("unknown", 2)
    assert str(sent.error).endswith(
        "An earlier attempt got no clear answer, so PauseBatchExport may have been applied."
    )


# Requests that were not sent or were refused


@pytest.mark.parametrize("operation", [READ, CREATE, PAUSE, DELETE], ids=lambda operation: type(operation).__name__)
def test_connect_failures_are_retried(send: Send, operation: Any) -> None:
    sent = send(f"http://127.0.0.1:{closed_port()}", operation)
    assert type(sent.error) is WorkspaceConnectionError
    assert (sent.error.outcome, sent.error.attempts, len(sent.waits)) == ("not_sent", 3, 2)
    assert "Check the host, port and proxy of the settings." in str(sent.error)


def test_an_unknown_host_is_a_connection_error(send: Send) -> None:
    sent = send("http://nobody.invalid", CREATE, max_attempts=1)
    assert type(sent.error) is WorkspaceConnectionError


@pytest.mark.parametrize("host", ["\u0661.invalid", "xn--.invalid"])
def test_an_invalid_host_name_is_a_connection_error(send: Send, host: str) -> None:
    sent = send(f"http://{host}", CREATE, max_attempts=1)
    assert type(sent.error) is WorkspaceConnectionError
    assert sent.error.outcome == "not_sent"


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [("7", 7, 8), (timedelta(seconds=30), 25, 31), (timedelta(seconds=-60), 0, 1), ("soon", 0.25, 0.5)],
    ids=["seconds", "date", "past date", "nonsense"],
)
@pytest.mark.parametrize("operation", [READ, CREATE], ids=["read", "create"])
def test_429_waits_for_retry_after(
    send: Send, operation: Any, retry_after: str | timedelta, least: float, most: float
) -> None:
    if isinstance(retry_after, timedelta):
        retry_after = format_datetime(datetime.now(timezone.utc) + retry_after, usegmt=True)
    with RawServer(answer(429, Retry_After=retry_after), FOUND) as service:
        sent = send(service.url, operation)
    assert sent.result.id == 7
    assert least <= sent.waits[0] <= most


def test_429_with_a_long_retry_after_fails_without_waiting(send: Send) -> None:
    with RawServer(answer(429, Retry_After="3600")) as service:
        sent = send(service.url, CREATE)
    assert type(sent.error) is WorkspaceRateLimitError
    assert (sent.error.retry_after, sent.error.attempts, sent.waits) == (3600, 1, [])


def test_400_is_not_retried(send: Send) -> None:
    with RawServer(answer(400, {"detail": "Too long.", "attr": "name"})) as service:
        sent = send(service.url, CREATE)
    assert type(sent.error) is WorkspaceBadRequestError
    assert (sent.error.attempts, service.connections) == (1, 1)


def test_max_attempts_and_max_retry_wait_are_settings(send: Send) -> None:
    with RawServer(answer(500)) as service:
        assert send(service.url, READ, max_attempts=1).error.attempts == 1
        assert send(service.url, READ, max_attempts=6, max_retry_wait=0.0).waits == [0.0] * 5


# Redirects


@pytest.mark.parametrize("location", ["{url}/moved/?a=b", "/moved/?a=b", "../../../../../moved/?a=b#c"])
def test_a_read_follows_redirects_within_the_origin(send: Send, location: str) -> None:
    with RawServer(redirect(location), FOUND) as service:
        assert send(service.url, READ).result.id == 7
    assert [request.target for request in service.requests][1] == "/moved/?a=b"
    assert service.requests[1].headers["authorization"] == "Bearer phx_s3cret-key"


@pytest.mark.parametrize("operation", [READ, CREATE, CHANGE, DELETE], ids=lambda operation: type(operation).__name__)
def test_redirects_to_another_origin_are_not_followed(send: Send, operation: Any) -> None:
    with RawServer(FOUND) as other_host, RawServer(redirect(f"{other_host.url}/steal/", 307)) as service:
        sent = send(service.url, operation)
    assert (other_host.connections, service.connections) == (0, 1)
    assert type(sent.error) is WorkspaceRedirectError
    assert f"The redirect to {other_host.url} was not followed." in str(sent.error)


def test_a_write_follows_no_redirect(send: Send) -> None:
    with RawServer(redirect("/moved/", 308), FOUND) as service:
        assert type(send(service.url, CHANGE).error) is WorkspaceRedirectError
    assert service.connections == 1


def test_a_redirect_loop_is_an_error(send: Send) -> None:
    with RawServer(redirect("{url}/moved/")) as service:
        assert type(send(service.url, READ).error) is WorkspaceRedirectError
    assert service.connections == 6


@pytest.mark.parametrize(
    "location", ["http://[::1", "{url}:port/", "?\xff", "http://\x7f/", "//", "http:///", "http://a b/", "%", "\xa0"]
)
def test_a_redirect_to_an_invalid_url_is_a_workspace_error(send: Send, location: str) -> None:
    with RawServer(redirect(location)) as service:
        for operation in (READ, CREATE):
            assert send(service.url, operation, max_attempts=1).error.outcome == "unknown"


# Lists and secrets


def test_rows_are_read_page_by_page(send: Send) -> None:
    pages = [
        answer(200, {"next": "https://other_host.example/?offset=9", "results": [{"id": "a"}, {"id": "b"}]}),
        answer(503),
        answer(200, {"next": None, "results": [{"id": "c"}]}),
    ]
    with RawServer(*pages) as service:
        sent = send(service.url, ListMembers(organization_id="o", limit=2), rows=True)
    assert [row.id for row in sent.result] == ["a", "b", "c"]
    path = "/api/organizations/o/members/?limit=2"
    assert [request.target for request in service.requests] == [path, f"{path}&offset=2", f"{path}&offset=2"]


@pytest.mark.parametrize("more", [{"count": 3}, None])
def test_pages_without_next_are_followed_by_offset(send: Send, more: dict[str, int] | None) -> None:
    rows: list[list[dict[str, str]]] = [[{"id": "a"}, {"id": "b"}], [{"id": "c"}], []]
    pages = [answer(200, page if more is None else {**more, "results": page}) for page in rows]
    with RawServer(*pages) as service:
        sent = send(service.url, ListMembers(organization_id="o", limit=2), rows=True)
    assert [row.id for row in sent.result] == ["a", "b", "c"]
    assert len(service.requests) == (2 if more else 3)


def test_each_row_of_a_service_without_pages_is_returned_once(send: Send) -> None:
    with RawServer(answer(200, [{"id": "a"}, {"id": "b"}])) as service:
        sent = send(service.url, ListMembers(organization_id="o", limit=2), rows=True)
    assert [row.id for row in sent.result] == ["a", "b"]


def test_an_endless_list_is_an_error(send: Send) -> None:
    with RawServer(answer(200, {"next": "?offset=0", "results": [{"id": "a"}]})) as service:
        sent = send(service.url, ListMembers(organization_id="o"), rows=True)
    assert type(sent.error) is WorkspacePaginationError


@pytest.mark.parametrize(
    ("operation", "body", "masked"),
    [
        (GetDashboardSharing(project_id="1", dashboard_id=7), {"access_token": "t1"}, ["t1"]),
        (ListProjects(organization_id="o"), {"results": [{"api_token": "t1"}, {"api_token": "t2"}]}, ["t1", "t2"]),
        (ListMembers(organization_id="o"), {"results": [{"level": 1}, {"session_token": "t1"}]}, ["t1"]),
        (CreateProject(organization_id="o", slack_incoming_webhook="t0"), {"live_events_token": "t1"}, ["t0", "t1"]),
        (READ, {"name": "t1"}, []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_secrets_are_masked_when_they_are_received(send: Send, operation: Any, body: Any, masked: list[str]) -> None:
    with RawServer(answer(200, body)) as service:
        assert send(service.url, operation).masked == masked


def test_errors_contain_no_secret_echoed_by_the_service(send: Send) -> None:
    with RawServer(answer(400, {"detail": "Bad key phx_s3cret-key, bad hook https://h/t0"})) as service:
        sent = send(service.url, CreateProject(organization_id="o", slack_incoming_webhook="https://h/t0"))
    assert str(sent.error).endswith(": Bad key ***, bad hook *** (POST /api/organizations/o/projects/).")
    assert sent.masked == ["https://h/t0"]
