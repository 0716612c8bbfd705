"""
The plugin that adds the status page to the Airflow UI.

Every Airflow process loads plugins, including each task, so this module imports nothing else until the page is opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.version_compat import AirflowPlugin, conf

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Send = Callable[[Message], Awaitable[None]]

# The page is at <base_url>/workspace-ui/. Roles that may read plugins see it in a frame at <base_url>/plugin/workspace.
URL_PREFIX = "/workspace-ui"
# The page sends requests to its own Airflow only, and runs no other scripts.
RESPONSE_HEADERS = {
    b"cache-control": b"no-cache",
    b"content-security-policy": b"default-src 'self'; frame-ancestors 'self'",
    b"x-content-type-options": b"nosniff",
}


class StatusPage:
    """
    The static files of the page, as an ASGI application.

    Airflow does not protect applications of plugins, so these files contain no data. The browser reads the data from
    Airflow's REST API with the session of the user.
    """

    def __init__(self) -> None:
        self._files: Any = None

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
        """Serve a request."""
        if self._files is None:
            from starlette.staticfiles import StaticFiles

            self._files = StaticFiles(directory=Path(__file__).with_name("static"), html=True)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *RESPONSE_HEADERS.items()]
            await send(message)

        await self._files(scope, receive, with_headers)


class WorkspacePlugin(AirflowPlugin):
    """Adds the status page to *Browse*, unless ``[workspace] status_page`` is off."""

    name = "workspace"
    if conf.getboolean("workspace", "status_page", fallback=True):
        fastapi_apps = [{"app": StatusPage(), "url_prefix": URL_PREFIX, "name": "Workspace status page"}]
        external_views = [
            {
                "name": "Workspace",
                "url_route": "workspace",
                "destination": "nav",
                "category": "browse",
                "href": f"{URL_PREFIX[1:]}/",
                "icon": f"{URL_PREFIX[1:]}/icon.svg",
                "icon_dark_mode": f"{URL_PREFIX[1:]}/icon-dark.svg",
            }
        ]
