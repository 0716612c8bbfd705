"""Domains of an organization. Section "Endpoints, Domains"."""

from pydantic import BaseModel, ConfigDict

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import DomainName, TextId, Uuid
from airflow_provider_workspace.api.models import Domain, Page
from airflow_provider_workspace.api.operation import Operation, OrganizationList, T

DOMAINS = "/organizations/{organization_id}/domains/"
DOMAIN = DOMAINS + "{domain_id}/"


class DomainFields(BaseModel):
    """The writable fields of a domain except its name."""

    model_config = ConfigDict(defer_build=True)

    jit_provisioning_enabled: bool | None = None
    sso_enforcement: str | None = None
    saml_entity_id: str | None = None
    saml_acs_url: str | None = None
    saml_x509_cert: str | None = None


class DomainOperation(Operation[T]):
    """An operation on a domain."""

    organization_id: TextId
    domain_id: Uuid


@endpoint("GET", DOMAINS, scope="organization:read", repeatable=True)
class ListDomains(OrganizationList[Page[Domain]]):
    """List the domains of an organization."""


@endpoint(
    "POST",
    DOMAINS,
    scope="organization:write",
    repeatable=False,
    effect="create",
    recover="look-up",
    look_for="Look for the domain in the list of domains before you create it again.",
)
class CreateDomain(DomainFields, Operation[Domain]):
    """Create a domain, which takes effect when it is verified."""

    organization_id: TextId
    domain: DomainName


@endpoint("GET", DOMAIN, scope="organization:read", repeatable=True)
class GetDomain(DomainOperation[Domain]):
    """Retrieve a domain."""


@endpoint("PATCH", DOMAIN, scope="organization:write", repeatable=True)
class UpdateDomain(DomainFields, DomainOperation[Domain]):
    """Change a domain."""

    domain: DomainName | None = None


@endpoint("DELETE", DOMAIN, scope="organization:write", repeatable=True)
class DeleteDomain(DomainOperation[None]):
    """Delete a domain."""


@endpoint(
    "POST",
    DOMAIN + "verify/",
    scope=None,
    repeatable=True,
    effect="change",
    already_done_code="already_verified",
    shows={},
)
class VerifyDomain(DomainFields, DomainOperation[Domain | None]):
    """Ask the service to verify a domain now; read the domain to see the result."""

    domain: DomainName | None = None
