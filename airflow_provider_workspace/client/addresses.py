"""Where a person finds a resource: its page if the connection has a ``web_url``, else its address in the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from airflow_provider_workspace.client.settings import Settings

ORGANIZATION = "/organizations/{organization_id}"

# Kind of resource: path below web_url, path of the interface.
PATHS: dict[str, tuple[str, str]] = {
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


def address_of(settings: Settings, kind: str, ids: Mapping[str, object]) -> str:
    """
    Return the address of a resource for people.

    :param kind: one of :data:`PATHS`
    :param ids: the ids its path needs; those that are ``None`` are taken from the settings
    :return: a URL without any secret; empty if an id is not known
    """
    page, endpoint = PATHS[kind]
    if isinstance(settings.web_url, str):
        template = settings.web_url + page
    else:
        template = (settings.web_url or {}).get(kind, settings.base_url + endpoint)
    known: dict[str, object] = {"organization_id": settings.organization_id, "project_id": settings.project_id}
    known.update((name, value) for name, value in ids.items() if value is not None)
    try:
        quoted = {name: quote(str(value), safe="") for name, value in known.items() if value is not None}
        return template.format_map(quoted)
    except (KeyError, ValueError, IndexError):
        return ""
