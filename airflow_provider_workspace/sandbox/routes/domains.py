"""Domains of an organization: list, create, retrieve, update, delete, verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_workspace.sandbox import fields, records
from airflow_provider_workspace.sandbox.answers import JsonObject, answer, dumps, empty, invalid, not_found
from airflow_provider_workspace.sandbox.call import Call, Endpoint

if TYPE_CHECKING:
    from starlette.responses import Response

CHALLENGE_PREFIX = "_workspace-challenge."
SSO_FIELDS = ("jit_provisioning_enabled", "sso_enforcement")


def list_domains(call: Call) -> Response:
    """
    List the domains, oldest first.

    :param call: The request.
    """
    return call.page("domains", call.organization())


def create_domain(call: Call) -> Response:
    """
    Create a domain, not verified yet.

    :param call: The request.
    """
    organization_id = call.organization()
    wanted = call.fields(fields.DOMAIN)
    fields.require(wanted, "domain")
    _check_unique(call, wanted["domain"])
    if call.profile.sso_needs_verified_domain:
        wanted = {name: value for name, value in wanted.items() if name not in SSO_FIELDS}
    record = records.domain(wanted)
    call.state.add_domain(organization_id, record)
    call.effect("create_domain", organization_id, record["domain"], domain_id=record["id"])
    return answer(record, 201)


def retrieve_domain(call: Call) -> Response:
    """
    Retrieve a domain.

    :param call: The request.
    """
    record, _ = _find(call)
    return answer(record)


def update_domain(call: Call) -> Response:
    """
    Update a domain. Another name has to be verified anew.

    :param call: The request.
    """
    record, organization_id = _find(call)
    wanted = call.fields(fields.DOMAIN)
    changes = {name: value for name, value in wanted.items() if record[name] != value}
    if call.profile.sso_needs_verified_domain and not record["is_verified"]:
        for name in SSO_FIELDS:
            if name in changes:
                detail = "This attribute cannot be updated until the domain is verified."
                raise invalid(detail, name, "verification_required")
    if changes:
        if "domain" in changes:
            _check_unique(call, changes["domain"], record["id"])
            fresh = records.domain(changes)
            for name in ("is_verified", "verified_at", "verification_challenge"):
                record[name] = fresh[name]
        record |= changes
        record["has_saml"] = records.has_saml(record)
        _store(call, record)
        shown = {name: value for name, value in changes.items() if name not in records.SECRET_FIELDS}
        call.effect(
            "update_domain",
            organization_id,
            record["domain"],
            domain_id=record["id"],
            changed=shown,
            secrets_changed=sorted(changes.keys() & records.SECRET_FIELDS),
        )
    return answer(record)


def delete_domain(call: Call) -> Response:
    """
    Delete a domain.

    :param call: The request.
    """
    record, organization_id = _find(call)
    call.state.db.execute("DELETE FROM domains WHERE id = ?", (record["id"],))
    call.effect("delete_domain", organization_id, record["domain"], domain_id=record["id"])
    return empty(204)


def verify_domain(call: Call) -> Response:
    """
    Look for the challenge in the DNS, and mark the domain as verified when it is there.

    :param call: The request.
    """
    record, organization_id = _find(call)
    call.fields(fields.DOMAIN)
    if record["is_verified"]:
        if call.profile.verify_answers_domain:
            raise invalid("This domain has already been verified.", code="already_verified")
        return empty(200)
    name = CHALLENGE_PREFIX + record["domain"].lower()
    sql = "SELECT 1 FROM dns WHERE name = ? AND value = ?"
    if call.state.one(sql, name, record["verification_challenge"]):
        record |= {"is_verified": True, "verified_at": call.state.timestamp()}
        _store(call, record)
        call.effect("verify_domain", organization_id, record["domain"], domain_id=record["id"])
    return answer(record) if call.profile.verify_answers_domain else empty(200)


def _find(call: Call) -> tuple[JsonObject, str]:
    organization_id = call.organization()
    sql = "SELECT record FROM domains WHERE id = ? AND organization_id = ?"
    record = call.state.record(sql, call.path["id"], organization_id)
    if record is None:
        raise not_found()
    return record, organization_id


def _store(call: Call, record: JsonObject) -> None:
    sql = "UPDATE domains SET domain = ?, record = ? WHERE id = ?"
    call.state.db.execute(sql, (record["domain"].lower(), dumps(record), record["id"]))


def _check_unique(call: Call, domain: str, own_id: str = "") -> None:
    sql = "SELECT 1 FROM domains WHERE domain = ? AND id <> ?"
    if call.profile.domains_unique and call.state.one(sql, domain.lower(), own_id):
        raise invalid("Domain with this domain already exists.", "domain", "unique")


DOMAINS = "/api/organizations/{organization_id}/domains/"
ENDPOINTS = (
    Endpoint("GET", DOMAINS, "organization:read", list_domains, query=("limit", "offset")),
    Endpoint("POST", DOMAINS, "organization:write", create_domain),
    Endpoint("GET", DOMAINS + "{id}/", "organization:read", retrieve_domain),
    Endpoint("PATCH", DOMAINS + "{id}/", "organization:write", update_domain),
    Endpoint("DELETE", DOMAINS + "{id}/", "organization:write", delete_domain),
    Endpoint("POST", DOMAINS + "{id}/verify/", None, verify_domain),
)
