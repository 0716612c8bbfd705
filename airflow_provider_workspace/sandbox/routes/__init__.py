"""The operations of the interface, in one module per resource."""

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

ROUTES = (
    *dashboards.ROUTES,
    *collaborators.ROUTES,
    *batch_exports.ROUTES,
    *domains.ROUTES,
    *invites.ROUTES,
    *members.ROUTES,
    *projects.ROUTES,
)
OPERATIONS = tuple(route.operation for route in ROUTES)
LISTS = tuple(route.operation for route in ROUTES if "limit" in route.query)
"""The operations that return pages."""
WRITES = tuple(
    route.operation
    for route in ROUTES
    if route.method != "GET" and route.operation not in ("hard_delete_dashboard", "verify_domain")
)
"""The operations that change something."""
