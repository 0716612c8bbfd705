"""Open invites that are not as their rows say: by hand with a cure, on the status page, or renewed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceNotAppliedError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import decision_notes, grant_notes
from tests.audit import effects, say
from tests.interruptions import Interruptions
from tests.task_instance import Killed, TaskInstance
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("no_waits", "variables")

LIV = "liv.invited@example.com"
# The members of the seed, and Liv, whose open invite has level 1.
STAYING = [f"{name}@example.com" for name in ("adam.admin", "mina.member", "noah.newton", "grace.analyst")]
PROTECTED = ["olive.owner@example.com"]
MEMBERS_GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "members.md"
CURE = "withdraw it and run this again, or set renew_invites"


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    return install(monkeypatch)


def roster(level: int | None = 8, **fields: Any) -> list[Any]:
    return [*STAYING, {"email": LIV, "level": level, **fields}]


def sync(rows: Any = None, *, context: Any = None, **arguments: Any) -> Any:
    given = {"protected": PROTECTED, "max_removals": 0, "renew_invites": True, "roster": rows or roster()}
    return WorkspaceSyncMembersOperator(task_id="sync", **{**given, **arguments}).execute(context or {})


def file(ti: Any = None, *, part: str | None = "members", **members: Any) -> Any:
    content = {"max_removals": 0, "members": {"people": [{"email": LIV, "level": "admin"}], **members}}
    task = WorkspaceApplyOrganizationOperator(task_id="apply", part=part, file=content)
    return task.execute({"ti": ti} if ti else {})


def line_of(plan: Any, email: str = LIV) -> str:
    (line,) = [line for line in plan["table"].splitlines() if email in line]
    return str(line)


def levels(email: str = LIV) -> list[int | None]:
    with WorkspaceHook() as hook:
        return [invite.level for invite in hook.list_invites() if invite.target_email == email]


def level_of_member(email: str = LIV) -> int | None:
    with WorkspaceHook() as hook:
        (level,) = [member.level for member in hook.list_members() if member.email_address == email]
    return level


def noted(service: SandboxServer, note: Any, *people: Any, **fields: Any) -> tuple[str, str]:
    key, value = note(*people, service=service.url, organization_id=SEED.organization_id, **fields)
    return key, value


def test_an_open_invite_with_another_level_is_by_hand_with_a_cure_and_on_the_status_page(
    sandbox: SandboxServer,
) -> None:
    ti: Any = TaskInstance()
    plan = sync(renew_invites=False, context={"ti": ti})
    assert line_of(plan).endswith(f"by hand: level: 1 -> 8, holds an open invite; {CURE}")
    progress = ti.xcoms["progress"]
    (row,) = progress["needs_person"]
    assert row == {
        "email": f"person {LIV}",
        "status": "by hand",
        "reason": f"level: 1 -> 8, holds an open invite; {CURE}",
    }
    assert (progress["rows"], progress["needs_person_rows"]) == (0, 1)
    assert effects(sandbox) == []


@pytest.mark.parametrize("part", ["members", None])
def test_the_people_of_an_organization_file_are_the_same(sandbox: SandboxServer, part: str | None) -> None:
    ti: Any = TaskInstance()
    plan = file(ti, part=part)
    assert CURE in line_of(plan if part else plan["members"])
    assert ti.xcoms["progress"]["needs_person_rows"] == 1
    file(renew_invites=True)
    assert levels() == [8]
    assert effects(sandbox) == ["delete_invite", "create_invite"]


def test_what_is_by_hand_stays_on_the_page_beside_the_invites(sandbox: SandboxServer) -> None:  # noqa: ARG001
    ti: Any = TaskInstance()
    sync([*roster(), "ada@example.com"], renew_invites=False, context={"ti": ti})
    assert ti.xcoms["progress"]["counts"] == {"invited": 1}
    assert ti.xcoms["progress"]["needs_person_rows"] == 1


def test_an_invite_is_renewed_once_and_counts_as_no_removal(sandbox: SandboxServer) -> None:
    planned = sync(dry_run=True)
    assert "1 to create, 0 to change, 1 to remove" in planned["table"]
    renewed = [line for line in MEMBERS_GUIDE.read_text().splitlines() if "renewed: the row" in line]
    assert len(renewed) == 2
    assert all(line in planned["table"] for line in renewed)
    sync(approved=planned)
    assert levels() == [8]
    assert sync()["pending"] == 0
    assert effects(sandbox) == ["delete_invite", "create_invite"]


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize(
    ("sent", "wanted", "renewed"), [(False, True, True), (True, False, False), (None, True, False)]
)
def test_an_invite_without_a_mail_is_renewed_if_its_row_asks_for_one(
    sandbox: SandboxServer, *, sent: bool | None, wanted: bool, renewed: bool
) -> None:
    with WorkspaceHook() as hook:
        (seeded,) = [invite for invite in hook.list_invites() if invite.target_email == LIV]
    say(sandbox, "list_invites", {**seeded.to_dict(), "send_email": sent})
    plan = sync(roster(1, send_email=wanted), dry_run=True)
    assert plan["pending"] == (2 if renewed else 0)
    by_hand = sync(roster(1, send_email=wanted), dry_run=True, renew_invites=False)
    assert ("holds an open invite of which no mail was sent" in by_hand["table"]) is renewed


def test_a_kill_between_withdrawal_and_invite_leaves_the_invite_to_the_next_run(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Interruptions(monkeypatch).before("POST")
    with pytest.raises(Killed):
        sync()
    assert levels() == []
    sync()
    assert levels() == [8]
    assert effects(sandbox) == ["delete_invite", "create_invite"]


@pytest.mark.parametrize("road", [sync, partial(file, renew_invites=True)])
def test_who_has_no_invite_any_more_after_a_refusal_is_named(sandbox: SandboxServer, road: Any) -> None:
    sandbox.inject("status_before", "create_invites", status=403, times=1)
    said = rf"1 person has no invite now: .* was sent\. Run this again .*: {LIV}\. .*403"
    with pytest.raises(AirflowFailException, match=said):
        road()
    assert levels() == []
    road()
    assert levels() == [8]


@pytest.mark.parametrize("road", [sync, partial(file, renew_invites=True)])
def test_a_list_that_still_shows_the_withdrawn_invite_hinders_no_new_one(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, road: Any
) -> None:
    with WorkspaceHook() as hook:
        before = [invite.to_dict() for invite in hook.list_invites()]
    Interruptions(monkeypatch).after("DELETE", lambda: say(sandbox, "list_invites", *before, times=2))
    road()
    assert levels() == [8]
    assert effects(sandbox) == ["delete_invite", "create_invite"]


@pytest.mark.parametrize("road", ["sync", "file"])
@pytest.mark.parametrize(
    ("limits", "newcomers", "renewed"),
    [({}, 1, 2), ({"invites_per_hour": 6}, 0, 2), ({"invites_per_day": 6}, 1, 1), ({"invites_per_hour": 3}, 0, 0)],
)
def test_a_run_renews_no_more_than_the_limits_let_go(
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    road: str,
    limits: Any,
    newcomers: int,
    renewed: int,
) -> None:
    """The open invites of Liv and of three others count against the limits."""
    monkeypatch.setattr("airflow_provider_workspace.access.members.plan.MAX_RENEWALS", 2)
    people = [f"person{number}@example.com" for number in range(3)]
    with WorkspaceHook() as hook:
        hook.delete_invite(invite_id=SEED.invite_id)
        for email in [LIV, *people]:
            hook.create_invite(target_email=email, level=1)
    connect(consistency_time=0, **limits)
    rows = [*({"email": email, "level": 8} for email in people), *["ada@example.com"] * newcomers]
    plan = file(people=rows, renew_invites=True) if road == "file" else sync([*roster(1), *rows])
    assert f"This run renews {renewed} of 3 invites" in plan["table"]
    assert [levels(email) for email in people] == [[8] if number < renewed else [1] for number in range(3)]
    left = [row["reason"] for row in plan["changes"] if row["status"] == "not_sent"]
    assert left == ["a later run renews it"] * 2 * (3 - renewed)
    assert effects(sandbox).count("delete_invite") == renewed + 1
    connect(consistency_time=0)
    sync([*roster(1), *rows])
    assert [levels(email) for email in people[:2]] == [[8], [8]]


def test_who_accepts_meanwhile_gets_the_level_by_the_next_plan_and_no_second_mail(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Interruptions(monkeypatch).before("DELETE", lambda: sandbox.accept_invite(SEED.invite_id))
    sync()
    assert level_of_member() == 1
    sync()
    assert level_of_member() == 8
    assert "create_invite" not in effects(sandbox)


def test_who_accepts_more_than_the_row_gives_meanwhile_is_not_green(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WorkspaceHook() as hook:
        hook.delete_invite(invite_id=SEED.invite_id)
        invite = hook.create_invite(target_email=LIV, level=8)
    Interruptions(monkeypatch).before("DELETE", lambda: sandbox.accept_invite(str(invite.id)))
    with pytest.raises(WorkspaceNotAppliedError, match="joined-meanwhile"):
        sync(roster(1))
    sync(roster(1), max_removals=1)
    assert level_of_member() == 1


def test_an_invite_is_not_renewed_if_its_level_is_hidden_or_somebody_must_decide(
    sandbox: SandboxServer, variables: Variables
) -> None:
    assert "by hand: level: 1 -> 8, holds an open invite, but protected: withdraw it by hand" in line_of(
        sync(protected=[*PROTECTED, LIV])
    )
    variables.values.update([noted(sandbox, decision_notes.variable, {"email": LIV, "level": 1})])
    assert "lift the decision" in line_of(sync())
    variables.values.clear()
    until = "2999-01-01T00:00:00Z"
    variables.values.update([noted(sandbox, grant_notes.variable, user_email=LIV, level=5, then=None, until=until)])
    assert "open invite, and has temporary access (temporary: level 5 until 2999-01-01" in line_of(sync())
    variables.values.clear()
    with WorkspaceHook() as hook:
        (invite,) = [one for one in hook.list_invites() if one.target_email == LIV]
    say(sandbox, "list_invites", {**invite.to_dict(), "level": None})
    assert "cannot be known" in line_of(sync())
    assert effects(sandbox) == []


def test_a_decision_while_an_invite_is_renewed_is_not_overruled(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, variables: Variables
) -> None:
    key, value = noted(sandbox, decision_notes.variable, {"email": LIV, "level": 1})
    Interruptions(monkeypatch).before("DELETE", lambda: variables.values.update({key: value}))
    with pytest.raises(Exception, match="decided-meanwhile"):
        sync()
    assert effects(sandbox) == ["delete_invite"]


@pytest.mark.parametrize(
    ("level", "said"), [(8, ", with level 1 instead of 8: withdraw it and run this again"), (1, ""), (None, "")]
)
def test_a_bulk_invite_names_an_open_invite_with_another_level(
    sandbox: SandboxServer, level: int | None, said: str
) -> None:
    task = WorkspaceCreateInvitesOperator(task_id="invite", invites=[{"email": LIV, "level": level}])
    (entry,) = task.execute({})["addresses"]
    assert entry["reason"] == f"holds an invite that has not expired{said}"
    assert effects(sandbox) == []


def test_every_line_by_hand_has_a_cure(sandbox: SandboxServer) -> None:
    """Each kind of line that leaves a person to somebody says what to do, after ':' or ';'."""
    with WorkspaceHook() as hook:
        hook.create_invite(target_email="two@example.com", level=1)
        members = [one.to_dict() for one in hook.list_members()]
        invites = [one.to_dict() for one in hook.list_invites()]
    (grace,) = [one for one in members if one["user"]["email"] == "grace.analyst@example.com"]
    twin = {**grace, "id": SEED.absent_uuid, "user": {**grace["user"], "uuid": SEED.absent_uuid[:-1] + "0"}}
    say(sandbox, "list_members", *members, twin)
    say(sandbox, "list_invites", *invites, {**invites[-1], "id": SEED.absent_uuid, "level": 8})
    rows = [
        *({"email": email, "level": 8} for email in ("olive.owner@example.com", "grace.analyst@example.com", LIV)),
        *({"email": email, "level": 8} for email in ("mina.member@example.com", "two@example.com")),
        {"email": "noah.newton@example.com", "level": 8, "until": "2020-01-01"},
    ]
    plan = sync(rows, protected=["mina.member@example.com"], renew_invites=False, max_removals=None, dry_run=True)
    leaving = [{"email": "olive.owner@example.com"}, {"email": ""}]
    leavers = sync(None, roster=None, leavers=leaving, on_invalid="skip", renew_invites=False, dry_run=True)
    changes = [*plan["changes"], *leavers["changes"]]
    by_hand = [change["why"] for change in changes if change["action"] == "differs"]
    assert len(by_hand) == 8
    cures = ("by hand", "correct the row", "set renew_invites")
    assert [why for why in by_hand if not any(cure in why for cure in cures)] == []


def test_renewal_is_refused_where_it_is_no_switch() -> None:
    with pytest.raises(AirflowFailException, match="renew_invites"):
        sync(renew_invites="perhaps")
