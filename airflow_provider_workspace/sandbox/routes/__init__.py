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

RESOURCES = {
    "dashboard": dashboards,
    "collaborator": collaborators,
    "batch_export": batch_exports,
    "domain": domains,
    "invite": invites,
    "member": members,
    "project": projects,
}
"""The module with the routes and the fields of each resource."""
ROUTES = tuple(route for module in RESOURCES.values() for route in module.ROUTES)
OPERATIONS = tuple(route.operation for route in ROUTES)
LISTS = tuple(route.operation for route in ROUTES if "limit" in route.query)
"""The operations that return pages."""
WRITES = tuple(
    route.operation
    for route in ROUTES
    if route.method != "GET" and route.operation not in ("hard_delete_dashboard", "verify_domain")
)
"""The operations that change something."""
