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

    :param kind: one of :data:`~airflow_provider_workspace.client.resource_urls.RESOURCE_PATHS`
    :param ids: the ids its path needs
    """
    has_page = settings.web_url if isinstance(settings.web_url, str) else (settings.web_url or {}).get(kind)
    url = settings.url_for(kind, ids)
    if has_page or not url or kind not in ON_STATUS_PAGE:
        return url
    from airflow_provider_workspace.ui.plugin import WorkspacePlugin, status_page_url

    return status_page_url(ON_STATUS_PAGE[kind].format_map(ids)) if WorkspacePlugin.external_views else url
