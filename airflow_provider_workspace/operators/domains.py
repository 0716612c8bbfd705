"""Operators for the domains of an organization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_workspace.operators.arguments import FIELD, ID, NAME, TEXT, Arg, arg
from airflow_provider_workspace.operators.base import OfOrganization, WorkspaceWriteOperator
from airflow_provider_workspace.operators.crud import (
    WorkspaceCreateOperator,
    WorkspaceDeleteOperator,
    WorkspaceGetOperator,
    WorkspaceListOperator,
    WorkspaceUpdateOperator,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class OfDomain(OfOrganization):
    """
    What belongs to a domain.

    :param domain_id: the domain (UUID)
    """

    resource_kind: ClassVar[str] = "domain"
    domain_id: Arg[str] = arg(ID)


class DomainArguments(OfOrganization):
    """
    The writable fields of section "Domain", besides its name.

    :param jit_provisioning_enabled: whether people with an address in the domain join automatically
    :param sso_enforcement: the enforced single sign-on
    :param saml_entity_id: SAML entity id
    :param saml_acs_url: SAML ACS URL
    :param saml_x509_cert: SAML certificate
    """

    jit_provisioning_enabled: Arg[bool | None] = arg(FIELD, default=None)
    sso_enforcement: Arg[str | None] = arg(TEXT, default=None)
    saml_entity_id: Arg[str | None] = arg(TEXT, default=None)
    saml_acs_url: Arg[str | None] = arg(TEXT, default=None)
    saml_x509_cert: Arg[str | None] = arg(TEXT, default=None)


class WorkspaceListDomainsOperator(OfOrganization, WorkspaceListOperator):
    """List the domains of an organization. Scope ``organization:read``."""

    operation = "domains.ListDomains"
    resource_kind = "domains"


class WorkspaceCreateDomainOperator(DomainArguments, WorkspaceCreateOperator):
    """
    Claim a domain, which then has to be verified. Scopes ``organization:write`` and ``organization:read``.

    The result holds ``verification_challenge``, the value to publish in the DNS.

    :param domain: the domain, such as ``example.com``
    """

    operation = "domains.CreateDomain"
    resource_kind = "domain"
    domain: Arg[str] = arg(NAME)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.procedures.find import domain_name

        return self.create(hook, self.operation_from_arguments(hook, self.operation, domain=domain_name(self.domain)))


class WorkspaceGetDomainOperator(OfDomain, WorkspaceGetOperator):
    """Retrieve a domain. Scope ``organization:read``."""

    operation = "domains.GetDomain"


class WorkspaceUpdateDomainOperator(OfDomain, DomainArguments, WorkspaceUpdateOperator):
    """
    Change a domain; what is not given stays as it is. Scope ``organization:write``.

    :param domain: another name, such as ``example.com``
    """

    operation, read_operation = "domains.UpdateDomain", "domains.GetDomain"
    domain: Arg[str | None] = arg(NAME, default=None)


class WorkspaceDeleteDomainOperator(OfDomain, WorkspaceDeleteOperator):
    """Delete a domain. Scopes ``organization:write`` and, for the check, ``organization:read``."""

    operation, list_operation = "domains.DeleteDomain", "domains.ListDomains"


class WorkspaceVerifyDomainOperator(OfDomain, WorkspaceWriteOperator):
    """
    Request the verification of a domain, and return the domain. The API shows no scope for this.

    The domain may still be unverified afterwards: read ``is_verified`` of the result, or wait with
    :class:`~airflow_provider_workspace.sensors.workspace.WorkspaceDomainVerifiedSensor`. If the service does not accept
    this request from personal API keys, use only the sensor, with ``ask_verification=False``.
    """

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Request it, then read the domain: the response need not show the result."""
        from airflow_provider_workspace.api.outcome import refuses_kind_of_key
        from airflow_provider_workspace.errors import WorkspacePermissionError

        try:
            hook.send(self.operation_from_arguments(hook, "domains.VerifyDomain"))
        except WorkspacePermissionError as error:
            if refuses_kind_of_key(error):
                cure = (
                    "A personal API key may not ask for verification. Use WorkspaceDomainVerifiedSensor with "
                    "ask_verification=False: it waits until the service or a person in the workspace verifies the "
                    "domain."
                )
                error.args = (f"{cure} {error}",)
            raise
        domain = hook.send(self.operation_from_arguments(hook, "domains.GetDomain"))
        self.log.info("The domain '%s' is %sverified.", domain.domain, "" if domain.is_verified else "not yet ")
        return self.plain(domain)
