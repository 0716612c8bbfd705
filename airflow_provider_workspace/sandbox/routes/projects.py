"""Projects of an organization: list, create, retrieve."""

from __future__ import annotations

import json
import secrets
from uuid import uuid4

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, Fields, path_integer, with_defaults
from airflow_provider_workspace.sandbox.responses import JsonObject, dumps
from airflow_provider_workspace.sandbox.routes.members import OWNER_LEVEL
from airflow_provider_workspace.sandbox.state import State

FIELDS: Fields = {
    "name": ("string", "Default project"),
    "product_description": ("string", None),
    "app_urls": ("strings", []),
    "slack_incoming_webhook": ("string", None),
    "anonymize_ips": ("boolean", False),
    "completed_snippet_onboarding": ("boolean", False),
    "test_account_filters": ("any", []),
    "test_account_filters_default_checked": ("boolean", None),
    "path_cleaning_filters": ("any", []),
    "is_demo": ("boolean", False),
    "timezone": ("string", "UTC"),
    "data_attributes": ("any", ["data-attr"]),
    "person_display_name_properties": ("strings", None),
    "correlation_config": ("any", {}),
    "autocapture_opt_out": ("boolean", None),
    "autocapture_exceptions_opt_in": ("boolean", None),
    "autocapture_web_vitals_opt_in": ("boolean", None),
    "autocapture_web_vitals_allowed_metrics": ("any", None),
    "autocapture_exceptions_errors_to_ignore": ("any", None),
    "capture_console_log_opt_in": ("boolean", None),
    "capture_performance_opt_in": ("boolean", None),
    "session_recording_opt_in": ("boolean", False),
    "session_recording_sample_rate": ("string", None),
    "session_recording_minimum_duration_milliseconds": ("integer", None),
    "session_recording_linked_flag": ("any", None),
    "session_recording_network_payload_capture_config": ("any", None),
    "session_replay_config": ("any", None),
    "survey_config": ("any", None),
    "access_control": ("boolean", False),
    "week_start_day": ("integer", None),
    "primary_dashboard": ("integer", None),
    "live_events_columns": ("strings", None),
    "recording_domains": ("strings", None),
    "inject_web_apps": ("boolean", None),
    "extra_settings": ("any", None),
    "modifiers": ("any", None),
    "has_completed_onboarding_for": ("any", None),
    "surveys_opt_in": ("boolean", None),
    "heatmaps_opt_in": ("boolean", None),
}
LIST_FIELDS = (
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


def add_project(state: State, organization_id: str, fields: JsonObject, **more: object) -> JsonObject:
    """Add a project and return its full record; ``more`` has further fields of it, for the seed."""
    at = state.timestamp()
    record: JsonObject = with_defaults(FIELDS, fields)
    record |= {
        "id": state.next_id("projects"),
        "uuid": str(uuid4()),
        "organization": organization_id,
        "created_at": at,
        "updated_at": at,
        "api_token": secrets.token_urlsafe(24),
        "live_events_token": secrets.token_urlsafe(24),
        "effective_membership_level": OWNER_LEVEL,
        "has_group_types": False,
        "ingested_event": False,
        "person_on_events_querying_enabled": "false",
        "default_modifiers": "{}",
        "product_intents": None,
        **more,
    }
    state.insert("projects", id=record["id"], organization_id=organization_id, record=dumps(record))
    return record


def list_projects(request: ApiRequest) -> object:
    """List the projects, oldest first, with a subset of the fields."""
    return request.page("projects", shorten=_list_item)


def create_project(request: ApiRequest) -> object:
    """Create a project; names need not be unique."""
    organization_id = request.organization()
    fields = request.fields(FIELDS)
    if request.live and isinstance(fields.get("name"), str):
        fields["name"] = fields["name"].strip()
    record = add_project(request.state, organization_id, fields)
    request.audit("create_project", organization_id, str(record["id"]), name=record["name"])
    return record


def retrieve_project(request: ApiRequest) -> object:
    organization_id = request.organization()
    return request.state.record("projects", id=path_integer(request.path["id"]), organization_id=organization_id)


def _list_item(record: str) -> str:
    project = json.loads(record)
    return dumps({name: project[name] for name in LIST_FIELDS})


PROJECTS = "/api/organizations/{organization_id}/projects/"
ROUTES = (
    ApiRoute("GET", PROJECTS, "project:read", list_projects, query=("limit", "offset")),
    ApiRoute("POST", PROJECTS, "project:write", create_project, 201),
    ApiRoute("GET", PROJECTS + "{id}/", "project:read", retrieve_project),
)
