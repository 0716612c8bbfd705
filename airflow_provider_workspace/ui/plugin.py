"""
The plugin that puts the status page into the Airflow UI.

Every Airflow process loads plugins, each task among them: nothing else of the package is imported before somebody opens
the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.version_compat import AirflowPlugin, conf

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Send = Callable[[Message], Awaitable[None]]

URL_PREFIX = "/workspace-ui"
# Where the Airflow UI shows the page: <base_url>/plugin/<route>.
ROUTE = "workspace"
# The page asks nobody but the Airflow that serves it, and runs no script but its own.
HEADERS = {
    b"cache-control": b"no-cache",
    b"content-security-policy": b"default-src 'self'; frame-ancestors 'self'",
    b"x-content-type-options": b"nosniff",
}


def status_page_url(fragment: str) -> str:
    """
    Return the URL of the page in the Airflow UI.

    :param fragment: a section to go to, or a text to filter by
    """
    from urllib.parse import quote

    base = conf.get("api", "base_url", fallback=None) or ""
    return f"{base.rstrip('/')}/plugin/{ROUTE}#{quote(fragment)}"


class StatusPage:
    """
    The files of the page, as an ASGI application.

    Airflow protects no application of a plugin: these files say nothing about anybody. What the page shows, the browser
    asks Airflow's REST API for, with the session of the person.
    """

    def __init__(self) -> None:
        self._files: Any = None

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
        """Answer a request."""
        if self._files is None:
            from starlette.staticfiles import StaticFiles

            self._files = StaticFiles(directory=Path(__file__).with_name("static"), html=True)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS.items()]
            await send(message)

        await self._files(scope, receive, with_headers)


class WorkspacePlugin(AirflowPlugin):
    """Shows the status page under *Browse*, unless ``[workspace] status_page`` is off."""

    name = "workspace"
    if conf.getboolean("workspace", "status_page", fallback=True):
        fastapi_apps = [{"app": StatusPage(), "url_prefix": URL_PREFIX, "name": "Workspace status page"}]
        external_views = [
            {
                "name": "Workspace",
                "url_route": ROUTE,
                "destination": "nav",
                "category": "browse",
                "href": f"{URL_PREFIX[1:]}/",
                "icon": f"{URL_PREFIX[1:]}/icon.svg",
                "icon_dark_mode": f"{URL_PREFIX[1:]}/icon-dark.svg",
            }
        ]
