"""Operators for the domains of an organization."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import (
    WorkspaceOperator,
    WorkspaceOrganizationListOperator,
    WorkspaceWriteOperator,
    given,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.api.models import Domain
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceListDomainsOperator(WorkspaceOrganizationListOperator):
    """
    List the domains of an organization. Scope ``organization:read``.

    :param organization_id: organization; by default that of the connection
    """

    def rows(self, hook: WorkspaceHook) -> Iterable[Domain]:
        """Ask for the domains."""
        self.show(hook, "domains", organization_id=self.organization_id)
        return hook.list_domains(organization_id=self.organization_id)


class WorkspaceCreateDomainOperator(WorkspaceWriteOperator):
    """
    Claim a domain; it counts once it is verified. Scopes ``organization:write`` and ``organization:read``.

    The result holds ``verification_challenge``, the value to publish in the DNS.

    :param domain: the domain, such as ``example.com``
    :param organization_id: organization; by default that of the connection
    :param if_exists: ``return`` the organization's domain of that name as it is, or ``fail``
    :param jit_provisioning_enabled: whether people with an address in the domain join by themselves
    :param sso_enforcement: which single sign-on is enforced
    :param saml_entity_id: SAML entity id
    :param saml_acs_url: SAML address
    :param saml_x509_cert: SAML certificate
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "organization_id",
        "domain",
        "jit_provisioning_enabled",
        "sso_enforcement",
        "saml_entity_id",
        "saml_acs_url",
        "saml_x509_cert",
    )

    def __init__(
        self,
        *,
        domain: str,
        organization_id: str | None = None,
        if_exists: Literal["return", "fail"] = "return",
        jit_provisioning_enabled: bool | None = None,
        sso_enforcement: str | None = None,
        saml_entity_id: str | None = None,
        saml_acs_url: str | None = None,
        saml_x509_cert: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain = domain
        self.organization_id = organization_id
        self.if_exists = if_exists
        self.jit_provisioning_enabled = jit_provisioning_enabled
        self.sso_enforcement = sso_enforcement
        self.saml_entity_id = saml_entity_id
        self.saml_acs_url = saml_acs_url
        self.saml_x509_cert = saml_x509_cert

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Claim it unless the organization has it."""
        from airflow_provider_workspace.api.operations import CreateDomain, ListDomains
        from airflow_provider_workspace.procedures.snapshot import find_row

        wanted = (self.domain or "").strip().rstrip(".").lower()
        fields = given(
            jit_provisioning_enabled=self.jit_provisioning_enabled,
            sso_enforcement=self.sso_enforcement,
            saml_entity_id=self.saml_entity_id,
            saml_acs_url=self.saml_acs_url,
            saml_x509_cert=self.saml_x509_cert,
        )

        organization_id = hook.organization_or_default(self.organization_id)
        create = CreateDomain(organization_id=organization_id, domain=wanted, **fields)
        domains = ListDomains(organization_id=organization_id, limit=hook.client.settings.page_size)

        def find() -> Domain | None:
            search = find_row(domains, lambda row: (row.domain or "").lower() == wanted)
            return hook.take(search)

        domain = self.create_once(
            context,
            f"domain '{wanted}'",
            find=find,
            create=lambda: hook.send(create),
            if_exists=self.if_exists,
        )
        self.show(hook, "domain", domain_id=domain.id, organization_id=self.organization_id)
        return self.plain(domain)


class WorkspaceGetDomainOperator(WorkspaceOperator):
    """
    Retrieve a domain. Scope ``organization:read``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain_id")

    def __init__(self, *, domain_id: str, organization_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.domain_id = domain_id
        self.organization_id = organization_id

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Read it."""
        self.show(hook, "domain", domain_id=self.domain_id, organization_id=self.organization_id)
        return self.plain(hook.get_domain(domain_id=self.domain_id, organization_id=self.organization_id))


class WorkspaceUpdateDomainOperator(WorkspaceWriteOperator):
    """
    Change a domain; what is not given stays as it is. Scope ``organization:write``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    :param domain: the domain, such as ``example.com``
    :param jit_provisioning_enabled: whether people with an address in the domain join by themselves
    :param sso_enforcement: which single sign-on is enforced
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
        "jit_provisioning_enabled",
        "sso_enforcement",
        "saml_entity_id",
        "saml_acs_url",
        "saml_x509_cert",
        "set_null",
    )

    def __init__(
        self,
        *,
        domain_id: str,
        organization_id: str | None = None,
        domain: str | None = None,
        jit_provisioning_enabled: bool | None = None,
        sso_enforcement: str | None = None,
        saml_entity_id: str | None = None,
        saml_acs_url: str | None = None,
        saml_x509_cert: str | None = None,
        set_null: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id = domain_id
        self.organization_id = organization_id
        self.domain = domain
        self.jit_provisioning_enabled = jit_provisioning_enabled
        self.sso_enforcement = sso_enforcement
        self.saml_entity_id = saml_entity_id
        self.saml_acs_url = saml_acs_url
        self.saml_x509_cert = saml_x509_cert
        self.set_null = set_null

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Change it."""
        self.show(hook, "domain", domain_id=self.domain_id, organization_id=self.organization_id)
        fields = given(
            domain=self.domain,
            jit_provisioning_enabled=self.jit_provisioning_enabled,
            sso_enforcement=self.sso_enforcement,
            saml_entity_id=self.saml_entity_id,
            saml_acs_url=self.saml_acs_url,
            saml_x509_cert=self.saml_x509_cert,
        )
        fields.update(self.nulls(self.set_null, "domain_id", "organization_id"))
        return self.plain(hook.update_domain(domain_id=self.domain_id, organization_id=self.organization_id, **fields))


class WorkspaceDeleteDomainOperator(WorkspaceWriteOperator):
    """
    Delete a domain. Scope ``organization:write``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if there is no such domain
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain_id")

    def __init__(
        self,
        *,
        domain_id: str,
        organization_id: str | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id = domain_id
        self.organization_id = organization_id
        self.if_missing = if_missing

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Delete it."""
        self.show(hook, "domains", organization_id=self.organization_id)
        deleted = self.delete_once(
            f"domain {self.domain_id}",
            lambda: hook.delete_domain(domain_id=self.domain_id, organization_id=self.organization_id),
            self.if_missing,
        )
        return {"domain_id": self.domain_id, "deleted": deleted}


class WorkspaceVerifyDomainOperator(WorkspaceWriteOperator):
    """
    Ask the service to verify a domain now, and return the domain. The interface shows no scope for this.

    RequestContext is not yet being verified: read ``is_verified`` of the result, or wait with
    :class:`~airflow_provider_workspace.sensors.workspace.WorkspaceDomainVerifiedSensor`.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    :param fail_unverified: whether the task fails if the domain is not verified afterwards
    :param body: fields of section "Domain" to send along; most services need none
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain_id", "body")

    def __init__(
        self,
        *,
        domain_id: str,
        organization_id: str | None = None,
        fail_unverified: bool = False,
        body: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id = domain_id
        self.organization_id = organization_id
        self.fail_unverified = fail_unverified
        self.body = body

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Ask, then read: the answer need not say whether it worked."""
        self.show(hook, "domain", domain_id=self.domain_id, organization_id=self.organization_id)
        body = self.parse_fields("body", "domain_id", "organization_id")
        hook.verify_domain(domain_id=self.domain_id, organization_id=self.organization_id, **body)
        domain = hook.get_domain(domain_id=self.domain_id, organization_id=self.organization_id)
        if not domain.is_verified and self.fail_unverified:
            msg = (
                f"The domain '{domain.domain}' is not verified. Is its challenge published in the DNS, as a TXT record "
                f"with the value {domain.verification_challenge}?"
            )
            raise RuntimeError(msg)
        self.log.info("The domain '%s' is %sverified.", domain.domain, "" if domain.is_verified else "not yet ")
        return self.plain(domain)
