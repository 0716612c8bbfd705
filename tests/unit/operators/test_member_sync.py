"""``WorkspaceSyncMembersOperator`` against the sandbox."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, WorkspaceNotAppliedError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator, WorkspaceUpdateMemberOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, say, writes
from tests.interruptions import Interruptions
from tests.task_instance import TaskInstance

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = [
    pytest.mark.parametrize("sandbox", ["live", pytest.param("strict", marks=pytest.mark.slow)], indirect=True),
    pytest.mark.usefixtures("no_waits"),
]

# The seed has Olive Owner (15), Adam Admin (8), Mina, Noah and Grace (1), and Liv with an open invite.
ROSTER: list[Any] = [
    {"email": "adam.admin@example.com", "level": 8},
    {"email": "Mina.Member@example.com", "level": "8"},
    "grace.analyst@example.com",
    {"email": "ada@example.com", "first_name": "Ada", "level": 1},
]
NOON = datetime(2020, 12, 31, 12, tzinfo=timezone.utc)
CHANGES = ["delete_invite", "delete_member", "update_member", "create_invite"]


def sync(roster: Any = ROSTER, *, protected: Any = (), max_removals: Any = 4, **arguments: Any) -> Any:
    arguments |= {"roster": roster, "protected": protected, "max_removals": max_removals}
    return WorkspaceSyncMembersOperator(task_id="sync", **arguments).execute({})


def done(plan: dict[str, Any]) -> dict[str, int]:
    return {action: count for action, count in plan["counts"].items() if count}


def test_member_sync_is_idempotent(sandbox: SandboxServer) -> None:
    plan = sync()
    assert done(plan) == {"create": 1, "change": 1, "remove": 2, "skip": 1}
    assert plan["pending"] == 4
    assert effects(sandbox) == CHANGES
    assert [effect["target"] for effect in sandbox.effects()] == [
        "liv.invited@example.com",
        SEED.absent_uuid,
        SEED.member_uuid,
        "ada@example.com",
    ]
    again = sync()
    assert done(again) == {"skip": 1}
    assert again["pending"] == 0
    assert effects(sandbox) == CHANGES
    assert len(writes(sandbox)) == 4


@pytest.mark.parametrize("operation", ["delete_member", "update_member"])
def test_a_404_of_a_proxy_says_nothing_about_a_member(sandbox: SandboxServer, operation: str) -> None:
    sandbox.inject("proxy_error", operation, status=404)
    with pytest.raises(AirflowFailException, match="This 404 may be that of a proxy"):
        sync()
    assert effects(sandbox) == CHANGES[: CHANGES.index(operation)]


def test_dry_run_returns_the_plan_of_the_run_and_needs_no_write_scope(sandbox: SandboxServer, connect: Connect) -> None:
    connect(key=SEED.reader_key)
    plan = sync(dry_run=True)
    assert writes(sandbox) == []
    assert "- member noah.newton@example.com (Noah Newton) " in plan["table"]
    connect()
    applied = sync(approved=plan)
    assert {row["status"] for row in plan["changes"]} == {"planned", "skipped"}
    assert {row["status"] for row in applied["changes"]} == {"done", "invited", "skipped"}
    assert applied == {**plan, "table": applied["table"], "changes": applied["changes"]}
    assert "1 created, 1 changed, 2 removed, 1 kept\n" in applied["table"]
    assert effects(sandbox) == CHANGES


def test_protected_people_are_kept_and_owners_removed_only_if_allowed(sandbox: SandboxServer) -> None:
    others = ["adam.admin@example.com", "noah.newton@example.com"]
    assert done(sync(["mina.member@example.com"], protected=others)) == {"remove": 2, "skip": 3}
    WorkspaceUpdateMemberOperator(task_id="promote", user_uuid=SEED.absent_uuid, level="owner").execute({})
    both = "member olive.owner@example.com, member noah.newton@example.com"
    for way in (
        {"roster": ["mina.member@example.com"]},
        {"roster": None, "leavers": ["noah.newton@example.com", "olive.owner@example.com"]},
    ):
        with pytest.raises(
            AirflowFailException, match=rf"highest .* any more, owner \(15\)\. .*: this takes it from {both}\. Nothing"
        ):
            sync(**way, protected='["adam.admin@example.com"]', owner_level=None)
    kept = [("adam.admin@example.com",), {"E-Mail": "olive.owner@example.com", "level": 1}]  # Olive owns the key
    assert done(sync(["mina.member@example.com"], protected=kept, owner_level=None))["remove"] == 1
    assert [effect["target"] for effect in sandbox.effects("delete_member")] == [SEED.analyst_uuid, SEED.absent_uuid]


def test_access_that_ended_is_taken_and_the_second_run_changes_nothing(sandbox: SandboxServer, tmp_path: Path) -> None:
    people = [
        "mina.member,8,2020-12-31,member",
        "noah.newton,1,2020-12-31T18:00:00Z,",
        "liv.invited,,2020-12-31,Removed",
    ]
    people += ["ada,1,9998-12-31,", "adam.admin,8,,", "grace.analyst,1,2020-12-31,"]
    text = "email,level,Ends on,then\n" + "".join(line.replace(",", "@example.com,", 1) + "\n" for line in people)
    (tmp_path / "team.csv").write_text(text)
    WorkspaceUpdateMemberOperator(task_id="lead", user_uuid=SEED.member_uuid, level=8).execute({})
    arguments = {"roster": None, "path": str(tmp_path / "team.csv"), "columns": {"Ends on": "until"}}
    arguments |= {"protected": ["grace.analyst@example.com"]}
    with pytest.raises(AirflowFailException, match="set max_removals=3"):
        sync(**arguments, max_removals=2)
    plan = sync(**arguments, dry_run=True)
    longer = str(tmp_path / "longer.csv")
    (tmp_path / "longer.csv").write_text(text.replace("ada@example.com,1,9998-12-31", "ada@example.com,1,9999-12-31"))
    with pytest.raises(AirflowFailException, match=r"1 of 4 changes.*\n  \+ invite ada@example.com"):
        sync(**arguments | {"path": longer}, approved=plan)
    with pytest.raises(
        AirflowFailException, match=r"access-left\] .*person grace.analyst.*ended 2020-12-31.*protected"
    ):
        sync(**arguments, approved=plan)
    assert effects(sandbox)[1:] == CHANGES
    assert sandbox.effects("create_invite")[0]["target"] == "ada@example.com"
    assert "until" not in str([request["body"] for request in writes(sandbox)])
    again = sync(**{**arguments, "protected": ()}, max_removals=1)
    assert done(again) == {"wait": 1, "remove": 1, "skip": 1}
    assert "until 9998-12-31, then removed" in again["table"]


def test_ends_are_dates_and_times_of_a_query_or_defaults(sandbox: SandboxServer) -> None:
    class NaT(datetime):
        """A date without a value, as that of pandas."""

        def __ne__(self, other: object) -> bool:
            return True

    standing = [{"email": "adam.admin@example.com", "until": NaT(1, 1, 1)}, "mina.member@example.com"]
    ended = [("grace.analyst@example.com", date(2020, 12, 31)), ("noah.newton@example.com", NOON)]
    rows = [*standing, *({"email": email, "until": until} for email, until in ended)]
    assert {change["why"] for change in sync(rows, dry_run=True)["changes"]} >= {
        "access ended 2020-12-31 (UTC)",
        "access ended 2020-12-31T12:00:00Z",
    }
    description = [[name, None] for name in ("email", "until")]
    assert done(sync([ended, description], dry_run=True, max_removals=None))["remove"] == 5
    defaults = {"until": date(2020, 12, 31)}
    plan = sync(standing, defaults=defaults, dry_run=True, max_removals=None)
    assert plan["table"].count("access ended 2020-12-31 (UTC)") == 2
    assert sandbox.effects() == []
    leavers = [{"email": email, "until": until} for email, until in (*ended, ("mina.member@example.com", "9998-12-31"))]
    left = sync(None, leavers=leavers)
    assert done(left) == {"remove": 2, "wait": 1}
    assert "leaves later: until 9998-12-31, then removed" in left["table"]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("roster", [[]], "empty"),
        ("roster", [None], "roster="),
        ("roster", ["ada@example.com"], "roster is a text"),
        ("roster", [["ada"]], r"row 1 \(ada\): the address needs exactly one @"),
        ("roster", [["ada@example.com", {"email": "lin@example.com", "level": "high"}]], "row 2"),
        ("protected", ["olive.owner@example.com", "{{ nobody }}"], "protected is a text"),
        ("roster", [[*ROSTER, {"email": "Ann@example.com", "first_name": "Ann \ud83d"}]],
         r"row 5 \(Ann@example.com\): field 'first_name': a value is not JSON"),
        ("roster", [[*ROSTER, "ADA@example.com"]],
         r"2 rows of the roster.*: row 4 \(ada@.*: conflicts with row 5 \(same address\): first_name .Ada"),
        ("roster", [[*ROSTER, {"email": "a@example.com", "Department": "Sales"}]],
         "row 5: unknown column 'Department'"),
        ("on_invalid", ["skip"], "on_invalid='skip' would remove the person of each row that a roster skips"),
        ("protected", [["ada"], [""], [None], [{"email": None}], [("",)]],
         "Invalid addresses in protected: |protected is empty: expected at least one address"),
        ("protected", [[{"mail": "ada@example.com"}]],
         "Wrong columns: no column 'email'; row 1: unknown column 'mail'"),
        ("max_removals", [1, "1", "1 or 100%", "30%"],
         r"\(invites withdrawn: 1, members removed: 1; .* 5 members\); max_removals=.* allows 1. .* for .*http"),
        ("max_removals", [-1, "half", "0%", "101%", "30% or 10", 2.5, True], "expected a whole number, a share"),
        ("owner_level", ["boss"], "owner_level: expected a whole number.*found 'boss'"),
        ("defaults", ["level=8"], "defaults must be a mapping"),
        ("defaults", [{"level": True}], "level"),
        ("leavers", [[]], "leavers is empty"),
        ("leavers", [["ada"]], r"1 row of leavers.*: row 1 \(ada\): the address needs exactly one @"),
        ("leavers", [[7]], "row 1 .no address.: field 'target_email': "),
    ],
)  # fmt: skip
def test_implausible_changes_are_refused(sandbox: SandboxServer, name: str, values: list[Any], message: str) -> None:
    for value in values:
        with pytest.raises(AirflowFailException, match=message):
            sync(**({"roster": None} if name == "leavers" else {}) | {name: value})
    assert writes(sandbox) == []


EVERYBODY = [*ROSTER[2:], "noah.newton@example.com", "liv.invited@example.com"]


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        ({"roster": ["noah.newton@example.com"]}, "invites withdrawn: 1, members removed: 3"),
        ({"roster": [*EVERYBODY[:-1], *(dict(row, level=1) for row in ROSTER[:2])]},
         "invites withdrawn: 1, levels lowered: 2"),
        ({"leavers": ["noah.newton@example.com", "liv.invited@example.com"]},
         "invites withdrawn: 1, members removed: 1"),
    ],
)  # fmt: skip
def test_by_default_a_list_that_was_cut_takes_nothing(
    sandbox: SandboxServer, arguments: dict[str, Any], taken: str
) -> None:
    WorkspaceHook().update_member(user_uuid=SEED.member_uuid, level=8)
    count = sum(int(number) for number in re.findall(r": (\d)", taken))
    cure = f"max_removals='10 or 30%' allows 1. Check that the list is complete; if it is, set max_removals={count}. "
    for dry_run in (True, False):
        beginning = r"^\[too-many-removals\] WorkspaceInputError: This plan"
        with pytest.raises(
            AirflowFailException,
            match=f"{beginning} takes a lot away .{taken}; the organization has 5 members.; {cure}",
        ):
            WorkspaceSyncMembersOperator(task_id="sync", protected=[], dry_run=dry_run, **arguments).execute({})
    assert len(writes(sandbox)) == 1
    WorkspaceSyncMembersOperator(task_id="sync", protected=[], max_removals=count, **arguments).execute({})


def test_one_change_is_always_allowed_by_a_share_and_ten_by_default(sandbox: SandboxServer) -> None:
    one: Any = {"roster": [*EVERYBODY, {"email": "adam.admin@example.com", "level": 1}, "mina.member@example.com"]}
    for limit in (0, "0 or 50%"):
        with pytest.raises(AirflowFailException, match=r"levels lowered: 1; .* 5 members.; .* allows 0\."):
            sync(**one, max_removals=limit)
    WorkspaceSyncMembersOperator(task_id="sync", protected=[], **one).execute({})
    assert effects(sandbox) == ["update_member", "create_invite"]
    sandbox.add_members(45)
    added = [str(member.user and member.user.email) for member in WorkspaceHook().list_members()][5:]
    for limit, people, allowed in (("10 or 30%", 11, 10), ("50%", 26, 25), (" 50 % ", 25, 0), (None, 26, 0)):
        arguments: Any = {"roster": None, "leavers": added[:people], "max_removals": limit, "dry_run": True}
        if allowed:
            with pytest.raises(
                AirflowFailException, match=f"members removed: {people}; .* 50 members.; .* allows {allowed}"
            ):
                sync(**arguments)
        else:
            assert done(sync(**arguments)) == {"remove": people}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("operation", "kind", "options", "says", "status"),
    [
        ("delete_member", "status_before", {"status": 403}, "refused 1 of 4 changes.* remove member noah",
         "refused"),
        ("delete_member", "said_otherwise", {}, "remove member noah.newton@example.com. The service says", "refused"),
        (*("update_member", "said_otherwise", {"times": None}),
         r"change member .*but was not applied: level is 1 and not 8", "refused"),
        ("update_member", "say", {"rows": 0, "body": {}}, "change member .* Check it in the workspace", "refused"),
        ("update_member", "proxy_error", {"status": 404, "body": "json"}, "Not done: change .* Check it", "refused"),
        ("update_member", "status_before", {"status": 409}, "refused 1 of 4 changes.* change member", "refused"),
        ("create_invites", "refuse_address", {"email": "ada@example.com"}, "no such mailbox", "failed"),
    ],
)  # fmt: skip
def test_a_change_that_is_not_done_is_named_in_error_and_report_and_stops_no_other(
    sandbox: SandboxServer,
    connect: Connect,
    tmp_path: Path,
    operation: str,
    kind: str,
    options: dict[str, Any],
    says: str,
    status: str,
) -> None:
    connect(consistency_time=8)
    sandbox.inject(kind, operation, **options)
    report = tmp_path / "report.json"
    with pytest.raises((WorkspaceError, AirflowFailException), match=says):
        sync(report_path=str(report))
    statuses = [row["status"] for row in json.loads(report.read_text())["changes"] if row["action"] != "skip"]
    assert sorted(set(statuses) - {"done", "invited"}) == [status]
    assert statuses.count(status) == 1
    assert effects(sandbox) == [change for change in CHANGES if change != operation.rstrip("s")]
    sandbox.clear_faults()
    sync()
    assert Counter(effects(sandbox)) == Counter(CHANGES)


def test_leavers_without_an_address_may_be_left_out_and_are_shown(sandbox: SandboxServer) -> None:
    noah = {"email": "noah.newton@example.com", "level": 1}
    leavers = [noah, {"first_name": "Mina"}, {**noah, "level": 8}, "{{ nobody }}"]
    with pytest.raises(AirflowFailException, match=r"2 rows of leavers.*: row 2 \(no address\)"):
        sync(None, leavers=leavers)
    plan = sync(None, leavers=leavers, on_invalid="skip", dry_run=True)
    assert done(plan) == {"remove": 1, "differs": 2, "skip": 1}
    assert "row 2 " in plan["table"]
    assert "left out: field 'target_email' is required (first_name 'Mina')" in plan["table"]
    with pytest.raises(
        AirflowFailException, match=r"access-left\] .*2 people should .*all other .*: row 2: left out.*; row 4 \{\{"
    ):
        sync(None, leavers=leavers, on_invalid="skip")
    assert effects(sandbox) == ["delete_member"]


def test_many_refusals_stop_the_sync(sandbox: SandboxServer, connect: Connect) -> None:
    connect(key=SEED.reader_key)
    sandbox.add_members(8)
    with pytest.raises(AirflowFailException, match=r"refused 5 of \d+ changes, so the others were not sent"):
        sync(max_removals=None)
    assert len(writes(sandbox)) == 5


def test_a_member_who_leaves_meanwhile_is_no_error(sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    leave = partial(WorkspaceHook().delete_member, user_uuid=SEED.member_uuid)
    Interruptions(monkeypatch).before("DELETE", leave)
    sync()
    assert "update_member" not in effects(sandbox)
    assert [change["name"] for change in sync(dry_run=True)["changes"] if change["action"] == "create"] == [
        "invite Mina.Member@example.com"
    ]


LIV = "liv.invited@example.com"
LIV_GOES: list[dict[str, Any]] = [
    {"roster": None, "leavers": [LIV]},
    {"roster": EVERYBODY[:-1]},
    {"roster": [{"email": LIV, "until": "2020-12-31"}, *EVERYBODY[:-1]]},
    {"roster": [{"email": LIV, "level": 8, "until": "2020-12-31", "then": "member"}, *EVERYBODY[:-1]]},
]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("lists", ["show it", "are late", "show an owner"])
@pytest.mark.parametrize("arguments", LIV_GOES)
def test_an_invite_that_is_accepted_before_its_removal_is_never_green(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: dict[str, Any], lists: str
) -> None:
    is_owner = lists == "show an owner"
    with WorkspaceHook() as hook:
        hook.update_member(user_uuid=SEED.member_uuid, level=8)
        (seeded,) = [invite for invite in hook.list_invites() if invite.target_email == LIV]
        hook.delete_invite(invite_id=str(seeded.id))
        invite = hook.create_invite(target_email=LIV, level=15 if is_owner else 8)
        members = [member.to_dict() for member in hook.list_members()]

    def accept() -> None:
        sandbox.accept_invite(str(invite.id))
        if lists == "are late":
            say(sandbox, "list_members", *members, times=1)

    Interruptions(monkeypatch).before("DELETE", accept)
    report = tmp_path / "report.json"
    reason = "but an owner" if is_owner else f"joined meanwhile: member {LIV}, level: 8"
    with pytest.raises(WorkspaceNotAppliedError, match=rf"^\[joined-meanwhile\] .*{LIV} \(.*{reason}") as failed:
        sync(**arguments, report_path=str(report))
    assert not failed.value.permanent
    rows = json.loads(report.read_text())["changes"]
    (row,) = [row for row in rows if row["name"] == f"invite {LIV}"]
    assert row["status"] == "refused"
    assert reason in row["reason"]
    if is_owner:
        return
    sync(**arguments)
    with WorkspaceHook() as hook:
        levels = {member.user.email: member.level for member in hook.list_members() if member.user}
    assert levels.get(LIV, 1) == 1


def test_an_invite_that_somebody_else_withdraws_is_no_error(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, clock: Clock, connect: Connect
) -> None:
    connect(consistency_time=40)
    withdraw = partial(WorkspaceHook().delete_invite, invite_id=SEED.invite_id)
    Interruptions(monkeypatch).before("DELETE", withdraw)
    (row,) = sync(None, leavers=[LIV])["changes"]
    assert (row["status"], row["reason"]) == ("done", "it was gone already")
    assert clock.waited == [40]
    assert effects(sandbox) == ["delete_invite"]


def twins() -> list[dict[str, Any]]:
    """Let two members have the address of the first."""
    members = [one.to_dict() for one in WorkspaceHook().list_members()]
    for one in members:
        if one["user"]["uuid"] in (SEED.member_uuid, SEED.absent_uuid):
            one["user"]["email"] = "twin@example.com"
    return members


def test_two_users_with_one_address_are_both_shown_and_never_raised(sandbox: SandboxServer, clock: Clock) -> None:  # noqa: ARG001
    members = twins()
    say(sandbox, "list_members", *members)
    roster = ["adam.admin@example.com", "grace.analyst@example.com", LIV]
    raised = sync([*roster, {"email": "Twin@example.com", "level": 8}])
    assert done(raised) == {"differs": 2, "skip": 1}
    both = [SEED.member_uuid, SEED.absent_uuid]
    for uuid in both:
        assert f"person twin@example.com (user {uuid})" in raised["table"]
    assert "2 users have this address" in raised["table"]
    assert effects(sandbox) == []
    sandbox.clear_faults()
    for arguments in ({"roster": None, "leavers": ["twin@example.com"]}, {"roster": roster}):
        say(sandbox, "list_members", *members)
        plan = sync(**arguments, dry_run=True)
        removed = [row["name"] for row in plan["changes"] if row["action"] == "remove"]
        assert sorted(removed) == sorted(f"member twin@example.com (user {uuid})" for uuid in both)
        sandbox.clear_faults()
    say(sandbox, "list_members", *members, times=1)
    sync(None, leavers=["twin@example.com"])
    assert sorted(effect["target"] for effect in sandbox.effects()) == sorted(both)


@pytest.mark.parametrize("leaver", ["gone@example.com", {"email": "gone@example.com", "until": "2020-12-31"}])
def test_a_leaver_who_is_in_no_list_is_a_line_and_fails_if_a_list_hides_addresses(
    sandbox: SandboxServer, leaver: Any
) -> None:
    plan = sync(None, leavers=[leaver])
    assert done(plan) == {"skip": 1}
    assert "person gone@example.com" in plan["table"]
    assert "is neither a member nor invited" in plan["table"]
    members = [one.to_dict() for one in WorkspaceHook().list_members()]
    members[-1]["user"]["email"] = None
    say(sandbox, "list_members", *members)
    hidden = "the service does not show the address of 1 members or invites"
    planned = sync(None, leavers=[leaver], dry_run=True)
    assert (planned["differences"], hidden in planned["table"]) == (1, True)
    with pytest.raises(AirflowFailException, match=rf"^\[people-hidden\] .*: person gone@example.com: .*{hidden}"):
        sync(None, leavers=[leaver, LIV])
    assert effects(sandbox) == ["delete_invite"]


def test_an_ended_row_of_nobody_is_unknown_if_a_list_hides_addresses(sandbox: SandboxServer) -> None:
    roster = [*EVERYBODY, dict(ROSTER[0]), dict(ROSTER[1]), {"email": "gone@example.com", "until": "2020-12-31"}]
    assert "gone@example.com" not in sync(roster, dry_run=True)["table"]
    members = [one.to_dict() for one in WorkspaceHook().list_members()]
    members[-1]["user"]["email"] = None
    say(sandbox, "list_members", *members)
    assert "person gone@example.com" in sync(roster, dry_run=True, max_removals=None)["table"]


def test_invites_of_a_sync_are_a_campaign_on_the_status_page(sandbox: SandboxServer) -> None:
    for told in ([{"invited": 1}], []):
        ti: Any = TaskInstance()
        WorkspaceSyncMembersOperator(task_id="sync", roster=ROSTER, protected=(), max_removals=2).execute({"ti": ti})
        assert [progress["counts"] for progress in ti.xcoms.values()] == told
    assert effects(sandbox).count("create_invite") == 1


def test_a_check_that_cannot_be_planned_does_not_say_that_nothing_was_sent(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else changes the owners in between."""
    planner = WorkspaceSyncMembersOperator.planner

    def fails_the_second_time(*arguments: Any, **options: Any) -> Any:
        plans = iter([planner(*arguments, **options)()])

        def plan(**_: Any) -> Any:
            for first in plans:
                return first
            raise WorkspaceInputError("Check the owners")

        return plan

    monkeypatch.setattr(WorkspaceSyncMembersOperator, "planner", fails_the_second_time)
    with pytest.raises(WorkspaceError, match="The changes were sent, but could not be checked") as failed:
        sync()
    assert "Nothing was sent" not in str(failed.value)
    assert effects(sandbox) == CHANGES
