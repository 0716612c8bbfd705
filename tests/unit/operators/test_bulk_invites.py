"""Bulk invites whose requests are lost, refused or answered wrongly: nobody twice, nobody forgotten, a true report."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.version_compat import TaskDeferred
from tests.task_instance import TaskStore
from tests.worker_requests import before_each, is_bulk

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = [
    pytest.mark.parametrize("sandbox", ["live"], indirect=True),
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
]

PEOPLE = [f"p{number}@example.com" for number in range(1, 101)]


class Outcome(NamedTuple):
    """
    What came of a bulk invite.

    :param statuses: number of rows by status
    :param sizes: number of rows of each request
    :param error: why it ended early; ``None`` at success
    """

    report: Any
    statuses: dict[str, int]
    sizes: list[int]
    error: Any


Invite = Callable[..., Outcome]


@pytest.fixture
def invite(sandbox: SandboxServer, connect: Connect, clock: Clock) -> Invite:
    """Invite people in requests of four, one at a time; no wait takes time."""

    def run(rows: Any, on_invalid: Any = "skip", **extra: Any) -> Outcome:
        sandbox.change_settings(rate_limit=False)
        connect(**{"bulk_invite_limit": 4, "page_size": 3, "max_concurrency": 1, **extra})
        clock.waited.clear()
        error: Any = None
        with WorkspaceHook() as hook:
            try:
                report = hook.create_invites(rows, on_invalid=on_invalid)
            except WorkspaceError as ended:
                report, error = ended.report, ended  # type: ignore[attr-defined]
        counts = {status: count for status, count in report.counts.items() if count and status != "rows"}
        sent = [entry["body"] for entry in sandbox.requests() if entry["operation"] == "create_invites"]
        return Outcome(report, counts, [len(body) if isinstance(body, list) else 1 for body in sent], error)

    return run


def mailed(sandbox: SandboxServer) -> Counter[str]:
    """Return the number of invites by address."""
    return Counter(effect["target"] for effect in sandbox.effects("create_invite"))


class Case(NamedTuple):
    """
    A fault and its outcome.

    :param rows: number of people to invite
    :param seconds: sum of all waits
    :param says: part of the error
    """

    rows: int
    faults: list[tuple[str, dict[str, Any]]]
    statuses: dict[str, int]
    sizes: list[int]
    seconds: float = 0.0
    says: str = ""


def entries(*emails: str | None, **more: Any) -> list[dict[str, Any]]:
    """Return the entries of a response."""
    return [{"target_email": email, **more} for email in emails]


BAD = ("refuse_address", {"email": "p3@example.com"})
CASES = {
    "no fault": Case(10, [], {"invited": 10}, [4, 4, 2]),
    "an empty response": Case(4, [("say", {"body": []})], {"invited": 4}, [4]),
    "empty responses": Case(10, [("say", {"body": [], "times": None})], {"invited": 10}, [4, 4, 2]),
    "a lost response": Case(4, [("reset_after", {})], {"invited": 4}, [4], 0.5),
    "lost requests": Case(4, [("reset_before", {"times": 2})], {"invited": 4}, [4, 4, 4], 240),
    "always lost": Case(
        3,
        [("reset_before", {"times": None})],
        {"unknown": 3},
        [3] * 5,
        600,
        r"Not everybody was invited \(3 rows: 3 unknown\): .* The next try sends only the missing invites\.",
    ),
    "others go on while some are unknown": Case(40, [("reset_before", {"after": 1})], {"invited": 40}, [4] * 11, 120),
    "a bad row": Case(8, [BAD], {"invited": 7, "failed": 1}, [4, 2, 2, 1, 1, 4]),
    "a named row": Case(
        12,
        [("refuse_address", {"email": "p6@example.com", "names_row": True})],
        {"invited": 11, "failed": 1},
        [4, 4, 1, 3, 4],
    ),
    "the first rows may be forbidden": Case(
        8,
        [("refuse_address", {"email": "p1@example.com", "status": 403})],
        {"invited": 7, "failed": 1},
        [4, 1, 1, 2, 4],
    ),
    "partly applied and refused": Case(4, [("say", {"rows": 2, "status": 400, "body": {}})], {"invited": 4}, [4, 1, 1]),
    "refused at a rate limit": Case(
        4,
        [("rate_limit", {"after": 1, "seconds": 1}), BAD],
        {"invited": 3, "failed": 1},
        [4, 2, 2, 2, 1, 1],
        3,
    ),
    "unknown rows at a rate limit": Case(
        16,
        [
            ("reset_after", {"after": 1}),
            ("rate_limit", {"after": 2}),
            ("late_rows", {"operation": "list_invites", "seconds": 20}),
        ],
        {"invited": 16},
        [4, 4, 4, 2, 2, 2, 2],
        32,
    ),
    "a key that may not invite": Case(
        12, [("status_before", {"status": 403, "times": None})], {"failed": 2, "not_sent": 10}, [4, 1, 1], 0, "403"
    ),
    "a revoked key": Case(
        20, [("status_before", {"status": 401, "after": 3})], {"invited": 12, "not_sent": 8}, [4] * 4, 0, "401"
    ),
    "an invite missing from the response": Case(
        8, [("said_otherwise", {"how": "other_answer", "rows": 1})], {"invited": 8}, [4, 4], 0.5
    ),
    "an invite that was not made": Case(
        8, [("said_otherwise", {"how": "not_done", "rows": 1})], {"invited": 7, "failed": 1}, [4, 4], 120
    ),
    "success without effect": Case(4, [("say", {"rows": 0, "body": []})], {"failed": 4}, [4], 120),
    "entries without ids": Case(
        8, [("say", {"rows": 3, "body": entries(*PEOPLE[:4])})], {"invited": 7, "failed": 1}, [4, 4], 120
    ),
    "entries without addresses": Case(
        8,
        [("say", {"rows": 3, "body": entries(None, None, None, None, id="x")})],
        {"invited": 7, "failed": 1},
        [4, 4],
        120,
    ),
    "a repeated entry": Case(
        8,
        [("say", {"rows": 3, "body": entries(*PEOPLE[:3], PEOPLE[0], id="x")})],
        {"invited": 7, "failed": 1},
        [4, 4],
        120,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_fault_has_its_outcome(sandbox: SandboxServer, clock: Clock, invite: Invite, name: str) -> None:
    case = CASES[name]
    for kind, options in case.faults:
        sandbox.inject(kind, **{"operation": "create_invites", **options})
    found = invite(PEOPLE[: case.rows])
    assert re.search(case.says, str(found.error))
    assert bool(found.error) == bool(case.says)
    assert found.statuses == case.statuses
    assert found.sizes == case.sizes
    assert sum(clock.waited) == pytest.approx(case.seconds, abs=1)
    check_report(found, mailed(sandbox), case.rows)


def check_report(found: Outcome, sent: Counter[str], rows: int) -> None:
    """Check that nobody is invited twice, and that the report says who is invited."""
    assert set(sent.values()) <= {1}
    assert [entry.row for entry in found.report.entries] == list(range(1, rows + 1))
    for entry in found.report.entries:
        assert entry.status == "unknown" or (entry.email in sent) == (entry.status == "invited"), entry


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["reset_before", "reset_after", "say", "partly", "denied", "fine"]), max_size=6),
    st.sampled_from(PEOPLE[:12]),
    st.sampled_from([1, 3, 20]),
)
def test_any_faults_invite_nobody_twice(
    sandbox: SandboxServer, invite: Invite, kinds: list[str], bad: str, size: int
) -> None:
    sandbox.reset()
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "say": ("say", {"body": []}),
        "partly": ("say", {"body": {}, "status": 400, "rows": size // 2}),
        "denied": ("status_before", {"status": 401}),
    }
    for number, name in enumerate(kinds):
        kind, more = options.get(name, (name, {}))
        if name != "fine":
            sandbox.inject(kind, "create_invites", after=number, **more)
    sandbox.inject("refuse_address", "create_invites", email=bad)
    check_report(invite(PEOPLE[:12], bulk_invite_limit=size), mailed(sandbox), 12)


# Rows


@pytest.mark.parametrize("status", [400, 403, 409, 422])
def test_a_row_that_the_service_refuses_is_named(sandbox: SandboxServer, invite: Invite, status: int) -> None:
    sandbox.inject("refuse_address", "create_invites", email="p6@example.com", status=status, names_row=True)
    found = invite(PEOPLE[:8], "fail")
    assert str(found.error) == (
        "The service refused 1 of 8 rows; the others are done. row 6 (p6@example.com): no such mailbox."
    )
    assert found.error.permanent
    assert (found.report.entries[5].status, found.report.entries[5].reason) == ("failed", "no such mailbox")
    assert found.statuses == {"invited": 7, "failed": 1}


def test_many_consecutive_refusals_end_the_bulk_invite(sandbox: SandboxServer, invite: Invite) -> None:
    sandbox.inject("status_before", "create_invites", status=400, times=None)
    found = invite(PEOPLE, bulk_invite_limit=20)
    assert "400" in str(found.error)
    assert len(found.sizes) <= 23
    assert not mailed(sandbox)


def test_members_invited_people_and_wrong_rows_are_left_out(sandbox: SandboxServer, invite: Invite) -> None:
    found = invite(
        ["Mina.Member@example.com", "LIV.invited@example.com", "exp.ired@example.com", "EXP.ired@example.com", "wrong"]
    )
    assert [(entry.status, entry.reason) for entry in found.report.entries] == [
        ("member", "is a member already"),
        ("already_invited", "holds an invite that has not expired"),
        ("invited", ""),
        ("duplicate", "same address as row 3"),
        ("invalid", "the address needs exactly one @"),
    ]
    assert mailed(sandbox) == Counter(["exp.ired@example.com"])
    again = invite(["exp.ired@example.com"])
    assert again.statuses == {"already_invited": 1}
    assert again.sizes == [1]


def test_invalid_rows_and_options_fail_before_anything_is_sent(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    hook = WorkspaceHook()
    with pytest.raises(WorkspaceInputError) as refused:
        hook.create_invites(["", "ok@example.com", *["wrong"] * 21])
    assert str(refused.value).startswith(
        "Correct the invalid rows (22), or leave them out with on_invalid='skip': "
        "row 1 (no address): field 'target_email' is required; "
        "row 3 (wrong): the address needs exactly one @; row 4"
    )
    assert str(refused.value).endswith("; and 2 more. Nothing was sent.")
    with pytest.raises(WorkspaceInputError, match="on_invalid is 'ignore'; expected 'fail' or 'skip'"):
        hook.create_invites(["ok@example.com"], on_invalid="ignore")  # type: ignore[arg-type]
    assert str(hook.create_invites([])) == "<InvitesReport: 0 rows: nothing to do>"
    assert sandbox.requests() == []


# Others, and lists that cannot be read


def test_a_person_who_joins_meanwhile_counts_as_member(
    sandbox: SandboxServer, invite: Invite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def join(_: Any) -> None:
        if sandbox.effects() and not joined:
            joined.append(sandbox.accept_invite(sandbox.effects()[0]["detail"]["invite_id"]))

    joined: list[Any] = []
    sandbox.inject("reset_after", "create_invites")
    before_each(monkeypatch, join)
    assert invite(PEOPLE[:1]).statuses == {"member": 1}


def test_a_refused_row_that_others_invited_counts_as_invited(
    sandbox: SandboxServer, invite: Invite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def invite_it(request: Any) -> None:
        if is_bulk(request):
            sent.append(request)
        elif sent:
            sent.clear()
            WorkspaceHook().create_invite(target_email=PEOPLE[0])

    sent: list[Any] = []
    sandbox.inject("status_before", "create_invites", status=409)
    before_each(monkeypatch, invite_it)
    assert invite(PEOPLE[:1]).statuses == {"invited": 1}


def test_nothing_is_sent_if_the_lists_cannot_be_read(sandbox: SandboxServer, connect: Connect) -> None:
    connect(max_attempts=1)
    sandbox.inject("reset_before", "list_members")
    with pytest.raises(WorkspaceError, match="ListMembers was sent, but no complete response arrived"):
        WorkspaceHook().create_invites(["ada@example.com"])
    assert not mailed(sandbox)


@pytest.mark.parametrize(
    ("kind", "options", "statuses"),
    [
        ("reset_after", {"after": 1}, {"invited": 4, "unknown": 4, "not_sent": 2}),
        ("say", {"after": 1, "status": 400, "rows": 2}, {"invited": 4, "unknown": 4, "not_sent": 2}),
        ("said_otherwise", {"after": 1, "rows": 1}, {"invited": 9, "unknown": 1}),
    ],
)
def test_rows_are_unknown_if_the_lists_cannot_be_read_afterwards(
    sandbox: SandboxServer, invite: Invite, kind: str, options: dict[str, Any], statuses: dict[str, int]
) -> None:
    sandbox.inject(kind, "create_invites", **options)
    sandbox.inject("status_before", "list_*", status=403, after=2, times=None)
    found = invite(PEOPLE[:10], page_size=100)
    assert "403" in str(found.error)
    assert found.statuses == statuses


# Time


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set_resolves_no_unknown_outcome(
    sandbox: SandboxServer, clock: Clock, invite: Invite, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """The invites take effect 100 s after the lost response."""
    steps = [seconds]

    def set_clock(request: Any) -> None:
        if not is_bulk(request) and clock.waited and steps:
            clock.ahead += steps.pop()

    sandbox.inject("slow_effect", "create_invites", seconds=100, answer="reset")
    before_each(monkeypatch, set_clock)
    found = invite(PEOPLE[:3])
    assert (found.statuses, found.sizes, steps) == ({"invited": 3}, [3], [])
    assert sum(clock.waited) < 130
    assert len(clock.waited) < 15


def test_a_clock_that_is_set_forward_during_a_wait_resolves_no_unknown_outcome(
    sandbox: SandboxServer, clock: Clock, invite: Invite, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = clock.advance

    def advance_too_far(seconds: float) -> None:
        advance(seconds)
        clock.ahead += 40 if len(clock.waited) == 2 else 0

    sandbox.inject("slow_effect", "create_invites", seconds=100, answer="reset")
    monkeypatch.setattr(clock, "advance", advance_too_far)
    found = invite(PEOPLE[:3])
    assert (found.statuses, found.sizes) == ({"invited": 3}, [3])


def test_a_process_suspended_while_reading_reads_again_a_few_times(
    sandbox: SandboxServer, clock: Clock, invite: Invite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(request: Any) -> None:
        if "/members/" in request.url:
            clock.advance(3600)

    before_each(monkeypatch, sleep)
    assert invite(PEOPLE[:4], page_size=100).statuses == {"invited": 4}
    assert [entry["operation"] for entry in sandbox.requests()].count("list_members") == 3


@pytest.mark.parametrize(("seconds", "waits"), [(20, 105), (200, None)])
def test_a_retry_waits_until_the_lists_show_the_invites_of_the_try_before(
    connect: Connect, clock: Clock, seconds: float, waits: float | None
) -> None:
    connect()
    context: Any = {"task_state_store": TaskStore()}
    task = WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE[:8])
    task.execute(context)
    clock.advance(seconds)
    if waits is None:
        assert task.execute(context)["counts"]["already_invited"] == 8
    else:
        with pytest.raises(TaskDeferred) as deferred:
            task.execute(context)
        trigger: Any = deferred.value.trigger
        assert trigger.end_at - time.time() == pytest.approx(waits, abs=1)


@pytest.mark.parametrize(("faults", "notes"), [([], 2), (["reset_after"], 3)])
def test_sends_are_noted_every_few_seconds_and_after_a_lost_response(
    sandbox: SandboxServer, connect: Connect, clock: Clock, faults: list[str], notes: int
) -> None:
    """Each note is a request to Airflow. The first one says which try is running."""
    store = CountingStore()
    connect(bulk_invite_limit=4)
    for kind in faults:
        sandbox.inject(kind, "create_invites", after=1)
    context: Any = {"task_state_store": store}
    WorkspaceCreateInvitesOperator(task_id="invites", invites=PEOPLE[:12]).execute(context)
    assert sum(clock.waited) < 5
    assert store.writes == notes


class CountingStore(TaskStore):
    """Counts what is written."""

    writes = 0

    def set(self, key: str, value: Any) -> None:
        self.writes += 1
        super().set(key, value)


# The report


def test_the_report_is_plain_json_and_a_table_of_printable_lines(invite: Invite) -> None:
    injected = "p1@example.com\n25 rows: 25 invited\x1b[2J"
    report = invite([injected, "", PEOPLE[1], *["nobody"] * 58]).report
    told = json.loads(json.dumps(report.to_dict()))
    assert told["counts"] == {
        **dict.fromkeys(told["counts"], 0),
        "rows": 61,
        "invited": 1,
        "invalid": 60,
    }
    assert told["addresses"][2].items() >= {"row": 3, "email": PEOPLE[1], "status": "invited", "reason": ""}.items()
    lines = report.table().splitlines()
    assert lines[0] == "61 rows: 1 invited, 60 invalid"
    assert lines[2] == f"  row 2      invalid          {'-':<40} field 'target_email' is required"
    assert len(lines) == 52
    assert lines[-1] == "  … and 10 more, all in the report"
    assert "".join(lines).isprintable()
