"""Where a person finds a resource: its page if the connection has a ``web_url``, else its address in the interface."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

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


def url_for(kind: str, ids: Mapping[str, object], *, base_url: str, web_url: str | Mapping[str, str] | None) -> str:
    """
    Return the URL of a resource for people.

    :param kind: one of :data:`RESOURCE_PATHS`
    :param ids: the ids its path needs; those that are ``None`` are not known
    :param base_url: base URL of the service
    :param web_url: base URL of the pages for people, or a template per kind of resource; ``None`` if there are none
    :return: a URL without any secret; empty if an id is not known
    """
    page, endpoint = RESOURCE_PATHS[kind]
    pages = {kind: web_url + page} if isinstance(web_url, str) else web_url or {}
    template = pages.get(kind, base_url + endpoint)
    try:
        quoted = {name: quote(str(value), safe="") for name, value in ids.items() if value is not None}
        return template.format_map(quoted)
    except (KeyError, ValueError, IndexError):
        return ""
