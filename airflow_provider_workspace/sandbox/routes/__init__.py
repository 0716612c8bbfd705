"""The operations of the interface, one module per resource."""

from __future__ import annotations

from airflow_provider_workspace.sandbox.routes import (
    batch_exports,
    collaborators,
    dashboards,
    domains,
    invites,
    members,
    projects,
)

ENDPOINTS = (
    *dashboards.ENDPOINTS,
    *collaborators.ENDPOINTS,
    *batch_exports.ENDPOINTS,
    *domains.ENDPOINTS,
    *invites.ENDPOINTS,
    *members.ENDPOINTS,
    *projects.ENDPOINTS,
)
OPERATIONS = tuple(endpoint.operation for endpoint in ENDPOINTS)
LISTS = tuple(endpoint.operation for endpoint in ENDPOINTS if "limit" in endpoint.query)
"""The operations that answer pages."""
