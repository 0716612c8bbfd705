"""``invite_all`` against a service in memory: lost responses, refusals, limits and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.api.models import Invite, Member, Page, User
from airflow_provider_workspace.api.operations import CreateInvites, ListInvites, ListMembers
from airflow_provider_workspace.api.procedure import Pause, Send, leave_at_long_pause
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.errors import (
    WorkspaceAuthenticationError,
    WorkspaceBadRequestError,
    WorkspaceConnectionError,
    WorkspaceInputError,
    WorkspaceOutcomeUnknownError,
    WorkspacePermissionError,
    WorkspaceRateLimitError,
    WorkspaceRequestError,
    WorkspaceStatusError,
)
from airflow_provider_workspace.procedures.bulk_invites import INVITING, invite_all
from airflow_provider_workspace.procedures.invite_rows import MAX_REFUSALS
from airflow_provider_workspace.procedures.invites_report import (
    STATUSES,
    InvitesReport,
    WorkspaceInvitesIncompleteError,
)
from airflow_provider_workspace.procedures.roster import Entry
from airflow_provider_workspace.procedures.suspension import MAX_READINGS
from tests.unit.procedures.drive import Interrupted, drive, interrupt, send_all

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation


def lost() -> WorkspaceOutcomeUnknownError:
    """Return the error of a client for a lost response that the caller looks up."""
    error = WorkspaceOutcomeUnknownError("no answer", outcome="unknown")
    error.caller_looks_up = True
    return error


OWNER = Member(user=User(email="owner@example.com"))


class Service:
    """
    An organization in memory.

    :param faults: the outcome of each bulk request. All rows are invited: ``ok``, ``quiet`` (empty response), ``lost``
        (no response). None is invited: ``vanished`` (no response), ``nothing`` (empty response), ``denied``,
        ``limited`` (429), ``forbidden`` (403). Half are invited: ``half`` (400). The response lacks one invite:
        ``short`` (which is made) and ``liar`` (which is not). One invite is not made, though the response has an entry
        for each row: ``statuses``, ``unnamed``, ``repeats``
    :param bad: refused addresses; a request with one of them is refused as a whole
    :param status: status of that refusal
    :param names_row: whether the refusal names the row
    """

    def __init__(
        self,
        *,
        faults: Iterable[str] = (),
        bad: Iterable[str] = (),
        members: Iterable[str] = (),
        expired: str = "",
        status: int = 400,
        names_row: bool = False,
    ) -> None:
        self.status = status
        self.names_row = names_row
        self.faults = list(faults)
        self.bad = set(bad)
        self.members = [Member(user=User(email=email)) for email in members]
        self.invites = [Invite(id="old", target_email=expired, is_expired=True)] if expired else []
        self.mailed: Counter[str] = Counter()
        self.sent: list[int] = []
        self.refused: Counter[str] = Counter()
        self.lists = 0
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
        self.lists += not op.offset
        rows: list[Any] = self.invites if isinstance(op, ListInvites) else [*self.members, OWNER, Member(user=None)]
        start, limit = op.offset or 0, op.limit or 100
        following = "more" if start + limit < len(rows) else None
        return Page[Any](count=len(rows), next=following, results=rows[start : start + limit])

    def create(self, emails: list[str], fault: str) -> Any:
        if fault == "denied":
            return WorkspaceAuthenticationError("the key is revoked", status=401, outcome="rejected")
        if fault == "vanished":
            return lost()
        if fault == "limited":
            return WorkspaceRateLimitError("429", status=429, retry_after=1.0, retryable=True, outcome="rejected")
        if fault == "forbidden":
            return WorkspacePermissionError("403", status=403, detail="missing scope", outcome="rejected")
        if self.bad & set(emails):
            self.refused.update(emails)
            number = min(emails.index(email) for email in self.bad & set(emails))
            return WorkspaceStatusError(
                str(self.status),
                status=self.status,
                detail="no such mailbox",
                attr=f"{number}__target_email" if self.names_row else None,
                outcome="rejected",
            )
        if fault == "nothing":
            return []
        if fault == "liar":
            return self.invite(emails[:-1])
        if fault in ("statuses", "unnamed", "repeats"):
            made = self.invite(emails[:-1])
            entries = [Invite(target_email=email if fault == "statuses" else None) for email in emails]
            return [*made, made[0]] if fault == "repeats" else entries
        if fault == "half":
            self.invite(emails[: len(emails) // 2])
            return WorkspaceBadRequestError("400", status=400, outcome="rejected")
        made = self.invite(emails)
        if fault == "lost":
            return lost()
        return [] if fault == "quiet" else made[:-1] if fault == "short" else made

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
    return drive(steps, service.answer, service.pauses, settings.get("max_concurrency", 4))


def people(count: int) -> list[str]:
    return [f"p{number}@example.com" for number in range(1, count + 1)]


def statuses(report: InvitesReport) -> dict[str, int]:
    return {status: count for status, count in report.counts.items() if count and status != "rows"}


# Success


def test_everybody_is_invited_in_chunks() -> None:
    service = Service()
    report = run(service, people(10))
    assert service.sent == [4, 4, 2]
    assert service.mailed == Counter(people(10))
    assert report.entries[9] == Entry(10, "p10@example.com", "invited", "", "id of p10@example.com")
    assert report.counts == {"rows": 10, **dict.fromkeys(STATUSES, 0), "invited": 10}


def test_an_empty_response_is_checked_in_the_list() -> None:
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
    assert told[:4] == [(0, 340), (0, 340), (4, 340), (12, 340)]  # one request until one succeeds, then several at once
    assert told[-1] == (340, 340)
    assert told == sorted(told)


def test_invalid_rows_fail_before_anything_is_sent() -> None:
    service = Service()
    with pytest.raises(WorkspaceInputError) as error:
        run(service, ["", "ok@example.com", *["wrong"] * 21])
    assert str(error.value).startswith(
        "Correct the invalid rows (22), or leave them out with on_invalid='skip': "
        "row 1 (no address): field 'target_email' is required; "
        "row 3 (wrong): the address needs exactly one @; row 4"
    )
    assert str(error.value).endswith("; and 2 more. Nothing was sent.")
    assert service.sent == []


def test_on_invalid_accepts_only_fail_and_skip() -> None:
    with pytest.raises(WorkspaceInputError, match="on_invalid is 'ignore'; expected 'fail' or 'skip'"):
        run(Service(), people(1), on_invalid="ignore")


# Lost responses


def test_applied_invites_are_not_sent_again_after_a_lost_response() -> None:
    service = Service(faults=["lost"])
    report = run(service, people(4))
    assert service.sent == [4]
    assert {entry.reason for entry in report.entries} == {"found in the list, after the answer was lost or invalid"}
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


def test_bulk_invites_fail_if_every_response_is_lost() -> None:
    service = Service(faults=["vanished"] * 5)
    with pytest.raises(WorkspaceInvitesIncompleteError) as error:
        run(service, people(3))
    assert service.sent == [3] * 5
    assert str(error.value) == (
        "Not everybody was invited (3 rows: 3 unknown): no answer The next try sends only the missing invites."
    )
    assert {(entry.status, entry.reason) for entry in error.value.report.entries} == {("unknown", "no answer")}
    assert isinstance(error.value.cause, WorkspaceOutcomeUnknownError)
    assert not error.value.permanent


def test_the_report_has_unknown_rows_if_the_lists_cannot_be_read() -> None:
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


# Refusals


def test_a_refused_chunk_is_bisected_to_the_bad_row() -> None:
    service = Service(bad=["p3@example.com"])
    with pytest.raises(WorkspaceInvitesIncompleteError) as error:
        run(service, people(8), settings={"bulk_invite_limit": 8})
    assert service.sent == [8, 4, 4, 2, 2, 1, 1]
    assert str(error.value) == (
        "The service refused 1 of 8 rows; the others are done. row 3 (p3@example.com): no such mailbox."
    )
    assert statuses(error.value.report) == {"invited": 7, "failed": 1}
    assert error.value.permanent


def test_bad_rows_may_be_skipped() -> None:
    assert statuses(run(Service(bad=["p3@example.com"]), people(8), on_invalid="skip")) == {"invited": 7, "failed": 1}


def test_a_partly_applied_chunk_is_completed() -> None:
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


@pytest.mark.parametrize("status", [400, 403, 409, 422])
def test_a_row_named_by_the_service_is_sent_alone(status: int) -> None:
    service = Service(bad=["p6@example.com"], status=status, names_row=True)
    report = run(service, people(12), on_invalid="skip")
    assert service.sent == [4, 4, 4, 1, 3]
    assert statuses(report) == {"invited": 11, "failed": 1}
    assert report.entries[5] == Entry(6, "p6@example.com", "failed", "no such mailbox")


def test_a_forbidden_row_in_the_first_request_is_found() -> None:
    rows: list[Any] = [{"email": "p1@example.com", "level": 15}, *people(8)[1:]]
    service = Service(bad=["p1@example.com"], status=403)
    assert statuses(run(service, rows, on_invalid="skip")) == {"invited": 7, "failed": 1}
    assert service.mailed == Counter(people(8)[1:])
    assert service.sent[:4] == [4, 1, 1, 2], "two rows of the lowest level alone, and then the others"


def test_a_403_for_every_row_stops_after_two_single_rows() -> None:
    service = Service(faults=["forbidden"] * 9)
    with pytest.raises(WorkspaceInvitesIncompleteError, match="403") as error:
        run(service, people(12), on_invalid="skip")
    assert service.sent == [4, 1, 1]
    assert error.value.permanent


def test_many_consecutive_refusals_stop_bulk_invites() -> None:
    service = Service(bad=people(100))
    with pytest.raises(WorkspaceInvitesIncompleteError, match="400") as error:
        run(service, people(100), settings={"bulk_invite_limit": 20}, on_invalid="skip")
    assert len(service.sent) <= MAX_REFUSALS + 3
    assert sum(error.value.report.counts[status] for status in ("failed", "not_sent", "unknown")) == 100


def test_a_refused_row_is_not_sent_again_after_a_wait() -> None:
    service = Service(bad=["p1@example.com"])
    kept: dict[str, Any] = {}
    settings = Settings("http://127.0.0.1", "key", bulk_invite_limit=4, invites_per_hour=10)
    for _ in range(6):
        steps = invite_all(
            people(20),
            organization_id="o",
            settings=settings,
            clock=lambda: service.now,
            on_invalid="skip",
            kept=kept,
        )
        left = leave_at_long_pause(steps, 60.0, interrupt)
        try:
            report = drive(left, service.answer)
            break
        except Interrupted as pause:
            service.now += pause.args[0]
    assert statuses(report) == {"invited": 19, "failed": 1}
    assert service.mailed == Counter(people(20)[1:])
    assert service.refused["p1@example.com"] == 3
    assert not kept, "nothing is kept once the task is done"


# Responses that contradict the request


def test_an_invite_missing_from_the_response_is_looked_up() -> None:
    service = Service(faults=["short"])
    assert statuses(run(service, people(8))) == {"invited": 8}
    assert service.mailed == Counter(people(8))
    assert service.pauses == [0.5]


def test_an_invite_that_was_not_made_fails_and_is_not_sent_again() -> None:
    service = Service(faults=["liar", "nothing"])
    report = run(service, people(8), on_invalid="skip")
    assert statuses(report) == {"invited": 3, "failed": 5}
    assert report.entries[3].reason == "the service reported success, but does not list the invite"
    assert service.sent == [4, 4]
    assert 120 <= sum(service.pauses) <= 121


@pytest.mark.parametrize("fault", ["statuses", "unnamed", "repeats"])
def test_a_response_with_as_many_entries_as_rows_is_checked(fault: str) -> None:
    service = Service(faults=[fault])
    report = run(service, people(8), on_invalid="skip")
    assert statuses(report) == {"invited": 7, "failed": 1}
    assert service.mailed == Counter(people(8)) - Counter(["p4@example.com"])


def test_an_empty_response_does_not_count_as_invited() -> None:
    service = Service(faults=["nothing"])
    report = run(service, people(4), on_invalid="skip")
    assert statuses(report) == {"failed": 4}
    assert service.sent == [4]


def test_a_dry_run_sends_nothing() -> None:
    service = Service(members=["p1@example.com"])
    assert statuses(run(service, people(4), dry_run=True)) == {"member": 1, "planned": 3}
    assert service.sent == []


def test_a_refused_row_invited_by_others_counts_as_invited() -> None:
    service = Service(bad=["p1@example.com"], status=409)

    def invited_by_others(op: Operation[Any]) -> Any:
        answer = Service.answer(service, op)
        if service.refused and not service.mailed:
            service.invite(["p1@example.com"])
        return answer

    service.answer = invited_by_others  # type: ignore[method-assign]
    assert statuses(run(service, people(1))) == {"invited": 1}


def test_empty_responses_cost_one_read_if_the_list_is_complete() -> None:
    service = Service(faults=["quiet"] * 10)
    run(service, people(10))
    assert service.lists == 3


def test_unknown_rows_are_reported() -> None:
    service = Service(faults=["ok", "liar"])

    def unreadable_once_sent(op: Operation[Any]) -> Any:
        service.readable = not service.sent
        return Service.answer(service, op)

    service.answer = unreadable_once_sent  # type: ignore[method-assign]
    with pytest.raises(WorkspaceInvitesIncompleteError) as error:
        run(service, people(8))
    assert statuses(error.value.report) == {"invited": 7, "unknown": 1}


def test_half_of_a_chunk_is_sent_again_after_a_429() -> None:
    service = Service(bad=["p1@example.com"], faults=["ok", "limited", "ok", "limited"])
    assert statuses(run(service, people(4), on_invalid="skip")) == {"invited": 3, "failed": 1}
    assert service.mailed == Counter(people(4)[1:])


def test_half_of_a_chunk_waits_for_a_limit() -> None:
    service = Service(bad=["p4@example.com"])
    steps = invite_all(
        people(8),
        organization_id="o",
        settings=Settings("http://127.0.0.1", "key", bulk_invite_limit=4, invites_per_hour=5),
        clock=lambda: service.now,
        on_invalid="skip",
    )
    waited: list[float] = []
    step = next(steps)
    try:
        while True:
            if isinstance(step, Pause):
                service.now += step.seconds
                waited.append(step.seconds)
                step = steps.send([])
            else:
                step = steps.send(send_all(step, service.answer))
    except StopIteration as stop:
        report: InvitesReport = stop.value
    assert statuses(report) == {"invited": 7, "failed": 1}
    assert service.refused["p4@example.com"] == 3
    assert service.mailed == Counter([*people(3), *people(8)[4:]])
    assert min(waited) > 3000


def test_unknown_rows_are_looked_up_during_a_rate_limit() -> None:
    service = Service(faults=["ok", "lost", "limited"])

    def slow_list(op: Operation[Any]) -> Any:
        answer = Service.answer(service, op)
        if isinstance(op, ListInvites) and len(service.sent) == 3 and service.lists < 12:
            answer.results = [row for row in answer.results if row.target_email == "P1@EXAMPLE.COM"]
            answer.count, answer.next = len(answer.results), None
        return answer

    service.answer = slow_list  # type: ignore[method-assign]
    assert statuses(run(service, people(16))) == {"invited": 16}
    assert set(service.mailed.values()) == {1}


# Time


def test_other_rows_are_sent_while_some_are_unknown() -> None:
    service = Service(faults=["ok", "vanished"])
    run(service, people(40))
    assert service.sent[:11] == [4] * 10 + [4]
    assert service.mailed == Counter(people(40))
    assert 120 <= sum(service.pauses) <= 121


def test_a_suspended_process_reads_the_lists_again_before_it_sends() -> None:
    service = Service()

    def sleep(op: Operation[Any]) -> Any:
        if isinstance(op, CreateInvites) and len(service.sent) == 2:
            service.invite(people(40)[20:])  # another run
            service.now += 3600
        return Service.answer(service, op)

    service.answer = sleep  # type: ignore[method-assign]
    report = run(service, people(40))
    assert statuses(report) == {"invited": 20, "already_invited": 20}
    assert max(service.mailed.values()) == 1


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set_resolves_no_unknown_outcome(seconds: float) -> None:
    service = Service(faults=["vanished"])
    steps = [seconds]

    def take_effect_later(op: Operation[Any]) -> Any:
        if isinstance(op, ListInvites) and service.pauses and steps:
            service.now += steps.pop()
        if isinstance(op, ListInvites) and sum(service.pauses) >= 100 and not service.mailed:
            service.invite(people(3))
        return Service.answer(service, op)

    service.answer = take_effect_later  # type: ignore[method-assign]
    assert statuses(run(service, people(3))) == {"invited": 3}
    assert len(service.sent) == 1
    assert sum(service.pauses) < 130
    assert len(service.pauses) < 15


def test_a_clock_that_is_set_forward_during_a_pause_resolves_no_unknown_outcome() -> None:
    service = Service(faults=["vanished"])
    pauses: list[float] = []

    class Pauses(list[float]):
        def append(self, seconds: float) -> None:
            pauses.append(seconds)
            service.now += seconds + (40 if len(pauses) == 2 else 0)

    service.pauses = Pauses()

    def take_effect_later(op: Operation[Any]) -> Any:
        if isinstance(op, ListInvites) and sum(pauses) >= 100 and not service.mailed:
            service.invite(people(3))
        return Service.answer(service, op)

    service.answer = take_effect_later  # type: ignore[method-assign]
    assert statuses(run(service, people(3))) == {"invited": 3}
    assert len(service.sent) == 1


def test_a_process_suspended_while_reading_reads_again_a_few_times() -> None:
    service = Service()

    def sleep(op: Operation[Any]) -> Any:
        if isinstance(op, ListMembers):
            service.now += 3600
        return Service.answer(service, op)

    service.answer = sleep  # type: ignore[method-assign]
    assert statuses(run(service, people(4))) == {"invited": 4}
    assert service.lists == 2 * MAX_READINGS


class Notes:
    """The memory of a task."""

    def __init__(self, age: float | None) -> None:
        self.given = age
        self.begun = 0

    def age(self, what: str) -> float | None:
        assert what == INVITING
        return self.given

    def begin(self, what: str) -> None:
        assert what == INVITING
        self.begun += 1

    def forget(self) -> None:
        raise NotImplementedError

    def count_send(self) -> int:
        raise NotImplementedError

    def has_begun(self, what: str) -> bool:
        raise NotImplementedError


@pytest.mark.parametrize(("age", "pauses"), [(None, []), (20.0, [105.0]), (200.0, [])])
def test_a_retry_waits_for_the_invites_of_the_try_before(age: float | None, pauses: list[float]) -> None:
    service, memory = Service(), Notes(age)
    run(service, people(8), memory=memory)
    assert service.pauses == pauses
    assert memory.begun == 0, "the client calls the note, right before each attempt"


def test_sends_are_noted_every_few_seconds_and_after_a_lost_response() -> None:
    service, memory = Service(faults=["ok", "lost"]), Notes(None)
    steps = invite_all(
        people(12),
        organization_id="o",
        settings=Settings("http://127.0.0.1", "key", bulk_invite_limit=4),
        clock=lambda: service.now,
        memory=memory,
    )
    begun: list[int] = []
    step = next(steps)
    try:
        while True:
            if isinstance(step, Pause):
                step = steps.send([])
                continue
            assert isinstance(step, Send)
            if step.note is not None:
                step.note()
                step.note()
                begun.append(memory.begun)
            step = steps.send(send_all(step, service.answer))
    except StopIteration:
        assert begun == [1, 1]
        assert memory.begun == 2


# The report


def test_control_characters_are_removed_from_the_report() -> None:
    report = InvitesReport(rows=1)
    report.add(Entry(1, "p1@example.com\n25 rows: 25 invited", "failed", "no\x1b[2J"))
    assert len(report.table().splitlines()) == 2
    assert report.table().replace("\n", "").isprintable()


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
        "60 rows: 1 invited, 1 invalid, 58 left",
        f"  row 2      invalid          {'-':<40} no address",
    ]
    report.add(*(Entry(number, "x@b.de", "not_sent") for number in range(3, 61)))
    assert report.table().splitlines()[-1] == "  … and 9 more, all in the report"


# Random faults


@given(
    st.lists(st.sampled_from(["ok", "quiet", "lost", "vanished", "half", "denied"])),
    st.sets(st.sampled_from(people(12))),
    st.sampled_from([1, 3, 20]),
)
def test_nobody_is_invited_twice_and_the_report_is_correct(faults: list[str], bad: set[str], limit: int) -> None:
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
