"""The link from a task to the resource it created or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

from airflow_provider_workspace.version_compat import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from airflow_provider_workspace.client.settings import Settings

ORGANIZATION = "/organization/{organization_id}"

# Kind of resource: path below web_url.
RESOURCE_PATHS: dict[str, str] = {
    "batch_export": f"{ORGANIZATION}/batch_exports/{{batch_export_id}}",
    "dashboard": "/project/{project_id}/dashboard/{dashboard_id}",
    "domain": f"{ORGANIZATION}/domains",
    "domains": f"{ORGANIZATION}/domains",
    "grants": f"{ORGANIZATION}/members",
    "invites": f"{ORGANIZATION}/members",
    "members": f"{ORGANIZATION}/members",
    "project": "/project/{project_id}",
    "projects": f"{ORGANIZATION}/projects",
    "reviews": f"{ORGANIZATION}/members",
    "syncs": f"{ORGANIZATION}/members",
}

# Kinds of resources on the status page, and the fragment of its URL: a section, or a text to filter by. Rows name
# their task as it is here.
ON_STATUS_PAGE = {
    "batch_export": "{batch_export_id}",
    "domain": "{domain_id}",
    "domains": "waits",
    "grants": "{dag_id} / {task_id}",
    "invites": "invites",
    "reviews": "{dag_id} / {group_id}",
    "syncs": "{dag_id} / {task_id}",
}


class WorkspaceLink(BaseOperatorLink):
    """Link to the resource that a task created or changed; see :func:`url_for`."""

    @property
    def name(self) -> str:
        return "Workspace"

    @property
    def xcom_key(self) -> str:
        """The XCom of the URL: short, because each version of a Dag stores it with each task."""
        return "_link"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the URL that the operator set; empty if it set none."""
        return str(getattr(operator, "workspace_url", ""))


def url_for(settings: Settings, kind: str, ids: Mapping[str, object]) -> str:
    """
    Return the URL of a resource for people; empty if there is none, or an id is missing.

    With a ``web_url`` in the connection it is a page of the workspace, else the status page if that shows the resource.

    :param kind: one of :data:`RESOURCE_PATHS`
    :param ids: ids in the path, and those of the task; ``None`` stands for the default of the connection
    """
    from urllib.parse import quote

    from airflow_provider_workspace.ui.plugin import URL_PREFIX, WorkspacePlugin

    known: dict[str, object] = {"organization_id": settings.organization_id, "project_id": settings.project_id}
    known |= {name: value for name, value in ids.items() if value is not None}
    try:
        if settings.web_url:
            page = settings.web_url + RESOURCE_PATHS[kind]
            quoted = {name: quote(str(value), safe="") for name, value in known.items() if value is not None}
            return page.format_map(quoted)
        if kind in ON_STATUS_PAGE and WorkspacePlugin.external_views:
            base_url = conf.get("api", "base_url", fallback=None) or ""
            fragment = quote(ON_STATUS_PAGE[kind].format_map(known))
            # Not /plugin/…: Airflow shows views of plugins only to roles that may read plugins.
            return f"{base_url.rstrip('/')}{URL_PREFIX}/#{fragment}"
    except LookupError:
        pass
    return ""
