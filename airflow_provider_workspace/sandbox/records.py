"""The records of the interface, whole and in its order of fields. A record is stored as it is answered."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.answers import JsonObject

MEMBER_LEVEL = 1
OWNER_LEVEL = 15
LEVELS = (MEMBER_LEVEL, 8, OWNER_LEVEL)
COLLABORATOR_LEVEL = 37

PROJECT_LIST_FIELDS = (
    "id",
    "uuid",
    "organization",
    "api_token",
    "name",
    "completed_snippet_onboarding",
    "has_completed_onboarding_for",
    "ingested_event",
    "is_demo",
    "timezone",
    "access_control",
)

# Never shown outside the answers of the interface: not in the audit, not on the page.
SECRET_FIELDS = {"access_token", "api_token", "live_events_token", "slack_incoming_webhook", "saml_x509_cert"}


def user(user_id: int, uuid: str, first_name: str, last_name: str, email: str) -> JsonObject:
    """
    Build a User as it is embedded in other records.

    :param user_id: Number of the user.
    :param uuid: UUID of the user.
    :param first_name: First name.
    :param last_name: Last name.
    :param email: E-mail address.
    """
    return {
        "id": user_id,
        "uuid": uuid,
        "distinct_id": f"user-{user_id}",
        "first_name": first_name,
        "last_name": last_name,
        "email": email,
        "is_email_verified": True,
        "hedgehog_config": {},
    }


def member(of_user: JsonObject, level: int, at: str) -> JsonObject:
    """
    Build a Member who has just joined.

    :param of_user: The User.
    :param level: Level of the membership.
    :param at: Time of joining.
    """
    return {
        "id": str(uuid4()),
        "user": of_user,
        "level": level,
        "joined_at": at,
        "updated_at": at,
        "is_2fa_enabled": False,
        "has_social_auth": False,
        "last_login": None,
    }


def invite(fields: JsonObject, created_by: JsonObject, at: str) -> JsonObject:
    """
    Build an Invite.

    ``is_expired`` is false here; the query that reads invites sets it by the clock.

    :param fields: The checked fields of the request.
    :param created_by: The User who invites.
    :param at: Time of creation.
    """
    send_email = fields.get("send_email", True)
    return {
        "id": str(uuid4()),
        "target_email": fields["target_email"],
        "first_name": fields.get("first_name", ""),
        "emailing_attempt_made": bool(send_email),
        "level": fields.get("level", MEMBER_LEVEL),
        "is_expired": False,
        "created_by": created_by,
        "created_at": at,
        "updated_at": at,
        "message": fields.get("message"),
        "private_project_access": fields.get("private_project_access"),
        "send_email": send_email,
        "combine_pending_invites": fields.get("combine_pending_invites", False),
    }


def domain(fields: JsonObject) -> JsonObject:
    """
    Build a Domain that is not verified yet.

    :param fields: The checked fields of the request.
    """
    record = {
        "id": str(uuid4()),
        "domain": fields["domain"],
        "is_verified": False,
        "verified_at": None,
        "verification_challenge": secrets.token_urlsafe(24),
        "jit_provisioning_enabled": fields.get("jit_provisioning_enabled", False),
        "sso_enforcement": fields.get("sso_enforcement", ""),
        "has_saml": False,
        "saml_entity_id": fields.get("saml_entity_id"),
        "saml_acs_url": fields.get("saml_acs_url"),
        "saml_x509_cert": fields.get("saml_x509_cert"),
    }
    record["has_saml"] = has_saml(record)
    return record


def has_saml(record: JsonObject) -> bool:
    """
    Tell whether all the SAML fields of a Domain are filled.

    :param record: The Domain.
    """
    return all(record[name] for name in ("saml_entity_id", "saml_acs_url", "saml_x509_cert"))


def dashboard(dashboard_id: int, fields: JsonObject, created_by: JsonObject, at: str) -> JsonObject:
    """
    Build a Dashboard.

    :param dashboard_id: Number of the dashboard.
    :param fields: The checked fields of the request.
    :param created_by: The User who creates it.
    :param at: Time of creation.
    """
    mode = "template" if fields.get("use_template") else "duplicate" if fields.get("use_dashboard") else "default"
    restriction = fields.get("restriction_level", 21)
    return {
        "id": dashboard_id,
        "name": fields.get("name"),
        "description": fields.get("description", ""),
        "pinned": fields.get("pinned", False),
        "created_at": at,
        "created_by": created_by,
        "is_shared": False,
        "deleted": bool(fields.get("deleted")),
        "creation_mode": mode,
        "use_template": fields.get("use_template"),
        "use_dashboard": fields.get("use_dashboard"),
        "delete_insights": fields.get("delete_insights", False),
        "filters": {},
        "variables": {},
        "tags": fields.get("tags", []),
        "tiles": [],
        "restriction_level": restriction,
        "effective_restriction_level": restriction,
        "effective_privilege_level": COLLABORATOR_LEVEL,
        "user_access_level": "editor",
    }


def sharing(at: str) -> JsonObject:
    """
    Build the sharing configuration of a new Dashboard.

    :param at: Time of creation.
    """
    return {"created_at": at, "enabled": False, "access_token": secrets.token_urlsafe(16)}


def collaborator(dashboard_id: int, of_user: JsonObject, level: int, at: str) -> JsonObject:
    """
    Build a Dashboard collaborator.

    :param dashboard_id: Number of the dashboard.
    :param of_user: The User.
    :param level: Level of the collaboration.
    :param at: Time of adding.
    """
    return {
        "id": str(uuid4()),
        "dashboard_id": dashboard_id,
        "user": of_user,
        "level": level,
        "added_at": at,
        "updated_at": at,
        "user_uuid": of_user["uuid"],
    }


def project(project_id: int, organization_id: str, fields: JsonObject, at: str) -> JsonObject:
    """
    Build a full Project record.

    :param project_id: Number of the project.
    :param organization_id: UUID of its organization.
    :param fields: The checked fields of the request.
    :param at: Time of creation.
    """
    record: JsonObject = {
        "id": project_id,
        "organization": organization_id,
        "name": "Default project",
        "product_description": None,
        "created_at": at,
        "effective_membership_level": OWNER_LEVEL,
        "has_group_types": False,
        "live_events_token": secrets.token_urlsafe(24),
        "updated_at": at,
        "uuid": str(uuid4()),
        "api_token": secrets.token_urlsafe(24),
        "app_urls": [],
        "slack_incoming_webhook": None,
        "anonymize_ips": False,
        "completed_snippet_onboarding": False,
        "ingested_event": False,
        "test_account_filters": [],
        "test_account_filters_default_checked": None,
        "path_cleaning_filters": [],
        "is_demo": False,
        "timezone": "UTC",
        "data_attributes": ["data-attr"],
        "person_display_name_properties": None,
        "correlation_config": {},
        "autocapture_opt_out": None,
        "autocapture_exceptions_opt_in": None,
        "autocapture_web_vitals_opt_in": None,
        "autocapture_web_vitals_allowed_metrics": None,
        "autocapture_exceptions_errors_to_ignore": None,
        "capture_console_log_opt_in": None,
        "capture_performance_opt_in": None,
        "session_recording_opt_in": False,
        "session_recording_sample_rate": None,
        "session_recording_minimum_duration_milliseconds": None,
        "session_recording_linked_flag": None,
        "session_recording_network_payload_capture_config": None,
        "session_replay_config": None,
        "survey_config": None,
        "access_control": False,
        "week_start_day": None,
        "primary_dashboard": None,
        "live_events_columns": None,
        "recording_domains": None,
        "person_on_events_querying_enabled": "false",
        "inject_web_apps": None,
        "extra_settings": None,
        "modifiers": None,
        "default_modifiers": "{}",
        "has_completed_onboarding_for": None,
        "surveys_opt_in": None,
        "heatmaps_opt_in": None,
        "product_intents": None,
    }
    return record | fields


def format_time(moment: datetime) -> str:
    """
    Write a time as answers show it; such strings sort as the times do.

    :param moment: A time in UTC.
    """
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def numbered_uuid(number: int) -> str:
    """
    Return the UUID of a user or project that has none of its own, so that a seed is the same each time.

    :param number: Number of the user.
    """
    return f"0190c0de-0000-4000-8001-{number:012x}"
