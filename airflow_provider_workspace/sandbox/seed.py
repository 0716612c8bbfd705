"""The content of a new sandbox; ids and keys are fixed, so that examples can use them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

from airflow_provider_workspace.sandbox.limits import DAY, HOUR
from airflow_provider_workspace.sandbox.responses import JsonObject
from airflow_provider_workspace.sandbox.routes.collaborators import add_collaborator
from airflow_provider_workspace.sandbox.routes.dashboards import COLLABORATOR_LEVEL, add_dashboard
from airflow_provider_workspace.sandbox.routes.domains import add_domain
from airflow_provider_workspace.sandbox.routes.invites import add_invite
from airflow_provider_workspace.sandbox.routes.members import MEMBER_LEVEL, OWNER_LEVEL, add_member, add_user
from airflow_provider_workspace.sandbox.routes.projects import add_project
from airflow_provider_workspace.sandbox.state import Key, State, format_time


@dataclass(frozen=True)
class Seed:
    """The ids and keys of a new sandbox."""

    organization_id: str = "0190c0de-0000-4000-8000-000000000001"
    other_organization_id: str = "0190c0de-0000-4000-8000-000000000002"

    admin_key: str = "sandbox-admin"
    onboarding_key: str = "sandbox-onboarding"
    exports_key: str = "sandbox-exports"
    reader_key: str = "sandbox-reader"
    no_scopes_key: str = "sandbox-no-scopes"
    research_key: str = "sandbox-research"
    session_key: str = "sandbox-session"
    """Stands for a login session; in the profile ``live`` only it may verify domains."""

    owner_uuid: str = "0190c0de-0000-4000-8000-0000000000a1"
    admin_uuid: str = "0190c0de-0000-4000-8000-0000000000a2"
    member_uuid: str = "0190c0de-0000-4000-8000-0000000000a3"
    absent_uuid: str = "0190c0de-0000-4000-8000-0000000000a4"
    analyst_uuid: str = "0190c0de-0000-4000-8000-0000000000a5"
    research_uuid: str = "0190c0de-0000-4000-8000-0000000000b1"

    project_id: int = 1
    other_project_id: int = 2
    dashboard_id: int = 1
    domain_id: str = "0190c0de-0000-4000-8000-0000000000d1"
    invite_id: str = "0190c0de-0000-4000-8000-0000000000c1"
    expired_invite_id: str = "0190c0de-0000-4000-8000-0000000000c2"
    batch_export_ids: tuple[str, ...] = (
        "0190c0de-0000-4000-8000-0000000000e1",
        "0190c0de-0000-4000-8000-0000000000e2",
        "0190c0de-0000-4000-8000-0000000000e3",
    )
    other_batch_export_ids: tuple[str, ...] = (
        "0190c0de-0000-4000-8000-0000000000f1",
        "0190c0de-0000-4000-8000-0000000000f2",
        "0190c0de-0000-4000-8000-0000000000f3",
    )


SEED = Seed()

EVERYTHING = frozenset({"*"})
READ_SCOPES = frozenset(
    {"dashboard:read", "sharing_configuration:read", "organization:read", "organization_member:read", "project:read"}
)
ONBOARDING_SCOPES = READ_SCOPES | {
    "project:write",
    "organization:write",
    "organization_member:write",
    "dashboard:write",
}
EXPORTS = (
    ("Events to warehouse", "events", HOUR),
    ("Persons to warehouse", "persons", HOUR),
    ("Events to lake", "events", DAY),
)


def seed_state(state: State) -> None:
    first, other = SEED.organization_id, SEED.other_organization_id
    state.insert("organizations", id=first, name="Example Analytics")
    state.insert("organizations", id=other, name="Example Research")
    for key, name, scopes, organization_id, user_uuid in (
        (SEED.admin_key, "admin", EVERYTHING, first, SEED.owner_uuid),
        (SEED.session_key, "session", EVERYTHING | {"session"}, first, SEED.owner_uuid),
        (SEED.onboarding_key, "onboarding", ONBOARDING_SCOPES, first, SEED.admin_uuid),
        (SEED.exports_key, "exports", {"batch_export:write"}, first, SEED.admin_uuid),
        (SEED.reader_key, "reader", READ_SCOPES, first, SEED.analyst_uuid),
        (SEED.no_scopes_key, "no scopes", set[str](), first, SEED.member_uuid),
        (SEED.research_key, "research", EVERYTHING, other, SEED.research_uuid),
    ):
        state.add_key(Key(key, name, frozenset(scopes), frozenset({organization_id}), user_uuid))

    owner = _add_person(state, "Olive Owner", SEED.owner_uuid, 15, is_2fa_enabled=True)
    _add_person(state, "Adam Admin", SEED.admin_uuid, 8, is_2fa_enabled=True, has_social_auth=True)
    _add_person(state, "Mina Member", SEED.member_uuid, 1, is_2fa_enabled=True)
    _add_person(state, "Noah Newton", SEED.absent_uuid, 1, last_login=_days_ago(state, 214))
    analyst = _add_person(state, "Grace Analyst", SEED.analyst_uuid, 1, has_social_auth=True)

    project = add_project(state, first, {}, ingested_event=True)
    # Restricted, or it could not have a collaborator.
    shown = {"name": "Weekly overview", "pinned": True, "restriction_level": COLLABORATOR_LEVEL}
    dashboard = add_dashboard(state, project["id"], shown, owner)
    add_collaborator(state, dashboard["id"], analyst)
    verified = {"id": SEED.domain_id, "is_verified": True, "verified_at": _days_ago(state, 90)}
    add_domain(state, first, {"domain": "example.com"}, **verified)
    for invite_id, email, days in (
        (SEED.invite_id, "liv.invited@example.com", 1),
        (SEED.expired_invite_id, "exp.ired@example.com", 10),
    ):
        at = _days_ago(state, days)
        add_invite(state, first, {"target_email": email}, owner, id=invite_id, created_at=at, updated_at=at)
    _add_batch_exports(state, first, SEED.batch_export_ids)

    researcher = add_user(state, "Rhea", "Research", "rhea.research@example.org", SEED.research_uuid)
    add_member(state, other, researcher, OWNER_LEVEL)
    add_project(state, other, {})
    _add_batch_exports(state, other, SEED.other_batch_export_ids)


def add_organization(state: State, name: str) -> JsonObject:
    """Add an organization with an owner, a project, batch exports and a key; the admin key gets access to it."""
    organization_id, key = str(uuid4()), f"sandbox-{uuid4().hex}"
    export_ids = tuple(str(uuid4()) for _ in EXPORTS)
    state.insert("organizations", id=organization_id, name=name)
    owner = state.record("users", uuid=SEED.owner_uuid)
    add_member(state, organization_id, owner, OWNER_LEVEL)
    project = add_project(state, organization_id, {})
    _add_batch_exports(state, organization_id, export_ids)
    state.add_key(Key(key, f"admin of {name}", EVERYTHING, frozenset({organization_id}), SEED.owner_uuid))
    admin = state.key(SEED.admin_key)
    if admin is not None:
        state.add_key(replace(admin, organizations=admin.organizations | {organization_id}))
    return {
        "id": organization_id,
        "name": name,
        "project_id": project["id"],
        "batch_exports": list(export_ids),
        "key": key,
    }


def add_fictional_members(state: State, organization_id: str, count: int) -> None:
    first = state.next_id("users")
    for number in range(first, first + count):
        user = add_user(state, "Sam", f"Sample {number}", f"sam.sample.{number}@example.com")
        add_member(state, organization_id, user, MEMBER_LEVEL, is_2fa_enabled=number % 3 != 0)


def _add_person(state: State, name: str, uuid: str, level: int, **more: object) -> JsonObject:
    first_name, last_name = name.split()
    user = add_user(state, first_name, last_name, f"{first_name}.{last_name}@example.com".lower(), uuid)
    times = {"joined_at": _days_ago(state, 365), "updated_at": _days_ago(state, 30), "last_login": _days_ago(state, 2)}
    add_member(state, SEED.organization_id, user, level, **{**times, **more})
    return user


def _add_batch_exports(state: State, organization_id: str, export_ids: tuple[str, ...]) -> None:
    for export_id, (name, model, interval_seconds) in zip(export_ids, EXPORTS, strict=True):
        state.insert(
            "batch_exports",
            id=export_id,
            organization_id=organization_id,
            name=name,
            model=model,
            interval_seconds=interval_seconds,
            created_at=state.timestamp(),
        )


def _days_ago(state: State, days: int) -> str:
    return format_time(state.now() - timedelta(days=days))
