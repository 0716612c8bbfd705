"""``create_invites`` of the hook, with each profile of the sandbox."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceInvitesUnknownError
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Call, Connect

every_profile = pytest.mark.parametrize("sandbox", ["strict", "live"], indirect=True)


def people(count: int) -> list[dict[str, Any]]:
    return [{"email": f"P{number}@Example.org", "first_name": f"P {number}"} for number in range(1, count + 1)]


def sent_invites(sandbox: SandboxServer) -> Counter[str]:
    return Counter(effect["target"] for effect in sandbox.effects("create_invite"))


def statuses(report: Any) -> dict[str, int]:
    return {name: count for name, count in report.counts.items() if count and name != "rows"}


def writes(sandbox: SandboxServer) -> list[Any]:
    return [entry["body"] for entry in sandbox.requests() if entry["method"] == "POST"]


@pytest.mark.usefixtures("no_waits")
@every_profile
def test_everybody_is_invited_once(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect(page_size=10)
    rows = [
        *people(45),
        "liv.invited@example.com",
        "Grace.Analyst@example.com",
        "exp.ired@example.com",
        {"E-Mail": "p1@example.org", "First name": "P 1"},
    ]
    report = call("create_invites", rows)
    assert statuses(report) == {"invited": 46, "already_invited": 1, "member": 1, "duplicate": 1}
    assert str(report) == "<InvitesReport: 49 rows: 46 invited, 1 already invited, 1 member, 1 duplicate>"
    sent = sorted(writes(sandbox), key=lambda body: (-len(body), body[0]["target_email"]))
    assert [len(body) for body in sent] == [20, 20, 6]
    assert sent[0][0] == {"target_email": "P1@example.org", "first_name": "P 1"}
    mailed = [*(f"p{n}@example.org" for n in range(1, 46)), "exp.ired@example.com"]
    assert Counter(address.lower() for address in sent_invites(sandbox).elements()) == Counter(mailed)

    again = call("create_invites", rows)
    assert statuses(again) == {"already_invited": 47, "member": 1, "duplicate": 1}
    assert len(writes(sandbox)) == 3


@every_profile
def test_the_report_has_the_ids_that_the_service_returns(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    (entry,) = call("create_invites", ["p1@example.org"]).entries
    told = sandbox.change_settings().live
    (effect,) = sandbox.effects("create_invite")
    assert entry.invite_id == (effect["detail"]["invite_id"] if told else None)


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_object_body_sends_one_invite_per_request(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect(bulk_invite_body="object")
    assert statuses(call("create_invites", people(3))) == {"invited": 3}
    assert sorted(body["first_name"] for body in writes(sandbox)) == ["P 1", "P 2", "P 3"]


# Concurrency


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_bulk_invites_are_sent_concurrently(
    call: Call, connect: Connect, sandbox: SandboxServer, log_lines: list[str]
) -> None:
    """A request is under way for at least the latency after it arrived."""
    connect()
    sandbox.change_settings(latency_ms=250, rate_limit=False)
    report = call("create_invites", people(200))
    assert report.counts["invited"] == 200
    assert len(sandbox.effects("create_invite")) == 200
    (progress,) = [line for line in log_lines if line.startswith("Invites: ")]
    assert progress.startswith("Invites: 200 of 200 (100 %), ")
    sent = [entry for entry in sandbox.requests() if entry["operation"] == "create_invites"]
    times = [datetime.fromisoformat(entry["at"].replace("Z", "+00:00")).timestamp() for entry in sent]
    under_way = [sum(0 <= at - other < 0.25 for other in times) for at in times]
    assert 2 <= max(under_way) <= 4, under_way


def test_a_refusal_stops_the_remaining_requests(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    sandbox.inject("status_before", "create_invites", status=401, times=None, after=1)
    with pytest.raises(WorkspaceError, match="401") as failed:
        call("create_invites", people(200))
    assert sum("401" in entry.reason for entry in failed.value.report.entries) >= 20, "what was refused has its reason"
    again = pickle.loads(pickle.dumps(failed.value))  # noqa: S301 - written here, as a process pool does
    assert again.report.to_dict() == failed.value.report.to_dict()
    assert 2 <= len(writes(sandbox)) <= 5, "one that succeeds, then at most four at once"


def test_a_task_that_may_have_invited_somebody_is_not_retried(
    call: Call, connect: Connect, sandbox: SandboxServer
) -> None:
    """A hook has no memory: a retry that comes before the lists show the invites would send them twice."""
    connect(max_attempts=1)
    sandbox.inject("status_after", "create_invites", status=504)
    sandbox.inject("status_before", "list_invites", status=503, after=1, times=1)
    with pytest.raises(AirflowFailException, match="Wait for 120 s, then clear the task or run this again") as failed:
        call("create_invites", people(3))
    error = pickle.loads(pickle.dumps(failed.value))  # noqa: S301 - written here, as a process pool does
    assert isinstance(error, WorkspaceInvitesUnknownError)
    assert (error.permanent, error.report.counts["unknown"]) == (True, 3)
    assert str(error).startswith("[invites-incomplete] Not everybody was invited (3 rows: 3 unknown): ")
