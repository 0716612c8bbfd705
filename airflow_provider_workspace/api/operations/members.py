"""Members of an organization. Section "Endpoints, Members"."""

from airflow_provider_workspace.api.levels import Level
from airflow_provider_workspace.api.models import Member, Page
from airflow_provider_workspace.api.operation import Limit, Offset, Operation, UserId, endpoint

MEMBERS = "/organizations/{organization_id}/members/"
MEMBER = MEMBERS + "{user_uuid}/"


@endpoint("GET", MEMBERS, scope="organization_member:read", repeatable=True)
class ListMembers(Operation[Page[Member]]):
    """List the members of an organization."""

    organization_id: str
    limit: Limit = None
    offset: Offset = None


@endpoint("PATCH", MEMBER, scope="organization_member:write", repeatable=True)
class UpdateMember(Operation[Member]):
    """Change the access level of a member."""

    organization_id: str
    user_uuid: UserId
    level: Level


@endpoint("DELETE", MEMBER, scope="organization_member:write", repeatable=True)
class DeleteMember(Operation[None]):
    """Remove a member from the organization."""

    organization_id: str
    user_uuid: UserId
