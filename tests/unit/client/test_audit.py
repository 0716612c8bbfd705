"""Audit lines of writes and trace spans of calls."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.operation import Operation
from airflow_provider_workspace.client.aio import WorkspaceAsyncClient
from airflow_provider_workspace.client.sync import WorkspaceClient
from airflow_provider_workspace.errors import WorkspaceRequestError
from airflow_provider_workspace.hooks.connection_settings import read_settings
from tests.raw_server import RESET_AFTER_READING, RawServer, answer

KEY = "phx_key_of_the_audit_test"
PROJECT = {"id": 7, "name": "Northwind", "api_token": "phc_token"}
Send = Callable[[str, Operation[Any]], Any]


def by_requests(url: str, op: Operation[Any]) -> Any:
    settings = read_settings(host=url, password=KEY, extra=None, source="a test")
    with WorkspaceClient(settings, sleep=lambda _: None) as client:
        return client.send(op)


def by_httpx(url: str, op: Operation[Any]) -> Any:
    async def sleep(_: float) -> None:
        """Do not wait."""

    async def send() -> Any:
        settings = read_settings(host=url, password=KEY, extra=None, source="a test")
        async with WorkspaceAsyncClient(settings, sleep=sleep) as client:
            return await client.send(op)

    return asyncio.run(send())


@pytest.fixture(params=[by_requests, by_httpx], ids=["requests", "httpx"])
def send(request: pytest.FixtureRequest) -> Send:
    sender: Send = request.param
    return sender


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """Lines of the audit log."""
    kept: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(record.getMessage())

    logger, handler = logging.getLogger("airflow_provider_workspace.audit"), Keep()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield kept
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Enable tracing as Airflow does, for the rest of the process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def span_of(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


CREATE = ops.CreateProject(organization_id="o", name="Northwind")
PAUSE = ops.PauseBatchExport(organization_id="o", batch_export_id="0190c0de-0000-4000-8000-0000000000e1")


def test_a_write_is_logged(send: Send, lines: list[str]) -> None:
    with RawServer(answer(status=201, body=PROJECT, X_Request_Id="req 42")) as service:
        send(service.url, CREATE)
    (line,) = lines
    assert re.fullmatch(
        r"operation=CreateProject outcome=applied rows=1 attempts=1 seconds=\d+\.\d{3} request_id=req42 "
        r"target=/api/organizations/o/projects/",
        line,
    )


def test_the_audit_line_has_no_secret_echoed_by_the_service(send: Send, lines: list[str]) -> None:
    create = ops.CreateProject(
        organization_id="o", name="Northwind", slack_incoming_webhook="https://hook.example.com/s3"
    )
    with RawServer(answer(status=201, body=PROJECT, X_Request_Id=f"{KEY}-{create.slack_incoming_webhook}")) as service:
        send(service.url, create)
    assert " request_id=***-*** " in lines[0]


def test_the_audit_line_counts_the_rows_of_a_bulk_request(send: Send, lines: list[str]) -> None:
    rows = [{"target_email": f"{name}@example.com"} for name in ("ada", "lin", "joe")]
    with RawServer(answer(status=201, body=[])) as service:
        send(service.url, ops.CreateInvites(organization_id="o", invites=rows))
    assert "operation=CreateInvites outcome=applied rows=3 attempts=1" in lines[0]


def test_the_audit_line_counts_attempts(send: Send, lines: list[str]) -> None:
    with RawServer(RESET_AFTER_READING, RESET_AFTER_READING, answer(body={"paused": True})) as service:
        send(service.url, PAUSE)
    (line,) = lines
    assert "operation=PauseBatchExport" in line
    assert "outcome=applied rows=1 attempts=3" in line


def test_a_write_with_unknown_outcome_is_logged(send: Send, lines: list[str]) -> None:
    with RawServer(RESET_AFTER_READING) as service, pytest.raises(WorkspaceRequestError):
        send(service.url, CREATE)
    (line,) = lines
    assert "outcome=unknown rows=1 attempts=1" in line
    assert KEY not in line


def test_a_refused_write_is_logged(send: Send, lines: list[str]) -> None:
    with RawServer(answer(status=403, body={"detail": "no"})) as service, pytest.raises(WorkspaceRequestError):
        send(service.url, CREATE)
    assert "outcome=rejected rows=1 attempts=1" in lines[0]


def test_a_read_is_not_logged(send: Send, lines: list[str]) -> None:
    with RawServer(answer(body=PROJECT)) as service:
        send(service.url, ops.GetProject(organization_id="o", project_id=7))
    assert not lines


def test_a_call_has_a_trace_span(send: Send, exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    with RawServer(RESET_AFTER_READING, answer(body=PROJECT)) as service:
        send(service.url, ops.GetProject(organization_id="o", project_id=7))
    span = span_of(exporter)
    assert span.name == "workspace GetProject"
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "url.path": "/api/organizations/o/projects/7/",
        "workspace.outcome": "applied",
        "http.request.resend_count": 1,
    }


def test_the_span_of_a_failure_has_the_error_and_no_secret(send: Send, exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    with (
        RawServer(answer(status=401, body={"detail": f"{KEY} is wrong"})) as service,
        pytest.raises(WorkspaceRequestError),
    ):
        send(service.url, CREATE)
    span = span_of(exporter)
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.attributes or {})["workspace.outcome"] == "rejected"
    assert KEY not in span.to_json()
