"""``where`` and ``fields`` of list operators: validation and comparison."""

from __future__ import annotations

import time
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.models import Resource, User
from airflow_provider_workspace.operators import dashboards, domains, invites, members, projects
from airflow_provider_workspace.operators.row_filter import filter_rows
from airflow_provider_workspace.procedures.matching import read_where
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import say

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer


MEMBERS = members.WorkspaceListMembersOperator
INVITES = invites.WorkspaceListInvitesOperator
DOMAINS = domains.WorkspaceListDomainsOperator
PROJECTS = projects.WorkspaceListProjectsOperator
COLLABORATORS = partial(dashboards.WorkspaceListDashboardCollaboratorsOperator, dashboard_id=1)
LEVEL = r"expected a whole number from 0, or member \(1\) or admin \(8\) or owner \(15\)"


def run(cls: Any, **arguments: Any) -> Any:
    return cls(task_id="list", **arguments).execute({})


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (MEMBERS, {"where": {"user.emial": "a@example.com"}}, "where names 'user.emial', .* did you mean 'user.email'"),
        (MEMBERS, {"where": {"email": "a@example.com"}}, "which is unknown: did you mean 'user.email'"),
        (MEMBERS, {"where": {"level.number": 1}}, "where names 'level.number', which is unknown"),
        (MEMBERS, {"where": {"": 1}}, "where names ''"),
        (MEMBERS, {"where": {"user.": 1}}, "where names 'user.'"),
        (MEMBERS, {"fields": ["is_2fa"]}, "fields names 'is_2fa', .* did you mean 'is_2fa_enabled'"),
        (INVITES, {"where": {"user.email": "a@example.com"}}, "which is unknown: .* Known fields are id, target_email"),
        (DOMAINS, {"where": {"is_verifed": True}}, "did you mean 'is_verified'"),
        (PROJECTS, {"fields": ["nmae"]}, "did you mean 'name'"),
        (PROJECTS, {"fields": ["api_token"]}, "Set return_secrets=True: fields names 'api_token', which is a secret"),
        (PROJECTS, {"where": {"api_token": "x"}}, "where names 'api_token', which is a secret"),
        (MEMBERS, {"where": {"level": "owners"}}, rf"where compares level with 'owners'; {LEVEL}"),
        (INVITES, {"where": {"level": [1, True]}}, rf"where compares level with something of type bool; {LEVEL}"),
        (COLLABORATORS, {"where": {"level": "admin"}}, r"where compares level with 'admin'; expected a whole number\."),
        (MEMBERS, {"where": {"user.id": "seven"}}, "where compares user.id with 'seven'; expected int"),
        (MEMBERS, {"where": {"user.email": 7}}, "where compares user.email with something of type int; expected str"),
        (MEMBERS, {"where": {"id": 7}}, "where compares id with something of type int; expected str"),
        *((MEMBERS, {"where": {"last_login": age}}, r"where compares last_login with a wrong age; .* \{'before': '90d'")
          for age in ({"before": 90}, {"before": "90d", "after": "1d"}, {"before": "2026-01-01"})),
        (MEMBERS, {"where": {"last_login": {"after": "90d"}}}, "where compares last_login with something of type dict"),
        (INVITES, {"where": {"is_expired": "perhaps"}}, "where compares is_expired with 'perhaps'; expected bool"),
    ],
)  # fmt: skip
def test_impossible_filters_are_refused_before_sending(
    sandbox: SandboxServer, cls: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=f"WorkspaceInputError: .*{message}.*Nothing was sent"):
        run(cls, **arguments)
    assert sandbox.requests() == []


@pytest.mark.parametrize(
    ("cls", "where", "count"),
    [
        (MEMBERS, {"user.email": " MINA.member@EXAMPLE.com"}, 1),
        (MEMBERS, {"user.email": ["Mina.Member@example.com", "nobody@example.com"]}, 1),
        (MEMBERS, {"level": "1"}, 3),
        (MEMBERS, {"level": "Owner"}, 1),
        (MEMBERS, {"level": ["member", "owner"]}, 4),
        (MEMBERS, {"is_2fa_enabled": "false"}, 2),
        (MEMBERS, {"last_login": None}, 0),
        (MEMBERS, {"last_login": {"before": "0d"}}, 5),
        (MEMBERS, {"last_login": {"before": "36500d"}}, 0),
        (MEMBERS, {"user.uuid": SEED.member_uuid.replace("-", "").upper()}, 1),
        (MEMBERS, {"user.hedgehog_config.color": "red"}, 0),
        (INVITES, {"is_expired": True}, 1),
        (PROJECTS, {"has_completed_onboarding_for.product": True}, 0),
        (PROJECTS, {"extra.no_such_field": None}, 1),
        (PROJECTS, {"extra.name": "Default project"}, 1),
        (PROJECTS, {"id": "1"}, 1),
        (COLLABORATORS, {"level": "37"}, 1),
    ],
)
@pytest.mark.usefixtures("sandbox")
def test_rows_are_compared_by_the_type_of_the_field(cls: Any, where: Any, count: int) -> None:
    assert run(cls, where=where, count_only=True) == count


class Page(Resource):
    """A record of an author, whose fields are not only those of JSON."""

    seen_at: datetime | None = None
    link: str | None = None
    person: User | None = None

    @property
    def label(self) -> str:
        return "a page"


PAGE = Page.model_validate(
    {
        "seen_at": "2026-01-02T03:04:05Z",
        "link": "https://ada:pass@example.com/",
        "person": {"email": "ada@example.com", "nick": "ada"},
        "view_token": "t",
        "shape": {"width": 7},
    }
)


@pytest.mark.parametrize("where", [
    {"seen_at": "2026-01-02T03:04:05Z"}, {"seen_at": {"before": "0d"}}, {"link": "https://ada:***@example.com/"},
    {"person.email": "ADA@example.com"}, {"person.nick": "ada"}, {"person.nick.length": None},
    {"extra.shape.width": 7}, {"extra.shape": {"width": 7}}, {"extra.label": None}, {"extra.view_token": None},
    {"person.first_name": None, "person.email": ["x@example.com", "ada@example.com"]},
])  # fmt: skip
def test_where_compares_what_rows_show(where: Any) -> None:
    wanted = read_where(where, time.time(), lambda _, value: value)
    rows = filter_rows([PAGE], where=wanted, fields=[], count_only=False, max_rows=1, return_secrets=False)
    assert rows == [PAGE.to_dict()]


def test_where_compares_secrets_that_rows_show() -> None:
    wanted = {"extra.view_token": ["t"], "link": [PAGE.link]}
    rows = filter_rows([PAGE], where=wanted, fields=[], count_only=False, max_rows=1, return_secrets=True)
    assert rows == [PAGE.to_dict(return_secrets=True)]


@pytest.mark.usefixtures("sandbox")
def test_only_times_have_an_age() -> None:
    with pytest.raises(AirflowFailException, match=r"Compare only times with 'before': user\.email"):
        run(MEMBERS, where={"user.email": {"before": "90d"}})


AGE = {"before": "90d"}


def _without(row: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != field}


@pytest.mark.parametrize(
    ("field", "selection"),
    [
        ("last_login", {"where": {"last_login": AGE}}),
        ("last_login", {"where": {"last_login": AGE}, "count_only": True}),
        ("last_login", {"where": {"last_login": None}}),
        ("level", {"where": {"level": 15}}),
        ("is_2fa_enabled", {"where": {"is_2fa_enabled": False}}),
        ("last_login", {"fields": ["user.email", "last_login"]}),
        ("user", {"where": {"user.email": "a@example.com"}}),
    ],
)
@pytest.mark.parametrize("change", ["renamed", "of another type"])
def test_a_field_that_is_not_sent_is_not_null(
    sandbox: SandboxServer, change: str, field: str, selection: dict[str, Any]
) -> None:
    rows = run(MEMBERS)
    others = {"now": rows[0][field]} if change == "renamed" else {field: ["of", "another", "type"]}
    say(sandbox, "list_members", *(_without(row, field) | others for row in rows))
    with pytest.raises(AirflowFailException, match=rf"\[field-not-sent\] .* ListMembers gave .* {field}"):
        run(MEMBERS, **selection)


def test_a_single_row_without_the_field_has_no_age(sandbox: SandboxServer) -> None:
    first, second, *_ = run(MEMBERS)
    say(sandbox, "list_members", first, _without(second, "last_login"))
    assert run(MEMBERS, where={"last_login": None}, count_only=True) == 1
    with pytest.raises(AirflowFailException, match="gave a row without last_login, whose age where compares"):
        run(MEMBERS, where={"user.email": "nobody@example.com", "last_login": AGE})


def test_null_is_a_value_and_an_empty_list_has_no_fields(sandbox: SandboxServer) -> None:
    first, second, *_ = run(MEMBERS)
    say(sandbox, "list_members", first, second | {"last_login": None, "user": None}, times=1)
    where = {"last_login": {"before": "36500d"}, "user.email": None}
    assert run(MEMBERS, where=where, count_only=True) == 1
    say(sandbox, "list_members")
    assert run(MEMBERS, where=where) == []


@pytest.mark.parametrize("path", ["extra.never", "user.hedgehog_config.never"])
def test_other_fields_may_be_absent_but_have_no_age_then(sandbox: SandboxServer, path: str) -> None:
    row = run(MEMBERS)[0]
    row["user"]["hedgehog_config"] = {"color": "red"}
    say(sandbox, "list_members", row)
    assert run(MEMBERS, where={path: None}, fields=[path]) == [{path: None}]
    with pytest.raises(AirflowFailException, match=rf"gave a row without {path}"):
        run(MEMBERS, where={path: AGE})


@pytest.mark.usefixtures("sandbox")
def test_fields_selects_keys_of_rows() -> None:
    assert run(PROJECTS, fields=["name", "extra.name", "extra.what"]) == [
        {"name": "Default project", "extra.name": "Default project", "extra.what": None}
    ]
    (row,) = run(PROJECTS, fields=["api_token"], return_secrets=True)
    assert row["api_token"]
    assert list(run(COLLABORATORS, fields=["user.email", "level"])[0]) == ["user.email", "level"]
