"""Each sensor against the sandbox: when its condition holds, messages, errors, deferral, and which lists it reads."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import (
    WorkspaceDomainVerifiedSensor,
    WorkspaceInvitesSettledSensor,
    WorkspaceMembersJoinedSensor,
    WorkspaceProjectOnboardedSensor,
    WorkspaceProjectReceivingEventsSensor,
)
from airflow_provider_workspace.version_compat import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)
from tests.audit import say

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from airflow_provider_workspace.sensors.workspace import WorkspaceSensor
    from tests.conftest import Connect


GRACE = "grace.analyst@example.com"
ADA = "ada@example.com"


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect(max_attempts=1, consistency_time=0)


def say_people(sandbox: SandboxServer, invites: dict[str, bool], members: list[str], **options: Any) -> None:
    """Let the lists have these people: invites, with whether they have expired, and members."""
    rows = [{"id": email, "target_email": email, "is_expired": expired} for email, expired in invites.items()]
    say(sandbox, "list_invites", *rows, **options)
    # A member whose user the owner of the key may not see is nobody who is waited for.
    say(sandbox, "list_members", *({"id": email, "user": {"email": email}} for email in members), {"id": "hidden"})


def poll(cls: type[Any], **arguments: Any) -> tuple[bool, str]:
    """Return whether the condition holds, and its message."""
    result = cls(task_id="wait", **arguments).poll_once()
    return (result.done, result.message) if result else (False, "")


def joined(*emails: str, **more: Any) -> tuple[type[Any], dict[str, Any]]:
    return WorkspaceMembersJoinedSensor, {"emails": list(emails), **more}


def settled(*emails: str) -> tuple[type[Any], dict[str, Any]]:
    return WorkspaceInvitesSettledSensor, {"emails": list(emails)}


@pytest.mark.parametrize(
    ("sensor", "done", "message"),
    [
        (joined("In@b.de", "open@b.de", "late@b.de", "no@b.de"), False,
         "1 of 4 joined, 4 needed; missing: open@b.de (invited), late@b.de (invite expired), no@b.de (no invite)"),
        ((WorkspaceMembersJoinedSensor, {"emails": [[["IN@b.de", 1]], [["EMAIL", 1], ["level", 1]]]}), True,
         "1 of 1 joined, 1 needed"),
        ((WorkspaceInvitesSettledSensor, {"emails": [("in@b.de",), {"E-Mail": "In@b.de"}]}), True,
         "of 1 invites 1 accepted"),
        (joined("in@b.de", "no@b.de", join=0.5), True, "1 of 2 joined, 1 needed; missing: no@b.de (no invite)"),
        (joined(*(f"p{number}@b.de" for number in range(25))), False, "p19@b.de (no invite) and 5 more"),
        (settled("in@b.de", "open@b.de", "late@b.de", "no@b.de"), False,
         "of 4 invites 1 accepted, 1 expired, 1 gone, 1 open; missing: open@b.de (open)"),
        (settled("in@b.de", "late@b.de"), True, "of 2 invites 1 accepted, 1 expired, 0 gone, 0 open"),
    ],
)  # fmt: skip
def test_conditions_about_people(sandbox: SandboxServer, sensor: Any, done: Any, message: str) -> None:
    say_people(sandbox, {"open@b.de": False, "late@b.de": True}, ["in@b.de"])
    cls, arguments = sensor
    found, said = poll(cls, **arguments)
    assert (found, message in said) == (done, True)


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
    for spelled in (7, "07\n"):
        assert poll(cls, project_id=spelled, **arguments) == (done, f"project 7 ('Shop') {message}")


@pytest.mark.parametrize(
    ("verified", "message"),
    [
        (True, "example.com is verified"),
        (False, "example.com is not verified; the TXT record in its DNS must have the value abc"),
    ],
)
@pytest.mark.parametrize("listed", [SEED.domain_id, SEED.domain_id.replace("-", "")])
def test_a_domain_that_is_not_verified_shows_its_challenge(
    sandbox: SandboxServer, verified: Any, message: str, listed: str
) -> None:
    row = {"id": listed, "domain": "example.com", "verification_challenge": "abc", "is_verified": verified}
    say(sandbox, "list_domains", row)
    found = poll(
        WorkspaceDomainVerifiedSensor, domain_id=SEED.domain_id.replace("-", "").upper(), ask_verification=False
    )
    assert found == (verified, message)


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (WorkspaceDomainVerifiedSensor, {"domain_id": SEED.absent_uuid, "ask_verification": False},
         f"domain {SEED.absent_uuid} not found"),
        (EVENTS, {"project_id": "9"}, "project 9 not found"),
        (ONBOARDED, {"project_id": 9}, "project 9 not found"),
        (*joined(), "emails is empty: expected at least one address"),
        (WorkspaceInvitesSettledSensor, {"emails": [(" ",)]}, "emails is empty: expected at least one address"),
        (WorkspaceMembersJoinedSensor, {"emails": {"in@b.de": 1}}, "emails must be a list of rows or addresses"),
        (*joined("in"), r"Invalid addresses in emails: row 1 \(in\): the address needs exactly one @"),
        *((*joined("in@b.de", join=share), "a share above 0 and up to 1") for share in ("most", 0, 1.1, -1, True)),
        (*joined("in@b.de", join=float("nan")), "a share above 0 and up to 1"),
    ],
)  # fmt: skip
def test_a_condition_that_can_never_hold_fails_at_once(cls: type[Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        poll(cls, **arguments)


def test_a_record_that_is_deleted_meanwhile_ends_the_wait(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(consistency_time=60)
    domain_id = str(WorkspaceHook().create_domain(domain="new.example.com").id)
    sensor = WorkspaceDomainVerifiedSensor(task_id="verified", domain_id=domain_id, ask_verification=False)
    assert done(sensor) is None
    WorkspaceHook().delete_domain(domain_id=domain_id)
    assert done(sensor) is None, "the list may be late"
    later = time.monotonic() + 61
    monkeypatch.setattr("airflow_provider_workspace.sensors.workspace.time.monotonic", lambda: later)
    with pytest.raises(AirflowFailException, match=f"domain {domain_id} not found in organization"):
        sensor.poke({})


def test_a_404_of_a_proxy_says_nothing_about_a_record(sandbox: SandboxServer) -> None:
    sandbox.inject("proxy_error", "retrieve_domain", status=404)
    with pytest.raises(AirflowFailException, match="This 404 may be that of a proxy"):
        poll(WorkspaceDomainVerifiedSensor, domain_id=SEED.absent_uuid, ask_verification=False)


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
    early: Any = sensor.poll_once()
    assert early.done is (emails == ["in@b.de"])
    assert (
        early.message.endswith("Polling again: new invites and members may not be listed for 120 s") is not early.done
    )
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


@pytest.mark.parametrize("stays", ["the first page", "no page"])
def test_who_joins_without_an_invite_when_somebody_leaves_is_found(
    sandbox: SandboxServer, connect: Connect, stays: str
) -> None:
    """The count of members is as before."""
    connect(page_size=2)
    sensor = WorkspaceMembersJoinedSensor(task_id="wait", emails=[ADA])
    members = [one.to_dict() for one in WorkspaceHook().list_members()]
    assert not sensor.poke({}).is_done
    seen = reads(sandbox)[1][1]
    members[-1 if stays == "the first page" else 0] = {"id": "new", "user": {"uuid": SEED.absent_uuid, "email": ADA}}
    pages = [members[number : number + 2] for number in (0, 2, 4)]
    polls = 0
    while polls < 6:
        polls += 1
        sandbox.clear_faults()
        for number, rows in enumerate(pages):
            more = f"{sandbox.url}/api/organizations/{SEED.organization_id}/members/?limit=2&offset={2 * number + 2}"
            body = {"count": 5, "next": more if number < 2 else None, "results": rows}
            sandbox.inject("say", "list_members", body=body, times=1, after=number)
        if sensor.poke({}).is_done:
            break
    assert polls == (5 if stays == "the first page" else 1)
    assert reads(sandbox)[1][1] - seen == polls + 2


def test_of_several_invites_an_open_one_counts(sandbox: SandboxServer, connect: Connect) -> None:
    connect(page_size=2)
    rows = [{"id": str(number), "target_email": "Ada@example.com", "is_expired": number != 1} for number in range(3)]
    say(sandbox, "list_invites", *rows, {"id": "3", "target_email": None})
    assert not poll(WorkspaceInvitesSettledSensor, emails=["ada@example.com"])[0]


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


# Polls and deferrals


def new_domain() -> Any:
    return WorkspaceHook().create_domain(domain="new.example.com")


def publish(sandbox: SandboxServer, domain: Any) -> None:
    sandbox.publish_dns("_workspace-challenge.new.example.com", domain.verification_challenge)


def done(sensor: WorkspaceSensor) -> Any:
    """Return the result of one poll, or ``None``."""
    found = sensor.poke({})
    return found.xcom_value if found.is_done else None


def test_domain_verified_after_dns_is_published(sandbox: SandboxServer) -> None:
    domain = new_domain()
    asking = WorkspaceDomainVerifiedSensor(task_id="asking", domain_id=str(domain.id))
    looking = WorkspaceDomainVerifiedSensor(task_id="looking", domain_id=str(domain.id), ask_verification=False)
    assert done(asking) is None
    publish(sandbox, domain)
    assert done(looking) is None
    assert done(asking)["domain"] == "new.example.com"
    assert done(looking)["verified_at"]


def test_invites_settled(sandbox: SandboxServer) -> None:
    hook = WorkspaceHook()
    invites = {name: hook.create_invite(target_email=f"{name}@example.com") for name in ("ada", "lin", "joe")}
    sensor = WorkspaceInvitesSettledSensor(
        task_id="settled", emails=["ada@example.com", "lin@example.com", "joe@example.com"]
    )
    assert done(sensor) is None
    sandbox.accept_invite(str(invites["ada"].id))
    hook.delete_invite(invite_id=str(invites["lin"].id))
    assert done(sensor) is None
    sandbox.advance_clock(30 * 24 * 3600)
    assert done(sensor) == {
        "accepted": ["ada@example.com"],
        "expired": ["joe@example.com"],
        "gone": ["lin@example.com"],
        "open": [],
    }


@pytest.mark.usefixtures("no_waits")
def test_a_rescheduled_sensor_counts_from_its_first_poll(connect: Connect) -> None:
    connect(consistency_time=60)
    sensor = WorkspaceInvitesSettledSensor(task_id="settled", emails=[ADA], mode="reschedule")
    for seconds, is_done in ((30, False), (90, True)):
        first = datetime.now(timezone.utc) - timedelta(seconds=seconds)
        ti = SimpleNamespace(get_first_reschedule_date=lambda _, first=first: first)
        assert sensor.poke({"ti": ti}).is_done == is_done


MODES: list[dict[str, Any]] = [{"mode": "poke"}, {"mode": "reschedule"}, {"deferrable": True}]
FIRST_POKE = {"ti": SimpleNamespace(get_first_reschedule_date=lambda _: None)}


# What, with which connection, and what the error says.
NEVER: list[tuple[type[WorkspaceSensor], dict[str, Any], dict[str, Any], str]] = [
    (WorkspaceDomainVerifiedSensor, {"domain_id": SEED.absent_uuid}, {}, "WorkspaceNotFoundError"),
    (WorkspaceDomainVerifiedSensor, {"domain_id": "malformed"}, {}, "expected a UUID"),
    (WorkspaceProjectOnboardedSensor, {"project_id": 1, "product": "None"}, {}, "product has no value"),
    (WorkspaceInvitesSettledSensor, {"emails": "['a@example.com']"}, {}, "emails"),
    (WorkspaceMembersJoinedSensor, {"emails": [ADA]}, {"key": "revoked"}, "WorkspaceAuthenticationError"),
    (WorkspaceMembersJoinedSensor, {"emails": [ADA]}, {"key": SEED.no_scopes_key}, "WorkspacePermissionError"),
    (WorkspaceMembersJoinedSensor, {"emails": [ADA]}, {"read_timeuot": 5}, "read_timeout"),
]
# All in one mode, and in each what the service refuses and a wrong connection.
TRIED = [(*never, MODES[1], True) for never in NEVER]
TRIED += [(*NEVER[number], mode, soft) for number in (0, 6) for mode in MODES for soft in (False, True)]


@pytest.mark.parametrize(("cls", "arguments", "connection", "says", "mode", "soft_fail"), TRIED)
def test_what_can_never_hold_fails_at_once_with_soft_fail_too(
    connect: Connect,
    cls: type[WorkspaceSensor],
    arguments: dict[str, Any],
    connection: dict[str, Any],
    says: str,
    mode: dict[str, Any],
    *,
    soft_fail: bool,
) -> None:
    connect(**connection)
    with pytest.raises(AirflowFailException, match=says):
        cls(task_id="wait", soft_fail=soft_fail, **mode, **arguments).execute(FIRST_POKE)  # type: ignore[arg-type]
    with pytest.raises(AirflowSkipException):
        cls(task_id="wait", never_fail=True, **mode, **arguments).execute(FIRST_POKE)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES[:2])
def test_the_end_of_its_time_skips_a_sensor_with_soft_fail(mode: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"task_id": "wait", "emails": [ADA], "timeout": 0, **mode}
    with pytest.raises(AirflowSkipException, match="timed out"):
        WorkspaceMembersJoinedSensor(soft_fail=True, **arguments).execute(FIRST_POKE)  # type: ignore[arg-type]
    with pytest.raises(AirflowSensorTimeout):
        WorkspaceMembersJoinedSensor(**arguments).execute(FIRST_POKE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "arguments", "ends", "says"),
    [
        ("execute_complete", {"event": {"status": "failed", "message": "revoked"}}, AirflowFailException, "revoked"),
        ("execute_complete", {"event": {"status": "timeout", "message": "0 of 1"}}, AirflowSkipException, None),
        ("__fail__", {"error": "Trigger timeout"}, AirflowSkipException, None),
        ("__fail__", {"error": "Trigger failure", "traceback": ["it broke"]}, Exception, "^Trigger failure$"),
    ],
)
def test_a_deferred_sensor_with_soft_fail_is_skipped_only_at_its_end(
    method: str, arguments: dict[str, Any], ends: type[Exception], says: str | None
) -> None:
    """As Airflow's task runner continues a task."""
    sensor = WorkspaceMembersJoinedSensor(task_id="joined", emails=[ADA], soft_fail=True)
    with pytest.raises(ends, match=says):
        sensor.resume_execution(method, arguments, {})


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_missing_new_resource_is_waited_for(sandbox: SandboxServer, connect: Connect, *, deferrable: bool) -> None:
    connect(max_attempts=1)
    hook = WorkspaceHook()
    project_id, domain_id = hook.create_project(name="New").id, hook.create_domain(domain="new.example.com").id
    waits: list[WorkspaceSensor] = [
        WorkspaceProjectReceivingEventsSensor(task_id="events", project_id=str(project_id), deferrable=deferrable),
        WorkspaceProjectOnboardedSensor(task_id="onboarded", project_id=str(project_id), deferrable=deferrable),
        WorkspaceDomainVerifiedSensor(task_id="verified", domain_id=str(domain_id), deferrable=deferrable),
    ]
    sandbox.inject("late_rows", times=len(waits))
    for sensor in waits:
        if deferrable:
            with pytest.raises(TaskDeferred):
                sensor.execute({})
        else:
            assert done(sensor) is None
    sandbox.set_project(project_id, ingested_event=True)
    assert done(waits[0]) == {"project_id": str(project_id), "name": "New"}


def asked(sandbox: SandboxServer) -> int:
    """Return how many verifications were requested."""
    return sum(row["path"].endswith("/verify/") for row in sandbox.requests())


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_sensor_continues_if_the_key_may_not_request_verification(sandbox: SandboxServer) -> None:
    domain = new_domain()
    sensor = WorkspaceDomainVerifiedSensor(task_id="verified", domain_id=str(domain.id))
    assert done(sensor) is None
    assert done(sensor) is None
    assert asked(sandbox) == 1
    deferring = WorkspaceDomainVerifiedSensor(task_id="deferring", domain_id=str(domain.id), deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        deferring.execute({})
    assert deferred.value.trigger.serialize()[1]["ask_verification"] is False
    publish(sandbox, domain)
    done(sensor)  # this service verifies when it lists
    assert done(sensor)["domain"] == "new.example.com"
    assert asked(sandbox) == 2


def test_a_revoked_key_ends_the_wait(sandbox: SandboxServer) -> None:
    sensor = WorkspaceMembersJoinedSensor(task_id="joined", emails=[ADA])
    assert done(sensor) is None
    sandbox.revoke_key(SEED.admin_key)
    with pytest.raises(AirflowFailException, match="WorkspaceAuthenticationError"):
        sensor.poke({})


def test_a_short_outage_does_not_end_the_wait(connect: Connect) -> None:
    sensor = WorkspaceMembersJoinedSensor(task_id="joined", emails=[GRACE])
    connect(host="http://127.0.0.1:9", max_attempts=1)
    assert done(sensor) is None
    connect()
    assert done(sensor) == {"joined": [GRACE], "missing": {}}


def test_the_deferral_is_plain_json() -> None:
    sensor = WorkspaceMembersJoinedSensor(task_id="joined", emails=[ADA], deferrable=True, poke_interval=7, timeout=100)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    _, kwargs = deferred.value.trigger.serialize()
    assert json.loads(json.dumps(kwargs)) == kwargs
    assert kwargs["organization_id"] == SEED.organization_id
    assert kwargs["poll_interval"] == 7
    assert kwargs["arguments"] == {"emails": [ADA], "share": 1.0}
    assert deferred.value.timeout is not None
    assert deferred.value.timeout.total_seconds() > 100
    sensor.emails = [GRACE]
    assert sensor.execute({}) == {"joined": [GRACE], "missing": {}}, "a sensor whose condition holds does not defer"


@pytest.mark.parametrize(
    ("event", "soft_fail", "ends"),
    [
        ({"status": "timeout", "message": "0 of 1"}, False, AirflowSensorTimeout),
        ({"status": "timeout", "message": "0 of 1"}, True, AirflowSkipException),
        ({"status": "failed", "message": "revoked"}, False, AirflowFailException),
        ({"status": "failed", "message": "revoked"}, True, AirflowFailException),
        ({"status": "fine"}, False, RuntimeError),
        ({}, False, RuntimeError),
        (None, False, RuntimeError),
    ],
)
def test_execute_complete_follows_the_event(event: Any, ends: type[Exception], *, soft_fail: bool) -> None:
    sensor = WorkspaceMembersJoinedSensor(task_id="joined", emails=[ADA], soft_fail=soft_fail)
    with pytest.raises(ends):
        sensor.execute_complete({}, event)
    assert sensor.execute_complete({}, {"status": "done", "message": "", "result": {"joined": []}}) == {"joined": []}
