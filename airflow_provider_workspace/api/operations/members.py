"""Members of an organization. Section "Endpoints, Members"."""

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import TextId, UserId
from airflow_provider_workspace.api.levels import Level
from airflow_provider_workspace.api.models import Member, Page
from airflow_provider_workspace.api.operation import Operation, OrganizationList, T

MEMBERS_PATH = "/organizations/{organization_id}/members/"
MEMBER_PATH = MEMBERS_PATH + "{user_uuid}/"


class OfMember(Operation[T]):
    """An operation on a member."""

    organization_id: TextId
    user_uuid: UserId


@endpoint("GET", MEMBERS_PATH, scope="organization_member:read", repeatable=True)
class ListMembers(OrganizationList[Page[Member]]):
    """List the members of an organization."""


@endpoint("PATCH", MEMBER_PATH, scope="organization_member:write", repeatable=True)
class UpdateMember(OfMember[Member]):
    """Change the access level of a member."""

    level: Level


@endpoint("DELETE", MEMBER_PATH, scope="organization_member:write", repeatable=True)
class DeleteMember(OfMember[None]):
    """Remove a member from the organization."""
