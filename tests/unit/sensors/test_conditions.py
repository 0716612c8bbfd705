"""The conditions of sensors: when they hold, their messages, and which lists they read."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import (
    WorkspaceDomainVerifiedSensor,
    WorkspaceInvitesSettledSensor,
    WorkspaceMembersJoinedSensor,
    WorkspaceProjectOnboardedSensor,
    WorkspaceProjectReceivingEventsSensor,
)
from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.events import first_event

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect(max_attempts=1, consistency_time=0)


def say(sandbox: SandboxServer, operation: str, *rows: dict[str, Any], count: int | None = None) -> None:
    """Let a list have these rows."""
    body = {"count": len(rows) if count is None else count, "next": None, "results": list(rows)}
    sandbox.inject("say", operation, body=body, times=None)


def say_people(sandbox: SandboxServer, invites: dict[str, bool], members: list[str], **options: Any) -> None:
    """Let the lists have these people: invites, with whether they have expired, and members."""
    rows = [{"id": email, "target_email": email, "is_expired": expired} for email, expired in invites.items()]
    say(sandbox, "list_invites", *rows, **options)
    say(sandbox, "list_members", *({"id": email, "user": {"email": email}} for email in members))


def poll(cls: type[Any], **arguments: Any) -> tuple[bool, str]:
    """Return whether the condition holds, and its message."""
    result = cls(task_id="wait", **arguments).poll_once(first=True)
    return (result.done, result.message) if result else (False, "")


def joined(*emails: str, **more: Any) -> tuple[type[Any], dict[str, Any]]:
    return WorkspaceMembersJoinedSensor, {"emails": list(emails), **more}


def settled(*emails: str) -> tuple[type[Any], dict[str, Any]]:
    return WorkspaceInvitesSettledSensor, {"emails": list(emails)}


@pytest.mark.parametrize(
    ("sensor", "done", "message"),
    [
        (
            joined("In@b.de", "open@b.de", "late@b.de", "no@b.de"),
            False,
            "1 of 4 joined, 4 needed; missing: open@b.de (invited), late@b.de (invite expired), no@b.de (no invite)",
        ),
        (joined("in@b.de", "no@b.de", join=0.5), True, "1 of 2 joined, 1 needed; missing: no@b.de (no invite)"),
        (joined(*(f"p{number}@b.de" for number in range(25))), False, "p19@b.de (no invite) and 5 more"),
        (
            settled("in@b.de", "open@b.de", "late@b.de", "no@b.de"),
            False,
            "of 4 invites 1 accepted, 1 expired, 1 gone, 1 open; missing: open@b.de (open)",
        ),
        (settled("in@b.de", "late@b.de"), True, "of 2 invites 1 accepted, 1 expired, 0 gone, 0 open"),
    ],
)
def test_conditions_about_people(sandbox: SandboxServer, sensor: Any, done: Any, message: str) -> None:
    say_people(sandbox, {"open@b.de": False, "late@b.de": True}, ["in@b.de"])
    cls, arguments = sensor
    found, said = poll(cls, **arguments)
    assert (found, said.endswith(message)) == (done, True)


EVENTS, ONBOARDED = WorkspaceProjectReceivingEventsSensor, WorkspaceProjectOnboardedSensor
SURVEYS = {"product": "surveys"}
BY_PRODUCT = {"has_completed_onboarding_for": {"replay": True, "surveys": False}}


@pytest.mark.parametrize(
    ("cls", "arguments", "fields", "done", "message"),
    [
        (EVENTS, {}, {"ingested_event": True}, True, "has received events"),
        (EVENTS, {}, {}, False, "has received no event yet"),
        (ONBOARDED, {}, {}, False, "is not yet onboarded"),
        (ONBOARDED, {}, {"completed_snippet_onboarding": True}, True, "is onboarded"),
        (ONBOARDED, {}, BY_PRODUCT, True, "is onboarded"),
        (ONBOARDED, SURVEYS, BY_PRODUCT, False, "is not yet onboarded for surveys"),
        (ONBOARDED, SURVEYS, {"has_completed_onboarding_for": ["surveys"]}, False, "is not yet onboarded for surveys"),
    ],
)
def test_conditions_about_projects(
    sandbox: SandboxServer, cls: type[Any], arguments: dict[str, Any], fields: dict[str, Any], done: Any, message: str
) -> None:
    say(sandbox, "list_projects", {"id": 7, "name": "Shop", **fields})
    assert poll(cls, project_id=7, **arguments) == (done, f"project 7 ('Shop') {message}")


@pytest.mark.parametrize(
    ("verified", "message"),
    [
        (True, "example.com is verified"),
        (False, "example.com is not verified; the TXT record in its DNS must have the value abc"),
    ],
)
def test_a_domain_that_is_not_verified_shows_its_challenge(sandbox: SandboxServer, verified: Any, message: str) -> None:
    row = {"id": SEED.domain_id, "domain": "example.com", "verification_challenge": "abc", "is_verified": verified}
    say(sandbox, "list_domains", row)
    found = poll(WorkspaceDomainVerifiedSensor, domain_id=SEED.domain_id.upper(), ask_verification=False)
    assert found == (verified, message)


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (
            WorkspaceDomainVerifiedSensor,
            {"domain_id": SEED.absent_uuid, "ask_verification": False},
            f"domain {SEED.absent_uuid} not found",
        ),
        (EVENTS, {"project_id": "9"}, "project 9 not found"),
        (ONBOARDED, {"project_id": 9}, "project 9 not found"),
        (*joined(), "emails must be a list with at least one address"),
        (WorkspaceMembersJoinedSensor, {"emails": {"in@b.de": 1}}, "emails must be a list with at least one address"),
        (*joined("in"), "'in' is not an e-mail address: the address needs exactly one @"),
        *((*joined("in@b.de", join=share), "a share above 0 and up to 1") for share in ("most", 0, 1.1, -1, True)),
        (*joined("in@b.de", join=float("nan")), "a share above 0 and up to 1"),
    ],
)
def test_a_condition_that_can_never_hold_fails_at_once(cls: type[Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        poll(cls, **arguments)


@pytest.mark.parametrize(
    ("share", "people", "needed"),
    [("all", 3, 3), ("any", 3, 1), (0.5, 3, 2), ("0.34", 3, 2), (0.01, 300, 3), (0.7, 10, 7), (0.07, 100, 7)],
)
def test_a_share_needs_so_many_people(sandbox: SandboxServer, share: Any, people: int, needed: int) -> None:
    emails = [f"p{number}@b.de" for number in range(people)]
    for count in (needed - 1, needed):
        say_people(sandbox, {}, emails[:count])
        cls, arguments = joined(*emails, join=share)
        assert poll(cls, **arguments)[0] is (count == needed)
        sandbox.clear_faults()


@pytest.mark.parametrize(
    ("sensor", "done"),
    [
        (settled("in@b.de"), True),
        (settled("in@b.de", "gone@b.de"), False),
        (settled("late@b.de"), False),
        (joined("in@b.de", "gone@b.de", join=0.5), True),
        (joined("gone@b.de"), False),
    ],
)
def test_an_incomplete_list_proves_only_its_rows(sandbox: SandboxServer, sensor: Any, done: Any) -> None:
    cls, arguments = sensor
    say_people(sandbox, {"late@b.de": True}, ["in@b.de"], count=3)
    found, said = poll(cls, **arguments)
    assert (found, "A list is short: " in said) == (done, not done)
    sandbox.clear_faults()
    say_people(sandbox, {"late@b.de": True}, ["in@b.de"])
    assert poll(cls, **arguments)[0] is (done or cls is WorkspaceInvitesSettledSensor)


@pytest.mark.parametrize("emails", [["gone@b.de"], ["late@b.de"], ["in@b.de", "gone@b.de"], ["in@b.de"]])
def test_missing_invites_may_be_listed_later(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, emails: list[str]
) -> None:
    connect(consistency_time=120)
    say_people(sandbox, {"late@b.de": True}, ["in@b.de"])
    sensor = WorkspaceInvitesSettledSensor(task_id="settled", emails=emails)
    early: Any = sensor.poll_once(first=True)
    assert early.done is (emails == ["in@b.de"])
    assert early.message.endswith("Polling again: new invites may not be listed for 120 s") is not early.done
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + 121)
    assert sensor.poke({}).is_done


# Reading


def reads(sandbox: SandboxServer) -> list[tuple[str, int]]:
    """Return the number of pages that were read of each list of people."""
    asked = [entry["operation"] for entry in sandbox.requests()]
    return [(name, asked.count(name)) for name in ("list_invites", "list_members")]


def test_members_are_read_again_only_if_they_can_have_changed(sandbox: SandboxServer, connect: Connect) -> None:
    connect(page_size=2)
    invite = WorkspaceHook().create_invite(target_email="ada@example.com")
    other = WorkspaceHook().create_invite(target_email="lin@example.com")
    sensor = WorkspaceMembersJoinedSensor(task_id="wait", emails=["nobody@example.com"])
    seen = 0
    for act, pages in (
        (lambda: None, 3),  # five members
        (lambda: None, 1),  # as many members as before, and no invite is gone
        (lambda: sandbox.accept_invite(str(invite.id)), 3),
        (lambda: WorkspaceHook().delete_invite(invite_id=str(other.id)), 3),  # an invite is gone
        (lambda: None, 1),
        (lambda: sandbox.add_members(1), 4),
    ):
        act()
        assert not sensor.poke({}).is_done
        assert reads(sandbox)[1][1] - seen == pages
        seen = reads(sandbox)[1][1]


def test_of_several_invites_an_open_one_counts(sandbox: SandboxServer, connect: Connect) -> None:
    connect(page_size=2)
    rows = [{"id": str(number), "target_email": "Ada@example.com", "is_expired": number != 1} for number in range(3)]
    say(sandbox, "list_invites", *rows, {"id": "3", "target_email": None})
    assert not poll(WorkspaceInvitesSettledSensor, emails=["ada@example.com"])[0]
    assert reads(sandbox)[1][1] == 0, "all addresses of interest still have an invite, so none of them has joined"


@pytest.mark.parametrize(
    ("status", "detail", "again"),
    [
        *((status, "no record", True) for status in (400, 500)),
        (403, "This action does not support Personal API Key access", True),
        (403, "API key missing required scope 'organization:write'", False),
        (403, "A personal API key with another scope is needed", False),
        *((status, "", False) for status in (403, 404)),
    ],
)
def test_only_some_refusals_of_the_verification_end_the_wait(
    sandbox: SandboxServer, status: int, detail: str, *, again: bool
) -> None:
    domain = WorkspaceHook().create_domain(domain="new.example.com")
    sandbox.inject("status_before", "verify_domain", status=status, detail=detail)
    sensor = WorkspaceDomainVerifiedSensor(task_id="wait", domain_id=str(domain.id))
    if again:
        assert not sensor.poke({}).is_done
    else:
        with pytest.raises(AirflowFailException, match=str(status)):
            sensor.poke({})


# Conditions of triggers, which come from Airflow's database


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        *((name, {}, "condition must be one of domain_verified") for name in ("moon_full", [])),
        *(
            ("domain_verified", arguments, "arguments must be those of the condition domain_verified: domain_id")
            for arguments in (None, {}, {"domain_id": "d", "x": 1})
        ),
        ("domain_verified", {"domain_id": None}, "domain_id of the condition domain_verified must not be of"),
        ("members_joined", {"emails": 5}, "emails of the condition members_joined must not be of type int"),
        ("members_joined", {"emails": [5]}, "emails of the condition members_joined must not be of type list"),
        ("members_joined", {"emails": ["a@b.de"], "share": True}, "share of the condition .* of type bool"),
        ("members_joined", {"emails": ["a@b.de"], "share": float("nan")}, "share of the condition .* of type float"),
        ("project_onboarded", {"project_id": "7", "product": 5}, "product of the condition .* of type int"),
    ],
)
def test_a_trigger_with_an_invalid_condition_is_refused(name: Any, arguments: Any, message: str) -> None:
    with pytest.raises(WorkspaceInputError, match=message):
        asyncio.run(first_event(WorkspaceWaitTrigger(condition=name, arguments=arguments)))
