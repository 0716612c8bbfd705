"""Finding a user by address or id, and whether a user is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.models import DashboardCollaborator, Member, Page, User
from airflow_provider_workspace.api.operations import ListDashboardCollaborators, ListMembers
from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
)
from airflow_provider_workspace.procedures.users import check_no_collaborator, check_no_member, find_user, members_of
from tests.unit.procedures.drive import drive

if TYPE_CHECKING:
    from collections.abc import Callable

MEMBERS = Page[Member](
    results=[
        Member(id="M1", user=User(uuid="U1", email="Ada@Example.com")),
        Member(id="m2", user=User(uuid="u2", email="twin@example.com")),
        Member(id="m3", user=User(uuid="u3", email="TWIN@example.com")),
        Member(id="m4", user=User(uuid=None, email="hidden@example.com")),
        Member(id="m5"),
    ]
)
COLLABORATORS = Page[DashboardCollaborator](
    results=[
        DashboardCollaborator(id="c1", user=User(uuid="U1")),
        DashboardCollaborator(id="c2", user_uuid="u2"),
    ]
)


def organization() -> str:
    return "o"


def find(user_uuid: str | None, email: Any, **options: Any) -> str:
    return drive(find_user(user_uuid, email, organization, 100, **options), lambda _: MEMBERS)


def test_a_person_is_found_by_address() -> None:
    """Letter case does not matter."""
    assert find(None, " ada@example.COM ") == "U1"
    assert find("any", None) == "any"


@pytest.mark.parametrize(
    ("user_uuid", "email", "told"),
    [
        (None, None, "^Pass either user_uuid or user_email, and not both"),
        ("u1", "ada@example.com", "^Pass either user_uuid or user_email, and not both"),
        (None, "nobody@example.com", "^Check user_email: no members have the address nobody@example.com"),
        (None, "hidden@example.com", "^Check user_email: no members have"),
        (None, "twin@example.com", "^Pass user_uuid, one of u2, u3: 2 members have the address"),
        (None, "ada", "is not an e-mail address"),
    ],
)
def test_anything_but_one_person_is_an_error(user_uuid: str | None, email: str | None, told: str) -> None:
    with pytest.raises(WorkspaceInputError, match=told):
        find(user_uuid, email)


def test_an_unknown_address_is_valid_after_an_earlier_try_removed_it() -> None:
    assert find(None, "nobody@example.com", removed=lambda: True) == ""
    assert find(None, "ada@example.com", removed=lambda: True) == "U1"


def is_gone(user_uuid: str) -> None:
    error = WorkspaceNotFoundError("It returned 404.", status=404)
    drive(check_no_member(error, user_uuid, "o", 100), lambda _: MEMBERS)


def is_gone_from_dashboard(
    user_uuid: str, members: Any = MEMBERS, organization: Callable[[], str] = organization
) -> None:
    error = WorkspaceNotFoundError("It returned 404.", status=404)
    listing = ListDashboardCollaborators(project_id="1", dashboard_id=1)
    drive(
        check_no_collaborator(error, user_uuid, listing, members_of(organization, 100)),
        lambda operation: members if isinstance(operation, ListMembers) else COLLABORATORS,
    )


@pytest.mark.parametrize(
    ("check", "given", "told"),
    [
        (is_gone, "u1", "^Try again: the list of members still shows what was not found. It returned 404"),
        (is_gone, "m1", "^Pass user_uuid='U1': the id that was passed belongs to the membership, not to the user"),
        (is_gone_from_dashboard, "u1", "^Try again: the list of collaborators still shows"),
        (is_gone_from_dashboard, "U2", "^Try again: the list of collaborators still shows"),
        (is_gone_from_dashboard, "C1", "^Pass user_uuid='U1': the id that was passed belongs to the collaborator"),
        (is_gone_from_dashboard, "c2", "^Pass user_uuid='u2': the id that was passed belongs to the collaborator"),
        (is_gone_from_dashboard, "m2", "^Pass user_uuid='u2': the id that was passed belongs to the membership"),
    ],
)
def test_a_user_in_a_list_is_not_gone(check: Callable[[str], None], given: str, told: str) -> None:
    with pytest.raises(WorkspaceNotFoundError, match=told):
        check(given)


def test_a_user_in_no_list_is_gone() -> None:
    is_gone("u9")
    is_gone_from_dashboard("u9")
    is_gone_from_dashboard("u3")  # a member, but no collaborator


def test_a_dashboard_look_up_needs_no_members(caplog: pytest.LogCaptureFixture) -> None:
    """A key for dashboards may not read members, and its connection needs no organization."""

    def no_organization() -> str:
        raise WorkspaceConfigError

    is_gone_from_dashboard("u9", members=WorkspacePermissionError("403", status=403))
    is_gone_from_dashboard("u9", organization=no_organization)
    assert [text.partition(":")[0] for text in caplog.messages] == [
        "Cannot check that u9 is the id of a user and not of a membership"
    ] * 2


def test_an_invalid_organization_id_is_refused_before_sending() -> None:
    with pytest.raises(WorkspaceInputError, match="organization_id holds lone surrogates"):
        members_of(lambda: "\ud800", 100)
