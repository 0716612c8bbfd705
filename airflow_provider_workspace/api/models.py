"""
The records that the service returns.

Every field may be absent or null, unknown fields are kept, and enumerations whose values the interface does not show
are plain ``int`` or ``str``. Timestamps are ISO 8601 strings in UTC as the service sent them. The sections in the
docstrings are those of "Resources and their fields" in the interface document.
"""

# Without postponed annotations: pydantic would have to compile each one when this is imported.

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from airflow_provider_workspace.api.ids import CANONICAL_UUID, canonical_text
from airflow_provider_workspace.api.levels import ShownLevel, ShownNumber
from airflow_provider_workspace.api.secrets import is_secret, secrets_under, without_secrets

T = TypeVar("T")
# Most ids of long lists are canonical already: pydantic sees that by itself, and asks only about the others.
_CanonicalUuid = Annotated[str, StringConstraints(pattern=f"^{CANONICAL_UUID.pattern}$")]
_OtherId = Annotated[str, AfterValidator(canonical_text)]
Id = Annotated[_CanonicalUuid | _OtherId, Field(union_mode="left_to_right")]


class Resource(BaseModel):
    """Base of all records; its ``repr`` has no secrets."""

    # Ids may come as numbers.
    model_config = ConfigDict(extra="allow", defer_build=True, protected_namespaces=(), coerce_numbers_to_str=True)
    holds_secrets: ClassVar[bool] = True
    """Whether a declared field may be a secret; ``False`` for records of long lists, which are then read faster."""
    empty_list_as_object: ClassVar[bool] = False
    """Whether ``{}`` is an empty list; for lists whose shape the interface does not show."""
    decided_by: ClassVar[str | None] = None
    """The field that says what a record counts as; a page of which no row has it decides nothing."""

    @property
    def label(self) -> str | None:
        """The name or address of the record for people; ``None`` if the service does not show it."""
        return None

    def secrets(self) -> Iterator[str]:
        """Yield the secrets in the record, for the log masker."""
        return secrets_under("", {**self.__dict__, **(self.__pydantic_extra__ or {})})

    def to_dict(self, *, return_secrets: bool = False, names: set[str] | None = None) -> dict[str, Any]:
        """
        Return plain JSON.

        :param return_secrets: keep the secrets, see ``api.secrets``
        :param names: fields to return; by default all
        """
        dump = super().model_dump if return_secrets else self.model_dump
        return dump(mode="json", include=names)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return its fields without secrets: this is how Airflow writes what a ``@task`` returns into XCom."""
        return without_secrets(super().model_dump(**options))  # type: ignore[no-any-return]

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show the declared fields that are set, without secrets; unknown fields might contain one."""
        for name in type(self).model_fields:
            shown = without_secrets(getattr(self, name), secret=is_secret(name))
            if shown is not None:
                yield name, shown


class Page(BaseModel, Generic[T]):
    """
    One page of a list. Section "Paginated list envelope".

    Any ``next`` other than null means that there is another page.
    """

    model_config = ConfigDict(extra="ignore", defer_build=True)
    count: int | None = None
    next: Any = None
    previous: Any = None
    results: list[T]


class User(Resource):
    """A user, embedded in other records. Section "User"."""

    id: int | None = None
    uuid: Id | None = None
    distinct_id: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    is_email_verified: bool | None = None
    hedgehog_config: dict[str, Any] | None = None

    @property
    def full_name(self) -> str:
        """The name; empty if it is not shown."""
        return " ".join(filter(None, (self.first_name, self.last_name)))


class Dashboard(Resource):
    """A dashboard. Section "Dashboard"."""

    id: int | None = None
    name: str | None = None
    description: str | None = None
    pinned: bool | None = None
    created_at: str | None = None
    created_by: User | None = None
    is_shared: bool | None = None
    deleted: bool | None = None
    creation_mode: str | None = None
    use_template: str | None = None
    use_dashboard: int | None = None
    delete_insights: bool | None = None
    filters: dict[str, Any] | None = None
    variables: dict[str, Any] | None = None
    tags: list[Any] | None = None
    tiles: list[Any] | None = None
    restriction_level: ShownNumber = None
    effective_restriction_level: ShownNumber = None
    effective_privilege_level: ShownNumber = None
    user_access_level: str | None = None


class DashboardCollaborator(Resource):
    """A collaborator of a dashboard. Section "Dashboard collaborator"."""

    empty_list_as_object = True

    id: Id | None = None
    dashboard_id: int | None = None
    user: User | None = None
    level: ShownNumber = None
    added_at: str | None = None
    updated_at: str | None = None
    user_uuid: Id | None = None

    @property
    def label(self) -> str | None:
        """The id of the user."""
        return (self.user.uuid if self.user else None) or self.user_uuid


class DashboardSharing(Resource):
    """
    The sharing configuration of a dashboard. Section "Dashboard sharing configuration".

    If a service lists several configurations, this is the first enabled one, else the first; if it lists none,
    ``enabled`` is false. One page of more, without an enabled one, proves nothing.
    """

    created_at: str | None = None
    enabled: bool | None = None
    access_token: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_of_several(cls, value: object) -> Any:
        page = value if isinstance(value, dict) and isinstance(value.get("results"), list) else {}
        if page:
            value = page["results"]
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            return value
        for item in value:
            if item.get("enabled"):
                return item
        count = page.get("count")
        if page.get("next") or (isinstance(count, int) and count > len(value)):
            raise ValueError(f"{len(value)} of {count} sharing configurations, none of which is enabled")
        return value[0] if value else {"enabled": False}


class BatchExport(Resource):
    """A batch export in the response to a pause or unpause. Section "Batch export"."""

    paused: bool | None = None


class Domain(Resource):
    """A domain of an organization. Section "Domain"."""

    id: Id | None = None
    domain: str | None = None
    is_verified: bool | None = None
    verified_at: str | None = None
    verification_challenge: str | None = None
    jit_provisioning_enabled: bool | None = None
    sso_enforcement: str | None = None
    has_saml: bool | None = None
    saml_entity_id: str | None = None
    saml_acs_url: str | None = None
    saml_x509_cert: str | None = None

    @property
    def label(self) -> str | None:
        return self.domain


class Invite(Resource):
    """An invitation into an organization. Section "Invite"."""

    holds_secrets = False
    decided_by = "is_expired"

    id: Id | None = None
    target_email: str | None = None
    first_name: str | None = None
    emailing_attempt_made: bool | None = None
    level: ShownLevel = None
    is_expired: bool | None = None
    created_by: User | None = None
    created_at: str | None = None
    updated_at: str | None = None
    message: str | None = None
    private_project_access: list[Any] | None = None
    send_email: bool | None = None
    combine_pending_invites: bool | None = None

    @property
    def label(self) -> str | None:
        return self.target_email


class Member(Resource):
    """A member of an organization. Section "Member"."""

    holds_secrets = False

    id: Id | None = None
    user: User | None = None
    level: ShownLevel = None
    joined_at: str | None = None
    updated_at: str | None = None
    is_2fa_enabled: bool | None = None
    has_social_auth: bool | None = None
    last_login: str | None = None

    @property
    def label(self) -> str | None:
        return self.user.email if self.user else None

    @property
    def email_address(self) -> str:
        """The address; empty if it is not shown."""
        return self.label or ""

    @property
    def user_uuid(self) -> str | None:
        """The user; ``None`` if it is not shown."""
        return self.user.uuid if self.user else None


class ProjectItem(Resource):
    """A project in the list of projects. Section "Project"."""

    id: int | None = None
    uuid: Id | None = None
    organization: Id | None = None
    api_token: str | None = None
    name: str | None = None
    completed_snippet_onboarding: bool | None = None
    has_completed_onboarding_for: Any = None
    ingested_event: bool | None = None
    is_demo: bool | None = None
    timezone: str | None = None
    access_control: bool | None = None

    @property
    def label(self) -> str | None:
        return self.name


class Project(Resource):
    """
    The full record of a project. Section "Project".

    Fields whose type the interface leaves open are kept unchanged.
    """

    id: int | None = None
    organization: Id | None = None
    name: str | None = None
    product_description: str | None = None
    created_at: str | None = None
    effective_membership_level: ShownLevel = None
    has_group_types: bool | None = None
    live_events_token: str | None = None
    updated_at: str | None = None
    uuid: Id | None = None
    api_token: str | None = None
    app_urls: list[Any] | None = None
    slack_incoming_webhook: str | None = None
    anonymize_ips: bool | None = None
    completed_snippet_onboarding: bool | None = None
    ingested_event: bool | None = None
    test_account_filters: Any = None
    test_account_filters_default_checked: bool | None = None
    path_cleaning_filters: Any = None
    is_demo: bool | None = None
    timezone: str | None = None
    data_attributes: Any = None
    person_display_name_properties: list[Any] | None = None
    correlation_config: Any = None
    autocapture_opt_out: bool | None = None
    autocapture_exceptions_opt_in: bool | None = None
    autocapture_web_vitals_opt_in: bool | None = None
    autocapture_web_vitals_allowed_metrics: Any = None
    autocapture_exceptions_errors_to_ignore: Any = None
    capture_console_log_opt_in: bool | None = None
    capture_performance_opt_in: bool | None = None
    session_recording_opt_in: bool | None = None
    session_recording_sample_rate: Any = None
    session_recording_minimum_duration_milliseconds: int | None = None
    session_recording_linked_flag: Any = None
    session_recording_network_payload_capture_config: Any = None
    session_replay_config: Any = None
    survey_config: Any = None
    access_control: bool | None = None
    week_start_day: int | None = None
    primary_dashboard: int | None = None
    live_events_columns: list[Any] | None = None
    recording_domains: list[Any] | None = None
    person_on_events_querying_enabled: Any = None
    inject_web_apps: bool | None = None
    extra_settings: Any = None
    modifiers: Any = None
    default_modifiers: Any = None
    has_completed_onboarding_for: Any = None
    surveys_opt_in: bool | None = None
    heatmaps_opt_in: bool | None = None
    product_intents: Any = None
