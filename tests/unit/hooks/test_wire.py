"""Both hooks against a failing service, over real sockets: fault x method x (outcome, requests, audit line)."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from airflow.sdk._shared.secrets_masker import redact
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from airflow_provider_workspace import __version__
from airflow_provider_workspace.api.deprecation import Deprecation
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import Limit, Offset, Operation, endpoint
from airflow_provider_workspace.errors import (
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
    WorkspaceResponseError,
    WorkspaceTimeoutError,
)
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import raw_server
from tests.matrix import chequered
from tests.raw_server import (
    HEAD,
    RESET_AFTER_READING,
    RawServer,
    Scene,
    answer,
    dripping,
    dripping_record,
    endless,
    read_request,
    redirect,
    tunnel,
)
from tests.unit.hooks.conftest import CHANGE, CREATE, DELETE, KEY, LIST, PAUSE, READ, UUID_TEXT

if TYPE_CHECKING:
    from tests.conftest import Call
    from tests.unit.hooks.conftest import Ask, Question, SetConnection

# Tests of TLS do not verify the certificate.
pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")

FOUND = answer(200, {"id": 7, "name": "Sales"})
NOT_FOUND = answer(404, {"detail": "Not found."})


# Requests


def test_requests_are_sent_as_documented(ask: Ask) -> None:
    with RawServer(FOUND) as service:
        assert ask(service.url, READ).result.name == "Sales"
        ask(f"{service.url}/base", ("create_dashboard", {"name": "Umsätze"}))
    read, write = service.requests
    assert (read.method, read.target, read.body) == ("GET", "/api/environments/1/dashboards/7/", None)
    assert read.headers["authorization"] == "Bearer phx_s3cret-key"
    assert read.headers["user-agent"] == f"airflow-provider-workspace/{__version__}"
    assert read.headers["accept"] == "application/json"
    assert "gzip" in read.headers["accept-encoding"]
    assert read.headers["host"] == service.url.removeprefix("http://")
    assert not {"content-type", "content-length", "cookie"} & set(read.headers)
    assert (write.method, write.target) == ("POST", "/base/api/environments/1/dashboards/")
    assert (write.headers["content-type"], write.body) == ("application/json", {"name": "Umsätze"})


def test_an_encoded_path_is_sent_unchanged(ask: Ask) -> None:
    sent = {"..%2f": "..%252f", "a?b#c 日本": "a%3Fb%23c%20%E6%97%A5%E6%9C%AC", "...": "...", "%2e%2e": "%252e%252e"}
    with RawServer(answer(204)) as service:
        for value in sent:
            ask(service.url, ("delete_member", {"user_uuid": value}))
    targets = [f"/api/organizations/o/members/{segment}/" for segment in sent.values()]
    assert [request.target for request in service.requests] == targets


# Lost responses: method, what the service answers next, number of requests, audit line

AFTER_A_LOSS: dict[str, tuple[Question, Scene, int, str]] = {
    "read": (READ, FOUND, 2, ""),
    "create": (CREATE, FOUND, 1, "operation=CreateDashboard outcome=unknown rows=1 attempts=1"),
    "change": (CHANGE, FOUND, 2, "operation=UpdateDashboard outcome=applied rows=1 attempts=2"),
    "pause": (PAUSE, FOUND, 2, "operation=PauseBatchExport outcome=applied rows=1 attempts=2"),
    "delete": (DELETE, NOT_FOUND, 2, "operation=DeleteInvite outcome=applied rows=1 attempts=2"),
}
# What the service says does not change the outcome to "not sent".
WORDS = ("Tunnel connection failed: 407", "CERTIFICATE_VERIFY_FAILED", "[Errno 111] refused")
# The scene, and the class and words of the error.
LOST: dict[str, tuple[Scene, str]] = {
    "reset before reading": (raw_server.RESET_BEFORE_READING, "Transport"),
    "reset after reading": (RESET_AFTER_READING, "Transport"),
    "closed after reading": (raw_server.CLOSED_AFTER_READING, "Transport"),
    "cut": (raw_server.CUT, "Transport"),
    "cut chunk": (raw_server.CUT_CHUNK, "Transport"),
    "bad chunk": (raw_server.BAD_CHUNK, "Transport"),
    "bad gzip": (raw_server.BAD_GZIP, "Transport: the body cannot be decompressed"),
    "cut gzip": (
        answer(200, gzip.compress(b"{}" * 99)[:-9], Content_Encoding="gzip"),
        "Transport: the compressed body is cut off",
    ),
    "many gzips": (
        answer(200, gzip.compress(b"") * 101, Content_Encoding="gzip"),
        "Transport: the compressed body has too many parts",
    ),
    "br": (answer(200, b"{}", Content_Encoding="br"), "Transport: unexpected Content-Encoding br"),
    "two encodings": (answer(200, Content_Encoding="gzip, gzip"), "Transport: unexpected Content-Encoding gzip, gzip"),
    "not HTTP": (raw_server.NOT_HTTP, "Transport"),
    "101": (Scene(b"HTTP/1.1 101 Switching\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), "Transport"),
    "silent": (raw_server.SILENT, "Timeout: Raise read_timeout in the extra of"),
    "silent half-way": (raw_server.SILENT_HALF_WAY, "Timeout: Raise read_timeout in the extra of"),
    "cut JSON": (answer(200, b'{"id": 7'), "Response: JSON that is cut off or broken"),
    "login page": (answer(200, b"<html>Log in</html>"), "Response: an HTML or XML page"),
    "408": (answer(408), "Status: returned 408: the service or a proxy failed"),
    "503": (answer(503, b"busy"), "Server: returned 503: the service or a proxy failed"),
    **{f"500 {words}": (Scene(f"HTTP/1.1 500 {words}\r\n\r\n".encode()), "Server") for words in WORDS},
    **{f"junk {words}": (Scene(f"{words}\r\n\r\n".encode()), "Transport") for words in WORDS},
}


def is_lost(error: Any, said: str) -> bool:
    kind, _, words = said.partition(": ")
    return type(error).__name__ == f"Workspace{kind}Error" and words in str(error)


# Each fault of a read and of a create; one rule repeats all other writes.
LOSSES = [
    (fault, method)
    for fault in LOST
    for method in AFTER_A_LOSS
    if method in ("read", "create") or fault in ("cut", "silent", "cut JSON", "503")
]


@pytest.mark.parametrize(("fault", "method"), LOSSES)
def test_a_lost_response_is_asked_for_again_unless_that_could_create_twice(ask: Ask, fault: str, method: str) -> None:
    scene, said = LOST[fault]
    question, then, requests, audit = AFTER_A_LOSS[method]
    if (fault, method) == ("cut JSON", "delete"):  # its result is None, whatever the body
        then, requests, audit = scene, 1, audit.replace("attempts=2", "attempts=1")
    patience = {"read_timeout": 0.2} if scene.waits else {}
    with RawServer(scene, then) as service:
        asked = ask(service.url, question, **patience)
    assert (service.connections, asked.audit) == (requests, [audit] if audit else [])
    if method == "create":
        # Airflow does not retry the task: a second dashboard could result.
        assert isinstance(asked.error, WorkspaceOutcomeUnknownError)
        assert isinstance(asked.error, AirflowFailException)
        assert str(asked.error).startswith("[outcome-unknown] CreateDashboard may or may not have been applied")
        assert is_lost(asked.error.__cause__, said)
        assert (asked.error.attempts, asked.error.outcome, asked.error.permanent) == (1, "unknown", True)
        assert asked.waits == []
    else:
        assert asked.error is None
        assert asked.result is None or asked.result.id == 7
        assert len(asked.waits) == requests - 1


@pytest.mark.parametrize("fault", ["cut", "silent", "cut JSON", "503"])
def test_responses_that_are_always_lost_fail_after_the_last_attempt(ask: Ask, fault: str) -> None:
    scene, said = LOST[fault]
    patience = {"read_timeout": 0.2} if scene.waits else {}
    for question, audit in ((READ, []), (CHANGE, ["operation=UpdateDashboard outcome=unknown rows=1 attempts=2"])):
        with RawServer(scene) as service:
            asked = ask(service.url, question, max_attempts=2, **patience)
        assert is_lost(asked.error, said)
        assert (asked.error.attempts, asked.error.outcome, service.connections) == (2, "unknown", 2)
        assert asked.audit == audit


# Refusals: scenes, method, error, outcome, requests, words

REFUSED: dict[str, tuple[list[Scene], Question, str, str, int, str]] = {
    "400": ([answer(400, {"detail": "Long.", "attr": "name"})], CREATE, "BadRequest", "rejected", 1, "'name'): Long"),
    "403": ([answer(403, {"detail": "no"})], CREATE, "Permission", "rejected", 1, "returned 403"),
    "404 on a first delete": ([NOT_FOUND], DELETE, "NotFound", "rejected", 1, "returned 404"),
    "404 after a 429": ([answer(429), NOT_FOUND], DELETE, "NotFound", "rejected", 2, "returned 404"),
    "404 of a proxy after a loss": (
        [RESET_AFTER_READING, answer(404, b"no route")], DELETE, "NotFound", "unknown", 2, "returned 404"),
    "403 after a loss": (
        [RESET_AFTER_READING, answer(403)], PAUSE, "Permission", "unknown", 2,
        "An earlier attempt got no clear answer, so PauseBatchExport may have been applied."),
    "429 for an hour": ([answer(429, Retry_After="3600")], CREATE, "RateLimit", "rejected", 1, "Retry in 3600 s"),
    "503 until the year 9999": (
        [answer(503, Retry_After="Fri, 31 Dec 9999 23:59:59 GMT")], READ, "Server", "unknown", 1,
        "Its Retry-After is 'Fri, 31 Dec 9999 23:59:59 GMT'; 25 hours of it count."),
    "429 again and again": ([answer(429)], CREATE, "RateLimit", "rejected", 3, "rate limit exceeded"),
    "303 of a write": (
        [redirect("/moved/", 303), FOUND], CHANGE, "Redirect", "unknown", 1,
        "a redirect to /moved/, which was not followed: this status does not say whether to send the write again"),
    "308 of a write to another origin": (
        [redirect("https://evil.example/moved/", 308), FOUND], CHANGE, "Redirect", "rejected", 1,
        "a redirect to https://evil.example, which was not followed. If that is the service, set it as host of"),
    "307 of a write in a loop": (
        [redirect("/moved/7/", 307)], CHANGE, "Redirect", "rejected", 6,
        "the service redirects again and again, at last to /moved/7/."),
    "a record without an id": (
        [answer(201, {"error": "limit reached"})], CREATE, "DoNotRetry", "unknown", 1,
        "Look for the dashboard in the workspace itself"),
    "redirect in a loop": ([redirect("{url}/moved/")], READ, "Redirect", "unknown", 6, "redirect"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_final(ask: Ask, name: str) -> None:
    scenes, question, kind, outcome, requests, says = REFUSED[name]
    with RawServer(*scenes) as service:
        asked = ask(service.url, question)
    assert type(asked.error).__name__ == f"Workspace{kind}Error"
    assert says in str(asked.error)
    assert (asked.error.outcome, service.connections) == (outcome, requests)
    audit = [line.partition(" outcome=")[2] for line in asked.audit]
    attempts = 1 if "loop" in name else requests
    assert audit == ([] if question is READ else [f"{outcome} rows=1 attempts={attempts}"])


def test_429_waits_for_retry_after(ask: Ask) -> None:
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30), usegmt=True)
    for retry_after, least, most in (("7", 7, 8), (soon, 20, 31), ("soon", 0.2, 0.5)):
        with RawServer(answer(429, Retry_After=retry_after), FOUND) as service:
            asked = ask(service.url, CREATE)
        assert asked.result.id == 7
        assert least <= asked.waits[0] <= most


def test_max_attempts_and_max_retry_wait_are_settings(ask: Ask) -> None:
    with RawServer(answer(500)) as service:
        assert ask(service.url, READ, max_attempts=1).error.attempts == 1
        assert ask(service.url, READ, max_attempts=6, max_retry_wait=0.0).waits == [0.0] * 5


# Audit lines


def test_the_audit_line_names_rows_request_and_target_and_no_secret(ask: Ask) -> None:
    webhook = f"https://hook.example.com/{uuid4()}"
    project: Question = ("create_project", {"name": "Northwind", "slack_incoming_webhook": webhook})
    with RawServer(answer(201, {"id": 7}, X_Request_Id="req 42")) as service:
        (line,) = [line for line in ask(service.url, project).log if line.startswith("operation=")]
    assert line.startswith("operation=CreateProject outcome=applied rows=1 attempts=1 seconds=")
    assert line.endswith(" request_id=req42 target=/api/organizations/o/projects/")
    with RawServer(answer(201, {"id": 7}, X_Request_Id=f"phx_s3cret-key-{webhook}")) as service:
        assert " request_id=***-*** " in ask(service.url, project).log[-1]
    assert redact(webhook) == "***", "although no response contained it"


# Redirects


def test_a_read_follows_redirects_within_the_origin(ask: Ask) -> None:
    with RawServer(redirect("{url}/elsewhere/"), redirect("../../../../../moved/?a=b#c"), FOUND) as service:
        assert ask(service.url, READ).result.id == 7
    assert [request.target for request in service.requests][1:] == ["/elsewhere/", "/moved/?a=b"]
    assert service.requests[1].headers["authorization"] == "Bearer phx_s3cret-key"


@pytest.mark.parametrize("status", [307, 308])
def test_a_write_is_sent_again_as_it_is_to_where_it_moved(ask: Ask, status: int) -> None:
    create: Question = ("create_dashboard", {"name": "Sales"})
    with RawServer(redirect("{url}/a/", status), redirect("../b/?c=d", status), answer(201, {"id": 7})) as service:
        asked = ask(service.url, create)
    first, second, third = service.requests
    assert asked.result.id == 7
    assert (second.target, third.target) == ("/a/", "/b/?c=d")
    assert {request.method for request in service.requests} == {"POST"}
    assert first.body == second.body == third.body == {"name": "Sales"}
    without_host = [{**request.headers, "host": ""} for request in service.requests]
    assert without_host[0] == without_host[1] == without_host[2]
    assert asked.audit == ["operation=CreateDashboard outcome=applied rows=1 attempts=1"]
    said = [line for line in asked.log if "was redirected" in line]
    words = (
        f"CreateDashboard was redirected ({status}) to /a/, which is followed. If it has moved for good, set its path"
    )
    assert said == [f"{words} in 'paths' in the extra of connection 'workspace_default'."]


def test_a_lost_response_to_a_redirected_create_may_have_been_applied(ask: Ask) -> None:
    with RawServer(redirect("/a/", 308), RESET_AFTER_READING) as service:
        asked = ask(service.url, CREATE)
    assert isinstance(asked.error, WorkspaceOutcomeUnknownError)
    assert service.connections == 2


def test_a_client_remembers_where_a_request_moved(set_connection: SetConnection, log_lines: list[str]) -> None:
    done = answer(200, {"id": 7, "name": "Sales"})
    gone = answer(404, {"detail": "Not found."})
    with RawServer(redirect("/new/7/", 307), done, done, gone, done) as service:
        set_connection(service.url)
        with WorkspaceHook() as hook:
            hook.update_dashboard(dashboard_id=7, name="Sales")
            hook.update_dashboard(dashboard_id=7, name="Sales")
            with suppress(WorkspaceNotFoundError):
                hook.update_dashboard(dashboard_id=7, name="Sales")
            hook.update_dashboard(dashboard_id=7, name="Sales")
    old = "/api/environments/1/dashboards/7/"
    assert [request.target for request in service.requests] == [old, "/new/7/", "/new/7/", "/new/7/", old]
    assert len([line for line in log_lines if "was redirected" in line]) == 1


OTHER = "00000000-0000-4000-8000-000000000009"


@pytest.mark.parametrize(
    ("question", "path"),
    [
        (("delete_member", {"user_uuid": UUID_TEXT}), f"/api/organizations/o/members/{OTHER}/"),
        (("delete_member", {"user_uuid": UUID_TEXT}), f"/api/organizations/other/members/{UUID_TEXT}/"),
        (("delete_member", {"user_uuid": UUID_TEXT}), "/api/organizations/o/"),
        (("get_dashboard", {"dashboard_id": 7}), "/api/environments/1/dashboards/8/"),
    ],
    ids=["another member", "another organization", "no member", "another dashboard"],
)
def test_a_redirect_to_other_ids_is_not_followed(ask: Ask, question: Question, path: str) -> None:
    with RawServer(redirect(path, 308), answer(204)) as service:
        asked = ask(service.url, question)
    assert len(service.requests) == 1
    assert f"a redirect to {path}, which was not followed: it has other ids" in str(asked.error)


# Paths of the connection

MOVED_PATHS = {
    "PauseBatchExport": "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause",
    "ListMembers": "/api/people/{organization_id}/",
}


def test_an_operation_is_sent_to_its_path_in_the_connection(ask: Ask) -> None:
    pause: Question = ("pause_batch_export", {"batch_export_id": UUID_TEXT, "name": "x"})
    path = f"/api/projects/1/batch_exports/{UUID_TEXT}/pause"
    with RawServer(answer(204)) as service:
        asked = ask(service.url, pause, paths=MOVED_PATHS)
    (request,) = service.requests
    assert (request.method, request.target, request.body) == ("POST", path, {"name": "x"})
    assert asked.log[-1].endswith(f" target={path}")
    with RawServer(NOT_FOUND) as service:
        asked = ask(service.url, pause, paths=MOVED_PATHS)
    assert f"Response: Not found. Request: POST {path}." in str(asked.error)
    with RawServer(answer(200, {"count": 1, "results": [{"id": "a"}]})) as service:
        assert len(ask(service.url, LIST, paths=MOVED_PATHS).result) == 1
    assert service.requests[0].target.startswith("/api/people/o/?limit=")


def test_the_ids_of_a_hook_fill_a_path_before_those_of_the_connection(
    call: Call, set_connection: SetConnection
) -> None:
    with RawServer(answer(204), answer(204)) as service:
        set_connection(service.url, paths=MOVED_PATHS)
        for ids in ({"project_id": 2}, {}):
            call("pause_batch_export", batch_export_id=UUID_TEXT, hook=ids)
        with pytest.raises(WorkspaceInputError, match="project_id has no value"):
            call("pause_batch_export", batch_export_id=UUID_TEXT, hook={"project_id": "None"})
    paths = [f"/api/projects/{project}/batch_exports/{UUID_TEXT}/pause" for project in (2, 1)]
    assert [request.target for request in service.requests] == paths


def test_own_operations_are_named_with_their_module(set_connection: SetConnection) -> None:
    own = f"{ListThings.__module__}.ListThings"
    with RawServer(answer(200, {"count": 1, "results": [{"id": "a"}]})) as service:
        set_connection(service.url, paths={own: "/api/new/{project_id}/{thing}"})
        with WorkspaceHook() as hook:
            assert len(list(hook.client.rows(ListThings(thing="t")))) == 1
        set_connection(service.url, paths={own: "/api/new/{thing}/{colour}/"})
        with WorkspaceHook() as hook, pytest.raises(WorkspaceInputError, match="names colour, which neither"):
            hook.send(ListThings(thing="t"))
        set_connection(service.url, paths={own: "/api/new/{project_id}/"})
        with WorkspaceHook() as hook, pytest.raises(WorkspaceInputError, match="must name thing, or it leads to"):
            hook.send(ListThings(thing="t"))
    assert [request.target for request in service.requests] == ["/api/new/1/t?limit=100"]


@endpoint("GET", "/things/{thing}/", scope=None, repeatable=True)
class ListThings(Operation[Page[Resource]]):
    thing: str
    limit: Limit = None
    offset: Offset = None


# Announcements

SUNSET = {"Sunset": "Sun, 31 Jan 2027 10:00:00 GMT"}
LINK = {"Link": '</other/>; rel="next", </api/projects/1/dashboards/7/>; rel="successor-version"'}
ANNOUNCED: dict[str, tuple[dict[str, str], Deprecation | None]] = {
    "all": (
        {"Deprecation": "@1793491200", **SUNSET, **LINK},
        Deprecation("2026-11-01", "2027-01-31", "/api/projects/1/dashboards/7/"),
    ),
    "true": ({"Deprecation": "true"}, Deprecation()),
    "a date": ({"Deprecation": "Sun, 01 Nov 2026 00:00:00 GMT"}, Deprecation("2026-11-01")),
    "only the end": (SUNSET, Deprecation(sunset="2027-01-31")),
    "an end that is no date": ({"Sunset": "soon"}, Deprecation()),
    "a successor with a key": (
        {"Deprecation": "true", "Link": f"<https://x.example/{KEY}>; rel=successor-version"},
        Deprecation(successor="https://x.example/***"),
    ),
    "false": ({"Deprecation": "false"}, None),
    "a successor alone": (LINK, None),
    "a number without end": ({"Deprecation": "@99999999999999999999"}, Deprecation()),
    "a year that no date has": ({"Deprecation": "@999999999999"}, Deprecation()),
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_a_deprecation_is_said_once_and_kept(set_connection: SetConnection, log_lines: list[str], name: str) -> None:
    headers, expected = ANNOUNCED[name]
    with RawServer(answer(200, {"id": 7, "name": "Sales"}, **headers)) as service:
        set_connection(service.url)
        with WorkspaceHook() as hook:
            hook.get_dashboard(dashboard_id=7)
            hook.get_dashboard(dashboard_id=7)
            assert hook.deprecations == ({"GetDashboard": expected} if expected else {})
    said = [line for line in log_lines if "is deprecated" in line]
    assert len(said) == (1 if expected else 0)


def test_a_deprecation_names_the_date_and_the_successor(ask: Ask) -> None:
    moved = answer(308, Location="/new/", Deprecation="@1793491200", **SUNSET, **LINK)
    with RawServer(moved, FOUND) as service:
        log = ask(service.url, READ).log
    assert log[0] == (
        "GetDashboard is deprecated since 2026-11-01 and ends on 2027-01-31; its successor is "
        "/api/projects/1/dashboards/7/. Upgrade this package, or set the new path in 'paths' in the extra of "
        "connection 'workspace_default'."
    )


# Time limits

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
DRIPPING = {
    "status line": dripping(b"", b"HTTP"),
    "head": dripping(OK, b"X-A: b\r\n"),
    "100 Continue": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "103 Early Hints": dripping(b"", EARLY_HINTS),
    "body": dripping(HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
    "body without length": dripping(HEAD + b"\r\n", b" "),
    "chunks": dripping(CHUNKED, b"1\r\n \r\n"),
    "trailers": dripping(CHUNKED + b"0\r\n", b"X-A: b\r\n"),
    "body of an error": dripping(b"HTTP/1.1 400 Bad\r\nContent-Length: 1000000\r\n\r\n", b" "),
    "gzip": dripping(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}")[:10], b"\x00\x00\x00\xff\xff"),
}


@pytest.mark.parametrize(
    ("name", "tls"),
    [*((name, False) for name in DRIPPING), ("chunks", True), ("gzip", True)],
)
def test_a_slow_drip_ends_at_the_total_timeout(ask: Ask, server_tls: ssl.SSLContext, name: str, *, tls: bool) -> None:
    # On a busy machine a time may be over before the request is sent, which proves nothing: then a longer one.
    for total in (0.6, 2.0, 6.0) if tls else (0.25, 1.0, 4.0):
        limits = {"read_timeout": total + 0.1, "total_timeout": total, "max_attempts": 1, "verify": False}
        with RawServer(DRIPPING[name], tls=server_tls if tls else None) as service:
            began = time.monotonic()
            asked = ask(service.url, CREATE, **limits)
            seconds = time.monotonic() - began
        if service.requests:
            break
    assert isinstance(asked.error, WorkspaceOutcomeUnknownError)
    assert type(asked.error.__cause__) is WorkspaceTimeoutError
    assert "Raise total_timeout in the extra of " in str(asked.error)
    assert f"no complete response arrived: not within {total:g} s. " in str(asked.error)
    assert total - 0.05 < seconds < total + 5


HANDSHAKE = Scene(reads=False, handler=dripping(b"\x16\x03\x03\x40\x00", b" ").handler)


@pytest.mark.parametrize(
    ("proxy", "where"), chequered(["no", "http", "https"], ["handshake", "handshake by itself", "head", "body"])
)
def test_tls_that_drips_ends_at_a_timeout(ask: Ask, server_tls: ssl.SSLContext, proxy: str, where: str) -> None:
    limit = "connect_timeout" if where == "handshake by itself" else "total_timeout"
    in_handshake = where.startswith("handshake")
    scene = HANDSHAKE if in_handshake else dripping_record(server_tls, HEAD + b"\r\n" if where == "body" else b"")
    with (
        RawServer(scene) as service,
        RawServer(tunnel(service.url), tls=server_tls if proxy == "https" else None) as to,
    ):
        settings = {limit: 0.6, "max_attempts": 1, "verify": False} | ({} if proxy == "no" else {"proxy": to.url})
        began = time.monotonic()
        asked = ask(service.url.replace("http:", "https:"), CREATE, **settings)
        seconds = time.monotonic() - began
    if in_handshake:
        assert asked.error.outcome == "not_sent"
        assert "no connection within 0.6 s" in str(asked.error)
    else:
        assert asked.error.outcome == "unknown"
        assert "no complete response arrived: not within 0.6 s. " in str(asked.error)
    assert 0.55 < seconds < 0.6 + 5


ENDLESS = {
    "103 Early Hints": endless(b"", EARLY_HINTS * 1000),
    "body": endless(HEAD + b"\r\n", b" " * 10_000),
    "head": endless(OK, b"X-A: b\r\n" * 1000),
    "body of an error": endless(b"HTTP/1.1 400 Bad\r\n\r\n", b" " * 10_000),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_response_ends(ask: Ask, name: str) -> None:
    with RawServer(ENDLESS[name]) as service:
        began = time.monotonic()
        asked = ask(service.url, CREATE, total_timeout=0.4, max_response_bytes=200_000)
        seconds = time.monotonic() - began
    assert isinstance(asked.error, WorkspaceOutcomeUnknownError)
    assert seconds < 30


def test_a_service_that_does_not_read_ends_at_the_total_timeout(ask: Ask) -> None:
    many: Question = ("create_dashboard", {"name": "x" * 30_000_000})
    with RawServer(Scene(reads=False, handler=lambda _: time.sleep(0.8))) as service:
        asked = ask(service.url, many, total_timeout=0.4, max_attempts=1)
    assert type(asked.error.__cause__) is WorkspaceTimeoutError


def test_a_refusal_during_the_upload_is_read(ask: Ask) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(b'HTTP/1.1 413 Too Large\r\nContent-Length: 16\r\n\r\n{"detail":"big"}')
        connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while connection.recv(65536):
                pass

    with RawServer(Scene(reads=False, handler=refuse)) as service:
        asked = ask(service.url, ("create_dashboard", {"name": "x" * 3_000_000}))
    assert "returned 413: big" in str(asked.error)


# Size limits

LIMIT = 1_000_000


SMALLEST = b'{"id":7}'


def body_of(size: int, *, status: int = 200, packed: bool = False) -> Scene:
    return answer(status, SMALLEST.rjust(size), packed=packed)


def deflated(body: bytes, *, wrapped: bool = True) -> Scene:
    packer = zlib.compressobj(wbits=15 if wrapped else -15)
    return answer(200, packer.compress(body) + packer.flush(), Content_Encoding="deflate")


ABOVE = {
    "length": body_of(LIMIT + 1),
    "gzip": body_of(LIMIT + 1, packed=True),
    "deflate": deflated(b" " * LIMIT + b"{}"),
    "error in gzip": body_of(LIMIT * 50, status=400, packed=True),
    "gzip twice": answer(200, gzip.compress(b" " * LIMIT) + gzip.compress(b"{}"), Content_Encoding="gzip"),
}
WITHIN = (
    body_of(LIMIT),
    body_of(LIMIT, packed=True),
    deflated(SMALLEST.rjust(LIMIT), wrapped=False),
    answer(200, gzip.compress(b" " * 9) + gzip.compress(SMALLEST), Content_Encoding="x-gzip"),
    answer(200, SMALLEST, Content_Encoding="identity"),
)


@pytest.mark.parametrize("name", ABOVE)
def test_a_response_above_the_limit_is_an_error(ask: Ask, name: str) -> None:
    with RawServer(ABOVE[name]) as service:
        asked = ask(service.url, READ, max_response_bytes=LIMIT)
    assert type(asked.error) is WorkspaceResponseError
    assert (asked.error.outcome, asked.error.retryable, service.connections) == ("unknown", False, 1)
    assert str(asked.error) == (
        "GetDashboard returned more than 1,000,000 bytes. Raise max_response_bytes in the extra of connection "
        "'workspace_default' if the service really returns that much. Request: GET /api/environments/1/dashboards/7/."
    )


def test_a_response_at_the_limit_is_read(ask: Ask) -> None:
    with RawServer(*WITHIN) as service:
        for _ in WITHIN:
            assert ask(service.url, READ, max_response_bytes=LIMIT).error is None


# Which response belongs to which request: the three pages of a list


def responses(replies: Callable[[int], bytes], late: float = 0.0) -> Scene:
    """Respond to one request after the other on one connection; the first request was read already."""

    def play(connection: socket.socket) -> None:
        for number in range(1, 9):
            # Without a pause, the parts (each a record, in TLS) arrive together.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, late == 0)
            for part in replies(number).split(b"|"):
                connection.sendall(part)
                time.sleep(late)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
            read_request(connection)

    return Scene(handler=play)


def reply(number: int) -> bytes:
    row, more = {"id": str(number)}, f"?offset={number}" if number < 3 else None
    body = json.dumps({"next": more, "results": [row]}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    "provisional",
    [b"", EARLY_HINTS, b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"],
    ids=["keep-alive", "103", "102 and 100"],
)
def test_provisional_responses_are_skipped(ask: Ask, provisional: bytes) -> None:
    with RawServer(responses(lambda number: provisional + b"|" + reply(number), late=0.05)) as service:
        asked = ask(service.url, ("list_members", {"limit": 1}))
        assert [row.id for row in asked.result] == ["1", "2", "3"]
        assert service.connections == 1


SURPLUS = {"response": reply(99), "junk": b"{}", "TLS record": b"|" + reply(99)}


@pytest.mark.parametrize(("proxy", "name"), chequered(["no", "http", "https"], SURPLUS))
def test_a_connection_with_surplus_bytes_is_not_reused(
    ask: Ask, server_tls: ssl.SSLContext, proxy: str, name: str
) -> None:
    surplus = SURPLUS[name]
    pages = [responses(lambda _, number=number: reply(number) + surplus) for number in (1, 2, 3)]  # type: ignore[misc]
    with (
        RawServer(*pages, tls=None if proxy == "no" else server_tls) as service,
        RawServer(tunnel(service.url), tls=server_tls if proxy == "https" else None) as to,
    ):
        settings = {} if proxy == "no" else {"proxy": to.url, "verify": False}
        asked = ask(service.url, ("list_members", {"limit": 1}), **settings)
    assert [row.id for row in asked.result] == ["1", "2", "3"]
    assert service.connections == 3


def test_other_tasks_run_while_a_large_body_arrives(set_connection: SetConnection) -> None:
    def play(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"Content-Length: 20000008\r\n\r\n")
        for _ in range(20):
            connection.sendall(b" " * 1_000_000)
            time.sleep(0.03)
        connection.sendall(b'{"id":7}')

    async def read() -> int:
        turns = 0
        async with WorkspaceAsyncHook() as hook:
            asked = asyncio.ensure_future(hook.get_dashboard(dashboard_id=7))
            while not asked.done():
                await asyncio.sleep(0.01)
                turns += 1
            assert (await asked).id == 7
        return turns

    with RawServer(Scene(handler=play)) as service:
        set_connection(service.url)
        assert asyncio.run(read()) > 20


# Lists


def test_rows_are_read_page_by_page(ask: Ask) -> None:
    pages = [
        answer(200, {"next": "https://other.example/?offset=9", "results": [{"id": "a"}, {"id": "b"}]}, Set_Cookie="a"),
        answer(503),
        answer(200, {"next": None, "results": [{"id": "c"}]}),
    ]
    with RawServer(*pages) as service:
        asked = ask(service.url, LIST)
    assert [row.id for row in asked.result] == ["a", "b", "c"]
    path = "/api/organizations/o/members/?limit=2&offset="
    assert [request.target for request in service.requests] == [f"{path}0", f"{path}2", f"{path}2"]
    assert not any("cookie" in request.headers for request in service.requests)


# Trace spans


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Enable tracing as Airflow does, for the rest of the process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def test_a_call_has_one_span_with_its_retries_and_its_error_but_no_secret(
    ask: Ask, exporter: InMemorySpanExporter
) -> None:
    exporter.clear()
    with RawServer(RESET_AFTER_READING, answer(200, {"id": 7}), answer(401, {"detail": f"{KEY} is wrong"})) as service:
        ask(service.url, READ)
        ask(service.url, CREATE)
    found, refused = exporter.get_finished_spans()
    assert (found.name, dict(found.attributes or {})) == ("workspace GetDashboard", {
        "http.request.method": "GET",
        "url.path": "/api/environments/1/dashboards/7/",
        "workspace.outcome": "applied",
        "http.request.resend_count": 1,
    })  # fmt: skip
    assert refused.status.status_code is trace.StatusCode.ERROR
    assert (refused.attributes or {})["workspace.outcome"] == "rejected"
    assert KEY not in refused.to_json()
