"""Domains of an organization: list, create, retrieve, update, delete, verify."""

from __future__ import annotations

import json
import secrets
from uuid import uuid4

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, Fields, require, with_defaults
from airflow_provider_workspace.sandbox.responses import JsonObject, dumps, invalid
from airflow_provider_workspace.sandbox.state import State

CHALLENGE_PREFIX = "_workspace-challenge."

FIELDS: Fields = {
    "domain": ("domain", None),
    "jit_provisioning_enabled": ("boolean", False),
    "sso_enforcement": ("string", ""),
    "saml_entity_id": ("string", None),
    "saml_acs_url": ("string", None),
    "saml_x509_cert": ("string", None),
}
SSO_FIELDS = ("jit_provisioning_enabled", "sso_enforcement")
SAML_FIELDS = ("saml_entity_id", "saml_acs_url", "saml_x509_cert")


def add_domain(state: State, organization_id: str, fields: JsonObject, **more: object) -> JsonObject:
    """Add an unverified domain and return its record; ``more`` has further fields of it, for the seed."""
    record: JsonObject = with_defaults(FIELDS, fields)
    record |= {"id": str(uuid4()), "has_saml": _has_saml(record), **_unverified(), **more}
    state.insert(
        "domains",
        id=record["id"],
        organization_id=organization_id,
        domain=record["domain"].lower(),
        record=dumps(record),
    )
    return record


def list_domains(request: ApiRequest) -> object:
    """List the domains, oldest first."""
    _look_at_dns(request, request.organization())
    return request.page("domains")


def create_domain(request: ApiRequest) -> object:
    organization_id = request.organization()
    fields = request.fields(FIELDS)
    require(fields, "domain")
    _check_unique(request, fields["domain"])
    if request.live:  # takes only the name; the others are dropped
        if "xn--" in fields["domain"].lower():
            raise invalid("Enter a valid domain.", "domain")
        fields = {"domain": fields["domain"]}
    record = add_domain(request.state, organization_id, fields)
    request.audit("create_domain", organization_id, record["domain"], domain_id=record["id"])
    return record


def retrieve_domain(request: ApiRequest) -> object:
    _look_at_dns(request, request.organization())
    record, _ = _find(request)
    return record


def update_domain(request: ApiRequest) -> object:
    """Update a domain; a new name must be verified again."""
    record, organization_id = _find(request)
    fields = request.fields(FIELDS)
    if request.live:  # keeps the name
        fields.pop("domain", None)
    changes = {name: value for name, value in fields.items() if record[name] != value}
    if request.live and not record["is_verified"]:
        for name in SSO_FIELDS:
            if name in changes:
                detail = "This attribute cannot be updated until the domain is verified."
                raise invalid(detail, name, "verification_required")
    if changes:
        if "domain" in changes:
            _check_unique(request, changes["domain"], record["id"])
            record |= _unverified()
        record |= changes
        record["has_saml"] = _has_saml(record)
        _store(request, record)
        request.audit(
            "update_domain",
            organization_id,
            record["domain"],
            domain_id=record["id"],
            changed=sorted(changes),  # without their values, since a certificate is a secret
        )
    return record


def delete_domain(request: ApiRequest) -> None:
    record, organization_id = _find(request)
    request.state.db.execute("DELETE FROM domains WHERE id = ?", (record["id"],))
    request.audit("delete_domain", organization_id, record["domain"], domain_id=record["id"])


def verify_domain(request: ApiRequest) -> object:
    """Mark the domain as verified if DNS has its challenge."""
    record, organization_id = _find(request)
    request.fields(FIELDS)
    if record["is_verified"]:
        if request.live:
            raise invalid("This domain has already been verified.", code="already_verified")
        return None
    _verify(request, organization_id, record, request.key.name)
    return record if request.live else None


def _look_at_dns(request: ApiRequest, organization_id: str) -> None:
    """Verify all domains, which the service of ``live`` does on its own."""
    if request.live:
        rows = request.state.db.execute("SELECT record FROM domains WHERE organization_id = ?", (organization_id,))
        for record in [json.loads(row["record"]) for row in rows]:
            if not record["is_verified"]:
                _verify(request, organization_id, record, "the service")


def _verify(request: ApiRequest, organization_id: str, record: JsonObject, key_name: str) -> None:
    name = CHALLENGE_PREFIX + record["domain"].lower()
    if request.state.one("dns", name=name, value=record["verification_challenge"]):
        record |= {"is_verified": True, "verified_at": request.state.timestamp()}
        _store(request, record)
        detail = {"domain_id": record["id"]}
        request.state.audit("verify_domain", organization_id, record["domain"], key_name, detail)


def _find(request: ApiRequest) -> tuple[JsonObject, str]:
    organization_id = request.organization()
    return request.state.record("domains", id=request.path["id"], organization_id=organization_id), organization_id


def _store(request: ApiRequest, record: JsonObject) -> None:
    sql = "UPDATE domains SET domain = ?, record = ? WHERE id = ?"
    request.state.db.execute(sql, (record["domain"].lower(), dumps(record), record["id"]))


def _check_unique(request: ApiRequest, domain: str, own_id: str = "") -> None:
    sql = "SELECT count(*) FROM domains WHERE domain = ? AND id <> ?"
    if request.live and request.state.number(sql, domain.lower(), own_id):
        raise invalid("Domain with this domain already exists.", "domain", "unique")


def _unverified() -> JsonObject:
    return {"is_verified": False, "verified_at": None, "verification_challenge": secrets.token_urlsafe(24)}


def _has_saml(record: JsonObject) -> bool:
    return all(record[name] for name in SAML_FIELDS)


DOMAINS = "/api/organizations/{organization_id}/domains/"
ROUTES = (
    ApiRoute("GET", DOMAINS, "organization:read", list_domains, query=("limit", "offset")),
    ApiRoute("POST", DOMAINS, "organization:write", create_domain, 201),
    ApiRoute("GET", DOMAINS + "{id}/", "organization:read", retrieve_domain),
    ApiRoute("PATCH", DOMAINS + "{id}/", "organization:write", update_domain),
    ApiRoute("DELETE", DOMAINS + "{id}/", "organization:write", delete_domain, 204),
    ApiRoute("POST", DOMAINS + "{id}/verify/", None, verify_domain, session_only=True),
)
