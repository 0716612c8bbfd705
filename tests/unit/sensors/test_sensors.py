"""Each sensor against the sandbox: its condition, messages, errors and deferral."""

from __future__ import annotations

import json
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

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from airflow_provider_workspace.sensors.workspace import WorkspaceSensor
    from tests.conftest import Connect

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")

GRACE = "grace.analyst@example.com"
ADA = "ada@example.com"


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect(max_attempts=1)


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


def test_invites_settled(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=0)
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


def test_a_rescheduled_sensor_counts_from_its_first_poll(connect: Connect) -> None:
    connect(consistency_time=60)
    sensor = WorkspaceInvitesSettledSensor(task_id="settled", emails=[ADA], mode="reschedule")
    for seconds, is_done in ((30, False), (90, True)):
        first = datetime.now(timezone.utc) - timedelta(seconds=seconds)
        ti = SimpleNamespace(get_first_reschedule_date=lambda _, first=first: first)
        assert sensor.poke({"ti": ti}).is_done == is_done


def test_project_receives_events(sandbox: SandboxServer) -> None:
    project = WorkspaceHook().create_project(name="Quiet")
    events = WorkspaceProjectReceivingEventsSensor(task_id="events", project_id=str(project.id))
    onboarded = WorkspaceProjectOnboardedSensor(task_id="onboarded", project_id=str(project.id))
    assert done(events) is None
    assert done(onboarded) is None
    sandbox.set_project(project.id, ingested_event=True, completed_snippet_onboarding=True)
    assert done(events) == {"project_id": str(project.id), "name": "Quiet"}
    assert done(onboarded)["completed"] == []


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (WorkspaceDomainVerifiedSensor, {"domain_id": SEED.absent_uuid}),
        (WorkspaceProjectReceivingEventsSensor, {"project_id": 99}),
        (WorkspaceProjectOnboardedSensor, {"project_id": 1, "product": 10**4400}),
        (WorkspaceProjectOnboardedSensor, {"project_id": 1, "product": "None"}),
        (WorkspaceInvitesSettledSensor, {"emails": "['a@example.com']"}),
    ],
)
def test_what_can_never_hold_fails_at_once_or_skips(
    cls: type[WorkspaceSensor], arguments: dict[str, Any], *, deferrable: bool
) -> None:
    with pytest.raises(AirflowFailException):
        cls(task_id="wait", deferrable=deferrable, **arguments).execute({})
    with pytest.raises(AirflowSkipException):
        cls(task_id="wait", deferrable=deferrable, soft_fail=True, **arguments).execute({})


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_missing_new_resource_is_waited_for(sandbox: SandboxServer, *, deferrable: bool) -> None:
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
        ({"status": "failed", "message": "revoked"}, True, AirflowSkipException),
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
