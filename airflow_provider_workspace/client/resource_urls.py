"""Where a person finds a resource: its page if the connection has a ``web_url``, else its address in the interface."""

from __future__ import annotations

ORGANIZATION = "/organizations/{organization_id}"

# Kind of resource: path below web_url, path of the interface.
RESOURCE_PATHS: dict[str, tuple[str, str]] = {
    "batch_export": (
        "/organization/{organization_id}/batch_exports/{batch_export_id}",
        f"/api{ORGANIZATION}/batch_exports/{{batch_export_id}}/",
    ),
    "dashboard": (
        "/project/{project_id}/dashboard/{dashboard_id}",
        "/api/environments/{project_id}/dashboards/{dashboard_id}/",
    ),
    "domain": ("/organization/{organization_id}/domains", f"/api{ORGANIZATION}/domains/{{domain_id}}/"),
    "domains": ("/organization/{organization_id}/domains", f"/api{ORGANIZATION}/domains/"),
    "invites": ("/organization/{organization_id}/members", f"/api{ORGANIZATION}/invites/"),
    "members": ("/organization/{organization_id}/members", f"/api{ORGANIZATION}/members/"),
    "project": ("/project/{project_id}", f"/api{ORGANIZATION}/projects/{{project_id}}/"),
    "projects": ("/organization/{organization_id}/projects", f"/api{ORGANIZATION}/projects/"),
}
