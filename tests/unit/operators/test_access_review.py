"""An access review against the sandbox: read, decided, done and proved, with all that may come in between."""

from __future__ import annotations

import csv
import errno
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import time
from copy import copy
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.execution_time import task_runner

from airflow_provider_workspace import __version__
from airflow_provider_workspace.access.reviews.folder import ReviewFolder
from airflow_provider_workspace.access.reviews.notes import REVIEW_VARIABLES, ReviewRegistry, lift_of
from airflow_provider_workspace.access.rules.answers import Answerer
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceNotAppliedError
from airflow_provider_workspace.files.storage import UrlFile
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.access_review import WorkspaceLiftDecisionOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.task_groups import access_review
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException
from tests.audit import effects, say
from tests.endpoints import project_access
from tests.interruptions import Interruptions
from tests.task_instance import Killed, Question, Task, TaskStore
from tests.variables import Variables, install

if TYPE_CHECKING:
    from fsspec.implementations.memory import MemoryFileSystem

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = [pytest.mark.parametrize("sandbox", ["live"], indirect=True), pytest.mark.usefixtures("no_waits")]

OLIVE, ADAM, MINA, NOAH, GRACE, LIV = (
    f"{name}@example.com"
    for name in ("olive.owner", "adam.admin", "mina.member", "noah.newton", "grace.analyst", "liv.invited")
)
EVE = "eve@example.com"
KEPT = dict.fromkeys((OLIVE, ADAM, MINA, NOAH, GRACE, LIV), "keep")
RUTH = {"id": "ruth", "name": "Ruth R."}
# When reviewers answer: what they decide counts for 400 days.
DECIDED = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=6)
TASKS = ("read_population", "decide", "apply_decisions", "close_review")


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> Variables:
    return install(monkeypatch)


@pytest.fixture(autouse=True)
def question(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Question:
    connect(consistency_time=1, max_attempts=1)
    question = Question(refreshes=True)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    return question


class Review:
    """A review of one Dag run; a task that is run again is a retry."""

    def __init__(self, evidence: Any, run_id: str = "scheduled__2026-10-01T06:00:00+00:00", **arguments: Any) -> None:
        usual = {
            "reviewers": ["ruth"],
            "review_timeout": timedelta(days=14),
            "protected": [OLIVE],
            "max_removals": None,
        }
        with DAG("quarterly", schedule=None):
            group = access_review(evidence=str(evidence), **{**usual, **arguments})
        self.tasks: Any = {name.rpartition(".")[2]: task for name, task in group.children.items()}
        self.evidence = evidence
        self.run_id = run_id
        self.tries = dict.fromkeys(TASKS, 0)
        self.stores: dict[str, TaskStore | None] = {name: TaskStore() for name in TASKS}
        self.asked: dict[str, Any] = {}
        self.states: dict[str, str] = {}
        self.results: dict[str, Any] = {}

    def context(self, name: str) -> Any:
        self.tries[name] += 1
        ids = {"dag_id": "quarterly", "run_id": self.run_id, "map_index": -1, "id": SEED.owner_uuid}
        ti = SimpleNamespace(**ids, task_id=name, try_number=self.tries[name], xcom_push=lambda **_: None)
        ti.get_task_states = lambda run_ids, task_ids, **_: {
            run_ids[0]: {task_id: self.states[task_id] for task_id in task_ids if task_id in self.states}
        }
        ti.xcom_pull = lambda task_ids, **_: self.results.get(task_ids.rpartition(".")[2])
        return {"ti": ti, "task_state_store": self.stores[name]}

    def run(self, name: str) -> Any:
        self.results.pop(name, None)  # as Airflow does before a try
        self.results[name] = copy(self.tasks[name]).execute(self.context(name))
        return self.results[name]

    def ask(self) -> None:
        with pytest.raises(BaseException, match=r"^$") as left:
            self.run("decide")
        self.asked = left.value.kwargs  # type: ignore[attr-defined]

    def answer(self, fields: Any, **event: Any) -> Any:
        given = {"chosen_options": ["Done"], "params_input": fields, "responded_by_user": RUTH}
        given["responded_at"] = DECIDED
        self.tries["decide"] -= 1
        context = self.context("decide")
        result = copy(self.tasks["decide"]).execute_approved(context, {**given, **event}, **self.asked)
        self.results["decide"] = result
        return result

    def decide(self, fields: Any, **event: Any) -> None:
        self.run("read_population")
        self.ask()
        self.answer(fields, **event)

    def close(self, fails: str = "") -> Any:
        if not fails:
            return self.run("close_review")
        with pytest.raises(Exception, match=fails):
            self.run("close_review")
        return self.file("review.json")

    @property
    def folder(self) -> Path:
        (folder,) = Path(self.evidence).glob(re.sub(r"[^\w.-]+", "_", self.run_id) + "-*")
        return folder

    def file(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def outcomes(self, name: str = "review.json") -> dict[str, str]:
        return {row["who"]: row["outcome"] for row in self.file(name)["outcomes"] if row["outcome"] != "kept"}


@pytest.fixture
def review(tmp_path: Path) -> Review:
    return Review(tmp_path)


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def set_level(user_uuid: str, level: int) -> None:
    with WorkspaceHook() as hook:
        hook.update_member(user_uuid=user_uuid, level=level)


FILES_OF_A_REVIEW = {
    "population.json",
    "population.csv",
    "decisions.json",
    "doing-1.json",
    "done-1.json",
    "last_look.json",
    "review.md",
    "review.json",
}
RULES_OF_A_REVIEW = {
    "reviewers": ["ruth"],
    "allow_self_approval": False,
    "owner_level": 15,
    "max_removals": None,
    "protected": [OLIVE],
    "review_timeout": "14 days, 0:00:00",
    "decisions_count_for": "400 days, 0:00:00",
    "decisions_folder": None,
    "digests": None,
}


def test_the_reviewer_is_asked_about_each_person(review: Review, question: Question) -> None:
    result = review.run("read_population")
    assert (result["folder"], result["people"]) == (str(review.folder), 6)
    review.ask()
    asked = question.now
    assert asked.options == ["Done"]
    assert [user.id for user in asked.assigned_users] == ["ruth"]
    assert asked.defaults is None
    assert set(asked.params) == {*KEPT, "exceptions"}
    assert asked.params[ADAM]["schema"]["enum"] == ["keep", "remove", "lower to member"]
    assert str(review.folder) in html.unescape(asked.body)


def test_a_review_leaves_evidence_from_which_all_of_it_is_clear(sandbox: SandboxServer, review: Review) -> None:
    review.run("read_population")
    review.ask()
    fields = {**KEPT, NOAH: "remove", LIV: "remove", ADAM: "lower to member", "exceptions": f"{MINA}: on leave"}
    assert review.answer(fields)["counts"] == {"keep": 3, "remove": 2, "1": 1}
    assert effects(sandbox) == []
    review.run("apply_decisions")
    assert effects(sandbox) == ["delete_member", "delete_invite", "update_member"]
    assert review.close()["state"] == "complete"
    done = dict.fromkeys((NOAH, LIV, ADAM), "done")
    assert review.outcomes("done-1.json") == done
    assert review.outcomes() == done
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in review.folder.iterdir()}
    assert set(digests) == FILES_OF_A_REVIEW
    closed = review.file("review.json")
    assert closed["files"] == {name: digest for name, digest in digests.items() if name != "review.json"}
    assert closed["rules"] == RULES_OF_A_REVIEW
    assert closed["package"] == f"airflow-provider-workspace {__version__}"
    assert "airflow" in closed
    decided = review.file("decisions.json")
    assert decided["by"] == {**RUTH, "email": ""}
    assert decided["exceptions"] == {MINA: "on leave"}
    assert decided["reviewer_is_reviewed"] == "cannot be told, because this Airflow user has no address"
    assert decided["decided_at"] == f"{DECIDED:%Y-%m-%dT%H:%M:%SZ}"
    assert decided["rules"] == RULES_OF_A_REVIEW
    page = review.text("review.md")
    named = ("ruth", "complete", NOAH, "on leave", digests["population.json"], "last_look.json", review.run_id)
    for text in (*named, "| max removals | not set |", "| joined |"):
        assert text in page


def test_a_review_that_was_not_due_is_skipped(sandbox: SandboxServer, tmp_path: Path) -> None:
    """As behind a branch that skips the first task; then the last one, which runs always, is the next."""
    review = Review(tmp_path, reviewers="{{ ti.xcom_pull('skipped') }}")
    review.states["access_review.read_population"] = "skipped"
    with pytest.raises(AirflowSkipException, match="was not due"):
        review.close()
    assert not [*tmp_path.iterdir()]
    assert not sandbox.requests()


@pytest.mark.parametrize(("state", "begins"), [("failed", False), ("upstream_failed", False), ("skipped", True)])
def test_a_review_that_was_due_is_closed_and_red(review: Review, state: str, *, begins: bool) -> None:
    """Also if its first task was skipped after it had written: somebody cleared it."""
    if begins:
        review.run("read_population")
    review.states["access_review.read_population"] = state
    assert review.close("Access was not reviewed: nobody decided. Start a new run")["state"] == "not reviewed"


def test_the_last_task_logs_the_digest_of_what_it_wrote(review: Review, capsys: pytest.CaptureFixture[str]) -> None:
    review.close("not reviewed: nobody decided")
    assert hashlib.sha256((review.folder / "review.json").read_bytes()).hexdigest() in capsys.readouterr().out


def test_a_review_says_whose_lists_it_read(review: Review) -> None:
    review.decide(KEPT)
    review.run("apply_decisions")
    review.close()
    with_key = "The lists were read with the key of connection 'workspace_default', which may be shown only some"
    assert review.file("population.json")["read_with"].startswith(with_key)
    assert "may be shown only some of the members" in review.text("review.md")


def test_a_retried_population_is_that_of_the_first_try(
    sandbox: SandboxServer, review: Review, capsys: pytest.CaptureFixture[str]
) -> None:
    first = review.run("read_population")
    sandbox.add_members(1)
    (review.folder / "population.csv").unlink()
    assert review.run("read_population") == first
    assert "by an earlier try" in capsys.readouterr().out
    assert len(read_csv(review.folder / "population.csv")) == 6


def test_a_population_of_a_short_list_is_none(sandbox: SandboxServer, review: Review) -> None:
    say(sandbox, "list_members", count=5)
    with pytest.raises(Exception, match="5"):
        review.run("read_population")
    closed = review.close("not reviewed: nobody decided")
    assert (closed["state"], closed["read_at"]) == ("not reviewed", None)


@pytest.mark.parametrize(
    ("fields", "event", "message"),
    [
        ({**KEPT, "eve@example.com": "remove"}, {}, "'eve@example.com' is no field"),
        ({**KEPT, NOAH: ""}, {}, f"'{NOAH}'"),
        ({**KEPT, MINA: "lower to admin"}, {}, "expected one of keep, remove"),
        (KEPT, {"chosen_options": ["Reject"]}, "The answer is not 'Done'"),
        (KEPT, {"error": "value does not match", "error_type": "validation"}, "value does not match"),
        ({**KEPT, OLIVE: "remove"}, {}, f"'{OLIVE}' .*expected one of keep(\\.|$)"),
    ],
)
def test_who_does_not_decide_everybody_decides_nobody(
    sandbox: SandboxServer, review: Review, fields: Any, event: Any, message: str
) -> None:
    with pytest.raises(AirflowFailException, match=rf"^\[answer-refused\] .*{message}"):
        review.decide(fields, **event)
    with pytest.raises(AirflowFailException, match=r"has no decisions\.json"):
        review.run("apply_decisions")
    closed = review.close(rf"^\[[\w-]+\] \w+: Access was not reviewed: .*{message}.* Start a new run of the Dag")
    assert "to decide again" not in str(closed["missing"])
    assert closed["state"] == "not reviewed"
    assert any(re.search(message, line) for line in closed["missing"])
    assert "| reviewers | ruth |" in review.text("review.md")
    assert review.file("not-decided-1.json")["decided_at"] == f"{DECIDED:%Y-%m-%dT%H:%M:%SZ}"
    assert "the answer of Ruth R. (Airflow user ruth) does not count. Nobody was notified" in review.text("review.md")
    with pytest.raises(AirflowFailException, match="is closed"):
        review.run("decide")
    assert effects(sandbox) == []


@pytest.mark.parametrize(
    "event",
    [
        {"error": "", "error_type": "timeout"},
        {"error": "Timed out", "error_type": "timeout"},
        {"chosen_options": [], "timedout": True},
    ],
)
def test_without_an_answer_nobody_is_decided(sandbox: SandboxServer, review: Review, event: Any) -> None:
    nobody = {"responded_by_user": None, "responded_at": None}
    with pytest.raises(AirflowFailException, match=r"^\[not-answered\] .*Nobody answered by 20\S+Z\. Start a new run"):
        review.decide(None, **nobody, **event)
    closed = review.close(r"not reviewed: Nobody answered by 20\S+Z")
    assert closed["missing"] == [f"[not-answered] Nobody answered by {review.asked['due_at']}."]
    assert "and invites have access.\n\nThe question: asked 20" in review.text("review.md")
    assert "Z, no answer counts. Nobody was notified; the question stood" in review.text("review.md")
    assert effects(sandbox) == []


class Mail:
    """A notifier, with a secret among its arguments."""

    def __init__(self, password: str) -> None:
        self.password = password
        self.asked = 0

    def __call__(self, _: Any) -> None:
        self.asked += 1


def chat(context: Any, *, token: str = "") -> None:
    """Notify in another way."""


def test_the_evidence_says_who_was_notified(tmp_path: Path) -> None:
    mail = Mail(password="secret-1")
    review = Review(tmp_path, notifiers=[mail, partial(chat, token="secret-2")])
    finish(review, KEPT)
    names = [f"{__name__}.Mail", f"{__name__}.chat"]
    assert (mail.asked, review.file("decisions.json")["notified"]) == (1, names)
    assert f"Notified when it was asked: {', '.join(names)}." in review.text("review.md")
    assert "secret" not in "".join(path.read_text() for path in review.folder.iterdir())


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("Anonymous", "Anonymous answered, and only these users were asked: ruth, mina.member"),
        ("mina.member", "mina.member answered, and nobody decides about their own access"),
    ],
)
def test_only_a_reviewer_who_is_not_reviewed_decides(
    sandbox: SandboxServer, tmp_path: Path, question: Question, user: str, message: str
) -> None:
    review = Review(tmp_path, reviewers=["ruth", "mina.member"])
    with pytest.raises(AirflowFailException, match=rf"\[answerer-refused\] .*{message}\. Start a new run"):
        review.decide(KEPT, responded_by_user={"id": user, "name": user})
    assert question.now.body.startswith("The answer of a reviewer who is among these people is refused")
    assert message in review.file("not-decided-1.json")["why"]
    assert message in str(review.close("not reviewed")["missing"])
    assert effects(sandbox) == []


def test_a_review_that_only_the_reviewed_may_answer_is_not_asked(tmp_path: Path, question: Question) -> None:
    review = Review(tmp_path, reviewers=["mina.member", ADAM])
    review.run("read_population")
    with pytest.raises(
        AirflowFailException, match=r"\[answerer-refused\] .*nobody else may answer. Name somebody else.*: approvers="
    ):
        review.run("decide")
    assert question.asked == []


def test_a_decision_is_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    review = Review(tmp_path, reviewers=[MINA], allow_self_approval=True)
    review.decide(KEPT, responded_by_user={"id": MINA, "name": "Mina"})
    assert review.file("decisions.json")["reviewer_is_reviewed"] is True
    assert review.run("decide")["counts"] == {"keep": 6}
    assert "start a new run to decide again" in capsys.readouterr().out
    population = review.folder / "population.json"
    population.write_text(population.read_text().replace('"level": 8', '"level": 1'))
    with pytest.raises(
        AirflowFailException,
        match=r"\[evidence-changed\] .*population\.json is not the file that was written\. Restore it",
    ):
        review.run("apply_decisions")


def test_who_changed_meanwhile_is_named_and_left(sandbox: SandboxServer, review: Review) -> None:
    review.decide({**KEPT, MINA: "remove", NOAH: "remove", LIV: "remove"})
    set_level(SEED.member_uuid, 8)
    sandbox.accept_invite(SEED.invite_id)
    before = effects(sandbox)
    mina = rf"{MINA} \(remove\): changed, level member \(1\) to admin \(8\)"
    message = rf"This review is incomplete: 2 open\. Do by hand .*: {LIV} \(remove\): changed, kind.*; {mina}"
    with pytest.raises(AirflowFailException, match=message):
        review.run("apply_decisions")
    assert effects(sandbox)[len(before) :] == ["delete_member"]
    closed = review.close("is incomplete: ")
    assert closed["state"] == "incomplete"
    assert review.outcomes() == {MINA: "changed", NOAH: "done", LIV: "changed"}


def join(sandbox: SandboxServer, email: str, level: int = 8) -> None:
    """Let somebody become a member, as if they had accepted an invite under another address."""
    invite = WorkspaceHook().create_invite(target_email=email, level=level)
    sandbox.accept_invite(str(invite.id))


@pytest.mark.parametrize("status", [204, 404])
@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"uuid": "new", "email": EVE}, rf"member {EVE} \(user new\)"),
        ({"uuid": "new", "email": None}, r"member - \(user new\)"),
        ({"uuid": "new", "email": LIV}, rf"member {LIV} \(user new\)"),
        (None, "1 members whom the service does not show"),
    ],
)
def test_an_invite_that_somebody_accepts_during_its_withdrawal_is_not_done(
    sandbox: SandboxServer, connect: Connect, review: Review, status: int, user: Any, said: str
) -> None:
    connect(consistency_time=1)  # a broken connection is tried again
    review.decide({**KEPT, LIV: "remove"})
    before = [member.to_dict() for member in WorkspaceHook().list_members()]
    body = {"type": "invalid_request", "code": "not_found", "detail": "Not found."} if status == 404 else None
    sandbox.inject("say", "delete_invite", status=status, body=body)
    say(sandbox, "list_invites", after=1)
    say(sandbox, "list_members", *before, {"id": "new", "user": user, "level": 8}, after=2)
    with pytest.raises(AirflowFailException, match=rf"^\[review-incomplete\] .*{LIV} \(remove\): unknown, .*{said}"):
        review.run("apply_decisions")
    assert review.close("is incomplete: ")["state"] == "incomplete"
    assert review.outcomes() == {LIV: "changed" if user and user["email"] == LIV else "unknown"}


def test_an_invite_that_somebody_accepts_before_its_withdrawal_is_not_done(
    sandbox: SandboxServer, review: Review
) -> None:
    review.decide({**KEPT, LIV: "remove"})
    WorkspaceHook().delete_invite(invite_id=SEED.invite_id)
    join(sandbox, EVE)
    with pytest.raises(AirflowFailException, match=rf"{LIV} \(remove\): unknown, gone already, but .*member {EVE}"):
        review.run("apply_decisions")
    assert review.close("is incomplete: ")["missing"][0].startswith(f"{LIV} (remove): unknown, gone, but somebody")


def test_who_joined_while_an_invite_was_open_has_not_accepted_it(sandbox: SandboxServer, review: Review) -> None:
    """Nor has who is invited, and joins then."""
    noor = WorkspaceHook().create_invite(target_email="noor@example.com")
    review.decide({**KEPT, LIV: "remove", "noor@example.com": "keep"})
    join(sandbox, EVE)
    review.run("apply_decisions")
    sandbox.accept_invite(str(noor.id))
    assert review.close()["state"] == "complete"


def test_a_retry_after_a_kill_asks_who_accepted_an_invite(
    sandbox: SandboxServer, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    review.decide({**KEPT, LIV: "remove"})
    join(sandbox, "before@example.com")
    Interruptions(monkeypatch).after("DELETE")
    with pytest.raises(Killed):
        review.run("apply_decisions")
    join(sandbox, EVE)
    with pytest.raises(AirflowFailException, match=rf"{LIV} \(remove\): unknown, (?!.*before@).*member {EVE}"):
        review.run("apply_decisions")


@pytest.mark.parametrize("other", [{"level": 8}, {"email": EVE}])
def test_who_is_listed_with_two_levels_or_addresses_can_only_be_kept(
    sandbox: SandboxServer, review: Review, other: dict[str, Any]
) -> None:
    rows = [member.to_dict() for member in WorkspaceHook().list_members()]
    (mina,) = [row for row in rows if row["user"]["uuid"] == SEED.member_uuid]
    user = mina["user"] | {"email": other.get("email", MINA)}
    say(sandbox, "list_members", *rows, {**mina, "id": "again", "level": other.get("level", 1), "user": user})
    review.run("read_population")
    (person,) = [one for one in review.file("population.json")["people"] if one["id"] == SEED.member_uuid]
    assert person["kept"].startswith("the service does not show their")
    assert f"stays: {person['kept']}" in person["look"]


def test_a_decision_about_who_is_listed_with_two_levels_by_then_is_not_done(
    sandbox: SandboxServer, review: Review
) -> None:
    review.decide({**KEPT, MINA: "remove"})
    rows = [member.to_dict() for member in WorkspaceHook().list_members()]
    (mina,) = [row for row in rows if row["user"]["uuid"] == SEED.member_uuid]
    say(sandbox, "list_members", *rows, {**mina, "id": "again", "level": 8})
    with pytest.raises(AirflowFailException, match=rf"{MINA} \(remove\): changed, level member \(1\) to not shown"):
        review.run("apply_decisions")
    assert effects(sandbox) == []


@pytest.mark.parametrize("is_shown", [True, False], ids=["addresses are shown", "and are not"])
def test_what_is_due_of_one_person_meanwhile_is_not_said_of_another(
    sandbox: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_shown: bool
) -> None:
    review = Review(tmp_path, protected=[])  # or whoever has no address is kept

    def set_level_of_noah(level: int) -> None:
        sandbox.clear_faults()
        set_level(SEED.absent_uuid, level)
        if not is_shown:
            hide_addresses(sandbox, MINA, NOAH)

    mina, noah = (MINA, NOAH) if is_shown else (f"member {SEED.member_uuid}", f"member {SEED.absent_uuid}")
    set_level_of_noah(1)
    others = {who: "keep" for who in KEPT if who not in (MINA, NOAH)}
    review.decide({**others, mina: "remove", noah: "remove"})
    set_level_of_noah(8)
    Interruptions(monkeypatch).after("DELETE /", lambda: set_level_of_noah(1))
    with pytest.raises(WorkspaceNotAppliedError, match=rf"1 change is not done: .* remove member {noah}"):
        review.run("apply_decisions")
    assert review.outcomes("done-1.json") == {mina: "done", noah: "changed"}
    assert "delete_member" in effects(sandbox)


def hide_addresses(sandbox: SandboxServer, *emails: str) -> None:
    """Let the list of members be as it is now, without some addresses."""
    with WorkspaceHook() as hook:
        members = [member.to_dict() for member in hook.list_members()]
    for member in members:
        if member["user"]["email"] in emails:
            member["user"]["email"] = None
    say(sandbox, "list_members", *members)


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_retry_after_a_kill_sends_nothing_twice(
    sandbox: SandboxServer, review: Review, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    review.decide({**KEPT, NOAH: "remove", GRACE: "remove"})
    getattr(Interruptions(monkeypatch), moment)(f"DELETE /api/organizations/{SEED.organization_id}/members/")
    with pytest.raises(Killed):
        review.run("apply_decisions")
    review.run("apply_decisions")
    assert effects(sandbox) == ["delete_member"] * 2
    assert review.outcomes("done-2.json") == {NOAH: "done", GRACE: "done"}
    assert review.close()["state"] == "complete"


def test_a_protected_person_and_an_owner_stay(sandbox: SandboxServer, tmp_path: Path) -> None:
    review = Review(tmp_path)
    review.decide({**KEPT, MINA: "remove"})
    for name in ("apply_decisions", "close_review"):
        review.tasks[name].protected = [MINA]
    with pytest.raises(AirflowFailException, match=r"is incomplete: .*: refused, protected"):
        review.run("apply_decisions")
    assert review.close("is incomplete: ")["rules"]["protected"] == [MINA]
    assert review.outcomes() == {MINA: "refused"}
    assert effects(sandbox) == []


def test_too_many_removals_are_refused_before_the_first(sandbox: SandboxServer, tmp_path: Path) -> None:
    review = Review(tmp_path, max_removals="10 or 30%")
    review.decide({**KEPT, MINA: "remove", NOAH: "remove", GRACE: "remove"})
    with pytest.raises(AirflowFailException, match="max_removals=3"):
        review.run("apply_decisions")
    closed = review.close("is incomplete: ")
    assert "max_removals=3" in closed["missing"][-1]
    assert effects(sandbox) == []


def test_the_next_review_says_what_changed(
    sandbox: SandboxServer, review: Review, question: Question, tmp_path: Path
) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    review.run("apply_decisions")
    review.close()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "not of a review").mkdir()
    (tmp_path / "not of a review" / "review.json").write_text('{"state"')
    set_level(SEED.member_uuid, 8)
    sandbox.add_members(1)
    with WorkspaceHook() as hook:
        hook.delete_member(user_uuid=SEED.analyst_uuid)
    second = Review(tmp_path, "manual__2")
    second.run("read_population")
    population = second.file("population.json")
    assert population["left"] == [GRACE]
    second.ask()
    read_at = review.file("population.json")["read_at"]
    second.close("nobody decided")
    for text in (question.text, second.text("review.md")):
        assert f"read {read_at}, left 5, + 1 joined - 1 gone = 5 now." in text
        assert f"- Gone since {read_at}: {GRACE}." in text
    assert {row["change"]: row["email"] for row in population["people"] if row["change"]} == {
        "raised": MINA,
        "new": next(row["email"] for row in population["people"] if row["email"].startswith("sam.sample")),
    }
    assert population["previous"]["folder"] == review.folder.name
    with (review.folder / "last_look.json").open("a") as file:
        file.write("\n")
    with pytest.raises(
        AirflowFailException, match=r"\[evidence-changed\] .*last_look\.json is not the file that was written"
    ):
        Review(tmp_path, "manual__3").run("read_population")


def test_many_people_are_decided_by_lists_or_by_a_file(sandbox: SandboxServer, tmp_path: Path) -> None:
    sandbox.add_members(300)
    rest = {OLIVE: "keep", ADAM: "keep", "exceptions": ""}
    lists = Review(tmp_path, "lists")
    with pytest.raises(AirflowFailException, match=r"\(not decided\)"):
        lists.decide({NOAH: "remove", "everybody_else": "", **rest})
    lists = Review(tmp_path, "lists again")
    lists.decide({NOAH: "remove", "remove": [GRACE], "everybody_else": "keep", **rest})
    lists.run("apply_decisions")
    lists.close()
    assert '4 were decided one by one, 302 by "everybody else stays"' in lists.text("review.md")
    by_file = Review(tmp_path, "by file", decisions_folder=str(tmp_path))
    by_file.run("read_population")
    rows = read_csv(by_file.folder / "population.csv")
    for row in rows:
        row["decision"] = "remove" if row["who"] in (MINA, LIV) else "keep"
    filled = tmp_path / "filled.csv"
    with filled.open("w", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    digest = hashlib.sha256(filled.read_bytes()).hexdigest()
    fields = {**rest, "remove": None, "everybody_else": None, "decisions_file": str(filled)}
    by_file.ask()
    with pytest.raises(AirflowFailException, match=r"SHA-256 .* is not '0'") as refused:
        by_file.answer({**fields, "decisions_sha256": "0"})
    assert digest not in str(refused.value)
    by_file.ask()
    by_file.answer({**fields, "decisions_sha256": digest})
    assert by_file.file("decisions.json")["decisions_file"] == f"{filled} (sha256 {digest})"
    by_file.run("apply_decisions")
    assert by_file.close()["state"] == "complete"
    assert by_file.file("review.json")["files"]["decisions-file.csv"] == digest
    assert sorted(effects(sandbox)) == ["delete_invite", *["delete_member"] * 3]


def test_a_collaborator_is_reviewed_on_each_dashboard(sandbox: SandboxServer, tmp_path: Path) -> None:
    review = Review(tmp_path, dashboards=[SEED.dashboard_id])
    review.decide({**KEPT, f"{GRACE} on dashboard {SEED.dashboard_id}": "remove"})
    review.run("apply_decisions")
    assert review.close()["state"] == "complete"
    assert effects(sandbox) == ["remove_dashboard_collaborator"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"evidence": "reviews"},
            r"evidence must be the URL of an object store, .* or an absolute path, not 'reviews'",
        ),
        ({"dashboards": [{"project_id": 1}]}, "dashboards must be ids, or mappings with dashboard_id and project_id"),
        ({"reviewers": []}, "reviewers is empty: name at least one Airflow user by id"),
        ({"reviewers": "[]"}, "reviewers is empty: name at least one Airflow user by id"),
        ({"reviewers": ["ruth", " "]}, "reviewers has no value"),
    ],
)
def test_invalid_arguments_are_named(tmp_path: Path, arguments: Any, message: str) -> None:
    review = Review(**{"evidence": tmp_path, **arguments})
    with pytest.raises(AirflowFailException, match=message):
        review.run("decide" if "reviewers" in arguments else "read_population")


def test_a_dry_run_plans_what_was_decided(sandbox: SandboxServer, tmp_path: Path) -> None:
    review = Review(tmp_path, dry_run=True)
    review.decide({**KEPT, NOAH: "remove"})
    assert review.run("apply_decisions")["counts"]["remove"] == 1
    assert review.close("is incomplete: ")["state"] == "incomplete"
    assert effects(sandbox) == []


def test_a_store_holds_the_evidence_and_no_second_version(memory: MemoryFileSystem) -> None:
    for inside in ("memory://reviews/digests", "memory://reviews/"):
        with pytest.raises(AirflowFailException, match=r"Set it to a folder outside of 'memory:///?reviews"):
            Review("memory://reviews", digests=inside).run("read_population")
    review = Review("memory://reviews", digests="memory://reviews-digests")
    review.decide(KEPT)
    review.run("apply_decisions")
    digest = review.close()["sha256"]
    (kept,) = memory.ls("/reviews-digests", detail=False)
    assert memory.cat(kept).decode().split("  ")[0] == digest
    (folder,) = memory.ls("/reviews", detail=False)
    assert len(memory.ls(folder)) == 8
    for name in ("review.json", "review.md", "last_look.json"):
        memory.rm(f"{folder}/{name}")
    with pytest.raises(AirflowFailException, match=r"A file exists with other content.* File: .*decisions\.json'"):
        review.answer({**KEPT, NOAH: "remove"})


# What comes back out of the folder.


@pytest.mark.parametrize(
    ("who", "decision"), [(NOAH, 15), (NOAH, 99), (NOAH, -1), (OLIVE, "remove"), ("eve@example.com", "remove")]
)
def test_a_decision_that_was_not_offered_is_refused(
    sandbox: SandboxServer, review: Review, who: str, decision: Any
) -> None:
    review.decide(KEPT)
    review.results.clear()  # Airflow has not kept the digest
    edited = review.file("decisions.json")
    edited["decisions"][who] = decision
    (review.folder / "decisions.json").write_text(json.dumps(edited))
    for name in ("apply_decisions", "close_review"):
        with pytest.raises(
            AirflowFailException,
            match=rf"\[evidence-changed\] .*decisions.json has decisions that nobody could make \(.*'{who}'",
        ):
            review.run(name)
    assert effects(sandbox) == []


@pytest.mark.parametrize(("name", "tasks"), [("population.json", TASKS), ("decisions.json", TASKS[1:])])
def test_a_file_that_was_edited_between_two_tasks_is_refused(
    sandbox: SandboxServer, review: Review, name: str, tasks: tuple[str, ...]
) -> None:
    """Also if it is a valid one; a retried task knows what it wrote, and the next one what the result says."""
    review.decide({**KEPT, MINA: "remove"})
    path = review.folder / name
    path.write_text(path.read_text().replace('"remove"', '"keep"').replace('"level": 8', '"level": 1'))
    for task in tasks:
        results = dict(review.results)
        with pytest.raises(AirflowFailException, match=rf"\[evidence-changed\] .*{name} is not the file that was"):
            review.run(task)
        review.results = results
    assert effects(sandbox) == []


@pytest.mark.parametrize("content", ['{"state"', "[]", '{"state": "complete"}', "null", '{"state": {"a": 1}}'])
def test_a_last_review_that_cannot_be_read_is_not_none(review: Review, tmp_path: Path, content: str) -> None:
    finish(review, KEPT)
    (review.folder / "review.json").write_text(content)
    with pytest.raises(AirflowFailException, match=r"\[evidence-changed\] .*review.json'"):
        Review(tmp_path, "second").run("read_population")
    assert len([*tmp_path.iterdir()]) == 1


def test_a_last_review_of_another_release_is_compared_with(review: Review, tmp_path: Path) -> None:
    """Of its ``review.json``, only what the next review needs is read."""
    finish(review, KEPT)
    closed = review.file("review.json")
    for name in ("rules", "outcomes", "other_files"):
        del closed[name]
    (review.folder / "review.json").write_text(json.dumps({**closed, "of_another_release": 1}))
    second = Review(tmp_path, "second")
    second.run("read_population")
    assert second.file("population.json")["previous"]["folder"] == review.folder.name


def with_digests(folder: Path, run_id: str = "r1") -> Review:
    """Return a review whose digest is also in a second place."""
    return Review(folder / "reviews", run_id, digests=str(folder / "digests"))


def test_a_second_place_has_the_digest_that_sha256sum_checks(tmp_path: Path) -> None:
    for run_id, fields in (("r1", KEPT), ("r2", {**KEPT, NOAH: "remove"})):
        review = with_digests(tmp_path, run_id)
        review.decide(fields)
        if fields is KEPT:
            review.run("apply_decisions")
            digest = review.close()["sha256"]
            assert (tmp_path / "digests" / f"{review.folder.name}.sha256").read_text().startswith(f"{digest}  ")
            assert review.run("close_review")["sha256"] == digest  # a retry finds its own
        else:
            assert review.close("NOAH|never|begin")["state"] == "incomplete"
        assert review.file("review.json")["rules"]["digests"] == str(tmp_path / "digests")
    files = sorted(map(str, (tmp_path / "digests").iterdir()))
    command = ["sha256sum", "--check", "--strict", *files]
    checked = subprocess.run(command, cwd=tmp_path / "reviews", capture_output=True, text=True, check=True)
    assert checked.stdout.count("review.json: OK") == 2


def test_a_digest_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    review = with_digests(tmp_path)
    review.decide(KEPT)
    review.run("apply_decisions")
    file = tmp_path / "digests" / f"{review.folder.name}.sha256"
    file.parent.mkdir()
    line = f"{'0' * 64}  {review.folder.name}/review.json\n"
    file.write_text(line)
    with pytest.raises(
        AirflowFailException,
        match=r"\[file-exists\] WorkspaceInputError: The second place has another SHA-256 .* Ask who changed one of "
        "them: ",
    ):
        review.run("close_review")
    assert (file.read_text(), [*file.parent.iterdir()]) == (line, [file])


def test_a_retry_writes_the_digest_that_could_not_be_written(tmp_path: Path) -> None:
    review = with_digests(tmp_path)
    review.decide(KEPT)
    review.run("apply_decisions")
    (tmp_path / "digests").write_text("")
    with pytest.raises(AirflowFailException, match=r"digests' is not a folder"):
        review.run("close_review")
    closed = review.text("review.json")
    (tmp_path / "digests").unlink()
    digest = review.close()["sha256"]
    assert (tmp_path / "digests" / f"{review.folder.name}.sha256").read_text().startswith(f"{digest}  ")
    assert (digest, review.text("review.json")) == (hashlib.sha256(closed.encode()).hexdigest(), closed)


@pytest.mark.parametrize(
    "place", ["reviews", "reviews/digests", "file://{}/reviews/digests", "link/digests", "relative"]
)
def test_a_second_place_in_the_evidence_is_none(sandbox: SandboxServer, tmp_path: Path, place: str) -> None:
    (tmp_path / "reviews").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "reviews")
    digests = place if place == "relative" else place.format(tmp_path) if "{" in place else str(tmp_path / place)
    review = Review(tmp_path / "reviews", digests=digests)
    for name in ("read_population", "close_review"):
        with pytest.raises(AirflowFailException, match=r"Set it to a folder outside|digests must be"):
            review.run(name)
    assert (sandbox.requests(), [*(tmp_path / "reviews").iterdir()]) == ([], [])


def forge(folder: Path, **changes: Any) -> None:
    """Change the last look of a closed review, and its digest in `review.json` with it."""
    look = (folder / "last_look.json").read_text().replace('"level": 1,', '"level": 8,')
    (folder / "last_look.json").write_text(look)
    closed = json.loads((folder / "review.json").read_text())
    closed["files"]["last_look.json"] = hashlib.sha256(look.encode()).hexdigest()
    (folder / "review.json").write_text(json.dumps({**closed, **changes}))


@pytest.mark.parametrize("forged", ["last look", "state", "gone", "digest"])
def test_the_next_review_is_checked_by_the_second_place(tmp_path: Path, forged: str) -> None:
    """Each is what nobody sees who has only the folder."""
    first = with_digests(tmp_path)
    finish(first, KEPT)
    if forged == "gone":
        (first.folder / "review.json").unlink()
    elif forged == "digest":
        (tmp_path / "digests" / f"{first.folder.name}.sha256").write_text("torn")
    else:
        forge(first.folder, **{"state": "incomplete"} if forged == "state" else {})
    if forged != "digest":
        Review(tmp_path / "reviews", "without").run("read_population")
    message = r"\[evidence-changed\] WorkspaceInputError: .*Restore (it, .*: )?'/.*(review\.json|\.sha256)'"
    with pytest.raises(AirflowFailException, match=message):
        with_digests(tmp_path, "r2").run("read_population")


def test_a_last_review_without_a_second_place_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    finish(Review(tmp_path / "reviews", "r1"), KEPT)
    with_digests(tmp_path, "r2").run("read_population")
    assert re.search(r"The last review is not checked: .*digests.* has no SHA-256 of r1-", caplog.text)


def test_files_of_others_are_listed_and_left_alone(review: Review) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    (review.folder / ".snapshot").mkdir()
    others = {".DS_Store": b"\xff\x00", "population.xlsx": b"PK\xff", "~$population.xlsx": b"\xfe", "done-x.json": b"{"}
    for name, content in others.items():
        (review.folder / name).write_bytes(content)
    review.run("apply_decisions")
    assert review.close()["state"] == "complete"
    closed = review.file("review.json")
    assert closed["other_files"] == sorted([*others, ".snapshot"])
    assert not closed["files"].keys() & others.keys()


def test_the_answer_of_a_second_airflow_is_refused_and_not_dropped(review: Review, tmp_path: Path) -> None:
    second = Review(tmp_path)
    second.stores = dict.fromkeys(TASKS)  # as before Airflow 3.3: it does not know what it wrote
    review.run("read_population")
    second.run("read_population")
    review.ask()
    second.ask()
    review.answer(KEPT)
    with pytest.raises(
        AirflowFailException, match=r"\[file-exists\] .*A file exists with other content.* File: .*decisions\.json'"
    ):
        second.answer({**KEPT, NOAH: "remove"})


def test_a_dry_run_is_never_complete_and_no_baseline(review: Review, tmp_path: Path) -> None:
    dry = Review(tmp_path, "dry", dry_run=True)
    dry.decide(KEPT)
    dry.run("apply_decisions")
    assert dry.close("This review is incomplete: 1 open.*: dry_run: nothing was sent")["state"] == "incomplete"
    review.run("read_population")
    assert review.file("population.json")["previous"] is None


def test_a_dashboard_that_is_named_twice_is_reviewed_once(tmp_path: Path) -> None:
    board = {"project_id": SEED.project_id, "dashboard_id": SEED.dashboard_id}
    review = Review(tmp_path, dashboards=[SEED.dashboard_id, board])
    assert review.run("read_population")["people"] == 7


def test_a_last_look_without_members_proves_nothing(sandbox: SandboxServer, review: Review) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    say(sandbox, "list_members", count=0, rows=0)
    with pytest.raises(Exception, match="prove nothing"):
        review.run("close_review")
    assert "review.json" not in {path.name for path in review.folder.iterdir()}


# Files are whole.


def test_a_disk_that_fills_leaves_no_half_file(
    review: Review, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    real = os.fsync

    def fill(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(Exception, match="No space left"):
        review.run("apply_decisions")
    assert effects(sandbox) == [], "what is sent is written before"
    assert not [path.name for path in review.folder.iterdir() if path.name.startswith(("doing", "done", "."))]
    monkeypatch.setattr(os, "fsync", real)
    review.run("apply_decisions")
    assert review.close()["state"] == "complete"


def test_a_try_that_was_killed_leaves_what_it_was_about_to_send(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    Interruptions(monkeypatch).after(f"DELETE /api/organizations/{SEED.organization_id}/members/")
    with pytest.raises(Killed):
        review.run("apply_decisions")
    assert review.file("doing-1.json")["people"] == [NOAH]
    review.run("apply_decisions")
    review.close()
    assert "gone already; try 1 was about to send it, and ended" in review.text("review.md")


@pytest.mark.parametrize("name", ["done-1.json", "doing-1.json"])
def test_half_a_file_of_a_try_does_not_block_the_review(review: Review, name: str) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    (review.folder / name).write_text('{"at": ')
    review.run("apply_decisions")
    assert review.close()["state"] == "complete"


def test_a_population_that_nothing_could_read_is_not_written(
    sandbox: SandboxServer, review: Review, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.add_members(200)
    monkeypatch.setattr("airflow_provider_workspace.access.reviews.folder.MAX_MEGABYTES", 0.05)
    with pytest.raises(AirflowFailException, match=r"population\.json would have 0\.1 MB, .* 0\.05 MB"):
        review.run("read_population")
    assert not [*tmp_path.rglob("population.json")]


# A reviewer reads with the rights of the worker.


def test_without_a_folder_of_decisions_files_nobody_is_asked_for_one(
    sandbox: SandboxServer, review: Review, question: Question
) -> None:
    sandbox.add_members(30)
    review.run("read_population")
    review.ask()
    assert set(question.now.params) == {OLIVE, ADAM, NOAH, "remove", "everybody_else", "exceptions"}
    assert question.now.params["everybody_else"]["value"] == "", "Done is off until it is chosen"


@pytest.mark.parametrize(
    "name", ["../secret.cfg", "/etc/hostname", "link.csv", "", ".", "s3://b/x", "file:///etc/hostname"]
)
def test_a_decisions_file_elsewhere_is_not_read(sandbox: SandboxServer, tmp_path: Path, name: str) -> None:
    sandbox.add_members(30)
    folder = tmp_path / "files"
    folder.mkdir()
    secret = tmp_path / "secret.cfg"
    secret.write_text("fernet_key = x")
    (folder / "link.csv").symlink_to(secret)
    review = Review(tmp_path / "reviews", decisions_folder=str(folder))
    (tmp_path / "reviews").mkdir()
    fields = {"everybody_else": "keep", "decisions_file": name, "decisions_sha256": "0" * 64}
    with pytest.raises(AirflowFailException, match="is not below decisions_folder") as refused:
        review.decide(fields)
    assert hashlib.sha256(secret.read_bytes()).hexdigest() not in str(refused.value)
    assert "decisions-file.csv" not in {path.name for path in review.folder.iterdir()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Who;Kind;Decision\r\n{rows}", ""),
        ("who,decision,Decision\n{rows}", "the column 'decision' is repeated"),
        ("who;kind\n{rows}", "no column 'decision'"),
        ('who,decision\n"x', "cannot be read .line 2"),
    ],
)
def test_a_decisions_file_is_read_as_a_spreadsheet_saves_it(
    sandbox: SandboxServer, tmp_path: Path, text: str, message: str
) -> None:
    sandbox.add_members(30)
    review = Review(tmp_path / "reviews", decisions_folder=str(tmp_path))
    review.run("read_population")
    people = review.file("population.json")["people"]
    rows = ";;\r\n".join(["", *(f"{row['who']};x;Keep\r\n" for row in people)])
    file = tmp_path / "filled.csv"
    file.write_bytes(text.format(rows=rows).encode())
    review.ask()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    fields = {"everybody_else": None, "decisions_file": "filled.csv", "decisions_sha256": digest}
    if message:
        with pytest.raises(AirflowFailException, match=message):
            review.answer(fields)
    else:
        assert review.answer(fields)["counts"] == {"keep": 36}


def test_airflow_3_1_0_is_refused_before_anybody_is_asked(
    review: Review, question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow.__version__", "3.1.0")
    review.run("read_population")
    with pytest.raises(AirflowFailException, match=r"Upgrade Airflow to 3\.1\.1"):
        review.run("decide")
    assert question.asked == []


def test_the_page_says_who_reviewed_whom(tmp_path: Path, clock: Clock) -> None:
    review = Review(tmp_path, reviewers=[MINA], allow_self_approval=True)
    review.run("read_population")
    review.ask()
    clock.advance(180)
    later = datetime.fromtimestamp(time.time(), timezone.utc)
    mina = {"id": MINA, "name": "Mina"}
    review.answer({**KEPT, NOAH: "remove"}, responded_by_user=mina, responded_at=later)
    review.run("apply_decisions")
    review.close()
    page = review.text("review.md")
    assert page.split("\n")[2].startswith("6 people and invites: 5 kept, 0 lowered, 1 removed; all of it is proven by")
    assert '6 were decided one by one, 0 by "everybody else stays"; asked 20' in page
    assert "due 20" in page
    assert "after 2 minutes" in page or "after 3 minutes" in page
    assert "**They are one of these people, and decided about themselves.**" in page


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (RUTH, "Whether they are one of these people cannot be told, because this Airflow user has no address."),
        ({"id": "ruth", "name": "Ruth <ruth@example.com>"}, "| address of the reviewer | ruth@example.com |"),
    ],
)
def test_the_page_says_what_is_known_of_the_reviewer(tmp_path: Path, user: dict[str, str], said: str) -> None:
    review = Review(tmp_path)
    finish(review, KEPT, responded_by_user=user)
    assert html.unescape(said) in html.unescape(review.text("review.md"))


def test_who_reviews_what_they_approved_asked_for_or_gave_is_marked(review: Review, notes: Variables) -> None:
    give(MINA, 8, requested_by="Ruth R.")
    give(NOAH, 8, run_id="other", requested_by="eve")
    for key, value in notes.values.items():
        if "noah" in value:
            notes.values[key] = json.dumps(json.loads(value) | {"approved_by": "Ruth R. (ruth)"})
    finish(review, KEPT)
    parts = {MINA: "asked for it, or gave it", NOAH: "approved it"}
    assert review.file("decisions.json")["part_in_grants"] == parts
    page = review.text("review.md")
    for who, part in parts.items():
        assert f"**They reviewed the temporary access of {who}, and {part} themselves.**" in page
        assert re.search(rf"\| {who} \([\w ]+\) \| temporary: .* \| member \(1\) \| {part} \|", page)
    assert "(run started by" not in page
    assert Answerer("ruth", "Ruth R.").is_named_in("eve (run started by ruth)")


@pytest.mark.parametrize("way", ["lifted", "reviewed again", "noted again"])
def test_a_retry_does_not_do_what_was_decided_otherwise_meanwhile(
    sandbox: SandboxServer, tmp_path: Path, notes: Variables, way: str
) -> None:
    review = Review(tmp_path / "first")
    review.decide({**KEPT, NOAH: "remove"})
    sandbox.inject("status_before", "delete_member", status=503, times=None)
    with pytest.raises(WorkspaceError):
        review.run("apply_decisions")
    assert review.outcomes("done-1.json") == {NOAH: "unknown"}
    sandbox.clear_faults()
    said = "a later review decided about them"
    if way == "lifted":
        registry = ReviewRegistry(REVIEW_VARIABLES)
        registry.lift(registry.decisions_about(NOAH), lift_of("max", "he still needs access"))
        said = f"{NOAH}: Ruth R. removed them in access review .*, lifted by max at .*: he still needs access"
    else:
        later = Review(tmp_path / "later", "scheduled__2026-11-01T06:00:00+00:00")
        fields = KEPT if way == "reviewed again" else {**KEPT, NOAH: "remove"}
        later.decide(fields, responded_at=datetime(2026, 11, 25, tzinfo=timezone.utc))
        if way == "reviewed again":
            later.run("apply_decisions")
            later.run("close_review")
        else:
            said = r"Ruth R. removed them in access review .* \(2026-11-25\)"
            sandbox.inject("status_before", "delete_member", status=503)
            with pytest.raises(WorkspaceError):
                later.run("apply_decisions")
            sandbox.clear_faults()
    before = dict(notes.values)
    review.run("apply_decisions")
    assert (effects(sandbox), notes.values) == ([], before)
    review.run("close_review")
    assert review.outcomes() == {NOAH: "overruled"}
    (noah,) = [row for row in review.file("review.json")["outcomes"] if row["who"] == NOAH]
    assert re.match(said, noah["detail"])
    told = " (1 overruled: lifted, or decided again by a later review); all of it is proven"
    assert told in review.text("review.md")


@pytest.mark.parametrize("target", [project_access, "tests.endpoints.project_access"])
def test_levels_in_projects_are_reviewed_where_an_endpoint_of_the_author_shows_them(
    sandbox: SandboxServer, tmp_path: Path, question: Question, target: Any
) -> None:
    rows = [
        {"user_uuid": SEED.member_uuid, "projects": {"Default project": 8, "Sales": 1}},
        {"user_uuid": SEED.admin_uuid, "projects": {}},
    ]
    sandbox.respond("GET", "/api/organizations/{organization_id}/members/project_access/", rows)
    review = Review(tmp_path, project_access=target)
    finish(review, KEPT)
    (mina,) = [row for row in review.file("population.json")["people"] if row["who"] == MINA]
    assert mina["projects"] == ["Default project: admin (8)", "Sales: member (1)"]
    assert "Default project: admin (8), Sales: member (1)" in question.now.params[MINA]["description"]
    page = html.unescape(review.text("review.md"))
    assert "| member (1); Default project: admin (8), Sales: member (1) |" in page
    assert "- projects: the levels in projects are beside those of the organization" in page


def test_without_one_only_levels_of_the_organization_are_reviewed(review: Review, question: Question) -> None:
    finish(review, KEPT)
    said = "only levels of the organization are reviewed"
    assert said in question.now.body
    assert f"- projects: {said}" in review.text("review.md")


def test_levels_in_projects_of_another_shape_are_refused(tmp_path: Path) -> None:
    review = Review(tmp_path, project_access="tests.endpoints.odd_project_access")
    with pytest.raises(AirflowFailException, match=r"project_access must return .*, not something of type list"):
        review.run("read_population")


def test_whom_no_row_of_the_roster_names_is_looked_at(tmp_path: Path) -> None:
    review = Review(tmp_path, roster=[OLIVE, ADAM, MINA.upper(), {"email": NOAH}, {"email": GRACE, "level": "x"}])
    review.run("read_population")
    people = {row["who"]: row for row in review.file("population.json")["people"]}
    named = {who: row["is_on_roster"] for who, row in people.items()}
    assert named == {**dict.fromkeys(KEPT, True), LIV: False}
    assert (people[LIV]["look"], people[LIV]["group"]) == (["no row on the roster"], "no row on the roster")


# What was sent, and what is known of it.


@pytest.mark.parametrize(
    ("fault", "outcome", "detail", "seen"),
    [
        ("reset_before", "unknown", "sent, but no answer came; the last look shows whether it was done", "not done"),
        ("reset_after", "unknown", "sent, but no answer came; the last look shows whether it was done", "done"),
        ("status_before", "unknown", "sent, but HTTP 503: Sorry; the last look shows whether it was done", "not done"),
        ("odd_body", "unknown", "[not-the-service]", "done"),
    ],
)
def test_a_request_without_an_answer_was_sent(
    sandbox: SandboxServer, review: Review, fault: str, outcome: str, detail: str, seen: str
) -> None:
    review.decide({**KEPT, NOAH: "remove", GRACE: "remove"})
    options: dict[str, dict[str, Any]] = {"status_before": {"detail": "Sorry."}, "odd_body": {"body": "html"}}
    sandbox.inject(fault, "delete_member", **options.get(fault, {}))
    with pytest.raises(Exception, match="DeleteMember"):
        review.run("apply_decisions")
    first, second = [row for row in review.file("done-1.json")["outcomes"] if row["decision"] == "remove"]
    assert (first["outcome"], second["outcome"]) == (outcome, "not sent")
    assert detail in first["detail"]
    review.close("is incomplete: ")
    assert review.outcomes() == {NOAH: seen, GRACE: "not done"}
    done = int(seen == "done")
    assert f"decided: 4 kept, 0 lowered, 2 removed; done: {done} of 2 changes" in review.text("review.md")


def test_a_request_that_was_never_sent_is_said(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    review.decide({**KEPT, NOAH: "remove"})

    def refuse() -> None:
        raise ConnectionRefusedError

    Interruptions(monkeypatch).before("DELETE /api/organizations/", refuse)
    with pytest.raises(Exception, match="DeleteMember"):
        review.run("apply_decisions")
    (row,) = [row for row in review.file("done-1.json")["outcomes"] if row["decision"] == "remove"]
    assert row["outcome"] == "not sent"
    assert row["detail"].startswith("[not-reached] DeleteMember was not sent: ConnectionRefused")


def test_a_refused_removal_keeps_the_status_and_the_reason(sandbox: SandboxServer, review: Review) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    sandbox.inject("status_before", "delete_member", status=403, detail="They are above you.")
    with pytest.raises(Exception, match="above you"):
        review.run("apply_decisions")
    review.close("is incomplete: ")
    assert f"| {NOAH} | remove | refused, HTTP 403: They are above you | not done |" in review.text("review.md")


def test_the_page_has_a_section_of_temporary_access(review: Review, tmp_path: Path) -> None:
    give(MINA, 8)
    give(MINA, 8, run_id="longer", length=7200)
    finish(review, KEPT)
    (section,) = re.findall(r"## Temporary access\n\n(.*?)\n\n## ", review.text("review.md"), re.DOTALL)
    assert f"| {MINA} (Mina Member) | temporary: admin (8) until 20" in section
    assert section.count(f"| {MINA} ") == 2, "two grants of one person are two lines"
    assert "| member (1) | - |" in section
    assert "evidence files of the sweep" in section
    second = Review(tmp_path, "none")
    second.close("nobody decided")
    assert "## Temporary access" not in second.text("review.md"), "nobody read who had it"


@pytest.mark.parametrize("base_url", ["", "https://airflow.example.com"])
def test_the_page_says_where_it_ran(review: Review, monkeypatch: pytest.MonkeyPatch, base_url: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    closed = review.close("nobody decided")
    assert closed["airflow"] == (base_url or "not set ([api] base_url)")


# What others write into the folder while the review is open.


def test_a_last_look_of_others_proves_nothing(sandbox: SandboxServer, review: Review) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    sandbox.inject("status_before", "delete_member", status=403)
    with pytest.raises(Exception, match="refused 1 of 1 change"):
        review.run("apply_decisions")
    population = review.file("population.json")
    population["people"] = [person for person in population["people"] if person["who"] != NOAH]
    forged = review.folder / "last_look.json"
    forged.write_text(json.dumps(population))
    with pytest.raises(
        AirflowFailException, match=r"\[evidence-changed\] .*last_look.json was written by no task of this review"
    ):
        review.run("close_review")
    forged.unlink()
    assert review.close("is incomplete: ")["state"] == "incomplete"


@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_page_of_others_is_not_the_page(review: Review, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    review.decide(KEPT)
    review.run("apply_decisions")
    if moment == "between":
        with monkeypatch.context() as patch:
            stop_before(patch, "review.json")
            with pytest.raises(Killed):
                review.run("close_review")
    (review.folder / "review.md").write_text("All is well.")
    with pytest.raises(AirflowFailException, match=r"\[evidence-changed\] .*review.md'"):
        review.run("close_review")
    assert not (review.folder / "review.json").exists()


@pytest.mark.parametrize("name", ["population.csv", "doing-1.json", "done-1.json"])
def test_a_file_that_was_edited_is_named_and_the_review_is_incomplete(review: Review, name: str) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    review.run("apply_decisions")
    file = review.folder / name
    file.write_text(file.read_text().replace("noah", "nora").replace("admin (8)", "member (1)"))
    closed = review.close(rf"This review is incomplete: 1 open\. .*: {name} is not the file that was written")
    assert closed["missing"] == [f"{name} is not the file that was written"]


@pytest.mark.parametrize(("name", "task"), [("population.json", "read_population"), ("decisions.json", "decide")])
def test_what_others_read_or_decided_is_not_taken(
    sandbox: SandboxServer, review: Review, tmp_path: Path, name: str, task: str
) -> None:
    """Each file is a valid one, of another review of the same people."""
    other = Review(tmp_path / "other")
    other.decide({**KEPT, NOAH: "remove"})
    shutil.copytree(other.folder, tmp_path / other.folder.name)
    if name == "population.json":
        (review.folder / "decisions.json").unlink()
    else:
        review.stores["read_population"] = other.stores["read_population"]
        review.results["read_population"] = other.results["read_population"]
    with pytest.raises(
        AirflowFailException, match=rf"\[evidence-changed\] .*{name} was written by no task of this review"
    ):
        review.run(task)
    assert effects(sandbox) == []


def stop_before(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Kill the worker before it writes a file."""
    create = UrlFile.create

    def killed(file: UrlFile, content: bytes) -> None:
        if file.path.name == name:
            raise Killed
        create(file, content)

    monkeypatch.setattr(UrlFile, "create", killed)


def test_nobody_decides_while_the_review_is_being_closed(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the page says that nobody was reviewed, and the review is complete."""
    review.run("read_population")
    review.ask()
    with monkeypatch.context() as patch:
        stop_before(patch, "review.json")
        with pytest.raises(Killed):
            review.run("close_review")
    with pytest.raises(AirflowFailException, match=r"\[review-ended\] .* is being closed"):
        review.answer(KEPT)
    assert review.close("not reviewed: ")["state"] == "not reviewed"


@pytest.mark.parametrize(
    "name", ["population.json", "population.csv", "decisions.json", "doing-1.json", "done-1.json", "last_look.json"]
)
def test_a_worker_that_is_killed_before_a_write_does_not_block_the_review(
    review: Review, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def run(work: Any) -> None:
        with monkeypatch.context() as patch:
            stop_before(patch, name)
            try:
                work()
            except Killed:
                patch.undo()
                work()

    run(lambda: review.run("read_population"))
    review.ask()
    run(lambda: review.answer({**KEPT, NOAH: "remove"}))
    run(lambda: review.run("apply_decisions"))
    assert review.close()["state"] == "complete"


def test_of_two_workers_only_the_first_does_what_was_decided(
    sandbox: SandboxServer, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both took the same number, within a second."""
    review.decide({**KEPT, NOAH: "remove"})
    monkeypatch.setattr(ReviewFolder, "next_number", lambda _: 1)

    def second() -> None:
        with pytest.raises(AirflowFailException, match=r"\[file-exists\] .*Another try wrote doing-1\.json first"):
            review.run("apply_decisions")

    Interruptions(monkeypatch).before("DELETE /api/organizations/", second)
    review.run("apply_decisions")
    assert effects(sandbox) == ["delete_member"]
    assert review.outcomes("done-1.json") == {NOAH: "done"}


@pytest.mark.parametrize("fields", [[], ["x"], "keep", 1])
def test_an_answer_that_is_no_form_is_refused(review: Review, fields: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"\[answer-refused\]"):
        review.decide(fields)
    assert review.close("not reviewed: ")["state"] == "not reviewed"


def test_two_reasons_for_one_person_are_refused(review: Review) -> None:
    with pytest.raises(AirflowFailException, match="expected one line for each person"):
        review.decide({**KEPT, "exceptions": f"{MINA}: on leave\n{MINA}: an auditor"})


def test_a_review_that_the_second_place_does_not_have_is_no_baseline(tmp_path: Path) -> None:
    """It could be a copy with a later date: the second place was there when the first review was closed."""
    first = with_digests(tmp_path)
    finish(first, KEPT)
    copied = first.folder.with_name("r9-00000000")
    shutil.copytree(first.folder, copied)
    later = first.text("review.json").replace(first.file("review.json")["read_at"], "2030-01-01T00:00:00Z")
    (copied / "review.json").write_text(later)
    with pytest.raises(
        AirflowFailException,
        match=r"\[evidence-changed\] .*review\.json has no SHA-256 in .*earlier reviews.*r9-00000000",
    ):
        with_digests(tmp_path, "r2").run("read_population")


def test_a_review_whose_folder_is_gone_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = with_digests(tmp_path)
    finish(first, KEPT)
    name = first.folder.name
    shutil.rmtree(first.folder)
    with_digests(tmp_path, "r2").run("read_population")
    assert re.search(rf"has the SHA-256 of reviews that are not in .*: {name}", caplog.text)


# What a review decided, against what other features would give or take afterwards.

ROSTER: list[Any] = [
    {"email": ADAM, "level": 8},
    {"email": MINA, "level": 1},
    {"email": NOAH, "level": 1},
    {"email": GRACE, "level": 1},
    {"email": LIV, "level": 1},
]


def sync(**arguments: Any) -> WorkspaceSyncMembersOperator:
    given: dict[str, Any] = {"task_id": "sync", "roster": ROSTER, "protected": [OLIVE], "max_removals": None}
    return WorkspaceSyncMembersOperator(**given | arguments)


def noted_people(notes: Variables) -> list[str]:
    """Return the addresses in the notes of reviews."""
    texts = [text for key, text in notes.values.items() if key.startswith("workspace_decisions.")]
    return sorted(person["email"] for text in texts for person in json.loads(text)["people"])


def give(email: str, level: int, run_id: str = "grant", **arguments: Any) -> Any:
    ti = SimpleNamespace(dag_id="access", run_id=run_id, task_id="grant", map_index=-1, xcom_push=lambda **_: None)
    given: dict[str, Any] = {"task_id": "grant", "reason": "audit", "length": 3600.0, **arguments}
    return WorkspaceGrantAccessOperator(user_email=email, level=level, **given).execute({"ti": ti})  # type: ignore[typeddict-item]


def lift(email: str) -> None:
    ti = SimpleNamespace(xcom_push=lambda **_: None)
    given: dict[str, Any] = {"reason": "The row is right", "require_approval": False}
    WorkspaceLiftDecisionOperator(task_id="lift", user_email=email, **given).execute({"ti": ti})  # type: ignore[typeddict-item]


def sweep() -> Any:
    return WorkspaceSweepOperator(task_id="sweep", kinds=["grants"]).execute({})["grants"]


def level_of(email: str) -> int | None:
    with WorkspaceHook() as hook:
        found = [member.level for member in hook.list_members() if member.user and member.user.email == email]
    return found[0] if found else None


def finish(review: Review, fields: Any, **event: Any) -> Any:
    """Decide, apply and close a review."""
    review.decide(fields, **event)
    review.run("apply_decisions")
    return review.close()


def test_a_sync_after_a_review_gives_nothing_back_and_asks_nobody_whether_it_may(
    sandbox: SandboxServer, review: Review, notes: Variables
) -> None:
    finish(review, {**KEPT, ADAM: "lower to member", NOAH: "remove", LIV: "remove"})
    assert noted_people(notes) == [ADAM, LIV, NOAH]
    before = effects(sandbox)
    for arguments in ({"dry_run": True}, {}, {"require_approval": True}):
        plan = sync(**arguments).execute({})
        told = {row["name"]: row["why"] for row in plan["changes"] if row["action"] == "differs"}
        assert set(told) == {f"person {who}" for who in (ADAM, NOAH, LIV)}
        for number, who, decided in ((1, ADAM, "lowered them to member (1)"), (3, NOAH, "removed them")):
            row = told[f"person {who}"]
            by_review = f"Ruth R. {decided} in access review {review.folder.name} ({DECIDED:%Y-%m-%d})"
            assert f"{by_review}, and row {number} gives more: correct the row, or lift the decision about {who}" in row
    assert effects(sandbox) == before
    assert noted_people(notes) == [ADAM, LIV, NOAH]


def test_the_decisions_are_noted_before_anything_is_sent(
    sandbox: SandboxServer, review: Review, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    Interruptions(monkeypatch).before(f"DELETE /api/organizations/{SEED.organization_id}/members/")
    with pytest.raises(Killed):
        review.run("apply_decisions")
    assert (effects(sandbox), noted_people(notes)) == ([], [NOAH])
    first = dict(notes.values)
    review.run("apply_decisions")
    assert notes.values == first, "a retry writes the same note"


def test_only_who_was_lowered_or_removed_is_noted_and_not_by_a_dry_run(
    sandbox: SandboxServer, tmp_path: Path, notes: Variables
) -> None:
    on_dashboard = f"{GRACE} on dashboard {SEED.dashboard_id}"
    for dry_run in (True, False):
        review = Review(tmp_path, f"run {dry_run}", dry_run=dry_run, dashboards=[SEED.dashboard_id])
        review.decide({**KEPT, on_dashboard: "remove"})
        review.run("apply_decisions")
    review = Review(tmp_path, "dry", dry_run=True)
    review.decide({**KEPT, NOAH: "remove"})
    review.run("apply_decisions")
    assert notes.values == {}
    assert effects(sandbox) == ["remove_dashboard_collaborator"]


def test_a_later_complete_review_decides_again(review: Review, tmp_path: Path, notes: Variables) -> None:
    finish(review, {**KEPT, ADAM: "lower to member", NOAH: "remove"})
    left = {who: decision for who, decision in KEPT.items() if who != NOAH}
    second = Review(tmp_path, "second")
    second.decide({**left, MINA: "remove"}, responded_at=DECIDED + timedelta(days=1))
    second.run("apply_decisions")
    assert noted_people(notes) == [ADAM, MINA, NOAH], "it is not complete yet"
    second.close()
    assert noted_people(notes) == [MINA, NOAH], "Adam stays as he is: nothing more is decided about him"


def test_the_next_review_knows_which_decisions_were_lifted_and_by_whom(
    review: Review, tmp_path: Path, notes: Variables, question: Question, clock: Clock
) -> None:
    finish(review, {**KEPT, ADAM: "lower to member", NOAH: "remove"})
    lift(ADAM)
    lift(NOAH)
    sync().execute({})
    assert (level_of(ADAM), noted_people(notes)) == (8, [ADAM, NOAH])
    second = Review(tmp_path, "second")
    second.run("read_population")
    population = second.file("population.json")
    people = {row["who"]: row for row in population["people"]}
    by_review = f"Ruth R. lowered them to member (1) in access review {review.folder.name} ({DECIDED:%Y-%m-%d})"
    lifted = rf"{ADAM}: {re.escape(by_review)}, lifted by run - of Dag - at [\dT:-]+Z: The row is right"
    assert re.fullmatch(lifted, people[ADAM]["lifted"])
    assert "lifted after an earlier access review" in people[ADAM]["look"]
    assert people[GRACE]["lifted"] == ""
    assert [line.partition(":")[0] for line in population["lifted"]] == [ADAM, NOAH]
    second.ask()
    assert "What reviewers decided and people lifted since: " in question.asked[-1].body
    second.answer(dict.fromkeys(KEPT, "keep"), responded_at=datetime.now(timezone.utc))
    second.run("apply_decisions")
    second.close()
    assert "What reviewers decided and people lifted since: " in (second.folder / "review.md").read_text()
    assert noted_people(notes) == [ADAM, NOAH], "who lifted a decision stays noted"
    clock.advance(86_400)
    third = Review(tmp_path, "third")
    third.run("read_population")
    population = third.file("population.json")
    assert {row["lifted"] for row in population["people"]} == {""}, "the second review has looked at them"
    assert len(population["lifted"]) == 2


def test_a_retry_of_a_review_keeps_what_was_lifted_meanwhile(
    review: Review, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    review.decide({**KEPT, NOAH: "remove"})
    Interruptions(monkeypatch).after(f"DELETE /api/organizations/{SEED.organization_id}/members/")
    with pytest.raises(Killed):
        review.run("apply_decisions")
    lift(NOAH)
    lifted = dict(notes.values)
    review.run("apply_decisions")
    review.close()
    assert notes.values == lifted


def test_a_decision_counts_as_long_as_the_review_says(tmp_path: Path, clock: Clock) -> None:
    review = Review(tmp_path, decisions_count_for=timedelta(days=2))
    finish(review, {**KEPT, ADAM: "lower to member"}, responded_at=datetime.now(timezone.utc))
    assert sync(dry_run=True).execute({})["counts"]["change"] == 0
    clock.advance(2 * 86_400 + 1)
    assert sync(dry_run=True).execute({})["counts"]["change"] == 1


@pytest.mark.parametrize(
    ("first_counts_for", "days", "noted"),
    [
        (timedelta(days=4), 6, []),
        (timedelta(days=4), 3, [NOAH, GRACE]),
        # The second is over, and must not let the first count again for the people of both.
        (timedelta(days=400), 6, [NOAH, GRACE]),
    ],
    ids=["all are over", "one counts", "an earlier one counts"],
)
def test_a_later_complete_review_deletes_the_notes_that_are_over(
    tmp_path: Path, notes: Variables, first_counts_for: timedelta, days: int, noted: list[str]
) -> None:
    finish(Review(tmp_path, "first", decisions_count_for=first_counts_for), {**KEPT, NOAH: "remove"})
    left = {who: "keep" for who in KEPT if who != NOAH}
    second = Review(tmp_path, "second", decisions_count_for=timedelta(days=1))
    finish(second, {**left, GRACE: "remove"}, responded_at=DECIDED + timedelta(days=1))
    assert noted_people(notes) == sorted([NOAH, GRACE])
    del left[GRACE]
    finish(Review(tmp_path, "third"), left, responded_at=DECIDED + timedelta(days=days))
    assert noted_people(notes) == sorted(noted)


def test_before_airflow_3_3_the_log_says_that_decisions_are_not_noted(
    sandbox: SandboxServer, review: Review, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    variables = install(monkeypatch, release="3.2")
    finish(review, {**KEPT, NOAH: "remove"})
    assert "The decisions of this review are not noted" in caplog.text
    first_lines = review.text("review.md").split("## Scope")[0]
    assert "**The decisions of this review are not noted, because tasks cannot list Variables before" in first_lines
    assert (effects(sandbox), variables.values) == (["delete_member"], {})


def test_temporary_access_is_shown_as_such_and_judged_without_it(
    sandbox: SandboxServer, review: Review, question: Question, clock: Clock
) -> None:
    give(MINA, 8)
    review.run("read_population")
    population = {row["who"]: row for row in review.file("population.json")["people"]}
    (reason,) = population[MINA]["look"]
    assert re.fullmatch(r"temporary: admin \(8\) until 20[\d-]{8}T[\d:.]{12}Z", reason)
    assert (population[MINA]["level"], population[MINA]["temporary"]["then"]) == (8, 1)
    assert population[ADAM]["temporary"] is None
    review.ask()
    assert question.now.params[MINA]["schema"]["enum"] == ["keep", "remove"]
    assert "temporary: admin" in question.now.body
    review.answer(KEPT)
    clock.advance(3601)
    sweep()
    assert level_of(MINA) == 1
    review.run("apply_decisions")
    assert review.close()["state"] == "complete"
    assert effects(sandbox) == ["update_member"] * 2


@pytest.mark.parametrize(
    ("who", "decision", "level_after"),
    [(MINA, "keep", 1), (MINA, "remove", None), (ADAM, "lower to member", 1), (ADAM, "remove", None)],
)
def test_a_grant_after_the_decision_stands_until_its_end(
    sandbox: SandboxServer, review: Review, clock: Clock, who: str, decision: str, level_after: int | None
) -> None:
    review.decide({**KEPT, who: decision})
    give(who, 15)
    before = effects(sandbox)
    review.run("apply_decisions")
    assert review.close()["state"] == "complete"
    assert level_of(who) == 15
    assert effects(sandbox) == before
    assert review.outcomes() == ({} if decision == "keep" else {who: "later"})
    if decision != "keep":
        after = "removed" if level_after is None else "member (1)"
        assert "later, temporary: owner (15) until " in review.text("review.md")
        assert f"; then {after}" in review.text("review.md")
    clock.advance(3601)
    assert len(sweep()["ended"]) == 1
    assert level_of(who) == level_after


def test_a_removal_ends_the_grants_before_it(sandbox: SandboxServer, review: Review, notes: Variables) -> None:
    give(MINA, 8)
    later = datetime.now(timezone.utc) + timedelta(minutes=1)
    finish(review, {**KEPT, MINA: "remove"}, responded_at=later)
    assert level_of(MINA) is None
    assert not [key for key in notes.values if key.startswith("workspace_grant.")]
    assert noted_people(notes) == [MINA]
    assert effects(sandbox) == ["update_member", "delete_member"]


@pytest.mark.parametrize("task", ["apply_decisions", "close_review"])
@pytest.mark.parametrize(("who", "level"), [(MINA, 8), (GRACE, 8)])
def test_keep_is_no_difference_between_the_end_of_a_grant_and_the_sweep(
    review: Review, clock: Clock, who: str, level: int, task: str
) -> None:
    give(who, level)
    review.decide(KEPT)
    for name in ("apply_decisions", "close_review"):
        if name == task:
            clock.advance(3601)
        review.run(name)
    assert review.results["close_review"]["state"] == "complete"
    assert review.outcomes() == {}
    assert level_of(who) == level
    assert f"temporary: admin ({level}) until" in review.text("review.md")
    assert len(sweep()["ended"]) == 1
    assert level_of(who) == 1


@pytest.mark.parametrize(
    ("who", "decision", "level_after"), [(MINA, "remove", None), (ADAM, "lower to member", 1), (ADAM, "remove", None)]
)
def test_what_is_decided_does_not_wait_for_the_sweep_after_the_end_of_a_grant(
    review: Review, clock: Clock, who: str, decision: str, level_after: int | None
) -> None:
    """Also a removal that was decided before the grant."""
    review.decide({**KEPT, who: decision})
    give(who, 15)
    clock.advance(3601)
    review.run("apply_decisions")
    assert level_of(who) == level_after
    assert review.close()["state"] == "complete"
    assert review.outcomes() == {who: "done"}
    sweep()
    assert level_of(who) == level_after


def test_a_lower_level_caps_what_lies_under_a_grant(review: Review, notes: Variables, clock: Clock) -> None:
    give(ADAM, 15)
    later = datetime.now(timezone.utc) + timedelta(minutes=1)
    finish(review, {**KEPT, ADAM: "lower to member"}, responded_at=later)
    assert (level_of(ADAM), noted_people(notes)) == (15, [ADAM])
    clock.advance(3601)
    (ended,) = sweep()["ended"]
    assert ended["done"].startswith(
        f"member {ADAM}: level: 15 -> 1, Ruth R. lowered them to member (1) in access review"
    )
    assert level_of(ADAM) == 1


@pytest.mark.parametrize(
    ("who", "decision", "level", "decided"),
    [(NOAH, "remove", 1, "removed them"), (ADAM, "lower to member", 8, "lowered them to member (1)")],
)
def test_a_grant_of_more_than_a_review_decided_needs_an_approval(
    sandbox: SandboxServer,
    review: Review,
    question: Question,
    notes: Variables,
    clock: Clock,
    who: str,
    decision: str,
    level: int,
    decided: str,
) -> None:
    finish(review, {**KEPT, who: decision})
    before = effects(sandbox)
    for dry_run in (True, False):
        expected = (
            rf"\[decided-by-review\] .* allows {who} less .*: Ruth R. {re.escape(decided)} in .*require_approval=True"
        )
        with pytest.raises(AirflowFailException, match=expected):
            give(who, level, dry_run=dry_run)
    assert effects(sandbox) == before
    task = Task(question, started_by="sam")
    grant = WorkspaceGrantAccessOperator(
        task_id="grant", user_email=who, level=level, length=3600.0, reason="audit", require_approval=True
    )
    approve = task.ask(grant)
    assert f"despite: Ruth R. {decided} in access review" in question.now.body
    assert task.answer(grant, approve, at=datetime.now(timezone.utc)).get("then") == (1 if who == ADAM else None)
    assert noted_people(notes) == [who], "the decision still counts after the end"
    told = [row for row in sync().execute({})["changes"] if row["name"] == f"person {who}"]
    assert [row["action"] for row in told] == ["wait"], told
    if who == ADAM:
        assert level_of(who) == 8
    clock.advance(3601)
    sweep()
    assert level_of(who) == (1 if who == ADAM else None)
    with WorkspaceHook() as hook:
        assert who not in [invite.target_email for invite in hook.list_invites()]


def test_a_grant_within_what_a_review_decided_needs_none(review: Review) -> None:
    finish(review, {**KEPT, ADAM: "lower to member"})
    set_level(SEED.member_uuid, 1)
    assert give(ADAM, 1)["granted"] is False
    assert give(GRACE, 8)["granted"] is True


def test_a_decision_that_nobody_can_read_is_named_and_stops_what_asks_it(review: Review, notes: Variables) -> None:
    finish(review, {**KEPT, NOAH: "remove"})
    (key,) = [key for key in notes.values if key.startswith("workspace_decisions.")]
    notes.values[key] = "{"
    for task in (lambda: give(GRACE, 8), lambda: sync().execute({})):
        with pytest.raises(
            AirflowFailException, match=rf"\[decisions-unreadable\] .*Correct the Variable '{re.escape(key)}'"
        ):
            task()


def test_a_grant_that_a_removal_ended_is_not_given_back(
    sandbox: SandboxServer, review: Review, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another grant of the person ends after the review was killed: what was granted before the removal stays away."""
    give(MINA, 8, "short", length=600.0)
    give(MINA, 8, "long", length=7200.0)
    review.decide({**KEPT, MINA: "remove"}, responded_at=datetime.now(timezone.utc) + timedelta(minutes=1))
    Interruptions(monkeypatch).before(f"DELETE /api/organizations/{SEED.organization_id}/members/")
    with pytest.raises(Killed):
        review.run("apply_decisions")
    clock.advance(601)
    before = effects(sandbox)
    assert len(sweep()["ended"]) == 1
    assert effects(sandbox)[len(before) :] == ["delete_member"]
    with WorkspaceHook() as hook:
        assert MINA not in [invite.target_email for invite in hook.list_invites()]


def test_a_grant_that_goes_on_is_not_lowered_when_another_ends(
    sandbox: SandboxServer, review: Review, clock: Clock
) -> None:
    give(ADAM, 15, "short", length=600.0)
    give(ADAM, 15, "long", length=7200.0)
    later = datetime.now(timezone.utc) + timedelta(minutes=1)
    finish(review, {**KEPT, ADAM: "lower to member"}, responded_at=later)
    assert effects(sandbox) == ["update_member"]
    for seconds, level, sent in ((601, 15, 1), (7200, 1, 2)):
        clock.advance(seconds)
        assert len(sweep()["ended"]) == 1
        assert (level_of(ADAM), effects(sandbox)) == (level, ["update_member"] * sent)


def test_the_plan_of_a_grant_says_what_the_review_leaves_afterwards(review: Review) -> None:
    finish(review, {**KEPT, ADAM: "lower to member"})
    set_level(SEED.admin_uuid, 8)
    (change,) = give(ADAM, 15, dry_run=True, require_approval=True)["changes"]
    assert (change["before"]["level"], change["after"]["then"]) == (8, 1)
