"""Invites into an organization. Section "Endpoints, Invites"."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import TextId, Uuid
from airflow_provider_workspace.api.levels import OptionalLevel
from airflow_provider_workspace.api.models import Invite, Page
from airflow_provider_workspace.api.operation import Operation, OrganizationList, encode_json

if TYPE_CHECKING:
    from typing_extensions import Self

INVITES = "/organizations/{organization_id}/invites/"


class InviteDetails(BaseModel):
    """The writable fields of an invite except the address."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    first_name: str | None = None
    level: OptionalLevel = None
    message: str | None = None
    private_project_access: list[JsonValue] | None = None
    send_email: bool | None = None
    combine_pending_invites: bool | None = None

    # Refuses what JSON cannot carry.
    can_be_sent = field_validator("*")(lambda value: encode_json(value) and value)


class InviteFields(InviteDetails):
    """The writable fields of an invite."""

    target_email: str = Field(min_length=1)


@endpoint("GET", INVITES, scope="organization_member:read", repeatable=True)
class ListInvites(OrganizationList[Page[Invite]]):
    """List the invites of an organization, including expired ones."""


@endpoint(
    "POST",
    INVITES,
    scope="organization_member:write",
    repeatable=False,
    effect="create",
    recover="look-up",
    look_for="Look for the address in the list of invites before you invite it again.",
)
class CreateInvite(InviteFields, Operation[Invite]):
    """Create an invite."""

    organization_id: TextId


@endpoint("DELETE", INVITES + "{invite_id}/", scope="organization_member:write", repeatable=True)
class DeleteInvite(Operation[None]):
    """Delete an invite."""

    organization_id: TextId
    invite_id: Uuid


@endpoint(
    "POST",
    INVITES + "bulk/",
    scope="organization_member:write",
    repeatable=False,
    effect="create",
    recover="look-up",
    look_for="Look for the addresses in the list of invites before you invite them again.",
    refusals_count=True,
)
class CreateInvites(Operation[list[Invite]]):
    """
    Create several invites with one request.

    The interface does not show whether the body is an array or one object, nor the response. The result is a list of
    invites, which is empty if the response has no body.
    """

    organization_id: TextId
    invites: list[InviteFields] = Field(min_length=1)
    body: Literal["array", "object"] = "array"

    @model_validator(mode="after")
    def one_object_holds_one_invite(self) -> "Self":
        """Refuse several invites if the body is one object."""
        if self.body == "object" and len(self.invites) > 1:
            raise ValueError("body 'object' takes one invite per request")
        return self

    @property
    def rows(self) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.invites)

    @classmethod
    def body_fields(cls) -> tuple[str, ...]:
        """Return the fields of one invite."""
        return tuple(InviteFields.model_fields)

    def payload(self) -> Any:
        rows = [row.model_dump(mode="json", exclude_unset=True) for row in self.invites]
        return rows if self.body == "array" else rows[0]
