"""What is in a new sandbox. The ids and keys are fixed, so that examples work on the first try."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_provider_workspace.sandbox import records
from airflow_provider_workspace.sandbox.state import Key, State

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.answers import JsonObject

READ_SCOPES = frozenset(
    {"dashboard:read", "sharing_configuration:read", "organization:read", "organization_member:read", "project:read"}
)
ONBOARDING_SCOPES = READ_SCOPES | {
    "project:write",
    "organization:write",
    "organization_member:write",
    "dashboard:write",
}


@dataclass(frozen=True)
class Seed:
    """The ids and keys that exist from the start."""

    organization_id: str = "0190c0de-0000-4000-8000-000000000001"
    other_organization_id: str = "0190c0de-0000-4000-8000-000000000002"

    admin_key: str = "sandbox-admin"
    onboarding_key: str = "sandbox-onboarding"
    exports_key: str = "sandbox-exports"
    reader_key: str = "sandbox-reader"
    no_scopes_key: str = "sandbox-no-scopes"
    research_key: str = "sandbox-research"

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

EXPORTS = (("Events to warehouse", "events"), ("Persons to warehouse", "persons"), ("Events to lake", "events"))


def plant(state: State) -> None:
    """
    Fill an empty sandbox.

    :param state: The state to fill.
    """
    state.add_organization(SEED.organization_id, "Example Analytics")
    state.add_organization(SEED.other_organization_id, "Example Research")
    _add_keys(state)

    owner = _add_person(state, "Olive Owner", SEED.owner_uuid, 15, is_2fa_enabled=True)
    _add_person(state, "Adam Admin", SEED.admin_uuid, 8, is_2fa_enabled=True, has_social_auth=True)
    _add_person(state, "Mina Member", SEED.member_uuid, 1, is_2fa_enabled=True)
    _add_person(state, "Noah Newton", SEED.absent_uuid, 1, last_login=_days_ago(state, 214))
    analyst = _add_person(state, "Grace Analyst", SEED.analyst_uuid, 1, has_social_auth=True)

    project = state.add_project(SEED.organization_id, {"name": "Default project", "ingested_event": True})
    dashboard = state.add_dashboard(project["id"], {"name": "Weekly overview", "pinned": True}, owner)
    state.add_collaborator(
        records.collaborator(dashboard["id"], analyst, records.COLLABORATOR_LEVEL, state.timestamp())
    )
    domain = {
        **records.domain({"domain": "example.com"}),
        "id": SEED.domain_id,
        "is_verified": True,
        "verified_at": _days_ago(state, 90),
    }
    state.add_domain(SEED.organization_id, domain)
    _add_invite(state, SEED.invite_id, "liv.invited@example.com", owner, _days_ago(state, 1))
    _add_invite(state, SEED.expired_invite_id, "exp.ired@example.com", owner, _days_ago(state, 10))
    add_batch_exports(state, SEED.organization_id, SEED.batch_export_ids)

    researcher = state.add_user("Rhea", "Research", "rhea.research@example.org", SEED.research_uuid)
    state.add_member(SEED.other_organization_id, records.member(researcher, 15, state.timestamp()))
    state.add_project(SEED.other_organization_id, {"name": "Default project"})
    add_batch_exports(state, SEED.other_organization_id, SEED.other_batch_export_ids)


def add_batch_exports(state: State, organization_id: str, export_ids: tuple[str, ...]) -> None:
    """
    Give an organization its three batch exports.

    :param state: The state to fill.
    :param organization_id: UUID of the organization.
    :param export_ids: UUIDs of the exports.
    """
    for export_id, (name, model) in zip(export_ids, EXPORTS, strict=True):
        state.add_batch_export(organization_id, export_id, name, model)


def add_organization(state: State, name: str) -> JsonObject:
    """
    Add an organization with an owner, a project, batch exports and a key; the seeded admin key may act on it, too.

    :param state: The state to fill.
    :param name: Name of the organization.
    """
    organization_id, key = str(uuid4()), f"sandbox-{uuid4().hex}"
    export_ids = tuple(str(uuid4()) for _ in EXPORTS)
    state.add_organization(organization_id, name)
    owner = state.user(SEED.owner_uuid)
    state.add_member(organization_id, records.member(owner, records.OWNER_LEVEL, state.timestamp()))
    project = state.add_project(organization_id, {})
    add_batch_exports(state, organization_id, export_ids)
    everything = frozenset({"*"})
    state.add_key(Key(key, f"admin of {name}", everything, frozenset({organization_id}), SEED.owner_uuid))
    admin = state.key(SEED.admin_key)
    if admin is not None:
        organizations = admin.organizations | {organization_id}
        state.add_key(Key(admin.key, admin.name, admin.scopes, organizations, admin.user_uuid))
    return {
        "id": organization_id,
        "name": name,
        "project_id": project["id"],
        "batch_exports": list(export_ids),
        "key": key,
    }


FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dara", "Emil", "Fern", "Gus", "Hana", "Ivo", "June", "Kai", "Lena")
LAST_NAMES = ("Archer", "Baker", "Carter", "Dyer", "Fisher", "Glover", "Hunter", "Mason", "Porter", "Weaver")


def add_members(state: State, organization_id: str, count: int) -> None:
    """
    Add many fictional members.

    :param state: The state to fill.
    :param organization_id: UUID of the organization.
    :param count: How many.
    """
    at = state.timestamp()
    first = state.number("SELECT coalesce(max(id), 0) + 1 FROM users")
    for number in range(first, first + count):
        first_name = FIRST_NAMES[number % len(FIRST_NAMES)]
        last_name = LAST_NAMES[number // len(FIRST_NAMES) % len(LAST_NAMES)]
        email = f"{first_name}.{last_name}.{number}@example.com".lower()
        member = records.member(state.add_user(first_name, last_name, email), records.MEMBER_LEVEL, at)
        member["is_2fa_enabled"] = number % 3 != 0
        state.add_member(organization_id, member)


def _add_keys(state: State) -> None:
    first, other = frozenset({SEED.organization_id}), frozenset({SEED.other_organization_id})
    everything = frozenset({"*"})
    for key in (
        Key(SEED.admin_key, "admin", everything, first, SEED.owner_uuid),
        Key(SEED.onboarding_key, "onboarding", ONBOARDING_SCOPES, first, SEED.admin_uuid),
        Key(SEED.exports_key, "exports", frozenset({"batch_export:write"}), first, SEED.admin_uuid),
        Key(SEED.reader_key, "reader", READ_SCOPES, first, SEED.analyst_uuid),
        Key(SEED.no_scopes_key, "no scopes", frozenset(), first, SEED.member_uuid),
        Key(SEED.research_key, "research", everything, other, SEED.research_uuid),
    ):
        state.add_key(key)


def _add_person(state: State, name: str, uuid: str, level: int, **fields: object) -> JsonObject:
    first_name, last_name = name.split()
    user = state.add_user(first_name, last_name, f"{first_name}.{last_name}@example.com".lower(), uuid)
    member = {
        **records.member(user, level, _days_ago(state, 365)),
        "updated_at": _days_ago(state, 30),
        "last_login": _days_ago(state, 2),
        **fields,
    }
    state.add_member(SEED.organization_id, member)
    return user


def _add_invite(state: State, invite_id: str, email: str, created_by: JsonObject, at: str) -> None:
    record = {**records.invite({"target_email": email}, created_by, at), "id": invite_id}
    state.add_invite(SEED.organization_id, record)


def _days_ago(state: State, days: int) -> str:
    return records.format_time(state.now() - timedelta(days=days))
