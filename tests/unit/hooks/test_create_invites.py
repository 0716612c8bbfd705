"""Inviting many people, from end to end, in each of the sandbox's ways to answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError, WorkspaceRateLimitError
from airflow_provider_workspace.procedures.bulk_invites import WorkspaceInvitesIncompleteError

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.unit.hooks.conftest import Call

Connect = Callable[..., None]

every_profile = pytest.mark.parametrize("sandbox", ["lenient", "strict", "live"], indirect=True)
live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


def people(count: int) -> list[dict[str, Any]]:
    return [{"email": f"P{number}@Example.org", "first_name": f"P {number}"} for number in range(1, count + 1)]


def mails(sandbox: SandboxServer) -> Counter[str]:
    return Counter(effect["target"] for effect in sandbox.effects("create_invite"))


def statuses(report: Any) -> dict[str, int]:
    return {name: count for name, count in report.counts.items() if count and name != "rows"}


def writes(sandbox: SandboxServer) -> list[Any]:
    return [entry["body"] for entry in sandbox.requests() if entry["method"] == "POST"]


@every_profile
def test_everybody_is_invited_once(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect(page_size=10)
    rows = [
        *people(45),
        "liv.invited@example.com",
        "Grace.Analyst@example.com",
        "exp.ired@example.com",
        "p1@example.org",
    ]
    report = call("create_invites", rows)
    assert statuses(report) == {"invited": 46, "already_invited": 1, "member": 1, "duplicate": 1}
    sent = sorted(writes(sandbox), key=lambda body: (-len(body), body[0]["target_email"]))
    assert [len(body) for body in sent] == [20, 20, 6]
    assert sent[0][0] == {"target_email": "P1@example.org", "first_name": "P 1"}
    mailed = [*(f"p{n}@example.org" for n in range(1, 46)), "exp.ired@example.com"]
    assert Counter(address.lower() for address in mails(sandbox).elements()) == Counter(mailed)

    again = call("create_invites", rows)
    assert statuses(again) == {"already_invited": 47, "member": 1, "duplicate": 1}
    assert len(writes(sandbox)) == 3


@every_profile
def test_the_report_has_the_ids_that_the_service_returns(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    (entry,) = call("create_invites", ["p1@example.org"]).entries
    told = sandbox.control("GET", "health")["profile"] == "live"
    (effect,) = sandbox.effects("create_invite")
    assert entry.invite_id == (effect["detail"]["invite_id"] if told else None)


@pytest.mark.parametrize("sandbox", ["lenient", "strict"], indirect=True)
def test_object_body_sends_one_invite_per_request(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect(bulk_invite_body="object")
    assert statuses(call("create_invites", people(3))) == {"invited": 3}
    assert sorted(body["first_name"] for body in writes(sandbox)) == ["P 1", "P 2", "P 3"]


@every_profile
def test_an_invalid_row_fails_before_anything_is_sent(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    with pytest.raises(WorkspaceInputError, match=r"row 2 \(p2@example\): 'example' is not a domain"):
        call("create_invites", ["p1@example.org", "p2@example", "p3@example.org"])
    assert sandbox.requests() == []
    report = call("create_invites", ["p1@example.org", "p2@example", "p3@example.org"], on_invalid="skip")
    assert statuses(report) == {"invited": 2, "invalid": 1}


@live
def test_a_refused_row_fails_alone(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect()
    rows = people(10)
    rows[6]["level"] = 7
    with pytest.raises(WorkspaceInvitesIncompleteError) as error:
        call("create_invites", rows)
    assert str(error.value) == (
        'The service refused 1 of 10 rows; the others are done. row 7 (P7@example.org): "7" is not a valid choice.'
    )
    assert statuses(error.value.report) == {"invited": 9, "failed": 1}
    assert set(mails(sandbox).values()) == {1}


@live
def test_a_rate_limited_run_is_continued_later(call: Call, connect: Connect, sandbox: SandboxServer) -> None:
    connect(max_concurrency=1)
    with pytest.raises(WorkspaceInvitesIncompleteError) as error:
        call("create_invites", people(90))
    assert isinstance(error.value.cause, WorkspaceRateLimitError)
    assert error.value.cause.retry_after
    assert not error.value.permanent
    assert statuses(error.value.report) == {"invited": 40, "not_sent": 50}
    # Where the rate is used up, the other chunks are not even tried.
    assert len([row for row in sandbox.requests() if row["status"] == 429]) == 1

    sandbox.advance_clock(3600)
    assert statuses(call("create_invites", people(90))) == {"already_invited": 40, "invited": 50}
    assert set(mails(sandbox).values()) == {1}
