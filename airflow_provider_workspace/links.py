"""The link from a task to what it made or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from airflow_provider_workspace.client.settings import Settings

# Kinds of resources that the status page shows, and what its address names: a section, or an id to filter by.
ON_STATUS_PAGE = {
    "batch_export": "{batch_export_id}",
    "dashboard": "dashboards",
    "domain": "{domain_id}",
    "domains": "waits",
    "invites": "invites",
}


class WorkspaceLink(BaseOperatorLink):
    """Leads to what the task made or changed: see :func:`url_for`."""

    @property
    def name(self) -> str:
        """Name of the link, as the button shows it."""
        return "Workspace"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the address that the operator left when it ran; empty if there is none."""
        return str(getattr(operator, "workspace_url", ""))


def url_for(settings: Settings, kind: str, ids: Mapping[str, object]) -> str:
    """
    Return where a person finds a resource; empty if an id is not known.

    That is its page if the connection has a ``web_url``. If not, it is the status page for what that shows, and the API
    URL for everything else.

    :param kind: one of :data:`~airflow_provider_workspace.client.settings.RESOURCE_PATHS`
    :param ids: the ids its path needs; for those that are ``None`` the defaults of the connection count
    """
    from urllib.parse import quote

    from airflow_provider_workspace.client.settings import RESOURCE_PATHS
    from airflow_provider_workspace.ui.plugin import WorkspacePlugin, status_page_url

    page, endpoint = RESOURCE_PATHS[kind]
    pages = {kind: settings.web_url + page} if isinstance(settings.web_url, str) else settings.web_url or {}
    defaults = {"organization_id": settings.organization_id, "project_id": settings.project_id}
    known = defaults | {name: value for name, value in ids.items() if value is not None}
    try:
        quoted = {name: quote(str(value), safe="") for name, value in known.items() if value is not None}
        url = pages.get(kind, settings.base_url + endpoint).format_map(quoted)
    except (LookupError, ValueError, AttributeError, TypeError):  # of a template in web_url
        return ""
    if kind in pages or kind not in ON_STATUS_PAGE or not WorkspacePlugin.external_views:
        return url
    return status_page_url(ON_STATUS_PAGE[kind].format_map(ids))
