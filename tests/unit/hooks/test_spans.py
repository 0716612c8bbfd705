"""Trace spans of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.raw_server import RESET_AFTER_READING, RawServer, answer
from tests.unit.hooks.conftest import CREATE, KEY, READ

if TYPE_CHECKING:
    from tests.unit.hooks.conftest import Ask


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Enable tracing as Airflow does, for the rest of the process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def test_a_call_has_one_span_with_its_retries(ask: Ask, exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    with RawServer(RESET_AFTER_READING, answer(200, {"id": 7})) as service:
        ask(service.url, READ)
    (span,) = exporter.get_finished_spans()
    assert span.name == "workspace GetDashboard"
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "url.path": "/api/environments/1/dashboards/7/",
        "workspace.outcome": "applied",
        "http.request.resend_count": 1,
    }


def test_the_span_of_a_failure_has_the_error_and_no_secret(ask: Ask, exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    with RawServer(answer(401, {"detail": f"{KEY} is wrong"})) as service:
        ask(service.url, CREATE)
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.attributes or {})["workspace.outcome"] == "rejected"
    assert KEY not in span.to_json()
