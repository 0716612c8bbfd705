"""The fields a request may carry, as the interface names and types them, and the check of a body against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_workspace.sandbox.answers import JsonObject, invalid

DASHBOARD = {
    "name": "string",
    "description": "string",
    "pinned": "boolean",
    "deleted": "boolean",
    "use_template": "string",
    "use_dashboard": "integer",
    "delete_insights": "boolean",
    "tags": "array",
    "restriction_level": "integer",
}
COLLABORATOR = {"level": "integer", "user_uuid": "string"}
BATCH_EXPORT = {
    "name": "string",
    "model": "model",
    "destination": "any",
    "interval": "any",
    "paused": "boolean",
    "last_paused_at": "string",
    "start_at": "string",
    "end_at": "string",
    "hogql_query": "string",
}
DOMAIN = {
    "domain": "domain",
    "jit_provisioning_enabled": "boolean",
    "sso_enforcement": "string",
    "saml_entity_id": "string",
    "saml_acs_url": "string",
    "saml_x509_cert": "string",
}
INVITE = {
    "target_email": "email",
    "first_name": "string",
    "level": "integer",
    "message": "string",
    "private_project_access": "array",
    "send_email": "boolean",
    "combine_pending_invites": "boolean",
}
MEMBER = {"level": "integer"}
PROJECT = {
    "name": "string",
    "product_description": "string",
    "app_urls": "strings",
    "slack_incoming_webhook": "string",
    "anonymize_ips": "boolean",
    "completed_snippet_onboarding": "boolean",
    "test_account_filters": "any",
    "test_account_filters_default_checked": "boolean",
    "path_cleaning_filters": "any",
    "is_demo": "boolean",
    "timezone": "string",
    "data_attributes": "any",
    "person_display_name_properties": "strings",
    "correlation_config": "any",
    "autocapture_opt_out": "boolean",
    "autocapture_exceptions_opt_in": "boolean",
    "autocapture_web_vitals_opt_in": "boolean",
    "autocapture_web_vitals_allowed_metrics": "any",
    "autocapture_exceptions_errors_to_ignore": "any",
    "capture_console_log_opt_in": "boolean",
    "capture_performance_opt_in": "boolean",
    "session_recording_opt_in": "boolean",
    "session_recording_sample_rate": "string",
    "session_recording_minimum_duration_milliseconds": "integer",
    "session_recording_linked_flag": "any",
    "session_recording_network_payload_capture_config": "any",
    "session_replay_config": "any",
    "survey_config": "any",
    "access_control": "boolean",
    "week_start_day": "integer",
    "primary_dashboard": "integer",
    "live_events_columns": "strings",
    "recording_domains": "strings",
    "inject_web_apps": "boolean",
    "extra_settings": "any",
    "modifiers": "any",
    "has_completed_onboarding_for": "any",
    "surveys_opt_in": "boolean",
    "heatmaps_opt_in": "boolean",
}

NEVER_NULL = {"target_email", "domain", "user_uuid", "level"}

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}", re.IGNORECASE)
_INTEGERS = range(-(2**31), 2**31)

# What a value must be, in words for the error and as a test.
_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("Not a valid string.", lambda value: isinstance(value, str)),
    "boolean": ("Must be a valid boolean.", lambda value: isinstance(value, bool)),
    "integer": ("A valid integer is required.", lambda value: type(value) is int and value in _INTEGERS),
    "array": ("Expected a list of items.", lambda value: isinstance(value, list)),
    "strings": (
        "Expected a list of strings.",
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    ),
    "email": (
        "Enter a valid email address.",
        lambda value: isinstance(value, str) and len(value) <= 254 and bool(_EMAIL.fullmatch(value)),
    ),
    "domain": (
        "Enter a valid domain.",
        lambda value: isinstance(value, str) and len(value) <= 128 and bool(_DOMAIN.fullmatch(value)),
    ),
    "model": ("Not one of events, persons.", lambda value: value in ("events", "persons")),
    "any": ("", lambda _value: True),
}


def check_fields(
    body: object, allowed: Mapping[str, str], *, unnamed_refused: bool, item: int | None = None
) -> JsonObject:
    """
    Return the fields of a body that the interface names, or refuse the body and say which field is wrong.

    :param body: The parsed JSON.
    :param allowed: Field name to kind.
    :param unnamed_refused: Refuse other fields instead of leaving them out.
    :param item: The position of this body in an array of bodies, for the error.
    """
    prefix = "" if item is None else f"{item}__"
    if not isinstance(body, dict):
        raise invalid(f"Expected an object, but got {type(body).__name__}.", prefix.rstrip("_") or None)
    for name, value in body.items():
        if name not in allowed:
            if unnamed_refused:
                raise invalid("This field is not part of the interface.", prefix + name, "unknown_field")
        elif value is None:
            if name in NEVER_NULL:
                raise invalid("This field may not be null.", prefix + name, "null")
        elif value == "" and name in NEVER_NULL:
            raise invalid("This field may not be blank.", prefix + name, "blank")
        else:
            message, fits = _KINDS[allowed[name]]
            if not fits(value):
                raise invalid(message, prefix + name)
    return {name: body[name] for name in allowed if name in body}


def require(fields: JsonObject, name: str, item: int | None = None) -> None:
    """
    Refuse a body that lacks a field without which the operation has no meaning.

    :param fields: The checked fields.
    :param name: The field needed.
    :param item: The position of this body in an array of bodies, for the error.
    """
    if name not in fields:
        attr = name if item is None else f"{item}__{name}"
        raise invalid("This field is required.", attr, "required")
