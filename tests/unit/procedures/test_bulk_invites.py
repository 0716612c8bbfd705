"""Inviting many people once each: the generator is driven by hand against a service whose answers get lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.api.models import Invite, Member, Page, User
from airflow_provider_workspace.api.operations import CreateInvites, ListInvites, ListMembers
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.errors import (
    WorkspaceAuthenticationError,
    WorkspaceBadRequestError,
    WorkspaceConnectionError,
    WorkspaceInputError,
    WorkspaceOutcomeUnknownError,
    WorkspaceRequestError,
)
from airflow_provider_workspace.procedures.bulk_invites import (
    STATUSES,
    InvitesReport,
    WorkspaceInvitesIncompleteError,
    invite_all,
)
from airflow_provider_workspace.procedures.roster import Entry
from tests.unit.procedures.drive import drive

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation


def lost() -> WorkspaceOutcomeUnknownError:
    """The error of a client that was told that the procedure looks first."""
    error = WorkspaceOutcomeUnknownError("no answer", outcome="unknown")
    error.looks_first = True
    return error


class Service:
    """
    An organization in memory.

    :param faults: what happens to the bulk requests, one after the other: ``ok`` or ``quiet`` (an empty answer);
        ``lost`` (applied, no answer), ``vanished`` (not applied, no answer), ``half`` (half applied, 400), ``denied``
    :param bad: addresses that the service refuses, and all of a request for one of them
    """

    def __init__(
        self, *, faults: Iterable[str] = (), bad: Iterable[str] = (), members: Iterable[str] = (), expired: str = ""
    ) -> None:
        self.faults = list(faults)
        self.bad = set(bad)
        self.members = [Member(user=User(email=email)) for email in members]
        self.invites = [Invite(id="old", target_email=expired, is_expired=True)] if expired else []
        self.mailed: Counter[str] = Counter()
        self.sent: list[int] = []
        self.readable = True
        self.now = 1_800_000_000.0
        self.pauses: list[float] = []

    def answer(self, op: Operation[Any]) -> Any:
        if isinstance(op, CreateInvites):
            self.sent.append(len(op.invites))
            return self.create([row.target_email for row in op.invites], self.faults.pop(0) if self.faults else "ok")
        if not self.readable:
            return WorkspaceConnectionError("the list is out of reach", outcome="not_sent")
        assert isinstance(op, ListInvites | ListMembers)
        rows: list[Any] = self.invites if isinstance(op, ListInvites) else [*self.members, Member(user=None)]
        start, limit = op.offset or 0, op.limit or 100
        following = "more" if start + limit < len(rows) else None
        return Page[Any](count=len(rows), next=following, results=rows[start : start + limit])

    def create(self, emails: list[str], fault: str) -> Any:
        if fault == "denied":
            return WorkspaceAuthenticationError("the key is revoked", status=401, outcome="rejected")
        if fault == "vanished":
            return lost()
        if self.bad & set(emails):
            return WorkspaceBadRequestError("400", status=400, detail="no such mailbox", outcome="rejected")
        if fault == "half":
            self.invite(emails[: len(emails) // 2])
            return WorkspaceBadRequestError("400", status=400, outcome="rejected")
        made = self.invite(emails)
        if fault == "lost":
            return lost()
        return [] if fault == "quiet" else made

    def invite(self, emails: list[str]) -> list[Invite]:
        self.mailed.update(emails)
        made = [Invite(id=f"id of {email}", target_email=email.upper(), is_expired=False) for email in emails]
        self.invites += made
        return made


def run(service: Service, rows: Iterable[Any], **options: Any) -> InvitesReport:
    settings = {"bulk_invite_limit": 4, "page_size": 3, **options.pop("settings", {})}
    steps = invite_all(
        rows,
        organization_id="o",
        settings=Settings("http://127.0.0.1", "key", **settings),
        clock=lambda: service.now,
        **options,
    )
    return drive(steps, service.answer, service.pauses)


def people(count: int) -> list[str]:
    return [f"p{number}@example.com" for number in range(1, count + 1)]


def statuses(report: InvitesReport) -> dict[str, int]:
    return {status: count for status, count in report.counts.items() if count and status != "rows"}


# When all goes well


def test_everybody_is_invited_in_chunks() -> None:
    service = Service()
    report = run(service, people(10))
    assert service.sent == [4, 4, 2]
    assert service.mailed == Counter(people(10))
    assert report.entries[9] == Entry(10, "p10@example.com", "invited", "", "id of p10@example.com")
    assert report.counts == {"rows": 10, **dict.fromkeys(STATUSES, 0), "invited": 10}


def test_an_empty_answer_counts_as_invited() -> None:
    report = run(Service(faults=["quiet"]), people(2))
    assert report.entries == [Entry(n, f"p{n}@example.com", "invited") for n in (1, 2)]


def test_members_and_invited_people_are_left_out() -> None:
    service = Service(members=["Member@example.com"], expired="expired@example.com")
    service.invite(["living@example.com"])
    rows = ["member@example.com", "living@example.com", "expired@example.com", "EXPIRED@example.com", "wrong"]
    report = run(service, rows, on_invalid="skip")
    assert [(entry.status, entry.reason) for entry in report.entries] == [
        ("member", "is a member already"),
        ("already_invited", "holds an invite that has not expired"),
        ("invited", ""),
        ("duplicate", "same address as row 3"),
        ("invalid", "the address needs exactly one @"),
    ]
    assert service.mailed == Counter(["living@example.com", "expired@example.com"])


def test_bulk_invites_are_idempotent() -> None:
    service = Service()
    run(service, people(10))
    assert statuses(run(service, people(10))) == {"already_invited": 10}
    assert service.mailed == Counter(people(10))


def test_an_empty_list_sends_no_request() -> None:
    service = Service()
    service.readable = False
    assert run(service, []).summary() == "0 rows: nothing to do"


def test_object_body_sends_one_invite_per_request() -> None:
    service = Service()
    run(service, people(3), settings={"bulk_invite_body": "object"})
    assert service.sent == [1, 1, 1]


def test_progress_is_reported_per_chunk() -> None:
    told: list[tuple[int, int]] = []
    run(Service(faults=["lost", "vanished"]), people(340), progress=lambda *numbers: told.append(numbers))
    assert told[:4] == [(0, 340), (0, 340), (4, 340), (12, 340)]  # one request until one succeeds, and then more
    assert told[-1] == (340, 340)
    assert told == sorted(told)


def test_invalid_rows_fail_before_anything_is_sent() -> None:
    service = Service()
    with pytest.raises(WorkspaceInputError) as error:
        run(service, ["", "ok@example.com", *["wrong"] * 21])
    assert str(error.value).startswith(
        "22 of the rows are wrong: row 1 (no address): field 'target_email' is required; "
        "row 3 (wrong): the address needs exactly one @; row 4"
    )
    assert str(error.value).endswith(
        "; and 2 more. Correct them, or leave them out with on_invalid='skip'. Nothing was sent."
    )
    assert service.sent == []


def test_on_invalid_accepts_only_fail_and_skip() -> None:
    with pytest.raises(WorkspaceInputError, match="on_invalid is 'ignore'; expected 'fail' or 'skip'"):
        run(Service(), people(1), on_invalid="ignore")


# When answers get lost


def test_applied_invites_are_not_sent_again_after_a_lost_answer() -> None:
    service = Service(faults=["lost"])
    report = run(service, people(4))
    assert service.sent == [4]
    assert {entry.reason for entry in report.entries} == {"found when reading back, after an answer was lost or bad"}
    assert statuses(report) == {"invited": 4}


def test_invites_that_were_not_applied_are_sent_again() -> None:
    service = Service(faults=["vanished", "vanished"])
    assert statuses(run(service, people(4))) == {"invited": 4}
    assert service.sent == [4, 4, 4]
    assert service.mailed == Counter(people(4))


def test_a_person_who_joins_meanwhile_counts_as_member() -> None:
    service = Service(faults=["lost"])

    def joined(op: Operation[Any]) -> Any:
        result = Service.answer(service, op)
        if service.sent:
            service.invites, service.members = [], [Member(user=User(email=email)) for email in people(2)]
        return result

    service.answer = joined  # type: ignore[method-assign]
    assert statuses(run(service, people(2))) == {"member": 2}


def test_gives_up_when_every_answer_is_lost() -> None:
    service = Service(faults=["vanished"] * 5)
    with pytest.raises(WorkspaceInvitesIncompleteError) as error:
        run(service, people(3))
    assert service.sent == [3] * 5
    assert str(error.value) == (
        "Not everybody was invited (3 rows: 3 unknown): no answer The next try sends only what is missing."
    )
    assert {(entry.status, entry.reason) for entry in error.value.report.entries} == {("unknown", "no answer")}
    assert isinstance(error.value.cause, WorkspaceOutcomeUnknownError)
    assert not error.value.permanent


def test_when_reading_back_fails_the_report_says_what_is_unknown() -> None:
    service = Service(faults=["ok", "lost", "half"])

    def unreadable_once_sent(op: Operation[Any]) -> Any:
        service.readable = not service.sent
        return Service.answer(service, op)

    service.answer = unreadable_once_sent  # type: ignore[method-assign]
    with pytest.raises(WorkspaceInvitesIncompleteError, match="the list is out of reach") as error:
        run(service, people(10))
    assert statuses(error.value.report) == {"invited": 4, "unknown": 6}


def test_nothing_is_sent_if_members_cannot_be_read() -> None:
    service = Service()
    service.readable = False
    with pytest.raises(WorkspaceConnectionError, match="the list is out of reach"):
        run(service, people(1))
    assert service.sent == []


# When the service refuses


def test_a_refused_chunk_is_bisected_to_the_bad_row() -> None:
    service = Service(bad=["p3@example.com"])
    with pytest.raises(WorkspaceInvitesIncompleteError) as error:
        run(service, people(8), settings={"bulk_invite_limit": 8})
    assert service.sent == [8, 4, 4, 2, 2, 1, 1]
    assert str(error.value) == (
        "The service refused 1 of 8 rows, the others are done. row 3 (p3@example.com): no such mailbox."
    )
    assert statuses(error.value.report) == {"invited": 7, "failed": 1}
    assert error.value.permanent


def test_bad_rows_may_be_skipped() -> None:
    assert statuses(run(Service(bad=["p3@example.com"]), people(8), on_invalid="skip")) == {"invited": 7, "failed": 1}


def test_a_chunk_that_is_refused_half_way_is_completed() -> None:
    service = Service(faults=["half"])
    assert statuses(run(service, people(4))) == {"invited": 4}
    assert service.mailed == Counter(people(4))
    assert service.sent == [4, 1, 1]


def test_a_refusal_without_details_reports_the_status() -> None:
    service = Service(faults=["half"])
    report = run(service, people(1), on_invalid="skip")
    assert report.entries == [Entry(1, "p1@example.com", "failed", "400")]


def test_a_revoked_key_stops_bulk_invites() -> None:
    service = Service(faults=["ok", "ok", "ok", "denied"])
    with pytest.raises(WorkspaceInvitesIncompleteError, match="the key is revoked") as error:
        run(service, people(20), settings={"max_concurrency": 1})
    assert statuses(error.value.report) == {"invited": 12, "not_sent": 8}
    assert [entry.reason for entry in error.value.report.entries[12:]] == ["the key is revoked"] * 4 + [
        "an earlier request failed"
    ] * 4
    assert error.value.permanent
    assert error.value.__cause__ is error.value.cause


# The report


def test_the_report_is_plain_json_and_a_table() -> None:
    report = InvitesReport(60)
    report.add(Entry(2, "", "invalid", "no address"), Entry(1, "a@b.de", "invited", "", "i1"))
    assert report.to_dict()["counts"]["invited"] == 1
    assert report.to_dict()["addresses"][0] == {
        "row": 1,
        "email": "a@b.de",
        "status": "invited",
        "reason": "",
        "invite_id": "i1",
    }
    assert report.table().splitlines() == [
        "60 rows: 1 invited, 1 invalid",
        f"  row 2      invalid          {'-':<40} no address",
    ]
    report.add(*(Entry(number, "x@b.de", "not_sent") for number in range(3, 61)))
    assert report.table().splitlines()[-1] == "  … and 9 more, all in the report"


# Whatever happens


@given(
    st.lists(st.sampled_from(["ok", "quiet", "lost", "vanished", "half", "denied"])),
    st.sets(st.sampled_from(people(12))),
    st.sampled_from([1, 3, 20]),
)
def test_nobody_is_invited_twice_and_the_report_is_right(faults: list[str], bad: set[str], limit: int) -> None:
    service = Service(faults=faults, bad=bad)
    try:
        report = run(service, people(12), settings={"bulk_invite_limit": limit}, on_invalid="skip")
    except WorkspaceInvitesIncompleteError as error:
        report = error.report
        assert isinstance(error.cause, WorkspaceRequestError)  # noqa: PT017 - it need not end so
    assert set(service.mailed.values()) <= {1}
    assert [entry.row for entry in report.entries] == list(range(1, 13))
    for entry in report.entries:
        assert entry.status in ("invited", "failed", "unknown", "not_sent")
        assert entry.status == "unknown" or (entry.email in service.mailed) == (entry.status == "invited")
