"""Operators for the domains of an organization."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import (
    WorkspaceOperator,
    WorkspaceOrganizationListOperator,
    WorkspaceWriteOperator,
)

if TYPE_CHECKING:
    from airflow.sdk import XComArg

    from airflow_provider_workspace.api.models import Domain
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# The writable fields of section "Domain", besides its name.
SETTINGS = ("jit_provisioning_enabled", "sso_enforcement", "saml_entity_id", "saml_acs_url", "saml_x509_cert")


class WorkspaceListDomainsOperator(WorkspaceOrganizationListOperator):
    """
    List the domains of an organization. Scope ``organization:read``.

    :param organization_id: organization; by default that of the connection
    """

    resource_kind = "domains"
    row_model = "Domain"

    def rows(self, hook: WorkspaceHook) -> Iterable[Domain]:
        return hook.list_domains(organization_id=self.organization_id)


class WorkspaceCreateDomainOperator(WorkspaceWriteOperator):
    """
    Claim a domain, which then has to be verified. Scopes ``organization:write`` and ``organization:read``.

    The result holds ``verification_challenge``, the value to publish in the DNS.

    :param domain: the domain, such as ``example.com``
    :param organization_id: organization; by default that of the connection
    :param if_exists: ``return`` the existing domain of the organization, or ``fail``
    :param jit_provisioning_enabled: whether people with an address in the domain join automatically
    :param sso_enforcement: the enforced single sign-on
    :param saml_entity_id: SAML entity id
    :param saml_acs_url: SAML address
    :param saml_x509_cert: SAML certificate
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain", *SETTINGS)
    resource_kind = "domain"

    def __init__(
        self,
        *,
        domain: str | XComArg,
        organization_id: str | XComArg | None = None,
        if_exists: Literal["return", "fail"] = "return",
        jit_provisioning_enabled: bool | XComArg | None = None,
        sso_enforcement: str | XComArg | None = None,
        saml_entity_id: str | XComArg | None = None,
        saml_acs_url: str | XComArg | None = None,
        saml_x509_cert: str | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain: Any = domain
        self.organization_id: Any = organization_id
        self.if_exists = if_exists
        self.jit_provisioning_enabled: Any = jit_provisioning_enabled
        self.sso_enforcement: Any = sso_enforcement
        self.saml_entity_id: Any = saml_entity_id
        self.saml_acs_url: Any = saml_acs_url
        self.saml_x509_cert: Any = saml_x509_cert

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.domains import CreateDomain
        from airflow_provider_workspace.procedures.find import domain_name

        organization_id = hook.organization_or_default(self.organization_id)
        domain = domain_name(self.domain)
        return self.create(hook, CreateDomain(organization_id=organization_id, domain=domain, **self.given(SETTINGS)))


class WorkspaceGetDomainOperator(WorkspaceOperator):
    """
    Retrieve a domain. Scope ``organization:read``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain_id")
    resource_kind = "domain"

    def __init__(
        self, *, domain_id: str | XComArg, organization_id: str | XComArg | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id: Any = domain_id
        self.organization_id: Any = organization_id

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        return self.plain(hook.get_domain(domain_id=self.domain_id, organization_id=self.organization_id))


class WorkspaceUpdateDomainOperator(WorkspaceWriteOperator):
    """
    Change a domain; what is not given stays as it is. Scope ``organization:write``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    :param domain: the domain, such as ``example.com``
    :param jit_provisioning_enabled: whether people with an address in the domain join automatically
    :param sso_enforcement: the enforced single sign-on
    :param saml_entity_id: SAML entity id
    :param saml_acs_url: SAML address
    :param saml_x509_cert: SAML certificate
    :param set_null: names of fields to set to null
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "organization_id",
        "domain_id",
        "domain",
        *SETTINGS,
        "set_null",
    )
    resource_kind = "domain"

    def __init__(
        self,
        *,
        domain_id: str | XComArg,
        organization_id: str | XComArg | None = None,
        domain: str | XComArg | None = None,
        jit_provisioning_enabled: bool | XComArg | None = None,
        sso_enforcement: str | XComArg | None = None,
        saml_entity_id: str | XComArg | None = None,
        saml_acs_url: str | XComArg | None = None,
        saml_x509_cert: str | XComArg | None = None,
        set_null: Sequence[str] | XComArg = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id: Any = domain_id
        self.organization_id: Any = organization_id
        self.domain: Any = domain
        self.jit_provisioning_enabled: Any = jit_provisioning_enabled
        self.sso_enforcement: Any = sso_enforcement
        self.saml_entity_id: Any = saml_entity_id
        self.saml_acs_url: Any = saml_acs_url
        self.saml_x509_cert: Any = saml_x509_cert
        self.set_null: Any = set_null

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.domains import UpdateDomain
        from airflow_provider_workspace.procedures.ensure import change

        its: dict[str, Any] = {
            "organization_id": hook.organization_or_default(self.organization_id),
            "domain_id": self.domain_id,
        }
        update = UpdateDomain(**{**its, **self.given(["domain", *SETTINGS]), **self.nulls(self.set_null, *its)})
        return self.plain(change(hook.client, update, lambda: hook.get_domain(**its)))


class WorkspaceDeleteDomainOperator(WorkspaceWriteOperator):
    """
    Delete a domain. Scopes ``organization:write`` and, for the check, ``organization:read``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if the domain does not exist
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain_id")
    resource_kind = "domain"

    def __init__(
        self,
        *,
        domain_id: str | XComArg,
        organization_id: str | XComArg | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id: Any = domain_id
        self.organization_id: Any = organization_id
        self.if_missing = if_missing

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.domains import DeleteDomain, ListDomains
        from airflow_provider_workspace.procedures.find import find_by_id

        organization_id = hook.organization_or_default(self.organization_id)
        domains = ListDomains(organization_id=organization_id)
        deleted = self.remove(
            hook,
            f"domain {self.domain_id}",
            DeleteDomain(organization_id=organization_id, domain_id=self.domain_id),
            find=lambda: find_by_id(hook.client, domains, self.domain_id),
        )
        return {"domain_id": self.domain_id, "deleted": deleted}


class WorkspaceVerifyDomainOperator(WorkspaceWriteOperator):
    """
    Request the verification of a domain, and return the domain. The interface shows no scope for this.

    The domain may not be verified afterwards: read ``is_verified`` of the result, or wait with
    :class:`~airflow_provider_workspace.sensors.workspace.WorkspaceDomainVerifiedSensor`. If the service does not accept
    this request from personal API keys, use only the sensor, with ``ask_verification=False``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    :param fail_unverified: whether the task fails if the domain is not verified afterwards
    :param body: fields of section "Domain" for the request body; most services need none
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain_id", "body")
    switches: Collection[str] = (*WorkspaceWriteOperator.switches, "fail_unverified")
    resource_kind = "domain"

    def __init__(
        self,
        *,
        domain_id: str | XComArg,
        organization_id: str | XComArg | None = None,
        fail_unverified: bool | str | XComArg = False,
        body: Mapping[str, Any] | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id: Any = domain_id
        self.organization_id: Any = organization_id
        self.fail_unverified: Any = fail_unverified
        self.body: Any = body

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Request it, then read the domain: the response need not show the result."""
        from airflow_provider_workspace.api.outcome import refuses_kind_of_key
        from airflow_provider_workspace.errors import WorkspacePermissionError

        its: dict[str, Any] = {"organization_id": self.organization_id, "domain_id": self.domain_id}
        try:
            hook.verify_domain(**its, **self.parse_fields("body", *its))
        except WorkspacePermissionError as error:
            if refuses_kind_of_key(error):
                cure = (
                    "Use WorkspaceDomainVerifiedSensor with ask_verification=False instead: it waits until the service "
                    "or a person in the workspace verifies the domain. The service does not accept this request with a "
                    "personal API key."
                )
                error.args = (f"{cure} {error}",)
            raise
        domain = hook.get_domain(**its)
        if not domain.is_verified and self.fail_unverified:
            raise RuntimeError(
                f"Publish a TXT record with the value {domain.verification_challenge} in the DNS of '{domain.domain}': "
                "the domain is not verified."
            )
        self.log.info("The domain '%s' is %sverified.", domain.domain, "" if domain.is_verified else "not yet ")
        return self.plain(domain)
