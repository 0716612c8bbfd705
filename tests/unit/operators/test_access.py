"""Temporary access against the sandbox: given, ended, and what happens in between."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from itertools import permutations, product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.execution_time import task_runner

from airflow_provider_workspace.access.grants import end_grants as ending
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, WorkspaceRequestError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.access import WorkspaceEndAccessOperator, WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException
from tests import decision_notes
from tests.audit import effects, say, set_address, writes
from tests.grant_notes import variable
from tests.interruptions import Interruptions
from tests.matrix import chequered
from tests.raw_server import SILENT, RawServer, Scene
from tests.task_instance import Killed, Question, Task, TaskStore
from tests.variables import Variables, install

if TYPE_CHECKING:
    import socket
    from pathlib import Path

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


def test_a_dry_run_of_a_grant_notes_and_sends_nothing(sandbox: SandboxServer, notes: Variables) -> None:
    plan = give(dry_run=True)
    assert plan["pending"] == 1
    assert keys(notes) == []
    assert writes(sandbox) == []


def test_a_member_gets_a_level_until_the_end(sandbox: SandboxServer, notes: Variables, clock: Clock) -> None:
    given = give("Mina.Member@example.com")
    expected = {"granted": True, "before": 1, "then": 1, "level": 8, "requested_by": "ruth", "reason": "audit"}
    assert {name: given[name] for name in expected} == expected
    assert level_of(MINA) == 8
    assert end()["active"] == 1
    clock.advance(HOUR + 1)
    (planned,) = end(dry_run=True)["ended"]
    assert planned["done"].startswith(f"member {MINA}: level: 8 -> 1, access ended 20")
    assert level_of(MINA) == 8
    (ended,) = end()["ended"]
    assert ended["user_email"] == "Mina.Member@example.com"
    assert ended["done"].startswith(f"member {MINA}: level: 8 ->")
    assert level_of(MINA) == 1
    assert keys(notes) == []
    assert end() == {"ended": [], "left": [], "active": 0}
    assert effects(sandbox) == ["update_member", "update_member"]


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
            AirflowFailException, match=rf"{MINA}: person .*changed since.* Set level 1 by hand, or delete"
        ) as red:
            end()
        assert str(red.value).startswith("[access-not-ended] WorkspaceError: ")
        assert (level_of(MINA), level_of("grace.analyst@example.com"), len(keys(notes))) == (15, 1, 1)
    set_level(1)
    assert end()["ended"][0]["done"] == "they did not have it any more"


@pytest.mark.parametrize(
    ("why", "protected"),
    [("Make somebody else an owner first", []), ("protected. Set level 1 by hand, or delete the", [MINA])],
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
    with pytest.raises(AirflowFailException, match=r"has another level, admin \(8\)\. Start a new run"):
        give(MINA, 9)
    clock.advance(HOUR)
    with pytest.raises(AirflowFailException, match=r"The grant that this run noted is over\. Start a new run"):
        give(try_number=4, store=store)
    assert len(end()["ended"]) == 1
    with pytest.raises(AirflowFailException, match=r"The grant that this run noted is over\. Start a new run"):
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
        ({"until": "2020-01-01"}, "until is over: 2020-01-01. Give a later one"),
        ({"until": "2999-01-01T10:00"}, "until: expected a date"),
        ({"until": "2999-01-01", "length": 5}, "Give either length=… or until=…"),
        ({"level": "boss"}, "level: expected a whole number"),
        ({"reason": ""}, "reason"),
        ({"email": "mina"}, "user_email: 'mina' is not an e-mail address"),
        (
            {"email": "liv.invited@example.com"},
            "cannot get this level: level: 1 -> 8, holds an open invite. Correct that by hand first",
        ),
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
        AirflowFailException, match=rf"Connection .* and not to {sandbox.url}\. Set its host back, or .*{mina}"
    ):
        end()
    connect()
    with pytest.raises(
        AirflowFailException,
        match=rf"1 grant could not be ended. unknown: The grant in Variable '{key}' cannot be read.*since",
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


@pytest.mark.parametrize("reading", chequered(range(1, 11)))
def test_of_two_sweeps_at_once_none_fails(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, reading: int
) -> None:
    """The other one runs whole before any of the readings of a note."""
    give()
    clock.advance(HOUR + 1)
    (key,) = keys(notes)
    read = notes.get
    readings = iter(range(1, 100))
    others: list[Any] = []

    def interrupted(name: str, default: Any = None) -> Any:
        if name == key and next(readings) == reading:
            others.append(end())
        return read(name, default)

    monkeypatch.setattr(notes, "get", interrupted)
    ended = end()
    assert others
    assert {row["user_email"] for row in [*ended["ended"], *others[0]["ended"]]} == {MINA}
    assert (level_of(MINA), keys(notes), ended["left"]) == (1, [], [])


def test_what_a_killed_sweep_took_of_a_grant_that_was_noted_then_is_given_back(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other grant found the level there, and sent nothing."""
    give()
    clock.advance(HOUR + 1)

    interrupt = Interruptions(monkeypatch)
    interrupt.before("PATCH", lambda: give(run_id="other", length=2 * HOUR))
    interrupt.after("PATCH")
    with pytest.raises(BaseException, match=r"^$"):
        end()
    assert (level_of(MINA), len(keys(notes))) == (1, 2)
    assert len(end()["ended"]) == 1
    assert (level_of(MINA), len(keys(notes))) == (8, 1)
    set_level(1)  # what somebody takes back by hand afterwards is not given again
    assert (end()["ended"], level_of(MINA)) == ([], 1)


def test_a_day_that_was_typed_into_a_note_counts_to_its_end(
    sandbox: SandboxServer, notes: Variables, clock: Clock
) -> None:
    clock.advance((23 * HOUR - time.time()) % (24 * HOUR))
    today = datetime.fromtimestamp(time.time(), timezone.utc).date()
    invite_and_note(sandbox, notes, ["guest@example.com"], until=today.isoformat())
    assert (end()["ended"], effects(sandbox).count("delete_invite")) == ([], 0)
    note_over(sandbox.url, notes, "guest@example.com", until=(today - timedelta(days=1)).isoformat())
    assert [row["user_email"] for row in end()["ended"]] == ["guest@example.com"]


@pytest.mark.parametrize("field", ["level", "then"])
def test_a_level_below_zero_in_a_note_is_unreadable(sandbox: SandboxServer, notes: Variables, field: str) -> None:
    note_over(sandbox.url, notes, MINA)
    (key,) = keys(notes)
    notes.values[key] = json.dumps({**json.loads(notes.values[key]), field: -8})
    with pytest.raises(AirflowFailException, match=f"cannot be read.*field '{field}'"):
        end()
    assert effects(sandbox) == []


def test_refused_ends_stop_no_other(sandbox: SandboxServer, notes: Variables) -> None:
    emails = [f"guest-{number}@example.com" for number in range(9)]
    invite_and_note(sandbox, notes, emails)
    sandbox.inject("status_before", "delete_invite", status=403, times=7)
    with pytest.raises(
        AirflowFailException,
        match=r"7 grants could not be ended\. \S+@example\.com: .* Then clear this task or run .* The others: ",
    ):
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
        with pytest.raises(Exception, match=f"1 grant could not be ended. {MINA}: ") as red:
            end()
    assert (ADA in str(red.value), len(keys(notes))) == (False, 1)
    assert seen[0] == 2, "the other end waited"


def test_the_time_of_an_organization_is_bounded(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond what its lists may lag behind, which is a second here."""
    monkeypatch.setattr(ending, "MAX_SECONDS", 1.5)
    invite_and_note(sandbox, notes, [ADA])
    with RawServer(SILENT) as other:
        monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(connection_to(other)))
        note_over(other.url, notes, MINA, workspace_conn_id="other")
        begun = time.monotonic()
        with pytest.raises(WorkspaceError, match=rf"{MINA}: The time of 2.5 s .* connection 'other' responds") as red:
            end()
        assert time.monotonic() - begun < 10
    assert (red.value.permanent, len(keys(notes))) == (False, 1)


def connection_to(server: RawServer) -> dict[str, Any]:
    extra = {"organization_id": SEED.organization_id, "max_attempts": 1, "read_timeout": 30, "consistency_time": 1}
    return {"conn_type": "workspace", "host": server.url, "password": "key", "extra": extra}


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_before_airflow_3_3_a_dag_file_that_grants_is_refused_and_nothing_is_to_be_ended(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = install(monkeypatch, release="3.2")
    with pytest.raises(
        WorkspaceInputError, match=r"Temporary access needs Airflow 3\.3 or newer, .*\. Upgrade Airflow, which is \d"
    ):
        operator()
    assert (sandbox.requests(), older.values) == ([], {})
    assert end() == {"ended": [], "left": [], "active": 0}


def test_an_end_raises_nobody(sandbox: SandboxServer, clock: Clock) -> None:
    give()
    give(MINA, 15, run_id="longer", length=2 * HOUR)
    set_level(1)
    clock.advance(HOUR + 1)
    assert len(end()["ended"]) == 1
    assert (level_of(MINA), len(effects(sandbox))) == (1, 3)


@pytest.mark.slow
def test_who_has_left_meanwhile_is_not_invited_by_the_retry(notes: Variables, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave() -> None:
        with WorkspaceHook() as hook:
            hook.delete_member(user_uuid=SEED.member_uuid)

    Interruptions(monkeypatch).before("PATCH", leave)
    with pytest.raises(WorkspaceRequestError, match=f"{MINA} joined or left while access was given") as lost:
        give()
    assert (lost.value.permanent, len(keys(notes))) == (False, 1)
    with pytest.raises(
        AirflowFailException, match=rf"{MINA} was a member when .*, and is no member now\. Start a new run"
    ):
        give(try_number=2)
    with WorkspaceHook() as hook:
        assert MINA not in [one.target_email for one in hook.list_invites()]


@pytest.mark.parametrize("change", [{"length": 2 * HOUR}, {"reason": "holiday"}, {"level": 9}, {}])
def test_an_approval_covers_how_long_and_why(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    question = Question(refreshes=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    task = Task(question, started_by="max")
    approve = task.ask(operator(require_approval=True))
    assert question.now.subject.startswith(f"Give {MINA} temporary access as admin (8) to organization ")
    assert "level: member (1) → admin (8), length: 1:00:00, reason: audit, then member (1) |" in question.text
    if change:
        with pytest.raises(AirflowFailException, match="approval-stale"):
            task.answer(operator(require_approval=True, **change), approve)
        assert effects(sandbox) == []
        return
    grant = task.answer(operator(require_approval=True), approve, at=datetime.now(timezone.utc))
    assert (grant["requested_by"], grant["approved_by"]) == ("max", "ruth (1)")
    task = Task(Question(refreshes=False), started_by="max")
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", task.question, raising=False)
    task.ti.run_id = "longer"
    task.ask(operator(require_approval=True, length=3 * HOUR))


@pytest.mark.parametrize(
    ("hours", "arguments", "message"),
    [
        (0.5, {}, ""),
        (5, {}, r"\[approval-expired\] .*The access that was approved at 20.* was not given in time"),
        (6 * 24, {"until": "2999-01-01", "length": None}, ""),
        (60 * 24, {"until": "2999-01-01", "length": None}, r"\[approval-expired\] .*Start a new run to ask again"),
        (-1 / 3, {}, ""),
    ],
)
def test_the_end_counts_from_the_approval_which_has_an_age(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, hours: float, arguments: dict[str, Any], message: str
) -> None:
    """The worker may be gone for hours between the answer and the note; the clock of the API server may be ahead."""
    question = Question(refreshes=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    task = Task(question, started_by="max")
    approve = task.ask(operator(require_approval=True, **arguments))
    approved_at = datetime.now(timezone.utc) - timedelta(hours=hours)
    if message:
        with pytest.raises(AirflowFailException, match=message):
            task.answer(operator(require_approval=True, **arguments), approve, at=approved_at)
        assert effects(sandbox) == []
        return
    grant = task.answer(operator(require_approval=True, **arguments), approve, at=approved_at)
    if not arguments:
        until = datetime.fromisoformat(grant["until"].replace("Z", "+00:00"))
        assert until - datetime.now(timezone.utc) <= timedelta(hours=1 - max(hours, 0))


@pytest.mark.parametrize("given", [True, False])
def test_what_was_approved_is_sent_whatever_another_note_says(
    sandbox: SandboxServer, notes: Variables, *, given: bool
) -> None:
    """Somebody has taken back what the other grant gave, or has edited its note."""
    given_at = {"given_at": "2026-09-01T08:00:00Z"} if given else {}
    place = {"service": sandbox.url, "organization_id": SEED.organization_id, "user_uuid": SEED.member_uuid}
    key, text = variable(**place, user_email=MINA, level=15, until="2999-01-01T00:00:00Z", **given_at)
    notes.values[key] = text
    planned = give(dry_run=True)["changes"][0]
    result = give()
    assert (planned["after"]["level"], result["level"], level_of(MINA)) == (8, 8, 8)


def test_an_invite_is_sent_at_the_level_that_was_approved(sandbox: SandboxServer, notes: Variables) -> None:
    place = {"service": sandbox.url, "organization_id": SEED.organization_id, "user_email": "ada@example.com"}
    key, text = variable(**place, level=15, then=None, until="2999-01-01T00:00:00Z")
    notes.values[key] = text
    assert give("ada@example.com")["level"] == 8
    with WorkspaceHook() as hook:
        assert [one.level for one in hook.list_invites() if one.target_email == "ada@example.com"] == [8]


LONG = "*Rollout* of the boards, <b>until</b> it is done: " + "and so on, " * 200


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({}, ["**Asked by**: max", f"**For**: {MINA}", "**Level**: admin (8) instead of member (1)"]),
        ({}, ["**Until**: 1:00:00 after the approval", "**Then**: member (1)", "**Why**: audit"]),
        ({"until": "2999-12-31"}, ["**Until**: 2999-12-31 23:59 UTC"]),
        ({"email": ADA, "level": 9}, ["**Level**: level 9 instead of no access", "**Then**: removed"]),
        ({"reason": LONG}, ["**Why**: &#42;Rollout&#42; of the boards, &#60;b&#62;until", LONG[50:].strip()]),
        ({"requested_by": "eve"}, ["**Asked by**: eve (run started by max)"]),
        ({}, ["Nobody approves their own request"]),
    ],
)
def test_the_question_of_a_grant_says_who_whom_what_until_when_and_why(
    monkeypatch: pytest.MonkeyPatch, arguments: Any, shown: list[str]
) -> None:
    task = Task(Question(refreshes=False), started_by="max")
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", task.question, raising=False)
    task.ask(operator(require_approval=True, **arguments))
    above, _, _ = task.question.text.partition("| Change |")
    lines = above.split("\n")
    assert [text for text in shown if not any(text in line for line in lines)] == []


@pytest.mark.parametrize(
    ("arguments", "started_by", "user", "refused"),
    [
        ({}, "ruth", "ruth", "ruth asked for this"),
        ({}, "max", MINA, "nobody decides about their own access"),
        ({}, "max", "mina.member", "nobody decides about their own access"),
        ({"requested_by": "eve"}, "bot", "eve", "eve asked for this"),
        ({"approvers": ["eve", "ruth"]}, None, "max", "only these users were asked: eve, ruth"),
        ({"approvers": ["eve", "ruth"]}, None, "ruth", ""),
        ({"allow_self_approval": True}, "ruth", "ruth", ""),
        ({"allow_self_approval": True}, "Anonymous", "Anonymous", ""),
    ],
)
def test_who_asks_for_access_or_gets_it_does_not_approve_it(
    sandbox: SandboxServer,
    notes: Variables,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Any,
    started_by: str | None,
    user: str,
    refused: str,
) -> None:
    task = Task(Question(refreshes=False), started_by=started_by)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", task.question, raising=False)
    approve = task.ask(operator(require_approval=True, **arguments))
    answer: dict[str, Any] = {"responded_by_user": {"id": user, "name": user}, "chosen_options": [approve]}
    if refused:
        with pytest.raises(AirflowFailException, match=rf"\[answerer-refused\] .*{refused}"):
            task.answer(operator(require_approval=True, **arguments), approve, **answer)
        assert (writes(sandbox), keys(notes)) == ([], [])
        return
    grant = task.answer(operator(require_approval=True, **arguments), approve, **answer)
    assert (grant["requested_by"], grant["approved_by"]) == (started_by or "", user)
    assert task.pushed["approved"]["self_approved"] is (started_by == user)


@pytest.mark.parametrize("answer", ["Reject", "Approve"])
def test_a_grant_that_was_not_given_counts_no_more_when_it_is_asked_for_again(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str
) -> None:
    task = Task(Question(refreshes=True), started_by="max")
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", task.question, raising=False)
    now = datetime.fromtimestamp(time.time(), timezone.utc)
    approve = task.ask(operator(require_approval=True))
    with monkeypatch.context() as patch:
        Interruptions(patch).before("PATCH")
        with pytest.raises(Killed):
            task.answer(operator(require_approval=True), approve, at=now)
    assert len(keys(notes)) == 1
    task.clear()
    approve = task.ask(operator(require_approval=True))
    assert keys(notes) == []
    if answer == "Reject":
        with pytest.raises(AirflowSkipException, match="rejected"):
            task.answer(operator(require_approval=True), "Reject")
        assert (keys(notes), effects(sandbox)) == ([], [])
        return
    adam = {"responded_by_user": {"id": "adam", "name": "adam"}, "chosen_options": [approve], "responded_at": now}
    assert task.answer(operator(require_approval=True), approve, **adam)["approved_by"] == "adam"
    clock.advance(HOUR + 1)
    end(evidence=str(tmp_path))
    (evidence,) = tmp_path.iterdir()
    assert json.loads(evidence.read_text())["approved_by"] == "adam"


@pytest.mark.parametrize("started_by", [None, "Anonymous"])
def test_a_grant_whose_requester_is_unknown_is_not_asked_about(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, started_by: str | None
) -> None:
    task = Task(Question(refreshes=False), started_by=started_by)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", task.question, raising=False)
    with pytest.raises(AirflowFailException, match=r"Set approvers=\[…\], or allow_self_approval=True for a trial"):
        operator(require_approval=True).execute(task.context)
    assert (task.question.asked, writes(sandbox)) == ([], [])


def test_self_approval_is_set_in_the_dag_file_only() -> None:
    with pytest.raises(WorkspaceError, match="Set allow_self_approval to True or False in the Dag file"):
        operator(allow_self_approval="{{ params.anybody }}")


def listed_members() -> list[dict[str, Any]]:
    with WorkspaceHook() as hook:
        return [member.model_dump(mode="json") for member in hook.list_members()]


def user_at(email: str) -> str:
    users = [row["user"] for row in listed_members()]
    return next(str(user["uuid"]) for user in users if user["email"] == email)


def accept(sandbox: SandboxServer, email: str = ADA) -> None:
    with WorkspaceHook() as hook:
        sandbox.accept_invite(next(str(one.id) for one in hook.list_invites() if one.target_email == email))


def test_who_changes_their_address_is_lowered(sandbox: SandboxServer, notes: Variables, clock: Clock) -> None:
    give()
    set_address(sandbox, SEED.member_uuid, "mina.married@example.com")
    clock.advance(HOUR + 1)
    assert len(end()["ended"]) == 1
    assert (level_of("mina.married@example.com"), keys(notes)) == (1, [])


def test_whoever_has_the_address_now_is_somebody_else(sandbox: SandboxServer, notes: Variables, clock: Clock) -> None:
    give()
    set_address(sandbox, SEED.member_uuid, "mina.married@example.com")
    olive = user_at(OLIVE)
    set_address(sandbox, olive, MINA)
    clock.advance(HOUR + 1)
    assert len(end()["ended"]) == 1
    assert (level_of("mina.married@example.com"), level_of(MINA), keys(notes)) == (1, 15, [])


@pytest.mark.parametrize("noted", [True, False])
def test_who_accepts_and_changes_their_address_is_removed_or_named(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, noted: bool
) -> None:
    give(ADA)
    accept(sandbox)
    if noted:
        assert end()["active"] == 1
    user_uuid = user_at(ADA)
    assert [json.loads(notes.values[key]).get("user_uuid") for key in keys(notes)] == [user_uuid if noted else None]
    set_address(sandbox, user_uuid, "ada.lovelace@example.com")
    clock.advance(HOUR + 1)
    if noted:
        assert len(end()["ended"]) == 1
        assert (level_of("ada.lovelace@example.com"), keys(notes)) == (None, [])
        return
    for _ in range(2):
        named = rf"{ADA} may still have access: .*1 member .*: ada.lovelace@example.com \(user {user_uuid}\)"
        with pytest.raises(AirflowFailException, match=named):
            end()
    assert len(keys(notes)) == 1


@pytest.mark.parametrize("decided", ["before it is sent", "meanwhile"])
@pytest.mark.parametrize("email", [MINA, ADA])
def test_a_grant_that_a_review_ended_meanwhile_is_red(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, email: str, decided: str
) -> None:
    def decide() -> None:
        place = {"service": sandbox.url, "organization_id": SEED.organization_id, "decided_at": time.time() + 1}
        user = {"user_uuid": SEED.member_uuid} if email == MINA else {}
        key, text = decision_notes.variable({"email": email, **user, "level": None}, **place)
        notes.values[key] = text

    interruptions = Interruptions(monkeypatch)
    if decided == "meanwhile":
        interruptions.before("PATCH" if email == MINA else "POST", decide)
    else:
        interruptions.after("/members/", lambda: None)
        interruptions.after("/members/", decide)
    with pytest.raises(AirflowFailException, match=rf"^\[decided-meanwhile\] .*{email}.* ruth removed them"):
        give(email)
    assert len(effects(sandbox)) == (1 if decided == "meanwhile" else 0)


@pytest.mark.parametrize("level", [15, 1])
def test_the_end_of_who_is_listed_with_two_levels_is_not_proven(
    sandbox: SandboxServer, notes: Variables, clock: Clock, level: int
) -> None:
    give(MINA)
    rows = listed_members()
    (mina,) = [row for row in rows if row["user"]["uuid"] == SEED.member_uuid]
    clock.advance(HOUR + 1)
    say(sandbox, "list_members", *rows, {**mina, "id": "again", "level": level})
    with pytest.raises(AirflowFailException, match=r"could not be ended(?s:.*)does not show their level"):
        end()
    assert (len(keys(notes)), effects(sandbox)) == (1, ["update_member"])
    sandbox.clear_faults()
    assert len(end()["ended"]) == 1


@pytest.mark.parametrize(("hides", "email"), [*product(["all members", "addresses", "users"], [MINA, ADA])])
def test_a_list_that_hides_people_proves_nothing(
    sandbox: SandboxServer, notes: Variables, clock: Clock, email: str, hides: str
) -> None:
    give(email)
    if email == ADA:
        with WorkspaceHook() as hook:
            hook.delete_invite(invite_id=next(str(one.id) for one in hook.list_invites() if one.target_email == ADA))
    rows = listed_members()
    for row in rows:
        row["user"]["email" if hides == "addresses" else "uuid"] = None
    clock.advance(HOUR + 1)
    say(sandbox, "list_members", *([] if hides == "all members" else rows))
    if (email, hides) == (MINA, "addresses"):  # she is known by her user
        with pytest.raises(Exception, match="could not be ended"):
            end()  # the list goes on to show level 8
        assert effects(sandbox)[-1] == "update_member"
    else:
        with pytest.raises(AirflowFailException, match=r"could not be ended"):
            end()
    assert len(keys(notes)) == 1
    sandbox.clear_faults()
    assert len(end()["ended"]) == 1


def test_an_invite_that_is_accepted_while_it_is_withdrawn_leaves_no_member(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(ADA)
    clock.advance(HOUR + 1)
    Interruptions(monkeypatch).before("DELETE", lambda: accept(sandbox))
    (ended,) = end()["ended"]
    assert "member ada" in ended["done"]
    assert (level_of(ADA), keys(notes), effects(sandbox)[-1]) == (None, [], "delete_member")


LAGS = pytest.mark.parametrize(("consistency_time", "lag"), [(10, 6), (150, 100), (600, 500)])


@LAGS
def test_lists_that_lag_hide_nobody_who_has_accepted(
    sandbox: SandboxServer, notes: Variables, clock: Clock, connect: Connect, consistency_time: int, lag: int
) -> None:
    connect(consistency_time=consistency_time)
    give(ADA)
    clock.advance(HOUR - 1)
    accept(sandbox)
    clock.advance(2)
    sandbox.inject("late_rows", "list_members", seconds=lag, times=None)
    assert len(end()["ended"]) == 1
    assert keys(notes) == []
    sandbox.clear_faults()
    assert level_of(ADA) is None


def test_one_address_of_two_accounts_is_refused(sandbox: SandboxServer, notes: Variables) -> None:
    grace = user_at("grace.analyst@example.com")
    set_address(sandbox, grace, MINA)
    with pytest.raises(AirflowFailException, match=rf"2 members have the address {MINA}, so .*: user .*, user ") as red:
        give()
    assert grace in str(red.value)
    assert (writes(sandbox), keys(notes)) == ([], [])


@pytest.mark.usefixtures("clock")
def test_a_request_that_waits_past_the_end_is_not_sent(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=1)
    sandbox.inject("rate_limit", "update_member", seconds=40)
    with pytest.raises(AirflowFailException, match=r"\[grant-changed\] WorkspaceError: The grant of \S+ is over since"):
        give(length=30)
    assert (level_of(MINA), effects(sandbox)) == (1, [])
    assert end()["active"] == 0


@pytest.mark.parametrize("change", ["prolonged", "deleted", "ended by another"])
def test_an_end_that_waits_takes_nothing_that_was_changed_meanwhile(
    sandbox: SandboxServer,
    notes: Variables,
    clock: Clock,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    connect(consistency_time=1)
    give()
    clock.advance(HOUR + 1)
    (key,) = keys(notes)
    sandbox.inject("rate_limit", "update_member", seconds=1)

    def meddle() -> None:
        if change == "prolonged":
            note = json.loads(notes.values[key])
            notes.values[key] = json.dumps({**note, "until": "2999-01-01T00:00:00.000Z"})
        elif change == "deleted":
            notes.values.pop(key)
        else:
            end()
            set_level(8)

    Interruptions(monkeypatch).after("PATCH", meddle)
    said = {"prolonged": "now says level 8 until 2999", "deleted": "was deleted", "ended by another": "was deleted"}
    with pytest.raises(Exception, match=rf"access-not-ended.*The grant of .*{said[change]}"):
        end()
    assert (level_of(MINA), len(keys(notes))) == (8, 1 if change == "prolonged" else 0)


@pytest.mark.usefixtures("clock")
def test_a_grant_that_waits_gives_nothing_that_another_try_gives(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(consistency_time=1)
    sandbox.inject("rate_limit", "update_member", seconds=1)
    Interruptions(monkeypatch).after("PATCH", lambda: give(try_number=2))
    with pytest.raises(AirflowFailException, match=r"The grant of \S+ belongs to another try"):
        give()
    assert (level_of(MINA), effects(sandbox)) == (8, ["update_member"])


@pytest.mark.parametrize("leaves", [True, False])
def test_a_retry_does_not_give_what_somebody_took_back(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, leaves: bool
) -> None:
    assert give()["given_at"]
    if leaves:
        with WorkspaceHook() as hook:
            hook.delete_member(user_uuid=SEED.member_uuid)
    else:
        set_level(1)
    sent = len(writes(sandbox))
    with pytest.raises(AirflowFailException, match=r"Somebody took back what this grant gave: .*\. Start a new run"):
        give(try_number=2)
    assert len(writes(sandbox)) == sent
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), keys(notes)) == (1, [])


# Level and hours of three grants of one person.
ORDERS = [*permutations([(8, 1), (15, 2), (8, 3)])]


def give_one(grant: tuple[int, int]) -> None:
    level, hours = grant
    give(MINA, level, run_id=f"{level} for {hours}", length=hours * HOUR)


@pytest.mark.parametrize(
    ("moment", "request_of_second", "order"), chequered(["before", "after"], ["PATCH", "/members/"], ORDERS)
)
def test_of_grants_that_begin_together_the_highest_level_stays(
    notes: Variables,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    request_of_second: str,
    order: list[tuple[int, int]],
) -> None:
    first, second, third = order
    interrupt = Interruptions(monkeypatch)
    plan = getattr(interrupt, moment)

    def give_second() -> None:
        plan("/members/", lambda: give_one(third))
        give_one(second)

    plan(request_of_second, give_second)
    give_one(first)
    assert (level_of(MINA), len(keys(notes))) == (15, 3)
    for level in (15, 8, 1):
        clock.advance(HOUR + 1)
        assert (len(end()["ended"]), level_of(MINA)) == (1, level)


@pytest.mark.parametrize(("moment", "order"), chequered(["before", "after"], ORDERS))
def test_a_grant_that_begins_while_another_ends_counts(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, moment: str, order: list[tuple[int, int]]
) -> None:
    _, *others = order
    give(MINA, 15, run_id="first", length=600)
    clock.advance(601)

    def give_others() -> None:
        for grant in others:
            give_one(grant)

    getattr(Interruptions(monkeypatch), moment)("PATCH", give_others)
    assert len(end()["ended"]) == 1
    for hour in range(4):
        active = [level for level, hours in others if hours > hour]
        assert level_of(MINA) == max(active, default=1)
        clock.advance(HOUR + 1)
        end()


def test_what_a_review_ended_while_a_sweep_ran_is_not_given_again(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(MINA, 15, run_id="first", length=600)
    clock.advance(601)

    def give_and_decide() -> None:
        give_one((8, 3))
        place = {"service": sandbox.url, "organization_id": SEED.organization_id, "decided_at": time.time() + 1}
        person = {"email": MINA, "user_uuid": SEED.member_uuid, "level": None}
        key, text = decision_notes.variable(person, **place)
        notes.values[key] = text

    Interruptions(monkeypatch).before("PATCH", give_and_decide)
    end()
    assert level_of(MINA) == 1


def test_of_grants_that_end_together_none_leaves_a_level(notes: Variables, clock: Clock) -> None:
    for grant in ORDERS[0]:
        give_one(grant)
    clock.advance(4 * HOUR)
    assert (len(end()["ended"]), level_of(MINA), keys(notes)) == (3, 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("email", [MINA, ADA])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(8))
def test_a_grant_that_is_killed_at_any_request_is_continued_and_ended(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, email: str, moment: str, number: int
) -> None:
    before = level_of(email)
    kill_at(Interruptions(monkeypatch), moment, number)
    store = TaskStore()
    with suppress(Killed):
        give(email, store=store)
    assert give(email, store=store, try_number=2)["granted"] is True
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(email), keys(notes)) == (1, before, [])


@pytest.mark.slow
@pytest.mark.parametrize("is_end", [False, True])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(3))
def test_a_task_that_is_killed_at_any_variable_is_continued(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, moment: str, number: int, *, is_end: bool
) -> None:
    keep = notes.set
    written: list[str] = []
    if is_end:
        give()
        give(ADA, run_id="ada")
        clock.advance(HOUR + 1)

    def set_variable(key: str, value: str, description: str | None = None) -> None:
        written.append(key)
        if moment == "after" or len(written) <= number:
            keep(key, value, description)
        if len(written) > number:
            raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(notes, "set", set_variable)
        (end if is_end else give)()
    if not is_end:
        assert give(try_number=2)["granted"] is True
        clock.advance(HOUR + 1)
    end()
    assert (level_of(MINA), level_of(ADA), keys(notes)) == (1, None, [])


MARRIED = "mina.married@example.com"
GRACE = "grace.analyst@example.com"


@pytest.mark.parametrize("order", chequered(ORDERS))
def test_grants_of_a_user_under_several_addresses_are_grants_of_one_person(
    sandbox: SandboxServer, notes: Variables, clock: Clock, order: list[tuple[int, int]]
) -> None:
    emails = [MINA, MARRIED, "mina.widowed@example.com"]
    for email, (level, hours) in zip(emails, order, strict=True):
        set_address(sandbox, SEED.member_uuid, email)
        given = give(email, level, run_id=f"{level} for {hours}", length=hours * HOUR)
        assert (given["granted"], given["then"]) == (True, 1)
    assert level_of(emails[-1]) == 15
    for level in (15, 8, 1):
        clock.advance(HOUR + 1)
        assert (len(end()["ended"]), level_of(emails[-1])) == (1, level)
    assert keys(notes) == []


@pytest.mark.parametrize("is_noted", [True, False])
def test_grants_of_a_user_under_two_addresses_end_together(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, is_noted: bool
) -> None:
    give(MINA, 8, length=HOUR)
    set_address(sandbox, SEED.member_uuid, MARRIED)
    give(MARRIED, 15, run_id="married", length=HOUR + 1)
    if not is_noted:  # as a try notes it whose list does not show the user
        forget(notes, "user_uuid", MARRIED)
    clock.advance(HOUR + 2)
    assert (len(end(dry_run=True)["ended"]), level_of(MARRIED)) == (2, 15)
    assert (len(end()["ended"]), level_of(MARRIED), keys(notes)) == (2, 1, [])
    assert effects(sandbox) == ["update_member"] * 3


def forget(notes: Variables, field: str, email: str) -> None:
    """Take what a note has learned out of the notes of an address."""
    for key in keys(notes):
        note = json.loads(notes.values[key])
        if note["user_email"] == email:
            note.pop(field, None)
            notes.values[key] = json.dumps(note)


def test_who_was_invited_and_changed_their_address_keeps_the_level_of_the_other_grant(
    sandbox: SandboxServer, notes: Variables, clock: Clock
) -> None:
    give(ADA, 8)
    accept(sandbox)
    assert end()["active"] == 1
    set_address(sandbox, user_at(ADA), MARRIED)
    assert "then" not in give(MARRIED, 15, run_id="married", length=2 * HOUR)
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(MARRIED)) == (1, 15)
    clock.advance(HOUR)
    assert (len(end()["ended"]), level_of(MARRIED), keys(notes)) == (1, None, [])


def test_what_is_given_under_another_address_while_a_grant_ends_stays(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(MINA, 8)
    set_address(sandbox, SEED.member_uuid, MARRIED)
    clock.advance(HOUR + 1)
    Interruptions(monkeypatch).before("PATCH", lambda: give(MARRIED, 8, run_id="meanwhile"))
    assert (len(end()["ended"]), level_of(MARRIED)) == (1, 8)
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(MARRIED)) == (1, 1)


@pytest.mark.parametrize("is_first", [True, False])
def test_who_has_an_address_now_gets_nothing_of_who_had_it(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, is_first: bool
) -> None:
    first, second = (HOUR, 2 * HOUR) if is_first else (2 * HOUR, HOUR)
    give(MINA, 15, length=first)
    set_address(sandbox, SEED.member_uuid, MARRIED)
    set_address(sandbox, user_at(GRACE), MINA)
    given = give(MINA, 8, run_id="grace", length=second)
    assert (given["before"], given["then"], level_of(MINA), level_of(MARRIED)) == (1, 1, 8, 15)
    clock.advance(HOUR + 1)
    assert len(end()["ended"]) == 1
    assert (level_of(MARRIED), level_of(MINA)) == ((1, 8) if is_first else (15, 1))
    clock.advance(HOUR)
    assert len(end()["ended"]) == 1
    assert (level_of(MARRIED), level_of(MINA), keys(notes)) == (1, 1, [])


@pytest.mark.parametrize("is_first", [True, False])
def test_who_is_invited_to_an_address_gets_nothing_of_who_had_it(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, is_first: bool
) -> None:
    first, second = (HOUR, 2 * HOUR) if is_first else (2 * HOUR, HOUR)
    give(MINA, 15, length=first)
    set_address(sandbox, SEED.member_uuid, MARRIED)
    give(MINA, 8, run_id="namesake", length=second)
    assert invited_level(MINA) == 8
    clock.advance(HOUR + 1)
    assert len(end()["ended"]) == 1
    assert (level_of(MARRIED), invited_level(MINA)) == ((1, 8) if is_first else (15, None))
    clock.advance(HOUR)
    assert len(end()["ended"]) == 1
    assert (level_of(MARRIED), level_of(MINA), invited_level(MINA), keys(notes)) == (1, None, None, [])


def invited_level(email: str) -> int | None:
    with WorkspaceHook() as hook:
        levels = [invite.level for invite in hook.list_invites() if invite.target_email == email]
    return levels[0] if levels else None


def test_two_users_who_had_one_address_get_back_their_own_levels(
    sandbox: SandboxServer, notes: Variables, clock: Clock
) -> None:
    set_address(sandbox, SEED.member_uuid, ADA)
    give(ADA, 8, run_id="mina, long")
    give(ADA, 15, run_id="mina, short", length=600)
    set_address(sandbox, SEED.member_uuid, MARRIED)
    give(ADA, 1, run_id="ada, long", length=HOUR + 1)
    accept(sandbox)
    assert end()["active"] == 3
    assert give(ADA, 8, run_id="ada, short", length=601)["before"] == 1
    clock.advance(602)
    assert (len(end()["ended"]), level_of(MARRIED), level_of(ADA)) == (2, 8, 1)
    clock.advance(HOUR)
    assert (len(end()["ended"]), level_of(MARRIED), level_of(ADA), keys(notes)) == (2, 1, None, [])


@pytest.mark.parametrize("ahead", [-240, 0, 240])
def test_a_clock_that_differs_hides_nobody_who_may_have_accepted(
    sandbox: SandboxServer, notes: Variables, clock: Clock, ahead: int
) -> None:
    clock.ahead += ahead
    give(ADA)
    accept(sandbox)
    set_address(sandbox, user_at(ADA), "ada.lovelace@example.com")
    clock.advance(HOUR + 1)
    with pytest.raises(AirflowFailException, match=r"1 member may have accepted it\. .*: ada.lovelace@example.com"):
        end()
    assert len(keys(notes)) == 1


def test_another_grant_of_a_candidate_proves_nothing(sandbox: SandboxServer, notes: Variables, clock: Clock) -> None:
    give(ADA, 8)
    accept(sandbox)
    set_address(sandbox, user_at(ADA), MARRIED)
    give(MARRIED, 15, run_id="married", length=2 * HOUR)
    clock.advance(HOUR + 1)
    with pytest.raises(AirflowFailException, match=rf"1 member may have accepted it\. .*: {MARRIED}"):
        end()
    assert len(keys(notes)) == 2


@pytest.mark.parametrize("place", ["another organization", "another level"])
def test_a_user_who_is_known_elsewhere_or_at_another_level_is_a_candidate(
    sandbox: SandboxServer, notes: Variables, clock: Clock, place: str
) -> None:
    """Ada accepts the invite under another address, whose user a note of another invite knows."""
    give(ADA)
    accept(sandbox)
    set_address(sandbox, user_at(ADA), MARRIED)
    elsewhere = place == "another organization"
    key, text = variable(
        service=sandbox.url,
        organization_id=SEED.absent_uuid if elsewhere else SEED.organization_id,
        user_email=MARRIED,
        user_uuid=user_at(MARRIED),
        level=8 if elsewhere else 1,
        then=None,
        until="2999-01-01T00:00:00Z",
    )
    notes.values[key] = text
    clock.advance(HOUR + 1)
    with pytest.raises(AirflowFailException, match=rf"1 member may have accepted it\. .*: {MARRIED}"):
        end()
    assert len(keys(notes)) == 2


@pytest.mark.parametrize("raised", [True, False])
def test_a_member_who_was_raised_since_may_have_accepted_the_invite(
    notes: Variables, clock: Clock, *, raised: bool
) -> None:
    """The service lets members accept invites of others, and keeps the higher level."""
    give(ADA)
    withdraw(ADA)
    if raised:
        set_level(8)
    clock.advance(HOUR + 1)
    if raised:
        with pytest.raises(AirflowFailException, match=rf"1 member may have accepted it\. .*: {MINA}"):
            end()
    else:
        assert [row["user_email"] for row in end()["ended"]] == [ADA]
    assert len(keys(notes)) == raised


@pytest.mark.parametrize("why", ["too many had it", "a level is hidden"])
def test_who_was_raised_is_not_known_if_it_was_not_known_who_had_the_level(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "too many had it":
        monkeypatch.setattr("airflow_provider_workspace.access.grants.plan.MAX_HOLDERS", 1)
        give(ADA)
    else:
        with WorkspaceHook() as hook:
            rows = [member.to_dict() for member in hook.list_members()]
        rows[0]["level"] = None
        say(sandbox, "list_members", *rows, times=None)
        give(ADA)
        sandbox.clear_faults()
    withdraw(ADA)
    set_level(8)
    clock.advance(HOUR + 1)
    with pytest.raises(AirflowFailException, match=r"members may have accepted it\. .*mina\.member"):
        end()
    assert len(keys(notes)) == 1


def test_nobody_is_raised_by_an_invite_at_a_level_that_all_members_have(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_workspace.access.grants.plan.MAX_HOLDERS", 1)
    give(ADA, 1)
    withdraw(ADA)
    clock.advance(HOUR + 1)
    assert ([row["user_email"] for row in end()["ended"]], keys(notes)) == ([ADA], [])


def test_who_came_by_another_invite_is_no_candidate(sandbox: SandboxServer, notes: Variables, clock: Clock) -> None:
    give(ADA)
    give("bo@example.com", run_id="bo", length=2 * HOUR)
    accept(sandbox, "bo@example.com")
    assert end()["active"] == 2
    withdraw(ADA)
    clock.advance(HOUR + 1)
    assert ([row["user_email"] for row in end()["ended"]], len(keys(notes))) == ([ADA], 1)


def withdraw(email: str) -> None:
    with WorkspaceHook() as hook:
        for invite in list(hook.list_invites()):
            if invite.target_email == email:
                hook.delete_invite(invite_id=str(invite.id))


@pytest.mark.parametrize("joined", [True, False])
def test_a_dry_run_says_what_is_known_of_somebody_who_is_absent(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, joined: bool
) -> None:
    give(ADA)
    if joined:
        accept(sandbox)
        set_address(sandbox, user_at(ADA), MARRIED)
    else:
        withdraw(ADA)
    clock.advance(HOUR + 1)
    noted, sent = dict(notes.values), len(writes(sandbox))
    result = end(dry_run=True)
    (row,) = result["left"] if joined else result["ended"]
    assert row.get("done" if not joined else "why", "").startswith(
        f"[access-not-proven] {ADA} may still have access" if joined else "invite ada@example.com: no list shows it"
    )
    assert (dict(notes.values), len(writes(sandbox))) == (noted, sent)


def test_organizations_over_one_connection_are_ended_side_by_side(
    sandbox: SandboxServer, notes: Variables, clock: Clock
) -> None:
    other = sandbox.add_organization("Other")["id"]
    give(MINA, 8)
    give(ADA, 8, run_id="here")
    give(ADA, 8, run_id="there", organization_id=other)
    give("bo@example.com", 8, run_id="stays", organization_id=other, length=3 * HOUR)
    clock.advance(HOUR + 1)
    assert len(end(dry_run=True)["ended"]) == 3
    result = end()
    assert (len(result["ended"]), result["active"], len(keys(notes))) == (3, 1, 1)
    with WorkspaceHook() as hook:
        left = [invite.target_email for invite in hook.list_invites(organization_id=other)]
    assert (level_of(MINA), invited_level(ADA), left) == (1, None, ["bo@example.com"])


def test_what_changes_in_one_organization_stops_no_end_in_another(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sandbox.add_organization("Other")["id"]
    give(MINA, 8)
    give(ADA, 8, run_id="there", organization_id=other)
    clock.advance(HOUR + 1)
    (here,) = [key for key in keys(notes) if json.loads(notes.values[key])["user_email"] == MINA]
    Interruptions(monkeypatch).after(f"{SEED.organization_id}/members/", lambda: notes.values.pop(here))
    assert {row["user_email"]: row["done"][:8] for row in end()["ended"]} == {MINA: "it was e", ADA: "invite a"}
    assert (level_of(MINA), keys(notes)) == (8, [])
    with WorkspaceHook() as hook:
        assert list(hook.list_invites(organization_id=other)) == []


@pytest.mark.parametrize("address", [MINA, MARRIED])
def test_grants_of_one_user_over_two_connections_are_those_of_one_person(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", os.environ["AIRFLOW_CONN_WORKSPACE_DEFAULT"])
    give(MINA, 8, length=2 * HOUR)
    set_address(sandbox, SEED.member_uuid, address)
    given = give(address, 15, run_id="other", length=HOUR, workspace_conn_id="other")
    assert (given["before"], given["then"]) == (8, 1)
    give(GRACE, 8, run_id="grace", length=HOUR)
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), level_of(address), level_of(GRACE)) == (2, 8, 1)
    clock.advance(HOUR)
    assert (len(end()["ended"]), level_of(address), keys(notes)) == (1, 1, [])


def test_who_joined_before_an_invite_is_withdrawn_is_no_candidate(
    sandbox: SandboxServer, notes: Variables, clock: Clock
) -> None:
    give(ADA)
    with WorkspaceHook() as hook:
        hook.create_invites([{"target_email": "bo@example.com", "level": 1}])
    accept(sandbox, "bo@example.com")
    clock.advance(HOUR + 1)
    assert (len(end()["ended"]), keys(notes), level_of("bo@example.com")) == (1, [], 1)


def test_an_end_that_waits_lowers_nobody_who_was_promoted_meanwhile(
    sandbox: SandboxServer, notes: Variables, clock: Clock, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(consistency_time=1)
    give()
    clock.advance(HOUR + 1)
    sandbox.inject("rate_limit", "update_member", seconds=40)
    Interruptions(monkeypatch).after("PATCH", lambda: set_level(15))
    with pytest.raises(WorkspaceError, match=r"access-not-ended.*The lists were read more than 30 s ago"):
        end()
    assert (level_of(MINA), len(keys(notes))) == (15, 1)
    with pytest.raises(AirflowFailException, match=rf"{MINA}: person .*changed since.* Set level 1 by hand, or delete"):
        end()


def test_ends_that_take_long_are_planned_from_new_lists(
    sandbox: SandboxServer, notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_level(8)
    invite_and_note(sandbox, notes, [ADA])
    note_over(sandbox.url, notes, MINA, then=1, until="2026-09-01T13:00:00Z")

    def promote() -> None:
        clock.advance(40)
        set_level(15)

    Interruptions(monkeypatch).after("DELETE", promote)
    with pytest.raises(AirflowFailException, match=rf"1 grant could not .* {MINA}: .*\. Set level 1 by hand"):
        end()
    assert (level_of(MINA), invited_level(ADA), len(keys(notes))) == (15, None, 1)


@pytest.mark.parametrize("email", [MINA, ADA])
def test_a_clock_that_is_set_back_while_access_ends_gives_nothing_back(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, email: str
) -> None:
    give(email)
    clock.advance(HOUR + 1)

    def set_back() -> None:
        clock.ahead -= 60

    Interruptions(monkeypatch).before("PATCH" if email == MINA else "DELETE", set_back)
    assert len(end()["ended"]) == 1
    assert (level_of(email), invited_level(email), keys(notes)) == (1 if email == MINA else None, None, [])


@LAGS
def test_lists_that_lag_hide_nobody_who_accepts_long_after_the_end(
    sandbox: SandboxServer, notes: Variables, clock: Clock, connect: Connect, consistency_time: int, lag: int
) -> None:
    connect(consistency_time=consistency_time)
    give(ADA)
    clock.advance(24 * HOUR)
    accept(sandbox)
    sandbox.inject("late_rows", "list_members", seconds=lag, times=None)
    assert len(end()["ended"]) == 1
    sandbox.clear_faults()
    assert (level_of(ADA), keys(notes)) == (None, [])


@pytest.mark.parametrize("other", [True, False])
def test_who_changed_their_address_before_their_user_was_noted_is_named(
    sandbox: SandboxServer, notes: Variables, clock: Clock, *, other: bool
) -> None:
    give(MINA)
    forget(notes, "user_uuid", MINA)  # as a try notes it whose list does not show the user
    set_address(sandbox, SEED.member_uuid, MARRIED)
    if other:
        give(MARRIED, 15, run_id="married", length=2 * HOUR)
    clock.advance(HOUR + 1)
    with pytest.raises(AirflowFailException, match=rf"nobody has their address any more, and .*{MARRIED} \(user "):
        end()
    assert len(keys(notes)) == 1 + other


@pytest.mark.parametrize("email", [MINA, ADA])
def test_what_is_given_after_its_end_was_done_is_noted_again(
    notes: Variables, clock: Clock, monkeypatch: pytest.MonkeyPatch, email: str
) -> None:
    def sweep() -> None:
        clock.advance(HOUR + 1)
        end()

    before = level_of(email)
    Interruptions(monkeypatch).before("PATCH" if email == MINA else "POST", sweep)
    with pytest.raises(AirflowFailException, match=r"\[grant-changed\] "):
        give(email)
    assert (8 in (level_of(email), invited_level(email)), len(keys(notes))) == (True, 1)
    assert (len(end()["ended"]), level_of(email), invited_level(email), keys(notes)) == (1, before, None, [])


def test_an_invite_that_no_list_shows_is_withdrawn_all_the_same(
    sandbox: SandboxServer, notes: Variables, clock: Clock
) -> None:
    give(ADA)
    clock.advance(HOUR + 1)
    say(sandbox, "list_invites")
    assert end()["ended"][0]["done"] == f"invite {ADA}: no list shows it"
    assert (effects(sandbox)[-1], keys(notes)) == ("delete_invite", [])


def end_early(email: str = MINA, store: Any = None, user: str | None = "olga", **arguments: Any) -> Any:
    ti = SimpleNamespace(dag_id="revoke", run_id="run", task_id="end", map_index=-1, try_number=1)
    context: Any = {"ti": ti, "dag_run": SimpleNamespace(triggering_user_name=user), "task_state_store": store}
    return WorkspaceEndAccessOperator(task_id="end", user_email=email, **arguments).execute(context)


def test_access_ends_early_with_the_proof_of_the_sweep(
    sandbox: SandboxServer, notes: Variables, capsys: pytest.CaptureFixture[str]
) -> None:
    give(ADA, 8)
    give(MINA, 8, length=2 * HOUR)
    give(MINA, 15, run_id="higher")
    effects_before = effects(sandbox)
    notes_before = dict(notes.values)
    planned = end_early("Mina.Member@example.com", dry_run=True)["ended"]
    assert [row["done"][:46] for row in planned] == [f"member {MINA}: level: 15 -> 1"] * 2
    assert effects(sandbox) == effects_before
    assert notes.values == notes_before
    done = end_early("Mina.Member@example.com")
    ended = {(row["level"], row["ended_by"], row["requested_by"], row["reason"]) for row in done["ended"]}
    assert ended == {(8, "olga", "ruth", "audit"), (15, "olga", "ruth", "audit")}
    assert done["active"] == 1
    assert level_of(MINA) == 1
    assert effects(sandbox) == [*effects_before, "update_member"]
    (left,) = keys(notes)
    assert json.loads(notes.values[left])["user_email"] == ADA
    assert "asked by ruth, ended early by olga: audit (dag / run / grant)" in capsys.readouterr().out


def test_whoever_ends_an_invite_early_may_be_a_run_that_nobody_started(
    sandbox: SandboxServer, notes: Variables
) -> None:
    give(ADA, 8)
    (ended,) = end_early(ADA, user=None)["ended"]
    assert ended["ended_by"] == "run run of Dag revoke"
    assert keys(notes) == []
    assert effects(sandbox)[-1] == "delete_invite"


def test_an_early_end_names_who_has_no_temporary_access_unless_an_earlier_try_ended_it(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    give()
    with pytest.raises(
        AirflowFailException, match=r"no temporary access .* for mona@.* Look at '.*workspace grants', and give"
    ):
        end_early("mona@example.com")
    assert len(keys(notes)) == 1
    store = TaskStore()
    Interruptions(monkeypatch).after(f"PATCH /api/organizations/{SEED.organization_id}/members/")
    with pytest.raises(Killed):
        end_early(store=store)
    assert len(end()["ended"]) == 1, "the sweep goes on with it"
    assert end_early(store=store) == {"ended": [], "left": [], "active": 0}
    assert effects(sandbox) == ["update_member"] * 2


@pytest.mark.parametrize("email", [MINA, ADA])
def test_an_early_end_whose_variable_is_gone_says_that_the_access_is_left(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, email: str
) -> None:
    give(email)
    store = TaskStore()
    with monkeypatch.context() as patch:
        Interruptions(patch).before("PATCH" if email == MINA else "DELETE")
        with pytest.raises(Killed):
            end_early(email, store=store)
    notes.values.clear()
    sent = effects(sandbox)
    with pytest.raises(AirflowFailException, match=rf"^\[access-not-ended\] .*{email} still has level 8, .* by hand"):
        end_early(email, store=store)
    assert effects(sandbox) == sent
    if email == MINA:
        set_level(1)
        assert end_early(email, store=store)["ended"] == []


def test_who_is_protected_keeps_it_and_the_note_says_who_ended_it(sandbox: SandboxServer, notes: Variables) -> None:
    give()
    with pytest.raises(
        AirflowFailException, match=rf"\[access-not-ended\] .*{MINA}: person {MINA}: .*\. Set level 1 by hand"
    ):
        end_early(protected=[MINA])
    (key,) = keys(notes)
    assert json.loads(notes.values[key])["ended_by"] == "olga"
    assert effects(sandbox) == ["update_member"]
    assert end()["ended"][0]["ended_by"] == "olga"


def test_an_early_end_stops_a_grant_that_is_under_way(sandbox: SandboxServer, notes: Variables) -> None:
    """The task that gives it was killed before it sent anything; its retry gives nothing."""
    store = TaskStore()
    say(sandbox, "update_member", status=503)
    with pytest.raises(WorkspaceError):
        give(store=store)
    assert len(keys(notes)) == 1
    sandbox.clear_faults()
    end_early()
    assert keys(notes) == []
    with pytest.raises(AirflowFailException, match="Start a new run to give access again"):
        give(store=store, try_number=2)
    assert level_of(MINA) == 1


def test_a_user_with_two_addresses_is_ended_as_one(sandbox: SandboxServer, notes: Variables) -> None:
    give()
    set_address(sandbox, SEED.member_uuid, "mina.married@example.com")
    give("mina.married@example.com", 15, run_id="married")
    assert len(end_early()["ended"]) == 2
    assert (level_of("mina.married@example.com"), keys(notes)) == (1, [])


def test_an_address_of_two_users_is_not_ended_by_guessing(sandbox: SandboxServer, notes: Variables) -> None:
    give()
    set_address(sandbox, SEED.member_uuid, "mina.married@example.com")
    set_address(sandbox, SEED.analyst_uuid, MINA)
    give(run_id="new")
    before = effects(sandbox)
    with pytest.raises(AirflowFailException, match=f"2 users had the address {MINA}"):
        end_early()
    assert (effects(sandbox), len(keys(notes))) == (before, 2)
