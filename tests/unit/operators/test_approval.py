"""``require_approval`` against the sandbox: the task asks before it sends, and sends only what was approved."""

from __future__ import annotations

import csv
import json
import re
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.execution_time import task_runner

from airflow_provider_workspace.errors import WorkspaceRequestError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.members import WorkspaceDeleteMemberOperator, WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException
from tests import grant_notes
from tests.audit import effects, set_address
from tests.interruptions import Interruptions
from tests.task_instance import Killed, Question, Task
from tests.variables import install

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [pytest.mark.parametrize("sandbox", ["live"], indirect=True), pytest.mark.usefixtures("no_waits")]

LIV, NOAH = "liv.invited@example.com", "noah.newton@example.com"
ROSTER = [{"email": "adam.admin@example.com"}, {"email": "mina.member@example.com", "level": 8}, "ada@example.com"]


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


@pytest.fixture(params=[False, True], ids=["kept, store", "refreshed, no store"])
def task(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Task:
    question = Question(refreshes=request.param)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    return Task(question, store=not request.param)


def sync(roster: Any = ROSTER, **arguments: Any) -> WorkspaceSyncMembersOperator:
    arguments = {"require_approval": True, "max_removals": None, "protected": [], **arguments}
    return WorkspaceSyncMembersOperator(task_id="sync", roster=roster, **arguments)


ALL = ["delete_invite", "delete_member", "delete_member", "update_member", "create_invite"]


def test_the_question_shows_the_plan_and_the_approved_plan_is_applied(sandbox: SandboxServer, task: Task) -> None:
    approve = task.ask(sync(approval_timeout=timedelta(days=3), approvers=["7", "1"]))
    asked = task.question.now
    where = f"organization {SEED.organization_id} at {sandbox.url}"
    assert asked.subject == f"Make these changes to the members of {where}?"
    assert (
        "| remove | member noah.newton@example.com (Noah Newton) | level: member (1), not on the roster |\n"
        in task.question.text
    )
    assert f"(5 changes, plan {approve.rpartition(' ')[2]})" in task.question.text
    assert [user.id for user in asked.assigned_users] == ["7", "1"]
    assert getattr(task.resume, "timeout", None) in (timedelta(days=3), None)
    assert effects(sandbox) == []
    plan = task.answer(sync(), approve)
    assert effects(sandbox) == ALL
    assert plan["pending"] == 5
    assert task.pushed["approved"] == {
        "plan": approve.rpartition(" ")[2],
        "by": "ruth",
        "by_id": "1",
        "at": "2026-11-22 00:00:00+00:00",
        "requested_by": "",
        "self_approved": False,
        "left_out": [],
    }
    again = sync().execute(task.context)
    assert len(task.question.asked) == 1, "nobody is asked about nothing"
    told = {row["reason"].partition(",")[0] for row in again["changes"] if row["status"] == "done"}
    assert told == (set() if task.question.refreshes else {"sent by try 1"})


@pytest.mark.parametrize(
    ("arguments", "answer", "ends", "message"),
    [
        ({}, {"chosen_options": ["Reject"]}, AirflowSkipException, "ruth .1. rejected plan"),
        ({"fail_on_reject": "yes"}, {"chosen_options": ["Reject"]}, AirflowFailException, "ruth .1. rejected plan"),
        ({}, {"error": "", "error_type": "timeout"}, AirflowFailException,
         "Nobody answered in time; nothing was sent. Clear the task"),
        ({}, {"error": "broken", "error_type": "unknown"}, AirflowFailException, "broken"),
        *(({}, {"chosen_options": odd}, AirflowFailException, r"expected \['Approve .*'\] or \['Reject'\]")
         for odd in ([], None, "IT", ["IT", "Reject"], ["IT", "IT"], [7])),
    ],
)  # fmt: skip
def test_nothing_is_sent_without_an_approval(
    sandbox: SandboxServer,
    task: Task,
    capsys: pytest.CaptureFixture[str],
    arguments: Any,
    answer: Any,
    ends: Any,
    message: str,
) -> None:
    """``IT`` stands for the option that approves."""
    approve = task.ask(sync())
    answer = json.loads(json.dumps(answer).replace('"IT"', f'"{approve}"'))
    given = {"params_input": {}, "responded_by_user": {"id": "1", "name": "ruth"}}
    with pytest.raises(ends, match=message):
        task.answer(sync(**arguments), approve, **given, **answer)
    assert effects(sandbox) == []
    if "rejected" in message:
        assert f"ruth (1) rejected plan {approve.rpartition(' ')[2]}. Nothing was sent" in capsys.readouterr().out


RUTH, NOBODY = {"id": "1", "name": "ruth"}, {"id": "Anonymous", "name": "Anonymous"}
STRICT = {"allow_self_approval": False}
OWN_ACCESS = ".* answered, and nobody decides about their own access"


@pytest.mark.parametrize(
    ("arguments", "started_by", "user", "refused"),
    [
        ({}, "ruth", RUTH, ""),
        ({}, None, NOBODY, ""),
        *(({}, None, user, "Airflow does not say who answered")
          for user in (None, "ruth", {}, {"name": "ruth"}, {"id": ""}, {"id": None, "name": "ruth"})),
        ({"approvers": ["2"]}, None, RUTH, r"ruth \(1\) answered, and only these users were asked: 2"),
        ({"approvers": ["2"]}, None, NOBODY, "Anonymous answered, and only these users were asked: 2"),
        # A user may choose a name, but not an id.
        ({"approvers": ["ruth"]}, None, RUTH, r"ruth \(1\) answered, and only these users were asked: ruth"),
        (STRICT, "max", RUTH, ""),
        (STRICT, "ruth", RUTH, r"ruth \(1\) asked for this"),
        (STRICT, "1", RUTH, r"ruth \(1\) asked for this"),
        (STRICT, "RUTH", RUTH, r"ruth \(1\) asked for this"),
        ({**STRICT, "requested_by": "Ruth@example.com"}, "bot", RUTH, r"ruth \(1\) asked for this"),
        *(({**STRICT, "requested_by": named}, "bot", RUTH, r"ruth \(1\) asked for this")
          for named in ("R. <ruth@example.com>", "mailto:ruth@example.com", "adam@example.com, ruth@example.com")),
        (STRICT, "R. (ruth@example.com)", RUTH, r"ruth \(1\) asked for this"),
        ({**STRICT, "requested_by": "max"}, "ruth", RUTH, r"ruth \(1\) asked for this"),
        ({**STRICT, "requested_by": "max"}, None, RUTH, ""),
        ({**STRICT, "approvers": ["1", "2"]}, "ruth", RUTH, r"ruth \(1\) asked for this"),
        ({**STRICT, "approvers": ["1", "2"]}, None, RUTH, ""),
        (STRICT, "root", NOBODY, "Everybody is 'Anonymous'"),
        (STRICT, "max", {"id": "9", "name": "Mina.Member+a@example.com"}, OWN_ACCESS),
        (STRICT, "max", {"id": "mina.member", "name": "Mina"}, OWN_ACCESS),
        (STRICT, "max", {"id": "mina.member@other.example", "name": "Mina"}, ""),
        (STRICT, "max", {"id": "9", "name": "Mina Member <Mina.Member@example.com>"}, OWN_ACCESS),
        (STRICT, "max", {"id": "9", "name": "Mina (mina.member@example.com)"}, OWN_ACCESS),
        (STRICT, "max", {"id": "9", "name": "Mina Member <mina.member@other.example>"}, ""),
        ({"approvers": ["max", " ruth", " 1"]}, None, RUTH, ""),
    ],
)  # fmt: skip
def test_who_answered_is_judged_whatever_airflow_permits(
    sandbox: SandboxServer, task: Task, arguments: Any, started_by: Any, user: Any, refused: str
) -> None:
    task.context["dag_run"].triggering_user_name = started_by
    approve = task.ask(sync(**arguments))
    given = {"params_input": {}, "responded_at": "today", "responded_by_user": user}
    if not refused:
        task.answer(sync(**arguments), approve, **given, chosen_options=[approve])
        asked = task.pushed["approved"]["requested_by"], task.pushed["approved"]["self_approved"]
        assert asked == (arguments.get("requested_by") or started_by or "", started_by == "ruth")
        return
    with pytest.raises(
        AirflowFailException, match=rf"^\[answerer-refused\] WorkspaceInputError: {refused}.*Clear the task"
    ):
        task.answer(sync(**arguments), approve, **given, chosen_options=[approve])
    assert effects(sandbox) == []
    task.clear()
    if task.question.refreshes:
        task.ask(sync(**arguments))


def test_who_asks_may_withdraw_it_and_others_who_were_not_asked_may_not(task: Task) -> None:
    task.context["dag_run"].triggering_user_name = "ruth"
    task.ask(sync(**STRICT))
    with pytest.raises(AirflowSkipException, match="rejected"):
        task.answer(sync(**STRICT), "Reject")
    task.clear()
    task.ask(sync(approvers=["2"]))
    with pytest.raises(AirflowFailException, match="answerer-refused"):
        task.answer(sync(approvers=["2"]), "Reject")


@pytest.mark.parametrize(
    ("arguments", "started_by", "message"),
    [
        ({}, None, r"does not say who asks \(no user started this run\).*approvers=\[…\], or allow_self_approval=True"),
        ({}, "Anonymous", r"does not say who asks \(Anonymous\)"),
        ({"requested_by": "ruth"}, "Anonymous", r"does not say who asks \(ruth \(run started by Anonymous\)\)"),
        ({"approvers": ["ruth"]}, "ruth", "Each of the approvers asks .* nobody else may answer. .*: approvers=ruth"),
        ({"approvers": ["ruth", "mina.member@example.com"]}, "ruth", "approvers=ruth, mina.member@example.com"),
    ],
)
def test_a_question_that_nobody_may_answer_is_not_asked(
    task: Task, arguments: Any, started_by: Any, message: str
) -> None:
    task.context["dag_run"].triggering_user_name = started_by
    with pytest.raises(AirflowFailException, match=rf"^\[answerer-refused\] WorkspaceInputError: .*{message}"):
        sync(**STRICT, **arguments).execute(task.context)
    assert task.question.asked == []


@pytest.mark.parametrize(
    ("arguments", "started_by", "shown"),
    [
        ({}, "ruth", "- **Asked by**: ruth\n\n"),
        ({}, "ruth", "\n\n**1 to create, 1 to change, 3 to remove, 1 kept**\n\n| Change | Who or what | "),
        ({}, None, "- **Asked by**: not known ("),
        ({"requested_by": "ada@example.com"}, None, "- **Asked by**: ada@example.com\n"),
        ({"requested_by": "Ruth"}, "ruth", "- **Asked by**: Ruth\n"),
        ({"requested_by": "_a_<b>"}, "bot", "- **Asked by**: &#95;a&#95;&#60;b&#62; (run started by bot)\n"),
        (STRICT, "ruth", "\n\nNobody approves their own request: not who asks, and not whom it is about.\n"),
        ({"approval_timeout": 3600}, "ruth", "- **Answer until**: 20"),
    ],
)
def test_the_question_says_who_asks_and_who_may_not_approve(
    task: Task, arguments: Any, started_by: Any, shown: str
) -> None:
    task.context["dag_run"].triggering_user_name = started_by
    task.ask(sync(**arguments))
    assert shown in task.question.text


@pytest.mark.parametrize("rules", [None, {}, {"approvers": []}])
def test_an_answer_to_a_question_of_another_release_is_refused(sandbox: SandboxServer, task: Task, rules: Any) -> None:
    approve = task.ask(sync())
    task.resume.kwargs["rules"] = rules
    with pytest.raises(AirflowFailException, match=r"Another release .*Clear the task to ask again"):
        task.answer(sync(), approve)
    assert effects(sandbox) == []


def test_an_approval_that_another_release_noted_is_not_used(sandbox: SandboxServer, task: Task) -> None:
    approve = task.ask(sync())
    if "task_state_store" not in task.context:
        return
    noted = {"plan": approve.rpartition(" ")[2], "changes": task.resume.kwargs["changes"], "by": "ruth", "at": "today"}
    task.context["task_state_store"]["airflow_provider_workspace_approved"] = {**noted, "max_tries": task.ti.max_tries}
    assert task.ask(sync()) == approve
    assert effects(sandbox) == []


@pytest.mark.usefixtures("notes", "no_waits")
@pytest.mark.needs_airflow("3.3", "task state")
def test_a_task_that_is_cleared_while_it_runs_asks_again(
    sandbox: SandboxServer, task: Task, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow restarts it with the same number of tries; it counts the clearing for the run."""
    connect(consistency_time=1, max_attempts=1)
    task.context["dag_run"].clear_number = 0
    approve = task.ask(sync())
    Interruptions(monkeypatch).after("DELETE")
    with pytest.raises(Killed):
        task.answer(sync(), approve)
    sent = effects(sandbox)
    task.context["dag_run"].clear_number = 1
    task.ti.try_number = 2
    with pytest.raises(BaseException, match=r"^$|still shows the question of an earlier try"):
        sync().execute(task.context)
    assert effects(sandbox) == sent


MESSAGE = "``` Welcome! " * 20 + " " * 3000 + "All of it."
GRANTS = {"first_name": "Ada", "message": MESSAGE, "private_project_access": [{"id": 1}]}
INVITED: list[Any] = [*ROSTER[:2], "olive.owner@example.com", {"email": "ada@example.com", **GRANTS}]


def set_level(user_uuid: str) -> None:
    with WorkspaceHook() as hook:
        hook.update_member(user_uuid=user_uuid, level=15)


@pytest.mark.parametrize(
    ("roster", "promoted", "stale"),
    [
        ([*INVITED[:3], "mia@example.com"], None, r"\+ invite mia@example\.com"),
        *(([*INVITED[:3], {**INVITED[3], **changed}], None, r"\+ invite ada@example\.com")
         for changed in ({"first_name": "Eve"}, {"message": ""}, {"private_project_access": [{"id": 2}]})),
        (INVITED, SEED.member_uuid, r"~ member mina\.member@example\.com +level: 15 -> 8"),
        (INVITED, SEED.absent_uuid, r"- member noah\.newton@example\.com +level: 15, not on the roster"),
    ],
)  # fmt: skip
def test_an_approval_covers_each_field_and_what_it_starts_from(
    sandbox: SandboxServer, task: Task, roster: list[Any], promoted: str | None, stale: str
) -> None:
    """The plan of another task that is passed on, too."""
    earlier = sync(INVITED, owner_level=None, dry_run=True).execute(task.context)
    assert [change["after"] for change in earlier["changes"] if change["action"] == "create"] == [GRANTS]
    assert task.question.asked == []
    approve = task.ask(sync(INVITED, owner_level=None))
    for shown in ("first_name: Ada", "Welcome!␣*3001All of it.", 'private_project_access: [{"id": 1}]'):
        assert shown in unescape(task.question.text)
    assert "```" not in task.question.text, "texts of a plan are no Markdown"
    if promoted is not None:
        set_level(promoted)
    before = effects(sandbox)
    with pytest.raises(
        AirflowFailException,
        match=rf"(?s)1 of 5 changes are not in .*ruth \(1\) approved, .*Start a new run.*\n  {stale}",
    ):
        task.answer(sync(roster, owner_level=None), approve)
    with pytest.raises(AirflowFailException, match=rf"(?s)1 of 5 changes .*Plan again.*\n  {stale}"):
        sync(roster, owner_level=None, require_approval=False, approved=earlier).execute({})
    assert effects(sandbox) == before


def test_an_upgrade_while_a_plan_waits_for_its_approval_is_named(sandbox: SandboxServer, task: Task) -> None:
    approve, earlier = task.ask(sync()), sync(dry_run=True, require_approval=False).execute({})
    task.resume.kwargs["changes"] = [f"0{one}" for one in task.resume.kwargs["changes"]]
    with pytest.raises(AirflowFailException, match=r"Another release of this package made plan .*Start a new run"):
        task.answer(sync(), approve)
    for change in earlier["changes"]:
        change["digest"] = change["digest"] and change["digest"].partition(":")[2]
    with pytest.raises(
        AirflowFailException, match=r"Another release of this package made the approved plan. Plan again"
    ):
        sync(require_approval=False, approved=earlier).execute({})
    assert effects(sandbox) == []


def test_a_cleared_task_does_not_apply_a_new_plan_with_an_old_approval(sandbox: SandboxServer, task: Task) -> None:
    """Airflow may keep the first question; then the task does not ask again."""
    old = task.ask(sync())
    task.answer(sync(), old)
    before = effects(sandbox)
    task.clear()
    new_roster = [row for row in ROSTER if row != ROSTER[0]]
    if task.question.refreshes:
        new = task.ask(sync(new_roster))
        assert new != old
        with pytest.raises(
            AirflowFailException, match=rf"ruth \(1\) answered \['{old}'\], expected \['{new}'\] or .*asked about plan"
        ):
            task.answer(sync(new_roster), old)
    else:
        with pytest.raises(AirflowFailException, match=rf"earlier try \({old}\)\. Start a new run"):
            sync(new_roster).execute(task.context)
    assert effects(sandbox) == before


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("cleared", [False, True])
def test_a_retry_continues_with_the_approved_plan_and_a_cleared_task_asks_again(
    sandbox: SandboxServer, task: Task, connect: Connect, *, cleared: bool
) -> None:
    connect(consistency_time=1)
    approve = task.ask(sync())
    sandbox.inject("status_before", "delete_member", status=503, times=None)
    with pytest.raises(WorkspaceRequestError, match="503"):
        task.answer(sync(), approve)
    assert effects(sandbox) == ["delete_invite"]
    sandbox.clear_faults()
    task.ti.try_number = 2
    if cleared:
        task.clear()
    if "task_state_store" in task.context and not cleared:
        sync().execute(task.context)
        assert effects(sandbox) == ALL
        assert len(task.question.asked) == 1
    elif task.question.refreshes:
        assert task.ask(sync()) != approve, "one change is done"
    else:
        with pytest.raises(AirflowFailException, match="Start a new run"):
            sync().execute(task.context)


def test_a_single_delete_is_approved_and_sent(sandbox: SandboxServer, task: Task) -> None:
    def remove(email: str = "noah.newton@example.com") -> WorkspaceDeleteMemberOperator:
        return WorkspaceDeleteMemberOperator(task_id="remove", user_email=email, require_approval=True)

    approve = task.ask(remove())
    where = f"organization {SEED.organization_id} at {sandbox.url}"
    assert task.question.now.subject == f"Make these changes to the members of {where}?"
    assert "| remove | member noah.newton@example.com | " in task.question.text
    if task.question.refreshes:
        leavers = ["noah.newton@example.com"]
        assert task.ask(sync(None, leavers=leavers)) == approve, "the plan of a sync with this leaver"
    other = r"(?s)1 of 1 change is .*\n  - member mina.member@"
    with pytest.raises(AirflowFailException, match=other):
        task.answer(remove("mina.member@example.com"), approve)
    assert effects(sandbox) == []
    remembered = task.context.get("task_state_store", ())
    assert "airflow_provider_workspace" not in remembered, "a refused plan is not remembered for a retry"
    assert task.answer(remove(), approve) == {"user_uuid": SEED.absent_uuid, "deleted": True}
    assert effects(sandbox) == ["delete_member"]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("who", [{"user_uuid": SEED.absent_uuid}, {"user_email": NOAH}])
def test_a_retry_of_an_approved_removal_ends(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, who: dict[str, str], moment: str
) -> None:
    """Whether the earlier try removed the member, or was about to, and they have another address by now."""
    question = Question(refreshes=True)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    task = Task(question)

    def remove() -> WorkspaceDeleteMemberOperator:
        return WorkspaceDeleteMemberOperator(task_id="remove", require_approval=True, **who)

    approve = task.ask(remove())
    with monkeypatch.context() as patch:
        getattr(Interruptions(patch), moment)("DELETE")
        with pytest.raises(Killed):
            task.answer(remove(), approve)
    if moment == "before":
        set_address(sandbox, SEED.absent_uuid, "eve@example.com")
    task.ti.try_number = 2
    assert remove().execute(task.context)["user_uuid"] == SEED.absent_uuid
    assert effects(sandbox) == ["delete_member"]
    assert len(question.asked) == 1


def test_all_leavers_are_in_one_question(sandbox: SandboxServer, task: Task) -> None:
    """And a change that is obsolete by the time of the answer is left out."""
    arguments: dict[str, Any] = {"roster": None, "leavers": '["noah.newton@example.com", "liv.invited@example.com"]'}
    approve = task.ask(sync(**arguments))
    assert "(2 changes, plan " in task.question.text
    task.answer(sync(**{**arguments, "leavers": ["liv.invited@example.com"]}), approve)
    assert effects(sandbox) == ["delete_invite"]


def test_notifiers_are_called_after_the_question_is_stored(task: Task) -> None:
    seen: list[Any] = []
    task.ask(sync(notifiers=lambda context: seen.append((context, len(task.question.asked)))))
    task.ask(sync(notifiers=[seen.append, seen.append]))
    assert seen == [(task.context, 1), task.context, task.context]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"leavers": ["ada@example.com"]}, "either leavers=… or a roster"),
        ({"leavers": [], "roster": None}, "leavers is empty"),
        ({"approval_timeout": "soon"}, "approval_timeout must be a timedelta"),
        ({"approval_timeout": 0}, "approval_timeout must be a timedelta"),
        ({"approvers": 7}, "approvers must be a list"),
        ({"approvers": []}, "approvers is empty: name at least one Airflow user by id"),
        ({"approvers": "[]"}, "approvers is empty: name at least one Airflow user by id"),
        ({"approvers": ["ruth", ""]}, "approvers has no value"),
        ({"protected": "[]"}, "protected is empty: its template found nobody"),
        ({"require_approval": "maybe"}, "require_approval must be true or false"),
    ],
)
def test_an_invalid_argument_fails_before_asking(task: Task, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        sync(**arguments).execute(task.context)
    assert task.question.asked == []


def test_a_long_plan_is_whole_in_the_log_and_in_its_file(
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect(page_size=1000)
    task = Task(Question(refreshes=True))
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", task.question, raising=False)
    sandbox.add_members(1100)
    file = tmp_path / "plan.csv"
    approve = task.ask(sync(report_path=str(file)))
    body = task.question.text
    hidden = re.search(
        r"\*\*(\d+) of 1106 rows are not shown here\.\*\* Read them in the log of the task and in '(.*)'", body
    )
    assert hidden is not None
    assert hidden[2] == str(file)
    assert body.count("\n| remove | ") == 1106 - int(hidden[1])
    assert len(body.encode()) < 61_000
    assert "also those that are not shown" in body
    assert capsys.readouterr().out.count("\n  - ") == 1103
    with file.open() as report:
        planned = list(csv.DictReader(report))
    assert [row["action"] for row in planned].count("remove") == 1103
    assert {row["status"] for row in planned} == {"planned", "skipped"}
    assert effects(sandbox) == []
    assert approve.startswith("Approve plan ")


@pytest.mark.parametrize(
    ("approved", "found"),
    [
        ("a plan", "not 'a plan'"),
        ([], "not something of type list"),
        ({"changes": []}, "not a mapping without these"),
        ({"changes": [], "planned_for": "here", "digests": [1]}, "not a mapping without these"),
        *(({"changes": changes, "planned_for": ""}, "not a mapping without these")
         for changes in (None, {}, [None], [{"action": "remove"}], [{"digest": ["x"]}])),
    ],
)  # fmt: skip
@pytest.mark.parametrize("part", [None, "members"])
def test_an_approved_plan_of_another_form_is_refused(
    sandbox: SandboxServer, approved: Any, found: str, part: Any
) -> None:
    task: Any = sync(require_approval=False, approved=approved)
    if part is not None:
        file = {"members": {"people": ["ada@example.com"]}}
        task = WorkspaceApplyOrganizationOperator(task_id="x", part=part, file=file, approved=approved)
    with pytest.raises(
        AirflowFailException, match=rf"WorkspaceInputError: approved must be a plan with.*{found}. Pass the output of "
    ):
        task.execute({})
    assert effects(sandbox) == []


NOAH_STAYS = "remove member noah.newton@example.com"


def chosen(task: Task, *beginnings: str) -> dict[str, list[str]]:
    """Return the answer that leaves out the changes that begin so, after their number."""
    choices = task.question.now.params["leave_out"]["schema"]["examples"]
    found = [choice for choice in choices if choice.partition(". ")[2].startswith(beginnings)]
    assert len(found) == len(beginnings)
    return {"leave_out": found}


def answer_with(operator: Any, task: Task, approve: str, answer: Any) -> Any:
    event = {
        "chosen_options": [approve],
        "params_input": answer,
        "responded_at": "2026-11-22",
        "responded_by_user": RUTH,
    }
    return task.answer(operator, approve, **event)


def test_whoever_approves_leaves_out_changes(
    sandbox: SandboxServer, task: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    approve = task.ask(sync())
    assert "To leave out changes, choose them before you approve." in task.question.text
    left_out = chosen(task, NOAH_STAYS, "change member mina.member@example.com: level: 1 -> 8")
    plan = answer_with(sync(), task, approve, left_out)
    assert effects(sandbox) == ["delete_invite", "delete_member", "create_invite"]
    rows = {row["name"]: row for row in plan["changes"] if row["action"] == "differs"}
    assert rows.keys() == {"member noah.newton@example.com", "member mina.member@example.com"}
    noah = rows["member noah.newton@example.com"]
    assert noah["why"] == "left out by ruth (1) on 2026-11-22: remove, not on the roster"
    assert noah["status"] == "skipped"
    assert task.pushed["approved"]["left_out"] == list(rows)
    assert "Not sent: member noah.newton@example.com" in capsys.readouterr().out
    # A later plan that has the line leaves it out too, and one that was made otherwise is refused.
    later = sync(require_approval=False, approved=plan, report_path=str(file))
    assert later.execute({})["pending"] == 0
    whys = [row["why"] for row in json.loads(file.read_text())["changes"] if row["action"] == "differs"]
    assert [why.count("on the roster") for why in whys] == [1, 0]
    WorkspaceHook().update_member(user_uuid=SEED.absent_uuid, level=8)
    with pytest.raises(AirflowFailException, match=r"(?s)approval-stale.*1 of 1 change is .*member noah.newton@"):
        sync(require_approval=False, approved=plan).execute({})


def test_the_grant_of_whom_somebody_leaves_out_stays(
    sandbox: SandboxServer, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = install(monkeypatch).values
    place = {"service": sandbox.url, "organization_id": SEED.organization_id}
    person = {"user_email": "noah.newton@example.com", "user_uuid": SEED.absent_uuid, "until": "2999-01-01T00:00:00Z"}
    key, text = grant_notes.variable(**place, **person, level=1, then=None)
    notes[key] = text
    leavers: dict[str, Any] = {"leavers": ["noah.newton@example.com"], "roster": None}
    approve = task.ask(sync(**leavers))
    answer_with(sync(**leavers), task, approve, chosen(task, NOAH_STAYS))
    assert effects(sandbox) == []
    assert key in notes


def test_everything_can_be_left_out(sandbox: SandboxServer, task: Task) -> None:
    approve = task.ask(sync())
    everything = {"leave_out": task.question.now.params["leave_out"]["schema"]["examples"]}
    assert len(everything["leave_out"]) == 5
    assert answer_with(sync(), task, approve, everything)["counts"]["differs"] == 5
    assert effects(sandbox) == []


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"leave_out": ["9. remove member nobody@example.com"]}, "nobody@example.com"),
        ({"leave_out": [7]}, "7"),
        *(({"leave_out": odd}, "list: .")
          for odd in (7, 0, True, False, "", {}, {"x": 1}, "1. remove invite liv.invited@example.com: level: 1")),
        ({"leave_it": ["x"]}, "list"),
        (["x"], "list"),
    ],
)  # fmt: skip
def test_what_is_no_line_of_the_plan_cannot_be_left_out(
    sandbox: SandboxServer, task: Task, answer: Any, shown: str
) -> None:
    approve = task.ask(sync())
    with pytest.raises(AirflowFailException, match=rf"(?s)answer-refused.*is no line of the plan.*{shown}"):
        answer_with(sync(), task, approve, answer)
    assert effects(sandbox) == []


def test_a_retry_leaves_out_what_was_left_out(sandbox: SandboxServer, task: Task, connect: Connect) -> None:
    connect(consistency_time=1)
    approve = task.ask(sync())
    sandbox.inject("status_before", "delete_member", status=503, times=None)
    with pytest.raises(WorkspaceRequestError, match="503"):
        answer_with(sync(), task, approve, chosen(task, NOAH_STAYS))
    sandbox.clear_faults()
    task.ti.try_number = 2
    if "task_state_store" in task.context:
        sync().execute(task.context)
        assert effects(sandbox) == ["delete_invite", "delete_member", "update_member", "create_invite"]
        assert task.pushed["approved"]["left_out"] == ["member noah.newton@example.com"]


def test_an_owner_stays_although_the_next_one_was_left_out(sandbox: SandboxServer, task: Task) -> None:
    roster = [
        {"email": "olive.owner@example.com", "level": 8},
        {"email": "adam.admin@example.com", "level": 15},
        *EVERYBODY_ELSE,
    ]
    arguments: dict[str, Any] = {"owner_level": None}
    approve = task.ask(sync(roster, **arguments))
    left_out = chosen(task, "change member adam.admin@example.com")
    with pytest.raises(AirflowFailException, match="no-owner-left"):
        answer_with(sync(roster, **arguments), task, approve, left_out)
    assert effects(sandbox) == []
    assert not any("approved" in key for key in task.context.get("task_state_store", ()))


EVERYBODY_ELSE = [f"{name}@example.com" for name in ("mina.member", "noah.newton", "grace.analyst", "liv.invited")]


@pytest.mark.parametrize(("changes", "has_choices"), [(200, True), (201, False)])
def test_people_choose_from_so_many_changes(task: Task, changes: int, *, has_choices: bool) -> None:
    roster = ["adam.admin@example.com", *EVERYBODY_ELSE]
    roster += [f"somebody.with.a.long.name.{number}@example.com" for number in range(changes)]
    approve = task.ask(sync(roster, protected=["olive.owner@example.com"]))
    assert bool(task.question.now.params) == has_choices
    too_many = "Here you can only approve the whole plan: it has more than 200 changes, too many to choose from."
    says = "To leave out changes" if has_choices else too_many
    assert says in task.question.text
    if not has_choices:
        with pytest.raises(AirflowFailException, match="answer-refused"):
            answer_with(sync(roster), task, approve, {"leave_out": ["1. create invite x"]})


def test_airflow_3_1_0_is_offered_no_list_of_changes(
    sandbox: SandboxServer, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow.__version__", "3.1.0")
    approve = task.ask(sync())
    assert not task.question.now.params
    assert "approve the whole plan: Airflow cannot show a list of its changes to leave out." in task.question.text
    task.answer(sync(), approve)
    assert effects(sandbox) == ALL


def test_a_list_that_airflow_cannot_show_is_not_offered(task: Task) -> None:
    roster = [f"{'ö' * 60}{number}@example.com" for number in range(150)]
    task.ask(sync([*roster, "adam.admin@example.com"]))
    assert not task.question.now.params
    assert "approve the whole plan: Airflow cannot show a list of its changes to leave out." in task.question.text


def test_a_person_is_asked_about_more_removals_than_usual(sandbox: SandboxServer, task: Task) -> None:
    with pytest.raises(AirflowFailException, match=r"max_removals='ask' lets .* nobody is asked. Set require_approval"):
        sync(max_removals="ask", require_approval=False).execute({})
    dry_run = sync(max_removals="ask", require_approval=False, dry_run=True).execute({})
    assert "Approve it only if" in dry_run["table"]
    approve = task.ask(sync(max_removals="ask"))
    usual = (
        "This plan takes a lot away (invites withdrawn: 1, members removed: 2; the organization has 5 members); "
        "usually, 1 would be allowed (10 or 30%). Approve it only if the list is complete."
    )
    assert usual in unescape(task.question.text)
    plan = task.answer(sync(max_removals="ask"), approve)
    assert effects(sandbox) == ALL
    assert "Approve it only if" not in plan["table"]
    assert task.question.text.index("takes a lot away") < task.question.text.index("to create")


@pytest.mark.parametrize("is_gone", [False, True], ids=["open", "gone meanwhile"])
@pytest.mark.parametrize("half", ["remove invite", "create invite"])
def test_an_invite_that_is_sent_anew_is_left_out_as_a_whole(
    sandbox: SandboxServer, task: Task, half: str, *, is_gone: bool
) -> None:
    """One half alone would take the invite, or be refused as there is one; or invite whom somebody left out."""
    rows = [*ROSTER, "noah.newton@example.com", "grace.analyst@example.com", {"email": LIV, "level": 8}]
    approve = task.ask(sync(rows, renew_invites=True))
    if is_gone:
        with WorkspaceHook() as hook:
            hook.delete_invite(invite_id=SEED.invite_id)
    before = len(sandbox.effects())
    plan = answer_with(sync(rows, renew_invites=True), task, approve, chosen(task, f"{half} {LIV}"))
    assert effects(sandbox)[before:] == ["update_member", "create_invite"]
    assert LIV not in [row["target"] for row in sandbox.effects()[before:]]
    halves = [row["name"] for row in plan["changes"] if row["action"] == "differs"]
    assert halves == [f"invite {LIV}"] * (1 if is_gone else 2)


def test_a_retry_leaves_out_both_halves_of_an_invite(sandbox: SandboxServer, task: Task) -> None:
    rows = [*ROSTER, "grace.analyst@example.com", {"email": LIV, "level": 8}]
    approve = task.ask(sync(rows, renew_invites=True))
    sandbox.inject("status_before", "delete_member", status=503, times=None)
    with pytest.raises(WorkspaceRequestError, match="503"):
        answer_with(sync(rows, renew_invites=True), task, approve, chosen(task, f"remove invite {LIV}"))
    sandbox.clear_faults()
    with WorkspaceHook() as hook:
        hook.delete_invite(invite_id=SEED.invite_id)
    task.ti.try_number = 2
    if "task_state_store" in task.context:
        sync(rows, renew_invites=True).execute(task.context)
        assert LIV not in [row["target"] for row in sandbox.effects("create_invite")]
        assert task.pushed["approved"]["left_out"] == [f"invite {LIV}"]
