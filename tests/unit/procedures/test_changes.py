"""Updates and deletes against a service whose responses may be untrue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.models import Domain, Invite, Page
from airflow_provider_workspace.api.operations import DeleteInvite, GetDomain, ListInvites, UpdateDomain
from airflow_provider_workspace.api.procedure import send_one
from airflow_provider_workspace.errors import (
    WorkspaceNotAppliedError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
    WorkspaceRequestError,
    WorkspaceServerError,
)
from airflow_provider_workspace.procedures.changes import (
    CHECK_SECONDS,
    change_and_check,
    check_not_listed,
    delete_if_present,
    is_listed,
)
from tests.unit.procedures.drive import drive

if TYPE_CHECKING:
    from airflow_provider_workspace.api.procedure import Procedure

INVITE_ID = "0190c0de-0000-4000-8000-0000000000e1"
DELETE = DeleteInvite(organization_id="o", invite_id=INVITE_ID)
INVITES = ListInvites(organization_id="o")
LISTED = Page[Invite](results=[Invite(id=INVITE_ID.upper())])
FORBIDDEN = WorkspacePermissionError("403", status=403)
CHANGE = UpdateDomain(organization_id="o", domain_id=INVITE_ID, sso_enforcement="saml", saml_x509_cert="secret")
GET = GetDomain(organization_id="o", domain_id=INVITE_ID)


def not_found(*, from_service: bool, outcome: str = "rejected") -> WorkspaceNotFoundError:
    error = WorkspaceNotFoundError("It returned 404.", status=404, outcome=outcome)
    error.from_service = from_service
    return error


NOT_FOUND = not_found(from_service=True)
GONE_AFTER_A_LOST_ANSWER = not_found(from_service=True, outcome="unknown")


def delete(answer: Any, *lists: Any, if_missing: str = "fail", pauses: list[float] | None = None) -> bool:
    """Delete a record. ``lists`` are the results of the reads; the last one is repeated."""
    left = list(lists)

    def respond(operation: Any) -> Any:
        if operation is DELETE:
            return answer
        return left.pop(0) if len(left) > 1 else left[0]

    procedure = delete_if_present(
        "thing",
        DELETE,
        if_missing,
        exists=(lambda: is_listed(INVITES, INVITE_ID)) if lists else None,
        consistency_time=120.0,
    )
    return drive(procedure, respond, pauses)


@pytest.mark.parametrize(
    ("answer", "if_missing", "deleted"),
    [
        (None, "fail", True),
        (NOT_FOUND, "ignore", False),
        (GONE_AFTER_A_LOST_ANSWER, "fail", True),
    ],
)
def test_a_delete_says_whether_it_deleted(answer: Any, if_missing: str, deleted: bool) -> None:  # noqa: FBT001
    assert delete(answer, if_missing=if_missing) is deleted


@pytest.mark.parametrize("error", [NOT_FOUND, WorkspaceServerError("500", status=500)])
def test_a_delete_that_fails_is_an_error(error: WorkspaceRequestError) -> None:
    with pytest.raises(type(error)):
        delete(error)


def test_a_404_of_a_proxy_is_an_error() -> None:
    with pytest.raises(WorkspaceNotFoundError, match=r"^Check the host of the connection: .* It returned 404\.$"):
        delete(not_found(from_service=False), if_missing="ignore")


@pytest.mark.parametrize("from_service", [True, False])
@pytest.mark.parametrize("listed", [True, False])
def test_the_list_decides_whether_a_record_is_gone(*, from_service: bool, listed: bool) -> None:
    """The body of the 404 does not matter: a proxy may return JSON, too."""
    invites = ListInvites(organization_id="o")
    page = Page[Invite](results=[Invite(id=INVITE_ID.upper())] if listed else [])
    procedure = delete_if_present(
        "thing",
        DELETE,
        "ignore",
        exists=None,
        consistency_time=120.0,
        check_gone=lambda error: check_not_listed(error, invites, INVITE_ID),
    )

    def answer(operation: Any) -> Any:
        return page if operation is invites else not_found(from_service=from_service)

    if not listed:
        assert drive(procedure, answer) is False
        return
    with pytest.raises(WorkspaceNotFoundError, match=r"^Try again: the list of its kind still shows what") as error:
        drive(procedure, answer)
    assert not error.value.permanent


def test_a_delete_is_done_when_the_record_leaves_the_list() -> None:
    pauses: list[float] = []
    assert delete(None, LISTED, LISTED, Page[Invite](results=[]), pauses=pauses)
    assert pauses == [0.5, 5.0]


def test_a_delete_without_effect_is_an_error() -> None:
    pauses: list[float] = []
    with pytest.raises(WorkspaceNotAppliedError, match=r"the service says that the thing was deleted") as error:
        delete(None, LISTED, pauses=pauses)
    assert sum(pauses) == CHECK_SECONDS
    assert not error.value.permanent


def test_a_delete_that_cannot_be_checked_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert delete(None, FORBIDDEN)
    assert "this API key may not check it" in caplog.text


def changed(answer: Domain, *reads: Any, pauses: list[float] | None = None) -> Domain:
    """Update a domain. ``reads`` are the results of the reads; the last one is repeated."""
    left = list(reads)

    def respond(operation: Any) -> Any:
        if operation is CHANGE:
            return answer
        return left.pop(0) if len(left) > 1 else left[0]

    def read() -> Procedure[Domain | None]:
        return send_one(GET)

    return drive(change_and_check(CHANGE, read, 120.0), respond, pauses)


DONE = Domain(id=INVITE_ID, sso_enforcement="saml")


def test_an_update_shown_in_its_response_is_not_read_back() -> None:
    assert changed(DONE) is DONE


@pytest.mark.parametrize("answer", [Domain(), Domain(id=INVITE_ID)])
def test_an_update_not_shown_in_its_response_is_read_back(answer: Domain) -> None:
    pauses: list[float] = []
    assert changed(answer, Domain(id=INVITE_ID, sso_enforcement=""), None, DONE, pauses=pauses) is DONE
    assert pauses == [0.5, 5.0]


def test_an_update_without_effect_is_an_error() -> None:
    with pytest.raises(WorkspaceNotAppliedError, match="UpdateDomain was done"):
        changed(Domain(), Domain(id=INVITE_ID, sso_enforcement=""))


def test_an_update_that_cannot_be_checked_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    shown_without = Domain(id=INVITE_ID)
    assert changed(Domain(), shown_without) is shown_without
    assert "does not show these fields: sso_enforcement" in caplog.text
    answer = Domain()
    assert changed(answer, FORBIDDEN) is answer


def test_an_incomplete_list_does_not_prove_a_delete() -> None:
    short = Page[Invite](results=[], count=1, next=None)
    with pytest.raises(WorkspaceNotAppliedError, match=r"The list is too short to tell\.$") as error:
        delete(None, short)
    assert error.value.outcome == "unknown"
