"""The record of an organization: no part of the interface, so it is read only where a connection asks for it."""

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import TextId
from airflow_provider_workspace.api.models import Resource
from airflow_provider_workspace.api.operation import Operation


class OrganizationRecord(Resource):
    """An organization."""

    holds_secrets = False

    member_count: int | None = None


@endpoint("GET", "/organizations/{organization_id}/", scope="organization:read", repeatable=True)
class GetOrganization(Operation[OrganizationRecord]):
    """Retrieve an organization."""

    organization_id: TextId
