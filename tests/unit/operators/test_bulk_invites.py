"""Bulk invites whose requests are lost, refused or answered wrongly: nobody twice, nobody forgotten, a true report."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.interruptions import Interruptions, kill
from tests.matrix import chequered
from tests.task_instance import Killed, TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)

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


@pytest.fixture(autouse=True)
def without_limits(sandbox: SandboxServer, clock: Clock) -> Clock:  # the clock first: all tests simulate it
    sandbox.change_settings(rate_limit=False)
    return clock


@pytest.fixture
def invite(sandbox: SandboxServer, connect: Connect, clock: Clock) -> Invite:
    """Invite people in requests of four, one at a time."""

    def run(rows: Any, **extra: Any) -> Outcome:
        connect(**{"bulk_invite_limit": 4, "page_size": 3, "max_concurrency": 1, **extra})
        clock.waited.clear()
        error: Any = None
        with WorkspaceHook() as hook:
            try:
                report = hook.create_invites(rows, on_invalid="skip")
            except WorkspaceError as ended:
                report, error = ended.report, ended  # type: ignore[attr-defined]
        counts = {status: count for status, count in report.counts.items() if count and status != "rows"}
        sent = [entry["body"] for entry in sandbox.requests() if entry["operation"] == "create_invites"]
        return Outcome(report, counts, [len(body) if isinstance(body, list) else 1 for body in sent], error)

    return run


def mailed(sandbox: SandboxServer) -> Counter[str]:
    """Return the number of invites by address after all requests have taken effect."""
    sandbox.advance_clock(600)
    return Counter(effect["target"] for effect in sandbox.audit("create_invite"))


BULK = "create_invites"
BAD = (BULK, "refuse_address", {"email": "p3@example.com"})

# After the first three pages
FORBIDDEN = {"status": 403, "after": 3, "times": None}
# Requests of rows that are all refused: each of four goes row by row, until 20 are refused.
REFUSALS = [4, 1, 1, 1, 1] * 4


def entries(*emails: str | None, **more: Any) -> list[dict[str, Any]]:
    """Return the entries of a response."""
    return [{"target_email": email, **more} for email in emails]


def say(rows: int, *emails: str | None, **more: Any) -> tuple[str, str, dict[str, Any]]:
    """Return the fault that applies a number of rows and responds with these entries."""
    return BULK, "say", {"rows": rows, "body": entries(*emails, **more)}


# Name, number of people, faults, rows by status, sizes of the requests, sum of all waits, part of the error.
Fault = tuple[str, str, dict[str, Any]]
CASES: list[tuple[Any, ...]] = [
    ("no fault", 10, [], {"invited": 10}, [4, 4, 2], 0, ""),
    ("empty responses", 10, [(BULK, "say", {"body": [], "times": None})], {"invited": 10}, [4, 4, 2], 0, ""),
    ("a lost response", 4, [(BULK, "reset_after", {})], {"invited": 4}, [4], 0.5, ""),
    ("lost requests", 4, [(BULK, "reset_before", {"times": 2})], {"invited": 4}, [4, 4, 4], 240, ""),
    (*("always lost", 3, [(BULK, "reset_before", {"times": None})], {"unknown": 3}, [3] * 5, 600),
     (r"Not everybody was invited \(3 rows: 3 unknown\): .* "
      r"Wait for 120 s, then clear the task or run this again: it sends only the missing invites\.")),
    ("some are unknown", 40, [(BULK, "reset_before", {"after": 1})], {"invited": 40}, [4] * 11, 120, ""),
    ("a bad row", 8, [BAD], {"invited": 7, "failed": 1}, [4, 1, 1, 1, 1, 4], 0, ""),
    *(
        (
            *("a named row", 12),
            [(BULK, "refuse_address", {"email": "p6@example.com", "names_row": True, "status": status})],
            *({"invited": 11, "failed": 1}, [4, 4, 1, 3, 4], 0, ""),
        )
        for status in (400, 403, 409, 422)
    ),
    (*("a forbidden row", 8, [(BULK, "refuse_address", {"email": "p1@example.com", "status": 403})]),
     *({"invited": 7, "failed": 1}, [4, 1, 1, 2, 4], 0, "")),
    (  # Somebody was invited, so that a 403 is no sign of the key.
        *("a first success that only the list shows", 8),
        [(BULK, "reset_after", {}), (BULK, "refuse_address", {"email": "p7@example.com", "status": 403})],
        *({"invited": 7, "failed": 1}, [4, 4, 1, 1, 1, 1], 0.5, ""),
    ),
    (*("partly applied", 4, [(BULK, "say", {"rows": 2, "status": 400, "body": {}})]),
     *({"invited": 4}, [4, 1, 1], 0, "")),
    (*("a bad row at a rate limit", 4, [(BULK, "rate_limit", {"after": 1, "seconds": 1}), BAD]),
     *({"invited": 3, "failed": 1}, [4, 1, 1, 1, 1, 1], 3, "")),
    ("unknown rows at a rate limit", 16,
     [(BULK, "reset_after", {"after": 1}), (BULK, "rate_limit", {"after": 2}),
     ("list_invites", "late_rows", {"seconds": 20})], *({"invited": 16}, [4, 4, 4, 2, 2, 2, 2], 32, "")),
    (*("a key that may not invite", 12, [(BULK, "status_before", {"status": 403, "times": None})]),
     *({"failed": 2, "not_sent": 10}, [4, 1, 1], 0, "403")),
    (*("every row refused", 40, [(BULK, "status_before", {"status": 400, "times": None})]),
     *({"failed": 16, "not_sent": 24}, REFUSALS, 0, "400")),
    (*("a revoked key", 20, [(BULK, "status_before", {"status": 401, "after": 3})]),
     *({"invited": 12, "not_sent": 8}, [4] * 4, 0, "401")),
    (*("an invite missing from the response", 8, [(BULK, "said_otherwise", {"how": "other_answer", "rows": 1})]),
     *({"invited": 8}, [4, 4], 0.5, "")),
    (*("an invite that was not made", 8, [(BULK, "said_otherwise", {"how": "not_done", "rows": 1})]),
     *({"invited": 7, "failed": 1}, [4, 4], 120, "")),
    ("success without effect", 4, [say(0)], {"failed": 4}, [4], 120, ""),
    ("entries without ids", 8, [say(3, *PEOPLE[:4])], {"invited": 7, "failed": 1}, [4, 4], 120, ""),
    ("entries without addresses", 8, [say(3, *[None] * 4, id="x")], {"invited": 7, "failed": 1}, [4, 4], 120, ""),
    (*("a repeated entry", 8, [say(3, *PEOPLE[:3], PEOPLE[0], id="x")]),
     *({"invited": 7, "failed": 1}, [4, 4], 120, "")),
    *(
        ("unreadable lists", 10, [(BULK, *fault), ("list_*", "status_before", FORBIDDEN)], statuses, sizes, 0, "403")
        for fault, statuses, sizes in (
            (("reset_after", {"after": 1}), {"invited": 4, "unknown": 4, "not_sent": 2}, [4, 4]),
            (("say", {"after": 1, "status": 400, "rows": 2}), {"invited": 4, "unknown": 4, "not_sent": 2}, [4, 4]),
            (("said_otherwise", {"after": 1, "rows": 1}), {"invited": 9, "unknown": 1}, [4, 4, 2]),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "rows", "faults", "statuses", "sizes", "seconds", "says"), CASES, ids=[case[0] for case in CASES]
)
def test_each_fault_has_its_outcome(
    sandbox: SandboxServer,
    clock: Clock,
    invite: Invite,
    _: str,
    rows: int,
    faults: list[Fault],
    statuses: dict[str, int],
    sizes: list[int],
    seconds: float,
    says: str,
) -> None:
    for operation, kind, options in faults:
        sandbox.inject(kind, operation, **options)
    found = invite(PEOPLE[:rows])
    assert re.search(says, str(found.error))
    assert bool(found.error) == bool(says)
    assert found.statuses == statuses
    assert found.sizes == sizes
    assert sum(clock.waited) == pytest.approx(seconds, abs=1, rel=0.05)  # some of it is real time
    check_report(found, mailed(sandbox), rows)


def check_report(found: Outcome, sent: Counter[str], rows: int) -> None:
    """Check that nobody is invited twice, and that the report says who is invited."""
    assert set(sent.values()) <= {1}
    assert [entry.row for entry in found.report.entries] == list(range(1, rows + 1))
    for entry in found.report.entries:
        assert entry.status == "unknown" or (entry.email in sent) == (entry.status == "invited"), entry


@settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


# Refused requests, of which each costs a reading of the lists and each row counts against the limits of invites

CROWD = [f"person-{number}@example.com" for number in range(150)]


@pytest.mark.parametrize(
    ("bad", "requests", "refused_rows", "by_halves"),
    [
        # Numbers of the refused rows; requests with those of the lists, and rows refused: now, and by halves
        ([7], 25, 25, (28, 39)),
        ([0], 25, 25, (32, 41)),
        ([3, 12], 33, 30, (42, 57)),
        (range(0, 150, 15), 144, 190, (229, 350)),
        (range(40, 50), 55, 42, (62, 64)),  # by halves, the task ended: 20 requests refused in a row
        (range(150), 60, 51, (60, 64)),
    ],
    ids=["one", "the first", "two of a request", "ten of eight requests", "ten in a row", "all"],
)
def test_a_refused_row_is_found_with_few_requests_and_few_refused_rows(
    sandbox: SandboxServer,
    invite: Invite,
    bad: Sequence[int],
    requests: int,
    refused_rows: int,
    by_halves: tuple[int, int],
) -> None:
    refused = [CROWD[number] for number in bad]
    sandbox.inject("refuse_address", "create_invites", email=" ".join(refused))
    found = invite(CROWD, bulk_invite_limit=20, page_size=100)
    check_report(found, mailed(sandbox), len(CROWD))
    if len(bad) < len(CROWD):
        assert found.statuses == {"invited": len(CROWD) - len(bad), "failed": len(bad)}
    sent = sandbox.requests()
    rows = [len(entry["body"]) for entry in sent if entry["operation"] == BULK and entry["status"] == 400]
    assert (len(sent), sum(rows)) == (requests, refused_rows)
    assert requests <= by_halves[0]
    assert refused_rows < by_halves[1]


# Rows


def test_invalid_rows_and_options_fail_before_anything_is_sent(sandbox: SandboxServer) -> None:
    hook = WorkspaceHook()
    with pytest.raises(WorkspaceInputError) as refused:
        hook.create_invites(["", "ok@example.com", *["wrong"] * 21])
    assert str(refused.value).startswith(
        "[rows-invalid] Invalid rows: 22. Correct them, or leave them out with on_invalid='skip': "
        "row 1 (no address): field 'target_email' is required; "
        "row 3 (wrong): the address needs exactly one @ (and 20 more: row 4"
    )
    assert refused.value.args[0].endswith("row 8 (wrong), …). Nothing was sent.")
    with pytest.raises(WorkspaceInputError, match="on_invalid is 'ignore'; expected 'fail' or 'skip'"):
        hook.create_invites(["ok@example.com"], on_invalid="ignore")  # type: ignore[arg-type]
    assert str(hook.create_invites([])) == "<InvitesReport: 0 rows: nothing to do>"
    assert sandbox.requests() == []


# Others


@pytest.mark.parametrize("status", ["member", "invited"])
def test_what_others_do_meanwhile_counts(
    sandbox: SandboxServer, invite: Invite, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """An invited person joins before the look-up; a row is refused because somebody else has just invited it."""
    acts: dict[str, tuple[str, Callable[[], Any]]] = {
        "member": ("reset_after", lambda: sandbox.accept_invite(sandbox.effects()[0]["detail"]["invite_id"])),
        "invited": ("status_before", lambda: WorkspaceHook().create_invite(target_email=PEOPLE[0])),
    }
    kind, act = acts[status]
    sandbox.inject(kind, "create_invites", **({"status": 409} if status == "invited" else {}))
    interruptions = Interruptions(monkeypatch)
    interruptions.before("/bulk/", lambda: interruptions.before("GET", act))
    assert invite(PEOPLE[:1]).statuses == {status: 1}


def test_somebody_who_joins_before_their_row_is_sent_is_a_member(
    sandbox: SandboxServer, invite: Invite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def join() -> None:
        sandbox.accept_invite(str(WorkspaceHook().create_invite(target_email=PEOPLE[25]).id))

    sandbox.inject("reset_after", "create_invites")
    interruptions = Interruptions(monkeypatch)
    interruptions.before("/bulk/", lambda: interruptions.before("GET", join))
    assert invite(PEOPLE[:30]).statuses == {"invited": 29, "member": 1}


# Time


@pytest.mark.parametrize(("during", "seconds"), [("wait", 40), ("read", 3600), ("read", -3600)])
def test_a_clock_that_is_set_resolves_no_unknown_outcome(
    sandbox: SandboxServer, clock: Clock, invite: Invite, monkeypatch: pytest.MonkeyPatch, during: str, seconds: float
) -> None:
    """It is set during the second wait, or a read after the first; the invites take effect 100 s after the response."""
    advance, interruptions, steps = clock.advance, Interruptions(monkeypatch), [seconds]

    def set_clock() -> None:
        clock.ahead += steps.pop()

    def advance_and_set(by: float) -> None:
        advance(by)
        if during == "wait" and len(clock.waited) == 2:
            set_clock()
        elif during == "read" and len(clock.waited) == 1:
            interruptions.before("GET", set_clock)

    sandbox.inject("slow_effect", "create_invites", seconds=100, answer="reset")
    monkeypatch.setattr(clock, "advance", advance_and_set)
    found = invite(PEOPLE[:3])
    assert (found.statuses, found.sizes, steps) == ({"invited": 3}, [3], [])
    assert sum(clock.waited) < 130
    assert len(clock.waited) < 15


# The report


def test_the_report_is_plain_json_and_a_table_of_printable_lines(invite: Invite) -> None:
    injected = "p1@example.com\n25 rows: 25 invited\x1b[2J"
    report = invite([injected, "", PEOPLE[1], *["nobody"] * 58]).report
    told = json.loads(json.dumps(report.to_dict()))
    assert {name: count for name, count in told["counts"].items() if count} == {"rows": 61, "invited": 1, "invalid": 60}
    assert told["addresses"][2].items() >= {"row": 3, "email": PEOPLE[1], "status": "invited", "reason": ""}.items()
    lines = report.table().splitlines()
    assert lines[0] == "61 rows: 1 invited, 60 invalid"
    assert lines[2] == f"  row 2      invalid          {'-':<40} field 'target_email' is required"
    assert len(lines) == 52
    assert lines[-1] == "  … and 10 more, all in the report"
    assert "".join(lines).isprintable()


# Services that are slow, and workers that stop or sleep

EVERYBODY = [f"person-{number}@example.com" for number in range(200)]


def before_bulk_request(number: int, patch: pytest.MonkeyPatch, act: Callable[[], object] = kill) -> None:
    """Call a function before the bulk request of this number; the default is a kill."""
    interruptions = Interruptions(patch)
    for _ in range(number - 1):
        interruptions.before("/bulk/", lambda: None)
    interruptions.before("/bulk/", act)


def test_a_killed_task_starts_no_other_request(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed at the first of sixteen requests that were handed out at once."""
    connect(max_concurrency=2, bulk_invite_limit=4)
    before_bulk_request(16, monkeypatch)
    with pytest.raises(Killed), WorkspaceHook() as hook:
        hook.create_invites(EVERYBODY)
    assert sum(entry["operation"] == BULK for entry in sandbox.requests()) < 25


INVITERS: dict[str, Callable[[], Any]] = {
    "invites": lambda: WorkspaceCreateInvitesOperator(task_id="task", invites=EVERYBODY),
    "members": lambda: WorkspaceSyncMembersOperator(task_id="task", roster=EVERYBODY, protected=[], max_removals=100),
    "organization": lambda: WorkspaceApplyOrganizationOperator(
        task_id="task", part="members", file={"members": {"people": [{"email": email} for email in EVERYBODY]}}
    ),
}


@pytest.mark.parametrize(("clock_name", "inviter"), chequered(["time", "monotonic"], INVITERS))
def test_a_try_that_wakes_stops_if_another_one_has_begun(
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    inviter: str,
    clock_name: str,
) -> None:
    """The first try is suspended before a request, and only one clock shows it; the second try invites everybody."""
    connect(max_concurrency=2, consistency_time=1)
    context: Any = {"task_state_store": TaskStore()}
    seconds = {"time": 300, "monotonic": 5}[clock_name]

    def shift(name: str, by: float) -> None:
        now = getattr(time, name)
        monkeypatch.setattr(time, name, lambda: now() + by)

    def sleep() -> None:
        began = {name: getattr(time, name)() for name in ("time", "monotonic")}
        INVITERS[inviter]().execute(context)
        for name, then in began.items():  # what the second try took does not count
            shift(name, then - getattr(time, name)() + (seconds if name == clock_name else 0))

    before_bulk_request(3, monkeypatch, sleep)
    with pytest.raises(AirflowFailException, match="Another try of this task has taken over"):
        INVITERS[inviter]().execute(context)
    twice = [email for email, times in mailed(sandbox).items() if times > 1]
    assert set(mailed(sandbox)) == set(EVERYBODY)
    assert len(twice) <= 2 * 20, "more than the requests under way"


def test_a_resumed_process_sends_only_its_current_requests(
    sandbox: SandboxServer, connect: Connect, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is suspended at its third request; another run invites everybody meanwhile."""
    connect(max_concurrency=2)

    def sleep() -> None:
        clock.advance(300)
        with WorkspaceHook() as other:
            other.create_invites(EVERYBODY)

    before_bulk_request(3, monkeypatch, sleep)
    with WorkspaceHook() as hook:
        report = hook.create_invites(EVERYBODY)
    twice = [email for email, times in mailed(sandbox).items() if times > 1]
    assert set(mailed(sandbox)) == set(EVERYBODY)
    assert max(mailed(sandbox).values()) <= 2
    assert 0 < len(twice) <= 2 * 20
    assert report.counts["already_invited"] >= len(EVERYBODY) - 4 * 20
