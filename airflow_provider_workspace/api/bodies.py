"""
The writable fields of the interface as keyword arguments of the hooks.

The operations check them at run time; these types are what an editor completes and a type checker checks. A test holds
both equal, name by name. A field that is not given is not sent, a field given as ``None`` is sent as null.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

LevelName = Literal["member", "admin", "owner"]


class DashboardBody(TypedDict, total=False):
    """What may be written to a dashboard. Section "Dashboard"."""

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
    """What may be written to a collaborator besides who it is. Section "Dashboard collaborator"."""

    level: int | None


class BatchExportBody(TypedDict, total=False):
    """What a pause or unpause may carry. Section "Batch export"."""

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
    """What an unpause may carry: that, and fields that the interface does not name."""

    resume_fields: dict[str, Any] | None


class DomainSettings(TypedDict, total=False):
    """What may be written to a domain besides its name. Section "Domain"."""

    jit_provisioning_enabled: bool | None
    sso_enforcement: str | None
    saml_entity_id: str | None
    saml_acs_url: str | None
    saml_x509_cert: str | None


class DomainBody(DomainSettings, total=False):
    """What may be written to a domain. Section "Domain"."""

    domain: str | None


class InviteSettings(TypedDict, total=False):
    """What an invite may carry besides its address. Section "Invite"."""

    first_name: str | None
    level: int | LevelName | None
    message: str | None
    private_project_access: list[Any] | None
    send_email: bool | None
    combine_pending_invites: bool | None


class ProjectBody(TypedDict, total=False):
    """What a project can be created with. Section "Fields accepted on project creation"."""

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
