"""
The interface as plain data, one entry per operation.

Transcribed by hand from the interface, independently of the package, so that a mistake in one of the two shows up.
Import or generate nothing here from `airflow_provider_workspace`.

``fields`` reads type names, which are those of the interface. Where it leaves something
open, a comment says what this file assumes.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any


def fields(text: str) -> dict[str, str]:
    """Return name -> type word of a text such as ``id: integer | name: string``."""
    return dict(field.strip().split(": ", 1) for field in " ".join(text.split()).split(" | "))


@dataclass(frozen=True)
class Expected:
    """
    One operation of the interface.

    :param operation: name of the operation's class
    :param method: HTTP method
    :param path: template: starts with /api, ends with a slash
    :param scope: scope the key needs; None where the interface says "not shown"
    :param status: status of the answer
    :param answer: "none" | "object" | "page" | "undefined list"
    :param answer_fields: field of the resource in the answer -> type word
    :param body: every field the body accepts -> type word
    :param query: every query parameter the operation accepts
    """

    operation: str
    method: str
    path: str
    scope: str | None
    status: int
    answer: str
    answer_fields: dict[str, str] = field(default_factory=dict)
    body: dict[str, str] = field(default_factory=dict)
    query: tuple[str, ...] = ()

    @property
    def hook_method(self) -> str | None:
        """The method of the hook; None for what is always refused."""
        return None if self.status == 405 else re.sub(r"(?<!^)(?=[A-Z])", "_", self.operation).lower()

    @property
    def path_parameters(self) -> list[str]:
        """The names in the template."""
        return re.findall(r"{(\w+)}", self.path)


# --- Resources ----------------------------------------------------------------------------------------------

DASHBOARD = fields("""
    id: integer | name: string | description: string | pinned: boolean | created_at: date-time string |
    created_by: User object | is_shared: boolean | deleted: boolean | creation_mode: string | use_template: string |
    use_dashboard: integer | delete_insights: boolean | filters: object (free-form keys) |
    variables: object (free-form keys) | tags: array | tiles: array of objects (free-form keys) |
    restriction_level: enumerated integer | effective_restriction_level: enumerated integer |
    effective_privilege_level: enumerated integer | user_access_level: string
""")

USER = fields("""
    id: integer | uuid: string (UUID) | distinct_id: string | first_name: string | last_name: string |
    email: string (e-mail format) | is_email_verified: boolean | hedgehog_config: object (free-form keys)
""")

COLLABORATOR = fields("""
    id: string (UUID) | dashboard_id: integer | user: User object | level: enumerated integer |
    added_at: date-time string | updated_at: date-time string | user_uuid: string (UUID)
""")

SHARING = fields("created_at: date-time string | enabled: boolean | access_token: string (<SHARING_ACCESS_TOKEN>)")

DOMAIN = fields("""
    id: string (UUID) | domain: string | is_verified: boolean | verified_at: date-time string |
    verification_challenge: string | jit_provisioning_enabled: boolean | sso_enforcement: string | has_saml: boolean |
    saml_entity_id: string | saml_acs_url: string | saml_x509_cert: string
""")

INVITE = fields("""
    id: string (UUID) | target_email: string (e-mail format) | first_name: string | emailing_attempt_made: boolean |
    level: enumerated integer | is_expired: boolean | created_by: User object | created_at: date-time string |
    updated_at: date-time string | message: string |
    private_project_access: list of team IDs with corresponding access levels for private projects |
    send_email: boolean | combine_pending_invites: boolean
""")

MEMBER = fields("""
    id: string (UUID) | user: User object | level: enumerated integer | joined_at: date-time string |
    updated_at: date-time string | is_2fa_enabled: boolean | has_social_auth: boolean | last_login: date-time string
""")

# From a sentence that writes "(string UUID)" where the tables write "string (UUID)".
PROJECT_ITEM = fields("""
    id: integer | uuid: string (UUID) | organization: string (UUID) | api_token: string | name: string |
    completed_snippet_onboarding: boolean | has_completed_onboarding_for: free-form | ingested_event: boolean |
    is_demo: boolean | timezone: string | access_control: boolean
""")

PROJECT = fields("""
    id: integer | organization: string (UUID) | name: string | product_description: string |
    created_at: date-time string | effective_membership_level: integer | has_group_types: boolean |
    live_events_token: string | updated_at: date-time string | uuid: string (UUID) | api_token: string |
    app_urls: array of strings | slack_incoming_webhook: string | anonymize_ips: boolean |
    completed_snippet_onboarding: boolean | ingested_event: boolean | test_account_filters: free-form |
    test_account_filters_default_checked: boolean | path_cleaning_filters: free-form | is_demo: boolean |
    timezone: string | data_attributes: free-form | person_display_name_properties: array of strings |
    correlation_config: free-form | autocapture_opt_out: boolean | autocapture_exceptions_opt_in: boolean |
    autocapture_web_vitals_opt_in: boolean | autocapture_web_vitals_allowed_metrics: free-form |
    autocapture_exceptions_errors_to_ignore: free-form | capture_console_log_opt_in: boolean |
    capture_performance_opt_in: boolean | session_recording_opt_in: boolean | session_recording_sample_rate: string |
    session_recording_minimum_duration_milliseconds: integer (milliseconds) |
    session_recording_linked_flag: free-form | session_recording_network_payload_capture_config: free-form |
    session_replay_config: free-form | survey_config: free-form | access_control: boolean |
    week_start_day: enumerated integer | primary_dashboard: integer | live_events_columns: array of strings |
    recording_domains: array of strings | person_on_events_querying_enabled: string | inject_web_apps: boolean |
    extra_settings: free-form | modifiers: free-form | default_modifiers: string |
    has_completed_onboarding_for: free-form | surveys_opt_in: boolean | heatmaps_opt_in: boolean |
    product_intents: string
""")

# --- Bodies -------------------------------------------------------------------------------------------------

DASHBOARD_BODY = fields("""
    name: string | description: string | pinned: boolean | deleted: boolean | use_template: string |
    use_dashboard: integer | delete_insights: boolean | tags: array | restriction_level: enumerated integer
""")

# user_uuid: the line of the operation says "string"; the table of the resource says "string (UUID)".
COLLABORATOR_BODY = fields("level: enumerated integer | user_uuid: string")

# The values allowed for model are events and persons.
BATCH_EXPORT_BODY = fields("""
    name: string | model: enumerated string | destination: structured value | interval: structured value |
    paused: boolean | last_paused_at: string | start_at: string | end_at: string | hogql_query: string
""")

DOMAIN_BODY = fields("""
    domain: string | jit_provisioning_enabled: boolean | sso_enforcement: string | saml_entity_id: string |
    saml_acs_url: string | saml_x509_cert: string
""")

INVITE_BODY = fields("""
    target_email: string (e-mail format) | first_name: string | level: enumerated integer | message: string |
    private_project_access: list of team IDs with corresponding access levels for private projects |
    send_email: boolean | combine_pending_invites: boolean
""")

MEMBER_BODY = fields("level: enumerated integer")

# The resource without what the service sets.
NOT_WRITTEN = """
    id organization created_at effective_membership_level has_group_types live_events_token updated_at uuid
    api_token ingested_event person_on_events_querying_enabled default_modifiers product_intents
"""
PROJECT_BODY = {name: word for name, word in PROJECT.items() if name not in NOT_WRITTEN.split()}

# --- Operations ---------------------------------------------------------------------------------------------

ORGANIZATION = "/api/organizations/{organization_id}/"
DASHBOARDS = "/api/environments/{project_id}/dashboards/"
PAGED = ("limit", "offset")

# fmt: off
EXPECTED: tuple[Expected, ...] = (
    # Dashboards
    Expected("CreateDashboard", "POST", DASHBOARDS, "dashboard:write", 201, "object", DASHBOARD, DASHBOARD_BODY),
    Expected("GetDashboard", "GET", DASHBOARDS + "{dashboard_id}/", "dashboard:read", 200, "object", DASHBOARD),
    Expected("UpdateDashboard", "PATCH", DASHBOARDS + "{dashboard_id}/",
        "dashboard:write", 200, "object", DASHBOARD, DASHBOARD_BODY),
    # Always refused: the interface lists 405.
    Expected("HardDeleteDashboard", "DELETE", DASHBOARDS + "{dashboard_id}/", "dashboard:write", 405, "none"),
    # "Dashboard representation", which is taken to be a Dashboard.
    Expected("GetDashboardAccessControls", "GET", DASHBOARDS + "{dashboard_id}/access_controls/",
        None, 200, "object", DASHBOARD),
    # The interface does not show whether it is an array, a page or the single object of the example.
    Expected("ListDashboardCollaborators", "GET", DASHBOARDS + "{dashboard_id}/collaborators/",
        "dashboard:read", 200, "undefined list", COLLABORATOR),
    Expected("AddDashboardCollaborator", "POST", DASHBOARDS + "{dashboard_id}/collaborators/",
        "dashboard:write", 201, "object", COLLABORATOR, COLLABORATOR_BODY),
    Expected("RemoveDashboardCollaborator", "DELETE", DASHBOARDS + "{dashboard_id}/collaborators/{user_uuid}/",
        "dashboard:write", 204, "none"),
    # Named "List dashboard sharing", but returns one sharing configuration.
    Expected("GetDashboardSharing", "GET", DASHBOARDS + "{dashboard_id}/sharing/",
        "sharing_configuration:read", 200, "object", SHARING),
    # Batch exports of the organization
    Expected("PauseBatchExport", "POST", ORGANIZATION + "batch_exports/{batch_export_id}/pause/",
        "batch_export:write", 200, "none", body=BATCH_EXPORT_BODY),
    Expected("UnpauseBatchExport", "POST", ORGANIZATION + "batch_exports/{batch_export_id}/unpause/",
        "batch_export:write", 200, "none", body=BATCH_EXPORT_BODY),
    # Domains
    Expected("ListDomains", "GET", ORGANIZATION + "domains/", "organization:read", 200, "page", DOMAIN, query=PAGED),
    Expected("CreateDomain", "POST", ORGANIZATION + "domains/",
        "organization:write", 201, "object", DOMAIN, DOMAIN_BODY),
    Expected("GetDomain", "GET", ORGANIZATION + "domains/{domain_id}/", "organization:read", 200, "object", DOMAIN),
    Expected("UpdateDomain", "PATCH", ORGANIZATION + "domains/{domain_id}/",
        "organization:write", 200, "object", DOMAIN, DOMAIN_BODY),
    Expected("DeleteDomain", "DELETE", ORGANIZATION + "domains/{domain_id}/", "organization:write", 204, "none"),
    Expected("VerifyDomain", "POST", ORGANIZATION + "domains/{domain_id}/verify/", None, 200, "none", body=DOMAIN_BODY),
    # Invites
    Expected("ListInvites", "GET", ORGANIZATION + "invites/",
        "organization_member:read", 200, "page", INVITE, query=PAGED),
    Expected("CreateInvite", "POST", ORGANIZATION + "invites/",
        "organization_member:write", 201, "object", INVITE, INVITE_BODY),
    Expected("DeleteInvite", "DELETE", ORGANIZATION + "invites/{invite_id}/", "organization_member:write", 204, "none"),
    # The interface does not show whether the request is an array or a single invite. The response is "200, empty body".
    Expected("CreateInvites", "POST", ORGANIZATION + "invites/bulk/",
        "organization_member:write", 200, "none", body=INVITE_BODY),
    # Members
    Expected("ListMembers", "GET", ORGANIZATION + "members/",
        "organization_member:read", 200, "page", MEMBER, query=PAGED),
    Expected("UpdateMember", "PATCH", ORGANIZATION + "members/{user_uuid}/",
        "organization_member:write", 200, "object", MEMBER, MEMBER_BODY),
    Expected("DeleteMember", "DELETE", ORGANIZATION + "members/{user_uuid}/", "organization_member:write", 204, "none"),
    # Projects of the organization
    Expected("ListProjects", "GET", ORGANIZATION + "projects/", "project:read", 200, "page", PROJECT_ITEM, query=PAGED),
    Expected("CreateProject", "POST", ORGANIZATION + "projects/",
        "project:write", 201, "object", PROJECT, PROJECT_BODY),
    Expected("GetProject", "GET", ORGANIZATION + "projects/{project_id}/", "project:read", 200, "object", PROJECT),
)
# fmt: on

# --- Examples -----------------------------------------------------------------------------------------------

# Every body field with a value of its type. CreateInvites: one invite.
# Values that the interface does not show (levels, interval, destination, free-form fields) are invented.
EXAMPLE_BODY: dict[str, dict[str, Any]] = json.loads("""
{
  "CreateDashboard": {
    "name": "Weekly signups", "description": "Signups by week and country", "pinned": true, "deleted": false,
    "use_template": "signup-overview", "use_dashboard": 4101, "delete_insights": false, "tags": ["growth", "weekly"],
    "restriction_level": 21},
  "AddDashboardCollaborator": {"level": 37, "user_uuid": "0190a1b2-0000-4000-8000-0000000000a1"},
  "PauseBatchExport": {
    "name": "Events to the warehouse", "model": "events",
    "destination": {"type": "S3", "config": {"bucket_name": "warehouse-example", "prefix": "events/"}},
    "interval": {"every": "hour"}, "paused": true, "last_paused_at": "2025-03-01T06:00:00Z",
    "start_at": "2025-01-01T00:00:00Z", "end_at": "2025-12-31T00:00:00Z",
    "hogql_query": "SELECT event, timestamp FROM events"},
  "CreateDomain": {
    "domain": "example.org", "jit_provisioning_enabled": true, "sso_enforcement": "saml",
    "saml_entity_id": "https://idp.example.org/entity", "saml_acs_url": "https://idp.example.org/acs",
    "saml_x509_cert": "made-up certificate, first"},
  "CreateInvite": {
    "target_email": "ivo.sample@example.com", "first_name": "Ivo", "level": 1,
    "message": "Welcome to the analytics workspace.", "private_project_access": [{"id": 501, "level": "member"}],
    "send_email": true, "combine_pending_invites": false},
  "CreateInvites": {
    "target_email": "mara.sample@example.com", "first_name": "Mara", "level": 8,
    "message": "Your team is already here.",
    "private_project_access": [{"id": 501, "level": "member"}, {"id": 502, "level": "admin"}], "send_email": false,
    "combine_pending_invites": true},
  "UpdateMember": {"level": 8},
  "CreateProject": {
    "name": "Web shop", "product_description": "A shop that sells made-up things",
    "app_urls": ["https://shop.example.com", "https://www.example.org"],
    "slack_incoming_webhook": "https://hooks.example.com/services/made-up", "anonymize_ips": true,
    "completed_snippet_onboarding": false,
    "test_account_filters": [{"key": "email", "value": "@example.com", "operator": "not_icontains", "type": "person"}],
    "test_account_filters_default_checked": true,
    "path_cleaning_filters": [{"alias": "order", "regex": "/orders/[0-9]+"}], "is_demo": false,
    "timezone": "Europe/Berlin", "data_attributes": ["data-attr", "data-test"],
    "person_display_name_properties": ["email", "name"],
    "correlation_config": {"excluded_person_property_names": ["plan"]}, "autocapture_opt_out": false,
    "autocapture_exceptions_opt_in": true, "autocapture_web_vitals_opt_in": true,
    "autocapture_web_vitals_allowed_metrics": ["LCP", "CLS"],
    "autocapture_exceptions_errors_to_ignore": ["ResizeObserver loop limit exceeded"],
    "capture_console_log_opt_in": false, "capture_performance_opt_in": true, "session_recording_opt_in": true,
    "session_recording_sample_rate": "0.50", "session_recording_minimum_duration_milliseconds": 2000,
    "session_recording_linked_flag": {"id": 77, "key": "record-sessions"},
    "session_recording_network_payload_capture_config": {"recordHeaders": true, "recordBody": false},
    "session_replay_config": {"record_canvas": false}, "survey_config": {"appearance": {"theme": "light"}},
    "access_control": true, "week_start_day": 1, "primary_dashboard": 4101,
    "live_events_columns": ["event", "person", "timestamp"], "recording_domains": ["https://shop.example.com"],
    "inject_web_apps": false, "extra_settings": {"cost_center": "C-100"}, "modifiers": {"useMaterializedViews": true},
    "has_completed_onboarding_for": {"product_analytics": true}, "surveys_opt_in": false, "heatmaps_opt_in": true}
}
""")
EXAMPLE_BODY["UpdateDashboard"] = EXAMPLE_BODY["CreateDashboard"] | {"deleted": True, "tags": []}
EXAMPLE_BODY["UnpauseBatchExport"] = EXAMPLE_BODY["PauseBatchExport"] | {"model": "persons", "paused": False}
EXAMPLE_BODY["UpdateDomain"] = EXAMPLE_BODY["VerifyDomain"] = EXAMPLE_BODY["CreateDomain"]
