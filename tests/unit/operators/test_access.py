"""Access for a while against the sandbox: given, ended, and what happens in between."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.execution_time import task_runner

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.notes import ending
from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, say, writes
from tests.grant_notes import variable
from tests.interruptions import Interruptions
from tests.raw_server import SILENT, RawServer, Scene
from tests.task_instance import Killed, Question, Task, TaskStore
from tests.variables import Variables, install

if TYPE_CHECKING:
    import socket

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)

MINA, ADA, OLIVE = "mina.member@example.com", "ada@example.com", "olive.owner@example.com"
HOUR = 3600.0


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Variables:
    connect(consistency_time=1, max_attempts=1)
    return install(monkeypatch)


def operator(email: str = MINA, level: Any = 8, **arguments: Any) -> WorkspaceGrantAccessOperator:
    arguments = {
        "task_id": "grant",
        "reason": "audit",
        **({} if "until" in arguments else {"length": HOUR}),
        **arguments,
    }
    return WorkspaceGrantAccessOperator(user_email=email, level=level, **arguments)


def give(*arguments: Any, run_id: str = "run", try_number: int = 1, store: Any = None, **others: Any) -> Any:
    ti = SimpleNamespace(dag_id="dag", run_id=run_id, task_id="grant", map_index=-1, xcom_push=lambda **_: None)
    ti.try_number = try_number
    context: Any = {"ti": ti, "dag_run": SimpleNamespace(triggering_user_name="ruth"), "task_state_store": store}
    return operator(*arguments, **others).execute(context)


def end(**arguments: Any) -> Any:
    return WorkspaceSweepOperator(task_id="sweep", kinds=["grants"], **arguments).execute({})["grants"]


def keys(notes: Variables) -> list[str]:
    return [key for key in notes.values if key.startswith("workspace_grant.")]


def level_of(email: str) -> int | None:
    with WorkspaceHook() as hook:
        found = [member.level for member in hook.list_members() if member.user and member.user.email == email]
    return found[0] if found else None


def set_level(level: int, user_uuid: str = SEED.member_uuid) -> None:
    with WorkspaceHook() as hook:
        hook.update_member(user_uuid=user_uuid, level=level)


def test_a_member_gets_a_level_until_the_end(sandbox: SandboxServer, notes: Variables, clock: Clock) -> None:
    plan = give(dry_run=True)
    assert (keys(notes), writes(sandbox), plan["pending"]) == ([], [], 1)
    done = give("Mina.Member@example.com")
    assert {name: done[name] for name in ("granted", "before", "then", "level", "requested_by", "reason")} == {
        "granted": True, "before": 1, "then": 1, "level": 8, "requested_by": "ruth", "reason": "audit",
    }  # fmt: skip
    assert (level_of(MINA), end()["active"]) == (8, 1)
    clock.advance(HOUR + 1)
    assert end(dry_run=True)["ended"][0]["done"].startswith(f"member {MINA}: level: 8 -> 1, access ended 20")
    assert level_of(MINA) == 8
    (ended,) = end()["ended"]
    assert (ended["user_email"], ended["done"][:40]) == ("Mina.Member@example.com", f"member {MINA}: level: 8 ->"[:40])
    assert (level_of(MINA), keys(notes)) == (1, [])
    assert end() == {"ended": [], "left": [], "active": 0}
    assert effects(sandbox) == ["update_member"] * 2


@pytest.mark.parametrize("joins", [False, True])
def test_who_is_no_member_is_invited_and_gone_after_the_end(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, joins: bool
) -> None:
    assert give(ADA, "admin", until="2999-01-01")["until"] == "2999-01-01T23:59:59.000Z"
    notes.values.clear()
    assert give(ADA, 8)["granted"] is False, "an open invite that no grant made"
    sandbox.reset()
    assert give(ADA, 8).get("then") is None
    if joins:
        with WorkspaceHook() as hook:
            sandbox.accept_invite(next(str(one.id) for one in hook.list_invites() if one.target_email == ADA))
        assert level_of(ADA) == 8
    clock.advance(HOUR + 1)
    assert len(end()["ended"]) == 1
    assert (level_of(ADA), keys(notes)) == (None, [])
    assert effects(sandbox)[-1] == ("delete_member" if joins else "delete_invite")


def test_of_two_grants_the_higher_level_counts_until_its_end(sandbox: SandboxServer, clock: Clock) -> None:
    give(MINA, 8, length=2 * HOUR)
    assert give(MINA, 15, run_id="higher")["then"] == 1
    assert give(MINA, 8, run_id="longer", length=timedelta(hours=3))["granted"] is True
    sent = len(effects(sandbox))
    for hours, level in ((1, 8), (1, 8), (1, 1)):
        clock.advance(hours * HOUR + 1)
        assert len(end()["ended"]) == 1
        assert level_of(MINA) == level
    assert len(effects(sandbox)) == sent + 2


def test_grants_of_two_levels_may_end_together(clock: Clock) -> None:
    until = datetime.fromtimestamp(time.time() + HOUR, timezone.utc)
    for level in (8, 15):
        assert give(MINA, level, run_id=str(level), until=until)["granted"] is True
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(MINA)) == (2, 1)


def test_a_level_that_somebody_changed_meanwhile_is_left(notes: Variables, clock: Clock) -> None:
    give()
    give("grace.analyst@example.com", run_id="other")
    set_level(15)
    clock.advance(HOUR + 1)
    for _ in range(2):
        with pytest.raises(
            AirflowFailException, match=rf"{MINA}: Set level 1 by hand, or delete .*changed since"
        ) as red:
            end()
        assert str(red.value).startswith("[access-not-ended] WorkspaceError: ")
        assert (level_of(MINA), level_of("grace.analyst@example.com"), len(keys(notes))) == (15, 1, 1)
    set_level(1)
    assert end()["ended"][0]["done"] == "they did not have it any more"


@pytest.mark.parametrize(
    ("why", "protected"),
    [("Make somebody else an owner first", []), ("Set level 1 by hand, or delete the .*protected", [MINA])],
)
def test_the_last_owner_and_protected_people_are_not_lowered(
    sandbox: SandboxServer, notes: Variables, clock: Clock, why: str, protected: list[str]
) -> None:
    give(MINA, "owner")
    if not protected:
        say(sandbox, "list_members", {"id": "1", "level": 15, "user": {"uuid": SEED.member_uuid, "email": MINA}})
    clock.advance(HOUR + 1)
    with pytest.raises(AirflowFailException, match=why):
        end(protected=protected)
    assert (len(keys(notes)), effects(sandbox)) == (1, ["update_member"])


def test_a_killed_task_is_ended_and_a_retry_keeps_its_end(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt, store = Interruptions(monkeypatch), TaskStore()
    interrupt.before("PATCH")
    with pytest.raises(Killed):
        give(store=store)
    (key,) = keys(notes)
    until = json.loads(notes.values[key])["until"]
    clock.advance(60)
    interrupt.after("PATCH")
    with pytest.raises(Killed):
        give(try_number=2, store=store)
    again = give(try_number=3, store=store)
    assert (again["until"], again["granted"], level_of(MINA)) == (until, True, 8)
    with pytest.raises(AirflowFailException, match=r"Start a new run .*has level 8"):
        give(MINA, 9)
    clock.advance(HOUR)
    with pytest.raises(AirflowFailException, match=r"Start a new run .*is over"):
        give(try_number=4, store=store)
    assert len(end()["ended"]) == 1
    with pytest.raises(AirflowFailException, match=r"Start a new run .*is over"):
        give(try_number=5, store=store)
    assert (level_of(MINA), effects(sandbox)) == (1, ["update_member"] * 2)


@pytest.mark.parametrize(("fault", "noted"), [("rejected", 0), ("lost_response", 1)])
def test_only_a_certain_refusal_takes_the_note_back(
    sandbox: SandboxServer, notes: Variables, clock: Clock, fault: str, noted: int
) -> None:
    if fault == "rejected":
        with pytest.raises(AirflowFailException, match=r"403|refused"):
            give(OLIVE, 16)
        with pytest.raises(AirflowFailException, match="refused"):
            give(ADA, 99)
    else:
        sandbox.inject("reset_after", "update_member")
        with pytest.raises(Exception, match="UpdateMember"):
            give()
    assert len(keys(notes)) == noted
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(MINA)) == (noted, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"until": "2020-01-01"}, "Give a later until: 2020-01-01 is over"),
        ({"until": "2999-01-01T10:00"}, "until: expected a date"),
        ({"until": "2999-01-01", "length": 5}, "Give either length=… or until=…"),
        ({"level": "boss"}, "level: expected a whole number"),
        ({"reason": ""}, "reason"),
        ({"email": "mina"}, "Correct user_email"),
        ({"email": "liv.invited@example.com"}, "Correct this by hand first, such as the open invite"),
    ],
)
def test_wrong_arguments_send_nothing(
    sandbox: SandboxServer, notes: Variables, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=re.escape(message)):
        give(**arguments)
    assert (writes(sandbox), keys(notes)) == ([], [])


def test_nobody_is_lowered_by_a_grant(sandbox: SandboxServer, notes: Variables) -> None:
    assert [give(email, 8)["granted"] for email in (OLIVE, "adam.admin@example.com")] == [False, False]
    assert (writes(sandbox), keys(notes)) == ([], [])


def test_edited_variables_and_other_hosts_are_named_and_stop_nobody_else(
    sandbox: SandboxServer, notes: Variables, clock: Clock, connect: Connect
) -> None:
    give()
    give("grace.analyst@example.com", run_id="other")
    give(ADA, run_id="unreadable")
    *_, key = keys(notes)
    notes.values[key] = notes.values[key].replace("20", "x0")
    with pytest.raises(AirflowFailException, match="grant-unreadable"):
        give(ADA, run_id="again")
    mina, grace, _ = keys(notes)
    clock.advance(HOUR + 1)
    connect(host=sandbox.url.replace("127.0.0.1", "localhost"))
    with pytest.raises(
        AirflowFailException, match=f"Set the host of connection .* back to {sandbox.url}.*, or .*{mina}"
    ):
        end()
    connect()
    with pytest.raises(
        AirflowFailException, match=rf"1 grant could not be ended. .*unknown: Correct the Variable .*'{key}', .*since"
    ):
        end()
    assert (keys(notes), level_of(MINA), grace in notes.values) == ([key], 1, False)


def test_what_is_given_while_another_grant_ends_stays(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    give()
    clock.advance(HOUR + 1)
    interrupt = Interruptions(monkeypatch)
    interrupt.before("PATCH", lambda: give(run_id="meanwhile"))
    assert len(end()["ended"]) == 1
    assert (level_of(MINA), effects(sandbox)[-1]) == (8, "update_member")
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(MINA)) == (1, 1)


def test_what_another_grant_gave_meanwhile_does_not_stay(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt = Interruptions(monkeypatch)
    interrupt.before("/members/", lambda: give(run_id="other"))
    assert give(MINA, 15)["then"] == 1
    clock.advance(HOUR + 1)
    interrupt.after("/members/", end)
    assert (give(MINA, 15, run_id="late")["then"], level_of(MINA)) == (1, 15)
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(MINA)) == (1, 1)


def invite_and_note(sandbox: SandboxServer, notes: Variables, emails: list[str], **fields: Any) -> None:
    """Invite people, each with a grant that is over."""
    with WorkspaceHook() as hook:
        hook.create_invites([{"target_email": email, "level": 8} for email in emails])
    for email in emails:
        note_over(sandbox.url, notes, email, **fields)


def note_over(service: str, notes: Variables, email: str, **fields: Any) -> None:
    """Write the note of a grant that is over, of somebody who was no member."""
    place = {"service": service, "organization_id": SEED.organization_id, "user_email": email, "then": None}
    key, text = variable(**{**place, "until": "2026-09-01T12:00:00Z", **fields})
    notes.values[key] = text


def test_ends_of_an_organization_read_its_lists_together(sandbox: SandboxServer, notes: Variables) -> None:
    emails = [f"guest-{number}@example.com" for number in range(20)]
    invite_and_note(sandbox, notes, emails)
    before = len(sandbox.requests())
    assert sorted(row["user_email"] for row in end()["ended"]) == sorted(emails)
    sent = [request["method"] for request in sandbox.requests()[before:]]
    assert (sent.count("DELETE"), sent.count("GET")) == (20, 8)
    assert keys(notes) == []


def test_refused_ends_stop_no_other(sandbox: SandboxServer, notes: Variables) -> None:
    emails = [f"guest-{number}@example.com" for number in range(9)]
    invite_and_note(sandbox, notes, emails)
    sandbox.inject("status_before", "delete_invite", status=403, times=7)
    with pytest.raises(AirflowFailException, match=r"7 grants could not be ended\. Follow the instr"):
        end()
    assert (len(keys(notes)), effects(sandbox).count("delete_invite")) == (7, 2)
    assert (len(end()["ended"]), keys(notes)) == (7, [])


def test_of_the_last_owners_one_stays(sandbox: SandboxServer, notes: Variables) -> None:
    set_level(15)
    note_over(sandbox.url, notes, MINA, level=15, then=1)
    note_over(sandbox.url, notes, OLIVE, level=15, then=1, until="2026-09-01T13:00:00Z")
    with pytest.raises(AirflowFailException, match=r"(?s)1 grant could not .*Make somebody else an owner first"):
        end()
    assert sorted([level_of(MINA) or 0, level_of(OLIVE) or 0]) == [1, 15]


def test_of_the_last_owners_one_stays_over_two_connections(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_level(15)
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"])
    note_over(sandbox.url, notes, MINA, level=15, then=1)
    later = "2026-09-01T13:00:00Z"
    note_over(sandbox.url, notes, OLIVE, level=15, then=1, until=later, workspace_conn_id="other")
    interrupt = Interruptions(monkeypatch)

    def wait_for_the_other() -> None:
        until = time.monotonic() + 2
        while sum("/members/" in sent for sent in interrupt.sent) < 4 and time.monotonic() < until:
            time.sleep(0.02)

    interrupt.before("PATCH", wait_for_the_other)
    interrupt.before("PATCH", wait_for_the_other)
    with pytest.raises(AirflowFailException, match=r"(?s)1 grant could not .*Make somebody else an owner first"):
        end()
    assert sorted([level_of(MINA) or 0, level_of(OLIVE) or 0]) == [1, 15]


def test_an_effect_that_is_not_shown_leaves_one_grant(sandbox: SandboxServer, notes: Variables) -> None:
    invite_and_note(sandbox, notes, [ADA])
    set_level(8)
    note_over(sandbox.url, notes, MINA, run_id="other", then=1)
    with WorkspaceHook() as hook:
        (invite,) = [one.model_dump(mode="json") for one in hook.list_invites() if one.target_email == ADA]
    say(sandbox, "list_invites", invite)
    with pytest.raises(Exception, match=f"1 grant could not .* {ADA}: Not done: remove invite {ADA}"):
        end()
    assert (level_of(MINA), effects(sandbox).count("delete_invite")) == (1, 1)


def test_a_service_that_hangs_holds_up_no_other(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def wait_for_the_other(_: socket.socket) -> None:
        until = time.monotonic() + 20
        while "delete_invite" not in effects(sandbox) and time.monotonic() < until:
            time.sleep(0.02)
        seen.append(len(effects(sandbox)))

    invite_and_note(sandbox, notes, [ADA])
    with RawServer(Scene(handler=wait_for_the_other)) as other:
        monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(connection_to(other)))
        note_over(other.url, notes, MINA, workspace_conn_id="other", until="2026-09-01T11:00:00Z")
        with pytest.raises(Exception, match=f"1 grant could not be ended.* {MINA}: ") as red:
            end()
    assert (ADA in str(red.value), len(keys(notes))) == (False, 1)
    assert seen[0] == 2, "the other end waited"


def test_the_time_of_an_organization_is_bounded(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "MAX_SECONDS", 1.5)
    invite_and_note(sandbox, notes, [ADA])
    with RawServer(SILENT) as other:
        monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(connection_to(other)))
        note_over(other.url, notes, MINA, workspace_conn_id="other")
        begun = time.monotonic()
        with pytest.raises(WorkspaceError, match=rf"{MINA}: The time of 1.5 s .* connection 'other' responds") as red:
            end()
        assert time.monotonic() - begun < 10
    assert (red.value.permanent, len(keys(notes))) == (False, 1)


def connection_to(server: RawServer) -> dict[str, Any]:
    extra = {"organization_id": SEED.organization_id, "max_attempts": 1, "read_timeout": 30}
    return {"conn_type": "workspace", "host": server.url, "password": "key", "extra": extra}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(6))
def test_an_end_that_is_killed_at_any_request_is_ended_by_the_next(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, moment: str, number: int
) -> None:
    set_level(8)
    note_over(sandbox.url, notes, MINA, then=1)
    invite_and_note(sandbox, notes, [ADA])
    interrupt = Interruptions(monkeypatch)
    kill_at(interrupt, moment, number)
    with pytest.raises(Killed):
        end()
    assert len(keys(notes)) == 2
    end()
    assert (level_of(MINA), keys(notes)) == (1, [])
    assert effects(sandbox).count("delete_invite") == 1
    assert effects(sandbox).count("update_member") == 2


def kill_at(interrupt: Interruptions, moment: str, number: int) -> None:
    """Kill the task at its request of this number."""
    plan = getattr(interrupt, moment)

    def count(left: int) -> None:
        if left == 0:
            raise Killed
        plan("/api/", lambda: count(left - 1))

    plan("/api/", lambda: count(number))


@pytest.mark.parametrize("number", range(2))
def test_an_end_that_is_killed_at_any_variable_is_ended_by_the_next(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    invite_and_note(sandbox, notes, [ADA, "bo@example.com"])
    deleted: list[str] = []

    def delete(key: str) -> None:
        if len(deleted) == number:
            raise Killed
        deleted.append(key)
        notes.values.pop(key)

    with monkeypatch.context() as patch:
        patch.setattr(notes, "delete", delete)
        with pytest.raises(Killed):
            end()
    assert len(keys(notes)) == 2 - number
    assert [row["done"] for row in end()["ended"]] == ["they did not have it any more"] * (2 - number)
    assert (keys(notes), effects(sandbox).count("delete_invite")) == ([], 2)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_grant_is_noted_before_anything_is_sent(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    keep, write = notes.set, {"before": True, "after": False}[moment]

    def set_variable(key: str, value: str, description: str | None = None) -> None:
        if not write:
            keep(key, value, description)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(notes, "set", set_variable)
        with pytest.raises(Killed):
            give()
    assert (writes(sandbox), len(keys(notes))) == ([], 0 if write else 1)


def test_a_note_that_is_changed_while_it_ends_stays(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    give()
    clock.advance(HOUR + 1)
    (key,) = keys(notes)

    def correct() -> None:
        notes.values[key] = notes.values[key].replace('"audit"', '"another reason"')

    Interruptions(monkeypatch).after("PATCH", correct)
    with pytest.raises(Exception, match=f"The Variable '{key}' was changed while its access was ended"):
        end()
    assert keys(notes) == [key]
    assert len(end()["ended"]) == 1


def test_before_airflow_3_3_nothing_is_given(sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    older = install(monkeypatch, release="3.2")
    with pytest.raises(AirflowFailException, match=r"Temporary access needs Airflow 3\.3 or newer, .*Nothing was sent"):
        give()
    assert (sandbox.requests(), older.values) == ([], {})
    assert end() == {"ended": [], "left": [], "active": 0}
    older.values["workspace_grants"] = '["workspace_grant.x.y"]'
    with pytest.raises(AirflowFailException, match=r"delete the Variable 'workspace_grants', which lists grants"):
        end()


def test_an_end_raises_nobody(sandbox: SandboxServer, clock: Clock) -> None:
    give()
    give(MINA, 15, run_id="longer", length=2 * HOUR)
    set_level(1)
    clock.advance(HOUR + 1)
    assert len(end()["ended"]) == 1
    assert (level_of(MINA), len(effects(sandbox))) == (1, 3)


@pytest.mark.slow
def test_who_has_left_meanwhile_is_invited_by_the_retry(notes: Variables, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave() -> None:
        with WorkspaceHook() as hook:
            hook.delete_member(user_uuid=SEED.member_uuid)

    Interruptions(monkeypatch).before("PATCH", leave)
    with pytest.raises(WorkspaceRequestError, match=f"Try again: {MINA} has joined or left meanwhile") as lost:
        give()
    assert (lost.value.permanent, len(keys(notes))) == (False, 1)
    assert give(try_number=2)["granted"] is True
    with WorkspaceHook() as hook:
        assert MINA in [one.target_email for one in hook.list_invites()]


@pytest.mark.parametrize("change", [{"length": 2 * HOUR}, {"reason": "holiday"}, {"level": 9}, {}])
def test_an_approval_covers_how_long_and_why(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    question = Question(refreshes=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    task = Task(question)
    approve = task.ask(operator(require_approval=True))
    assert question.now.subject.startswith(f"Give {MINA} access for a while to organization ")
    assert "level: 1 -> 8, length: 1:00:00, reason: audit, then 1" in question.now.body
    if change:
        with pytest.raises(AirflowFailException, match="approval-stale"):
            task.answer(operator(require_approval=True, **change), approve)
        assert effects(sandbox) == []
        return
    assert task.answer(operator(require_approval=True), approve)["approved_by"] == "ruth"
    task = Task(Question(refreshes=False))
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", task.question, raising=False)
    task.ti.run_id = "longer"
    task.ask(operator(require_approval=True, length=3 * HOUR))
