"""Projects of an organization. Section "Endpoints, Projects"."""

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import IntegerId, TextId
from airflow_provider_workspace.api.levels import OptionalNumber
from airflow_provider_workspace.api.models import Page, Project, ProjectItem
from airflow_provider_workspace.api.operation import Operation, OrganizationList

PROJECTS = "/organizations/{organization_id}/projects/"


class ProjectFields(BaseModel):
    """The writable fields of a project. Section "Fields accepted on project creation"."""

    model_config = ConfigDict(defer_build=True)

    name: str | None = None
    product_description: str | None = None
    app_urls: list[str] | None = None
    slack_incoming_webhook: str | None = None
    anonymize_ips: bool | None = None
    completed_snippet_onboarding: bool | None = None
    test_account_filters: JsonValue = None
    test_account_filters_default_checked: bool | None = None
    path_cleaning_filters: JsonValue = None
    is_demo: bool | None = None
    timezone: str | None = None
    data_attributes: JsonValue = None
    person_display_name_properties: list[str] | None = None
    correlation_config: JsonValue = None
    autocapture_opt_out: bool | None = None
    autocapture_exceptions_opt_in: bool | None = None
    autocapture_web_vitals_opt_in: bool | None = None
    autocapture_web_vitals_allowed_metrics: JsonValue = None
    autocapture_exceptions_errors_to_ignore: JsonValue = None
    capture_console_log_opt_in: bool | None = None
    capture_performance_opt_in: bool | None = None
    session_recording_opt_in: bool | None = None
    session_recording_sample_rate: str | None = Field(default=None, coerce_numbers_to_str=True)
    session_recording_minimum_duration_milliseconds: OptionalNumber = None
    session_recording_linked_flag: JsonValue = None
    session_recording_network_payload_capture_config: JsonValue = None
    session_replay_config: JsonValue = None
    survey_config: JsonValue = None
    access_control: bool | None = None
    week_start_day: OptionalNumber = None
    primary_dashboard: OptionalNumber = None
    live_events_columns: list[str] | None = None
    recording_domains: list[str] | None = None
    inject_web_apps: bool | None = None
    extra_settings: JsonValue = None
    modifiers: JsonValue = None
    has_completed_onboarding_for: JsonValue = None
    surveys_opt_in: bool | None = None
    heatmaps_opt_in: bool | None = None


@endpoint("GET", PROJECTS, scope="project:read", repeatable=True)
class ListProjects(OrganizationList[Page[ProjectItem]]):
    """List the projects of an organization."""


@endpoint(
    "POST",
    PROJECTS,
    scope="project:write",
    repeatable=False,
    effect="create",
    recover="look-up",
    look_for="Look for the project by its name in the list of projects before you create it again.",
)
class CreateProject(ProjectFields, Operation[Project]):
    """Create a project. Names need not be unique, so a repeated request may create another one."""

    organization_id: TextId


@endpoint("GET", PROJECTS + "{project_id}/", scope="project:read", repeatable=True)
class GetProject(Operation[Project]):
    """Retrieve a project."""

    organization_id: TextId
    project_id: IntegerId
