"""Runs that take access away fail while somebody has it: a list that shows nobody proves nothing, an identity does."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.access.door import MAX_KNOWN, KnownPeople
from airflow_provider_workspace.api.database_limits import MAX_TEXT_BYTES
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceNotAppliedError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.notes.note import digest
from airflow_provider_workspace.operators.invites import WorkspaceDeleteInviteOperator
from airflow_provider_workspace.operators.members import WorkspaceDeleteMemberOperator, WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, say, set_address
from tests.interruptions import Interruptions
from tests.matrix import chequered
from tests.task_instance import Killed, TaskStore
from tests.windows import Airflow

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect
    from tests.variables import Variables

NOAH, LIV, EVE = "noah.newton@example.com", "liv.invited@example.com", "eve@example.com"
OTHERS: list[Any] = ["adam.admin@example.com", "mina.member@example.com", "grace.analyst@example.com"]
KEPT = ["olive.owner@example.com"]
OVER = {"until": "2020-12-31"}
# The roads on which a person goes: what is given of Noah or Liv, and of the others.
ROADS = ["leavers", "a leaver with an end", "a roster", "an ended row", "a file", "an ended row of a file"]


@pytest.fixture(autouse=True)
def _times(connect: Connect, clock: Clock) -> None:  # noqa: ARG001
    connect(consistency_time=40)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    return Airflow(monkeypatch).variables


def sync(context: Any = None, **arguments: Any) -> Any:
    given: dict[str, Any] = {"task_id": "sync", "protected": KEPT, "max_removals": None, "roster": None} | arguments
    return WorkspaceSyncMembersOperator(**given).execute(context or {})


def apply_file(file: dict[str, Any], part: Any = "members", store: TaskStore | None = None, max_tries: int = 3) -> Any:
    task = WorkspaceApplyOrganizationOperator(task_id="apply", part=part, file={"max_removals": None, **file})
    ti: Any = SimpleNamespace(try_number=1, max_tries=max_tries, xcom_push=lambda **_: None, task_id="apply")
    context: Any = {"ti": ti, "task_state_store": TaskStore() if store is None else store}
    return task.execute(context)


def go(road: str, who: str, others: list[Any]) -> Any:
    """Let somebody go on one of the roads."""
    ended = {"email": who, **OVER}
    if road == "leavers":
        return sync(leavers=[who])
    if road == "a leaver with an end":
        return sync(leavers=[ended])
    if road == "a roster":
        return sync(roster=others)
    if road == "an ended row":
        return sync(roster=[ended, *others])
    if road == "a file":
        return apply_file({"members": {"people": others, "protected": KEPT}, "complete": ["members"]})
    return apply_file({"members": {"people": [ended], "protected": KEPT}})


def members() -> list[dict[str, Any]]:
    return [member.to_dict() for member in WorkspaceHook().list_members()]


def with_address(rows: list[dict[str, Any]], user_uuid: str, email: str | None) -> list[dict[str, Any]]:
    for row in rows:
        if row["user"]["uuid"] == user_uuid:
            row["user"]["email"] = email
    return rows


def liv_invite() -> str:
    (invite,) = [invite for invite in WorkspaceHook().list_invites() if invite.target_email == LIV]
    return str(invite.id)


@pytest.mark.parametrize(("are_late", "road"), chequered([False, True], ROADS))
def test_an_invite_that_is_accepted_though_its_withdrawal_succeeded_is_never_green(
    sandbox: SandboxServer, road: str, *, are_late: bool
) -> None:
    before = members()
    sandbox.inject("say", "delete_invite", status=204, body=None)
    joined = {"id": "new", "user": {"uuid": SEED.research_uuid, "email": LIV}, "level": 1}
    say(sandbox, "list_invites", after=1)
    say(sandbox, "list_members", *before, joined, after=2 if are_late else 1)
    with pytest.raises(WorkspaceNotAppliedError, match=rf"\[joined-meanwhile\] .*joined meanwhile: member {LIV}"):
        go(road, LIV, [*OTHERS, NOAH])


@pytest.mark.parametrize(("side", "road"), chequered(["before", "after"], ROADS))
def test_an_invite_may_be_accepted_at_any_request(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, road: str, side: str
) -> None:
    """The run fails, or the person is no member."""
    failures = 0
    for number in range(8):
        sandbox.reset()
        invite_id = liv_invite()

        def accept(invite_id: str = invite_id) -> None:
            with suppress(Exception):  # it is withdrawn
                sandbox.accept_invite(invite_id)

        with monkeypatch.context() as patch:
            interruptions = Interruptions(patch)
            for _ in range(number):
                getattr(interruptions, side)("", lambda: None)
            getattr(interruptions, side)("", accept)
            try:
                go(road, LIV, [*OTHERS, NOAH])
            except WorkspaceNotAppliedError:
                failures += 1
                go(road, LIV, [*OTHERS, NOAH])
        assert LIV not in [row["user"]["email"] for row in members()], number
    assert failures > 0


@pytest.mark.parametrize("road", ROADS)
def test_a_withdrawal_waits_once_until_the_lists_must_be_true(sandbox: SandboxServer, clock: Clock, road: str) -> None:
    go(road, LIV, [*OTHERS, NOAH])
    assert clock.waited == [40]
    assert effects(sandbox) == ["delete_invite"]


@pytest.mark.parametrize("road", ROADS)
def test_a_removal_does_not_wait(sandbox: SandboxServer, clock: Clock, road: str) -> None:
    go(road, NOAH, [*OTHERS, LIV])
    assert clock.waited == []
    assert effects(sandbox) == ["delete_member"]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(("status", "address"), [(204, EVE), (404, EVE), (204, None), (204, NOAH)])
def test_a_removed_member_who_stays_is_never_green(
    sandbox: SandboxServer, road: str, status: int, address: str | None
) -> None:
    """Whatever their address is by then."""
    after = with_address(members(), SEED.absent_uuid, address)
    body = {"type": "invalid_request", "code": "not_found", "detail": "Not found."} if status == 404 else None
    sandbox.inject("say", "delete_member", status=status, body=body, times=None)
    say(sandbox, "list_members", *after, after=1)
    with pytest.raises(WorkspaceNotAppliedError, match=f"Not done: remove member {NOAH}"):
        go(road, NOAH, [*OTHERS, LIV])


@pytest.mark.parametrize("shown", [{"level": 8}, {"level": 15}, {"level": None}])
def test_a_lowered_member_who_keeps_their_level_is_never_green(sandbox: SandboxServer, shown: dict[str, Any]) -> None:
    """Under another address, which another row of the roster has."""
    WorkspaceHook().update_member(user_uuid=SEED.absent_uuid, level=8)
    after = with_address(members(), SEED.absent_uuid, EVE)
    (noah,) = [row for row in after if row["user"]["uuid"] == SEED.absent_uuid]
    noah |= shown
    sandbox.inject("say", "update_member", status=200, body={"level": 1, "user": {"uuid": SEED.absent_uuid}})
    say(sandbox, "list_members", *after, after=1)
    with pytest.raises(WorkspaceNotAppliedError, match=f"Not done: change member {NOAH}"):
        sync(roster=[*OTHERS, LIV, {"email": NOAH, "level": 1}, EVE])


def test_a_member_whom_the_service_hides_afterwards_is_not_gone(sandbox: SandboxServer) -> None:
    after = [row for row in members() if row["user"]["uuid"] != SEED.absent_uuid]
    sandbox.inject("say", "delete_member", status=204, body=None)
    say(sandbox, "list_members", *after, {"id": "hidden", "user": None, "level": 1}, after=1)
    with pytest.raises(WorkspaceNotAppliedError, match=r"may be one of 1 whom the service hides now"):
        sync(leavers=[NOAH])


@pytest.mark.parametrize("road", ["leavers", "an ended row of a file"])
@pytest.mark.parametrize("status", [204, 404])
@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"uuid": SEED.research_uuid, "email": EVE}, f"member {EVE} \\(user {SEED.research_uuid}\\): joined"),
        ({"uuid": SEED.research_uuid, "email": None}, f"member - \\(user {SEED.research_uuid}\\): joined"),
        (None, "1 members whom the service does not show: joined"),
    ],
)
def test_an_invite_that_is_accepted_under_another_address_is_never_green(
    sandbox: SandboxServer, road: str, status: int, user: Any, said: str
) -> None:
    before = members()
    body = {"type": "invalid_request", "code": "not_found", "detail": "Not found."} if status == 404 else None
    sandbox.inject("say", "delete_invite", status=status, body=body)
    say(sandbox, "list_invites", after=1)
    say(sandbox, "list_members", *before, {"id": "new", "user": user, "level": 1}, after=2)
    with pytest.raises(AirflowFailException, match=rf"^\[people-hidden\] .*: {said} while an invite was withdrawn"):
        go(road, LIV, [])


@pytest.mark.parametrize("road", ROADS)
def test_an_invite_that_is_accepted_by_somebody_whose_address_is_hidden_is_never_green(
    sandbox: SandboxServer, road: str
) -> None:
    before = members()
    sandbox.inject("say", "delete_invite", status=204, body=None)
    hidden = {"id": "new", "user": {"uuid": SEED.research_uuid, "email": None}, "level": 1}
    say(sandbox, "list_invites", after=1)
    say(sandbox, "list_members", *before, hidden, after=2)
    said = rf"member - \(user {SEED.research_uuid}\): joined while an invite was withdrawn"
    with pytest.raises(AirflowFailException, match=rf"^\[people-hidden\] .*{said}"):
        go(road, LIV, [*OTHERS, NOAH])


def test_an_approval_does_not_cover_who_accepted_an_invite_after_it(sandbox: SandboxServer) -> None:
    approved = sync(leavers=[LIV], dry_run=True)
    sandbox.accept_invite(liv_invite())
    with pytest.raises(AirflowFailException, match=rf"^\[approval-stale\] (?s:.*)- member {LIV}"):
        sync(leavers=[LIV], approved=approved)
    assert effects(sandbox) == []


@pytest.mark.parametrize(
    ("operation", "name"), [("delete_invite", f"invite {LIV}"), ("delete_member", f"member {NOAH}")]
)
@pytest.mark.parametrize("status", [400, 409, 503])
def test_a_refused_or_failed_removal_is_never_green(
    sandbox: SandboxServer, operation: str, name: str, status: int
) -> None:
    body = {"type": "invalid_request", "code": "conflict", "detail": "Not now."}
    sandbox.inject("say", operation, status=status, body=body, times=None)
    said = "returned 503" if status == 503 else rf"^\[changes-refused\] .*remove {name}: Not now"
    with pytest.raises((WorkspaceError, AirflowFailException), match=said):
        sync(leavers=[LIV, NOAH])


def test_who_accepts_an_invite_of_their_own_is_no_candidate(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite = WorkspaceHook().create_invite(target_email=EVE)
    Interruptions(monkeypatch).before("DELETE", lambda: sandbox.accept_invite(str(invite.id)))
    assert sync(leavers=[LIV])["counts"]["remove"] == 1


def test_who_joins_meanwhile_and_is_on_no_roster_fails_and_is_removed_by_a_retry(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody who should be gone is in the plan that is made again, whatever was sent about them."""
    roster = [*OTHERS, NOAH]
    sync(roster=roster)
    sandbox.reset()
    WorkspaceHook().delete_invite(invite_id=liv_invite())

    def join() -> None:
        invite = WorkspaceHook().create_invite(target_email=EVE)
        sandbox.accept_invite(str(invite.id))

    Interruptions(monkeypatch).before("DELETE", join)
    with pytest.raises(WorkspaceNotAppliedError, match=rf"remove member {EVE} \(joined meanwhile\)") as failed:
        sync(roster=OTHERS)
    assert not failed.value.permanent
    assert sync(roster=OTHERS)["counts"]["remove"] == 1
    assert EVE not in [row["user"]["email"] for row in members()]


def test_who_is_raised_meanwhile_fails_a_roster_that_took_something(
    sandbox: SandboxServer,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    promote = partial(WorkspaceHook().update_member, user_uuid=SEED.member_uuid, level=8)
    Interruptions(monkeypatch).after("DELETE", promote)
    roster = [OTHERS[0], LIV, {"email": OTHERS[1], "level": 1}, OTHERS[2]]
    with pytest.raises(WorkspaceNotAppliedError, match=rf"change member {OTHERS[1]} \(raised meanwhile\)"):
        sync(roster=roster)


@pytest.mark.parametrize("road", ROADS)
def test_a_member_who_is_listed_twice_is_removed_once(sandbox: SandboxServer, road: str) -> None:
    rows = members()
    (noah,) = [row for row in rows if row["user"]["uuid"] == SEED.absent_uuid]
    say(sandbox, "list_members", *rows, {**noah, "id": "again"}, times=1)
    assert go(road, NOAH, [*OTHERS, LIV])["counts"]["remove"] == 1
    assert effects(sandbox) == ["delete_member"]


@pytest.mark.parametrize(
    ("other", "road"), chequered([{"level": 15}, {"level": None}, {"email": EVE}, {"email": None}], ROADS)
)
def test_a_user_whose_rows_contradict_each_other_cannot_be_known(
    sandbox: SandboxServer, road: str, other: dict[str, Any]
) -> None:
    """Whichever row is first."""
    rows = members()
    (noah,) = [row for row in rows if row["user"]["uuid"] == SEED.absent_uuid]
    again = {**noah, "id": "again", "level": other.get("level", noah["level"])}
    if "email" in other:
        again["user"] = {**noah["user"], **other}
    rows.remove(noah)
    for first, second in ((noah, again), (again, noah)):
        say(sandbox, "list_members", *rows, first, second, times=None)
        with pytest.raises(AirflowFailException, match=r"^\[people-hidden\] .* may still have access"):
            go(road, NOAH, [*OTHERS, LIV])
        assert effects(sandbox) == []
        sandbox.reset()


@pytest.mark.parametrize("shown", [NOAH, EVE])
def test_nobody_is_invited_at_an_address_that_one_of_the_rows_of_a_user_shows(
    sandbox: SandboxServer, shown: str
) -> None:
    rows = members()
    (noah,) = [row for row in rows if row["user"]["uuid"] == SEED.absent_uuid]
    say(sandbox, "list_members", *rows, {**noah, "id": "again", "user": {**noah["user"], "email": EVE}}, times=None)
    with pytest.raises(AirflowFailException, match=r"^\[people-hidden\]"):
        sync(roster=[*OTHERS, LIV, shown])
    assert effects(sandbox) == []


@pytest.mark.parametrize("other", [{"level": 15}, {"email": EVE}])
def test_the_operator_for_one_member_asks_all_rows_of_the_user(sandbox: SandboxServer, other: dict[str, Any]) -> None:
    rows = members()
    (noah,) = [row for row in rows if row["user"]["uuid"] == SEED.absent_uuid]
    email = other.get("email", NOAH)
    again = {**noah, "id": "again", "level": other.get("level", 1), "user": {**noah["user"], "email": email}}
    say(sandbox, "list_members", *rows, again, times=None)
    task = WorkspaceDeleteMemberOperator(task_id="remove", user_uuid=SEED.absent_uuid, protected=[EVE])
    with pytest.raises(AirflowFailException, match="The service does not show the"):
        task.execute({})
    assert effects(sandbox) == []


def test_an_earlier_try_proves_nothing_while_the_list_hides_an_address(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TaskStore()
    Interruptions(monkeypatch).before("DELETE")
    with pytest.raises(Killed):
        WorkspaceDeleteMemberOperator(task_id="remove", user_email=NOAH).execute({"task_state_store": store})
    say(sandbox, "list_members", *with_address(members(), SEED.absent_uuid, None), times=None)
    with pytest.raises(AirflowFailException, match=r"^\[people-hidden\] .*the list hides the address of 1 members"):
        WorkspaceDeleteMemberOperator(task_id="remove", user_email=NOAH).execute({"task_state_store": store})
    assert effects(sandbox) == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_retry_removes_the_user_whose_address_has_changed(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    store = TaskStore()
    with monkeypatch.context() as patch:
        getattr(Interruptions(patch), moment)("DELETE")
        with pytest.raises(Killed):
            WorkspaceDeleteMemberOperator(task_id="remove", user_email=NOAH).execute({"task_state_store": store})
    if moment == "before":
        set_address(sandbox, SEED.absent_uuid, EVE)
    result = WorkspaceDeleteMemberOperator(task_id="remove", user_email=NOAH).execute({"task_state_store": store})
    assert result == {"user_uuid": SEED.absent_uuid, "deleted": True}
    assert effects(sandbox) == ["delete_member"]
    assert SEED.absent_uuid not in {member["user"]["uuid"] for member in members()}


def test_a_retry_finds_nobody_to_protect_where_an_earlier_try_removed_them(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Any = {"task_state_store": TaskStore()}
    arguments: dict[str, Any] = {"task_id": "remove", "user_uuid": SEED.absent_uuid, "protected": [EVE]}
    Interruptions(monkeypatch).after("DELETE")
    with pytest.raises(Killed):
        WorkspaceDeleteMemberOperator(**arguments).execute(context)
    assert WorkspaceDeleteMemberOperator(**arguments).execute(context)["deleted"] is False
    assert effects(sandbox) == ["delete_member"]
    with pytest.raises(AirflowFailException, match="No list shows user"):
        WorkspaceDeleteMemberOperator(**arguments).execute({})


@pytest.mark.parametrize(("arguments", "refused"), [({"protected": [EVE]}, True), ({"owner_level": None}, False)])
def test_a_user_whom_the_list_hides_may_be_protected(
    sandbox: SandboxServer, arguments: dict[str, Any], *, refused: bool
) -> None:
    rows = members()
    for row in rows:
        if row["user"]["uuid"] == SEED.absent_uuid:
            row["user"]["uuid"] = None
    say(sandbox, "list_members", *rows, times=None)
    task = WorkspaceDeleteMemberOperator(task_id="remove", user_uuid=SEED.absent_uuid, **arguments)
    if refused:
        with pytest.raises(AirflowFailException, match="The list hides the user of 1 member, so user"):
            task.execute({})
        assert effects(sandbox) == []
    else:
        task.execute({})
        assert effects(sandbox) == ["delete_member"]


def refuse_key(sandbox: SandboxServer, operation: str, status: int = 403, **which: Any) -> None:
    code = {401: "not_authenticated", 403: "permission_denied"}[status]
    body = {"type": "authentication_error", "code": code, "detail": "No."}
    sandbox.inject("say", operation, **{"status": status, "body": body, "times": None, **which})


def test_a_key_that_may_not_read_the_lists_afterwards_proves_nothing(sandbox: SandboxServer) -> None:
    refuse_key(sandbox, "list_members", after=1)
    with pytest.raises(
        AirflowFailException, match=r"^\[effect-not-shown\] .*this API key may not read whether they were made"
    ):
        sync(leavers=[LIV])


ADAM, MINA, GRACE = OTHERS
LOST = r"^\[key-owner-removed\] .*The API key stopped working right after member {} {}, and may be theirs\. Put "


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_stops_working_names_who_was_removed_before(sandbox: SandboxServer, status: int) -> None:
    """Administrators go last, so that everything else is done by then."""
    refuse_key(sandbox, "list_*", status, after=2)
    with pytest.raises(AirflowFailException, match=LOST.format(ADAM, "was removed")):
        sync(roster=[MINA, GRACE])
    assert effects(sandbox) == ["delete_invite", "delete_member", "delete_member"]
    assert sandbox.effects()[-1]["target"] == SEED.admin_uuid


@pytest.mark.parametrize(
    ("roster", "refused", "status", "lost"),
    [
        ([{"email": ADAM, "level": 1}, MINA, GRACE, NOAH, LIV, EVE], "list_invites", 401, "got a lower level"),
        ([{"email": ADAM, "level": 1}, MINA, GRACE, NOAH, LIV], "list_invites", 403, "got a lower level"),
        ([{"email": ADAM, "level": 1}, MINA, GRACE, NOAH, LIV, EVE], "create_invites", 403, "got a lower level"),
    ],
)
def test_a_key_that_stops_working_names_who_was_lowered_before(
    sandbox: SandboxServer, roster: list[Any], refused: str, status: int, lost: str
) -> None:
    refuse_key(sandbox, refused, status, after=0 if refused == "create_invites" else 1)
    with pytest.raises(AirflowFailException, match=LOST.format(ADAM, lost)):
        sync(roster=roster)
    assert effects(sandbox)[0] == "update_member"


@pytest.mark.parametrize(("operation", "after"), [("update_member", 0), ("list_members", 1)])
def test_a_key_that_stops_working_after_nothing_was_taken_names_nobody(
    sandbox: SandboxServer, operation: str, after: int
) -> None:
    refuse_key(sandbox, operation, 401, after=after)
    with pytest.raises(AirflowFailException, match="api-key-refused") as refused:
        sync(roster=[ADAM, {"email": MINA, "level": 8}, GRACE, NOAH, LIV])
    assert "key-owner-removed" not in str(refused.value)


def test_members_whom_the_key_may_not_remove_are_no_sign_of_its_owner(sandbox: SandboxServer) -> None:
    """Another request succeeds after the one that is refused."""
    refuse_key(sandbox, "delete_member", times=1, after=1)
    with pytest.raises(AirflowFailException, match=r"^\[changes-refused\] .*The service refused 1 of "):
        sync(leavers=[NOAH, MINA, GRACE])


@pytest.mark.parametrize("status", [401, 403])
def test_changes_that_are_all_refused_after_a_removal_name_who_was_removed(sandbox: SandboxServer, status: int) -> None:
    refuse_key(sandbox, "delete_member", status, after=1)
    with pytest.raises(AirflowFailException, match=LOST.format("(mina|grace|noah).*", "was removed")):
        sync(leavers=[NOAH, MINA, GRACE])


def test_a_single_removal_after_which_the_key_stops_working_names_the_member(sandbox: SandboxServer) -> None:
    refuse_key(sandbox, "list_members", after=2)
    task = WorkspaceDeleteMemberOperator(task_id="remove", user_email=ADAM)
    with pytest.raises(AirflowFailException, match=LOST.format(ADAM, "was removed")):
        task.execute({})


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_the_owner_of_the_key_is_removed_last_and_named(sandbox: SandboxServer) -> None:
    """Olive owns the key, and the service refuses it without her; Adam is an owner by now."""
    WorkspaceHook().update_member(user_uuid=SEED.admin_uuid, level=15)
    with pytest.raises(AirflowFailException, match=LOST.format("olive.owner@example.com", "was removed")):
        sync(roster=[ADAM, EVE], protected=[], owner_level=None)
    assert effects(sandbox)[1:] == ["delete_invite", *["delete_member"] * 4]
    assert sandbox.effects()[-1]["target"] == SEED.owner_uuid


def test_a_check_of_a_short_list_says_so(sandbox: SandboxServer) -> None:
    say(sandbox, "list_members", *members()[:2], count=5, after=1)
    with pytest.raises(
        WorkspaceNotAppliedError,
        match=r"^\[effect-not-shown\] The service says that .* The list is too short to tell\. Check it",
    ):
        sync(leavers=[NOAH])


def test_a_retry_after_a_kill_waits_for_who_accepted_an_invite(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    store = TaskStore()
    invite_id = liv_invite()
    before = members()
    interruptions = Interruptions(monkeypatch)
    interruptions.before("DELETE", lambda: sandbox.accept_invite(invite_id))
    interruptions.after("DELETE")
    with pytest.raises(Killed):
        sync({"task_state_store": store}, leavers=[LIV])
    # The lists lag behind until the consistency time is over.
    say(sandbox, "list_members", *before)
    waited = clock.wait

    def wait(seconds: float) -> None:
        sandbox.clear_faults()
        waited(seconds)

    monkeypatch.setattr("airflow_provider_workspace.client.waits.sleep", wait)
    result = sync({"task_state_store": store}, leavers=[LIV])
    rows = [(row["name"], row["status"]) for row in result["changes"]]
    assert rows == [(f"invite {LIV}", "unknown"), (f"member {LIV}", "done")]
    assert effects(sandbox)[-1] == "delete_member"


# Who joins after an earlier try has withdrawn their invite


def try_of(road: str, store: TaskStore | None, leaver: str = LIV, max_tries: int = 3) -> Any:
    """Run one try of a task whose state is kept: Liv goes, and with leavers Noah too."""
    if road == "leavers":
        ti: Any = SimpleNamespace(try_number=2, max_tries=max_tries, xcom_push=lambda **_: None, task_id="sync")
        context: Any = {"ti": ti} if store is None else {"ti": ti, "task_state_store": store}
        return sync(context, leavers=[leaver, NOAH])
    file = {"members": {"people": [{"email": leaver, **OVER}], "protected": KEPT}}
    return apply_file(file, None if road == "a whole file" else "members", store, max_tries)


def stop_after_the_withdrawal(sandbox: SandboxServer, patch: pytest.MonkeyPatch, how: str) -> None:
    if how == "killed":
        Interruptions(patch).after("DELETE")
    else:
        sandbox.inject("status_before", "delete_member", status=503, times=5)


@pytest.mark.parametrize("page", [2000, 2])
@pytest.mark.parametrize(
    ("road", "how"),
    [("leavers", "killed"), ("leavers", "failed"), ("part of a file", "killed"), ("a whole file", "killed")],
)
def test_who_joins_between_two_tries_is_named_until_a_person_clears_the_task(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, road: str, how: str, page: int
) -> None:
    monkeypatch.setattr("airflow_provider_workspace.access.door.MAX_KNOWN", page)
    store = TaskStore()
    with monkeypatch.context() as patch:
        stop_after_the_withdrawal(sandbox, patch, how)
        with pytest.raises((Killed, WorkspaceError)):
            try_of(road, store)
    staying = [member for member in members() if road != "leavers" or member["user"]["email"] != NOAH]
    joined = {"id": "new", "user": {"uuid": SEED.research_uuid, "email": EVE}, "level": 1}
    say(sandbox, "list_members", *staying, joined, after=0 if road != "leavers" else 1)
    said = rf"^\[people-hidden\] .*: member {EVE} \(user {SEED.research_uuid}\): joined"
    for _ in range(2):
        with pytest.raises(AirflowFailException, match=said):
            try_of(road, store)
    try_of(road, store, max_tries=6)


@pytest.mark.parametrize("road", ["leavers", "part of a file"])
def test_a_retry_after_a_withdrawal_ends_well_if_only_somebody_with_an_invite_of_their_own_joined(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, road: str
) -> None:
    with WorkspaceHook() as hook:
        invite = hook.create_invite(target_email=EVE)
    store = TaskStore()
    with monkeypatch.context() as patch:
        stop_after_the_withdrawal(sandbox, patch, "killed")
        with pytest.raises(Killed):
            try_of(road, store)
    sandbox.accept_invite(str(invite.id))
    try_of(road, store)


@pytest.mark.usefixtures("sandbox")
def test_a_retry_that_cannot_know_who_was_there_says_so() -> None:
    table = try_of("leavers", None)["table"]
    assert "nor who accepted an invite that it withdrew then. See its log, and look at who has joined" in table


# A retry before Airflow 3.3, which knows nothing of the try that was killed


def try_before_3_3(road: str, number: int, *, began: float, leaver: str = LIV, store: Any = None) -> Any:
    """Run one try of a task that lets somebody go; ``began`` is when its run did."""
    ti: Any = SimpleNamespace(try_number=number, max_tries=3, xcom_push=lambda **_: None, task_id="go")
    run_after = datetime.fromtimestamp(began, timezone.utc)
    context: Any = {"ti": ti, "dag_run": SimpleNamespace(run_after=run_after)}
    if store is not None:
        context["task_state_store"] = store
    if road == "leavers":
        return sync(context, leavers=[leaver])
    if road == "one invite":
        return withdraw(context)
    file = {"max_removals": None, "members": {"people": [{"email": leaver, **OVER}], "protected": KEPT}}
    part = None if road == "a whole file" else "members"
    return WorkspaceApplyOrganizationOperator(task_id="apply", part=part, file=file).execute(context)


@pytest.mark.parametrize("road", ["leavers", "part of a file", "a whole file", "one invite"])
def test_a_retry_that_knows_of_no_earlier_try_names_who_joined_since_its_run_began(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, road: str
) -> None:
    """Liv accepts the invite directly before its withdrawal, and has another address by the next try."""
    began = time.time()
    invite_id = liv_invite()
    with monkeypatch.context() as patch:
        interruptions = Interruptions(patch)
        interruptions.before("DELETE", lambda: sandbox.accept_invite(invite_id))
        interruptions.after("DELETE")
        with pytest.raises(Killed):
            try_before_3_3(road, 1, began=began)
    (liv,) = [member["user"]["uuid"] for member in members() if member["user"]["email"] == LIV]
    set_address(sandbox, liv, "liv@private.example.com")
    problem = "joined-meanwhile" if road == "one invite" else "people-hidden"
    for number in (2, 3):
        with pytest.raises(AirflowFailException, match=rf"^\[{problem}\] .*: member liv@private.* \(user {liv}\)"):
            try_before_3_3(road, number, began=began)
    assert "delete_member" not in effects(sandbox)


@pytest.mark.parametrize("road", ["leavers", "part of a file", "one invite"])
def test_a_retry_that_knows_of_no_earlier_try_ends_well_if_nobody_has_joined_since(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, road: str
) -> None:
    clock.advance(3600)
    began = time.time()
    with monkeypatch.context() as patch:
        Interruptions(patch).after("DELETE")
        with pytest.raises(Killed):
            try_before_3_3(road, 1, began=began)
    try_before_3_3(road, 2, began=began)


@pytest.mark.parametrize("road", ["leavers", "part of a file"])
@pytest.mark.parametrize("why", ["nobody is absent", "a first try", "its state survives"])
def test_who_joined_since_the_run_began_is_no_matter_otherwise(sandbox: SandboxServer, road: str, why: str) -> None:
    began = time.time()
    with WorkspaceHook() as hook:
        invite = hook.create_invite(target_email=EVE)
    sandbox.accept_invite(str(invite.id))
    leaver = NOAH if why == "nobody is absent" else "gone@example.com"
    store = TaskStore() if why == "its state survives" else None
    number = 1 if why == "a first try" else 2
    try_before_3_3(road, number, began=began, leaver=leaver, store=store)


# One invite, withdrawn by its operator


def withdraw(context: Any = None) -> Any:
    """Withdraw the invite of Liv, under the id that the sandbox gives it."""
    return WorkspaceDeleteInviteOperator(task_id="withdraw", invite_id=SEED.invite_id).execute(context or {})


def hidden_member(name: str) -> dict[str, Any]:
    return {"id": name, "user": None, "level": 1}


def accept(sandbox: SandboxServer, *joined: dict[str, Any], at_request: int = 1) -> None:
    """Withdraw the invite though it was accepted, and show who joined from a reading of the members on."""
    before = members()
    sandbox.inject("say", "delete_invite", status=204, body=None)
    say(sandbox, "list_invites", after=1)
    say(sandbox, "list_members", *before, *joined, after=at_request)


def test_one_withdrawal_waits_once_until_the_lists_must_be_true(
    sandbox: SandboxServer, connect: Connect, clock: Clock
) -> None:
    connect(consistency_time=150)
    withdraw()
    assert clock.waited == [60, 60, 30]
    assert effects(sandbox) == ["delete_invite"]


def test_a_second_member_whom_the_service_hides_may_have_accepted_the_invite(sandbox: SandboxServer) -> None:
    before = [*members(), hidden_member("first")]
    sandbox.inject("say", "delete_invite", status=204, body=None)
    say(sandbox, "list_invites", after=1)
    say(sandbox, "list_members", *before, times=1)
    say(sandbox, "list_members", *before, hidden_member("second"), after=1)
    with pytest.raises(AirflowFailException, match=r"^\[joined-meanwhile\] .*: 1 members whom the service does"):
        withdraw()


def test_an_invite_whose_address_is_hidden_explains_nobody(sandbox: SandboxServer) -> None:
    shown = [invite.to_dict() for invite in WorkspaceHook().list_invites()]
    other = {**shown[0], "id": SEED.absent_uuid, "target_email": None}
    say(sandbox, "list_invites", *shown, other, times=1)
    accept(sandbox, {"id": "new", "user": {"uuid": SEED.research_uuid, "email": None}, "level": 1})
    with pytest.raises(AirflowFailException, match=rf"\[joined-meanwhile\] .*: member - \(user {SEED.research_uuid}\)"):
        withdraw()


@pytest.mark.parametrize("max_known", [2000, 3])
def test_a_retry_after_a_kill_names_who_may_have_accepted_the_one_invite(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, max_known: int
) -> None:
    """Until a person has looked at who is named, and clears the task."""
    monkeypatch.setattr("airflow_provider_workspace.access.door.MAX_KNOWN", max_known)
    invite = WorkspaceHook().create_invite(target_email=EVE)
    store = TaskStore()
    eve = {"id": "eve", "user": {"uuid": SEED.organization_id, "email": EVE}, "level": 1}
    liv = {"id": "new", "user": {"uuid": SEED.research_uuid, "email": "liv@private.example.com"}, "level": 1}
    accept(sandbox, eve, liv)
    with monkeypatch.context() as patch:
        Interruptions(patch).after("DELETE")
        with pytest.raises(Killed):
            withdraw({"task_state_store": store})
    says = rf"Somebody.*: member liv@private.example.com \(user {SEED.research_uuid}\)$"
    if max_known == 3:
        says = "Remove who should not be a member: one of all members, as .* the more than 3 people were"
    for _ in range(2):
        with pytest.raises(AirflowFailException, match=rf"^\[joined-meanwhile\] .*{says}"):
            withdraw({"task_state_store": store})
    cleared: Any = {"task_state_store": store, "ti": SimpleNamespace(try_number=3, max_tries=3)}
    assert withdraw(cleared)["deleted"] is False
    assert invite.target_email == EVE


def test_what_a_withdrawal_notes_of_many_people_is_short() -> None:
    known = KnownPeople(frozenset(digest(str(number)) for number in range(MAX_KNOWN)), 0)
    assert len(json.dumps(known.facts)) < MAX_TEXT_BYTES - 1000
    more = KnownPeople((known.digests or frozenset()) | {"one more"}, 0)
    assert more.facts == {"digests": None, "hidden": 0}


def test_a_retry_after_a_kill_of_the_one_withdrawal_ends_well_if_nobody_joined(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TaskStore()
    with monkeypatch.context() as patch:
        Interruptions(patch).after("DELETE")
        with pytest.raises(Killed):
            withdraw({"task_state_store": store})
    assert withdraw({"task_state_store": store})["deleted"] is False
    assert effects(sandbox) == ["delete_invite"]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("moment", [0, 1])
def test_an_empty_list_of_members_proves_nothing(sandbox: SandboxServer, road: str, moment: int) -> None:
    say(sandbox, "list_members", after=moment)
    with pytest.raises(WorkspaceError, match=r"\[list-too-short\] .*lists no member at all") as failed:
        go(road, NOAH, [*OTHERS, LIV])
    assert not failed.value.permanent
    assert effects(sandbox) == ["delete_member"] * moment


@pytest.mark.parametrize("status", [204, 404])
def test_a_single_removal_is_not_proven_by_an_empty_list(sandbox: SandboxServer, status: int) -> None:
    body = {"type": "invalid_request", "code": "not_found", "detail": "Not found."} if status == 404 else None
    sandbox.inject("say", "delete_member", status=status, body=body)
    say(sandbox, "list_members", after=1)
    with pytest.raises(WorkspaceError, match=r"\[list-too-short\] .*lists no member at all"):
        WorkspaceDeleteMemberOperator(task_id="delete", user_uuid=SEED.absent_uuid).execute({})


ONE_RULE: list[tuple[str, list[Any], str]] = [
    ("a roster", OTHERS, "person -: level: 1, not on the roster, but the service does not show their address"),
    ("a file", OTHERS, "person -: level: 1, not on the roster, but the service does not show their address"),
    ("leavers", OTHERS, f"person {NOAH}: is leaving, but the service does not show the address of 1 members"),
    ("an ended row", OTHERS, "person -: level: 1, not on the roster, but the service does not show their address"),
    ("an ended row of a file", OTHERS, f"person {NOAH}: access ended 2020-12-31 .UTC., but the service does not sh"),
]


@pytest.mark.parametrize(("road", "others", "said"), ONE_RULE)
def test_who_should_go_and_is_hidden_fails_a_run_after_its_other_changes(
    sandbox: SandboxServer, road: str, others: list[Any], said: str
) -> None:
    say(sandbox, "list_members", *with_address(members(), SEED.absent_uuid, None))
    with pytest.raises(AirflowFailException, match=rf"^\[people-hidden\] .*; .*{said}|^\[people-hidden\] .*: {said}"):
        go(road, NOAH, others)
    # Of the leavers and the ended rows of a file, nobody else goes.
    others_go = road in ("a roster", "a file", "an ended row")
    assert effects(sandbox) == (["delete_invite"] if others_go else [])


def test_the_parts_after_the_members_are_applied_before_a_run_fails(
    sandbox: SandboxServer, variables: Variables
) -> None:
    say(sandbox, "list_members", *with_address(members(), SEED.absent_uuid, None))
    file = {"members": {"people": [{"email": NOAH, **OVER}], "protected": KEPT}}
    exports = [{"batch_export_id": SEED.batch_export_ids[0], "paused": True}]
    with pytest.raises(AirflowFailException, match=rf"^\[people-hidden\] .*person {NOAH}"):
        apply_file({**file, "exports": exports}, part=None)
    assert effects(sandbox) == ["pause_batch_export"]
    assert not variables.values


BOARD = "collaborator {} of Default project / Weekly overview"


def board(variables: Variables, sandbox: SandboxServer, people: list[Any], *complete: str) -> dict[str, Any]:
    """Return a file with the dashboard of the seed, of which Grace is a collaborator."""
    entry = {"name": "Weekly overview", "variable_key": "overview", "collaborators": people}
    note = {"service": sandbox.url, "organization_id": SEED.organization_id, "name": entry["name"]}
    variables.values["overview"] = json.dumps({**note, "project_id": "1", "dashboard_id": 1})
    return {"projects": [{"name": "Default project", "dashboards": [entry]}], "complete": list(complete)}


def collaborators() -> list[dict[str, Any]]:
    return [row.to_dict() for row in WorkspaceHook().list_dashboard_collaborators(project_id=1, dashboard_id=1)]


def say_collaborators(sandbox: SandboxServer, rows: list[dict[str, Any]], **which: Any) -> None:
    sandbox.inject("say", "list_dashboard_collaborators", body=rows, **{"times": None, **which})


GRACE = "grace.analyst@example.com"


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize(
    ("people", "status", "now"), chequered([[], [{"email": GRACE, **OVER}]], [204, 404], [GRACE, EVE, None])
)
def test_a_removed_collaborator_who_stays_is_never_green(
    sandbox: SandboxServer, variables: Variables, people: list[Any], status: int, now: str | None
) -> None:
    """Under their address, another one, or none."""
    file = board(variables, sandbox, people, "collaborators")
    body = {"type": "invalid_request", "code": "not_found", "detail": "Not found."} if status == 404 else None
    sandbox.inject("say", "remove_dashboard_collaborator", status=status, body=body, times=None)
    after = with_address(members(), SEED.analyst_uuid, now)
    rows = with_address(collaborators(), SEED.analyst_uuid, now)
    say(sandbox, "list_members", *after, after=1)
    say_collaborators(sandbox, rows, after=1)
    with pytest.raises(WorkspaceNotAppliedError, match=f"Not done: remove {BOARD.format(GRACE)}"):
        apply_file(file, "collaborators")


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_two_collaborators_with_one_address_are_both_removed_and_none_is_added(
    sandbox: SandboxServer, variables: Variables
) -> None:
    WorkspaceHook().add_dashboard_collaborator(project_id=1, dashboard_id=1, user_uuid=SEED.member_uuid, level=37)
    twins = with_address(members(), SEED.member_uuid, GRACE)
    say(sandbox, "list_members", *twins)
    said = apply_file(board(variables, sandbox, [], "collaborators"), "collaborators")
    removed = [row["name"] for row in said["changes"]]
    both = [SEED.analyst_uuid, SEED.member_uuid]
    assert sorted(removed) == sorted(BOARD.format(f"{GRACE} (user {user_uuid})") for user_uuid in both)
    assert effects(sandbox)[1:] == ["remove_dashboard_collaborator"] * 2
    assert collaborators() == []
    said = apply_file(board(variables, sandbox, [GRACE]), "collaborators")
    assert said["counts"]["differs"] == 1
    assert "2 users have this address" in said["table"]
    assert collaborators() == []
