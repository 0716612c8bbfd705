"""People given by e-mail address, and when a 404 counts as gone; against the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError, WorkspaceNotFoundError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators import dashboards, invites, members, organization
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, say
from tests.task_instance import TaskStore

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("no_waits")
MEMBER = "Mina.Member@example.com"
OLIVE = "olive.owner@example.com"
OWNER_UUID = SEED.owner_uuid.replace("-", "")


def run(cls: type[Any], context: Any = None, **arguments: Any) -> Any:
    return cls(task_id="task", **arguments).execute(context or {})


def test_operators_find_people_by_address(sandbox: SandboxServer, connect: Connect) -> None:
    connect(page_size=2)
    on_dashboard = {"dashboard_id": 1, "user_email": MEMBER}
    assert run(members.WorkspaceUpdateMemberOperator, user_email=MEMBER, level=8)["user"]["uuid"] == SEED.member_uuid
    run(dashboards.WorkspaceAddDashboardCollaboratorOperator, **on_dashboard, level=37)
    assert run(dashboards.WorkspaceRemoveDashboardCollaboratorOperator, **on_dashboard) == {
        "dashboard_id": 1,
        "user_uuid": SEED.member_uuid,
        "deleted": True,
    }
    assert run(members.WorkspaceDeleteMemberOperator, user_email=MEMBER) == {
        "user_uuid": SEED.member_uuid,
        "deleted": True,
    }
    assert effects(sandbox) == [
        "update_member",
        "add_dashboard_collaborator",
        "remove_dashboard_collaborator",
        "delete_member",
    ]


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_member_whose_level_is_hidden_may_be_an_owner(sandbox: SandboxServer) -> None:
    hidden = [{"user": {"uuid": SEED.member_uuid, "email": MEMBER}}]
    sandbox.inject("say", "list_members", body=hidden, times=None)
    with pytest.raises(AirflowFailException, match=r"does not show the level of .*, who may be an owner\. To remove"):
        run(members.WorkspaceDeleteMemberOperator, user_email=MEMBER)
    assert effects(sandbox) == []


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"user_email": OLIVE},
            f"{OLIVE} is an owner .level 15; owner_level=15., and owners are kept. To remove .* owner_level=None. An",
        ),
        ({"user_uuid": OWNER_UUID, "dry_run": True}, "To remove .* anyway, set owner_level=None"),
        ({"user_uuid": OWNER_UUID.upper(), "owner_level": None}, "owner first, or set allow_last_owner=True: this"),
        ({"user_email": "adam.admin@example.com", "owner_level": "admin"}, r"an owner \(level 8; owner_level=8\)"),
        ({"user_email": MEMBER, "protected": "['mina.member@example.com']"}, "protected is a text that is not a JSON"),
        (
            {"user_email": MEMBER, "protected": [{"E-Mail": "mina.member@EXAMPLE.com"}]},
            "mina.* is protected. To remove mina.* anyway, take the address out of protected",
        ),
    ],
)
def test_owners_and_protected_people_are_not_removed(
    sandbox: SandboxServer, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        run(members.WorkspaceDeleteMemberOperator, **arguments)
    assert not sandbox.effects()


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_file_does_not_remove_the_last_owner(sandbox: SandboxServer) -> None:
    file = {"members": {"people": [MEMBER], "owner_level": None}, "complete": ["members"]}
    with pytest.raises(AirflowFailException, match=f"else an owner first: this takes it from member {OLIVE}"):
        run(organization.WorkspacePlanOrganizationOperator, file=file)
    assert not sandbox.effects()


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_owners_are_removed_if_an_argument_says_so(sandbox: SandboxServer) -> None:
    delete = members.WorkspaceDeleteMemberOperator
    run(delete, user_email=MEMBER, protected=[OLIVE], allow_last_owner=True)
    run(delete, user_email=OLIVE, owner_level=None, allow_last_owner="true")
    assert [effect["target"] for effect in sandbox.effects()] == [SEED.member_uuid, SEED.owner_uuid]


def test_somebody_whose_address_is_not_shown_is_removed_by_id(sandbox: SandboxServer) -> None:
    nameless = {"id": SEED.domain_id, "level": 1, "user": {"uuid": SEED.member_uuid}}
    owner = {"id": SEED.invite_id, "level": 15, "user": {"uuid": SEED.owner_uuid}}
    delete = members.WorkspaceDeleteMemberOperator
    shown = {"id": SEED.absent_uuid, "level": 8, "user": {"uuid": SEED.absent_uuid, "email": "adam@example.com"}}
    say(sandbox, "list_members", nameless, owner, shown, times=2)
    with pytest.raises(
        AirflowFailException, match=r"does not show the address of .* To remove .*, leave out protected"
    ):
        run(delete, user_uuid=SEED.member_uuid, protected=["olive.owner@example.com"])
    assert run(delete, user_uuid=SEED.member_uuid)["deleted"]
    assert effects(sandbox) == ["delete_member"]


def test_an_unknown_address_is_an_error_unless_an_earlier_try_removed_it(sandbox: SandboxServer) -> None:
    context = {"task_state_store": TaskStore()}
    with pytest.raises(AirflowFailException, match="No members have the address"):
        run(members.WorkspaceDeleteMemberOperator, context, user_email="mina.mamber@example.com")
    for _ in range(2):
        assert run(members.WorkspaceDeleteMemberOperator, context, user_email=MEMBER)["deleted"]
    with pytest.raises(AirflowFailException, match="Check user_email, or pass the user_uuid of somebody who has left"):
        run(members.WorkspaceDeleteMemberOperator, user_email=MEMBER)
    assert effects(sandbox) == ["delete_member"]


def test_a_withdrawn_invite_that_is_gone_may_have_been_accepted(
    sandbox: SandboxServer, capsys: pytest.CaptureFixture[str]
) -> None:
    delete = invites.WorkspaceDeleteInviteOperator
    sandbox.accept_invite(SEED.invite_id)
    assert run(delete, invite_id=SEED.invite_id)["deleted"] is False
    assert (
        f"There is no invite {SEED.invite_id}: it may have been accepted. Look whether its person is a member"
        in capsys.readouterr().out
    )
    other = WorkspaceHook().create_invite(target_email="ada@example.com")
    assert run(delete, invite_id=str(other.id))["deleted"] is True
    assert "accepted" not in capsys.readouterr().out


@pytest.mark.parametrize("given", ["mina.member@example.com", "17"])
def test_an_invalid_user_uuid_is_refused_before_sending(sandbox: SandboxServer, given: str) -> None:
    hook = WorkspaceHook()
    with pytest.raises(WorkspaceInputError, match=r"expected the UUID of a user, not a.*pass user_email"):
        hook.delete_member(user_uuid=given)
    with pytest.raises(WorkspaceInputError, match="expected the UUID of a user, not a"):
        hook.add_dashboard_collaborator(dashboard_id=1, user_uuid=given)
    with pytest.raises(AirflowFailException, match=r"user\.uuid in the list of members"):
        run(members.WorkspaceDeleteMemberOperator, user_uuid=given)
    assert sandbox.requests() == []


def user(number: int, email: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a row about the user ``…0c1`` to ``…0c9``."""
    return {
        "id": f"0190C0DE-0000-4000-8000-0000000000e{number}",
        "user": {"uuid": UUIDS[number], "email": email},
        **more,
    }


UUIDS = [f"0190c0de-0000-4000-8000-0000000000c{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "Pass either user_uuid or user_email, and not both"),
        ({"user_uuid": UUIDS[1], "user_email": "ada@example.com"}, "Pass either user_uuid or user_email, and not both"),
        ({"user_email": "hidden@example.com"}, "No members have the address hidden@example.com"),
        (
            {"user_email": "twin@example.com"},
            f"2 members have the address .* Pass user_uuid, one of {UUIDS[2]}, {UUIDS[3]}",
        ),
        ({"user_email": "ada"}, "is not an e-mail address"),
    ],
)
def test_an_address_of_none_or_several_members_is_an_error(
    sandbox: SandboxServer, arguments: dict[str, Any], says: str
) -> None:
    hidden = {"id": UUIDS[4], "user": {"uuid": None, "email": "hidden@example.com"}}
    people = [user(1, "ada@example.com"), user(2, "twin@example.com"), user(3, "TWIN@example.com")]
    say(sandbox, "list_members", *people, hidden, {"id": UUIDS[5]})
    with pytest.raises(AirflowFailException, match=says):
        run(dashboards.WorkspaceAddDashboardCollaboratorOperator, dashboard_id=1, **arguments)
    assert effects(sandbox) == []


DELETE = (members.WorkspaceDeleteMemberOperator, {"owner_level": None, "allow_last_owner": True})
UPDATE = (members.WorkspaceUpdateMemberOperator, {"level": 8, "owner_level": None})
REMOVE = (dashboards.WorkspaceRemoveDashboardCollaboratorOperator, {"dashboard_id": 1})
STILL, PASS = "The service still shows what it did not find", "belongs to the {1}.* Pass user_uuid='{0}'"


@pytest.mark.parametrize(
    ("task", "given", "says"),
    [
        *((task, UUIDS[1].upper(), STILL) for task in (DELETE, UPDATE)),
        *((task, user(1)["id"], PASS.format(UUIDS[1], "membership, not to the")) for task in (DELETE, UPDATE)),
        (REMOVE, UUIDS[1], STILL),
        (REMOVE, user(1)["id"].lower(), PASS.format(UUIDS[1], "collaborator")),
        (REMOVE, user(3)["id"], PASS.format(UUIDS[3], "membership")),
        *((REMOVE, UUIDS[number], "") for number in (3, 9)),
    ],
)
def test_who_is_not_found_is_looked_up_in_the_lists(sandbox: SandboxServer, task: Any, given: str, says: str) -> None:
    by_uuid = {"id": user(2)["id"], "user_uuid": UUIDS[2]}
    sandbox.inject("say", "list_dashboard_collaborators", body=[user(1, "ada@example.com"), by_uuid], times=None)
    say(sandbox, "list_members", user(1, "ada@example.com"), user(3, "lin@example.com"))
    cls, arguments = task
    if says:
        with pytest.raises((AirflowFailException, WorkspaceNotFoundError), match=says):
            run(cls, user_uuid=given, **arguments)
    else:
        assert run(cls, user_uuid=given, **arguments)["deleted"] is False
    assert effects(sandbox) == []


@pytest.mark.parametrize("organization_id", [SEED.organization_id, None], ids=["no scope", "no organization"])
def test_a_dashboard_look_up_needs_no_members(
    sandbox: SandboxServer, connect: Connect, caplog: pytest.LogCaptureFixture, organization_id: str | None
) -> None:
    """A key for dashboards may not read members, and its connection needs no organization."""
    connect(organization_id=organization_id)
    sandbox.inject("status_before", "list_members", status=403, times=None)
    remove = dashboards.WorkspaceRemoveDashboardCollaboratorOperator
    assert run(remove, dashboard_id=1, user_uuid=SEED.absent_uuid)["deleted"] is False
    assert f"Cannot check that {SEED.absent_uuid} is the id of a user and not of a membership" in caplog.text
