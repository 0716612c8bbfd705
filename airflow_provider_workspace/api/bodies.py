"""
The writable fields of the interface as typed keyword arguments of the hooks.

Editors and type checkers use these types; the operations check the fields at run time. A test compares both. A field
that is not set is not sent; ``None`` is sent as null.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

LevelName = Literal["member", "admin", "owner"]


class DashboardBody(TypedDict, total=False):
    """Writable fields of a dashboard. Section "Dashboard"."""

    name: str | None
    description: str | None
    pinned: bool | None
    deleted: bool | None
    use_template: str | None
    use_dashboard: int | None
    delete_insights: bool | None
    tags: list[Any] | None
    restriction_level: int | None


class CollaboratorSettings(TypedDict, total=False):
    """Writable fields of a collaborator except the user. Section "Dashboard collaborator"."""

    level: int | None


class BatchExportBody(TypedDict, total=False):
    """Fields of a pause or unpause. Section "Batch export"."""

    name: str | None
    model: Literal["events", "persons"] | None
    destination: Any
    interval: Any
    paused: bool | None
    last_paused_at: str | None
    start_at: str | None
    end_at: str | None
    hogql_query: str | None


class BatchExportResumeBody(BatchExportBody, total=False):
    """Fields of an unpause, including those that the interface does not name."""

    resume_fields: dict[str, Any] | None


class DomainSettings(TypedDict, total=False):
    """Writable fields of a domain except its name. Section "Domain"."""

    jit_provisioning_enabled: bool | None
    sso_enforcement: str | None
    saml_entity_id: str | None
    saml_acs_url: str | None
    saml_x509_cert: str | None


class DomainBody(DomainSettings, total=False):
    """Writable fields of a domain. Section "Domain"."""

    domain: str | None


class InviteSettings(TypedDict, total=False):
    """Writable fields of an invite except the address. Section "Invite"."""

    first_name: str | None
    level: int | LevelName | None
    message: str | None
    private_project_access: list[Any] | None
    send_email: bool | None
    combine_pending_invites: bool | None


class ProjectBody(TypedDict, total=False):
    """Writable fields of a project. Section "Fields accepted on project creation"."""

    name: str | None
    product_description: str | None
    app_urls: list[str] | None
    slack_incoming_webhook: str | None
    anonymize_ips: bool | None
    completed_snippet_onboarding: bool | None
    test_account_filters: Any
    test_account_filters_default_checked: bool | None
    path_cleaning_filters: Any
    is_demo: bool | None
    timezone: str | None
    data_attributes: Any
    person_display_name_properties: list[str] | None
    correlation_config: Any
    autocapture_opt_out: bool | None
    autocapture_exceptions_opt_in: bool | None
    autocapture_web_vitals_opt_in: bool | None
    autocapture_web_vitals_allowed_metrics: Any
    autocapture_exceptions_errors_to_ignore: Any
    capture_console_log_opt_in: bool | None
    capture_performance_opt_in: bool | None
    session_recording_opt_in: bool | None
    session_recording_sample_rate: str | None
    session_recording_minimum_duration_milliseconds: int | None
    session_recording_linked_flag: Any
    session_recording_network_payload_capture_config: Any
    session_replay_config: Any
    survey_config: Any
    access_control: bool | None
    week_start_day: int | None
    primary_dashboard: int | None
    live_events_columns: list[str] | None
    recording_domains: list[str] | None
    inject_web_apps: bool | None
    extra_settings: Any
    modifiers: Any
    has_completed_onboarding_for: Any
    surveys_opt_in: bool | None
    heatmaps_opt_in: bool | None
