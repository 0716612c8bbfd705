"""Who has a say about a person, on each road: sync, organization file and the command; with notes in Variables."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from contextlib import suppress
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from airflow.sdk.execution_time import task_runner

from airflow_provider_workspace.access.notes import AccessNotes
from airflow_provider_workspace.access.rules.guards import NO_GUARDS
from airflow_provider_workspace.cli import organization_commands
from airflow_provider_workspace.cli.definition import get_workspace_commands
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.access_review import WorkspaceLiftDecisionOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator, WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator, WorkspaceUpdateMemberOperator
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import decision_notes, grant_notes
from tests.audit import effects, set_address, writes
from tests.interruptions import Interruptions
from tests.task_instance import Killed, Question, Task, TaskStore
from tests.variables import Variables, install

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)

OLIVE, ADAM, MINA = "olive.owner@example.com", "adam.admin@example.com", "mina.member@example.com"
NOAH, GRACE, LIV = "noah.newton@example.com", "grace.analyst@example.com", "liv.invited@example.com"
EVERYBODY: list[Any] = [OLIVE, ADAM, MINA, NOAH, GRACE, LIV]
HELD = "later: level: 8, temporary: admin (8) until 2999-01-01T00:00:00.000Z, approved by ruth"
ROADS = ["sync", "file"]


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Variables:
    connect(consistency_time=1, max_attempts=1)
    return install(monkeypatch)


def note_grant(notes: Variables, sandbox: SandboxServer, email: str, user: str | None, **fields: Any) -> str:
    """Note a grant, as the operator does, and return its key."""
    place = {"service": sandbox.url, "organization_id": SEED.organization_id}
    usual = {"user_email": email, "user_uuid": user, "until": "2999-01-01T00:00:00Z"}
    key, text = grant_notes.variable(**{**place, **usual, **fields})
    notes.values[key] = text
    return key


def note_decision(
    notes: Variables, sandbox: SandboxServer, level: int | None, user: str, email: str, **fields: Any
) -> str:
    """Note what a review decided, as the operator does, and return the key."""
    usual = {"review": "of October", "reviewer": "Rita"}
    place = {"service": sandbox.url, "organization_id": SEED.organization_id}
    person = {"email": email, "user_uuid": user, "level": level}
    key, text = decision_notes.variable(person, **{**place, **usual, **fields})
    notes.values[key] = text
    return key


def run(road: str, rows: list[Any] = EVERYBODY, _context: Any = None, **arguments: Any) -> dict[str, Any]:
    """Sync a complete list of people, on a road."""
    if road == "sync":
        given = {"protected": [OLIVE], "max_removals": None} | arguments
        result: dict[str, Any] = WorkspaceSyncMembersOperator(task_id="sync", roster=rows, **given).execute(
            _context or {}
        )
        return result
    file = {"complete": ["members"], "max_removals": None, "members": {"people": rows, "protected": [OLIVE]}}
    task = WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=file, **arguments)
    ti = SimpleNamespace(try_number=1, xcom_push=lambda **_: None, task_id="apply")
    context: Any = {"ti": ti, "task_state_store": TaskStore()}
    return task.execute(context)  # type: ignore[no-any-return]


def remove(*people: str, **arguments: Any) -> dict[str, Any]:
    """Let people go, as ``leavers``."""
    given: dict[str, Any] = {"leavers": list(people), "protected": [OLIVE], "max_removals": None} | arguments
    return WorkspaceSyncMembersOperator(task_id="offboard", **given).execute({})  # type: ignore[no-any-return]


def level_of(user_uuid: str) -> int | None:
    levels = {member.user.uuid: member.level for member in WorkspaceHook().list_members() if member.user}
    return levels.get(user_uuid)


def with_level(email: str, level: int) -> list[Any]:
    return [{"email": one, "level": level} if one == email else one for one in EVERYBODY]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("rows", [with_level(MINA, 1), [one for one in EVERYBODY if one != MINA]])
def test_a_sync_neither_lowers_nor_removes_who_has_temporary_access(
    sandbox: SandboxServer, notes: Variables, road: str, rows: list[Any]
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid)
    result = run(road, rows)
    assert HELD in result["table"]
    assert result["pending"] == 0
    assert effects(sandbox) == ["update_member"]
    assert key in notes.values


@pytest.mark.parametrize("road", [*ROADS, "sweep"])
@pytest.mark.parametrize(
    ("approved_at", "stands"),
    [("2026-11-20T10:00:01Z", True), ("2026-11-20T09:59:59Z", False), (None, False)],
    ids=["approved later", "approved before, and noted later", "noted before"],
)
def test_an_approval_and_a_decision_are_compared_by_the_clock_that_both_have(
    sandbox: SandboxServer, notes: Variables, road: str, approved_at: str | None, *, stands: bool
) -> None:
    """The API server notes both, and its clock is 20 minutes ahead of the worker that noted the grant."""
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    noted = {"since": "2026-11-20T09:40:02Z", "approved_at": approved_at}
    if approved_at and not stands:
        noted["since"] = "2026-11-20T10:05:00Z"
    note_grant(notes, sandbox, MINA, SEED.member_uuid, **noted)
    note_decision(notes, sandbox, None, SEED.member_uuid, MINA, decided_at="2026-11-20T10:00:00Z")
    if road == "sweep":
        over = {"task_id": "another", "level": 15, "then": 8, "until": "2026-11-27T10:00:00Z"}
        WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=15)
        note_grant(notes, sandbox, MINA, SEED.member_uuid, **over)
        WorkspaceSweepOperator(task_id="sweep", kinds=["grants"]).execute({})
    else:
        run(road, with_level(MINA, 1))
    assert level_of(SEED.member_uuid) == (8 if stands else None)


@pytest.mark.parametrize("road", ROADS)
def test_the_end_of_a_grant_leaves_what_a_row_gives_by_now(sandbox: SandboxServer, notes: Variables, road: str) -> None:
    """Mina was invited by the grant, joined, and is on the roster since."""
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid, then=None)
    before = notes.values[key]
    if road == "sync":
        run(road, with_level(MINA, 1), dry_run=True)
        assert notes.values[key] == before
    result = run(road, with_level(MINA, 1))
    assert f"{HELD}, then member (1)" in result["table"]
    noted = json.loads(notes.values[key])
    assert noted["then"] == 1
    assert HELD in run(road, with_level(MINA, 1))["table"]
    notes.values[key] = json.dumps({**noted, "until": "2026-11-01T00:00:00Z"})
    WorkspaceSweepOperator(task_id="sweep", kinds=["grants"]).execute({})
    assert level_of(SEED.member_uuid) == 1
    assert run(road, with_level(MINA, 1))["pending"] == 0


UNSWEPT = {"until": "2026-11-01T00:00:00Z", "then": None}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("level", [1, 8, None])
@pytest.mark.parametrize("sees_it", ["before the end", "before the sweep"])
def test_the_sweep_neither_removes_nor_lowers_who_is_on_the_roster_by_now(
    sandbox: SandboxServer, notes: Variables, road: str, level: int | None, sees_it: str
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid, then=None)
    rows = EVERYBODY if level is None else with_level(MINA, level)
    if sees_it == "before the end":
        run(road, rows)
    notes.values[key] = json.dumps({**json.loads(notes.values[key]), "until": UNSWEPT["until"]})
    if sees_it == "before the sweep":
        run(road, rows)
    WorkspaceSweepOperator(task_id="sweep", kinds=["grants"]).execute({})
    assert key not in notes.values
    assert level_of(SEED.member_uuid) == (level or 1)
    assert run(road, rows)["pending"] == 0


@pytest.mark.parametrize("leaves_out", [True, False])
def test_a_row_whose_change_is_left_out_leaves_nothing_after_a_grant(
    sandbox: SandboxServer, notes: Variables, task: Task, *, leaves_out: bool
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid, **UNSWEPT)

    def syncing() -> Any:
        given: dict[str, Any] = {"roster": with_level(MINA, 1), "protected": [OLIVE], "max_removals": None}
        return WorkspaceSyncMembersOperator(task_id="sync", require_approval=True, **given)

    option = task.ask(syncing())
    assert "then" not in json.loads(notes.values[key]), "nobody has approved it"
    (line,) = task.question.now.params["leave_out"]["schema"]["examples"]
    event = {
        "chosen_options": [option],
        "params_input": {"leave_out": [line] if leaves_out else []},
        "responded_at": datetime(2026, 11, 22, tzinfo=timezone.utc),
        "responded_by_user": {"id": "1", "name": "ruth"},
    }
    task.answer(syncing(), option, **event)
    assert json.loads(notes.values[key]).get("then") == (None if leaves_out else 1)
    assert level_of(SEED.member_uuid) == (8 if leaves_out else 1)


@pytest.mark.parametrize("road", ROADS)
def test_the_sweep_does_not_withdraw_the_invite_of_who_is_on_the_roster_by_now(
    sandbox: SandboxServer, notes: Variables, road: str
) -> None:
    invite = WorkspaceHook().create_invite(target_email="ada@example.com", level=8)
    key = note_grant(notes, sandbox, "ada@example.com", None, invite_id=str(invite.id), **UNSWEPT)
    rows = [*EVERYBODY, {"email": "ada@example.com", "level": 8}]
    result = run(road, rows)
    assert "temporary: admin (8), over since 2026-11-01T00:00:00.000Z, approved by ruth, then admin" in result["table"]
    WorkspaceSweepOperator(task_id="sweep", kinds=["grants"]).execute({})
    assert key not in notes.values
    assert effects(sandbox) == ["create_invite"]


@pytest.mark.parametrize("road", [*ROADS, "leavers"])
def test_who_is_on_no_list_or_leaves_loses_access_that_is_over_without_the_sweep(
    sandbox: SandboxServer, notes: Variables, road: str
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid, until=UNSWEPT["until"])
    if road == "leavers":
        remove(MINA)
    else:
        run(road, [one for one in EVERYBODY if one != MINA])
    assert level_of(SEED.member_uuid) is None
    assert key not in notes.values


def test_a_level_is_not_taken_for_access_that_began_meanwhile_if_that_is_over(
    sandbox: SandboxServer, notes: Variables
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid, until=UNSWEPT["until"])
    run("sync", with_level(MINA, 1))
    assert level_of(SEED.member_uuid) == 1
    assert key in notes.values, "the sweep ends it, and keeps evidence"


@pytest.mark.parametrize("road", ROADS)
def test_a_sync_does_not_withdraw_the_invite_of_temporary_access(
    sandbox: SandboxServer, notes: Variables, road: str
) -> None:
    invite = WorkspaceHook().create_invite(target_email="ada@example.com", level=8)
    note_grant(notes, sandbox, "ada@example.com", None, invite_id=str(invite.id), then=None)
    result = run(road)
    assert HELD in result["table"]
    assert effects(sandbox) == ["create_invite"]


@pytest.mark.parametrize("who", [MINA, "ada@example.com"])
def test_leavers_end_their_temporary_access_after_they_are_gone(
    sandbox: SandboxServer, notes: Variables, who: str
) -> None:
    user = SEED.member_uuid if who == MINA else None
    if user is None:
        WorkspaceHook().create_invite(target_email=who, level=8)
    key = note_grant(notes, sandbox, who, user, then=1 if user else None)
    remove(who, dry_run=True)
    assert key in notes.values
    sandbox.inject("proxy_error", "delete_member" if user else "delete_invite", status=502)
    with pytest.raises(Exception, match="502"):
        remove(who)
    assert key in notes.values, "it is not proven that they are gone"
    remove(who)
    assert key not in notes.values


def test_the_note_of_a_leaver_stays_while_the_service_still_shows_them(
    sandbox: SandboxServer, notes: Variables
) -> None:
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid)
    sandbox.inject("say", "list_members", body=listed(), times=None)
    with pytest.raises(Exception, match="Not done"):
        remove(MINA)
    assert key in notes.values


def listed() -> dict[str, Any]:
    rows = [member.to_dict() for member in WorkspaceHook().list_members()]
    return {"count": len(rows), "next": None, "results": rows}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(("level", "decided"), [(1, "lowered them to member (1)"), (None, "removed them")])
def test_a_sync_does_not_undo_the_decision_of_a_review(
    sandbox: SandboxServer, notes: Variables, road: str, level: int | None, decided: str
) -> None:
    if level is None:
        WorkspaceHook().delete_member(user_uuid=SEED.admin_uuid)
    else:
        WorkspaceHook().update_member(user_uuid=SEED.admin_uuid, level=level)
    key = note_decision(notes, sandbox, level, SEED.admin_uuid, ADAM)
    done = effects(sandbox)
    result = run(road, with_level(ADAM, 8))
    (line,) = [change for change in result["changes"] if ADAM in change["name"]]
    assert line["action"] == "differs"
    by_review = f"Rita {decided} in access review of October (2026-10-01)"
    assert line["why"] == f"{by_review}, and row 2 gives more: correct the row, or lift the decision about {ADAM}"
    assert effects(sandbox) == done
    assert key in notes.values


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("in_a_file", [False, True])
def test_access_by_hand_after_the_last_day_is_red_when_all_else_is_done(
    sandbox: SandboxServer, tmp_path: Path, road: str, *, in_a_file: bool
) -> None:
    """Also a row that ended years before, and gave that level, gives nothing any more."""
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    ended = [
        {"email": MINA, "level": 8, "until": "2015-12-31"},
        {"email": MINA, "level": 1, "until": "2020-12-31"},
    ]
    rows = [*ended, OLIVE, ADAM, GRACE, LIV]
    report = {"report_path": str(tmp_path / "report.csv")} if in_a_file and road == "sync" else {}
    for _ in range(3):
        with pytest.raises(AirflowFailException, match=rf"^\[access-left\] .*person {MINA}: .*it was 1"):
            run(road, rows, **report)
    assert effects(sandbox) == ["update_member", "delete_member"], "Noah is on no list"
    assert level_of(SEED.member_uuid) == 8
    if report:
        assert MINA in (tmp_path / "report.csv").read_text()


def test_leavers_keep_whom_another_row_keeps(sandbox: SandboxServer) -> None:
    result = remove_rows([{"email": NOAH, "until": "2020-12-31"}, {"email": NOAH}, {"email": GRACE}])
    assert "kept: row 2 has no end, and keeps them" in result["table"]
    assert [effect["target"] for effect in sandbox.effects()] == [SEED.analyst_uuid]


def remove_rows(rows: list[Any]) -> dict[str, Any]:
    given: dict[str, Any] = {"leavers": rows, "protected": [OLIVE], "max_removals": None}
    return WorkspaceSyncMembersOperator(task_id="offboard", **given).execute({})  # type: ignore[no-any-return]


def test_a_protected_address_that_matches_nobody_has_a_line(sandbox: SandboxServer) -> None:
    result = run("sync", EVERYBODY, protected=["oliv.owner@example.com"])
    assert "person oliv.owner@example.com" in result["table"]
    assert "protected, but neither a member nor invited: check the address" in result["table"]
    assert writes(sandbox) == []


@pytest.mark.parametrize("road", ROADS)
def test_a_dry_run_reads_notes_and_writes_none(sandbox: SandboxServer, notes: Variables, road: str) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    note_grant(notes, sandbox, MINA, SEED.member_uuid)
    note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    before = dict(notes.values)
    rows = [one for one in EVERYBODY if one not in (MINA, NOAH)]
    dry = run(road, rows, dry_run=True)
    assert notes.values == before
    assert effects(sandbox) == ["update_member"]
    real = run(road, rows)
    lines = [[(row["action"], row["name"], row["why"]) for row in result["changes"]] for result in (dry, real)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", ["grant", "decision"])
def test_an_unreadable_note_is_an_error_that_names_the_variable(
    sandbox: SandboxServer, notes: Variables, road: str, kind: str
) -> None:
    if kind == "grant":
        key = note_grant(notes, sandbox, MINA, SEED.member_uuid)
    else:
        key = note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    notes.values[key] = "{"
    with pytest.raises(AirflowFailException, match=rf"unreadable\] .*{key}"):
        run(road, [OLIVE])
    assert writes(sandbox) == []


@pytest.mark.parametrize("road", ROADS)
def test_without_a_list_of_variables_there_are_no_notes(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, road: str
) -> None:
    """As in Airflow 3.1."""
    notes = install(monkeypatch, release="3.1")
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    note_grant(notes, sandbox, MINA, SEED.member_uuid)
    done = run(road, with_level(MINA, 1))
    assert level_of(SEED.member_uuid) == 1
    assert "decisions of reviews are not known here" in str(done)


def test_the_command_says_that_it_knows_no_notes_where_it_can_read_none(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    monkeypatch.setattr(organization_commands, "_readable_store", lambda: None)
    (tmp_path / "team.json").write_text(json.dumps(EVERYBODY))
    (definition,) = [one for one in get_workspace_commands()[0].subcommands if one.name == "plan"]  # type: ignore[union-attr]
    parser = ArgumentParser()
    for arg in definition.args:
        arg.add_to_parser(parser)
    definition.func(parser.parse_args([str(tmp_path / "team.json")]))
    table = capfd.readouterr().out
    assert "Temporary access and decisions of reviews are not known here." in table
    assert writes(sandbox) == []


def test_who_has_more_than_a_review_decided_is_lowered_though_a_row_gives_it(
    sandbox: SandboxServer, notes: Variables
) -> None:
    note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    run("sync", with_level(ADAM, 8))
    assert level_of(SEED.admin_uuid) == 1


@pytest.fixture
def question(monkeypatch: pytest.MonkeyPatch) -> Question:
    question = Question(refreshes=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    return question


@pytest.fixture
def task(question: Question) -> Task:
    """A task that asks a person, which keeps its state for its retries."""
    return Task(question)


def approve(road: str, rows: list[Any], task: Task) -> None:
    """Let a person approve a plan, and carry it out."""

    def asking() -> Any:
        if road == "sync":
            given: dict[str, Any] = {"roster": rows, "protected": [OLIVE], "max_removals": None}
            return WorkspaceSyncMembersOperator(task_id="sync", require_approval=True, **given)
        file = {"complete": ["members"], "max_removals": None, "members": {"people": rows, "protected": [OLIVE]}}
        return WorkspacePlanOrganizationOperator(task_id="plan", file=file, require_approval=True)

    option = task.ask(asking())
    assert "Rita " in task.question.now.body
    plan = task.answer(asking(), option)
    if road == "file":
        run("file", rows, approved=plan)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("decided", [1, None])
def test_no_approval_undoes_the_decision_of_a_review_and_the_rest_goes_on(
    sandbox: SandboxServer, notes: Variables, task: Task, road: str, decided: int | None
) -> None:
    if decided is None:
        WorkspaceHook().delete_member(user_uuid=SEED.admin_uuid)
    else:
        WorkspaceHook().update_member(user_uuid=SEED.admin_uuid, level=decided)
    note_decision(notes, sandbox, decided, SEED.admin_uuid, ADAM)
    before = dict(notes.values)
    done = effects(sandbox)
    rows = [one for one in with_level(ADAM, 8) if one != GRACE]
    approve(road, rows, task)
    assert effects(sandbox) == [*done, "delete_member"]
    (removed,) = [effect["target"] for effect in sandbox.effects()][len(done) :]
    assert removed == SEED.analyst_uuid
    assert level_of(SEED.admin_uuid) == decided
    assert notes.values == before
    (line,) = [change for change in run(road, rows)["changes"] if ADAM in change["name"]]
    assert line["action"] == "differs"


def test_an_approved_plan_lowers_who_has_more_than_a_review_decided(
    sandbox: SandboxServer, notes: Variables, task: Task
) -> None:
    """A person got their level back by hand, and the row gives it."""
    note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    approve("sync", with_level(ADAM, 8), task)
    assert level_of(SEED.admin_uuid) == 1


def lift(email: str, **arguments: Any) -> WorkspaceLiftDecisionOperator:
    return WorkspaceLiftDecisionOperator(
        task_id="lift", user_email=email, reason="The review was wrong", allow_self_approval=False, **arguments
    )


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("decided", [1, None])
def test_a_decision_that_somebody_lifted_on_purpose_does_not_count_and_says_who_did_it(
    sandbox: SandboxServer, notes: Variables, question: Question, road: str, decided: int | None
) -> None:
    if decided is None:
        WorkspaceHook().delete_member(user_uuid=SEED.admin_uuid)
    else:
        WorkspaceHook().update_member(user_uuid=SEED.admin_uuid, level=decided)
    late = note_decision(notes, sandbox, decided, SEED.admin_uuid, ADAM)
    early = note_decision(
        notes, sandbox, 1, SEED.admin_uuid, "adam@example.com", review="of June", decided_at="2026-05-28T20:26:40Z"
    )
    other = note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM, organization_id="another")
    before = dict(notes.values)
    done = effects(sandbox)
    assert lift(ADAM, dry_run=True).execute({})["pending"] == 2
    task = Task(question, started_by="sam")
    option = task.ask(lift(ADAM))
    assert f"decision about {ADAM}" in question.text
    assert "The review was wrong" in question.text
    assert notes.values == before
    result = task.answer(lift(ADAM), option)
    assert [(row["review"], row["by"], row["approved_by"]) for row in result["lifted"]] == [
        ("of June", "sam", "ruth (1)"),
        ("of October", "sam", "ruth (1)"),
    ]
    assert notes.values.keys() == before.keys()
    assert notes.values[other] == before[other]
    for key in (late, early):
        (person,) = json.loads(notes.values[key])["people"]
        assert person.pop("lifted")["reason"] == "The review was wrong"
        assert [person] == json.loads(before[key])["people"]
    assert effects(sandbox) == done
    rows = with_level(ADAM, 8)
    run(road, rows)
    assert effects(sandbox)[len(done) :] == ["create_invite" if decided is None else "update_member"]
    assert run(road, rows)["pending"] == 0


def test_whoever_asks_to_lift_a_decision_or_whom_it_is_about_does_not_approve_it(
    sandbox: SandboxServer, notes: Variables, question: Question
) -> None:
    key = note_decision(notes, sandbox, 1, SEED.admin_uuid, "adam.old@example.com")
    before = notes.values[key]
    task = Task(question, started_by="sam")
    option = task.ask(lift("adam.old@example.com"))
    for user in ("sam", "adam.old", ADAM):
        answer: dict[str, Any] = {"chosen_options": [option], "responded_by_user": {"id": user, "name": user}}
        with pytest.raises(AirflowFailException, match="answerer-refused"):
            task.answer(lift("adam.old@example.com"), option, **answer)
    assert notes.values[key] == before


def test_a_lift_that_was_killed_lets_the_last_decision_count_until_its_retry(
    sandbox: SandboxServer, notes: Variables, question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM, review="of June", decided_at="2026-05-28T20:26:40Z")
    task = Task(question, started_by="sam")
    option = task.ask(lift(ADAM))
    with monkeypatch.context() as patch:
        noted: list[str] = []

        def set_once(key: str, value: str, description: str | None = None) -> None:  # noqa: ARG001
            if noted:
                raise Killed
            noted.append(key)
            notes.values[key] = value

        patch.setattr(notes, "set", set_once)
        with pytest.raises(Killed):
            task.answer(lift(ADAM), option)
    run("sync", with_level(ADAM, 8))
    assert level_of(SEED.admin_uuid) == 1, "the review of October still counts"
    result = lift(ADAM).execute(task.context)
    assert [row["approved_by"] for row in result["lifted"]] == ["ruth (1)"] * 2
    run("sync", with_level(ADAM, 8))
    assert level_of(SEED.admin_uuid) == 8


@pytest.mark.parametrize("lifted", [True, {}, {"by": "sam", "at": "2026-11-28T00:00:00Z"}, {"by": "", "reason": "-"}])
def test_who_lifts_a_decision_without_a_name_or_a_reason_makes_it_unreadable(
    sandbox: SandboxServer, notes: Variables, lifted: Any
) -> None:
    key = note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    note = json.loads(notes.values[key])
    note["people"][0]["lifted"] = lifted
    notes.values[key] = json.dumps(note)
    with pytest.raises(AirflowFailException, match=rf"^\[decisions-unreadable\] .*{key}"):
        run("sync", with_level(ADAM, 8))
    with pytest.raises(AirflowFailException, match=rf"^\[decisions-unreadable\] .*{key}"):
        lift(ADAM).execute({})


def test_a_decision_about_an_invite_whose_address_is_hidden_is_lifted_by_its_id(
    sandbox: SandboxServer, notes: Variables
) -> None:
    person = {"invite_id": SEED.invite_id, "level": None}
    place = {"service": sandbox.url, "organization_id": SEED.organization_id}
    key, text = decision_notes.variable(person, **place)
    notes.values[key] = text
    (row,) = lift(SEED.invite_id, require_approval=False).execute({})["lifted"]
    assert (row["who"], row["by"]) == (SEED.invite_id, "run - of Dag -")


def test_a_lift_names_whom_it_cannot_tell_apart_or_does_not_find(sandbox: SandboxServer, notes: Variables) -> None:
    with pytest.raises(AirflowFailException, match=f"No decision about {ADAM}"):
        lift(ADAM).execute({})
    note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    note_decision(notes, sandbox, None, SEED.member_uuid, ADAM, review="of June")
    with pytest.raises(AirflowFailException, match=f"2 users had the address {ADAM}.*{SEED.admin_uuid}"):
        lift(ADAM).execute({})
    result = lift(SEED.admin_uuid, require_approval=False).execute({})
    assert [row["review"] for row in result["lifted"]] == ["of October"]
    again = lift(SEED.admin_uuid).execute({})
    assert again == result, "what is lifted stays as it was, and nobody is asked"
    with pytest.raises(AirflowFailException, match="reason must have 1 to 500 characters"):
        WorkspaceLiftDecisionOperator(task_id="lift", user_email=SEED.admin_uuid, reason="x" * 501).execute({})


def test_notes_of_another_organization_or_service_say_nothing(sandbox: SandboxServer, notes: Variables) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    for elsewhere in ({"organization_id": "another"}, {"service": "https://other.example.com"}):
        note_grant(notes, sandbox, MINA, SEED.member_uuid, **elsewhere)
        note_decision(notes, sandbox, None, SEED.admin_uuid, ADAM, **elsewhere)
    before = dict(notes.values)
    run("sync", with_level(MINA, 1))
    assert (level_of(SEED.member_uuid), level_of(SEED.admin_uuid)) == (1, 8)
    remove(MINA)
    assert notes.values == before


@pytest.mark.parametrize("who", [MINA, "ada@example.com"])
def test_leavers_end_what_the_operator_gave_and_the_sweep_finds_nothing(
    sandbox: SandboxServer, notes: Variables, who: str
) -> None:
    give(who, 8)
    remove(who)
    assert notes.values == {}
    done = effects(sandbox)
    assert WorkspaceSweepOperator(task_id="sweep", kinds=["grants"]).execute({})["grants"]["ended"] == []
    assert effects(sandbox) == done


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("who", "request_"), [(MINA, "PATCH"), ("ada@example.com", "POST")])
def test_a_sync_between_the_note_of_a_grant_and_its_effect_leaves_it(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, moment: str, who: str, request_: str
) -> None:
    rows = with_level(MINA, 1)
    syncs: list[Any] = []
    getattr(Interruptions(monkeypatch), moment)(f"{request_} /", lambda: syncs.append(run("sync", rows)))
    assert give(who, 8)["granted"]
    assert len(syncs) == 1
    assert effects(sandbox) == ["update_member" if who == MINA else "create_invite"]


def test_a_sync_that_took_what_a_grant_has_just_given_is_red(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    Interruptions(monkeypatch).before("PATCH", lambda: give(MINA, 15))
    with pytest.raises(
        AirflowFailException,
        match=rf"^\[granted-meanwhile\] .*start a new run .*member {MINA}: temporary: owner \(15\)",
    ):
        run("sync", with_level(MINA, 1))
    assert level_of(SEED.member_uuid) == 1
    assert effects(sandbox) == ["update_member"] * 3


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("when", ["before it", "meanwhile"])
@pytest.mark.parametrize("gives", ["invite", "raise"])
def test_what_a_review_decides_meanwhile_is_not_undone(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, road: str, when: str, gives: str
) -> None:
    """Nothing is sent, or the run is red, and a retry takes what went out."""
    level = None if gives == "invite" else 1
    if gives == "invite":
        WorkspaceHook().delete_member(user_uuid=SEED.member_uuid)
    before = effects(sandbox)

    def decide() -> None:
        note_decision(notes, sandbox, level, SEED.member_uuid, MINA)

    interruptions = Interruptions(monkeypatch)
    if when == "before it":
        interruptions.after("/members/", decide)
    else:
        interruptions.before("POST" if gives == "invite" else "PATCH", decide)
    rows = with_level(MINA, 8)
    with pytest.raises(WorkspaceError, match=rf"^\[decided-meanwhile\] .*1 person .*{MINA}: Rita .* access review"):
        run(road, rows)
    given = "create_invite" if gives == "invite" else "update_member"
    taken = "delete_invite" if gives == "invite" else "update_member"
    sent = effects(sandbox)[len(before) :]
    assert [one.removesuffix("s") for one in sent] == ([] if when == "before it" else [given])
    run(road, rows)
    assert effects(sandbox)[len(before) + len(sent) :] == ([] if when == "before it" else [taken])
    assert level_of(SEED.member_uuid) == level


NOAH_LEAVES = [OLIVE, ADAM, GRACE, LIV, {"email": MINA, "level": 8}, {"email": NOAH, "until": "2026-10-01"}]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("is_late", [False, True])
def test_the_grants_of_who_was_removed_end_though_a_review_decides_meanwhile(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, road: str, *, is_late: bool
) -> None:
    """Where the review decides after the last look at what was sent, this run ends the grant; before, the next one."""
    key = note_grant(notes, sandbox, NOAH, SEED.absent_uuid, level=1, then=None)
    with monkeypatch.context() as patch:
        interruptions = Interruptions(patch)

        def decide() -> None:
            note_decision(notes, sandbox, 1, SEED.member_uuid, MINA)

        if is_late:
            interruptions.after("PATCH", lambda: interruptions.after("/members/", decide))
        else:
            interruptions.after("DELETE", decide)
        with pytest.raises(WorkspaceError, match="decided-meanwhile"):
            run(road, NOAH_LEAVES)
    assert level_of(SEED.absent_uuid) is None
    assert (key in notes.values) == (not is_late)
    result = run(road, NOAH_LEAVES)
    assert key not in notes.values
    assert ("is neither a member nor invited; ends temporary: member (1)" in result["table"]) == (not is_late)


def test_a_killed_removal_of_leavers_ends_their_grants_in_its_retry(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid)
    with monkeypatch.context() as patch:
        Interruptions(patch).after("DELETE")
        with pytest.raises(Killed):
            remove(MINA)
    remove(MINA)
    assert key not in notes.values


@pytest.mark.parametrize("hidden", [False, True])
def test_a_grant_stays_noted_while_its_person_may_have_access(
    sandbox: SandboxServer, notes: Variables, *, hidden: bool
) -> None:
    """Their user is not known, so they may have accepted the invite under another address; or a member hides theirs."""
    user = SEED.research_uuid if hidden else None
    key = note_grant(notes, sandbox, "ada@example.com", user, invite_id=SEED.absent_uuid, then=None)
    if hidden:
        rows = listed()
        rows["results"][-1]["user"]["uuid"] = None
        sandbox.inject("say", "list_members", body=rows, times=None)
    assert "the sweep ends temporary" in remove("ada@example.com")["table"]
    assert key in notes.values


@pytest.mark.parametrize(
    "person",
    [
        {},
        {"level": 1},
        {"email": ADAM},
        {"email": ADAM, "levle": 1},
        {"email": ADAM, "level": "1"},
    ],
)
def test_half_of_a_decision_is_unreadable_and_removes_nobody(
    sandbox: SandboxServer, notes: Variables, person: dict[str, Any]
) -> None:
    key = note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    notes.values[key] = json.dumps({**json.loads(notes.values[key]), "people": [person]})
    with pytest.raises(AirflowFailException, match=rf"^\[decisions-unreadable\] .*{key}"):
        run("sync", with_level(ADAM, 8))
    assert writes(sandbox) == []


def give(email: str, level: int) -> dict[str, Any]:
    """Give temporary access for an hour, by the operator."""
    ti = SimpleNamespace(dag_id="access", run_id="manual__1", map_index=-1, try_number=1, id=uuid4())
    task = WorkspaceGrantAccessOperator(task_id="grant", user_email=email, level=level, reason="audit", length=3600)
    return task.execute({"ti": ti})  # type: ignore[no-any-return,arg-type,typeddict-item]


@pytest.mark.parametrize("what", ["a decision", "a grant", "one invite", "a later chunk"])
def test_the_operators_for_one_person_and_invites_ask_directly_before_each_request(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, connect: Connect, what: str
) -> None:
    connect(consistency_time=1, max_attempts=1, bulk_invite_limit=2)
    held = 8 if what == "a grant" else 1
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=held)
    eve, others = "eve@example.com", [f"{name}@example.com" for name in "abcd"]
    people = {"level": 8, "target_email": eve}
    tasks: dict[str, Any] = {
        "a decision": WorkspaceUpdateMemberOperator(task_id="update", user_uuid=SEED.member_uuid, level=8),
        "a grant": WorkspaceUpdateMemberOperator(task_id="update", user_uuid=SEED.member_uuid, level=1),
        "one invite": WorkspaceCreateInviteOperator(task_id="invite", **people),
        "a later chunk": WorkspaceCreateInvitesOperator(task_id="invite", invites=[*others, eve]),
    }
    begun: dict[str, tuple[str, Callable[[], object]]] = {
        "a decision": ("/members/", lambda: note_decision(notes, sandbox, 1, SEED.member_uuid, MINA)),
        "a grant": ("/members/", lambda: note_grant(notes, sandbox, MINA, SEED.member_uuid, level=15)),
        "one invite": ("/invites/", lambda: note_decision(notes, sandbox, None, str(uuid4()), eve)),
        "a later chunk": ("/bulk/", lambda: note_decision(notes, sandbox, None, str(uuid4()), eve)),
    }
    Interruptions(monkeypatch).after(*begun[what])
    with pytest.raises(WorkspaceError, match=r"^\[decided-meanwhile\] .*(Rita removed|Rita lowered|temporary: owner)"):
        tasks[what].execute({})

    def invited() -> set[str | None]:
        return {invite.target_email for invite in WorkspaceHook().list_invites()} & {eve, *others}

    assert eve not in invited()
    assert bool(invited()) == (what == "a later chunk")
    with pytest.raises(AirflowFailException, match=r"Rita removed|Rita lowered|temporary: owner|1 of 5"):
        tasks[what].execute({})
    assert invited() == (set(others) if what == "a later chunk" else set())
    assert level_of(SEED.member_uuid) == held


def test_invites_read_grants_once_and_decisions_before_each_request(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    connect(consistency_time=1, max_attempts=1, bulk_invite_limit=2)
    note_grant(notes, sandbox, MINA, SEED.member_uuid)
    note_decision(notes, sandbox, 1, SEED.admin_uuid, ADAM)
    read: Counter[str] = Counter()
    get = notes.get

    def counting(key: str, *args: Any, **options: Any) -> Any:
        kind, _, _ = key.partition(".")
        read[kind] += 1
        return get(key, *args, **options)

    monkeypatch.setattr(notes, "get", counting)
    emails = [f"{name}@example.com" for name in "abcdef"]
    WorkspaceCreateInvitesOperator(task_id="invite", invites=emails).execute({})
    assert effects(sandbox) == ["create_invite"] * 6
    assert read == {"workspace_grant": 1, "workspace_decisions": 4}


def test_a_door_asks_before_requests_only_as_long_as_it_is_open(sandbox: SandboxServer) -> None:
    with WorkspaceHook() as hook:
        notes = AccessNotes.of_tasks(hook.client.settings, SEED.organization_id)
        door = notes.door(hook.client, NO_GUARDS)
        earlier = hook.client.before_write
        with suppress(Killed), notes.asked_again(door):
            assert hook.client.before_write is not earlier
            raise Killed
        assert hook.client.before_write is earlier
    assert writes(sandbox) == []


def test_a_row_that_gives_more_while_a_grant_is_given_does_not_stop_it(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = with_level(MINA, 8)
    Interruptions(monkeypatch).after("PATCH", lambda: run("sync", rows))
    given = give(MINA, 15)
    assert (given["granted"], given["then"]) == (True, 8)
    assert level_of(SEED.member_uuid) == 15
    assert effects(sandbox) == ["update_member"]


# Rows that name a user whose address has changed


@pytest.mark.parametrize("road", ["roster", "leavers"])
def test_who_is_protected_under_an_older_address_is_kept(sandbox: SandboxServer, road: str) -> None:
    set_address(sandbox, SEED.admin_uuid, "adam.new@example.com")
    columns = {"email": "email", "id": "user_uuid"}
    people = [{"email": email, "id": ""} for email in (GRACE, NOAH, LIV, MINA)] if road == "roster" else []
    adam = {"email": ADAM, "id": SEED.admin_uuid}
    rows: dict[str, Any] = {road: [adam, *people], "columns": columns, "protected": [OLIVE, ADAM]}
    if road == "roster":
        rows["defaults"] = {"level": 1}
        assert (
            "by hand: level: 8 -> 1, another level on the roster, but protected"
            in run("sync", rows.pop("roster"), **rows)["table"]
        )
    else:
        with pytest.raises(AirflowFailException, match=r"^\[access-left\] .* is leaving, but protected"):
            WorkspaceSyncMembersOperator(task_id="sync", **rows).execute({})
    assert effects(sandbox) == []


@pytest.mark.parametrize("email", ["noah.n@example.com", NOAH])
@pytest.mark.parametrize("road", ["roster", "leavers"])
def test_a_decision_about_a_user_whom_a_row_names_counts_at_any_address(
    sandbox: SandboxServer, notes: Variables, road: str, email: str
) -> None:
    note_decision(notes, sandbox, None, SEED.absent_uuid, NOAH)
    note_grant(notes, sandbox, NOAH, SEED.absent_uuid, level=8, since="2026-01-01T00:00:00Z")
    with WorkspaceHook() as hook:
        hook.delete_member(user_uuid=SEED.absent_uuid)
    columns = {"email": "email", "id": "user_uuid"}
    noah = {"email": email, "id": SEED.absent_uuid}
    given: dict[str, Any] = {"columns": columns, "protected": [OLIVE], "max_removals": None}
    if road == "leavers":
        task = WorkspaceSyncMembersOperator(task_id="sync", leavers=[noah], **given)
        assert "temporary" in task.execute({})["table"]
        return
    rows = [noah, *({"email": email, "id": ""} for email in (ADAM, MINA, GRACE, LIV))]
    assert "by hand: Rita removed them in access review of October" in run("sync", rows, **given)["table"]
    assert effects(sandbox) == ["delete_member"]


# What a plan notes and sends while others of its changes are refused


@pytest.mark.parametrize("why", ["refused", "max_removals"])
@pytest.mark.parametrize("road", ROADS)
def test_what_a_row_leaves_after_a_grant_is_noted_whatever_becomes_of_other_rows(
    sandbox: SandboxServer, notes: Variables, road: str, why: str
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    key = note_grant(notes, sandbox, MINA, SEED.member_uuid, then=None)
    sandbox.inject("status_before", "delete_member", status=400, times=None)
    rows = [email for email in EVERYBODY if email not in (NOAH, LIV, GRACE)]
    arguments = {"max_removals": 1} if why == "max_removals" and road == "sync" else {}
    with pytest.raises(AirflowFailException, match=r"too-many-removals|changes-refused"):
        run(road, [{"email": MINA, "level": 1} if email == MINA else email for email in rows], **arguments)
    assert json.loads(notes.values[key])["then"] == 1


def test_no_invite_is_withdrawn_to_be_renewed_where_others_are_refused(sandbox: SandboxServer) -> None:
    members = [f"member-{number}@example.com" for number in range(5)]
    with WorkspaceHook() as hook:
        for email in members:
            sandbox.accept_invite(str(hook.create_invite(target_email=email, level=1).id))
    sandbox.inject("status_before", "update_member", status=403, times=None)
    rows = [email for email in EVERYBODY if email != LIV]
    rows += [{"email": email, "level": 8} for email in [*members, LIV]]
    with pytest.raises(AirflowFailException, match="changes-refused"):
        run("sync", rows, renew_invites=True)
    assert [invite.level for invite in WorkspaceHook().list_invites() if invite.target_email == LIV] == [1]
