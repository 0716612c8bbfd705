"""Bulk invites, several requests at once."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.procedures.bulk_invites import WorkspaceInvitesIncompleteError

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect
    from tests.unit.hooks.conftest import Call

PEOPLE = [f"person-{number}@example.com" for number in range(200)]


@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_bulk_invites_are_sent_concurrently(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    """Ten requests, up to four at a time, take four times as long as one, and the lists a few times more."""
    connect()
    sandbox.change_settings(latency_ms=600)
    began = time.monotonic()
    report = call("create_invites", PEOPLE)
    took = time.monotonic() - began
    assert report.counts["invited"] == 200
    assert len(sandbox.effects("create_invite")) == 200
    assert took < 0.6 * 10, "they went out one after the other"


@pytest.mark.parametrize("sandbox", ["lenient"], indirect=True)
def test_429_pauses_all_concurrent_requests(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    sandbox.inject("rate_limit", "create_invites", seconds=0.3, times=1, after=2)
    report = call("create_invites", PEOPLE)
    assert report.counts["invited"] == 200
    sent = [entry["status"] for entry in sandbox.requests() if entry["operation"] == "create_invites"]
    assert sent.count(429) == 1
    assert len(sandbox.effects("create_invite")) == 200


def test_a_refusal_stops_the_remaining_requests(connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    sandbox.inject("status_before", "create_invites", status=403, times=None)
    with closing(WorkspaceHook()) as hook, pytest.raises(WorkspaceInvitesIncompleteError, match="403"):
        hook.create_invites(PEOPLE)
    sent = [entry for entry in sandbox.requests() if entry["operation"] == "create_invites"]
    assert 1 <= len(sent) <= 4
