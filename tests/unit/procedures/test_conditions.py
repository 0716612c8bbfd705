"""The conditions of sensors: when they hold, and their messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_workspace.api.models import Domain, ProjectItem
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.conditions import (
    CONDITIONS,
    MembersJoined,
    Result,
    build_condition,
    check_addresses,
    check_share,
    evaluate,
)
from airflow_provider_workspace.procedures.snapshot import Snapshot


def project(**fields: Any) -> Snapshot:
    return Snapshot(projects={"7": ProjectItem(id=7, name="Shop", **fields)})


def domain(**fields: Any) -> Snapshot:
    return Snapshot(domains={"d1": Domain(id="d1", domain="example.com", verification_challenge="abc", **fields)})


PEOPLE = Snapshot(invites={"open@b.de": False, "late@b.de": True}, members={"in@b.de"})


@pytest.mark.parametrize(
    ("name", "arguments", "seen", "done", "message"),
    [
        ("domain_verified", {"domain_id": "d1"}, domain(is_verified=True), True, "example.com is verified"),
        (
            "domain_verified",
            {"domain_id": "d1"},
            domain(),
            False,
            "example.com is not verified; the TXT record in its DNS must have the value abc",
        ),
        (
            "members_joined",
            {"emails": ["In@b.de", "open@b.de", "late@b.de", "no@b.de"]},
            PEOPLE,
            False,
            "1 of 4 joined, 4 needed; missing: open@b.de (invited), late@b.de (invite expired), no@b.de (no invite)",
        ),
        (
            "members_joined",
            {"emails": ["in@b.de", "no@b.de"], "share": 0.5},
            PEOPLE,
            True,
            "1 of 2 joined, 1 needed; missing: no@b.de (no invite)",
        ),
        ("members_joined", {"emails": ["in@b.de"]}, PEOPLE, True, "1 of 1 joined, 1 needed"),
        (
            "invites_settled",
            {"emails": ["in@b.de", "open@b.de", "late@b.de", "no@b.de"]},
            PEOPLE,
            False,
            "of 4 invites 1 accepted, 1 expired, 1 gone, 1 open; missing: open@b.de (open)",
        ),
        (
            "invites_settled",
            {"emails": ["in@b.de", "late@b.de"]},
            PEOPLE,
            True,
            "of 2 invites 1 accepted, 1 expired, 0 gone, 0 open",
        ),
        (
            "project_receiving_events",
            {"project_id": "7"},
            project(ingested_event=True),
            True,
            "project 7 ('Shop') has received events",
        ),
        (
            "project_receiving_events",
            {"project_id": "7"},
            project(),
            False,
            "project 7 ('Shop') has received no event yet",
        ),
        ("project_onboarded", {"project_id": "7"}, project(), False, "project 7 ('Shop') is not yet onboarded"),
        (
            "project_onboarded",
            {"project_id": "7"},
            project(completed_snippet_onboarding=True),
            True,
            "project 7 ('Shop') is onboarded",
        ),
        (
            "project_onboarded",
            {"project_id": "7"},
            project(has_completed_onboarding_for={"replay": True, "surveys": False}),
            True,
            "project 7 ('Shop') is onboarded",
        ),
        (
            "project_onboarded",
            {"project_id": "7", "product": "surveys"},
            project(has_completed_onboarding_for={"replay": True, "surveys": False}),
            False,
            "project 7 ('Shop') is not yet onboarded for surveys",
        ),
        (
            "project_onboarded",
            {"project_id": "7", "product": "surveys"},
            project(has_completed_onboarding_for=["surveys"]),
            False,
            "project 7 ('Shop') is not yet onboarded for surveys",
        ),
    ],
)
def test_conditions_evaluate_a_snapshot(
    name: str,
    arguments: dict[str, Any],
    seen: Snapshot,
    done: bool,  # noqa: FBT001
    message: str,
) -> None:
    result = build_condition(name, arguments).evaluate(seen)
    assert (result.done, result.message, result.found) == (done, message, True)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("domain_verified", {"domain_id": "d9"}, "domain d9 not found"),
        ("project_receiving_events", {"project_id": "9"}, "project 9 not found"),
        ("project_onboarded", {"project_id": "9"}, "project 9 not found"),
    ],
)
def test_a_missing_resource_is_an_error(name: str, arguments: dict[str, Any], message: str) -> None:
    assert build_condition(name, arguments).evaluate(project()) == Result(done=False, message=message, found=False)


@pytest.mark.parametrize(
    ("share", "people", "needed"),
    [(1.0, 3, 3), (0.0, 3, 1), (0.5, 3, 2), (0.34, 3, 2), (0.01, 300, 3), (0.7, 10, 7), (0.07, 100, 7)],
)
def test_required_number_from_share(share: float, people: int, needed: int) -> None:
    emails = [f"p{number}@b.de" for number in range(people)]
    condition = MembersJoined(emails, share)
    assert not condition.evaluate(Snapshot(members=set(emails[: needed - 1]))).done
    assert condition.evaluate(Snapshot(members=set(emails[:needed]))).done


def test_a_message_names_at_most_twenty_people() -> None:
    message = MembersJoined([f"p{number}@b.de" for number in range(25)]).evaluate(Snapshot()).message
    assert message.count("(no invite)") == 20
    assert message.endswith("p19@b.de (no invite) and 5 more")


@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_selects_its_addresses(name: str) -> None:
    about_people = CONDITIONS[name].subject == "people"
    condition = build_condition(
        name, {"emails": ["In@b.de"]} if about_people else {f"{name.partition('_')[0]}_id": "7"}
    )
    assert condition.wanted() == ({"in@b.de"} if about_people else None)


def test_invalid_addresses_are_refused() -> None:
    assert check_addresses(["In@B.de", "in@b.de", " two@b.de "]) == ["in@b.de", "two@b.de"]
    for wrong in ("in@b.de", [], None, {"in@b.de": 1}):
        with pytest.raises(WorkspaceInputError, match="emails must be a list with at least one address"):
            check_addresses(wrong)
    with pytest.raises(WorkspaceInputError, match="'in' is not an e-mail address: the address needs exactly one @"):
        check_addresses(["in"])


def test_invalid_share_is_refused() -> None:
    assert [check_share(join) for join in ("all", "any", 1, 0.25, "0.25")] == [1.0, 0.0, 1.0, 0.25, 0.25]
    for wrong in ("most", 0, 1.1, -1, True, None, float("nan")):
        with pytest.raises(WorkspaceInputError, match="expected 'all', 'any', or a share above 0 and up to 1"):
            check_share(wrong)


SHORT = "ListInvites counts 3 rows, and 2 came"


@pytest.mark.parametrize(
    ("name", "arguments", "done"),
    [
        ("invites_settled", {"emails": ["in@b.de"]}, True),
        ("invites_settled", {"emails": ["in@b.de", "gone@b.de"]}, False),
        ("invites_settled", {"emails": ["late@b.de"]}, False),
        ("members_joined", {"emails": ["in@b.de", "gone@b.de"], "share": 0.5}, True),
        ("members_joined", {"emails": ["gone@b.de"]}, False),
    ],
)
def test_an_incomplete_list_proves_only_its_rows(name: str, arguments: dict[str, Any], *, done: bool) -> None:
    condition = build_condition(name, arguments)
    result = evaluate(condition, replace(PEOPLE, incomplete=SHORT), 1e9)
    assert result.done == done
    assert result.message.endswith(f". A list is short: {SHORT}") != done
    assert evaluate(condition, PEOPLE, 0.0).done == (name == "invites_settled" or done)


@pytest.mark.parametrize("emails", [["gone@b.de"], ["late@b.de"], ["in@b.de", "gone@b.de"]])
def test_missing_invites_may_be_listed_later(emails: list[str]) -> None:
    condition, seen = build_condition("invites_settled", {"emails": emails}), replace(PEOPLE, consistency_time=120.0)
    early = evaluate(condition, seen, 119.0)
    assert not early.done
    assert early.message.endswith(". Polling again: new invites may not be listed for 120 s")
    assert evaluate(condition, seen, 120.0).done
    assert evaluate(build_condition("invites_settled", {"emails": ["in@b.de"]}), seen, 0.0).done


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("moon_full", {}, "condition must be one of domain_verified"),
        ([], {}, "condition must be one of domain_verified"),
        ("domain_verified", None, "arguments must be those of the condition domain_verified: domain_id"),
        ("domain_verified", {}, "arguments must be those of the condition domain_verified: domain_id"),
        ("domain_verified", {"domain_id": "d", "x": 1}, "arguments must be those of the condition domain_verified"),
        ("domain_verified", {"domain_id": None}, "domain_id of the condition domain_verified must not be of"),
        ("members_joined", {"emails": 5}, "emails of the condition members_joined must not be of type int"),
        ("members_joined", {"emails": [5]}, "emails of the condition members_joined must not be of type list"),
        ("members_joined", {"emails": ["a@b.de"], "share": True}, "share of the condition .* of type bool"),
        ("members_joined", {"emails": ["a@b.de"], "share": float("nan")}, "share of the condition .* of type float"),
        ("project_onboarded", {"project_id": "7", "product": 5}, "product of the condition .* of type int"),
    ],
)
def test_an_invalid_condition_is_refused(name: Any, arguments: Any, message: str) -> None:
    with pytest.raises(WorkspaceInputError, match=message):
        build_condition(name, arguments)


def test_fields_of_a_condition_are_optional() -> None:
    assert build_condition("project_onboarded", {"project_id": "7", "product": None}) == CONDITIONS[
        "project_onboarded"
    ]("7")
