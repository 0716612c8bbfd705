"""People who do not join are invited again so often, and no more."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, say
from tests.interruptions import Interruptions
from tests.leases import digest
from tests.task_instance import Killed
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock

DAY = 86_400.0
ADA = "ada@example.com"
# The people of the seed, and Ada, who is new.
STAYING = [f"{name}@example.com" for name in ("adam.admin", "mina.member", "noah.newton", "grace.analyst")]
PROTECTED = ["olive.owner@example.com", "liv.invited@example.com"]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    return install(monkeypatch)


def sync(rows: Any = None, **arguments: Any) -> Any:
    given = {"protected": PROTECTED, "max_removals": 1, "roster": [*STAYING, ADA] if rows is None else rows}
    return WorkspaceSyncMembersOperator(task_id="sync", **{**given, **arguments}).execute({})


def file(**members: Any) -> Any:
    content = {"max_removals": 1, "members": {"people": [ADA], "protected": PROTECTED, **members}}
    return WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=content).execute({})


def line_of(plan: Any, email: str = ADA) -> str:
    lines = [line for line in plan["table"].splitlines() if email in line]
    return lines[0] if lines else ""


def mails(sandbox: SandboxServer) -> int:
    return effects(sandbox).count("create_invite")


def note(variables: Variables) -> dict[str, Any]:
    (value,) = [value for key, value in variables.values.items() if key.startswith("workspace_invited.")]
    people: dict[str, Any] = json.loads(value).get("people", {})
    return people


def invite_id(email: str = ADA) -> str:
    with WorkspaceHook() as hook:
        return [str(invite.id) for invite in hook.list_invites() if invite.target_email == email][-1]


@pytest.mark.parametrize("road", [sync, file])
def test_who_never_accepts_gets_three_invites_and_is_then_by_hand(
    sandbox: SandboxServer, clock: Clock, road: Any
) -> None:
    sent: list[int] = []
    for day in range(30):
        before = mails(sandbox)
        plan = road()
        sent += [day] * (mails(sandbox) - before)
        clock.advance(DAY + 60)
    assert sent == [0, 7, 14]
    line = line_of(plan)
    assert "by hand: " in line
    assert "invited 3 times, last on " in line
    assert line.endswith("and is not a member; ask them, and then invite them by hand, or raise invite_again")


def test_in_between_the_plan_says_when(sandbox: SandboxServer, clock: Clock) -> None:
    arguments: dict[str, Any] = {"invite_again": 1, "invite_again_after": timedelta(days=5)}
    sync(**arguments)
    clock.advance(4 * DAY)
    plan = sync(**arguments)
    assert "later: invited 1 time, last on " in line_of(plan)
    assert ": again from " in line_of(plan)
    assert line_of(plan).endswith("; invite them by hand, or set invite_again_after=0 in a member sync")
    assert plan["differences"] == 0
    clock.advance(DAY)
    sync(**arguments)
    clock.advance(6 * DAY)
    assert "by hand: invited 2 times" in line_of(sync(**arguments))
    sync(**{**arguments, "invite_again": 2})
    assert mails(sandbox) == 3


def test_who_joins_is_forgotten_and_who_leaves_is_counted_anew(
    sandbox: SandboxServer, clock: Clock, variables: Variables
) -> None:
    sync()
    assert note(variables)[ADA]["was_sent"] is True
    sandbox.accept_invite(invite_id())
    sync()
    assert note(variables) == {}
    with WorkspaceHook() as hook:
        (user,) = [one.user_uuid for one in hook.list_members() if one.email_address == ADA]
        hook.delete_member(user_uuid=str(user))
    for _ in range(30):
        sync()
        clock.advance(DAY + 60)
    assert mails(sandbox) == 4
    assert "by hand: invited 3 times" in line_of(sync())


def test_who_was_removed_is_forgotten(sandbox: SandboxServer, clock: Clock, variables: Variables) -> None:
    sync()
    sync(STAYING)
    assert note(variables) == {}
    sync()
    assert mails(sandbox) == 2
    assert clock.waited


@pytest.mark.usefixtures("clock")
def test_a_try_that_is_killed_before_it_sends_loses_neither_invite_nor_count(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, variables: Variables
) -> None:
    for _ in range(4):
        Interruptions(monkeypatch).before("POST")
        with pytest.raises(Killed):
            sync()
        assert note(variables)[ADA]["times"] == 1
    assert mails(sandbox) == 0
    sync()
    assert (mails(sandbox), note(variables)[ADA]["times"]) == (1, 1)


def test_a_try_that_is_killed_after_it_sends_counts(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch, variables: Variables
) -> None:
    Interruptions(monkeypatch).after("POST")
    with pytest.raises(Killed):
        sync()
    clock.advance(4 * DAY)
    assert "later: invited 1 time" in line_of(sync())
    clock.advance(4 * DAY)
    Interruptions(monkeypatch).after("POST")
    with pytest.raises(Killed):
        sync()
    sync()
    assert note(variables)[ADA]["was_sent"] is True
    assert mails(sandbox) == 2


def test_a_note_that_cannot_be_read_is_said_and_counts_anew(
    sandbox: SandboxServer, clock: Clock, variables: Variables
) -> None:
    key = f"workspace_invited.{digest(sandbox.url, SEED.organization_id)}"
    variables.values[key] = '{"people": 7}'
    plan = sync()
    assert f"Earlier invites are not known, so they count anew: the Variable '{key}' cannot be read" in plan["table"]
    assert mails(sandbox) == 1
    clock.advance(4 * DAY)
    assert "later: invited 1 time" in line_of(sync())


@pytest.mark.usefixtures("clock")
def test_nobody_is_invited_if_the_count_is_not_kept(sandbox: SandboxServer, variables: Variables) -> None:
    variables.is_read_only = "set"
    with pytest.raises(WorkspaceError, match="note-not-kept"):
        sync()
    assert mails(sandbox) == 0


@pytest.mark.usefixtures("clock")
def test_a_note_that_is_not_kept_hides_no_refusal(
    sandbox: SandboxServer, variables: Variables, caplog: pytest.LogCaptureFixture
) -> None:
    sync()
    sandbox.accept_invite(invite_id())
    variables.is_read_only = "set"
    sandbox.inject("status_before", "delete_member", status=409, times=None)
    with pytest.raises(AirflowFailException, match=r"changes-refused.*remove member noah.newton@example.com"):
        sync(roster=None, leavers=["noah.newton@example.com"])
    assert "[note-not-kept]" in caplog.text


def test_an_invite_that_the_service_changes_is_renewed_once(
    sandbox: SandboxServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service answers a renewal with another level than was asked for."""
    rows = [*STAYING, {"email": ADA, "level": 8}]
    sync([*STAYING, {"email": ADA, "level": 1}])

    def lower() -> None:
        with WorkspaceHook() as hook:
            hook.delete_invite(invite_id=invite_id())
            hook.create_invite(target_email=ADA, level=1)

    Interruptions(monkeypatch).after("POST", lower)
    with pytest.raises(WorkspaceError, match="Not done: remove invite"):
        sync(rows, renew_invites=True)
    sent = mails(sandbox)
    for _ in range(3):
        plan = sync(rows, renew_invites=True)
        assert "holds an open invite, although it was sent as the row says: withdraw it, and then" in line_of(plan)
        clock.advance(DAY)
    assert mails(sandbox) == sent


@pytest.mark.usefixtures("clock")
def test_an_invite_by_hand_at_another_level_is_not_the_one_that_a_killed_try_sent(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [*STAYING, {"email": ADA, "level": 8}]
    Interruptions(monkeypatch).before("POST")
    with pytest.raises(Killed):
        sync(rows)
    with WorkspaceHook() as hook:
        hook.create_invite(target_email=ADA, level=1)
    assert "withdraw it and run this again" in line_of(sync(rows))
    sync(rows, renew_invites=True)
    assert mails(sandbox) == 2


@pytest.mark.usefixtures("clock")
def test_who_withdraws_an_invite_by_hand_because_the_row_has_changed_does_not_wait(sandbox: SandboxServer) -> None:
    rows = [*STAYING, {"email": ADA, "level": 8}]
    sync()
    assert "withdraw it and run this again" in line_of(sync(rows))
    with WorkspaceHook() as hook:
        hook.delete_invite(invite_id=invite_id())
    sync(rows)
    assert mails(sandbox) == 2


def withdraw_by_hand() -> None:
    with WorkspaceHook() as hook:
        hook.delete_invite(invite_id=invite_id())


def remove_by_hand(sandbox: SandboxServer) -> None:
    sandbox.accept_invite(invite_id())
    with WorkspaceHook() as hook:
        (user,) = [one.user_uuid for one in hook.list_members() if one.email_address == ADA]
        hook.delete_member(user_uuid=str(user))


@pytest.mark.parametrize("road", [sync, file])
@pytest.mark.parametrize("how", ["withdrawn", "removed"])
def test_only_who_let_an_invite_expire_waits(sandbox: SandboxServer, clock: Clock, road: Any, how: str) -> None:
    for times in range(1, 4):
        road()
        assert mails(sandbox) == times
        if how == "withdrawn":
            withdraw_by_hand()
        else:
            remove_by_hand(sandbox)
    assert "by hand: invited 3 times, last on " in line_of(road())
    assert clock.waited


def test_an_older_expired_invite_does_not_let_anybody_wait(sandbox: SandboxServer, clock: Clock) -> None:
    sync()
    clock.advance(8 * DAY)
    sync()
    withdraw_by_hand()
    sync()
    assert mails(sandbox) == 3


def test_a_clock_that_was_ahead_once_lets_nobody_wait_for_years(
    sandbox: SandboxServer, clock: Clock, variables: Variables
) -> None:
    clock.ahead += 400 * DAY
    sync()
    clock.ahead -= 400 * DAY
    clock.advance(10 * DAY)
    sync()
    assert mails(sandbox) == 2
    assert note(variables)[ADA]["times"] == 2


def test_an_expired_invite_whose_time_is_hidden_lets_its_person_wait(sandbox: SandboxServer, clock: Clock) -> None:
    sync()
    clock.advance(4 * DAY)
    with WorkspaceHook() as hook:
        shown = [{**invite.to_dict(), "created_at": None} for invite in hook.list_invites()]
    say(sandbox, "list_invites", *shown)
    assert "later: invited 1 time" in line_of(sync())


@pytest.mark.usefixtures("clock")
def test_a_killed_renewal_lets_nobody_wait_if_the_row_is_as_before(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [*STAYING, {"email": ADA, "level": 1}]
    sync(rows)
    Interruptions(monkeypatch).after("DELETE")
    with pytest.raises(Killed):
        sync([*STAYING, {"email": ADA, "level": 8}], renew_invites=True)
    sync(rows)
    assert mails(sandbox) == 2


def test_who_was_invited_a_year_ago_is_forgotten(sandbox: SandboxServer, clock: Clock, variables: Variables) -> None:
    file()
    clock.advance(366 * DAY)
    file(people=["ben@example.com"])
    assert list(note(variables)) == ["ben@example.com"]
    assert mails(sandbox) == 2


@pytest.mark.usefixtures("clock")
def test_invites_are_not_renewed_for_ever(sandbox: SandboxServer) -> None:
    for level in (1, 8, 1):
        sync([*STAYING, {"email": ADA, "level": level}], renew_invites=True)
    plan = sync([*STAYING, {"email": ADA, "level": 8}], renew_invites=True)
    assert "holds an open invite, after 3 invites: withdraw it, and then invite them by hand" in line_of(plan)
    assert mails(sandbox) == 3


def test_a_thousand_people_are_one_note(
    sandbox: SandboxServer, clock: Clock, variables: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    get = variables.get

    def counted(key: str, **fields: Any) -> Any:
        reads.append(key)
        return get(key, **fields)

    monkeypatch.setattr(variables, "get", counted)
    sync([*STAYING, *(f"person{number}@example.com" for number in range(60))])
    assert len(note(variables)) == 60
    assert len(reads) < 12
    assert (mails(sandbox), clock.ahead > 0) == (60, True)


def test_a_dry_run_notes_nothing(sandbox: SandboxServer, variables: Variables) -> None:
    sync(dry_run=True)
    assert (variables.values, mails(sandbox)) == ({}, 0)
