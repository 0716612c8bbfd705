"""
Every road that gives or takes access, crossed with every rule about who has it.

A new road is a line of :data:`TAKING` or :data:`GIVING`, a new rule one of :data:`RULES`: it is then tried with all
others, and the name of a failing test is the pair that is missing. What a rule does not say about a road is a line of
:data:`NOT_SAID`, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.execution_time import task_runner

import airflow_provider_workspace
from airflow_provider_workspace.access.rules.entitlements import Claims
from airflow_provider_workspace.access.rules.guards import Guards
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.access import WorkspaceEndAccessOperator, WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.invites import (
    WorkspaceCreateInviteOperator,
    WorkspaceCreateInvitesOperator,
    WorkspaceDeleteInviteOperator,
)
from airflow_provider_workspace.operators.members import (
    WorkspaceDeleteMemberOperator,
    WorkspaceSyncMembersOperator,
    WorkspaceUpdateMemberOperator,
)
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import decision_notes, grant_notes
from tests.audit import say
from tests.task_instance import Question, TaskStore
from tests.unit.operators.test_access_review import KEPT, Review
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.parametrize("sandbox", ["live"], indirect=True),
    pytest.mark.needs_airflow("3.3", "notes of access"),
]

OLIVE, ADAM, MINA = "olive.owner@example.com", "adam.admin@example.com", "mina.member@example.com"
NOAH, GRACE, LIV, ADA = (
    "noah.newton@example.com",
    "grace.analyst@example.com",
    "liv.invited@example.com",
    "ada@example.com",
)
OTHERS: list[Any] = [OLIVE, ADAM, NOAH, GRACE, LIV]
LATER, OVER = "2999-01-01T00:00:00Z", "2026-09-02T00:00:00Z"
ADMIN = 8


@dataclass
class World:
    """
    The organization in which Mina, an administrator, loses access, or Mina, a member, gets some.

    :ivar protected: whom nobody may touch
    :ivar owner_level: who is an owner
    :ivar level: what Mina has at first
    :ivar error: what the road raised
    """

    sandbox: SandboxServer
    notes: Variables
    folder: Path
    protected: list[str] = field(default_factory=lambda: [OLIVE])
    owner_level: int | None = 15
    level: int = ADMIN
    error: Exception | None = None

    def note_grant(self, email: str = MINA, user: str | None = SEED.member_uuid, **more: Any) -> str:
        usual = {"user_email": email, "user_uuid": user, "until": LATER, "level": ADMIN, "then": None}
        key, text = grant_notes.variable(**{**self.place, **usual, **more})
        self.notes.values[key] = text
        return key

    def note_decisions(self, email: str) -> None:
        """Note that a review lowered Mina, who had an address then, and removed Ada."""
        mina = {"email": email, "user_uuid": SEED.member_uuid, "level": 1}
        key, text = decision_notes.variable(mina, {"email": ADA, "level": None}, **self.place)
        self.notes.values[key] = text

    @property
    def place(self) -> dict[str, str]:
        return {"service": self.sandbox.url, "organization_id": SEED.organization_id}

    @property
    def levels(self) -> dict[str, int | None]:
        """The level of each member, whatever a fault says about the lists."""
        self.sandbox.clear_faults()
        with WorkspaceHook() as hook:
            return {str(member.user_uuid): member.level for member in hook.list_members()}

    @property
    def mina(self) -> int | None:
        return self.levels.get(SEED.member_uuid)

    @property
    def invited(self) -> dict[str | None, int | None]:
        self.sandbox.clear_faults()
        with WorkspaceHook() as hook:
            return {invite.target_email: invite.level for invite in hook.list_invites() if not invite.is_expired}

    @property
    def has_grant(self) -> bool:
        return any(key.startswith("workspace_grant.") for key in self.notes.values)


def run(cls: type[Any], **arguments: Any) -> None:
    ti = SimpleNamespace(
        dag_id="dag", run_id="run", task_id="task", map_index=-1, try_number=1, xcom_push=lambda **_: None
    )
    context: Any = {"ti": ti, "task_state_store": TaskStore()}
    cls(task_id="task", **arguments).execute(context)


# The roads


def sync(world: World, **arguments: Any) -> None:
    given = {"protected": world.protected, "owner_level": world.owner_level, "max_removals": None}
    run(WorkspaceSyncMembersOperator, **given, **arguments)


def apply_file(world: World, people: list[Any]) -> None:
    members = {"people": people, "protected": world.protected, "owner_level": world.owner_level}
    file = {"complete": ["members"], "max_removals": None, "members": members}
    run(WorkspaceApplyOrganizationOperator, part="members", file=file)


def delete(world: World) -> None:
    kept = {"protected": world.protected, "owner_level": world.owner_level}
    run(WorkspaceDeleteMemberOperator, user_email=MINA, **kept)


def set_level(world: World, level: int) -> None:
    kept = {"protected": world.protected, "owner_level": world.owner_level}
    run(WorkspaceUpdateMemberOperator, user_email=MINA, level=level, **kept)


def set_level_by_user(level: int, **arguments: Any) -> None:
    run(WorkspaceUpdateMemberOperator, user_uuid=SEED.member_uuid, level=level, **arguments)


def sweep(world: World) -> None:
    world.note_grant(until=OVER, level=world.level, run_id="over")
    run(WorkspaceSweepOperator, kinds=["grants"], protected=world.protected)


def end_early(world: World) -> None:
    world.note_grant(level=world.level, run_id="early")
    run(WorkspaceEndAccessOperator, user_email=MINA, protected=world.protected)


def review(world: World) -> None:
    asked = Review(world.folder, protected=world.protected, owner_level=world.owner_level)
    asked.decide({**KEPT, MINA: "remove"})
    asked.run("apply_decisions")
    asked.run("close_review")


def grant(_: World) -> None:
    run(WorkspaceGrantAccessOperator, user_email=MINA, level=ADMIN, length=3600, reason="audit", requested_by="ruth")


def withdraw(world: World) -> None:
    run(WorkspaceDeleteInviteOperator, invite_id=SEED.invite_id, protected=world.protected)


def sweep_invite(world: World) -> None:
    world.note_grant(email=LIV, user=None, invite_id=SEED.invite_id, level=1, until=OVER, run_id="over")
    run(WorkspaceSweepOperator, kinds=["grants"], protected=world.protected)


Road = Callable[[World], None]
# The roads on which Mina loses access.
TAKING: dict[str, Road] = {
    "sync": lambda world: sync(world, roster=OTHERS),
    "leavers": lambda world: sync(world, leavers=[MINA]),
    "file": lambda world: apply_file(world, OTHERS),
    "delete member": delete,
    "update member": lambda world: set_level(world, 1),
    "sweep": sweep,
    "end access": end_early,
    "review": review,
}
# The roads on which the open invite of Liv is withdrawn.
WITHDRAWING: dict[str, Road] = {
    "sync withdraws": lambda world: sync(world, roster=[*OTHERS[:-1], MINA]),
    "leavers withdraw": lambda world: sync(world, leavers=[LIV]),
    "file withdraws": lambda world: apply_file(world, [*OTHERS[:-1], MINA]),
    "delete invite": withdraw,
    "sweep withdraws": sweep_invite,
}
# The roads on which Mina, who is a member, gets more, or Ada is invited.
GIVING: dict[str, Road] = {
    "sync raises": lambda world: sync(world, roster=[*OTHERS, {"email": MINA, "level": ADMIN}]),
    "sync invites": lambda world: sync(world, roster=[*OTHERS, MINA, ADA]),
    "file raises": lambda world: apply_file(world, [*OTHERS, {"email": MINA, "level": ADMIN}]),
    "file invites": lambda world: apply_file(world, [*OTHERS, MINA, ADA]),
    "update member raises": lambda world: set_level(world, ADMIN),
    "grant": grant,
    "create invite": lambda _: run(WorkspaceCreateInviteOperator, target_email=ADA, level=1),
    "create invites": lambda _: run(WorkspaceCreateInvitesOperator, invites=[ADA]),
}


# The rules: how the world is, and what must hold afterwards


def protect(world: World) -> None:
    world.protected = [OLIVE, MINA]


def make_owner(world: World) -> None:
    world.level = 15
    with WorkspaceHook() as hook:
        hook.update_member(user_uuid=SEED.member_uuid, level=15)


def make_last_owner(world: World) -> None:
    make_owner(world)
    world.owner_level = None
    with WorkspaceHook() as hook:
        shown = rows(hook)
    for row in shown:
        if row["user"]["uuid"] == SEED.owner_uuid:
            row["level"] = ADMIN
    say(world.sandbox, "list_members", *shown)


def note_grant(world: World) -> None:
    world.note_grant()


def note_grant_of_another_address(world: World) -> None:
    world.note_grant(email="mina.before@example.com")


def decide(world: World) -> None:
    world.note_decisions(MINA)


def decide_about_another_address(world: World) -> None:
    world.note_decisions("mina.before@example.com")


def rows(hook: WorkspaceHook) -> list[dict[str, Any]]:
    return [member.to_dict() for member in hook.list_members()]


def hide(world: World) -> None:
    """Hide the address of Mina from now on."""
    with WorkspaceHook() as hook:
        shown = rows(hook)
    for row in shown:
        if row["user"]["uuid"] == SEED.member_uuid:
            row["user"]["email"] = None
    say(world.sandbox, "list_members", *shown)


def double(world: World) -> None:
    """Show Mina twice, at another level."""
    with WorkspaceHook() as hook:
        shown = rows(hook)
    (mina,) = [row for row in shown if row["user"]["uuid"] == SEED.member_uuid]
    say(world.sandbox, "list_members", *shown, {**mina, "id": SEED.absent_uuid, "level": 1})


def lie(world: World) -> None:
    """Say that it was done, and do nothing."""
    world.sandbox.inject("say", "delete_member", status=204, body=None, rows=0, times=None)
    with WorkspaceHook() as hook:
        (mina,) = [row for row in rows(hook) if row["user"]["uuid"] == SEED.member_uuid]
    world.sandbox.inject("say", "update_member", body={**mina, "level": 1}, rows=0, times=None)


def stays(world: World) -> bool:
    return world.mina == world.level


def stays_or_both_end(world: World) -> bool:
    return (world.mina == world.level) if world.has_grant else (world.error is None or world.mina == world.level)


def goes(world: World) -> bool:
    return world.mina in (None, 1) and world.error is None


def goes_or_is_red(world: World) -> bool:
    return world.mina in (None, 1) or world.error is not None


def gets_no_more(world: World) -> bool:
    return world.mina == 1 and ADA not in world.invited


def protect_invited(world: World) -> None:
    world.protected = [OLIVE, LIV]


def note_grant_of_invite(world: World) -> None:
    world.note_grant(email=LIV, user=None, invite_id=SEED.invite_id)


def hide_invited(world: World) -> None:
    with WorkspaceHook() as hook:
        shown = [invite.to_dict() | {"target_email": None} for invite in hook.list_invites()]
        others = {"id": SEED.absent_uuid, "target_email": ADA, "is_expired": True}
    say(world.sandbox, "list_invites", *shown, others)


def protect_unlisted(world: World) -> None:
    protect_invited(world)
    say(world.sandbox, "list_invites")


def accept_meanwhile(world: World) -> None:
    """Say that the invite was withdrawn, and show its person as a member under another address."""
    world.sandbox.inject("say", "delete_invite", status=204, body=None, times=None)
    with WorkspaceHook() as hook:
        shown = rows(hook)
    joined = {"id": SEED.absent_uuid, "user": {"uuid": SEED.research_uuid, "email": "liv.b@example.com"}, "level": 1}
    say(world.sandbox, "list_members", *shown, joined, after=1)


def lie_about_invite(world: World) -> None:
    world.sandbox.inject("say", "delete_invite", status=204, body=None, rows=0, times=None)


def stays_invited(world: World) -> bool:
    return LIV in world.invited


def invite_and_grant_agree(world: World) -> bool:
    return (LIV in world.invited) == world.has_grant


def is_red(world: World) -> bool:
    return world.error is not None


@dataclass(frozen=True)
class Rule:
    """
    :ivar sources: the fields of records of the rules that it reads: a new field needs a rule
    """

    arrange: Callable[[World], None]
    holds: Callable[[World], bool]
    sources: frozenset[str] = frozenset()


TAKING_RULES = {
    "protected": Rule(protect, stays, frozenset({"protected"})),
    "owner": Rule(make_owner, stays, frozenset({"owner_level"})),
    "last owner": Rule(make_last_owner, stays),
    "grant": Rule(note_grant, stays_or_both_end, frozenset({"grants"})),
    "grant of another address": Rule(note_grant_of_another_address, stays_or_both_end),
    "decision": Rule(decide, goes, frozenset({"decision"})),
    "hidden": Rule(hide, goes_or_is_red),
    "doubled": Rule(double, goes_or_is_red),
    "proof": Rule(lie, goes_or_is_red),
}
WITHDRAWING_RULES = {
    "protected": Rule(protect_invited, stays_invited),
    "grant": Rule(note_grant_of_invite, invite_and_grant_agree),
    "hidden": Rule(hide_invited, stays_invited),
    "protected and in no list": Rule(protect_unlisted, stays_invited),
    "accepted meanwhile": Rule(accept_meanwhile, is_red),
    "proof": Rule(lie_about_invite, is_red),
}
GIVING_RULES = {
    "decision": Rule(decide, gets_no_more),
    "decision about another address": Rule(decide_about_another_address, gets_no_more),
}
AGREED = "somebody agreed on this end when the grant was approved"
NOT_SAID = {
    ("sweep", "owner"): AGREED,
    ("end access", "owner"): AGREED,
    ("sweep withdraws", "hidden"): "the note of the grant knows the invite by its id",
}
PAIRS = [
    *((name, TAKING[name], rule, TAKING_RULES[rule]) for name in TAKING for rule in TAKING_RULES),
    *((name, WITHDRAWING[name], rule, WITHDRAWING_RULES[rule]) for name in WITHDRAWING for rule in WITHDRAWING_RULES),
    *((name, GIVING[name], rule, GIVING_RULES[rule]) for name in GIVING for rule in GIVING_RULES),
]


@pytest.fixture
def world(
    sandbox: SandboxServer,
    monkeypatch: pytest.MonkeyPatch,
    connect: Connect,
    tmp_path: Path,
    clock: object,  # noqa: ARG001 - waits take no time
) -> World:
    connect(consistency_time=1, max_attempts=1)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Question(refreshes=True), raising=False)
    return World(sandbox, install(monkeypatch), tmp_path)


@pytest.mark.parametrize(
    ("road", "rule"),
    [
        pytest.param(road, rule, id=f"{name} x {rule_name}")
        for name, road, rule_name, rule in PAIRS
        if (name, rule_name) not in NOT_SAID
    ],
)
def test_each_road_asks_each_rule(world: World, road: Road, rule: Rule) -> None:
    if road in TAKING.values():
        with WorkspaceHook() as hook:
            hook.update_member(user_uuid=SEED.member_uuid, level=ADMIN)
    rule.arrange(world)
    try:
        road(world)
    except (WorkspaceError, AirflowFailException) as error:
        world.error = error
    assert rule.holds(world), f"{world.mina}, {world.error!r}"


UNLISTED = "No list shows user .*, who may be protected or an owner"
NOBODY_KEPT = {"owner_level": None}


@pytest.mark.parametrize(
    ("arrange", "level", "kept", "says"),
    [
        (protect, 1, {"protected": [MINA], "owner_level": None}, UNLISTED),
        (make_owner, 1, {}, UNLISTED),
        (decide, ADMIN, NOBODY_KEPT, "decided-by-review"),
        (note_grant, 1, NOBODY_KEPT, "has temporary access"),
    ],
)
def test_whom_no_list_shows_is_asked_about_by_their_user(
    world: World, arrange: Callable[[World], None], level: int, kept: dict[str, Any], says: str
) -> None:
    arrange(world)
    before = world.mina
    leave_out(world)
    with pytest.raises(AirflowFailException, match=says):
        set_level_by_user(level, **kept)
    assert world.mina == before


def test_whom_no_list_shows_is_not_removed_while_somebody_is_protected(world: World) -> None:
    leave_out(world)
    with pytest.raises(AirflowFailException, match=r"No list shows user .*, who may be protected\. Look"):
        run(WorkspaceDeleteMemberOperator, user_uuid=SEED.member_uuid, protected=[MINA], owner_level=None)
    assert world.mina == 1


def test_a_level_of_whom_no_list_shows_is_not_proven(world: World) -> None:
    leave_out(world)
    with pytest.raises(WorkspaceError, match="effect-not-shown"):
        set_level_by_user(1, **NOBODY_KEPT)


def leave_out(world: World) -> None:
    """Leave Mina out of the list of members from now on."""
    with WorkspaceHook() as hook:
        shown = [row for row in rows(hook) if row["user"]["uuid"] != SEED.member_uuid]
    say(world.sandbox, "list_members", *shown)


# The table is whole

PACKAGE = Path(airflow_provider_workspace.__file__).parent
SENDS = {"DeleteMember", "UpdateMember", "DeleteInvite", "CreateInvite", "CreateInvites"}
# Where requests that give or take access are made, and the roads that lead there.
MADE_IN = {
    "access/members/lines.py": ["sync raises", "sync invites", "file raises", "file invites"],
    "access/members/plan.py": ["sync", "leavers", "file", "sync withdraws", "leavers withdraw", "file withdraws"],
    "access/grants/plan.py": ["sweep", "end access"],
    "access/reviews/outcome.py": ["review"],
    "operators/members.py": ["delete member", "update member"],
    "operators/invites.py": ["create invite", "create invites", "delete invite"],
    "procedures/invites.py": ["create invites", "sync invites", "file invites", "grant"],
    # Two commands end grants as the operators do, and hooks send what their callers ask for.
}


def test_whatever_sends_a_change_of_access_is_a_road(world: World) -> None:  # noqa: ARG001
    made: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(("api/", "sandbox/", "hooks/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            named = _operation_named(node)
            if {called, named} & SENDS:
                made.add(name)
    assert sorted(made) == sorted(MADE_IN)
    assert {road for roads in MADE_IN.values() for road in roads} <= {*TAKING, *WITHDRAWING, *GIVING}


def _operation_named(node: ast.AST) -> str:
    """Return the operation that a text names, as in ``members.DeleteMember``."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return ""
    module, _, name = node.value.partition(".")
    return name if module in ("members", "invites") else ""


def test_whatever_has_a_say_is_a_rule(world: World) -> None:  # noqa: ARG001
    """``on_invalid`` is about rows and not about people, and what was lifted has no say."""
    asked = frozenset[str]().union(*(rule.sources for rule in TAKING_RULES.values()))
    assert asked == {one.name for record in (Guards, Claims) for one in fields(record)} - {"on_invalid", "lifted"}
