"""Read a document from a URL, which may be of another service than that of the connection."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timezone

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.operation import Operation, Request, RequestContext
from airflow_provider_workspace.api.request_errors import origin, status_error
from airflow_provider_workspace.api.secrets import without_url_secrets
from airflow_provider_workspace.client.settings import Settings, is_url
from airflow_provider_workspace.client.wire import ThreadBackend
from airflow_provider_workspace.errors import WorkspaceInputError


@endpoint("GET", "/schema/", scope=None, repeatable=True)
class ReadDocument(Operation[None]):
    """Retrieve a document."""

    url: str

    def path(self, *, shown: bool = False) -> str:  # noqa: ARG002 - never with secrets
        """Return the URL without its secrets."""
        return without_url_secrets(self.url)


def read_document(url: str, settings: Settings) -> str:
    """
    Return the text of a document.

    It is read once, with the timeouts, the maximum size, the proxy and the CA certificates of the connection. The API
    key is sent only to the origin of the connection. Redirects are not followed.

    :param url: an http or https URL
    :raises WorkspaceInputError: if the URL is invalid, or the document is not in UTF-8
    :raises WorkspaceRequestError: if it cannot be read
    """
    if not is_url(url):
        raise WorkspaceInputError(f"{without_url_secrets(url)!r} is not a valid URL of a document. Correct it")
    context = RequestContext(settings.source, settings.secrets)
    if origin(url) != origin(settings.base_url):
        settings = settings.model_copy(update={"base_url": url, "api_key": ""})
    op = ReadDocument(url=url)
    shown = op.path()
    with closing(ThreadBackend(settings)) as backend:
        response = backend.exchange(op, Request("GET", url, shown, ()), url, context)
    if response.status == 429 or response.status >= 500:
        now = datetime.now(timezone.utc)
        raise status_error(op, context.cleaned(op, response), context, now)
    if response.status != 200:
        raise WorkspaceInputError(
            f"{shown} returned {response.status}. Check the URL of the document, or save it to a file"
        )
    try:
        return response.body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorkspaceInputError(f"{shown} is not in UTF-8: byte {error.start} is invalid") from None
