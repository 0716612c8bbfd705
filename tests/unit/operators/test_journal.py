"""
What a task did survives its tries: each task, killed before and after each request and each write.

The retry tells all that both tries have done: its result and its report are those of a task that nobody killed.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.execution_time import task_runner
from requests.adapters import HTTPAdapter

from airflow_provider_workspace.files.storage import LocalFile
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.access import WorkspaceEndAccessOperator, WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.procedures.access_list import AccessEntry
from airflow_provider_workspace.procedures.journal import MAX_PAGE, Journal, Sending
from airflow_provider_workspace.procedures.plan import UNKNOWN_TRIES, Change, ChangeRow, Plan
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import grant_notes
from tests.interruptions import Interruptions
from tests.leases import iso
from tests.task_instance import Killed, Question, Task, TaskStore
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

OLIVE, ADAM, MINA = "olive.owner@example.com", "adam.admin@example.com", "mina.member@example.com"
ADA, BEN, LIV = "ada@example.com", "ben@example.com", "liv.invited@example.com"
EVE = "eve@example.com"
PROTECTED = [OLIVE, ADAM]


@dataclass
class Moments:
    """
    The moments of a task: before and after each request and each write.

    :ivar kill_at: the number of the moment at which it is killed; ``None`` for never
    """

    kill_at: int | None = None
    passed: int = field(default=0, init=False)

    def __call__(self) -> None:
        self.passed += 1
        if self.passed == self.kill_at:
            raise Killed

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            self()
            result = call(*arguments, **options)
            self()
            return result

        return called


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, number: int | None) -> Iterator[Moments]:
    moments = Moments(number)
    with monkeypatch.context() as patch:
        for owner, name in (
            (HTTPAdapter, "send"),
            (TaskStore, "set"),
            (TaskStore, "delete"),
            (Variables, "set"),
            (Variables, "delete"),
            (LocalFile, "write"),
        ):
            patch.setattr(owner, name, moments.around(getattr(owner, name)))
        yield moments


def context(store: TaskStore, try_number: int) -> Any:
    ti = SimpleNamespace(
        dag_id="dag",
        run_id="run",
        task_id="task",
        map_index=-1,
        id=f"{try_number}",
        try_number=try_number,
        max_tries=3,
        xcom_push=lambda **_: None,
    )
    return {"ti": ti, "task_state_store": store}


# The tasks, and what each result tells


def rows_of(path: str) -> list[dict[str, str]]:
    return [*csv.DictReader(Path(path).read_text().splitlines())]


def changes(result: Any) -> list[Any]:
    rows = result["changes"] if "changes" in result else rows_of(result["report_path"])
    # That a project is there proves nothing about who has created it.
    done = [row for row in rows if row["status"] in ("done", "invited") or row["name"].startswith("project")]
    return sorted((row["action"], row["name"].partition(" (")[0]) for row in done if row["action"] != "skip")


def sync(folder: Path) -> Any:
    return WorkspaceSyncMembersOperator(
        task_id="task",
        roster=[*PROTECTED, ADA, BEN, {"email": MINA, "level": 8}],
        protected=PROTECTED,
        max_removals=None,
        report_path=str(folder / "report.csv"),
    )


def leave(_: Path) -> Any:
    return WorkspaceSyncMembersOperator(task_id="task", leavers=[MINA, LIV], protected=PROTECTED, max_removals=None)


def apply_file(_: Path) -> Any:
    members = {"people": [*PROTECTED, ADA], "protected": PROTECTED}
    file = {"complete": ["members"], "max_removals": None, "members": members, "projects": [{"name": "Northwind"}]}
    return WorkspaceApplyOrganizationOperator(task_id="task", file=file)


def changes_of_parts(result: Any) -> list[Any]:
    return [row for part in ("projects", "members") for row in changes(result[part])]


def invite(folder: Path) -> Any:
    return WorkspaceCreateInvitesOperator(
        task_id="task", invites=[ADA, MINA, BEN, LIV], report_path=str(folder / "report.csv")
    )


def invited(result: Any) -> list[Any]:
    return [(row["email"], row["status"]) for row in rows_of(result["report_path"])]


def grant(_: Path) -> Any:
    return WorkspaceGrantAccessOperator(
        task_id="task", user_email=MINA, level=8, length=3600, reason="audit", requested_by="ruth"
    )


def granted(result: Any) -> Any:
    return result["granted"], result["level"], result["then"], result["before"]


def end(_: Path) -> Any:
    return WorkspaceEndAccessOperator(task_id="task", user_email=MINA, protected=PROTECTED)


def sweep(_: Path) -> Any:
    return WorkspaceSweepOperator(task_id="task", kinds=["grants"], protected=PROTECTED)


def ended(result: Any) -> list[Any]:
    ends = result.get("grants", result)["ended"]
    return sorted((row["user_email"], row["done"].partition(":")[0]) for row in ends)


TASKS: dict[str, tuple[Callable[[Path], Any], Callable[[Any], Any]]] = {
    "sync": (sync, changes),
    "leavers": (leave, changes),
    "organization file": (apply_file, changes_of_parts),
    "bulk invite": (invite, invited),
    "grant": (grant, granted),
    "end": (end, ended),
    "sweep": (sweep, ended),
}


def begin(sandbox: SandboxServer, notes: Variables, task: str) -> None:
    """Bring the organization to where the task begins."""
    sandbox.reset()
    notes.values.clear()
    if task not in ("end", "sweep"):
        return
    with WorkspaceHook() as hook:
        hook.update_member(user_uuid=SEED.member_uuid, level=8)
        (liv,) = [row for row in hook.list_invites() if row.target_email == LIV]
    place = {"service": sandbox.url, "organization_id": SEED.organization_id}
    # Nobody has joined since.
    now = time.time()
    times = {"since": iso(now - 7200), "until": "2999-01-01T00:00:00Z" if task == "end" else iso(now - 3600)}
    mina = {"user_email": MINA, "user_uuid": SEED.member_uuid, "level": 8, "then": 1, "run_id": "mina"}
    invited = {"user_email": LIV, "user_uuid": None, "invite_id": liv.id, "level": 1, "then": None, "run_id": "liv"}
    for fields in [mina] if task == "end" else [mina, invited]:
        key, text = grant_notes.variable(**place, **times, **fields)
        notes.values[key] = text


@pytest.mark.needs_airflow("3.3", "the task state")
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("step", [16, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TASKS)
def test_a_retry_tells_what_the_killed_try_has_done(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, step: int
) -> None:
    connect(consistency_time=0)
    notes = install(monkeypatch)
    make, told = TASKS[name]
    begin(sandbox, notes, name)
    with killed_at(monkeypatch, None) as moments:
        expected = told(make(tmp_path).execute(context(TaskStore(), 1)))
    assert expected
    differing: dict[int, Any] = {}
    for number in range(1, moments.passed + 1, step):
        begin(sandbox, notes, name)
        store = TaskStore()
        folder = tmp_path / f"{number}"
        folder.mkdir()
        with killed_at(monkeypatch, number), pytest.raises(Killed):
            make(folder).execute(context(store, 1))
        result = make(folder).execute(context(store, 2))
        if told(result) != expected:
            differing[number] = told(result)
    assert not differing, f"expected {expected}"


@pytest.mark.needs_airflow("3.3", "the task state")
@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("level", "status"), [(1, "invited"), (8, "already_invited"), (None, "invited")])
def test_an_invite_at_another_level_is_not_the_one_that_the_killed_try_sent(
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    level: int | None,
    status: str,
) -> None:
    """Who has accepted it has joined by then: no level."""
    connect(consistency_time=0)
    store = TaskStore()

    def send() -> Any:
        path = str(tmp_path / "report.csv")
        task = WorkspaceCreateInvitesOperator(task_id="task", invites=[{"email": ADA, "level": 1}], report_path=path)
        return task.execute(context(store, 1))

    with monkeypatch.context() as patch:
        Interruptions(patch).after("/bulk/")
        with pytest.raises(Killed):
            send()
    with WorkspaceHook() as hook:
        (sent,) = [row for row in hook.list_invites() if row.target_email == ADA]
        if level is None:
            sandbox.accept_invite(str(sent.id))
        else:
            hook.delete_invite(invite_id=str(sent.id))
            hook.create_invite(target_email=ADA, level=level)
    assert invited(send()) == [(ADA, status)]


@pytest.mark.needs_airflow("3.3", "the task state")
@pytest.mark.usefixtures("clock")
@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_retry_says_who_approved_what_the_killed_try_sent(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(consistency_time=0)
    install(monkeypatch)
    question = Question(refreshes=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    task = Task(question)

    def leavers() -> WorkspaceSyncMembersOperator:
        return WorkspaceSyncMembersOperator(
            task_id="task", leavers=[MINA], protected=PROTECTED, max_removals=None, require_approval=True
        )

    approve = task.ask(leavers())
    interruptions = Interruptions(monkeypatch)
    interruptions.after("DELETE")
    with pytest.raises(Killed):
        task.answer(leavers(), approve)
    task.pushed.clear()  # as Airflow does before a retry
    task.ti.try_number = 2
    result = leavers().execute(task.context)
    assert task.pushed["approved"]["by"] == "ruth"
    (removed,) = [row for row in result["changes"] if row["action"] == "remove"]
    approved = "try 1, approved by ruth (1) at 2026-11-22 00:00:00+00:00"
    assert removed["reason"] == f"done, or done by somebody else: {approved} was about to send it"
    assert "\nThis task had sent 1 change before.\n" in result["table"]


@pytest.mark.usefixtures("clock")
@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_retry_that_knows_of_no_earlier_try_keeps_the_report_of_that_one(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As before Airflow 3.3."""
    connect(consistency_time=0)
    install(monkeypatch)
    first = {"ti": context(TaskStore(), 1)["ti"]}
    second = {"ti": context(TaskStore(), 2)["ti"]}
    result = sync(tmp_path).execute(first)
    retried = sync(tmp_path).execute(second)
    assert retried["report_path"] == str(tmp_path / "report.try-2.csv")
    assert (len(rows_of(result["report_path"])), rows_of(retried["report_path"])) == (6, [])
    leavers = WorkspaceSyncMembersOperator(task_id="task", leavers=[ADA], protected=PROTECTED, max_removals=None)
    assert UNKNOWN_TRIES in leavers.execute(second)["table"]


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize("limit", ["max_removals", "approved"])
def test_a_plan_that_is_refused_is_in_the_report(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str
) -> None:
    connect(consistency_time=0)
    install(monkeypatch)
    task = sync(tmp_path)
    if limit == "max_removals":
        task.max_removals = 1
    else:
        with WorkspaceHook() as hook:
            place = hook.client.settings.organization_at_service(SEED.organization_id)
        task.approved = {"planned_for": place, "changes": []}
    with pytest.raises(AirflowFailException):
        task.execute(context(TaskStore(), 1))
    planned = [row["name"] for row in rows_of(str(tmp_path / "report.csv")) if row["status"] == "planned"]
    assert len(planned) == 6


class Pages(dict[int, Any]):
    """The pages of a journal, and how often they were written."""

    writes = 0

    def of(self, number: int) -> Any:
        def write(value: object) -> None:
            self.writes += 1
            self[number] = value

        return SimpleNamespace(read=lambda: self.get(number), write=write)


def test_a_journal_has_pages_and_writes_what_changed() -> None:
    pages = Pages()
    journal = Journal(pages.of, "try 1")
    journal.write()
    journal.end("here", "never begun", "done")
    sendings = [Sending("here", f"{number}", {"name": "x" * MAX_PAGE}) for number in range(3)]
    journal.begin(sendings)
    assert (len(pages), pages.writes) == (3, 3)
    journal.end("here", "1", "done", "why")
    journal.end("here", "1", "done", "why")
    journal.write()
    assert pages.writes == 4
    later = Journal(pages.of, "try 2").earlier_at("here")
    assert [sending.status for sending in later.values()] == ["", "done", ""]
    assert later["1"].told == "why, sent by try 1"
    assert Journal(pages.of, "try 2").earlier_at("elsewhere") == {}


def test_a_journal_goes_on_with_its_last_page() -> None:
    pages = Pages()
    for number in range(3):
        Journal(pages.of, "try 1").begin([Sending("here", f"{number}")])
    assert list(pages) == [0]
    assert [sending.key for sending in Journal(pages.of, "try 2").earlier] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("action", "after", "status"),
    [
        ("remove", {}, "unknown"),
        ("change", {"level": 8}, "unknown"),
        ("change", {"level": 1}, "done"),
        ("create", {}, "done"),
    ],
)
def test_what_a_killed_try_was_about_to_send_is_done_if_the_lists_show_it(
    action: Any, after: dict[str, Any], status: str
) -> None:
    row = ChangeRow(action, "members", f"member {MINA}", {}, after, "", "not_sent", "").to_dict()
    sending = Sending("here", "key", {**row, "person": MINA, "identity": ["mina"]}, by="try 1")
    plan = Plan("here")
    plan.access_list.add(("mina",), AccessEntry("mina", 1, MINA))
    plan.take_over(Journal(lambda number: Pages({0: [asdict(sending)]}).of(number), "try 2"), "members")
    assert [row.status for row in plan.earlier] == [status]


def test_what_was_sent_is_told_once_and_only_by_its_part() -> None:
    row = ChangeRow("set", "exports", "export 1", {}, {"paused": True}, "", "not_sent", "").to_dict()
    noted: dict[str, Any] = {**row, "person": "", "identity": []}
    done = Sending("here", "exports: set export 1", noted, "try 1", "done")
    begun = Sending("here", "projects: create project x", {**noted, "part": "projects"}, "try 1")
    refused = Sending("here", "exports: set export 2", noted, "try 1", "refused", "no")

    def taken_over(changes: list[Change], part: str) -> list[tuple[str, str]]:
        entries = [asdict(sending) for sending in (done, begun, refused)]
        plan = Plan("here", changes)
        plan.take_over(Journal(lambda number: Pages({0: entries}).of(number), "try 2"), part)
        return [(row.status, row.reason) for row in plan.earlier]

    again = Change("set", "exports", "export 1", after={"paused": True})
    assert taken_over([again], "exports") == [("refused", "no, sent by try 1")]
    assert taken_over([], "projects") == [("unknown", "try 1 was about to send it")]


def test_a_try_that_was_replaced_writes_no_journal() -> None:
    pages = Pages()

    def check() -> None:
        raise AirflowFailException("another try")

    journal = Journal(pages.of, "try 1", check=check)
    with pytest.raises(AirflowFailException):
        journal.begin([Sending("here", "key")])
    assert pages.writes == 0


def test_hidden_people_prove_no_removal() -> None:
    plan = take_over_a_removal(Plan("here"))
    assert [row.status for row in plan.earlier] == ["done"]
    plan = Plan("here")
    plan.access_list.add(("x",), AccessEntry("x", 1))
    take_over_a_removal(plan)
    assert [row.status for row in plan.earlier] == ["unknown"]


def test_somebody_who_has_another_address_by_now_is_not_removed() -> None:
    plan = Plan("here")
    plan.access_list.add(("mina",), AccessEntry(f"member {EVE}", 1, EVE))
    take_over_a_removal(plan)
    assert [row.status for row in plan.earlier] == ["unknown"]
    (line,) = plan.changes
    assert (line.action, line.should_lose, line.cure) == ("differs", True, "remove them by hand")
    assert line.notes == f"try 1 was about to remove member {MINA}, who is member {EVE} now; remove them by hand"
    plan = Plan("here", [Change("skip", "members", f"member {EVE}", person=EVE)])
    plan.access_list.add(("mina",), AccessEntry(f"member {EVE}", 1, EVE))
    take_over_a_removal(plan)
    assert [change.action for change in plan.changes] == ["skip"]


@pytest.mark.parametrize("level", [1, 8])
def test_an_invite_that_an_earlier_try_sent_counts_unless_the_plan_finds_another(level: int) -> None:
    row = ChangeRow("create", "members", f"invite {MINA}", {}, {"level": 8}, "", "not_sent", "").to_dict()
    sending = Sending("here", "key", {**row, "person": MINA, "identity": []}, by="try 1")
    differs = [Change("differs", "members", f"invite {MINA}", person=MINA)] if level != 8 else []
    plan = Plan("here", differs)
    plan.access_list.invited = frozenset([MINA])
    plan.take_over(Journal(lambda number: Pages({0: [asdict(sending)]}).of(number), "try 2"), "members")
    assert [row.status for row in plan.earlier] == ["done" if level == 8 else "unknown"]


def take_over_a_removal(plan: Plan) -> Plan:
    """Let a plan take over from a try that was about to remove Mina, and was killed."""
    plan.access_list.add(("ana",), AccessEntry("ana", 15, "ana@example.com"))
    row = ChangeRow("remove", "members", f"member {MINA}", {}, {}, "", "not_sent", "").to_dict()
    sending = Sending("here", "key", {**row, "person": MINA, "identity": ["mina"]}, by="try 1")
    plan.take_over(Journal(lambda number: Pages({0: [asdict(sending)]}).of(number), "try 2"))
    return plan
